//! The swap: from the running graph to the next one, stopping only what changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use setpoint_graph::{DesiredEdge, DesiredGraph, DesiredResource, GraphChange, ResourceId};
use smallvec::SmallVec;

use super::edges::{Edge, Refresh};
use super::life::Stage;
use super::vertex::{Seen, Vertex};
use super::{EventKind, Machine};
use crate::Cause;

/// By how many resources two graphs differ, members of groups among them.
#[derive(Default)]
struct Counts {
    added: usize,
    removed: usize,
    changed: usize,
    /// Of what differs, how many are members of others, and how many were.
    members: usize,
    members_before: usize,
}

impl Counts {
    fn of(change: &GraphChange) -> Counts {
        let before = change
            .removed
            .iter()
            .chain(change.changed.iter().map(|(old, _)| old));
        let after = change
            .added
            .iter()
            .chain(change.changed.iter().map(|(_, new)| new));
        let has_members = |resource: &Arc<DesiredResource>| !resource.members.is_empty();
        if !before.clone().any(has_members) && !after.clone().any(has_members) {
            return Counts {
                added: change.added.len(),
                removed: change.removed.len(),
                changed: change.changed.len(),
                ..Counts::default()
            };
        }
        let mut counts = Counts::default();
        let mut there: FxHashMap<&ResourceId, &DesiredResource> = FxHashMap::default();
        for resource in before {
            let members = resource.members.all();
            counts.members_before += members.len();
            there.insert(&resource.id, resource);
            there.extend(members.into_iter().map(|member| (&member.id, &**member)));
        }
        for resource in after {
            let members = resource.members.all();
            counts.members += members.len();
            for part in std::iter::once(resource).chain(members) {
                match there.remove(&part.id) {
                    Some(before) if before.is_equal_alone(part) => {}
                    Some(_) => counts.changed += 1,
                    None => counts.added += 1,
                }
            }
        }
        counts.removed = there.len();
        counts
    }
}

/// What a swap is about to do, by slots.
#[derive(Default)]
struct Swap {
    /// What goes, is replaced, or begins to watch again.
    leaving: BTreeSet<u32>,
    /// Those of `leaving` that the new graph does not have.
    gone: Vec<u32>,
    /// Those of `leaving` that have never been right, and run before they go.
    realizing: BTreeSet<u32>,
    /// What becomes a reversal, or stops being one: it keeps no edges.
    reversed: Vec<u32>,
    /// What is to live where something else is leaving.
    wanted: Vec<(u32, Arc<DesiredResource>)>,
    /// Hidden resources that have no slot yet.
    hidden_added: Vec<Arc<DesiredResource>>,
    /// What is to be added.
    added: Vec<u32>,
    /// Identities that got one more resource, or a hidden one for another: all their edges hold for it too.
    extended: BTreeSet<ResourceId>,
    /// Where edges begin that came or went: their heights may be others.
    upstream: Vec<u32>,
    /// Who receives something through other edges than before, and must run.
    receivers: BTreeSet<u32>,
}

impl Machine {
    /// Takes a new graph. It is complete and free of cycles; an older one than the present one is refused.
    pub(super) fn new_graph(&mut self, graph: DesiredGraph) {
        if self.stopping.is_some() {
            return;
        }
        let old = match &self.graph {
            Some(old) if graph.generation < old.generation => {
                let diagnostics = format!(
                    "generation {} is older than {}, which is running",
                    graph.generation, old.generation
                );
                return self.emit(None, EventKind::GraphRejected { diagnostics });
            }
            Some(old) => old.clone(),
            None => DesiredGraph::default(),
        };
        let graph = self.with_reversals(graph);
        let change = setpoint_graph::diff(&old, &graph);
        let generation = graph.generation;
        let mut swap = self.find_leaving(&change);
        self.tell_accepted(&graph, &change, &swap);
        // Nothing runs before all edges and slots are those of the new graph.
        self.remove_edges(&graph, &change, &mut swap);
        self.fill_slots(&old, &change, &mut swap);
        self.add_edges(&graph, &change, &mut swap);
        if !change.edges_removed.is_empty() || !swap.upstream.is_empty() {
            self.epoch += 1;
            self.wake_all();
        }
        self.update_heights(std::mem::take(&mut swap.upstream));
        self.graph = Some(graph);
        self.swapped = Some(self.now);
        self.convergence.broken_at = self.now;
        self.retarget_exports(&change);
        self.convergence.has_graph = true;
        self.begin(swap);
        self.emit(None, EventKind::GraphSwapped { generation });
    }

