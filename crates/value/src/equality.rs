//! Equality as the languages see it.

use crate::conformance::plain;
use crate::{List, Type, Unknown, Value, conforms};

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
fn is_equal_to_itself(list: &List) -> bool {
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
