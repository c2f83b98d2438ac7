//! Models, as a frontend. The runner's thread executes a model again after a change of a file of the model, or of a fact that the model uses.
//!
//! ```text
//!  change of a file, of a fact, signal ──▶ runner: execute, take what this machine keeps ──▶ engine.submit
//!                       ▲                                                                             │
//!                       └────────────────────── what resources publish ───────────────────────────────┘
//! ```
//!
//! The runner waits until changes settle. An error in the first execution ends the run. After a later error, the machine keeps the newest valid
//! graph until the next change. The engine does not get a graph that equals the one before.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use setpoint_cf::errors::told;
use setpoint_cf::export::LANGUAGE;
use setpoint_diagnostics::Diagnostics;
use setpoint_engine::Submitted;
use setpoint_host::sync::Mutex;
use setpoint_programs::languages::included_programs::Evaluating;
use setpoint_programs::languages::model::{Desired, ModelCompilation, ModelWork};
use setpoint_programs::report::{Importance, errors_first};

use super::findings::{Findings, Situation, Words};
use super::{Frontend, Reading};
use crate::messages::Message;
use crate::published_facts::PublishedFacts;
use crate::surroundings::Surroundings;

/// How long the first execution waits for values of included programs. Later values execute the model again.
const FIRST_VALUES: Duration = Duration::from_secs(1);

/// The same if later values change nothing.
const ONLY_VALUES: Duration = Duration::from_secs(10);

/// Whether included programs have news since the last execution. Clones share it.
#[derive(Clone, Default)]
struct Bell(Arc<Mutex<bool>>);

impl Bell {
    /// Notes news, and does this before the runner can take it.
    fn ring(&self, action: impl FnOnce()) {
        let mut has_news = self.0.lock();
        *has_news = true;
        action();
    }

    /// The next execution takes all news up to now.
    fn silence(&self) {
        *self.0.lock() = false;
    }

    /// Does this if there is no news, and holds news back while it does.
    fn if_silent(&self, action: impl FnOnce()) {
        let has_news = self.0.lock();
        if !*has_news {
            action();
        }
    }
}

/// Messages for a model that becomes wrong.
const WORDS: Words = Words {
    kept: "the machine is kept as the last good execution wants it, until the model recovers",
    recovered: "the model has recovered",
};

/// The default time without changes before a model is executed.
const SETTLED: Duration = Duration::from_millis(50);

/// A model.
pub(crate) struct ModelFrontend {
    model: ModelWork,
    surroundings: Surroundings,
    facts: PublishedFacts,
    bell: Bell,
    /// The compilation from before the run, until it begins.
    first: Option<ModelCompilation>,
    /// The newest compilation.
    current: Option<ModelCompilation>,
    /// The generation of the graph that the engine has.
    submitted: Option<u64>,
    findings: Findings,
    /// The problem of the file of facts, as last reported.
    wrong_facts: Option<String>,
    /// The output of the last execution.
    printed: Vec<String>,
}

impl ModelFrontend {
    /// With a first compilation, which is right. `facts` are those that the engine's resources publish.
    pub(crate) fn new(
        mut model: ModelWork,
        compilation: ModelCompilation,
        surroundings: Surroundings,
        facts: PublishedFacts,
        sender: &Sender<Message>,
    ) -> ModelFrontend {
        let bell = Bell::default();
        let ring = surroundings.follow.then(|| sender.clone());
        if let Some(sender) = &ring {
            facts.tell(sender.clone());
        }
        let (ringing, engine) = (bell.clone(), surroundings.engine.clone());
        model.evaluate_programs(Evaluating {
            machine: surroundings.machine.clone(),
            access: surroundings.access,
            wait: if ring.is_some() { FIRST_VALUES } else { ONLY_VALUES },
            ring: Arc::new(move || {
                if let Some(sender) = &ring {
                    ringing.ring(|| {
                        engine.sources_busy(true);
                        let _ = sender.send(Message::Changed);
                    });
                }
            }),
        });
        ModelFrontend {
            model,
            surroundings,
            facts,
            bell,
            first: Some(compilation),
            current: None,
            submitted: None,
            findings: Findings::new(WORDS),
            wrong_facts: None,
            printed: Vec::new(),
        }
    }

    /// Uses a compilation, unless it is wrong.
    fn follow(&mut self, compilation: ModelCompilation) -> Reading {
        let reading = match self.take(&compilation) {
            Ok(()) => Reading::Accepted,
            Err(why) => Reading::Rejected(why),
        };
        self.current = Some(compilation);
        reading
    }

    /// Compiles the model with all known facts that it uses.
    fn compile(&mut self) -> ModelCompilation {
        let mut before = self.current.take();
        self.bell.silence();
        self.reread_facts();
        loop {
            self.model.give_facts(self.facts.take());
            let compilation = match before.take() {
                Some(before) => self.model.update(before),
                None => self.model.compile(),
            };
            // With more facts, the model can ask for further ones.
            if !self.ask(&compilation) {
                return compilation;
            }
            before = Some(compilation);
        }
    }

    /// Reads the file of facts again. Reports a problem once, also as an event.
    fn reread_facts(&mut self) {
        let reporter = &self.surroundings.reporter;
        match self.model.reread_facts() {
            Ok(()) => {
                if self.wrong_facts.take().is_some() {
                    reporter.say(Importance::Notice, "the file of facts can be read again");
                }
            }
            Err(failure) => {
                let text = failure.to_string();
                if self.wrong_facts.as_ref() != Some(&text) {
                    reporter.failure(&failure);
                    let kept = "the model is executed with the facts that it held before";
                    reporter.say(Importance::Warning, kept);
                    self.surroundings.engine.reject(text.clone());
                    self.wrong_facts = Some(text);
                }
            }
        }
    }

