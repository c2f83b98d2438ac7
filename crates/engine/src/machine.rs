//! The engine's state and every decision about it: who may run, who waits for what, what a new graph changes.
//!
//! [`Machine::step`] takes the time and one [`Input`] and answers with [`Actions`]. There is no task, lock, clock or file
//! in here, so that tests and simulation step it by hand, and the same seed gives the same events.
//!
//! One step has three parts. The input changes vertices (`lifecycle`, `runs`, `swap`, `stop`); each that changed is
//! *touched*. Then `ready` looks at the touched ones until nothing moves: it wakes who waited for them, finds out
//! whether predecessors are settled, and starts runs. Last, `convergence` looks whether the host is quiet.
//!
//! What may run is found upwards from a dirty vertex (hard part: one event must not touch all descendants). A vertex that
//! finds an unsettled ancestor waits in that ancestor's list; what was found settled is remembered for the current *epoch*,
//! which ends when a vertex that was found settled stops being so.

mod action;
mod check;
mod convergence;
mod edges;
mod exchange;
mod input;
mod lifecycle;
mod limits;
mod ready;
mod runs;
mod semaphores;
mod status;
mod stop;
mod swap;
mod timers;
mod vertex;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;
use setpoint_graph::{DesiredGraph, DesiredResource, MetaName, ResourceId};
use smallvec::SmallVec;

pub use action::{Action, Actions, Check, ExitReport, RunRequest};
pub use input::{Armed, ExitReason, Initialised, Input, RunResult, StopStage};
pub use status::{VertexState, VertexStatus};
pub use vertex::VertexId;

use crate::{Cause, Event, EventKind};
use convergence::Convergence;
use edges::Edges;
use ready::{Ready, Waiters};
use semaphores::Semaphores;
use stop::Stopping;
use timers::{Due, Timers};
use vertex::{Hold, NONE, Phase, Vertex};

/// What holds for the whole process.
#[derive(Debug, Clone)]
pub struct Options {
    /// From which all randomness comes (the jitter of back-offs).
    pub seed: u64,
    /// The time of the clock, since 1970 UTC, at the moment that `step` calls zero.
    pub epoch: Duration,
    /// Forbids all repairs.
    pub noop: bool,
    /// Adds the semaphore `:N` to every resource.
    pub sema: Option<u32>,
    /// How many runs may be in progress.
    pub jobs: usize,
    /// Retries of resources that write none.
    pub retry: Option<i16>,
    /// Whether resources to which neither their own `retry` nor `retry` above applies are tried until they succeed, or
    /// never again after their first failure.
    pub keep_trying: bool,
    /// Milliseconds between the tries of resources that write none.
    pub delay: Option<u64>,
    /// How long the host must be quiet to be converged; none: nobody wants to know.
    pub converge: Option<Duration>,
    /// Whether to end when it is.
    pub exit_when_converged: bool,
    /// End after this time.
    pub max_runtime: Option<Duration>,
    /// How long a stage of stopping lasts when the next follows by itself.
    pub stop_patience: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 0,
            epoch: Duration::ZERO,
            noop: false,
            sema: None,
            jobs: 4096,
            retry: None,
            keep_trying: false,
            delay: None,
            converge: None,
            exit_when_converged: false,
            max_runtime: None,
            stop_patience: Duration::from_secs(15),
        }
    }
}

/// The running graph and all state about it.
pub struct Machine {
    options: Options,
    now: Duration,
    events: u64,
    random: u64,
    /// The newest graph that was swapped in.
    graph: Option<DesiredGraph>,
    vertices: Vec<Vertex>,
    free: Vec<u32>,
    /// Resources that manage one and the same thing, each with all of its group.
    sharing: FxHashMap<ResourceId, Arc<[ResourceId]>>,
    /// Slots by identity: the normal one and hidden ones.
    index: FxHashMap<ResourceId, SmallVec<[u32; 2]>>,
    edges: Edges,
    timers: Timers,
    semaphores: Semaphores,
    ready: Ready,
    waiters: Waiters,
    /// What was found settled holds in this epoch.
    epoch: u64,
    /// Vertices that changed in this step.
    touched: Vec<u32>,
    /// Vertices that may have become able to run.
    recheck: VecDeque<u32>,
    /// Number of the newest run.
    runs: u64,
    running: usize,
    /// Slots in which something lives.
    alive: usize,
    busy: usize,
    blocked: usize,
    failed: BTreeSet<u32>,
    /// How many vertices of an exclusive kind are going away, by the kind's first chunk; and who waits for that.
    exclusive_leaving: FxHashMap<&'static str, usize>,
    exclusive_waiting: Vec<u32>,
    paused: bool,
    stopping: Option<Stopping>,
    convergence: Convergence,
    actions: Vec<Action>,
}

