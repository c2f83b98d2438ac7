//! The machine's state, to be shown.

use std::sync::Arc;
use std::time::Duration;

use setpoint_graph::ResourceId;

use super::Machine;
use super::edges::Refresh;
use super::life::{Activity, Life, Queue, Run, Stage, Wait, Why};

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
                state: vertex
                    .life
                    .as_ref()
                    .map_or(VertexState::WaitingToBeAdded, |life| self.state_of(life)),
                noop: self.is_noop(resource),
                hidden: vertex.hidden,
                refresh_pending: pending,
                error: vertex.extras().and_then(|extras| extras.error.clone()),
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

    fn state_of(&self, life: &Life) -> VertexState {
        let waits = |wait: &Wait| {
            let until = self.shown_time(wait.until);
            match wait.why {
                Why::Backoff | Why::Failing => VertexState::BackingOffUntil(until),
                Why::Limited | Why::Spaced => VertexState::LimitedUntil(until),
            }
        };
        let runs = |run: &Run| VertexState::Running(self.shown_time(run.began));
        let identity = |slot: u32| self.identity(slot);
        match life.stage() {
            Stage::WatchFailed { run: Some(run), .. } | Stage::FailedForGood { run: Some(run), .. } => {
                runs(run)
            }
            Stage::Watching(Activity::Running(run)) if !life.is_leaving() => runs(run),
            _ if life.is_leaving() => VertexState::Finishing,
            Stage::InitFailed { wait } | Stage::WatchFailed { wait: Some(wait), .. } => waits(wait),
            Stage::FailedForGood { .. } => VertexState::FailedForGood,
            Stage::Watching(Activity::Clean) => VertexState::Clean,
            Stage::Watching(Activity::Running(run)) => runs(run),
            Stage::Watching(Activity::Due(due)) => match &due.queue {
                Queue::Time(wait) => waits(wait),
                Queue::Semaphores { .. } => VertexState::WaitingForSemaphore,
                Queue::Undecided | Queue::Turn { .. } => VertexState::Ready,
                Queue::Ancestor(on) => {
                    let blocked = due.blocked_by.and_then(identity).map(VertexState::BlockedBy);
                    let waiting = || identity(*on).map(VertexState::WaitingFor);
                    blocked.or_else(waiting).unwrap_or(VertexState::Ready)
                }
            },
            Stage::Initialising { .. }
            | Stage::Arming { .. }
            | Stage::WatchFailed { .. }
            | Stage::Finishing { .. }
            | Stage::Draining { .. }
            | Stage::CleaningUp { .. } => VertexState::Starting,
        }
    }
}
