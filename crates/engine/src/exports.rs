//! What this host exports: resources that others may collect, as records in a store that hosts share.
//!
//! A record belongs to a resource and to a host that it is for. It is written as part of a run, when it differs from what this process
//! wrote last, and taken back after a swap whose graph no longer exports it; what earlier processes left is looked at after the first
//! graph. What a resource under `noop` exports stays as it is. At the end of the process everything stays: a host that is being
//! restarted still offers what it offers.
//!
//! [`Exports`] knows what is to be written and what is; it is pure, and whoever has the store asks it what to do next.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use setpoint_graph::{DesiredResource, ResourceId};
use sha2::{Digest, Sha256};

use crate::Failure;

/// The store that hosts share, as far as it holds what this one exports.
#[async_trait::async_trait]
pub trait ExportStore: Send + Sync {
    /// What there is of this host, from whichever process.
    ///
    /// # Errors
    /// When the store cannot be asked. It is asked again later.
    async fn exported(&self) -> Result<Vec<ExportKey>, Failure>;

    /// Writes records and takes records back; in one transaction where the store has such. One answer for each change, in their order.
    /// It is called again when it has answered, so that changes never overtake each other. A record that is as it shall be need not be written.
    async fn change(&self, changes: Vec<ExportChange>) -> Vec<Result<(), Failure>>;

    /// Whether it keeps what is sensitive so that only those can read it whom it is for. What does not is not given any.
    fn keeps_secrets(&self) -> bool {
        false
    }

    /// How many changes it takes at a time: what etcd takes in one transaction, if nothing else is said.
    fn at_a_time(&self) -> usize {
        128
    }
}

/// Which record: of which resource, for whom.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExportKey {
    /// The exported resource.
    pub resource: ResourceId,
    /// The host that may collect it; `*` for all.
    pub to: Arc<str>,
}

impl ExportKey {
    /// The records of a resource: one for each host that it is exported to, hosts that are named twice once.
    pub fn of(resource: &DesiredResource) -> impl Iterator<Item = ExportKey> {
        let hosts = &resource.meta.export;
        let first = |place: usize, host: &String| !hosts[..place].contains(host);
        let hosts = hosts
            .iter()
            .enumerate()
            .filter(move |(place, host)| first(*place, host));
        hosts.map(|(_, host)| ExportKey {
            resource: resource.id.clone(),
            to: host.as_str().into(),
        })
    }
}

impl fmt::Display for ExportKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.to {
            "*" => write!(f, "{} for all hosts", self.resource),
            host => write!(f, "{} for {host}", self.resource),
        }
    }
}

/// A record that is to be written or taken back.
#[derive(Clone, PartialEq, Eq)]
pub struct ExportChange {
    /// Which one.
    pub key: ExportKey,
    /// What is to be in it; none takes it back.
    pub data: Option<Arc<str>>,
}

/// Its data may be secret, and is not shown.
impl fmt::Debug for ExportChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.data.is_some() { "write" } else { "take back" };
        write!(f, "{what} {}", self.key)
    }
}

/// What becomes of something that a run wants to export.
#[derive(Debug, PartialEq, Eq)]
pub enum Offered {
    /// The record has it already.
    Same,
    /// The running graph no longer exports it.
    Unwanted,
    /// It is to be written, and whoever waits hears of it.
    Waits,
}

/// What is exported, and what is still to be done for it. `W` is whoever waits for a record to be written.
#[derive(Debug)]
pub struct Exports<W> {
    records: FxHashMap<ExportKey, Record<W>>,
    /// What is to be done, in the order in which it came, without repeats.
    pending: BTreeMap<u64, ExportKey>,
    pendings: u64,
    /// What the store is doing.
    under_way: Vec<ExportChange>,
}

#[derive(Debug)]
struct Record<W> {
    /// How many resources of the running graph export it; hidden ones may share an identity.
    wanted: usize,
    stored: Stored,
    /// What shall be in the store, where that is not known to be there.
    next: Option<Next<W>>,
    /// Who waits for the change that is under way.
    waiting: Vec<W>,
}

#[derive(Debug)]
struct Next<W> {
    place: u64,
    data: Option<Arc<str>>,
    waiting: Vec<W>,
}

/// What a record has, as far as this process knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stored {
    Nothing,
    /// What another process wrote, or what came of a change that failed.
    Something,
    Data([u8; 32]),
}

impl<W> Default for Exports<W> {
    fn default() -> Exports<W> {
        Exports {
            records: FxHashMap::default(),
            pending: BTreeMap::new(),
            pendings: 0,
            under_way: Vec::new(),
        }
    }
}

