//! A vertex: one identity of the graph, what lives under it, and the engine's state about it.
//!
//! A slot belongs to an identity, not to a resource: when a swap replaces a resource, the slot first sees the old one out
//! and then brings the new one in, and edges with their pending notifications stay where they are.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use setpoint_graph::{DesiredResource, ResourceId};
use setpoint_value::Value;
use smallvec::SmallVec;

use super::limits::{Fight, TokenBucket};
use crate::{Received, Sent};

/// No slot.
pub(super) const NONE: u32 = u32::MAX;

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

/// How far what lives in a slot has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing lives here, or it still waits to be added.
    Absent,
    /// `init` is under way.
    Initialising,
    /// `init` failed and is tried again when the hold ends.
    InitWaits,
    /// Its watch is being armed.
    Arming,
    /// Its watch is armed (or it has none).
    Watching,
    /// Its watch failed and is armed again when the hold ends and no run is in progress.
    WatchWaits,
    /// Failed for good.
    Failed,
    /// The watch has ended; `cleanup` waits for that of its successors.
    Draining,
    /// `cleanup` is under way.
    Cleaning,
}

/// Why a vertex that could run must wait for a moment in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    None,
    /// It failed and waits for its next try.
    Backoff,
    /// The same, but whatever happens meanwhile ends the wait.
    Failing,
    /// Its events come faster than its limit allows.
    Limited,
    /// Somebody undoes its repairs, which are spaced out.
    Spaced,
}

pub(super) struct Vertex {
    /// What lives here.
    pub(super) live: Option<Arc<DesiredResource>>,
    /// What the newest graph wants here.
    pub(super) wanted: Option<Arc<DesiredResource>>,
    /// Edges that end here.
    pub(super) incoming: SmallVec<[u32; 2]>,
    /// Edges that begin here.
    pub(super) outgoing: SmallVec<[u32; 2]>,
    /// What few vertices need.
    pub(super) extras: Option<Box<Extras>>,
    /// The newest published values; those of the resource before until this one has published.
    pub(super) published: Option<Arc<Sent>>,
    /// Until when `hold` holds.
    pub(super) hold_until: Duration,
    /// Settled in this epoch, if it is the current one.
    pub(super) settled_epoch: u64,
    /// The epoch in which `cursor` was found.
    pub(super) cursor_epoch: u64,
    /// How many incoming edges were found settled in that epoch.
    pub(super) cursor: u32,
    /// Longest distance to a vertex without successors.
    pub(super) height: u32,
    pub(super) incarnation: u32,
    /// The unsettled ancestor in whose list of waiters this is.
    pub(super) waiting_on: u32,
    /// The vertex failed for good that keeps this from running.
    pub(super) blocked_by: u32,
    /// What successors are blocked by: this if it failed for good, or what this is blocked by. As last told to them.
    pub(super) obstructs: u32,
    /// Number of the run in progress or the last one.
    pub(super) run: u64,
    /// When it began.
    pub(super) run_began: Duration,
    /// Number of its place in the ready queue or in those of semaphores.
    pub(super) ticket: u64,
    /// The round of dispatching in which it last ran.
    pub(super) round: u64,
    /// Tries of the watch that were used up.
    pub(super) watch_tries: u16,
    /// Tries of runs that were used up.
    pub(super) run_tries: u16,
    /// Drifts of the run in progress that were told already.
    pub(super) announced: u16,
    /// Failures one after the other, for the length of the back-off.
    pub(super) failures: u8,
    pub(super) phase: Phase,
    pub(super) hold: Hold,
    pub(super) flags: Flags,
}

