//! `encoding`: base64 and JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use setpoint_value::{
    ArgumentError, CallError, InferArguments, Inferred, Map, Module, Type, Value, function,
};

use crate::text_builder::{LONGEST, TooLong};

pub(crate) static MODULE: Module = Module::new(
    "encoding",
    "Base64 and JSON.",
    &[
        &BASE64_DECODE,
        &BASE64_ENCODE,
        &DECODE_JSON,
        &DECODE_JSON_FLEXIBLE,
    ],
);

/// The bytes that a text of base64 stands for.
///
/// Line breaks are ignored. Other text fails in a way that `<|>` catches.
#[function(
    example(call = r#"encoding.base64_decode("aGk=")"#, result = r#""hi""#),
    example(call = r#"encoding.base64_decode("?") <|> "bad""#, result = r#""bad""#)
)]
fn base64_decode(
    /// Base64 of the standard alphabet, padded.
    data: &[u8],
) -> Result<Vec<u8>, CallError> {
    let data: Vec<u8> = data
        .iter()
        .copied()
        .filter(|b| !matches!(b, b'\r' | b'\n'))
        .collect();
    STANDARD
        .decode(data)
        .map_err(|error| CallError::catchable(format!("could not decode base64: {error}")))
}

/// Bytes as base64 of the standard alphabet, padded.
#[function(example(call = r#"encoding.base64_encode("hi")"#, result = r#""aGk=""#))]
fn base64_encode(
    /// Any bytes.
    data: &[u8],
) -> Result<String, CallError> {
    match base64::encoded_len(data.len(), true) {
        Some(length) if length <= LONGEST => Ok(STANDARD.encode(data)),
        _ => Err(TooLong.into()),
    }
}

/// The value that a text of JSON spells, of the type that is wanted.
///
/// Structs need exactly their fields. Other text fails in a way that `<|>` catches.
#[function(
    raw,
    infer = infer,
    result_type = result_type,
    signature = "func(data str) ?1",
    signature = "func(data str, type str) ?1",
    parameters(
        /// Text of JSON.
        data,
        /// The type of the result, as a literal.
        #[default = "what follows from use"]
        type,
    ),
    example(call = r#"encoding.decode_json("[1, 2]", "[]int")"#, result = "[1, 2]")
)]
fn decode_json(arguments: &[Value], ty: &Type) -> Result<Value, CallError> {
    decode(arguments, ty, Mode::Strict)
}

/// The value that a text of JSON spells, of the type that is wanted; of structs any fields.
///
/// Fields that are absent get the zero of their type, and others than the type's are ignored.
#[function(
    raw,
    infer = infer,
    result_type = result_type,
    signature = "func(data str) ?1",
    signature = "func(data str, type str) ?1",
    parameters(
        /// Text of JSON.
        data,
        /// The type of the result, as a literal.
        #[default = "what follows from use"]
        type,
    ),
    example(call = r#"encoding.decode_json_flexible("{\"b\": 2}", "struct{a int}")"#, result = "struct{a => 0}")
)]
fn decode_json_flexible(arguments: &[Value], ty: &Type) -> Result<Value, CallError> {
    decode(arguments, ty, Mode::Flexible)
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Strict,
    Flexible,
}

fn infer(arguments: &InferArguments<'_>) -> Result<Inferred, ArgumentError> {
    let result = match arguments.values {
        [_] => Type::Variable(1),
        [_, Some(ty)] => wanted(ty)?,
        [_, None] => {
            return Err(ArgumentError::at(1, "the type must be known while compiling"));
        }
        _ => return Err(ArgumentError::whole("a text and perhaps a type are needed")),
    };
    let names = ["data", "type"];
    let parameters = names
        .iter()
        .take(arguments.values.len())
        .map(|name| (*name, Type::Str));
    Ok(Inferred {
        signature: Type::func(parameters, result),
    })
}

/// In the dynamic protocol only the argument can name the type.
fn result_type(arguments: &[Value]) -> Result<Type, ArgumentError> {
    match arguments {
        [_, ty] if !ty.is_unknown() => wanted(ty),
        _ => Ok(Type::Dynamic),
    }
}

