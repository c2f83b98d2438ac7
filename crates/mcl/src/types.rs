//! Type inference: every expression that is reachable from a statement with output gets one closed type.
//!
//! Equations are solved as they are collected, in the order of the rules typing.5 and typing.6, by unification; errors are kept apart by
//! phase (raised while collecting, by solving, by what stays open) because an error of an earlier phase hides the later
//! ones. What cannot be decided when it is met (which container a lookup is in, which alternative of a library function is
//! meant, whether a name is one or many) is *deferred* and decided when solving has found more; this accepts more than one
//! pass would, and rejects the same.
//!
//! What comes of it without errors is a `TypedProgram`, from which lowering follows.
//!
//! Functions and classes are polymorphic by instantiation: each call of a named function and each include is an
//! [`Instance`] with types of its own.

use setpoint_diagnostics::Diagnostics;
use setpoint_graph::Library;

use crate::hir::Hir;

mod codes;
mod completion;
mod conflicts;
mod deferred;
mod expressions;
mod findings;
mod infer;
mod instances;
mod messages;
mod order;
mod origins;
mod panics;
mod places;
mod program;
mod resources;
mod schemes;
mod sharing;
mod signatures;
mod solver;
mod syntactic;
mod unused;

pub(crate) use codes::{CODES, TOO_DEEP};
pub(crate) use infer::Inference;
pub use instances::{Instance, InstanceId, Typed};
pub(crate) use program::{Argument, Form, TypedProgram, missing};

/// Infers the types of a program. Errors go to the sink, those that count first in front.
pub fn infer(hir: &Hir, library: &Library, diagnostics: &mut Diagnostics) -> Typed {
    let mut inference = Inference::new(hir, library);
    inference.infer_program(diagnostics, false);
    inference.into_typed()
}
