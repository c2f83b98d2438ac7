//! The owner of the machine: takes what has arrived, steps, and does what the machine wants done.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use setpoint_graph::{DesiredResource, ResourceId};
use setpoint_host::sync::wait_timeout;
use tokio::sync::watch;

use super::background::KindTasks;
use super::execute::{Cell, Run, Task, finish, run_as_task};
use super::inbox::{MOST_SPARE, Message, Question, StatusPart, WatchId};
use super::{SWEEP_EVERY, Shared};
use crate::machine::{
    Action, ExitReport, Input, Machine, Options, RecordWork, RunRequest, RunResult, VertexId,
};
use crate::prepare::Instances;
use crate::{Cancellation, Event, EventSink, Level, RunShape};

/// How long the end waits until it is stored that notifications were served, and again until what is no longer exported has left the store.
const PATIENCE_AT_END: Duration = Duration::from_secs(2);

/// What is known here of one vertex.
struct Record {
    vertex: VertexId,
    cell: Arc<Cell>,
    shape: RunShape,
    /// The run in progress, to be told to stop.
    cancellation: Option<Cancellation>,
}

impl Record {
    /// Where it is at work, as far as that is known without looking.
    fn path(&self) -> Option<Arc<str>> {
        let watches = self.cell.watches();
        let path = watches.first_path()?;
        Some(path.as_path().to_string_lossy().into())
    }
}

pub(super) struct Owner {
    shared: Arc<Shared>,
    machine: Machine,
    epoch: Duration,
    began: Instant,
    /// By the vertex's place.
    records: Vec<Option<Record>>,
    /// Runs of hidden resources, which wait for what they export to be written.
    hidden_runs: FxHashMap<VertexId, Cancellation>,
    /// By the vertex's place: the number of the newest arming, so that what older ones say is not heard.
    armings: Vec<u32>,
    instances: Instances,
    kinds: KindTasks,
    /// Jobs for the pool, of the messages at hand.
    jobs: Vec<Task>,
    /// Events of the messages at hand.
    emitted: Vec<Arc<Event>>,
    /// An empty list for the next messages.
    spare: Vec<Message>,
    deadline: Option<Duration>,
    next_sweep: Option<Duration>,
    events: EventSink,
    exit: watch::Sender<Option<ExitReport>>,
    transitions: Option<mpsc::Sender<bool>>,
    hook: Option<std::thread::JoinHandle<()>>,
    report: Option<Box<ExitReport>>,
}

