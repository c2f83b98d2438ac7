//! A program at work: its evaluator on a thread of its own, fed by sources, handing graphs to the engine.
//!
//! ```text
//!  sources ─ wake ─▶ Woken ─▶ this thread: evaluator.step ─▶ engine.submit
//! ```
//!
//! Wakes of one source coalesce, and whatever came while a step ran is taken together by the next one. Before the first graph, what
//! is wrong ends the program; afterwards it is told, the machine stays with the newest good graph, and the next change is
//! evaluated again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use setpoint_diagnostics::{Diagnostics, SourceMap};
use setpoint_engine::Submitted;
use setpoint_flow::{Evaluator, Language, Step, Stop};
use setpoint_graph::{CollectProblem, DesiredGraph, Finding, Problem, UnknownWhat};
use setpoint_host::sync::Mutex;
use setpoint_programs::SourceAccess;
use setpoint_programs::failure::Failure;
use setpoint_programs::imposed::Imposing;
use setpoint_programs::languages::compilation::Compilation;
use setpoint_programs::languages::evaluation::{Woken, no_value};
use setpoint_programs::languages::included_models::News;
use setpoint_programs::report::Importance;
use setpoint_resources::ProgramFile;
use setpoint_value::Capabilities;

use super::findings::{Findings, Situation, Words};
use crate::messages::Message;
use crate::program_state::Unknown;
use crate::surroundings::Surroundings;

/// A running program. Dropping it closes its sources.
pub(super) struct Program {
    number: u64,
    woken: Woken,
    stop: Stop,
    /// Says, by being disconnected, that the thread has ended.
    running: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

/// After this time a message lists the first values that are missing.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long the end of everything waits for the call that is being computed to come to an end.
const PATIENCE_AT_END: Duration = Duration::from_secs(2);

/// What the engine was given by the programs of a run. It listens to the newest that has given it a graph.
#[derive(Default)]
pub(super) struct Gate {
    given: Mutex<Given>,
    /// The number of that program, for who cannot wait until a graph is taken.
    newest: AtomicU64,
}

#[derive(Default)]
struct Given {
    /// The number of that program.
    program: u64,
    /// How many graphs there were, of all programs: each program counts its own from the beginning, and the engine takes no graph
    /// that is older than the one that runs.
    graphs: u64,
}

/// What is said of a program that describes nothing: a truncated one would look healthy.
pub const NO_RESOURCES: &str = "the program describes no resources, so there is nothing to keep right";

/// Messages for a program that becomes wrong.
const WORDS: Words = Words {
    kept: "the machine is kept as the last good values want it, until the program recovers",
    recovered: "the program has recovered",
};

/// The program cannot go on; what is wrong with it was told.
struct Ended;

impl Program {
    /// Starts a compiled program. It tells when its first graph is accepted, or that there will be none.
    pub(super) fn start(
        number: u64,
        compilation: Compilation,
        surroundings: &Surroundings,
        gate: &Arc<Gate>,
        tell: Sender<Message>,
    ) -> Result<Program, Failure> {
        let machine = &surroundings.machine;
        let files = compilation.program_files(machine.state_of_programs())?;
        let listed = files.listed(&compilation.sources).into();
        let capabilities = machine.capabilities(files, surroundings.access)?;
        let woken = Woken::default();
        let mut work = Work {
            number,
            surroundings: surroundings.clone(),
            files: listed,
            gate: gate.clone(),
            tell,
            stop: Stop::default(),
            findings: Findings::new(WORDS),
            imposing: Imposing::new(compilation.imposed.clone(), compilation.deploy),
            has_graph: false,
        };
        let (waker, stop) = (woken.clone(), work.stop.clone());
        let (alive, running) = channel();
        let thread = std::thread::Builder::new()
            .name("program".to_owned())
            .spawn(move || {
                let _alive: Sender<()> = alive;
                if let Err(Ended) = work.evaluate(compilation, capabilities, &waker) {
                    let _ = work.tell.send(Message::Refused(number));
                }
            })
            .map_err(|error| Failure::io("start a thread for the program", &error))?;
        Ok(Program {
            number,
            woken,
            stop,
            running,
            thread: Some(thread),
        })
    }

