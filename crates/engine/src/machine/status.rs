//! The machine's state, to be shown: how each resource stands, and how many stand how.
//!
//! How many stand how is counted as they change, so that asking costs nothing. Resources are given out a few at a time and by
//! their places, so that nobody who looks at a hundred thousand holds up the machine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_graph::ResourceId;

use super::edges::Refresh;
use super::life::{Activity, Life, Queue, Run, Stage, Wait, Why};
use super::vertex::Vertex;
use super::{Machine, StopStage, Stopping};

/// How a resource stands: the first of these that holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It is leaving the program, and something of it is still under way.
    Finishing,
    /// It could not be brought into its state, and is not tried again.
    Failed,
    /// What it looks at gives no answer.
    Unresponsive,
    /// It must run, but something before it has failed, or waits for something outside this machine.
    Blocked,
    /// It could not be brought into its state, and is tried again.
    Failing,
    /// It waits for something outside this machine.
    WaitingForHost,
    /// Something else keeps undoing its repairs.
    Conflict,
    /// It differs, and would change without `noop`.
    WouldChange,
    /// Everything was right when it was looked at last, and nothing has happened since.
    Right,
    /// It is looked at, or repaired.
    Running,
    /// It must run and waits for its turn: for others, semaphores, a limit or the end of a pause.
    Waiting,
    /// It is being prepared and its watch armed.
    Starting,
}

impl Standing {
    /// Whether it could not be brought into its state.
    #[must_use]
    pub fn is_failure(self) -> bool {
        matches!(self, Standing::Failed | Standing::Failing)
    }

    /// All of them: what needs somebody's attention first.
    pub const ALL: [Standing; 12] = [
        Standing::Failed,
        Standing::Failing,
        Standing::WaitingForHost,
        Standing::Blocked,
        Standing::Unresponsive,
        Standing::Conflict,
        Standing::WouldChange,
        Standing::Finishing,
        Standing::Running,
        Standing::Waiting,
        Standing::Starting,
        Standing::Right,
    ];
}

/// How many resources stand how; those that are applied as part of others stand like these.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StandingCounts {
    /// Could not be brought into their state, and are not tried again.
    pub failed: usize,
    /// Could not be brought into their state, and are tried again.
    pub failing: usize,
    /// Wait for something outside this machine.
    pub waiting_for_host: usize,
    /// Must run, but something before them has failed, or waits for something outside this machine.
    pub blocked: usize,
    /// Look at something that gives no answer.
    pub unresponsive: usize,
    /// Are repaired again and again, because something else keeps undoing it.
    pub conflict: usize,
    /// Differ, and would change without `noop`.
    pub would_change: usize,
    /// Are leaving the program, and something of them is still under way.
    pub finishing: usize,
    /// Are looked at, or repaired.
    pub running: usize,
    /// Must run and wait for their turn.
    pub waiting: usize,
    /// Are being prepared and their watches armed.
    pub starting: usize,
    /// Were right when they were looked at last.
    pub right: usize,
}

impl StandingCounts {
    /// How many stand so.
    #[must_use]
    pub fn of(mut self, standing: Standing) -> usize {
        *self.count_mut(standing)
    }

    /// How many there are.
    #[must_use]
    pub fn all(self) -> usize {
        Standing::ALL.iter().map(|standing| self.of(*standing)).sum()
    }

    /// Where those that stand so are counted.
    pub fn count_mut(&mut self, standing: Standing) -> &mut usize {
        match standing {
            Standing::Failed => &mut self.failed,
            Standing::Failing => &mut self.failing,
            Standing::WaitingForHost => &mut self.waiting_for_host,
            Standing::Blocked => &mut self.blocked,
            Standing::Unresponsive => &mut self.unresponsive,
            Standing::Conflict => &mut self.conflict,
            Standing::WouldChange => &mut self.would_change,
            Standing::Finishing => &mut self.finishing,
            Standing::Running => &mut self.running,
            Standing::Waiting => &mut self.waiting,
            Standing::Starting => &mut self.starting,
            Standing::Right => &mut self.right,
        }
    }
}

/// How many resources a vertex stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GroupSize {
    /// Resources that are applied as part of it.
    pub(super) members: usize,
    /// Those of all that are right although the others failed.
    pub(super) right: usize,
}

impl GroupSize {
    pub(super) const ALONE: GroupSize = GroupSize { members: 0, right: 0 };

