//! Exporting: runs hand over what is to be written, one task writes it to the store, many records at a time.
//!
//! A run does not end before what it exports is written. It waits as a task, so that a store that is slow or away holds no thread; and
//! not for ever, for then the resource would no longer be looked after.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use setpoint_graph::{DesiredResource, encode_exported};
use setpoint_host::sync::{Condvar, Mutex, wait_timeout};
use tokio::runtime::Handle as Runtime;
use tokio::sync::{Notify, oneshot};

use super::inbox::{Inbox, Message};
use crate::machine::{Input, RunResult, VertexId};
use crate::{
    Cancellation, ExportChange, ExportKey, ExportStore, Exports, Failure, FailureReason, Level, Offered,
};

/// How long runs wait for a store that gives no answer at all.
const PATIENCE: Duration = Duration::from_secs(10);

/// After a failure, how long before what nobody waits for is tried again: this long at first, then twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What a run that waits hears.
type Written = Result<(), Failure>;

/// What is exported, and who writes it.
pub(super) struct Exporter {
    exports: Mutex<Exports<oneshot::Sender<Written>>>,
    /// Whether the store takes secrets.
    keeps_secrets: bool,
    /// There is something to be done that somebody waits for.
    news: Notify,
    state: Mutex<State>,
    /// The state is another one.
    changed: Condvar,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct State {
    /// There was a graph, so that what earlier processes left can be told from what is wanted.
    has_graph: bool,
    /// What they left is known.
    knows_former: bool,
    /// Everything is done, or cannot be at present.
    is_idle: bool,
    has_ended: bool,
}

impl Exporter {
    /// One that writes to this store, by a task of this runtime.
    pub(super) fn start(
        store: Arc<dyn ExportStore>,
        keeps_former: bool,
        inbox: Arc<Inbox>,
        runtime: &Runtime,
    ) -> Arc<Exporter> {
        let exporter = Arc::new(Exporter {
            exports: Mutex::default(),
            keeps_secrets: store.keeps_secrets(),
            news: Notify::new(),
            // Exports of earlier processes are never looked up then, so they stay.
            state: Mutex::new(State {
                knows_former: keeps_former,
                ..State::default()
            }),
            changed: Condvar::new(),
        });
        runtime.spawn(exporter.clone().work(store, inbox));
        exporter
    }

    /// The running graph exports other records than before.
    pub(super) fn retarget(&self, wanted: Vec<ExportKey>, unwanted: Vec<ExportKey>) {
        let released = self.exports.lock().retarget(wanted, unwanted);
        for waiting in released {
            // Of a run that has ended without it.
            let _ = waiting.send(Ok(()));
        }
        self.set(|state| {
            state.has_graph = true;
            state.is_idle = false;
        });
        self.news.notify_one();
    }

    /// Begins to export what a run exports.
    pub(super) fn begin(&self, resources: &[Arc<DesiredResource>]) -> Exporting {
        let mut exporting = Exporting::default();
        for resource in resources {
            let exported = encode_exported(resource).and_then(|exported| match exported.secret {
                Some(secret) if !self.keeps_secrets => Err(format!("`{secret}` is sensitive")),
                _ => Ok(exported.text),
            });
            let data = match exported {
                Ok(data) => data,
                Err(why) => {
                    let refused = Failure::new("export").on(&resource.id).because(why);
                    exporting.refused = Some(refused.reasoned(FailureReason::Unfit));
                    continue;
                }
            };
            for key in ExportKey::of(resource) {
                let (sender, receiver) = oneshot::channel();
                if self.exports.lock().offer(&key, &data, sender) == Offered::Waits {
                    exporting.waiting.push((key, receiver));
                }
            }
        }
        if !exporting.waiting.is_empty() {
            self.set(|state| state.is_idle = false);
            self.news.notify_one();
        }
        exporting
    }

