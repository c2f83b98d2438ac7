//! The threads for work that blocks: files, `init`, `cleanup`, the state on disk.
//!
//! A few threads (two a core) look at resources; each takes several jobs at a time when many wait, and hands their answers
//! over together. Whoever commits for all ([`Lane::waits`]) waits for the disk: it no longer counts against the few, gives
//! back the jobs that it took along, and another thread goes on.
//!
//! A file system may hang, and whoever looks there with it. So while jobs wait and all threads are at work, one more thread
//! keeps an eye on the others: who has been at one job for too long does not count any more either. And once as many threads
//! as the few have got stuck at one place, other jobs that would look there wait until one of these comes back. So one place
//! takes only so many threads, and the others go on.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use setpoint_host::mounts::Mounts;

use setpoint_host::sync::{Condvar, Mutex, MutexGuard, wait, wait_timeout};

/// Jobs that a thread takes at a time at most.
const BATCH: usize = 16;
/// How many times the few there are at most, stuck ones counted.
const MOST_TIMES_FEW: usize = 3;
/// How long a thread beyond the few waits for work.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a job may take before its thread no longer counts.
const SLOW: Duration = Duration::from_millis(200);
/// How long answers may wait for those of the jobs after them.
const HELD_BACK: Duration = Duration::from_micros(500);

/// Something that can be done on the pool.
pub(super) trait Work: Sized + Send + 'static {
    /// What it answers, to be handed over with others.
    type Answer: Send;
    /// What jobs share that are done together.
    type Together: Default + Send + Sync;

    /// Does it. Panics are the work's own matter.
    fn run(self, lane: &Lane<Self>);

    /// The directory that the job would look in, told without looking; none if it would in none.
    fn directory(&self) -> Option<PathBuf>;

    /// The directory that the job at hand is looking in.
    fn directory_at_hand(together: &Self::Together) -> Option<PathBuf>;
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
    work: W,
}

/// What waits: the most urgent first, and of equally urgent ones the oldest.
struct Queue<W> {
    by_urgency: BTreeMap<Urgency, VecDeque<W>>,
    len: usize,
}

impl<W> Default for Queue<W> {
    fn default() -> Queue<W> {
        Queue {
            by_urgency: BTreeMap::new(),
            len: 0,
        }
    }
}

impl<W> Queue<W> {
    fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn push(&mut self, queued: Queued<W>) {
        self.len += 1;
        self.by_urgency
            .entry(queued.urgency)
            .or_default()
            .push_back(queued.work);
    }

    /// Puts back what was taken last.
    fn put_back(&mut self, queued: Queued<W>) {
        self.len += 1;
        self.by_urgency
            .entry(queued.urgency)
            .or_default()
            .push_front(queued.work);
    }

    fn pop(&mut self) -> Option<Queued<W>> {
        let mut most = self.by_urgency.last_entry()?;
        let urgency = *most.key();
        let work = most.get_mut().pop_front();
        if most.get().is_empty() {
            most.remove();
        }
        self.len -= usize::from(work.is_some());
        work.map(|work| Queued { urgency, work })
    }
}

/// How answers are handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    /// Whoever takes them may do on this thread what follows from them, and queue new jobs.
    Served,
    /// They are left for somebody else.
    Left,
}

struct PoolState<W: Work> {
    queue: Queue<W>,
    threads: usize,
    /// Threads that wait and were not called.
    idle: usize,
    /// Threads that were called and have not come yet.
    called: usize,
    /// Threads that were started and have not come yet.
    starting: usize,
    /// Threads that hand over the answers of their last job, and come then.
    finishing: usize,
    /// Threads at work that count against the few.
    looking: usize,
    lanes: Vec<Arc<Mutex<Own<W>>>>,
    /// Whether a thread keeps an eye on the others.
    overseen: bool,
    stuck: Stuck<W>,
    closed: bool,
}

/// What is known of places that do not answer.
struct Stuck<W> {
    /// One for each thread that is stuck there.
    places: Vec<PathBuf>,
    /// Jobs that would look at one of those where enough are stuck.
    waiting: Vec<Queued<W>>,
    mounts: Mounts,
}

