//! What the running graph exports: which records there are to be, and what a run puts into them.

use std::collections::BTreeMap;
use std::sync::Arc;

use setpoint_graph::{DesiredResource, GraphChange, ResourceId};
use setpoint_value::Value;

use super::{Action, EventKind, Machine};
use crate::ExportKey;

impl Machine {
    /// Says which records come and go with a swap.
    pub(super) fn retarget_exports(&mut self, change: &GraphChange) {
        if self.options.noop {
            return;
        }
        let hidden = change.hidden.iter();
        let before = change.removed.iter();
        let before = before.chain(change.changed.iter().map(|(old, _)| old));
        let unwanted = keys(before.chain(hidden.clone().flat_map(|hidden| &hidden.old)));
        let after = change.added.iter();
        let after = after.chain(change.changed.iter().map(|(_, new)| new));
        let wanted = keys(after.chain(hidden.flat_map(|hidden| &hidden.new)));
        let is_first = !self.convergence.has_graph;
        if is_first || !wanted.is_empty() || !unwanted.is_empty() {
            self.actions.push(Action::Export { wanted, unwanted });
        }
    }

    /// What a vertex that is about to run exports with it: nothing under `noop`.
    pub(super) fn exports_of(&self, slot: u32, noop: bool) -> Vec<Arc<DesiredResource>> {
        if noop {
            return Vec::new();
        }
        let resource = self.live(slot);
        let exporting = parts(resource).filter(|part| !part.meta.export.is_empty() && !self.is_noop(part));
        exporting.map(|part| self.as_it_is(slot, part)).collect()
    }

    /// A resource with what it receives in the run that is about to begin, or held already.
    fn as_it_is(&self, slot: u32, part: &Arc<DesiredResource>) -> Arc<DesiredResource> {
        let extras = self.vertex(slot).extras();
        let holding = extras.and_then(|extras| extras.transferring.as_ref());
        let is_own = |member: &Option<ResourceId>| match member {
            Some(member) => *member == part.id,
            None => self.live(slot).id == part.id,
        };
        let holding = holding.into_iter().flatten().filter(|held| is_own(&held.member));
        let received: Vec<(&'static str, Value)> =
            holding.map(|held| (held.parameter, held.value.clone())).collect();
        if received.is_empty() {
            return part.clone();
        }
        let parameters = part.parameters.overlaid(received);
        Arc::new(DesiredResource {
            parameters,
            ..DesiredResource::clone(part)
        })
    }

    /// Tells what a run has exported, of the vertex and of its members.
    pub(super) fn tell_exported(&mut self, slot: u32, exported: Vec<ExportKey>) {
        for (id, to) in by_resource(exported) {
            let member = (self.identity(slot).as_ref() != Some(&id)).then_some(&id);
            self.emit_of(slot, member, EventKind::Exported { to });
        }
    }

    /// Tells what left the store. Whatever exported it may be gone.
    pub(super) fn unexported(&mut self, left: Vec<ExportKey>) {
        for (id, to) in by_resource(left) {
            self.publish_event(Some(id), None, EventKind::Unexported { to });
        }
    }
}

/// The records of resources and their members, once for each that has it.
fn keys<'a>(resources: impl Iterator<Item = &'a Arc<DesiredResource>>) -> Vec<ExportKey> {
    let parts = resources.flat_map(parts);
    parts.flat_map(|part| ExportKey::of(part)).collect()
}

fn parts(resource: &Arc<DesiredResource>) -> impl Iterator<Item = &Arc<DesiredResource>> {
    std::iter::once(resource).chain(resource.members.all())
}

fn by_resource(keys: Vec<ExportKey>) -> BTreeMap<ResourceId, Vec<Arc<str>>> {
    let mut all: BTreeMap<ResourceId, Vec<Arc<str>>> = BTreeMap::new();
    for key in keys {
        all.entry(key.resource).or_default().push(key.to);
    }
    all
}
