//! Doing what the machine wants done: `init`, arming, runs, `cleanup`. Here a kind's code is called, and nowhere else but
//! while a graph is prepared; a panic in it ends here as a failure of its resource.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use setpoint_graph::{DesiredGraph, DesiredResource, MetaParameters, Parameters, ResourceId};
use setpoint_host::sync::{Mutex, MutexGuard};
use setpoint_host::watch::WatchToken;
use setpoint_value::Value;
use tokio::runtime::RuntimeFlavor;

use super::exporting::Exporting;
use super::inbox::{Message, WatchId};
use super::judging::{self, Findings};
use super::pool::{Lane, Work};
use super::read_back::read_back;
use super::watching::{ArmedWatches, Watches, arm, rearm};
use super::{Shared, commits, records};
use crate::apply::Replacement;
use crate::batch::Batch;
use crate::machine::{Check, Initialised, Input, RecordWork, RunRequest, RunResult, VertexId};
use crate::panics::{guarded, guarded_future};
use crate::prepare::{Made, known_of};
use crate::{
    Apply, Cancellation, Drift, Failure, FailureReason, Identity, Instance, Level, Member, MemberRequest,
    Observer, Outcome, RunInput, Watch,
};

/// What the workers hold of one vertex.
pub(super) struct Cell {
    pub(super) resource: Arc<DesiredResource>,
    /// What preparation made of it, until it is initialised.
    made: Mutex<Option<Box<Made>>>,
    /// With the run that is in progress, if that waits rather than blocks.
    instance: Mutex<Option<Instance>>,
    pub(super) watches: Mutex<Watches>,
}

impl Cell {
    pub(super) fn new(resource: Arc<DesiredResource>, made: Option<Made>) -> Cell {
        // Most have no members, and then there is no more to be made.
        let (made, instance) = match made {
            Some(made) if resource.members.is_empty() => (None, Some(made.instance)),
            made => (made.map(Box::new), None),
        };
        Cell {
            resource,
            made: Mutex::new(made),
            instance: Mutex::new(instance),
            watches: Mutex::default(),
        }
    }

    fn instance(&self) -> MutexGuard<'_, Option<Instance>> {
        self.instance.lock()
    }

    /// What the resource is, for others who manage the same.
    pub(super) fn identities(&self) -> Vec<Identity> {
        let instance = self.instance();
        let instance = instance.as_ref();
        instance.map_or_else(Vec::new, |instance| instance.resource().identities())
    }

    pub(super) fn watches(&self) -> MutexGuard<'_, Watches> {
        self.watches.lock()
    }
}

/// A job of the pool.
pub(super) struct Job {
    pub(super) shared: Arc<Shared>,
    pub(super) task: Task,
}

pub(super) enum Task {
    Init {
        vertex: VertexId,
        cell: Arc<Cell>,
        /// To be armed after success.
        arm: Option<WatchId>,
        load_refresh: bool,
        /// What is to be done about the record of what undoes it.
        record: RecordWork,
    },
    Arm {
        cell: Arc<Cell>,
        watch: WatchId,
    },
    /// Ends watches by being dropped.
    Disarm(ArmedWatches),
    Run(Run),
    Cleanup {
        vertex: VertexId,
        cell: Arc<Cell>,
        initialised: bool,
    },
    ClearRefresh {
        receiver: ResourceId,
        senders: Vec<ResourceId>,
        up_to_run: u64,
    },
    Sweep(DesiredGraph, Duration),
}

/// A run that is to be made.
pub(super) struct Run {
    pub(super) vertex: VertexId,
    pub(super) cell: Arc<Cell>,
    pub(super) request: Box<RunRequest>,
    pub(super) cancellation: Cancellation,
    /// Its watch, if it has one.
    pub(super) watch: Option<WatchId>,
}

impl Work for Job {
    type Answer = Message;
    type Together = Batch;

