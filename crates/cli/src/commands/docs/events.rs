//! The page of the events that `run --json` prints, from their schema.

use std::fmt::Write;

use serde_json::Value as Json;

use crate::view::{SCHEMA, lines_schema};

/// The schema as a file.
pub(super) fn schema_file() -> String {
    format!("{:#}", lines_schema())
}

/// Every event with its fields.
pub(super) fn page(out: &mut String) {
    let schema = lines_schema();
    let _ = write!(
        out,
        "# Events\n\n`setpoint run --json` prints what happens, one JSON object a line, in order. The first line, `started`, says which \
         version of the schema the lines follow; this is version {SCHEMA}. It rises when something that a reader may rely on \
         changes its meaning or goes away; lines may get further fields, and there may be further events, without it. \
         [`events.schema.json`](events.schema.json) is the same as JSON Schema, one line an instance of it.\n\n\
         Sensitive values are `(sensitive)` in all events. Fields that may be absent are marked with `?`. `kind` and `name` \
         are those of the resource that an event is about; the descriptions call it `it`.\n",
    );
    for sort in schema["oneOf"].as_array().into_iter().flatten() {
        one(sort, out);
    }
}

/// A sort of line with its fields.
pub(super) fn one(sort: &Json, out: &mut String) {
    let _ = write!(
        out,
        "\n## {}\n\n{}\n\n| field | type | meaning |\n|---|---|---|\n",
        text(&sort["title"]),
        text(&sort["description"])
    );
    let mut choices = String::new();
    for (name, field) in fields(sort) {
        let mark = if is_required(sort, name) { "" } else { "?" };
        let meaning = text(&field["description"]).replace('|', "\\|");
        let _ = writeln!(
            out,
            "| `{name}`{mark} | {} | {meaning} |",
            type_of(field).replace('|', "\\|")
        );
        if let Some(variants) = field["oneOf"].as_array() {
            let _ = write!(choices, "\n`{name}` is one of these:\n\n");
            for variant in variants {
                let _ = writeln!(
                    choices,
                    "- {}: {}",
                    type_of(variant),
                    text(&variant["description"])
                );
            }
        } else if fields(field).next().is_some() {
            let _ = write!(choices, "\n`{name}` has these fields:\n\n");
            for (name, field) in fields(field) {
                let _ = writeln!(
                    choices,
                    "- `{name}`, {}: {}",
                    type_of(field),
                    text(&field["description"])
                );
            }
        }
    }
    out.push_str(&choices);
}

fn fields(schema: &Json) -> impl Iterator<Item = (&String, &Json)> {
    schema["properties"].as_object().into_iter().flatten()
}

fn is_required(schema: &Json, field: &str) -> bool {
    let required = schema["required"].as_array();
    required.is_some_and(|names| names.iter().any(|name| name == field))
}

/// A type as a reader of JSON says it: `integer`, `list of string`, `{"watch": string}`, `"ok"`.
fn type_of(schema: &Json) -> String {
    if let Some(value) = schema.get("const") {
        return format!("`{value}`");
    }
    if schema["oneOf"].is_array() {
        return "one of several".to_owned();
    }
    if let Some(types) = schema["anyOf"].as_array() {
        let types: Vec<String> = types.iter().map(type_of).filter(|one| one != "null").collect();
        return types.join(" or ");
    }
    match &schema["type"] {
        Json::Array(types) => {
            let types: Vec<&str> = types.iter().map(text).collect();
            types.join(" or ")
        }
        one if one == "array" => format!("list of {}", type_of(&schema["items"])),
        one if one == "object" && schema["additionalProperties"] == false => {
            let fields: Vec<String> = fields(schema)
                .map(|(name, field)| format!("\"{name}\": {}", type_of(field)))
                .collect();
            format!("`{{{}}}`", fields.join(", "))
        }
        one => text(one).to_owned(),
    }
}

fn text(value: &Json) -> &str {
    value.as_str().unwrap_or_default()
}
