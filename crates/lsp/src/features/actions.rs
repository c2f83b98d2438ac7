//! Quick fixes: the edits that diagnostics bring, names that were probably meant, and comments that allow a warning; and all edits of a
//! document at once.

use std::collections::HashMap;

use lsp_types::{CodeAction, CodeActionKind, TextEdit, WorkspaceEdit};
use serde_json::Value as Json;
use setpoint_diagnostics::{Diagnostic, Edit, Severity, Span, fixes};

use super::diagnostics::{rule_of, shown, touching};
use super::{Place, to_json};
use crate::language::Analysed;
use crate::uri;

/// What is wrong with comments that allow something is not to be allowed by another one.
const ABOUT_COMMENTS: [&str; 4] = ["W0121", "W0122", "W0521", "W0522"];

/// Mends everything in a document that can be mended.
pub(super) const FIX_ALL: &str = "source.fixAll.setpoint";

/// The kinds of actions that are wanted: each with those of which its name is the beginning.
pub(super) fn wanted(params: &Json) -> Option<Vec<String>> {
    let only = params.pointer("/context/only")?.as_array()?;
    Some(only.iter().filter_map(Json::as_str).map(str::to_owned).collect())
}

/// What can be done about a part of a document. Without kinds that are asked for, quick fixes.
pub(super) fn actions<A: Analysed>(
    place: &Place<'_, A>,
    span: Span,
    only: Option<&[String]>,
) -> Option<Json> {
    let is_wanted = |kind: &str| {
        only.is_some_and(|only| {
            let rest = only.iter().filter_map(|only| kind.strip_prefix(&**only));
            rest.into_iter()
                .any(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    };
    let mut actions: Vec<CodeAction> = Vec::new();
    if only.is_none() || is_wanted("quickfix") {
        for diagnostic in touching(place, span).take(64) {
            quick_fixes(place, diagnostic, &mut actions);
        }
        // What mends something comes before what only silences.
        for diagnostic in touching(place, span).take(64) {
            let name = rule_of(diagnostic);
            let title = format!("allow `{name}` here");
            let edit = allowing(place, diagnostic);
            let action = edit.and_then(|edit| quick_fix(place, diagnostic, title, &edit));
            let action = action.map(|action| CodeAction {
                is_preferred: None,
                ..action
            });
            add(&mut actions, action);
        }
    }
    if is_wanted(FIX_ALL) {
        actions.extend(fix_all(place));
    }
    to_json(actions)
}

fn quick_fixes<A: Analysed>(place: &Place<'_, A>, diagnostic: &Diagnostic, actions: &mut Vec<CodeAction>) {
    for help in &diagnostic.help {
        let edit = help.edit.clone().or_else(|| meant(place, diagnostic, &help.text));
        let edit = edit.filter(|edit| edit.span.file == place.file);
        let title = help.text.trim_end_matches('?').to_owned();
        let action = edit.and_then(|edit| quick_fix(place, diagnostic, title, &edit));
        add(actions, action);
    }
}

/// Adds an action, unless one is there that does the same for another diagnostic.
fn add(actions: &mut Vec<CodeAction>, action: Option<CodeAction>) {
    let is_there = |action: &CodeAction| {
        actions
            .iter()
            .any(|known| known.title == action.title && known.edit == action.edit)
    };
    let action = action.filter(|action| !is_there(action));
    actions.extend(action);
}

fn quick_fix<A: Analysed>(
    place: &Place<'_, A>,
    diagnostic: &Diagnostic,
    title: String,
    edit: &Edit,
) -> Option<CodeAction> {
    Some(CodeAction {
        title,
        kind: Some(CodeActionKind::QUICKFIX),
        diagnostics: Some(vec![shown(diagnostic, place.range(diagnostic.primary.span))]),
        edit: Some(change(place, &[edit])?),
        is_preferred: Some(true),
        ..CodeAction::default()
    })
}

/// The comment that allows a warning, on a line of its own above it. None for what no comment allows.
fn allowing<A: Analysed>(place: &Place<'_, A>, warning: &Diagnostic) -> Option<Edit> {
    let at = warning.primary.span;
    if warning.severity != Severity::Warning
        || at.file != place.file
        || ABOUT_COMMENTS.contains(&warning.code.code)
    {
        return None;
    }
    let text = place.text.as_str();
    let start = text[..at.start as usize].rfind('\n').map_or(0, |end| end + 1);
    // Above a line that begins inside of a string there is no room for a comment.
    if place.analysis.is_in_text(place.file, start as u32) {
        return None;
    }
    let line = &text[start..];
    let indent = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
    Some(Edit {
        span: Span::new(place.file, start as u32, start as u32),
        replacement: format!("{indent}# setpoint: allow({})\n", rule_of(warning)),
    })
}

fn fix_all<A: Analysed>(place: &Place<'_, A>) -> Option<CodeAction> {
    let found = place.program.diagnostics(&place.setup.library);
    let edits = fixes(found, place.file);
    if edits.is_empty() {
        return None;
    }
    Some(CodeAction {
        title: "mend what can be mended".to_owned(),
        kind: Some(CodeActionKind::new(FIX_ALL)),
        edit: Some(change(place, &edits)?),
        ..CodeAction::default()
    })
}

/// A change of this document.
fn change<A: Analysed>(place: &Place<'_, A>, edits: &[&Edit]) -> Option<WorkspaceEdit> {
    let uri = uri::uri(place.program.path(place.file)?)?;
    let edits = edits
        .iter()
        .map(|edit| TextEdit::new(place.range(edit.span), edit.replacement.clone()));
    #[expect(
        clippy::mutable_key_type,
        reason = "the protocol's type; an address is never changed"
    )]
    let changes = HashMap::from([(uri, edits.collect())]);
    Some(WorkspaceEdit::new(changes))
}

/// «did you mean `x`?» without an edit of its own: the name in the text that the message quotes becomes the one that was meant.
fn meant<A: Analysed>(place: &Place<'_, A>, diagnostic: &Diagnostic, help: &str) -> Option<Edit> {
    let meant = help
        .strip_prefix("did you mean `")?
        .strip_suffix("`?")?
        .trim_start_matches('$');
    let within = diagnostic.primary.span;
    let text = place.analysis.sources().text(within);
    let quoted = diagnostic.message.split('`').skip(1).step_by(2);
    let written = quoted
        .map(|name| name.trim_start_matches('$'))
        .find_map(|name| Some((find_name(text, name)?, name)));
    let (at, name) = written?;
    let start = within.start + at as u32;
    Some(Edit {
        span: Span::new(within.file, start, start + name.len() as u32),
        replacement: meant.to_owned(),
    })
}

/// Where a name stands by itself in a text, if it does so once.
fn find_name(text: &str, name: &str) -> Option<usize> {
    if name.is_empty() {
        return None;
    }
    let is_part = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let bytes = text.as_bytes();
    let mut found = text.match_indices(name).filter(|(at, _)| {
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        !is_part(before) && !is_part(bytes.get(at + name.len()))
    });
    let (at, _) = found.next()?;
    found.next().is_none().then_some(at)
}
