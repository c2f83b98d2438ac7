//! The commands: one file each, and the list of them.

mod check;
mod completions;
mod docs;
mod explain;
mod fmt;
mod graph;
mod run;

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use crate::failure::{Failure, exit_code};
use crate::{Assembly, output};

/// Keeps a machine in the state that a program describes.
#[derive(Debug, Parser)]
#[command(
    name = "setpoint",
    version,
    disable_help_subcommand = false,
    max_term_width = 100
)]
struct Arguments {
    /// Print the licence and exit
    #[arg(long)]
    license: bool,

    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<run::Arguments>),
    Graph(graph::Arguments),
    Check(check::Arguments),
    Fmt(fmt::Arguments),
    Docs(docs::Arguments),
    Explain(explain::Arguments),
    Completions(completions::Arguments),
}

/// The command line's grammar, for completions and the reference.
fn grammar() -> clap::Command {
    Arguments::command()
}

/// Runs the command line and answers the exit code.
pub(crate) fn run(assembly: &Assembly, arguments: Vec<OsString>) -> u8 {
    match dispatch(assembly, arguments) {
        Ok(code) => code,
        Err(failure) => {
            let (message, code) = failure.parts();
            if let Some(message) = message {
                output::talk(&format!("error: {message}\n"));
            }
            code
        }
    }
}

fn dispatch(assembly: &Assembly, arguments: Vec<OsString>) -> Result<u8, Failure> {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    if arguments.license {
        output::print(LICENCE)?;
        return Ok(exit_code::DONE);
    }
    let Some(command) = arguments.command else {
        output::talk(&format!("{}\n", grammar().render_help().ansi()));
        return Ok(exit_code::USAGE);
    };
    match command {
        Command::Run(arguments) => run::run(assembly, &arguments),
        Command::Graph(arguments) => graph::run(assembly, &arguments),
        Command::Check(arguments) => check::run(assembly, &arguments),
        Command::Fmt(arguments) => fmt::run(&arguments),
        Command::Docs(arguments) => docs::run(assembly, &arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
    }
}

/// Help and version were asked for; everything else is a mistake on the command line.
fn usage(error: &clap::Error) -> Result<u8, Failure> {
    if error.use_stderr() {
        output::talk(&error.render().ansi().to_string());
        return Ok(exit_code::USAGE);
    }
    debug_assert!(matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    ));
    output::print(&error.render().to_string())?;
    Ok(exit_code::DONE)
}

const LICENCE: &str = "\
Setpoint is licensed under either of the Apache License, Version 2.0
(https://www.apache.org/licenses/LICENSE-2.0) or the MIT licence
(https://opensource.org/license/mit), at your option.
";