impl Owner {
    #[expect(
        clippy::disallowed_methods,
        reason = "the clock that the machine goes by, and a thread for the hooks of convergence"
    )]
    pub(super) fn new(
        shared: Arc<Shared>,
        options: Options,
        exit: watch::Sender<Option<ExitReport>>,
        on_converged: Option<Box<dyn FnMut(bool) + Send>>,
    ) -> Owner {
        let events = shared.events.lock().clone().unwrap_or_else(|| EventSink::new(1));
        let mut transitions = None;
        let mut hook = None;
        if let Some(mut on_converged) = on_converged {
            let (sender, receiver) = mpsc::channel();
            transitions = Some(sender);
            hook = Some(std::thread::spawn(move || {
                for converged in receiver {
                    on_converged(converged);
                }
            }));
        }
        Owner {
            shared,
            epoch: options.epoch,
            machine: Machine::new(options),
            began: Instant::now(),
            records: Vec::new(),
            hidden_runs: FxHashMap::default(),
            armings: Vec::new(),
            instances: Instances::default(),
            kinds: KindTasks::default(),
            jobs: Vec::new(),
            emitted: Vec::new(),
            spare: Vec::new(),
            deadline: None,
            next_sweep: None,
            events,
            exit,
            transitions,
            hook,
            report: None,
        }
    }

    /// Takes messages, and does what follows from them; without any, what the time makes due.
    pub(super) fn work(&mut self, messages: &mut Vec<Message>) {
        let now = self.began.elapsed();
        if messages.is_empty() {
            self.step(now, Input::Timer);
        }
        self.receive_events(now, messages);
        for message in messages.drain(..) {
            self.receive(now, message);
            if self.report.is_some() {
                break;
            }
        }
        self.sweep(now);
        if !self.jobs.is_empty() {
            self.shared.start(self.jobs.drain(..));
            self.jobs.shrink_to(MOST_SPARE);
        }
        // Last: the work is under way, and whoever listens is woken once.
        for event in self.emitted.drain(..) {
            if let Some(on_event) = &self.shared.on_event {
                on_event(&event);
            }
            self.events.publish(event);
        }
    }

    /// Whether everything is done, and [`Owner::end`] is all that is left.
    pub(super) fn has_ended(&self) -> bool {
        self.report.is_some()
    }

    /// When it must look although nothing has arrived.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let deadline = [self.deadline, self.next_sweep].into_iter().flatten().min();
        deadline.and_then(|at| self.began.checked_add(at))
    }

    /// An empty list for messages, to be used again.
    pub(super) fn spare(&mut self) -> &mut Vec<Message> {
        &mut self.spare
    }

    /// Takes what all watches saw, before anything else and at once: what one event of the kernel tells to several watches
    /// arrives together, and none of them may run before the others are known to have seen it.
    fn receive_events(&mut self, now: Duration, messages: &[Message]) {
        let events = messages.iter().filter_map(|message| match message {
            Message::WatchEvent(watch, what) => {
                let (vertex, id) = self.watched(*watch)?;
                Some((vertex, what.clone().unwrap_or(id.name)))
            }
            _ => None,
        });
        let events: Vec<_> = events.collect();
        if !events.is_empty() {
            self.step(now, Input::WatchEvents(events));
        }
    }

    fn receive(&mut self, now: Duration, message: Message) {
        match message {
            Message::Input(input) => self.step(now, input),
            Message::Prepared(prepared) => {
                // What waits for an older one of its identity to be gone keeps its instance.
                let graph = &prepared.graph;
                self.instances.retain(|id, made| {
                    graph
                        .resources
                        .get(id)
                        .is_some_and(|wanted| Arc::ptr_eq(wanted, &made.resource))
                });
                self.instances.extend(prepared.instances);
                self.shared.services.graph.apply(prepared.view);
                self.step(now, Input::NewGraph(prepared.graph));
                if let Some(sharing) = prepared.sharing {
                    self.step(now, Input::Sharing(sharing));
                }
                for message in prepared.warnings {
                    let (vertex, level) = (None, Level::Warning);
                    let input = Input::Log {
                        vertex,
                        member: None,
                        level,
                        message,
                    };
                    self.step(now, input);
                }
                self.next_sweep.get_or_insert(now);
            }
            Message::InitEnded { vertex, result } => {
                self.step(now, Input::InitEnded { vertex, result });
            }
            Message::Armed(watch, result) => {
                if let Some((vertex, _)) = self.watched(watch) {
                    self.step(now, Input::WatchArmed { vertex, result });
                }
            }
            Message::WatchFailed(watch, failure) => {
                if let Some((vertex, _)) = self.watched(watch) {
                    self.step(now, Input::WatchFailed { vertex, failure });
                }
            }
            // Taken already, with all the others.
            Message::WatchEvent(..) => {}
            Message::Rearmed(watch) => {
                if let Some((vertex, _)) = self.watched(watch) {
                    self.step(now, Input::Rearmed { vertex });
                }
            }
            Message::WatchLog(watch, level, message) => {
                let vertex = self.watched(watch).map(|(vertex, _)| vertex);
                self.step(
                    now,
                    Input::Log {
                        vertex,
                        member: None,
                        level,
                        message,
                    },
                );
            }
            Message::KindReady(kind) => self.jobs.extend(self.kinds.ready(kind)),
            Message::KindEnded(kind, result) => self.kinds.ended(&self.shared, kind, result),
            Message::Ask(question) => self.answer(now, question),
        }
    }

    /// Answers a question. That nobody waits for the answer any more is nobody's concern.
    fn answer(&self, now: Duration, question: Question) {
        match question {
            Question::Summary(answer) => drop(answer.send(self.machine.summary(now))),
            Question::Some(from, wanted, answer) => {
                let mut vertices = Vec::new();
                let next = self.machine.status_from(from, wanted, &mut vertices);
                drop(answer.send(StatusPart { vertices, next }));
            }
            Question::Counts(from, mut counts, answer) => {
                let next = self.machine.counts_from(from, &mut counts);
                drop(answer.send((counts, next)));
            }
            Question::Of(ids, answer) => drop(answer.send(self.machine.status_of(&ids))),
            Question::Graph(answer) => drop(answer.send(self.machine.graph().cloned())),
        }
    }

    fn step(&mut self, now: Duration, input: Input) {
        let cleaned = match &input {
            Input::CleanupEnded { vertex, .. } => Some(*vertex),
            _ => None,
        };
        if let Input::RunEnded { vertex, .. } = &input {
            self.hidden_runs.remove(vertex);
            if let Some(record) = self.record(*vertex) {
                record.cancellation = None;
            }
        }
        if let Some(vertex) = cleaned
            && let Some(record) = self.record(vertex)
        {
            let kind = record.cell.resource.id.kind.clone();
            self.records[vertex.index()] = None;
            self.kinds.remove(&kind);
        }
        let mut actions = self.machine.step(now, input);
        self.deadline = actions.deadline;
        for action in actions.list.drain(..) {
            self.act(action);
        }
        self.machine.recycle(actions.list);
    }

    fn record(&mut self, vertex: VertexId) -> Option<&mut Record> {
        let record = self.records.get_mut(vertex.index())?.as_mut()?;
        (record.vertex == vertex).then_some(record)
    }

    /// Whose watch it is, if it is the newest one.
    fn watched(&self, watch: WatchId) -> Option<(VertexId, ResourceId)> {
        let slot = watch.slot as usize;
        let record = self.records.get(slot)?.as_ref()?;
        (self.armings.get(slot) == Some(&watch.arming))
            .then(|| (record.vertex, record.cell.resource.id.clone()))
    }

    /// A new arming of a vertex; older ones are no longer heard.
    fn next_arming(&mut self, vertex: VertexId, cell: &Cell) -> WatchId {
        let arming = &mut self.armings[vertex.index()];
        *arming = arming.wrapping_add(1);
        cell.watches().arming = *arming;
        WatchId {
            slot: vertex.index() as u32,
            arming: *arming,
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Emit(event) => self.emitted.push(event),
            Action::Init {
                vertex,
                resource,
                arm,
                load_refresh,
                record,
            } => self.init(vertex, resource, arm, load_refresh, record),
            Action::Arm { vertex } => {
                if let Some(record) = self.record(vertex) {
                    let cell = record.cell.clone();
                    let watch = self.next_arming(vertex, &cell);
                    self.jobs.push(Task::Arm { cell, watch });
                }
            }
            Action::Disarm { vertex } => {
                if let Some(record) = self.record(vertex) {
                    let cell = record.cell.clone();
                    self.next_arming(vertex, &cell);
                    let handles = cell.watches().end();
                    if !handles.is_empty() {
                        self.jobs.push(Task::Disarm(handles));
                    }
                }
            }
            Action::Run { vertex, request } => self.start_run(vertex, request),
            Action::Cancel { vertex, cause } => {
                if let Some(cancellation) = self.cancellation(vertex) {
                    cancellation.cancel(cause);
                }
            }
            Action::Interrupt { vertex } => {
                if let Some(cancellation) = self.cancellation(vertex) {
                    cancellation.interrupt();
                }
            }
            Action::Cleanup { vertex, initialised } => {
                if let Some(record) = self.record(vertex) {
                    let cell = record.cell.clone();
                    self.jobs.push(Task::Cleanup {
                        vertex,
                        cell,
                        initialised,
                    });
                }
            }
            Action::Silent { vertex } => {
                // Work that waits for others, a command say, may take as long as it likes.
                if let Some(record) = self.record(vertex)
                    && record.shape == RunShape::Blocking
                {
                    let at = record.path();
                    self.shared.inbox.input(Input::Unresponsive { vertex, at });
                }
            }
            Action::ClearRefresh {
                receiver,
                senders,
                up_to_run,
            } => {
                if self.shared.state.is_some() {
                    *self.shared.clearing.lock() += 1;
                    self.jobs.push(Task::ClearRefresh {
                        receiver,
                        senders,
                        up_to_run,
                    });
                }
            }
            Action::Export { wanted, unwanted } => {
                if let Some(exporter) = &self.shared.exporter {
                    exporter.retarget(wanted, unwanted);
                }
            }
            Action::Converged(converged) => {
                if let Some(transitions) = &self.transitions {
                    let _ = transitions.send(converged);
                }
            }
            Action::Exit(mut report) => {
                for (id, at) in &mut report.hung {
                    let mut records = self.records.iter().flatten();
                    *at = records
                        .find(|record| record.cell.resource.id == *id)
                        .and_then(Record::path);
                }
                self.report = Some(report);
            }
        }
    }

    fn init(
        &mut self,
        vertex: VertexId,
        resource: Arc<DesiredResource>,
        arm: bool,
        load_refresh: bool,
        record: RecordWork,
    ) {
        let slot = vertex.index();
        if self.records.len() <= slot {
            self.records.resize_with(slot + 1, || None);
            self.armings.resize(slot + 1, 0);
        }
        let known = self.record(vertex).map(|record| record.cell.clone());
        let is_new = known.is_none();
        let cell = known.unwrap_or_else(|| {
            let made = self.instances.remove(&resource.id);
            let made = made.filter(|made| Arc::ptr_eq(&made.resource, &resource));
            let cell = Arc::new(Cell::new(resource.clone(), made));
            let spec = self.shared.kinds.get(&*resource.id.kind);
            self.records[slot] = Some(Record {
                vertex,
                cell: cell.clone(),
                shape: spec.map_or(RunShape::Blocking, |spec| spec.shape),
                cancellation: None,
            });
            cell
        });
        let arm = arm.then(|| self.next_arming(vertex, &cell));
        let task = Task::Init {
            vertex,
            cell,
            arm,
            load_refresh,
            record,
        };
        self.jobs
            .extend(self.kinds.add(&self.shared, &resource.id.kind, task, is_new));
    }

    fn start_run(&mut self, vertex: VertexId, request: Box<RunRequest>) {
        let arming = self.armings.get(vertex.index()).copied().unwrap_or(0);
        let Some(record) = self.record(vertex) else {
            return self.run_hidden(vertex, &request);
        };
        let cancellation = Cancellation::new();
        record.cancellation = Some(cancellation.clone());
        let shape = record.shape;
        let polls = record.cell.resource.meta.poll != 0;
        let watch = (!polls).then_some(WatchId {
            slot: vertex.index() as u32,
            arming,
        });
        let run = Run {
            vertex,
            cell: record.cell.clone(),
            request,
            cancellation,
            watch,
        };
        match shape {
            RunShape::Blocking => self.jobs.push(Task::Run(run)),
            RunShape::Async => {
                self.shared.runtime.spawn(run_as_task(self.shared.clone(), run));
            }
        }
    }

    /// The run of a hidden resource, of which there is nothing that could be looked at: what it exports is written.
    fn run_hidden(&mut self, vertex: VertexId, request: &RunRequest) {
        let result = RunResult {
            checked: false,
            ..RunResult::ok()
        };
        let cancellation = Cancellation::new();
        let exporting = self.shared.begin_export(request);
        let (inbox, runtime) = (&self.shared.inbox, &self.shared.runtime);
        match exporting.end(vertex, result, &cancellation, inbox, runtime) {
            Some(answer) => inbox.push(answer),
            None => drop(self.hidden_runs.insert(vertex, cancellation)),
        }
    }

    /// How a run in progress is told to stop.
    fn cancellation(&mut self, vertex: VertexId) -> Option<&Cancellation> {
        if self.hidden_runs.contains_key(&vertex) {
            return self.hidden_runs.get(&vertex);
        }
        self.record(vertex)?.cancellation.as_ref()
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the age of directories goes by the clock on the wall"
    )]
    fn sweep(&mut self, now: Duration) {
        if self.shared.noop || self.next_sweep.is_none_or(|at| at > now) {
            return;
        }
        self.next_sweep = Some(now + SWEEP_EVERY);
        if let (Some(graph), Some(_)) = (self.machine.graph(), &self.shared.state) {
            let wall = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
            let wall = wall.unwrap_or(self.epoch);
            self.jobs.push(Task::Sweep(graph.clone(), wall));
        }
    }

    /// Ends the pool. What was served must not be served again by the next process; but a disk that hangs does not keep us.
    #[expect(
        clippy::disallowed_methods,
        reason = "a thread that may be left behind, and the time until then"
    )]
    fn forget_served(&self) {
        let left = self.shared.pool.close();
        let mut clearing = self.shared.clearing.lock();
        if *clearing == 0 {
            return;
        }
        std::thread::spawn(move || finish(left));
        let end = Instant::now() + PATIENCE_AT_END;
        while *clearing > 0 {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            clearing = wait_timeout(&self.shared.cleared, clearing, left).0;
        }
    }

    /// Takes everything down.
    pub(super) fn end(mut self) {
        // The hooks of the last transition come before the end.
        self.transitions = None;
        if let Some(hook) = self.hook.take() {
            let _ = hook.join();
        }
        self.forget_served();
        if let Some(exporter) = &self.shared.exporter {
            exporter.end(PATIENCE_AT_END);
        }
        if let Some(state) = &self.shared.state {
            state.release();
        }
        *self.shared.events.lock() = None;
        let report = self.report.take().map(|report| *report);
        drop(self.events);
        self.exit.send_replace(report);
    }
}
