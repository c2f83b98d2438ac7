//! What is told about the thing under the pointer: type, value, documentation.

use std::fmt::Write;

use serde_json::{Value as Json, json};
use setpoint_diagnostics::Span;
use setpoint_graph::MetaName;
use setpoint_mcl::analysis::Target;
use setpoint_mcl::hir::{ClassId, DefinitionKind, FunctionId};
use setpoint_mcl::syntax::TokenKind;
use setpoint_value::Type;

use super::Place;
use crate::library_text as library;

/// So many types of one thing are shown.
const MOST_TYPES: usize = 6;

pub(super) fn hover(place: &Place<'_>) -> Option<Json> {
    let analysis = place.analysis();
    let (text, span) = match analysis.name_at(place.file, place.offset) {
        Some(name) => (about(place, &name.target)?, name.span),
        None => word(place).or_else(|| expression(place))?,
    };
    Some(json!({
        "contents": { "kind": "markdown", "value": text.trim_end() },
        "range": place.range(span),
    }))
}

/// What is said about something that has a name.
pub(super) fn about(place: &Place<'_>, target: &Target) -> Option<String> {
    let analysis = place.analysis();
    let kinds = &place.setup.library.kinds;
    Some(match target {
        Target::Variable(id) => {
            let definition = analysis.hir.definition(*id);
            let types = shown_types(&analysis.types_of(*id));
            let name = &definition.name;
            let mut out = library::code(&match types.is_empty() {
                true => format!("${name}"),
                false => format!("${name} {types}"),
            });
            out.push_str(match &definition.kind {
                DefinitionKind::Bind { .. } => "",
                DefinitionKind::ClassParameter { .. } => "Parameter of a class.\n",
                DefinitionKind::Parameter { .. } => "Parameter of a function.\n",
                DefinitionKind::LoopKey => "Index or key of a loop.\n",
                DefinitionKind::LoopValue => "Element or value of a loop.\n",
                DefinitionKind::Library(_) => "Every program has it.\n",
            });
            if let Some(value) = analysis.value_of(*id) {
                let _ = write!(out, "\nValue: `{}`\n", library::value(&value));
            }
            if let Some(comment) = comment_above(place, definition.span) {
                let _ = write!(out, "\n{comment}\n");
            }
            out
        }
        Target::Function(id) => {
            let function = analysis.hir.function(*id);
            let mut out = library::code(&function_head(place, *id));
            let types = analysis.types_of_function(*id);
            if !types.is_empty() {
                let _ = writeln!(out, "Called as `{}`.", shown_types(&types));
            }
            if let Some(comment) = comment_above(place, function.span) {
                let _ = write!(out, "\n{comment}\n");
            }
            out
        }
        Target::LibraryFunction(function) => library::function(function),
        Target::Class(id) => {
            let mut out = library::code(&class_head(place, *id));
            if let Some(comment) = comment_above(place, analysis.hir.class(*id).span) {
                let _ = write!(out, "\n{comment}\n");
            }
            out
        }
        Target::Alias(id) => {
            let statement = analysis.alias(*id).statement;
            let text = analysis.sources.text(statement);
            library::code(text.lines().next().unwrap_or_default())
        }
        Target::File(file) => {
            let path = place.program.path(*file)?;
            let mut out = format!("`{path}`\n");
            if let Some(comment) = head_comment(place, *file) {
                let _ = write!(out, "\n{comment}\n");
            }
            out
        }
        Target::Kind(kind) => library::kind(kinds.get(&**kind)?),
        Target::Parameter { kind, name } => library::parameter_or_key(kinds.get(&**kind)?, name)?,
        Target::Meta(name) => library::meta(*name),
    })
}

/// The first line of a function of the program.
pub(super) fn function_head(place: &Place<'_>, id: FunctionId) -> String {
    let function = place.analysis().hir.function(id);
    head(place, function.span, "{")
}

/// The first line of a class.
pub(super) fn class_head(place: &Place<'_>, id: ClassId) -> String {
    let class = place.analysis().hir.class(id);
    head(place, class.span, "{")
}

fn head(place: &Place<'_>, statement: Span, end: &str) -> String {
    let text = place.analysis().sources.text(statement);
    let head = text.split(end).next().unwrap_or_default();
    head.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn shown_types(types: &[Type]) -> String {
    let mut shown: Vec<String> = types.iter().take(MOST_TYPES).map(ToString::to_string).collect();
    if types.len() > MOST_TYPES {
        shown.push("…".to_owned());
    }
    shown.join(" | ")
}

/// A word that is not a name: `Meta`, an edge property.
fn word(place: &Place<'_>) -> Option<(String, Span)> {
    let parsed = place.analysis().parsed(place.file)?;
    let token = [place.offset, place.offset.saturating_sub(1)]
        .map(|at| parsed.tokens.at(at))
        .into_iter()
        .find(|token| parsed.tokens.kind(*token) == TokenKind::Capitalized)?;
    let range = parsed.tokens.range(token);
    let span = Span::new(place.file, range.start, range.end);
    let word = parsed.text.get(range.start as usize..range.end as usize)?;
    if word == "Meta" {
        let names: Vec<String> = MetaName::ALL
            .iter()
            .map(|name| format!("- `{} {}`: {}", name.name(), name.ty(), name.doc()))
            .collect();
        return Some((format!("Meta parameters\n\n{}", names.join("\n")), span));
    }
    let property = library::EDGE_PROPERTIES
        .iter()
        .find(|(_, name, _)| *name == word)?;
    Some((format!("{}{}", library::code(word), property.2), span))
}

/// The type of an expression that is not a name.
fn expression(place: &Place<'_>) -> Option<(String, Span)> {
    let analysis = place.analysis();
    let types = analysis.types_at(place.file, place.offset);
    let holds =
        |span: Span| span.file == place.file && span.start <= place.offset && place.offset <= span.end;
    let spans = analysis
        .hir
        .exprs
        .iter()
        .map(|expr| expr.span)
        .filter(|span| holds(*span));
    let span = spans.min_by_key(|span| span.end - span.start)?;
    (!types.is_empty()).then(|| (library::code(&shown_types(&types)), span))
}

/// The comment that stands directly above a statement.
fn comment_above(place: &Place<'_>, statement: Span) -> Option<String> {
    let parsed = place.analysis().parsed(statement.file)?;
    let above = parsed.text.get(..statement.start as usize)?;
    // What stands before it on its line is white space, or it is not a comment of this.
    let (lines, indentation) = above.rsplit_once('\n')?;
    if !indentation.trim().is_empty() {
        return None;
    }
    let mut comment: Vec<&str> = lines.lines().rev().map_while(comment_line).collect();
    comment.reverse();
    (!comment.is_empty()).then(|| comment.join("\n"))
}

/// The comment that a file begins with.
fn head_comment(place: &Place<'_>, file: setpoint_diagnostics::FileId) -> Option<String> {
    let text = &place.analysis().parsed(file)?.text;
    let comment: Vec<&str> = text.lines().map_while(comment_line).collect();
    (!comment.is_empty()).then(|| comment.join("\n"))
}

fn comment_line(line: &str) -> Option<&str> {
    let line = line.trim().strip_prefix('#')?;
    Some(line.strip_prefix(' ').unwrap_or(line))
}