impl<W> Stuck<W> {
    /// What hangs together: a file system, but of the one that everything else is on, only the directory.
    fn place(&self, directory: PathBuf) -> PathBuf {
        match self.mounts.point_above(&directory) {
            root if root == Path::new("/") => directory,
            point => point.to_path_buf(),
        }
    }

    fn is_closed(&self, directory: PathBuf, enough: usize) -> bool {
        let place = self.place(directory);
        self.places.iter().filter(|stuck| **stuck == place).count() >= enough
    }
}

/// The pool. Dropping the last handle lets its threads end after what they are at.
pub(super) struct Pool<W: Work>(Arc<Shared<W>>);

struct Shared<W: Work> {
    few: usize,
    state: Mutex<PoolState<W>>,
    available: Condvar,
    deliver: Box<dyn Fn(Vec<W::Answer>, Delivery) + Send + Sync>,
}

impl<W: Work> Clone for Pool<W> {
    fn clone(&self) -> Pool<W> {
        Pool(self.0.clone())
    }
}

impl<W: Work> Pool<W> {
    /// A pool with so many threads that look at resources. They are started when there is work. `deliver` takes answers.
    pub(super) fn new(
        few: usize,
        deliver: impl Fn(Vec<W::Answer>, Delivery) + Send + Sync + 'static,
    ) -> Pool<W> {
        Pool(Arc::new(Shared {
            few: few.max(1),
            state: Mutex::new(PoolState {
                queue: Queue::default(),
                threads: 0,
                idle: 0,
                called: 0,
                starting: 0,
                finishing: 0,
                looking: 0,
                lanes: Vec::new(),
                overseen: false,
                stuck: Stuck {
                    places: Vec::new(),
                    waiting: Vec::new(),
                    mounts: Mounts::default(),
                },
                closed: false,
            }),
            available: Condvar::new(),
            deliver: Box::new(deliver),
        }))
    }

    /// Queues jobs.
    pub(super) fn push(&self, jobs: impl IntoIterator<Item = (Urgency, W)>) {
        let mut state = self.0.state.lock();
        for (urgency, work) in jobs {
            state.queue.push(Queued { urgency, work });
        }
        self.call_threads(state);
    }

    /// Wakes or starts threads for what is queued, and one to keep an eye on them if they are all at work.
    fn call_threads(&self, mut state: MutexGuard<'_, PoolState<W>>) {
        if state.queue.is_empty() || state.closed {
            return;
        }
        let coming = state.called + state.starting + state.finishing;
        let room = self.0.few.saturating_sub(state.looking + coming);
        let mut wanted = room.min(state.queue.len);
        if room == 0 && coming == 0 && !state.overseen {
            wanted = 1;
        }
        let woken = wanted.min(state.idle);
        let most = MOST_TIMES_FEW * self.0.few;
        let started = (wanted - woken).min(most.saturating_sub(state.threads));
        state.idle -= woken;
        state.called += woken;
        state.starting += started;
        state.threads += started;
        drop(state);
        for _ in 0..woken {
            self.0.available.notify_one();
        }
        for _ in 0..started {
            self.start_thread();
        }
    }

    fn start_thread(&self) {
        let pool = self.clone();
        let started = std::thread::Builder::new()
            .name("resources".to_owned())
            .spawn(move || pool.serve());
        if started.is_err() {
            // The system has no more to give; those that there are go on.
            let mut state = self.0.state.lock();
            state.threads -= 1;
            state.starting -= 1;
        }
    }

    /// Lets threads end after what they are at. Answers the jobs that wait, most urgent first.
    pub(super) fn close(&self) -> Vec<W> {
        let mut state = self.0.state.lock();
        state.closed = true;
        let mut waiting = std::mem::take(&mut state.queue);
        let stuck = std::mem::take(&mut state.stuck.waiting);
        drop(state);
        self.0.available.notify_all();
        let waiting = std::iter::from_fn(move || waiting.pop());
        waiting.chain(stuck).map(|queued| queued.work).collect()
    }

