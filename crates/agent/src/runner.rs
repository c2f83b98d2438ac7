//! The runner: it reads the agent's program again after a request or a change of its files.
//!
//! ```text
//!  signal, request, change of a file ──▶ this thread: Frontend::read ──▶ graphs ──▶ engine
//! ```
//!
//! A `Frontend` knows a language: what the runner reads, and when graphs come. mcl and YAML are read into a program that evaluates on a thread of its
//! own; a model is executed on this thread. A new text takes the place of the old one only when the engine has accepted a graph of it.

mod evaluation;
mod findings;
mod models;
mod programs;
mod watched;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use setpoint_programs::failure::Failure;
use setpoint_programs::languages::compilation::ProgramSource;
use tokio::sync::Notify;

use crate::messages::{Message, ReloadAnswer, Reloaded};
use crate::surroundings::Surroundings;

pub use evaluation::NO_RESOURCES;
pub(crate) use models::ModelFrontend;
pub(crate) use programs::ProgramFrontend;
use watched::Watched;

/// The longest wait for files that keep changing.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// A program in some language, which the runner reads again and again.
pub(crate) trait Frontend: Send {
    /// Begins with what was compiled before the run.
    fn begin(&mut self) -> Reading;

    /// Reads the program again: after a request, or after a change of a file or of another input.
    fn read(&mut self, is_asked: bool) -> Reading;

    /// Replaces the program at the next reading. Only deploys do that, and models cannot be deployed.
    fn replace(&mut self, _: ProgramSource) {}

    /// The program of this number, which was started by a reading, has its first graph in place.
    fn accepted(&mut self, _: u64) {}

    /// The program of this number cannot go on. Returns whether another one still runs.
    fn refused(&mut self, _: u64) -> bool {
        true
    }

    /// The files that the newest reading read, as absolute paths.
    fn files(&self) -> Vec<PathBuf>;

    /// Whether something was wrong with the newest reading, so that a file may be missing.
    fn is_wrong(&self) -> bool;

    /// How long files must be left alone before they are read again: editors write several times.
    fn settle(&self) -> Duration;
}

/// The result of a reading.
pub(crate) enum Reading {
    /// The text is the same as before.
    Same,
    /// The program is not a file, so the runner cannot read it again.
    NotAFile,
    /// A program of this number was started; it will be accepted or refused.
    Started(u64),
    /// It is in use.
    Accepted,
    /// The text is wrong, for this reason. The frontend has reported it.
    Rejected(String),
}

