//! The engine: the machine, and the workers around it.
//!
//! ```text
//!  submit ──▶ preparing (one at a time, beside) ──┐
//!  watch hub, watch loops ────────────────────────┤                       ┌─▶ pool of threads: init, files, cleanup
//!  answers of pool and tasks ─────────────────────┼─▶ inbox ─▶ owner ─────┼─▶ tasks: runs that wait for others
//!  recheck, pause, stop, status ─────────────────────┘        (machine.step) └─▶ event stream
//! ```
//!
//! The *owner* is one object. It takes what has arrived, steps the machine, and does what that wants: hands jobs to the
//! pool, starts tasks, publishes events. It has a thread, which sleeps until something arrives or the machine's next deadline; few
//! messages are served by whoever brings them, if the owner is at rest. Nothing it does blocks. An idle resource is an entry in the machine and one in `records`.

mod background;
mod commits;
mod execute;
mod exporting;
mod inbox;
mod judging;
mod owner;
mod pool;
mod read_back;
mod records;
mod watching;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use setpoint_graph::{DesiredGraph, Finding, ResourceId};
use setpoint_host::files::AbsolutePath;
use setpoint_host::sync::{Condvar, Mutex};
use setpoint_host::watch::{Cause, PollReason, Subscriber, WatchEvent, WatchHub, WatchSink};
use tokio::runtime::Handle as Runtime;
use tokio::sync::{oneshot, watch};

use crate::foresight::Foresight;
use crate::machine::{
    self, ExitReason, ExitReport, Input, KindCounts, RunRequest, RunResult, StandingSet, StopStage, Summary,
    VertexId, VertexStatus,
};
use crate::panics::guarded;
use crate::prepare::{Inquirer, Preparation, Preparer};
use crate::resource::Kinds;
use crate::{
    Event, EventSink, EventStream, ExportStore, Failure, Handle, KindSpec, Level, Permits, Sent, Services,
    StateFiles,
};
use execute::{Job, Run, Task};
use exporting::{Exporter, Exporting};
pub use inbox::StatusPart;
use inbox::{Inbox, Message, Question, WatchId};
use owner::Owner;
use pool::{Delivery, Pool, Urgency};

/// What an engine is started with.
pub struct EngineOptions {
    /// What the machine goes by. An `epoch` of zero is set to the present time.
    pub machine: machine::Options,
    /// Threads that look at resources at the same time; none: two a core, at least four.
    pub threads: Option<usize>,
    /// Events that are kept for slow consumers.
    pub event_capacity: usize,
    /// What is done to graphs before they are applied.
    pub preparation: Preparation,
    /// How long a graph waits for what only the machine can tell about automatic edges.
    pub inquiries_within: Duration,
    /// Speaks to the engine, also from services that are made before it.
    pub control: Control,
    /// The state on disk; without it nothing outlives the process, and private directories have no place.
    pub state: Option<StateFiles>,
    /// Where resources are exported to; without it nothing is.
    pub exports: Option<Arc<dyn ExportStore>>,
    /// Called with each transition from and to convergence, in order, beside the engine; before the engine ends because
    /// of one, this has returned.
    pub on_converged: Option<Box<dyn FnMut(bool) + Send>>,
    /// Called with what a run published, on the thread that made the run, before the engine hears of its end: what it says through
    /// [`Control`] is heard first. It must not wait.
    pub on_sent: Option<SentListener>,
    /// Called with each event, in order, before it is published: who counts misses none. It must not wait.
    pub on_event: Option<EventListener>,
    /// Whether resources are watched; not for a single look.
    pub watches: bool,
    /// Whether exports of earlier processes stay, although the program does not have them.
    pub keeps_former_exports: bool,
    /// The permitted repairs; none permits all.
    pub permits: Option<Arc<Permits>>,
}

/// Who is told of each event.
pub type EventListener = Arc<dyn Fn(&Event) + Send + Sync>;

/// Who is told what runs published, and by whom.
pub type SentListener = Arc<dyn Fn(&ResourceId, &Sent) + Send + Sync>;

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            machine: machine::Options::default(),
            threads: None,
            event_capacity: 16 * 1024,
            preparation: Preparation::default(),
            inquiries_within: Duration::from_secs(60),
            control: Control::default(),
            state: None,
            exports: None,
            on_converged: None,
            on_sent: None,
            on_event: None,
            watches: true,
            keeps_former_exports: false,
            permits: None,
        }
    }
}

