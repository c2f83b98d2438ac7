//! Rust types that a parameter can have: their type, and how a value becomes one.

mod written;

use std::collections::BTreeMap;
use std::fmt;

use setpoint_graph::{Invalid, ParameterType, Parameters, TypeMismatch};
use setpoint_value::{Map, Str, Value};

pub use written::{IfSet, Words};

/// A type that a kind can declare a parameter or send key with.
pub trait Parameter: Sized {
    /// How a language sees it.
    const TYPE: ParameterType;

    /// What its text has to be, for the documentation: `an absolute path`. None where the type says it all.
    const FORM: Option<fn() -> String> = None;

    /// Makes one of a value. Marks are taken off; the engine remembers which parameters had some.
    ///
    /// # Errors
    /// Where it does not fit.
    fn decode(value: &Value) -> Result<Self, TypeMismatch>;

    /// The value of one.
    fn encode(&self) -> Value;
}

/// A struct of parameters; `#[derive(ParameterStruct)]` implements it, and [`Parameter`] with it.
pub trait ParameterStruct {
    /// Its fields, in order.
    const FIELDS: &'static [(&'static str, &'static ParameterType)];
}

/// What a kind publishes: a struct whose fields are its send keys. `#[derive(Sends)]` implements it.
pub trait Sends {
    /// Keys and types, in order.
    const KEYS: &'static [setpoint_graph::SendKey];

    /// Values by key; none for a key that is withheld.
    fn into_keys(self) -> Vec<(&'static str, Option<Value>)>;
}

/// A kind that sends nothing.
impl Sends for () {
    const KEYS: &'static [setpoint_graph::SendKey] = &[];

    fn into_keys(self) -> Vec<(&'static str, Option<Value>)> {
        Vec::new()
    }
}

/// A type that a send key can have.
pub trait Sendable {
    /// How a language sees it.
    const SENT: ParameterType;

    /// The value; none when it is withheld.
    fn into_sent(self) -> Option<Value>;
}

impl<T: Parameter> Sendable for T {
    const SENT: ParameterType = T::TYPE;

    fn into_sent(self) -> Option<Value> {
        Some(self.encode())
    }
}

/// A send key that may be withheld: receivers then keep what they hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Withholding<T> {
    /// Sent with this value.
    Given(T),
    /// Not sent this time.
    Withheld,
}

impl<T: Parameter> Sendable for Withholding<T> {
    const SENT: ParameterType = T::TYPE;

    fn into_sent(self) -> Option<Value> {
        match self {
            Withholding::Given(value) => Some(value.encode()),
            Withholding::Withheld => None,
        }
    }
}

/// A value that does not fit: what it is, and what it should be.
#[must_use]
pub fn mismatch(value: &Value, wanted: &ParameterType) -> TypeMismatch {
    TypeMismatch::new(match value.unmarked() {
        Value::Unknown(_) => "the value is not known yet".to_owned(),
        Value::Null(_) => "must not be null".to_owned(),
        other => format!("{} is not {}", other.ty(), wanted.ty()),
    })
}

impl Parameter for bool {
    const TYPE: ParameterType = ParameterType::Bool;

    fn decode(value: &Value) -> Result<bool, TypeMismatch> {
        value.as_bool().ok_or_else(|| mismatch(value, &Self::TYPE))
    }

    fn encode(&self) -> Value {
        Value::Bool(*self)
    }
}

/// Text only: bytes that are not UTF-8 are refused.
impl Parameter for String {
    const TYPE: ParameterType = ParameterType::Str;

    fn decode(value: &Value) -> Result<String, TypeMismatch> {
        let text = value.as_str().ok_or_else(|| mismatch(value, &Self::TYPE))?;
        let text = text.as_str().map(str::to_owned);
        text.ok_or_else(|| TypeMismatch::new("must be valid UTF-8"))
    }

    fn encode(&self) -> Value {
        Value::str(self.as_str())
    }
}

/// Bytes, normally text. Shared with the value that they came from. Does not show what it holds.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(Str);