    /// How many of them stand how, when the vertex stands so.
    pub(super) fn standings(self, standing: Option<Standing>) -> impl Iterator<Item = (Standing, usize)> {
        let right = match standing {
            Some(standing) if standing.is_failure() => self.right,
            _ => 0,
        };
        let like_vertex = standing.map(|standing| (standing, 1 + self.members - right));
        like_vertex.into_iter().chain([(Standing::Right, right)])
    }
}

/// How many resources of each kind stand how. Kinds without resources are not in it.
pub type KindCounts = BTreeMap<Arc<str>, StandingCounts>;

/// Some of the standings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StandingSet(u16);

impl StandingSet {
    /// All of them.
    pub const ALL: StandingSet = StandingSet(u16::MAX);
    /// None of them.
    pub const NONE: StandingSet = StandingSet(0);

    /// Whether it is one of them.
    #[must_use]
    pub fn contains(self, standing: Standing) -> bool {
        self.0 & (1 << standing as u16) != 0
    }
}

impl FromIterator<Standing> for StandingSet {
    fn from_iter<T: IntoIterator<Item = Standing>>(standings: T) -> StandingSet {
        StandingSet(
            standings
                .into_iter()
                .fold(0, |set, standing| set | 1 << standing as u16),
        )
    }
}

/// How things are as a whole. Moments are since 1970 UTC, by the clock at the start of the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// When this was so.
    pub now: Duration,
    /// When the engine began.
    pub began: Duration,
    /// How many resources stand how.
    pub counts: StandingCounts,
    /// Generation of the running graph, if there is one.
    pub generation: Option<u64>,
    /// When the running graph was swapped in.
    pub swapped: Option<Duration>,
    /// Whether the host is converged; none if nobody wanted to know.
    pub converged: Option<bool>,
    /// Since when no runs begin, if somebody asked for a pause.
    pub paused: Option<Duration>,
    /// Whether all repairs are forbidden.
    pub noop: bool,
    /// Whether a new graph, or news for one, is on its way.
    pub new_graph: bool,
    /// Whether something that is no resource is under way which keeps the host from being quiet.
    pub busy: bool,
    /// How far stopping has come, if the engine stops.
    pub stopping: Option<StopStage>,
    /// How many runs repaired something.
    pub repairs: u64,
    /// When the last of these ended.
    pub repaired: Option<Duration>,
    /// Sequence number of the newest event; 0 before the first.
    pub newest_event: u64,
}

/// One resource as `status` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VertexStatus {
    /// Kind and name.
    pub id: ResourceId,
    /// The resource as part of which it is applied, if it is in the group of another one; what follows is that of this one.
    pub group: Option<ResourceId>,
    /// How it stands.
    pub standing: Standing,
    /// Since when it stands so; since 1970 UTC.
    pub since: Duration,
    /// What it does.
    pub state: VertexState,
    /// Whether it may not repair.
    pub noop: bool,
    /// Whether it is one of the hidden resources.
    pub hidden: bool,
    /// Whether it undoes one that left the program.
    pub reversal: bool,
    /// Whether a notification waits for it.
    pub refresh_pending: bool,
    /// Whether what blocks it has not failed, but waits for something outside this machine.
    pub behind_awaits: bool,
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
    /// It must run, but this one has given up.
    BlockedBy(ResourceId),
    /// It must run and may, but there is a pause or the jobs are used up.
    Ready,
    /// It waits for semaphores.
    WaitingForSemaphore,
    /// Its events come faster than its limit allows, or somebody undoes its repairs; since 1970 UTC.
    LimitedUntil(Duration),
    /// It failed and is tried again then; since 1970 UTC.
    BackingOffUntil(Duration),
    /// It waits for something outside this machine.
    WaitingForHost,
    /// It runs, since this moment; since 1970 UTC.
    Running(Duration),
    /// It failed and no tries are left.
    GaveUp,
    /// It is going away.
    Finishing,
}

impl Machine {
    /// All resources, sorted by identity.
    #[must_use]
    pub fn status(&self) -> Vec<VertexStatus> {
        let mut list = Vec::new();
        let mut from = Some(0);
        while let Some(place) = from {
            from = self.status_from(place, StandingSet::ALL, &mut list);
        }
        list.sort_by(|a, b| a.id.cmp(&b.id));
        list
    }

    /// Adds resources that stand so, in the order of their places and beginning with this one: a few of them, so that it takes little time.
    /// Answers the place at which to go on, if there are more.
    #[must_use]
    pub fn status_from(
        &self,
        place: usize,
        wanted: StandingSet,
        list: &mut Vec<VertexStatus>,
    ) -> Option<usize> {
        let end = self.vertices.len().min(place.saturating_add(LOOKED_AT_ONCE));
        for slot in place..end {
            let is_wanted = |standing| wanted.contains(standing);
            if self.vertices[slot].seen.standing.is_some_and(is_wanted) {
                self.status_at(slot, list);
            }
        }
        (end < self.vertices.len()).then_some(end)
    }

