//! What editors ask about models: of what differs from mcl, one file a question.

mod completion;
mod hover;
mod rename;
mod signature;
mod structure;
mod tokens;

use setpoint_cf::analysis::Analysis;

pub(super) use completion::completion;
pub(super) use hover::hover;
pub(super) use rename::{prepare, rename};
pub(super) use signature::help;
pub(super) use structure::{folding, selections};
pub(super) use tokens::tokens;

/// A place in a model.
type Place<'a> = super::Place<'a, Analysis>;
