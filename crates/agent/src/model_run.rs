//! A model at work: executed on a thread of its own, again whenever a file changes that it was made of, or a fact that it asked for, handing
//! graphs to the engine.
//!
//! ```text
//!  change of a file, of a fact, signal ──▶ this thread: execute, take what this machine keeps ──▶ engine.submit
//!                       ▲                                                                             │
//!                       └────────────────────── what resources publish ───────────────────────────────┘
//! ```
//!
//! Changes are collected for a moment. What is wrong with the first execution ends the run; afterwards it is told, the machine stays with
//! the newest good graph, and the next change is looked at again. A graph that is the same as before is not handed on.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use setpoint_diagnostics::{Diagnostics, Severity};
use setpoint_engine::Submitted;
use setpoint_host::sync::Mutex;
use setpoint_model::errors::told;
use setpoint_model::language::LANGUAGE;
use tokio::sync::Notify;

use crate::messages::{Message, Reloaded};
use crate::published_facts::PublishedFacts;
use crate::reload::{Programs, Watched};
use crate::surroundings::Surroundings;
use setpoint_programs::languages::included_programs::Evaluating;
use setpoint_programs::languages::model::{ModelCompilation, ModelWork};
use setpoint_programs::report::Importance;
use setpoint_programs::report::errors_first;

/// After so long a model is executed although its files still change.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// So long the first values of programs are waited for before the machine is kept without them; when they come, it is executed again.
const FIRST_VALUES: Duration = Duration::from_secs(1);

/// The same where it is not.
const ONLY_VALUES: Duration = Duration::from_secs(10);

/// Whether programs have news since the model was looked at. Clones are one and the same.
#[derive(Clone, Default)]
struct Bell(Arc<Mutex<bool>>);

impl Bell {
    /// There is news; this is done before anybody can take it.
    fn ring(&self, action: impl FnOnce()) {
        let mut has_news = self.0.lock();
        *has_news = true;
        action();
    }

    /// What there is to be taken in is taken in from here on.
    fn silence(&self) {
        *self.0.lock() = false;
    }

    /// Does this if there is none, and lets none come meanwhile.
    fn if_silent(&self, action: impl FnOnce()) {
        let has_news = self.0.lock();
        if !*has_news {
            action();
        }
    }
}

/// Starts a model that was compiled, and is right. `facts` are those that the engine's resources publish.
pub(crate) fn start(
    model: ModelWork,
    compilation: ModelCompilation,
    surroundings: Surroundings,
    facts: PublishedFacts,
) -> Programs {
    let (sender, receiver) = channel();
    let ended = Arc::new(Notify::new());
    surroundings.engine.sources_busy(true);
    surroundings.state.set_reload(sender.clone());
    let mut running = Running {
        watched: surroundings
            .follow
            .then(|| Watched::new(&surroundings.machine, sender.clone())),
        model,
        surroundings,
        facts,
        bell: Bell::default(),
        current: None,
        submitted: None,
        told: Diagnostics::new(),
        wrong_facts: None,
        printed: Vec::new(),
    };
    if running.surroundings.follow {
        running.facts.tell(sender.clone());
    }
    let (bell, asking) = (running.bell.clone(), running.surroundings.clone());
    let ring = asking.follow.then(|| sender.clone());
    let engine = asking.engine.clone();
    running.model.evaluate_programs(Evaluating {
        machine: asking.machine,
        effects: true,
        wait: if ring.is_some() { FIRST_VALUES } else { ONLY_VALUES },
        ring: Arc::new(move || {
            if let Some(sender) = &ring {
                bell.ring(|| {
                    engine.sources_busy(true);
                    let _ = sender.send(Message::Changed);
                });
            }
        }),
    });
    let ending = ended.clone();
    let work = move || {
        // What a process before left was not known when it was compiled, and programs were not evaluated.
        let compilation = match running.ask(&compilation) || running.model.has_programs() {
            true => running.compile(),
            false => compilation,
        };
        running.watch(&compilation);
        if running.take(&compilation) {
            running.current = Some(compilation);
            running.rest();
            running.serve(&receiver);
        } else {
            ending.notify_one();
            wait_for_close(&receiver);
        }
    };
    let thread = std::thread::Builder::new()
        .name("model".to_owned())
        .spawn(work)
        .ok();
    if thread.is_none() {
        ended.notify_one();
    }
    Programs::of(sender, ended, thread)
}

