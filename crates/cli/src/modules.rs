//! Modules from elsewhere: repositories that programs import by their address, kept below a modules directory.
//!
//! ```text
//!  compile ─▶ imports of modules from elsewhere ─▶ fetch what is missing ─┐
//!     ▲                                                                   │
//!     └──────────────── until nothing is missing ◀────────────────────────┘──▶ lock file
//! ```
//!
//! Nothing is fetched unless the command line asks for it, and never while a program runs. A module arrives beside its place and is
//! moved there in one step, so that nobody ever sees half of one. `git` is run where nobody else has written before: in a directory
//! that we have just made. What lies in a repository that was there before is only read.

mod address;
mod fetch;
mod git;
mod lock_file;
mod repository;
mod verify;

use std::path::PathBuf;
use std::time::Duration;

use setpoint_diagnostics::{Diagnostic, Span};

use crate::codes;

pub(crate) use fetch::fetch_missing;
pub(crate) use lock_file::LockFile;
pub(crate) use repository::commit_of;
pub(crate) use verify::{Standing, standing, verify};

/// How a command deals with modules from elsewhere.
#[derive(Debug, Clone, Default)]
pub(crate) struct ModulePolicy {
    /// What is fetched; none: nothing.
    pub(crate) fetch: Option<Fetch>,
    /// Whether only what the lock file says is taken.
    pub(crate) locked: bool,
    /// The prefix below which the modules directory lies, if nobody named another one: it is made when it is needed.
    pub(crate) prefix: Option<PathBuf>,
}

/// What is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fetch {
    /// Whether modules that are there are replaced by their newest version.
    pub(crate) update: bool,
    /// How long each call of `git` may take.
    pub(crate) patience: Duration,
}

/// Why a module cannot be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    message: String,
    cause: Option<String>,
    help: Option<String>,
}

impl Problem {
    fn new(message: impl Into<String>) -> Problem {
        Problem {
            message: message.into(),
            cause: None,
            help: None,
        }
    }

    fn because(mut self, cause: impl ToString) -> Problem {
        self.cause = Some(cause.to_string());
        self
    }

    fn help(mut self, help: impl Into<String>) -> Problem {
        self.help = Some(help.into());
        self
    }

    /// As it is told at the import.
    fn diagnostic(&self, span: Span) -> Diagnostic {
        let error = Diagnostic::error(codes::module_not_found(), span, self.message.as_str());
        let error = match &self.cause {
            Some(cause) => error.note(cause.as_str()),
            None => error,
        };
        error.help_if(self.help.clone())
    }
}
