//! Child processes: commands that run and end, and commands that run on and speak in lines.
//!
//! Every command is the leader of a process group of its own, so that a signal reaches what a shell has started.
//! We read its output through our own pipes until the process itself has been *reaped*; a descendant that lives on
//! and keeps a pipe open is not waited for, and what it writes later is lost. Signals are only sent while the
//! process is not reaped yet, so that neither its number nor its group's can belong to anybody else by then.
//!
//! The functions here need a tokio runtime with input, output and time, and use no thread while they wait.

mod command;
mod group;
mod lines;
mod program;
mod run;
mod signal;

pub use command::{Command, Environment, Exit, Finished, Output, RunError, Stop, Stream};
pub use lines::{LineEvent, Lines};
pub use program::ProgramError;
pub use signal::{Signal, UnknownSignal};

use std::ffi::OsString;
use std::path::PathBuf;

/// Starts commands. One for the whole process.
#[derive(Debug, Clone)]
pub struct Processes {
    /// Our own `PATH`, whatever environment a command is given.
    search_path: OsString,
}

impl Processes {
    /// Looks programs up along `search_path`, which has the form of the variable `PATH`.
    pub fn new(search_path: impl Into<OsString>) -> Self {
        Self {
            search_path: search_path.into(),
        }
    }

    /// Where a program is: a name without a slash is looked up in our `PATH`, anything else is taken as it is,
    /// relative to `directory` if one is given.
    pub fn find(
        &self,
        program: &std::ffi::OsStr,
        directory: Option<&std::path::Path>,
    ) -> Result<PathBuf, ProgramError> {
        program::find(program, directory, &self.search_path)
    }

    /// Runs a command to its end and collects what it wrote.
    ///
    /// Dropping the future kills the command's process group.
    pub async fn run(&self, command: &Command, stop: &Stop) -> Result<Finished, RunError> {
        run::run(command, stop, &self.search_path).await
    }

    /// Starts a command that is to run on, and reads its lines.
    pub fn start_lines(&self, command: &Command) -> Result<Lines, RunError> {
        Lines::start(command, &self.search_path)
    }
}
