//! The shape of the machine-readable form: which fields there are, in which order, and what they hold.

use serde_json::Value;

/// Refuses an object that is not of the shape that programs rely on.
pub(crate) fn check(object: &Value) -> Result<(), String> {
    let keys = [
        "outcome",
        "errors",
        "warnings",
        "vars",
        "instances",
        "stdout",
        "reads",
    ];
    has_keys("the object", object, &keys)?;
    let errors = list("errors", &object["errors"])?;
    let outcome = if errors.is_empty() { "ok" } else { "error" };
    if object["outcome"] != outcome {
        return Err(format!("`outcome` is {}, not {outcome}", object["outcome"]));
    }
    errors.iter().try_for_each(error)?;
    for warning in list("warnings", &object["warnings"])? {
        has_keys(
            "a warning",
            warning,
            &["code", "class", "message", "file", "line"],
        )?;
    }
    let instances = list("instances", &object["instances"])?;
    for (at, instance) in instances.iter().enumerate() {
        has_keys("an instance", instance, &["id", "type", "file", "line", "attrs"])?;
        if instance["id"] != at {
            return Err(format!("instance {at} has the id {}", instance["id"]));
        }
        values("attrs", &instance["attrs"])?;
    }
    values("vars", &object["vars"])?;
    list("reads", &object["reads"])?;
    match &object["stdout"] {
        Value::String(text) if text.is_empty() || text.ends_with('\n') => Ok(()),
        other => Err(format!("`stdout` is {other}")),
    }
}

fn error(error: &Value) -> Result<(), String> {
    has_keys(
        "an error",
        error,
        &["code", "class", "message", "file", "line", "column", "causes"],
    )?;
    if error["line"].as_u64().is_none() || !(error["column"].is_null() || error["column"].is_u64()) {
        return Err(format!("the place of {error} is wrong"));
    }
    list("causes", &error["causes"])?.iter().try_for_each(self::error)
}

fn has_keys(what: &str, value: &Value, keys: &[&str]) -> Result<(), String> {
    let found: Vec<&String> = value
        .as_object()
        .into_iter()
        .flat_map(|object| object.keys())
        .collect();
    match found == keys {
        true => Ok(()),
        false => Err(format!("{what} has the fields {found:?}, not {keys:?}")),
    }
}

fn list<'a>(name: &str, value: &'a Value) -> Result<&'a Vec<Value>, String> {
    value.as_array().ok_or_else(|| format!("`{name}` is no list"))
}

/// Values by name. One that is no plain value is marked by a key with a dollar.
fn values(name: &str, value: &Value) -> Result<(), String> {
    let entries = value
        .as_object()
        .ok_or_else(|| format!("`{name}` is no object"))?;
    entries.values().try_for_each(self::value)
}

fn value(value: &Value) -> Result<(), String> {
    match value {
        Value::Array(items) => items.iter().try_for_each(self::value),
        Value::Object(entries) => {
            let keys: Vec<&str> = entries.keys().map(String::as_str).collect();
            let is_marked = keys.first().is_some_and(|key| key.starts_with('$'));
            match keys.as_slice() {
                ["$unknown" | "$unset" | "$sensitive"] | ["$ref", "$type"] | ["$deferred", "args"] => Ok(()),
                _ if is_marked => Err(format!("{value} is no value")),
                _ => entries.values().try_for_each(self::value),
            }
        }
        _ => Ok(()),
    }
}
