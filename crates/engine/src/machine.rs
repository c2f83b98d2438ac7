//! The engine's state and every decision about it: who may run, who waits for what, what a new graph changes.
//!
//! [`Machine::step`] takes the time and one [`Input`] and answers with [`Actions`]. There is no task, lock, clock or file
//! in here, so that tests and simulation step it by hand, and the same seed gives the same events.
//!
//! What state a resource is in, and which states follow, is in `life`. One step has three parts. The input changes vertices
//! (`lifecycle`, `runs`, `swap`, `stop`); each that changed is *touched*. Then `ready` looks at the touched ones until nothing moves: it wakes who waited for them, finds out
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
mod exports;
mod index;
mod input;
mod life;
mod lifecycle;
mod limits;
mod ready;
mod reversals;
mod runs;
mod semaphores;
mod silence;
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

pub use action::{Action, Actions, Check, ExitReport, KnownBy, RunRequest, UnknownParameter};
pub use input::{Armed, ExitReason, Initialised, Input, RunResult, StopStage};
pub use reversals::RecordWork;
pub use status::{KindCounts, Standing, StandingCounts, StandingSet, Summary, VertexState, VertexStatus};
pub use vertex::VertexId;

use crate::{Cause, Event, EventKind, ResourceName};
use convergence::Convergence;
use edges::Edges;
use index::Index;
use life::{Attention, Life, Next, Pending, Wait, Why};
use ready::{Ready, Waiters};
use reversals::Reversals;
use semaphores::Semaphores;
use status::GroupSize;
use stop::Stopping;
use timers::{Due, Timers};
use vertex::{Extras, Vertex};

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
    /// Time without a response after which a resource is reported as unresponsive. None disables the report.
    pub answer_within: Option<Duration>,
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
            answer_within: None,
        }
    }
}

