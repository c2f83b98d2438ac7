//! A host that exists only as a list of what happens when, and a machine that believes in it.
//!
//! After each step the machine's own check is run, and what it wants done is compared with a model of the rules that is
//! kept apart from it, from what the host was told and answered.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use setpoint_engine::machine::{
    Action, Armed, Check, ExitReport, Initialised, Input, Machine, Options, RecordWork, RunRequest,
    RunResult, VertexId, VertexState,
};
use setpoint_engine::{
    CancelCause, Drift, DriftValue, Event, EventKind, ExportKey, Failure, FailureReason, RunSummary, Sent,
};
use setpoint_graph::{DesiredResource, MetaName, MetaParameters, ResourceId};
use setpoint_value::Value;

pub(crate) use super::programs::{Graph, id};
use super::programs::{reversal, short, text};

pub(crate) fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

pub(crate) fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// What one run of a simulated resource does.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) takes: Duration,
    pub(crate) drifts: Vec<(&'static str, &'static str)>,
    pub(crate) fails: Option<&'static str>,
    /// Why it fails.
    pub(crate) reason: FailureReason,
    pub(crate) sends: Option<Option<&'static str>>,
    /// Goes on after it was told to stop.
    pub(crate) stubborn: bool,
    /// Goes on even after it was interrupted.
    pub(crate) immortal: bool,
    pub(crate) untransferred: bool,
    /// What it exports could not be written.
    pub(crate) not_exported: Option<&'static str>,
    /// Of a group: the drifts are of this member, and so is the failure.
    pub(crate) member: Option<&'static str>,
    /// Of a group: the drifts are of this other member, which did not fail.
    pub(crate) repairs: Option<&'static str>,
}

impl Run {
    pub(crate) fn ok() -> Run {
        Run {
            takes: Duration::ZERO,
            drifts: Vec::new(),
            fails: None,
            reason: FailureReason::Refused,
            sends: None,
            stubborn: false,
            immortal: false,
            untransferred: false,
            not_exported: None,
            member: None,
            repairs: None,
        }
    }

    /// A run that also repaired another member of the group, which did not fail.
    pub(crate) fn but_repairs(self, member: &'static str) -> Run {
        Run {
            repairs: Some(member),
            drifts: Run::drift().drifts,
            ..self
        }
    }

    pub(crate) fn drift() -> Run {
        Run {
            drifts: vec![("content", "right")],
            ..Run::ok()
        }
    }

    pub(crate) fn fails(message: &'static str) -> Run {
        Run {
            fails: Some(message),
            ..Run::ok()
        }
    }

    pub(crate) fn waits(missing: &'static str) -> Run {
        Run {
            reason: FailureReason::Waiting,
            ..Run::fails(missing)
        }
    }

    pub(crate) fn sends(value: &'static str) -> Run {
        Run {
            sends: Some(Some(value)),
            ..Run::ok()
        }
    }

    pub(crate) fn takes(self, takes: Duration) -> Run {
        Run { takes, ..self }
    }

    pub(crate) fn of(self, member: &'static str) -> Run {
        let member = Some(member);
        Run { member, ..self }
    }
}

