//! Where everything arrives that the owner of the machine must know.
//!
//! Whoever has something to say puts it here. The owner has a thread, which takes what has arrived when nobody else does. But
//! where little has arrived and the owner is at rest, whoever brought it is the owner for a moment ([`Inbox::serve`]): an event
//! reaches a worker, and its answer the machine, without another thread being woken.
//!
//! It holds at most an answer for each question that the machine asked, one event a watch (a second one is the first), and
//! a bounded number of lines for the log.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashSet;
use setpoint_graph::{DesiredGraph, ResourceId};
use setpoint_host::sync::{Condvar, Mutex, MutexGuard, wait, wait_timeout};
use tokio::sync::oneshot;

use super::owner::Owner;
use crate::machine::VertexId;
use crate::machine::{Armed, Initialised, Input, KindCounts, StandingSet, Summary, VertexStatus};
use crate::prepare::Prepared;
use crate::{Failure, Level};

/// A watch of a vertex: its place and the number of the arming. What an ended one says is not heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct WatchId {
    pub(super) slot: u32,
    pub(super) arming: u32,
}

impl WatchId {
    pub(super) fn token(self) -> u64 {
        u64::from(self.slot) << 32 | u64::from(self.arming)
    }

    pub(super) fn from_token(token: u64) -> WatchId {
        WatchId {
            slot: (token >> 32) as u32,
            arming: token as u32,
        }
    }
}

