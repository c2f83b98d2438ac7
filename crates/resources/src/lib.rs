//! The kinds of resources: one file or folder each, and the table of all.
//!
//! A kind is a struct of parameters with `#[derive(Resource)]`, and an implementation of `setpoint_engine::Resource` with
//! what it watches and how it compares and repairs. To add one: its file, its `mod` line and its line in the table.

#![forbid(unsafe_code)]

mod kinds;

pub use kinds::KINDS;
