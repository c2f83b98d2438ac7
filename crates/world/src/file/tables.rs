//! What is in the file, and how it changes: keys, revisions and history, as etcd counts them.

use std::sync::Arc;

use redb::{
    ReadTransaction, ReadableDatabase, ReadableTable, ReadableTableMetadata, Table, TableDefinition,
    WriteTransaction,
};

use super::leasing::{Clock, Deadline, Leases, NO_DEADLINE};
use super::requests::{Answer, Question};
use crate::{
    Batch, Change, Entry, Key, LeaseId, Operation, Outcome, Put, Revision, Selection, Snapshot, StoreError,
    Transaction,
};

/// Version of the file format. Other versions are rejected.
const FORMAT: u64 = 1;

/// Maximum number of changes kept for followers, and their maximum size in bytes.
const MOST_CHANGES: u64 = 10_000;
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// Maximum size of the changes in one answer, in bytes.
const NEWS_BYTES: usize = 4 * 1024 * 1024;

/// Numbers, by the names below.
const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");
const FORMAT_IS: &str = "format";
const REVISION: &str = "revision";
/// The last revision whose changes are forgotten.
const FORGOTTEN: &str = "forgotten";
const LAST_LEASE: &str = "last lease";
/// Size of the kept changes, in bytes.
const REMEMBERED: &str = "remembered bytes";
/// Random identity of this store. A store that replaces it has another one.
const MADE: &str = "made";

/// Created, modified, the lease or 0, the value.
type Stored<'a> = (u64, u64, i64, &'a [u8]);
const ENTRIES: TableDefinition<'_, &str, Stored<'_>> = TableDefinition::new("entries");

/// By revision and place in it: key, whether it was set, created, the lease or 0, the value.
type Remembered<'a> = (&'a str, bool, u64, i64, &'a [u8]);
const HISTORY: TableDefinition<'_, (u64, u32), Remembered<'_>> = TableDefinition::new("history");

/// Milliseconds to live; until when, once nobody holds it.
const LEASES: TableDefinition<'_, i64, (u64, Deadline)> = TableDefinition::new("leases");
/// The keys that go with a lease.
const LEASED: TableDefinition<'_, (i64, &str), ()> = TableDefinition::new("leased");

/// An error of the file itself.
pub(super) type Result<T> = std::result::Result<T, redb::Error>;

/// Changes after a revision.
#[derive(Debug)]
pub(super) struct News {
    /// Identity of the store; 0 if there is none.
    pub(super) made: u64,
    /// Until here everything is told.
    pub(super) until: Revision,
    /// The changes; none if they are no longer kept.
    pub(super) batches: Option<Vec<Batch>>,
    /// Whether there is more than was given at a time.
    pub(super) is_cut: bool,
}

/// Answers where there is no file.
pub(super) fn of_nothing(question: &Question) -> Answer {
    match question {
        Question::Read(selections) => Answer::Read(Snapshot {
            revision: Revision(0),
            entries: selections.iter().map(|_| Vec::new()).collect(),
        }),
        Question::News(_, after) => Answer::News(News {
            made: 0,
            until: Revision(0),
            batches: (after.0 == 0).then(Vec::new),
            is_cut: false,
        }),
        other => unreachable!("{other:?} makes a file"),
    }
}

/// Makes the tables of a new store.
pub(super) fn make(transaction: &WriteTransaction, made: u64) -> Result<()> {
    let mut tables = Writing::open(transaction)?;
    tables.numbers.insert(FORMAT_IS, FORMAT)?;
    tables.numbers.insert(MADE, made)?;
    Ok(())
}

/// Reading, at one revision.
pub(super) struct Reading {
    numbers: redb::ReadOnlyTable<&'static str, u64>,
    entries: redb::ReadOnlyTable<&'static str, Stored<'static>>,
    history: redb::ReadOnlyTable<(u64, u32), Remembered<'static>>,
    leases: redb::ReadOnlyTable<i64, (u64, Deadline)>,
}

impl Reading {
    pub(super) fn begin(database: &redb::Database) -> Result<Reading> {
        let transaction: ReadTransaction = database.begin_read()?;
        Ok(Reading {
            numbers: transaction.open_table(NUMBERS)?,
            entries: transaction.open_table(ENTRIES)?,
            history: transaction.open_table(HISTORY)?,
            leases: transaction.open_table(LEASES)?,
        })
    }

    /// Whether the file is as this program makes them; otherwise how it is made.
    pub(super) fn check_format(&self) -> Result<std::result::Result<(), u64>> {
        let format = number(&self.numbers, FORMAT_IS)?;
        Ok(match format {
            FORMAT => Ok(()),
            other => Err(other),
        })
    }