/// What the host does with one resource, by its short name. What is not said is quick and right.
#[derive(Default)]
pub(crate) struct Behaviour {
    pub(crate) inits: VecDeque<Result<(), &'static str>>,
    pub(crate) arms: VecDeque<(Duration, Result<(), &'static str>)>,
    pub(crate) runs: VecDeque<Run>,
    /// When `runs` is empty.
    pub(crate) always: Option<Run>,
    pub(crate) init_takes: Duration,
    pub(crate) cleanup_takes: Duration,
    /// What its watch asks the machine to do again and again.
    pub(crate) ticks: Option<Duration>,
}

/// What the model knows of a vertex.
#[derive(Default, Debug)]
struct Model {
    id: String,
    /// The members of its group.
    members: Vec<ResourceId>,
    /// Those of them that may not be repaired.
    noop_members: Vec<ResourceId>,
    armed: bool,
    polls: bool,
    /// Its first event has come.
    watching: bool,
    running: bool,
    initialised: bool,
    /// What it makes of the machine; it does when its run ends well.
    wants: Option<String>,
    is_reversal: bool,
    clean: bool,
    /// Its members that failed in the last run, when the others are right.
    failed: Vec<ResourceId>,
    noop: bool,
    dirtied: bool,
}

/// A run with where its end is in what is coming.
type Underway = (Run, Box<RunRequest>, (Duration, u64));

pub(crate) struct Simulation {
    pub(crate) machine: Machine,
    pub(crate) now: Duration,
    pub(crate) deadline: Option<Duration>,
    /// What the host will say, by time and order.
    coming: BTreeMap<(Duration, u64), Input>,
    count: u64,
    pub(crate) hosts: BTreeMap<String, Behaviour>,
    model: BTreeMap<VertexId, Model>,
    /// Where each resource is, members of groups among them.
    present: BTreeMap<String, VertexId>,
    running: BTreeMap<VertexId, Underway>,
    /// Stored *perhaps* marks: receiver, sender, run.
    pub(crate) store: BTreeMap<(String, String), u64>,
    /// Records of what undoes resources: what was on the machine before them.
    pub(crate) records: BTreeMap<String, String>,
    /// How often a record was written, and how often one was served.
    pub(crate) written: BTreeMap<String, usize>,
    pub(crate) undone: BTreeMap<String, usize>,
    /// What is on the machine, by who manages it; nothing is the empty text.
    pub(crate) disk: BTreeMap<String, String>,
    /// What a resource's parameters hold.
    pub(crate) content: BTreeMap<String, Option<Value>>,
    pub(crate) events: Vec<Arc<Event>>,
    seen: usize,
    steps: usize,
    pub(crate) requests: Vec<(String, RunRequest)>,
    /// Which records the running graph came to export, and which no more, swap by swap.
    pub(crate) exports: Vec<(Vec<ExportKey>, Vec<ExportKey>)>,
    pub(crate) converged: Vec<bool>,
    pub(crate) exit: Option<ExitReport>,
    edges: BTreeSet<(String, String)>,
    /// The most runs at once of all whose name begins with a letter.
    pub(crate) most_running: BTreeMap<char, usize>,
    pub(crate) generation: u64,
    noop: bool,
    realizing: BTreeSet<String>,
}

impl Simulation {
    pub(crate) fn new() -> Simulation {
        Simulation::with(Options::default())
    }

    pub(crate) fn with(options: Options) -> Simulation {
        Simulation {
            noop: options.noop,
            machine: Machine::new(options),
            now: Duration::ZERO,
            deadline: None,
            coming: BTreeMap::new(),
            count: 0,
            hosts: BTreeMap::new(),
            model: BTreeMap::new(),
            present: BTreeMap::new(),
            running: BTreeMap::new(),
            store: BTreeMap::new(),
            records: BTreeMap::new(),
            written: BTreeMap::new(),
            undone: BTreeMap::new(),
            disk: BTreeMap::new(),
            content: BTreeMap::new(),
            events: Vec::new(),
            seen: 0,
            steps: 0,
            requests: Vec::new(),
            exports: Vec::new(),
            converged: Vec::new(),
            exit: None,
            edges: BTreeSet::new(),
            most_running: BTreeMap::new(),
            generation: 0,
            realizing: BTreeSet::new(),
        }
    }