    fn directory(&self) -> Option<PathBuf> {
        let cell = match &self.task {
            Task::Init { cell, .. } | Task::Arm { cell, .. } => cell,
            Task::Run(run) => &run.cell,
            Task::Disarm(_) | Task::Cleanup { .. } | Task::ClearRefresh { .. } | Task::Sweep(..) => {
                return None;
            }
        };
        let instance = cell.instance();
        let watches = guarded("say what to watch", || {
            instance.as_ref().map(|instance| instance.resource().watches())
        });
        watches.ok()??.into_iter().find_map(|watch| match watch {
            Watch::Path { path, .. } => path.as_path().parent().map(Path::to_path_buf),
            _ => None,
        })
    }

    fn directory_at_hand(together: &Batch) -> Option<PathBuf> {
        together.looking_in()
    }

    fn run(self, lane: &Lane<Job>) {
        let shared = &self.shared;
        match self.task {
            Task::Init {
                vertex,
                cell,
                arm: watch,
                load_refresh,
                record,
            } => {
                let begun = init(shared, vertex, &cell, load_refresh, &record, lane);
                if let (true, Some(watch), Some(instance)) = (begun, watch, &*cell.instance()) {
                    arm(shared, &cell, watch, instance, lane);
                }
            }
            Task::Arm { cell, watch } => arm_now(shared, &cell, watch, lane),
            Task::Disarm(handles) => drop(handles),
            Task::Run(run) => run_on_pool(shared, run, lane),
            Task::Cleanup {
                vertex,
                cell,
                initialised,
            } => cleanup(shared, vertex, &cell, initialised, lane),
            Task::ClearRefresh {
                receiver,
                senders,
                up_to_run,
            } => clear_refresh(shared, &receiver, &senders, up_to_run),
            Task::Sweep(graph, now) => {
                if let Some(state) = &shared.state
                    && let Err(error) = state.sweep(everything(&graph), now)
                {
                    shared.log(
                        Level::Warning,
                        format!("failed to remove old state directories: {error}"),
                    );
                }
            }
        }
    }
}

/// All identities of a graph, those of members included.
fn everything(graph: &DesiredGraph) -> impl Iterator<Item = &ResourceId> {
    let each = graph.resources.values();
    each.flat_map(|resource| std::iter::once(resource).chain(resource.members.all()))
        .map(|resource| &resource.id)
}

/// Forgets notifications that were served.
fn clear_refresh(shared: &Shared, receiver: &ResourceId, senders: &[ResourceId], up_to_run: u64) {
    if let Some(state) = &shared.state
        && let Err(error) = state.clear(receiver, senders, up_to_run)
    {
        // At worst the receiver is refreshed once too often after a restart.
        shared.log(
            Level::Warning,
            format!("failed to clear the notifications of {receiver}: {error}"),
        );
    }
    *shared.clearing.lock() -= 1;
    shared.cleared.notify_all();
}

/// Does what must not be lost of the jobs that found no thread until the end.
pub(super) fn finish(jobs: Vec<Job>) {
    for Job { shared, task } in jobs {
        if let Task::ClearRefresh {
            receiver,
            senders,
            up_to_run,
        } = task
        {
            clear_refresh(&shared, &receiver, &senders, up_to_run);
        }
    }
}

fn init(
    shared: &Arc<Shared>,
    vertex: VertexId,
    cell: &Cell,
    load_refresh: bool,
    record: &RecordWork,
    lane: &Lane<Job>,
) -> bool {
    let mut guard = cell.instance();
    let result = initialise(shared, cell, &mut guard, record, lane);
    let result = result.map(|()| {
        let mut initialised = Initialised::default();
        if load_refresh && let Some(state) = &shared.state {
            match state.load_refresh(&cell.resource.id) {
                Ok(refresh) => {
                    initialised.refresh = refresh.senders;
                    if let Some(warning) = refresh.warning {
                        shared.log(Level::Warning, warning);
                    }
                }
                Err(error) => shared.log(
                    Level::Warning,
                    format!(
                        "failed to read the notifications of {}: {error}",
                        cell.resource.id
                    ),
                ),
            }
        }
        initialised
    });
    let succeeded = result.is_ok();
    drop(guard);
    lane.answer(Message::InitEnded { vertex, result });
    succeeded
}