    pub(super) fn answer(&self, question: &Question) -> Result<Answer> {
        match question {
            Question::Read(selections) => read(&self.numbers, &self.entries, selections).map(Answer::Read),
            Question::News(selection, after) => {
                news(&self.numbers, &self.history, selection, *after).map(Answer::News)
            }
            other => unreachable!("{other:?} is not only read"),
        }
    }

    /// Whether a lease is to be changed, and when to look again.
    pub(super) fn look_at(&self, leases: &Leases, clock: &Clock) -> Result<Look> {
        let mut look = Look::default();
        for row in self.leases.iter()? {
            let (id, lease) = row?;
            let (_, deadline) = lease.value();
            look.consider(leases.state(LeaseId(id.value()), deadline, clock));
        }
        leases.lose_but(|id| Ok(self.leases.get(id.0)?.is_some()))?;
        Ok(look)
    }
}

/// Work on leases.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// One has run out, or nobody holds it any more.
    pub(super) is_due: bool,
    /// In how many milliseconds there is something to look at.
    pub(super) again: Option<u64>,
}

impl Look {
    fn consider(&mut self, state: Held) {
        let again = match state {
            Held::Here => return,
            Held::Elsewhere => 1_000,
            Held::Until(milliseconds) => milliseconds,
            Held::ByNobody | Held::Over => {
                self.is_due = true;
                return;
            }
        };
        self.again = Some(self.again.map_or(again, |other| other.min(again)));
    }
}

/// The process that holds a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// This store.
    Here,
    /// Another process, or another store of this one.
    Elsewhere,
    /// Nobody since a short time, which is to be noted.
    ByNobody,
    /// Nobody, and it goes on for so many milliseconds.
    Until(u64),
    /// Nobody for as long as it lives.
    Over,
}

/// Writing, all or nothing.
pub(super) struct Writing<'t> {
    numbers: Table<'t, &'static str, u64>,
    entries: Table<'t, &'static str, Stored<'static>>,
    history: Table<'t, (u64, u32), Remembered<'static>>,
    leases: Table<'t, i64, (u64, Deadline)>,
    leased: Table<'t, (i64, &'static str), ()>,
    /// Whether anything is different from before.
    pub(super) is_changed: bool,
}

