//! A JSON schema (draft 2020-12) of graphs in YAML, for editors: which kinds there are, their parameters with documentation, and the meta
//! parameters. It follows from the descriptions of the kinds.

use serde_json::{Map, Value as Json, json};
use setpoint_graph::{KindSchema, Library, MetaName, ParameterSchema, ParameterType};
use setpoint_value::Type;

/// The schema of files whose resources are of these kinds.
#[must_use]
pub fn schema(library: &Library) -> Json {
    let kinds: Map<String, Json> = library
        .kinds
        .values()
        .map(|kind| {
            let resources =
                json!({ "type": ["array", "null"], "description": kind.doc, "items": resource(kind) });
            (kind.kind.to_owned(), resources)
        })
        .collect();
    let end = json!({
        "type": "object",
        "required": ["kind", "name"],
        "additionalProperties": false,
        "properties": { "kind": { "type": "string" }, "name": { "type": "string" } },
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A graph of resources for Setpoint",
        "type": "object",
        "required": ["graph"],
        "additionalProperties": false,
        "properties": {
            "graph": { "type": "string", "minLength": 1, "description": "The name of the graph." },
            "comment": { "type": ["string", "null"], "description": "What it is for." },
            "resources": {
                "type": ["object", "null"],
                "description": "Resources by their kind.",
                "additionalProperties": false,
                "properties": kinds,
            },
            "edges": {
                "type": ["array", "null"],
                "description": "What comes before what.",
                "items": {
                    "type": "object",
                    "required": ["from", "to"],
                    "additionalProperties": false,
                    "properties": {
                        "name": { "type": "string", "description": "What it is for." },
                        "from": end,
                        "to": end,
                        "notify": { "type": "boolean", "description": "Whether a repair of the first notifies the second." },
                    },
                },
            },
            "collect": { "type": ["array", "null"], "description": "Has no effect." },
        },
    })
}

fn resource(kind: &KindSchema) -> Json {
    let mut properties: Map<String, Json> = kind
        .parameters
        .iter()
        .map(|parameter| (parameter.yaml_name.to_owned(), described(parameter)))
        .collect();
    properties.insert(
        "name".to_owned(),
        json!({ "type": "string", "minLength": 1, "description": "Its name. One that begins with `@@` is exported." }),
    );
    let meta: Map<String, Json> = MetaName::ALL
        .into_iter()
        .map(|name| {
            let mut written = of_type(&name.ty());
            written["description"] = name.doc().into();
            (name.name().to_owned(), written)
        })
        .collect();
    let meta = json!({ "type": "object", "additionalProperties": false, "properties": meta, "description": "Meta parameters." });
    properties.insert("meta".to_owned(), meta);
    json!({ "type": "object", "required": ["name"], "additionalProperties": false, "properties": properties })
}

fn described(parameter: &ParameterSchema) -> Json {
    let mut written = of_parameter(parameter.parameter_type);
    written["description"] = parameter.doc.into();
    written
}

fn of_parameter(ty: &ParameterType) -> Json {
    match ty {
        ParameterType::Bool => json!({ "type": "boolean" }),
        // Numbers are texts as they are written.
        ParameterType::Str => json!({ "type": ["string", "number", "boolean"] }),
        ParameterType::Int { signed: true, .. } => json!({ "type": "integer" }),
        ParameterType::Int { signed: false, .. } => json!({ "type": "integer", "minimum": 0 }),
        ParameterType::Float { .. } => json!({ "type": "number" }),
        ParameterType::List(element) => json!({ "type": "array", "items": of_parameter(element) }),
        ParameterType::Array(element, room) => {
            json!({ "type": "array", "items": of_parameter(element), "maxItems": room })
        }
        ParameterType::Map(_, element) => {
            json!({ "type": "object", "additionalProperties": of_parameter(element) })
        }
        ParameterType::Struct(fields) => {
            let properties: Map<String, Json> = fields
                .iter()
                .map(|(name, ty)| ((*name).to_owned(), of_parameter(ty)))
                .collect();
            json!({ "type": "object", "additionalProperties": false, "properties": properties })
        }
        ParameterType::Optional(inner) => of_parameter(inner),
        ParameterType::Any => json!({}),
        ParameterType::Func(_) => json!({ "not": {} }),
    }
}

/// Types of meta parameters.
fn of_type(ty: &Type) -> Json {
    match ty {
        Type::Bool => json!({ "type": "boolean" }),
        Type::Int => json!({ "type": "integer" }),
        Type::Float => json!({ "type": "number" }),
        _ => json!({ "type": "array", "items": { "type": "string" } }),
    }
}
