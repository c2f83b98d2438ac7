//! `setpoint setup firstboot`: the unit that runs scripts at the first start of a machine.

use clap::Args;
use setpoint_host::files::{AbsolutePath, Entry};
use setpoint_programs::failure::Failure;
use setpoint_programs::report::Importance;

use super::unit::{Actions, Binary, Unit};
use super::unit_words::{argument, program};
use crate::commands::firstboot::{Places, make_directory};
use crate::exit_code;
use crate::output::Output;

/// The unit as it is shipped; only the command line is another.
const SHIPPED: &str = include_str!("../../../../../packaging/setpoint-firstboot.service");

/// Write the unit that runs scripts at the first start of a machine, enable it, start it
///
/// What is said of directories is handed on to `setpoint firstboot start`.
#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    #[command(flatten)]
    binary: Binary,

    /// Make the directories that are not there yet
    #[arg(long)]
    mkdir: bool,

    #[command(flatten)]
    places: Places,

    #[command(flatten)]
    actions: Actions,
}

pub(super) fn run(output: &Output, arguments: &Arguments) -> Result<u8, Failure> {
    let binary = arguments.binary.path()?;
    let given = arguments.places.given()?;
    let words = given.iter().map(|word| argument(word));
    let start: Vec<String> = [program(binary), "firstboot".to_owned(), "start".to_owned()]
        .into_iter()
        .chain(words)
        .collect();
    let unit = Unit::of(
        "setpoint-firstboot",
        "setpoint setup firstboot",
        SHIPPED,
        &[("ExecStart", start.join(" "))],
    );
    if !arguments.mkdir {
        unit.bring_about(&arguments.actions, &arguments.binary, output)?;
        return Ok(exit_code::DONE);
    }
    let directories = arguments.places.directories()?;
    if arguments.actions.noop() {
        unit.bring_about(&arguments.actions, &arguments.binary, output)?;
    }
    for directory in &directories {
        make(directory, arguments.actions.noop(), output)?;
    }
    if arguments.actions.is_any() && !arguments.actions.noop() {
        unit.bring_about(&arguments.actions, &arguments.binary, output)?;
    }
    Ok(exit_code::DONE)
}

/// Makes a directory for its owner alone, if it is not there.
fn make(directory: &AbsolutePath, noop: bool, output: &Output) -> Result<(), Failure> {
    let failed = |error| Failure::wrong(format!("failed to make the directory {directory}")).because(error);
    let found = match Entry::at(directory).and_then(|entry| entry.stat_following()) {
        Err(error) if error.is_not_found() => None,
        found => found.map_err(failed)?,
    };
    match found {
        Some(found) if found.is_directory() => return Ok(()),
        Some(_) => {
            return Err(Failure::wrong(format!(
                "{directory} is in the way of a directory: it is none"
            )));
        }
        None if noop => {}
        None => make_directory(directory).map_err(failed)?,
    }
    let done = if noop { "would make" } else { "made" };
    output.say(Importance::Notice, format!("{done} {directory}"));
    Ok(())
}