    /// What goes, decided under the old edges, and what takes its place.
    fn find_leaving(&mut self, change: &GraphChange) -> Swap {
        let mut swap = Swap::default();
        for resource in &change.removed {
            swap.gone.extend(self.normal_slot(&resource.id));
        }
        for (old, new) in &change.changed {
            if let Some(slot) = self.normal_slot(&new.id) {
                swap.leaving.insert(slot);
                swap.wanted.push((slot, new.clone()));
                if old.meta.is_reversal {
                    // It had none of the edges that its identity may have had all along, by hidden resources.
                    swap.extended.insert(new.id.clone());
                }
                if old.meta.is_reversal != new.meta.is_reversal {
                    swap.reversed.push(slot);
                }
            }
        }
        for hidden in &change.hidden {
            self.match_hidden(&hidden.id, &hidden.new, &mut swap.gone, &mut swap.hidden_added);
        }
        for slot in self.failed.clone() {
            let life = self.life(slot);
            let rewatch = life.is_failed_for_good() && life.resource.meta.rewatch;
            if rewatch && !swap.leaving.contains(&slot) {
                swap.leaving.insert(slot);
            }
        }
        swap.leaving.extend(swap.gone.iter().copied());
        swap.realizing = swap
            .leaving
            .iter()
            .copied()
            .filter(|slot| self.should_realize(*slot))
            .collect();
        swap
    }

    /// Reports a graph that is taken. Resources are counted as the program has them, whichever are applied together.
    fn tell_accepted(&mut self, graph: &DesiredGraph, change: &GraphChange, swap: &Swap) {
        let total = graph.resources.len() + graph.hidden.values().map(Vec::len).sum::<usize>();
        let counts = Counts::of(change);
        self.members = (self.members + counts.members).saturating_sub(counts.members_before);
        let added = counts.added + swap.hidden_added.len();
        let removed = counts.removed + swap.gone.len().saturating_sub(change.removed.len());
        let rewatched = (swap.leaving.len() - swap.gone.len()).saturating_sub(change.changed.len());
        let changed = counts.changed + rewatched;
        self.emit(
            None,
            EventKind::GraphAccepted {
                added,
                removed,
                changed,
                kept: (total + self.members).saturating_sub(added + changed),
            },
        );
    }

    /// Takes away the edges that the new graph does not have, and those of resources that it does not have.
    fn remove_edges(&mut self, graph: &DesiredGraph, change: &GraphChange, swap: &mut Swap) {
        for slot in &swap.gone {
            self.remove_edges_of(*slot, &mut swap.upstream);
            let vertex = self.vertex_mut(*slot);
            vertex.run_tries = 0;
            if vertex.life.is_some() {
                vertex.wanted = None;
            }
        }
        for slot in &swap.reversed {
            self.remove_edges_of(*slot, &mut swap.upstream);
            self.vertex_mut(*slot).run_tries = 0;
        }
        for edge in &change.edges_removed {
            let comes_back = graph.edges.get(&(edge.from.clone(), edge.to.clone()));
            self.remove_edge(edge, comes_back, &mut swap.upstream, &mut swap.receivers);
        }
    }

    /// Says of each slot what is to live in it, and finds slots for what is new.
    fn fill_slots(&mut self, old: &DesiredGraph, change: &GraphChange, swap: &mut Swap) {
        for (slot, resource) in swap.wanted.drain(..) {
            if resource.meta.reset {
                self.vertex_mut(slot).run_tries = 0;
            }
            self.vertex_mut(slot).wanted = Some(resource);
        }
        self.vertices
            .reserve(change.added.len().saturating_sub(self.free.len()));
        self.index.reserve(change.added.len());
        for resource in &change.added {
            note_extended(old, &resource.id, &mut swap.extended);
            swap.added.push(self.normal_slot_for(resource.clone()));
        }
        for resource in swap.hidden_added.drain(..) {
            note_extended(old, &resource.id, &mut swap.extended);
            let slot = self.new_slot(&resource.id);
            let vertex = self.vertex_mut(slot);
            vertex.hidden = true;
            vertex.wanted = Some(resource);
            swap.added.push(slot);
        }
    }

    /// Puts in the edges that only the new graph has, and those that hold for what is new.
    fn add_edges(&mut self, graph: &DesiredGraph, change: &GraphChange, swap: &mut Swap) {
        for edge in &change.edges_added {
            self.add_edge(edge, &mut swap.upstream, &mut swap.receivers);
        }
        if swap.extended.is_empty() {
            return;
        }
        // Rare, so the whole is looked at.
        for ((from, to), edge) in &graph.edges {
            if swap.extended.contains(from) || swap.extended.contains(to) {
                self.add_edge(edge, &mut swap.upstream, &mut swap.receivers);
            }
        }
    }

