//! Tests of the command line and of everything put together.
#![allow(
    clippy::disallowed_methods,
    reason = "tests read and write files and start processes"
)]

mod commands;
mod end_to_end;
mod error_pages;
mod function_examples;
mod reference;
