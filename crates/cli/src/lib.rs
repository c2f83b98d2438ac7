//! The `setpoint` command line: commands, their arguments, and what they print.
//!
//! A program of its own with further kinds and functions links this library, adds them to an [`Assembly`] and hands it to
//! [`main`], like the ten lines of the `setpoint` binary do.
//!
//! - [`Assembly`] is what a program can use: kinds, functions, constants.
//! - `commands` has one file a command; [`exit_code`] is the only place that defines exit codes.
//! - Only this crate prints: standard output is what was asked for, standard error is what is said beside it.

#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "this crate is where the environment, the clock and the files are read"
)]

mod arguments;
mod attachment_arguments;
mod commands;
mod desired;
pub mod exit_code;
mod first_program;
mod headings;
mod later;
mod output;
mod pages;
mod prefix_arguments;
mod process;
mod rights;
mod session;
mod store_arguments;
mod view;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use setpoint_host::processes::Launcher;

pub use pages::{PAGES, page};
pub use setpoint_programs::Assembly;

/// Runs the command line with these arguments, the program's name first, and answers its exit code.
///
/// `#[must_use]` because an exit code that is dropped is a failure that nobody sees.
#[must_use]
pub fn main(assembly: Assembly, arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    // First, while there is one thread: the commands of a program are started by it.
    if let Some(code) = Launcher::main(arguments.iter().cloned()) {
        return code;
    }
    process::use_huge_pages(false);
    process::report_panics();
    let work = AssertUnwindSafe(|| commands::run(&session::Session::new(assembly), arguments));
    // The panic was reported; whatever it left half done ends with the process.
    ExitCode::from(catch_unwind(work).unwrap_or(exit_code::BUG))
}
