//! Signature help: how what is being called is called, and the argument at the place.

use serde_json::{Value as Json, json};
use setpoint_cf::analysis::Target;
use setpoint_cf::hir::{FunctionImplementation, MemberKind};

use super::{Place, hover};

/// A signature with its parameters.
struct Shown {
    label: String,
    parameters: Vec<String>,
}

pub(in crate::features) fn help(place: &Place<'_>) -> Option<Json> {
    let library = &place.setup.library;
    let (target, argument) = place.analysis.call_at(place.file, place.offset, library)?;
    let shown: Vec<Shown> = match &target {
        Target::Entity(id) => {
            let entity = &place.analysis.model.entities[id.index()];
            let attributes = entity.members.iter().filter_map(|member| match member.kind {
                MemberKind::Attribute { .. } => Some(place.analysis.member_entry(*id, member).0),
                MemberKind::Relation(_) => None,
            });
            let parameters: Vec<String> = attributes.collect();
            let name = place.analysis.entity_name(*id);
            vec![Shown {
                label: format!("{name}({})", parameters.join(", ")),
                // They are given by name, in any order.
                parameters: Vec::new(),
            }]
        }
        Target::Function(_, FunctionImplementation::Library(function)) => {
            hover::calls(function).into_iter().map(split).collect()
        }
        Target::Function(..) => vec![split(place.analysis.describe(&target)?.code)],
        _ => return None,
    };
    let doc = hover::about(place, &target).unwrap_or_default();
    let signatures: Vec<Json> = shown
        .iter()
        .map(|shown| {
            let parameters: Vec<Json> = shown
                .parameters
                .iter()
                .map(|name| json!({ "label": name }))
                .collect();
            json!({
                "label": shown.label,
                "documentation": { "kind": "markdown", "value": doc.trim_end() },
                "parameters": parameters,
            })
        })
        .collect();
    let fits = |shown: &Shown| argument < shown.parameters.len().max(1);
    let active = shown.iter().position(fits).unwrap_or_default();
    Some(json!({ "signatures": signatures, "activeSignature": active, "activeParameter": argument }))
}

/// The parameters of `f(a: string, b: int = 1) -> string`, or of `f(a str, b list[int]) str`.
fn split(label: String) -> Shown {
    let mut parameters = Vec::new();
    let (mut depth, mut part) = (0_usize, String::new());
    let inside = label.find('(').map_or("", |open| &label[open + 1..]);
    for letter in inside.chars() {
        match letter {
            ')' if depth == 0 => break,
            ',' if depth == 0 => {
                parameters.push(std::mem::take(&mut part).trim().to_owned());
                continue;
            }
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        part.push(letter);
    }
    let last = part.trim();
    if !last.is_empty() {
        parameters.push(last.to_owned());
    }
    Shown { label, parameters }
}
