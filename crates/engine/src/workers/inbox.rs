//! Where everything arrives that the owner of the machine must know. Whoever has something to say puts it here and wakes
//! the owner.
//!
//! It holds at most an answer for each question that the machine asked, one event a watch (a second one is the first), and
//! a bounded number of lines for the log.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashSet;
use setpoint_host::sync::{Condvar, Mutex, MutexGuard, wait, wait_timeout};
use tokio::sync::oneshot;

use crate::machine::VertexId;
use crate::machine::{Armed, Initialised, Input, VertexStatus};
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
    Status(oneshot::Sender<Status>),
}

/// How things are.
#[derive(Debug, Clone)]
pub struct Status {
    /// All resources, sorted by identity.
    pub vertices: Vec<VertexStatus>,
    /// Generation of the running graph, if there is one.
    pub generation: Option<u64>,
    /// Whether the host is converged.
    pub converged: bool,
}

/// Lines for the log that may wait.
const LOG_LINES: usize = 10_000;

#[derive(Default)]
struct State {
    messages: Vec<Message>,
    /// Watches whose event is among the messages.
    events: FxHashSet<WatchId>,
    log_lines: usize,
    owner_sleeps: bool,
}

#[derive(Default)]
pub(super) struct Inbox {
    state: Mutex<State>,
    arrived: Condvar,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(super) fn push(&self, message: Message) {
        self.push_all([message]);
    }

    pub(super) fn input(&self, input: Input) {
        self.push(Message::Input(input));
    }

    pub(super) fn push_all(&self, messages: impl IntoIterator<Item = Message>) {
        let mut state = self.lock();
        for message in messages {
            match &message {
                Message::WatchEvent(watch, _) if !state.events.insert(*watch) => continue,
                Message::Input(Input::Log { .. }) | Message::WatchLog(..) => {
                    if state.log_lines >= LOG_LINES {
                        continue;
                    }
                    state.log_lines += 1;
                }
                _ => {}
            }
            state.messages.push(message);
        }
        let sleeps = state.owner_sleeps && !state.messages.is_empty();
        drop(state);
        if sleeps {
            self.arrived.notify_one();
        }
    }

    /// Takes everything that has arrived into `into`, which is empty; waits for something until the deadline.
    #[expect(
        clippy::disallowed_methods,
        reason = "the engine's clock: only differences of it are used"
    )]
    pub(super) fn take(&self, into: &mut Vec<Message>, deadline: Option<Instant>) {
        let mut state = self.lock();
        while state.messages.is_empty() {
            state.owner_sleeps = true;
            state = match deadline {
                None => wait(&self.arrived, state),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left == Duration::ZERO {
                        break;
                    }
                    wait_timeout(&self.arrived, state, left).0
                }
            };
        }
        state.owner_sleeps = false;
        state.log_lines = 0;
        state.events.clear();
        std::mem::swap(into, &mut state.messages);
    }
}
