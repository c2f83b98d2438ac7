//! The types of parameters: how a kind stores one, and which values fit (rules resources.6 to resources.13 of the language).

use std::fmt;

use setpoint_value::{Type, Value};

/// The type of a parameter as its kind declares it. A language sees [`ParameterType::ty`]; width and sign are checked when a
/// resource is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterType {
    /// True or false.
    Bool,
    /// Bytes, normally UTF-8.
    Str,
    /// A whole number of so many bits.
    Int {
        /// 8, 16, 32 or 64.
        bits: u8,
        /// Whether negative numbers fit.
        signed: bool,
    },
    /// A floating-point number of so many bits.
    Float {
        /// 32 or 64.
        bits: u8,
    },
    /// A list of any length.
    List(&'static ParameterType),
    /// A list of at most so many elements.
    Array(&'static ParameterType, usize),
    /// A map from the first type to the second.
    Map(&'static ParameterType, &'static ParameterType),
    /// A struct with these fields, in this order.
    Struct(&'static [(&'static str, &'static ParameterType)]),
    /// May be left unset, which differs from any value.
    Optional(&'static ParameterType),
    /// Any value, as it is.
    Any,
    /// A function of this type.
    Func(&'static str),
}

/// A value that does not fit a parameter type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeMismatch {
    /// Where inside the value: `.a[0]`; empty for the value itself.
    pub path: String,
    /// What is wrong, without the value when that is sensitive.
    pub message: String,
    /// What to do, if that is certain enough to say.
    pub help: Option<String>,
}

impl TypeMismatch {
    /// About the value itself, without advice.
    #[must_use]
    pub fn new(message: impl Into<String>) -> TypeMismatch {
        TypeMismatch {
            path: String::new(),
            message: message.into(),
            help: None,
        }
    }

    /// With advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> TypeMismatch {
        self.help = Some(help.into());
        self
    }

    /// About a value further inside: `step` leads to what it was about until now.
    #[must_use]
    pub fn inside(mut self, step: &str) -> TypeMismatch {
        self.path.insert_str(0, step);
        self
    }
}

impl fmt::Display for TypeMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "at `{}`: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

impl ParameterType {
    /// The type that languages see. Anything is `dynamic`.
    #[must_use]
    pub fn ty(&self) -> Type {
        match self {
            ParameterType::Bool => Type::Bool,
            ParameterType::Str => Type::Str,
            ParameterType::Int { .. } => Type::Int,
            ParameterType::Float { .. } => Type::Float,
            ParameterType::List(element) | ParameterType::Array(element, _) => Type::list(element.ty()),
            ParameterType::Map(key, value) => Type::map(key.ty(), value.ty()),
            ParameterType::Struct(fields) => {
                Type::structure(fields.iter().map(|(name, field)| (*name, field.ty())))
            }
            ParameterType::Optional(inner) => inner.ty(),
            ParameterType::Any => Type::Dynamic,
            ParameterType::Func(signature) => Type::parse(signature).unwrap_or(Type::Dynamic),
        }
    }

    /// The type with its widths, for messages: `[]int of 8 bits`, `str, optional`.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            ParameterType::Int { bits, signed: true } => format!("int of {bits} bits"),
            ParameterType::Int { bits, signed: false } => format!("int of {bits} bits without a sign"),
            ParameterType::Float { bits } => format!("float of {bits} bits"),
            ParameterType::List(element) => format!("[]{}", element.describe()),
            ParameterType::Array(element, room) => format!("[]{}, at most {room}", element.describe()),
            ParameterType::Optional(inner) => format!("{}, optional", inner.describe()),
            ParameterType::Bool
            | ParameterType::Str
            | ParameterType::Map(..)
            | ParameterType::Struct(_)
            | ParameterType::Any
            | ParameterType::Func(_) => self.ty().to_string(),
        }
    }

    /// Whether the parameter may be unset as something different from its zero value.
    #[must_use]
    pub fn is_optional(&self) -> bool {
        matches!(self, ParameterType::Optional(_))
    }

    /// Whether a value (of the right type, unknown or marked perhaps) fits width and sign. What is unknown fits.
    ///
    /// # Errors
    /// The first place that does not.
    pub fn check(&self, value: &Value) -> Result<(), TypeMismatch> {
        self.check_at(value, &mut String::new(), value.is_sensitive())
    }

    fn check_at(&self, value: &Value, path: &mut String, secret: bool) -> Result<(), TypeMismatch> {
        let shown = |value: &Value| {
            if secret {
                "the value".to_owned()
            } else {
                value.to_string()
            }
        };
        let mismatch = |path: &str, message: String| Err(TypeMismatch::new(message).inside(path));
        match (self, value.unmarked()) {
            (_, Value::Unknown(_)) | (ParameterType::Any, _) => Ok(()),
            (ParameterType::Optional(_), Value::Null(_)) => Ok(()),
            (ParameterType::Optional(inner), value) => inner.check_at(value, path, secret),
            (ParameterType::Bool, Value::Bool(_))
            | (ParameterType::Str, Value::Str(_))
            | (ParameterType::Func(_), Value::Func(_)) => Ok(()),
            (ParameterType::Int { bits, signed }, Value::Int(n)) => {
                let fits = match (bits, signed) {
                    (64, true) => true,
                    (64.., false) => *n >= 0,
                    (bits, true) => (-(1i64 << (bits - 1))..1i64 << (bits - 1)).contains(n),
                    (bits, false) => (0..1i64 << bits).contains(n),
                };
                if fits {
                    return Ok(());
                }
                let width = format!("{} bits{}", bits, if *signed { "" } else { " without a sign" });
                mismatch(path, format!("{} does not fit {width}", shown(value)))
            }
            (ParameterType::Float { bits: 32 }, Value::Float(x))
                if x.0.is_finite() && x.0.abs() > f64::from(f32::MAX) =>
            {
                mismatch(path, format!("{} does not fit 32 bits", shown(value)))
            }
            (ParameterType::Float { .. }, Value::Float(_)) => Ok(()),
            (ParameterType::Array(_, limit), Value::List(list)) if list.len() > *limit => mismatch(
                path,
                format!("{} elements do not fit, there is room for {limit}", list.len()),
            ),
            (ParameterType::List(element) | ParameterType::Array(element, _), Value::List(list)) => {
                for (i, item) in list.iter().enumerate() {
                    let length = path.len();
                    path.push_str(&format!("[{i}]"));
                    element.check_at(item, path, secret)?;
                    path.truncate(length);
                }
                Ok(())
            }
            (ParameterType::Map(key, element), Value::Map(map)) => {
                for (k, v) in map.iter() {
                    let length = path.len();
                    path.push_str(&if secret {
                        "[…]".to_owned()
                    } else {
                        format!("[{k}]")
                    });
                    key.check_at(k, path, secret)?;
                    element.check_at(v, path, secret)?;
                    path.truncate(length);
                }
                Ok(())
            }
            (ParameterType::Struct(fields), Value::Struct(s)) => {
                for (name, parameter_type) in *fields {
                    let Some(field) = s.get(name) else {
                        return mismatch(path, format!("the field `{name}` is missing"));
                    };
                    let length = path.len();
                    path.push_str(&format!(".{name}"));
                    parameter_type.check_at(field, path, secret)?;
                    path.truncate(length);
                }
                Ok(())
            }
            (parameter_type, value) => {
                mismatch(path, format!("{} is not {}", value.ty(), parameter_type.ty()))
            }
        }
    }
}