/// The running graph and all state about it.
pub struct Machine {
    options: Options,
    now: Duration,
    events: u64,
    random: u64,
    /// The newest graph that was swapped in, with what undoes what it lacks.
    graph: Option<DesiredGraph>,
    /// When it was.
    swapped: Option<Duration>,
    vertices: Vec<Vertex>,
    free: Vec<u32>,
    /// Resources that manage one and the same thing, each with all of its group.
    sharing: FxHashMap<ResourceId, Arc<[ResourceId]>>,
    index: Index,
    /// In which slot each member of a group lives.
    homes: FxHashMap<ResourceId, u32>,
    /// How many members each group has, by its slot, as they were counted last.
    group_sizes: FxHashMap<u32, GroupSize>,
    /// How many members the groups of the newest graph have.
    members: usize,
    /// By the slot of what must be gone first: the slots in which something waits to be added.
    handovers: FxHashMap<u32, Vec<u32>>,
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
    /// How many stand how.
    counts: StandingCounts,
    /// How many vertices of an exclusive kind are going away, by the kind's first chunk; and who waits for that.
    exclusive_leaving: FxHashMap<&'static str, usize>,
    exclusive_waiting: Vec<u32>,
    /// Since when no runs begin, because somebody asked for a pause.
    paused: Option<Duration>,
    stopping: Option<Stopping>,
    reversals: Reversals,
    convergence: Convergence,
    /// When to look for what does not answer; none while nothing was asked.
    next_look: Option<Duration>,
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
            swapped: None,
            vertices: Vec::new(),
            free: Vec::new(),
            sharing: FxHashMap::default(),
            index: Index::default(),
            homes: FxHashMap::default(),
            group_sizes: FxHashMap::default(),
            members: 0,
            handovers: FxHashMap::default(),
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
            counts: StandingCounts::default(),
            exclusive_leaving: FxHashMap::default(),
            exclusive_waiting: Vec::new(),
            paused: None,
            stopping: None,
            reversals: Reversals::default(),
            convergence: Convergence::default(),
            next_look: None,
            actions: Vec::new(),
        }
    }

    /// Takes note of the time and one input, and answers what is to be done. Time never goes backwards here: an earlier
    /// `now` than before counts as the one before.
    pub fn step(&mut self, now: Duration, input: Input) -> Actions {
        self.now = self.now.max(now);
        self.fire_timers();
        self.take(input);
        self.run_to_fixpoint();
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

    /// The graph that was swapped in last, with what undoes what it lacks.
    #[must_use]
    pub fn graph(&self) -> Option<&DesiredGraph> {
        self.graph.as_ref()
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Timer => {}
            Input::NewGraph(graph) => self.new_graph(graph),
            Input::Sharing(groups) => self.share(groups),
            Input::Recorded(found) => self.recorded(found),
            Input::Forgotten(id) => self.forgotten(&id),
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
            Input::Unresponsive { vertex, at } => {
                if let Some(slot) = self.slot(vertex) {
                    self.unresponsive(slot, at);
                }
            }
            Input::Log {
                vertex,
                member,
                level,
                message,
            } => {
                let what = EventKind::Log { level, message };
                match vertex.and_then(|vertex| self.slot(vertex)) {
                    Some(slot) => self.emit_of(slot, member.as_ref(), what),
                    None => self.publish_event(member, None, what),
                }
            }
            Input::Unexported(left) => self.unexported(left),
            Input::Recheck(id) => self.recheck(&id),
            Input::Pause => {
                if self.paused.is_none() {
                    self.paused = Some(self.now);
                    self.emit(None, EventKind::Paused);
                }
            }
            Input::Resume => {
                if self.paused.take().is_some() {
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
                Due::Wait { slot, incarnation } => self.wait_ended(slot, incarnation),
                Due::Timeout { slot, run } => self.timeout(slot, run),
                Due::Interval { slot, incarnation } => self.interval_passed(slot, incarnation),
                Due::FightOver { slot, incarnation } => self.look_at_fight(slot, incarnation),
            }
        }
        self.look_for_silence();
        self.stop_deadline_passed();
    }

    fn next_deadline(&mut self) -> Option<Duration> {
        let vertices = &self.vertices;
        let is_void = |due: Due, at: Duration| match due {
            Due::FightOver { slot, incarnation } => vertices.get(slot as usize).is_none_or(|v| {
                v.incarnation != incarnation || v.life.as_ref().is_none_or(|life| life.fight().is_none())
            }),
            Due::Wait { slot, incarnation } => vertices
                .get(slot as usize)
                .is_none_or(|v| v.incarnation != incarnation || v.wait().is_none_or(|wait| wait.until != at)),
            Due::Timeout { slot, run } => vertices
                .get(slot as usize)
                .and_then(Vertex::run)
                .is_none_or(|current| current.number != run || current.timed_out),
            Due::Interval { slot, incarnation } => vertices.get(slot as usize).is_none_or(|v| {
                v.incarnation != incarnation
                    || v.extras()
                        .is_none_or(|extras| extras.interval.is_none() || extras.interval_due != at)
            }),
        };
        self.timers.tidy(vertices.len(), is_void);
        let next = self.timers.next(is_void);
        [next, self.quiet_deadline(), self.stop_deadline(), self.next_look]
            .into_iter()
            .flatten()
            .min()
    }

    /// The slot of a vertex that still lives.
    fn slot(&self, vertex: VertexId) -> Option<u32> {
        let found = self.vertices.get(vertex.slot as usize)?;
        (found.incarnation == vertex.incarnation && found.life.is_some()).then_some(vertex.slot)
    }

    fn vertex(&self, slot: u32) -> &Vertex {
        &self.vertices[slot as usize]
    }

    /// To change a vertex: what depends on the change is looked at before the step ends.
    fn vertex_mut(&mut self, slot: u32) -> &mut Vertex {
        let vertex = &mut self.vertices[slot as usize];
        if !vertex.seen.touched {
            vertex.seen.touched = true;
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
    fn life(&self, slot: u32) -> &Life {
        self.vertex(slot)
            .life
            .as_ref()
            .expect("callers look only at slots in which something lives")
    }

    /// To change what lives in a slot in which something lives.
    fn life_mut(&mut self, slot: u32) -> &mut Life {
        self.vertex_mut(slot)
            .life
            .as_mut()
            .expect("callers look only at slots in which something lives")
    }

    /// The resource that lives in a slot in which something lives.
    fn live(&self, slot: u32) -> &Arc<DesiredResource> {
        &self.life(slot).resource
    }

    fn extras_mut(&mut self, slot: u32) -> &mut Extras {
        self.life_mut(slot).extras.get_or_insert_default()
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
        let id = slot.and_then(|slot| self.identity(slot));
        self.publish_event(id, None, what);
    }

    /// An event of a member of what lives in a slot, or of that itself.
    fn emit_of(&mut self, slot: u32, member: Option<&ResourceId>, what: EventKind) {
        let id = self.identity(slot);
        match member {
            Some(member) => {
                let group = id.as_ref().map(ResourceName::from);
                self.publish_event(Some(member.clone()), group, what);
            }
            None => self.publish_event(id, None, what),
        }
    }

    fn publish_event(&mut self, id: Option<ResourceId>, group: Option<ResourceName>, what: EventKind) {
        self.events += 1;
        let (kind, name) = match id {
            Some(id) => (Some(id.kind), Some(id.name)),
            None => (None, None),
        };
        let event = Event {
            what,
            time: self.options.epoch + self.now,
            seq: self.events,
            kind,
            name,
            group,
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

    /// Lets a vertex wait until a moment.
    fn wait_until(&mut self, slot: u32, wait: Wait) {
        self.life_mut(slot).wait_until(wait);
        self.set_wait_timer(slot, wait);
    }

    fn set_wait_timer(&mut self, slot: u32, wait: Wait) {
        let incarnation = self.vertex(slot).incarnation;
        self.timers.set(wait.until, Due::Wait { slot, incarnation });
    }

    /// Marks a vertex as one that must run. What this is for does not wait for what only events of the watch wait for.
    fn make_due(&mut self, slot: u32, cause: Cause) {
        let attention = self.vertex(slot).life.as_ref().map(Life::attention);
        match attention {
            Some(Attention::BecomesDue) => {
                self.life_mut(slot).become_due(Pending {
                    by_watch: false,
                    wait: None,
                });
                self.emit(Some(slot), EventKind::Dirty { cause });
            }
            Some(Attention::Waits(Why::Limited | Why::Spaced)) => {
                self.life_mut(slot).stop_waiting();
            }
            Some(Attention::Waits(Why::Failing)) => self.try_soon(slot),
            Some(Attention::Waits(Why::WaitingForHost)) => self.look_again(slot, cause),
            Some(Attention::Waits(Why::Backoff) | Attention::IsDue | Attention::None) | None => {}
        }
    }

    /// An event of the watch, or of what stands in for one.
    fn watch_event(&mut self, slot: u32, cause: Cause) {
        // What a watch that was lost saw before is no news, and does not hurry its next arming.
        let heard = self.vertex(slot).life.as_ref().filter(|life| life.is_watching());
        let Some(life) = heard else { return };
        match life.attention() {
            Attention::BecomesDue => {
                let pending = self.event_of_watch(slot);
                self.life_mut(slot).become_due(pending);
                self.emit(Some(slot), EventKind::Dirty { cause });
                self.note_limit(slot, pending);
            }
            Attention::Waits(Why::Failing) => self.try_soon(slot),
            Attention::Waits(Why::WaitingForHost) => self.look_again(slot, cause),
            // An event that coalesces into a run that still waits is that run.
            Attention::Waits(_) | Attention::IsDue | Attention::None => {}
        }
    }

    /// Something happened while a vertex that is tried until it is right waits for its next try.
    fn try_soon(&mut self, slot: u32) {
        let vertex = self.vertex(slot);
        let failed_at = vertex.extras().map_or(self.now, |extras| extras.failed_at);
        let until = failed_at.saturating_add(SHORTEST_WAIT).max(self.now);
        if vertex.wait().is_some_and(|wait| until < wait.until) {
            let why = Why::Failing;
            self.wait_until(slot, Wait { why, until });
        }
    }

    /// Something happened that may be what a vertex waits for.
    fn look_again(&mut self, slot: u32, cause: Cause) {
        self.life_mut(slot).stop_waiting();
        self.emit(Some(slot), EventKind::Dirty { cause });
    }

    /// The watch was armed anew, on what the received values say. It does not count as an event of the watch.
    fn rearmed(&mut self, slot: u32) {
        if self.life(slot).is_watching() {
            self.make_due(slot, Cause::FirstEvent);
        }
    }

    /// Takes a token for an event of the watch. There may be none, or a fight.
    fn event_of_watch(&mut self, slot: u32) -> Pending {
        let now = self.now;
        let resource = self.live(slot).clone();
        let (limit, burst) = (resource.meta.limit, resource.meta.burst);
        let mut wait = None;
        if limit.is_finite() {
            let bucket = &mut self.extras_mut(slot).bucket;
            let bucket = bucket.get_or_insert_with(|| limits::TokenBucket::new(now, burst));
            let until = bucket.take(now, limit, burst);
            wait = until.map(|until| (Why::Limited, until));
        } else if let Some(extras) = &mut self.life_mut(slot).extras
            && let Some(fight) = &mut extras.fight
        {
            wait = fight.earliest(now).map(|until| (Why::Spaced, until));
        }
        Pending {
            by_watch: true,
            wait: wait.map(|(why, until)| Wait { why, until }),
        }
    }

    /// Says that an event of the watch waits, and wakes it when it no longer does.
    fn note_limit(&mut self, slot: u32, pending: Pending) {
        let Some(wait) = pending.wait else { return };
        self.set_wait_timer(slot, wait);
        if wait.why == Why::Limited {
            let until = self.shown_time(wait.until);
            self.emit(Some(slot), EventKind::LimitedUntil { until });
        }
    }

    fn wait_ended(&mut self, slot: u32, incarnation: u32) {
        let now = self.now;
        let Some(vertex) = self.vertices.get(slot as usize) else {
            return;
        };
        if vertex.incarnation != incarnation || vertex.wait().is_none_or(|wait| wait.until > now) {
            return;
        }
        match self.life_mut(slot).stop_waiting() {
            Next::Initialise => self.initialise(slot),
            Next::Arm => self.arm_again(slot),
            Next::Retry => {
                let cause = Cause::Retry;
                self.emit(Some(slot), EventKind::Dirty { cause });
            }
            Next::Run | Next::Nothing => {}
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
        let Some(extras) = vertex.life.as_mut().and_then(|life| life.extras.as_mut()) else {
            return;
        };
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
        let life = self.life(slot);
        if !life.is_watching() || life.is_leaving() {
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
        let incarnation = self.vertex(slot).incarnation;
        let extras = self.extras_mut(slot);
        extras.interval = Some(interval);
        extras.interval_due = due;
        extras.interval_notifies = notifies;
        self.timers.set(due, Due::Interval { slot, incarnation });
    }

    fn timeout(&mut self, slot: u32, number: u64) {
        let life = self.vertices.get_mut(slot as usize).and_then(|v| v.life.as_mut());
        let Some(life) = life else { return };
        let after = Duration::from_millis(life.resource.meta.timeout);
        match life.run_mut() {
            Some(run) if run.number == number && !run.timed_out => run.timed_out = true,
            _ => return,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn randomness_is_that_of_splitmix64() {
        let mut machine = Machine::new(Options::default());
        let numbers: Vec<u64> = (0..3).map(|_| machine.next_random()).collect();
        let published = [
            0xe220_a839_7b1d_cdaf,
            0x6e78_9e6a_a1b9_65f4,
            0x06c4_5d18_8009_454f,
        ];
        assert_eq!(numbers, published);
    }

    #[test]
    fn a_list_of_actions_is_used_again_unless_it_is_huge() {
        let mut machine = Machine::new(Options::default());
        machine.recycle(Vec::with_capacity(100));
        let list = machine.step(Duration::ZERO, Input::Pause).list;
        assert_eq!((list.len(), list.capacity()), (1, 100));
        machine.recycle(list);
        machine.recycle(Vec::with_capacity(10));
        let list = machine.step(Duration::ZERO, Input::Resume).list;
        assert_eq!(
            (list.len(), list.capacity()),
            (1, 100),
            "emptied, and the larger one is kept"
        );
        machine.recycle(Vec::with_capacity(4096));
        assert!(machine.step(Duration::ZERO, Input::Pause).list.capacity() < 4096);
    }
}
