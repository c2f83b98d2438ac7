//! Following the settled content of a file.
//!
//! A file that is being written in place goes through states that its writer never meant anybody to see. So it is read when its
//! writer closes it, or when nobody has changed it for a moment ([`QUIET`]); what is put in place by renaming is whole and read
//! at once. A reading during which somebody began to write is thrown away.

use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use setpoint_host::files::AbsolutePath;
use setpoint_host::sync::{Mutex, MutexGuard};
use setpoint_host::watch::Cause;
use setpoint_value::{Background, Clock, FollowedFile, Timer, Wake};

use super::background::Threads;
use super::clock::RealClock;
use super::files::{FileWatches, Listening, read};

/// How long nobody may have changed a file whose writer keeps it open, for it to count as finished.
const QUIET: Duration = Duration::from_millis(50);

/// A file that is followed.
pub(super) struct Content(Arc<Followed>);

struct Followed {
    path: AbsolutePath,
    wake: Wake,
    watches: Arc<FileWatches>,
    clock: Arc<RealClock>,
    background: Arc<Threads>,
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    /// What was read and not taken yet.
    latest: Option<io::Result<Vec<u8>>>,
    watch: Option<Listening>,
    /// Runs while a writer is at work.
    quiet: Option<Timer>,
    /// Whether somebody is, as far as is known, in the midst of writing.
    is_unsettled: bool,
    /// How many events there were, and how many of them were of writing.
    events: u64,
    writes: u64,
    /// A job is reading, or about to.
    is_reading: bool,
    /// Nobody follows any more.
    is_closed: bool,
}

impl Content {
    /// Begins; the first reading is under way when this returns.
    pub(super) fn follow(
        path: AbsolutePath,
        watches: &Arc<FileWatches>,
        clock: &Arc<RealClock>,
        background: &Arc<Threads>,
        wake: Wake,
    ) -> Content {
        let followed = Arc::new(Followed {
            path,
            wake,
            watches: watches.clone(),
            clock: clock.clone(),
            background: background.clone(),
            progress: Mutex::new(Progress {
                is_reading: true,
                ..Progress::default()
            }),
        });
        let first = followed.clone();
        background.run(Box::new(move || first.begin()));
        Content(followed)
    }
}

impl FollowedFile for Content {
    fn take(&mut self) -> Option<io::Result<Vec<u8>>> {
        self.0.lock().latest.take()
    }
}

impl Drop for Content {
    fn drop(&mut self) {
        let ended = {
            let mut progress = self.0.lock();
            progress.is_closed = true;
            (progress.watch.take(), progress.quiet.take())
        };
        // Outside the lock: both tell others that they end.
        drop(ended);
    }
}

impl Followed {
    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock()
    }

    /// Arms the watch and reads for the first time.
    fn begin(self: &Arc<Self>) {
        // A watch that is armed by a follower, and a follower that is kept by its watch, would never go.
        let weak = Arc::downgrade(self);
        let listener = move |cause: &Cause| {
            if let Some(followed) = Weak::upgrade(&weak) {
                followed.happened(cause);
            }
        };
        let armed = self.watches.listen(listener, |subscriber, token| {
            subscriber.watch_settling(&self.path, token)
        });
        let late = {
            let mut progress = self.lock();
            match armed {
                Ok(watch) if progress.is_closed => Some(watch),
                Ok(watch) => {
                    progress.watch = Some(watch);
                    None
                }
                Err(error) => {
                    progress.latest = Some(Err(error));
                    progress.is_reading = false;
                    drop(progress);
                    self.wake.wake();
                    return;
                }
            }
        };
        drop(late);
        self.read();
    }

    /// Takes an event of the watch.
    fn happened(self: &Arc<Self>, cause: &Cause) {
        let is_writing = matches!(cause, Cause::Unsettled);
        let (events, before) = {
            let mut progress = self.lock();
            progress.events += 1;
            progress.writes += u64::from(is_writing);
            progress.is_unsettled = is_writing;
            (progress.events, progress.quiet.take())
        };
        drop(before);
        if is_writing {
            let weak = Arc::downgrade(self);
            let timer = self.clock.after(
                QUIET,
                Wake::new(move || {
                    if let Some(followed) = Weak::upgrade(&weak) {
                        followed.is_quiet(events);
                    }
                }),
            );
            let mut progress = self.lock();
            let before = match progress.is_closed {
                true => Some(timer),
                false => progress.quiet.replace(timer),
            };
            drop(progress);
            drop(before);
        } else {
            self.read_soon();
        }
    }

    /// Nothing has happened for a while since this many events.
    fn is_quiet(self: &Arc<Self>, events: u64) {
        let mut progress = self.lock();
        if progress.events != events {
            return;
        }
        progress.is_unsettled = false;
        drop(progress);
        self.read_soon();
    }

    fn read_soon(self: &Arc<Self>) {
        let mut progress = self.lock();
        // A job that is at work looks at the number of events when it is done.
        if progress.is_closed || std::mem::replace(&mut progress.is_reading, true) {
            return;
        }
        drop(progress);
        let followed = self.clone();
        self.background.run(Box::new(move || followed.read()));
    }

    /// Reads until what was read is the newest there is, or somebody is writing.
    fn read(&self) {
        loop {
            let before = {
                let progress = self.lock();
                (progress.events, progress.writes, progress.is_closed)
            };
            let (events, writes, is_closed) = before;
            if is_closed {
                return;
            }
            let content = read(&self.path);
            // What was done to the file until now, and so may have been read half done, has been told when this returns.
            let caught_up = self.watches.host.watches.catch_up();
            let mut progress = self.lock();
            if progress.writes == writes && !progress.is_unsettled {
                progress.latest = Some(caught_up.and(content));
                let is_newest = progress.events == events;
                progress.is_reading = !is_newest;
                drop(progress);
                self.wake.wake();
                if is_newest {
                    return;
                }
            } else if progress.is_unsettled {
                // The writer's closing, or the silence after it, begins again.
                progress.is_reading = false;
                return;
            }
        }
    }
}