impl fmt::Debug for EngineOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineOptions")
            .field("machine", &self.machine)
            .finish_non_exhaustive()
    }
}

/// Speaks to an engine, whether or not it was started yet: what is said before is heard at the start. Clones are one and the
/// same. It keeps no engine alive.
#[derive(Clone, Default)]
pub struct Control(Arc<Inbox>);

impl Control {
    /// Ends the engine in order, for a reason of its own.
    pub fn exit(&self, reason: ExitReason) {
        self.0.input(Input::Exit(reason));
    }

    /// Says whether sources of the program have changes that have not reached a graph yet.
    pub fn sources_busy(&self, busy: bool) {
        let input = Input::SourcesBusy(busy);
        if busy {
            // It keeps the host from counting as quiet, whenever that is looked at next.
            self.0.note(input);
        } else {
            self.0.input(input);
        }
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Control")
    }
}

/// What became of a graph.
#[derive(Debug)]
pub enum Submitted {
    /// It is swapped in.
    Accepted,
    /// A newer one came before it was looked at.
    Superseded,
    /// It is wrong; the old one runs on.
    Rejected(Vec<Finding>),
}

/// A running engine. Clones are one and the same; when the last is dropped, the engine stops.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    submissions: Arc<Mutex<Submissions>>,
    exit: watch::Receiver<Option<ExitReport>>,
}

/// What all workers share.
pub(crate) struct Shared {
    inbox: Arc<Inbox>,
    pool: Pool<Job>,
    /// Runs whose replacement is on its way.
    commits: commits::Commits,
    services: Arc<Services>,
    kinds: Arc<Kinds>,
    state: Option<StateFiles>,
    /// Who exports; none under `noop`, or where there is nowhere to.
    exporter: Option<Arc<Exporter>>,
    /// Whether the records of earlier processes were read.
    records_read: AtomicBool,
    /// Whether nothing may be changed.
    noop: bool,
    /// The planned world, if nothing may be changed.
    foresight: Option<Foresight>,
    /// The permitted repairs; none permits all.
    permits: Option<Arc<Permits>>,
    /// Whether resources are watched.
    watches: bool,
    /// How many notifications that were served are still to be forgotten.
    clearing: Mutex<usize>,
    /// One was.
    cleared: Condvar,
    /// Below which each resource has, or would have, its own directory.
    directories: Arc<AbsolutePath>,
    runtime: Runtime,
    subscriber: Subscriber,
    /// None when the engine has ended, so that streams end.
    events: Mutex<Option<EventSink>>,
    on_sent: Option<SentListener>,
    on_event: Option<EventListener>,
}

/// The graph that is to be prepared next.
struct Submissions {
    newest: Option<(DesiredGraph, oneshot::Sender<Submitted>)>,
    /// With whoever prepares at present.
    preparer: Option<Preparer>,
}

/// Where there is no state on disk: a directory in which nothing is.
const NOWHERE: &str = "/var/empty";

