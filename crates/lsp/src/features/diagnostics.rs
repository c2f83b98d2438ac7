//! What is wrong, told for all documents that are open and the files of their programs.

use std::collections::BTreeMap;

use lsp_types::{
    CodeDescription, Diagnostic as Told, DiagnosticRelatedInformation, DiagnosticSeverity, DiagnosticTag,
    NumberOrString,
};
use setpoint_diagnostics::{Diagnostic, FileId, Severity, Span};
use setpoint_mcl::analysis::{Analysis, Target, Unused};

use super::{Context, Place};
use crate::positions::Text;
use crate::programs::Program;
use crate::uri;

/// So many are told for a file; nobody reads on.
const MOST: usize = 500;

/// What was told last, by path, and of which version of the document.
pub(crate) type Published = BTreeMap<String, (Option<i32>, Vec<Told>)>;

/// What is to be told now. Nothing if it was stopped.
pub(crate) fn publish(context: &mut Context<'_>, published: &mut Published) -> Vec<(String, Vec<Told>)> {
    let mut now: BTreeMap<String, Vec<Told>> = BTreeMap::new();
    for path in context.snapshot.documents.keys() {
        now.entry(path.clone()).or_default();
        let Some(program) = context.programs.of(path, context.snapshot, context.stop) else {
            return Vec::new();
        };
        for (file, path) in &program.paths {
            let told = of_file(context.client, program, *file);
            let list = now.entry(path.clone()).or_default();
            for diagnostic in told {
                if !list.contains(&diagnostic) && list.len() < MOST {
                    list.push(diagnostic);
                }
            }
        }
    }
    let version = |path: &str| context.snapshot.get(path).map(|document| document.version);
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

fn of_file(client: &super::Client, program: &Program, file: FileId) -> Vec<Told> {
    let analysis = &program.analysis;
    let text = Text::new(analysis.sources.file(file).text.clone());
    let range = |span: Span| text.range(span.start, span.end, client.encoding);
    let mut told: Vec<Told> = analysis
        .diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.primary.span.file == file)
        .take(MOST)
        .map(|diagnostic| Told {
            related_information: related(client, program, diagnostic),
            ..shown(diagnostic, range(diagnostic.primary.span))
        })
        .collect();
    told.extend(unused(analysis, file).into_iter().map(|unused| Told {
        range: range(unused.name),
        severity: Some(DiagnosticSeverity::HINT),
        source: Some("setpoint".to_owned()),
        message: format!("nothing uses this {}", noun(&unused.target)),
        tags: Some(vec![DiagnosticTag::UNNECESSARY]),
        ..Told::default()
    }));
    told
}

fn noun(target: &Target) -> &'static str {
    match target {
        Target::Variable(_) => "variable",
        Target::Function(_) | Target::LibraryFunction(_) => "function",
        Target::Class(_) => "class",
        Target::Alias(_) => "name of an import or include",
        Target::File(_) => "file",
        Target::Kind(_) => "kind",
        Target::Parameter { .. } | Target::Meta(_) => "parameter",
    }
}

/// What nobody can use: what stands at the top of a file may be there for those who import it.
fn unused(analysis: &Analysis, file: FileId) -> Vec<Unused> {
    let found = analysis.unused();
    let is_hidden = |unused: &Unused| !unused.is_at_top || matches!(unused.target, Target::Alias(_));
    found
        .into_iter()
        .filter(|unused| unused.name.file == file && is_hidden(unused))
        // That of an include says which one it is.
        .filter(|unused| match &unused.target {
            Target::Alias(id) => analysis.alias(*id).include.is_none(),
            _ => true,
        })
        .collect()
}

/// A diagnostic as clients show it: message, label and advice in one text.
pub(super) fn shown(diagnostic: &Diagnostic, range: lsp_types::Range) -> Told {
    let mut message = diagnostic.message.clone();
    if !diagnostic.primary.text.is_empty() {
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
    // The older spelling of a default.
    let is_deprecated = code == "W0001";
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
        tags: is_deprecated.then(|| vec![DiagnosticTag::DEPRECATED]),
        ..Told::default()
    }
}

fn related(
    client: &super::Client,
    program: &Program,
    diagnostic: &Diagnostic,
) -> Option<Vec<DiagnosticRelatedInformation>> {
    if !client.related_information {
        return None;
    }
    let analysis = &program.analysis;
    let labels = diagnostic.secondary.iter().chain(&diagnostic.related);
    let shown = labels.filter_map(|label| {
        let text = Text::new(analysis.sources.file(label.span.file).text.clone());
        let range = text.range(label.span.start, label.span.end, client.encoding);
        let uri = uri::uri(program.path(label.span.file)?)?;
        Some(DiagnosticRelatedInformation {
            location: lsp_types::Location::new(uri, range),
            message: label.text.clone(),
        })
    });
    let shown: Vec<_> = shown.take(32).collect();
    (!shown.is_empty()).then_some(shown)
}

/// The diagnostics of a document that touch a part of it.
pub(super) fn touching<'a>(place: &Place<'a>, span: Span) -> impl Iterator<Item = &'a Diagnostic> {
    let analysis = place.analysis();
    let touches =
        move |part: Span| part.file == span.file && part.start <= span.end && span.start <= part.end;
    analysis.diagnostics.iter().filter(move |diagnostic| {
        let edits = diagnostic.help.iter().filter_map(|help| help.edit.as_ref());
        touches(diagnostic.primary.span) || edits.map(|edit| edit.span).any(touches)
    })
}
