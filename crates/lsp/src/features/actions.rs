//! Quick fixes: the edits that diagnostics bring, and names that were probably meant.

use std::collections::HashMap;

use lsp_types::{CodeAction, CodeActionKind, TextEdit, WorkspaceEdit};
use serde_json::Value as Json;
use setpoint_diagnostics::{Diagnostic, Span};

use super::diagnostics::{shown, touching};
use super::{Place, to_json};
use crate::uri;

pub(super) fn actions(place: &Place<'_>, span: Span) -> Option<Json> {
    let mut actions: Vec<CodeAction> = Vec::new();
    for diagnostic in touching(place, span).take(64) {
        for help in &diagnostic.help {
            let edit = match &help.edit {
                Some(edit) => Some((edit.span, edit.replacement.clone())),
                None => meant(place, diagnostic, &help.text),
            };
            let Some((span, replacement)) = edit.filter(|(span, _)| span.file == place.file) else {
                continue;
            };
            let action = action(place, diagnostic, &help.text, span, replacement);
            if let Some(action) = action
                && !actions.contains(&action)
            {
                actions.push(action);
            }
        }
    }
    to_json(actions)
}

fn action(
    place: &Place<'_>,
    diagnostic: &Diagnostic,
    title: &str,
    span: Span,
    replacement: String,
) -> Option<CodeAction> {
    let uri = uri::uri(place.program.path(place.file)?)?;
    let edit = TextEdit::new(place.range(span), replacement);
    #[expect(
        clippy::mutable_key_type,
        reason = "the protocol's type; an address is never changed"
    )]
    let changes = HashMap::from([(uri, vec![edit])]);
    Some(CodeAction {
        title: title.trim_end_matches('?').to_owned(),
        kind: Some(CodeActionKind::QUICKFIX),
        diagnostics: Some(vec![shown(diagnostic, place.range(diagnostic.primary.span))]),
        edit: Some(WorkspaceEdit::new(changes)),
        is_preferred: Some(true),
        ..CodeAction::default()
    })
}

/// «did you mean `x`?» without an edit of its own: the name in the text that the message quotes becomes the one that was meant.
fn meant(place: &Place<'_>, diagnostic: &Diagnostic, help: &str) -> Option<(Span, String)> {
    let meant = help
        .strip_prefix("did you mean `")?
        .strip_suffix("`?")?
        .trim_start_matches('$');
    let within = diagnostic.primary.span;
    let text = place.analysis().sources.text(within);
    let quoted = diagnostic.message.split('`').skip(1).step_by(2);
    let written = quoted
        .map(|name| name.trim_start_matches('$'))
        .find_map(|name| Some((find_name(text, name)?, name)));
    let (at, name) = written?;
    let start = within.start + at as u32;
    let span = Span::new(within.file, start, start + name.len() as u32);
    Some((span, meant.to_owned()))
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