impl Engine {
    /// Starts an engine with no graph. Kinds are what resources can be of; `services` is what they are given;
    /// runs that wait are tasks of `runtime`.
    #[expect(
        clippy::disallowed_methods,
        reason = "the owner's thread, and the time that events begin with"
    )]
    #[must_use]
    pub fn start(
        mut options: EngineOptions,
        kinds: &[KindSpec],
        services: Services,
        watches: &WatchHub,
        runtime: Runtime,
    ) -> Engine {
        if options.machine.epoch.is_zero() {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            options.machine.epoch = now.unwrap_or_default();
        }
        let inbox = options.control.0;
        let store = options.exports.filter(|_| !options.machine.noop);
        let exporter =
            store.map(|store| Exporter::start(store, options.keeps_former_exports, inbox.clone(), &runtime));
        let busy = services.busy.subscribe();
        let kinds: Arc<Kinds> = Arc::new(kinds.iter().map(|spec| (spec.schema.kind, *spec)).collect());
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let shared = Arc::new(Shared {
            pool: Pool::new(options.threads.unwrap_or((2 * cores).max(4)), {
                let inbox = inbox.clone();
                move |answers, delivery| match delivery {
                    Delivery::Served => inbox.serve(answers),
                    Delivery::Left => inbox.push_all(answers),
                }
            }),
            commits: commits::Commits::default(),
            subscriber: watches.subscribe(Arc::new(Sink {
                inbox: inbox.clone(),
                said_out_of_watches: AtomicBool::new(false),
            })),
            inbox,
            services: Arc::new(services),
            kinds: kinds.clone(),
            clearing: Mutex::new(0),
            cleared: Condvar::new(),
            directories: Arc::new(match &options.state {
                Some(state) => state.directories().clone(),
                None => AbsolutePath::new(NOWHERE).expect("the constant begins with a slash"),
            }),
            state: options.state,
            exporter,
            records_read: AtomicBool::new(false),
            noop: options.machine.noop,
            foresight: options.machine.noop.then(Foresight::default),
            permits: options.permits,
            watches: options.watches,
            runtime,
            events: Mutex::new(Some(EventSink::new(options.event_capacity))),
            on_sent: options.on_sent,
            on_event: options.on_event,
        });
        let (exited, exit) = watch::channel(None);
        follow_busy(&shared, busy, exit.clone());
        let owner = Owner::new(shared.clone(), options.machine, exited, options.on_converged);
        let at_inbox = shared.inbox.clone();
        std::thread::spawn(move || at_inbox.run(owner));
        let asking = shared.clone();
        let inquirer = Inquirer {
            runtime: shared.runtime.clone(),
            handle: Box::new(move |id| asking.handle(id)),
            within: options.inquiries_within,
            exit: exit.clone(),
        };
        let submissions = Arc::new(Mutex::new(Submissions {
            newest: None,
            preparer: Some(Preparer::new(
                kinds,
                options.preparation,
                Some(Arc::new(inquirer)),
            )),
        }));
        Engine(Arc::new(Inner {
            shared,
            submissions,
            exit,
        }))
    }

    /// Hands over a graph. It is prepared on the calling thread, beside the engine, or by whoever prepares another one already; of
    /// graphs that come faster than that only the newest is taken. The answer need not be waited for.
    pub fn submit(&self, graph: DesiredGraph) -> oneshot::Receiver<Submitted> {
        let (answer, answered) = oneshot::channel();
        let mut submissions = self.0.submissions.lock();
        if let Some((_, older)) = submissions.newest.replace((graph, answer)) {
            let _ = older.send(Submitted::Superseded);
        }
        let preparer = submissions.preparer.take();
        if preparer.is_some() {
            self.0.shared.inbox.note(Input::Preparing(true));
        }
        drop(submissions);
        if let Some(preparer) = preparer {
            prepare_all(&self.0.shared, &self.0.submissions, preparer);
        }
        answered
    }

    /// Reports that a new program gave no graph, which is no reason to stop. The text is shown to users.
    pub fn reject(&self, diagnostics: impl Into<String>) {
        let diagnostics = diagnostics.into();
        self.0.shared.inbox.input(Input::GraphRejected { diagnostics });
    }

    /// A line of debug output that is of no resource.
    pub fn debug(&self, line: String) {
        self.0.shared.log(Level::Debug, line);
    }

    /// Says whether sources of the program have changes that have not reached a graph yet.
    pub fn sources_busy(&self, busy: bool) {
        Control(self.0.shared.inbox.clone()).sources_busy(busy);
    }

    /// Asks that a resource is looked at; one that gave up starts again.
    pub fn recheck(&self, id: ResourceId) {
        self.0.shared.inbox.input(Input::Recheck(id));
    }

    /// No new runs until [`Engine::resume`].
    pub fn pause(&self) {
        self.0.shared.inbox.input(Input::Pause);
    }

    /// Runs begin again.
    pub fn resume(&self) {
        self.0.shared.inbox.input(Input::Resume);
    }

    /// Stops, or goes on to a further stage of stopping; with `escalate` the stages after it follow by themselves.
    pub fn stop(&self, stage: StopStage, escalate: bool) {
        self.0.shared.inbox.input(Input::Stop { stage, escalate });
    }

    /// Ends for a reason of its own.
    pub fn exit(&self, reason: ExitReason) {
        self.0.shared.inbox.input(Input::Exit(reason));
    }

    /// Everything that happens from now on.
    #[must_use]
    pub fn events(&self) -> EventStream {
        match &*self.0.shared.events.lock() {
            Some(events) => events.subscribe(),
            // A stream whose sender is gone: it has ended.
            None => EventSink::new(1).subscribe(),
        }
    }

    /// How things are as a whole; none after the engine has ended.
    pub async fn summary(&self) -> Option<Summary> {
        self.ask(Question::Summary).await
    }

    /// How many resources of each kind stand how; none after the engine has ended. It is asked a few resources at a time, so resources that come and
    /// go meanwhile may be missed.
    pub async fn kind_counts(&self) -> Option<KindCounts> {
        let (mut counts, mut place) = (KindCounts::new(), Some(0));
        while let Some(from) = place {
            (counts, place) = self.ask(|answer| Question::Counts(from, counts, answer)).await?;
        }
        Some(counts)
    }

    /// A few of the resources that stand so, from this place on; the first place is 0. None after the engine has ended. Each part is as things are
    /// when it is asked for: a resource that leaves and comes back meanwhile may come twice.
    pub async fn status_from(&self, place: usize, wanted: StandingSet) -> Option<StatusPart> {
        self.ask(|answer| Question::Some(place, wanted, answer)).await
    }

    /// How these resources are, as far as they are there; none after the engine has ended.
    pub async fn status_of(&self, ids: Vec<ResourceId>) -> Option<Vec<VertexStatus>> {
        self.ask(|answer| Question::Of(ids, answer)).await
    }

    /// How all resources are, sorted by identity; none after the engine has ended.
    pub async fn status(&self) -> Option<Vec<VertexStatus>> {
        let (mut all, mut place) = (Vec::new(), Some(0));
        while let Some(from) = place {
            let part = self.status_from(from, StandingSet::ALL).await?;
            all.extend(part.vertices);
            place = part.next;
        }
        all.sort_by(|a, b| a.id.cmp(&b.id));
        Some(all)
    }

    /// The running graph, with the edges that were added by themselves, if there is one; none after the engine has ended.
    pub async fn graph(&self) -> Option<Option<DesiredGraph>> {
        self.ask(Question::Graph).await
    }

    async fn ask<T>(&self, question: impl FnOnce(oneshot::Sender<T>) -> Question) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        self.0.shared.inbox.push(Message::Ask(question(answer)));
        let mut exit = self.0.exit.clone();
        tokio::select! {
            answer = answered => answer.ok(),
            _ = exit.wait_for(Option::is_some) => None,
        }
    }

    /// Waits until the engine has ended, and says how.
    pub async fn wait(&self) -> ExitReport {
        let mut exit = self.0.exit.clone();
        let ended = exit.wait_for(Option::is_some).await;
        let report = ended.ok().and_then(|report| report.clone());
        report.unwrap_or_else(|| ExitReport {
            reason: ExitReason::BackgroundFailed("the engine's own thread ended".into()),
            failed: std::collections::BTreeMap::new(),
            blocked: std::collections::BTreeMap::new(),
            repaired: 0,
            would_change: 0,
            hung: std::collections::BTreeMap::new(),
        })
    }

    /// Whether the engine has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.0.exit.borrow().is_some()
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let stage = StopStage::Interrupt;
        self.shared.inbox.input(Input::Stop {
            stage,
            escalate: true,
        });
    }
}

