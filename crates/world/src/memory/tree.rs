//! Keys, revisions and history, as etcd counts them. Pure: nothing here waits or knows of others.

use std::collections::{BTreeMap, VecDeque};

use crate::{
    Batch, Change, Entry, Key, LeaseId, Operation, Outcome, Put, Revision, Selection, Snapshot, Transaction,
};

/// A tree of keys.
#[derive(Debug, Default)]
pub(super) struct Tree {
    revision: Revision,
    /// The last revision whose changes are forgotten.
    compacted: Revision,
    entries: BTreeMap<Key, Entry>,
    history: VecDeque<Batch>,
}

impl Tree {
    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    pub(super) fn read(&self, selections: &[Selection]) -> Snapshot {
        let read = |selection: &Selection| -> Vec<Entry> { self.selected(selection).cloned().collect() };
        Snapshot {
            revision: self.revision,
            entries: selections.iter().map(read).collect(),
        }
    }

    fn selected(&self, selection: &Selection) -> impl Iterator<Item = &Entry> {
        let (from, holds) = match selection {
            Selection::Key(key) => (Some(key.clone()), selection),
            Selection::Prefix(prefix) => (Key::new(prefix.clone()).ok(), selection),
        };
        let entries = match from {
            Some(from) => self.entries.range(from..),
            None => self.entries.range(..),
        };
        entries
            .map(|(_, entry)| entry)
            .take_while(move |entry| holds.holds(entry.key.as_str()))
    }

    pub(super) fn transact(&mut self, transaction: Transaction) -> Outcome {
        let mut conditions = transaction.conditions.iter();
        if !conditions.all(|condition| condition.is_met_by(self.entries.get(&condition.key))) {
            return Outcome::Refused(self.read(&transaction.otherwise_read));
        }
        let next = Revision(self.revision.0 + 1);
        let mut changes = Vec::new();
        for operation in transaction.operations {
            match operation {
                Operation::Put(Put { key, value, lease }) => {
                    let created = self.entries.get(&key).map_or(next, |entry| entry.created);
                    let entry = Entry {
                        key: key.clone(),
                        value,
                        created,
                        modified: next,
                        lease,
                    };
                    changes.push(Change::Put(entry.clone()));
                    self.entries.insert(key, entry);
                }
                Operation::Delete(selection) => {
                    let keys: Vec<Key> = self.selected(&selection).map(|entry| entry.key.clone()).collect();
                    changes.extend(keys.into_iter().map(|key| self.remove(key)));
                }
            }
        }
        self.commit(changes);
        Outcome::Done(self.revision)
    }

    /// Deletes what goes with a lease.
    pub(super) fn delete_leased(&mut self, lease: LeaseId) {
        let leased = self.entries.values().filter(|entry| entry.lease == Some(lease));
        let keys: Vec<Key> = leased.map(|entry| entry.key.clone()).collect();
        let changes = keys.into_iter().map(|key| self.remove(key)).collect();
        self.commit(changes);
    }

    fn remove(&mut self, key: Key) -> Change {
        self.entries.remove(&key);
        Change::Deleted(key)
    }

    fn commit(&mut self, changes: Vec<Change>) {
        if !changes.is_empty() {
            self.revision.0 += 1;
            self.history.push_back(Batch {
                revision: self.revision,
                changes,
            });
        }
    }

    /// Forgets the changes up to a revision.
    pub(super) fn compact(&mut self, up_to: Revision) {
        self.compacted = self.compacted.max(up_to.min(self.revision));
        while self
            .history
            .front()
            .is_some_and(|batch| batch.revision <= self.compacted)
        {
            self.history.pop_front();
        }
    }

    /// The first change of a selection after a revision, if there is one.
    ///
    /// # Errors
    /// The last revision that is forgotten, if one after the asked for is.
    pub(super) fn after(&self, revision: Revision, selection: &Selection) -> Result<Option<Batch>, Revision> {
        if revision < self.compacted {
            return Err(self.compacted);
        }
        // Every revision after the last that is forgotten has one place.
        let skipped = usize::try_from(revision.0 - self.compacted.0).unwrap_or(usize::MAX);
        let later = self.history.iter().skip(skipped);
        let concerned = later.filter_map(|batch| {
            let changes = batch
                .changes
                .iter()
                .filter(|change| selection.holds(change.key().as_str()));
            let changes: Vec<Change> = changes.cloned().collect();
            let revision = batch.revision;
            (!changes.is_empty()).then_some(Batch { revision, changes })
        });
        Ok(concerned.into_iter().next())
    }
}
