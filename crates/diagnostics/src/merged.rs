//! One report for one mistake.
//!
//! A text that takes part in a program many times (a class that is included often, a file that is imported on two ways) has its
//! mistakes as often. They are told once, with the further ways on which the program comes to them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use crate::{CodeInfo, Diagnostic, Diagnostics, Label, Severity, SourceMap, Span};

/// So many further ways are shown. What follows is counted.
const SHOWN: usize = 3;

/// What makes two reports one: the same is said of the same text, whichever copy of the file it was read from.
#[derive(PartialEq, Eq, Hash)]
struct Mistake {
    code: &'static str,
    severity: Severity,
    file: Arc<str>,
    place: (u32, u32),
    message: String,
    causes: Vec<Mistake>,
}

impl Mistake {
    fn of(diagnostic: &Diagnostic, sources: &SourceMap) -> Mistake {
        let CodeInfo { code, .. } = diagnostic.code;
        let span = diagnostic.primary.span;
        Mistake {
            code,
            severity: diagnostic.severity,
            file: name(sources, span),
            place: (span.start, span.end),
            message: diagnostic.message.clone(),
            causes: diagnostic
                .causes
                .iter()
                .map(|cause| Mistake::of(cause, sources))
                .collect(),
        }
    }
}

/// What further reports of a mistake add to the first.
#[derive(Default)]
struct Further {
    shown: Vec<Label>,
    more: usize,
}

impl Diagnostics {
    /// Tells each mistake once: the first report stays in its place, and names up to three further ways to it.
    pub fn merge(&mut self, sources: &SourceMap) {
        let mut first: HashMap<Mistake, usize> = HashMap::new();
        let mut merged: Vec<(Diagnostic, Further)> = Vec::new();
        for diagnostic in std::mem::take(self) {
            match first.entry(Mistake::of(&diagnostic, sources)) {
                Entry::Vacant(entry) => {
                    entry.insert(merged.len());
                    merged.push((diagnostic, Further::default()));
                }
                Entry::Occupied(entry) => {
                    let (known, further) = &mut merged[*entry.get()];
                    further.take(known, diagnostic, sources);
                }
            }
        }
        self.extend(merged.into_iter().map(|(known, further)| further.put(known)));
    }
}

impl Further {
    fn take(&mut self, known: &Diagnostic, again: Diagnostic, sources: &SourceMap) {
        let place = |span: Span| (name(sources, span), span.start, span.end);
        let told = |label: &Label| {
            let mut labels = known.related.iter().chain(&known.secondary).chain(&self.shown);
            labels.any(|other| place(other.span) == place(label.span))
        };
        // The step furthest out is what the user wrote last on the way; reasons differ where values do.
        let mut steps = again.related.into_iter().rev().chain(again.secondary);
        let Some(step) = steps.find(|label| !told(label)) else {
            return;
        };
        if self.shown.len() == SHOWN {
            self.more += 1;
            return;
        }
        let text = format!("also {}", step.text);
        self.shown.push(Label { text, ..step });
    }

    fn put(self, mut known: Diagnostic) -> Diagnostic {
        known.related.extend(self.shown);
        match self.more {
            0 => known,
            more => known.note(format!("and {more} more")),
        }
    }
}

fn name(sources: &SourceMap, span: Span) -> Arc<str> {
    let file = sources.files().nth(span.file.0 as usize);
    file.map(|(_, file)| file.name.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stage;

    static CODE: CodeInfo = CodeInfo {
        code: "E0201",
        rule: "U1",
        stage: Stage::new("type"),
        summary: "a test",
    };

    fn merged(list: impl IntoIterator<Item = Diagnostic>, sources: &SourceMap) -> Vec<Diagnostic> {
        let mut diagnostics = Diagnostics::new();
        diagnostics.extend(list);
        diagnostics.merge(sources);
        diagnostics.into_vec()
    }

    #[test]
    fn equal_reports_are_one() {
        let mut sources = SourceMap::new();
        let file = sources.add("a.mcl", "abcdef");
        let at = |start| Diagnostic::error(&CODE, Span::new(file, start, start + 1), "wrong");
        let found = merged([at(0), at(1), at(0), at(0)], &sources);
        assert_eq!(found, [at(0), at(1)]);
    }

    #[test]
    fn further_ways_are_told_and_then_counted() {
        let mut sources = SourceMap::new();
        let main = sources.add("main.mcl", "0123456789");
        let copies: Vec<_> = (0..6).map(|_| sources.add("lib.mcl", "wrong")).collect();
        let reports = copies.iter().enumerate().map(|(index, copy)| {
            let import = Span::new(main, index as u32, index as u32 + 1);
            Diagnostic::error(&CODE, Span::new(*copy, 0, 5), "wrong").via(import, "imported here")
        });
        let found = merged(reports, &sources);
        assert_eq!(found.len(), 1);
        let texts: Vec<&str> = found[0].related.iter().map(|label| label.text.as_str()).collect();
        let expected = [
            "imported here",
            "also imported here",
            "also imported here",
            "also imported here",
        ];
        assert_eq!(texts, expected);
        assert_eq!(found[0].notes, ["and 2 more"]);
    }
}
