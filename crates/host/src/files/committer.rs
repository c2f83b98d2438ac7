//! Sharing syncs between the writers of many files.

use super::replace::Prepared;
use super::temporary::sweep;
use super::{AbsolutePath, Directory, FileError, Replace, Replaced};
use crate::sync::{Condvar, Mutex, wait};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Up to so many files or directories of one file system are synced one by one, more with one `syncfs`.
///
/// `syncfs` also waits for what everybody else has written to that file system. Measured on an SSD with a build
/// running beside: 8 ms for it, 0.4 ms for syncing one small file.
const FEW: usize = 16;
/// How many files [`Committer::replace_many`] prepares before it commits them.
const BATCH: usize = 1024;
/// In how many directories at most: each costs a descriptor until the commit.
const BATCH_DIRECTORIES: usize = 128;

/// Replaces files durably, for many callers at the price of a few syncs.
///
/// Syncing each of 10 000 files costs more than everything else about them. So the temporary files of all who
/// write at the same time are synced together (one `syncfs` a file system, or a sync each when there are few), all
/// are renamed, and each directory is synced once. For each single file the promise stays: whoever looks, also
/// after a crash at any moment, finds the old contents or the new, whole; and what was reported as replaced stays.
///
/// There is no thread of its own: of the callers of [`Committer::replace`] one commits for all who wait, and while
/// it does, the next batch gathers.
#[derive(Debug, Default)]
pub struct Committer {
    queue: Mutex<Queue>,
    committed: Condvar,
    /// Directories (file system and number) that were cleared of a dead process's temporary files.
    swept: Mutex<FxHashSet<(u64, u64)>>,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<(u64, Prepared)>,
    results: FxHashMap<u64, Result<Replaced, FileError>>,
    next_ticket: u64,
    /// Whether somebody is committing.
    led: bool,
}

impl Committer {
    /// One for the whole process.
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces one file and returns when the new contents are durable. Blocks.
    pub fn replace(&self, request: Replace) -> Result<Replaced, FileError> {
        let durable = request.is_durable();
        let entry = request.entry(None)?;
        let prepared = self.prepare(request, entry)?;
        if !durable {
            return commit(vec![prepared]).pop().expect("one result a request");
        }
        let mut queue = self.queue.lock();
        let ticket = queue.next_ticket;
        queue.next_ticket += 1;
        queue.waiting.push((ticket, prepared));
        loop {
            if let Some(result) = queue.results.remove(&ticket) {
                return result;
            }
            if queue.led {
                queue = wait(&self.committed, queue);
                continue;
            }
            queue.led = true;
            let (tickets, batch): (Vec<_>, Vec<_>) = std::mem::take(&mut queue.waiting).into_iter().unzip();
            drop(queue);
            let results = commit(batch);
            queue = self.queue.lock();
            queue.results.extend(tickets.into_iter().zip(results));
            queue.led = false;
            self.committed.notify_all();
        }
    }

    /// Replaces many files in one go; the results are in the order of the requests. Blocks.
    pub fn replace_many(&self, requests: Vec<Replace>) -> Vec<Result<Replaced, FileError>> {
        let mut results = Vec::with_capacity(requests.len());
        let mut batch = Batch::default();
        let many = requests.len() > FEW;
        for request in requests {
            let prepared = batch.directory(request.path()).and_then(|directory| {
                let entry = request.entry(directory.as_ref())?;
                let mut prepared = self.prepare(request, entry)?;
                if many {
                    prepared.temporary.close();
                }
                Ok(prepared)
            });
            batch.prepared.push(prepared);
            if batch.prepared.len() == BATCH || batch.directories.len() == BATCH_DIRECTORIES {
                std::mem::take(&mut batch).commit_into(&mut results);
            }
        }
        batch.commit_into(&mut results);
        results
    }

    fn prepare(&self, request: Replace, entry: super::Entry) -> Result<Prepared, FileError> {
        let prepared = request.prepare(entry)?;
        let directory = prepared.temporary.directory();
        let stat = directory.stat()?;
        if self.swept.lock().insert((stat.device, stat.inode)) {
            sweep(directory)?;
        }
        Ok(prepared)
    }
}

/// Requests on their way to one commit.
#[derive(Debug, Default)]
struct Batch {
    prepared: Vec<Result<Prepared, FileError>>,
    /// Parents that are open already, by path.
    directories: FxHashMap<AbsolutePath, Arc<Directory>>,
}

impl Batch {
    /// The parent of a path; nothing if the text does not say which directory that is.
    fn directory(&mut self, path: &AbsolutePath) -> Result<Option<Arc<Directory>>, FileError> {
        if path.file_name().is_none_or(|name| name == "..") {
            return Ok(None);
        }
        let Some(parent) = path.parent() else {
            return Ok(None);
        };
        if let Some(directory) = self.directories.get(&parent) {
            return Ok(Some(Arc::clone(directory)));
        }
        let directory = Arc::new(Directory::open(&parent)?);
        self.directories.insert(parent, Arc::clone(&directory));
        Ok(Some(directory))
    }

