//! What is wanted of the events.

use std::collections::BTreeSet;

use setpoint_engine::{Event, EventKind};
use setpoint_graph::ResourceId;

/// Some of the events.
pub(super) struct Filter {
    pub(super) resources: BTreeSet<ResourceId>,
    pub(super) kinds: BTreeSet<String>,
    pub(super) events: BTreeSet<String>,
}

impl Filter {
    /// Whether it is wanted. A gap always is: something that is wanted may be lost in it.
    pub(super) fn wants(&self, event: &Event) -> bool {
        if matches!(event.what, EventKind::Gap { .. }) {
            return true;
        }
        let is_of = || {
            let Some(id) = event.identity() else {
                return false;
            };
            self.resources.contains(&id) || self.kinds.contains(&*id.kind)
        };
        let is_anybody = self.resources.is_empty() && self.kinds.is_empty();
        (is_anybody || is_of()) && (self.events.is_empty() || self.events.contains(event.what.name()))
    }
}
