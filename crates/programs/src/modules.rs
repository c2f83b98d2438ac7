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
pub mod verify;

use setpoint_diagnostics::{Diagnostic, Span};

use crate::codes;
use crate::failure::Failure;
use crate::languages::compilation::{Compilation, ProgramSource};
use crate::report::Reporter;

use fetch::fetch_missing;
pub use lock_file::LockFile;
pub use repository::commit_of;
use verify::verify;
pub use verify::{Standing, standing};

impl ProgramSource {
    /// Finds and compiles the program as it is now. Nothing is fetched.
    pub fn compile(&self) -> Compilation {
        match self.find() {
            Ok(input) => self.locked(Compilation::of(self, input)),
            Err(bad) => Compilation::without_input(self, bad),
        }
    }

    /// Finds and compiles the program, after its modules from elsewhere were fetched, if that is asked for.
    ///
    /// # Errors
    /// When nothing can be fetched at all.
    pub fn fetch_and_compile(&self, reporter: &Reporter) -> Result<Compilation, Failure> {
        let Some(fetch) = self.modules.fetch else {
            return Ok(self.compile());
        };
        let input = match self.find() {
            Ok(input) => input,
            Err(bad) => return Ok(Compilation::without_input(self, bad)),
        };
        let fetched = fetch_missing(self, &input, fetch, reporter)?;
        let mut compilation = Compilation::of(self, input);
        fetched.explain(&mut compilation);
        Ok(self.locked(compilation))
    }

    fn locked(&self, mut compilation: Compilation) -> Compilation {
        if self.modules.locked {
            verify(&mut compilation);
        }
        compilation
    }
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
