//! The JSON Schema of the lines that `run --json` prints, from the types that are written.

use serde_json::{Value as Json, json};
use setpoint_agent::line_schema::sorts_of;
use setpoint_engine::Event;

use super::json::{Line, SCHEMA};

/// What a line may be: `oneOf` has one object for each sort of event, with all of its fields, whose `title` is the event.
pub(crate) fn lines_schema() -> Json {
    let mut sorts = [sorts_of::<Line<'static>>(), sorts_of::<Event>()].concat();
    for sort in &mut sorts {
        // The version is a promise, not any number.
        if let Some(version) = sort.pointer_mut("/properties/schema") {
            version["const"] = SCHEMA.into();
        }
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of `setpoint run --json`",
        "description": format!("Version {SCHEMA}. Lines may get further fields, and there may be further events, without a new version."),
        "type": "object",
        "oneOf": sorts,
    })
}
