//! What a node has: nothing yet, a value, or a failure that travels in its place.

use std::sync::Arc;

use setpoint_diagnostics::Span;
use setpoint_graph::Link;
use setpoint_value::{CallError, List, Map, Value};

/// The state of a node.
#[derive(Clone)]
pub(super) enum NodeState {
    /// No value yet.
    Pending,
    /// This value.
    Value(Value),
    /// It failed, or something that it is computed from did.
    Failed(Arc<Failure>),
}

impl NodeState {
    /// Whether a change from the one to the other need not be told to anybody.
    pub(super) fn is_same(&self, other: &NodeState) -> bool {
        match (self, other) {
            (NodeState::Pending, NodeState::Pending) => true,
            (NodeState::Value(a), NodeState::Value(b)) => is_identical(a, b),
            (NodeState::Failed(a), NodeState::Failed(b)) => Arc::ptr_eq(a, b) || a == b,
            _ => false,
        }
    }
}

/// A failure, from the expression that failed first.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// Why.
    pub(super) error: CallError,
    /// What failed, for the message: `` `os.readfile` ``.
    pub(super) what: Arc<str>,
    /// The expression.
    pub(super) span: Span,
    /// How one gets there.
    pub(super) chain: Option<Arc<Link>>,
}

impl Failure {
    /// Whether `<|>` catches it.
    pub(super) fn is_catchable(&self) -> bool {
        self.error.is_catchable()
    }
}

/// Identity of values, which looks at the addresses of shared parts first.
pub(super) fn is_identical(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::List(a), Value::List(b)) => {
            a.is_same(b)
                || (a.len() == b.len()
                    && a.element_type() == b.element_type()
                    && !differing(a, b, |_, _, _| true))
        }
        (Value::Map(a), Value::Map(b)) => {
            a.is_same(b)
                || (a.len() == b.len()
                    && a.key_type() == b.key_type()
                    && a.value_type() == b.value_type()
                    && (a.entries().ptr_eq(b.entries()) || is_identical_map(a, b)))
        }
        (a, b) => a == b,
    }
}

/// The difference of two maps looks only at keys that are unequal; identity also means the marks and bits of equal keys.
fn is_identical_map(a: &Map, b: &Map) -> bool {
    a.entries().diff(b.entries()).next().is_none()
        && (!has_subtle_keys(a) || a.iter().zip(b.iter()).all(|(a, b)| a.0 == b.0))
}

/// Whether keys that compare equal can differ all the same: marked ones and floats (the zeros).
pub(super) fn has_subtle_keys(map: &Map) -> bool {
    !matches!(
        map.key_type(),
        setpoint_value::Type::Str | setpoint_value::Type::Int | setpoint_value::Type::Bool
    ) || map
        .iter()
        .next()
        .is_some_and(|(key, _)| matches!(key, Value::Marked(_)))
}

