//! A store in the memory of a process, for tests and simulated clusters.
//!
//! Clones are one and the same store, as several clients of one etcd are. It can be told to be away, to forget history, and to end leases.

mod tree;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use setpoint_host::sync::{Mutex, MutexGuard};
use tokio::sync::watch;

use crate::lease::LeaseControl;
use crate::watch::WatchSource;
use crate::{
    Lease, LeaseId, Outcome, Revision, Selection, Snapshot, Store, StoreError, Transaction, Watch, Watched,
};
use tree::Tree;

/// A store in memory.
#[derive(Debug, Clone)]
pub struct MemoryStore(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    inner: Mutex<Inner>,
    /// Counts what watches may have to look at.
    changed: watch::Sender<u64>,
}

#[derive(Debug)]
struct Inner {
    tree: Tree,
    is_away: bool,
    /// Those that are held, with what tells their holders that they ended.
    leases: std::collections::BTreeMap<LeaseId, watch::Sender<bool>>,
    last_lease: i64,
}

impl Default for MemoryStore {
    fn default() -> MemoryStore {
        MemoryStore::new()
    }
}

impl MemoryStore {
    /// An empty one.
    #[must_use]
    pub fn new() -> MemoryStore {
        let inner = Inner {
            tree: Tree::default(),
            is_away: false,
            leases: std::collections::BTreeMap::new(),
            last_lease: 0,
        };
        MemoryStore(Arc::new(Shared {
            inner: Mutex::new(inner),
            changed: watch::Sender::new(0),
        }))
    }

    /// From now on nobody reaches it, or everybody does again. What is held by leases stays meanwhile.
    pub fn set_away(&self, is_away: bool) {
        self.0.inner.lock().is_away = is_away;
        self.0.wake();
    }

    /// Forgets the history up to now.
    pub fn compact(&self) {
        let mut inner = self.0.inner.lock();
        let now = inner.tree.revision();
        inner.tree.compact(now);
    }

    /// Ends all leases at once, as if nobody had been heard of for long.
    pub fn end_leases(&self) {
        let ids: Vec<LeaseId> = self.0.inner.lock().leases.keys().copied().collect();
        for id in ids {
            self.0.end(id);
        }
    }
}

impl Shared {
    fn reach(&self) -> Result<MutexGuard<'_, Inner>, StoreError> {
        let inner = self.inner.lock();
        match inner.is_away {
            true => Err(away()),
            false => Ok(inner),
        }
    }

    fn wake(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// Ends a lease, and what goes with it.
    fn end(&self, id: LeaseId) {
        let mut inner = self.inner.lock();
        if let Some(holder) = inner.leases.remove(&id) {
            inner.tree.delete_leased(id);
            holder.send_replace(true);
        }
        drop(inner);
        self.wake();
    }
}

fn away() -> StoreError {
    StoreError::Away {
        reason: "it was taken away".into(),
        is_ambiguous: false,
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn read(&self, selections: &[Selection]) -> Result<Snapshot, StoreError> {
        Ok(self.0.reach()?.tree.read(selections))
    }

    async fn transact(&self, transaction: Transaction) -> Result<Outcome, StoreError> {
        transaction.check()?;
        let mut inner = self.0.reach()?;
        let leases = transaction.leases();
        if leases.into_iter().any(|lease| !inner.leases.contains_key(&lease)) {
            return Err(StoreError::LeaseEnded);
        }
        let outcome = inner.tree.transact(transaction);
        drop(inner);
        self.0.wake();
        Ok(outcome)
    }

    fn watch(&self, selection: Selection, after: Revision) -> Watch {
        Watch::new(Follower {
            shared: self.0.clone(),
            selection,
            seen: after,
            is_away: false,
            changed: self.0.changed.subscribe(),
        })
    }

    async fn lease(&self, time_to_live: Duration) -> Result<Lease, StoreError> {
        let mut inner = self.0.reach()?;
        inner.last_lease += 1;
        let id = LeaseId(inner.last_lease);
        let is_lost = watch::Sender::new(false);
        let lost = is_lost.subscribe();
        inner.leases.insert(id, is_lost);
        let control = Held {
            shared: self.0.clone(),
            id,
            time_to_live,
        };
        Ok(Lease::new(id, time_to_live, lost, control))
    }
}

/// A lease that somebody of this process holds.
struct Held {
    shared: Arc<Shared>,
    id: LeaseId,
    time_to_live: Duration,
}

#[async_trait]
impl LeaseControl for Held {
    async fn revoke(&self) -> Result<(), StoreError> {
        drop(self.shared.reach()?);
        self.shared.end(self.id);
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // It runs out, unless it was revoked. Where there is no runtime, nobody waits for that.
        let (shared, id, time_to_live) = (self.shared.clone(), self.id, self.time_to_live);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                tokio::time::sleep(time_to_live).await;
                shared.end(id);
            });
        }
    }
}

struct Follower {
    shared: Arc<Shared>,
    selection: Selection,
    seen: Revision,
    is_away: bool,
    changed: watch::Receiver<u64>,
}

#[async_trait]
impl WatchSource for Follower {
    async fn next(&mut self) -> Watched {
        loop {
            self.changed.mark_unchanged();
            if let Some(heard) = self.look() {
                return heard;
            }
            // The sender lives in what this holds.
            let _ = self.changed.changed().await;
        }
    }
}

impl Follower {
    fn look(&mut self) -> Option<Watched> {
        let inner = self.shared.inner.lock();
        if inner.is_away {
            return (!std::mem::replace(&mut self.is_away, true)).then(|| Watched::Away(away()));
        }
        if std::mem::take(&mut self.is_away) {
            return Some(Watched::Back);
        }
        match inner.tree.after(self.seen, &self.selection) {
            Ok(Some(batch)) => {
                self.seen = batch.revision;
                Some(Watched::Changed(batch))
            }
            Ok(None) => {
                // What is of no concern need not be looked at again, and is not missed when it is forgotten.
                self.seen = self.seen.max(inner.tree.revision());
                None
            }
            Err(compacted) => {
                self.seen = compacted;
                Some(Watched::Compacted(compacted))
            }
        }
    }
}