    /// Adds how many of each kind stand how, from this place on: of a few of them. Answers the place at which to go on, if there are more.
    #[must_use]
    pub fn counts_from(&self, place: usize, counts: &mut KindCounts) -> Option<usize> {
        let end = self.vertices.len().min(place.saturating_add(LOOKED_AT_ONCE));
        for vertex in &self.vertices[place.min(end)..end] {
            let (Some(standing), Some(resource)) = (vertex.seen.standing, vertex.resource()) else {
                continue;
            };
            let members = resource.members.all();
            let members = members.iter().map(|member| &member.id);
            for id in members.chain([&resource.id]) {
                let standing = vertex.standing_of(id, standing);
                // Nearly always it is there already.
                match counts.get_mut(&*id.kind) {
                    Some(counts) => *counts.count_mut(standing) += 1,
                    None => *counts.entry(id.kind.clone()).or_default().count_mut(standing) += 1,
                }
            }
        }
        (end < self.vertices.len()).then_some(end)
    }

    /// These resources, as far as they are there; hidden ones of one identity all.
    #[must_use]
    pub fn status_of(&self, ids: &[ResourceId]) -> Vec<VertexStatus> {
        let mut list = Vec::new();
        for id in ids {
            let from = list.len();
            for slot in self.slots_of(id) {
                self.status_at(slot as usize, &mut list);
            }
            let mut found = list.split_off(from);
            found.retain(|status| status.id == *id);
            list.append(&mut found);
        }
        list
    }

    /// Adds the resource in a place, and those that are applied as part of it.
    fn status_at(&self, slot: usize, list: &mut Vec<VertexStatus>) {
        let Some(status) = self.status_alone(slot) else {
            return;
        };
        let resource = self.vertices[slot].resource();
        let members = resource
            .map(|resource| resource.members.all())
            .unwrap_or_default();
        list.extend(members.iter().map(|member| {
            let of_member = VertexStatus {
                id: member.id.clone(),
                group: Some(status.id.clone()),
                noop: status.noop || member.meta.noop,
                ..status.clone()
            };
            self.alone_to_blame(slot, of_member)
        }));
        list.push(self.alone_to_blame(slot, status));
    }

    /// The status of one resource of a group that failed in part.
    fn alone_to_blame(&self, slot: usize, status: VertexStatus) -> VertexStatus {
        let vertex = &self.vertices[slot];
        let failed = vertex.failed_members();
        if failed.is_empty() || !status.standing.is_failure() {
            return status;
        }
        match failed.iter().find(|(id, _)| *id == status.id) {
            Some((_, error)) => VertexStatus {
                error: Some(error.clone()),
                ..status
            },
            None => VertexStatus {
                standing: Standing::Right,
                state: VertexState::Clean,
                error: None,
                ..status
            },
        }
    }

    fn status_alone(&self, slot: usize) -> Option<VertexStatus> {
        let vertex = &self.vertices[slot];
        let resource = vertex.resource()?;
        let pending = vertex
            .incoming
            .iter()
            .any(|edge| self.edges.get(*edge).refresh != Refresh::None);
        let error = vertex.extras().and_then(|extras| extras.error.clone());
        let fight = || vertex.life.as_ref().and_then(Life::fight).cloned();
        Some(VertexStatus {
            id: resource.id.clone(),
            group: None,
            standing: vertex.seen.standing?,
            since: self.shown_time(vertex.seen.since()),
            state: vertex
                .life
                .as_ref()
                .map_or(VertexState::WaitingToBeAdded, |life| {
                    self.state_of(slot as u32, life)
                }),
            noop: self.is_noop(resource),
            hidden: vertex.hidden,
            reversal: resource.meta.is_reversal,
            refresh_pending: pending,
            behind_awaits: self.is_behind_one_that_awaits(vertex),
            error: error.or_else(fight),
        })
    }

    fn is_behind_one_that_awaits(&self, vertex: &Vertex) -> bool {
        let by = vertex.blocked_by();
        by.is_some_and(|by| self.vertex(by).seen.standing == Some(Standing::WaitingForHost))
    }

