//! Formatting: the formatter's result as the smallest edits, line by line.

use lsp_types::{Range, TextEdit};
use serde_json::Value as Json;
use setpoint_diagnostics::FileId;
use setpoint_mcl::format;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::{Answer, Context, document_path, read, to_json};
use crate::language::Language;
use crate::positions::{Encoding, Text};

/// Formats a document; of a part of it, whatever touches that part.
pub(super) fn answer(context: &Context<'_>, params: &Json) -> Answer {
    let Some(path) = document_path(params) else {
        return Answer::Invalid("`textDocument.uri` is missing".to_owned());
    };
    let Some(document) = context.snapshot.get(&path) else {
        return Answer::Result(Json::Null);
    };
    let range: Option<Range> = match params.get("range").cloned().map(read) {
        Some(Ok(range)) => Some(range),
        Some(Err(answer)) => return answer,
        None => None,
    };
    let text = &document.text;
    let formatted = match Language::of(&path) {
        Language::Mcl => format::format(text.as_str()),
        Language::Model => match setpoint_cf::format::format(FileId(0), text.as_str()) {
            Ok(formatted) => Ok(formatted),
            Err(_) => return Answer::Result(Json::Null),
        },
    };
    match formatted {
        Ok(formatted) => {
            let mut edits = edits(text, &formatted, context.client.encoding);
            if let Some(range) = range {
                edits.retain(|edit| edit.range.start <= range.end && range.start <= edit.range.end);
            }
            Answer::Result(to_json(edits).unwrap_or_default())
        }
        // What is wrong is told as a diagnostic; a text that does not parse stays as it is.
        Err(format::FormatError::Syntax(_)) => Answer::Result(Json::Null),
        Err(error) => Answer::Refusal(error.to_string()),
    }
}

/// What leads from a text to another one: whole lines, where any letter of them differs.
fn edits(before: &Text, after: &str, encoding: Encoding) -> Vec<TextEdit> {
    if before.as_str() == after {
        return Vec::new();
    }
    let old: Vec<&str> = before.as_str().split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let mut starts = vec![0];
    for line in &old {
        starts.push(starts[starts.len() - 1] + line.len() as u32);
    }
    let edit = |op: DiffOp| {
        if matches!(op, DiffOp::Equal { .. }) {
            return None;
        }
        let (old, new_lines) = (op.old_range(), op.new_range());
        let range = before.range(starts[old.start], starts[old.end], encoding);
        Some(TextEdit::new(range, new[new_lines].concat()))
    };
    capture_diff_slices(Algorithm::Myers, &old, &new)
        .into_iter()
        .filter_map(edit)
        .collect()
}
