//! What is wanted of the events.

use std::collections::BTreeSet;

use setpoint_engine::{Event, EventKind, ResourceName};
use setpoint_graph::ResourceId;

/// Some of the events.
#[derive(Default)]
pub(super) struct Filter {
    pub(super) resources: BTreeSet<ResourceId>,
    /// Those as part of which they are applied: what happens to the whole is told of these.
    pub(super) groups: BTreeSet<ResourceId>,
    pub(super) kinds: BTreeSet<String>,
    pub(super) events: BTreeSet<String>,
}

impl Filter {
    /// Whether the event that comes next is wanted. A gap always is: something that is wanted may be lost in it.
    pub(super) fn takes(&mut self, event: &Event) -> bool {
        if matches!(event.what, EventKind::Gap { .. }) {
            return true;
        }
        let id = event.identity();
        let is_part_of_it = members(event)
            .iter()
            .any(|member| self.resources.contains(&member.id()));
        if let (Some(id), true) = (&id, is_part_of_it) {
            self.groups.insert(id.clone());
        }
        let is_of = id.as_ref().is_some_and(|id| {
            self.resources.contains(id) || self.groups.contains(id) || self.kinds.contains(&*id.kind)
        });
        if let (EventKind::Removed { .. }, Some(id)) = (&event.what, &id) {
            self.groups.remove(id);
        }
        let is_anybody = self.resources.is_empty() && self.kinds.is_empty();
        (is_anybody || is_of) && (self.events.is_empty() || self.events.contains(event.what.name()))
    }
}

/// What comes or goes as part of the resource that the event is of.
pub(super) fn members(event: &Event) -> &[ResourceName] {
    match &event.what {
        EventKind::Added { members, .. } | EventKind::Removed { members } => members,
        _ => &[],
    }
}
