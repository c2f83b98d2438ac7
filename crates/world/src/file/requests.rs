//! Requests, one after the other, in the background: the file may keep one waiting.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use setpoint_host::sync::Mutex;
use tokio::sync::oneshot;

use super::Shared;
use super::leasing::Grip;
use super::tables::News;
use crate::{LeaseId, Outcome, Revision, Selection, Snapshot, StoreError, Transaction};

/// Timeout for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum number of requests in one batch.
const TOGETHER: usize = 256;

/// A request.
#[derive(Debug)]
pub(super) enum Question {
    Read(Vec<Selection>),
    Transact(Transaction),
    /// The changes of a selection after a revision.
    News(Selection, Revision),
    Grant(Duration),
    Revoke(LeaseId),
    Compact,
}

impl Question {
    /// Whether it may write.
    pub(super) fn writes(&self) -> bool {
        !matches!(self, Question::Read(_) | Question::News(..))
    }
}

/// An answer.
#[derive(Debug)]
pub(super) enum Answer {
    Read(Snapshot),
    Transacted(Outcome),
    News(News),
    Granted(LeaseId, Arc<Grip>),
    Done,
}

/// Those that wait, and whether somebody works on them.
#[derive(Default)]
pub(super) struct Requests {
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Request>,
    is_worked_on: bool,
}

struct Request {
    question: Question,
    answer: oneshot::Sender<Result<Answer, StoreError>>,
    state: Arc<AtomicU8>,
}

/// Progress of a request.
const WAITING: u8 = 0;
const BEGUN: u8 = 1;
const GIVEN_UP: u8 = 2;

impl Requests {
    /// Asks, and waits for the answer.
    pub(super) async fn ask(shared: &Arc<Shared>, question: Question) -> Result<Answer, StoreError> {
        let state = Arc::new(AtomicU8::new(WAITING));
        let (sender, answer) = oneshot::channel();
        let is_first = {
            let mut queue = shared.requests.queue.lock();
            queue.waiting.push_back(Request {
                question,
                answer: sender,
                state: state.clone(),
            });
            !std::mem::replace(&mut queue.is_worked_on, true)
        };
        if is_first {
            let turn = Turn {
                shared: shared.clone(),
                is_over: false,
            };
            tokio::task::spawn_blocking(move || turn.work());
        }
        match tokio::time::timeout(PATIENCE, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(away("this process ends", state.load(Ordering::SeqCst) == BEGUN)),
            Err(_) => {
                let is_begun = state.swap(GIVEN_UP, Ordering::SeqCst) == BEGUN;
                let path = shared.place.file.as_path().display();
                Err(away(
                    &format!("{path} keeps one waiting for more than {PATIENCE:?}"),
                    is_begun,
                ))
            }
        }
    }
}

fn away(reason: &str, is_ambiguous: bool) -> StoreError {
    StoreError::Away {
        reason: reason.into(),
        is_ambiguous,
    }
}

/// Whose turn it is to work on what waits.
struct Turn {
    shared: Arc<Shared>,
    /// Nothing waited any more.
    is_over: bool,
}

impl Turn {
    fn work(mut self) {
        loop {
            let requests: Vec<Request> = {
                let mut queue = self.shared.requests.queue.lock();
                let count = queue.waiting.len().min(TOGETHER);
                if count == 0 {
                    queue.is_worked_on = false;
                    self.is_over = true;
                    break;
                }
                queue.waiting.drain(..count).collect()
            };
            let begun = requests.into_iter().filter(Request::begin);
            let (questions, waiting): (Vec<Question>, Vec<_>) =
                begun.map(|request| (request.question, request.answer)).unzip();
            for (waiting, answer) in waiting.into_iter().zip(self.answer_all(&questions)) {
                // Who does not wait any more is not there.
                let _ = waiting.send(answer);
            }
        }
    }

    /// Answers all together; where that fails, each for itself, so that what one asks for is no harm to others.
    fn answer_all(&self, questions: &[Question]) -> Vec<Result<Answer, StoreError>> {
        if questions.is_empty() {
            return Vec::new();
        }
        match self.answer(questions) {
            Ok(answers) => answers,
            Err(error) if questions.len() == 1 || error.is_passing() => {
                questions.iter().map(|_| Err(error.clone())).collect()
            }
            Err(_) => {
                let alone = questions.chunks(1).flat_map(|one| self.answer_all(one));
                alone.collect()
            }
        }
    }

    fn answer(&self, questions: &[Question]) -> Result<Vec<Result<Answer, StoreError>>, StoreError> {
        let shared = &*self.shared;
        let answered = catch_unwind(AssertUnwindSafe(|| {
            shared.place.answer(questions, &shared.leases)
        }));
        // What is damaged in a way that nobody thought of.
        let answered = answered.unwrap_or_else(|_| Err(shared.place.broke_down()))?;
        *shared.look.lock() = answered.look;
        if answered.is_changed {
            shared.wake();
        }
        Ok(answered.answers)
    }
}

impl Request {
    /// Begins with it, unless whoever asked has given up.
    fn begin(&self) -> bool {
        let begun = self
            .state
            .compare_exchange(WAITING, BEGUN, Ordering::SeqCst, Ordering::SeqCst);
        begun.is_ok()
    }
}

impl Drop for Turn {
    /// A turn that is not taken, or not to its end: the runtime ends, and whoever waits hears of that.
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut queue = self.shared.requests.queue.lock();
        queue.is_worked_on = false;
        let waiting = std::mem::take(&mut queue.waiting);
        drop(queue);
        drop(waiting);
    }
}
