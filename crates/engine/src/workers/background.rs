//! Tasks of kinds: started before the first resource of the kind is added, ended after the last is gone.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tokio_util::sync::CancellationToken;

use super::Shared;
use super::execute::Task;
use super::inbox::Message;
use crate::machine::{ExitReason, Input};
use crate::panics::guarded_future;
use crate::{Failure, KindTask, Level};

/// The kinds that have a task, and of which there are resources.
#[derive(Default)]
pub(super) struct KindTasks(FxHashMap<&'static str, TasksOfKind>);

struct TasksOfKind {
    cancellation: CancellationToken,
    resources: usize,
    phase: Phase,
    /// Resources that wait until the task is ready.
    waiting: Vec<Task>,
}

#[derive(PartialEq, Eq)]
enum Phase {
    Starting,
    Ready,
    /// The last resource is gone.
    Ending,
}

impl KindTasks {
    /// A resource of the kind is to be made: now, if the answer has the task back, or when the kind's own task is ready.
    pub(super) fn add(&mut self, shared: &Arc<Shared>, kind: &str, task: Task, is_new: bool) -> Option<Task> {
        let spec = shared.kinds.get(kind)?;
        let Some(background) = spec.background else {
            return Some(task);
        };
        let kind = spec.schema.kind;
        let state = self.0.entry(kind).or_insert_with(|| TasksOfKind {
            cancellation: start(shared, kind, background),
            resources: 0,
            phase: Phase::Starting,
            waiting: Vec::new(),
        });
        state.resources += usize::from(is_new);
        if state.phase == Phase::Ready {
            return Some(task);
        }
        state.waiting.push(task);
        None
    }

    /// A resource of the kind is gone.
    pub(super) fn remove(&mut self, kind: &str) {
        if let Some(state) = self.0.get_mut(kind) {
            state.resources -= 1;
            if state.resources == 0 {
                state.phase = Phase::Ending;
                state.cancellation.cancel();
            }
        }
    }

    /// Its task says that resources may be added. Those that waited.
    pub(super) fn ready(&mut self, kind: &str) -> Vec<Task> {
        match self.0.get_mut(kind) {
            Some(state) if state.phase == Phase::Starting => {
                state.phase = Phase::Ready;
                std::mem::take(&mut state.waiting)
            }
            _ => Vec::new(),
        }
    }

    /// Its task has ended.
    pub(super) fn ended(&mut self, shared: &Arc<Shared>, kind: &'static str, result: Result<(), Failure>) {
        let Some(state) = self.0.remove(kind) else { return };
        if state.phase != Phase::Ending {
            let failure = result.err().unwrap_or_else(|| Failure::new("go on: it ended"));
            let reason = format!("the kind {kind} failed to {}", failure.chain());
            shared
                .inbox
                .input(Input::Exit(ExitReason::BackgroundFailed(reason.into())));
            return;
        }
        // Resources that came while it ended need another one.
        for task in state.waiting {
            self.add(shared, kind, task, true);
        }
    }
}

fn start(shared: &Arc<Shared>, kind: &'static str, background: crate::Background) -> CancellationToken {
    let cancellation = CancellationToken::new();
    let (ready, logger, ended) = (shared.inbox.clone(), shared.clone(), shared.inbox.clone());
    let task = KindTask {
        cancellation: cancellation.clone(),
        ready: Box::new(move || ready.push(Message::KindReady(kind))),
        log: Box::new(move |level, message| {
            if level == Level::Debug && !logger.services.debug.is_on_for_kind(kind) {
                return;
            }
            logger.inbox.input(Input::Log {
                member: None,
                vertex: None,
                level,
                message: format!("{kind}: {message}"),
            });
        }),
    };
    shared.runtime.spawn(async move {
        let result = guarded_future("work in the background", async move { background(task).await }).await;
        ended.push(Message::KindEnded(kind, result.and_then(|result| result)));
    });
    cancellation
}
