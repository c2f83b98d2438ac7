//! What a resource is for automatic edges: identities it has, identities it wants.
//!
//! Both are data, and opaque to the engine: a [`Sort`] says how identities of it are matched, and kinds define the sorts.
//! Identities of different sorts never match.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// A sort of identities, such as files by path. Defined once, as a `static`, by the kinds that use it.
#[derive(Debug)]
pub struct Sort {
    /// Tells it from others.
    pub name: &'static str,
    /// Whether one that is wanted (first) is met by one that a resource has (second); none: when their keys are equal, which
    /// is found without looking at all of them.
    pub is_met_by: Option<Match>,
    /// What only one resource should manage, if that is so.
    pub managed: Option<Managed>,
    /// The things that hold a thing of this sort, if some can: a removed directory takes along what is in it.
    pub holders: Option<Holders>,
}

/// The things that hold a thing, in any order.
pub type Holders = fn(&Identity) -> Vec<Identity>;

/// Whether the key that is wanted (first) is met by the one that a resource has (second).
pub type Match = fn(&[u8], &[u8]) -> bool;

/// Marks a sort that only one resource should manage. Several cause a warning, and an error if they decide different values.
#[derive(Debug, Clone, Copy)]
pub struct Managed {
    /// As users call it: `path`.
    pub noun: &'static str,
    /// All keys that mean the same thing as a key, itself included; the first one is shown.
    pub aliases: fn(&[u8]) -> Vec<Vec<u8>>,
}

impl Sort {
    /// Identities that match when their keys are equal.
    #[must_use]
    pub const fn exact(name: &'static str) -> Sort {
        Sort {
            name,
            is_met_by: None,
            managed: None,
            holders: None,
        }
    }

    /// Identities that match when this says so. Finding one costs a look at each of the sort.
    #[must_use]
    pub const fn partial(name: &'static str, is_met_by: Match) -> Sort {
        Sort {
            name,
            is_met_by: Some(is_met_by),
            managed: None,
            holders: None,
        }
    }

    /// Of which only one resource should manage each.
    #[must_use]
    pub const fn managed_by_one(mut self, managed: Managed) -> Sort {
        self.managed = Some(managed);
        self
    }

    /// With things that hold one of this sort, and take it along when they are removed.
    #[must_use]
    pub const fn held_by(mut self, holders: Holders) -> Sort {
        self.holders = Some(holders);
        self
    }

    /// The identity under a key.
    #[must_use]
    pub fn identity(&'static self, key: impl Into<Arc<[u8]>>) -> Identity {
        Identity {
            sort: self,
            key: Key::from(key.into()),
        }
    }
}

/// Something that a resource is, for automatic edges and for the view of the graph. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The sort, which says how the key is matched.
    pub sort: &'static Sort,
    /// Which one of the sort.
    pub key: Key,
}

impl Identity {
    /// The identity of the same sort whose key is the beginning of this one. It shares the bytes: a path and all directories
    /// above it are one allocation.
    ///
    /// # Panics
    /// When the key is shorter than that.
    #[must_use]
    pub fn beginning(&self, length: usize) -> Identity {
        assert!(
            length <= self.key.length,
            "a beginning is no longer than the whole"
        );
        Identity {
            sort: self.sort,
            key: Key {
                bytes: self.key.bytes.clone(),
                length,
            },
        }
    }
}

/// The bytes of a key, which may be the beginning of longer ones. Compared by bytes; cheap to clone.
#[derive(Clone)]
pub struct Key {
    bytes: Arc<[u8]>,
    length: usize,
}

impl Deref for Key {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl From<Arc<[u8]>> for Key {
    fn from(bytes: Arc<[u8]>) -> Key {
        let length = bytes.len();
        Key { bytes, length }
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        **self == **other
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Key) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        String::from_utf8_lossy(self).fmt(f)
    }
}

impl PartialEq for Identity {
    fn eq(&self, other: &Identity) -> bool {
        self.sort.name == other.sort.name && self.key == other.key
    }
}

impl Eq for Identity {}

impl Hash for Identity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.sort.name.hash(state);
        self.key.hash(state);
    }
}

/// Something that a resource decides. A program in which two resources want different things of one place is refused: they would undo
/// each other for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The place. A key may have two parts with a NUL between them: what it is in, and which part of that.
    pub place: Identity,
    /// The resource's wish for this place.
    pub stake: Stake,
}

impl Claim {
    /// Of a part of something.
    #[must_use]
    pub fn of_part(sort: &'static Sort, whole: &[u8], part: &[u8], stake: Stake) -> Claim {
        Claim {
            place: sort.identity([whole, b"\0", part].concat()),
            stake,
        }
    }
}

/// The wish of a resource for a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stake {
    /// To be the only one that decides it.
    Alone,
    /// That it has this value. Resources that want the same value agree.
    Value(Arc<[u8]>),
    /// To edit some of it and to leave the rest to others.
    Part,
    /// To write all of it. The place is an identity of the resource, too.
    Whole,
}

impl Stake {
    /// That the place has a value.
    #[must_use]
    pub fn value(value: impl Into<Arc<[u8]>>) -> Stake {
        Stake::Value(value.into())
    }

    /// Whether both get what they want.
    #[must_use]
    pub fn agrees(&self, other: &Stake) -> bool {
        match (self, other) {
            (Stake::Value(a), Stake::Value(b)) => a == b,
            (Stake::Part, Stake::Part) | (Stake::Whole, Stake::Whole) => true,
            _ => false,
        }
    }
}

/// What a resource wants edges with, in the order in which it is tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Which one comes first.
    pub order: WantedOrder,
    /// Whom it wants.
    pub identities: Vec<Identity>,
    /// How many of them.
    pub reach: WantedReach,
}

impl Wanted {
    /// The first resource that is found of each identity, before the one that wants it.
    #[must_use]
    pub fn first_of_each(identities: impl IntoIterator<Item = Identity>) -> Wanted {
        Wanted {
            order: WantedOrder::FoundFirst,
            identities: identities.into_iter().collect(),
            reach: WantedReach::Each,
        }
    }
}

/// What a resource is and wants, as far as only the machine can tell it: see [`crate::Resource::inquire`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Relations {
    /// What it is, beside [`crate::Resource::identities`].
    pub identities: Vec<Identity>,
    /// Whom it wants, after those of [`crate::Resource::wanted`].
    pub wanted: Vec<Wanted>,
}

/// Which of the two comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedOrder {
    /// The one that is found.
    FoundFirst,
    /// The one that wants.
    FoundAfter,
}

/// With how many of the wanted identities there is an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedReach {
    /// With the first resource that is found of each.
    Each,
    /// With all resources that are found of each. Only for identities that match when their keys are equal.
    All,
    /// With the first that is found.
    First,
}
