//! Diagnostics as people see them: all of them, but of each code only the first few with everything that is known. A hundred times the
//! same mistake is one report, where it was made, and a list of lines.

use std::collections::HashMap;
use std::fmt::Write;

use setpoint_diagnostics::{
    CodeInfo, Diagnostic, Diagnostics, RenderStyle, Severity, SourceMap, Span, render, visible,
};
use setpoint_programs::report::{Importance, Said, headed};

use crate::pages::page;

/// How many diagnostics of one code are shown in full.
const IN_FULL: usize = 5;

/// How many lines are listed of one mistake that is made again and again.
const LINES: usize = 12;

/// Everything that is said of these.
pub(super) fn reports(diagnostics: &Diagnostics, sources: &SourceMap, style: RenderStyle) -> Vec<Said> {
    let mut all = Vec::new();
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let mut more = More::default();
    for diagnostic in diagnostics {
        let seen = seen.entry(diagnostic.code.code).or_default();
        *seen += 1;
        if *seen > IN_FULL {
            more.add(diagnostic);
        } else {
            let text = format!("{}\n", render(diagnostic, sources, style));
            let importance = importance(diagnostic.severity);
            all.push(Said { importance, text });
        }
    }
    all.extend(more.mistakes.iter().map(|mistake| mistake.said(sources)));
    let mut errors = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error);
    if let Some(first) = errors.next() {
        let count = match errors.count() {
            0 => None,
            others => Some(format!("{} errors", others + 1)),
        };
        let code = first.code.code;
        let more = page(code).map(|_| format!("`setpoint explain {code}` tells more"));
        let importance = Importance::Error;
        let text: Vec<String> = count.into_iter().chain(more).collect();
        if !text.is_empty() {
            let text = text.join("; ");
            all.push(Said { importance, text });
        }
    }
    all
}

fn importance(severity: Severity) -> Importance {
    match severity {
        Severity::Error => Importance::Error,
        Severity::Warning => Importance::Warning,
    }
}

/// What is not shown in full, by what is said of it, in the order in which it counts.
#[derive(Default)]
struct More<'a> {
    mistakes: Vec<Mistake<'a>>,
    by_message: HashMap<(&'a str, &'a str), usize>,
}

struct Mistake<'a> {
    code: &'static CodeInfo,
    severity: Severity,
    message: &'a str,
    places: Vec<Span>,
}

impl<'a> More<'a> {
    fn add(&mut self, diagnostic: &'a Diagnostic) {
        let Diagnostic {
            code,
            severity,
            message,
            ..
        } = diagnostic;
        let at = *self
            .by_message
            .entry((code.code, message.as_str()))
            .or_insert_with(|| {
                self.mistakes.push(Mistake {
                    code,
                    severity: *severity,
                    message,
                    places: Vec::new(),
                });
                self.mistakes.len() - 1
            });
        self.mistakes[at].places.push(diagnostic.primary.span);
    }
}

impl Mistake<'_> {
    /// `error[E0011]: 95 more like it: every item … (main.mcl:17, 20, 23)`.
    fn said(&self, sources: &SourceMap) -> Said {
        let importance = importance(self.severity);
        let mut text = visible(self.message).into_owned();
        if self.places.len() > 1 {
            text = format!("{} more like it: {text}", self.places.len());
        }
        let mut file = None;
        let mut places = String::new();
        let files = sources.files().count();
        let known = self.places.iter().filter(|span| (span.file.0 as usize) < files);
        for span in known.take(LINES) {
            let line = sources.positions(*span).0.line;
            let before = if places.is_empty() { "" } else { ", " };
            let _ = match file.replace(span.file) {
                Some(same) if same == span.file => write!(places, "{before}{line}"),
                _ => write!(
                    places,
                    "{before}{}:{line}",
                    visible(&sources.file(span.file).name)
                ),
            };
        }
        if let Some(left @ 1..) = self.places.len().checked_sub(LINES) {
            let _ = write!(places, " and {left} more");
        }
        let text = headed(importance, &format!("{text} ({places})"));
        // As in the full reports, the code stands behind the word that opens the line.
        let word = self.severity.name();
        let text = text.replacen(word, &format!("{word}[{}]", self.code.code), 1);
        Said { importance, text }
    }
}
