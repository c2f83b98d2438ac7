//! The model language (`.cf`): entities, the relations between them, and how abstract ones are refined into concrete ones.
//!
//! The way of a model: [`project`] finds its files, [`syntax`] makes a tree of each, [`resolve`] turns definitions and bodies of all into one
//! [`hir::Model`], which editors ask through [`analysis`], [`execute`] runs that as a dataflow of [`datum::Datum`]s with the [`functions`] that it calls, and [`export`] makes a
//! desired graph of the instances whose entities are bound to a kind.

#![forbid(unsafe_code)]

mod advice;
pub mod analysis;
pub mod compile;
pub mod datum;
pub mod errors;
pub mod execute;
pub mod export;
pub mod format;
pub mod functions;
pub mod hir;
pub mod json;
pub mod language;
pub mod lint;
pub mod ports;
pub mod project;
pub mod resolve;
pub mod stage;
pub mod syntax;

/// Every code that this language raises, stage by stage.
pub fn codes() -> impl Iterator<Item = &'static setpoint_diagnostics::CodeInfo> {
    [
        syntax::CODES,
        project::codes::CODES,
        resolve::codes::CODES,
        functions::codes::CODES,
        execute::codes::CODES,
        errors::CODES,
        export::codes::CODES,
        lint::codes::CODES,
    ]
    .into_iter()
    .flatten()
    .copied()
}
