//! Graphs, values and diagnostics as JSON: what `setpoint graph --format json` prints.
//!
//! Resources come by kind and name, the hidden ones after the others; edges by their ends. Values: bools, numbers, texts, lists,
//! structs and maps of text are what JSON has. Everything else is an object with one key that begins with `$`: `$map` (a list
//! of pairs), `$bytes` (Base64), `$unknown` and `$func` (a type), `$sensitive`. Floats that are no numbers are `"NaN"`, `"+Inf"` and
//! `"-Inf"`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value as Json, json};
use setpoint_diagnostics::{Diagnostic, Diagnostics, Label, Position, SourceMap, Span};
use setpoint_value::{Mark, Value, format_float};

use crate::{DesiredEdge, DesiredResource, Link, PrintedGraph, ResourceId};

/// A graph with what was said about it. Automatic edges come last, and say `"auto": true`. Which resources are applied as one
/// is under `groups`, and what is left out because it is unknown under `unknown`; both are there only when they hold something.
#[must_use]
pub fn graph_json<'a>(
    graph: impl Into<PrintedGraph<'a>>,
    diagnostics: &Diagnostics,
    sources: &SourceMap,
) -> Json {
    let PrintedGraph {
        graph,
        automatic,
        groups,
        unknown,
        chains,
    } = graph.into();
    let automatic = automatic.iter().map(|edge| {
        let mut edge = edge_json(edge);
        edge["auto"] = true.into();
        edge
    });
    let edges = graph.edges.values().map(|edge| edge_json(edge)).chain(automatic);
    let resources = graph.resources.values();
    let hidden = graph.hidden.values().flatten();
    let resources = resources.chain(hidden).map(|resource| {
        let mut object = resource_json(resource, sources);
        if chains {
            object["chain"] = chain_json(resource, sources);
        }
        object
    });
    let mut object = json!({
        "resources": resources.collect::<Vec<Json>>(),
        "edges": edges.collect::<Vec<Json>>(),
        "diagnostics": diagnostics_json(diagnostics, sources),
    });
    if !groups.is_empty() {
        let groups = groups.iter().map(|(id, members)| {
            let mut group = id_json(id);
            group["members"] = members.iter().map(id_json).collect();
            group
        });
        object["groups"] = groups.collect();
    }
    if !unknown.is_empty() {
        let parts = unknown
            .iter()
            .map(|part| json!({ "what": part.what.to_string(), "span": span_json(part.span, sources) }));
        object["unknown"] = parts.collect();
    }
    object
}

/// A resource; of the meta parameters those that the program sets. What undoes one that left the program says `"reversal": true`.
#[must_use]
pub fn resource_json(resource: &DesiredResource, sources: &SourceMap) -> Json {
    let place = place(resource.span, sources);
    resource_at_json(resource, place.map(|(file, start, _)| (file, start)))
}

/// The same with the place of its statement, for those who no longer have the text.
#[must_use]
pub fn resource_at_json(resource: &DesiredResource, place: Option<(&str, Position)>) -> Json {
    let parameters = resource.parameters.iter();
    let parameters: Map<String, Json> = parameters
        .map(|(name, value)| (name.to_owned(), value_json(value)))
        .collect();
    let written = resource.meta.written.iter();
    let meta: Map<String, Json> = written
        .map(|name| (name.name().to_owned(), value_json(&resource.meta.value(name))))
        .collect();
    let mut object = json!({
        "kind": &*resource.id.kind,
        "name": &*resource.id.name,
        "params": parameters,
        "meta": meta,
        "span": place.map(place_json),
    });
    if resource.meta.is_reversal {
        object["reversal"] = true.into();
    }
    object
}

/// The steps that lead to a resource, innermost first.
fn chain_json(resource: &DesiredResource, sources: &SourceMap) -> Json {
    let steps = resource.chain.iter().flat_map(|innermost| innermost.outwards());
    let step = |link: &Link| json!({ "step": link.cause.to_string(), "span": span_json(link.span, sources) });
    steps.map(step).collect()
}

fn span_json(span: Span, sources: &SourceMap) -> Option<Json> {
    let (file, start, _) = place(span, sources)?;
    Some(place_json((file, start)))
}

fn place_json((file, start): (&str, Position)) -> Json {
    json!({ "file": file, "line": start.line, "col": start.column })
}

/// An edge as one line of `setpoint graph` shows it.
#[must_use]
pub fn edge_json(edge: &DesiredEdge) -> Json {
    let send = edge.send.iter();
    json!({
        "from": id_json(&edge.from),
        "to": id_json(&edge.to),
        "notify": edge.notify,
        "send": send.map(|(from, to)| json!({ "from": &**from, "to": &**to })).collect::<Vec<Json>>(),
    })
}

fn id_json(id: &ResourceId) -> Json {
    json!({ "kind": &*id.kind, "name": &*id.name })
}