    /// The process is killed, and another one takes its place: what is on disk is all that is left.
    pub(crate) fn restart(&mut self, options: Options) {
        // Of what was under way, some was done already, and was not told.
        for (vertex, (run, request, _)) in &self.running {
            let model = &self.model[vertex];
            let is_done = self.count.is_multiple_of(2) && run.fails.is_none() && !request.noop;
            if is_done && request.check == Check::Call {
                let wants = model.wants.clone().unwrap_or_default();
                self.disk.insert(model.id.clone(), wants);
            }
        }
        let mut next = Simulation::with(options);
        next.now = self.now;
        next.generation = self.generation;
        next.store = std::mem::take(&mut self.store);
        next.records = std::mem::take(&mut self.records);
        next.written = std::mem::take(&mut self.written);
        next.undone = std::mem::take(&mut self.undone);
        next.disk = std::mem::take(&mut self.disk);
        *self = next;
        let found = self.records.keys().map(|name| reversal(name)).collect();
        self.step(Input::Recorded(found));
    }

    /// A graph, all of whose resources have run.
    pub(crate) fn of(graph: &Graph) -> Simulation {
        let mut simulation = Simulation::new();
        simulation.swap(graph);
        simulation.settle();
        simulation.take();
        simulation
    }

    pub(crate) fn host(&mut self, name: &str) -> &mut Behaviour {
        self.hosts.entry(name.to_owned()).or_default()
    }

    pub(crate) fn runs(&mut self, name: &str, runs: impl IntoIterator<Item = Run>) {
        self.host(name).runs.extend(runs);
    }

    pub(crate) fn always(&mut self, name: &str, run: Run) {
        self.host(name).always = Some(run);
    }

    pub(crate) fn swap(&mut self, graph: &Graph) {
        self.generation += 1;
        let mut desired = graph.desired.clone();
        desired.generation = self.generation;
        self.step(Input::NewGraph(desired));
    }

    /// The newest vertex of this name.
    pub(crate) fn vertex(&self, name: &str) -> VertexId {
        let mut found = self.model.iter().filter(|(_, model)| model.id == name);
        *found.next_back().expect("a vertex of that name").0
    }

    /// The watch of a resource sees something.
    pub(crate) fn event(&mut self, name: &str) {
        self.event_of(&[name]);
    }

    /// The watches of several resources see the same thing.
    pub(crate) fn event_of(&mut self, names: &[&str]) {
        let events = names.iter().map(|name| (self.vertex(name), (*name).into()));
        let events = events.collect();
        self.step(Input::WatchEvents(events));
    }

    pub(crate) fn watch_fails(&mut self, name: &str) {
        let vertex = self.vertex(name);
        let failure = Failure::new("watch");
        let model = self.model.get_mut(&vertex).unwrap();
        if !model.watching {
            return;
        }
        model.armed = false;
        model.watching = false;
        self.step(Input::WatchFailed { vertex, failure });
    }

    pub(crate) fn recheck(&mut self, name: &str) {
        self.step(Input::Recheck(id(name)));
    }

    /// Lets everything happen that happens now. Panics when that does not end.
    pub(crate) fn settle(&mut self) {
        self.advance(Duration::ZERO);
    }

    /// Lets time pass.
    pub(crate) fn advance(&mut self, by: Duration) {
        let end = self.now + by;
        let mut steps = 0;
        while self.exit.is_none() {
            let next = self.coming.keys().next().map(|key| key.0);
            let due = [next, self.deadline].into_iter().flatten().min();
            let Some(at) = due.filter(|at| *at <= end) else {
                break;
            };
            if at > self.now {
                steps = 0;
            }
            steps += 1;
            assert!(steps < 200_000, "no end of things that happen at {at:?}");
            self.now = self.now.max(at);
            // Now and then the deadline comes before what happens at the same time.
            if next == Some(at) {
                let (_, input) = self.coming.pop_first().unwrap();
                self.step(input);
            } else {
                self.step(Input::Timer);
            }
        }
        self.now = end;
    }

    /// Like `settle`, for what never ends.
    pub(crate) fn some_steps(&mut self, steps: usize) {
        for _ in 0..steps {
            let next = self.coming.keys().next().map(|key| key.0);
            if next.is_some_and(|at| at <= self.now) {
                let (_, input) = self.coming.pop_first().unwrap();
                self.step(input);
            } else if self.deadline.is_some_and(|at| at <= self.now) {
                self.step(Input::Timer);
            } else {
                return;
            }
        }
    }

