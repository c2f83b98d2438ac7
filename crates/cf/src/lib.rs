//! The model language (`.cf`): entities, the relations between them, and how abstract ones are refined into concrete ones.
//!
//! The way of a model: [`project`] finds its files, [`syntax`] makes a tree of each, [`resolve`] turns definitions and bodies of all into one
//! [`hir::Model`], which editors ask through [`analysis`], [`execute`] runs that as a dataflow of [`datum::Datum`]s with the [`functions`] that it calls, and [`export`] makes a
//! desired graph of the instances whose entities are bound to a kind. Each of these stages is a
//! crate; this crate combines them ([`compile`]), and users of the language need no other.

#![forbid(unsafe_code)]

pub mod analysis;
pub mod compile;
pub mod errors;
pub mod json;
pub mod lint;
pub mod ports;

pub use setpoint_cf_execute::{execute, export};
pub use setpoint_cf_functions as functions;
pub use setpoint_cf_names::{datum, hir, ids, kinds, plugins, project, resolve, types};
pub use setpoint_cf_syntax::{self as syntax, format};

/// Every code that this language raises, stage by stage.
pub fn codes() -> impl Iterator<Item = &'static setpoint_diagnostics::CodeInfo> {
    [
        syntax::CODES,
        project::codes::CODES,
        resolve::codes::CODES,
        functions::codes::CODES,
        execute::codes::CODES,
        export::codes::CODES,
        lint::codes::CODES,
    ]
    .into_iter()
    .flatten()
    .copied()
}
