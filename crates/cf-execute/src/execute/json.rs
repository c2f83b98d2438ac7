//! The machine-readable form of an execution.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use setpoint_cf_names::datum::{Datum, Deferred, DeferredSource, InstanceId};
use setpoint_cf_names::hir::Model;
use setpoint_diagnostics::{Severity, SourceMap};
use setpoint_value::Mark;

pub use places::Places;

use super::{Execution, Instance, Slot};

mod places;

/// An execution as one object: outcome, errors, warnings, variables of the main file, instances, what was printed, what was read.
/// Whoever exports resources adds them.
#[must_use]
pub fn execution(execution: &Execution, model: &Model, sources: &SourceMap) -> Value {
    let of = |severity| {
        execution
            .diagnostics
            .iter()
            .filter(move |found| found.severity == severity)
    };
    let places = Places::of(&execution.diagnostics, sources);
    let errors: Vec<Value> = of(Severity::Error)
        .map(|error| places.diagnostic(error))
        .collect();
    let warnings: Vec<Value> = of(Severity::Warning)
        .map(|warning| places.diagnostic(warning))
        .collect();
    let writer = Writer::new(execution, model, sources);
    json!({
        "outcome": if errors.is_empty() { "ok" } else { "error" },
        "errors": errors,
        "warnings": warnings,
        "vars": writer.variables(),
        "instances": writer.instances().collect::<Vec<_>>(),
        "stdout": stdout(execution),
        "reads": execution.reads.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

/// What was printed.
#[must_use]
pub fn stdout(execution: &Execution) -> String {
    let lines = execution.printed.iter();
    lines.flat_map(|line| [line.as_str(), "\n"]).collect()
}

/// Makes JSON of what became of a model.
pub struct Writer<'a> {
    execution: &'a Execution,
    model: &'a Model,
    sources: &'a SourceMap,
    /// By instance: its number here, and whether it is shown.
    numbers: Vec<(u32, bool)>,
}

impl<'a> Writer<'a> {
    /// Those that are shown are numbered first, so that a number is a place in the list of them.
    #[must_use]
    pub fn new(execution: &'a Execution, model: &'a Model, sources: &'a SourceMap) -> Writer<'a> {
        let is_shown = |instance: &Instance| {
            let entity = &model.entities[instance.entity.index()];
            !entity.name.starts_with("std::")
        };
        let shown = execution
            .instances
            .iter()
            .filter(|instance| is_shown(instance))
            .count() as u32;
        let (mut next_shown, mut next_hidden) = (0, shown);
        let number = |instance: &Instance| {
            let is_shown = is_shown(instance);
            let next = if is_shown {
                &mut next_shown
            } else {
                &mut next_hidden
            };
            *next += 1;
            (*next - 1, is_shown)
        };
        Writer {
            execution,
            model,
            sources,
            numbers: execution.instances.iter().map(number).collect(),
        }
    }

    /// The variables of the main file.
    #[must_use]
    pub fn variables(&self) -> Map<String, Value> {
        let variables = self.execution.variables.iter();
        variables
            .map(|(name, slot)| (name.to_string(), self.slot(slot)))
            .collect()
    }

    /// All instances but those of entities of `std`.
    pub fn instances(&self) -> impl Iterator<Item = Value> + '_ {
        let all = (0..).map(InstanceId).zip(self.execution.instances.iter());
        all.filter_map(|(id, instance)| self.instance(id, instance))
    }

    fn instance(&self, id: InstanceId, instance: &Instance) -> Option<Value> {
        let (number, is_shown) = self.numbers[id.0 as usize];
        if !is_shown {
            return None;
        }
        let entity = &self.model.entities[instance.entity.index()];
        let attributes = entity.members.iter().zip(0..).map(|(member, slot)| {
            let value = self.slot(&self.execution.slot(id, slot));
            (self.model.text(member.name).to_string(), value)
        });
        let file = self.sources.file(instance.span.file);
        Some(json!({
            "id": number,
            "type": entity.name,
            "file": file.name,
            "line": file.position(instance.span.start).line,
            "attrs": attributes.collect::<Map<String, Value>>(),
        }))
    }

    fn slot(&self, slot: &Slot) -> Value {
        match slot {
            Slot::Value(value) => self.datum(value),
            Slot::Unset(class) => json!({ "$unset": class }),
        }
    }

    fn datum(&self, datum: &Datum) -> Value {
        match datum {
            Datum::Null => Value::Null,
            Datum::Bool(bool) => json!(bool),
            Datum::Int(int) => json!(int),
            Datum::Float(float) if float.is_nan() => json!("nan"),
            Datum::Float(float) if float.is_infinite() => json!(if *float > 0.0 { "inf" } else { "-inf" }),
            Datum::Float(float) => json!(float),
            Datum::Text(text) => json!(text),
            Datum::List(elements) => elements.iter().map(|element| self.datum(element)).collect(),
            Datum::Dict(dict) => {
                let entries = dict
                    .iter()
                    .map(|(key, value)| (key.to_string(), self.datum(value)));
                Value::Object(entries.collect())
            }
            Datum::Instance(id) => self.reference(*id),
            Datum::Unknown(_) => json!({ "$unknown": true }),
            Datum::Deferred(deferred) => self.deferred(deferred),
            Datum::Marked(marked) if marked.marks.contains(&Mark::Sensitive) => json!({ "$sensitive": true }),
            Datum::Marked(marked) => self.datum(&marked.datum),
        }
    }

    fn reference(&self, id: InstanceId) -> Value {
        let entity = self.execution.instances[id.0 as usize].entity;
        json!({ "$ref": self.numbers[id.0 as usize].0, "$type": self.model.entities[entity.index()].name })
    }

    fn deferred(&self, deferred: &Deferred) -> Value {
        let (kind, arguments) = match &deferred.source {
            DeferredSource::Int(value) => ("int", json!({ "value": self.datum(value) })),
            DeferredSource::Environment(name) => ("environment", json!({ "name": self.datum(name) })),
            DeferredSource::Fact { resource, fact } => {
                ("fact", self.with_resource(*resource, "fact_name", fact))
            }
            DeferredSource::Send { resource, key } => ("send", self.with_resource(*resource, "key", key)),
        };
        json!({ "$deferred": kind, "args": arguments })
    }

    fn with_resource(&self, resource: InstanceId, name: &str, value: &Arc<str>) -> Value {
        json!({ "resource": self.reference(resource), name: value })
    }
}
