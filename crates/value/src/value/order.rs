//! A total order over values, by which maps and sets are sorted.

use std::cmp::Ordering;

use crate::Value;

/// A total order over values: within a type (lists, tuples and structs lexicographic; `NaN` last,
/// the zeros equal), across types an arbitrary fixed one.
#[must_use]
pub fn compare(a: &Value, b: &Value) -> Ordering {
    match (a.unmarked(), b.unmarked()) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => {
            a.0.partial_cmp(&b.0)
                .unwrap_or_else(|| a.0.is_nan().cmp(&b.0.is_nan()))
        }
        (Value::Str(a), Value::Str(b)) => a.cmp(b),
        (Value::List(a), Value::List(b)) if a.is_same(b) => Ordering::Equal,
        (Value::List(a), Value::List(b)) => lexicographic(a.iter(), b.iter()),
        (Value::Tuple(a), Value::Tuple(b)) => lexicographic(a.iter(), b.iter()),
        (Value::Struct(a), Value::Struct(b)) => lexicographic(a.fields().iter(), b.fields().iter()),
        (Value::Set(a), Value::Set(b)) => lexicographic(a.iter(), b.iter()),
        (Value::Map(a), Value::Map(b)) => {
            let mut b = b.iter();
            for (key, value) in a.iter() {
                let Some((other_key, other_value)) = b.next() else {
                    return Ordering::Greater;
                };
                let order = compare(key, other_key).then_with(|| compare(value, other_value));
                if order != Ordering::Equal {
                    return order;
                }
            }
            if b.next().is_some() {
                Ordering::Less
            } else {
                Ordering::Equal
            }
        }
        (Value::Func(a), Value::Func(b)) => a.address().cmp(&b.address()),
        (Value::Opaque(a), Value::Opaque(b)) => (a.name(), a.address()).cmp(&(b.name(), b.address())),
        (a, b) => rank(a)
            .cmp(&rank(b))
            .then_with(|| a.to_string().cmp(&b.to_string())),
    }
}

fn lexicographic<'a>(
    mut a: impl Iterator<Item = &'a Value>,
    mut b: impl Iterator<Item = &'a Value>,
) -> Ordering {
    loop {
        match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(a), Some(b)) => match compare(a, b) {
                Ordering::Equal => {}
                order => return order,
            },
        }
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null(_) => 0,
        Value::Bool(_) => 1,
        Value::Int(_) => 2,
        Value::Float(_) => 3,
        Value::Str(_) => 4,
        Value::List(_) => 5,
        Value::Set(_) => 6,
        Value::Tuple(_) => 7,
        Value::Map(_) => 8,
        Value::Struct(_) => 9,
        Value::Func(_) => 10,
        Value::Opaque(_) => 11,
        Value::Unknown(_) => 12,
        Value::Marked(_) => 13,
    }
}

/// A value as a key of a map or an element of a set: equality and order are [`compare`]'s.
#[derive(Clone, Debug)]
pub struct MapKey(pub Value);

impl PartialEq for MapKey {
    fn eq(&self, other: &MapKey) -> bool {
        compare(&self.0, &other.0) == Ordering::Equal
    }
}

impl Eq for MapKey {}

impl PartialOrd for MapKey {
    fn partial_cmp(&self, other: &MapKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for MapKey {
    fn cmp(&self, other: &MapKey) -> Ordering {
        compare(&self.0, &other.0)
    }
}
