//! `iter.reduce`: a chain of calls, each with the result of the one before.

use imbl::Vector;
use setpoint_value::{CallError, Func, Marks, ScopeArgument, ScopeBuilder, Shape, ShapeState, Value};

use super::changes::{Known, differing, function, list, result_type};

pub(super) struct Reduce;

impl Shape for Reduce {
    fn start(&self) -> Box<dyn ShapeState> {
        Box::new(Reducing::default())
    }
}

#[derive(Default)]
struct Reducing {
    /// What is folded: the initial value, if there is one, and the elements.
    inputs: Vector<Value>,
    function: Option<Func>,
    marks: Marks,
    /// The answer where there is nothing to call.
    answer: Option<Value>,
    calls: usize,
}

impl ShapeState for Reducing {
    fn update(&mut self, arguments: &[Value], builder: &mut dyn ScopeBuilder) -> Result<(), CallError> {
        let (initial, inputs, body) = match arguments {
            [inputs, body] => (None, inputs, body),
            [initial, inputs, body] => (Some(initial), inputs, body),
            _ => return Err(CallError::fatal("a list and a function are needed")),
        };
        self.marks = Marks::none();
        let result = result_type(body);
        let inputs = list(inputs, &mut self.marks)?;
        let body = function(body, &mut self.marks)?;
        let (Known::Yes(inputs), Known::Yes(body)) = (inputs, body) else {
            self.function = None;
            self.inputs = Vector::new();
            self.calls = 0;
            self.answer = Some(Value::unknown(result));
            builder.truncate(0);
            return Ok(());
        };
        let mut items = inputs.items().clone();
        if let Some(initial) = initial {
            items.push_front(initial.clone());
        }
        let Some(first) = items.front() else {
            self.function = None;
            self.inputs = Vector::new();
            self.calls = 0;
            builder.truncate(0);
            return Err(CallError::fatal(
                "cannot reduce an empty list without an initial value",
            ));
        };
        let calls = items.len() - 1;
        self.answer = (calls == 0).then(|| first.clone());
        if calls < self.calls {
            builder.truncate(calls);
        }
        let same = self.function.as_ref() == Some(body);
        // Element 0 and 1 belong to call 0, each further one to the call before its number.
        let mut call = |index: usize| {
            let slot = index.saturating_sub(1);
            let left = match slot {
                0 => items.front().cloned().map(ScopeArgument::Value),
                _ => Some(ScopeArgument::Result(slot - 1)),
            };
            if let (Some(left), Some(right)) = (left, items.get(slot + 1)) {
                builder.call(slot, body, &[left, ScopeArgument::Value(right.clone())]);
            }
        };
        let known = if same {
            self.inputs.len().min(items.len())
        } else {
            1
        };
        if same {
            differing(&self.inputs, &items, &mut call);
        }
        (known.max(1)..items.len()).for_each(&mut call);
        self.inputs = items.clone();
        self.calls = calls;
        self.function = Some(body.clone());
        Ok(())
    }

    fn collect(&mut self, results: &dyn Fn(usize) -> Value, _: &[usize]) -> Result<Value, CallError> {
        let value = match (&self.answer, self.calls.checked_sub(1)) {
            (Some(answer), _) => answer.clone(),
            (None, Some(last)) => results(last),
            (None, None) => return Err(CallError::fatal("there is nothing to reduce")),
        };
        Ok(value.with_marks(&self.marks))
    }
}
