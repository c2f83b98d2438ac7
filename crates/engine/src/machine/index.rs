//! Which slots the resources of an identity live in.
//!
//! There is one entry a resource, so an entry is no more than the slot and a piece of the hash: the identity itself stands with the
//! resource in the slot.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use setpoint_graph::ResourceId;
use smallvec::SmallVec;

use super::vertex::Vertex;

/// Slots by identity: the normal one and hidden ones.
#[derive(Default)]
pub(super) struct Index(HashTable<Entry>);

#[derive(Clone, Copy)]
struct Entry {
    hash: u32,
    slot: u32,
}

impl Entry {
    /// The whole of what the table is given: its upper bits and its lower ones are used, and both are to differ.
    fn spread(&self) -> u64 {
        spread(self.hash)
    }
}

fn hash(id: &ResourceId) -> u32 {
    let hash = FxBuildHasher.hash_one(id);
    (hash ^ hash >> 32) as u32
}

fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

impl Index {
    /// Makes room for so many more.
    pub(super) fn reserve(&mut self, more: usize) {
        self.0.reserve(more, Entry::spread);
    }

    /// The resources of this identity live in one more slot.
    pub(super) fn insert(&mut self, id: &ResourceId, slot: u32) {
        let hash = hash(id);
        let entry = Entry { hash, slot };
        self.0.insert_unique(spread(hash), entry, Entry::spread);
    }

    /// They do no longer.
    pub(super) fn remove(&mut self, id: &ResourceId, slot: u32) {
        let found = self.0.find_entry(spread(hash(id)), |entry| entry.slot == slot);
        if let Ok(found) = found {
            found.remove();
        }
    }

    /// The slots in which resources of this identity live or are to live, oldest first.
    pub(super) fn get(&self, id: &ResourceId, vertices: &[Vertex]) -> SmallVec<[u32; 2]> {
        let hash = hash(id);
        let all = self.0.iter_hash(spread(hash)).filter(|entry| entry.hash == hash);
        let is_of = |slot: &u32| vertices[*slot as usize].identity() == Some(id);
        let mut slots: SmallVec<[u32; 2]> = all.map(|entry| entry.slot).filter(is_of).collect();
        slots.sort_unstable();
        slots
    }
}