fn wanted(ty: &Value) -> Result<Type, ArgumentError> {
    let text = ty.as_str().and_then(|text| text.as_str());
    text.and_then(Type::parse)
        .filter(|ty| !ty.is_open())
        .ok_or_else(|| ArgumentError::at(1, "is not the spelling of a type"))
}

fn decode(arguments: &[Value], ty: &Type, mode: Mode) -> Result<Value, CallError> {
    let text = arguments.first().and_then(Value::as_str);
    let text = text.ok_or_else(|| CallError::fatal("a text is needed"))?;
    let json: serde_json::Value = serde_json::from_str(&text.to_lossy())
        .map_err(|error| CallError::catchable(format!("could not decode JSON: {error}")))?;
    convert(json, ty, mode).map_err(|misfit| {
        let place = if misfit.path.is_empty() {
            String::new()
        } else {
            format!(" at {}", misfit.path)
        };
        CallError::catchable(format!("could not decode JSON{place}: {}", misfit.problem))
    })
}

/// Where a JSON value does not fit, and why.
struct Misfit {
    path: String,
    problem: String,
}

impl Misfit {
    fn new(problem: String) -> Misfit {
        Misfit {
            path: String::new(),
            problem,
        }
    }

    fn within(mut self, step: &str) -> Misfit {
        self.path.insert_str(0, step);
        self
    }
}

fn convert(json: serde_json::Value, ty: &Type, mode: Mode) -> Result<Value, Misfit> {
    use serde_json::Value as Json;
    match (ty, json) {
        (Type::Bool, Json::Bool(value)) => Ok(Value::Bool(value)),
        (Type::Str, Json::String(value)) => Ok(Value::str(value)),
        (Type::Int, Json::Number(number)) => number
            .as_i64()
            .map(Value::Int)
            .ok_or_else(|| Misfit::new(format!("{number} is not an int"))),
        (Type::Float, Json::Number(number)) => number
            .as_f64()
            .map(Value::float)
            .ok_or_else(|| Misfit::new(format!("{number} is not a float"))),
        (Type::List(element), Json::Array(items)) => {
            let items = items.into_iter().enumerate().map(|(index, item)| {
                convert(item, element, mode).map_err(|misfit| misfit.within(&format!("[{index}]")))
            });
            let items: Vec<Value> = items.collect::<Result<_, _>>()?;
            Ok(Value::list((**element).clone(), items))
        }
        (Type::Map(types), Json::Object(fields)) => {
            let entries = fields.into_iter().map(|(name, value)| {
                let step = format!("[{name:?}]");
                let key = convert(Json::String(name), &types.0, mode).map_err(|m| m.within(&step))?;
                let value = convert(value, &types.1, mode).map_err(|m| m.within(&step))?;
                Ok((key, value))
            });
            let entries: Vec<(Value, Value)> = entries.collect::<Result<_, Misfit>>()?;
            Ok(Value::Map(Map::new(types.0.clone(), types.1.clone(), entries)))
        }
        (Type::Struct(fields), Json::Object(mut given)) => {
            if mode == Mode::Strict && given.len() != fields.fields.len() {
                return Err(Misfit::new(format!(
                    "the struct has {} fields, the object has {}",
                    fields.fields.len(),
                    given.len()
                )));
            }
            let values = fields
                .fields
                .iter()
                .map(|field| match given.remove(&*field.name) {
                    Some(value) => {
                        convert(value, &field.ty, mode).map_err(|m| m.within(&format!(".{}", field.name)))
                    }
                    None if mode == Mode::Flexible => Value::zero(&field.ty)
                        .ok_or_else(|| Misfit::new(format!("{} has no zero value", field.ty))),
                    None => Err(Misfit::new(format!("field `{}` is missing", field.name))),
                });
            let values: Vec<Value> = values.collect::<Result<_, _>>()?;
            Ok(Value::structure(ty.clone(), values))
        }
        (ty, json) => {
            let kind = match json {
                Json::Null => "null",
                Json::Bool(_) => "a bool",
                Json::Number(_) => "a number",
                Json::String(_) => "a string",
                Json::Array(_) => "an array",
                Json::Object(_) => "an object",
            };
            Err(Misfit::new(format!("{kind} is not {ty}")))
        }
    }
}
