//! The `mcl` language: text to program.
//!
//! ```text
//! text ─ syntax ─▶ Ast ─ scope ─▶ Hir ─ types ─▶ TypedProgram ─ lower ─▶ flow::Program
//!            └──── format: Ast and comments to text
//! ```
//!
//! [`compile()`] is the whole way; [`analysis`] is the same way for those who want to know what was found on it, also of half-written
//! texts. Every stage gives its best result and reports beside it; the next one runs only when none of
//! what was reported is an error, because compatibility is judged by the first stage that rejects. The crate reads files
//! through a [`Loader`](setpoint_diagnostics::Loader) and knows functions and kinds only from the
//! [`Library`](setpoint_graph::Library) that it is given.

#![forbid(unsafe_code)]

pub mod analysis;
pub mod format;
pub mod hir;
pub mod lint;
pub mod scope;
pub mod stage;
pub mod syntax;
pub mod types;

mod adapt;
mod compile;
mod language;
mod lower;
mod stack;

pub use compile::{CompileOptions, Compiled, compile};
pub use language::{Mcl, NO_VALUE, writable_parameters};
pub use scope::{Entry, Metadata, RemoteImport};

/// Every code that this language raises, stage by stage.
pub fn codes() -> impl Iterator<Item = &'static setpoint_diagnostics::CodeInfo> {
    [
        syntax::CODES,
        scope::CODES,
        types::CODES,
        language::CODES,
        lint::CODES,
    ]
    .into_iter()
    .flatten()
    .copied()
}
