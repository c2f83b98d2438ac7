//! Renaming: every place that names the thing, strings included; nothing that is not in a file of the program's user.

use std::collections::HashMap;

use lsp_types::{TextEdit, Uri, WorkspaceEdit};
use serde_json::{Value as Json, json};
use setpoint_mcl::analysis::{Name, Space, Target, Visible};
use setpoint_mcl::syntax::TokenKind;

use super::{Answer, Place, to_json};
use crate::uri;

/// Where the name stands that would be changed.
pub(super) fn prepare(place: &Place<'_>) -> Result<Option<Json>, Answer> {
    let Some(name) = place.analysis().name_at(place.file, place.offset) else {
        return Ok(None);
    };
    changeable(place, name)?;
    let text = place.analysis().sources.text(name.span);
    Ok(Some(
        json!({ "range": place.range(name.span), "placeholder": text }),
    ))
}

pub(super) fn rename(place: &Place<'_>, new: &str) -> Result<Option<Json>, Answer> {
    let analysis = place.analysis();
    let Some(name) = analysis.name_at(place.file, place.offset) else {
        return Err(Answer::Refusal("there is no name here".to_owned()));
    };
    changeable(place, name)?;
    let new = new.trim_start_matches('$');
    if !is_name(new) || new.contains("__") {
        return Err(Answer::Refusal(format!(
            "`{new}` is no name: small letters, digits and `_`, a letter first, no `_` last and no two in a row, and no word of the language"
        )));
    }
    let old = analysis.sources.text(name.span);
    if new == old {
        return Ok(to_json(WorkspaceEdit::default()));
    }
    let mentions = analysis.references(&name.target);
    no_clash(place, &name.target, new, &mentions)?;
    #[expect(
        clippy::mutable_key_type,
        reason = "the protocol's type; an address is never changed"
    )]
    let mut changes: HashMap<Uri, Vec<TextEdit>> = HashMap::new();
    for mention in mentions {
        // Where it has another name, as an import without `as` that is called by its path, nothing changes.
        if analysis.sources.text(mention.span) != old {
            continue;
        }
        let Some(location) = place.location(mention.span) else {
            continue;
        };
        let edit = TextEdit::new(location.range, new.to_owned());
        changes.entry(location.uri).or_default().push(edit);
    }
    Ok(to_json(WorkspaceEdit::new(changes)))
}

/// Refuses what belongs to the library, and what has its name from elsewhere.
fn changeable(place: &Place<'_>, name: &Name) -> Result<(), Answer> {
    let refuse = |why: &str| Err(Answer::Refusal(why.to_owned()));
    let analysis = place.analysis();
    match &name.target {
        Target::Variable(_) | Target::Function(_) | Target::Class(_) | Target::Alias(_) => {}
        Target::LibraryFunction(_) => return refuse("functions of the library keep their names"),
        Target::Kind(_) => return refuse("kinds keep their names"),
        Target::Parameter { .. } | Target::Meta(_) => return refuse("parameters of kinds keep their names"),
        Target::File(_) => return refuse("an import names a file; move the file instead"),
    }
    let Some(definition) = analysis.definition(&name.target) else {
        return refuse("what the library defines keeps its name");
    };
    let is_ours = place.program.path(definition.file).is_some_and(uri::is_file);
    let is_open = definition.file == place.file;
    if !is_ours && !is_open {
        return refuse("a module that is part of Setpoint keeps its names");
    }
    if analysis.sources.text(definition).starts_with('"') {
        return refuse(
            "this name comes from the path of the import; write `as` behind it to give it another",
        );
    }
    if analysis.sources.text(name.span).contains([':', '.', '*']) {
        return refuse("this name has several parts");
    }
    Ok(())
}

/// Refuses a name that already means something where this one is used.
fn no_clash(place: &Place<'_>, target: &Target, new: &str, mentions: &[&Name]) -> Result<(), Answer> {
    let spaces: &[Space] = match target {
        Target::Variable(_) => &[Space::Variable],
        Target::Function(_) => &[Space::Function],
        Target::Class(_) => &[Space::Class],
        _ => &[Space::Variable, Space::Function, Space::Class],
    };
    let analysis = place.analysis();
    let library = &place.setup.library;
    let is_alias = |target: Option<&Target>| matches!(target, Some(Target::Alias(_)));
    for mention in mentions {
        for space in spaces {
            let visible = analysis.visible(mention.span.file, mention.span.start, *space, None, library);
            // A dot follows an alias, so nothing else is taken for one.
            let same = |known: &&Visible| is_alias(known.target.as_ref()) == is_alias(Some(target));
            if visible.iter().filter(same).any(|known| known.name == new) {
                return Err(Answer::Refusal(format!(
                    "`{new}` already means something where this is used"
                )));
            }
        }
        // What is visible hardly differs from place to place; enough of them were looked at.
        if mentions.len() > 200 {
            break;
        }
    }
    Ok(())
}

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_lowercase())
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && !text.ends_with('_')
        && TokenKind::of_word(text).is_none()
}
