//! Values as bytes on disk: versioned JSON with the type, exact for everything that can be stored.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map as Object, Value as Json, json};
use setpoint_value::{Map, Set, Type, Value};

/// The version of the form, which the file says in its first line.
pub(crate) const VERSION: u32 = 1;

/// A value that cannot be stored or read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unstorable(String);

impl std::fmt::Display for Unstorable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unstorable {}

/// A value under a name. Marks are not stored.
pub(crate) fn encode(name: &str, value: &Value) -> Result<Vec<u8>, Unstorable> {
    let document = json!({
        "name": name,
        "type": value.ty().to_string(),
        "value": encode_value(value)?,
    });
    Ok(document.to_string().into_bytes())
}

/// Name and value of what [`encode`] wrote.
pub(crate) fn decode(bytes: &[u8]) -> Result<(String, Value), Unstorable> {
    let document: Json =
        serde_json::from_slice(bytes).map_err(|error| Unstorable(format!("no JSON: {error}")))?;
    let name = document["name"].as_str().ok_or_else(|| damaged("name"))?;
    let ty = document["type"]
        .as_str()
        .and_then(Type::parse)
        .ok_or_else(|| damaged("type"))?;
    Ok((name.to_owned(), decode_value(&ty, &document["value"])?))
}

fn damaged(what: &str) -> Unstorable {
    Unstorable(format!("the {what} is damaged"))
}

fn encode_value(value: &Value) -> Result<Json, Unstorable> {
    let items = |items: &mut dyn Iterator<Item = &Value>| {
        items
            .map(encode_value)
            .collect::<Result<Vec<_>, _>>()
            .map(Json::Array)
    };
    Ok(match value {
        Value::Marked(inner) => encode_value(&inner.0)?,
        Value::Bool(value) => json!(value),
        Value::Int(value) => json!(value),
        // As text: exact, and there are numbers that JSON has not.
        Value::Float(value) => json!(format!("{:?}", value.0)),
        Value::Str(text) => match text.as_str() {
            Some(text) => json!(text),
            None => json!({ "base64": STANDARD.encode(text.as_bytes()) }),
        },
        Value::List(list) => open(list.element_type(), &mut list.iter())?,
        Value::Set(set) => open(set.element_type(), &mut set.iter())?,
        Value::Tuple(tuple) => items(&mut tuple.iter())?,
        Value::Struct(fields) => items(&mut fields.fields().iter())?,
        Value::Map(map) => Json::Array(
            map.iter()
                .map(|(key, value)| {
                    let entry = [(map.key_type(), key), (map.value_type(), value)];
                    let entry = entry.map(|(ty, part)| open_one(ty, part));
                    entry.into_iter().collect::<Result<Vec<_>, _>>().map(Json::Array)
                })
                .collect::<Result<_, _>>()?,
        ),
        Value::Null(_) => Json::Null,
        Value::Func(_) | Value::Unknown(_) | Value::Opaque(_) => {
            return Err(Unstorable(format!(
                "a {} cannot be stored",
                value.ty().kind_name()
            )));
        }
    })
}

/// Elements, each with its type where the collection's says nothing.
fn open(element: &Type, items: &mut dyn Iterator<Item = &Value>) -> Result<Json, Unstorable> {
    items
        .map(|item| open_one(element, item))
        .collect::<Result<Vec<_>, _>>()
        .map(Json::Array)
}

fn open_one(declared: &Type, value: &Value) -> Result<Json, Unstorable> {
    let encoded = encode_value(value)?;
    Ok(if is_open(declared) {
        json!({ "type": value.ty().to_string(), "value": encoded })
    } else {
        encoded
    })
}

fn is_open(ty: &Type) -> bool {
    matches!(
        ty,
        Type::Variant | Type::Dynamic | Type::Number | Type::Variable(_)
    )
}