/// The booleans of a vertex.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Flags {
    /// It is one of the hidden resources.
    pub(super) hidden: bool,
    /// It must run.
    pub(super) dirty: bool,
    pub(super) running: bool,
    /// What lives here is being taken away.
    pub(super) leaving: bool,
    /// It is being taken away but runs once before.
    pub(super) realizing: bool,
    /// `init` succeeded.
    pub(super) initialised: bool,
    /// A watch is armed or being armed.
    pub(super) armed: bool,
    /// It failed, and is tried until it is right.
    pub(super) failing: bool,
    /// It got one more run for an event that came during one that failed.
    pub(super) second_chance: bool,
    /// A run succeeded since it was added.
    pub(super) settled_once: bool,
    /// `published` is of what lives here now.
    pub(super) has_published: bool,
    /// Failures of the run in progress are not its own fault.
    pub(super) uncounted: bool,
    /// The run in progress had its time.
    pub(super) timed_out: bool,
    /// The run in progress may not repair.
    pub(super) noop_run: bool,
    /// It was made dirty by its watch.
    pub(super) by_watch: bool,
    /// The run in progress was caused by the watch alone.
    pub(super) run_by_watch: bool,
    /// In the ready queue.
    pub(super) ready: bool,
    /// In the queues of its semaphores.
    pub(super) queued: bool,
    /// Holds its semaphores.
    pub(super) holding: bool,
    /// In the list of what changed in this step.
    pub(super) touched: bool,
    /// As last seen by what depends on it: clean (or under noop without error), not running, watching.
    pub(super) locally_settled: bool,
    /// Counted as busy.
    pub(super) busy: bool,
    /// Counted as blocked.
    pub(super) blocked: bool,
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
    /// All received parameters, and whether they changed since the last successful run.
    pub(super) received: Vec<Received>,
    /// Why it failed last; none after a success.
    pub(super) error: Option<Arc<str>>,
}

/// A received value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Holding {
    pub(super) parameter: &'static str,
    pub(super) value: Value,
}

impl Vertex {
    pub(super) fn empty() -> Vertex {
        Vertex {
            live: None,
            wanted: None,
            incoming: SmallVec::new(),
            outgoing: SmallVec::new(),
            extras: None,
            published: None,
            hold_until: Duration::ZERO,
            settled_epoch: 0,
            cursor_epoch: 0,
            cursor: 0,
            height: 0,
            incarnation: 0,
            waiting_on: NONE,
            blocked_by: NONE,
            obstructs: NONE,
            run: 0,
            run_began: Duration::ZERO,
            ticket: 0,
            round: 0,
            watch_tries: 0,
            run_tries: 0,
            announced: 0,
            failures: 0,
            phase: Phase::Absent,
            hold: Hold::None,
            flags: Flags::default(),
        }
    }

    /// What lives here, or what is to.
    pub(super) fn resource(&self) -> Option<&Arc<DesiredResource>> {
        self.live.as_ref().or(self.wanted.as_ref())
    }

    /// Identity of what lives here, or what is to.
    pub(super) fn identity(&self) -> Option<&ResourceId> {
        self.resource().map(|resource| &resource.id)
    }

    pub(super) fn extras(&mut self) -> &mut Extras {
        self.extras.get_or_insert_default()
    }

    /// Whether it is settled if its predecessors are.
    pub(super) fn is_locally_settled(&self) -> bool {
        self.phase == Phase::Watching && !self.flags.dirty && !self.flags.running && !self.flags.leaving
    }

    /// Whether it could run now, its predecessors, semaphores and the number of jobs aside, and waits nowhere yet.
    pub(super) fn is_eligible(&self) -> bool {
        self.phase == Phase::Watching
            && self.flags.dirty
            && !self.flags.running
            && (!self.flags.leaving || self.flags.realizing)
            && self.hold == Hold::None
            && !self.flags.ready
            && !self.flags.queued
            && self.waiting_on == NONE
    }

    /// Whether it has failed, for good or until it is tried again.
    pub(super) fn has_failed(&self) -> bool {
        !self.flags.leaving && (self.phase == Phase::Failed || self.flags.failing)
    }

    /// Whether what depends on it waits for something that may never come.
    pub(super) fn obstructs_others(&self) -> bool {
        self.has_failed() || (self.hold == Hold::Spaced && !self.flags.leaving)
    }

    /// Whether something else keeps undoing its repairs.
    pub(super) fn is_fighting(&self) -> bool {
        self.fight().is_some()
    }

    /// What such a fight is about.
    pub(super) fn fight(&self) -> Option<&Arc<str>> {
        self.extras.as_ref()?.fight.as_ref()?.about()
    }

    /// Whether it keeps the host from being quiet.
    pub(super) fn is_busy(&self) -> bool {
        if self.live.is_none() {
            return self.wanted.is_some();
        }
        if self.flags.running || self.flags.leaving {
            return true;
        }
        // What nobody may ever mend does not keep a host from being quiet.
        if matches!(self.hold, Hold::Failing | Hold::Spaced) {
            return false;
        }
        match self.phase {
            Phase::Watching => self.flags.dirty && self.blocked_by == NONE,
            Phase::Failed => false,
            Phase::Absent
            | Phase::Initialising
            | Phase::InitWaits
            | Phase::Arming
            | Phase::WatchWaits
            | Phase::Draining
            | Phase::Cleaning => true,
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