/// The run ends by itself; until then whoever asks for something is heard.
fn wait_for_close(messages: &Receiver<Message>) {
    while let Ok(message) = messages.recv() {
        if let Message::Close = message {
            return;
        }
    }
}

/// What is wrong, in a line each; none if nothing is.
fn errors_of(found: &Diagnostics) -> Option<String> {
    let errors = found.iter().filter(|found| found.severity == Severity::Error);
    let errors: Vec<&str> = errors.map(|found| found.message.as_str()).collect();
    (!errors.is_empty()).then(|| errors.join("\n"))
}

struct Running {
    model: ModelWork,
    surroundings: Surroundings,
    watched: Option<Watched>,
    facts: PublishedFacts,
    bell: Bell,
    /// The newest compilation.
    current: Option<ModelCompilation>,
    /// The generation of the graph that the engine has.
    submitted: Option<u64>,
    /// What is wrong, as it was told last.
    told: Diagnostics,
    /// What is wrong with the file of facts, as it was told last.
    wrong_facts: Option<String>,
    /// What the model printed the last time.
    printed: Vec<String>,
}

impl Running {
    fn serve(&mut self, messages: &Receiver<Message>) {
        // When the model is executed at the latest, and when if nothing more happens.
        let mut due: Option<(Instant, Instant)> = None;
        let mut settled = Duration::from_millis(50);
        loop {
            let message = match due {
                None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some((latest, quiet)) => {
                    messages.recv_timeout(latest.min(quiet).saturating_duration_since(Instant::now()))
                }
            };
            match message {
                Ok(Message::Changed) => {
                    let now = Instant::now();
                    let latest = due.map_or(now + LONGEST_WAIT, |(latest, _)| latest);
                    due = Some((latest, now + settled));
                }
                Ok(Message::Reload(answer)) => {
                    // Whoever asks may know better.
                    self.current = None;
                    self.surroundings.state.begin_reload();
                    (due, settled) = (None, self.execute());
                    self.surroundings.state.end_reload();
                    if let Some(answer) = answer {
                        let reloaded = match errors_of(&self.told) {
                            Some(wrong) => Reloaded::Rejected(wrong),
                            None => Reloaded::Accepted,
                        };
                        let _ = answer.send(reloaded);
                    }
                }
                Err(RecvTimeoutError::Timeout) => (due, settled) = (None, self.execute()),
                Ok(Message::Accepted(_) | Message::Take(_) | Message::Refused(_)) => {}
                Ok(Message::Close) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Executes the model anew. Answers for how long changes are collected from now on.
    fn execute(&mut self) -> Duration {
        self.surroundings.engine.sources_busy(true);
        let compilation = self.compile();
        let settled = compilation.compiled.checked.project.settings.debounce;
        self.watch(&compilation);
        self.take(&compilation);
        self.current = Some(compilation);
        self.rest();
        settled
    }

    /// Compiles the model with all that is known of what it asks for.
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
            // It is given what it asks for. With that it may ask for more, as long as there is more.
            if !self.ask(&compilation) {
                return compilation;
            }
            before = Some(compilation);
        }
    }

    /// Reads the file of facts anew. What is wrong with it is told when it begins to be, also to those who follow events.
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

    /// Notes which facts the model asks for. Answers whether more of them is known than it was given.
    fn ask(&self, compilation: &ModelCompilation) -> bool {
        self.facts
            .ask(compilation.asked_facts(), &self.model.given_facts())
    }

    /// Leaves facts to the next process. If there is no news, the machine may count as right.
    fn rest(&self) {
        if let Err(failure) = self.facts.leave(&self.surroundings.machine.host) {
            self.surroundings.reporter.failure(&failure);
        }
        // What is waited for rings.
        if self.surroundings.follow && self.model.waits_for_programs() {
            return;
        }
        let engine = &self.surroundings.engine;
        self.facts
            .rest(|| self.bell.if_silent(|| engine.sources_busy(false)));
    }

    /// Hands on what an execution gave. Answers whether that was possible.
    fn take(&mut self, compilation: &ModelCompilation) -> bool {
        let reporter = &self.surroundings.reporter;
        let mut found = errors_first(&compilation.diagnostics);
        if let Some(execution) = &compilation.compiled.execution
            && execution.printed != self.printed
        {
            for line in &execution.printed {
                reporter.say(Importance::Info, line.clone());
            }
            self.printed.clone_from(&execution.printed);
        }
        // The engine tells itself what it rejects.
        let mut engine_told = false;
        if let Some(desired) = compilation.desired.as_ref().filter(|_| !found.has_errors()) {
            let is_new = self.submitted != Some(desired.graph.generation);
            let generation = desired.graph.generation;
            if is_new {
                let is_empty = desired.graph.resources.is_empty();
                match self
                    .surroundings
                    .engine
                    .submit(desired.graph.clone())
                    .blocking_recv()
                {
                    Ok(Submitted::Accepted | Submitted::Superseded) => {
                        let sources = self.model.shown_sources();
                        self.surroundings
                            .state
                            .accept(desired.graph.clone(), &sources, true, None);
                        if is_empty && self.submitted.is_none() {
                            let machine = self.model.hostname();
                            reporter.warning(format!(
                                "the model describes no resources of the machine `{machine}` that can be applied, so there is nothing to keep right"
                            ));
                        }
                        if self.submitted.replace(generation).is_some() {
                            reporter.say(Importance::Notice, "the model was executed again");
                        }
                        desired.say_held(reporter);
                        if let Err(failure) = self.model.store(&compilation.compiled) {
                            reporter.failure(&failure);
                        }
                    }
                    Ok(Submitted::Rejected(rejected)) => {
                        engine_told = true;
                        found.extend(rejected.into_iter().map(|finding| finding.tell(&LANGUAGE)));
                    }
                    // The engine has ended; so does everything.
                    Err(_) => return true,
                }
            }
        }
        // What is still wrong was told when it began to be.
        if found != self.told {
            self.surroundings
                .reporter
                .diagnostics(&told(&found), &self.model.shown_sources());
            if found.has_errors() && self.submitted.is_some() {
                if !engine_told {
                    let messages: Vec<&str> = found.iter().map(|found| found.message.as_str()).collect();
                    self.surroundings.engine.reject(messages.join("\n"));
                }
                let text =
                    "the machine is kept as the last good execution wants it, until the model recovers";
                reporter.say(Importance::Warning, text);
            }
            if !found.has_errors() && self.told.has_errors() {
                reporter.say(Importance::Notice, "the model has recovered");
            }
        }
        let is_right = !found.has_errors();
        self.surroundings.state.set_wrong(errors_of(&found));
        self.told = found;
        is_right
    }

    /// Watches the files that an execution was made of.
    fn watch(&mut self, compilation: &ModelCompilation) {
        let Some(watched) = &mut self.watched else { return };
        let facts = self.model.facts_file().map(PathBuf::from);
        let files: Vec<PathBuf> = compilation
            .files()
            .map(|name| PathBuf::from(self.model.shown(&name)))
            .chain(facts)
            .filter_map(|path| std::path::absolute(path).ok())
            .chain(self.model.program_files())
            .collect();
        if let Some(why) = watched.follow(files, compilation.diagnostics.has_errors()) {
            let text = format!("changes of the model may not be seen: {why}");
            self.surroundings.reporter.warning(text);
        }
    }
}
