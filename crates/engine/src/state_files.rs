//! The engine's own state on disk: a private directory for each identity below the prefix, and in it the
//! notifications that must outlive a crash.
//!
//! Everything is replaced atomically and carries a version. A notification is stored as *perhaps* before the first repair
//! that may cause it; those of many senders to one receiver that come at the same time share one write.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_graph::ResourceId;
use setpoint_host::files::{AbsolutePath, Committer, FileError};
use setpoint_host::state::{PrefixLock, StateDirectory, identity_directory};
use setpoint_host::sync::{Condvar, Mutex, MutexGuard, wait};

use crate::{Attempting, Failure};

/// Version of the `refresh` file.
const REFRESH_VERSION: u32 = 1;
const REFRESH: &str = "refresh";
const NAME: &str = "name";
const REVERSE: &str = "reverse";
const UNUSED_SINCE: &str = "unused-since";
/// How long the directory of an identity that no graph has is kept.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// The directories of all identities below one prefix, and the right to be the only process that uses them.
#[derive(Debug)]
pub struct StateFiles {
    directory: StateDirectory,
    committer: Arc<Committer>,
    marks: Mutex<FxHashMap<ResourceId, Arc<Receiver>>>,
    /// Given back when the engine has ended, which may be before the last worker lets go of this.
    lock: Mutex<Option<PrefixLock>>,
}

impl StateFiles {
    /// Those below `prefix`, in `engine/state`, which are made if they are missing.
    ///
    /// # Errors
    /// When they cannot be made.
    pub fn open(
        prefix: &StateDirectory,
        lock: PrefixLock,
        committer: Arc<Committer>,
    ) -> Result<StateFiles, FileError> {
        Ok(StateFiles {
            directory: prefix.subdirectory("engine")?.subdirectory("state")?,
            committer,
            marks: Mutex::default(),
            lock: Mutex::new(Some(lock)),
        })
    }

    /// The directory of an identity, whether it exists or not.
    #[must_use]
    pub fn path(&self, id: &ResourceId) -> AbsolutePath {
        self.directory.path().join(identity_directory(&id.kind, &id.name))
    }

    /// Lets another process have the prefix.
    pub(crate) fn release(&self) {
        *self.lock.lock() = None;
    }

    fn receiver(&self, id: &ResourceId) -> Arc<Receiver> {
        let mut marks = self.marks.lock();
        marks.entry(id.clone()).or_default().clone()
    }

    /// Senders of notifications for `receiver` that an earlier process stored and nobody served.
    ///
    /// # Errors
    /// When there is something that cannot be read; it is as if nothing were there.
    pub(crate) fn load_refresh(&self, receiver: &ResourceId) -> Result<Vec<ResourceId>, FileError> {
        let name = identity_directory(&receiver.kind, &receiver.name);
        let Some(directory) = self.directory.find(&name)? else {
            return Ok(Vec::new());
        };
        let Some(stored) = directory.read_versioned(REFRESH)? else {
            return Ok(Vec::new());
        };
        let senders: Vec<(String, String)> = match stored.version {
            REFRESH_VERSION => serde_json::from_slice(&stored.payload).unwrap_or_default(),
            _ => Vec::new(),
        };
        let senders = senders
            .into_iter()
            .map(|(kind, name)| ResourceId::new(kind, name));
        let senders: Vec<ResourceId> = senders.collect();
        let known = self.receiver(receiver);
        let mut marks = known.lock();
        for sender in &senders {
            marks.by_sender.entry(sender.clone()).or_insert(0);
        }
        Ok(senders)
    }

    /// Stores that a run of `sender` may notify `receiver`, and returns when that would survive a loss of power.
    pub(crate) fn mark(&self, receiver: &ResourceId, sender: &ResourceId, run: u64) -> Result<(), Failure> {
        let known = self.receiver(receiver);
        let mut marks = known.lock();
        let is_new = marks.by_sender.insert(sender.clone(), run).is_none();
        if is_new {
            marks.version += 1;
        }
        // One that is there may still be on its way to the disk.
        let wanted = marks.version;
        let stored = self.flush(receiver, &known, marks, wanted);
        if stored.is_err() && is_new {
            known.lock().by_sender.remove(sender);
        }
        stored.attempting("store the notification of", receiver)
    }

