//! Native types: how a kind stores a parameter, and which values fit (rules of mcl, 7.2).

use std::fmt;

use setpoint_value::{Type, Value};

/// The type of a parameter as its kind declares it. A language sees [`Native::ty`]; width and sign are checked when a
/// resource is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Native {
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
    /// A list.
    List(&'static Native),
    /// A list of at most so many elements.
    Array(&'static Native, usize),
    /// A map.
    Map(&'static Native, &'static Native),
    /// A struct with these fields, in this order.
    Struct(&'static [(&'static str, &'static Native)]),
    /// May be left unset, which differs from any value.
    Optional(&'static Native),
    /// Anything.
    Any,
    /// A function of this type.
    Func(&'static str),
}

/// A value that does not fit a native type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// Where inside the value: `.a[0]`; empty for the value itself.
    pub path: String,
    /// What is wrong, without the value when that is sensitive.
    pub message: String,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "at `{}`: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

impl Native {
    /// The type that languages see. Anything is `variant`.
    #[must_use]
    pub fn ty(&self) -> Type {
        match self {
            Native::Bool => Type::Bool,
            Native::Str => Type::Str,
            Native::Int { .. } => Type::Int,
            Native::Float { .. } => Type::Float,
            Native::List(element) | Native::Array(element, _) => Type::list(element.ty()),
            Native::Map(key, value) => Type::map(key.ty(), value.ty()),
            Native::Struct(fields) => {
                Type::structure(fields.iter().map(|(name, native)| (*name, native.ty())))
            }
            Native::Optional(inner) => inner.ty(),
            Native::Any => Type::Variant,
            Native::Func(signature) => Type::parse(signature).unwrap_or(Type::Variant),
        }
    }

    /// The type with its widths, for messages: `[]int of 8 bits`, `str, optional`.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Native::Int { bits, signed: true } => format!("int of {bits} bits"),
            Native::Int { bits, signed: false } => format!("int of {bits} bits without a sign"),
            Native::Float { bits } => format!("float of {bits} bits"),
            Native::List(element) => format!("[]{}", element.describe()),
            Native::Array(element, room) => format!("[]{}, at most {room}", element.describe()),
            Native::Optional(inner) => format!("{}, optional", inner.describe()),
            Native::Bool
            | Native::Str
            | Native::Map(..)
            | Native::Struct(_)
            | Native::Any
            | Native::Func(_) => self.ty().to_string(),
        }
    }

    /// Whether the parameter may be unset as something different from its zero value.
    #[must_use]
    pub fn is_optional(&self) -> bool {
        matches!(self, Native::Optional(_))
    }

    /// Whether a value (of the right type, unknown or marked perhaps) fits width and sign. What is unknown fits.
    ///
    /// # Errors
    /// The first place that does not.
    pub fn check(&self, value: &Value) -> Result<(), Misfit> {
        self.check_at(value, &mut String::new(), value.is_sensitive())
    }

    fn check_at(&self, value: &Value, path: &mut String, secret: bool) -> Result<(), Misfit> {
        let shown = |value: &Value| {
            if secret {
                "the value".to_owned()
            } else {
                value.to_string()
            }
        };
        let misfit = |path: &str, message: String| {
            Err(Misfit {
                path: path.to_owned(),
                message,
            })
        };
        match (self, value.unmarked()) {
            (_, Value::Unknown(_)) | (Native::Any, _) => Ok(()),
            (Native::Optional(_), Value::Null(_)) => Ok(()),
            (Native::Optional(inner), value) => inner.check_at(value, path, secret),
            (Native::Bool, Value::Bool(_))
            | (Native::Str, Value::Str(_))
            | (Native::Func(_), Value::Func(_)) => Ok(()),
            (Native::Int { bits, signed }, Value::Int(n)) => {
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
                misfit(path, format!("{} does not fit {width}", shown(value)))
            }
            (Native::Float { bits: 32 }, Value::Float(x))
                if x.0.is_finite() && x.0.abs() > f64::from(f32::MAX) =>
            {
                misfit(path, format!("{} does not fit 32 bits", shown(value)))
            }
            (Native::Float { .. }, Value::Float(_)) => Ok(()),
            (Native::Array(_, limit), Value::List(list)) if list.len() > *limit => misfit(
                path,
                format!("{} elements do not fit, there is room for {limit}", list.len()),
            ),
            (Native::List(element) | Native::Array(element, _), Value::List(list)) => {
                for (i, item) in list.iter().enumerate() {
                    let length = path.len();
                    path.push_str(&format!("[{i}]"));
                    element.check_at(item, path, secret)?;
                    path.truncate(length);
                }
                Ok(())
            }
            (Native::Map(key, element), Value::Map(map)) => {
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
            (Native::Struct(fields), Value::Struct(s)) => {
                for (name, native) in *fields {
                    let Some(field) = s.get(name) else {
                        return misfit(path, format!("the field `{name}` is missing"));
                    };
                    let length = path.len();
                    path.push_str(&format!(".{name}"));
                    native.check_at(field, path, secret)?;
                    path.truncate(length);
                }
                Ok(())
            }
            (native, value) => misfit(path, format!("{} is not {}", value.ty(), native.ty())),
        }
    }
}
