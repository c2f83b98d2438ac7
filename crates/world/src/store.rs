//! The trait, and what is asked and answered.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::{Lease, LeaseId, StoreError, Watch};

/// Maximum number of conditions, operations and reads of a transaction, each: etcd's default limit.
pub const MOST_OPERATIONS: usize = 128;

/// A store of keys that hosts share.
#[async_trait]
pub trait Store: Send + Sync + fmt::Debug {
    /// Reads several selections as they were at one revision. At most [`MOST_OPERATIONS`].
    ///
    /// # Errors
    /// When the store cannot be asked, or refuses.
    async fn read(&self, selections: &[Selection]) -> Result<Snapshot, StoreError>;

    /// All keys that begin with a text, by key, without what is under them.
    ///
    /// # Errors
    /// When the store cannot be asked, or refuses.
    async fn keys(&self, prefix: &str) -> Result<Vec<Key>, StoreError> {
        let found = self.read(&[Selection::prefix(prefix)]).await?;
        Ok(found.all().map(|entry| entry.key.clone()).collect())
    }

    /// Compares, and then writes everything or nothing.
    ///
    /// # Errors
    /// When the store cannot be asked, or refuses. Where [`StoreError::is_ambiguous`] says so it may have been done all the same.
    async fn transact(&self, transaction: Transaction) -> Result<Outcome, StoreError>;

    /// Follows the changes of a selection after a revision, for ever: after a break it goes on where it was.
    fn watch(&self, selection: Selection, after: Revision) -> Watch;

    /// A lease, which is kept alive as long as its handle lives. The store may give it a longer time to live.
    ///
    /// # Errors
    /// When the store cannot be asked, or refuses.
    async fn lease(&self, time_to_live: Duration) -> Result<Lease, StoreError>;
}

/// A key: text, not empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

/// Why a text is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key is not empty")]
pub struct InvalidKey;

impl Key {
    /// The key of a text.
    ///
    /// # Errors
    /// When the text is empty.
    pub fn new(text: impl Into<Arc<str>>) -> Result<Key, InvalidKey> {
        let text = text.into();
        match text.is_empty() {
            true => Err(InvalidKey),
            false => Ok(Key(text)),
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The bytes under a key. Cheap to clone.
pub type Value = Arc<[u8]>;

/// A revision of the store. Each transaction with changes increases it by one; 0 is the empty store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Revision(pub u64);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Keys to read, follow or delete.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Selection {
    /// One key.
    Key(Key),
    /// All keys that begin with a text; the empty one: all.
    Prefix(Arc<str>),
}

impl Selection {
    /// All keys that begin with a text.
    #[must_use]
    pub fn prefix(text: impl Into<Arc<str>>) -> Selection {
        Selection::Prefix(text.into())
    }

    /// Whether a key is selected.
    #[must_use]
    pub fn holds(&self, key: &str) -> bool {
        match self {
            Selection::Key(one) => one.as_str() == key,
            Selection::Prefix(prefix) => key.starts_with(&**prefix),
        }
    }
}

impl From<Key> for Selection {
    fn from(key: Key) -> Selection {
        Selection::Key(key)
    }
}

/// A key with what is under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Key,
    /// The value.
    pub value: Value,
    /// With which revision it came, since it was last not there.
    pub created: Revision,
    /// With which revision it was last set.
    pub modified: Revision,
    /// The lease with which it goes.
    pub lease: Option<LeaseId>,
}

impl Entry {
    /// The value as text; none if it is none.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.value).ok()
    }
}

/// The result of a read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Revision of the result.
    pub revision: Revision,
    /// For each selection, in order, what there was, by key.
    pub entries: Vec<Vec<Entry>>,
}

impl Snapshot {
    /// All entries, in order.
    pub fn all(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().flatten()
    }
}

/// A condition of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Of which key.
    pub key: Key,
    /// Required state.
    pub is: State,
}

/// State of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It is not there.
    Absent,
    /// It is there.
    Present,
    /// It has this value.
    Value(Value),
    /// It was last set with this revision.
    Modified(Revision),
    /// It came with this revision.
    Created(Revision),
}

impl Condition {
    /// A key must be so.
    #[must_use]
    pub fn new(key: Key, is: State) -> Condition {
        Condition { key, is }
    }

