//! What shapes have in common: taking their arguments apart, and finding which elements of a list are others than before.

use imbl::Vector;
use setpoint_value::{CallError, Func, List, Marks, Refinement, Type, Value};

/// An argument that may not be known yet.
pub(super) enum Known<T> {
    /// It is.
    Yes(T),
    /// It is not.
    No,
}

/// Takes a list apart, collecting its own marks.
pub(super) fn list<'a>(value: &'a Value, marks: &mut Marks) -> Result<Known<&'a List>, CallError> {
    match unmark(value, marks) {
        Value::List(list) => Ok(Known::Yes(list)),
        Value::Unknown(_) => Ok(Known::No),
        other => Err(CallError::fatal(format!("{} is not a list", other.ty()))),
    }
}

/// Takes a function value, collecting its own marks.
pub(super) fn function<'a>(value: &'a Value, marks: &mut Marks) -> Result<Known<&'a Func>, CallError> {
    match unmark(value, marks) {
        Value::Func(function) => Ok(Known::Yes(function)),
        Value::Unknown(_) => Ok(Known::No),
        other => Err(CallError::fatal(format!("{} is not a function", other.ty()))),
    }
}

fn unmark<'a>(value: &'a Value, marks: &mut Marks) -> &'a Value {
    if let Value::Marked(inner) = value {
        marks.union(&inner.1);
    }
    value.unmarked()
}

/// What a function value gives, by its type.
pub(super) fn result_type(function: &Value) -> Type {
    let ty = function.ty();
    ty.as_func().map_or(Type::Dynamic, |f| f.result.clone())
}

/// A list about which nothing is known but that it is one, not longer than `longest`.
pub(super) fn unknown_list(element: Type, longest: Option<usize>) -> Value {
    Value::refined(
        Type::list(element),
        Refinement {
            not_null: true,
            maximum_length: longest,
            ..Refinement::default()
        },
    )
}

/// Calls `changed` with each index below both lengths at which the two vectors hold different values.
///
/// Vectors that come from one another share chunks; a shared chunk is skipped without looking into it.
pub(super) fn differing(before: &Vector<Value>, now: &Vector<Value>, mut changed: impl FnMut(usize)) {
    let mut before = before.leaves();
    let mut now = now.leaves();
    let (mut a, mut b): (&[Value], &[Value]) = (&[], &[]);
    let mut index = 0;
    loop {
        if a.is_empty() {
            let Some(leaf) = before.next() else { return };
            a = leaf;
        }
        if b.is_empty() {
            let Some(leaf) = now.next() else { return };
            b = leaf;
        }
        let length = a.len().min(b.len());
        if !std::ptr::eq(a.as_ptr(), b.as_ptr()) {
            for (offset, (x, y)) in a.iter().zip(b).enumerate() {
                if x != y {
                    changed(index + offset);
                }
            }
        }
        index += length;
        (a, b) = (&a[length..], &b[length..]);
    }
}

/// The results of one call an element as a vector that is kept up to date.
#[derive(Default)]
pub(super) struct Results {
    items: Vector<Value>,
    /// The list made last.
    made: Option<List>,
    /// Where `items` has something that `made` has not.
    new: Vec<usize>,
    /// Whether `made` is another list than `items` would make.
    is_stale: bool,
}

impl Results {
    /// Forgets the results from `length` on.
    pub(super) fn truncate(&mut self, length: usize) {
        if length < self.items.len() {
            self.items.truncate(length);
            self.new.retain(|index| *index < length);
            self.is_stale = true;
        }
    }

    /// Takes in the changed results, so that there are `length`, and gives the list.
    pub(super) fn collect(
        &mut self,
        length: usize,
        element: &Type,
        results: &dyn Fn(usize) -> Value,
        changed: &[usize],
    ) -> Value {
        self.truncate(length);
        for &slot in changed {
            if let Some(before) = self.items.get(slot) {
                let now = results(slot);
                if *before != now {
                    self.items.set(slot, now);
                    self.new.push(slot);
                }
            }
        }
        if self.items.len() < length {
            let from = self.items.len();
            self.items.extend((from..length).map(results));
            self.new.extend(from..length);
        }
        let new = std::mem::take(&mut self.new);
        let made = match self.made.take().filter(|made| made.element_type() == element) {
            Some(made) if new.is_empty() && !self.is_stale => made,
            Some(made) => {
                let new: Vec<&Value> = new.iter().filter_map(|index| self.items.get(*index)).collect();
                made.with_vector(self.items.clone(), &new)
            }
            None => List::from_vector(element.clone(), self.items.clone()),
        };
        self.is_stale = false;
        self.made = Some(made.clone());
        Value::List(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differences(before: &Vector<Value>, now: &Vector<Value>) -> Vec<usize> {
        let mut found = Vec::new();
        differing(before, now, |index| found.push(index));
        found
    }

    #[test]
    fn only_what_differs_is_found() {
        let before: Vector<Value> = (0..10_000).map(Value::Int).collect();
        let mut now = before.clone();
        assert!(differences(&before, &now).is_empty());
        now.set(7_777, Value::Int(-1));
        assert_eq!(differences(&before, &now), [7_777]);
        now.push_front(Value::Int(-2));
        assert_eq!(differences(&before, &now).len(), 10_000);
        let shorter: Vector<Value> = before.take(5);
        assert!(differences(&before, &shorter).is_empty());
    }
}