    /// Begins to run, to take away, and to add what the swap has found.
    fn begin(&mut self, mut swap: Swap) {
        for slot in swap.receivers {
            let vertex = self.vertex(slot);
            if vertex.life.is_some() && !swap.leaving.contains(&slot) && !vertex.is_leaving() {
                self.make_due(slot, Cause::Swap);
            }
        }
        for slot in swap.leaving {
            if self.vertex(slot).life.is_some() {
                self.leave(slot, swap.realizing.contains(&slot));
            } else if swap.gone.contains(&slot) {
                self.cancel_pending_add(slot);
            } else {
                // It waited for what may not be in its way any more.
                swap.added.push(slot);
            }
        }
        for slot in swap.added {
            if self.vertex(slot).life.is_none() {
                self.add(slot);
            }
        }
    }

    /// Whether a resource that is to go has never been right and may run first.
    fn should_realize(&mut self, slot: u32) -> bool {
        let vertex = self.vertex(slot);
        let Some(life) = vertex.life.as_ref().filter(|life| !life.is_leaving()) else {
            return false;
        };
        let could_run = matches!(
            life.stage(),
            Stage::Initialising { .. } | Stage::Arming { .. } | Stage::Watching(_)
        ) && !life.wait().is_some_and(|wait| wait.why.is_failure());
        life.resource.meta.realize
            && could_run
            && !vertex.hidden
            && !life.was_settled
            && (life.is_running() || self.unsettled_ancestor(slot).is_none())
    }

    /// The slot of an identity's resource that is not hidden, living or waiting to.
    pub(super) fn normal_slot(&self, id: &ResourceId) -> Option<u32> {
        let slots = self.index.get(id, &self.vertices);
        slots.into_iter().find(|slot| !self.vertex(*slot).hidden)
    }

    /// The slot in which a resource that is new to the graph will live: that of its identity, if an older one is still
    /// being taken away.
    pub(super) fn normal_slot_for(&mut self, resource: Arc<DesiredResource>) -> u32 {
        let slot = match self.normal_slot(&resource.id) {
            Some(slot) => slot,
            None => self.new_slot(&resource.id),
        };
        self.vertex_mut(slot).wanted = Some(resource);
        slot
    }

    fn new_slot(&mut self, id: &ResourceId) -> u32 {
        let slot = match self.free.pop() {
            Some(slot) => {
                let vertex = self.vertex_mut(slot);
                *vertex = Vertex::empty(vertex.incarnation, vertex.seen);
                slot
            }
            None => {
                self.vertices.push(Vertex::empty(0, Seen::default()));
                let slot = self.vertices.len() as u32 - 1;
                self.vertex_mut(slot);
                slot
            }
        };
        self.index.insert(id, slot);
        slot
    }

    /// Which hidden resources of an identity stay, by equality; the others go and come.
    fn match_hidden(
        &self,
        id: &ResourceId,
        new: &[Arc<DesiredResource>],
        gone: &mut Vec<u32>,
        added: &mut Vec<Arc<DesiredResource>>,
    ) {
        let mut there = self.index.get(id, &self.vertices);
        there.retain(|slot| {
            let vertex = self.vertex(*slot);
            vertex.hidden && vertex.wanted.is_some()
        });
        for resource in new {
            let same = there.iter().position(|slot| {
                let wanted = &self.vertex(*slot).wanted;
                wanted
                    .as_ref()
                    .is_some_and(|wanted| wanted.is_unchanged(resource))
            });
            match same {
                Some(at) => {
                    there.remove(at);
                }
                None => added.push(resource.clone()),
            }
        }
        gone.extend(there);
    }

    /// Slots of the new graph under an identity. What undoes one that left has no edges.
    fn ends(&self, id: &ResourceId) -> SmallVec<[u32; 2]> {
        let mut slots = self.index.get(id, &self.vertices);
        slots.retain(|slot| {
            let wanted = self.vertex(*slot).wanted.as_ref();
            wanted.is_some_and(|wanted| !wanted.meta.is_reversal)
        });
        slots
    }

    fn add_edge(
        &mut self,
        desired: &Arc<DesiredEdge>,
        upstream: &mut Vec<u32>,
        receivers: &mut BTreeSet<u32>,
    ) {
        for from in self.ends(&desired.from) {
            for to in self.ends(&desired.to) {
                if let Some(index) = self.edges.find(from, to) {
                    // It was kept with its bit because only what it sends differs.
                    self.edges.get_mut(index).desired = desired.clone();
                    continue;
                }
                let index = self.edges.insert(Edge {
                    from,
                    to,
                    desired: desired.clone(),
                    refresh: Refresh::None,
                    perhaps: false,
                });
                self.vertex_mut(from).outgoing.push(index);
                self.vertex_mut(to).incoming.push(index);
                upstream.push(from);
                if desired.sends() {
                    receivers.insert(to);
                }
            }
        }
    }

