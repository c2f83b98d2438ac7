//! Sharing syncs between the writers of many files.

use super::replace::Prepared;
use super::temporary::sweep;
use super::{AbsolutePath, Directory, FileError, Replace, Replaced};
use crate::sync::{Condvar, Mutex, wait};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

/// Up to so many files or directories of one file system are synced one by one, more with one `syncfs`.
///
/// `syncfs` also waits for what everybody else has written to that file system. Measured on an SSD with a build
/// running beside: 8 ms for it, 0.4 ms for syncing one small file.
const FEW: usize = 16;
/// How many files are committed together at most.
const BATCH: usize = 1024;
/// In how many directories at most: each costs a descriptor until the commit.
const BATCH_DIRECTORIES: usize = 128;

/// Replaces files durably, for many at the price of a few syncs.
///
/// Syncing each of 10 000 files costs more than everything else about them. So the temporary files of all that are
/// written at the same time are synced together (one `syncfs` a file system, or a sync each when there are few), all
/// are renamed, and each directory is synced once. For each single file the promise stays: whoever looks, also
/// after a crash at any moment, finds the old contents or the new, whole; and what was reported as replaced stays.
///
/// Each file system has a queue of its own, so that one that hangs holds nobody else up. There is no thread of its own
/// and none that waits: who puts something into a queue that nobody works off becomes its [`Lead`], and commits for
/// all who come; while it does, the next batch gathers.
#[derive(Debug, Default)]
pub struct Committer {
    devices: Mutex<FxHashMap<u64, Arc<Device>>>,
    /// Directories (file system and number) that were cleared of a dead process's temporary files.
    swept: Mutex<FxHashSet<(u64, u64)>>,
}

/// Somebody who submits replacements and is told of them later, many at a time.
pub trait Party: Send + Sync {
    /// Before these tickets' new contents become visible. What is taken out of the list is not replaced, and not heard
    /// of again.
    fn before(&self, tickets: &mut Vec<u64>);

    /// What became of them.
    fn ended(&self, results: Vec<(u64, Result<Replaced, FileError>)>);
}

impl Committer {
    /// One for the whole process.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes the temporary file of a replacement; [`Committer::submit`] puts it in its place.
    pub fn prepare(&self, request: Replace) -> Result<Prepared, FileError> {
        self.prepare_in(request, None)
    }

    /// Queues a replacement. `party` hears of the ticket when it is made. With an answer, nobody works the queue off,
    /// and the caller must: [`Lead::run`].
    ///
    /// Waits while a whole batch is queued behind the one that is being committed.
    #[must_use = "a lead that does not run holds up its file system"]
    pub fn submit(&self, mut prepared: Prepared, party: &Arc<dyn Party>, ticket: u64) -> Option<Lead> {
        let device = self.device(prepared.made.device);
        let mut queue = device.queue.lock();
        while queue.led && queue.waiting.len() >= BATCH {
            queue = wait(&device.taken, queue);
        }
        if queue.waiting.len() >= FEW {
            // They are synced together, which takes no descriptor each.
            prepared.close();
        }
        queue.waiting.push_back(Waiting {
            prepared,
            party: Arc::clone(party),
            ticket,
        });
        Lead::take(&device, &mut queue)
    }

    /// Replaces one file and returns when the new contents are durable. Blocks; shares nothing with others, so that who
    /// commits for all may call it on the way.
    pub fn replace(&self, request: Replace) -> Result<Replaced, FileError> {
        self.commit(self.prepare_in(request, None)?)
    }

    /// Puts what was prepared in its place and returns when it is durable. Blocks.
    pub fn commit(&self, prepared: Prepared) -> Result<Replaced, FileError> {
        commit(&mut [prepared]).pop().expect("one result a request")
    }

