//! One process for each prefix.

use super::StateDirectory;
use crate::files::FileError;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::PathBuf;
use std::time::Duration;

/// Name of the lock file in the state directory.
pub const LOCK_NAME: &str = "lock";
/// How often to look who holds the lock, while the holder has not said so yet.
const ATTEMPTS: u32 = 50;

/// The right to be the one process that uses a prefix; given back when dropped, also by being killed.
#[derive(Debug)]
#[must_use = "the lock is given back when this is dropped"]
pub struct PrefixLock {
    file: File,
}

/// Why a prefix is not ours.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process uses it.
    #[error("the directory {} is in use by {}", path.display(), holder_text(*holder))]
    Held {
        /// The prefix.
        path: PathBuf,
        /// The other process's number, if it could be read.
        holder: Option<u32>,
    },
    /// The lock file could not be used.
    #[error(transparent)]
    File(#[from] FileError),
}

fn holder_text(holder: Option<u32>) -> String {
    holder.map_or_else(
        || "another process".to_owned(),
        |holder| format!("process {holder}"),
    )
}

impl PrefixLock {
    /// Takes the lock at once or fails at once.
    pub fn acquire(prefix: &StateDirectory) -> Result<Self, LockError> {
        let entry = prefix.entry(LOCK_NAME);
        let failed = |error: std::io::Error| entry.failed("lock", error);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(entry.directory(), entry.name(), flags, Mode::RUSR | Mode::WUSR);
        let mut file = File::from(opened.map_err(|error| failed(error.into()))?);
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let path = prefix.path().as_path().to_path_buf();
                return Err(LockError::Held {
                    path,
                    holder: holder(&mut file),
                });
            }
            Err(error) => return Err(failed(error.into()).into()),
        }
        file.set_len(0).map_err(failed)?;
        // The lock holds without it, and there may be no space for it: a full disk is no reason not to begin, as what would be made may be what frees it.
        let _ = writeln!(file, "{}", std::process::id());
        Ok(Self { file })
    }
}

impl Drop for PrefixLock {
    fn drop(&mut self) {
        // So that nobody reads an old number between our going and the next one's coming.
        let _ = self.file.set_len(0);
        // A command that is being started has a copy of the descriptor until it has become itself; closing ours alone would leave the
        // lock with it for that moment.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

fn holder(file: &mut File) -> Option<u32> {
    for _ in 0..ATTEMPTS {
        let mut text = String::new();
        if file
            .rewind()
            .and_then(|()| file.read_to_string(&mut text))
            .is_ok()
            && let Ok(number) = text.trim().parse()
        {
            return Some(number);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    None
}