fn initialise(
    shared: &Arc<Shared>,
    cell: &Cell,
    instance: &mut Option<Instance>,
    record: &RecordWork,
    lane: &Lane<Job>,
) -> Result<(), Failure> {
    let resource = &cell.resource;
    let from_record = match record {
        RecordWork::Serve => Some(records::parameters(shared, resource, lane)?),
        _ => None,
    };
    let instance = match instance {
        Some(instance) => instance,
        None => {
            let made = cell.made.lock().take();
            let parameters: &Parameters = from_record.as_ref().unwrap_or(&resource.parameters);
            instance.insert(make(shared, resource, made.map(|made| *made), parameters)?)
        }
    };
    let handle = shared.handle(&resource.id);
    records::before_init(shared, resource, instance, &handle, record, lane)?;
    guarded("begin", || {
        if let Some(members) = instance.resource_mut().members() {
            members.init()?;
        }
        instance.resource_mut().init(&handle)
    })?
}

/// The instance of a resource with these parameters and those of its members, of what preparation made as far as it did.
fn make(
    shared: &Arc<Shared>,
    resource: &Arc<DesiredResource>,
    made: Option<Made>,
    parameters: &Parameters,
) -> Result<Instance, Failure> {
    let (instance, mut members) = match made {
        Some(made) => (Some(made.instance), made.members),
        None => (None, Vec::new()),
    };
    let mut instance = match instance {
        Some(instance) => instance,
        None => {
            let spec = shared.kinds.get(&*resource.id.kind);
            let spec = spec.ok_or_else(|| Failure::new("find the kind").on(&resource.id.kind))?;
            let decoded = guarded("decode", || {
                Instance::new(spec, resource.id.name.clone(), &known_of(parameters))
            })?;
            decoded.map_err(|invalid| unfit("decode", &invalid))?
        }
    };
    // Sorted like the members, so that the next one is the last of these, or missing.
    members.reverse();
    for member in resource.members.direct() {
        let made = members.pop_if(|made| Arc::ptr_eq(&made.resource, member));
        let made = make(shared, member, made, &member.parameters)?;
        let Some(members) = instance.resource_mut().members() else {
            return Err(Failure::new("take members in").reasoned(FailureReason::Bug));
        };
        let handle = shared.handle(&member.id);
        members.insert(Member::new(made, member.meta.clone(), handle));
    }
    Ok(instance)
}

fn unfit(attempted: &'static str, invalid: &[setpoint_graph::Invalid]) -> Failure {
    let messages: Vec<&str> = invalid.iter().map(|invalid| invalid.message.as_str()).collect();
    Failure::new(attempted)
        .because(messages.join("; "))
        .reasoned(FailureReason::Unfit)
}

/// Whether a task must wait for watch loops that have not ended. Then it starts when they have.
fn waits_for_loops(shared: &Arc<Shared>, cell: &Cell, task: impl FnOnce() -> Task) -> bool {
    let ending = cell.watches().take_ending();
    if ending.is_empty() {
        return false;
    }
    let (shared, task) = (shared.clone(), task());
    let runtime = shared.runtime.clone();
    runtime.spawn(async move {
        for ending in ending {
            // A loop that panicked has ended too.
            let _ = ending.await;
        }
        shared.start([task]);
    });
    true
}

/// Arms the watch of a vertex, after watch loops of an earlier arming have ended.
fn arm_now(shared: &Arc<Shared>, cell: &Arc<Cell>, watch: WatchId, lane: &Lane<Job>) {
    let again = || Task::Arm {
        cell: cell.clone(),
        watch,
    };
    if waits_for_loops(shared, cell, again) {
        return;
    }
    match &*cell.instance() {
        Some(instance) => arm(shared, cell, watch, instance, lane),
        None => lane.answer(Message::Armed(
            watch,
            Err(Failure::new("watch, because there is no instance")),
        )),
    }
}

