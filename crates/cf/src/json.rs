//! The machine-readable form of what became of a model.

use std::collections::BTreeSet;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value as Json, json};
use setpoint_cf_execute::execute::json as executed;
use setpoint_cf_execute::export::{Exported, Identity, Resource, SetParameter};
use setpoint_cf_names::datum::{Datum, Deferred, DeferredSource};
use setpoint_diagnostics::{Diagnostics, Severity, SourceMap};
use setpoint_value::{Mark, Value};

use crate::compile::{Checked, Compiled};

/// A model that was only checked.
#[must_use]
pub fn checked(checked: &Checked, diagnostics: &Diagnostics, sources: &SourceMap) -> Json {
    let mut object = told(diagnostics, sources);
    object["stdout"] = "".into();
    object["reads"] = reads(checked, None).into();
    object
}

/// A model that was executed: outcome, errors, warnings, variables, instances, what was printed, resources, what was read.
#[must_use]
pub fn compiled(compiled: &Compiled, diagnostics: &Diagnostics, sources: &SourceMap) -> Json {
    let whole = Whole {
        compiled,
        diagnostics,
        sources,
    };
    // It has texts as keys and nothing that JSON cannot hold.
    serde_json::to_value(whole).unwrap_or_default()
}

/// Writes the same, without having it in memory as a whole: there may be millions of instances.
///
/// # Errors
/// When it cannot be written.
pub fn write_compiled(
    writer: &mut dyn std::io::Write,
    compiled: &Compiled,
    diagnostics: &Diagnostics,
    sources: &SourceMap,
) -> std::io::Result<()> {
    let whole = Whole {
        compiled,
        diagnostics,
        sources,
    };
    serde_json::to_writer(writer, &whole).map_err(std::io::Error::from)
}

/// All of a model that was executed.
struct Whole<'a> {
    compiled: &'a Compiled,
    diagnostics: &'a Diagnostics,
    sources: &'a SourceMap,
}

impl Serialize for Whole<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Whole {
            compiled, sources, ..
        } = self;
        let told = told(self.diagnostics, sources);
        let executed = compiled.execution.as_ref().zip(compiled.checked.model.as_ref());
        let mut map = serializer.serialize_map(None)?;
        for key in ["outcome", "errors", "warnings"] {
            map.serialize_entry(key, &told[key])?;
        }
        let writer = executed.map(|(execution, model)| executed::Writer::new(execution, model, sources));
        if let Some(writer) = &writer {
            map.serialize_entry("vars", &writer.variables())?;
            map.serialize_entry("instances", &Each(|| writer.instances()))?;
        }
        let printed = executed.map(|(execution, _)| executed::stdout(execution));
        map.serialize_entry("stdout", &printed.unwrap_or_default())?;
        if let Some(exported) = executed.and(compiled.exported.as_ref()) {
            let resources = || {
                exported
                    .resources
                    .iter()
                    .map(|resource| self::resource(resource, exported))
            };
            map.serialize_entry("resources", &Each(resources))?;
        }
        // What was read stands last.
        map.serialize_entry("reads", &reads(&compiled.checked, compiled.execution.as_ref()))?;
        map.end()
    }
}

/// A list whose elements are made one after the other.
struct Each<F>(F);

impl<F: Fn() -> I, I: Iterator<Item = Json>> Serialize for Each<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

/// What went wrong before there was anything else.
#[must_use]
pub fn told(diagnostics: &Diagnostics, sources: &SourceMap) -> Json {
    let places = executed::Places::of(diagnostics, sources);
    let of = |severity: Severity| {
        let found = diagnostics.iter().filter(|found| found.severity == severity);
        found.map(|found| places.diagnostic(found)).collect::<Vec<Json>>()
    };
    json!({
        "outcome": if diagnostics.has_errors() { "error" } else { "ok" },
        "errors": of(Severity::Error),
        "warnings": of(Severity::Warning),
    })
}