    /// Notes which facts the model uses. Returns whether more of them are known than the model got.
    fn ask(&self, compilation: &ModelCompilation) -> bool {
        self.facts
            .ask(compilation.asked_facts(), &self.model.given_facts())
    }

    /// Saves facts for the next process. Without news, the sources are idle.
    fn rest(&self) {
        if let Err(failure) = self.facts.leave(&self.surroundings.machine.host) {
            self.surroundings.reporter.failure(&failure);
        }
        // A program that has no value yet will ring.
        if self.surroundings.follow && self.model.waits_for_programs() {
            return;
        }
        let engine = &self.surroundings.engine;
        self.facts
            .rest(|| self.bell.if_silent(|| engine.sources_busy(false)));
    }

    /// Gives the engine the graph of an execution, and reports problems.
    ///
    /// # Errors
    /// The errors of the execution, which were reported.
    fn take(&mut self, compilation: &ModelCompilation) -> Result<(), String> {
        self.print(compilation);
        let mut found = errors_first(&compilation.diagnostics);
        let mut is_rejected = false;
        if let Some(desired) = compilation.desired.as_ref().filter(|_| !found.has_errors())
            && self.submitted != Some(desired.graph.generation)
        {
            match self.submit(compilation, desired) {
                Ok(rejected) => {
                    is_rejected = rejected.has_errors();
                    found.append(rejected);
                }
                // The engine has ended.
                Err(EngineEnded) => return Ok(()),
            }
        }
        let has_graph = self.submitted.is_some();
        let situation = Situation {
            has_graph,
            is_kept: has_graph,
            is_rejected,
        };
        let sources = self.model.shown_sources();
        self.findings
            .report(found, told, &sources, situation, &self.surroundings);
        self.findings.errors().map_or(Ok(()), Err)
    }

    /// Prints the output of the model, unless it is the same as last time.
    fn print(&mut self, compilation: &ModelCompilation) {
        if let Some(execution) = &compilation.compiled.execution
            && execution.printed != self.printed
        {
            for line in &execution.printed {
                self.surroundings.reporter.say(Importance::Info, line.clone());
            }
            self.printed.clone_from(&execution.printed);
        }
    }

    /// Gives the engine a graph. Returns why the engine rejects it, which the engine has reported.
    fn submit(
        &mut self,
        compilation: &ModelCompilation,
        desired: &Desired,
    ) -> Result<Diagnostics, EngineEnded> {
        let Surroundings {
            engine,
            reporter,
            state,
            ..
        } = &self.surroundings;
        let mut found = Diagnostics::new();
        match engine.submit(desired.graph.clone()).blocking_recv() {
            Ok(Submitted::Accepted | Submitted::Superseded) => {
                let sources = self.model.shown_sources();
                state.accept(desired.graph.clone(), &sources, true, None);
                let is_first = self.submitted.replace(desired.graph.generation).is_none();
                if desired.graph.resources.is_empty() && is_first {
                    let machine = self.model.hostname();
                    reporter.warning(format!(
                        "the model describes no resources of the machine `{machine}` that can be applied, so there is nothing to keep right"
                    ));
                }
                if !is_first {
                    reporter.say(Importance::Notice, "the model was executed again");
                }
                desired.say_held(reporter);
                if let Err(failure) = self.model.store(&compilation.compiled) {
                    reporter.failure(&failure);
                }
            }
            Ok(Submitted::Rejected(rejected)) => {
                found.extend(rejected.into_iter().map(|finding| finding.tell(&LANGUAGE)));
            }
            Err(_) => return Err(EngineEnded),
        }
        Ok(found)
    }
}

struct EngineEnded;

impl Frontend for ModelFrontend {
    fn begin(&mut self) -> Reading {
        let Some(first) = self.first.take() else {
            return Reading::Same;
        };
        // The first compilation had no facts of an earlier process, and no values of programs.
        let compilation = match self.ask(&first) || self.model.has_programs() {
            true => self.compile(),
            false => first,
        };
        let reading = self.follow(compilation);
        if let Reading::Accepted = reading {
            self.rest();
        }
        reading
    }

    fn read(&mut self, is_asked: bool) -> Reading {
        if is_asked {
            // The user can know of changes that no watch reports.
            self.current = None;
        }
        self.surroundings.engine.sources_busy(true);
        let compilation = self.compile();
        let reading = self.follow(compilation);
        self.rest();
        reading
    }

    fn files(&self) -> Vec<PathBuf> {
        let facts = self.model.facts_file().map(PathBuf::from);
        let files = self.current.iter().flat_map(ModelCompilation::files);
        files
            .map(|name| PathBuf::from(self.model.shown(&name)))
            .chain(facts)
            .filter_map(|path| std::path::absolute(path).ok())
            .chain(self.model.program_files())
            .collect()
    }

    fn is_wrong(&self) -> bool {
        let current = self.current.as_ref();
        current.is_some_and(|current| current.diagnostics.has_errors())
    }

    fn settle(&self) -> Duration {
        let current = self.current.as_ref();
        current.map_or(SETTLED, |current| {
            current.compiled.checked.project.settings.debounce
        })
    }
}
