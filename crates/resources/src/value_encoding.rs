//! Values under a name as bytes on disk: their JSON with their type, exact for everything that can be stored.

use serde_json::{Value as Json, json};
use setpoint_value::{JsonError, Marks, Value};

/// The version of the form, which the file says in its first line.
pub(crate) const VERSION: u32 = 1;

/// Bytes from which no name and value can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Damaged {
    Json(String),
    Name,
    Value(JsonError),
}

impl std::fmt::Display for Damaged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Damaged::Json(error) => write!(f, "it is not JSON: {error}"),
            Damaged::Name => f.write_str("the name is damaged"),
            Damaged::Value(error) => write!(f, "the value is damaged: {error}"),
        }
    }
}

impl std::error::Error for Damaged {}

/// A value under a name. Marks are not stored.
pub(crate) fn encode(name: &str, value: &Value) -> Result<Vec<u8>, JsonError> {
    let mut document = value.unmark_deep(&mut Marks::none()).to_json()?;
    document["name"] = json!(name);
    Ok(document.to_string().into_bytes())
}

/// Name and value of what [`encode`] wrote.
pub(crate) fn decode(bytes: &[u8]) -> Result<(String, Value), Damaged> {
    let document: Json = serde_json::from_slice(bytes).map_err(|error| Damaged::Json(error.to_string()))?;
    let name = document["name"].as_str().ok_or(Damaged::Name)?;
    let value = Value::from_json(&document).map_err(Damaged::Value)?;
    Ok((name.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use setpoint_value::{Map, Type};

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
            Value::list(Type::Dynamic, [Value::Int(1), Value::str("x")]),
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
            Value::list(
                Type::optional(Type::Int),
                [Value::Int(1), Value::Null(Type::optional(Type::Int))],
            ),
            Value::structure(Type::structure([("a", Type::Dynamic)]), vec![Value::Int(7)]),
        ] {
            let bytes = encode("name", &value).unwrap();
            assert_eq!(decode(&bytes), Ok(("name".to_owned(), value)));
        }
    }

    #[test]
    fn types_that_earlier_versions_stored_by_their_spelling_are_read() {
        let stored =
            br#"{"name":"n","type":"map{str: []dynamic}","value":[["k",[{"type":"int","value":5}]]]}"#;
        let entry = Value::list(Type::Dynamic, [Value::Int(5)]);
        let map = Map::new(Type::Str, Type::list(Type::Dynamic), [(Value::str("k"), entry)]);
        assert_eq!(decode(stored), Ok(("n".to_owned(), Value::Map(map))));
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
