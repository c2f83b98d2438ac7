//! A process that looks after the host: the machine, what its workers would do, and the judgement of it.

mod exporting;
mod judging;
mod workers;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use setpoint_diagnostics::{FileId, Span};
use setpoint_engine::machine::{Input, Machine, Options, StopStage, VertexId, VertexState};
use setpoint_engine::{ExportChange, ExportKey, Exports, Failure};
use setpoint_graph::{DesiredGraph, DesiredResource, MetaParameters, Parameters};

use self::exporting::Exporting;
use crate::cast::{Role, Roles, each};
use crate::host::Host;
use crate::program::Program;
use crate::rules::{Broken, Rule, hold};
use crate::statistics::Statistics;

/// A process.
pub(crate) struct Process {
    machine: Machine,
    options: Options,
    /// When it was started.
    born: Duration,
    /// When the machine wants to be woken, by the clock of the host.
    deadline: Option<Duration>,
    coming: BTreeMap<(Duration, u64), Coming>,
    scheduled: u64,
    vertices: [Option<Vertex>; 16],
    program: Program,
    graph: DesiredGraph,
    ancestors: [Roles; 16],
    notified: [Roles; 16],
    /// What each has sent last; of that, none for withheld.
    published: [Option<Option<u8>>; 16],
    /// What it exports; a run waits for its records.
    exports: Exports<(VertexId, ExportKey)>,
    exporting: BTreeMap<VertexId, Exporting>,
    /// What the store is doing.
    storing: Vec<ExportChange>,
    /// It has looked what earlier processes left in the store.
    knows_former: bool,
    paused: bool,
    exited: bool,
    events: u64,
    last_event: Duration,
    pub(crate) statistics: Statistics,
    /// What happens, line by line, if somebody wants to know.
    pub(crate) history: Option<Vec<String>>,
}

/// How long whatever fails takes at least.
const FAILING_TAKES: Duration = Duration::from_millis(50);

/// What the host knows of a resource that was brought in.
struct Vertex {
    id: VertexId,
    resource: Arc<DesiredResource>,
    /// It, and the members of its group.
    parts: Vec<Part>,
    initialised: bool,
    /// Its watch is armed or being armed.
    armed: bool,
    watching: bool,
    run: Option<Underway>,
    /// No program wants it any more, or one wants something else in its place.
    leaving: bool,
    /// It is being taken away.
    going: bool,
    /// The last run succeeded, and nothing came since.
    clean: bool,
    dirtied: bool,
    /// Something came, and no run has begun since.
    unanswered: bool,
}

/// A resource, or a member of its group.
#[derive(Clone, Copy)]
struct Part {
    role: Role,
    /// What shall be in it now.
    wanted: u8,
    /// What it sends in the run that is under way.
    sends: Option<u8>,
    /// Whether the run that is under way found something else in it.
    drift: bool,
}

/// A run that is under way.
struct Underway {
    outcome: Planned,
    checked: bool,
    noop: bool,
    refresh: bool,
    passes_on: bool,
    parts: Vec<Part>,
    /// For whom notifications are stored.
    marked: Roles,
    /// Whom it owed an answer when it began.
    serves: Roles,
    /// Where its end is in what is coming; none while its disk hangs.
    end: Option<(Duration, u64)>,
}

/// How a run will end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Planned {
    Succeeds,
    FailsBeforeRepair,
    Waits,
    FailsAfterRepair,
    Cancelled { timeout: bool },
}

/// An answer of the host.
enum Coming {
    InitEnded {
        role: Role,
        id: VertexId,
        arms: bool,
        fails: bool,
        refresh: Vec<Role>,
        /// Whether the record of what undoes it was written, or erased.
        recorded: Option<bool>,
    },
    Armed {
        role: Role,
        id: VertexId,
        fails: bool,
    },
    Watches(Vec<Role>),
    RunEnded {
        role: Role,
    },
    HiddenRunEnded(VertexId),
    CleanupEnded {
        role: Role,
        id: VertexId,
    },
    Unresponsive(VertexId),
    /// The store is to begin with what is next.
    Store,
    /// The store has done something.
    Stored,
}

impl Process {
    /// Starts one, which wants nothing yet.
    pub(crate) fn start(options: Options, host: &Host, statistics: Statistics) -> Process {
        Process {
            machine: Machine::new(options.clone()),
            options,
            born: host.now,
            deadline: None,
            coming: BTreeMap::new(),
            scheduled: 0,
            vertices: [const { None }; 16],
            program: Program::default(),
            graph: DesiredGraph::default(),
            ancestors: [0; 16],
            notified: [0; 16],
            published: [None; 16],
            exports: Exports::default(),
            exporting: BTreeMap::new(),
            storing: Vec::new(),
            knows_former: false,
            paused: false,
            exited: false,
            events: 0,
            last_event: Duration::ZERO,
            statistics,
            history: None,
        }
    }

