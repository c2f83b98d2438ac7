//! Reading and watching files, over the hub that the engine uses too.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use setpoint_host::Host;
use setpoint_host::files::{AbsolutePath, Entry, FileError};
use setpoint_host::sync::{Mutex, MutexGuard};
use setpoint_host::watch::{
    Cause, Depth, Follow, Subscriber, WatchError, WatchEvent, WatchHandle, WatchToken,
};
use setpoint_value::{FileWatch, Files, FollowedFile, LARGEST_FILE, Wake, WatchDepth};

use super::background::Threads;
use super::clock::RealClock;
use super::content::Content;

/// Files of the machine.
pub(crate) struct RealFiles {
    watches: Arc<FileWatches>,
    clock: Arc<RealClock>,
    background: Arc<Threads>,
}

/// The watches of files, with those who listen to them.
pub(super) struct FileWatches {
    pub(super) host: Arc<Host>,
    subscriber: Subscriber,
    told: Arc<Mutex<Told>>,
}

/// Whom the events of a watch go to.
type Listener = Arc<dyn Fn(&Cause) + Send + Sync>;

#[derive(Default)]
struct Told {
    by_token: BTreeMap<u64, Listener>,
    next: u64,
}

impl RealFiles {
    /// Watches through the hub of `host`; waits for files to settle by `clock`, and for the disk in `background`.
    pub(super) fn new(host: &Arc<Host>, clock: &Arc<RealClock>, background: &Arc<Threads>) -> RealFiles {
        RealFiles {
            watches: Arc::new(FileWatches::new(host)),
            clock: clock.clone(),
            background: background.clone(),
        }
    }
}

fn lock(told: &Mutex<Told>) -> MutexGuard<'_, Told> {
    told.lock()
}

impl FileWatches {
    /// Watches through the hub of `host`.
    pub(super) fn new(host: &Arc<Host>) -> FileWatches {
        let told: Arc<Mutex<Told>> = Arc::default();
        let listeners = told.clone();
        let subscriber = host.watches.subscribe(Arc::new(move |events: &[WatchEvent]| {
            for event in events {
                let listener = lock(&listeners).by_token.get(&event.token.0).cloned();
                if let Some(listener) = listener {
                    listener(&event.cause);
                }
            }
        }));
        FileWatches {
            host: host.clone(),
            subscriber,
            told,
        }
    }

    /// Wakes whenever something happens to a path, or the watch fails: reading again says what is wrong.
    pub(super) fn watch(&self, path: &str, depth: WatchDepth, wake: Wake) -> io::Result<FileWatch> {
        let path = absolute(path)?;
        let depth = match depth {
            WatchDepth::Entry => Depth::Children,
            WatchDepth::Recursive => Depth::Recursive,
        };
        let listening = self.listen(
            move |_| wake.wake(),
            |subscriber, token| subscriber.watch(&path, depth, Follow::Target, token),
        )?;
        Ok(Box::new(listening))
    }

    /// Calls `listener` with whatever happens to a path. How it is watched is `arm`'s business.
    pub(super) fn listen(
        &self,
        listener: impl Fn(&Cause) + Send + Sync + 'static,
        arm: impl FnOnce(&Subscriber, WatchToken) -> Result<WatchHandle, WatchError>,
    ) -> io::Result<Listening> {
        let token = {
            let mut told = lock(&self.told);
            let token = told.next;
            told.next += 1;
            told.by_token.insert(token, Arc::new(listener));
            token
        };
        // Made before the watch is armed, so that an error takes the entry back too.
        let mut listening = Listening {
            told: self.told.clone(),
            token,
            handle: None,
        };
        listening.handle = Some(arm(&self.subscriber, WatchToken(token)).map_err(io::Error::other)?);
        Ok(listening)
    }
}

/// The content of the regular file at a path, if it is not too large. Whoever can read it through us could not be somebody who
/// made a link to it because they may not read it themselves.
pub(super) fn read(path: &AbsolutePath) -> io::Result<Vec<u8>> {
    let entry = Entry::at(path)
        .and_then(|entry| entry.follow())
        .map_err(refused)?;
    let mut file = entry.open_to_take_over().map_err(refused)?;
    let too_large = || {
        let mebibytes = LARGEST_FILE >> 20;
        let message = format!("it holds more than {mebibytes} MiB");
        io::Error::new(io::ErrorKind::FileTooLarge, message)
    };
    if file.stat().size > LARGEST_FILE {
        return Err(too_large());
    }
    // What `/proc` and `/sys` say of their files' sizes is no promise.
    let mut content = Vec::with_capacity(usize::try_from(file.stat().size).unwrap_or_default());
    match (&mut file).take(LARGEST_FILE + 1).read_to_end(&mut content) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            let message = "it has no content of its own and gives what comes, when it comes";
            Err(io::Error::new(io::ErrorKind::InvalidInput, message))
        }
        Err(error) => Err(error),
        Ok(_) if content.len() as u64 > LARGEST_FILE => Err(too_large()),
        Ok(_) => Ok(content),
    }
}

/// What is wrong with a file: the system's own words, without the path that the caller says anyway, and `InvalidInput` for what
/// we refuse.
fn refused(error: FileError) -> io::Error {
    match error {
        FileError::System { source, .. } => source,
        FileError::WrongType { found, .. } => {
            io::Error::new(io::ErrorKind::InvalidInput, format!("it is a {found}"))
        }
        // Links that are not to be trusted, of whatever sort.
        error => io::Error::new(io::ErrorKind::InvalidInput, error.to_string()),
    }
}

fn absolute(path: &str) -> io::Result<AbsolutePath> {
    AbsolutePath::new(path).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
}

impl Files for RealFiles {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        // A path that is not absolute is seen from the working directory.
        let path = std::path::absolute(path)?;
        read(&AbsolutePath::new(path).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?)
    }

    fn follow(&self, path: &str, wake: Wake) -> Box<dyn FollowedFile> {
        let path = match absolute(path) {
            Ok(path) => path,
            Err(error) => return Box::new(Refused(Some(error))),
        };
        let (watches, clock, background) = (&self.watches, &self.clock, &self.background);
        Box::new(Content::follow(path, watches, clock, background, wake))
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
        self.watches.watch(path, depth, wake)
    }
}

/// A path that nothing can be at.
struct Refused(Option<io::Error>);

impl FollowedFile for Refused {
    fn take(&mut self) -> Option<io::Result<Vec<u8>>> {
        self.0.take().map(Err)
    }
}

/// A watch with its listener; both end when this is dropped.
pub(super) struct Listening {
    told: Arc<Mutex<Told>>,
    token: u64,
    handle: Option<WatchHandle>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        drop(self.handle.take());
        let listener = lock(&self.told).by_token.remove(&self.token);
        // Outside the lock: what is called may own watches.
        drop(listener);
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
