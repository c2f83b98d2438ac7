//! What is wrong, told for all documents that are open and the files of their programs.

use std::collections::BTreeMap;

use lsp_types::{
    CodeDescription, Diagnostic as Told, DiagnosticRelatedInformation, DiagnosticSeverity, DiagnosticTag,
    Location, NumberOrString, Range,
};
use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_diagnostics::{Diagnostic, FileId, Severity, Span};
use setpoint_graph::Library;

use super::{Client, Context, Place};
use crate::language::{Analysed, Language};
use crate::positions::Text;
use crate::programs::{Key, Program};
use crate::uri;

/// So many are told for a file; nobody reads on.
const MOST: usize = 500;

/// So many other places are told with one of them.
const MOST_RELATED: usize = 32;

/// What was told last, by path, and of which document: when it was opened, and its version.
pub(crate) type Published = BTreeMap<String, (Option<(u64, i32)>, Vec<Told>)>;

/// What is to be told now. Nothing if it was stopped.
pub(crate) fn publish(context: &mut Context<'_>, published: &mut Published) -> Vec<(String, Vec<Told>)> {
    let mut now: BTreeMap<String, Vec<Told>> = BTreeMap::new();
    let mut told: FxHashSet<Key> = FxHashSet::default();
    for path in context.snapshot.documents.keys() {
        now.entry(path.clone()).or_default();
        let Some(program) = context.programs.of(path, context.snapshot, context.stop) else {
            return Vec::new();
        };
        if told.insert(program.key.clone()) {
            tell(context.client, &context.setup.library, program, &mut now);
        }
    }
    let version = |path: &str| {
        let document = context.snapshot.get(path)?;
        Some((document.opened, document.version))
    };
    let mut news: Vec<(String, Vec<Told>)> = Vec::new();
    for path in published.keys() {
        if !now.contains_key(path) {
            news.push((path.clone(), Vec::new()));
        }
    }
    for (path, diagnostics) in &now {
        let version = version(path);
        let is_news = match published.get(path) {
            Some((before, told)) => *before != version || told != diagnostics,
            // Of a file that nobody has open, only what is wrong is worth a message.
            None => version.is_some() || !diagnostics.is_empty(),
        };
        if is_news {
            news.push((path.clone(), diagnostics.clone()));
        }
    }
    let with_version = |(path, told): (String, Vec<Told>)| {
        let version = version(&path);
        (path, (version, told))
    };
    *published = now.into_iter().map(with_version).collect();
    news
}

/// Adds what is to be told of a program to what is told of others, by path.
fn tell(client: &Client, library: &Library, program: &Program, now: &mut BTreeMap<String, Vec<Told>>) {
    for (_, path) in &program.paths {
        now.entry(path.clone()).or_default();
    }
    let mut texts = Texts {
        client,
        program,
        lines: FxHashMap::default(),
    };
    for diagnostic in program.diagnostics(library) {
        let span = diagnostic.primary.span;
        let Some(list) = program.path(span.file).and_then(|path| now.get_mut(path)) else {
            continue;
        };
        if list.len() >= MOST {
            continue;
        }
        let told = Told {
            related_information: texts.related(diagnostic),
            ..shown(diagnostic, texts.range(span))
        };
        // A file may be part of several programs.
        if !list.contains(&told) {
            list.push(told);
        }
    }
}

/// Where spans are in the texts of a program; the lines of each text are found once.
struct Texts<'a> {
    client: &'a Client,
    program: &'a Program,
    lines: FxHashMap<FileId, Text>,
}

impl Texts<'_> {
    fn range(&mut self, span: Span) -> Range {
        let sources = self.program.sources();
        let lines = self.lines.entry(span.file);
        let text = lines.or_insert_with(|| Text::new(sources.file(span.file).text.clone()));
        text.range(span.start, span.end, self.client.encoding)
    }

    fn related(&mut self, diagnostic: &Diagnostic) -> Option<Vec<DiagnosticRelatedInformation>> {
        if !self.client.related_information {
            return None;
        }
        let labels = diagnostic.secondary.iter().chain(&diagnostic.related);
        let shown = labels.filter_map(|label| {
            let uri = uri::uri(self.program.path(label.span.file)?)?;
            Some(DiagnosticRelatedInformation {
                location: Location::new(uri, self.range(label.span)),
                message: label.text.clone(),
            })
        });
        let shown: Vec<_> = shown.take(MOST_RELATED).collect();
        (!shown.is_empty()).then_some(shown)
    }
}

/// A diagnostic as clients show it: message, label and advice in one text.
pub(super) fn shown(diagnostic: &Diagnostic, range: Range) -> Told {
    let mut message = diagnostic.message.clone();
    // Beside a message that says the same a label would be a repetition.
    if !diagnostic.message.contains(&diagnostic.primary.text) {
        message.push_str(": ");
        message.push_str(&diagnostic.primary.text);
    }
    for note in &diagnostic.notes {
        message.push_str("\nnote: ");
        message.push_str(note);
    }
    for help in &diagnostic.help {
        message.push_str("\nhelp: ");
        message.push_str(&help.text);
    }
    let code = diagnostic.code.code;
    let page = format!("{}errors/{code}.md", uri::EMBEDDED).parse();
    let tag = match rule_of(diagnostic) {
        "old-default" | "number-type" | "deprecated-module" => Some(DiagnosticTag::DEPRECATED),
        rule if rule.starts_with("unused-") => Some(DiagnosticTag::UNNECESSARY),
        _ => None,
    };
    Told {
        range,
        severity: Some(match diagnostic.severity {
            Severity::Error => DiagnosticSeverity::ERROR,
            Severity::Warning => DiagnosticSeverity::WARNING,
        }),
        code: Some(NumberOrString::String(code.to_owned())),
        code_description: page.ok().map(|href| CodeDescription { href }),
        source: Some("setpoint".to_owned()),
        message,
        tags: tag.map(|tag| vec![tag]),
        ..Told::default()
    }
}

/// The name of the linter's rule that a diagnostic is about; else its code.
pub(super) fn rule_of(diagnostic: &Diagnostic) -> &'static str {
    let code = diagnostic.code.code;
    Language::rule_of(code).unwrap_or(code)
}

/// The diagnostics of a document that touch a part of it.
pub(super) fn touching<'a, A: Analysed>(
    place: &Place<'a, A>,
    span: Span,
) -> impl Iterator<Item = &'a Diagnostic> + use<'a, A> {
    let touches =
        move |part: Span| part.file == span.file && part.start <= span.end && span.start <= part.end;
    let found = place.program.diagnostics(&place.setup.library);
    found.iter().filter(move |diagnostic| {
        let edits = diagnostic.help.iter().filter_map(|help| help.edit.as_ref());
        touches(diagnostic.primary.span) || edits.map(|edit| edit.span).any(touches)
    })
}
