//! The values of the naive interpreter: plain trees, printed and compared as the language says it.

use std::cmp::Ordering;
use std::rc::Rc;

use setpoint_mcl::syntax::Function;
use setpoint_value::Value;

use super::scopes::Scope;

/// A value.
#[derive(Clone)]
pub(crate) enum Datum {
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(String),
    List(Vec<Datum>),
    /// Sorted by keys, which are distinct.
    Map(Vec<(Datum, Datum)>),
    Struct(Vec<(String, Datum)>),
    Func(Rc<Closure>),
}

/// A lambda with the scope in which it is written.
pub(crate) struct Closure {
    pub(crate) function: Function,
    pub(crate) scope: Rc<Scope>,
}

impl Datum {
    /// A map of these entries; of equal keys the later holds.
    pub(crate) fn map(entries: impl IntoIterator<Item = (Datum, Datum)>) -> Datum {
        let mut map: Vec<(Datum, Datum)> = Vec::new();
        for (key, value) in entries {
            match map.iter_mut().find(|(other, _)| other.equals(&key)) {
                Some(entry) => entry.1 = value,
                None => map.push((key, value)),
            }
        }
        map.sort_by(|(a, _), (b, _)| a.order(b));
        Datum::Map(map)
    }

    /// What `==` means.
    pub(crate) fn equals(&self, other: &Datum) -> bool {
        match (self, other) {
            (Datum::Bool(a), Datum::Bool(b)) => a == b,
            (Datum::Int(a), Datum::Int(b)) => a == b,
            (Datum::Float(a), Datum::Float(b)) => a == b,
            (Datum::Str(a), Datum::Str(b)) => a == b,
            (Datum::List(a), Datum::List(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.equals(b))
            }
            (Datum::Map(a), Datum::Map(b)) => {
                let has =
                    |key: &Datum, value: &Datum| b.iter().any(|(k, v)| k.equals(key) && v.equals(value));
                a.len() == b.len() && a.iter().all(|(key, value)| has(key, value))
            }
            (Datum::Struct(a), Datum::Struct(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.0 == b.0 && a.1.equals(&b.1))
            }
            _ => false,
        }
    }

    /// The order in which the keys of a map are printed.
    pub(crate) fn order(&self, other: &Datum) -> Ordering {
        match (self, other) {
            (Datum::Bool(a), Datum::Bool(b)) => a.cmp(b),
            (Datum::Int(a), Datum::Int(b)) => a.cmp(b),
            (Datum::Float(a), Datum::Float(b)) => a.total_cmp(b),
            (Datum::Str(a), Datum::Str(b)) => a.as_bytes().cmp(b.as_bytes()),
            (a, b) => a.text().cmp(&b.text()),
        }
    }

    /// What `%v` prints inside of a container.
    pub(crate) fn text(&self) -> String {
        let joined = |parts: Vec<String>, separator: &str| parts.join(separator);
        match self {
            Datum::Bool(value) => value.to_string(),
            Datum::Int(value) => value.to_string(),
            Datum::Float(value) if value.is_infinite() => {
                if *value > 0.0 { "+Inf" } else { "-Inf" }.to_owned()
            }
            Datum::Float(value) => value.to_string(),
            Datum::Str(text) => quoted(text),
            Datum::List(items) => format!("[{}]", joined(items.iter().map(Datum::text).collect(), ", ")),
            Datum::Map(entries) => {
                let entries = entries.iter().map(|(k, v)| format!("{}: {}", k.text(), v.text()));
                format!("{{{}}}", joined(entries.collect(), ", "))
            }
            Datum::Struct(fields) => {
                let fields = fields
                    .iter()
                    .map(|(name, value)| format!("{name}: {}", value.text()));
                format!("struct{{{}}}", joined(fields.collect(), "; "))
            }
            Datum::Func(_) => "a function".to_owned(),
        }
    }

    /// Everything about it, for comparing: also the sign of a zero.
    pub(crate) fn exact(&self) -> String {
        match self {
            Datum::Float(value) => format!("{value:?}"),
            Datum::List(items) => format!("{:?}", items.iter().map(Datum::exact).collect::<Vec<_>>()),
            Datum::Map(entries) => {
                let entries = entries.iter().map(|(k, v)| (k.exact(), v.exact()));
                format!("map{:?}", entries.collect::<Vec<_>>())
            }
            Datum::Struct(fields) => {
                let fields = fields.iter().map(|(name, value)| (name, value.exact()));
                format!("struct{:?}", fields.collect::<Vec<_>>())
            }
            other => other.text(),
        }
    }
}

/// A text as Go's `%q` has it, for the characters that the generated programs use.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            other => quoted.push(other),
        }
    }
    quoted + "\""
}

impl From<&Value> for Datum {
    fn from(value: &Value) -> Datum {
        match value {
            Value::Bool(value) => Datum::Bool(*value),
            Value::Int(value) => Datum::Int(*value),
            Value::Float(value) => Datum::Float(value.0),
            Value::Str(text) => Datum::Str(text.to_lossy().into_owned()),
            Value::List(items) => Datum::List(items.iter().map(Datum::from).collect()),
            Value::Map(map) => Datum::map(map.iter().map(|(k, v)| (Datum::from(k), Datum::from(v)))),
            Value::Struct(fields) => {
                let fields = fields.iter();
                Datum::Struct(
                    fields
                        .map(|(name, value)| (name.to_owned(), value.into()))
                        .collect(),
                )
            }
            other => Datum::Str(format!("not a value that a program can write: {other:?}")),
        }
    }
}
