//! Turns at files and other documents that several resources edit: from reading one until what was edited is written, so that no edit is lost
//! below another one.
//!
//! Within the process they follow each other. Other processes are kept out by a lock on the directory of a file, which is that of all of this
//! process at a time: whoever edits files beside each other does not wait. Any user who may read a directory can lock it, so nobody is waited for
//! for ever.

use std::collections::HashSet;
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use setpoint_engine::{Apply, Failure, Level};
use setpoint_host::files::{AbsolutePath, DirectoryLock, NotLocked};
use tokio::sync::Notify;

/// How long others who edit in a directory are waited for. An edit takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long they are waited for before that is said.
const SAY_SO_AFTER: Duration = Duration::from_secs(1);

/// How long until the next try, at most.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// What is being edited.
static TAKEN: Mutex<Option<HashSet<Vec<u8>>>> = Mutex::new(None);

/// A turn is over.
static LEFT: Notify = Notify::const_new();

/// The right to edit something, until it is dropped.
pub(crate) struct Turn {
    name: Vec<u8>,
    /// Dropped after the turn: it is only there to be held.
    directory: Option<Arc<DirectoryLock>>,
}

impl Turn {
    /// Waits until nobody else edits a file, also no other process of ours.
    ///
    /// # Errors
    /// When the run is cancelled meanwhile.
    pub(crate) async fn at_file(path: &AbsolutePath, apply: &Apply<'_>) -> Result<Turn, Failure> {
        let directory = match path.parent() {
            Some(directory) => lock(directory.as_path(), apply).await?,
            None => None,
        };
        let mut turn = Turn::take(path.as_bytes(), apply).await?;
        turn.directory = directory;
        Ok(turn)
    }

    /// Waits until no other resource of this process changes packages: the package manager lets in one at a time.
    ///
    /// # Errors
    /// When the run is cancelled meanwhile.
    pub(crate) async fn at_packages(apply: &Apply<'_>) -> Result<Turn, Failure> {
        Turn::take(b"packages", apply).await
    }

    /// Waits until nobody else of this process edits what has this name.
    async fn take(name: &[u8], apply: &Apply<'_>) -> Result<Turn, Failure> {
        loop {
            let mut left = pin!(LEFT.notified());
            // From here on no turn that is over goes unnoticed.
            left.as_mut().enable();
            if let Some(turn) = Turn::try_take(name) {
                return Ok(turn);
            }
            tokio::select! {
                () = left => {}
                () = apply.cancellation().cancelled() => {}
            }
            apply.cancellation().check("edit a file")?;
        }
    }

    fn try_take(name: &[u8]) -> Option<Turn> {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = taken.get_or_insert_default().insert(name.to_owned());
        is_free.then(|| Turn {
            name: name.to_owned(),
            directory: None,
        })
    }
}

/// Locks a directory. Where that is not possible files are edited without: each is replaced as a whole, so the worst is a lost edit, which is found
/// and made again.
async fn lock(directory: &Path, apply: &Apply<'_>) -> Result<Option<Arc<DirectoryLock>>, Failure> {
    let mut pause = Duration::from_millis(1);
    let mut waited = Duration::ZERO;
    let mut is_told = false;
    loop {
        let holder = match DirectoryLock::try_share(directory) {
            Ok(lock) => return Ok(Some(lock)),
            Err(NotLocked::Held(holder)) => holder,
            Err(NotLocked::Unusable(_)) => return Ok(None),
        };
        let shown = directory.display();
        if waited > PATIENCE {
            let text = format!("{holder} still keeps the directory {shown} locked; goes on without waiting");
            apply.log(Level::Warning, text);
            return Ok(None);
        }
        if waited > SAY_SO_AFTER && !std::mem::replace(&mut is_told, true) {
            apply.log(
                Level::Warning,
                format!("{holder} has locked the directory {shown}; waits"),
            );
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = apply.cancellation().cancelled() => {}
        }
        apply.cancellation().check("edit a file")?;
        waited += pause;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(taken) = taken.as_mut() {
            taken.remove(&self.name);
        }
        LEFT.notify_waiters();
    }
}
