//! Shapes, driven by an evaluator that is as simple as one can be, which counts what it is asked for.

use std::any::Any;
use std::cell::Cell;

use proptest::prelude::*;
use setpoint_value::{
    CallError, Callable, Func, Implementation, List, ScopeArgument, ScopeBuilder, ShapeState, Type, Value,
};

use crate::machine::spec;

/// A function value that is a Rust function.
struct Native(fn(&[Value]) -> Result<Value, CallError>);

impl Callable for Native {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn call(&self, arguments: &[Value]) -> Result<Value, CallError> {
        (self.0)(arguments)
    }
}

fn func(ty: &str, body: fn(&[Value]) -> Result<Value, CallError>) -> Value {
    Value::Func(Func::new(Type::parse(ty).expect("a type"), Native(body)))
}

/// Keeps the calls that a shape asks for, and their results.
#[derive(Default)]
struct Evaluator {
    calls: Vec<Option<(Func, Vec<ScopeArgument>)>>,
    results: Vec<Value>,
    asked: usize,
}

impl ScopeBuilder for Evaluator {
    fn call(&mut self, slot: usize, function: &Func, arguments: &[ScopeArgument]) {
        self.asked += 1;
        if self.calls.len() <= slot {
            self.calls.resize(slot + 1, None);
        }
        self.calls[slot] = Some((function.clone(), arguments.to_vec()));
    }

    fn truncate(&mut self, first: usize) {
        self.calls.truncate(first);
        self.results.truncate(first);
    }
}

struct Running {
    state: Box<dyn ShapeState>,
    evaluator: Evaluator,
    /// Results that the shape has looked at in the last run.
    read: usize,
}

impl Running {
    fn new(name: &str) -> Running {
        let Implementation::Shape(shape) = &spec(name).implementation else {
            panic!("`{name}` is a shape");
        };
        Running {
            state: shape.start(),
            evaluator: Evaluator::default(),
            read: 0,
        }
    }

    /// Gives the arguments and makes the result, evaluating only calls whose arguments are others.
    fn run(&mut self, arguments: &[Value]) -> Result<Value, CallError> {
        self.evaluator.asked = 0;
        let before = self.evaluator.calls.clone();
        self.state.update(arguments, &mut self.evaluator)?;
        let mut changed = Vec::new();
        for (slot, call) in self.evaluator.calls.iter().enumerate() {
            let (function, wanted) = call.as_ref().expect("every slot has a call");
            let depends_on_change = wanted.iter().any(|argument| match argument {
                ScopeArgument::Result(other) => changed.contains(other),
                ScopeArgument::Value(_) => false,
            });
            if before.get(slot) == Some(call) && !depends_on_change {
                continue;
            }
            let values: Vec<Value> = wanted
                .iter()
                .map(|argument| match argument {
                    ScopeArgument::Value(value) => value.clone(),
                    ScopeArgument::Result(other) => self.evaluator.results[*other].clone(),
                })
                .collect();
            let result = function.implementation().call(&values)?;
            if self.evaluator.results.get(slot) != Some(&result) {
                changed.push(slot);
            }
            self.evaluator
                .results
                .truncate(self.evaluator.results.len().max(slot));
            if slot < self.evaluator.results.len() {
                self.evaluator.results[slot] = result;
            } else {
                self.evaluator.results.push(result);
            }
        }
        let results = &self.evaluator.results;
        let count = Cell::new(0usize);
        let read = |slot: usize| {
            count.set(count.get() + 1);
            results[slot].clone()
        };
        let result = self.state.collect(&read, &changed);
        self.read = count.get();
        result
    }
}

fn ints(numbers: impl IntoIterator<Item = i64>) -> Value {
    Value::list(Type::Int, numbers.into_iter().map(Value::Int))
}

fn int(value: &Value) -> i64 {
    value.as_int().expect("an int")
}

fn double() -> Value {
    func("func(x int) int", |a| Ok(Value::Int(int(&a[0]).wrapping_mul(2))))
}

fn is_odd() -> Value {
    func("func(x int) bool", |a| Ok(Value::Bool(int(&a[0]) % 2 != 0)))
}

fn subtract() -> Value {
    func("func(a int, b int) int", |a| {
        Ok(Value::Int(int(&a[0]).wrapping_sub(int(&a[1]))))
    })
}

#[test]
fn one_changed_element_of_many_asks_for_one_call() {
    for (name, function) in [("iter.map", double()), ("iter.filter", is_odd())] {
        let mut running = Running::new(name);
        let before = ints(0..100_000);
        running.run(&[before.clone(), function.clone()]).expect("a list");
        let mut items = before.as_list().expect("a list").items().clone();
        items.set(70_000, Value::Int(-7));
        let after = Value::List(List::from_vector(Type::Int, items));
        let result = running.run(&[after, function]).expect("a list");
        assert_eq!((running.evaluator.asked, running.read), (1, 1), "{name}");
        let list = result.as_list().expect("a list");
        match name {
            "iter.map" => assert_eq!(list.get(70_000), Some(&Value::Int(-14))),
            _ => {
                assert_eq!(list.len(), 50_001);
                assert_eq!(list.get(35_000), Some(&Value::Int(-7)));
            }
        }
    }
}

