//! The store of one machine: a directory with one `redb` file, which the processes of the machine share.
//!
//! ```text
//! store.redb        keys, revisions, history, leases        store.redb.new   a store that is being made
//! store.lock        locked by who writes                    leases/ID        locked by who holds a lease
//! ```
//!
//! **Processes.** Each opens the file for itself; none serves the others, so it makes no difference which of them starts, ends or is killed first.
//! The file is opened once (in `redb`'s mode for several writers, which reads what others wrote since) and stays open. A writer holds `store.lock`
//! meanwhile and writes to it when it is done, which wakes those who follow: they watch that file. Whoever is killed in between closes it by that,
//! which wakes them as well. A process that holds the lock and is stopped makes the store [away](StoreError::Away) for the others, who name it.
//!
//! **Asking.** Requests that come while the file is worked on wait for their turn, and then have theirs together: one transaction of the file for
//! all, so that many who write at once wait for the disk once. Each of them still is a revision of its own. What was answered is on the disk.
//!
//! **Leases.** A lease lives as long as its holder has its file locked: the kernel gives that back however the holder ends, and nobody writes to
//! the disk to stay alive. Who finds a lease unlocked notes until when it lives on, its time to live from then; who comes later than that ends it.
//! Times are of the machine's monotonic clock. After a start of the machine the time begins anew. While leases of other processes are
//! held, who follows looks at their locks once a second.
//!
//! **Damage.** A new store is made beside its place and moved there when it is whole. An existing file is checked as a whole when a process opens
//! it, and is never made anew in its place: not if it is damaged, nor if it is empty.
//!
//! The directory is for one machine: locks and clocks of others mean nothing here.

mod database;
mod following;
mod leasing;
mod requests;
mod tables;

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use setpoint_host::files::AbsolutePath;
use setpoint_host::sync::Mutex;
use setpoint_host::watch::{Subscriber, WatchEvent, WatchHandle, WatchHub, WatchToken};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::{
    Lease, Operation, Outcome, Revision, Selection, Snapshot, Store, StoreError, Transaction, Watch,
};
use database::Place;
use following::Follower;
use leasing::Leases;
use requests::{Answer, Question, Requests};

/// More than this in one transaction is refused: it is held in memory as a whole.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// A store in a directory of this machine. Clones are one.
#[derive(Clone)]
pub struct FileStore(Arc<Shared>);

struct Shared {
    place: Place,
    requests: Requests,
    leases: Leases,
    /// Counts what those who follow may have to look at.
    changed: Arc<watch::Sender<u64>>,
    /// Time of a check that is due without a write.
    look: Mutex<Option<Instant>>,
    subscriber: Subscriber,
    /// Watch of writes by other processes, while there are followers.
    armed: Mutex<Weak<WatchHandle>>,
}

impl FileStore {
    /// The store in a directory, which is made with the first thing that is written. What others write is noticed as long as the hub lives.
    #[must_use]
    pub fn new(directory: AbsolutePath, watches: &WatchHub) -> FileStore {
        let changed = Arc::new(watch::Sender::new(0));
        let heard = changed.clone();
        let sink = move |_: &[WatchEvent]| heard.send_modify(|count| *count += 1);
        FileStore(Arc::new(Shared {
            leases: Leases::in_directory(directory.join("leases")),
            place: Place::new(directory),
            requests: Requests::default(),
            changed,
            look: Mutex::default(),
            subscriber: watches.subscribe(Arc::new(sink)),
            armed: Mutex::default(),
        }))
    }

    /// Forgets the history up to now.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub async fn compact(&self) -> Result<(), StoreError> {
        self.0.ask(Question::Compact).await.map(drop)
    }
}

impl Shared {
    async fn ask(self: &Arc<Self>, question: Question) -> Result<Answer, StoreError> {
        Requests::ask(self, question).await
    }

    /// Wakes those who follow.
    fn wake(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// Waits until there may be something new.
    async fn stirred(&self, changed: &mut watch::Receiver<u64>) {
        let look = *self.look.lock();
        let look = async {
            match look {
                Some(look) => sleep_until(look).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // The sender lives in what this holds.
            _ = changed.changed() => {}
            () = look => {}
        }
    }

    /// Watches for what other processes write, as long as somebody holds what is returned.
    fn arm(&self) -> Result<Arc<WatchHandle>, StoreError> {
        let mut armed = self.armed.lock();
        if let Some(armed) = armed.upgrade() {
            return Ok(armed);
        }
        let watched = self.subscriber.watch_settling(&self.place.lock, WatchToken(0));
        let watched = watched.map_err(|error| StoreError::Away {
            reason: error.to_string().into(),
            is_ambiguous: false,
        })?;
        let watched = Arc::new(watched);
        *armed = Arc::downgrade(&watched);
        Ok(watched)
    }
}

impl fmt::Debug for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FileStore").field(&self.0.place.file).finish()
    }
}

#[async_trait]
impl Store for FileStore {
    async fn read(&self, selections: &[Selection]) -> Result<Snapshot, StoreError> {
        match self.0.ask(Question::Read(selections.to_vec())).await? {
            Answer::Read(snapshot) => Ok(snapshot),
            other => unreachable!("{other:?} is no answer to a read"),
        }
    }

    async fn transact(&self, transaction: Transaction) -> Result<Outcome, StoreError> {
        transaction.check()?;
        let bytes = transaction.operations.iter().map(|operation| match operation {
            Operation::Put(put) => put.key.as_str().len() + put.value.len(),
            Operation::Delete(_) => 0,
        });
        let bytes: usize = bytes.sum();
        if bytes > MOST_BYTES {
            let reason = format!("{bytes} bytes in one transaction, and at most {MOST_BYTES} are possible");
            return Err(StoreError::TooLarge {
                reason: reason.into(),
            });
        }
        match self.0.ask(Question::Transact(transaction)).await? {
            Answer::Transacted(outcome) => Ok(outcome),
            other => unreachable!("{other:?} is no answer to a transaction"),
        }
    }

    fn watch(&self, selection: Selection, after: Revision) -> Watch {
        Watch::new(Follower::new(self.0.clone(), selection, after))
    }

    async fn lease(&self, time_to_live: Duration) -> Result<Lease, StoreError> {
        match self.0.ask(Question::Grant(time_to_live)).await? {
            Answer::Granted(id, grip) => Ok(leasing::lease(&self.0, id, time_to_live, grip)),
            other => unreachable!("{other:?} is no answer to whoever wants a lease"),
        }
    }
}
