//! Reading and watching files, over the hub that the engine uses too.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use setpoint_host::Host;
use setpoint_host::files::AbsolutePath;
use setpoint_host::watch::{Depth, Follow, Subscriber, WatchEvent, WatchHandle, WatchToken};
use setpoint_value::{FileWatch, Files, Wake, WatchDepth};

/// Files of the machine.
pub(crate) struct RealFiles {
    subscriber: Subscriber,
    wakes: Arc<Mutex<Wakes>>,
}

#[derive(Default)]
struct Wakes {
    by_token: BTreeMap<u64, Wake>,
    next: u64,
}

impl RealFiles {
    /// Watches through the hub of `host`.
    pub(crate) fn new(host: &Arc<Host>) -> RealFiles {
        let wakes: Arc<Mutex<Wakes>> = Arc::default();
        let told = wakes.clone();
        let subscriber = host.watches.subscribe(Arc::new(move |events: &[WatchEvent]| {
            // A watch that failed wakes too: reading again says what is wrong.
            for event in events {
                let wake = lock(&told).by_token.get(&event.token.0).cloned();
                if let Some(wake) = wake {
                    wake.wake();
                }
            }
        }));
        RealFiles { subscriber, wakes }
    }
}

fn lock(wakes: &Mutex<Wakes>) -> MutexGuard<'_, Wakes> {
    wakes.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Files for RealFiles {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn exists(&self, path: &str) -> bool {
        Path::new(path).exists()
    }

    fn read_link(&self, path: &str) -> io::Result<String> {
        text(std::fs::read_link(path)?.as_path())
    }

    fn canonical(&self, path: &str) -> io::Result<String> {
        text(std::fs::canonicalize(path)?.as_path())
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path)? {
            names.push(text(Path::new(&entry?.file_name()))?);
        }
        names.sort();
        Ok(names)
    }

    fn is_executable(&self, path: &str) -> bool {
        std::fs::metadata(path).is_ok_and(|found| found.is_file())
            && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
            // Root passes the access check even where nobody may execute.
            && std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o111 != 0)
    }

    fn watch(&self, path: &str, depth: WatchDepth, wake: Wake) -> io::Result<FileWatch> {
        let path =
            AbsolutePath::new(path).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let depth = match depth {
            WatchDepth::Entry => Depth::Children,
            WatchDepth::Recursive => Depth::Recursive,
        };
        let token = {
            let mut wakes = lock(&self.wakes);
            let token = wakes.next;
            wakes.next += 1;
            wakes.by_token.insert(token, wake);
            token
        };
        // Made before the watch is armed, so that an error takes the entry back too.
        let mut watched = Watched {
            wakes: self.wakes.clone(),
            token,
            handle: None,
        };
        let handle = self
            .subscriber
            .watch(&path, depth, Follow::Target, WatchToken(token));
        watched.handle = Some(handle.map_err(io::Error::other)?);
        Ok(Box::new(watched))
    }
}

struct Watched {
    wakes: Arc<Mutex<Wakes>>,
    token: u64,
    handle: Option<WatchHandle>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        drop(self.handle.take());
        let wake = lock(&self.wakes).by_token.remove(&self.token);
        // Outside the lock: what is woken may own watches.
        drop(wake);
    }
}

fn text(path: &Path) -> io::Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("the name {} is not UTF-8", path.display()),
        )
    })
}
