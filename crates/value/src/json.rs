//! Types and values as JSON, from which exactly the same comes back. For whoever stores values or sends them to another process.
//!
//! - A type is its name (`"int"`), or an array of what it is and of what it is made of: `["map", "str", ["list", "int"]]`.
//! - A value is what JSON has where that is exact. Collections and structs are arrays, entries of maps arrays of two; floats
//!   are texts (there are some that JSON has not), as are bytes that are not UTF-8, in Base64, in an object.
//! - Where the type around it does not say of which type a value is, it is an object with its `type` and `value`.
//!
//! Marked values are refused, because only who writes them knows what must become of the marks
//! ([`Value::unmark_deep_with_paths`]); so are unknowns, functions, and what is the application's own.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};

use crate::conformance::plain;
use crate::{Map, Path, PathStep, Set, Struct, Type, Value, value_conforms};

/// Why a value has no JSON, or a JSON no value. It shows types and places, never values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    /// Where in the value.
    pub path: Path,
    /// What is wrong there.
    pub problem: JsonProblem,
}

/// What is wrong at one place of a value that is written as JSON, or read from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonProblem {
    /// It is marked.
    Marked,
    /// It is not known yet.
    Unknown,
    /// Values of this type exist only in the running process.
    NoForm(Type),
    /// What was written or read is not a value of this type.
    NotA(Type),
    /// The JSON of a type is not one.
    NotAType,
}

impl JsonError {
    fn within(mut self, step: PathStep) -> JsonError {
        self.path.enter(step);
        self
    }
}

impl From<JsonProblem> for JsonError {
    fn from(problem: JsonProblem) -> JsonError {
        JsonError {
            path: Path::default(),
            problem,
        }
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        match &self.problem {
            JsonProblem::Marked => f.write_str("the value is marked; say first what becomes of the marks"),
            JsonProblem::Unknown => f.write_str("the value is not known yet"),
            JsonProblem::NoForm(ty) => write!(f, "a {} has no JSON", ty.kind_name()),
            JsonProblem::NotA(ty) => write!(f, "the value is not of type {ty}"),
            JsonProblem::NotAType => f.write_str("the type cannot be read"),
        }
    }
}

impl std::error::Error for JsonError {}

impl Type {
    /// The type as JSON. [`Type::from_json`] reads it.
    ///
    /// ```
    /// use setpoint_value::Type;
    /// let ty = Type::parse("map{str: []int}").unwrap();
    /// assert_eq!(ty.to_json().to_string(), r#"["map","str",["list","int"]]"#);
    /// ```
    #[must_use]
    pub fn to_json(&self) -> Json {
        let with = |parts: &mut dyn Iterator<Item = Json>| {
            Json::Array(std::iter::once(json!(self.kind_name())).chain(parts).collect())
        };
        match self {
            Type::Bool | Type::Str | Type::Int | Type::Float | Type::Dynamic | Type::Number => {
                json!(self.kind_name())
            }
            Type::Variable(number) => json!(["variable", number]),
            Type::Opaque(name) => json!(["opaque", &**name]),
            Type::List(inner) | Type::Set(inner) | Type::Optional(inner) => {
                with(&mut std::iter::once(inner.to_json()))
            }
            Type::Map(types) => with(&mut [types.0.to_json(), types.1.to_json()].into_iter()),
            Type::Tuple(types) => with(&mut types.iter().map(Type::to_json)),
            Type::Struct(structure) => {
                let fields = structure.fields.iter();
                with(&mut fields.map(|field| json!([&*field.name, field.ty.to_json()])))
            }
            Type::Func(func) => {
                let parameters = func.parameters.iter();
                let parameters =
                    parameters.map(|parameter| json!([&*parameter.name, parameter.ty.to_json()]));
                with(&mut [parameters.collect(), func.result.to_json()].into_iter())
            }
        }
    }

    /// The type that [`Type::to_json`] wrote. A text that is not a name is read as the spelling of a type ([`Type::parse`]).
    ///
    /// # Errors
    /// When it is not the JSON of a type.
    pub fn from_json(json: &Json) -> Result<Type, JsonError> {
        read_type(json).ok_or_else(|| JsonProblem::NotAType.into())
    }
}

fn read_type(json: &Json) -> Option<Type> {
    let parts = match json {
        Json::String(text) => return Type::parse(text),
        other => other.as_array()?,
    };
    let (what, parts) = parts.split_first()?;
    Some(match (what.as_str()?, parts) {
        ("variable", [number]) => Type::Variable(number.as_u64()?.try_into().ok()?),
        ("opaque", [name]) => Type::Opaque(name.as_str()?.into()),
        ("list", [inner]) => Type::list(read_type(inner)?),
        ("set", [inner]) => Type::set(read_type(inner)?),
        ("optional", [inner]) => Type::optional(read_type(inner)?),
        ("map", [key, value]) => Type::map(read_type(key)?, read_type(value)?),
        ("tuple", types) => Type::tuple(types.iter().map(read_type).collect::<Option<Vec<_>>>()?),
        ("struct", fields) => Type::structure(named_types(fields)?),
        ("func", [parameters, result]) => {
            Type::func(named_types(parameters.as_array()?)?, read_type(result)?)
        }
        _ => return None,
    })
}

