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
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Starts commands. One for the whole process; clones are one and the same.
#[derive(Debug, Clone)]
pub struct Processes {
    /// Our own `PATH`, whatever environment a command is given.
    search_path: OsString,
    launcher: Launcher,
    /// Made for the first command: most runs start none.
    starter: Arc<OnceLock<Starter>>,
    /// As many as commands may run at a time.
    turns: Arc<OnceLock<Arc<Semaphore>>>,
}

/// Descriptors that a command takes while it starts: both ends of its two pipes and of the connection to its launcher, and its process.
const DESCRIPTORS_OF_COMMAND: usize = 8;

/// Descriptors that commands leave to everything else.
const OTHER_DESCRIPTORS: usize = 64;

/// So many commands may run at a time, however few descriptors there are.
const FEWEST_COMMANDS: usize = 4;

/// How long a command waits for others to end. Then it is tried all the same: those that run on, and wait for it, would never end.
const PATIENCE: Duration = Duration::from_secs(10);

impl Processes {
    /// Looks programs up along `search_path`, which has the form of the variable `PATH`. Commands are started by the running
    /// program, which calls [`Launcher::main`].
    pub fn new(search_path: impl Into<OsString>) -> Self {
        Self {
            search_path: search_path.into(),
            launcher: Launcher::own_program(),
            starter: Arc::default(),
            turns: Arc::default(),
        }
    }

    /// Starts commands by another program that calls [`Launcher::main`].
    #[must_use]
    pub fn launched_by(mut self, launcher: Launcher) -> Self {
        (self.launcher, self.starter) = (launcher, Arc::default());
        self
    }

    /// A variable of our own environment.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<OsString> {
        std::env::var_os(name)
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

    /// Waits until there are descriptors for one more command, as far as others end in time.
    async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        let turns = self
            .turns
            .get_or_init(|| Arc::new(Semaphore::new(most_commands())));
        let turn = timeout(PATIENCE, turns.clone().acquire_owned()).await;
        turn.ok().and_then(Result::ok)
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

/// How many commands may run at a time, by the descriptors that this process may open.
fn most_commands() -> usize {
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let most = most.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
    let commands = most.saturating_sub(OTHER_DESCRIPTORS) / DESCRIPTORS_OF_COMMAND;
    commands.clamp(FEWEST_COMMANDS, Semaphore::MAX_PERMITS)
}
