//! JSON Schemas of lines that are one JSON object each, from the types that are written.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value as Json};
use setpoint_engine::Event;

/// The names of all events of an engine.
pub fn event_names() -> Vec<String> {
    let sorts = sorts_of::<Event>();
    let names = sorts.iter().filter_map(|sort| sort["title"].as_str());
    names.map(str::to_owned).collect()
}

/// The schemas of the variants of an enum that is flattened into a struct, each with the fields of the struct.
pub fn sorts_of<T: JsonSchema>() -> Vec<Json> {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    let mut sorts = match schema["oneOf"].take() {
        Json::Array(sorts) => sorts,
        _ => Vec::new(),
    };
    for sort in &mut sorts {
        sort["title"] = sort["properties"]["event"]["const"].clone();
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            sort["properties"][name] = field.clone();
        }
        let common = schema["required"].as_array().cloned().unwrap_or_default();
        if let Json::Array(required) = &mut sort["required"] {
            required.extend(common);
        }
        never_null(sort);
    }
    sorts
}

/// A field that may be left out is left out rather than null.
pub fn never_null(sort: &mut Json) {
    let required = sort["required"].clone();
    let is_required = |name: &str| {
        required
            .as_array()
            .is_some_and(|names| names.iter().any(|n| n == name))
    };
    let fields: Option<&mut Map<String, Json>> = sort["properties"].as_object_mut();
    for (name, field) in fields.into_iter().flatten() {
        if is_required(name) {
            continue;
        }
        if let Json::Array(types) = &mut field["type"] {
            types.retain(|one| one != "null");
            if let [only] = types.as_slice() {
                field["type"] = only.clone();
            }
        }
    }
}
