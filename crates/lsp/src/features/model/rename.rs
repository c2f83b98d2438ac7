//! Renaming: every place that names the thing, texts included; nothing that is not in a file of the project.

use std::collections::HashMap;

use lsp_types::{TextEdit, Uri, WorkspaceEdit};
use serde_json::{Value as Json, json};
use setpoint_cf::analysis::Target;
use setpoint_cf::hir::MemberKind;
use setpoint_cf::syntax::TokenKind;
use setpoint_diagnostics::Span;

use super::Place;
use crate::features::{Answer, to_json};

/// Where the name stands that would be changed.
pub(in crate::features) fn prepare(place: &Place<'_>) -> Result<Option<Json>, Answer> {
    let Some(name) = place.analysis.name_at(place.file, place.offset) else {
        return Ok(None);
    };
    changeable(place, &name.target)?;
    let text = place.analysis.text_at(name.span);
    Ok(Some(
        json!({ "range": place.range(name.span), "placeholder": text }),
    ))
}

pub(in crate::features) fn rename(place: &Place<'_>, new: &str) -> Result<Option<Json>, Answer> {
    let analysis = place.analysis;
    let Some(name) = analysis.name_at(place.file, place.offset) else {
        return Err(refusal("there is no name here"));
    };
    changeable(place, &name.target)?;
    let is_entity = matches!(name.target, Target::Entity(_));
    is_name(new, is_entity)?;
    let old = analysis.text_at(name.span);
    if new == old {
        return Ok(to_json(WorkspaceEdit::default()));
    }
    no_clash(place, &name.target, new)?;
    #[expect(
        clippy::mutable_key_type,
        reason = "the protocol's type; an address is never changed"
    )]
    let mut changes: HashMap<Uri, Vec<TextEdit>> = HashMap::new();
    for mention in analysis.references(&name.target) {
        if !is_ours(place, mention.span) {
            return Err(refusal("a file that is no part of the project names it too"));
        }
        let Some(location) = place.location(mention.span) else {
            continue;
        };
        let edit = TextEdit::new(location.range, new.to_owned());
        changes.entry(location.uri).or_default().push(edit);
    }
    Ok(to_json(WorkspaceEdit::new(changes)))
}

fn refusal(why: &str) -> Answer {
    Answer::Refusal(why.to_owned())
}

/// Refuses what belongs to others, and what has its name from elsewhere.
fn changeable(place: &Place<'_>, target: &Target) -> Result<(), Answer> {
    match target {
        Target::Entity(_)
        | Target::Typedef(_)
        | Target::Implementation(_)
        | Target::Variable(_)
        | Target::Alias(..) => {}
        Target::Member(entity, symbol) => {
            let member = place.analysis.member(*entity, *symbol);
            if member.is_some_and(|member| {
                matches!(member.kind, MemberKind::Attribute { .. }) && member.span.is_none()
            }) {
                return Err(refusal(
                    "attributes that stand for parameters of kinds keep their names",
                ));
            }
        }
        Target::Primitive(_) => return Err(refusal("built-in types keep their names")),
        Target::Function(..) => {
            return Err(refusal(
                "functions are not written in models and keep their names",
            ));
        }
        Target::Namespace(_) => {
            return Err(refusal(
                "a namespace is called like its file; move the file instead",
            ));
        }
        Target::Instance(_) | Target::Value(_) => return Err(refusal("`self` keeps its name")),
    }
    match place.analysis.definition(target) {
        Some(definition) if is_ours(place, definition) => Ok(()),
        _ => Err(refusal(
            "what is built in or belongs to another project keeps its name",
        )),
    }
}

/// Whether a text may be changed.
fn is_ours(place: &Place<'_>, span: Span) -> bool {
    span.file == place.file || place.analysis.is_own(span.file)
}

/// Refuses a name that something of the same sort has already where it would be found.
fn no_clash(place: &Place<'_>, target: &Target, new: &str) -> Result<(), Answer> {
    let analysis = place.analysis;
    let model = &analysis.model;
    let is_taken = match target {
        Target::Member(entity, _) => analysis.symbol(new).is_some_and(|symbol| {
            let of = &model.entities[entity.index()];
            let near = of.ancestors.iter().chain(&of.descendants).chain([entity]);
            near.into_iter()
                .any(|entity| analysis.member(*entity, symbol).is_some())
        }),
        Target::Variable(declared) => {
            let outline = analysis.names_in(declared.file).iter();
            let mut variables = outline.filter(|name| matches!(name.target, Target::Variable(_)));
            variables.any(|name| analysis.text_at(name.span) == new)
        }
        Target::Alias(span, _) => {
            let namespace = analysis.namespace_of(span.file);
            namespace.is_some_and(|namespace| model.visible(namespace, new).is_some())
        }
        target => {
            let namespace = match target {
                Target::Entity(id) => model.entities[id.index()].namespace,
                Target::Typedef(id) => model.typedefs[id.index()].namespace,
                Target::Implementation(id) => model.implementations[id.index()].namespace,
                _ => return Ok(()),
            };
            let whole = format!("{}::{new}", model.namespaces[namespace.index()].name);
            model.entities.iter().any(|entity| *entity.name == whole)
                || model.typedefs.iter().any(|typedef| *typedef.name == whole)
                || model.implementations.iter().any(|one| *one.name == whole)
        }
    };
    match is_taken {
        true => Err(Answer::Refusal(format!(
            "`{new}` already means something where this is used"
        ))),
        false => Ok(()),
    }
}

fn is_name(text: &str, is_entity: bool) -> Result<(), Answer> {
    let mut bytes = text.bytes();
    let begins = bytes.next().is_some_and(|first| match is_entity {
        true => first.is_ascii_uppercase(),
        false => first.is_ascii_lowercase() || first == b'_',
    });
    let is_word = bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if begins && is_word && TokenKind::of_word(text).is_none() {
        return Ok(());
    }
    let first = if is_entity {
        "a capital letter"
    } else {
        "a small letter"
    };
    Err(Answer::Refusal(format!(
        "`{text}` is no name for this: {first} first, then letters, digits and `_`, and no word of the language"
    )))
}