/// Pairs of a name and a type. The names are distinct.
fn named_types(pairs: &[Json]) -> Option<Vec<(Arc<str>, Type)>> {
    let mut names = HashSet::new();
    pairs
        .iter()
        .map(|pair| match pair.as_array()?.as_slice() {
            [name, ty] => {
                let name = name.as_str().filter(|name| names.insert(*name))?;
                Some((name.into(), read_type(ty)?))
            }
            _ => None,
        })
        .collect()
}

impl Value {
    /// The value with its type, as an object with `type` and `value`. [`Value::from_json`] reads it.
    ///
    /// # Errors
    /// When a part is marked or not known, or a function or the application's own.
    ///
    /// ```
    /// use setpoint_value::Value;
    /// let json = Value::strings(["a", "b"]).to_json().unwrap();
    /// assert_eq!(json.to_string(), r#"{"type":["list","str"],"value":["a","b"]}"#);
    /// assert_eq!(Value::from_json(&json), Ok(Value::strings(["a", "b"])));
    /// assert!(Value::str("secret").sensitive().to_json().is_err());
    /// ```
    pub fn to_json(&self) -> Result<Json, JsonError> {
        tagged(self)
    }

    /// The value that [`Value::to_json`] wrote.
    ///
    /// # Errors
    /// When it is not the JSON of a value with its type.
    pub fn from_json(json: &Json) -> Result<Value, JsonError> {
        read_tagged(json).unwrap_or_else(|| Err(JsonProblem::NotAType.into()))
    }

    /// The value without its type, for a reader who knows that it is a `ty`. [`Value::from_json_as`] reads it.
    ///
    /// # Errors
    /// As [`Value::to_json`]; also when the value is not a `ty`.
    pub fn to_json_as(&self, ty: &Type) -> Result<Json, JsonError> {
        match self {
            Value::Marked(_) => return Err(JsonProblem::Marked.into()),
            Value::Unknown(_) => return Err(JsonProblem::Unknown.into()),
            Value::Func(_) | Value::Opaque(_) => return Err(JsonProblem::NoForm(self.ty()).into()),
            Value::Null(null) if null == ty => return Ok(Json::Null),
            _ => {}
        }
        let own = self.ty();
        if own == *ty || (!self.is_null() && own == *plain(ty)) {
            return untagged(self, plain(ty));
        }
        if value_conforms(self, ty).is_err() {
            return Err(JsonProblem::NotA(ty.clone()).into());
        }
        tagged(self)
    }

    /// The value of type `ty` that [`Value::to_json_as`] wrote for the same type.
    ///
    /// # Errors
    /// When it is not the JSON of a `ty`.
    pub fn from_json_as(ty: &Type, json: &Json) -> Result<Value, JsonError> {
        let wrong = || JsonError::from(JsonProblem::NotA(ty.clone()));
        if json.is_null() {
            return Ok(Value::Null(ty.clone()));
        }
        if let Some(value) = read_tagged(json) {
            return value.and_then(|value| match value_conforms(&value, ty) {
                Ok(()) => Ok(value),
                Err(_) => Err(wrong()),
            });
        }
        let items = || json.as_array().map(Vec::as_slice).ok_or_else(wrong);
        Ok(match plain(ty) {
            Type::Bool => Value::Bool(json.as_bool().ok_or_else(wrong)?),
            Type::Int => Value::Int(json.as_i64().ok_or_else(wrong)?),
            Type::Float => Value::float(read_float(json).ok_or_else(wrong)?),
            Type::Str => match json {
                Json::String(text) => Value::str(text.as_str()),
                other => {
                    let bytes = other.get("base64").and_then(Json::as_str).ok_or_else(wrong)?;
                    Value::str(STANDARD.decode(bytes).map_err(|_| wrong())?)
                }
            },
            Type::List(element) => Value::list((**element).clone(), read_all(element, items()?)?),
            Type::Set(element) => Value::Set(Set::new((**element).clone(), read_all(element, items()?)?)),
            Type::Map(types) => {
                let entries = items()?.iter().enumerate().map(|(index, entry)| {
                    let [key, value] = entry.as_array().map(Vec::as_slice).unwrap_or_default() else {
                        return Err(wrong().within(PathStep::Index(index)));
                    };
                    let key = Value::from_json_as(&types.0, key)?;
                    match Value::from_json_as(&types.1, value) {
                        Ok(value) => Ok((key, value)),
                        Err(error) => Err(error.within(PathStep::Key(key))),
                    }
                });
                let entries = entries.collect::<Result<Vec<_>, _>>()?;
                Value::Map(Map::new(types.0.clone(), types.1.clone(), entries))
            }
            Type::Tuple(types) => {
                let items = Some(items()?).filter(|items| items.len() == types.len());
                let items = items.ok_or_else(wrong)?.iter().zip(types.iter()).enumerate();
                let items = items.map(|(index, (item, ty))| read_at(ty, item, || PathStep::Index(index)));
                Value::Tuple(items.collect::<Result<_, _>>()?)
            }
            Type::Struct(structure) => {
                let items = Some(items()?).filter(|items| items.len() == structure.fields.len());
                let fields = items.ok_or_else(wrong)?.iter().zip(&structure.fields);
                let fields = fields
                    .map(|(item, field)| read_at(&field.ty, item, || PathStep::Field(field.name.clone())));
                let fields = fields.collect::<Result<Vec<_>, _>>()?;
                Value::Struct(Struct::new(plain(ty).clone(), fields))
            }
            _ => return Err(wrong()),
        })
    }
}