    pub(crate) fn step(&mut self, input: Input) {
        self.before(&input);
        let actions = self.machine.step(self.now, input);
        self.deadline = actions.deadline;
        if let Some(graph) = self.machine.graph() {
            let pairs = graph.edges.keys();
            self.edges = pairs.map(|(from, to)| (short(from), short(to))).collect();
        }
        for action in actions.list {
            self.act(action);
        }
        // It looks at everything, so not after each step of a large graph.
        self.steps += 1;
        let few = self.model.len() < 1_000;
        if (few || self.steps.is_multiple_of(500))
            && let Err(error) = self.machine.check()
        {
            panic!("{error}\n{}", self.trace(40));
        }
        if let Some(deadline) = self.deadline {
            assert!(
                deadline >= self.now,
                "a deadline that has passed: {deadline:?} at {:?}",
                self.now
            );
        }
    }

    /// The last events, to be shown when something is wrong.
    pub(crate) fn trace(&self, events: usize) -> String {
        let from = self.events.len().saturating_sub(events);
        let lines: Vec<String> = self.events[from..].iter().map(|event| event.to_json()).collect();
        lines.join("\n")
    }

    fn before(&mut self, input: &Input) {
        match input {
            Input::WatchArmed { vertex, result } => {
                if let Some(model) = self.model.get_mut(vertex) {
                    model.armed = result.is_ok() && model.armed;
                    model.watching = model.armed;
                }
            }
            Input::RunEnded { vertex, result } => {
                let underway = self.running.remove(vertex);
                if let Some(model) = self.model.get_mut(vertex) {
                    model.running = false;
                    model.clean = result.outcome.is_ok() && !model.dirtied;
                    let failed = result.failed_members.iter().filter(|_| result.is_partial);
                    model.failed = failed.map(|(id, _)| id.clone()).collect();
                    let may_repair = underway.is_some_and(|(_, request, _)| !request.noop);
                    if result.outcome.is_ok() && result.checked && may_repair {
                        let (name, wants) = (model.id.clone(), model.wants.clone());
                        if model.is_reversal {
                            // Killed between these two, it is undone again, which changes nothing.
                            let record = self.records.remove(&name);
                            assert!(record.is_some(), "{name} is undone twice");
                            *self.undone.entry(name.clone()).or_default() += 1;
                        }
                        self.disk.insert(name, wants.unwrap_or_default());
                    }
                }
            }
            _ => {}
        }
    }