    /// Whether it is met by what is under the key.
    #[must_use]
    pub fn is_met_by(&self, entry: Option<&Entry>) -> bool {
        match (&self.is, entry) {
            (State::Absent, entry) => entry.is_none(),
            (State::Present, entry) => entry.is_some(),
            (State::Value(value), entry) => entry.is_some_and(|entry| entry.value == *value),
            (State::Modified(revision), entry) => entry.is_some_and(|entry| entry.modified == *revision),
            (State::Created(revision), entry) => entry.is_some_and(|entry| entry.created == *revision),
        }
    }
}

/// Operations of a transaction. Each key occurs once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Sets a key.
    Put(Put),
    /// Deletes what is selected; nothing may be.
    Delete(Selection),
}

/// A key to be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    /// Which.
    pub key: Key,
    /// To what.
    pub value: Value,
    /// With which lease it goes; none: it stays.
    pub lease: Option<LeaseId>,
}

impl Operation {
    /// Sets a key that stays.
    #[must_use]
    pub fn put(key: Key, value: impl Into<Value>) -> Operation {
        Operation::Put(Put {
            key,
            value: value.into(),
            lease: None,
        })
    }

    /// Sets a key that goes with a lease.
    #[must_use]
    pub fn put_leased(key: Key, value: impl Into<Value>, lease: LeaseId) -> Operation {
        Operation::Put(Put {
            key,
            value: value.into(),
            lease: Some(lease),
        })
    }
}

/// Compares, and then writes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Transaction {
    /// Conditions that must all hold.
    pub conditions: Vec<Condition>,
    /// Operations if they hold, in order.
    pub operations: Vec<Operation>,
    /// Selections to read if one does not hold.
    pub otherwise_read: Vec<Selection>,
}

impl Transaction {
    /// Writes without a condition.
    #[must_use]
    pub fn of(operations: impl IntoIterator<Item = Operation>) -> Transaction {
        Transaction {
            operations: operations.into_iter().collect(),
            ..Transaction::default()
        }
    }

    /// And only if this is true.
    #[must_use]
    pub fn when(mut self, key: Key, is: State) -> Transaction {
        self.conditions.push(Condition::new(key, is));
        self
    }

    /// Checks that do not depend on the content of a store, so that all stores reject the same transactions, before they send anything.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let refused = |reason: String| {
            Err(StoreError::Refused {
                reason: reason.into(),
            })
        };
        for (count, what) in [
            (self.conditions.len(), "conditions"),
            (self.operations.len(), "changes"),
            (self.otherwise_read.len(), "reads"),
        ] {
            if count > MOST_OPERATIONS {
                let reason =
                    format!("{count} {what} in one transaction, and at most {MOST_OPERATIONS} are possible");
                return Err(StoreError::TooLarge {
                    reason: reason.into(),
                });
            }
        }
        for (index, operation) in self.operations.iter().enumerate() {
            let Operation::Put(put) = operation else { continue };
            let is_also = |other: &Operation| match other {
                Operation::Put(other) => other.key == put.key,
                Operation::Delete(selection) => selection.holds(put.key.as_str()),
            };
            let others = self.operations.iter().enumerate();
            if others
                .filter(|(other, _)| *other != index)
                .any(|(_, other)| is_also(other))
            {
                return refused(format!("{} is changed twice in one transaction", put.key));
            }
        }
        Ok(())
    }

    /// The leases that it puts keys on.
    pub(crate) fn leases(&self) -> Vec<LeaseId> {
        let puts = self.operations.iter().filter_map(|operation| match operation {
            Operation::Put(put) => put.lease,
            Operation::Delete(_) => None,
        });
        puts.collect()
    }

    /// And reads this if a condition is not met.
    #[must_use]
    pub fn otherwise(mut self, selection: impl Into<Selection>) -> Transaction {
        self.otherwise_read.push(selection.into());
        self
    }
}

/// The result of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was written; the revision of the store then.
    Done(Revision),
    /// A condition is not met: what was asked for in that case.
    Refused(Snapshot),
}

impl Outcome {
    /// Whether it was written.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self, Outcome::Done(_))
    }
}

/// A change of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It was set.
    Put(Entry),
    /// It was deleted, or went with its lease.
    Deleted(Key),
}

impl Change {
    /// The key.
    #[must_use]
    pub fn key(&self) -> &Key {
        match self {
            Change::Put(entry) => &entry.key,
            Change::Deleted(key) => key,
        }
    }
}