    fn commit_into(self, results: &mut Vec<Result<Replaced, FileError>>) {
        // A request that failed already keeps its place by its error.
        let mut errors = Vec::with_capacity(self.prepared.len());
        let mut prepared = Vec::with_capacity(self.prepared.len());
        for outcome in self.prepared {
            errors.push(outcome.map(|ready| prepared.push(ready)).err());
        }
        let mut committed = commit(prepared).into_iter();
        results.extend(errors.into_iter().map(|error| match error {
            Some(error) => Err(error),
            None => committed.next().expect("one result a prepared request"),
        }));
    }
}

/// Syncs, renames, syncs the directories.
fn commit(mut batch: Vec<Prepared>) -> Vec<Result<Replaced, FileError>> {
    let mut results: Vec<Result<(), FileError>> = batch.iter().map(|_| Ok(())).collect();
    sync_files(&mut batch, &mut results);
    let mut replaced: Vec<Result<Replaced, FileError>> = batch
        .iter_mut()
        .zip(results)
        .map(|(prepared, synced)| synced.and_then(|()| prepared.finish()))
        .collect();
    sync_directories(&batch, &mut replaced);
    replaced
}

fn sync_files(batch: &mut [Prepared], results: &mut [Result<(), FileError>]) {
    let mut devices = Groups::default();
    for (index, prepared) in batch.iter().enumerate() {
        if prepared.is_to_be_synced() && !prepared.is_link() {
            devices.add(prepared.made.device, index);
        }
    }
    for members in devices.0.into_values() {
        if members.len() <= FEW {
            for index in members {
                results[index] = sync_one(&mut batch[index]);
            }
        } else if let Err(error) = sync_file_system(&mut batch[members[0]]) {
            for index in members {
                results[index] = Err(repeat(&error));
            }
        }
    }
}

fn sync_one(prepared: &mut Prepared) -> Result<(), FileError> {
    let path = prepared.path();
    rustix::fs::fsync(prepared.temporary.file()?).map_err(FileError::on("sync", &path))
}

fn sync_file_system(prepared: &mut Prepared) -> Result<(), FileError> {
    let path = prepared.path();
    rustix::fs::syncfs(prepared.temporary.file()?).map_err(FileError::on("sync the file system of", &path))
}

fn sync_directories(batch: &[Prepared], replaced: &mut [Result<Replaced, FileError>]) {
    /// A directory and the members of the batch that are in it.
    struct Touched<'a> {
        directory: &'a Arc<Directory>,
        members: Vec<usize>,
    }
    let mut touched: Vec<Touched<'_>> = Vec::new();
    let mut numbers: FxHashMap<(u64, u64), usize> = FxHashMap::default();
    let mut devices = Groups::default();
    for (index, prepared) in batch.iter().enumerate() {
        if !prepared.durable
            || !matches!(&replaced[index], Ok(done) if done.method == super::Method::Atomically)
        {
            continue;
        }
        let directory = prepared.temporary.directory();
        match directory.stat() {
            Ok(stat) => {
                let number = *numbers.entry((stat.device, stat.inode)).or_insert_with(|| {
                    devices.add(stat.device, touched.len());
                    touched.push(Touched {
                        directory,
                        members: Vec::new(),
                    });
                    touched.len() - 1
                });
                touched[number].members.push(index);
            }
            Err(error) => replaced[index] = Err(error),
        }
    }
    let mut fail = |members: &[usize], error: &FileError| {
        for index in members {
            replaced[*index] = Err(repeat(error));
        }
    };
    for members in devices.0.into_values() {
        if members.len() <= FEW {
            for number in members {
                if let Err(error) = touched[number].directory.sync() {
                    fail(&touched[number].members, &error);
                }
            }
            continue;
        }
        let directory = touched[members[0]].directory;
        let synced = directory.open_for_reading().and_then(|readable| {
            rustix::fs::syncfs(&readable).map_err(FileError::on("sync the file system of", directory.path()))
        });
        if let Err(error) = synced {
            for number in members {
                fail(&touched[number].members, &error);
            }
        }
    }
}

/// Indices by file system.
#[derive(Default)]
struct Groups(std::collections::BTreeMap<u64, Vec<usize>>);

impl Groups {
    fn add(&mut self, device: u64, index: usize) {
        self.0.entry(device).or_default().push(index);
    }
}

/// The same failure once more, for each of those who shared in what failed.
fn repeat(error: &FileError) -> FileError {
    let source = error
        .errno()
        .map_or_else(|| std::io::Error::other(error.to_string()), Into::into);
    FileError::new(error.attempted(), error.path(), source)
}