impl Text {
    /// Of these bytes.
    #[must_use]
    pub fn new(bytes: impl Into<Str>) -> Text {
        Text(bytes.into())
    }

    /// The bytes, which need not be UTF-8.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The text, when it is UTF-8.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        self.0.as_str()
    }

    /// How many bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Default for Text {
    fn default() -> Text {
        // One for all: most parameters of most resources are not set.
        static EMPTY: std::sync::LazyLock<Str> = std::sync::LazyLock::new(|| Str::from(""));
        Text(EMPTY.clone())
    }
}

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text(Str::from(text))
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Text({} bytes)", self.0.len())
    }
}

impl Parameter for Text {
    const TYPE: ParameterType = ParameterType::Str;

    fn decode(value: &Value) -> Result<Text, TypeMismatch> {
        value
            .as_str()
            .cloned()
            .map(Text)
            .ok_or_else(|| mismatch(value, &Self::TYPE))
    }

    fn encode(&self) -> Value {
        Value::Str(self.0.clone())
    }
}

macro_rules! integers {
    ($($ty:ty, $bits:literal, $signed:literal;)*) => {
        $(impl Parameter for $ty {
            const TYPE: ParameterType = ParameterType::Int { bits: $bits, signed: $signed };

            fn decode(value: &Value) -> Result<$ty, TypeMismatch> {
                let number = value.as_int().ok_or_else(|| mismatch(value, &Self::TYPE))?;
                <$ty>::try_from(number).map_err(|_| match Self::TYPE.check(value) {
                    Err(mismatch) => mismatch,
                    Ok(()) => mismatch(value, &Self::TYPE),
                })
            }

            #[allow(clippy::cast_possible_wrap, reason = "a `u64` came from an `i64`")]
            fn encode(&self) -> Value {
                Value::Int(*self as i64)
            }
        })*
    };
}

integers! {
    i8, 8, true;
    i16, 16, true;
    i32, 32, true;
    i64, 64, true;
    u8, 8, false;
    u16, 16, false;
    u32, 32, false;
    u64, 64, false;
}

impl Parameter for f64 {
    const TYPE: ParameterType = ParameterType::Float { bits: 64 };

    fn decode(value: &Value) -> Result<f64, TypeMismatch> {
        value.as_float().ok_or_else(|| mismatch(value, &Self::TYPE))
    }

    fn encode(&self) -> Value {
        Value::float(*self)
    }
}

impl Parameter for f32 {
    const TYPE: ParameterType = ParameterType::Float { bits: 32 };

    fn decode(value: &Value) -> Result<f32, TypeMismatch> {
        Self::TYPE.check(value)?;
        #[allow(
            clippy::cast_possible_truncation,
            reason = "the check says that it fits; rounding is meant"
        )]
        value
            .as_float()
            .map(|number| number as f32)
            .ok_or_else(|| mismatch(value, &Self::TYPE))
    }

    fn encode(&self) -> Value {
        Value::float(f64::from(*self))
    }
}

impl<T: Parameter> Parameter for Option<T> {
    const TYPE: ParameterType = ParameterType::Optional(&T::TYPE);
    const FORM: Option<fn() -> String> = T::FORM;

    fn decode(value: &Value) -> Result<Option<T>, TypeMismatch> {
        if value.is_null() {
            Ok(None)
        } else {
            T::decode(value).map(Some)
        }
    }

    fn encode(&self) -> Value {
        match self {
            Some(value) => value.encode(),
            None => Value::Null(setpoint_value::Type::optional(T::TYPE.ty())),
        }
    }
}

impl<T: Parameter> Parameter for Vec<T> {
    const TYPE: ParameterType = ParameterType::List(&T::TYPE);
    const FORM: Option<fn() -> String> = match T::FORM {
        Some(_) => Some(|| format!("each {}", T::FORM.map_or_else(String::new, |form| form()))),
        None => None,
    };