/// Something the owner must know.
pub(super) enum Message {
    /// For the machine as it is.
    Input(Input),
    /// A graph that was prepared.
    Prepared(Box<Prepared>),
    InitEnded {
        vertex: VertexId,
        result: Result<Initialised, Failure>,
    },
    Armed(WatchId, Result<Armed, Failure>),
    WatchFailed(WatchId, Failure),
    /// With what it saw; none for a path, which its name says.
    WatchEvent(WatchId, Option<Arc<str>>),
    /// It was armed anew, on what received values say.
    Rearmed(WatchId),
    WatchLog(WatchId, Level, String),
    /// A kind's own task says that resources may be added.
    KindReady(&'static str),
    /// A kind's own task has ended.
    KindEnded(&'static str, Result<(), Failure>),
    /// Somebody wants to know how things are.
    Ask(Question),
}

/// What somebody wants to know, and where the answer goes.
pub(super) enum Question {
    /// How things are as a whole.
    Summary(oneshot::Sender<Summary>),
    /// Some of the resources that stand so, from this place on.
    Some(usize, StandingSet, oneshot::Sender<StatusPart>),
    /// How many of each kind stand how, from this place on, added to these; with the place at which to go on.
    Counts(usize, KindCounts, oneshot::Sender<(KindCounts, Option<usize>)>),
    /// These resources.
    Of(Vec<ResourceId>, oneshot::Sender<Vec<VertexStatus>>),
    /// The running graph.
    Graph(oneshot::Sender<Option<DesiredGraph>>),
}

/// How some of the resources are.
#[derive(Debug, Clone)]
pub struct StatusPart {
    /// They are, in no order.
    pub vertices: Vec<VertexStatus>,
    /// Where to go on, if there may be more.
    pub next: Option<usize>,
}

impl Message {
    /// How much is to be done for it, in resources. Stopping and telling the status go through all of them.
    fn weight(&self) -> usize {
        match self {
            Message::Prepared(prepared) => 1 + prepared.instances.len() + prepared.removed,
            Message::Input(Input::Stop { .. } | Input::Exit(_)) | Message::Ask(_) => MOST_IN_PASSING,
            _ => 1,
        }
    }
}

/// What is done in passing by whoever brings it, in resources; more is left to the owner's own thread.
const MOST_IN_PASSING: usize = 64;

/// Messages for which there is room while nothing happens.
pub(super) const MOST_SPARE: usize = 256;

/// Lines for the log that may wait.
const LOG_LINES: usize = 10_000;

#[derive(Default)]
struct Arrived {
    messages: Vec<Message>,
    /// Watches whose event is among the messages.
    events: FxHashSet<WatchId>,
    log_lines: usize,
    /// Of all messages together.
    weight: usize,
    /// Whether the owner's thread waits for messages.
    thread_sleeps: bool,
    /// When the owner must look although nothing has arrived.
    deadline: Option<Instant>,
    /// The owner has done everything; its thread takes it down.
    has_ended: bool,
}

#[derive(Default)]
pub(super) struct Inbox {
    state: Mutex<Arrived>,
    arrived: Condvar,
    /// The owner, at rest; none before the start, while it works, and after the end.
    owner: Mutex<Option<Owner>>,
}

impl Inbox {
    /// Puts a message in, for the owner's thread.
    pub(super) fn push(&self, message: Message) {
        self.push_all([message]);
    }

    /// Puts an input of the machine in, for the owner's thread.
    pub(super) fn input(&self, input: Input) {
        self.push(Message::Input(input));
    }

    /// Puts an input in without waking anybody: the owner takes it, in its order, with whatever it takes next.
    pub(super) fn note(&self, input: Input) {
        self.state.lock().put([Message::Input(input)]);
    }

    /// Puts messages in, for the owner's thread.
    pub(super) fn push_all(&self, messages: impl IntoIterator<Item = Message>) {
        let mut state = self.state.lock();
        state.put(messages);
        self.call(state);
    }

    /// Puts messages in, and is the owner for them if that is at rest and they are few. The caller holds no lock that the
    /// owner may want: of the pool, of a resource, of those who submit.
    pub(super) fn serve(&self, messages: impl IntoIterator<Item = Message>) {
        let mut state = self.state.lock();
        state.put(messages);
        if state.messages.is_empty() {
            return;
        }
        if state.weight <= MOST_IN_PASSING {
            drop(state);
            // Whoever holds it looks here again before going to rest.
            if let Some(mut place) = self.owner.try_lock() {
                self.work(&mut place);
            }
            state = self.state.lock();
        }
        self.call(state);
    }

    /// Wakes the owner's thread if there is something for it.
    fn call(&self, state: MutexGuard<'_, Arrived>) {
        let calls = state.thread_sleeps && !state.messages.is_empty();
        drop(state);
        if calls {
            self.arrived.notify_one();
        }
    }

    /// Lets the owner take what there is. Should that panic, there is no owner any more.
    fn work(&self, place: &mut Option<Owner>) {
        let Some(mut owner) = place.take_if(|owner| !owner.has_ended()) else {
            return;
        };
        let mut messages = std::mem::take(owner.spare());
        self.state.lock().take(&mut messages);
        owner.work(&mut messages);
        // What a burst needed is not kept.
        messages.shrink_to(MOST_SPARE);
        *owner.spare() = messages;
        let (deadline, has_ended) = (owner.deadline(), owner.has_ended());
        *place = Some(owner);
        let mut state = self.state.lock();
        state.has_ended = has_ended;
        let is_earlier = deadline.is_some_and(|at| state.deadline.is_none_or(|other| at < other));
        state.deadline = deadline;
        if (is_earlier || has_ended) && state.thread_sleeps {
            drop(state);
            self.arrived.notify_one();
        }
    }

    /// Serves with an owner on this thread, and takes it down at its end.
    #[expect(
        clippy::disallowed_methods,
        reason = "the engine's clock: only differences of it are used"
    )]
    pub(super) fn run(&self, owner: Owner) {
        let mut place = self.owner.lock();
        *place = Some(owner);
        // From the beginning on it is known when to look, whatever comes or does not.
        self.work(&mut place);
        drop(place);
        loop {
            let mut state = self.state.lock();
            while !state.has_ended && state.messages.is_empty() {
                let left = state
                    .deadline
                    .map(|at| at.saturating_duration_since(Instant::now()));
                if left == Some(Duration::ZERO) {
                    break;
                }
                state.thread_sleeps = true;
                state = match left {
                    None => wait(&self.arrived, state),
                    Some(left) => wait_timeout(&self.arrived, state, left).0,
                };
                state.thread_sleeps = false;
            }
            let has_ended = state.has_ended;
            drop(state);
            let mut place = self.owner.lock();
            if has_ended || place.is_none() {
                // None: it has panicked in somebody's hands.
                let owner = place.take();
                drop(place);
                if let Some(owner) = owner {
                    owner.end();
                }
                return;
            }
            self.work(&mut place);
        }
    }
}

impl Arrived {
    fn put(&mut self, messages: impl IntoIterator<Item = Message>) {
        for message in messages {
            match &message {
                Message::WatchEvent(watch, _) if !self.events.insert(*watch) => continue,
                Message::Input(Input::Log { .. }) | Message::WatchLog(..) => {
                    if self.log_lines >= LOG_LINES {
                        continue;
                    }
                    self.log_lines += 1;
                }
                _ => {}
            }
            self.weight += message.weight();
            self.messages.push(message);
        }
    }

    /// Takes everything that has arrived into `into`, which is empty.
    fn take(&mut self, into: &mut Vec<Message>) {
        self.log_lines = 0;
        self.weight = 0;
        self.events.clear();
        std::mem::swap(into, &mut self.messages);
    }
}
