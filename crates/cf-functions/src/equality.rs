//! When two data are equal, and the text by which indexes know them.
//!
//! Numbers and bools compare by value, exactly: a whole number and a float are equal if they are the same number. Instances are equal only
//! to themselves, unknowns inside of lists and dicts too. Marks do not matter.

use std::cmp::Ordering;
use std::fmt::Write as _;
use std::sync::Arc;

use setpoint_cf_names::datum::{Datum, Deferred, DeferredSource};

/// What `==` answers. None: one of them is not known.
#[must_use]
pub fn equals(left: &Datum, right: &Datum) -> Option<bool> {
    match (left.unmarked(), right.unmarked()) {
        (Datum::Unknown(_), _) | (_, Datum::Unknown(_)) => None,
        (left, right) => Some(is_same(left, right)),
    }
}

/// Whether assigning one after the other changes nothing: equality in which an unknown is equal to itself.
#[must_use]
pub fn is_same(left: &Datum, right: &Datum) -> bool {
    match (left.unmarked(), right.unmarked()) {
        (Datum::Null, Datum::Null) => true,
        (Datum::Text(left), Datum::Text(right)) => left == right,
        (Datum::Instance(left), Datum::Instance(right)) => left == right,
        (Datum::Unknown(left), Datum::Unknown(right)) => left == right,
        (Datum::List(left), Datum::List(right)) => {
            Arc::ptr_eq(left, right)
                || left.len() == right.len() && left.iter().zip(right.iter()).all(|(a, b)| is_same(a, b))
        }
        (Datum::Dict(left), Datum::Dict(right)) => {
            Arc::ptr_eq(left, right)
                || left.len() == right.len()
                    && left
                        .iter()
                        .all(|(key, a)| right.get(key).is_some_and(|b| is_same(a, b)))
        }
        (Datum::Deferred(left), Datum::Deferred(right)) => {
            Arc::ptr_eq(left, right) || is_same_reference(left, right)
        }
        (left, right) => compare_numbers(left, right) == Some(Ordering::Equal),
    }
}

fn is_same_reference(left: &Deferred, right: &Deferred) -> bool {
    match (&left.source, &right.source) {
        (DeferredSource::Int(left), DeferredSource::Int(right))
        | (DeferredSource::Environment(left), DeferredSource::Environment(right)) => is_same(left, right),
        (
            DeferredSource::Fact { resource, fact },
            DeferredSource::Fact {
                resource: other,
                fact: wanted,
            },
        ) => resource == other && fact == wanted,
        (
            DeferredSource::Send { resource, key },
            DeferredSource::Send {
                resource: other,
                key: wanted,
            },
        ) => resource == other && key == wanted,
        _ => false,
    }
}

/// How two numbers or bools compare. None: one of them is neither, or no number.
#[must_use]
pub fn compare_numbers(left: &Datum, right: &Datum) -> Option<Ordering> {
    match (number(left)?, number(right)?) {
        (Number::Int(left), Number::Int(right)) => Some(left.cmp(&right)),
        (Number::Float(left), Number::Float(right)) => left.partial_cmp(&right),
        (Number::Int(left), Number::Float(right)) => compare_exactly(left, right),
        (Number::Float(left), Number::Int(right)) => compare_exactly(right, left).map(Ordering::reverse),
    }
}

/// A number as arithmetic takes it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Number {
    /// A whole number, or a bool as 0 or 1.
    Int(i64),
    /// A number with a point.
    Float(f64),
}

impl Number {
    /// The nearest float.
    pub(crate) fn to_float(self) -> f64 {
        match self {
            Number::Int(int) => int as f64,
            Number::Float(float) => float,
        }
    }
}

/// The datum as a number, if it is a number or bool.
pub(crate) fn number(datum: &Datum) -> Option<Number> {
    match datum.unmarked() {
        Datum::Int(int) => Some(Number::Int(*int)),
        Datum::Float(float) => Some(Number::Float(*float)),
        Datum::Bool(bool) => Some(Number::Int(i64::from(*bool))),
        _ => None,
    }
}

/// Compares without rounding the whole number to a float, so that equality stays transitive.
fn compare_exactly(int: i64, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    // 2⁶³, the first float that no `i64` reaches.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if float >= LIMIT {
        return Some(Ordering::Less);
    }
    if float < -LIMIT {
        return Some(Ordering::Greater);
    }
    let whole = float.trunc();
    let fraction = float - whole;
    let rest = || 0.0_f64.partial_cmp(&fraction).expect("what is not NaN compares");
    Some(int.cmp(&(whole as i64)).then_with(rest))
}