    fn serve(self) {
        let mut state = self.0.state.lock();
        state.starting -= 1;
        loop {
            if state.closed {
                break;
            }
            if state.looking < self.0.few {
                let batch = self.take_batch(&mut state);
                if !batch.is_empty() {
                    state = self.work(state, batch);
                    continue;
                }
            }
            let oversees = !state.queue.is_empty() && !state.overseen;
            let patience = match oversees {
                true => Some(SLOW),
                false if state.threads <= self.0.few => None,
                false => Some(PATIENCE),
            };
            state.idle += 1;
            state.overseen |= oversees;
            let timed_out;
            (state, timed_out) = self.wait(state, patience);
            if oversees {
                state.overseen = false;
            }
            if state.called > 0 {
                state.called -= 1;
            } else {
                // Nobody called.
                state.idle -= 1;
                if timed_out && oversees {
                    self.pass_over_slow(&mut state);
                } else if timed_out && state.threads > self.0.few && state.queue.is_empty() {
                    break;
                }
            }
        }
        state.threads -= 1;
    }

    fn wait<'a>(
        &'a self,
        state: MutexGuard<'a, PoolState<W>>,
        patience: Option<Duration>,
    ) -> (MutexGuard<'a, PoolState<W>>, bool) {
        match patience {
            None => (wait(&self.0.available, state), false),
            Some(patience) => wait_timeout(&self.0.available, state, patience),
        }
    }

    /// Takes the most urgent jobs, the next one last.
    fn take_batch(&self, state: &mut PoolState<W>) -> Vec<Queued<W>> {
        let share = (state.queue.len / (2 * self.0.few)).clamp(1, BATCH);
        let mut batch = Vec::with_capacity(share);
        while batch.len() < share
            && let Some(queued) = state.queue.pop()
        {
            let stuck = &mut state.stuck;
            if !stuck.places.is_empty()
                && let Some(directory) = queued.work.directory()
                && stuck.is_closed(directory, self.0.few)
            {
                stuck.waiting.push(queued);
            } else {
                batch.push(queued);
            }
        }
        batch.reverse();
        batch
    }

    fn work<'a>(
        &'a self,
        mut state: MutexGuard<'a, PoolState<W>>,
        batch: Vec<Queued<W>>,
    ) -> MutexGuard<'a, PoolState<W>> {
        state.looking += 1;
        let lane = Lane {
            pool: self.clone(),
            own: Arc::new(Mutex::new(Own {
                batch,
                answers: Vec::new(),
                together: Arc::default(),
                since: now(),
                counts: true,
                stuck_at: None,
            })),
        };
        state.lanes.push(lane.own.clone());
        // There may be more than this one takes.
        self.call_threads(state);
        let answers = lane.work();
        let mut state = self.0.state.lock();
        state.lanes.retain(|other| !Arc::ptr_eq(other, &lane.own));
        let mut own = lane.own();
        if own.counts {
            state.looking -= 1;
        }
        if let Some(place) = own.stuck_at.take() {
            let places = &mut state.stuck.places;
            let at = places.iter().position(|stuck| *stuck == place);
            if let Some(at) = at {
                places.swap_remove(at);
            }
            for queued in std::mem::take(&mut state.stuck.waiting) {
                state.queue.push(queued);
            }
        }
        drop(own);
        if answers.is_empty() {
            return state;
        }
        // What follows from the answers may be the next job of this thread: until then it counts as one that comes.
        state.finishing += 1;
        drop(state);
        (self.0.deliver)(answers, Delivery::Served);
        let mut state = self.0.state.lock();
        state.finishing -= 1;
        state
    }

    /// No longer counts threads that are at one job for too long, and takes from them what they took along.
    fn pass_over_slow(&self, state: &mut PoolState<W>) {
        let mut late = Vec::new();
        let mut read = false;
        for lane in state.lanes.clone() {
            let mut own = lane.lock();
            if !own.counts || now().saturating_duration_since(own.since) < SLOW {
                continue;
            }
            own.counts = false;
            state.looking -= 1;
            for queued in std::mem::take(&mut own.batch) {
                state.queue.put_back(queued);
            }
            late.append(&mut own.answers);
            if let Some(directory) = W::directory_at_hand(&own.together) {
                if !std::mem::replace(&mut read, true) {
                    state.stuck.mounts = Mounts::read().unwrap_or_default();
                }
                let place = state.stuck.place(directory);
                state.stuck.places.push(place.clone());
                own.stuck_at = Some(place);
            }
        }
        if !late.is_empty() {
            (self.0.deliver)(late, Delivery::Left);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "only differences of it are used")]
