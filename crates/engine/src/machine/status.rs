//! The machine's state, to be shown.

use std::sync::Arc;
use std::time::Duration;

use setpoint_graph::ResourceId;

use super::edges::Refresh;
use super::vertex::{Hold, Phase};
use super::{Machine, some};

/// One resource as `status` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VertexStatus {
    /// Kind and name.
    pub id: ResourceId,
    /// What it does.
    pub state: VertexState,
    /// Whether it may not repair.
    pub noop: bool,
    /// Whether it is one of the hidden resources.
    pub hidden: bool,
    /// Whether a notification waits for it.
    pub refresh_pending: bool,
    /// Why it failed last, if it has not succeeded since.
    pub error: Option<Arc<str>>,
}

/// What a resource does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VertexState {
    /// It waits until another one is gone.
    WaitingToBeAdded,
    /// `init` is under way, or its watch is not armed yet.
    Starting,
    /// Everything is right, or was when it was looked at last under noop.
    Clean,
    /// It must run and waits for this one.
    WaitingFor(ResourceId),
    /// It must run, but this one has failed for good.
    BlockedBy(ResourceId),
    /// It must run and may, but there is a pause or the jobs are used up.
    Ready,
    /// It waits for semaphores.
    WaitingForSemaphore,
    /// Its events come faster than its limit allows, or somebody undoes its repairs; since 1970 UTC.
    LimitedUntil(Duration),
    /// It failed and is tried again then; since 1970 UTC.
    BackingOffUntil(Duration),
    /// It runs, since this moment; since 1970 UTC.
    Running(Duration),
    /// It failed and no tries are left.
    FailedForGood,
    /// It is going away.
    Finishing,
}

impl Machine {
    /// All resources, sorted by identity.
    #[must_use]
    pub fn status(&self) -> Vec<VertexStatus> {
        let used = self.vertices.iter().filter_map(|vertex| {
            let resource = vertex.resource()?;
            let pending = vertex
                .incoming
                .iter()
                .any(|edge| self.edges.get(*edge).refresh != Refresh::None);
            Some(VertexStatus {
                id: resource.id.clone(),
                state: self.state_of(vertex),
                noop: self.is_noop(resource),
                hidden: vertex.flags.hidden,
                refresh_pending: pending,
                error: vertex.extras.as_ref().and_then(|extras| extras.error.clone()),
            })
        });
        let mut list: Vec<VertexStatus> = used.collect();
        list.sort_by(|a, b| a.id.cmp(&b.id));
        list
    }

    /// How many resources there are, are busy, are blocked, and have failed for good.
    #[must_use]
    pub fn counts(&self) -> [usize; 4] {
        [self.alive, self.busy, self.blocked, self.failed.len()]
    }

    /// Whether the host is converged.
    #[must_use]
    pub fn is_converged(&self) -> bool {
        self.convergence.converged
    }

    fn state_of(&self, vertex: &super::Vertex) -> VertexState {
        if vertex.live.is_none() {
            return VertexState::WaitingToBeAdded;
        }
        if vertex.flags.running && !vertex.flags.leaving {
            return VertexState::Running(self.shown_time(vertex.run_began));
        }
        if vertex.flags.leaving {
            return VertexState::Finishing;
        }
        let until = self.shown_time(vertex.hold_until);
        match (vertex.phase, vertex.hold) {
            (Phase::Failed, _) => VertexState::FailedForGood,
            (_, Hold::Backoff | Hold::Failing) => VertexState::BackingOffUntil(until),
            (_, Hold::Limited | Hold::Spaced) => VertexState::LimitedUntil(until),
            (Phase::Draining | Phase::Cleaning, _) => VertexState::Finishing,
            (Phase::Absent, _) => VertexState::WaitingToBeAdded,
            (Phase::Initialising | Phase::InitWaits | Phase::Arming | Phase::WatchWaits, _) => {
                VertexState::Starting
            }
            (Phase::Watching, Hold::None) => {
                let identity = |slot| some(slot).and_then(|slot| self.identity(slot));
                if !vertex.flags.dirty {
                    VertexState::Clean
                } else if let Some(by) = identity(vertex.blocked_by) {
                    VertexState::BlockedBy(by)
                } else if let Some(on) = identity(vertex.waiting_on) {
                    VertexState::WaitingFor(on)
                } else if vertex.flags.queued {
                    VertexState::WaitingForSemaphore
                } else {
                    VertexState::Ready
                }
            }
        }
    }
}