    fn decode(value: &Value) -> Result<Vec<T>, TypeMismatch> {
        let list = value.as_list().ok_or_else(|| mismatch(value, &Self::TYPE))?;
        list.iter()
            .enumerate()
            .map(|(index, item)| T::decode(item).map_err(|mismatch| mismatch.inside(&format!("[{index}]"))))
            .collect()
    }

    fn encode(&self) -> Value {
        Value::list(T::TYPE.ty(), self.iter().map(T::encode))
    }
}

impl<K: Parameter + Ord, V: Parameter> Parameter for BTreeMap<K, V> {
    const TYPE: ParameterType = ParameterType::Map(&K::TYPE, &V::TYPE);
    const FORM: Option<fn() -> String> = match K::FORM {
        Some(_) => Some(|| format!("each key {}", K::FORM.map_or_else(String::new, |form| form()))),
        None => None,
    };

    fn decode(value: &Value) -> Result<BTreeMap<K, V>, TypeMismatch> {
        let map = value.as_map().ok_or_else(|| mismatch(value, &Self::TYPE))?;
        let step = |key: &Value| {
            if value.is_sensitive() {
                "[…]".to_owned()
            } else {
                format!("[{key}]")
            }
        };
        map.iter()
            .map(|(key, item)| {
                let decode = || Ok((K::decode(key)?, V::decode(item)?));
                decode().map_err(|mismatch: TypeMismatch| mismatch.inside(&step(key)))
            })
            .collect()
    }

    fn encode(&self) -> Value {
        Value::Map(Map::new(
            K::TYPE.ty(),
            V::TYPE.ty(),
            self.iter().map(|(key, value)| (key.encode(), value.encode())),
        ))
    }
}

/// Anything, as it is, marks included. Only useful inside an `Option`.
impl Parameter for Value {
    const TYPE: ParameterType = ParameterType::Any;

    fn decode(value: &Value) -> Result<Value, TypeMismatch> {
        Ok(value.clone())
    }

    fn encode(&self) -> Value {
        self.clone()
    }
}

/// A parameter of a new resource; its default when it is not set or does not fit. What the derive calls.
#[must_use]
pub fn decoded<T: Parameter>(
    parameters: &Parameters,
    name: &'static str,
    default: impl FnOnce() -> T,
    invalid: &mut Vec<Invalid>,
) -> T {
    match decode_known(name, parameters.get(name)) {
        Ok(Some(value)) => value,
        Ok(None) => default(),
        Err(error) => {
            invalid.push(error);
            default()
        }
    }
}

/// A parameter that is set or unset later. What the derive calls.
///
/// # Errors
/// When the value does not fit.
pub fn given<T: Parameter>(
    name: &'static str,
    value: Option<&Value>,
    default: impl FnOnce() -> T,
) -> Result<T, Invalid> {
    Ok(decode_known(name, value)?.unwrap_or_else(default))
}

fn decode_known<T: Parameter>(name: &'static str, value: Option<&Value>) -> Result<Option<T>, Invalid> {
    let Some(value) = value else {
        return Ok(None);
    };
    T::TYPE
        .check(value)
        .and_then(|()| T::decode(value))
        .map(Some)
        .map_err(|mismatch| Invalid::parameter(name, mismatch.to_string()).help_if(mismatch.help))
}

/// Nothing is called `name`. What the derive answers.
#[must_use]
pub fn no_such(name: &str) -> Invalid {
    Invalid::new(format!("there is no parameter `{name}`"))
}

/// A field of a struct. What the derive calls.
///
/// # Errors
/// When it is missing or does not fit.
pub fn struct_field<T: Parameter>(value: &Value, name: &'static str) -> Result<T, TypeMismatch> {
    let fields = value
        .as_struct()
        .ok_or_else(|| TypeMismatch::new(format!("{} is not a struct", value.ty())))?;
    let field = fields
        .get(name)
        .ok_or_else(|| TypeMismatch::new(format!("the field `{name}` is missing")))?;
    T::decode(field).map_err(|mismatch| mismatch.inside(&format!(".{name}")))
}