#[test]
fn a_result_that_stays_is_the_same_object() {
    let mut running = Running::new("iter.map");
    let constant = func("func(x int) int", |_| Ok(Value::Int(0)));
    let first = running.run(&[ints([1, 2]), constant.clone()]).expect("a list");
    let second = running.run(&[ints([1, 3]), constant]).expect("a list");
    assert!(
        first
            .as_list()
            .zip(second.as_list())
            .is_some_and(|(a, b)| a.is_same(b))
    );
}

#[test]
fn folds_go_from_the_left_with_and_without_a_beginning() {
    let mut running = Running::new("iter.reduce");
    assert_eq!(running.run(&[ints([10, 1, 2]), subtract()]), Ok(Value::Int(7)));
    let mut running = Running::new("iter.reduce");
    assert_eq!(running.run(&[ints([4]), subtract()]), Ok(Value::Int(4)));
    assert!(
        running
            .run(&[ints([]), subtract()])
            .is_err_and(|e| !e.is_catchable())
    );
    let mut running = Running::new("iter.reduce");
    assert_eq!(
        running.run(&[Value::Int(5), ints([]), subtract()]),
        Ok(Value::Int(5))
    );
    assert_eq!(
        running.run(&[Value::Int(5), ints([1, 1]), subtract()]),
        Ok(Value::Int(3))
    );
}

#[test]
fn pairs_go_to_the_end_of_the_shorter_list() {
    let mut running = Running::new("iter.zip");
    let result = running.run(&[ints([5, 6, 7]), ints([1, 2]), subtract()]);
    assert_eq!(result, Ok(ints([4, 4])));
    let result = running.run(&[ints([5]), ints([1, 2]), subtract()]);
    assert_eq!(result, Ok(ints([4])));
}

#[test]
fn marks_and_unknowns_go_where_they_belong() {
    let secret = Value::list(Type::Int, [Value::Int(1), Value::Int(3).sensitive()]);
    let keeps_marks = func("func(x int) bool", |a| {
        let answer = Value::Bool(int(&a[0]) % 2 != 0);
        Ok(answer.with_marks(&a[0].unmark().1))
    });
    let mut running = Running::new("iter.filter");
    let result = running.run(&[secret, keeps_marks]).expect("a list");
    assert!(
        matches!(&result, Value::Marked(_)),
        "what is left depends on a secret"
    );
    let mut running = Running::new("iter.map");
    let result = running.run(&[ints([1]).sensitive(), double()]).expect("a list");
    assert_eq!(result, ints([2]).sensitive());
    let unknown = Value::unknown(Type::list(Type::Int));
    let result = running.run(&[unknown, double()]).expect("a list");
    assert!(result.is_unknown() && result.ty() == Type::list(Type::Int));
    assert_eq!(running.run(&[ints([4]), double()]), Ok(ints([8])));
}

proptest! {
    #[test]
    fn any_history_of_lists_gives_what_a_new_evaluation_gives(
        histories in prop::collection::vec(prop::collection::vec(-5i64..5, 0..8), 1..8),
        other in prop::collection::vec(-5i64..5, 0..8),
        swaps in prop::collection::vec(any::<bool>(), 8),
    ) {
        let all = func("func(x int) bool", |_| Ok(Value::Bool(true)));
        let negate = func("func(x int) int", |a| Ok(Value::Int(-int(&a[0]))));
        let (odd, twice, minus) = (is_odd(), double(), subtract());
        let mut filter = Running::new("iter.filter");
        let mut map = Running::new("iter.map");
        let mut zip = Running::new("iter.zip");
        let mut reduce = Running::new("iter.reduce");
        for (list, swap) in histories.iter().zip(swaps) {
            let value = ints(list.iter().copied());
            let kept: Vec<i64> = list.iter().copied().filter(|n| swap || n % 2 != 0).collect();
            let test = if swap { &all } else { &odd };
            prop_assert_eq!(filter.run(&[value.clone(), test.clone()]), Ok(ints(kept)));
            let mapped: Vec<i64> = list.iter().map(|n| if swap { -n } else { n * 2 }).collect();
            let body = if swap { &negate } else { &twice };
            prop_assert_eq!(map.run(&[value.clone(), body.clone()]), Ok(ints(mapped)));
            let zipped: Vec<i64> = list.iter().zip(&other).map(|(a, b)| a - b).collect();
            let others = ints(other.iter().copied());
            prop_assert_eq!(zip.run(&[value.clone(), others, minus.clone()]), Ok(ints(zipped)));
            let folded = list.iter().fold(3, |a, b| a - b);
            prop_assert_eq!(reduce.run(&[Value::Int(3), value, minus.clone()]), Ok(Value::Int(folded)));
        }
    }
}
