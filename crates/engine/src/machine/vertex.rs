//! A vertex: one identity of the graph, what lives under it, and the engine's state about it.
//!
//! A slot belongs to an identity, not to a resource: when a swap replaces a resource, the slot first sees the old one out
//! and then brings the new one in, and edges with their pending notifications stay where they are.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use setpoint_graph::{DesiredResource, ResourceId};
use setpoint_value::Value;
use smallvec::SmallVec;

use super::life::{Life, Queue, Run, Wait};
use super::limits::{Fight, TokenBucket};
use super::status::Standing;
use crate::{Received, Sent};

/// One resource of the running graph: the place of its identity, and which of the resources that lived there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VertexId {
    pub(super) slot: u32,
    pub(super) incarnation: u32,
}

impl fmt::Debug for VertexId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.slot, self.incarnation)
    }
}

impl VertexId {
    /// The number of its place in the machine's arena; small, and used again after it is gone.
    #[must_use]
    pub fn index(self) -> usize {
        self.slot as usize
    }
}

/// The place of one identity in the running graph.
pub(super) struct Vertex {
    /// What lives here.
    pub(super) life: Option<Life>,
    /// What the newest graph wants here.
    pub(super) wanted: Option<Arc<DesiredResource>>,
    /// Edges that end here.
    pub(super) incoming: SmallVec<[u32; 2]>,
    /// Edges that begin here.
    pub(super) outgoing: SmallVec<[u32; 2]>,
    /// What was published last; few resources publish anything.
    pub(super) published: Option<Box<Published>>,
    /// Which of the resources that lived here.
    pub(super) incarnation: u32,
    /// Longest distance to a vertex without successors.
    pub(super) height: u32,
    /// The round of dispatching in which it last ran.
    pub(super) round: u64,
    /// Tries of runs that were used up; they outlive what lives here.
    pub(super) run_tries: u16,
    /// It is one of the hidden resources.
    pub(super) hidden: bool,
    pub(super) seen: Seen,
    pub(super) search: Search,
}

/// What others last saw of a vertex; brought in line with it in each step in which it changed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    /// It is in the list of what changed in this step.
    pub(super) touched: bool,
    pub(super) busy: bool,
    pub(super) blocked: bool,
    pub(super) locally_settled: bool,
    pub(super) partly_settled: bool,
    /// How it stands; none in a free place.
    pub(super) standing: Option<Standing>,
    /// What successors are blocked by: this if it failed, or what this is blocked by.
    pub(super) obstructs: Option<u32>,
    /// Since when it stands so, in microseconds: a vertex is small.
    since: u64,
}

impl Seen {
    /// Since when it stands so.
    pub(super) fn since(self) -> Duration {
        Duration::from_micros(self.since)
    }

    /// From this moment on it stands so, unless it stood so before.
    pub(super) fn stand(&mut self, standing: Option<Standing>, now: Duration) {
        if standing != self.standing {
            self.standing = standing;
            self.since = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
        }
    }
}

/// What the search for unsettled ancestors remembers of a vertex.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Search {
    /// Settled in this epoch, if it is the current one.
    pub(super) settled_epoch: u64,
    /// The epoch in which `cursor` was found.
    pub(super) cursor_epoch: u64,
    /// How many incoming edges were found settled in that epoch.
    pub(super) cursor: u32,
}

/// What few vertices need.
#[derive(Default)]
pub(super) struct Extras {
    pub(super) bucket: Option<TokenBucket>,
    pub(super) fight: Option<Fight>,
    /// What its watch or poll does again and again, after this time.
    pub(super) interval: Option<Duration>,
    /// When that is due next.
    pub(super) interval_due: Duration,
    /// Whether it notifies each time.
    pub(super) interval_notifies: bool,
    /// When it failed last.
    pub(super) failed_at: Duration,
    /// Received parameters with what they hold now.
    pub(super) held: Vec<Holding>,
    /// The same after the run in progress, if its transfer succeeds.
    pub(super) transferring: Option<Vec<Holding>>,
    /// All received parameters, its own and those of members, and whether they changed since the last successful run.
    pub(super) received: Vec<Receiving>,
    /// Why it failed last; none after a success.
    pub(super) error: Option<Arc<str>>,
    /// The resources that failed in the last run and why, if all others of the group are right.
    pub(super) failed_members: Vec<(ResourceId, Arc<str>)>,
}

