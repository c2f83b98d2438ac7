//! `iter.map`: one call an element, and the list of their results.

use imbl::Vector;
use setpoint_value::{CallError, Func, Marks, ScopeArgument, ScopeBuilder, Shape, ShapeState, Type, Value};

use super::changes::{Known, Results, differing, function, list, result_type, unknown_list};

pub(super) struct MapShape;

impl Shape for MapShape {
    fn start(&self) -> Box<dyn ShapeState> {
        Box::new(Mapping::default())
    }
}

#[derive(Default)]
struct Mapping {
    inputs: Vector<Value>,
    function: Option<Func>,
    element: Option<Type>,
    marks: Marks,
    /// The list or the function is not known.
    unknown: bool,
    results: Results,
}

impl ShapeState for Mapping {
    fn update(&mut self, arguments: &[Value], builder: &mut dyn ScopeBuilder) -> Result<(), CallError> {
        let [inputs, body] = arguments else {
            return Err(CallError::fatal("a list and a function are needed"));
        };
        self.marks = Marks::none();
        self.element = Some(result_type(body));
        let inputs = list(inputs, &mut self.marks)?;
        let body = function(body, &mut self.marks)?;
        let (Known::Yes(inputs), Known::Yes(body)) = (inputs, body) else {
            self.unknown = true;
            self.function = None;
            self.inputs = Vector::new();
            self.results.truncate(0);
            builder.truncate(0);
            return Ok(());
        };
        self.unknown = false;
        let items = inputs.items();
        let known = if self.function.as_ref() == Some(body) {
            self.inputs.len().min(items.len())
        } else {
            0
        };
        let mut call = |index: usize| {
            if let Some(item) = items.get(index) {
                builder.call(index, body, &[ScopeArgument::Value(item.clone())]);
            }
        };
        if known > 0 {
            differing(&self.inputs, items, &mut call);
        }
        (known..items.len()).for_each(&mut call);
        if items.len() < self.inputs.len() {
            builder.truncate(items.len());
        }
        self.inputs = items.clone();
        self.function = Some(body.clone());
        self.results.truncate(items.len());
        Ok(())
    }

    fn collect(&mut self, results: &dyn Fn(usize) -> Value, changed: &[usize]) -> Result<Value, CallError> {
        let element = self.element.clone().unwrap_or(Type::Dynamic);
        let value = if self.unknown {
            unknown_list(element, None)
        } else {
            self.results
                .collect(self.inputs.len(), &element, results, changed)
        };
        Ok(value.with_marks(&self.marks))
    }
}