fn decode_value(ty: &Type, json: &Json) -> Result<Value, Unstorable> {
    let wrong = || damaged("value");
    let items = || json.as_array().ok_or_else(wrong);
    Ok(match ty {
        _ if is_open(ty) && json.is_null() => Value::Null(ty.clone()),
        _ if is_open(ty) => {
            let wrapped: &Object<String, Json> = json.as_object().ok_or_else(wrong)?;
            let ty = wrapped.get("type").and_then(Json::as_str).and_then(Type::parse);
            decode_value(
                &ty.filter(|ty| !is_open(ty)).ok_or_else(wrong)?,
                wrapped.get("value").ok_or_else(wrong)?,
            )?
        }
        Type::Optional(_) | Type::Nil if json.is_null() => Value::Null(ty.clone()),
        Type::Optional(inner) => decode_value(inner, json)?,
        Type::Bool => Value::Bool(json.as_bool().ok_or_else(wrong)?),
        Type::Int => Value::Int(json.as_i64().ok_or_else(wrong)?),
        Type::Float => Value::float(
            json.as_str()
                .and_then(|text| text.parse().ok())
                .ok_or_else(wrong)?,
        ),
        Type::Str => match json {
            Json::String(text) => Value::str(text.as_str()),
            other => {
                let bytes = other["base64"].as_str().ok_or_else(wrong)?;
                Value::str(STANDARD.decode(bytes).map_err(|_| wrong())?)
            }
        },
        Type::List(element) => {
            let items = items()?.iter().map(|item| decode_value(element, item));
            Value::list((**element).clone(), items.collect::<Result<Vec<_>, _>>()?)
        }
        Type::Set(element) => {
            let items = items()?.iter().map(|item| decode_value(element, item));
            Value::Set(Set::new(
                (**element).clone(),
                items.collect::<Result<Vec<_>, _>>()?,
            ))
        }
        Type::Map(types) => {
            let entries = items()?
                .iter()
                .map(|entry| match entry.as_array().map(Vec::as_slice) {
                    Some([key, value]) => Ok((decode_value(&types.0, key)?, decode_value(&types.1, value)?)),
                    _ => Err(wrong()),
                });
            Value::Map(Map::new(
                types.0.clone(),
                types.1.clone(),
                entries.collect::<Result<Vec<_>, _>>()?,
            ))
        }
        Type::Tuple(types) => Value::Tuple(fields(types.iter(), items()?)?.into()),
        Type::Struct(fields_of) => {
            let types = fields_of.fields.iter().map(|field| &field.ty);
            Value::structure(ty.clone(), fields(types, items()?)?)
        }
        _ => return Err(wrong()),
    })
}

fn fields<'a>(
    types: impl ExactSizeIterator<Item = &'a Type>,
    items: &[Json],
) -> Result<Vec<Value>, Unstorable> {
    if types.len() != items.len() {
        return Err(damaged("value"));
    }
    types
        .zip(items)
        .map(|(ty, item)| decode_value(ty, item))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_comes_back_identical() {
        let strings = Type::map(Type::Str, Type::Float);
        let structure = Type::structure([("a", Type::Int), ("b", Type::list(Type::Bool))]);
        for value in [
            Value::Bool(true),
            Value::Int(i64::MIN),
            Value::float(0.1),
            Value::float(-0.0),
            Value::float(f64::INFINITY),
            Value::float(1e300),
            Value::str("text\n\0"),
            Value::str(b"\xff\xfe".as_slice()),
            Value::strings(["a", ""]),
            Value::list(Type::list(Type::Int), [Value::list(Type::Int, [])]),
            Value::list(Type::Variant, [Value::Int(1), Value::str("x")]),
            Value::Map(Map::new(
                Type::Str,
                Type::Float,
                [(Value::str("k"), Value::float(1.5))],
            )),
            Value::list(strings, []),
            Value::structure(
                structure,
                vec![Value::Int(7), Value::list(Type::Bool, [Value::Bool(false)])],
            ),
            Value::Null(Type::optional(Type::Str)),
        ] {
            let bytes = encode("name", &value).unwrap();
            assert_eq!(decode(&bytes), Ok(("name".to_owned(), value)));
        }
    }

    #[test]
    fn damaged_bytes_are_refused() {
        let good = String::from_utf8(encode("n", &Value::Int(5)).unwrap()).unwrap();
        for bad in [
            "",
            "{}",
            "[]",
            &good.replace("\"int\"", "\"str\""),
            &good.replace("\"int\"", "\"func() int\""),
        ] {
            assert!(decode(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
