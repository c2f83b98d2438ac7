//! The `setpoint` command line: assembly of everything, commands, and what they print.
//!
//! A program of its own with further kinds and functions links this library, adds them to an [`Assembly`] and hands it to
//! [`main`], like the ten lines of the `setpoint` binary do.
//!
//! - [`Assembly`] is what a program can use: kinds, functions, constants.
//! - `commands` has one file a command; `failure` is the only place that knows exit codes.
//! - `capabilities` are the real clock, files, network and facts that sources are given.
//! - Only this crate prints: standard output is what was asked for, standard error is talk.

#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "this crate is where the environment, the clock and the files are read"
)]

mod arguments;
mod assembly;
mod capabilities;
pub mod codes;
mod commands;
mod directory_loader;
mod evaluation;
mod failure;
mod input;
mod output;
mod pages;
mod session;

use std::ffi::OsString;
use std::process::ExitCode;

pub use assembly::Assembly;
pub use directory_loader::DirectoryLoader;
pub use failure::exit_code;
pub use pages::{PAGES, page};

/// Runs the command line with these arguments, the program's name first, and answers its exit code.
///
/// `#[must_use]` because an exit code that is dropped is a failure that nobody sees.
#[must_use]
pub fn main(assembly: Assembly, arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    failure::report_panics();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        commands::run(&assembly, arguments)
    }));
    ExitCode::from(answer.unwrap_or(exit_code::BUG))
}