    /// Ends at once, wherever it is: what was under way is found made, or not.
    pub(crate) fn die(
        self,
        host: &mut Host,
        repaired: bool,
    ) -> (Options, Program, Statistics, Option<Vec<String>>) {
        for role in Role::all() {
            let run = self.vertices[role.place()]
                .as_ref()
                .and_then(|vertex| vertex.run.as_ref());
            if let Some(run) = run.filter(|run| run.repairs() && repaired) {
                for part in &run.parts {
                    host.content[part.role.place()] = part.wanted;
                }
                owe(host, role, run.marked & self.notified[role.place()]);
            }
        }
        self.lose_store(host, repaired);
        host.forget_runs();
        (self.options, self.program, self.statistics, self.history)
    }

    /// Reads what processes before it have left.
    pub(crate) fn recall(&mut self, host: &mut Host) -> Result<(), Broken> {
        let recorded = Role::all().filter(|role| host.records[role.place()].is_some());
        let recorded = recorded.map(reversal).collect();
        self.step(host, Input::Recorded(recorded))
    }

    /// A new program.
    pub(crate) fn swap(&mut self, host: &mut Host, program: Program) -> Result<(), Broken> {
        self.statistics.swaps += 1;
        self.graph = program.graph(self.graph.generation + 1, &self.graph);
        self.ancestors = program.ancestors();
        self.notified = program.notified();
        for role in Role::all() {
            let heard = Role::all().filter(|from| self.notified[from.place()] & role.bit() != 0);
            let heard = heard.fold(0, |all, from| all | from.bit());
            host.owed[role.place()] &= heard;
            if program.wanted(role).is_none() {
                self.published[role.place()] = None;
            }
        }
        self.program = program;
        for vertex in self.vertices.iter_mut().flatten() {
            let wanted = self.graph.resources.get(&vertex.resource.id);
            vertex.leaving |= match vertex.resource.meta.is_reversal {
                true => wanted.is_some(),
                false => !wanted.is_some_and(|wanted| wanted.is_unchanged(&vertex.resource)),
            };
        }
        self.step(host, Input::NewGraph(self.graph.clone()))
    }

    pub(crate) fn reject(&mut self, host: &mut Host) -> Result<(), Broken> {
        let diagnostics = "it makes no sense".to_owned();
        self.step(host, Input::GraphRejected { diagnostics })
    }

    /// Somebody changed resources; those that are watched tell after this time.
    pub(crate) fn disturbed(&mut self, host: &Host, roles: Vec<Role>, latency: Duration) {
        self.later(host.now + latency, Coming::Watches(roles));
    }

    pub(crate) fn watch_breaks(&mut self, host: &mut Host, role: Role) -> Result<(), Broken> {
        let Some(vertex) = self.vertices[role.place()]
            .as_mut()
            .filter(|v| v.watching && v.resource.meta.poll == 0)
        else {
            return Ok(());
        };
        vertex.watching = false;
        vertex.armed = false;
        let vertex = vertex.id;
        let failure = Failure::new("watch");
        self.step(host, Input::WatchFailed { vertex, failure })
    }

    pub(crate) fn recheck(&mut self, host: &mut Host, role: Role) -> Result<(), Broken> {
        if let Some(vertex) = self
            .with_part(role)
            .filter(|vertex| !vertex.going && vertex.initialised)
        {
            vertex.unanswered = true;
        }
        self.step(host, Input::Recheck(role.id()))
    }

    pub(crate) fn pause(&mut self, host: &mut Host, paused: bool) -> Result<(), Broken> {
        self.paused = paused;
        self.step(host, if paused { Input::Pause } else { Input::Resume })
    }