/// Cleans up, after watch loops have ended.
fn cleanup(shared: &Arc<Shared>, vertex: VertexId, cell: &Arc<Cell>, initialised: bool, lane: &Lane<Job>) {
    let again = || Task::Cleanup {
        vertex,
        cell: cell.clone(),
        initialised,
    };
    if waits_for_loops(shared, cell, again) {
        return;
    }
    let instance = cell.instance().take();
    let handle = shared.handle(&cell.resource.id);
    let ended = guarded("clean up", move || {
        if let Some(mut instance) = instance {
            if initialised {
                instance.resource_mut().cleanup(&handle);
            }
            if let Some(members) = instance.resource_mut().members() {
                members.cleanup();
            }
        }
    });
    let failure = ended.err();
    lane.answer(Message::Input(Input::CleanupEnded { vertex, failure }));
}

/// What a kind says while it runs.
struct RunObserver<'a> {
    shared: &'a Shared,
    vertex: VertexId,
    id: &'a ResourceId,
    request: &'a RunRequest,
    /// Whether the run occupies a thread of the pool.
    on_pool: bool,
}

impl Observer for RunObserver<'_> {
    fn before_first_repair(&self) -> Result<(), Failure> {
        let Some(state) = self
            .shared
            .state
            .as_ref()
            .filter(|_| !self.request.notifies.is_empty())
        else {
            return Ok(());
        };
        let mark = || {
            let mut receivers = self.request.notifies.iter();
            receivers.try_for_each(|receiver| state.mark(receiver, self.id, self.request.run))
        };
        let multi = self.shared.runtime.runtime_flavor() == RuntimeFlavor::MultiThread;
        if !self.on_pool && multi {
            tokio::task::block_in_place(mark)
        } else {
            mark()
        }
    }

    fn drift(&self, drift: &Drift) {
        // A run on the pool is over in a moment, and its drifts come with its end. One that waits may go on for hours.
        if !self.on_pool {
            self.shared.inbox.input(Input::Drift {
                vertex: self.vertex,
                drift: Box::new(drift.clone()),
            });
        }
    }

    fn log(&self, member: Option<&ResourceId>, level: Level, message: &str) {
        self.shared.log_of(self.vertex, member, level, message);
    }
}

/// Makes a run on a thread of the pool, for a kind that does not wait for others.
fn run_on_pool(shared: &Arc<Shared>, run: Run, lane: &Lane<Job>) {
    // So that a kind that awaits all the same finds timers and sockets.
    let _runtime = shared.runtime.enter();
    let mut ending = pin!(make_run(shared, run, Some(lane)));
    let mut context = Context::from_waker(Waker::noop());
    if ending.as_mut().poll(&mut context).is_pending() {
        shared.runtime.block_on(ending);
    }
}

/// Makes a run as a task. It occupies no thread while it waits.
pub(super) async fn run_as_task(shared: Arc<Shared>, run: Run) {
    make_run(&shared, run, None).await;
}