fn reads(checked: &Checked, execution: Option<&setpoint_cf_execute::execute::Execution>) -> Vec<String> {
    let files = checked.reads.iter().map(|path| format!("file:{path}"));
    let asked = execution.into_iter().flat_map(|execution| &execution.reads);
    let all: BTreeSet<String> = files.chain(asked.map(ToString::to_string)).collect();
    all.into_iter().collect()
}

/// A resource of some machine.
fn resource(resource: &Resource, exported: &Exported) -> Json {
    let Identity { machine, kind, name } = &resource.identity;
    let parameters: Map<String, Json> = resource
        .parameters
        .iter()
        .map(|set| (set.parameter.name.to_owned(), parameter(set, exported)))
        .collect();
    let meta: Map<String, Json> = resource
        .meta
        .iter()
        .map(|(name, given)| (name.name().to_owned(), value(given)))
        .collect();
    let required = resource.requires.iter().map(|requirement| {
        let other = &exported.resources[requirement.resource].identity;
        match other.machine == *machine || [&other.machine, machine].iter().any(|one| &***one == "*") {
            true => format!("{}[{}]", other.kind, other.name),
            false => other.key(),
        }
    });
    json!({
        "kind": &**kind,
        "name": &**name,
        "machine": &**machine,
        "params": parameters,
        "meta": meta,
        "state": resource.state.name(),
        "unknown": resource.unknown().collect::<Vec<_>>(),
        "requires": required.collect::<Vec<_>>(),
        "set": resource.set.as_deref(),
    })
}

fn parameter(set: &SetParameter, exported: &Exported) -> Json {
    match set.deferred.as_slice() {
        [(path, whole)] if path.is_empty() => deferred(whole, exported),
        _ => value(&set.value),
    }
}

fn deferred(deferred: &Deferred, exported: &Exported) -> Json {
    let name_of = |instance| {
        let found = exported.of_instance(instance);
        found.map(|found| found.identity.key())
    };
    let (kind, arguments) = match &deferred.source {
        DeferredSource::Int(datum) => ("int", json!({ "value": plain(datum) })),
        DeferredSource::Environment(datum) => ("environment", json!({ "name": plain(datum) })),
        DeferredSource::Fact { resource, fact } => (
            "fact",
            json!({ "resource": name_of(*resource), "fact_name": &**fact }),
        ),
        DeferredSource::Send { resource, key } => {
            ("send", json!({ "resource": name_of(*resource), "key": &**key }))
        }
    };
    json!({ "$deferred": kind, "args": arguments })
}

/// A text or number that a deferred reference is made of.
fn plain(datum: &Datum) -> Json {
    match datum {
        Datum::Bool(value) => json!(value),
        Datum::Int(number) => json!(number),
        Datum::Text(text) => json!(&**text),
        Datum::Unknown(_) => json!({ "$unknown": true }),
        _ => Json::Null,
    }
}

/// A value of a parameter. What is sensitive is not shown.
fn value(given: &Value) -> Json {
    match given {
        Value::Unknown(_) => json!({ "$unknown": true }),
        Value::Float(number) if number.0.is_nan() => "nan".into(),
        Value::Float(number) if number.0.is_infinite() => if number.0 > 0.0 { "inf" } else { "-inf" }.into(),
        Value::List(items) => items.iter().map(value).collect(),
        Value::Tuple(items) => items.iter().map(value).collect(),
        Value::Map(map) => {
            let key = |key: &Value| match key {
                Value::Str(text) => text.to_lossy().into_owned(),
                other => other.to_string(),
            };
            Json::Object(map.iter().map(|(name, item)| (key(name), value(item))).collect())
        }
        Value::Struct(fields) => Json::Object(
            fields
                .iter()
                .map(|(name, item)| (name.to_owned(), value(item)))
                .collect(),
        ),
        Value::Marked(inner) if inner.1.contains(&Mark::Sensitive) => json!({ "$sensitive": true }),
        Value::Marked(inner) => value(&inner.0),
        other => setpoint_graph::json::value_json(other),
    }
}