impl<W> Default for Record<W> {
    fn default() -> Record<W> {
        Record {
            wanted: 0,
            stored: Stored::Nothing,
            next: None,
            waiting: Vec::new(),
        }
    }
}

impl<W> Exports<W> {
    /// The running graph has come to export these, and those no more, once for each resource that does: what nobody exports any more is
    /// taken back. Answers who waited for something to be written that is no longer wanted of anybody.
    pub fn retarget(&mut self, wanted: Vec<ExportKey>, unwanted: Vec<ExportKey>) -> Vec<W> {
        for key in wanted {
            let record = self.records.entry(key).or_default();
            record.wanted += 1;
            // It was to be taken back: now it stays until the run of whoever exports it says what shall be in it.
            if let Some(next) = record.next.take_if(|next| next.data.is_none()) {
                self.pending.remove(&next.place);
            }
        }
        let mut released = Vec::new();
        for key in unwanted {
            if let Some(record) = self.records.get_mut(&key) {
                record.wanted = record.wanted.saturating_sub(1);
                if record.wanted == 0 {
                    released.extend(self.take_back(&key));
                }
            }
        }
        released
    }

    /// Earlier processes left these: what is not wanted is taken back.
    pub fn found(&mut self, left: impl IntoIterator<Item = ExportKey>) {
        for key in left {
            let record = self.records.entry(key.clone()).or_default();
            if record.stored == Stored::Nothing {
                record.stored = Stored::Something;
            }
            if record.wanted == 0 {
                self.take_back(&key);
            }
        }
    }

    /// A run exports this. `waiting` hears of it if it is to be written.
    pub fn offer(&mut self, key: &ExportKey, data: &str, waiting: W) -> Offered {
        let Some(record) = self.records.get_mut(key).filter(|record| record.wanted > 0) else {
            return Offered::Unwanted;
        };
        let is_under_way = self.under_way.iter().any(|change| change.key == *key);
        if record.next.is_none() && !is_under_way && record.stored == Stored::of(data) {
            return Offered::Same;
        }
        let next = record.next.get_or_insert_with(|| {
            self.pendings += 1;
            self.pending.insert(self.pendings, key.clone());
            Next {
                place: self.pendings,
                data: None,
                waiting: Vec::new(),
            }
        });
        next.data = Some(data.into());
        next.waiting.push(waiting);
        Offered::Waits
    }

    /// What is to be done next, at most so many; nothing while the store is at work.
    pub fn next(&mut self, most: usize) -> Vec<ExportChange> {
        if !self.under_way.is_empty() {
            return Vec::new();
        }
        while self.under_way.len() < most
            && let Some((_, key)) = self.pending.pop_first()
        {
            let record = self.records.get_mut(&key);
            if let Some((record, next)) = record.and_then(|record| {
                let next = record.next.take()?;
                Some((record, next))
            }) {
                record.waiting = next.waiting;
                let data = next.data;
                self.under_way.push(ExportChange { key, data });
            }
        }
        self.under_way.clone()
    }

    /// What came of it, in the same order. Answers who waited; what could not be taken back is to be tried again.
    pub fn done(&mut self, results: Vec<Result<(), Failure>>) -> Vec<(W, Result<(), Failure>)> {
        let mut answers = Vec::new();
        let missing = || Err(Failure::new("export").because("the store gave no answer"));
        let results = results.into_iter().chain(std::iter::repeat_with(missing));
        for (change, result) in std::mem::take(&mut self.under_way).into_iter().zip(results) {
            let Some(record) = self.records.get_mut(&change.key) else {
                continue;
            };
            record.stored = match (&result, &change.data) {
                (Ok(()), Some(data)) => Stored::of(data),
                (Ok(()), None) => Stored::Nothing,
                (Err(_), _) => Stored::Something,
            };
            let waiting = std::mem::take(&mut record.waiting);
            answers.extend(waiting.into_iter().map(|waiting| (waiting, result.clone())));
            if record.wanted == 0 {
                self.take_back(&change.key);
            }
        }
        answers
    }

    /// Everybody who waits, for the store gives no answer. What is to be done stays to be done.
    pub fn give_up(&mut self) -> Vec<W> {
        let mut released = Vec::new();
        for change in &self.under_way {
            if let Some(record) = self.records.get_mut(&change.key) {
                released.append(&mut record.waiting);
            }
        }
        for key in self.pending.values() {
            let next = self.records.get_mut(key).and_then(|record| record.next.as_mut());
            if let Some(next) = next {
                released.append(&mut next.waiting);
            }
        }
        released
    }

