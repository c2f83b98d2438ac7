//! Signature help: all ways to call what is being called, and the argument at the place.

use serde_json::{Value as Json, json};
use setpoint_diagnostics::Span;
use setpoint_mcl::analysis::{CallAt, Target};
use setpoint_mcl::hir::DefinitionId;
use setpoint_value::{FunctionSpec, Type};

use super::Place;

/// A signature, as clients show it.
struct Shown {
    label: String,
    parameters: Vec<(String, String)>,
    doc: String,
    /// Whether all further arguments are like the last.
    is_open: bool,
}

pub(super) fn help(place: &Place<'_>) -> Option<Json> {
    let analysis = place.analysis();
    let call = analysis.call_at(place.file, place.offset)?;
    let target = called(place, &call)?;
    let shown: Vec<Shown> = match &target {
        Target::LibraryFunction(function) => of_library(function),
        Target::Function(id) => {
            let function = analysis.hir.function(*id);
            let name = function.name.as_deref().unwrap_or("func");
            vec![of_program(place, name, &function.parameters)]
        }
        Target::Class(id) => {
            let class = analysis.hir.class(*id);
            vec![of_program(place, &class.name, &class.parameters)]
        }
        Target::Variable(id) => {
            let name = format!("${}", analysis.hir.definition(*id).name);
            analysis
                .types_of(*id)
                .iter()
                .filter_map(|ty| of_type(&name, ty))
                .collect()
        }
        _ => return None,
    };
    if shown.is_empty() {
        return None;
    }
    let fits = |shown: &Shown| shown.is_open || call.argument < shown.parameters.len().max(1);
    let active = shown.iter().position(fits).unwrap_or_default();
    let signatures: Vec<Json> = shown
        .iter()
        .map(|shown| signature(shown, call.argument))
        .collect();
    Some(json!({ "signatures": signatures, "activeSignature": active, "activeParameter": call.argument }))
}

/// What is called: by its name, or, while that is not understood, by what is visible.
fn called(place: &Place<'_>, call: &CallAt) -> Option<Target> {
    let analysis = place.analysis();
    if let Some(name) = analysis.name_at(place.file, call.name.end)
        && matches!(
            name.target,
            Target::Function(_) | Target::LibraryFunction(_) | Target::Class(_) | Target::Variable(_)
        )
    {
        return Some(name.target.clone());
    }
    use setpoint_mcl::analysis::Space;
    let text = analysis.sources.text(call.name);
    let (qualifier, last) = match text.rsplit_once('.') {
        Some((qualifier, last)) => (Some(qualifier), last),
        None => (qualifier_before(place, call.name), text),
    };
    let spaces = match call.is_variable {
        true => &[Space::Variable][..],
        false => &[Space::Function, Space::Class][..],
    };
    spaces.iter().find_map(|space| {
        let offset = call.name.start;
        let visible = analysis.visible(place.file, offset, *space, qualifier, &place.setup.library);
        let found = visible.into_iter().find(|known| known.name == last)?;
        found.target
    })
}

/// `a.b` before `.name`.
fn qualifier_before<'a>(place: &Place<'a>, name: Span) -> Option<&'a str> {
    let text = &place.analysis().sources.file(name.file).text;
    let before = text.get(..name.start as usize)?.strip_suffix('.')?;
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '.';
    let start = before.rfind(|c: char| !is_part(c)).map_or(0, |at| at + 1);
    (start < before.len()).then(|| &before[start..])
}

fn of_library(function: &FunctionSpec) -> Vec<Shown> {
    let docs = function.parameter_docs();
    let signatures = function.signatures();
    function
        .alternatives()
        .iter()
        .zip(signatures)
        .map(|(signature, written)| {
            let rest = written.strip_prefix("func").unwrap_or(written);
            let doc = |name: &str| {
                let found = docs.iter().find(|doc| doc.name == name);
                found.map_or_else(String::new, |doc| doc.doc.to_owned())
            };
            let parameters = signature.parameters.iter().chain(&signature.variadic);
            Shown {
                label: format!("{}{rest}", function.called()),
                parameters: parameters
                    .map(|parameter| {
                        (
                            format!("{} {}", parameter.name, parameter.ty),
                            doc(&parameter.name),
                        )
                    })
                    .collect(),
                doc: function.doc.trim().to_owned(),
                is_open: signature.variadic.is_some(),
            }
        })
        .collect()
}

fn of_program(place: &Place<'_>, name: &str, parameters: &[DefinitionId]) -> Shown {
    let analysis = place.analysis();
    let written = |id: &DefinitionId| {
        let types: Vec<String> = analysis.types_of(*id).iter().map(ToString::to_string).collect();
        let name = &analysis.hir.definition(*id).name;
        match types.is_empty() {
            true => format!("${name}"),
            false => format!("${name} {}", types.join(" | ")),
        }
    };
    let parameters: Vec<(String, String)> =
        parameters.iter().map(|id| (written(id), String::new())).collect();
    shown(name, parameters, "")
}

fn of_type(name: &str, ty: &Type) -> Option<Shown> {
    let function = ty.as_func()?;
    let parameters = function.parameters.iter();
    let written = parameters.map(|parameter| (format!("{} {}", parameter.name, parameter.ty), String::new()));
    Some(shown(name, written.collect(), &format!(" {}", function.result)))
}

fn shown(name: &str, parameters: Vec<(String, String)>, result: &str) -> Shown {
    let labels: Vec<&str> = parameters.iter().map(|(label, _)| &**label).collect();
    Shown {
        label: format!("{name}({}){result}", labels.join(", ")),
        parameters,
        doc: String::new(),
        is_open: false,
    }
}

fn signature(shown: &Shown, argument: usize) -> Json {
    let parameters: Vec<Json> = shown
        .parameters
        .iter()
        .map(|(label, doc)| json!({ "label": label, "documentation": { "kind": "markdown", "value": doc } }))
        .collect();
    // Of any number of further arguments, each is the last.
    let last = shown.parameters.len().saturating_sub(1);
    let active = if shown.is_open {
        argument.min(last)
    } else {
        argument
    };
    json!({
        "label": shown.label,
        "documentation": { "kind": "markdown", "value": shown.doc },
        "parameters": parameters,
        "activeParameter": active,
    })
}
