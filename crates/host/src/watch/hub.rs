//! The hub: its thread, its subscribers, the handles.

use super::arena::Id;
use super::state::{SinkId, State, Watched, Wish};
use super::work::Progress;
use super::{Depth, Follow, Pace, WatchError, WatchEvent, WatchSink, WatchToken};
use crate::files::{AbsolutePath, OwnRenames, Writer};
use crate::sync::Mutex;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify::{self, CreateFlags};
use rustix::io::Errno;
use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Room for several hundred events, so that a batch is worth its name.
const BUFFER: usize = 64 * 1024;

/// Watches paths for everyone in this process. Dropping it ends the watching; handles that are left do nothing.
#[derive(Debug)]
pub struct WatchHub {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// How much a hub watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// Paths that are watched, targets of watched links counted.
    pub paths: usize,
    /// Watches in the kernel, which its limit is about.
    pub kernel_watches: usize,
    /// Directories that are known, as text that somebody wrote.
    pub walks: usize,
    /// Paths that are looked at in intervals, because they cannot be watched.
    pub polled: usize,
}

struct Shared {
    pace: Pace,
    /// The kernel's list of mounted file systems, which can be polled for changes.
    mounts: Option<OwnedFd>,
    /// It has changed. The kernel says so once to each who polls.
    mounts_changed: AtomicBool,
    /// Written to when the thread should look up from its poll.
    wake: OwnedFd,
    stopping: AtomicBool,
    held: AtomicBool,
    state: Mutex<State>,
    renames: Arc<OwnRenames>,
    /// Held from reading to telling the sinks, so that batches do not overtake each other.
    reader: Mutex<Box<[MaybeUninit<u8>]>>,
}

impl WatchHub {
    /// Opens the inotify instance and starts the thread.
    pub fn new() -> io::Result<Self> {
        Self::with_pace(Pace::default())
    }

    /// The same, looking at what no event tells in these intervals.
    pub fn with_pace(pace: Pace) -> io::Result<Self> {
        let renames = Arc::new(OwnRenames::default());
        let state = State::new(instance()?, Arc::clone(&renames), 0);
        let shared = Arc::new(Shared {
            pace,
            mounts: state.mounts.descriptor(),
            mounts_changed: AtomicBool::new(false),
            wake: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
            stopping: AtomicBool::new(false),
            held: AtomicBool::new(false),
            state: Mutex::new(state),
            renames,
            reader: Mutex::new(vec![MaybeUninit::uninit(); BUFFER].into_boxed_slice()),
        });
        let served = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("watches".to_owned())
            .spawn(move || served.serve())?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Somebody who will watch paths and be told at `sink`.
    pub fn subscribe(&self, sink: Arc<dyn WatchSink>) -> Subscriber {
        let id = self.shared.state.lock().subscribers.insert(sink);
        Subscriber(Arc::new(Subscription {
            shared: Arc::clone(&self.shared),
            id,
        }))
    }

    /// Reads everything that the kernel has queued until now, and tells the sinks, before it returns.
    ///
    /// After a repair this brings in the events that the repair itself has made. Must not be called by a sink.
    pub fn catch_up(&self) -> io::Result<()> {
        self.shared.read(Extent::All)
    }

    /// Stops reading until the answer is dropped, so that the kernel's queue fills. For tests of overflow.
    pub fn hold(&self) -> Held {
        self.shared.held.store(true, Ordering::SeqCst);
        self.shared.wake();
        // Whatever is being read now is finished when the reader is free.
        drop(self.shared.reader.lock());
        Held(Arc::clone(&self.shared))
    }

    /// How much is watched.
    pub fn statistics(&self) -> Statistics {
        let state = self.shared.state.lock();
        Statistics {
            paths: state.watched.len(),
            kernel_watches: state.by_watch.len() + state.inodes.len(),
            walks: state.walks.len(),
            polled: state.polled.len(),
        }
    }
}

impl Drop for WatchHub {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        self.shared.wake();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

/// A hub that does not read, as long as this lives.
#[must_use = "the hub reads on when this is dropped"]
pub struct Held(Arc<Shared>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.held.store(false, Ordering::SeqCst);
        self.0.wake();
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Held")
    }
}

/// One party that watches, with one sink for all its watches.
#[derive(Debug, Clone)]
pub struct Subscriber(Arc<Subscription>);

struct Subscription {
    shared: Arc<Shared>,
    id: SinkId,
}

impl Subscriber {
    /// Watches a path until the handle is dropped. The path is cleaned (`..` taken in the text); it need not exist.
    ///
    /// When this returns, the watch is armed: every later change is reported.
    pub fn watch(
        &self,
        path: &AbsolutePath,
        depth: Depth,
        follow: Follow,
        token: WatchToken,
    ) -> Result<WatchHandle, WatchError> {
        self.arm(path, depth, follow, token, false)
    }

