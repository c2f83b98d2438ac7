//! The end of a process whose working directory was removed: another process could use the same one, and what is stored there would be
//! lost with it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use setpoint_diagnostics::visible;
use setpoint_engine::Engine;
use setpoint_engine::machine::ExitReason;
use setpoint_host::files::AbsolutePath;
use setpoint_host::state::LOCK_NAME;
use setpoint_host::watch::{Depth, Follow, WatchEvent, WatchSink, WatchToken};
use setpoint_programs::failure::Failure;
use tokio::runtime::Handle;

use crate::attachment::{AgentHandle, Attached, Attachment};

/// Follows the lock of a working directory.
pub(crate) struct WatchedPrefix {
    path: PathBuf,
}

impl WatchedPrefix {
    /// The directory must be locked by this process.
    pub(crate) fn new(path: PathBuf) -> WatchedPrefix {
        WatchedPrefix { path }
    }
}

impl Attachment for WatchedPrefix {
    fn start(self: Box<Self>, agent: &AgentHandle) -> Result<Attached, Failure> {
        let lock = self.path.join(LOCK_NAME);
        let Ok(path) = AbsolutePath::new(lock.clone()) else {
            return Ok(Attached::EndsWithEngine);
        };
        let subscriber = agent.machine.host.watches.subscribe(Arc::new(LockSink {
            identity: identity(&lock),
            lock,
            prefix: self.path,
            engine: agent.engine.clone(),
            runtime: agent.runtime.clone(),
        }));
        // Without a watch the directory is as safe as before.
        let handle = subscriber.watch(&path, Depth::Entry, Follow::Link, WatchToken(0));
        Ok(Attached::Guard(Box::new((handle.ok(), subscriber))))
    }
}

#[derive(Clone)]
struct LockSink {
    /// Device and inode of the lock that this process holds.
    identity: Option<(u64, u64)>,
    lock: PathBuf,
    prefix: PathBuf,
    engine: Engine,
    runtime: Handle,
}

impl WatchSink for LockSink {
    fn dirty(&self, _: &[WatchEvent]) {
        let sink = self.clone();
        // The file system may hang.
        self.runtime.spawn_blocking(move || {
            if identity(&sink.lock) != sink.identity {
                let path = visible(&sink.prefix.display().to_string()).into_owned();
                let why = format!(
                    "the working directory {path} was removed or replaced while this process used it, so this process ends"
                );
                sink.engine.exit(ExitReason::BackgroundFailed(why.into()));
            }
        });
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = std::fs::symlink_metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}
