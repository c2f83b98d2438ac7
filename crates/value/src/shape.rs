//! Shapes: functions that build scoped sub-graphs from function values (`iter.map` and its kin).
//!
//! A shape never evaluates anything itself. It tells a [`ScopeBuilder`] which calls it wants, one a *slot*, and makes
//! its result from theirs. The evaluator keeps each call alive in a scope of its own, feeds it new arguments and runs
//! only what they change; so does the shape, which is told which slots have a new result.

use crate::{CallError, Func, Value};

/// A function that builds scopes.
pub trait Shape: Send + Sync {
    /// State for one call site.
    fn start(&self) -> Box<dyn ShapeState>;
}

/// The state of a shape at one call site.
pub trait ShapeState: Send {
    /// The arguments have changed (or are there for the first time): asks for the calls that are needed now, and drops
    /// those that are not.
    ///
    /// # Errors
    /// When the arguments cannot be used.
    fn update(&mut self, arguments: &[Value], builder: &mut dyn ScopeBuilder) -> Result<(), CallError>;

    /// Makes the result. Called when all slots have a value; `changed` are the slots whose result is another one than
    /// at the last call (all, the first time, and all after [`ShapeState::update`] if the shape cannot tell).
    ///
    /// # Errors
    /// When no result can be made of these.
    fn collect(&mut self, results: &dyn Fn(usize) -> Value, changed: &[usize]) -> Result<Value, CallError>;
}

/// What a shape asks of the evaluator.
pub trait ScopeBuilder {
    /// The call in `slot` shall be `function(arguments)`. An existing call of the identical function stays and gets the new
    /// arguments; otherwise it is built anew.
    fn call(&mut self, slot: usize, function: &Func, arguments: &[ScopeArgument]);

    /// Drops the calls of all slots from `first` on.
    fn truncate(&mut self, first: usize);
}

/// An argument of a scoped call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScopeArgument {
    /// This value.
    Value(Value),
    /// The result of the call in an earlier slot (so a fold is a chain of slots).
    Result(usize),
}