    fn later(&mut self, after: Duration, input: Input) -> (Duration, u64) {
        self.count += 1;
        let key = (self.now + after, self.count);
        self.coming.insert(key, input);
        key
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Emit(event) => self.note(event),
            Action::Silent { vertex } => {
                let at = Some("/somewhere".into());
                self.later(Duration::ZERO, Input::Unresponsive { vertex, at });
            }
            Action::Init {
                vertex,
                resource,
                arm,
                load_refresh,
                record,
            } => {
                let name = short(&resource.id);
                self.handle_record(&name, &resource, &record);
                let all = resource.members.all();
                let members: Vec<ResourceId> = all.iter().map(|member| member.id.clone()).collect();
                let noop_members = all.iter().filter(|member| member.meta.noop);
                let noop_members = noop_members.map(|member| member.id.clone()).collect();
                for part in members.iter().map(short).chain([name.clone()]) {
                    let other = self.present.insert(part.clone(), vertex);
                    let is_twin = other.is_some_and(|other| other != vertex);
                    assert!(!is_twin, "{part} is added while an older one is there");
                }
                for member in all {
                    let content = member.parameters.get("content").cloned();
                    self.content.insert(short(&member.id), content);
                }
                let noop = self.noop || resource.meta.noop;
                let poll = resource.meta.poll != 0;
                let model = self.model.entry(vertex).or_default();
                model.id = name.clone();
                model.wants = match resource.meta.is_reversal {
                    true => self.records.get(&name).cloned(),
                    false => resource.parameters.get("content").and_then(text),
                };
                model.is_reversal = resource.meta.is_reversal;
                model.members = members;
                model.noop_members = noop_members;
                model.noop = noop;
                model.armed = poll;
                model.polls = poll;
                let behaviour = self.hosts.entry(name.clone()).or_default();
                let takes = behaviour.init_takes;
                match behaviour.inits.pop_front().unwrap_or(Ok(())) {
                    Ok(()) => {
                        let mut initialised = Initialised::default();
                        if load_refresh {
                            let marks = self.store.keys().filter(|(receiver, _)| *receiver == name);
                            initialised.refresh = marks.map(|(_, sender)| id(sender)).collect();
                        }
                        self.content
                            .insert(name, resource.parameters.get("content").cloned());
                        self.model.get_mut(&vertex).unwrap().initialised = true;
                        let result = Ok(initialised);
                        self.later(takes, Input::InitEnded { vertex, result });
                        if arm {
                            self.arm(vertex, takes);
                        }
                    }
                    Err(message) => {
                        let result = Err(Failure::new(message));
                        self.later(takes, Input::InitEnded { vertex, result });
                    }
                }
            }
            Action::Arm { vertex } => {
                assert!(!self.model[&vertex].running, "the instance is with its run");
                self.arm(vertex, Duration::ZERO);
            }
            Action::Disarm { vertex } => {
                let model = self.model.get_mut(&vertex).expect("disarms what lives");
                model.armed = false;
                model.watching = false;
                // A host says nothing any more of a watch that was ended.
                self.coming.retain(
                    |_, input| !matches!(input, Input::WatchArmed { vertex: other, .. } if *other == vertex),
                );
            }
            Action::Run { vertex, request } => self.run(vertex, request),
            Action::Cancel { vertex, cause } => {
                // It may be ending already, or have ended with the input that this answers.
                let Some((run, _, _)) = self.running.get(&vertex) else {
                    return;
                };
                if !run.stubborn {
                    let mut result = RunResult::failed(Failure::cancelled("wait"));
                    if let CancelCause::Timeout(_) = cause {
                        result = RunResult::failed(Failure::new("wait").reasoned(FailureReason::Cancelled));
                    }
                    self.end_now(vertex, result);
                }
            }
            Action::Interrupt { vertex } => {
                let Some((run, _, _)) = self.running.get(&vertex) else {
                    return;
                };
                if !run.immortal {
                    self.end_now(vertex, RunResult::failed(Failure::cancelled("wait")));
                }
            }
            Action::Cleanup { vertex, initialised } => {
                let model = self.model.remove(&vertex).expect("cleans what lives");
                for part in model.members.iter().map(short).chain([model.id.clone()]) {
                    self.present.remove(&part);
                }
                assert!(
                    !model.running && (!model.armed || model.polls),
                    "{} is cleaned too early",
                    model.id
                );
                assert_eq!(model.initialised, initialised);
                let takes = self
                    .hosts
                    .get(&model.id)
                    .map_or(Duration::ZERO, |b| b.cleanup_takes);
                let failure = None;
                self.later(takes, Input::CleanupEnded { vertex, failure });
            }
            Action::ClearRefresh {
                receiver,
                senders,
                up_to_run,
            } => {
                for sender in senders {
                    let key = (short(&receiver), short(&sender));
                    if self.store.get(&key).is_some_and(|run| *run <= up_to_run) {
                        self.store.remove(&key);
                    }
                }
            }
            Action::Export { wanted, unwanted } => self.exports.push((wanted, unwanted)),
            Action::Converged(converged) => self.converged.push(converged),
            Action::Exit(report) => {
                assert!(self.exit.is_none(), "ends twice");
                self.exit = Some(*report);
            }
        }
    }

