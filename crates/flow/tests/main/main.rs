//! The evaluator, through its public face.
//!
//! `tests/rules.tsv` says which of these tests show rules of the language that no case can show.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod background;
mod chains;
mod collecting;
mod debug_output;
mod failures;
mod incremental;
mod library;
mod oracle;
mod plain;
mod program_builder;
mod random_programs;
mod scopes;
mod shapes;
mod sharing;
mod unknown_and_marked;
mod world;
