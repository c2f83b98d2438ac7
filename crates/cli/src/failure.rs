//! Exit codes, and how a command ends early. The only place that knows them.

use std::fmt;
use std::io;

use setpoint_diagnostics::{visible, without_system_numbers};

use crate::output::{Output, write_error_stream};

/// The exit codes of the program.
pub mod exit_code {
    /// Done; also when a `run` that stays was told to stop.
    pub const DONE: u8 = 0;
    /// The input is wrong, or the machine refused, or the output could not be written.
    pub const WRONG: u8 = 1;
    /// Something was repaired or would be: of `run` only where `--detailed-exitcode` asked for it, and of `status` under `--noop`.
    pub const CHANGED: u8 = 2;
    /// Of `status`: something is still under way, or paused.
    pub const UNDER_WAY: u8 = 3;
    /// No process runs that could be asked, or it gives no answer.
    pub const NOT_RUNNING: u8 = 4;
    /// The command line is wrong.
    pub const USAGE: u8 = 64;
    /// A mistake of ours.
    pub const BUG: u8 = 70;
    /// A signal ended what was to be done first; its number is added.
    pub const SIGNAL: u8 = 128;
}

/// What sort of failure ends a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// The command line is wrong.
    Usage,
    /// The input is wrong, or the machine refused.
    Wrong,
    /// There is no process that could be asked.
    NotRunning,
    /// Nobody reads what we print any more. No reason to say anything.
    ClosedPipe,
}

/// Why a command ends early: what happened, why, and what to do.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: FailureKind,
    message: String,
    causes: Vec<String>,
    hints: Vec<String>,
}

impl Failure {
    fn new(kind: FailureKind, message: impl Into<String>) -> Failure {
        Failure {
            kind,
            message: message.into(),
            causes: Vec::new(),
            hints: Vec::new(),
        }
    }

    /// The command line is wrong: what, in one line.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::new(FailureKind::Usage, message)
    }

    /// The input is wrong, or the machine refused: what, in one line.
    pub(crate) fn wrong(message: impl Into<String>) -> Failure {
        Failure::new(FailureKind::Wrong, message)
    }

    /// There is no process that could be asked, or it gives no answer: what, in one line.
    pub(crate) fn not_running(message: impl Into<String>) -> Failure {
        Failure::new(FailureKind::NotRunning, message)
    }

    /// A failed access to the machine.
    pub(crate) fn io(attempted: impl fmt::Display, error: &io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure::new(FailureKind::ClosedPipe, "");
        }
        Failure::wrong(format!("failed to {attempted}")).because(system_text(error))
    }

    /// Whether all that failed is that nobody reads what was printed.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        self.kind == FailureKind::ClosedPipe
    }

    /// Whether the command line is what is wrong.
    pub(crate) fn is_usage(&self) -> bool {
        self.kind == FailureKind::Usage
    }

    /// Adds why.
    pub(crate) fn because(mut self, cause: impl fmt::Display) -> Failure {
        self.causes.push(without_system_numbers(&cause.to_string()));
        self
    }

    /// Adds what to do.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hints.push(hint.into());
        self
    }

    /// Adds what to do, if there is something.
    pub(crate) fn hint_if(self, hint: Option<String>) -> Failure {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// Says it, and answers the exit code.
    pub(crate) fn report(&self, output: &Output) -> u8 {
        let code = match self.kind {
            FailureKind::Usage => exit_code::USAGE,
            FailureKind::Wrong => exit_code::WRONG,
            FailureKind::NotRunning => exit_code::NOT_RUNNING,
            FailureKind::ClosedPipe => return exit_code::DONE,
        };
        let mut text = visible(&self.to_string()).into_owned();
        for hint in &self.hints {
            text.push_str("\n  help: ");
            text.push_str(&visible(hint));
        }
        if self.kind == FailureKind::Usage {
            text.push_str("\n\nFor more information, try `setpoint --help`");
        }
        output.error(text);
        code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.causes.iter().try_for_each(|cause| write!(f, ": {cause}"))
    }
}

/// What the system says to a call that failed, without its number.
pub(crate) fn system_text(error: &io::Error) -> String {
    without_system_numbers(&error.to_string())
}

/// Lets a panic say that it is a mistake of ours, and what to send.
pub(crate) fn report_panics() {
    std::panic::set_hook(Box::new(|info| {
        let message = info.payload_as_str().unwrap_or("no message");
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let text = format!(
            "error: a bug in setpoint: {}\n  at {place}, version {}, {} on {}\n  \
             please report it with these lines and the program that led to it; RUST_BACKTRACE=1 adds where it came from\n",
            visible(message),
            env!("CARGO_PKG_VERSION"),
            std::env::consts::ARCH,
            std::env::consts::OS,
        );
        write_error_stream(&text);
        let backtrace = std::backtrace::Backtrace::capture();
        if backtrace.status() == std::backtrace::BacktraceStatus::Captured {
            write_error_stream(&format!("{backtrace}\n"));
        }
    }));
}
