//! Plans: what a run would do to a machine, as data and as text.
//!
//! ```text
//!  events of a run without repairs ──▶ Builder ──▶ Plan ──▶ screen, Markdown, JSON
//! ```
//!
//! The engine decides what a run would do. This crate makes rows of its events, and prints them.

#![forbid(unsafe_code)]

mod builder;
mod graphs;
mod markdown;
mod model;
mod saved;
mod screen;
mod words;

pub use builder::{Builder, Known, compare};
pub use graphs::compare_graphs;
pub use markdown::markdown;
pub use model::{
    Action, FORMAT, Field, Host, Place, Plan, PlanOptions, Program, ProgramFile, Row, Running, SOME_NAME,
    Summary, VERSION, schema,
};
pub use saved::{Changes, Saved, changes, permits, read, signature_line};
pub use screen::{Diffs, Screen, screen};
pub use words::{diff_lines, shortened_hashes};
