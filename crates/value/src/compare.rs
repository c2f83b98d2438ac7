//! Equality and order as the languages see them.

use std::cmp::Ordering;

use crate::conformance::plain;
use crate::{Type, Unknown, Value, conforms};

/// What comparing two values gives when parts may be unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Equality {
    /// Equal for certain.
    Equal,
    /// Unequal for certain.
    Unequal,
    /// It depends on what is unknown.
    Unknown,
}

impl Equality {
    fn of(equal: bool) -> Equality {
        if equal { Equality::Equal } else { Equality::Unequal }
    }
}

/// The languages' `==`: floats by IEEE (`NaN` is unequal to itself, the zeros are equal), maps and sets without regard
/// to order, marks without effect. Values of different types are unequal. Unknown parts leave it open unless known
/// parts already differ.
#[must_use]
pub fn equals(a: &Value, b: &Value) -> Equality {
    match (a.unmarked(), b.unmarked()) {
        (Value::Unknown(u), other) | (other, Value::Unknown(u)) => {
            if could_be_equal(u, other) {
                Equality::Unknown
            } else {
                Equality::Unequal
            }
        }
        (Value::Null(_), Value::Null(_)) => Equality::Equal,
        (Value::Bool(a), Value::Bool(b)) => Equality::of(a == b),
        (Value::Int(a), Value::Int(b)) => Equality::of(a == b),
        (Value::Float(a), Value::Float(b)) => Equality::of(a.0 == b.0),
        (Value::Str(a), Value::Str(b)) => Equality::of(a == b),
        (Value::List(a), Value::List(b)) if a.is_same(b) && is_equal_to_itself(a) => Equality::Equal,
        (Value::List(a), Value::List(b))
            if a.len() == b.len() && could_be_alike(a.element_type(), b.element_type()) =>
        {
            all(a.iter().zip(b.iter()))
        }
        (Value::Tuple(a), Value::Tuple(b)) if a.len() == b.len() => all(a.iter().zip(b.iter())),
        (Value::Struct(a), Value::Struct(b))
            if a.ty() == b.ty()
                || (a.ty().is_open() || b.ty().is_open())
                    && a.iter().map(|(name, _)| name).eq(b.iter().map(|(name, _)| name)) =>
        {
            all(a.fields().iter().zip(b.fields()))
        }
        (Value::Map(a), Value::Map(b))
            if a.len() == b.len()
                && could_be_alike(a.key_type(), b.key_type())
                && could_be_alike(a.value_type(), b.value_type()) =>
        {
            let mut result = Equality::Equal;
            for (key, value) in a.iter() {
                match b.get(key).map(|other| equals(value, other)) {
                    None | Some(Equality::Unequal) => return Equality::Unequal,
                    Some(Equality::Unknown) => result = Equality::Unknown,
                    Some(Equality::Equal) => {}
                }
            }
            result
        }
        (Value::Set(_), Value::Set(_)) if !(a.is_wholly_known() && b.is_wholly_known()) => Equality::Unknown,
        (Value::Set(a), Value::Set(b)) if could_be_alike(a.element_type(), b.element_type()) => {
            Equality::of(a.len() == b.len() && a.iter().all(|v| b.contains(v)))
        }
        (Value::Func(a), Value::Func(b)) => Equality::of(a == b),
        (Value::Opaque(a), Value::Opaque(b)) => Equality::of(a == b),
        _ => Equality::Unequal,
    }
}

/// Whether no part of a list can be unequal to itself, which NaN and what is unknown are.
fn is_equal_to_itself(list: &crate::List) -> bool {
    let has_floats = list
        .element_type()
        .any_part(&mut |part| matches!(part, Type::Float | Type::Dynamic | Type::Number));
    !has_floats && !list.contents().unknown
}

/// Whether what is certain of an unknown leaves it open that it equals another value, known or not.
fn could_be_equal(unknown: &Unknown, other: &Value) -> bool {
    let refinement = &unknown.refinement;
    match other {
        Value::Null(_) => !refinement.not_null,
        Value::Unknown(other) => {
            let both_null = !refinement.not_null && !other.refinement.not_null;
            both_null
                || (could_be_alike(&unknown.ty, &other.ty) && refinement.combined(&other.refinement).is_ok())
        }
        // Fields and elements of another kind are decided where they stand; here only the outermost form.
        known => could_be_alike(&unknown.ty, &known.ty()) && refinement.check(known).is_ok(),
    }
}

/// Whether values of two types may be of one type once everything is known.
fn could_be_alike(a: &Type, b: &Type) -> bool {
    a == b || {
        let (a, b) = (plain(a), plain(b));
        conforms(a, b).is_ok() || conforms(b, a).is_ok() || (a.is_open() && b.is_open())
    }
}

fn all<'a>(pairs: impl Iterator<Item = (&'a Value, &'a Value)>) -> Equality {
    let mut result = Equality::Equal;
    for (a, b) in pairs {
        match equals(a, b) {
            Equality::Unequal => return Equality::Unequal,
            Equality::Unknown => result = Equality::Unknown,
            Equality::Equal => {}
        }
    }
    result
}

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