fn tagged(value: &Value) -> Result<Json, JsonError> {
    let ty = value.ty();
    Ok(json!({ "type": ty.to_json(), "value": value.to_json_as(&ty)? }))
}

/// The value of an object with type and value; none if it is another JSON.
fn read_tagged(json: &Json) -> Option<Result<Value, JsonError>> {
    let (ty, value) = (json.get("type")?, json.get("value")?);
    Some(Type::from_json(ty).and_then(|ty| Value::from_json_as(&ty, value)))
}

fn read_at(ty: &Type, json: &Json, step: impl FnOnce() -> PathStep) -> Result<Value, JsonError> {
    Value::from_json_as(ty, json).map_err(|error| error.within(step()))
}

fn read_all(element: &Type, items: &[Json]) -> Result<Vec<Value>, JsonError> {
    let items = items.iter().enumerate();
    items
        .map(|(index, item)| read_at(element, item, || PathStep::Index(index)))
        .collect()
}

/// A value that is neither null nor refused, of exactly this type.
fn untagged(value: &Value, ty: &Type) -> Result<Json, JsonError> {
    let at = |part: &Value, ty: &Type, step: &dyn Fn() -> PathStep| {
        part.to_json_as(ty).map_err(|error| error.within(step()))
    };
    let all = |element: &Type, items: &mut dyn Iterator<Item = &Value>| {
        let items = items.enumerate();
        items
            .map(|(index, item)| at(item, element, &|| PathStep::Index(index)))
            .collect()
    };
    match (value, ty) {
        (Value::Bool(value), _) => Ok(json!(value)),
        (Value::Int(value), _) => Ok(json!(value)),
        (Value::Float(value), _) => Ok(write_float(value.0)),
        (Value::Str(text), _) => Ok(match text.as_str() {
            Some(text) => json!(text),
            None => json!({ "base64": STANDARD.encode(text.as_bytes()) }),
        }),
        (Value::List(list), _) => all(list.element_type(), &mut list.iter()),
        (Value::Set(set), _) => all(set.element_type(), &mut set.iter()),
        (Value::Map(map), _) => {
            let entries = map.iter().map(|(key, value)| {
                let step = || PathStep::Key(key.clone());
                let key_json = at(key, map.key_type(), &step)?;
                Ok(json!([key_json, at(value, map.value_type(), &step)?]))
            });
            entries.collect()
        }
        (Value::Tuple(items), Type::Tuple(types)) => {
            let items = items.iter().zip(types.iter()).enumerate();
            items
                .map(|(index, (item, ty))| at(item, ty, &|| PathStep::Index(index)))
                .collect()
        }
        (Value::Struct(structure), Type::Struct(types)) => {
            let fields = structure.fields().iter().zip(&types.fields);
            fields
                .map(|(value, field)| at(value, &field.ty, &|| PathStep::Field(field.name.clone())))
                .collect()
        }
        _ => Err(JsonProblem::NotA(ty.clone()).into()),
    }
}

/// A float as text: the shortest that reads back exactly. What is not a number has bits beside its name.
fn write_float(value: f64) -> Json {
    if value.is_nan() && value.to_bits() != f64::NAN.to_bits() {
        return json!({ "nan": value.to_bits() });
    }
    json!(format!("{value:?}"))
}

fn read_float(json: &Json) -> Option<f64> {
    match json {
        Json::String(text) => text.parse().ok(),
        other => {
            let value = f64::from_bits(other.get("nan")?.as_u64()?);
            value.is_nan().then_some(value)
        }
    }
}