/// A value. What is sensitive is not shown.
#[must_use]
pub fn value_json(value: &Value) -> Json {
    match value {
        Value::Bool(value) => Json::Bool(*value),
        Value::Int(value) => (*value).into(),
        Value::Float(value) => {
            serde_json::Number::from_f64(value.0).map_or_else(|| format_float(value.0).into(), Json::Number)
        }
        Value::Str(text) => match text.as_str() {
            Some(text) => text.into(),
            None => json!({ "$bytes": STANDARD.encode(text.as_bytes()) }),
        },
        Value::List(list) => list.iter().map(value_json).collect(),
        Value::Tuple(items) => items.iter().map(value_json).collect(),
        Value::Set(set) => json!({ "$set": set.iter().map(value_json).collect::<Vec<Json>>() }),
        Value::Map(map) => object(map.iter().map(|(key, value)| (plain_key(key), value)))
            .filter(|_| *map.key_type() == setpoint_value::Type::Str)
            .unwrap_or_else(|| {
                let pairs = map
                    .iter()
                    .map(|(key, value)| json!([value_json(key), value_json(value)]));
                json!({ "$map": pairs.collect::<Vec<Json>>() })
            }),
        Value::Struct(fields) => {
            let fields = fields.iter();
            Json::Object(
                fields
                    .map(|(name, value)| (name.to_owned(), value_json(value)))
                    .collect(),
            )
        }
        Value::Func(func) => json!({ "$func": func.ty().to_string() }),
        Value::Null(_) => Json::Null,
        Value::Unknown(unknown) => json!({ "$unknown": unknown.ty.to_string() }),
        Value::Opaque(opaque) => json!({ "$opaque": &**opaque.name() }),
        Value::Marked(inner) if inner.1.contains(&Mark::Sensitive) => json!({ "$sensitive": true }),
        Value::Marked(inner) => value_json(&inner.0),
    }
}

/// A key that an object can have and that cannot be taken for one of ours.
fn plain_key(key: &Value) -> Option<&str> {
    match key {
        Value::Str(text) => text.as_str().filter(|text| !text.starts_with('$')),
        _ => None,
    }
}

fn object<'a>(entries: impl Iterator<Item = (Option<&'a str>, &'a Value)>) -> Option<Json> {
    let entries = entries.map(|(key, value)| Some((key?.to_owned(), value_json(value))));
    entries.collect::<Option<Map<String, Json>>>().map(Json::Object)
}

/// Diagnostics as rows. Lines and columns count from 1, the end is exclusive. `related` has the places on the way (imports,
/// calls), innermost first, then those that explain why; `causes` has what led to it, as rows of the same form. These, `notes` and
/// `class` are there only when they hold something.
#[must_use]
pub fn diagnostics_json(diagnostics: &Diagnostics, sources: &SourceMap) -> Json {
    let rows = diagnostics.iter();
    rows.map(|diagnostic| diagnostic_json(diagnostic, sources))
        .collect()
}

fn diagnostic_json(diagnostic: &Diagnostic, sources: &SourceMap) -> Json {
    let mut row = Map::new();
    row.insert("severity".into(), diagnostic.severity.name().into());
    row.insert("stage".into(), diagnostic.stage.name().into());
    row.insert("code".into(), diagnostic.code.code.into());
    if !diagnostic.class.is_empty() {
        row.insert("class".into(), diagnostic.class.into());
    }
    row.insert("message".into(), diagnostic.message.as_str().into());
    let place = place(diagnostic.primary.span, sources);
    let (start, end) = place
        .as_ref()
        .map_or((None, None), |(_, start, end)| (Some(*start), Some(*end)));
    row.insert("file".into(), place.map(|(file, ..)| file).into());
    row.insert("line".into(), start.map(|p| p.line).into());
    row.insert("col".into(), start.map(|p| p.column).into());
    row.insert("end_line".into(), end.map(|p| p.line).into());
    row.insert("end_col".into(), end.map(|p| p.column).into());
    let help: Vec<&str> = diagnostic.help.iter().map(|help| help.text.as_str()).collect();
    let help = (!help.is_empty()).then(|| help.join("\n"));
    row.insert("help".into(), help.into());
    let related = diagnostic.related.iter().chain(&diagnostic.secondary);
    let related: Vec<Json> = related.filter_map(|label| label_json(label, sources)).collect();
    if !related.is_empty() {
        row.insert("related".into(), related.into());
    }
    if !diagnostic.notes.is_empty() {
        row.insert("notes".into(), diagnostic.notes.clone().into());
    }
    if !diagnostic.causes.is_empty() {
        let causes = diagnostic.causes.iter();
        let causes = causes.map(|cause| diagnostic_json(cause, sources));
        row.insert("causes".into(), causes.collect::<Vec<Json>>().into());
    }
    Json::Object(row)
}

fn label_json(label: &Label, sources: &SourceMap) -> Option<Json> {
    let (file, start, _) = place(label.span, sources)?;
    Some(json!({ "file": file, "line": start.line, "col": start.column, "message": label.text }))
}

/// File, start and end of a span; none for a span of other texts.
pub(crate) fn place(span: Span, sources: &SourceMap) -> Option<(&str, Position, Position)> {
    let files = sources.files().size_hint().0;
    if span.file.0 as usize >= files {
        return None;
    }
    let (start, end) = sources.positions(span);
    Some((&sources.file(span.file).name, start, end))
}
