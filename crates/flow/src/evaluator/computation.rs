//! What is computed from values alone: containers, fields and pure functions.

use std::fmt::{self, Write};

use setpoint_value::{CallError, FunctionSpec, Marks, Type, Value, call, check_size};

use super::arena::Kind;
use super::state::NodeState;
use super::{Evaluator, Unasked};
use crate::{Operation, TemplateNode};

/// The value of an operation for the values of its operands.
fn compute(operation: &Operation, ty: &Type, values: &[Value], unasked: Unasked) -> Result<Value, CallError> {
    match operation {
        Operation::Constant(value) => Ok(value.clone()),
        Operation::List(_) => {
            let element = match ty {
                Type::List(element) => (**element).clone(),
                _ => values.first().map_or(Type::Dynamic, Value::ty),
            };
            sized(Value::list(element, values.iter().cloned()))
        }
        Operation::Map(_) => sized(map(ty, values)),
        Operation::Struct(_) => match ty.as_struct() {
            Some(fields) if fields.fields.len() == values.len() => {
                sized(Value::structure(ty.clone(), values.to_vec()))
            }
            _ => Err(CallError::fatal("a struct does not have the fields of its type")),
        },
        Operation::Field { index, .. } => field(ty, values.first(), *index),
        Operation::Call { function, .. } => {
            if unasked.holds_for(function) {
                return Ok(unknown_result(function, values, ty));
            }
            call::call_typed(function, values, ty).map_err(|error| redacted(error, values))
        }
        Operation::Closure(_)
        | Operation::Apply { .. }
        | Operation::Instance { .. }
        | Operation::Exported { .. }
        | Operation::If { .. }
        | Operation::Except { .. }
        | Operation::IfStatement { .. }
        | Operation::For { .. }
        | Operation::ForKv { .. }
        | Operation::Resource(_)
        | Operation::Collect { .. }
        | Operation::Edge(_)
        | Operation::Panic { .. } => Err(CallError::fatal("this is not computed from values alone")),
    }
}

/// A container, unless it has more parts than a value may have.
fn sized(container: Value) -> Result<Value, CallError> {
    check_size(&container)?;
    Ok(container)
}

/// Keys of a map have to be known for it to be known which of them are the same.
fn map(ty: &Type, values: &[Value]) -> Value {
    if values.iter().step_by(2).any(|key| !key.is_wholly_known()) {
        return Value::unknown(ty.clone());
    }
    let (key, value) = match ty {
        Type::Map(of) => (of.0.clone(), of.1.clone()),
        _ => (Type::Dynamic, Type::Dynamic),
    };
    let entries = values
        .chunks_exact(2)
        .map(|entry| (entry[0].clone(), entry[1].clone()));
    Value::map(key, value, entries)
}

fn field(ty: &Type, of: Option<&Value>, index: u32) -> Result<Value, CallError> {
    let absent = Value::Null(Type::Dynamic);
    let (plain, marks) = of.unwrap_or(&absent).unmark();
    match plain {
        Value::Struct(fields) => match fields.fields().get(index as usize) {
            Some(value) => Ok(value.clone().with_marks(&marks)),
            None => Err(CallError::fatal("a struct has no such field")),
        },
        Value::Unknown(_) => Ok(Value::unknown(ty.clone()).with_marks(&marks)),
        _ => Err(CallError::fatal(
            "a field is taken of something that is not a struct",
        )),
    }
}

/// What stands for the result of a function that is not called because it is not known what it would give.
pub(super) fn unknown_result(function: &FunctionSpec, arguments: &[Value], ty: &Type) -> Value {
    let mut marks = Marks::none();
    for (index, argument) in arguments.iter().enumerate() {
        if !function.flags(index).allow_marked {
            let _ = argument.unmark_deep(&mut marks);
        }
    }
    Value::unknown(ty.clone()).with_marks(&marks)
}

/// An error without its text when an argument is sensitive: the text may show a part of it.
pub(super) fn redacted(error: CallError, arguments: &[Value]) -> CallError {
    if !arguments.iter().any(Value::is_sensitive) {
        return error;
    }
    const HIDDEN: &str = "the reason is not shown because an argument is sensitive";
    match error {
        CallError::Argument(mut error) => {
            error.message = HIDDEN.to_owned();
            CallError::Argument(error)
        }
        CallError::Refused(mut error) => {
            error.message = HIDDEN.to_owned();
            CallError::Refused(error)
        }
        CallError::Failed { catchable, .. } => CallError::Failed {
            message: HIDDEN.to_owned(),
            catchable,
        },
        CallError::Panicked { function, .. } => CallError::Panicked {
            function,
            message: HIDDEN.to_owned(),
        },
    }
}

