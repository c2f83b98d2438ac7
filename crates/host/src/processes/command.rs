//! What to run, and what came of it.

use super::{ProgramError, Signal};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The environment of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Environment {
    /// Ours.
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
    pub(super) captures_stdout: bool,
    pub(super) captures_stderr: bool,
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
            captures_stdout: true,
            captures_stderr: true,
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

    /// Whose rights it has; nothing means ours. Other credentials than ours need root, and come without
    /// supplementary groups.
    #[must_use]
    pub fn credentials(mut self, user: impl Into<Option<u32>>, group: impl Into<Option<u32>>) -> Self {
        (self.user, self.group) = (user.into(), group.into());
        self
    }

    /// Sends standard output to the null device.
    #[must_use]
    pub fn discard_stdout(mut self) -> Self {
        self.captures_stdout = false;
        self
    }

    /// Sends standard error to the null device.
    #[must_use]
    pub fn discard_stderr(mut self) -> Self {
        self.captures_stderr = false;
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

/// One of the two output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// What a command wrote, with both streams in the order in which the pieces arrived.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Output {
    bytes: Vec<u8>,
    /// Whose the bytes are, piece by piece.
    pieces: Vec<(Stream, usize)>,
}

impl Output {
    /// Both streams together.
    pub fn combined(&self) -> &[u8] {
        &self.bytes
    }

    /// Standard output.
    pub fn stdout(&self) -> Vec<u8> {
        self.of(Stream::Stdout)
    }

    /// Standard error.
    pub fn stderr(&self) -> Vec<u8> {
        self.of(Stream::Stderr)
    }

    /// Everything as text, with a mark in the place of what is none, and without the last line's end. For messages.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes)
            .trim_end_matches('\n')
            .to_owned()
    }

    fn of(&self, wanted: Stream) -> Vec<u8> {
        let mut chosen = Vec::new();
        let mut start = 0;
        for (stream, length) in &self.pieces {
            if *stream == wanted {
                chosen.extend_from_slice(&self.bytes[start..start + length]);
            }
            start += length;
        }
        chosen
    }

    pub(super) fn add(&mut self, stream: Stream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.bytes.extend_from_slice(bytes);
        match self.pieces.last_mut() {
            Some((last, length)) if *last == stream => *length += bytes.len(),
            _ => self.pieces.push((stream, bytes.len())),
        }
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What a command prints may be a secret.
        write!(formatter, "Output({} bytes)", self.bytes.len())
    }
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
        output: Output,
    },
    /// It was killed at our wish, or was not started because of that.
    #[error("interrupted")]
    Interrupted {
        /// What it wrote until then.
        output: Output,
    },
}