    /// What must be safe before `init`.
    fn handle_record(&mut self, name: &str, resource: &DesiredResource, work: &RecordWork) {
        let is_there = self.records.contains_key(name);
        match work {
            RecordWork::None => assert!(
                !is_there || self.noop || resource.meta.noop,
                "the record of {name} is forgotten"
            ),
            RecordWork::Keep { .. } => assert!(is_there, "{name} has no record that could be kept"),
            RecordWork::Serve => assert!(is_there, "{name} is undone without a record"),
            RecordWork::Erase => {
                self.records.remove(name);
                let now = Duration::ZERO;
                self.later(now, Input::Forgotten(resource.id.clone()));
            }
            RecordWork::Write { .. } => {
                assert!(!is_there, "the record of {name} is written over");
                let is = self.disk.get(name).cloned().unwrap_or_default();
                self.records.insert(name.to_owned(), is);
                *self.written.entry(name.to_owned()).or_default() += 1;
                self.later(Duration::ZERO, Input::Recorded(vec![reversal(name)]));
            }
        }
    }

    fn arm(&mut self, vertex: VertexId, after: Duration) {
        let model = self.model.get_mut(&vertex).unwrap();
        model.armed = true;
        let behaviour = self.hosts.entry(model.id.clone()).or_default();
        let (takes, result) = behaviour.arms.pop_front().unwrap_or((Duration::ZERO, Ok(())));
        let armed = Armed {
            interval: behaviour.ticks,
            ticks: behaviour.ticks.is_some(),
        };
        let result = result.map(|()| armed).map_err(Failure::new);
        self.later(after + takes, Input::WatchArmed { vertex, result });
    }

    fn end_now(&mut self, vertex: VertexId, result: RunResult) {
        if let Some((_, _, key)) = self.running.remove(&vertex) {
            self.coming.remove(&key);
            self.later(Duration::ZERO, Input::RunEnded { vertex, result });
        }
    }