/// Whether the first argument of `panic` does not ask for one: false, empty, or not known yet.
pub(super) fn is_calm(condition: &Value) -> bool {
    match condition.unmarked() {
        Value::Bool(condition) => !condition,
        Value::Str(text) => text.is_empty(),
        Value::Unknown(_) => true,
        _ => false,
    }
}

/// Runs a piece of somebody else's code and turns a panic into an error.
pub(super) fn guarded<T>(
    what: &dyn std::fmt::Display,
    run: impl FnOnce() -> Result<T, CallError>,
) -> Result<T, CallError> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "panic".to_owned());
        Err(CallError::Panicked {
            function: what.to_string(),
            message,
        })
    })
}

/// The longest text of a value in a line of the log, in bytes.
const LONGEST_IN_LOG: usize = 200;

/// A value for a line of the log, cut where it is long.
fn brief(value: &Value) -> String {
    struct Brief(String);
    impl fmt::Write for Brief {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            let room = LONGEST_IN_LOG.saturating_sub(self.0.len());
            let end = text.floor_char_boundary(room);
            self.0.push_str(&text[..end]);
            if end < text.len() { Err(fmt::Error) } else { Ok(()) }
        }
    }
    let mut brief = Brief(String::new());
    if write!(brief, "{value}").is_err() {
        brief.0.push('…');
    }
    brief.0
}

impl Evaluator {
    /// The value of an operation for the values of its operands.
    pub(super) fn value_of(&self, node: &TemplateNode, values: &[Value]) -> Result<Value, CallError> {
        let given = compute(&node.operation, &node.ty, values, self.unasked);
        if let Operation::Call { function, .. } = &node.operation {
            self.log_call(function, values, Some(given.as_ref()));
        }
        given
    }

    /// Tells who searches for a mistake what a call has given, if it has given anything.
    pub(super) fn log_call(
        &self,
        function: &FunctionSpec,
        arguments: &[Value],
        given: Option<Result<&Value, &CallError>>,
    ) {
        let log = self.capabilities.as_ref().and_then(|machine| machine.log());
        let Some(log) = log.filter(|log| log.wants(function.qualified_name())) else {
            return;
        };
        let is_hidden = given.is_some_and(|given| given.is_ok_and(Value::is_sensitive));
        // What is hidden from here on is in the arguments of who hides it.
        let arguments: Vec<String> = match is_hidden {
            true => vec!["(sensitive)".to_owned()],
            false => arguments.iter().map(brief).collect(),
        };
        let given = match given {
            Some(Ok(value)) => format!("is {}", brief(value)),
            Some(Err(error)) => format!("failed: {error}"),
            None => "has no value yet".to_owned(),
        };
        log.debug(format!("{function}({}) {given}", arguments.join(", ")));
    }

    pub(super) fn compute_plain(&mut self, index: u32) {
        let state = match self.gather(index) {
            Err(state) => state,
            Ok(values) => {
                let node = Self::node_of(&self.program, self.arena.site[index as usize]);
                match self.value_of(node, &values) {
                    Ok(value) => NodeState::Value(value),
                    Err(error) => self.fail(index, error),
                }
            }
        };
        self.set_state(index, state);
    }

    /// A call of a function value that stands for itself.
    pub(super) fn compute_direct(&mut self, index: u32) {
        let state = match self.gather(index) {
            Err(state) => state,
            Ok(values) => self.call_direct(index, &values),
        };
        self.set_state(index, state);
    }

    fn call_direct(&mut self, index: u32, values: &[Value]) -> NodeState {
        let Some((Value::Func(function), arguments)) = values.split_first() else {
            return self.fail(index, CallError::fatal("what is called is not a function"));
        };
        let mut marks = Marks::none();
        let unmarked: Vec<Value> = arguments.iter().map(|a| a.unmark_deep(&mut marks)).collect();
        if let (Type::Func(ty), true) = (function.ty(), unmarked.iter().any(Value::is_unknown)) {
            return NodeState::Value(Value::unknown(ty.result.clone()).with_marks(&marks));
        }
        let called = guarded(&"a function value", || function.implementation().call(&unmarked));
        match called {
            Ok(value) => NodeState::Value(value.with_marks(&marks)),
            Err(error) => self.fail(index, redacted(error, arguments)),
        }
    }

    /// An input of this node is gone, which only a mistake in a program can bring about.
    pub(super) fn compute_broken(&mut self, index: u32) {
        debug_assert!(matches!(self.arena.kind[index as usize], Kind::Broken));
        let error = CallError::fatal("this value belongs to a part of the program that is gone");
        let state = self.fail(index, error);
        self.set_state(index, state);
    }
}