fn now() -> Instant {
    Instant::now()
}

/// One thread's place in the pool while it works.
pub(super) struct Lane<W: Work> {
    pool: Pool<W>,
    own: Arc<Mutex<Own<W>>>,
}

struct Own<W: Work> {
    /// What it took along, the next one last.
    batch: Vec<Queued<W>>,
    answers: Vec<W::Answer>,
    together: Arc<W::Together>,
    /// When it began with the job at hand.
    since: Instant,
    /// Whether it counts against the few.
    counts: bool,
    /// Where it was found to be stuck.
    stuck_at: Option<PathBuf>,
}

impl<W: Work> Lane<W> {
    fn own(&self) -> MutexGuard<'_, Own<W>> {
        self.own.lock()
    }

    /// What the jobs of this batch share.
    pub(super) fn together(&self) -> Arc<W::Together> {
        self.own().together.clone()
    }

    /// An answer, which is handed over with those of the next jobs, soon.
    pub(super) fn answer(&self, answer: W::Answer) {
        self.own().answers.push(answer);
    }

    /// Hands over what was answered so far, before somebody else may answer something that follows from it.
    pub(super) fn hand_over(&self) {
        let answers = std::mem::take(&mut self.own().answers);
        if !answers.is_empty() {
            (self.pool.0.deliver)(answers, Delivery::Left);
        }
    }

    /// The job at hand will wait for the disk, for others too. What it took along is given back.
    pub(super) fn waits(&self) {
        let mut own = self.own();
        let answers = std::mem::take(&mut own.answers);
        let rest = std::mem::take(&mut own.batch);
        let counted = std::mem::replace(&mut own.counts, false);
        drop(own);
        if !answers.is_empty() {
            (self.pool.0.deliver)(answers, Delivery::Left);
        }
        let mut state = self.pool.0.state.lock();
        if counted {
            state.looking -= 1;
        }
        for queued in rest {
            state.queue.put_back(queued);
        }
        self.pool.call_threads(state);
    }

    /// Works off the batch. The last answers are left to be handed over.
    fn work(&self) -> Vec<W::Answer> {
        let mut held_since: Option<Instant> = None;
        loop {
            let mut own = self.own();
            let now = now();
            own.since = now;
            let Some(next) = own.batch.pop() else {
                return std::mem::take(&mut own.answers);
            };
            let mut answers = Vec::new();
            if held_since.is_some_and(|since| now.saturating_duration_since(since) > HELD_BACK) {
                answers = std::mem::take(&mut own.answers);
                held_since = None;
            } else if !own.answers.is_empty() {
                held_since.get_or_insert(now);
            }
            drop(own);
            if !answers.is_empty() {
                (self.pool.0.deliver)(answers, Delivery::Served);
            }
            next.work.run(self);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    enum Job {
        Note(u32),
        /// Waits for the disk, until it is let go.
        Commit(mpsc::Receiver<()>),
        /// Looks into a directory that does not answer, until it is let go.
        Look(&'static str, mpsc::Receiver<()>),
    }

    impl Work for Job {
        type Answer = u32;
        type Together = Mutex<Option<PathBuf>>;

        fn run(self, lane: &Lane<Job>) {
            match self {
                Job::Note(number) => lane.answer(number),
                Job::Commit(gate) => {
                    lane.waits();
                    gate.recv().unwrap();
                    lane.answer(0);
                }
                Job::Look(directory, gate) => {
                    *lane.together().lock() = Some(directory.into());
                    gate.recv().unwrap();
                    *lane.together().lock() = None;
                    lane.answer(0);
                }
            }
        }

        fn directory(&self) -> Option<PathBuf> {
            match self {
                Job::Look(directory, _) => Some(directory.into()),
                _ => None,
            }
        }

        fn directory_at_hand(together: &Mutex<Option<PathBuf>>) -> Option<PathBuf> {
            together.lock().clone()
        }
    }

    struct Bench {
        pool: Pool<Job>,
        answers: mpsc::Receiver<u32>,
    }

    impl Bench {
        fn new(few: usize) -> Bench {
            let (sender, answers) = mpsc::channel();
            let deliver = move |numbers: Vec<u32>, _| {
                for number in numbers {
                    let _ = sender.send(number);
                }
            };
            Bench {
                pool: Pool::new(few, deliver),
                answers,
            }
        }

        fn next(&self) -> u32 {
            self.answers.recv_timeout(Duration::from_secs(60)).unwrap()
        }
    }

    #[test]
    fn what_waits_for_the_disk_holds_nobody_up() {
        let bench = Bench::new(1);
        let (go, gate) = mpsc::channel();
        bench.pool.push([
            (Urgency::run(9), Job::Commit(gate)),
            (Urgency::run(0), Job::Note(7)),
        ]);
        assert_eq!(bench.next(), 7);
        go.send(()).unwrap();
        assert_eq!(bench.next(), 0);
    }

    #[test]
    fn a_job_does_not_wait_behind_a_slow_one_while_a_thread_is_to_be_had() {
        for _ in 0..50 {
            let bench = Bench::new(2);
            // One idle thread, which both of the next pushes find.
            bench.pool.push([(Urgency::START, Job::Note(1))]);
            assert_eq!(bench.next(), 1);
            while bench.pool.0.state.lock().idle == 0 {
                std::thread::yield_now();
            }
            let (go, gate) = mpsc::channel();
            bench.pool.push([(Urgency::START, Job::Look("/x", gate))]);
            bench.pool.push([(Urgency::START, Job::Note(2))]);
            assert_eq!(bench.next(), 2);
            go.send(()).unwrap();
            assert_eq!(bench.next(), 0);
        }
    }

    #[test]
    fn a_place_that_does_not_answer_takes_few_threads_and_the_others_go_on() {
        let bench = Bench::new(2);
        let mut gates = Vec::new();
        for _ in 0..20 {
            let (go, gate) = mpsc::channel();
            gates.push(go);
            bench
                .pool
                .push([(Urgency::run(5), Job::Look("/nowhere/stuck", gate))]);
        }
        for number in 1..=5 {
            bench.pool.push([(Urgency::run(1), Job::Note(number))]);
            assert_eq!(bench.next(), number);
        }
        let state = bench.pool.0.state.lock();
        assert_eq!(state.stuck.places, [Path::new("/nowhere/stuck"); 2]);
        assert_eq!(state.stuck.waiting.len(), 18);
        drop(state);
        for gate in gates {
            gate.send(()).unwrap();
        }
        for _ in 0..20 {
            assert_eq!(bench.next(), 0);
        }
        bench.pool.push([(Urgency::LATER, Job::Note(6))]);
        assert_eq!(bench.next(), 6);
    }

    /// In what order they are taken; with several threads the answers may come in another.
    #[test]
    fn the_most_urgent_goes_first() {
        let mut queue = Queue::default();
        for (urgency, work) in [
            (Urgency::LATER, 4),
            (Urgency::run(1), 2),
            (Urgency::START, 3),
            (Urgency::run(5), 1),
            (Urgency::START, 33),
        ] {
            queue.push(Queued { urgency, work });
        }
        let first = queue.pop().expect("something waits");
        queue.put_back(first);
        let order: Vec<u32> = std::iter::from_fn(|| queue.pop().map(|queued| queued.work)).collect();
        assert_eq!(order, [1, 2, 3, 33, 4]);
        assert!(queue.is_empty());
    }
}
