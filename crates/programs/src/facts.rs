//! Facts of resources that a file states, for models.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value as Json;
use setpoint_cf::datum::{Datum, from_json};

use crate::failure::{Failure, system_text};

/// Facts by `machine/kind[name]/fact`.
pub type Facts = BTreeMap<Arc<str>, Datum>;

/// Reads a file with facts, by machine, resource and name.
///
/// # Errors
/// When it cannot be read, or holds something else.
pub(crate) fn read_facts(path: &Path) -> Result<Facts, Failure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::wrong(format!("`{shown}` cannot be read")).because(system_text(&error)))?;
    parse_facts(&text).map_err(|what| {
        Failure::wrong(format!("`{shown}` holds no facts: {what}"))
            .hint("it holds {\"MACHINE\": {\"KIND[NAME]\": {\"FACT\": VALUE}}}")
    })
}

/// Reads the text of such a file.
///
/// # Errors
/// When the text contains anything else.
pub fn parse_facts(text: &str) -> Result<Facts, String> {
    let machines: Json = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let object = |value: &Json, what: &str| match value {
        Json::Object(entries) => Ok(entries.clone()),
        _ => Err(format!("{what} is no object")),
    };
    let mut facts = Facts::new();
    for (machine, resources) in object(&machines, "the whole")? {
        for (resource, values) in object(&resources, &format!("`{machine}`"))? {
            for (fact, value) in object(&values, &format!("`{resource}`"))? {
                let key = format!("{machine}/{resource}/{fact}");
                facts.insert(key.into(), from_json(&value));
            }
        }
    }
    Ok(facts)
}