    /// Watches a file that is of interest only when nobody is writing to it: the same, but a write is told as
    /// [`Cause::Unsettled`](super::Cause::Unsettled), and the writer's closing as a change.
    ///
    /// The closing of a file that has only just been created may be missed, so whoever waits for it waits for a limited time.
    pub fn watch_settling(&self, path: &AbsolutePath, token: WatchToken) -> Result<WatchHandle, WatchError> {
        self.arm(path, Depth::Entry, Follow::Target, token, true)
    }

    fn arm(
        &self,
        path: &AbsolutePath,
        depth: Depth,
        follow: Follow,
        token: WatchToken,
        settling: bool,
    ) -> Result<WatchHandle, WatchError> {
        let shared = &self.0.shared;
        let wish = Wish {
            token,
            subscriber: self.0.id,
            depth,
            follow: follow == Follow::Target,
            settling,
        };
        let path = path.cleaned();
        let bytes = path.as_bytes();
        let mut state = shared.state.lock();
        let mut generation = state.generation;
        let mut watched = state.watch(bytes.strip_suffix(b"/").unwrap_or(bytes), wish);
        // Others may have their turn between the slices.
        while state.settle_some() != Progress::Done {
            drop(state);
            shared.state.let_others_in();
            state = shared.state.lock();
            if state.generation != generation {
                watched = state
                    .number_now(generation, watched)
                    .expect("what was asked for is asked for again");
                generation = state.generation;
            }
        }
        state.armed(watched)?;
        // Looking at paths may have shown what events have yet to tell; the thread passes it on.
        let more = state.has_reports();
        drop(state);
        if more {
            shared.wake();
        }
        Ok(WatchHandle {
            subscription: Arc::clone(&self.0),
            watched,
            generation,
        })
    }
}

impl Subscriber {
    /// The one who watches with this token, as somebody who replaces the file there: it is not told of its own renames.
    pub fn writer(&self, token: WatchToken) -> Writer {
        Writer::new(Arc::clone(&self.0.shared.renames), self.0.id.number(), token.0)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let sink = self.shared.state.lock().subscribers.remove(self.id);
        // Outside the lock: the sink may own handles.
        drop(sink);
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Subscription").field(&self.id).finish()
    }
}

/// A watched path. Dropping it ends the watch.
#[derive(Debug)]
#[must_use = "the watch ends when its handle is dropped"]
pub struct WatchHandle {
    subscription: Arc<Subscription>,
    watched: Id<Watched>,
    generation: u64,
}

impl Drop for WatchHandle {
    fn drop(&mut self) {
        let mut state = self.subscription.shared.state.lock();
        if let Some(watched) = state.number_now(self.generation, self.watched) {
            state.unwatch(watched);
        }
    }
}

/// When the hub's thread looks up although nothing has happened.
struct Timetable {
    poll: Instant,
    round: Instant,
    /// How many paths have had their turn in this round.
    cursor: usize,
}

/// How much is read at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// What one call of the kernel gives.
    Batch,
    /// Until nothing is left.
    All,
}

impl Shared {
    /// Serves until it is told to stop, whatever happens meanwhile: who watches must never be left without word.
    fn serve(&self) {
        let now = Instant::now();
        let mut times = Timetable {
            poll: now + self.pace.poll,
            round: now + self.pace.round,
            cursor: 0,
        };
        while !self.stopping.load(Ordering::SeqCst) {
            let served = catch_unwind(AssertUnwindSafe(|| self.serve_once(&mut times)));
            if !matches!(served, Ok(Ok(()))) && !self.stopping.load(Ordering::SeqCst) {
                // A panic is a mistake of ours, and what it left behind is not to be trusted.
                let _ = catch_unwind(AssertUnwindSafe(|| self.begin_anew()));
            }
        }
    }

