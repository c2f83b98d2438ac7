//! The JSON Schema of the lines, from the types that are written and read.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value as Json, json};

use super::protocol::{Answer, PROTOCOL, Request};
use crate::line_schema::never_null;

/// What lines may be: under `$defs`, `request` is a line of a client and `answer` one of the process.
pub fn lines_schema() -> Json {
    let draft = SchemaSettings::draft2020_12;
    // What may be left out of a request stands in every answer.
    let requests = schema_of::<Request>(draft().for_deserialize());
    let mut answers = schema_of::<Answer>(draft().for_serialize());
    for sort in answers["oneOf"].as_array_mut().into_iter().flatten() {
        if let Some(version) = sort.pointer_mut("/properties/protocol") {
            version["const"] = PROTOCOL.into();
        }
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line on the control socket of setpoint",
        "description": format!("Version {PROTOCOL}. Answers may get further fields, and there may be further requests, without a new version."),
        "oneOf": [{ "$ref": "#/$defs/request" }, { "$ref": "#/$defs/answer" }],
        "$defs": { "request": requests, "answer": answers },
    })
}

fn schema_of<T: JsonSchema>(settings: SchemaSettings) -> Json {
    let settings = settings.with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    // What holds for every request stands beside the sorts of requests.
    let (common, required) = (schema["properties"].take(), schema["required"].take());
    for sort in schema["oneOf"].as_array_mut().into_iter().flatten() {
        for (name, field) in common.as_object().into_iter().flatten() {
            sort["properties"][name] = field.clone();
        }
        let wanted = required.as_array().cloned().unwrap_or_default();
        if let Json::Array(own) = &mut sort["required"] {
            own.splice(0..0, wanted);
        }
        let tag = ["answer", "request"].iter().find_map(|tag| {
            let name = sort["properties"][tag]["const"].as_str()?;
            Some(name.to_owned())
        });
        sort["title"] = tag.into();
        never_null(sort);
    }
    if let Json::Object(fields) = &mut schema {
        fields.retain(|name, _| ["oneOf", "description"].contains(&name.as_str()));
    }
    schema
}