impl Machine {
    /// A machine with no graph yet.
    #[must_use]
    pub fn new(options: Options) -> Machine {
        Machine {
            random: options.seed,
            options,
            now: Duration::ZERO,
            events: 0,
            graph: None,
            vertices: Vec::new(),
            free: Vec::new(),
            sharing: FxHashMap::default(),
            index: FxHashMap::default(),
            edges: Edges::default(),
            timers: Timers::default(),
            semaphores: Semaphores::default(),
            ready: Ready::default(),
            waiters: Waiters::default(),
            epoch: 1,
            touched: Vec::new(),
            recheck: VecDeque::new(),
            runs: 0,
            running: 0,
            alive: 0,
            busy: 0,
            blocked: 0,
            failed: BTreeSet::new(),
            exclusive_leaving: FxHashMap::default(),
            exclusive_waiting: Vec::new(),
            paused: false,
            stopping: None,
            convergence: Convergence::default(),
            actions: Vec::new(),
        }
    }

    /// Takes note of the time and one input, and answers what is to be done. Time never goes backwards here: an earlier
    /// `now` than before counts as the one before.
    pub fn step(&mut self, now: Duration, input: Input) -> Actions {
        self.now = self.now.max(now);
        self.fire_timers();
        self.take(input);
        self.settle();
        self.look_for_quiet();
        self.look_for_end();
        Actions {
            list: std::mem::take(&mut self.actions),
            deadline: self.next_deadline(),
        }
    }

    /// Takes the emptied list of an answer back, so that the next answer need not allocate one.
    pub fn recycle(&mut self, mut list: Vec<Action>) {
        list.clear();
        if list.capacity() > self.actions.capacity() && list.capacity() < 4096 {
            self.actions = list;
        }
    }

