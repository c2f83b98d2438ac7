//! What a person or a program sees of a run, made of the engine's events.
//!
//! ```text
//!  engine ── ring of events ─┬▶ people: a thread that writes standard error ◀── queue ── everybody who has something to say
//!                            └▶ json:   a thread that writes standard output ◀── queue ── diagnostics, the end
//! ```
//!
//! Each thread may be held by whoever reads it (a full pipe, a stopped terminal) and holds nobody in turn: the ring and the queues are
//! bounded, what found no room is counted and told as a gap, and at the end nobody waits for a thread that does not get on.

mod journal;
mod json;
mod lines;
mod people;
mod progress;
mod recap;
mod schema;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel as plain_channel};
use std::time::{Duration, Instant};

use setpoint_agent::attachment::{AgentHandle, Attached, Attachment};
use setpoint_programs::Assembly;
use setpoint_programs::failure::Failure;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Sender, channel};

use crate::output::{End, Output, Prefix, ToView, ViewQueues};
pub(crate) use json::{Reason, SCHEMA, ToJson};
pub(crate) use lines::Narrator;
use people::Screen;
pub(crate) use recap::span_text;
pub(crate) use schema::lines_schema;

/// How much a person wants to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verbosity {
    /// Errors and warnings, and what the program wants shown.
    Quiet,
    /// And what was changed, and how it ended.
    Normal,
    /// And why something is looked at, and what is right.
    Verbose,
    /// And every step of the engine.
    Debug,
}

/// What is shown, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ViewOptions {
    /// Whether events are printed as JSON on standard output; people then only see what goes wrong.
    pub(crate) json: bool,
    /// How much people see.
    pub(crate) verbosity: Verbosity,
    /// Whether what is pending at the end is forgotten, because its directory goes away.
    pub(crate) forgets: bool,
    /// Whether the run stays when the machine is right: its lines carry the time then.
    pub(crate) stays: bool,
}

/// Messages that may wait for a thread of a view.
const QUEUE: usize = 256;

/// How long the end waits for a reader that takes nothing.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long the end waits in all.
const LONGEST_END: Duration = Duration::from_secs(10);

/// The views of one run. Whatever the command says goes through them while they are there.
pub(crate) struct View {
    output: Output,
    people: Shower,
    tell: Sender<ToView>,
    json: Option<(Shower, Sender<ToJson>)>,
}

impl View {
    /// Shows what the command says from now on.
    pub(crate) fn start(assembly: &Assembly, output: &Output, options: ViewOptions) -> View {
        let prefix = if options.stays {
            Prefix::of_staying()
        } else {
            Prefix::of_error_stream()
        };
        let screen = Screen::new(assembly, options, prefix);
        let (tell, told) = channel(QUEUE);
        let lost = output.clone();
        let people = Shower::start("view", move |progress| {
            people::show(told, &lost, screen, progress);
        });
        let json = options.json.then(|| {
            let (send, receive) = channel(QUEUE);
            let warn = output.clone();
            (
                Shower::start("json", move |progress| json::show(receive, &warn, progress)),
                send,
            )
        });
        output.set_view(Some(ViewQueues {
            people: tell.clone(),
            json: json.as_ref().map(|(_, json)| json.clone()),
        }));
        View {
            output: output.clone(),
            people,
            tell,
            json,
        }
    }

    /// The attachment that shows the events of an engine.
    pub(crate) fn following(&self) -> Following {
        match &self.json {
            Some((_, json)) => Following::Json(json.clone()),
            None => Following::People(self.tell.clone()),
        }
    }

    /// Shows what is still on its way and then the end; the engine must have ended. Answers whether everything that was asked for
    /// could be written. Waits for nobody who takes nothing.
    pub(crate) fn finish(self, end: End, reason: Reason, exit_code: u8) -> bool {
        let deadline = Instant::now() + LONGEST_END;
        self.output.set_view(None);
        let mut written = true;
        if let Some((shower, json)) = self.json {
            shower.hand(&json, ToJson::End { reason, exit_code }, deadline);
            drop(json);
            written = shower.finish(deadline);
        }
        self.people.hand(&self.tell, ToView::End(end), deadline);
        drop(self.tell);
        // A reader that is slow may still read the lines; one that is gone cannot.
        let people = self.people.progress.clone();
        self.people.finish(deadline);
        written && !people.failed.load(Ordering::Relaxed)
    }
}

/// Shows the events of an engine from when it is attached.
pub(crate) enum Following {
    Json(Sender<ToJson>),
    People(Sender<ToView>),
}

impl Attachment for Following {
    fn start(self: Box<Self>, agent: &AgentHandle) -> Result<Attached, Failure> {
        let events = agent.engine.events();
        // The queues are empty but for a few lines at the start.
        match *self {
            Following::Json(json) => drop(json.try_send(ToJson::Follow(events))),
            Following::People(people) => drop(people.try_send(ToView::Follow(events))),
        }
        Ok(Attached::EndsWithEngine)
    }
}

/// A thread that writes what it is told.
struct Shower {
    ended: Receiver<()>,
    progress: Arc<Written>,
}

/// How a writing thread gets on.
#[derive(Default)]
struct Written {
    /// Rises with every write that came to its end.
    writes: AtomicU64,
    /// Whether something could not be written.
    failed: AtomicBool,
}

impl Written {
    fn count(&self) {
        self.writes.fetch_add(1, Ordering::Relaxed);
    }

    fn fail(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    fn note(&self, written: std::io::Result<()>) {
        match written {
            Ok(()) => self.count(),
            Err(_) => self.fail(),
        }
    }
}

impl Shower {
    fn start(name: &str, show: impl FnOnce(&Written) + Send + 'static) -> Shower {
        let (sender, ended) = plain_channel();
        let progress = Arc::new(Written::default());
        let mine = progress.clone();
        let work = move || {
            show(&mine);
            drop(sender);
        };
        // Without a thread nothing is shown, and what is sent to it finds its queue closed.
        let _ = std::thread::Builder::new().name(name.to_owned()).spawn(work);
        Shower { ended, progress }
    }

    /// Queues a last message, waiting for room as long as the thread gets on.
    fn hand<T>(&self, queue: &Sender<T>, message: T, deadline: Instant) {
        let mut waiting = Some(message);
        self.wait(deadline, || {
            if let Some(message) = waiting.take()
                && let Err(TrySendError::Full(back)) = queue.try_send(message)
            {
                waiting = Some(back);
            }
            waiting.is_none()
        });
    }

    /// Waits for the end of the thread, as long as it gets on. Answers whether all was written.
    fn finish(self, deadline: Instant) -> bool {
        let has_ended = || matches!(self.ended.try_recv(), Err(TryRecvError::Disconnected));
        self.wait(deadline, has_ended) && !self.progress.failed.load(Ordering::Relaxed)
    }

    /// Waits until something holds. Gives up when the thread writes nothing for too long.
    fn wait(&self, deadline: Instant, mut holds: impl FnMut() -> bool) -> bool {
        let (mut writes, mut since) = (0, Instant::now());
        loop {
            if holds() {
                return true;
            }
            // Ends at once when the thread does.
            let ended = self.ended.recv_timeout(Duration::from_millis(10));
            if matches!(ended, Err(RecvTimeoutError::Disconnected)) {
                return holds();
            }
            let now = Instant::now();
            let newest = self.progress.writes.load(Ordering::Relaxed);
            if std::mem::replace(&mut writes, newest) != newest {
                since = now;
            }
            if now >= deadline || now - since >= PATIENCE {
                return false;
            }
        }
    }
}
