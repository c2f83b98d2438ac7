//! What templates compute with: Go's view of values.

use std::cmp::Ordering;
use std::sync::Arc;

use setpoint_value::{Map, Str, Struct, Type, Value, compare};

/// A value in a template.
#[derive(Debug, Clone)]
pub(super) enum Datum {
    /// No value at all: the dot without data, a missing entry, `nil`.
    Nothing,
    Bool(bool),
    Int(i64),
    /// A byte of a string, which prints like an int.
    Byte(u8),
    Float(f64),
    Str(Str),
    List(Arc<[Datum]>),
    Map(Arc<Entries>),
}

/// A map, or a struct seen as one.
#[derive(Debug)]
pub(super) struct Entries {
    /// Sorted by key; the keys are of one kind.
    pub entries: Vec<(Datum, Datum)>,
    /// What a key that is not there has: the zero of the values' type, if that is not anything.
    pub missing: Datum,
    /// Go's name of the type.
    pub type_name: &'static str,
}

impl Datum {
    /// Takes over a value; an error names the type that cannot be.
    pub(super) fn from_value(value: &Value) -> Result<Datum, &'static str> {
        Ok(match value.unmarked() {
            Value::Bool(value) => Datum::Bool(*value),
            Value::Int(value) => Datum::Int(*value),
            Value::Float(value) => Datum::Float(value.0),
            Value::Str(text) => Datum::Str(text.clone()),
            Value::List(list) => Datum::list(list.iter())?,
            Value::Tuple(items) => Datum::list(items.iter())?,
            Value::Set(set) => Datum::list(set.iter())?,
            Value::Map(map) => Datum::map(map)?,
            Value::Struct(fields) => Datum::structure(fields)?,
            Value::Null(_) => Datum::Nothing,
            Value::Func(_) => return Err("func"),
            Value::Unknown(_) => return Err("unknown"),
            Value::Opaque(_) | Value::Marked(_) => return Err("opaque"),
        })
    }

    fn list<'a>(items: impl Iterator<Item = &'a Value>) -> Result<Datum, &'static str> {
        let items: Vec<Datum> = items.map(Datum::from_value).collect::<Result<_, _>>()?;
        Ok(Datum::List(items.into()))
    }

    fn map(map: &Map) -> Result<Datum, &'static str> {
        let entries = map
            .iter()
            .map(|(key, value)| Ok((Datum::from_value(key)?, Datum::from_value(value)?)))
            .collect::<Result<Vec<_>, &'static str>>()?;
        let has_names = *map.key_type() == Type::Str;
        let missing = match Value::zero(map.value_type()) {
            // A map by names holds anything, so that nothing stands for a missing value.
            Some(zero) if !has_names => Datum::from_value(&zero)?,
            _ => Datum::Nothing,
        };
        let type_name = if has_names { ANY_MAP } else { "map" };
        Ok(Datum::Map(Arc::new(Entries {
            entries,
            missing,
            type_name,
        })))
    }

    fn structure(fields: &Struct) -> Result<Datum, &'static str> {
        let mut entries: Vec<(Str, Datum)> = Vec::new();
        for (name, value) in fields.iter() {
            let mut letters = name.chars();
            let first = letters.next().map(super::super::text::upper);
            let key: Str = first.into_iter().chain(letters).collect::<String>().into();
            let value = Datum::from_value(value)?;
            match entries.iter_mut().find(|(known, _)| *known == key) {
                Some(entry) => entry.1 = value,
                None => entries.push((key, value)),
            }
        }
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        let entries = entries.into_iter().map(|(key, value)| (Datum::Str(key), value));
        Ok(Datum::Map(Arc::new(Entries {
            entries: entries.collect(),
            missing: Datum::Nothing,
            type_name: ANY_MAP,
        })))
    }

    /// A string.
    pub(super) fn str(text: impl Into<Str>) -> Datum {
        Datum::Str(text.into())
    }

    /// Whether `if` takes it for true.
    pub(super) fn is_true(&self) -> bool {
        match self {
            Datum::Nothing => false,
            Datum::Bool(value) => *value,
            Datum::Int(value) => *value != 0,
            Datum::Byte(value) => *value != 0,
            Datum::Float(value) => *value != 0.0,
            Datum::Str(text) => !text.is_empty(),
            Datum::List(items) => !items.is_empty(),
            Datum::Map(map) => !map.entries.is_empty(),
        }
    }

    /// Go's name of its type.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Datum::Nothing => "<nil>",
            Datum::Bool(_) => "bool",
            Datum::Int(_) => "int64",
            Datum::Byte(_) => "uint8",
            Datum::Float(_) => "float64",
            Datum::Str(_) => "string",
            Datum::List(_) => "[]interface {}",
            Datum::Map(map) => map.type_name,
        }
    }

    /// Its order among keys of its kind; nothing for others.
    pub(super) fn order(&self, other: &Datum) -> Option<Ordering> {
        Some(match (self, other) {
            (Datum::Bool(a), Datum::Bool(b)) => a.cmp(b),
            (Datum::Str(a), Datum::Str(b)) => a.cmp(b),
            (Datum::Float(a), Datum::Float(b)) => compare(&Value::float(*a), &Value::float(*b)),
            (a, b) => a.as_int()?.cmp(&b.as_int()?),
        })
    }

    /// The whole number.
    pub(super) fn as_int(&self) -> Option<i64> {
        match self {
            Datum::Int(value) => Some(*value),
            Datum::Byte(value) => Some(i64::from(*value)),
            _ => None,
        }
    }
}

const ANY_MAP: &str = "map[string]interface {}";

impl Entries {
    /// The value of a key.
    pub(super) fn get(&self, key: &Datum) -> Option<&Datum> {
        let place = self
            .entries
            .binary_search_by(|(known, _)| known.order(key).unwrap_or(Ordering::Less));
        place.ok().map(|at| &self.entries[at].1)
    }
}