    /// Replaces many files in one go; the results are in the order of the requests. Blocks.
    pub fn replace_many(&self, requests: Vec<Replace>) -> Vec<Result<Replaced, FileError>> {
        let mut results = Vec::with_capacity(requests.len());
        let mut batch = Batch::default();
        let many = requests.len() > FEW;
        for request in requests {
            let prepared = batch.directory(request.path()).and_then(|directory| {
                let mut prepared = self.prepare_in(request, directory.as_ref())?;
                if many {
                    prepared.close();
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

    fn prepare_in(&self, request: Replace, parent: Option<&Arc<Directory>>) -> Result<Prepared, FileError> {
        let prepared = request.prepare(parent)?;
        let directory = prepared.temporary.directory();
        let identity = directory.identity()?;
        if self.swept.lock().insert(identity) {
            sweep(directory)?;
        }
        Ok(prepared)
    }

    fn device(&self, number: u64) -> Arc<Device> {
        Arc::clone(self.devices.lock().entry(number).or_default())
    }
}

/// The queue of one file system.
#[derive(Debug, Default)]
struct Device {
    queue: Mutex<Queue>,
    /// A batch was taken from the queue.
    taken: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// Whether somebody works it off.
    led: bool,
}

struct Waiting {
    prepared: Prepared,
    party: Arc<dyn Party>,
    ticket: u64,
}

impl fmt::Debug for Waiting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Waiting")
            .field("ticket", &self.ticket)
            .finish_non_exhaustive()
    }
}

/// The duty to work off the queue of one file system.
#[derive(Debug)]
#[must_use = "a lead that does not run holds up its file system"]
pub struct Lead {
    device: Arc<Device>,
    over: bool,
}

impl Lead {
    fn take(device: &Arc<Device>, queue: &mut Queue) -> Option<Self> {
        if std::mem::replace(&mut queue.led, true) {
            return None;
        }
        Some(Self {
            device: Arc::clone(device),
            over: false,
        })
    }

    /// Commits batch after batch until nothing waits. Blocks.
    pub fn run(mut self) {
        while self.commit_next() {}
    }

    /// Commits one batch. Answers whether there was one; if not, the duty is over.
    fn commit_next(&mut self) -> bool {
        let mut queue = self.device.queue.lock();
        if queue.waiting.is_empty() {
            queue.led = false;
            self.over = true;
            return false;
        }
        let count = queue.waiting.len().min(BATCH);
        let batch: Vec<Waiting> = queue.waiting.drain(..count).collect();
        drop(queue);
        self.device.taken.notify_all();
        commit_shared(batch);
        true
    }
}

impl Drop for Lead {
    /// Somebody goes away while others wait: a thread takes over.
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let mut queue = self.device.queue.lock();
        if queue.waiting.is_empty() {
            queue.led = false;
            return;
        }
        drop(queue);
        let successor = Self {
            device: Arc::clone(&self.device),
            over: false,
        };
        let started = std::thread::Builder::new()
            .name("commits".to_owned())
            .spawn(move || successor.run());
        // Without a thread the closure was dropped, and this came back here, until a thread could be had.
        drop(started);
    }
}

/// Commits for all who take part, and tells each. A panic is a failure of all in the batch and nobody else's matter.
fn commit_shared(batch: Vec<Waiting>) {
    let mut parties: Vec<(Arc<dyn Party>, Vec<Waiting>)> = Vec::new();
    for member in batch {
        match parties
            .iter_mut()
            .find(|(known, _)| Arc::ptr_eq(known, &member.party))
        {
            Some((_, members)) => members.push(member),
            None => parties.push((Arc::clone(&member.party), vec![member])),
        }
    }
    let (mut prepared, mut tickets) = (Vec::new(), Vec::new());
    for (party, members) in &mut parties {
        ask(&**party, members);
        tickets.push(members.iter().map(|member| member.ticket).collect::<Vec<_>>());
        prepared.extend(members.drain(..).map(|member| member.prepared));
    }
    let committed = catch_unwind(AssertUnwindSafe(|| commit(&mut prepared)));
    let mut results = committed
        .unwrap_or_else(|_| prepared.iter().map(|one| Err(panicked(&one.path()))).collect())
        .into_iter();
    for ((party, _), tickets) in parties.iter().zip(tickets) {
        let told: Vec<_> = tickets.into_iter().zip(&mut results).collect();
        if !told.is_empty() {
            tell(&**party, told);
        }
    }
}

/// Leaves those that may go ahead.
fn ask(party: &dyn Party, members: &mut Vec<Waiting>) {
    let mut tickets: Vec<u64> = members.iter().map(|member| member.ticket).collect();
    if catch_unwind(AssertUnwindSafe(|| party.before(&mut tickets))).is_err() {
        let failed = members.drain(..).map(|member| {
            let error = panicked(&member.prepared.path());
            (member.ticket, Err(error))
        });
        tell(party, failed.collect());
    } else if tickets.len() != members.len() {
        let tickets: FxHashSet<u64> = tickets.into_iter().collect();
        members.retain(|member| tickets.contains(&member.ticket));
    }
}

fn tell(party: &dyn Party, results: Vec<(u64, Result<Replaced, FileError>)>) {
    let _ = catch_unwind(AssertUnwindSafe(|| party.ended(results)));
}

fn panicked(path: &Path) -> FileError {
    let cause = std::io::Error::other("this is a bug: committing panicked");
    FileError::new("replace", path, cause)
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
        let mut committed = commit(&mut prepared).into_iter();
        results.extend(errors.into_iter().map(|error| match error {
            Some(error) => Err(error),
            None => committed.next().expect("one result a prepared request"),
        }));
    }
}

/// Syncs, renames, syncs the directories.
fn commit(batch: &mut [Prepared]) -> Vec<Result<Replaced, FileError>> {
    let mut results: Vec<Result<(), FileError>> = batch.iter().map(|_| Ok(())).collect();
    sync_files(batch, &mut results);
    let mut replaced: Vec<Result<Replaced, FileError>> = batch
        .iter_mut()
        .zip(results)
        .map(|(prepared, synced)| synced.and_then(|()| prepared.finish()))
        .collect();
    sync_directories(batch, &mut replaced);
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
        if !matches!(&replaced[index], Ok(done) if done.method == super::Method::Atomically) {
            continue;
        }
        let directory = prepared.temporary.directory();
        match directory.identity() {
            Ok((device, inode)) => {
                let number = *numbers.entry((device, inode)).or_insert_with(|| {
                    devices.add(device, touched.len());
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