    fn run(&mut self, vertex: VertexId, request: Box<RunRequest>) {
        if request.check == Check::SkipAsOk {
            let result = RunResult {
                checked: false,
                ..RunResult::ok()
            };
            self.requests.push(("(hidden)".to_owned(), *request));
            self.later(Duration::ZERO, Input::RunEnded { vertex, result });
            return;
        }
        let name = self.model[&vertex].id.clone();
        // Invariant 1.
        let model = &self.model[&vertex];
        assert!(
            model.armed && model.initialised,
            "{name} runs before its watch is armed"
        );
        assert!(!model.running, "{name} runs twice at once");
        let twins = self.model.values().filter(|m| m.id == name && m.running).count();
        assert_eq!(twins, 0, "{name} runs twice at once");
        if !self.realizing.contains(&name) {
            for ancestor in self.ancestors(&name) {
                let mut models = self.model.values().filter(|m| !m.is_reversal);
                let model = models.find(|m| m.id == ancestor);
                // Of a hidden one the host knows nothing.
                let hidden = self
                    .machine
                    .graph()
                    .and_then(|graph| graph.resources.get(&id(&ancestor)))
                    .is_none_or(|resource| resource.meta.is_reversal);
                let settled = hidden
                    || model.is_some_and(|m| (m.clean && m.armed || self.is_apart(m, &name)) && !m.running);
                assert!(
                    settled,
                    "{name} runs before {ancestor} is settled: {model:?}\n{}",
                    self.trace(40)
                );
            }
        }
        // Invariant 5.
        assert_eq!(request.noop, model.noop, "{name}");
        let model = self.model.get_mut(&vertex).unwrap();
        model.running = true;
        model.clean = false;
        model.dirtied = false;

        let letter = name.chars().next().unwrap_or(' ');
        let same = self
            .model
            .values()
            .filter(|m| m.running && m.id.starts_with(letter));
        let count = same.count();
        let most = self.most_running.entry(letter).or_default();
        *most = (*most).max(count);

        let behaviour = self.hosts.entry(name.clone()).or_default();
        let always = behaviour.always.clone();
        let run = behaviour.runs.pop_front().or(always).unwrap_or(Run::ok());
        if !run.untransferred {
            for (_, value) in &request.transfer {
                self.content.insert(name.clone(), value.clone());
            }
        }
        for member in &request.members {
            for (_, value) in member.transfer.iter().filter(|_| !run.untransferred) {
                self.content.insert(short(&member.id), value.clone());
            }
        }
        let model = &self.model[&vertex];
        let mut members = model.members.iter();
        let member = members
            .find(|member| run.member == Some(&*short(member)))
            .cloned();
        let may_repair = member
            .as_ref()
            .is_none_or(|member| !model.noop_members.contains(member));
        let sent_by_members: Vec<ResourceId> = model.members.clone();
        let repaired = match run.repairs {
            Some(repaired) => model
                .members
                .iter()
                .find(|member| repaired == short(member))
                .cloned(),
            None => member.clone(),
        };
        let drifts = run.drifts.iter().map(|(field, want)| Drift {
            member: repaired.clone(),
            field: (*field).into(),
            effect: setpoint_engine::Effect::Change,
            attributes: Vec::new(),
            is: DriftValue::from("wrong"),
            want: DriftValue::from(*want),
            repaired: !request.noop && may_repair,
            is_done: false,
        });
        let drifts: Vec<Drift> = drifts.collect();
        if drifts.iter().any(|drift| drift.repaired) {
            for receiver in &request.notifies {
                self.store.insert((short(receiver), name.clone()), request.run);
            }
        }
        let sent = run.sends.map(|value| Sent {
            keys: vec![("out", value.map(Value::str))],
            is_final: false,
        });
        let result = RunResult {
            drifts,
            outcome: match (run.fails, run.reason) {
                (Some(missing), FailureReason::Waiting) => Err(Failure::waiting(missing)),
                (Some(message), reason) => Err(Failure::new(message).reasoned(reason)),
                (None, _) => Ok(()),
            },
            sent_by_members: match &sent {
                Some(sent) => sent_by_members.into_iter().map(|id| (id, sent.clone())).collect(),
                None => Vec::new(),
            },
            failed_members: match run.fails {
                Some(message) => member.into_iter().map(|id| (id, Failure::new(message))).collect(),
                None => Vec::new(),
            },
            is_partial: run.fails.is_some() && run.member.is_some(),
            sent,
            transferred: !run.untransferred,
            not_exported: run.not_exported.map(Failure::new),
            checked: request.check == Check::Call,
            ..RunResult::ok()
        };
        let key = self.later(run.takes, Input::RunEnded { vertex, result });
        self.requests.push((name, (*request).clone()));
        self.running.insert(vertex, (run, request, key));
    }

    /// Whether none of the failed members of a group comes before this resource.
    fn is_apart(&self, group: &Model, name: &str) -> bool {
        let Some(graph) = self.machine.graph().filter(|_| !group.failed.is_empty()) else {
            return false;
        };
        let edges = graph.edges.values().filter(|edge| short(&edge.from) == group.id);
        let mut behind_failed = edges.filter(|edge| {
            let failed = |id: &ResourceId| group.failed.contains(id);
            edge.parts().iter().any(|part| failed(&part.from))
        });
        let ancestors = self.ancestors(name);
        !behind_failed.any(|edge| short(&edge.to) == name || ancestors.contains(&short(&edge.to)))
    }