    fn serve_once(&self, times: &mut Timetable) -> io::Result<()> {
        let (inotify, watched, polled) = {
            let state = self.state.lock();
            (
                Arc::clone(&state.inotify),
                state.watched.len(),
                state.polled.len(),
            )
        };
        let held = self.held.load(Ordering::SeqCst);
        let mut sources = vec![PollFd::new(&self.wake, PollFlags::IN)];
        if !held {
            sources.push(PollFd::new(&*inotify, PollFlags::IN));
            sources.extend(
                self.mounts
                    .iter()
                    .map(|mounts| PollFd::new(mounts, PollFlags::PRI)),
            );
        }
        let next = match (watched, polled) {
            (0, _) => None,
            (_, 0) => Some(times.round),
            _ => Some(times.round.min(times.poll)),
        };
        let wait = next.map(|next| next.saturating_duration_since(Instant::now()));
        let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
        match poll(&mut sources, wait.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if sources.get(2).is_some_and(|mounts| !mounts.revents().is_empty()) {
            self.mounts_changed.store(true, Ordering::SeqCst);
        }
        if !sources[0].revents().is_empty() {
            let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        }
        let now = Instant::now();
        if now >= times.poll {
            let mut state = self.state.lock();
            state.report_polled();
            times.poll = now + self.pace.poll;
        }
        if now >= times.round {
            let (count, pause) = self.pace.step(watched);
            times.cursor = self.state.lock().report_some(times.cursor, count).unwrap_or(0);
            times.round = now + pause;
        }
        // One batch: if there is more, the next poll returns at once.
        self.read(Extent::Batch)
    }

    /// Watches everything anew, and tells everybody that changes may have been missed.
    fn begin_anew(&self) {
        // Nothing is told before it can be made good.
        let inotify = loop {
            match instance() {
                Ok(inotify) => break inotify,
                Err(_) if self.stopping.load(Ordering::SeqCst) => return,
                Err(_) => std::thread::sleep(Duration::from_secs(1)),
            }
        };
        let mut state = self.state.lock();
        let asked = state.asked_for();
        self.renames.clear();
        let fresh = State::new(inotify, Arc::clone(&self.renames), state.generation + 1);
        let old = std::mem::replace(&mut *state, fresh);
        state.take_over(old, asked);
        let reports = state.take_reports();
        drop(state);
        for (sink, events) in reports {
            tell(sink, &events);
        }
    }

    fn wake(&self) {
        // Fails only if the counter is full, and then the thread is awake anyway.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// Reads what the kernel has queued, and tells the sinks.
    fn read(&self, extent: Extent) -> io::Result<()> {
        let mut buffer = self.reader.lock();
        let inotify = Arc::clone(&self.state.lock().inotify);
        let mut reader = inotify::Reader::new(&*inotify, &mut buffer);
        loop {
            let mut state = self.state.lock();
            let mut drained = self.held.load(Ordering::SeqCst) || self.stopping.load(Ordering::SeqCst);
            if !drained && self.mounts_have_changed() {
                state.mounts_changed();
            }
            let mut failure = None;
            while !drained {
                match reader.next() {
                    Ok(event) => {
                        let name = event.file_name().map_or(&[][..], std::ffi::CStr::to_bytes);
                        state.process(event.wd(), event.events(), event.cookie(), name);
                    }
                    Err(Errno::WOULDBLOCK) => drained = true,
                    Err(Errno::INTR) => continue,
                    Err(error) => {
                        failure = Some(error);
                        drained = true;
                    }
                }
                if reader.is_buffer_empty() {
                    break;
                }
            }
            // Nobody is told before the watches are where the paths lead now. Trees may take longer: what is found in
            // them is told later, once more.
            loop {
                let progress = state.settle_some();
                if progress != Progress::More {
                    let reports = state.take_reports();
                    drop(state);
                    for (sink, events) in reports {
                        tell(sink, &events);
                    }
                    if progress == Progress::Done {
                        break;
                    }
                } else {
                    drop(state);
                }
                self.state.let_others_in();
                state = self.state.lock();
            }
            if let Some(error) = failure {
                return Err(error.into());
            }
            if drained || extent == Extent::Batch {
                return Ok(());
            }
        }
    }

    fn mounts_have_changed(&self) -> bool {
        let Some(mounts) = &self.mounts else {
            return false;
        };
        let at_once = Timespec::default();
        let polled = poll(&mut [PollFd::new(mounts, PollFlags::PRI)], Some(&at_once));
        let told = self.mounts_changed.swap(false, Ordering::SeqCst);
        told || matches!(polled, Ok(count) if count > 0)
    }
}

fn instance() -> io::Result<Arc<OwnedFd>> {
    Ok(Arc::new(inotify::init(
        CreateFlags::NONBLOCK | CreateFlags::CLOEXEC,
    )?))
}

/// A sink that panics is a bug of its subscriber and must not end everybody's watching.
fn tell(sink: Arc<dyn WatchSink>, events: &[WatchEvent]) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        sink.dirty(events);
        // It may be the last one who has it, and end with a panic too.
        drop(sink);
    }));
}

impl fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Shared")
    }
}
