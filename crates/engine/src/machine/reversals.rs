//! Undoing what left the program: which identities have a record on disk, and what lives in their place until the record is served.
//!
//! Wherever a graph runs, each recorded identity is in it: as the program has it, or as its reversal, which has no edges. A
//! reversal that succeeded with repairs allowed has had its record erased and leaves at once, so that nothing is undone twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use setpoint_graph::{DesiredGraph, DesiredResource, ResourceId};

use super::{EventKind, Machine};

/// Records by identity: what undoes each, without its parameters.
#[derive(Default)]
pub(super) struct Reversals {
    pub(super) records: BTreeMap<ResourceId, Arc<DesiredResource>>,
    /// Those that are in the graph.
    pub(super) pending: BTreeSet<ResourceId>,
}

/// What is to be done about the record of a resource before its `init`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordWork {
    /// Nothing.
    None,
    /// Write one, if there is something that could be undone. Told with [`super::Input::Recorded`].
    Write {
        /// Parameters whose values are received, so that they are not known yet.
        receives: Vec<&'static str>,
    },
    /// It stays. What is sensitive in the resource now is noted in it.
    Keep {
        /// Parameters whose values are received, so that it is not known whether they are sensitive.
        receives: Vec<&'static str>,
    },
    /// Erase it: whoever wrote the program no longer wants this to be undone. Told with [`super::Input::Forgotten`].
    Erase,
    /// It is what the resource itself is made from: its parameters are in it.
    Serve,
}

impl Machine {
    /// Records that are on disk.
    pub(super) fn recorded(&mut self, found: Vec<Arc<DesiredResource>>) {
        for record in found {
            let id = record.id.clone();
            self.reversals.records.insert(id.clone(), record.clone());
            // It may have left the program while its record was being written.
            let is_missing = |graph: &DesiredGraph| !graph.resources.contains_key(&id);
            if self.stopping.is_none() && self.graph.as_ref().is_some_and(is_missing) {
                self.begin_reversal(record);
            }
        }
    }

    fn begin_reversal(&mut self, record: Arc<DesiredResource>) {
        let id = record.id.clone();
        if let Some(graph) = &mut self.graph {
            graph.resources.insert(id.clone(), record.clone());
        }
        self.reversals.pending.insert(id);
        let slot = self.normal_slot_for(record);
        if self.vertex(slot).life.is_none() {
            self.add(slot);
        }
    }

    /// The record of an identity is gone, and with it the reversal.
    pub(super) fn forgotten(&mut self, id: &ResourceId) {
        self.reversals.records.remove(id);
        if !self.reversals.pending.remove(id) {
            return;
        }
        if let Some(graph) = &mut self.graph {
            graph.resources.remove(id);
        }
        let Some(slot) = self.normal_slot(id) else { return };
        if self.vertex(slot).life.is_none() {
            return self.cancel_pending_add(slot);
        }
        let vertex = self.vertex_mut(slot);
        vertex.wanted = None;
        vertex.run_tries = 0;
        self.leave(slot, false);
    }

    /// A run of a reversal has succeeded, and its record is erased.
    pub(super) fn undone(&mut self, slot: u32) {
        let Some(id) = self.identity(slot) else { return };
        self.emit(Some(slot), EventKind::Undone);
        self.forgotten(&id);
    }

    /// The graph as it is to run: with what undoes what it lacks.
    pub(super) fn with_reversals(&mut self, mut graph: DesiredGraph) -> DesiredGraph {
        let reversals = &mut self.reversals;
        if reversals.records.is_empty() {
            return graph;
        }
        let lacks = |graph: &DesiredGraph, id: &ResourceId| !graph.resources.contains_key(id);
        reversals.pending.retain(|id| lacks(&graph, id));
        match &self.graph {
            None => {
                let missing = reversals.records.keys().filter(|id| lacks(&graph, id));
                reversals.pending.extend(missing.cloned());
            }
            Some(old) => {
                let gone = setpoint_graph::diff(old, &graph).removed;
                let recorded = gone
                    .iter()
                    .map(|resource| &resource.id)
                    .filter(|id| reversals.records.contains_key(*id));
                reversals.pending.extend(recorded.cloned());
            }
        }
        for id in &reversals.pending {
            if let Some(record) = reversals.records.get(id) {
                graph.resources.insert(id.clone(), record.clone());
            }
        }
        graph
    }

    /// What is to be done about the record of what is about to begin in a slot.
    pub(super) fn record_work(&self, slot: u32) -> RecordWork {
        let resource = self.live(slot);
        if resource.meta.is_reversal {
            return RecordWork::Serve;
        }
        if self.is_noop(resource) {
            return RecordWork::None;
        }
        let is_recorded = self.reversals.records.contains_key(&resource.id);
        match (resource.meta.reverse, is_recorded) {
            (false, false) => RecordWork::None,
            (false, true) => RecordWork::Erase,
            (true, _) if !resource.schema.reversible => RecordWork::None,
            (true, is_recorded) => {
                let receives = self.receives(slot);
                match is_recorded {
                    true => RecordWork::Keep { receives },
                    false => RecordWork::Write { receives },
                }
            }
        }
    }

    /// The parameters that edges bring values for.
    fn receives(&self, slot: u32) -> Vec<&'static str> {
        let schema = self.live(slot).schema;
        let edges = self.vertex(slot).incoming.iter();
        let sent = edges.flat_map(|edge| &self.edges.get(*edge).desired.send);
        sent.filter_map(|(_, parameter)| Some(schema.parameter(parameter)?.name))
            .collect()
    }
}
