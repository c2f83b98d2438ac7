//! The engine's own state on disk: a private directory for each identity below the prefix, and in it the
//! notifications that must outlive a crash.
//!
//! Everything is replaced atomically and carries a version. A notification is stored as *perhaps* before the first repair
//! that may cause it; those of many senders to one receiver that come at the same time share one write, which appends.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_graph::ResourceId;
use setpoint_host::files::{AbsolutePath, Committer, FileError};
use setpoint_host::state::{PrefixLock, StateDirectory, Stored, identity_directory};
use setpoint_host::sync::{Condvar, Mutex, MutexGuard, wait};

use crate::handle::write_name;
use crate::reversals::Reversals;
use crate::{Attempting, Failure};

/// Version of the `refresh` file.
const REFRESH_VERSION: u32 = 2;
const REFRESH: &str = "refresh";
const UNUSED_SINCE: &str = "unused-since";
/// How long the directory of an identity that no graph has is kept.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// The directories of all identities below one prefix, and the right to be the only process that uses them.
#[derive(Debug)]
pub struct StateFiles {
    directory: StateDirectory,
    pub(crate) reversals: Reversals,
    committer: Arc<Committer>,
    marks: Mutex<FxHashMap<ResourceId, Arc<Receiver>>>,
    /// Whether anything may be changed.
    writable: bool,
    /// Given back when the engine has ended, which may be before the last worker lets go of this.
    ours: Mutex<Option<Ours>>,
}