/// Prepares what was submitted until nothing newer is there.
fn prepare_all(shared: &Shared, submissions: &Mutex<Submissions>, mut preparer: Preparer) {
    records::read_once(shared);
    loop {
        let mut waiting = submissions.lock();
        let Some((graph, answer)) = waiting.newest.take() else {
            waiting.preparer = Some(preparer);
            // Under the lock, so that a submission after it is announced after it.
            shared.inbox.note(Input::Preparing(false));
            drop(waiting);
            shared.inbox.serve([]);
            return;
        };
        drop(waiting);
        let prepared = guarded("prepare the graph", || preparer.prepare(&graph));
        let submitted = match prepared {
            Ok(Ok(prepared)) => {
                shared.inbox.serve([Message::Prepared(Box::new(prepared))]);
                Submitted::Accepted
            }
            Ok(Err(found)) => {
                let messages: Vec<&str> = found.iter().map(Finding::message).collect();
                let diagnostics = messages.join("\n");
                shared.inbox.input(Input::GraphRejected { diagnostics });
                Submitted::Rejected(found)
            }
            Err(failure) => {
                // Whatever it was amid: begin from nothing with the next.
                preparer = preparer.fresh();
                let diagnostics = format!("failed to {}", failure.chain());
                shared.inbox.input(Input::GraphRejected { diagnostics });
                Submitted::Rejected(Vec::new())
            }
        };
        let _ = answer.send(submitted);
    }
}

/// Tells the machine whenever somebody becomes busy or nobody is any more.
fn follow_busy(
    shared: &Shared,
    mut busy: watch::Receiver<usize>,
    mut exit: watch::Receiver<Option<ExitReport>>,
) {
    let inbox = shared.inbox.clone();
    shared.runtime.spawn(async move {
        let mut told = false;
        loop {
            let is_busy = *busy.borrow_and_update() > 0;
            if std::mem::replace(&mut told, is_busy) != is_busy {
                inbox.input(Input::Busy(is_busy));
            }
            tokio::select! {
                changed = busy.changed() => if changed.is_err() { return },
                _ = exit.wait_for(Option::is_some) => return,
            }
        }
    });
}

