//! Problems of a program, reported when they appear and when they are gone.

use setpoint_diagnostics::{Diagnostics, Severity, SourceMap};
use setpoint_programs::report::Importance;

use crate::surroundings::Surroundings;

/// Messages of a language for programs that become wrong while they run.
pub(super) struct Words {
    /// When a graph is in place, and the newest one cannot be made.
    pub(super) kept: &'static str,
    /// When it can be made again.
    pub(super) recovered: &'static str,
}

/// The problems of a program, as last reported.
pub(super) struct Findings {
    words: Words,
    reported: Diagnostics,
}

/// The situation of a program that is wrong.
#[derive(Clone, Copy)]
pub(super) struct Situation {
    /// Whether a graph of it is in place.
    pub(super) has_graph: bool,
    /// Whether a graph of it or of the one before is in place, which the machine is kept by.
    pub(super) is_kept: bool,
    /// Whether the engine has already reported that it rejects the graph.
    pub(super) is_rejected: bool,
}

impl Findings {
    pub(super) fn new(words: Words) -> Findings {
        Findings {
            words,
            reported: Diagnostics::new(),
        }
    }

    /// Errors of the last report, a line each; none if there are none.
    pub(super) fn errors(&self) -> Option<String> {
        errors_of(&self.reported)
    }

    /// Reports what is wrong now, if it is not what was reported last. `shown` is how it is shown to people.
    pub(super) fn report(
        &mut self,
        found: Diagnostics,
        shown: impl FnOnce(&Diagnostics) -> Diagnostics,
        sources: &SourceMap,
        situation: Situation,
        surroundings: &Surroundings,
    ) {
        if found == self.reported {
            return;
        }
        let reporter = &surroundings.reporter;
        reporter.diagnostics(&shown(&found), sources);
        if found.has_errors() && !situation.is_rejected && situation.is_kept {
            let messages: Vec<&str> = found.iter().map(|found| found.message.as_str()).collect();
            surroundings.engine.reject(messages.join("\n"));
        }
        if found.has_errors() && situation.has_graph {
            reporter.say(Importance::Warning, self.words.kept);
        }
        surroundings.state.set_wrong(errors_of(&found));
        if !found.has_errors() && self.reported.has_errors() {
            reporter.say(Importance::Notice, self.words.recovered);
        }
        self.reported = found;
    }
}

fn errors_of(found: &Diagnostics) -> Option<String> {
    let errors = found.iter().filter(|found| found.severity == Severity::Error);
    let errors: Vec<&str> = errors.map(|found| found.message.as_str()).collect();
    (!errors.is_empty()).then(|| errors.join("\n"))
}