/// That the prefix is ours.
#[derive(Debug)]
struct Ours {
    /// What must be gone before it is another's; dropped first.
    before: Option<Box<dyn Any + Send>>,
    _lock: PrefixLock,
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
        let engine = prefix.subdirectory("engine")?;
        Ok(StateFiles {
            directory: engine.subdirectory("state")?,
            reversals: Reversals::new(engine, committer.clone(), true),
            committer,
            marks: Mutex::default(),
            writable: true,
            ours: Mutex::new(Some(Ours {
                before: None,
                _lock: lock,
            })),
        })
    }

    /// Those below `prefix` as they are, for a process that changes nothing there. Another process may be using them. None if no
    /// process has ever used the directory.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn reading(
        prefix: &StateDirectory,
        committer: Arc<Committer>,
    ) -> Result<Option<StateFiles>, FileError> {
        let Some(engine) = prefix.find("engine")? else {
            return Ok(None);
        };
        let Some(directory) = engine.find("state")? else {
            return Ok(None);
        };
        Ok(Some(StateFiles {
            directory,
            reversals: Reversals::new(engine, committer.clone(), false),
            committer,
            marks: Mutex::default(),
            writable: false,
            ours: Mutex::default(),
        }))
    }

    /// Something that goes before another process can have the prefix.
    #[must_use]
    pub fn with_guard(self, guard: impl Any + Send) -> StateFiles {
        if let Some(ours) = &mut *self.ours.lock() {
            ours.before = Some(Box::new(guard));
        }
        self
    }

    /// Without what undoes resources of another program.
    #[must_use]
    pub fn without_reversals(mut self) -> StateFiles {
        self.reversals = self.reversals.hidden();
        self
    }

    /// The directory of an identity, whether it exists or not.
    #[must_use]
    pub fn path(&self, id: &ResourceId) -> AbsolutePath {
        self.directory.path().join(identity_directory(&id.kind, &id.name))
    }

    /// Below which the directories of all identities are.
    pub(crate) fn directories(&self) -> &AbsolutePath {
        self.directory.path()
    }

    /// Lets another process have the prefix.
    pub(crate) fn release(&self) {
        *self.ours.lock() = None;
    }

    fn receiver(&self, id: &ResourceId) -> Arc<Receiver> {
        let mut marks = self.marks.lock();
        marks.entry(id.clone()).or_default().clone()
    }

    /// Senders of notifications for `receiver` that an earlier process stored and nobody served.
    ///
    /// # Errors
    /// When there is something that cannot be read; it is as if nothing were there.
    pub(crate) fn load_refresh(&self, receiver: &ResourceId) -> Result<Refresh, FileError> {
        let name = identity_directory(&receiver.kind, &receiver.name);
        let Some(directory) = self.directory.find(&name)? else {
            return Ok(Refresh::default());
        };
        // A sender may run already and store a notification in this file.
        let known = self.receiver(receiver);
        let mut marks = known.marks.lock();
        while marks.writing {
            marks = wait(&known.written, marks);
        }
        let journal = match directory.load(REFRESH, REFRESH_VERSION, self.writable)? {
            Stored::Nothing => return Ok(Refresh::default()),
            Stored::Payload(journal) => journal,
            Stored::Unusable(why) if !self.writable => {
                return Ok(Refresh {
                    senders: Vec::new(),
                    warning: Some(why),
                });
            }
            Stored::Unusable(why) => {
                // Notifications of this process that were in it are stored once more.
                marks.lines = usize::MAX / 2;
                marks.version += 1;
                let wanted = marks.version;
                self.flush(receiver, &known, marks, wanted)?;
                return Ok(Refresh {
                    senders: Vec::new(),
                    warning: Some(why),
                });
            }
        };
        let (senders, lines) = read_journal(&journal);
        marks.lines = lines;
        for sender in &senders {
            marks.by_sender.entry(sender.clone()).or_insert(0);
        }
        Ok(Refresh {
            senders,
            warning: None,
        })
    }

    /// Stores that a run of `sender` may notify `receiver`, and returns when that would survive a loss of power.
    pub(crate) fn mark(&self, receiver: &ResourceId, sender: &ResourceId, run: u64) -> Result<(), Failure> {
        let known = self.receiver(receiver);
        let mut marks = known.marks.lock();
        let is_new = marks.insert(sender, run);
        // One that is there may still be on its way to the disk.
        let wanted = marks.version;
        let stored = self.flush(receiver, &known, marks, wanted);
        if stored.is_err() && is_new {
            known.marks.lock().remove(sender);
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
            let mut marks = known.marks.lock();
            let mut new = Vec::new();
            for (sender, run) in senders {
                if marks.insert(sender, run) {
                    new.push(sender);
                }
            }
            let wanted = marks.version;
            let stored = self.flush(receiver, &known, marks, wanted);
            if stored.is_err() {
                let mut marks = known.marks.lock();
                for sender in new {
                    marks.remove(sender);
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
        let mut marks = known.marks.lock();
        let before = marks.by_sender.len();
        for sender in senders {
            if marks.by_sender.get(sender).is_some_and(|run| *run <= up_to_run) {
                marks.remove(sender);
            }
        }
        if marks.by_sender.len() == before {
            return Ok(());
        }
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
            let pending = std::mem::take(&mut marks.pending);
            let count = marks.by_sender.len();
            // Lines of what is gone are left behind until they are most of the file.
            let rewritten = marks.lines + pending.len() > 2 * count + 64;
            let write = if count == 0 {
                Write::Nothing
            } else if rewritten {
                Write::All(marks.by_sender.keys().map(|sender| line('+', sender)).collect())
            } else {
                Write::Further(pending.concat())
            };
            let lines = match &write {
                Write::Nothing => 0,
                Write::All(_) => count,
                Write::Further(_) => marks.lines + pending.len(),
            };
            drop(marks);
            let result = self.write(receiver, write);
            marks = known.marks.lock();
            marks.writing = false;
            if result.is_ok() {
                marks.stored = marks.stored.max(version);
                marks.lines = lines;
            } else {
                // Whatever is on the disk now, the next write makes it whole.
                marks.lines = usize::MAX / 2;
            }
            known.written.notify_all();
            result?;
        }
    }

    fn write(&self, receiver: &ResourceId, write: Write) -> Result<(), FileError> {
        let name = identity_directory(&receiver.kind, &receiver.name);
        if matches!(write, Write::Nothing) {
            return match self.directory.find(&name)? {
                Some(directory) => directory.remove(REFRESH),
                None => Ok(()),
            };
        }
        let directory = match self.directory.find(&name)? {
            Some(directory) => directory,
            None => self.directory.subdirectory(&name)?,
        };
        write_name(&directory, receiver, &self.committer)?;
        match write {
            Write::Further(lines) => directory.append_versioned(REFRESH, REFRESH_VERSION, lines.as_bytes()),
            Write::All(lines) => {
                directory.write_versioned(&self.committer, REFRESH, REFRESH_VERSION, lines.as_bytes())
            }
            Write::Nothing => Ok(()),
        }
    }

    /// Removes the directories of identities that `known` does not have, and which were found so for the first time thirty days
    /// ago. What undoes a resource is known, too. `now` is the time since 1970 UTC.
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

#[derive(Debug, Default)]
struct Marks {
    /// With the number of the run that stored it last.
    by_sender: BTreeMap<ResourceId, u64>,
    /// Lines that the file does not have yet.
    pending: Vec<String>,
    /// Lines that it has.
    lines: usize,
    /// Rises with each change of the senders.
    version: u64,
    /// The version that is on disk.
    stored: u64,
    writing: bool,
}

impl Marks {
    /// Whether it is a new one.
    fn insert(&mut self, sender: &ResourceId, run: u64) -> bool {
        let is_new = self.by_sender.insert(sender.clone(), run).is_none();
        if is_new {
            self.pending.push(line('+', sender));
            self.version += 1;
        }
        is_new
    }

    fn remove(&mut self, sender: &ResourceId) {
        if self.by_sender.remove(sender).is_some() {
            self.pending.push(line('-', sender));
            self.version += 1;
        }
    }
}

/// How the file of a receiver is brought up to date.
enum Write {
    /// It goes.
    Nothing,
    /// These lines alone.
    All(String),
    /// These lines after those that it has.
    Further(String),
}

/// A line of the file: `+` for a notification that waits, `-` for one that does no longer.
fn line(sign: char, sender: &ResourceId) -> String {
    let id = serde_json::json!([&*sender.kind, &*sender.name]);
    format!("{sign}{id}\n")
}

/// Who is left of a file's lines, and how many lines there are. A line that a crash cut off was never relied on.
fn read_journal(journal: &[u8]) -> (Vec<ResourceId>, usize) {
    let mut senders = std::collections::BTreeSet::new();
    let mut count = 0;
    for line in journal.split_inclusive(|byte| *byte == b'\n') {
        let Some((sign, id)) = line.strip_suffix(b"\n").and_then(<[u8]>::split_first) else {
            // So that what is appended does not continue it.
            count = usize::MAX / 2;
            continue;
        };
        let Ok((kind, name)) = serde_json::from_slice::<(String, String)>(id) else {
            count = usize::MAX / 2;
            continue;
        };
        let id = ResourceId::new(kind, name);
        if *sign == b'+' {
            senders.insert(id);
        } else {
            senders.remove(&id);
        }
        count += 1;
    }
    (senders.into_iter().collect(), count)
}

/// What an earlier process left for a receiver.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Refresh {
    /// Whose notifications wait.
    pub(crate) senders: Vec<ResourceId>,
    /// Why something could not be used.
    pub(crate) warning: Option<String>,
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
        assert_eq!(files.load_refresh(&long).unwrap(), Refresh::default());
        files.mark(&long, &id("a"), 1).unwrap();
        files.mark(&long, &id("b"), 2).unwrap();
        drop(files);
        let files = open(&directory);
        assert_eq!(files.load_refresh(&long).unwrap().senders, [id("a"), id("b")]);
        // Stored anew by a later run than the one that is cleared.
        files.mark(&long, &id("b"), 7).unwrap();
        files.clear(&long, &[id("a"), id("b")], 6).unwrap();
        drop(files);
        let files = open(&directory);
        assert_eq!(files.load_refresh(&long).unwrap().senders, [id("b")]);
        files.clear(&long, &[id("b")], 0).unwrap();
        drop(files);
        assert_eq!(open(&directory).load_refresh(&long).unwrap().senders, []);
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
        assert_eq!(
            open(&directory).load_refresh(&id("nginx")).unwrap().senders.len(),
            32
        );
    }

    #[test]
    fn what_many_senders_cost_on_disk_grows_with_their_number_alone() {
        let directory = tempfile::tempdir().unwrap();
        let files = open(&directory);
        let file = files.path(&id("svc")).as_path().join(REFRESH);
        let mut largest = 0;
        for number in 0..300 {
            let before = std::fs::metadata(&file).map_or(0, |found| found.len());
            files
                .mark(&id("svc"), &id(&format!("{number:03}")), number)
                .unwrap();
            let after = std::fs::metadata(&file).unwrap().len();
            largest = largest.max(after - before);
        }
        assert!(largest < 60, "one line at a time: {largest}");
        let all: Vec<ResourceId> = (0..299).map(|number| id(&format!("{number:03}"))).collect();
        files.clear(&id("svc"), &all, 1000).unwrap();
        let left = std::fs::metadata(&file).unwrap().len();
        assert!(left < 60, "what is served is not kept: {left}");
        assert_eq!(
            open_again(files, &directory)
                .load_refresh(&id("svc"))
                .unwrap()
                .senders,
            [id("299")]
        );
    }

    fn open_again(files: StateFiles, directory: &tempfile::TempDir) -> StateFiles {
        drop(files);
        open(directory)
    }

    #[test]
    fn a_line_that_a_crash_cut_off_is_left_out_and_the_next_one_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        let files = open(&directory);
        files.mark(&id("svc"), &id("a"), 1).unwrap();
        let file = files.path(&id("svc")).as_path().join(REFRESH);
        let mut bytes = std::fs::read(&file).unwrap();
        bytes.extend_from_slice(b"+[\"svc\",\"cut");
        std::fs::write(&file, bytes).unwrap();
        let files = open_again(files, &directory);
        assert_eq!(files.load_refresh(&id("svc")).unwrap().senders, [id("a")]);
        files.mark(&id("svc"), &id("b"), 1).unwrap();
        let files = open_again(files, &directory);
        assert_eq!(
            files.load_refresh(&id("svc")).unwrap().senders,
            [id("a"), id("b")]
        );
    }

    /// Files whose notifications for `svc` are this text, opened by the next process.
    fn opened_with(content: &str) -> (tempfile::TempDir, StateFiles, std::path::PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let files = open(&directory);
        files.mark(&id("svc"), &id("a"), 1).unwrap();
        let file = files.path(&id("svc")).as_path().join(REFRESH);
        std::fs::write(&file, content).unwrap();
        let files = open_again(files, &directory);
        (directory, files, file)
    }

    #[test]
    fn damaged_and_newer_state_is_told_and_set_aside() {
        for content in ["rubbish", "setpoint-state 99\nx"] {
            let (directory, files, file) = opened_with(content);
            let found = files.load_refresh(&id("svc")).unwrap();
            assert_eq!(found.senders, []);
            assert!(
                found.warning.is_some_and(|why| why.contains("refresh.set-aside")),
                "{content}"
            );
            assert_eq!(
                std::fs::read_to_string(file.with_extension("set-aside")).unwrap(),
                content
            );
            files.mark(&id("svc"), &id("b"), 1).unwrap();
            let files = open_again(files, &directory);
            assert_eq!(files.load_refresh(&id("svc")).unwrap().senders, [id("b")]);
        }
    }

    #[test]
    fn a_file_whose_first_write_was_cut_promises_nothing_and_takes_the_next_one() {
        for content in ["", "setp", "setpoint-state ", "setpoint-state 2"] {
            let (directory, files, _) = opened_with(content);
            // A sender may store its notification before the receiver is loaded.
            files.mark(&id("svc"), &id("b"), 1).unwrap();
            let found = files.load_refresh(&id("svc")).unwrap();
            assert_eq!((found.senders, found.warning), (vec![id("b")], None), "{content}");
            let files = open_again(files, &directory);
            assert_eq!(files.load_refresh(&id("svc")).unwrap().senders, [id("b")]);
        }
    }

    #[test]
    fn what_was_stored_before_a_damaged_file_is_set_aside_is_stored_again() {
        let (directory, files, _) = opened_with("rubbish");
        files.mark(&id("svc"), &id("b"), 1).unwrap();
        let found = files.load_refresh(&id("svc")).unwrap();
        assert!(found.warning.is_some());
        let files = open_again(files, &directory);
        assert_eq!(files.load_refresh(&id("svc")).unwrap().senders, [id("b")]);
    }

    #[test]
    fn directories_of_unknown_identities_go_after_thirty_days() {
        let directory = tempfile::tempdir().unwrap();
        let files = open(&directory);
        for name in ["kept", "old"] {
            files.mark(&id(name), &id("x"), 1).unwrap();
        }
        let days = |days: u64| Duration::from_secs((1000 + days) * 24 * 3600);
        let kept = [id("kept")];
        assert_eq!(files.sweep(kept.iter(), days(0)).unwrap(), 0);
        assert_eq!(files.sweep(kept.iter(), days(29)).unwrap(), 0);
        assert_eq!(files.sweep(kept.iter(), days(31)).unwrap(), 1);
        assert_eq!(files.directory.subdirectories().unwrap().len(), 1);
        // One that is known again begins anew when it is not.
        assert_eq!(files.sweep([id("old")].iter(), days(32)).unwrap(), 0);
        assert_eq!(files.sweep(kept.iter(), days(33)).unwrap(), 0);
    }
}
