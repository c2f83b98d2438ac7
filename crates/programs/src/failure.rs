//! Why something ends early: what failed, its causes, and what to do. A command maps it to an exit code, and a
//! [`Reporter`](crate::report::Reporter) reports it.

use std::fmt;
use std::io;

use setpoint_diagnostics::{visible, without_system_numbers};

/// Category of a failure that ends a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The command line is wrong.
    Usage,
    /// The input is wrong, or the machine refused.
    Wrong,
    /// There is no process that could be asked.
    NotRunning,
    /// The reader of our output is gone. Nothing is printed about it.
    ClosedPipe,
}

/// Why a command ends early: what happened, why, and what to do.
#[derive(Debug)]
pub struct Failure {
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
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::new(FailureKind::Usage, message)
    }

    /// The input is wrong, or the machine refused: what, in one line.
    pub fn wrong(message: impl Into<String>) -> Failure {
        Failure::new(FailureKind::Wrong, message)
    }

    /// There is no process that could be asked, or it gives no answer: what, in one line.
    pub fn not_running(message: impl Into<String>) -> Failure {
        Failure::new(FailureKind::NotRunning, message)
    }

    /// A failed access to the machine.
    pub fn io(attempted: impl fmt::Display, error: &io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure::new(FailureKind::ClosedPipe, "");
        }
        Failure::wrong(format!("failed to {attempted}")).because(system_text(error))
    }

    /// Whether all that failed is that nobody reads what was printed.
    pub fn is_closed_pipe(&self) -> bool {
        self.kind == FailureKind::ClosedPipe
    }

    /// Whether the command line is what is wrong.
    pub fn is_usage(&self) -> bool {
        self.kind == FailureKind::Usage
    }

    /// Adds why.
    pub fn because(mut self, cause: impl fmt::Display) -> Failure {
        self.causes.push(without_system_numbers(&cause.to_string()));
        self
    }

    /// Adds what to do.
    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hints.push(hint.into());
        self
    }

    /// Adds what to do, if there is something.
    pub fn hint_if(self, hint: Option<String>) -> Failure {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// The category, which decides the exit code.
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// The message with its causes, then a line for each hint.
    pub fn text(&self) -> String {
        let mut text = visible(&self.to_string()).into_owned();
        for hint in &self.hints {
            text.push_str("\n  help: ");
            text.push_str(&visible(hint));
        }
        if self.kind == FailureKind::Usage {
            text.push_str("\n\nFor more information, try `setpoint --help`");
        }
        text
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.causes.iter().try_for_each(|cause| write!(f, ": {cause}"))
    }
}

/// What the system says to a call that failed, without its number.
pub fn system_text(error: &io::Error) -> String {
    without_system_numbers(&error.to_string())
}
