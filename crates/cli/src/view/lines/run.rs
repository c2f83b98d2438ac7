//! What a run has found and done, as lines.

use std::sync::Arc;

use anstyle::{AnsiColor, Style};
use setpoint_diagnostics::visible_lines;
use setpoint_engine::{ActionWords, RunSummary};
use setpoint_programs::report::{Importance, Said};

use super::{DIM, one_line};

const DONE: Style = AnsiColor::Green.on_default();
const WOULD: Style = AnsiColor::Cyan.on_default();

/// What a run has found so far.
#[derive(Default)]
pub(super) struct Run {
    pub(super) found: Vec<Found>,
    /// Whether it has shown what the program wanted shown; then what it did need not be told.
    pub(super) has_displayed: bool,
}

impl Run {
    pub(super) fn of(found: Found) -> Run {
        Run {
            found: vec![found],
            has_displayed: false,
        }
    }

    pub(super) fn said(&self, words: Words, result: RunSummary) -> Vec<Said> {
        let failed = matches!(result, RunSummary::Failed | RunSummary::Waiting);
        let mut said = Vec::new();
        for found in &self.found {
            let (who, field) = (&found.who, one_line(&found.field));
            let (is, want) = (one_line(&found.is), one_line(&found.want));
            // Lines that differ say more than two sizes.
            let values = match found.diff {
                Some(_) => String::new(),
                None => format!(": {is} -> {want}"),
            };
            let (done, would) = match words.is_reversal {
                true => ("undone", "would undo"),
                false => ("repaired", "would repair"),
            };
            let text = match words.action {
                // What went wrong is told by the failure.
                _ if failed => continue,
                Some(_) if found.may_repair && self.has_displayed => continue,
                Some(words) if found.may_repair => format!("{who}: {DONE}{}{DONE:#} {want}", words.done),
                Some(words) => format!("{who}: {WOULD}would {}{WOULD:#} {want}", words.would),
                None if found.may_repair => format!("{who}: {DONE}{done} {field}{DONE:#}{values}"),
                None => format!("{who}: {WOULD}{would} {field}{WOULD:#}{values}"),
            };
            let importance = Importance::Notice;
            let text = match &found.diff {
                Some(diff) => format!("{text}\n{}", difference(diff)),
                None => text,
            };
            said.push(Said { importance, text });
        }
        said
    }
}

/// How what a run does is told.
pub(super) struct Words {
    pub(super) action: Option<ActionWords>,
    pub(super) is_reversal: bool,
}

/// One difference.
pub(super) struct Found {
    /// What it is of: the resource that runs, or a member of it.
    pub(super) who: String,
    pub(super) field: Arc<str>,
    pub(super) is: Arc<str>,
    pub(super) want: Arc<str>,
    pub(super) diff: Option<Arc<str>>,
    pub(super) may_repair: bool,
}

/// A difference of texts, indented and coloured.
fn difference(diff: &str) -> String {
    let lines = visible_lines(diff).map(|line| {
        let style = match line.as_bytes().first() {
            Some(b'+') => AnsiColor::Green.on_default(),
            Some(b'-') => AnsiColor::Red.on_default(),
            Some(b'@') => AnsiColor::Cyan.on_default(),
            _ => DIM,
        };
        format!("    {style}{line}{style:#}")
    });
    lines.collect::<Vec<_>>().join("\n")
}
