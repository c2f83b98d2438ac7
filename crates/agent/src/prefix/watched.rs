//! The end of a process whose state directory was removed: another process could use the same one, and what is stored there would be
//! lost with it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
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

/// Follows the lock of the state directory, which this process must hold.
pub(crate) struct WatchedPrefix;

impl Attachment for WatchedPrefix {
    fn start(self: Box<Self>, agent: &AgentHandle) -> Result<Attached, Failure> {
        let lock = agent.machine.prefix.join(LOCK_NAME);
        let subscriber = agent.machine.host.watches.subscribe(Arc::new(LockSink {
            identity: identity(lock.as_path()),
            lock: lock.clone(),
            prefix: agent.machine.prefix.clone(),
            engine: agent.engine.clone(),
            runtime: agent.runtime.clone(),
        }));
        match subscriber.watch(&lock, Depth::Entry, Follow::Link, WatchToken(0)) {
            Ok(handle) => Ok(Attached::Guard(Box::new((handle, subscriber)))),
            Err(error) => {
                let text =
                    format!("cannot watch the state directory, so its removal stays unnoticed: {error}");
                agent.reporter.warning(visible(&text));
                Ok(Attached::EndsWithEngine)
            }
        }
    }
}

#[derive(Clone)]
struct LockSink {
    /// Device and inode of the lock that this process holds.
    identity: Option<(u64, u64)>,
    lock: AbsolutePath,
    prefix: AbsolutePath,
    engine: Engine,
    runtime: Handle,
}

impl WatchSink for LockSink {
    fn dirty(&self, _: &[WatchEvent]) {
        let sink = self.clone();
        // The file system may hang.
        self.runtime.spawn_blocking(move || {
            if identity(sink.lock.as_path()) != sink.identity {
                let path = sink.prefix.as_path().display().to_string();
                let why = format!(
                    "the state directory {} was removed or replaced while this process used it, so this process ends",
                    visible(&path)
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