    /// Waits until everything is done that can be, but not for long; from then on nothing is begun.
    #[expect(clippy::disallowed_methods, reason = "how long the end of the process waits")]
    pub(super) fn end(&self, patience: Duration) {
        let end = Instant::now() + patience;
        let mut state = self.state.lock();
        while state.has_graph && !state.is_idle {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = wait_timeout(&self.changed, state, left).0;
        }
        state.has_ended = true;
        drop(state);
        self.news.notify_one();
    }

    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock());
        self.changed.notify_all();
    }

    async fn work(self: Arc<Exporter>, store: Arc<dyn ExportStore>, inbox: Arc<Inbox>) {
        let mut pause = FIRST_PAUSE;
        loop {
            let State {
                has_graph,
                knows_former,
                has_ended,
                ..
            } = *self.state.lock();
            if has_ended {
                return;
            }
            if !has_graph {
                self.news.notified().await;
                continue;
            }
            let mut failed = None;
            if !knows_former {
                match self.answer(store.exported()).await {
                    Ok(left) => {
                        self.exports.lock().found(left);
                        self.set(|state| state.knows_former = true);
                    }
                    Err(failure) => failed = Some(failure),
                }
            }
            let changes = self.exports.lock().next(store.at_a_time());
            if !changes.is_empty() {
                let results = self.answer(store.change(changes.clone())).await;
                failed = self.done(&changes, results, &inbox).or(failed);
            }
            let is_busy = self.exports.lock().is_busy();
            if let Some(failure) = failed {
                warn(&inbox, &failure);
                self.set(|state| state.is_idle = true);
                // Who waits is served at once; the others when the store has had time.
                let _ = tokio::time::timeout(pause, self.news.notified()).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
                continue;
            }
            pause = FIRST_PAUSE;
            if !is_busy {
                self.rest();
                self.news.notified().await;
            }
        }
    }

    /// Waits for an answer of the store. Who waits for it too is not kept waiting for ever.
    async fn answer<T>(&self, answer: impl Future<Output = T>) -> T {
        let mut answer = pin!(answer);
        loop {
            if let Ok(answer) = tokio::time::timeout(PATIENCE, &mut answer).await {
                return answer;
            }
            let after = PATIENCE.as_secs();
            let why =
                Failure::new("export").because(format!("the store gives no answer for {after} seconds"));
            let released = self.exports.lock().give_up();
            for waiting in released {
                let _ = waiting.send(Err(why.clone()));
            }
            self.set(|state| state.is_idle = true);
        }
    }

    /// Nothing is to be done, unless something has come meanwhile.
    fn rest(&self) {
        let exports = self.exports.lock();
        if !exports.is_busy() {
            self.set(|state| state.is_idle = state.knows_former);
        }
    }

    /// Answers who waits. Gives the failure of what nobody waits for.
    fn done(&self, changes: &[ExportChange], results: Vec<Written>, inbox: &Inbox) -> Option<Failure> {
        let gone = changes.iter().zip(&results);
        let taken_back = gone.clone().filter(|(change, _)| change.data.is_none());
        let failed = taken_back
            .clone()
            .find_map(|(_, result)| result.as_ref().err().cloned());
        let left = taken_back.filter(|(_, result)| result.is_ok());
        let left: Vec<ExportKey> = left.map(|(change, _)| change.key.clone()).collect();
        if !left.is_empty() {
            inbox.input(Input::Unexported(left));
        }
        let answers = self.exports.lock().done(results);
        for (waiting, result) in answers {
            let _ = waiting.send(result);
        }
        failed
    }
}

fn warn(inbox: &Inbox, failure: &Failure) {
    let message = format!(
        "what this host exports no longer is not taken back yet: failed to {}",
        failure.chain()
    );
    inbox.input(Input::Log {
        vertex: None,
        member: None,
        level: Level::Warning,
        message,
    });
}

/// What a run exports, on its way.
#[derive(Default)]
pub(super) struct Exporting {
    waiting: Vec<(ExportKey, oneshot::Receiver<Written>)>,
    refused: Option<Failure>,
}

impl Exporting {
    /// The end of a run: at once, or when what it exports is written, which is waited for by a task. Then the answer goes to the inbox
    /// from there.
    pub(super) fn end(
        mut self,
        vertex: VertexId,
        mut result: RunResult,
        cancellation: &Cancellation,
        inbox: &Arc<Inbox>,
        runtime: &Runtime,
    ) -> Option<Message> {
        result.not_exported = self.refused.take();
        if self.waiting.is_empty() {
            return Some(Message::Input(Input::RunEnded { vertex, result }));
        }
        let (inbox, cancellation) = (inbox.clone(), cancellation.clone());
        runtime.spawn(async move {
            for (key, written) in self.waiting {
                let written = tokio::select! {
                    written = written => written.unwrap_or_else(|_| Err(Failure::new("export").because("the engine ends"))),
                    () = cancellation.cancelled() => Err(Failure::new("export").because("it was cancelled")),
                };
                match written {
                    Ok(()) => result.exported.push(key),
                    Err(failure) => {
                        result.not_exported.get_or_insert(failure);
                    }
                }
            }
            inbox.input(Input::RunEnded { vertex, result });
        });
        None
    }
}
