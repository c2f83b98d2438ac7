//! The `setpoint` command line: assembly of everything, commands, and what they print.
//!
//! A program of its own with further kinds and functions links this library, adds them to an [`Assembly`] and hands it to
//! [`main`], like the ten lines of the `setpoint` binary do.
//!
//! - [`Assembly`] is what a program can use: kinds, functions, constants.
//! - `commands` has one file a command; `failure` is the only place that knows exit codes.
//! - `capabilities` are the real clock, files, network and facts that sources are given.
//! - Only this crate prints: standard output is what was asked for, standard error is what is said beside it.

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
mod compilation;
mod directory_loader;
mod evaluation;
mod failure;
mod input;
mod known_files;
mod later;
mod output;
mod pages;
mod prefix;
mod process;
mod program;
mod reload;
mod session;
mod signals;
mod view;

use std::ffi::OsString;
use std::process::ExitCode;

use setpoint_host::processes::Launcher;

pub use assembly::Assembly;
pub use capabilities::{LocalWorld, ProgramFiles, PublishedResponses, RealCapabilities, RealEffects};
pub use directory_loader::DirectoryLoader;
pub use failure::exit_code;
pub use pages::{PAGES, page};

/// Address space for the stack of the command's thread, in bytes.
const STACK: usize = 256 << 20;

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
    failure::report_panics();
    // Syntax may nest, and programs are compiled by recursion over it: a roomy stack costs only what is used of it.
    let work = move || commands::run(&session::Session::new(assembly), arguments);
    let thread = std::thread::Builder::new()
        .name("main".to_owned())
        .stack_size(STACK)
        .spawn(work);
    let answer = thread.map(std::thread::JoinHandle::join);
    match answer {
        Ok(Ok(code)) => ExitCode::from(code),
        Ok(Err(_)) => ExitCode::from(exit_code::BUG),
        Err(error) => {
            let failure = failure::Failure::io("start a thread", &error);
            ExitCode::from(failure.report(&output::Output::default()))
        }
    }
}