/// Appends the text by which an index knows a key: data of different types never have the same one.
pub fn write_key(datum: &Datum, key: &mut String) {
    // Writing to a `String` cannot fail.
    let _ = match datum {
        Datum::Null => write!(key, "n;"),
        Datum::Bool(bool) => write!(key, "b{};", u8::from(*bool)),
        Datum::Int(int) => write!(key, "i{int};"),
        // Both zeros are one key.
        Datum::Float(float) => write!(key, "f{};", (float + 0.0).to_bits()),
        Datum::Text(text) => write!(key, "s{}:{text};", text.len()),
        Datum::Instance(instance) => write!(key, "@{};", instance.0),
        Datum::Unknown(unknown) => write!(key, "?{};", unknown.0),
        Datum::Marked(marked) => return write_key(&marked.datum, key),
        Datum::List(items) => {
            key.push('[');
            items.iter().for_each(|item| write_key(item, key));
            write!(key, "];")
        }
        Datum::Dict(dict) => {
            let mut entries: Vec<_> = dict.iter().collect();
            entries.sort_by_key(|(name, _)| *name);
            key.push('{');
            for (name, value) in entries {
                let _ = write!(key, "s{}:{name}=", name.len());
                write_key(value, key);
            }
            write!(key, "}};")
        }
        Datum::Deferred(deferred) => match &deferred.source {
            DeferredSource::Int(value) => {
                key.push_str("ri");
                return write_key(value, key);
            }
            DeferredSource::Environment(name) => {
                key.push_str("re");
                return write_key(name, key);
            }
            DeferredSource::Fact { resource, fact } => {
                write!(key, "rf{}:{}:{fact};", resource.0, fact.len())
            }
            DeferredSource::Send { resource, key: sent } => {
                write!(key, "rs{}:{}:{sent};", resource.0, sent.len())
            }
        },
    };
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::generate::{datum, known};
    use setpoint_cf_names::datum::{InstanceId, UnknownId};

    #[test]
    fn numbers_and_bools_compare_by_value() {
        assert_eq!(equals(&Datum::Int(1), &Datum::Float(1.0)), Some(true));
        assert_eq!(equals(&Datum::Bool(true), &Datum::Int(1)), Some(true));
        assert_eq!(equals(&Datum::Int(5), &Datum::text("5")), Some(false));
        assert_eq!(equals(&Datum::Null, &Datum::Null), Some(true));
        assert_eq!(equals(&Datum::Null, &Datum::Int(0)), Some(false));
        // The nearest float of this number is another number.
        let odd = (1 << 53) + 1;
        assert_eq!(equals(&Datum::Int(odd), &Datum::Float(odd as f64)), Some(false));
        assert_eq!(
            equals(&Datum::Int(i64::MAX), &Datum::Float(i64::MAX as f64)),
            Some(false)
        );
        assert_eq!(
            equals(&Datum::Int(i64::MIN), &Datum::Float(i64::MIN as f64)),
            Some(true)
        );
    }

    #[test]
    fn unknowns_are_equal_only_inside_and_to_themselves() {
        let unknown = |id| Datum::Unknown(UnknownId(id));
        let list = |item: Datum| Datum::List([item].into());
        assert_eq!(equals(&unknown(1), &unknown(1)), None);
        assert_eq!(equals(&Datum::Int(1), &unknown(1)), None);
        assert_eq!(equals(&list(unknown(1)), &list(unknown(1))), Some(true));
        assert_eq!(equals(&list(unknown(1)), &list(unknown(2))), Some(false));
        assert!(is_same(&unknown(1), &unknown(1)));
    }

    #[test]
    fn lists_have_an_order_and_dicts_do_not() {
        let list = |items: [i64; 2]| Datum::List(items.map(Datum::Int).into());
        assert_eq!(equals(&list([1, 2]), &list([2, 1])), Some(false));
        let dict = |entries: [(&str, i64); 2]| {
            let entries = entries.map(|(k, v)| (Arc::from(k), Datum::Int(v)));
            Datum::Dict(Arc::new(entries.into_iter().collect()))
        };
        assert_eq!(
            equals(&dict([("a", 1), ("b", 2)]), &dict([("b", 2), ("a", 1)])),
            Some(true)
        );
        assert_eq!(
            equals(&dict([("a", 1), ("b", 2)]), &dict([("a", 1), ("c", 2)])),
            Some(false)
        );
    }

    #[test]
    fn keys_tell_types_apart() {
        let key = |datum: &Datum| {
            let mut key = String::new();
            write_key(datum, &mut key);
            key
        };
        let data = [
            Datum::Null,
            Datum::text("null"),
            Datum::text("1"),
            Datum::Int(1),
            Datum::Float(1.0),
            Datum::Bool(true),
            Datum::Instance(InstanceId(1)),
            Datum::Unknown(UnknownId(1)),
        ];
        for (index, left) in data.iter().enumerate() {
            for (other, right) in data.iter().enumerate() {
                assert_eq!(key(left) == key(right), index == other, "{left:?} {right:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn equality_of_known_data_is_an_equivalence(a in known(), b in known(), c in known()) {
            prop_assert!(is_same(&a, &a));
            prop_assert_eq!(is_same(&a, &b), is_same(&b, &a));
            if is_same(&a, &b) && is_same(&b, &c) {
                prop_assert!(is_same(&a, &c));
            }
        }

        #[test]
        fn what_has_one_key_is_equal(a in datum(), b in datum()) {
            let key = |datum: &Datum| { let mut key = String::new(); write_key(datum, &mut key); key };
            if key(&a) == key(&b) {
                prop_assert!(is_same(&a, &b));
            }
        }
    }
}
