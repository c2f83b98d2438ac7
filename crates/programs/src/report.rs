//! Reports to the user: warnings, errors and progress, apart from the output of a command.
//!
//! Everything below the command line reports through a [`Reporter`]. The command line decides where the lines go: a terminal, the system's log, or
//! the views of a run.

use std::sync::Arc;

use anstyle::{AnsiColor, Style};
use setpoint_diagnostics::{Diagnostics, SourceMap};

use crate::failure::Failure;

/// How much a message matters: the priorities of the system's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Importance {
    /// Something went wrong.
    Error = 3,
    /// Probably not as it was meant.
    Warning = 4,
    /// Something changed, or was asked for.
    Notice = 5,
    /// Worth knowing.
    Info = 6,
    /// Details for troubleshooting.
    Debug = 7,
}

/// One or more whole lines, styled for a terminal, without the last line feed.
#[derive(Debug, Clone)]
pub struct Said {
    /// How much they matter.
    pub importance: Importance,
    /// The lines.
    pub text: String,
}

/// A destination of messages. It never waits for a reader.
pub trait Report: Send + Sync {
    /// Reports these messages together.
    fn say(&self, said: Vec<Said>);

    /// Reports what is wrong with a program. `shown` names its files as the user can open them.
    fn diagnostics(&self, diagnostics: &Diagnostics, shown: &SourceMap);
}

/// Reports messages to one place. Clones share it.
#[derive(Clone)]
pub struct Reporter(Arc<dyn Report>);

impl Reporter {
    /// Reports to this place.
    pub fn new(report: Arc<dyn Report>) -> Reporter {
        Reporter(report)
    }

    /// Reports a message without a heading.
    pub fn say(&self, importance: Importance, text: impl Into<String>) {
        let text = text.into();
        self.0.say(vec![Said { importance, text }]);
    }

    /// Reports what went wrong.
    pub fn error(&self, text: impl AsRef<str>) {
        self.say(Importance::Error, headed(Importance::Error, text.as_ref()));
    }

    /// Reports what is probably not as it was meant.
    pub fn warning(&self, text: impl AsRef<str>) {
        self.say(Importance::Warning, headed(Importance::Warning, text.as_ref()));
    }

    /// Reports a failure, unless the reader of our output is gone.
    pub fn failure(&self, failure: &Failure) {
        if !failure.is_closed_pipe() {
            self.error(failure.text());
        }
    }

    /// Reports what is wrong with a program. `shown` names its files as the user can open them.
    pub fn diagnostics(&self, diagnostics: &Diagnostics, shown: &SourceMap) {
        self.0.diagnostics(diagnostics, shown);
    }
}

/// Sorts errors before warnings, so that the first line says why a program is rejected.
#[must_use]
pub fn errors_first(diagnostics: &Diagnostics) -> Diagnostics {
    let mut diagnostics = diagnostics.clone().into_vec();
    diagnostics.sort_by_key(|diagnostic| diagnostic.severity);
    let mut sorted = Diagnostics::new();
    sorted.extend(diagnostics);
    sorted
}

/// `error: …`, as compilers write it. The text may hold further lines.
#[must_use]
pub fn headed(importance: Importance, text: &str) -> String {
    let (head, colour) = match importance {
        Importance::Error => ("error", AnsiColor::BrightRed),
        Importance::Warning => ("warning", AnsiColor::BrightYellow),
        Importance::Notice | Importance::Info => return text.to_owned(),
        Importance::Debug => ("debug", AnsiColor::BrightBlack),
    };
    let (head_style, bold) = (colour.on_default().bold(), Style::new().bold());
    let (first, rest) = text
        .split_once('\n')
        .map_or((text, None), |(first, rest)| (first, Some(rest)));
    let mut said = format!("{head_style}{head}{head_style:#}{bold}:{bold:#} {first}");
    if let Some(rest) = rest {
        said.push('\n');
        said.push_str(rest);
    }
    said
}
