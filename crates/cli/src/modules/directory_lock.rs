//! Directories that one process at a time may change: the one that modules are fetched into, and the one that a lock file lies in.
//!
//! The lock is on the directory itself, so nothing is left behind, and the system gives it back however its holder ends.

use std::fmt;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use setpoint_diagnostics::visible;

use crate::failure::system_text;

/// How often somebody who waits for another process looks.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// How long it waits before it says so.
const SAY_SO_AFTER: Duration = Duration::from_secs(1);

/// A directory that no other process locks meanwhile. Dropping it unlocks. Nobody locks a second directory while holding one, so no two
/// wait for each other.
#[derive(Debug)]
#[must_use = "dropping it unlocks"]
pub(super) struct DirectoryLock {
    directory: File,
}

impl DirectoryLock {
    /// Waits until nobody else holds the lock, but not longer than `patience`. `waiting` is called once if that takes a while.
    pub(super) fn take(
        path: &Path,
        patience: Duration,
        mut waiting: impl FnMut(&Holder),
    ) -> Result<DirectoryLock, NotLocked> {
        let directory = File::open(path).map_err(NotLocked::Unusable)?;
        let (start, mut told) = (Instant::now(), false);
        loop {
            match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(DirectoryLock { directory }),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(NotLocked::Unusable(error.into())),
            }
            if start.elapsed() > patience {
                return Err(NotLocked::Held(Holder::of(&directory)));
            }
            if !told && start.elapsed() > SAY_SO_AFTER {
                waiting(&Holder::of(&directory));
                told = true;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // A command that is being started has a copy of the descriptor for a moment, so closing ours is not enough.
        let _ = flock(&self.directory, FlockOperation::Unlock);
    }
}

/// Why a directory is not ours.
#[derive(Debug)]
pub(super) enum NotLocked {
    /// It cannot be opened, or its file system has no locks.
    Unusable(std::io::Error),
    /// Somebody else held it all the time.
    Held(Holder),
}

impl fmt::Display for NotLocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotLocked::Unusable(error) => f.write_str(&system_text(error)),
            NotLocked::Held(holder) => write!(f, "{holder} holds it"),
        }
    }
}

/// Who holds a lock, as far as the system tells it.
#[derive(Debug)]
pub(super) struct Holder(Option<(u32, String)>);

impl Holder {
    fn of(directory: &File) -> Holder {
        let found = directory.metadata().ok().and_then(|found| {
            let locks = std::fs::read_to_string("/proc/locks").ok()?;
            let process = holder_in(&locks, found.dev(), found.ino())?;
            let name = std::fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
            Some((process, visible(name.trim_end()).into_owned()))
        });
        Holder(found)
    }
}

impl fmt::Display for Holder {
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
            [_, "FLOCK", _, _, process, file, ..] if file == wanted => {
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
        let locks = "1: POSIX  ADVISORY  WRITE 10 fd:01:7 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 11 fd:01:8 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 12 fd:01:7 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 13 fd:01:7 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE 0 fd:01:9 0 EOF\n";
        let device = rustix::fs::makedev(0xfd, 1);
        assert_eq!(holder_in(locks, device, 7), Some(13));
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
        assert_eq!(missing.to_string(), "No such file or directory");
    }
}