    /// Takes an edge away, unless it comes back with the same notify flag: then it stays, and its bit with it.
    fn remove_edge(
        &mut self,
        desired: &DesiredEdge,
        comes_back: Option<&Arc<DesiredEdge>>,
        upstream: &mut Vec<u32>,
        receivers: &mut BTreeSet<u32>,
    ) {
        let (from, to) = (&desired.from, &desired.to);
        let from = self.index.get(from, &self.vertices);
        let to = self.index.get(to, &self.vertices);
        for from in &from {
            for to in &to {
                let Some(index) = self.edges.find(*from, *to) else {
                    continue;
                };
                let differs = match comes_back {
                    Some(new) => !new.sendings().eq(desired.sendings()),
                    None => desired.sends(),
                };
                if differs {
                    receivers.insert(*to);
                }
                if comes_back.is_some_and(|new| new.notify == desired.notify) {
                    continue;
                }
                self.drop_edge(index, upstream);
            }
        }
    }

    fn remove_edges_of(&mut self, slot: u32, upstream: &mut Vec<u32>) {
        let vertex = self.vertex(slot);
        let edges: Vec<u32> = vertex.incoming.iter().chain(&vertex.outgoing).copied().collect();
        for edge in edges {
            self.drop_edge(edge, upstream);
        }
    }

    fn drop_edge(&mut self, index: u32, upstream: &mut Vec<u32>) {
        let Some(edge) = self.edges.remove(index) else {
            return;
        };
        if edge.notifies() && (edge.refresh != Refresh::None || edge.perhaps) {
            self.clear_stored_refresh(edge.to, vec![(edge.desired.from.clone(), edge.from)]);
        }
        self.vertex_mut(edge.from)
            .outgoing
            .retain(|other| *other != index);
        let to = self.vertex_mut(edge.to);
        to.incoming.retain(|other| *other != index);
        to.search.cursor_epoch = 0;
        upstream.push(edge.from);
    }

    /// Brings the distances to the end of the graph in line with edges that came or went from these vertices.
    fn update_heights(&mut self, upstream: Vec<u32>) {
        if upstream.is_empty() {
            return;
        }
        // A few changes are followed upwards; many are not worth it.
        if upstream.len() * 4 < self.vertices.len() && self.raise_heights(upstream) {
            return;
        }
        let mut left: Vec<u32> = self.vertices.iter().map(|v| v.outgoing.len() as u32).collect();
        let mut done: Vec<u32> = Vec::new();
        for (slot, vertex) in self.vertices.iter_mut().enumerate() {
            vertex.height = 0;
            if vertex.outgoing.is_empty() && !vertex.incoming.is_empty() {
                done.push(slot as u32);
            }
        }
        while let Some(slot) = done.pop() {
            let height = self.vertices[slot as usize].height + 1;
            for at in 0..self.vertices[slot as usize].incoming.len() {
                let edge = self.vertices[slot as usize].incoming[at];
                let from = self.edges.get(edge).from as usize;
                self.vertices[from].height = self.vertices[from].height.max(height);
                left[from] -= 1;
                if left[from] == 0 {
                    done.push(from as u32);
                }
            }
        }
    }

    /// Follows changes upwards until nothing differs. False when that takes more steps than looking at everything.
    fn raise_heights(&mut self, mut upstream: Vec<u32>) -> bool {
        let mut steps = self.vertices.len() + self.edges.len();
        while let Some(slot) = upstream.pop() {
            let outgoing = self.vertex(slot).outgoing.iter();
            let below = outgoing.map(|edge| self.vertex(self.edges.get(*edge).to).height + 1);
            let height = below.max().unwrap_or(0);
            let cost = self.vertex(slot).outgoing.len() + 1;
            let vertex = &mut self.vertices[slot as usize];
            let Some(rest) = steps.checked_sub(cost) else {
                return false;
            };
            steps = rest;
            if std::mem::replace(&mut vertex.height, height) != height {
                for at in 0..self.vertex(slot).incoming.len() {
                    let edge = self.vertex(slot).incoming[at];
                    upstream.push(self.edges.get(edge).from);
                }
            }
        }
        true
    }
}

/// Notes an identity that had a resource in the graph before: the edges of the one that comes now may not be among those that come.
fn note_extended(old: &DesiredGraph, id: &ResourceId, extended: &mut BTreeSet<ResourceId>) {
    if old.hidden.contains_key(id) || old.resources.contains_key(id) {
        extended.insert(id.clone());
    }
}
