//! Things kept by number, and numbers that know what they are numbers of.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// The place of a `T` in its arena.
pub(super) struct Id<T>(u32, PhantomData<fn() -> T>);

impl<T> Id<T> {
    /// The first thing put into an arena.
    pub(super) const FIRST: Self = Self(0, PhantomData);

    /// As a plain number.
    pub(super) fn number(self) -> u64 {
        u64::from(self.0)
    }
}

impl<T> Clone for Id<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Id<T> {}

impl<T> PartialEq for Id<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T> Eq for Id<T> {}

impl<T> PartialOrd for Id<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Id<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

impl<T> Hash for Id<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<T> fmt::Debug for Id<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// A vector with holes. Numbers are used again.
#[derive(Debug)]
pub(super) struct Arena<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Arena<T> {
    pub(super) fn insert(&mut self, thing: T) -> Id<T> {
        if let Some(index) = self.free.pop() {
            self.slots[index as usize] = Some(thing);
            return Id(index, PhantomData);
        }
        let index =
            u32::try_from(self.slots.len()).expect("fewer than four thousand million things fit into memory");
        self.slots.push(Some(thing));
        Id(index, PhantomData)
    }

    pub(super) fn remove(&mut self, id: Id<T>) -> Option<T> {
        let removed = self.slots.get_mut(id.0 as usize)?.take()?;
        self.free.push(id.0);
        Some(removed)
    }

    pub(super) fn get(&self, id: Id<T>) -> Option<&T> {
        self.slots.get(id.0 as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, id: Id<T>) -> Option<&mut T> {
        self.slots.get_mut(id.0 as usize)?.as_mut()
    }

    pub(super) fn contains(&self, id: Id<T>) -> bool {
        self.get(id).is_some()
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = Id<T>> + use<'_, T> {
        (0u32..)
            .zip(&self.slots)
            .filter(|(_, slot)| slot.is_some())
            .map(|(index, _)| Id(index, PhantomData))
    }
}

impl<T> Index<Id<T>> for Arena<T> {
    type Output = T;

    fn index(&self, id: Id<T>) -> &T {
        self.get(id)
            .expect("whoever keeps a number keeps the thing alive")
    }
}

impl<T> IndexMut<Id<T>> for Arena<T> {
    fn index_mut(&mut self, id: Id<T>) -> &mut T {
        self.get_mut(id)
            .expect("whoever keeps a number keeps the thing alive")
    }
}
