//! Exit codes, and how a command ends early. The only place that knows them.

use std::fmt;
use std::io;

/// The exit codes of the program.
pub mod exit_code {
    /// Done; also after Ctrl-C and SIGTERM.
    pub const DONE: u8 = 0;
    /// The input is wrong, or the machine refused.
    pub const WRONG: u8 = 1;
    /// Something was repaired or would be. Only where `--detailed-exitcode` asked for it.
    pub const CHANGED: u8 = 2;
    /// The command line is wrong.
    pub const USAGE: u8 = 64;
    /// A mistake of ours.
    pub const BUG: u8 = 70;
}

/// Why a command ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line is wrong: what, in one line.
    Usage(String),
    /// The input is wrong, or the machine refused: what, in one line.
    Wrong(String),
    /// Nobody reads what we print any more. No reason for talk.
    ClosedPipe,
}

impl Failure {
    /// A failed access to the machine.
    pub(crate) fn io(attempted: impl fmt::Display, error: &io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure::ClosedPipe;
        }
        Failure::Wrong(format!("failed to {attempted}: {error}"))
    }

    /// The message, if there is something to say, and the exit code.
    pub(crate) fn parts(&self) -> (Option<String>, u8) {
        match self {
            Failure::Usage(message) => (
                Some(format!(
                    "{message}\n\nFor more information, try `setpoint --help`"
                )),
                exit_code::USAGE,
            ),
            Failure::Wrong(message) => (Some(message.clone()), exit_code::WRONG),
            Failure::ClosedPipe => (None, exit_code::DONE),
        }
    }
}

/// Lets a panic say that it is a mistake of ours, and what to send.
pub(crate) fn report_panics() {
    std::panic::set_hook(Box::new(|info| {
        let message = info.payload_as_str().unwrap_or("no message");
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let text = format!(
            "error: a bug in setpoint: {message}\n  at {place}, version {}, {} on {}\n  \
             please report it with these lines and the program that led to it; RUST_BACKTRACE=1 adds where it came from\n",
            env!("CARGO_PKG_VERSION"),
            std::env::consts::ARCH,
            std::env::consts::OS,
        );
        crate::output::talk(&text);
        let backtrace = std::backtrace::Backtrace::capture();
        if backtrace.status() == std::backtrace::BacktraceStatus::Captured {
            crate::output::talk(&format!("{backtrace}\n"));
        }
    }));
}
