//! What a resource declares to be watched. The engine and the hubs of `host` do the watching.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use setpoint_host::files::AbsolutePath;
use setpoint_host::watch::{Depth, Follow};
use tokio_util::sync::CancellationToken;

use crate::{Failure, Handle, LogLine};

/// Something to be watched for a resource. Each event makes the resource dirty.
pub enum Watch {
    /// A path: itself, what leads to it, and for a directory its entries. A trailing slash says directory.
    Path {
        /// As it is written.
        path: AbsolutePath,
        /// How far below it.
        depth: Depth,
        /// Whether what a symbolic link at the path leads to is watched too, or the link alone.
        follow: Follow,
    },
    /// The passing of so much time, again and again, from the arming on. Each time, the resource notifies as if it had been
    /// repaired. [`crate::Apply::restart_interval`] begins the time anew.
    Tick(Duration),
    /// A loop of the kind's own.
    Own(OwnWatch),
    /// Something that another hub than the engine's watches for many, and calls back. It costs no task.
    Hub(HubWatch),
}

/// Begins to watch at a hub, each time the watch is armed.
pub struct HubWatch(Box<dyn FnOnce(HubWatcher) -> Result<HubGuard, Failure> + Send>);

/// Ends a watch at a hub when it is dropped.
pub type HubGuard = Box<dyn Any + Send + Sync>;

/// What a hub is given that watches for a resource. None of it waits.
pub struct HubWatcher {
    /// The resource's handle.
    pub handle: Handle,
    /// Called with what happened, in few words: the first call says that the watch is armed.
    pub event: Box<dyn Fn(&str) + Send + Sync>,
    /// Called when it cannot be watched any more.
    pub failed: Box<dyn Fn(Failure) + Send + Sync>,
    /// A line for the log.
    pub log: LogLine,
}

/// A kind's own watch loop, started each time the watch is armed.
pub struct OwnWatch(Box<dyn FnOnce(Watcher) -> WatchFuture + Send>);

/// A running watch loop. Its end without cancellation is a failure of the watch, also without an error.
pub type WatchFuture = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;

/// What a watch loop is given.
pub struct Watcher {
    /// The resource's handle.
    pub handle: Handle,
    /// Whether any parameter holds a sensitive value: what the loop finds out may hold it too, so it is not shown.
    pub has_sensitive: bool,
    /// Fires when the loop is to end.
    pub cancellation: CancellationToken,
    /// Called with what happened, in few words: the first call says that the watch is armed. Never blocks.
    pub event: Box<dyn Fn(&str) + Send + Sync>,
    /// A line for the log.
    pub log: LogLine,
}

impl Watch {
    /// A path and, for a directory, its direct entries. Links are followed.
    #[must_use]
    pub fn path(path: AbsolutePath) -> Watch {
        Watch::Path {
            path,
            depth: Depth::Children,
            follow: Follow::Target,
        }
    }

    /// A path and everything below. Links are followed at the path itself.
    #[must_use]
    pub fn tree(path: AbsolutePath) -> Watch {
        Watch::Path {
            path,
            depth: Depth::Recursive,
            follow: Follow::Target,
        }
    }

    /// A loop of the kind's own.
    #[must_use]
    pub fn own<F>(run: impl FnOnce(Watcher) -> F + Send + 'static) -> Watch
    where
        F: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        Watch::Own(OwnWatch(Box::new(move |watcher| Box::pin(run(watcher)))))
    }

    /// Something that a hub watches. `begin` answers what ends that when it is dropped; it may be called on any thread, and must not wait.
    #[must_use]
    pub fn hub<G: Any + Send + Sync>(
        begin: impl FnOnce(HubWatcher) -> Result<G, Failure> + Send + 'static,
    ) -> Watch {
        let begin = |watcher| begin(watcher).map(|guard| Box::new(guard) as HubGuard);
        Watch::Hub(HubWatch(Box::new(begin)))
    }
}

impl HubWatch {
    /// Begins to watch, until the answer is dropped.
    ///
    /// # Errors
    /// When that cannot be watched.
    pub fn begin(self, watcher: HubWatcher) -> Result<HubGuard, Failure> {
        (self.0)(watcher)
    }
}

impl OwnWatch {
    /// Starts the loop, which ends when it fails or is cancelled.
    #[must_use]
    pub fn start(self, watcher: Watcher) -> WatchFuture {
        (self.0)(watcher)
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Watch::Path { path, depth, follow } => f
                .debug_struct("Path")
                .field("path", path)
                .field("depth", depth)
                .field("follow", follow)
                .finish(),
            Watch::Tick(period) => f.debug_tuple("Tick").field(period).finish(),
            Watch::Own(_) => f.write_str("Own"),
            Watch::Hub(_) => f.write_str("Hub"),
        }
    }
}
