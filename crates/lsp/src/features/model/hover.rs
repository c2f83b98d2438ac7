//! What is told about the name under the pointer.

use std::fmt::Write;

use serde_json::{Value as Json, json};
use setpoint_cf::analysis::Target;
use setpoint_cf::analysis::describe::Description;
use setpoint_cf::hir::FunctionImplementation;
use setpoint_value::FunctionSpec;

use super::Place;
use crate::library_text::one_line;

pub(in crate::features) fn hover(place: &Place<'_>) -> Option<Json> {
    let name = place.analysis.name_at(place.file, place.offset)?;
    let text = about(place, &name.target)?;
    Some(json!({
        "contents": { "kind": "markdown", "value": text.trim_end() },
        "range": place.range(name.span),
    }))
}

/// What is said about something that has a name.
pub(super) fn about(place: &Place<'_>, target: &Target) -> Option<String> {
    if let Target::Function(_, FunctionImplementation::Library(function)) = target {
        return Some(shared_function(function));
    }
    Some(markdown(&place.analysis.describe(target)?))
}

fn code(text: &str) -> String {
    format!("```cf\n{text}\n```\n")
}

fn markdown(description: &Description) -> String {
    let mut out = code(&description.code);
    if !description.doc.is_empty() {
        let _ = write!(out, "\n{}\n", description.doc);
    }
    for section in &description.sections {
        let _ = write!(out, "\n{}:\n\n", section.title);
        for (code, doc) in &section.entries {
            let doc = one_line(doc);
            let _ = match doc.is_empty() {
                true => writeln!(out, "- `{code}`"),
                false => writeln!(out, "- `{code}`: {doc}"),
            };
        }
    }
    out
}

/// A function of the library that all languages share.
fn shared_function(function: &FunctionSpec) -> String {
    let calls: Vec<String> = calls(function);
    let mut out = code(&calls.join("\n"));
    let _ = write!(out, "\n{}\n", function.doc.trim());
    for parameter in function.parameter_docs() {
        if !parameter.doc.is_empty() {
            let _ = write!(out, "\n- `{}`: {}", parameter.name, one_line(parameter.doc));
        }
    }
    out
}

/// How a shared function is called, one line a signature.
pub(super) fn calls(function: &FunctionSpec) -> Vec<String> {
    let name = function.called().replace('.', "::");
    let call = |signature: &str| format!("{name}{}", signature.strip_prefix("func").unwrap_or(signature));
    function.signatures().into_iter().map(call).collect()
}