async fn make_run(shared: &Arc<Shared>, run: Run, lane: Option<&Lane<Job>>) {
    let mut replacement = None;
    let mut exporting = Exporting::default();
    let taken = run.cell.instance().take();
    let result = match taken {
        Some(mut instance) => {
            let result = run_instance(
                shared,
                &run,
                &mut instance,
                lane,
                &mut replacement,
                &mut exporting,
            )
            .await;
            if let Some(watch) = run
                .watch
                .filter(|_| result.watch_anew || has_moved(&run, &result))
            {
                rearm(shared, &run.cell, watch, &instance);
            }
            *run.cell.instance() = Some(instance);
            result
        }
        None => RunResult::failed(Failure::new("run, because there is no instance")),
    };
    let mut result = result;
    if replacement.is_none() && records::is_served(&run, &result) {
        let erase = || records::erase(shared, [&run.cell.resource.id]);
        let multi = shared.runtime.runtime_flavor() == RuntimeFlavor::MultiThread;
        let erased = match lane.is_none() && multi {
            true => tokio::task::block_in_place(erase),
            false => erase(),
        };
        if let Err(failure) = erased {
            result.outcome = Err(failure);
        }
        records::tell_others(shared, &run, &result);
    }
    if let Some(on_sent) = &shared.on_sent {
        let own = result.sent.iter().map(|sent| (&run.cell.resource.id, sent));
        let of_members = result.sent_by_members.iter().map(|(id, sent)| (id, sent));
        own.chain(of_members).for_each(|(id, sent)| on_sent(id, sent));
    }
    match (lane, replacement) {
        (Some(lane), Some(replacement)) => {
            commits::submit(shared, run, result, exporting, replacement, lane);
        }
        (Some(lane), None) => {
            if let Some(answer) = shared.end_run(&run, result, exporting) {
                lane.answer(answer);
            }
        }
        (None, _) => {
            if let Some(answer) = shared.end_run(&run, result, exporting) {
                shared.inbox.serve([answer]);
            }
        }
    }
}

/// Makes a run. On the pool, the replacement with which it ends is left to be made with others.
async fn run_instance(
    shared: &Arc<Shared>,
    run: &Run,
    instance: &mut Instance,
    lane: Option<&Lane<Job>>,
    replacement: &mut Option<Replacement>,
    exporting: &mut Exporting,
) -> RunResult {
    judging::begin(shared, run);
    if let Err(mut result) = before_run(shared, run, instance) {
        judging::judge(shared, run, instance, Findings::default(), &mut result);
        return *result;
    }
    // Beside the check.
    *exporting = shared.begin_export(&run.request);
    let handle = shared.handle(&run.cell.resource.id);
    let observer = RunObserver {
        shared,
        vertex: run.vertex,
        id: &run.cell.resource.id,
        request: &run.request,
        on_pool: lane.is_some(),
    };
    let together = lane.map(Lane::together).unwrap_or_default();
    let input = || RunInput {
        handle: &handle,
        repair: !run.request.noop,
        undoes: run.cell.resource.meta.is_reversal,
        refresh: &run.request.refresh,
        received: &run.request.received,
        members: &run.request.members,
        cancellation: &run.cancellation,
        observer: &observer,
    };
    let writer = run
        .watch
        .map(|watch| shared.subscriber.writer(WatchToken(watch.token())));
    let mut apply = Apply::new(input())
        .in_batch(&together)
        .written_by(writer)
        .foreseeing(shared.foresight.as_ref(), run.cell.resource.meta.noop)
        .permitted(shared.permits.as_deref());
    // Made inside, so that a panic while it is made is caught too.
    let mut ended = guarded_future("run", async { instance.check_apply(&mut apply).await }).await;
    if lane.is_some() {
        // Dropped, and its temporary file removed, if the run failed after all.
        let succeeded = matches!(ended, Ok(Ok(())));
        *replacement = apply.take_replacement().filter(|_| succeeded);
    }
    let mut outcome = apply.finish();
    let findings = Findings::of(&mut outcome);
    let reads_back =
        shared.reads_back(&run.cell.resource.id) && outcome.drifts.iter().any(|drift| drift.repaired);
    if reads_back && matches!(ended, Ok(Ok(()))) {
        ended = guarded_future("read back", async {
            read_back(instance, input(), &outcome.drifts).await
        })
        .await;
    }
    let mut result = after_run(ended, outcome);
    judging::add_unknown(run, &mut result);
    judging::judge(shared, run, instance, findings, &mut result);
    result
}