impl Shared {
    /// Whether the engine looks again after a repair of this resource.
    fn reads_back(&self, id: &ResourceId) -> bool {
        self.kinds.get(&*id.kind).is_some_and(|spec| spec.reads_back)
    }

    /// The handle of a resource.
    fn handle(&self, id: &ResourceId) -> Handle {
        Handle::new(self.services.clone(), id.clone(), self.directories.clone())
    }

    /// Begins to export what a run exports.
    fn begin_export(&self, request: &RunRequest) -> Exporting {
        match &self.exporter {
            Some(exporter) if !request.exports.is_empty() => exporter.begin(&request.exports),
            _ => Exporting::default(),
        }
    }

    /// The answer to a run that is over, unless what it exports is still on the way: then the inbox gets it later.
    fn end_run(&self, run: &Run, result: RunResult, exporting: Exporting) -> Option<Message> {
        exporting.end(run.vertex, result, &run.cancellation, &self.inbox, &self.runtime)
    }

    /// Queues jobs for the pool.
    fn start(self: &Arc<Shared>, tasks: impl IntoIterator<Item = Task>) {
        let jobs = tasks.into_iter().map(|task| {
            let urgency = match &task {
                Task::Run(run) => Urgency::run(run.request.priority),
                Task::Init { .. } | Task::Arm { .. } | Task::Cleanup { .. } => Urgency::START,
                Task::Disarm(_) | Task::ClearRefresh { .. } | Task::Sweep(..) => Urgency::LATER,
            };
            let shared = self.clone();
            (urgency, Job { shared, task })
        });
        self.pool.push(jobs);
    }

    fn log(&self, level: Level, message: String) {
        self.inbox.input(Input::Log {
            vertex: None,
            member: None,
            level,
            message,
        });
    }

    fn log_of(&self, vertex: VertexId, member: Option<&ResourceId>, level: Level, message: &str) {
        self.inbox.input(Input::Log {
            vertex: Some(vertex),
            member: member.cloned(),
            level,
            message: message.to_owned(),
        });
    }
}

/// What the watch hub tells. Runs on the hub's thread and only passes on.
struct Sink {
    inbox: Arc<Inbox>,
    /// Whether it was said that there are no watches left. Once is enough for all resources.
    said_out_of_watches: AtomicBool,
}

impl Sink {
    /// What to say of a path that is looked at in intervals.
    fn polled(&self, reason: &PollReason) -> Option<(Level, String)> {
        match reason {
            PollReason::OutOfWatches(error) => {
                (!self.said_out_of_watches.swap(true, Ordering::AcqRel)).then(|| {
                    let text =
                        format!("{error}; what cannot be watched is looked at every few seconds instead");
                    (Level::Warning, text)
                })
            }
            PollReason::Served => Some((
                Level::Info,
                "it lies on a file system that another program or machine serves; it is looked at every few seconds \
                 instead of being watched"
                    .to_owned(),
            )),
        }
    }
}

impl WatchSink for Sink {
    fn dirty(&self, events: &[WatchEvent]) {
        let mut messages = Vec::with_capacity(events.len());
        for event in events {
            let watch = WatchId::from_token(event.token.0);
            let message = match &event.cause {
                Cause::Changed | Cause::Unsettled | Cause::Overflow => Message::WatchEvent(watch, None),
                Cause::BegunAnew => {
                    // It concerns all, and is said once.
                    if messages.is_empty() {
                        let text = "the watching of files broke off and has begun anew; everything is looked at again";
                        messages.push(Message::WatchLog(watch, Level::Error, text.to_owned()));
                    }
                    Message::WatchEvent(watch, None)
                }
                Cause::Polled(reason) => {
                    if let Some((level, text)) = self.polled(reason) {
                        messages.push(Message::WatchLog(watch, level, text));
                    }
                    Message::WatchEvent(watch, None)
                }
                Cause::Failed(error) => {
                    let failure = Failure::new("go on watching").because(error.clone());
                    Message::WatchFailed(watch, failure)
                }
            };
            messages.push(message);
        }
        self.inbox.serve(messages);
    }
}

/// How often directories of unknown identities are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(24 * 3600);