    /// The graph that was swapped in last.
    #[must_use]
    pub fn graph(&self) -> Option<&DesiredGraph> {
        self.graph.as_ref()
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Timer => {}
            Input::NewGraph(graph) => self.new_graph(graph),
            Input::Sharing(groups) => self.share(groups),
            Input::GraphRejected { diagnostics } => self.emit(None, EventKind::GraphRejected { diagnostics }),
            Input::Preparing(preparing) => self.convergence.preparing = preparing,
            Input::SourcesBusy(busy) => self.convergence.sources_busy = busy,
            Input::Busy(busy) => self.convergence.guarded = busy,
            Input::InitEnded { vertex, result } => {
                if let Some(slot) = self.slot(vertex) {
                    self.init_ended(slot, result);
                }
            }
            Input::WatchArmed { vertex, result } => {
                if let Some(slot) = self.slot(vertex) {
                    self.watch_armed(slot, result);
                }
            }
            Input::WatchFailed { vertex, failure } => {
                if let Some(slot) = self.slot(vertex) {
                    self.watch_failed(slot, &failure);
                }
            }
            Input::WatchEvents(events) => {
                for (vertex, what) in events {
                    if let Some(slot) = self.slot(vertex) {
                        self.watch_event(slot, Cause::Watch(what));
                    }
                }
            }
            Input::Rearmed { vertex } => {
                if let Some(slot) = self.slot(vertex) {
                    self.rearmed(slot);
                }
            }
            Input::Drift { vertex, drift } => {
                if let Some(slot) = self.slot(vertex) {
                    self.drift_found(slot, &drift);
                }
            }
            Input::RunEnded { vertex, result } => {
                if let Some(slot) = self.slot(vertex) {
                    self.run_ended(slot, result);
                }
            }
            Input::CleanupEnded { vertex, failure } => {
                if let Some(slot) = self.slot(vertex) {
                    self.cleanup_ended(slot, failure.as_ref());
                }
            }
            Input::Log {
                vertex,
                level,
                message,
            } => {
                let slot = vertex.and_then(|vertex| self.slot(vertex));
                self.emit(
                    slot,
                    EventKind::Log {
                        level: level.into(),
                        message,
                    },
                );
            }
            Input::Poke(id) => self.poke(&id),
            Input::Pause => {
                if !std::mem::replace(&mut self.paused, true) {
                    self.emit(None, EventKind::Paused);
                }
            }
            Input::Resume => {
                if std::mem::replace(&mut self.paused, false) {
                    self.emit(None, EventKind::Resumed);
                }
            }
            Input::Stop { stage, escalate } => self.stop(stage, escalate, ExitReason::Stopped),
            Input::Exit(reason) => self.stop(StopStage::Finish, true, reason),
        }
    }

    fn fire_timers(&mut self) {
        while let Some(due) = self.timers.pop(self.now) {
            match due {
                Due::Hold { slot, incarnation } => self.hold_ended(slot, incarnation),
                Due::Timeout { slot, run } => self.timeout(slot, run),
                Due::Interval { slot, incarnation } => self.interval_passed(slot, incarnation),
            }
        }
        self.stop_deadline_passed();
    }

    fn next_deadline(&mut self) -> Option<Duration> {
        let vertices = &self.vertices;
        let is_void = |due: Due, at: Duration| match due {
            Due::Hold { slot, incarnation } => vertices
                .get(slot as usize)
                .is_none_or(|v| v.incarnation != incarnation || v.hold == Hold::None || v.hold_until != at),
            Due::Timeout { slot, run } => vertices
                .get(slot as usize)
                .is_none_or(|v| v.run != run || !v.flags.running || v.flags.timed_out),
            Due::Interval { slot, incarnation } => vertices.get(slot as usize).is_none_or(|v| {
                v.incarnation != incarnation
                    || v.extras
                        .as_ref()
                        .is_none_or(|extras| extras.interval.is_none() || extras.interval_due != at)
            }),
        };
        self.timers.tidy(vertices.len(), is_void);
        let next = self.timers.next(is_void);
        [next, self.quiet_deadline(), self.stop_deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// The slot of a vertex that still lives.
    fn slot(&self, vertex: VertexId) -> Option<u32> {
        let found = self.vertices.get(vertex.slot as usize)?;
        (found.incarnation == vertex.incarnation && found.live.is_some()).then_some(vertex.slot)
    }

    fn vertex(&self, slot: u32) -> &Vertex {
        &self.vertices[slot as usize]
    }

    /// To change a vertex: what depends on the change is looked at before the step ends.
    fn vertex_mut(&mut self, slot: u32) -> &mut Vertex {
        let vertex = &mut self.vertices[slot as usize];
        if !vertex.flags.touched {
            vertex.flags.touched = true;
            self.touched.push(slot);
        }
        vertex
    }

    fn id(&self, slot: u32) -> VertexId {
        VertexId {
            slot,
            incarnation: self.vertex(slot).incarnation,
        }
    }

    /// What lives in a slot in which something lives.
    fn live(&self, slot: u32) -> &Arc<DesiredResource> {
        self.vertex(slot)
            .live
            .as_ref()
            .expect("callers look only at vertices that live")
    }

    /// How an identity is shown.
    fn show(&self, slot: u32) -> String {
        self.vertex(slot)
            .identity()
            .map(ToString::to_string)
            .unwrap_or_default()
    }

    fn identity(&self, slot: u32) -> Option<ResourceId> {
        self.vertex(slot).identity().cloned()
    }

    fn emit(&mut self, slot: Option<u32>, what: EventKind) {
        self.events += 1;
        let id = slot.and_then(|slot| self.vertices[slot as usize].identity());
        let event = Event {
            what,
            time: self.options.epoch + self.now,
            seq: self.events,
            kind: id.map(|id| id.kind.clone()),
            name: id.map(|id| id.name.clone()),
        };
        self.actions.push(Action::Emit(Arc::new(event)));
    }

    /// A moment as events show it.
    fn shown_time(&self, at: Duration) -> Duration {
        self.options.epoch.saturating_add(at)
    }

    fn is_noop(&self, resource: &DesiredResource) -> bool {
        self.options.noop || resource.meta.noop
    }

    /// How often a resource is tried again.
    fn tries(&self, resource: &DesiredResource) -> Tries {
        let meta = &resource.meta;
        let is_written = meta.retry != 0 || meta.written.contains(MetaName::Retry);
        let written = is_written.then_some(meta.retry).or(self.options.retry);
        match written.map(u16::try_from) {
            Some(Ok(times)) => Tries::UpTo(times),
            Some(Err(_)) => Tries::Endless,
            None if self.options.keep_trying && !self.options.noop => Tries::UntilRight,
            None => Tries::UpTo(0),
        }
    }

    /// How long to wait before the next try, after so many failures one after the other.
    fn delay(&mut self, resource: &DesiredResource, failures: u8) -> Duration {
        let meta = &resource.meta;
        if meta.delay != 0 || meta.written.contains(MetaName::Delay) {
            return Duration::from_millis(meta.delay);
        }
        if let Some(delay) = self.options.delay {
            return Duration::from_millis(delay);
        }
        const FIRST: u64 = 100_000;
        const LAST: u64 = 60_000_000;
        let base = FIRST << failures.saturating_sub(1).min(20);
        let jittered = base.min(LAST) * (80 + self.next_random() % 41) / 100;
        Duration::from_micros(jittered.clamp(FIRST, LAST))
    }

    /// splitmix64: small, and good enough for jitter.
    fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Keeps a vertex from running until a moment.
    fn hold(&mut self, slot: u32, hold: Hold, until: Duration) {
        let vertex = self.vertex_mut(slot);
        vertex.hold = hold;
        vertex.hold_until = until;
        let incarnation = vertex.incarnation;
        self.timers.set(until, Due::Hold { slot, incarnation });
    }

    /// Marks a vertex as one that must run.
    fn make_dirty(&mut self, slot: u32, cause: Cause) {
        let vertex = self.vertex_mut(slot);
        if vertex.live.is_none() {
            return;
        }
        // Refreshes, received values and pokes do not wait for what only events of the watch wait for.
        match vertex.hold {
            Hold::Limited | Hold::Spaced => vertex.hold = Hold::None,
            Hold::Failing => return self.try_soon(slot),
            Hold::None | Hold::Backoff => {}
        }
        let vertex = self.vertex_mut(slot);
        if !std::mem::replace(&mut vertex.flags.dirty, true) {
            vertex.flags.by_watch = false;
            self.emit(Some(slot), EventKind::Dirty { cause });
        }
    }

    /// An event of the watch, or of what stands in for one.
    fn watch_event(&mut self, slot: u32, cause: Cause) {
        let vertex = self.vertex(slot);
        if vertex.phase != Phase::Watching || vertex.flags.leaving {
            return;
        }
        if vertex.hold == Hold::Failing {
            return self.try_soon(slot);
        }
        // An event that coalesces into a run that still waits is that run.
        if vertex.flags.dirty {
            return;
        }
        self.vertex_mut(slot).flags.dirty = true;
        self.emit(Some(slot), EventKind::Dirty { cause });
        self.limit_event(slot);
    }

    /// Something happened while a vertex that is tried until it is right waits for its next try.
    fn try_soon(&mut self, slot: u32) {
        let vertex = self.vertex(slot);
        let failed_at = vertex.extras.as_ref().map_or(self.now, |extras| extras.failed_at);
        let until = failed_at.saturating_add(SHORTEST_WAIT).max(self.now);
        if until < vertex.hold_until {
            self.hold(slot, Hold::Failing, until);
        }
    }

    /// The watch was armed anew, on what the received values say. It does not count as an event of the watch.
    fn rearmed(&mut self, slot: u32) {
        let vertex = self.vertex(slot);
        if vertex.phase == Phase::Watching && !vertex.flags.leaving {
            self.make_dirty(slot, Cause::FirstEvent);
        }
    }

    /// Takes a token for an event that has just made a vertex dirty, and notes that the watch did it.
    fn limit_event(&mut self, slot: u32) {
        let now = self.now;
        let resource = self.live(slot).clone();
        let (limit, burst) = (resource.meta.limit, resource.meta.burst);
        let vertex = self.vertex_mut(slot);
        vertex.flags.by_watch = true;
        if limit.is_finite() {
            let bucket = vertex
                .extras()
                .bucket
                .get_or_insert_with(|| limits::TokenBucket::new(now, burst));
            if let Some(until) = bucket.take(now, limit, burst) {
                self.hold(slot, Hold::Limited, until);
                let until = self.shown_time(until);
                self.emit(Some(slot), EventKind::LimitedUntil { until });
            }
        } else if let Some(fight) = vertex.extras.as_mut().and_then(|extras| extras.fight.as_mut())
            && let Some(until) = fight.earliest(now)
        {
            self.hold(slot, Hold::Spaced, until);
        }
    }

    fn hold_ended(&mut self, slot: u32, incarnation: u32) {
        let now = self.now;
        let Some(vertex) = self.vertices.get(slot as usize) else {
            return;
        };
        if vertex.incarnation != incarnation || vertex.hold == Hold::None || vertex.hold_until > now {
            return;
        }
        let hold = vertex.hold;
        self.vertex_mut(slot).hold = Hold::None;
        match self.vertex(slot).phase {
            Phase::InitWaits => self.initialise(slot),
            Phase::WatchWaits => self.arm_again(slot),
            Phase::Watching if matches!(hold, Hold::Backoff | Hold::Failing) => {
                let cause = Cause::Retry;
                self.emit(Some(slot), EventKind::Dirty { cause });
            }
            Phase::Watching
            | Phase::Absent
            | Phase::Initialising
            | Phase::Arming
            | Phase::Failed
            | Phase::Draining
            | Phase::Cleaning => {}
        }
    }

    fn interval_passed(&mut self, slot: u32, incarnation: u32) {
        let now = self.now;
        let Some(vertex) = self.vertices.get_mut(slot as usize) else {
            return;
        };
        if vertex.incarnation != incarnation {
            return;
        }
        let Some(extras) = &mut vertex.extras else { return };
        let Some(interval) = extras.interval else { return };
        if extras.interval_due > now {
            return;
        }
        // Intervals that passed while nobody looked are one.
        let passed = now - extras.interval_due;
        let skipped = passed.as_nanos() / interval.as_nanos().max(1);
        let skipped = u32::try_from(skipped).unwrap_or(u32::MAX);
        extras.interval_due += interval.saturating_mul(skipped.saturating_add(1));
        let due = extras.interval_due.max(now + Duration::from_millis(1));
        extras.interval_due = due;
        let notifies = extras.interval_notifies;
        self.timers.set(due, Due::Interval { slot, incarnation });
        if notifies {
            self.tick(slot);
        } else {
            self.watch_event(slot, Cause::Poll);
        }
    }

    /// A tick notifies as a repair would, but is none.
    fn tick(&mut self, slot: u32) {
        let vertex = self.vertex(slot);
        if vertex.phase != Phase::Watching || vertex.flags.leaving {
            return;
        }
        self.emit(Some(slot), EventKind::Tick);
        if !self.is_noop(self.live(slot)) {
            self.notify(slot, true);
        }
        self.watch_event(slot, Cause::Tick);
    }

    /// Begins to count an interval, from now.
    fn start_interval(&mut self, slot: u32, interval: Duration, notifies: bool) {
        let due = self.now.saturating_add(interval.max(Duration::from_millis(1)));
        let vertex = self.vertex_mut(slot);
        let incarnation = vertex.incarnation;
        let extras = vertex.extras();
        extras.interval = Some(interval);
        extras.interval_due = due;
        extras.interval_notifies = notifies;
        self.timers.set(due, Due::Interval { slot, incarnation });
    }

    fn timeout(&mut self, slot: u32, run: u64) {
        let Some(vertex) = self.vertices.get_mut(slot as usize) else {
            return;
        };
        if vertex.run != run || !vertex.flags.running || vertex.flags.timed_out {
            return;
        }
        vertex.flags.timed_out = true;
        let Some(resource) = vertex.live.clone() else {
            return;
        };
        let after = Duration::from_millis(resource.meta.timeout);
        let vertex = self.id(slot);
        self.actions.push(Action::Cancel {
            vertex,
            cause: crate::CancelCause::Timeout(after),
        });
    }
}

/// How often a resource that failed is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tries {
    /// So often, after the first time.
    UpTo(u16),
    /// Always, after its delay.
    Endless,
    /// Always, after its delay or when something happens before that.
    UntilRight,
}

/// Between two tries of a resource that is tried until it is right, whatever happens.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);

/// A slot number that means something, if it is one.
fn some(slot: u32) -> Option<u32> {
    (slot != NONE).then_some(slot)
}