/// Takes received values over. An error is the end of the run.
fn before_run(shared: &Shared, run: &Run, instance: &mut Instance) -> Result<(), Box<RunResult>> {
    let request = &run.request;
    let members = request.members.iter();
    let members = members.filter(|member| !member.transfer.is_empty());
    let taken = guarded("receive", || {
        if !request.transfer.is_empty() {
            receive(instance, &run.cell.resource.meta, &request.transfer)?;
        }
        for MemberRequest { id, transfer, .. } in members {
            let all = instance.resource_mut().members();
            let Some(member) = all.and_then(|all| all.get_mut(id)) else {
                return Err(Failure::new("find the member")
                    .on(id)
                    .reasoned(FailureReason::Bug));
            };
            let meta = member.meta().clone();
            let received = receive(member.instance_mut(), &meta, transfer);
            received.map_err(|failure| failure.of_member(id))?;
        }
        Ok(())
    });
    if let Err(failure) = taken.and_then(|taken| taken) {
        return Err(Box::new(RunResult {
            transferred: false,
            checked: false,
            ..RunResult::failed(failure)
        }));
    }
    match request.check {
        Check::Call => judging::leave_out(shared, run, instance),
        Check::SkipAsOk => Err(Box::new(RunResult {
            checked: false,
            ..RunResult::ok()
        })),
    }
}

/// Takes received values over into one resource.
fn receive(
    instance: &mut Instance,
    meta: &MetaParameters,
    transfer: &[(&'static str, Option<Value>)],
) -> Result<(), Failure> {
    for (parameter, value) in transfer {
        instance
            .set_parameter(parameter, value.as_ref())
            .map_err(|invalid| unfit("receive", &[invalid]).on(parameter))?;
    }
    let mut invalid = Vec::new();
    instance.validate(meta, &mut invalid);
    invalid.retain(setpoint_graph::Invalid::is_error);
    if !invalid.is_empty() {
        return Err(unfit("take what was received", &invalid));
    }
    instance.resource_mut().after_receive();
    Ok(())
}

fn after_run(ended: Result<Result<(), Failure>, Failure>, outcome: Outcome) -> RunResult {
    let answered = ended.and_then(|answered| answered);
    let is_partial = answered.is_ok() && outcome.refused.is_none() && !outcome.failed_members.is_empty();
    let blamed = || blame(&outcome.failed_members).map_or(Ok(()), Err);
    RunResult {
        outcome: match outcome.refused {
            Some(refused) => Err(refused),
            None => answered.and_then(|()| blamed()),
        },
        drifts: outcome.drifts,
        sent: outcome.sent,
        sent_by_members: outcome.sent_by_members,
        failed_members: outcome.failed_members,
        is_partial,
        restart_interval: outcome.restart_interval,
        watch_anew: outcome.watch_anew,
        ..RunResult::ok()
    }
}

/// Members that are named in what a failed run says. All of them have an event of their own.
const NAMED: usize = 3;

/// What is said of a run that failed because of members.
fn blame(members: &[(ResourceId, Failure)]) -> Option<Failure> {
    let (first, failure) = members.first()?;
    let first = failure.clone().of_member(first);
    let more = &members[1..];
    if more.is_empty() {
        return Some(first);
    }
    let mut texts = vec![first.chain()];
    let named = more.iter().take(NAMED - 1);
    texts.extend(named.map(|(id, failure)| failure.clone().of_member(id).chain()));
    match more.len().saturating_sub(NAMED - 1) {
        0 => {}
        1 => texts.push("and one more".to_owned()),
        more => texts.push(format!("and {more} more")),
    }
    Some(Failure::new(texts.join("; ")).reasoned(first.reason()))
}

/// Whether received values may have changed what is to be watched.
fn has_moved(run: &Run, result: &RunResult) -> bool {
    let members = run.request.members.iter();
    let has_transfers = !run.request.transfer.is_empty() || members.clone().any(|m| !m.transfer.is_empty());
    result.transferred && has_transfers
}