    /// Its place in the order in which the programs of the run were started, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.stop.stop();
        self.woken.close();
        // A thread that is not done by then ends with the process.
        let ended = self.running.recv_timeout(PATIENCE_AT_END);
        if let (Some(thread), Err(RecvTimeoutError::Disconnected)) = (self.thread.take(), ended) {
            let _ = thread.join();
        }
    }
}

/// What the thread of a program works with.
struct Work {
    number: u64,
    surroundings: Surroundings,
    /// The files that it came with.
    files: Arc<[ProgramFile]>,
    gate: Arc<Gate>,
    tell: Sender<Message>,
    /// Ends what is being computed.
    stop: Stop,
    findings: Findings,
    imposing: Imposing,
    has_graph: bool,
}

impl Work {
    fn evaluate(
        &mut self,
        compilation: Compilation,
        capabilities: Arc<dyn Capabilities>,
        woken: &Woken,
    ) -> Result<(), Ended> {
        let engine = self.surroundings.engine.clone();
        let follow = self.surroundings.follow;
        let Some(mut runnable) = compilation.into_program() else {
            return Err(Ended);
        };
        let program = runnable.program.clone();
        let language = program.language;
        let (waking, busy) = (woken.clone(), engine.clone());
        let (gate, number) = (self.gate.clone(), self.number);
        let mut evaluator = Evaluator::new(
            program,
            capabilities,
            Box::new(move |source| {
                let (busy, gate) = (busy.clone(), gate.clone());
                // Nobody would take back what a program says whose place another one has taken.
                waking.wake_saying(source, move || {
                    if gate.newest.load(Ordering::Acquire) <= number {
                        busy.sources_busy(true);
                    }
                })
            }),
        )
        .stopped_by(self.stop.clone())
        .expanding(Arc::new(runnable.models.clone()));
        evaluator = self.surroundings.access.limit(evaluator);
        let limit = self.surroundings.first_values_within;
        let mut step = evaluator.step(&[]);
        let mut patience = Instant::now().checked_add(limit.unwrap_or(PATIENCE));
        loop {
            if self.stop.is_stopped() {
                return Ok(());
            }
            let pending = std::mem::take(&mut step.pending);
            // What holds is said when all of it is known.
            if step.is_finished {
                runnable.refresh();
                let news = runnable.models.news();
                self.note_unknown(&step, &runnable.program);
                self.take(step, language, &runnable.sources)?;
                News::report(&news, &self.surroundings.reporter);
            }
            if !evaluator.has_sources() || (self.has_graph && !follow) {
                engine.sources_busy(false);
                // Nothing will be computed any more: the engine has the graph, and whatever else the program is made of can go.
                drop((evaluator, runnable));
                woken.wait_for_close();
                return Ok(());
            }
            // A change that is still being read can make another graph.
            let is_busy = !pending.is_empty() || evaluator.is_reading();
            woken.if_quiet(|| engine.sources_busy(is_busy));
            let mut news = woken.wait(patience.filter(|_| !self.has_graph && !pending.is_empty()));
            if news.is_empty() && !woken.is_closed() {
                patience = None;
                if let Some(limit) = limit {
                    let late = pending.iter().map(|pending| no_value(language, pending, limit));
                    let mut all = Diagnostics::new();
                    all.extend(late);
                    self.surroundings.reporter.diagnostics(&all, &runnable.sources);
                    return Err(Ended);
                }
                let mut functions: Vec<String> = pending
                    .iter()
                    .map(|pending| format!("`{}`", pending.function))
                    .collect();
                functions.dedup();
                let text = format!("waiting for the first value of {}", functions.join(", "));
                self.surroundings.reporter.say(Importance::Notice, text);
                news = woken.wait(None);
            }
            if woken.is_closed() {
                return Ok(());
            }
            step = evaluator.step(&news);
        }
    }

