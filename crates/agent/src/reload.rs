//! The program of a run, read again whenever that is asked for or its files change.
//!
//! ```text
//!  signal, change of a file ──▶ this thread: compile ──▶ Program (a thread that evaluates) ──▶ engine
//!                                        ◀── its first graph is accepted, or it is wrong ──┘
//! ```
//!
//! A program that is read again runs beside the old one until the engine has accepted its first graph; only then does the old one end.
//! What does not compile, or gives no graph, is told, and the machine is kept as the old program wants it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use setpoint_host::files::AbsolutePath;
use setpoint_host::sync::Mutex;
use setpoint_host::watch::{Depth, Follow, Subscriber, WatchEvent, WatchHandle, WatchSink, WatchToken};
use tokio::sync::Notify;

use crate::messages::{Message, ReloadAnswer, Reloaded};
use crate::program::{Gate, Program};
use crate::surroundings::Surroundings;
use setpoint_programs::languages::compilation::{Compilation, ProgramSource, Version};
use setpoint_programs::local_machine::LocalMachine;
use setpoint_programs::report::Importance;

/// A program's files have to be left alone for so long before they are read: an editor writes several times.
const SETTLED: Duration = Duration::from_millis(100);

/// After so long they are read although they still change.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// The programs of a run: one, or two while a new one takes over. Dropping it ends them.
pub(crate) struct Programs {
    sender: Sender<Message>,
    ended: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl Programs {
    /// Starts a compiled program. With `watch` it is read again by itself when its files change.
    pub(crate) fn start(
        source: ProgramSource,
        compilation: Compilation,
        surroundings: Surroundings,
        watch: bool,
    ) -> Programs {
        let (sender, receiver) = channel();
        let ended = Arc::new(Notify::new());
        surroundings.engine.sources_busy(true);
        surroundings.state.set_reload(sender.clone());
        let mut reloader = Reloader {
            source,
            surroundings,
            gate: Arc::default(),
            sender: sender.clone(),
            ended: ended.clone(),
            running: Vec::new(),
            newest: 0,
            version: compilation.version(),
            watched: None,
            asked: Vec::new(),
        };
        let work = move || {
            let (machine, sender) = (&reloader.surroundings.machine, reloader.sender.clone());
            reloader.watched = watch.then(|| Watched::new(machine, sender));
            reloader.watch();
            reloader.begin(compilation);
            reloader.serve(&receiver);
        };
        let thread = std::thread::Builder::new()
            .name("reload".to_owned())
            .spawn(work)
            .ok();
        if thread.is_none() {
            ended.notify_one();
        }
        Programs::of(sender, ended, thread)
    }

    /// Programs of this thread, which listens to messages, and notifies when it cannot go on.
    pub(crate) fn of(
        sender: Sender<Message>,
        ended: Arc<Notify>,
        thread: Option<JoinHandle<()>>,
    ) -> Programs {
        Programs {
            sender,
            ended,
            thread,
        }
    }

    /// Reads the program again.
    pub(crate) fn reload(&self) {
        let _ = self.sender.send(Message::Reload(None));
    }

    /// Has another program take the place of this one, once it has given a graph.
    pub(crate) fn take(&self, source: ProgramSource) {
        let _ = self.sender.send(Message::Take(Box::new(source)));
    }

    /// Waits until the first program cannot go on; what is wrong with it was told. A program that is right never ends by itself.
    pub(crate) async fn ended(&self) {
        self.ended.notified().await;
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        let _ = self.sender.send(Message::Close);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Reloader {
    source: ProgramSource,
    surroundings: Surroundings,
    gate: Arc<Gate>,
    sender: Sender<Message>,
    ended: Arc<Notify>,
    /// The oldest first.
    running: Vec<Program>,
    newest: u64,
    /// The newest, right or wrong.
    version: Version,
    watched: Option<Watched>,
    /// Who wants to know what becomes of the program of a number.
    asked: Vec<(u64, ReloadAnswer)>,
}

impl Reloader {
    fn serve(&mut self, messages: &Receiver<Message>) {
        // When the files are read at the latest, and when if nothing more happens.
        let mut due: Option<(Instant, Instant)> = None;
        loop {
            let message = match due {
                None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some((latest, quiet)) => {
                    messages.recv_timeout(latest.min(quiet).saturating_duration_since(Instant::now()))
                }
            };
            match message {
                Ok(Message::Reload(answer)) => {
                    due = None;
                    self.reload(true, answer);
                }
                Ok(Message::Changed) => {
                    let now = Instant::now();
                    let latest = due.map_or(now + LONGEST_WAIT, |(latest, _)| latest);
                    due = Some((latest, now + SETTLED));
                }
                Ok(Message::Take(source)) => {
                    due = None;
                    self.source = *source;
                    self.version.files.get_or_insert_default();
                    self.reload(true, None);
                }
                Ok(Message::Accepted(number)) => self.accepted(number),
                Ok(Message::Refused(number)) => self.refused(number),
                Err(RecvTimeoutError::Timeout) => {
                    due = None;
                    self.reload(false, None);
                }
                Ok(Message::Close) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Starts the newest compilation.
    fn begin(&mut self, compilation: Compilation) {
        self.newest += 1;
        let started = Program::start(
            self.newest,
            compilation,
            &self.surroundings,
            &self.gate,
            self.sender.clone(),
        );
        match started {
            Ok(program) => self.running.push(program),
            Err(failure) => {
                self.surroundings.reporter.failure(&failure);
                let _ = self.sender.send(Message::Refused(self.newest));
            }
        }
    }

    /// Reads the program again. Where nobody asked for it, it only counts if the text differs.
    fn reload(&mut self, asked: bool, answer: Option<ReloadAnswer>) {
        let reporter = &self.surroundings.reporter;
        let state = self.surroundings.state.clone();
        if asked {
            state.begin_reload();
        }
        if self.version.files.is_none() {
            match answer {
                Some(answer) => drop(answer.send(Reloaded::NotAFile)),
                None if asked => {
                    reporter.warning("the program was not given as a file, so it cannot be read again");
                }
                None => {}
            }
            state.end_reload();
            return;
        }
        let compilation = self.source.compile();
        let version = compilation.version();
        if !asked && version.texts == self.version.texts {
            return;
        }
        self.version = version;
        self.watch();
        let reporter = &self.surroundings.reporter;
        let found = &compilation.diagnostics;
        reporter.diagnostics(found, &compilation.shown_sources());
        if found.has_errors() {
            let messages: Vec<&str> = found.iter().map(|found| found.message.as_str()).collect();
            let messages = messages.join("\n");
            self.surroundings.engine.reject(messages.clone());
            self.say_kept();
            state.set_wrong(Some(messages.clone()));
            state.end_reload();
            if let Some(answer) = answer {
                let _ = answer.send(Reloaded::Rejected(messages));
            }
            return;
        }
        self.asked.extend(answer.map(|answer| (self.newest + 1, answer)));
        self.begin(compilation);
    }

    /// Answers those who asked what becomes of programs up to this number.
    fn answer(&mut self, number: u64, reloaded: &Reloaded) {
        let (answered, waiting) = std::mem::take(&mut self.asked)
            .into_iter()
            .partition(|(of, _)| *of <= number);
        self.asked = waiting;
        let answered: Vec<(u64, ReloadAnswer)> = answered;
        if number == self.newest {
            self.surroundings.state.end_reload();
        }
        for (_, answer) in answered {
            let _ = answer.send(reloaded.clone());
        }
    }

    fn say_kept(&self) {
        let text = "the new text is not used; the machine is kept as the program was before";
        self.surroundings.reporter.say(Importance::Warning, text);
    }

    fn accepted(&mut self, number: u64) {
        let is_first = number == 1;
        // Ends the others, waiting for a step that they may be amid.
        self.running.retain(|program| program.number() >= number);
        if !is_first {
            let reporter = &self.surroundings.reporter;
            reporter.say(Importance::Notice, "the program was read again");
        }
        self.answer(number, &Reloaded::Accepted);
    }

    fn refused(&mut self, number: u64) {
        self.running.retain(|program| program.number() != number);
        let wrong = self.surroundings.state.get().wrong;
        let wrong = wrong.unwrap_or_else(|| "it gives no graph".to_owned());
        self.answer(number, &Reloaded::Rejected(wrong));
        if self.running.is_empty() {
            self.ended.notify_one();
        } else {
            self.say_kept();
        }
    }

    /// Watches the files of the newest compilation.
    fn watch(&mut self) {
        let Some(watched) = &mut self.watched else { return };
        let files = self.version.files.clone().unwrap_or_default();
        if let Some(why) = watched.follow(files, self.version.has_errors) {
            let text = format!("changes of the program may not be seen: {why}");
            self.surroundings.reporter.warning(text);
        }
    }
}

/// The watches of a program's files.
pub(crate) struct Watched {
    subscriber: Subscriber,
    handles: Vec<((PathBuf, Depth), WatchHandle)>,
    sender: Sender<Message>,
}

impl Watched {
    /// Watches nothing yet. What changes is told as [`Message::Changed`].
    pub(crate) fn new(machine: &LocalMachine, sender: Sender<Message>) -> Watched {
        let told = sender.clone();
        let changed = Changed(Mutex::new(sender));
        let hub = &machine.host.watches;
        Watched {
            subscriber: hub.subscribe(Arc::new(changed)),
            handles: Vec::new(),
            sender: told,
        }
    }

    /// Watches the files that something was made of, and no others; where something is wrong, their directories too, as what is missing may
    /// come in any of them. Answers why something cannot be watched.
    pub(crate) fn follow(&mut self, files: Vec<PathBuf>, is_wrong: bool) -> Option<String> {
        let mut wanted: Vec<(PathBuf, Depth)> = Vec::new();
        if is_wrong {
            let directories = files.iter().filter_map(|file| file.parent());
            wanted.extend(directories.map(|directory| (directory.to_owned(), Depth::Children)));
        }
        wanted.extend(files.into_iter().map(|file| (file, Depth::Entry)));
        wanted.sort();
        wanted.dedup();
        let (failed, is_more) = self.set(wanted);
        if is_more {
            // They may have changed since they were read, before somebody watched.
            let _ = self.sender.send(Message::Changed);
        }
        failed
    }

    /// Watches these and no others. Answers why something cannot be watched, and whether there are new ones.
    fn set(&mut self, wanted: Vec<(PathBuf, Depth)>) -> (Option<String>, bool) {
        self.handles.retain(|(place, _)| wanted.contains(place));
        let (mut failed, before) = (None, self.handles.len());
        for (path, depth) in wanted {
            if self
                .handles
                .iter()
                .any(|((known, at), _)| *known == path && *at == depth)
            {
                continue;
            }
            let Ok(absolute) = AbsolutePath::new(path.clone()) else {
                continue;
            };
            match self
                .subscriber
                .watch(&absolute, depth, Follow::Target, WatchToken(0))
            {
                Ok(handle) => self.handles.push(((path, depth), handle)),
                Err(error) => failed = Some(error.to_string()),
            }
        }
        (failed, self.handles.len() > before)
    }
}

/// Passes news of watches on.
struct Changed(Mutex<Sender<Message>>);

impl WatchSink for Changed {
    fn dirty(&self, _: &[WatchEvent]) {
        let sender = self.0.lock();
        let _ = sender.send(Message::Changed);
    }
}
