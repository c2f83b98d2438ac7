//! Between values and Rust's own types: what `#[function]` calls to decode arguments and to encode results.

use crate::{ArgumentError, CallError, Func, List, Map, Str, Struct, Type, Value};

/// Why an argument could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undecoded {
    /// A part of it is not known yet; so the result is not either.
    Unknown,
    /// It does not fit.
    Wrong(ArgumentError),
}

/// A Rust type that an argument can be decoded to. Marks on it are looked through: whoever calls collects them.
pub trait FromArgument<'a>: Sized {
    /// Decodes a value.
    ///
    /// # Errors
    /// When it does not fit, or is not known.
    fn from_argument(value: &'a Value) -> Result<Self, Undecoded>;
}

/// A Rust type that a result can be made of.
pub trait IntoAnswer {
    /// The value, of the decided result type.
    ///
    /// # Errors
    /// What the function answered.
    fn into_answer(self, ty: &Type) -> Result<Value, CallError>;
}

/// Decodes the argument at a position.
///
/// # Errors
/// When it is missing, does not fit, or is not known.
pub fn argument<'a, T: FromArgument<'a>>(arguments: &'a [Value], index: usize) -> Result<T, Undecoded> {
    let Some(value) = arguments.get(index) else {
        return Err(Undecoded::Wrong(ArgumentError::at(index, "is missing")));
    };
    T::from_argument(value).map_err(|error| match error {
        Undecoded::Wrong(error) => Undecoded::Wrong(ArgumentError {
            index: Some(index),
            ..error
        }),
        Undecoded::Unknown => Undecoded::Unknown,
    })
}

/// A string argument as a path or name, marks aside.
///
/// # Errors
/// When it is not known, or not valid UTF-8.
pub fn text(arguments: &[Value], index: usize) -> Result<&str, CallError> {
    argument(arguments, index).map_err(|error| match error {
        Undecoded::Wrong(error) => CallError::Refused(error),
        Undecoded::Unknown => CallError::fatal("the argument is not known yet"),
    })
}

/// A value for a message: never what is sensitive, strings without quotes.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Str(text) => text.to_lossy().into_owned(),
        other => other.to_string(),
    }
}

/// Encodes a result.
///
/// # Errors
/// What the function answered.
pub fn answer(result: impl IntoAnswer, ty: &Type) -> Result<Value, CallError> {
    result.into_answer(ty)
}

/// The end of a call: an argument that is partly unknown gives an unknown result.
///
/// # Errors
/// What the function answered, or the argument that did not fit.
pub fn decoded(ty: &Type, outcome: Result<Result<Value, CallError>, Undecoded>) -> Result<Value, CallError> {
    match outcome {
        Ok(result) => result,
        Err(Undecoded::Unknown) => Ok(Value::unknown(ty.clone())),
        // The type has been checked, so that it is the value: text that is not UTF-8.
        Err(Undecoded::Wrong(error)) => Err(CallError::Refused(error)),
    }
}

/// An argument of another type than wanted.
fn wrong(value: &Value, wanted: &str) -> Undecoded {
    match value.unmarked() {
        Value::Unknown(_) => Undecoded::Unknown,
        Value::Null(_) => Undecoded::Wrong(ArgumentError::whole("must not be null")),
        other => Undecoded::Wrong(ArgumentError::whole(format!("{} is not {wanted}", other.ty()))),
    }
}

macro_rules! from_argument {
    ($($ty:ty, $as:ident, $wanted:literal;)*) => {
        $(impl<'a> FromArgument<'a> for $ty {
            fn from_argument(value: &'a Value) -> Result<Self, Undecoded> {
                value.$as().ok_or_else(|| wrong(value, $wanted))
            }
        })*
    };
}

from_argument! {
    bool, as_bool, "bool";
    i64, as_int, "int";
    f64, as_float, "float";
    &'a Str, as_str, "str";
    &'a List, as_list, "a list";
    &'a Map, as_map, "a map";
    &'a Struct, as_struct, "a struct";
    &'a Func, as_func, "a function";
}

impl<'a> FromArgument<'a> for &'a [u8] {
    fn from_argument(value: &'a Value) -> Result<Self, Undecoded> {
        Ok(<&Str>::from_argument(value)?.as_bytes())
    }
}

impl<'a> FromArgument<'a> for &'a str {
    fn from_argument(value: &'a Value) -> Result<Self, Undecoded> {
        <&Str>::from_argument(value)?
            .as_str()
            .ok_or_else(|| Undecoded::Wrong(ArgumentError::whole("is not valid UTF-8")))
    }
}

impl<'a> FromArgument<'a> for &'a Value {
    fn from_argument(value: &'a Value) -> Result<Self, Undecoded> {
        Ok(value)
    }
}

impl<'a, T: FromArgument<'a>> FromArgument<'a> for Vec<T> {
    fn from_argument(value: &'a Value) -> Result<Self, Undecoded> {
        let list = <&List>::from_argument(value)?;
        let decode = |(index, item): (usize, &'a Value)| {
            T::from_argument(item).map_err(|error| match error {
                Undecoded::Wrong(mut error) => {
                    error.path.insert_str(0, &format!("[{index}]"));
                    Undecoded::Wrong(error)
                }
                Undecoded::Unknown => Undecoded::Unknown,
            })
        };
        list.items().iter().enumerate().map(decode).collect()
    }
}

impl<'a, T: FromArgument<'a>> FromArgument<'a> for Option<T> {
    fn from_argument(value: &'a Value) -> Result<Self, Undecoded> {
        if value.is_null() {
            Ok(None)
        } else {
            T::from_argument(value).map(Some)
        }
    }
}

macro_rules! into_answer {
    ($($ty:ty, $value:ident => $result:expr;)*) => {
        $(impl IntoAnswer for $ty {
            fn into_answer(self, _: &Type) -> Result<Value, CallError> {
                let $value = self;
                Ok($result)
            }
        })*
    };
}

into_answer! {
    Value, value => value;
    bool, value => Value::Bool(value);
    i64, value => Value::Int(value);
    f64, value => Value::float(value);
    &str, value => Value::str(value);
    String, value => Value::str(value);
    &[u8], value => Value::str(value);
    Vec<u8>, value => Value::str(value);
    Str, value => Value::Str(value);
    List, value => Value::List(value);
    Map, value => Value::Map(value);
    Struct, value => Value::Struct(value);
}

/// Lists of what is no byte.
macro_rules! list_answer {
    ($($ty:ty)*) => {
        $(impl IntoAnswer for Vec<$ty> {
            fn into_answer(self, ty: &Type) -> Result<Value, CallError> {
                let element = ty.element().cloned().unwrap_or(Type::Dynamic);
                let items = self
                    .into_iter()
                    .map(|item| item.into_answer(&element))
                    .collect::<Result<Vec<_>, _>>()?;
                Ok(Value::list(element, items))
            }
        })*
    };
}

list_answer! { Value bool i64 f64 &str String &[u8] Vec<u8> Str }

impl<T: IntoAnswer> IntoAnswer for Option<T> {
    fn into_answer(self, ty: &Type) -> Result<Value, CallError> {
        let inner = match ty {
            Type::Optional(inner) => inner,
            other => other,
        };
        match self {
            Some(value) => value.into_answer(inner),
            None => Ok(Value::Null(ty.clone())),
        }
    }
}

impl<T: IntoAnswer, E: Into<CallError>> IntoAnswer for Result<T, E> {
    fn into_answer(self, ty: &Type) -> Result<Value, CallError> {
        self.map_err(Into::into)?.into_answer(ty)
    }
}