/// Calls `each` with the index of every element that differs between two lists as far as both reach, until it answers
/// true; whether it did. Chunks that both lists share are skipped, so that this costs what differs.
pub(super) fn differing(a: &List, b: &List, mut each: impl FnMut(usize, &Value, &Value) -> bool) -> bool {
    let (mut left, mut right) = (a.items().leaves(), b.items().leaves());
    let (mut x, mut y): (&[Value], &[Value]) = (&[], &[]);
    let mut index = 0;
    loop {
        if x.is_empty() {
            x = match left.next() {
                Some(chunk) => chunk,
                None => return false,
            };
        }
        if y.is_empty() {
            y = match right.next() {
                Some(chunk) => chunk,
                None => return false,
            };
        }
        let run = x.len().min(y.len());
        if !std::ptr::eq(x.as_ptr(), y.as_ptr()) {
            for i in 0..run {
                if !is_identical(&x[i], &y[i]) && each(index + i, &x[i], &y[i]) {
                    return true;
                }
            }
        }
        (x, y) = (&x[run..], &y[run..]);
        index += run;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use setpoint_value::Type;

    #[test]
    fn the_difference_of_lists_is_found_by_chunks() {
        let items: imbl::Vector<Value> = (0..1000).map(Value::Int).collect();
        let mut changed = items.clone();
        changed.set(700, Value::Int(-1));
        let a = List::from_vector(Type::Int, items);
        let b = List::from_vector(Type::Int, changed);
        let mut found = Vec::new();
        differing(&a, &b, |i, _, _| {
            found.push(i);
            false
        });
        assert_eq!(found, [700]);
        assert!(!is_identical(&Value::List(a.clone()), &Value::List(b)));
        assert!(is_identical(
            &Value::List(a.clone()),
            &Value::List(List::new(Type::Int, a.iter().cloned()))
        ));
    }

    #[test]
    fn identity_by_shared_parts_is_the_identity_of_values() {
        let map = |entries: &[(Value, Value)]| Value::map(Type::Float, Type::Int, entries.iter().cloned());
        let shared = Value::list(Type::Int, (0..200).map(Value::Int));
        let Value::List(items) = &shared else {
            panic!("a list")
        };
        let (zero, minus) = (Value::float(0.0), Value::float(-0.0));
        let one = Value::Int(1);
        let values = [
            shared.clone(),
            Value::List(items.with_item(0, one.clone())),
            Value::List(items.with_item(199, Value::Int(0))),
            Value::list(Type::Int, (0..199).map(Value::Int)),
            Value::list(Type::Int, (0..201).map(Value::Int)),
            Value::list(Type::Dynamic, (0..200).map(Value::Int)),
            Value::list(Type::Int, []),
            Value::list(Type::Str, []),
            Value::list(Type::Int, [one.clone()]),
            Value::list(Type::Int, [one.clone().sensitive()]),
            map(&[]),
            Value::map(Type::Float, Type::Str, []),
            Value::map(Type::Str, Type::Int, []),
            map(&[(zero.clone(), one.clone())]),
            map(&[(minus.clone(), one.clone())]),
            map(&[(zero.clone().sensitive(), one.clone())]),
            map(&[(zero.clone(), Value::Int(2))]),
            map(&[(Value::float(1.0), one.clone())]),
            map(&[(zero, one.clone()), (Value::float(1.0), one.clone())]),
            Value::map(Type::Str, Type::Int, [(Value::str("a"), one.clone())]),
            Value::map(Type::Str, Type::Int, [(Value::str("a").sensitive(), one.clone())]),
            Value::map(Type::Str, Type::Int, [(Value::str("b"), one.clone())]),
            Value::map(Type::Str, Type::Int, [(Value::str("a"), Value::Int(2))]),
            minus,
            one,
        ];
        // The same once more, with nothing shared.
        let rebuilt = values.each_ref().map(|value| match value {
            Value::List(list) => Value::list(list.element_type().clone(), list.iter().cloned()),
            Value::Map(map) => Value::map(
                map.key_type().clone(),
                map.value_type().clone(),
                map.iter().map(|(key, value)| (key.clone(), value.clone())),
            ),
            other => other.clone(),
        });
        for (i, a) in values.iter().enumerate() {
            for (j, b) in values.iter().enumerate() {
                assert_eq!(is_identical(a, b), i == j, "{a} {b}");
                assert_eq!(is_identical(a, &rebuilt[j]), i == j, "{a} {b}");
            }
        }
    }

    #[test]
    fn lists_are_compared_as_far_as_both_reach_and_no_further_than_was_asked() {
        let list = |numbers: std::ops::Range<i64>| List::new(Type::Int, numbers.map(Value::Int));
        let long = list(0..300);
        let mut other: imbl::Vector<Value> = list(0..100).items().clone();
        // Chunks that lie differently.
        other.append(list(200..250).items().clone());
        let other = List::from_vector(Type::Int, other);
        for (a, b) in [(&long, &other), (&other, &long)] {
            let mut found = Vec::new();
            assert!(!differing(a, b, |index, x, y| {
                assert_eq!((x, y), (&a.items()[index], &b.items()[index]));
                found.push(index);
                false
            }));
            assert_eq!(found, (100..150).collect::<Vec<_>>());
            let mut first = Vec::new();
            assert!(differing(a, b, |index, _, _| {
                first.push(index);
                index == 101
            }));
            assert_eq!(first, [100, 101]);
        }
        assert!(!differing(&long, &long, |_, _, _| true));
        assert!(!differing(&long, &list(0..0), |_, _, _| true));
    }
}
