//! Watching paths: one inotify instance and one thread for everything that is watched.
//!
//! A [`WatchHub`] watches *directories* and filters by name, so a hundred thousand files in one directory cost one
//! kernel watch, and creation, replacement, removal and moves are seen like writes. Every directory on the way to a
//! path is watched for the next component, down to the first that is missing, so that a path may come and go with
//! any of its parents. Symbolic links are followed by hand: the directory that holds a link is watched for the
//! link's name, and the walk goes on at its target.
//!
//! Guarantees, with `inotify(7)`'s own limits (no events of other machines, of the kernel's changes in `/proc` and
//! `/sys`, of writes through a mapping, of mounting over a directory):
//!
//! - [`Subscriber::watch`] returns when the watch is armed. What changes afterwards is reported.
//! - Every directory is watched *before* its entries are looked at, at arming as at each later move of the watch,
//!   so a tree that is made faster than the watch can descend is seen whole.
//! - An event means «something may have changed since you last looked», no more: reports of one path are combined
//!   within a batch, and the sink is told after the watch has been moved to where the path leads now. Dirty is a
//!   flag, not a queue.
//! - Overflow of the kernel's queue reports every path and checks every watch. It is no error.
//! - Mounting over a directory and unmounting are noticed: the kernel's list of mounts is polled.
//! - What no event tells is found by looking: every path is reported once in a while ([`Pace`]). So are, more often, those
//!   for which the kernel has no watch left, and those on file systems that somebody else serves. The latter are never
//!   touched here, since a call that is never answered would end the watching of everything.
//! - The lock is held for a slice of the work at a time, however large the tree.
//! - Should the hub fail, it begins anew with everything that was watched, and everybody is told.
//! - A watched file with several hard links is also watched as such, since a write through another name is not seen
//!   in this directory. That it got a second name later is noticed at the next event of its own name. Files that
//!   are only reported because they lie *in* a watched directory are not looked at one by one, so a write to one of
//!   them through a name outside is missed.
//! - Temporary files of this program ([`crate::files::TEMPORARY_PREFIX`]) make no events for the directory that
//!   they are in.
//!
//! Our own replacements of files are recognised: the temporary file's name leaves and the watched name arrives under one
//! cookie, and whoever announced that ([`Subscriber::writer`]) is not told. Everybody else is, and every other write has an
//! event of its own.

mod arena;
mod events;
mod hub;
mod mounts;
mod nodes;
mod pace;
mod state;
mod walks;
mod work;

pub use hub::{Held, Statistics, Subscriber, WatchHandle, WatchHub};
pub use pace::Pace;

use rustix::io::Errno;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// The subscriber's own number for one of its watches; handed back in events, never interpreted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatchToken(pub u64);

/// How far below a path a watch reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Depth {
    /// The path itself: a file's contents and metadata, whether it is there, and what sort of thing it is.
    Entry,
    /// And, if it is a directory, its direct children.
    Children,
    /// And everything below them, directories included that appear later. Links inside are not followed.
    Recursive,
}

/// Whether a symbolic link at the path itself is followed. Links on the way always are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Follow {
    /// The path and what it leads to: every link on the way there, and the target by `depth`.
    Target,
    /// The link alone.
    Link,
}

/// What a subscriber is told.
#[derive(Debug, Clone)]
pub struct WatchEvent {
    /// The token that the watch was made with.
    pub token: WatchToken,
    /// What was seen.
    pub cause: Cause,
}

/// Why a watch speaks.
#[derive(Debug, Clone)]
pub enum Cause {
    /// Something happened at the path, below it as far as the watch reaches, or to its parents.
    Changed,
    /// Somebody is changing the file at the path and has not closed it yet: what it holds may be half of what it will. Only
    /// told to [`Subscriber::watch_settling`].
    Unsettled,
    /// The kernel's queue overflowed; this path may or may not be concerned.
    Overflow,
    /// The watching of files broke off by a mistake of ours or of the system, and has begun anew; this path may or may not
    /// have changed meanwhile.
    BegunAnew,
    /// From now on the path is looked at in intervals ([`Pace::poll`]), because it cannot be watched. Each look is told as
    /// [`Self::Changed`].
    Polled(PollReason),
    /// Changes may be missed from now on. The watch should be dropped and made anew later.
    Failed(Arc<WatchError>),
}

/// Why a path is looked at in intervals.
#[derive(Debug, Clone)]
pub enum PollReason {
    /// The kernel gives this user no more watches.
    OutOfWatches(Arc<WatchError>),
    /// It lies on a file system that another program or machine serves. That may answer late or never, and changes there
    /// need not be events here.
    Served,
}

/// Where the events of a subscriber go.
///
/// Called on the hub's thread with one batch at a time, each token at most once in it. It must not block, and must
/// not call [`WatchHub::catch_up`]; making and dropping watches is fine. A token may be named once more after its
/// handle was dropped.
pub trait WatchSink: Send + Sync {
    /// These may have changed.
    fn dirty(&self, events: &[WatchEvent]);
}

impl<F: Fn(&[WatchEvent]) + Send + Sync> WatchSink for F {
    fn dirty(&self, events: &[WatchEvent]) {
        self(events);
    }
}

/// A path that cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// This user's share of kernel watches is used up.
    #[error(
        "watch {}: out of inotify watches (the limit is the sysctl `fs.inotify.max_user_watches`)",
        path.display()
    )]
    OutOfWatches {
        /// The directory that no watch was left for.
        path: PathBuf,
    },
    /// A directory that must be watched may not be read.
    #[error("watch {}: permission denied", path.display())]
    PermissionDenied {
        /// That directory.
        path: PathBuf,
    },
    /// Anything else.
    #[error("watch {}: {source}", path.display())]
    System {
        /// What was to be watched.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

impl WatchError {
    fn new(path: PathBuf, error: Errno) -> Self {
        match error {
            Errno::NOSPC => Self::OutOfWatches { path },
            Errno::ACCESS | Errno::PERM => Self::PermissionDenied { path },
            error => Self::System {
                path,
                source: error.into(),
            },
        }
    }
}