impl<'t> Writing<'t> {
    pub(super) fn open(transaction: &'t WriteTransaction) -> Result<Writing<'t>> {
        Ok(Writing {
            numbers: transaction.open_table(NUMBERS)?,
            entries: transaction.open_table(ENTRIES)?,
            history: transaction.open_table(HISTORY)?,
            leases: transaction.open_table(LEASES)?,
            leased: transaction.open_table(LEASED)?,
            is_changed: false,
        })
    }

    /// Answers one question, after those before it.
    pub(super) fn answer(
        &mut self,
        question: &Question,
        leases: &Leases,
    ) -> Result<std::result::Result<Answer, StoreError>> {
        Ok(Ok(match question {
            Question::Read(selections) => Answer::Read(read(&self.numbers, &self.entries, selections)?),
            Question::News(selection, after) => {
                Answer::News(news(&self.numbers, &self.history, selection, *after)?)
            }
            Question::Transact(transaction) => return self.transact(transaction),
            Question::Grant(time_to_live) => {
                let milliseconds = u64::try_from(time_to_live.as_millis()).unwrap_or(u64::MAX);
                self.grant(milliseconds, leases)?
            }
            Question::Revoke(id) => {
                self.end(*id, leases)?;
                Answer::Done
            }
            Question::Compact => {
                let now = number(&self.numbers, REVISION)?;
                self.forget(|revision, _, _| revision <= now)?;
                Answer::Done
            }
        }))
    }

    fn transact(&mut self, transaction: &Transaction) -> Result<std::result::Result<Answer, StoreError>> {
        for lease in transaction.leases() {
            if self.leases.get(lease.0)?.is_none() {
                return Ok(Err(StoreError::LeaseEnded));
            }
        }
        for condition in &transaction.conditions {
            let entry = self.entries.get(condition.key.as_str())?;
            let entry = entry.map(|stored| entry_of(condition.key.clone(), stored.value()));
            if !condition.is_met_by(entry.as_ref()) {
                let read = read(&self.numbers, &self.entries, &transaction.otherwise_read)?;
                return Ok(Ok(Answer::Transacted(Outcome::Refused(read))));
            }
        }
        self.write(&transaction.operations)?;
        let revision = Revision(number(&self.numbers, REVISION)?);
        Ok(Ok(Answer::Transacted(Outcome::Done(revision))))
    }

    /// Changes, with one more revision if that is anything.
    fn write(&mut self, operations: &[Operation]) -> Result<()> {
        let next = number(&self.numbers, REVISION)? + 1;
        let mut place = 0;
        for operation in operations {
            match operation {
                Operation::Put(put) => self.put(next, &mut place, put)?,
                Operation::Delete(selection) => {
                    let mut keys = Vec::new();
                    selected(&self.entries, selection, |key, _| keys.push(key.to_owned()))?;
                    for key in keys {
                        self.delete(next, &mut place, &key)?;
                    }
                }
            }
        }
        self.commit(next, place)
    }

    fn put(&mut self, revision: u64, place: &mut u32, put: &Put) -> Result<()> {
        let key = put.key.as_str();
        let lease = put.lease.map_or(0, |lease| lease.0);
        let before = self.entries.get(key)?.map(|stored| {
            let (created, _, lease, _) = stored.value();
            (created, lease)
        });
        let (created, leased) = before.unwrap_or((revision, 0));
        if leased != lease {
            self.unlease(leased, key)?;
            if lease != 0 {
                self.leased.insert((lease, key), ())?;
            }
        }
        self.entries
            .insert(key, (created, revision, lease, &*put.value))?;
        self.remember(revision, place, (key, true, created, lease, &*put.value))
    }

    fn delete(&mut self, revision: u64, place: &mut u32, key: &str) -> Result<()> {
        let leased = self.entries.remove(key)?.map_or(0, |stored| stored.value().2);
        self.unlease(leased, key)?;
        self.remember(revision, place, (key, false, 0, 0, b""))
    }

    fn unlease(&mut self, lease: i64, key: &str) -> Result<()> {
        if lease != 0 {
            self.leased.remove((lease, key))?;
        }
        Ok(())
    }

    fn remember(&mut self, revision: u64, place: &mut u32, change: Remembered<'_>) -> Result<()> {
        self.history.insert((revision, *place), change)?;
        *place += 1;
        let bytes = number(&self.numbers, REMEMBERED)? + size(change);
        self.numbers.insert(REMEMBERED, bytes)?;
        Ok(())
    }

    fn commit(&mut self, revision: u64, changes: u32) -> Result<()> {
        if changes > 0 {
            self.is_changed = true;
            self.numbers.insert(REVISION, revision)?;
            // The last one stays, however large it is.
            self.forget(|old, count, bytes| old < revision && (count > MOST_CHANGES || bytes > MOST_BYTES))?;
        }
        Ok(())
    }

    /// Forgets the oldest revision as long as that is wanted, given its number and how many changes and bytes are remembered.
    fn forget(&mut self, is_wanted: impl Fn(u64, u64, u64) -> bool) -> Result<()> {
        loop {
            let Some(oldest) = self.history.first()?.map(|(at, _)| at.value().0) else {
                return Ok(());
            };
            let mut bytes = number(&self.numbers, REMEMBERED)?;
            if !is_wanted(oldest, self.history.len()?, bytes) {
                return Ok(());
            }
            let removed = self
                .history
                .extract_from_if((oldest, 0)..=(oldest, u32::MAX), |_, _| true)?;
            for change in removed {
                bytes = bytes.saturating_sub(size(change?.1.value()));
            }
            self.is_changed = true;
            self.numbers.insert(REMEMBERED, bytes)?;
            self.numbers.insert(FORGOTTEN, oldest)?;
        }
    }

    fn grant(&mut self, milliseconds: u64, leases: &Leases) -> Result<Answer> {
        let mut id = number(&self.numbers, LAST_LEASE)?;
        let (granted, grip) = loop {
            id += 1;
            let granted = LeaseId(i64::try_from(id).unwrap_or(i64::MAX));
            // Somebody may hold one of a store that was here before.
            if let Some(grip) = leases.hold(granted)? {
                break (granted, grip);
            }
        };
        self.numbers.insert(LAST_LEASE, id)?;
        self.leases.insert(granted.0, (milliseconds, NO_DEADLINE))?;
        self.is_changed = true;
        Ok(Answer::Granted(granted, grip))
    }

    /// Ends a lease and deletes what goes with it.
    fn end(&mut self, id: LeaseId, leases: &Leases) -> Result<()> {
        if self.leases.remove(id.0)?.is_none() {
            return Ok(());
        }
        self.is_changed = true;
        let mut keys = Vec::new();
        for row in self.leased.range((id.0, "")..(id.0.saturating_add(1), ""))? {
            keys.push(row?.0.value().1.to_owned());
        }
        let next = number(&self.numbers, REVISION)? + 1;
        let mut place = 0;
        for key in keys {
            self.delete(next, &mut place, &key)?;
        }
        self.commit(next, place)?;
        leases.ended(id);
        Ok(())
    }

    /// Notes which leases nobody holds any more, and ends those that have run out.
    pub(super) fn look_at(&mut self, leases: &Leases, clock: &Clock) -> Result<Look> {
        let mut look = Look::default();
        let mut all = Vec::new();
        for row in self.leases.iter()? {
            let (id, lease) = row?;
            all.push((LeaseId(id.value()), lease.value()));
        }
        for (id, (milliseconds, deadline)) in all {
            match leases.state(id, deadline, clock) {
                Held::Over => self.end(id, leases)?,
                Held::ByNobody => {
                    self.leases
                        .insert(id.0, (milliseconds, clock.deadline(milliseconds)))?;
                    self.is_changed = true;
                    look.consider(Held::Until(milliseconds));
                }
                held => look.consider(held),
            }
        }
        leases.lose_but(|id| Ok(self.leases.get(id.0)?.is_some()))?;
        Ok(look)
    }
}

fn size((key, _, _, _, value): Remembered<'_>) -> u64 {
    (key.len() + value.len()) as u64
}

fn number(numbers: &impl ReadableTable<&'static str, u64>, name: &str) -> Result<u64> {
    Ok(numbers.get(name)?.map_or(0, |number| number.value()))
}

fn entry_of(key: Key, (created, modified, lease, value): Stored<'_>) -> Entry {
    Entry {
        key,
        value: value.into(),
        created: Revision(created),
        modified: Revision(modified),
        lease: (lease != 0).then_some(LeaseId(lease)),
    }
}

fn read(
    numbers: &impl ReadableTable<&'static str, u64>,
    entries: &impl ReadableTable<&'static str, Stored<'static>>,
    selections: &[Selection],
) -> Result<Snapshot> {
    let mut found = Vec::with_capacity(selections.len());
    for selection in selections {
        let mut these = Vec::new();
        selected(entries, selection, |key, stored| {
            these.extend(key_of(key).map(|key| entry_of(key, stored)));
        })?;
        found.push(these);
    }
    Ok(Snapshot {
        revision: Revision(number(numbers, REVISION)?),
        entries: found,
    })
}

/// A key of the file, where none is empty.
fn key_of(text: &str) -> Option<Key> {
    Key::new(Arc::<str>::from(text)).ok()
}

fn selected(
    entries: &impl ReadableTable<&'static str, Stored<'static>>,
    selection: &Selection,
    mut take: impl FnMut(&str, Stored<'_>),
) -> Result<()> {
    match selection {
        Selection::Key(key) => {
            if let Some(stored) = entries.get(key.as_str())? {
                take(key.as_str(), stored.value());
            }
        }
        Selection::Prefix(prefix) => {
            for row in entries.range::<&str>(&**prefix..)? {
                let (key, stored) = row?;
                if !key.value().starts_with(&**prefix) {
                    break;
                }
                take(key.value(), stored.value());
            }
        }
    }
    Ok(())
}

fn news(
    numbers: &impl ReadableTable<&'static str, u64>,
    history: &impl ReadableTable<(u64, u32), Remembered<'static>>,
    selection: &Selection,
    after: Revision,
) -> Result<News> {
    let made = number(numbers, MADE)?;
    let now = number(numbers, REVISION)?;
    let forgotten = number(numbers, FORGOTTEN)?;
    if after.0 < forgotten || after.0 > now {
        return Ok(News {
            made,
            until: Revision(if after.0 > now { now } else { forgotten }),
            batches: None,
            is_cut: false,
        });
    }
    let mut batches: Vec<Batch> = Vec::new();
    let (mut until, mut bytes, mut is_cut) = (after.0, 0, false);
    for row in history.range((after.0 + 1, 0)..)? {
        let (at, change) = row?;
        let ((revision, _), change) = (at.value(), change.value());
        // Whole revisions only.
        if revision != until && bytes > NEWS_BYTES {
            is_cut = true;
            break;
        }
        until = revision;
        if !selection.holds(change.0) {
            continue;
        }
        bytes += change.0.len() + change.4.len();
        let Some(change) = change_of(revision, change) else {
            continue;
        };
        match batches.last_mut() {
            Some(batch) if batch.revision.0 == revision => batch.changes.push(change),
            _ => batches.push(Batch {
                revision: Revision(revision),
                changes: vec![change],
            }),
        }
    }
    Ok(News {
        made,
        until: Revision(if is_cut { until } else { now }),
        batches: Some(batches),
        is_cut,
    })
}

fn change_of(modified: u64, (key, is_set, created, lease, value): Remembered<'_>) -> Option<Change> {
    let key = key_of(key)?;
    Some(match is_set {
        true => Change::Put(entry_of(key, (created, modified, lease, value))),
        false => Change::Deleted(key),
    })
}