    /// Runs of a resource no longer end, or end again.
    pub(crate) fn frozen(&mut self, host: &Host, role: Role, frozen: bool) {
        let Some(run) = self.vertices[role.place()]
            .as_mut()
            .and_then(|vertex| vertex.run.as_mut())
        else {
            return;
        };
        if frozen {
            if let Some(end) = run.end.take() {
                self.coming.remove(&end);
            }
        } else if run.end.is_none() {
            self.scheduled += 1;
            let end = (host.now, self.scheduled);
            run.end = Some(end);
            self.coming.insert(end, Coming::RunEnded { role });
        }
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(&mut self, host: &mut Host) -> Result<(), Broken> {
        let stage = StopStage::Finish;
        let exported = self.exported_for_good(host);
        self.step(
            host,
            Input::Stop {
                stage,
                escalate: true,
            },
        )?;
        self.pass(host, Duration::from_secs(120))?;
        hold(Rule::Stops, self.exited, || {
            "the process runs on 120 seconds after it was asked to stop".to_owned()
        })?;
        self.judge_kept(host, &exported)
    }

    /// Lets time pass, and everything happen that happens in it.
    pub(crate) fn pass(&mut self, host: &mut Host, by: Duration) -> Result<(), Broken> {
        let end = host.now + by;
        let mut at_once = 0_u32;
        while !self.exited {
            let Some(at) = self.next().filter(|at| *at <= end) else {
                break;
            };
            at_once = if at > host.now { 0 } else { at_once + 1 };
            hold(Rule::Ends, at_once < 20_000, || {
                format!("no end of what happens at {:?}", host.now)
            })?;
            host.now = host.now.max(at);
            self.one(host)?;
        }
        host.now = end;
        if self.exited {
            Ok(())
        } else {
            self.step(host, Input::Timer)
        }
    }

    /// Lets so many things happen that are due.
    pub(crate) fn answers(&mut self, host: &mut Host, count: u8) -> Result<(), Broken> {
        for _ in 0..count {
            if self.exited || self.next().is_none_or(|at| at > host.now) {
                break;
            }
            self.one(host)?;
        }
        Ok(())
    }

    /// Whom the machine has given up.
    pub(crate) fn failed(&self) -> Vec<Role> {
        let status = self.machine.status().into_iter();
        status
            .filter(|status| status.state == VertexState::GaveUp)
            .filter_map(|status| Role::of(&status.id))
            .collect()
    }

    fn next(&self) -> Option<Duration> {
        let coming = self.coming.keys().next().map(|(at, _)| *at);
        [coming, self.deadline].into_iter().flatten().min()
    }

    /// Lets the next thing happen, which is due.
    fn one(&mut self, host: &mut Host) -> Result<(), Broken> {
        if self.coming.keys().next().is_some_and(|(at, _)| *at <= host.now)
            && let Some((_, coming)) = self.coming.pop_first()
        {
            return self.deliver(host, coming);
        }
        self.step(host, Input::Timer)
    }

    fn later(&mut self, at: Duration, coming: Coming) -> (Duration, u64) {
        self.scheduled += 1;
        let key = (at, self.scheduled);
        self.coming.insert(key, coming);
        key
    }

    fn step(&mut self, host: &mut Host, input: Input) -> Result<(), Broken> {
        self.statistics.steps += 1;
        if let Some(history) = &mut self.history {
            history.push(format!("{:>9.3} <- {}", host.now.as_secs_f64(), told(&input)));
        }
        let actions = self.machine.step(host.now - self.born, input);
        self.deadline = actions.deadline.map(|at| at + self.born);
        for action in actions.list {
            self.act(host, action)?;
        }
        self.machine.check().map_err(|what| Broken {
            rule: Rule::Consistent,
            what,
        })?;
        hold(Rule::Ends, self.deadline.is_none_or(|at| at >= host.now), || {
            "the machine waits for a time that has passed".to_owned()
        })
    }
}

/// What undoes a resource, as its record gives it.
fn reversal(role: Role) -> Arc<DesiredResource> {
    let meta = MetaParameters {
        is_reversal: true,
        ..MetaParameters::DEFAULT
    };
    Arc::new(DesiredResource {
        id: role.id(),
        schema: role.schema(),
        parameters: Parameters::default(),
        meta: meta.into(),
        span: Span::new(FileId(0), 0, 0),
        parameter_spans: Arc::new([]),
        chain: None,
        members: setpoint_graph::DesiredMembers::default(),
    })
}

/// Who is to be notified of a repair must be.
fn owe(host: &mut Host, sender: Role, receivers: Roles) {
    for receiver in each(receivers).filter(|receiver| receiver.schema().refreshable) {
        host.owed[receiver.place()] |= sender.bit();
    }
}

fn unknown<T>(what: &str) -> Result<T, Broken> {
    Err(Broken {
        rule: Rule::Consistent,
        what: format!("something that is not there is {what}"),
    })
}

/// An input in one line.
fn told(input: &Input) -> String {
    match input {
        Input::NewGraph(graph) => format!("new graph {}", graph.generation),
        input => {
            let text = format!("{input:?}");
            match text.char_indices().nth(200) {
                Some((end, _)) => format!("{}…", &text[..end]),
                None => text,
            }
        }
    }
}
