//! Puts the resources of programs in the place of the instances that stand for them, and holds what waits for something that is not there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use setpoint_cf::datum::InstanceId;
use setpoint_cf::export::{HeldResource, MachineOutputs, State, StatementOf};
use setpoint_graph::{DesiredEdge, DesiredResource, MetaParameters, ResourceId, StatementOutput};

/// What an instance stands for.
pub(super) enum Became {
    /// These.
    Resources(Part),
    /// Nothing yet; why.
    Held(String),
}

/// The resources of a program and the order among them.
#[derive(Default)]
pub(super) struct Part {
    pub(super) resources: Vec<Arc<DesiredResource>>,
    pub(super) edges: Vec<DesiredEdge>,
}

/// An instance with the edges that lead to it.
struct Instance {
    /// As the model describes it.
    resource: Arc<DesiredResource>,
    part: Part,
    requires: Vec<DesiredEdge>,
}

/// Puts what each instance stands for in its place.
pub(super) fn replace(machine: &mut MachineOutputs, mut became: BTreeMap<InstanceId, Became>) {
    let mut instances: BTreeMap<ResourceId, Instance> = BTreeMap::new();
    let mut kept = Vec::with_capacity(machine.outputs.len());
    let mut own: Vec<(StatementOf, ResourceId)> = Vec::new();
    for (number, mut output) in std::mem::take(&mut machine.outputs) {
        let stands_for = match number {
            StatementOf::Resource(instance) => became.remove(&instance),
            StatementOf::Gate(_) | StatementOf::Settled(_) => None,
        };
        let Some(stands_for) = stands_for else {
            kept.push((number, output));
            continue;
        };
        let Some(resource) = output.resources.pop() else {
            continue;
        };
        match stands_for {
            Became::Resources(part) => {
                own.push((number, resource.id.clone()));
                let requires = std::mem::take(&mut output.edges);
                let instance = Instance {
                    resource: resource.clone(),
                    part,
                    requires,
                };
                instances.insert(resource.id.clone(), instance);
                kept.push((number, output));
            }
            Became::Held(reason) => machine.held.push(HeldResource {
                id: resource.id.clone(),
                span: resource.span,
                resource: Some(resource),
                edges: output.edges,
                state: State::Undefined,
                reason,
            }),
        }
    }
    machine.outputs = kept;
    let of: BTreeMap<StatementOf, ResourceId> = own.into_iter().collect();
    hold_what_waits(machine, &of, &mut instances);
    for (number, output) in &mut machine.outputs {
        match of.get(number) {
            None => {
                if let StatementOf::Settled(_) = number {
                    tell_only_what_is_repaired(output, &instances);
                }
                output.edges = output
                    .edges
                    .iter()
                    .flat_map(|edge| before(edge, &instances))
                    .collect();
            }
            Some(id) => {
                let Some(instance) = instances.get(id) else {
                    continue;
                };
                let mut edges: Vec<DesiredEdge> = instance.part.edges.clone();
                for requirement in &instance.requires {
                    for edge in before(requirement, &instances) {
                        let first = first_of(&instance.part, edge.notify);
                        edges.extend(first.map(|to| DesiredEdge {
                            to: to.id.clone(),
                            ..edge.clone()
                        }));
                    }
                }
                output.resources.clone_from(&instance.part.resources);
                output.edges = edges;
            }
        }
    }
}

/// Of a program some of whose resources are only looked at, others are not told that it is settled: these may be wrong.
fn tell_only_what_is_repaired(output: &mut StatementOutput, instances: &BTreeMap<ResourceId, Instance>) {
    let of = output.edges.iter().filter_map(|edge| instances.get(&edge.from));
    let mut resources = of.flat_map(|instance| &instance.part.resources);
    if resources.any(|resource| resource.meta.noop) {
        for telling in &mut output.resources {
            Arc::make_mut(telling).meta = MetaParameters::only_noop().into();
        }
    }
}

/// Holds whatever comes after something that is held.
fn hold_what_waits(
    machine: &mut MachineOutputs,
    of: &BTreeMap<StatementOf, ResourceId>,
    instances: &mut BTreeMap<ResourceId, Instance>,
) {
    let mut held: BTreeSet<ResourceId> = machine.held.iter().map(|held| held.id.clone()).collect();
    loop {
        let mut is_more = false;
        let mut kept = Vec::with_capacity(machine.outputs.len());
        for (number, mut output) in std::mem::take(&mut machine.outputs) {
            let instance = of.get(&number).and_then(|id| Some((id, instances.get(id)?)));
            let edges = instance.map_or(&output.edges, |(_, instance)| &instance.requires);
            if !edges.iter().any(|edge| held.contains(&edge.from)) {
                kept.push((number, output));
                continue;
            }
            if let StatementOf::Settled(_) = number {
                // There is nothing to tell others.
                continue;
            }
            is_more = true;
            let instance = of.get(&number).and_then(|id| instances.remove(id));
            let (resource, edges) = match (instance, output.resources.pop()) {
                (Some(instance), _) => (instance.resource, instance.requires),
                (None, Some(resource)) => (resource, output.edges),
                (None, None) => continue,
            };
            held.insert(resource.id.clone());
            machine.held.push(HeldResource {
                id: resource.id.clone(),
                span: resource.span,
                resource: Some(resource),
                edges,
                state: State::SkippedForUndefined,
                reason: "something that it requires is held".to_owned(),
            });
        }
        machine.outputs = kept;
        if !is_more {
            return;
        }
    }
}

/// What an edge becomes whose beginning may be an instance.
fn before(edge: &DesiredEdge, instances: &BTreeMap<ResourceId, Instance>) -> Vec<DesiredEdge> {
    let mut found = Vec::new();
    let mut open = vec![edge.from.clone()];
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !seen.insert(id.clone()) {
            continue;
        }
        match instances.get(&id) {
            None => found.push(DesiredEdge {
                from: id,
                ..edge.clone()
            }),
            // Who has no resources passes on what it waits for.
            Some(instance) if instance.part.resources.is_empty() => {
                open.extend(instance.requires.iter().map(|edge| edge.from.clone()));
            }
            Some(instance) => {
                let last = last_of(&instance.part, edge.notify);
                found.extend(last.map(|from| DesiredEdge {
                    from: from.id.clone(),
                    ..edge.clone()
                }));
            }
        }
    }
    found
}

/// The resources of a program that nothing in it comes after; all of them if each has something to tell.
fn last_of(part: &Part, all: bool) -> impl Iterator<Item = &Arc<DesiredResource>> {
    let inner: BTreeSet<&ResourceId> = part.edges.iter().map(|edge| &edge.from).collect();
    part.resources
        .iter()
        .filter(move |resource| all || !inner.contains(&resource.id))
}

/// Those that nothing in it comes before; all of them if each is told something.
fn first_of(part: &Part, all: bool) -> impl Iterator<Item = &Arc<DesiredResource>> {
    let inner: BTreeSet<&ResourceId> = part.edges.iter().map(|edge| &edge.to).collect();
    part.resources
        .iter()
        .filter(move |resource| all || !inner.contains(&resource.id))
}
