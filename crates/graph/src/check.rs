//! Whether a desired graph is what an assembler may give: written from the rules, not from the assembler.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::{DesiredGraph, DesiredResource, ParameterType, ResourceId, TypeMismatch};

/// A rule that a graph breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// A resource or edge is kept under an identity that is not its own.
    WrongKey(ResourceId),
    /// The kind of a resource is not that of its description.
    WrongKind(ResourceId),
    /// A name is empty.
    EmptyName(ResourceId),
    /// A hidden resource among those that are applied, or the other way round.
    WrongPlace(ResourceId),
    /// No, or two equal, hidden resources of an identity.
    HiddenTwice(ResourceId),
    /// A parameter that the kind does not have.
    UnknownParameter(ResourceId, &'static str),
    /// A value that does not fit its parameter.
    Unfit(ResourceId, &'static str, TypeMismatch),
    /// An edge without this end.
    MissingEnd(ResourceId),
    /// What an edge sends is not sorted and distinct.
    UnsortedSend(ResourceId, ResourceId),
    /// An edge sends what cannot be sent or received so.
    BadSend(ResourceId, ResourceId),
    /// A parameter has two senders.
    TwoSenders(ResourceId, String),
    /// These wait for each other.
    Cycle(Vec<ResourceId>),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::WrongKey(id) => write!(f, "`{id}` is kept under another identity"),
            Violation::WrongKind(id) => write!(f, "`{id}` has the description of another kind"),
            Violation::EmptyName(id) => write!(f, "the name of `{id}` is empty"),
            Violation::WrongPlace(id) => write!(f, "`{id}` is hidden or not, contrary to its place"),
            Violation::HiddenTwice(id) => write!(f, "the hidden `{id}` is there twice or not at all"),
            Violation::UnknownParameter(id, name) => write!(f, "`{id}` has no parameter `{name}`"),
            Violation::Unfit(id, name, mismatch) => write!(f, "`{name}` of `{id}` does not fit: {mismatch}"),
            Violation::MissingEnd(id) => write!(f, "an edge names `{id}`, which is not there"),
            Violation::UnsortedSend(from, to) => {
                write!(f, "what `{from}` sends to `{to}` is not sorted and distinct")
            }
            Violation::BadSend(from, to) => write!(f, "`{from}` cannot send to `{to}` so"),
            Violation::TwoSenders(id, name) => write!(f, "`{name}` of `{id}` has two senders"),
            Violation::Cycle(ids) => {
                let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
                write!(f, "in or behind a cycle: {}", ids.join(", "))
            }
        }
    }
}

impl DesiredGraph {
    /// Every rule of the desired graph, checked afresh over all of it. For tests and for graphs from outside.
    ///
    /// # Errors
    /// What is broken.
    pub fn check(&self) -> Result<(), Vec<Violation>> {
        let mut found = Vec::new();
        for (id, resource) in &self.resources {
            check_resource(id, resource, false, &mut found);
        }
        for (id, list) in &self.hidden {
            for resource in list {
                check_resource(id, resource, true, &mut found);
            }
            let twice = |i: usize| list[..i].iter().any(|other| other.is_equal(&list[i]));
            if list.is_empty() || (0..list.len()).any(twice) {
                found.push(Violation::HiddenTwice(id.clone()));
            }
        }
        self.check_edges(&mut found);
        self.check_cycles(&mut found);
        if found.is_empty() { Ok(()) } else { Err(found) }
    }

    fn any(&self, id: &ResourceId) -> Option<&DesiredResource> {
        let hidden = || self.hidden.get(id).and_then(|list| list.first());
        self.resources.get(id).or_else(hidden).map(|resource| &**resource)
    }

    fn check_edges(&self, found: &mut Vec<Violation>) {
        let mut received: BTreeSet<(&ResourceId, &str)> = BTreeSet::new();
        for ((from, to), edge) in &self.edges {
            if (from, to) != (&edge.from, &edge.to) {
                found.push(Violation::WrongKey(from.clone()));
            }
            let ends = [from, to].map(|id| {
                if self.any(id).is_none() {
                    found.push(Violation::MissingEnd(id.clone()));
                }
                self.any(id)
            });
            if !edge.send.windows(2).all(|pair| pair[0] < pair[1]) {
                found.push(Violation::UnsortedSend(from.clone(), to.clone()));
            }
            for (key, parameter) in &edge.send {
                if let [Some(sender), Some(receiver)] = ends {
                    let key = sender.schema.send_key(key).map(|key| key.parameter_type);
                    let target = receiver.schema.parameter(parameter).map(|p| p.parameter_type);
                    let fits = matches!((key, target), (Some(a), Some(b)) if a == b
                        || [a, b].iter().any(|n| matches!(n, ParameterType::Optional(_) | ParameterType::Any)));
                    if !fits || !receiver.schema.receives || self.hidden.contains_key(from) {
                        found.push(Violation::BadSend(from.clone(), to.clone()));
                    }
                }
                if !received.insert((to, parameter)) {
                    found.push(Violation::TwoSenders(to.clone(), parameter.to_string()));
                }
            }
        }
    }

    /// Takes away whatever nothing is waited for by, until nothing or a cycle is left.
    fn check_cycles(&self, found: &mut Vec<Violation>) {
        let mut waits_for: BTreeMap<&ResourceId, usize> = BTreeMap::new();
        let mut leads_to: BTreeMap<&ResourceId, Vec<&ResourceId>> = BTreeMap::new();
        for (from, to) in self.edges.keys() {
            waits_for.entry(from).or_default();
            *waits_for.entry(to).or_default() += 1;
            leads_to.entry(from).or_default().push(to);
        }
        let mut ready: Vec<&ResourceId> = Vec::new();
        ready.extend(
            waits_for
                .iter()
                .filter(|(_, count)| **count == 0)
                .map(|(id, _)| *id),
        );
        while let Some(id) = ready.pop() {
            waits_for.remove(id);
            for to in leads_to.get(id).into_iter().flatten() {
                if let Some(count) = waits_for.get_mut(to) {
                    *count -= 1;
                    if *count == 0 {
                        ready.push(to);
                    }
                }
            }
        }
        if !waits_for.is_empty() {
            found.push(Violation::Cycle(waits_for.into_keys().cloned().collect()));
        }
    }
}

fn check_resource(key: &ResourceId, resource: &DesiredResource, hidden: bool, found: &mut Vec<Violation>) {
    let id = &resource.id;
    if key != id {
        found.push(Violation::WrongKey(id.clone()));
    }
    if *id.kind != *resource.schema.kind {
        found.push(Violation::WrongKind(id.clone()));
    }
    if id.name.is_empty() {
        found.push(Violation::EmptyName(id.clone()));
    }
    if resource.meta.hidden != hidden {
        found.push(Violation::WrongPlace(id.clone()));
    }
    for (name, value) in resource.parameters.iter() {
        match resource.schema.parameter(name) {
            None => found.push(Violation::UnknownParameter(id.clone(), name)),
            Some(parameter) => {
                if let Err(mismatch) = parameter.parameter_type.check(value) {
                    found.push(Violation::Unfit(id.clone(), name, mismatch));
                }
            }
        }
    }
}
