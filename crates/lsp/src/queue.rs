//! What the worker has to do: requests in the order in which they came, and between them the diagnostics of what changed.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use lsp_server::{Request, RequestId};
use setpoint_flow::Stop;

use crate::documents::Snapshot;

/// Shared by the thread of the connection and the worker.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Default)]
struct State {
    snapshot: Snapshot,
    waiting: VecDeque<Waiting>,
    /// Whether diagnostics were not told since a text changed.
    is_stale: bool,
    running: Option<Running>,
    is_closed: bool,
}

struct Waiting {
    request: Request,
    /// The document that it is about.
    path: Option<String>,
    snapshot: Snapshot,
}

struct Running {
    id: Option<RequestId>,
    path: Option<String>,
    stop: Stop,
    is_cancelled: bool,
}

/// Something to do.
pub(crate) struct Work {
    /// What is asked; none where diagnostics are due.
    pub(crate) request: Option<Request>,
    /// The texts as they were when it was asked.
    pub(crate) snapshot: Snapshot,
    /// Ends it early.
    pub(crate) stop: Stop,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        // Whatever panicked did not panic in here.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes texts. Answers which requests nobody can answer any more, because the text they are about is another one.
    pub(crate) fn change(&self, path: Option<&str>, change: impl FnOnce(&mut Snapshot)) -> Vec<RequestId> {
        let mut state = self.state();
        change(&mut state.snapshot);
        state.is_stale = true;
        if let Some(running) = &state.running
            && (running.id.is_none() || path.is_some() && running.path.as_deref() == path)
        {
            running.stop.stop();
        }
        let is_overtaken = |waiting: &Waiting| path.is_some() && waiting.path.as_deref() == path;
        let (overtaken, waiting): (VecDeque<Waiting>, VecDeque<Waiting>) =
            state.waiting.drain(..).partition(is_overtaken);
        state.waiting = waiting;
        drop(state);
        self.news.notify_one();
        overtaken.into_iter().map(|waiting| waiting.request.id).collect()
    }

    /// Asks something about the texts as they are now.
    pub(crate) fn ask(&self, request: Request, path: Option<String>) {
        let mut state = self.state();
        let snapshot = state.snapshot.clone();
        state.waiting.push_back(Waiting {
            request,
            path,
            snapshot,
        });
        drop(state);
        self.news.notify_one();
    }

    /// Takes a request back. Answers whether it was still waiting, so that nobody else will answer it.
    pub(crate) fn cancel(&self, id: &RequestId) -> bool {
        let mut state = self.state();
        if let Some(at) = state.waiting.iter().position(|waiting| waiting.request.id == *id) {
            state.waiting.remove(at);
            return true;
        }
        if let Some(running) = &mut state.running
            && running.id.as_ref() == Some(id)
        {
            running.is_cancelled = true;
            running.stop.stop();
        }
        false
    }

    /// The next thing to do; waits for it. None at the end.
    pub(crate) fn next(&self) -> Option<Work> {
        let mut state = self.state();
        loop {
            if state.is_closed {
                return None;
            }
            let stop = Stop::default();
            if let Some(Waiting {
                request,
                path,
                snapshot,
            }) = state.waiting.pop_front()
            {
                state.running = Some(Running {
                    id: Some(request.id.clone()),
                    path,
                    stop: stop.clone(),
                    is_cancelled: false,
                });
                return Some(Work {
                    request: Some(request),
                    snapshot,
                    stop,
                });
            }
            if state.is_stale {
                state.is_stale = false;
                state.running = Some(Running {
                    id: None,
                    path: None,
                    stop: stop.clone(),
                    is_cancelled: false,
                });
                return Some(Work {
                    request: None,
                    snapshot: state.snapshot.clone(),
                    stop,
                });
            }
            state = self.news.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether nothing waits to be done.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.state();
        state.waiting.is_empty() && !state.is_stale
    }

    /// Notes that what [`Queue::next`] gave is done. Answers whether it was taken back meanwhile.
    pub(crate) fn finish(&self) -> bool {
        let running = self.state().running.take();
        running.is_some_and(|running| running.is_cancelled)
    }

    /// Ends it: nothing more is done.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.waiting.clear();
        if let Some(running) = &state.running {
            running.stop.stop();
        }
        drop(state);
        self.news.notify_all();
    }
}
