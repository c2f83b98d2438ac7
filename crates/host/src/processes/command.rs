//! What to run, and what came of it.

use super::limits::{Capability, Limit};
use super::output::Output;
use super::{ProgramError, Signal};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How much is kept of what a command writes.
const MOST_OUTPUT: usize = 1 << 20;

/// The environment of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Environment {
    /// Ours; with our `PATH` as we look programs up along it.
    Inherited,
    /// These variables and no others.
    Exactly(BTreeMap<OsString, OsString>),
}

/// A command to run. Standard input is the null device.
#[derive(Clone, PartialEq, Eq)]
pub struct Command {
    pub(super) program: OsString,
    pub(super) arguments: Vec<OsString>,
    pub(super) directory: Option<PathBuf>,
    pub(super) environment: Environment,
    pub(super) user: Option<u32>,
    pub(super) group: Option<u32>,
    pub(super) groups: Vec<u32>,
    pub(super) limits: BTreeMap<Limit, u64>,
    pub(super) capabilities: Option<Vec<Capability>>,
    pub(super) most_output: usize,
}

impl Command {
    /// A program with arguments, in our environment and working directory, with our credentials.
    pub fn new<A: Into<OsString>>(
        program: impl Into<OsString>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        Self {
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            directory: None,
            environment: Environment::Inherited,
            user: None,
            group: None,
            groups: Vec::new(),
            limits: BTreeMap::new(),
            capabilities: None,
            most_output: MOST_OUTPUT,
        }
    }

    /// A text for a shell: `shell -c text`.
    pub fn shell(shell: impl Into<OsString>, text: impl Into<OsString>) -> Self {
        Self::new(shell, [OsString::from("-c"), text.into()])
    }

    /// A text split at white space, without quoting of any kind. Nothing if there is no word.
    pub fn words(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let program = words.next()?;
        Some(Self::new(program, words))
    }

    /// Other arguments.
    #[must_use]
    pub fn arguments<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments = arguments.into_iter().map(Into::into).collect();
        self
    }

    /// The working directory; nothing is ours.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<Option<PathBuf>>) -> Self {
        self.directory = directory.into();
        self
    }

    /// The environment.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Whose rights it has; nothing means ours. Other credentials than ours need root, and come with no other groups than
    /// those of [`Command::groups`]. Such a command can gain no rights any more, not through set-id programs either.
    #[must_use]
    pub fn credentials(mut self, user: impl Into<Option<u32>>, group: impl Into<Option<u32>>) -> Self {
        (self.user, self.group) = (user.into(), group.into());
        self
    }

    /// The supplementary groups that come with other credentials than ours.
    #[must_use]
    pub fn groups(mut self, groups: impl IntoIterator<Item = u32>) -> Self {
        self.groups = groups.into_iter().collect();
        self
    }

    /// How much of each it may use at most. A limit that we are under ourselves is not lifted.
    #[must_use]
    pub fn limits(mut self, limits: BTreeMap<Limit, u64>) -> Self {
        self.limits = limits;
        self
    }

    /// The only capabilities that it and all that it starts can have; nothing leaves them as its credentials have them.
    #[must_use]
    pub fn capabilities(mut self, capabilities: Option<Vec<Capability>>) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// How many bytes are kept of each stream, and of both together: if it writes more, the first and the last half of that.
    /// 1 MiB unless it is set.
    #[must_use]
    pub fn most_output(mut self, bytes: usize) -> Self {
        self.most_output = bytes;
        self
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments and environment may hold secrets.
        write!(
            formatter,
            "Command({:?}, {} arguments)",
            self.program,
            self.arguments.len()
        )
    }
}

/// How a running command is stopped from outside.
#[derive(Debug, Clone)]
pub struct Stop {
    /// Fires: the process group gets `signal`, once, and the command is waited for. The result is the
    /// cancellation, whatever the command's exit status.
    pub cancel: CancellationToken,
    /// Fires: the process group is killed.
    pub interrupt: CancellationToken,
    /// The polite request.
    pub signal: Signal,
    /// How long after it the group is killed. Nothing waits without limit.
    pub grace: Option<Duration>,
}

impl Default for Stop {
    /// Tokens that nobody else has, `SIGTERM`, 15 seconds.
    fn default() -> Self {
        Self {
            cancel: CancellationToken::new(),
            interrupt: CancellationToken::new(),
            signal: Signal::TERM,
            grace: Some(Duration::from_secs(15)),
        }
    }
}

/// How a process ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// With this status.
    Code(i32),
    /// Killed by this signal.
    Signal(i32),
}

impl Exit {
    /// Whether it ended with status 0.
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }

    pub(super) fn of(status: std::process::ExitStatus) -> Self {
        use std::os::unix::process::ExitStatusExt;
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, Some(signal)) => Self::Signal(signal),
            // A process that was reaped has ended one way or the other.
            (None, None) => Self::Code(-1),
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(formatter, "exit status {code}"),
            Self::Signal(number) => match Signal::name_of(*number) {
                Some(name) => write!(formatter, "killed by {name}"),
                None => write!(formatter, "killed by signal {number}"),
            },
        }
    }
}

/// A command that ran to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// How it ended.
    pub exit: Exit,
    /// What it wrote.
    pub output: Output,
}

/// A command that did not run to its end by itself.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no such program.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// There is no such working directory.
    #[error("enter the working directory {}: {source}", directory.display())]
    Directory {
        /// The directory asked for.
        directory: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Only root may act for others.
    #[error("run as uid {user}, gid {group}: only root may do that")]
    Credentials {
        /// The user asked for.
        user: u32,
        /// The group asked for.
        group: u32,
    },
    /// The system refused another user's rights.
    #[error("run as uid {user}, gid {group}: {source}")]
    TakeCredentials {
        /// The user asked for.
        user: u32,
        /// The group asked for.
        group: u32,
        /// The system's answer.
        source: io::Error,
    },
    /// A limit could not be set.
    #[error("set the limit `{limit}`: {source}")]
    Limit {
        /// Which one.
        limit: Limit,
        /// The system's answer.
        source: io::Error,
    },
    /// Capabilities could not be given up, or are not ours to give.
    #[error("set the capabilities: {source}")]
    Capabilities {
        /// The system's answer.
        source: io::Error,
    },
    /// It could not be set apart from us.
    #[error("start a session of its own: {source}")]
    Isolate {
        /// The system's answer.
        source: io::Error,
    },
    /// It could not be started.
    #[error("start {}: {source}", program.display())]
    Start {
        /// The program's file.
        program: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// It could not be waited for.
    #[error("wait for {}: {source}", program.display())]
    Wait {
        /// The program.
        program: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// It was asked to stop, or was not started because of that.
    #[error("cancelled")]
    Cancelled {
        /// What it wrote until then.
        output: Box<Output>,
    },
    /// It was killed at our wish, or was not started because of that.
    #[error("interrupted")]
    Interrupted {
        /// What it wrote until then.
        output: Box<Output>,
    },
}
