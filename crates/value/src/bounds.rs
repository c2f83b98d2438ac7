//! How large a value may become. A program whose values grow without end fails, and the process lives on.
//!
//! Values share their parts, so thirty short definitions can make one with a billion parts in a few hundred bytes. Whoever then
//! compares, prints or hashes it would never come to an end; so such a value is refused where it is made, and everything that
//! walks over values ends after [`MOST_PARTS`] steps at the latest.

use std::fmt;

use crate::{CallError, Type, Value};

/// The longest text that a value holds, in bytes.
pub const LONGEST_TEXT: usize = 1 << 26;

/// How many parts a value has at most, those that occur several times counted each time. The parts of a struct are its fields.
pub const MOST_PARTS: usize = 1 << 24;

/// What is larger than a value may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooLarge {
    /// A text of more than [`LONGEST_TEXT`].
    Text,
    /// More than [`MOST_PARTS`].
    Parts,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TooLarge::Text => write!(f, "the result would be longer than {} MiB", LONGEST_TEXT >> 20),
            TooLarge::Parts => write!(f, "the result would have more than {MOST_PARTS} parts"),
        }
    }
}

impl std::error::Error for TooLarge {}

impl From<TooLarge> for CallError {
    fn from(error: TooLarge) -> CallError {
        CallError::catchable(error.to_string())
    }
}

/// Checks that a value is not too large. What has no containers inside its own is judged by its length alone; nothing is walked
/// over for longer than it takes to see that it is too large.
///
/// # Errors
/// What of it is too large.
pub fn check_size(value: &Value) -> Result<(), TooLarge> {
    let mut left = MOST_PARTS;
    spend(value, &mut left)
}

fn spend(value: &Value, left: &mut usize) -> Result<(), TooLarge> {
    let mut take = |parts: usize| match left.checked_sub(parts) {
        Some(rest) => {
            *left = rest;
            Ok(())
        }
        None => Err(TooLarge::Parts),
    };
    match value {
        Value::Marked(inner) => spend(&inner.0, left),
        Value::Str(text) if text.as_bytes().len() > LONGEST_TEXT => Err(TooLarge::Text),
        Value::List(list) => match parts_of(list.element_type()) {
            Some(each) => take(list.len().saturating_mul(each)),
            None => list.iter().try_for_each(|item| spend(item, left)),
        },
        Value::Set(set) => match parts_of(set.element_type()) {
            Some(each) => take(set.len().saturating_mul(each)),
            None => set.iter().try_for_each(|item| spend(item, left)),
        },
        Value::Map(map) => match (parts_of(map.key_type()), parts_of(map.value_type())) {
            (Some(key), Some(value)) => take(map.len().saturating_mul(key.saturating_add(value))),
            _ => map.iter().try_for_each(|(key, value)| {
                spend(key, left)?;
                spend(value, left)
            }),
        },
        Value::Struct(fields) => fields.fields().iter().try_for_each(|field| spend(field, left)),
        Value::Tuple(items) => items.iter().try_for_each(|item| spend(item, left)),
        _ => take(1),
    }
}

/// How many parts every value of a type has; none if that differs.
fn parts_of(ty: &Type) -> Option<usize> {
    match ty {
        Type::List(_) | Type::Map(_) | Type::Set(_) | Type::Dynamic | Type::Variable(_) => None,
        Type::Optional(inner) => parts_of(inner),
        Type::Struct(fields) => fields.fields.iter().try_fold(0usize, |sum, field| {
            Some(sum.saturating_add(parts_of(&field.ty)?))
        }),
        Type::Tuple(types) => types
            .iter()
            .try_fold(0usize, |sum, ty| Some(sum.saturating_add(parts_of(ty)?))),
        _ => Some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list of two of what there was, so many times.
    fn doubled(times: usize) -> Value {
        (0..times).fold(Value::Int(1), |value, _| {
            Value::list(value.ty(), [value.clone(), value])
        })
    }

    #[test]
    fn parts_are_counted_as_often_as_they_occur() {
        assert_eq!(check_size(&doubled(24)), Ok(()));
        assert_eq!(check_size(&doubled(25)), Err(TooLarge::Parts));
        let inner = Value::list(Type::Int, (0..1 << 12).map(Value::Int));
        let pair = |count: usize| {
            let field = Value::list(inner.ty(), std::iter::repeat_n(inner.clone(), count));
            let ty = Type::structure([("a".to_owned(), field.ty()), ("b".to_owned(), Type::Int)]);
            Value::structure(ty, vec![field, Value::Int(0)])
        };
        assert_eq!(check_size(&pair((1 << 12) - 1)), Ok(()));
        assert_eq!(check_size(&pair(1 << 12)), Err(TooLarge::Parts));
    }

    #[test]
    fn the_longest_text_is_a_value_and_a_longer_one_is_not() {
        assert_eq!(check_size(&Value::str(vec![b'x'; LONGEST_TEXT])), Ok(()));
        let longer = Value::str(vec![b'x'; LONGEST_TEXT + 1]);
        assert_eq!(check_size(&longer), Err(TooLarge::Text));
        let inside = Value::structure(Type::structure([("a".to_owned(), Type::Str)]), vec![longer]);
        assert_eq!(check_size(&inside), Err(TooLarge::Text));
    }
}