    fn ancestors(&self, name: &str) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut look = vec![name.to_owned()];
        while let Some(to) = look.pop() {
            for (from, _) in self.edges.iter().filter(|(_, other)| *other == to) {
                if found.insert(from.clone()) {
                    look.push(from.clone());
                }
            }
        }
        found
    }

    /// Lets a resource run although its predecessors are not settled: it is being realized.
    pub(crate) fn allow_realizing(&mut self, name: &str) {
        self.realizing.insert(name.to_owned());
    }

    fn note(&mut self, event: Arc<Event>) {
        if let Some(last) = self.events.last() {
            assert_eq!(last.seq + 1, event.seq, "events are numbered without gaps");
            assert!(last.time <= event.time);
        }
        if let (EventKind::Dirty { .. }, Some(id)) = (&event.what, event.identity()) {
            let name = short(&id);
            for model in self.model.values_mut().filter(|model| model.id == name) {
                model.clean = false;
                model.dirtied = true;
            }
        }
        self.events.push(event);
    }

    /// What happened since this was last asked, as short lines; starts and the like are left out.
    pub(crate) fn take(&mut self) -> Vec<String> {
        let new = self.events[self.seen..].to_vec();
        self.seen = self.events.len();
        self.requests.clear();
        new.iter().filter_map(|event| brief(event)).collect()
    }

    /// Who ran since this was last asked, in the order of starting.
    pub(crate) fn ran(&mut self) -> Vec<String> {
        let new = self.events[self.seen..].to_vec();
        self.seen = self.events.len();
        let started = new
            .iter()
            .filter(|event| matches!(event.what, EventKind::StartedRun { .. }));
        started
            .filter_map(|event| Some(short(&event.identity()?)))
            .collect()
    }

    /// When the runs of a resource began.
    pub(crate) fn starts(&self, name: &str) -> Vec<Duration> {
        let events = self.events.iter();
        let started = events.filter(|event| matches!(event.what, EventKind::StartedRun { .. }));
        started
            .filter(|event| event.identity() == Some(id(name)))
            .map(|event| event.time)
            .collect()
    }

    pub(crate) fn has(&self, name: &str, is: impl Fn(&EventKind) -> bool) -> bool {
        let mut events = self.events.iter();
        events.any(|event| event.identity() == Some(id(name)) && is(&event.what))
    }

    pub(crate) fn state(&self, name: &str) -> VertexState {
        let status = self.machine.status();
        let found = status.into_iter().find(|status| status.id == id(name));
        found.expect("a vertex of that name").state
    }
}

fn brief(event: &Event) -> Option<String> {
    let name = event.identity().map(|id| short(&id)).unwrap_or_default();
    let text = match &event.what {
        EventKind::RunEnded { result, error, .. } => match (result, error) {
            (RunSummary::Ok, _) => "ok".to_owned(),
            (RunSummary::Drift, _) => "drift".to_owned(),
            (RunSummary::Waiting, _) => "looked in vain".to_owned(),
            (RunSummary::Unsure, _) => "unsure".to_owned(),
            (RunSummary::Failed, error) => format!("failed: {}", error.as_deref().unwrap_or("")),
        },
        EventKind::RefreshPending { by } => format!("refresh pending by {}", short(&id(by))),
        EventKind::RefreshConsumed { .. } => "refresh consumed".to_owned(),
        EventKind::GaveUp { .. } => "gave up".to_owned(),
        EventKind::WaitingForHost { missing } => format!("waits: {missing}"),
        EventKind::BlockedBy { by } => format!("blocked by {}", short(&id(by))),
        EventKind::Removed { .. } => "removed".to_owned(),
        EventKind::Finishing => "finishing".to_owned(),
        EventKind::Conflict { .. } => "conflict".to_owned(),
        EventKind::Unresponsive { waited, at } => {
            format!(
                "silent for {} s at {}",
                waited.as_secs(),
                at.as_deref().unwrap_or("?")
            )
        }
        EventKind::Tick => "tick".to_owned(),
        EventKind::Undone => "undone".to_owned(),
        EventKind::Converged => "converged".to_owned(),
        EventKind::Unconverged => "unconverged".to_owned(),
        EventKind::Stopping { stage, waiting_for } => format!("stopping {stage} {}", waiting_for.join(" ")),
        _ => return None,
    };
    Some(format!("{name} {text}").trim().to_owned())
}

/// Sets meta parameters that are written although they are zero.
pub(crate) fn written(meta: &mut MetaParameters, names: &[MetaName]) {
    for name in names {
        meta.written.insert(*name);
    }
}
