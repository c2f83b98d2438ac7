//! Rows from two desired graphs: how a new version of a program differs from the old one. No machine is read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use setpoint_engine::{Drift, DriftValue, Effect};
use setpoint_graph::{DesiredEdge, DesiredGraph, DesiredResource, ResourceId, diff};
use setpoint_value::Value;

use crate::model::{Action, Field, Place, Row, Summary};
use crate::words::EDGE;

/// The rows of the resources that differ between two graphs, by place and then by name. `place` finds the statement of a resource in
/// the old graph (false) or the new one (true).
#[must_use]
pub fn compare_graphs(
    old: &DesiredGraph,
    new: &DesiredGraph,
    place: impl Fn(&DesiredResource, bool) -> Option<Place>,
) -> (Vec<Row>, Summary) {
    let change = diff(old, new);
    let mut rows: BTreeMap<ResourceId, Row> = BTreeMap::new();
    for resource in &change.added {
        let mut row = row(resource, Action::Create, place(resource, true));
        for (name, value) in resource.parameters.iter() {
            let field = field(name, Effect::Change, DriftValue::Absent, shown(value));
            match field.diff {
                Some(_) => row.fields.push(field),
                None => drop(row.attributes.insert(name.into(), field.want)),
            }
        }
        rows.insert(resource.id.clone(), row);
    }
    for (old, new) in &change.changed {
        let mut row = row(new, Action::Change, place(new, true));
        row.fields = changed_fields(old, new);
        rows.insert(new.id.clone(), row);
    }
    for resource in &change.removed {
        let action = match resource.meta.reverse {
            true => Action::Undo,
            false => Action::LetGo,
        };
        rows.insert(resource.id.clone(), row(resource, action, place(resource, false)));
    }
    add_edges(&mut rows, &change.edges_added, &change.edges_removed, new, &place);
    let mut summary = Summary::default();
    let mut rows: Vec<Row> = rows.into_values().collect();
    rows.sort_by(crate::builder::compare);
    for row in &rows {
        *summary.count_mut(row.action) += 1;
    }
    summary.unchanged = new.resources.len() - change.added.len() - change.changed.len();
    (rows, summary)
}

fn row(resource: &DesiredResource, action: Action, place: Option<Place>) -> Row {
    Row::new(&resource.id, action, place)
}

/// The parameters and metaparameters that differ.
fn changed_fields(old: &DesiredResource, new: &DesiredResource) -> Vec<Field> {
    let names: BTreeSet<&str> = old
        .parameters
        .iter()
        .chain(new.parameters.iter())
        .map(|(name, _)| name)
        .collect();
    let mut fields = Vec::new();
    for name in names {
        let (was, is) = (old.parameters.get(name), new.parameters.get(name));
        if was != is {
            let side = |value: Option<&Value>| value.map_or(DriftValue::Absent, shown);
            fields.push(field(name, Effect::Change, side(was), side(is)));
        }
    }
    let meta: BTreeSet<_> = old.meta.written.iter().chain(new.meta.written.iter()).collect();
    for name in meta {
        let (was, is) = (old.meta.value(name).to_string(), new.meta.value(name).to_string());
        if was != is {
            fields.push(field(
                &format!("Meta:{}", name.name()),
                Effect::Change,
                was.into(),
                is.into(),
            ));
        }
    }
    fields
}

/// Notes at the resources that stay which edges come and go.
fn add_edges(
    rows: &mut BTreeMap<ResourceId, Row>,
    added: &[Arc<DesiredEdge>],
    removed: &[Arc<DesiredEdge>],
    new: &DesiredGraph,
    place: &impl Fn(&DesiredResource, bool) -> Option<Place>,
) {
    let mut note = |edge: &DesiredEdge, is_new: bool| {
        let Some(resource) = new.resources.get(&edge.from) else {
            return;
        };
        let is_of_both = rows
            .get(&edge.from)
            .is_none_or(|row| row.action == Action::Change);
        if !is_of_both {
            return;
        }
        let text = DriftValue::from(edge_text(edge));
        let (is, want) = match is_new {
            true => (DriftValue::Absent, text),
            false => (text, DriftValue::Absent),
        };
        let row = rows
            .entry(edge.from.clone())
            .or_insert_with(|| row(resource, Action::Change, place(resource, true)));
        row.fields.push(field(EDGE, Effect::Change, is, want));
    };
    removed.iter().for_each(|edge| note(edge, false));
    added.iter().for_each(|edge| note(edge, true));
}

fn edge_text(edge: &DesiredEdge) -> String {
    let sends: Vec<String> = edge
        .send
        .iter()
        .map(|(key, parameter)| format!("sends {key} to {parameter} of"))
        .collect();
    let verb = match (edge.notify, sends.is_empty()) {
        (true, true) => "notifies".to_owned(),
        (false, true) => "comes before".to_owned(),
        (true, false) => format!("notifies, {}", sends.join(", ")),
        (false, false) => sends.join(", "),
    };
    format!("{verb} {}", edge.to)
}

fn shown(value: &Value) -> DriftValue {
    if value.is_sensitive() {
        return DriftValue::Sensitive;
    }
    match value.as_str() {
        Some(text) if text.as_bytes().contains(&b'\n') => DriftValue::content(text.as_bytes()),
        Some(text) => DriftValue::from(String::from_utf8_lossy(text.as_bytes()).into_owned()),
        None => DriftValue::from(value),
    }
}

fn field(name: &str, effect: Effect, is: DriftValue, want: DriftValue) -> Field {
    let drift = Drift {
        member: None,
        field: name.to_owned().into(),
        effect,
        is,
        want,
        attributes: Vec::new(),
        repaired: false,
        is_done: false,
    };
    Field {
        field: name.into(),
        effect,
        is: drift.is.to_string().into(),
        want: drift.want.to_string().into(),
        unknown: false,
        diff: drift.difference().map(Into::into),
    }
}
