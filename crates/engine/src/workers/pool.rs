//! The threads for work that blocks: files, `init`, `cleanup`, the state on disk.
//!
//! A few threads (two a core) look at resources; each takes several jobs at a time when many wait. A run that begins to
//! repair says so ([`Lane::repairs`]): it will wait for the disk, in a commit that it shares with all who repair at the
//! same time. So it no longer counts against the few, gives back the jobs that it took along, and another thread goes on;
//! up to [`MOST_THREADS`] may wait for one commit. Threads beyond the few end when they have been idle for a while.

use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

use setpoint_host::sync::{Condvar, Mutex, MutexGuard, wait, wait_timeout};

/// Jobs that a thread takes at a time at most.
const BATCH: usize = 16;
/// Threads that wait for the disk, and those that do not, together.
const MOST_THREADS: usize = 256;
/// How long a thread beyond the few waits for work.
const PATIENCE: Duration = Duration::from_secs(3);

/// Something that can be done on the pool.
pub(super) trait Work: Send + 'static {
    /// Does it. Panics are the work's own matter.
    fn run(self, lane: &Lane<Self>)
    where
        Self: Sized;
}

/// How urgent a job is: the class first, then the distance to the end of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Urgency(pub(super) u8, pub(super) u32);

impl Urgency {
    /// A run, which repairs something or lets others run.
    pub(super) fn run(priority: u32) -> Urgency {
        Urgency(2, priority)
    }

    /// What prepares runs.
    pub(super) const START: Urgency = Urgency(1, 0);
    /// What nobody waits for.
    pub(super) const LATER: Urgency = Urgency(0, 0);
}

struct Queued<W> {
    urgency: Urgency,
    /// Counts down, so that of equally urgent ones the oldest is the greatest.
    age: u64,
    work: W,
}

impl<W> PartialEq for Queued<W> {
    fn eq(&self, other: &Queued<W>) -> bool {
        self.age == other.age
    }
}

impl<W> Eq for Queued<W> {}

impl<W> PartialOrd for Queued<W> {
    fn partial_cmp(&self, other: &Queued<W>) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<W> Ord for Queued<W> {
    fn cmp(&self, other: &Queued<W>) -> std::cmp::Ordering {
        (self.urgency, self.age).cmp(&(other.urgency, other.age))
    }
}

struct State<W> {
    queue: BinaryHeap<Queued<W>>,
    age: u64,
    threads: usize,
    idle: usize,
    /// Threads at work that do not wait for the disk.
    looking: usize,
    closed: bool,
}

/// The pool. Dropping the last handle lets its threads end after what they are at.
pub(super) struct Pool<W: Work>(Arc<Shared<W>>);

struct Shared<W> {
    few: usize,
    state: Mutex<State<W>>,
    available: Condvar,
}

impl<W> Shared<W> {
    fn lock(&self) -> MutexGuard<'_, State<W>> {
        self.state.lock()
    }
}

impl<W: Work> Clone for Pool<W> {
    fn clone(&self) -> Pool<W> {
        Pool(self.0.clone())
    }
}

impl<W: Work> Pool<W> {
    /// A pool with so many threads that look at resources. They are started when there is work.
    pub(super) fn new(few: usize) -> Pool<W> {
        Pool(Arc::new(Shared {
            few: few.max(1),
            state: Mutex::new(State {
                queue: BinaryHeap::new(),
                age: u64::MAX,
                threads: 0,
                idle: 0,
                looking: 0,
                closed: false,
            }),
            available: Condvar::new(),
        }))
    }

    /// Queues jobs.
    pub(super) fn push(&self, jobs: impl IntoIterator<Item = (Urgency, W)>) {
        let mut state = self.0.lock();
        let before = state.queue.len();
        for (urgency, work) in jobs {
            state.age -= 1;
            let age = state.age;
            state.queue.push(Queued { urgency, age, work });
        }
        let new = state.queue.len() - before;
        self.call_threads(state, new);
    }