    /// The same for many at a time: each receiver is written once.
    pub(crate) fn mark_all<'a>(
        &self,
        marks: impl Iterator<Item = (&'a ResourceId, &'a ResourceId, u64)>,
    ) -> Result<(), Failure> {
        let mut receivers: BTreeMap<&ResourceId, Vec<(&ResourceId, u64)>> = BTreeMap::new();
        for (receiver, sender, run) in marks {
            receivers.entry(receiver).or_default().push((sender, run));
        }
        for (receiver, senders) in receivers {
            let known = self.receiver(receiver);
            let mut marks = known.lock();
            let mut new = Vec::new();
            for (sender, run) in senders {
                if marks.by_sender.insert(sender.clone(), run).is_none() {
                    new.push(sender);
                }
            }
            marks.version += u64::from(!new.is_empty());
            let wanted = marks.version;
            let stored = self.flush(receiver, &known, marks, wanted);
            if stored.is_err() {
                let mut marks = known.lock();
                for sender in new {
                    marks.by_sender.remove(sender);
                }
            }
            stored.attempting("store the notification of", receiver)?;
        }
        Ok(())
    }

    /// Notifications are served or void, but for those that were stored by runs later than `up_to_run`.
    pub(crate) fn clear(
        &self,
        receiver: &ResourceId,
        senders: &[ResourceId],
        up_to_run: u64,
    ) -> Result<(), FileError> {
        let known = self.receiver(receiver);
        let mut marks = known.lock();
        let before = marks.by_sender.len();
        for sender in senders {
            if marks.by_sender.get(sender).is_some_and(|run| *run <= up_to_run) {
                marks.by_sender.remove(sender);
            }
        }
        if marks.by_sender.len() == before {
            return Ok(());
        }
        marks.version += 1;
        let wanted = marks.version;
        self.flush(receiver, &known, marks, wanted)
    }

    /// Writes what is wanted, together with whatever else has come by then; of all who wait one writes.
    fn flush<'a>(
        &self,
        receiver: &ResourceId,
        known: &'a Receiver,
        mut marks: MutexGuard<'a, Marks>,
        wanted: u64,
    ) -> Result<(), FileError> {
        loop {
            if marks.stored >= wanted {
                return Ok(());
            }
            if marks.writing {
                marks = wait(&known.written, marks);
                continue;
            }
            marks.writing = true;
            let version = marks.version;
            let senders: Vec<(String, String)> = marks
                .by_sender
                .keys()
                .map(|sender| (sender.kind.to_string(), sender.name.to_string()))
                .collect();
            drop(marks);
            let result = self.write(receiver, &senders);
            marks = known.lock();
            marks.writing = false;
            if result.is_ok() {
                marks.stored = marks.stored.max(version);
            }
            known.written.notify_all();
            result?;
        }
    }

    fn write(&self, receiver: &ResourceId, senders: &[(String, String)]) -> Result<(), FileError> {
        let name = identity_directory(&receiver.kind, &receiver.name);
        if senders.is_empty() {
            return match self.directory.find(&name)? {
                Some(directory) => directory.remove(REFRESH),
                None => Ok(()),
            };
        }
        let directory = match self.directory.find(&name)? {
            Some(directory) => directory,
            None => {
                let directory = self.directory.subdirectory(&name)?;
                directory.write(&self.committer, NAME, receiver.to_string())?;
                directory
            }
        };
        let payload = serde_json::to_vec(senders).unwrap_or_default();
        directory.write_versioned(&self.committer, REFRESH, REFRESH_VERSION, &payload)
    }

    /// Removes the directories of identities that `known` does not have, which have no reversal, and which were found so
    /// for the first time thirty days ago. `now` is the time since 1970 UTC.
    ///
    /// # Errors
    /// The first that occurred; the others were swept all the same.
    pub(crate) fn sweep<'a>(
        &self,
        known: impl Iterator<Item = &'a ResourceId>,
        now: Duration,
    ) -> Result<usize, FileError> {
        let known: FxHashSet<String> = known.map(|id| identity_directory(&id.kind, &id.name)).collect();
        let mut removed = 0;
        let mut first_error = None;
        for name in self.directory.subdirectories()? {
            let Some(name) = name.to_str() else { continue };
            match self.sweep_one(name, known.contains(name), now) {
                Ok(true) => removed += 1,
                Ok(false) => {}
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        first_error.map_or(Ok(removed), Err)
    }

    fn sweep_one(&self, name: &str, is_known: bool, now: Duration) -> Result<bool, FileError> {
        let Some(directory) = self.directory.find(name)? else {
            return Ok(false);
        };
        let since = directory.read(UNUSED_SINCE)?;
        if is_known {
            if since.is_some() {
                directory.remove(UNUSED_SINCE)?;
            }
            return Ok(false);
        }
        if directory.entry(REVERSE).stat()?.is_some() {
            return Ok(false);
        }
        let since = since.and_then(|text| String::from_utf8(text).ok()?.trim().parse::<u64>().ok());
        match since.map(Duration::from_secs) {
            Some(since) if now.saturating_sub(since) > KEPT => {
                self.directory.remove(name)?;
                Ok(true)
            }
            // A time in the future is a clock that was wrong: begin again.
            Some(since) if since <= now => Ok(false),
            _ => {
                directory.write(&self.committer, UNUSED_SINCE, now.as_secs().to_string())?;
                Ok(false)
            }
        }
    }
}

/// The notifications that are stored for one receiver.
#[derive(Debug, Default)]
struct Receiver {
    marks: Mutex<Marks>,
    written: Condvar,
}

impl Receiver {
    fn lock(&self) -> MutexGuard<'_, Marks> {
        self.marks.lock()
    }
}