/// The newest published values.
#[derive(Default)]
pub(super) struct Published {
    /// Of what lives here, or of the resource before until this one has published.
    pub(super) own: Option<Arc<Sent>>,
    /// The same of members, each with the incarnation that published it.
    pub(super) by_members: BTreeMap<ResourceId, (u32, Arc<Sent>)>,
}

/// A parameter that is received.
#[derive(Debug, Clone)]
pub(super) struct Receiving {
    /// The member whose parameter it is, if it is one of a member.
    pub(super) member: Option<ResourceId>,
    pub(super) received: Received,
}

/// A received value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Holding {
    /// The member whose parameter it is, if it is one of a member.
    pub(super) member: Option<ResourceId>,
    pub(super) parameter: &'static str,
    pub(super) value: Value,
}

impl Vertex {
    /// A place in which nothing lives. What others last saw of it, and which life was the last, stays with the slot.
    pub(super) fn empty(incarnation: u32, seen: Seen) -> Vertex {
        Vertex {
            life: None,
            wanted: None,
            incoming: SmallVec::new(),
            outgoing: SmallVec::new(),
            published: None,
            incarnation,
            height: 0,
            round: 0,
            run_tries: 0,
            hidden: false,
            seen,
            search: Search::default(),
        }
    }

    /// What lives here, or what is to.
    pub(super) fn resource(&self) -> Option<&Arc<DesiredResource>> {
        let lives = self.life.as_ref().map(|life| &life.resource);
        lives.or(self.wanted.as_ref())
    }

    /// Identity of what lives here, or what is to.
    pub(super) fn identity(&self) -> Option<&ResourceId> {
        self.resource().map(|resource| &resource.id)
    }

    /// How many resources are applied as part of it.
    pub(super) fn members(&self) -> usize {
        self.resource().map_or(0, |resource| resource.members.count())
    }

    pub(super) fn extras(&self) -> Option<&Extras> {
        self.life.as_ref()?.extras.as_deref()
    }

    pub(super) fn run(&self) -> Option<&Run> {
        self.life.as_ref()?.run()
    }

    /// The moment that it waits for, if it waits for one.
    pub(super) fn wait(&self) -> Option<Wait> {
        self.life.as_ref()?.wait()
    }

    pub(super) fn is_running(&self) -> bool {
        self.run().is_some()
    }

    /// What the run that must be made waits for.
    pub(super) fn queue(&self) -> Option<Queue> {
        self.life.as_ref()?.due().map(|due| due.queue)
    }

    /// The unsettled ancestor that it waits for.
    pub(super) fn waits_for(&self) -> Option<u32> {
        match self.queue() {
            Some(Queue::Ancestor(ancestor)) => Some(ancestor),
            _ => None,
        }
    }

    /// The vertex that failed and keeps it from running.
    pub(super) fn blocked_by(&self) -> Option<u32> {
        self.life.as_ref()?.due()?.blocked_by
    }

    /// Whether it is settled if its predecessors are.
    pub(super) fn is_locally_settled(&self) -> bool {
        self.life.as_ref().is_some_and(Life::is_locally_settled)
    }

    /// The resources of the group that failed, when all others of it are right.
    pub(super) fn failed_members(&self) -> &[(ResourceId, Arc<str>)] {
        self.extras().map_or(&[], |extras| &extras.failed_members)
    }

    /// Whether those of the group that did not fail are settled if its predecessors are.
    pub(super) fn is_partly_settled(&self) -> bool {
        !self.failed_members().is_empty() && self.life.as_ref().is_some_and(Life::has_failed_and_rests)
    }

    pub(super) fn is_undecided(&self) -> bool {
        self.life.as_ref().is_some_and(Life::is_undecided)
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.life.as_ref().is_some_and(Life::is_leaving)
    }

    pub(super) fn is_realizing(&self) -> bool {
        self.life.as_ref().is_some_and(Life::is_realizing)
    }

    pub(super) fn has_failed(&self) -> bool {
        self.life.as_ref().is_some_and(Life::has_failed)
    }

    /// Whether it keeps the host from being quiet.
    pub(super) fn is_busy(&self) -> bool {
        match &self.life {
            Some(life) => life.is_busy(),
            None => self.wanted.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_vertex_is_small() {
        assert!(size_of::<Vertex>() <= 256, "{}", size_of::<Vertex>());
        assert!(
            size_of::<super::super::Action>() <= 64,
            "{}",
            size_of::<super::super::Action>()
        );
        assert!(
            size_of::<super::super::Input>() <= 192,
            "{}",
            size_of::<super::super::Input>()
        );
    }
}
