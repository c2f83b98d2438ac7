//! A file by which no two do the same at the same time.

use std::fs::File;

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use setpoint_host::files::{AbsolutePath, Entry, LockHolder};
use setpoint_programs::failure::Failure;

use super::places::make_directory;

/// A lock that is held. It is given back however its holder ends.
#[must_use = "dropping it gives the lock back"]
pub(super) struct FileLock(File);

impl FileLock {
    /// Takes it at once or fails at once. The file and its directories are made if they are missing.
    pub(super) fn take(path: &AbsolutePath) -> Result<FileLock, Failure> {
        let failed =
            |why: &dyn std::fmt::Display| Failure::wrong(format!("failed to lock {path}")).because(why);
        if let Some(parent) = path.parent() {
            make_directory(&parent).map_err(|error| failed(&error))?;
        }
        let entry = Entry::at(path).map_err(|error| failed(&error))?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(entry.directory(), entry.name(), flags, Mode::RUSR | Mode::WUSR);
        let file = match opened {
            Ok(file) => File::from(file),
            Err(Errno::LOOP) => return Err(failed(&"it is a link")),
            Err(error) => return Err(failed(&setpoint_programs::failure::system_text(&error.into()))),
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(FileLock(file)),
            Err(Errno::WOULDBLOCK) => {
                let holder = LockHolder::at(path.as_path());
                let failure = Failure::wrong("the scripts are being run already");
                Err(failure.because(format!("{holder} holds {path}")))
            }
            Err(error) => Err(failed(&setpoint_programs::failure::system_text(&error.into()))),
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // A command that is being started has a copy of the descriptor for a moment, so closing ours is not enough.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}
