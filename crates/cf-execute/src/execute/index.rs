//! Indexes: which instance has which key, and which lookups wait for an instance with a key.
//!
//! An index keeps hashes of keys only. The values of a key are in the cells of the instance, which are set before the instance is in an index
//! and do not change.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};
use setpoint_cf_functions::equality::write_key;
use setpoint_cf_names::datum::{Datum, InstanceId};
use setpoint_cf_names::ids::IndexId;
use smallvec::SmallVec;

use super::machine::Machine;
use super::units::UnitId;

/// All indexes of a model.
#[derive(Debug)]
pub(super) struct Indexes {
    /// By index, the first instance of each hash.
    first: Vec<FxHashMap<u64, InstanceId>>,
    /// Further instances of the same hash.
    further: FxHashMap<(IndexId, u64), Vec<InstanceId>>,
    /// Lookups that found nothing.
    waiting: FxHashMap<(IndexId, u64), SmallVec<[UnitId; 1]>>,
}

impl Indexes {
    pub(super) fn new(count: usize) -> Indexes {
        Indexes {
            first: (0..count).map(|_| FxHashMap::default()).collect(),
            further: FxHashMap::default(),
            waiting: FxHashMap::default(),
        }
    }

    /// A lookup waits for an instance.
    pub(super) fn wait(&mut self, index: IndexId, hash: u64, unit: UnitId) {
        self.waiting.entry((index, hash)).or_default().push(unit);
    }

    /// Lookups that wait for no instance any more.
    pub(super) fn all_waiting(&self) -> impl Iterator<Item = UnitId> + '_ {
        self.waiting.values().flatten().copied()
    }
}

/// The hash of a key.
pub(super) fn hash_key(values: &[Datum]) -> u64 {
    let mut hasher = FxHasher::default();
    for value in values {
        match value.unmarked() {
            Datum::Null => 0_u8.hash(&mut hasher),
            Datum::Bool(bool) => (1_u8, bool).hash(&mut hasher),
            Datum::Int(int) => (2_u8, int).hash(&mut hasher),
            Datum::Text(text) => (3_u8, text).hash(&mut hasher),
            Datum::Instance(id) => (4_u8, id).hash(&mut hasher),
            Datum::Unknown(id) => (5_u8, id).hash(&mut hasher),
            other => {
                let mut key = String::new();
                write_key(other, &mut key);
                (6_u8, key).hash(&mut hasher);
            }
        }
    }
    hasher.finish()
}

/// Whether two values are one in a key: never if they are of different types.
fn is_same_key(left: &Datum, right: &Datum) -> bool {
    match (left.unmarked(), right.unmarked()) {
        (Datum::Null, Datum::Null) => true,
        (Datum::Bool(left), Datum::Bool(right)) => left == right,
        (Datum::Int(left), Datum::Int(right)) => left == right,
        (Datum::Text(left), Datum::Text(right)) => left == right,
        (Datum::Instance(left), Datum::Instance(right)) => left == right,
        (Datum::Unknown(left), Datum::Unknown(right)) => left == right,
        (left, right) => {
            let (mut one, mut other) = (String::new(), String::new());
            write_key(left, &mut one);
            write_key(right, &mut other);
            one == other
        }
    }
}

impl Machine<'_> {
    /// The instance that has a key in an index.
    pub(super) fn find_in_index(&self, index: IndexId, hash: u64, values: &[Datum]) -> Option<InstanceId> {
        let first = *self.indexes.first[index.index()].get(&hash)?;
        if self.has_key(first, index, values) {
            return Some(first);
        }
        let further = self.indexes.further.get(&(index, hash))?;
        further
            .iter()
            .copied()
            .find(|instance| self.has_key(*instance, index, values))
    }

    fn has_key(&self, instance: InstanceId, index: IndexId, values: &[Datum]) -> bool {
        let data = &self.instances[instance.0 as usize];
        let plan = &self.entities.plans[data.entity.index()];
        let Some((_, slots)) = plan.indexes.iter().find(|(id, _)| *id == index) else {
            return false;
        };
        let mut pairs = slots.iter().zip(values);
        pairs.all(|(slot, value)| is_same_key(&self.cells.get(data.first.at(*slot)).value, value))
    }

    /// An instance has a key from now on; lookups that waited for one with this hash look again.
    pub(super) fn enter_in_index(&mut self, index: IndexId, hash: u64, instance: InstanceId) {
        match self.indexes.first[index.index()].entry(hash) {
            std::collections::hash_map::Entry::Vacant(vacant) => {
                vacant.insert(instance);
            }
            std::collections::hash_map::Entry::Occupied(_) => self
                .indexes
                .further
                .entry((index, hash))
                .or_default()
                .push(instance),
        }
        if self.indexes.waiting.is_empty() {
            return;
        }
        for unit in self.indexes.waiting.remove(&(index, hash)).unwrap_or_default() {
            self.units.release(unit);
        }
    }
}
