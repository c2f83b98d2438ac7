//! Child processes: commands that run and end, commands that run on and speak in lines, and commands that are talked with.
//!
//! Every command is the leader of a session and a process group of its own: it has no terminal, and a signal reaches what a
//! shell has started. It inherits no descriptor but its three standard ones, reads nothing, and ends when we die; how
//! is told in `launcher` and `guardian`.
//!
//! We read its output through our own pipes until the process itself has been *reaped*; a descendant that lives on
//! and keeps a pipe open is not waited for, and what it writes later is lost. Signals are only sent while the
//! process is not reaped yet, so that neither its number nor its group's can belong to anybody else by then.
//!
//! The functions here need a tokio runtime with input, output and time, and use no thread while they wait.

mod command;
mod conversation;
mod group;
mod guardian;
mod launch;
mod launcher;
mod limits;
mod lines;
mod output;
mod preview;
mod program;
mod run;
mod signal;
mod starter;

pub use command::{Command, Environment, Exit, Finished, RunError, Stop};
pub use conversation::{Conversation, ConversationError};
pub use launcher::Launcher;
pub use limits::{Capability, Limit};
pub use lines::{LineEvent, Lines};
pub use output::Output;
pub use preview::Preview;
pub use program::ProgramError;
pub use signal::Signal;

use starter::Starter;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// Starts commands. One for the whole process; clones are one and the same.
#[derive(Debug, Clone)]
pub struct Processes {
    /// Our own `PATH`, whatever environment a command is given.
    search_path: OsString,
    launcher: Launcher,
    /// Made for the first command: most runs start none.
    starter: Arc<OnceLock<Starter>>,
}

impl Processes {
    /// Looks programs up along `search_path`, which has the form of the variable `PATH`. Commands are started by the running
    /// program, which calls [`Launcher::main`].
    pub fn new(search_path: impl Into<OsString>) -> Self {
        Self {
            search_path: search_path.into(),
            launcher: Launcher::own_program(),
            starter: Arc::default(),
        }
    }

    /// Starts commands by another program that calls [`Launcher::main`].
    #[must_use]
    pub fn launched_by(mut self, launcher: Launcher) -> Self {
        (self.launcher, self.starter) = (launcher, Arc::default());
        self
    }

    /// Where a program is: a name without a slash is looked up in our `PATH`, anything else is taken as it is,
    /// relative to `directory` if one is given. Reads directories.
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
        run::run(command, stop, self).await
    }

    /// Starts a command that is to run on, and reads its lines.
    pub async fn start_lines(&self, command: &Command) -> Result<Lines, RunError> {
        Lines::start(command, self).await
    }

    /// Starts a command that is to run on, and talks with it in frames over its standard output, which goes both ways.
    pub async fn start_conversation(&self, command: &Command) -> Result<Conversation, RunError> {
        Conversation::start(command, self).await
    }

    fn starter(&self) -> io::Result<&Starter> {
        if let Some(starter) = self.starter.get() {
            return Ok(starter);
        }
        let starter = Starter::new(self.launcher.clone())?;
        // Another one may have been faster; then ours ends.
        Ok(self.starter.get_or_init(|| starter))
    }
}
