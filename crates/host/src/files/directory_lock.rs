//! Directories that one process at a time may change: one that modules are fetched into, one in which files are edited.
//!
//! The lock is on the directory itself, so nothing is left behind, and the system gives it back however its holder ends.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;

use crate::sync::Mutex;

/// How often somebody who waits for another process looks.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// How long it waits before it says so.
const SAY_SO_AFTER: Duration = Duration::from_secs(1);

/// A directory that no other process locks meanwhile. Dropping it unlocks. Nobody locks a second directory while holding one, so no two
/// wait for each other.
#[derive(Debug)]
#[must_use = "dropping it unlocks"]
pub struct DirectoryLock {
    directory: File,
}

/// The directories that this process has locked for whoever edits files in them, by device and inode.
static SHARED: Mutex<BTreeMap<(u64, u64), Weak<DirectoryLock>>> = Mutex::new(BTreeMap::new());

impl DirectoryLock {
    /// Waits until nobody else holds the lock, also nobody of this process, but not longer than `patience`. `waiting` is called once if that
    /// takes a while.
    ///
    /// # Errors
    /// As [`NotLocked`] says.
    pub fn take(
        path: &Path,
        patience: Duration,
        mut waiting: impl FnMut(&LockHolder),
    ) -> Result<DirectoryLock, NotLocked> {
        let directory = open(path).map_err(NotLocked::Unusable)?;
        let (start, mut told) = (Instant::now(), false);
        loop {
            match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(DirectoryLock { directory }),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(NotLocked::Unusable(error.into())),
            }
            if start.elapsed() > patience {
                return Err(NotLocked::Held(LockHolder::of(&directory)));
            }
            if !told && start.elapsed() > SAY_SO_AFTER {
                waiting(&LockHolder::of(&directory));
                told = true;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// The lock for all of this process who want it at the same time: it keeps other processes out. Does not wait.
    ///
    /// # Errors
    /// As [`NotLocked`] says.
    pub fn try_share(path: &Path) -> Result<Arc<DirectoryLock>, NotLocked> {
        let directory = open(path).map_err(NotLocked::Unusable)?;
        let found = directory.metadata().map_err(NotLocked::Unusable)?;
        let mut shared = SHARED.lock();
        shared.retain(|_, lock| lock.strong_count() > 0);
        let place = shared.entry((found.dev(), found.ino())).or_default();
        if let Some(lock) = place.upgrade() {
            return Ok(lock);
        }
        match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                let lock = Arc::new(DirectoryLock { directory });
                *place = Arc::downgrade(&lock);
                Ok(lock)
            }
            Err(Errno::AGAIN | Errno::INTR) => Err(NotLocked::Held(LockHolder::of(&directory))),
            Err(error) => Err(NotLocked::Unusable(error.into())),
        }
    }
}

/// A pipe in its place would keep one waiting.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // A command that is being started has a copy of the descriptor for a moment, so closing ours is not enough.
        let _ = flock(&self.directory, FlockOperation::Unlock);
    }
}

/// Why a directory is not ours.
#[derive(Debug)]
pub enum NotLocked {
    /// It cannot be opened, or its file system has no locks.
    Unusable(std::io::Error),
    /// Somebody else held it all the time.
    Held(LockHolder),
}

impl fmt::Display for NotLocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotLocked::Unusable(error) => error.fmt(f),
            NotLocked::Held(holder) => write!(f, "{holder} holds it"),
        }
    }
}

/// Who holds a lock, as far as the system tells it.
#[derive(Debug)]
pub struct LockHolder(Option<(u32, String)>);

impl LockHolder {
    /// Who holds a lock on what lies at a path.
    #[must_use]
    pub fn at(path: &Path) -> LockHolder {
        let found = rustix::fs::stat(path).ok();
        LockHolder(found.and_then(|found| holder(found.st_dev, found.st_ino)))
    }

    fn of(directory: &File) -> LockHolder {
        let found = directory.metadata().ok();
        LockHolder(found.and_then(|found| holder(found.dev(), found.ino())))
    }
}

fn holder(device: u64, inode: u64) -> Option<(u32, String)> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let process = holder_in(&locks, device, inode)?;
    let name = std::fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
    let name = name.trim_end().replace(char::is_control, "?");
    Some((process, name))
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some((process, name)) => write!(f, "process {process} (`{name}`)"),
            None => f.write_str("another process"),
        }
    }
}

/// The process that holds a lock, from the lines of `/proc/locks`: `3: FLOCK  ADVISORY  WRITE 4711 fd:01:131077 0 EOF`.
fn holder_in(locks: &str, device: u64, inode: u64) -> Option<u32> {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let wanted = format!("{major:02x}:{minor:02x}:{inode}");
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            // Those who wait stand behind `->`; a process that we cannot see is number 0.
            [_, "FLOCK" | "POSIX" | "OFDLCK", _, _, process, file, ..] if file == wanted => {
                process.parse().ok().filter(|process| *process != 0)
            }
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_read_from_the_list_of_locks() {
        let locks = "1: LEASE  ADVISORY  WRITE 10 fd:01:8 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 11 fd:01:8 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 12 fd:01:7 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 13 fd:01:7 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE 0 fd:01:9 0 EOF\n\
                     5: POSIX  ADVISORY  WRITE 14 fd:01:11 0 EOF\n";
        let device = rustix::fs::makedev(0xfd, 1);
        assert_eq!(holder_in(locks, device, 8), Some(11));
        assert_eq!(holder_in(locks, device, 11), Some(14));
        assert_eq!(holder_in(locks, device, 9), None);
        assert_eq!(holder_in(locks, device, 10), None);
        assert_eq!(holder_in("nonsense\n", device, 7), None);
    }

    #[test]
    fn one_holds_a_directory_and_the_next_one_is_told_who() {
        let place = tempfile::tempdir().unwrap();
        let held = DirectoryLock::take(place.path(), Duration::ZERO, |_| ()).unwrap();
        let refused = DirectoryLock::take(place.path(), Duration::ZERO, |_| ()).unwrap_err();
        let said = refused.to_string();
        let known = format!("process {} (`", std::process::id());
        // Not every file system gives the same number of its device here and in the list of locks.
        assert!(
            said.starts_with(&known) || said == "another process holds it",
            "{said}"
        );
        drop(held);
        let _again = DirectoryLock::take(place.path(), Duration::ZERO, |_| ()).unwrap();
        let missing = DirectoryLock::take(&place.path().join("x"), Duration::ZERO, |_| ()).unwrap_err();
        assert!(matches!(missing, NotLocked::Unusable(error) if error.kind() == io::ErrorKind::NotFound));
    }

    #[test]
    fn whoever_shares_keeps_out_who_does_not() {
        let place = tempfile::tempdir().unwrap();
        let one = DirectoryLock::try_share(place.path()).unwrap();
        let other = DirectoryLock::try_share(&place.path().join(".")).unwrap();
        assert!(Arc::ptr_eq(&one, &other));
        drop(one);
        let refused = DirectoryLock::take(place.path(), Duration::ZERO, |_| ()).unwrap_err();
        assert!(matches!(refused, NotLocked::Held(_)));
        drop(other);
        let alone = DirectoryLock::take(place.path(), Duration::ZERO, |_| ()).unwrap();
        let refused = DirectoryLock::try_share(place.path()).unwrap_err();
        assert!(matches!(refused, NotLocked::Held(_)));
        drop(alone);
        drop(DirectoryLock::try_share(place.path()).unwrap());
    }
}