#[derive(Debug, Default)]
struct Marks {
    /// With the number of the run that stored it last.
    by_sender: BTreeMap<ResourceId, u64>,
    /// Rises with each change of the senders.
    version: u64,
    /// The version that is on disk.
    stored: u64,
    writing: bool,
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "threads that mark at the same time")]
mod tests {
    use super::*;

    fn open(directory: &tempfile::TempDir) -> StateFiles {
        let path = AbsolutePath::new(directory.path().as_os_str()).unwrap();
        let prefix = StateDirectory::open(&path).unwrap();
        let lock = PrefixLock::acquire(&prefix).unwrap();
        StateFiles::open(&prefix, lock, Arc::new(Committer::new())).unwrap()
    }

    fn id(name: &str) -> ResourceId {
        ResourceId::new("svc", name)
    }

    #[test]
    fn marks_outlive_the_process_until_they_are_served() {
        let directory = tempfile::tempdir().unwrap();
        let files = open(&directory);
        let long = id(&"long".repeat(200));
        assert_eq!(files.load_refresh(&long).unwrap(), []);
        files.mark(&long, &id("a"), 1).unwrap();
        files.mark(&long, &id("b"), 2).unwrap();
        drop(files);
        let files = open(&directory);
        assert_eq!(files.load_refresh(&long).unwrap(), [id("a"), id("b")]);
        // Stored anew by a later run than the one that is cleared.
        files.mark(&long, &id("b"), 7).unwrap();
        files.clear(&long, &[id("a"), id("b")], 6).unwrap();
        drop(files);
        let files = open(&directory);
        assert_eq!(files.load_refresh(&long).unwrap(), [id("b")]);
        files.clear(&long, &[id("b")], 0).unwrap();
        drop(files);
        assert_eq!(open(&directory).load_refresh(&long).unwrap(), []);
    }

    #[test]
    fn many_senders_share_few_writes() {
        let directory = tempfile::tempdir().unwrap();
        let files = Arc::new(open(&directory));
        let threads: Vec<_> = (0..32)
            .map(|n| {
                let files = files.clone();
                std::thread::spawn(move || files.mark(&id("nginx"), &id(&format!("{n:02}")), n))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap().unwrap();
        }
        drop(files);
        assert_eq!(open(&directory).load_refresh(&id("nginx")).unwrap().len(), 32);
    }

    #[test]
    fn directories_of_unknown_identities_go_after_thirty_days() {
        let directory = tempfile::tempdir().unwrap();
        let files = open(&directory);
        for name in ["kept", "old", "reversed"] {
            files.mark(&id(name), &id("x"), 1).unwrap();
        }
        let reversed = files
            .directory
            .subdirectory(&identity_directory("svc", "reversed"))
            .unwrap();
        reversed.write(&files.committer, REVERSE, "record").unwrap();
        let days = |days: u64| Duration::from_secs((1000 + days) * 24 * 3600);
        let kept = [id("kept")];
        assert_eq!(files.sweep(kept.iter(), days(0)).unwrap(), 0);
        assert_eq!(files.sweep(kept.iter(), days(29)).unwrap(), 0);
        assert_eq!(files.sweep(kept.iter(), days(31)).unwrap(), 1);
        assert_eq!(files.directory.subdirectories().unwrap().len(), 2);
        // One that is known again begins anew when it is not.
        assert_eq!(files.sweep([id("old")].iter(), days(32)).unwrap(), 0);
        assert_eq!(files.sweep(kept.iter(), days(33)).unwrap(), 0);
    }
}
