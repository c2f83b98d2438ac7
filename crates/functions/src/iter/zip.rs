//! `iter.zip`: one call for each pair of elements.

use imbl::Vector;
use setpoint_value::{CallError, Func, Marks, ScopeArgument, ScopeBuilder, Shape, ShapeState, Type, Value};

use super::changes::{Known, Results, differing, function, list, result_type, unknown_list};

pub(super) struct Zip;

impl Shape for Zip {
    fn start(&self) -> Box<dyn ShapeState> {
        Box::new(Zipping::default())
    }
}

#[derive(Default)]
struct Zipping {
    inputs: [Vector<Value>; 2],
    length: usize,
    function: Option<Func>,
    element: Option<Type>,
    marks: Marks,
    /// A list or the function is not known; then no calls are wanted.
    unknown: bool,
    results: Results,
}

impl ShapeState for Zipping {
    fn update(&mut self, arguments: &[Value], builder: &mut dyn ScopeBuilder) -> Result<(), CallError> {
        let [first, second, body] = arguments else {
            return Err(CallError::fatal("two lists and a function are needed"));
        };
        self.marks = Marks::none();
        self.element = Some(result_type(body));
        let first = list(first, &mut self.marks)?;
        let second = list(second, &mut self.marks)?;
        let body = function(body, &mut self.marks)?;
        let (Known::Yes(first), Known::Yes(second), Known::Yes(body)) = (first, second, body) else {
            self.unknown = true;
            self.length = 0;
            self.function = None;
            self.results.truncate(0);
            builder.truncate(0);
            return Ok(());
        };
        self.unknown = false;
        let (first, second) = (first.items(), second.items());
        let length = first.len().min(second.len());
        let known = if self.function.as_ref() == Some(body) {
            self.length.min(length)
        } else {
            0
        };
        let mut call = |index: usize| {
            if let (Some(x), Some(y)) = (first.get(index), second.get(index)) {
                let arguments = [ScopeArgument::Value(x.clone()), ScopeArgument::Value(y.clone())];
                builder.call(index, body, &arguments);
            }
        };
        if known > 0 {
            // An element that differs in both lists is asked for twice, which changes nothing.
            differing(&self.inputs[0], first, |index| {
                if index < known {
                    call(index);
                }
            });
            differing(&self.inputs[1], second, |index| {
                if index < known {
                    call(index);
                }
            });
        }
        (known..length).for_each(&mut call);
        if length < self.length {
            builder.truncate(length);
        }
        self.inputs = [first.clone(), second.clone()];
        self.length = length;
        self.function = Some(body.clone());
        self.results.truncate(length);
        Ok(())
    }

    fn collect(&mut self, results: &dyn Fn(usize) -> Value, changed: &[usize]) -> Result<Value, CallError> {
        let element = self.element.clone().unwrap_or(Type::Dynamic);
        let value = if self.unknown {
            unknown_list(element, None)
        } else {
            self.results.collect(self.length, &element, results, changed)
        };
        Ok(value.with_marks(&self.marks))
    }
}