    /// Whether there is something to be done, or under way.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        !self.pending.is_empty() || !self.under_way.is_empty()
    }

    /// Sees to it that a record that nobody wants leaves the store, and is forgotten when it has. Answers who waited for it to be written.
    fn take_back(&mut self, key: &ExportKey) -> Vec<W> {
        let Some(record) = self.records.get_mut(key) else {
            return Vec::new();
        };
        let mut released = Vec::new();
        if let Some(next) = record.next.take_if(|next| next.data.is_some()) {
            self.pending.remove(&next.place);
            released = next.waiting;
        }
        let is_under_way = self.under_way.iter().any(|change| change.key == *key);
        if record.stored != Stored::Nothing && record.next.is_none() {
            self.pendings += 1;
            self.pending.insert(self.pendings, key.clone());
            record.next = Some(Next {
                place: self.pendings,
                data: None,
                waiting: Vec::new(),
            });
        } else if record.stored == Stored::Nothing && !is_under_way {
            self.records.remove(key);
        }
        released
    }
}

impl Stored {
    fn of(data: &str) -> Stored {
        Stored::Data(Sha256::digest(data).into())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn key(name: &str) -> ExportKey {
        ExportKey {
            resource: ResourceId::new("file", name),
            to: "*".into(),
        }
    }

    fn write(name: &str, data: &str) -> ExportChange {
        ExportChange {
            key: key(name),
            data: Some(data.into()),
        }
    }

    fn remove(name: &str) -> ExportChange {
        ExportChange {
            key: key(name),
            data: None,
        }
    }

    fn failed() -> Result<(), Failure> {
        Err(Failure::new("write"))
    }

    #[test]
    fn what_is_the_same_is_written_once() {
        let mut exports = Exports::default();
        assert_eq!(exports.offer(&key("a"), "1", 0), Offered::Unwanted);
        exports.retarget(vec![key("a")], vec![]);
        assert_eq!(exports.offer(&key("a"), "1", 1), Offered::Waits);
        assert_eq!(exports.offer(&key("a"), "2", 2), Offered::Waits);
        assert_eq!(exports.next(8), [write("a", "2")]);
        assert_eq!(exports.next(8), [], "the store is at work");
        assert_eq!(exports.done(vec![Ok(())]).len(), 2);
        assert_eq!(exports.offer(&key("a"), "2", 3), Offered::Same);
        assert_eq!(exports.offer(&key("a"), "1", 4), Offered::Waits);
    }

    #[test]
    fn what_failed_may_be_there_and_is_written_again_or_taken_back() {
        let mut exports = Exports::default();
        exports.retarget(vec![key("a"), key("b")], vec![]);
        exports.offer(&key("a"), "1", 1);
        exports.offer(&key("b"), "1", 2);
        assert_eq!(exports.next(8).len(), 2);
        let answers = exports.done(vec![failed()]);
        assert_eq!(
            answers.iter().filter(|(_, result)| result.is_err()).count(),
            2,
            "no answer is a failure"
        );
        assert_eq!(exports.offer(&key("a"), "1", 3), Offered::Waits);
        exports.retarget(vec![], vec![key("b")]);
        assert_eq!(exports.next(8), [write("a", "1"), remove("b")]);
        exports.done(vec![Ok(()), failed()]);
        assert_eq!(exports.next(8), [remove("b")], "until it is gone");
        exports.done(vec![Ok(())]);
        assert!(!exports.is_busy());
    }

    #[test]
    fn what_is_wanted_again_stays() {
        let mut exports = Exports::default();
        exports.retarget(vec![key("a")], vec![]);
        exports.offer(&key("a"), "1", ());
        exports.next(8);
        exports.done(vec![Ok(())]);
        exports.retarget(vec![], vec![key("a")]);
        assert!(exports.is_busy());
        exports.retarget(vec![key("a")], vec![]);
        assert!(!exports.is_busy());
        assert_eq!(exports.offer(&key("a"), "1", ()), Offered::Same);
    }

    #[test]
    fn what_earlier_processes_left_goes_unless_it_is_wanted() {
        let mut exports = Exports::default();
        exports.retarget(vec![key("a")], vec![]);
        exports.found([key("a"), key("b")]);
        assert_eq!(exports.next(8), [remove("b")]);
        exports.done(vec![Ok(())]);
        // It may be another one than this process would write.
        assert_eq!(exports.offer(&key("a"), "1", ()), Offered::Waits);
    }

    #[test]
    fn of_two_that_export_one_record_both_must_go() {
        let mut exports = Exports::default();
        exports.retarget(vec![key("a"), key("a")], vec![]);
        exports.offer(&key("a"), "1", ());
        exports.next(8);
        exports.done(vec![Ok(())]);
        exports.retarget(vec![], vec![key("a")]);
        assert!(!exports.is_busy());
        exports.retarget(vec![], vec![key("a")]);
        assert_eq!(exports.next(8), [remove("a")]);
    }

    #[derive(Debug, Clone)]
    enum Move {
        Want(u8),
        Unwant(u8),
        Offer(u8, u8),
        Begin(u8),
        Done(u8),
        GiveUp,
        Restart,
    }

    fn moves() -> impl Strategy<Value = Vec<Move>> {
        let one = prop_oneof![
            3 => (0..4u8).prop_map(Move::Want),
            3 => (0..4u8).prop_map(Move::Unwant),
            6 => (0..4u8, 0..3u8).prop_map(|(key, data)| Move::Offer(key, data)),
            4 => (1..3u8).prop_map(Move::Begin),
            4 => any::<u8>().prop_map(Move::Done),
            1 => Just(Move::GiveUp),
            1 => Just(Move::Restart),
        ];
        prop::collection::vec(one, 0..60)
    }

    proptest! {
        /// Whatever happens in between: when the store has answered everything well, it holds what was offered last of what is wanted,
        /// and nothing else; and who waits is answered once.
        #[test]
        fn in_the_end_the_store_has_what_is_wanted(moves in moves()) {
            let mut exports: Exports<u64> = Exports::default();
            let mut store: BTreeMap<ExportKey, Arc<str>> = BTreeMap::new();
            let mut under_way: Vec<ExportChange> = Vec::new();
            let mut wanted: BTreeSet<ExportKey> = BTreeSet::new();
            let mut offered: BTreeMap<ExportKey, String> = BTreeMap::new();
            let mut waiting: BTreeSet<u64> = BTreeSet::new();
            let mut count = 0;
            let name = |number: u8| key(&number.to_string());
            let mut all = moves;
            // Then all goes well, and everybody who is wanted offers once more.
            for number in 0..4 {
                all.push(Move::Offer(number, 0));
            }
            for _ in 0..12 {
                all.extend([Move::Done(0), Move::Begin(2)]);
            }
            for step in all {
                match step {
                    Move::Want(number) => {
                        if wanted.insert(name(number)) {
                            exports.retarget(vec![name(number)], vec![]);
                        }
                    }
                    Move::Unwant(number) => {
                        if wanted.remove(&name(number)) {
                            offered.remove(&name(number));
                            for released in exports.retarget(vec![], vec![name(number)]) {
                                prop_assert!(waiting.remove(&released));
                            }
                        }
                    }
                    Move::Offer(number, data) => {
                        count += 1;
                        let data = data.to_string();
                        match exports.offer(&name(number), &data, count) {
                            Offered::Waits => drop(waiting.insert(count)),
                            Offered::Same => {
                                prop_assert_eq!(store.get(&name(number)).map(|data| &**data), Some(&*data));
                            }
                            Offered::Unwanted => prop_assert!(!wanted.contains(&name(number))),
                        }
                        if wanted.contains(&name(number)) {
                            offered.insert(name(number), data);
                        }
                    }
                    Move::Begin(most) => {
                        if under_way.is_empty() {
                            under_way = exports.next(usize::from(most));
                            prop_assert!(under_way.len() <= usize::from(most));
                        }
                    }
                    Move::Done(failing) => {
                        let mut results = Vec::new();
                        for (at, change) in std::mem::take(&mut under_way).into_iter().enumerate() {
                            let fails = failing & (1 << at) != 0;
                            // One that failed may have been made all the same.
                            if !fails || failing & (16 << at) != 0 {
                                match change.data {
                                    Some(data) => drop(store.insert(change.key, data)),
                                    None => drop(store.remove(&change.key)),
                                }
                            }
                            results.push(if fails { failed() } else { Ok(()) });
                        }
                        for (waited, _) in exports.done(results) {
                            prop_assert!(waiting.remove(&waited));
                        }
                    }
                    Move::GiveUp => {
                        let released: BTreeSet<u64> = exports.give_up().into_iter().collect();
                        prop_assert_eq!(&released, &waiting, "all who wait are told");
                        waiting.clear();
                    }
                    Move::Restart => {
                        exports = Exports::default();
                        (under_way, waiting, offered) = Default::default();
                        exports.retarget(wanted.iter().cloned().collect(), vec![]);
                        exports.found(store.keys().cloned().collect::<Vec<_>>());
                    }
                }
            }
            prop_assert!(!exports.is_busy());
            prop_assert!(waiting.is_empty());
            let expected: BTreeMap<ExportKey, Arc<str>> =
                offered.into_iter().map(|(key, data)| (key, data.into())).collect();
            prop_assert_eq!(store, expected);
        }
    }
}