    /// Keeps the parts of a step that are not known, for who makes a plan.
    fn note_unknown(&self, step: &Step, program: &setpoint_flow::Program) {
        if self.surroundings.access == SourceAccess::Change {
            return;
        }
        let blocks = step.unknown.iter().filter(|part| part.what == UnknownWhat::Block);
        let resources = blocks.flat_map(|block| {
            let possible = program.possible_resources(block.span).into_iter();
            possible.map(|resource| (block.span, resource))
        });
        self.surroundings.state.set_unknown(Unknown {
            resources: resources.collect(),
            parts: step.unknown.clone(),
        });
    }

    /// Hands on what a step gave.
    fn take(&mut self, step: Step, language: &dyn Language, sources: &SourceMap) -> Result<(), Ended> {
        let mut found = step.diagnostics;
        // What a loop or class comes to in each round is one mistake.
        found.merge(sources);
        let unreadable = language.code(&Problem::BadCollect(CollectProblem::Unreadable));
        let lacks_collected = found.iter().any(|one| one.code.code == unreadable.code);
        self.surroundings
            .lacks_collected
            .store(lacks_collected, Ordering::Relaxed);
        let mut is_rejected = false;
        if let Some(graph) = step.graph.filter(|_| !found.has_errors()) {
            match self.submit(graph, sources) {
                Handed::Taken => {}
                Handed::Rejected(rejected) => {
                    is_rejected = true;
                    found.extend(rejected.into_iter().map(|finding| finding.tell(language)));
                }
                Handed::Overtaken => return Ok(()),
            }
        }
        let ends = found.has_errors() && !self.has_graph;
        let situation = Situation {
            has_graph: self.has_graph,
            // A new text that never has a graph leaves the machine to the one before.
            is_kept: self.has_graph || self.number > 1,
            is_rejected,
        };
        self.findings
            .report(found, Diagnostics::clone, sources, situation, &self.surroundings);
        if ends { Err(Ended) } else { Ok(()) }
    }

    /// Gives the engine a graph.
    fn submit(&mut self, graph: DesiredGraph, sources: &SourceMap) -> Handed {
        let Surroundings {
            engine,
            machine,
            reporter,
            state,
            ..
        } = &self.surroundings;
        let is_empty = graph.resources.is_empty() && graph.hidden.is_empty();
        // Held until the answer is there: no graph of an older program comes after one of a newer.
        let mut given = self.gate.given.lock();
        if given.program > self.number {
            return Handed::Overtaken;
        }
        given.graphs += 1;
        let mut graph = self.imposing.impose(graph);
        graph.generation = given.graphs;
        // Its resources find its files from their first run on.
        let before = machine.running_files.replace(Some(self.files.clone()));
        match engine.submit(graph.clone()).blocking_recv() {
            Ok(Submitted::Accepted | Submitted::Superseded) => {
                given.program = self.number;
                self.gate.newest.store(self.number, Ordering::Release);
                state.accept(graph, sources, !self.has_graph, self.imposing.deploy());
                if !std::mem::replace(&mut self.has_graph, true) {
                    if is_empty {
                        reporter.warning(NO_RESOURCES);
                    }
                    let _ = self.tell.send(Message::Accepted(self.number));
                }
                Handed::Taken
            }
            Ok(Submitted::Rejected(rejected)) => {
                machine.running_files.replace(before);
                Handed::Rejected(rejected)
            }
            // The engine has ended; so does everything.
            Err(_) => Handed::Overtaken,
        }
    }
}

/// The result of giving the engine a graph.
enum Handed {
    Taken,
    /// The engine has said why.
    Rejected(Vec<Finding>),
    /// The engine has ended, or runs a newer program.
    Overtaken,
}