/// The program of a run, in the hands of the runner. Dropping it ends the program.
pub(crate) struct Programs {
    sender: Sender<Message>,
    ended: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl Programs {
    /// Runs a frontend, which is made with where to send messages. With `watch` it is read again when its files change.
    pub(crate) fn start(
        surroundings: Surroundings,
        watch: bool,
        frontend: impl FnOnce(Sender<Message>) -> Box<dyn Frontend>,
    ) -> Programs {
        let (sender, receiver) = channel();
        let ended = Arc::new(Notify::new());
        surroundings.engine.sources_busy(true);
        surroundings.state.set_reload(sender.clone());
        let frontend = frontend(sender.clone());
        let reporter = surroundings.reporter.clone();
        let mut runner = Runner {
            watched: watch.then(|| Watched::new(&surroundings.machine, sender.clone())),
            frontend,
            surroundings,
            ended: ended.clone(),
            newest: 0,
            asked: Vec::new(),
        };
        let work = move || {
            runner.begin();
            runner.serve(&receiver);
        };
        let thread = std::thread::Builder::new().name("runner".to_owned()).spawn(work);
        if let Err(error) = &thread {
            reporter.failure(&Failure::io("start a thread for the program", error));
            ended.notify_one();
        }
        Programs {
            sender,
            ended,
            thread: thread.ok(),
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

    /// Waits until the first program fails. It has reported why. A valid program never ends.
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

struct Runner {
    frontend: Box<dyn Frontend>,
    surroundings: Surroundings,
    watched: Option<Watched>,
    ended: Arc<Notify>,
    /// The number of the program that was started last.
    newest: u64,
    /// Waiting requests, each with the number of its program.
    asked: Vec<(u64, ReloadAnswer)>,
}

impl Runner {
    fn begin(&mut self) {
        let reading = self.frontend.begin();
        self.watch();
        match reading {
            Reading::Started(number) => self.newest = number,
            Reading::Rejected(_) => self.ended.notify_one(),
            Reading::Same | Reading::NotAFile | Reading::Accepted => {}
        }
    }

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
                Ok(Message::Changed) => {
                    let now = Instant::now();
                    let latest = due.map_or(now + LONGEST_WAIT, |(latest, _)| latest);
                    due = Some((latest, now + self.frontend.settle()));
                }
                Ok(Message::Reload(answer)) => {
                    due = None;
                    self.reload(answer);
                }
                Ok(Message::Take(source)) => {
                    due = None;
                    self.frontend.replace(*source);
                    self.reload(None);
                }
                Err(RecvTimeoutError::Timeout) => {
                    due = None;
                    if let Reading::Started(number) = self.read(false) {
                        self.newest = number;
                    }
                }
                Ok(Message::Accepted(number)) => {
                    self.frontend.accepted(number);
                    self.answer(number, &Reloaded::Accepted);
                }
                Ok(Message::Refused(number)) => self.refused(number),
                Ok(Message::Close) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Reads the program again after a request.
    fn reload(&mut self, answer: Option<ReloadAnswer>) {
        self.surroundings.state.begin_reload();
        let reloaded = match self.read(true) {
            Reading::Started(number) => {
                self.newest = number;
                self.asked.extend(answer.map(|answer| (number, answer)));
                return;
            }
            Reading::Same | Reading::Accepted => Reloaded::Accepted,
            Reading::Rejected(why) => Reloaded::Rejected(why),
            Reading::NotAFile => Reloaded::NotAFile,
        };
        self.surroundings.state.end_reload();
        match (answer, reloaded) {
            (Some(answer), reloaded) => drop(answer.send(reloaded)),
            (None, Reloaded::NotAFile) => self
                .surroundings
                .reporter
                .warning("the program was not given as a file, so it cannot be read again"),
            (None, _) => {}
        }
    }

    fn read(&mut self, is_asked: bool) -> Reading {
        let reading = self.frontend.read(is_asked);
        if !matches!(reading, Reading::Same | Reading::NotAFile) {
            self.watch();
        }
        reading
    }

    fn refused(&mut self, number: u64) {
        let another_runs = self.frontend.refused(number);
        let wrong = self.surroundings.state.get().wrong;
        let wrong = wrong.unwrap_or_else(|| "it gives no graph".to_owned());
        self.answer(number, &Reloaded::Rejected(wrong));
        if !another_runs {
            self.ended.notify_one();
        }
    }

    /// Answers the requests for programs up to this number.
    fn answer(&mut self, number: u64, reloaded: &Reloaded) {
        let (answered, waiting): (Vec<_>, Vec<_>) = std::mem::take(&mut self.asked)
            .into_iter()
            .partition(|(of, _)| *of <= number);
        self.asked = waiting;
        if number == self.newest {
            self.surroundings.state.end_reload();
        }
        for (_, answer) in answered {
            let _ = answer.send(reloaded.clone());
        }
    }

    /// Watches the files of the newest reading.
    fn watch(&mut self) {
        let Some(watched) = &mut self.watched else { return };
        let (files, is_wrong) = (self.frontend.files(), self.frontend.is_wrong());
        if let Some(why) = watched.follow(files, is_wrong) {
            let text = format!("changes of the program may not be seen: {why}");
            self.surroundings.reporter.warning(text);
        }
    }
}
