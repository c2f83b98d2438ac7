//! The incremental evaluator: a typed dataflow program in, desired graphs out, one for each consistent change.
//!
//! - [`Program`] is what a language is lowered to: templates of nodes that can be instantiated any number of times.
//! - [`Evaluator`] keeps the instances: nodes in an arena, ordered by height; a change recomputes what depends on it and stops
//!   where a value stays the same; branches, loops and calls are scopes that come and go.
//! - [`EvaluationProblem`] lists what can go wrong, and the program's [`Language`] gives each its code.
//!
//! Nothing here does I/O or knows a clock: sources are opened through the capabilities that the evaluator is given, and a
//! step happens when the owner says which of them have something new.

#![forbid(unsafe_code)]

mod evaluator;
mod expansion;
mod exports;
mod language;
mod program;

pub use evaluator::{Evaluator, Pending, Recomputed, SourceId, Step, Stop};
pub use expansion::Expansion;
pub use exports::EXPORTS;
pub use language::{EvaluationProblem, Language};
pub use program::{Block, Operation, PossibleResource, Program, Slot, Template, TemplateId, TemplateNode};