    /// How things are as a whole at this moment. A machine at rest has not been told the time for long, and whoever asks reckons from it how
    /// long things have stood so.
    #[must_use]
    pub fn summary(&self, now: Duration) -> Summary {
        let convergence = &self.convergence;
        Summary {
            now: self.shown_time(now.max(self.now)),
            began: self.options.epoch,
            counts: self.counts,
            generation: self.graph.as_ref().map(|graph| graph.generation),
            swapped: self.swapped.map(|at| self.shown_time(at)),
            converged: self.options.converge.map(|_| convergence.converged),
            paused: self.paused.map(|at| self.shown_time(at)),
            noop: self.options.noop,
            new_graph: convergence.preparing || convergence.sources_busy,
            busy: convergence.guarded,
            stopping: self.stopping.as_ref().map(Stopping::stage),
            repairs: convergence.repaired,
            repaired: convergence.repaired_at.map(|at| self.shown_time(at)),
            newest_event: self.events,
        }
    }

    /// Whether the host is converged.
    #[must_use]
    pub fn is_converged(&self) -> bool {
        self.convergence.converged
    }

    fn state_of(&self, slot: u32, life: &Life) -> VertexState {
        let waits = |wait: &Wait| {
            let until = self.shown_time(wait.until);
            match wait.why {
                Why::Backoff | Why::Failing => VertexState::BackingOffUntil(until),
                Why::Limited | Why::Spaced => VertexState::LimitedUntil(until),
                Why::WaitingForHost => VertexState::WaitingForHost,
            }
        };
        let runs = |run: &Run| VertexState::Running(self.shown_time(run.began));
        let identity = |slot: u32| self.identity(slot);
        match life.stage() {
            Stage::WatchFailed { run: Some(run), .. } | Stage::GaveUp { run: Some(run), .. } => runs(run),
            Stage::Watching(Activity::Running(run)) if !life.is_leaving() => runs(run),
            _ if life.is_leaving() => VertexState::Finishing,
            Stage::InitFailed { wait } | Stage::WatchFailed { wait: Some(wait), .. } => waits(wait),
            Stage::GaveUp { .. } => VertexState::GaveUp,
            Stage::Watching(Activity::Clean) => VertexState::Clean,
            Stage::Watching(Activity::Running(run)) => runs(run),
            Stage::Watching(Activity::Due(due)) => match &due.queue {
                Queue::Time(wait) => waits(wait),
                Queue::Semaphores { .. } => VertexState::WaitingForSemaphore,
                Queue::Undecided | Queue::Turn { .. } => VertexState::Ready,
                Queue::Ancestor(on) => {
                    let blocked = due
                        .blocked_by
                        .and_then(|by| self.to_blame(slot, by))
                        .map(VertexState::BlockedBy);
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

/// Places that are looked at at a time, in well under a millisecond.
const LOOKED_AT_ONCE: usize = 2048;

impl Vertex {
    /// How what lives here stands, or what is to; none in a free place.
    pub(super) fn standing(&self) -> Option<Standing> {
        let Some(life) = &self.life else {
            return self.wanted.as_ref().map(|_| Standing::Waiting);
        };
        let has_error = self.extras().is_some_and(|extras| extras.error.is_some());
        let standing = match life.stage() {
            _ if life.is_leaving() => Standing::Finishing,
            Stage::GaveUp { .. } => Standing::Failed,
            _ if life.is_said_silent && life.waits_since().is_some() => Standing::Unresponsive,
            Stage::Watching(Activity::Due(due)) if due.blocked_by.is_some() => Standing::Blocked,
            _ if life.waiting_for_host => Standing::WaitingForHost,
            _ if has_error => Standing::Failing,
            _ if life.fight().is_some() => Standing::Conflict,
            Stage::Watching(Activity::Clean) if life.would_change => Standing::WouldChange,
            Stage::Watching(Activity::Clean) => Standing::Right,
            Stage::Watching(Activity::Running(_)) => Standing::Running,
            Stage::Watching(Activity::Due(_)) => Standing::Waiting,
            _ => Standing::Starting,
        };
        Some(standing)
    }

    /// How one resource of the vertex stands, when the vertex stands so.
    pub(super) fn standing_of(&self, id: &ResourceId, standing: Standing) -> Standing {
        let failed = self.failed_members();
        let is_right =
            standing.is_failure() && !failed.is_empty() && !failed.iter().any(|(other, _)| other == id);
        if is_right { Standing::Right } else { standing }
    }

    pub(super) fn group_size(&self) -> GroupSize {
        let members = self.members();
        let right = match self.failed_members() {
            [] => 0,
            failed => 1 + members - failed.len(),
        };
        GroupSize { members, right }
    }
}
