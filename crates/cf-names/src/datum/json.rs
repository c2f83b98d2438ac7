//! Data as JSON, and back.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::Datum;

/// A datum from outside: what JSON can hold.
#[must_use]
pub fn from_json(value: &Json) -> Datum {
    match value {
        Json::Null => Datum::Null,
        Json::Bool(value) => Datum::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(number) => Datum::Int(number),
            None => Datum::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Datum::Text(text.as_str().into()),
        Json::Array(items) => Datum::List(items.iter().map(from_json).collect()),
        Json::Object(entries) => {
            let entries = entries.iter();
            let dict = entries
                .map(|(key, value)| (Arc::from(key.as_str()), from_json(value)))
                .collect();
            Datum::Dict(Arc::new(dict))
        }
    }
}

/// The opposite: JSON of a datum that JSON can hold. None for others, and for what is marked, which may be secret.
#[must_use]
pub fn to_json(datum: &Datum) -> Option<Json> {
    Some(match datum {
        Datum::Null => Json::Null,
        Datum::Bool(value) => json!(value),
        Datum::Int(number) => json!(number),
        Datum::Float(number) if number.is_finite() => json!(number),
        Datum::Text(text) => json!(&**text),
        Datum::List(items) => items.iter().map(to_json).collect::<Option<_>>()?,
        Datum::Dict(dict) => {
            let entries = dict.iter();
            let entries = entries.map(|(key, value)| Some((key.to_string(), to_json(value)?)));
            Json::Object(entries.collect::<Option<_>>()?)
        }
        Datum::Float(_) | Datum::Instance(_) | Datum::Unknown(_) | Datum::Deferred(_) | Datum::Marked(_) => {
            return None;
        }
    })
}