    /// Wakes or starts threads for so many new jobs.
    fn call_threads(&self, mut state: MutexGuard<'_, State<W>>, jobs: usize) {
        let room = self.0.few.saturating_sub(state.looking);
        let wanted = room.min(jobs);
        let woken = wanted.min(state.idle);
        let started = (wanted - woken).min(MOST_THREADS.saturating_sub(state.threads));
        state.threads += started;
        drop(state);
        for _ in 0..woken {
            self.0.available.notify_one();
        }
        for _ in 0..started {
            self.start_thread();
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the threads of the engine's workers")]
    fn start_thread(&self) {
        let pool = self.clone();
        std::thread::spawn(move || pool.serve());
    }

    /// Lets threads end; jobs that wait are dropped.
    pub(super) fn close(&self) {
        let mut state = self.0.lock();
        state.closed = true;
        let waiting = std::mem::take(&mut state.queue);
        drop(state);
        self.0.available.notify_all();
        drop(waiting);
    }

    fn serve(self) {
        let mut state = self.0.lock();
        loop {
            if state.closed {
                break;
            }
            if state.looking < self.0.few && !state.queue.is_empty() {
                let share = state.queue.len() / (2 * self.0.few);
                let mut batch = Vec::with_capacity(share.clamp(1, BATCH));
                // From the most urgent on, kept backwards so that the next is the last.
                while batch.len() < share.clamp(1, BATCH)
                    && let Some(queued) = state.queue.pop()
                {
                    batch.push(queued);
                }
                batch.reverse();
                state.looking += 1;
                drop(state);
                let lane = Lane {
                    pool: self.clone(),
                    own: Mutex::new(Own {
                        batch,
                        repairs: false,
                    }),
                };
                let repaired = lane.work();
                state = self.0.lock();
                if !repaired {
                    state.looking -= 1;
                }
                continue;
            }
            state.idle += 1;
            if state.threads <= self.0.few {
                state = wait(&self.0.available, state);
                state.idle -= 1;
            } else {
                let (woken, timed_out) = wait_timeout(&self.0.available, state, PATIENCE);
                state = woken;
                state.idle -= 1;
                if timed_out && state.threads > self.0.few && state.queue.is_empty() {
                    break;
                }
            }
        }
        state.threads -= 1;
    }
}

/// One thread's place in the pool while it works.
pub(super) struct Lane<W: Work> {
    pool: Pool<W>,
    own: Mutex<Own<W>>,
}

struct Own<W> {
    /// What it took along, the next one last.
    batch: Vec<Queued<W>>,
    /// Waits for the disk, and no longer counts against the few.
    repairs: bool,
}

impl<W: Work> Lane<W> {
    fn own(&self) -> MutexGuard<'_, Own<W>> {
        self.own.lock()
    }

    /// The job at hand begins to repair, and will wait for the disk.
    pub(super) fn repairs(&self) {
        let mut own = self.own();
        if std::mem::replace(&mut own.repairs, true) {
            return;
        }
        let rest = std::mem::take(&mut own.batch);
        drop(own);
        let mut state = self.pool.0.lock();
        state.looking -= 1;
        // One by one: `extend` may order the whole queue anew.
        for queued in rest {
            state.queue.push(queued);
        }
        let waiting = state.queue.len();
        self.pool.call_threads(state, waiting.min(1));
    }

    /// Works off the batch. Whether a job of it waited for the disk.
    fn work(&self) -> bool {
        loop {
            let next = self.own().batch.pop();
            let Some(next) = next else { break };
            next.work.run(self);
        }
        self.own().repairs
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    enum Job {
        Note(u32, mpsc::Sender<u32>),
        /// Repairs, and waits for so many others to do the same.
        Commit(Arc<std::sync::Barrier>, mpsc::Sender<u32>),
    }

    impl Work for Job {
        fn run(self, lane: &Lane<Job>) {
            match self {
                Job::Note(number, done) => done.send(number).unwrap(),
                Job::Commit(barrier, done) => {
                    lane.repairs();
                    barrier.wait();
                    done.send(0).unwrap();
                }
            }
        }
    }

    #[test]
    fn what_waits_for_the_disk_does_not_keep_others_from_waiting_for_it_too() {
        let pool = Pool::new(2);
        let (sender, receiver) = mpsc::channel();
        let barrier = Arc::new(std::sync::Barrier::new(100));
        let jobs = (0..100).map(|_| (Urgency::run(0), Job::Commit(barrier.clone(), sender.clone())));
        pool.push(jobs.collect::<Vec<_>>());
        for _ in 0..100 {
            receiver.recv_timeout(Duration::from_secs(20)).unwrap();
        }
        pool.push([(Urgency::START, Job::Note(7, sender))]);
        assert_eq!(receiver.recv_timeout(Duration::from_secs(20)).unwrap(), 7);
    }

    #[test]
    fn the_most_urgent_goes_first() {
        let pool = Pool::new(1);
        let (sender, receiver) = mpsc::channel();
        let note = |number| Job::Note(number, sender.clone());
        pool.push([
            (Urgency::LATER, note(4)),
            (Urgency::run(1), note(2)),
            (Urgency::START, note(3)),
            (Urgency::run(5), note(1)),
            (Urgency::START, note(33)),
        ]);
        let order: Vec<u32> = (0..5)
            .map(|_| receiver.recv_timeout(Duration::from_secs(20)).unwrap())
            .collect();
        assert_eq!(order, [1, 2, 3, 33, 4]);
    }
}
