//! What variables and attributes hold while a model is executed.
//!
//! The model language has values that nothing else knows: instances, which are equal only to themselves, and unknowns that are told apart by
//! their creation. Everything else is small and shared. A datum becomes a [`setpoint_value::Value`] where it leaves for a function or the
//! desired graph.

use std::sync::Arc;

/// An instance: its number in the order of creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceId(pub u32);

/// An unknown: the number of its creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnknownId(pub u32);

/// A value of the model language.
#[derive(Debug, Clone)]
pub enum Datum {
    /// `null`.
    Null,
    /// `true`, `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a point.
    Float(f64),
    /// A text.
    Text(Arc<str>),
    /// A list. Elements of any sort, instances included.
    List(Arc<[Datum]>),
    /// A dict.
    Dict(Arc<Dict>),
    /// An instance.
    Instance(InstanceId),
    /// Not known yet.
    Unknown(UnknownId),
    /// Only known on the machine, when a resource is applied.
    Deferred(Arc<Deferred>),
    /// A text, number, list or dict with marks: as [`setpoint_value::Value`] holds it. Never without a mark at the outside.
    Marked(Arc<Marked>),
}

/// A dict: unchangeable, in the order in which it was written.
#[derive(Debug, Clone, Default)]
pub struct Dict {
    entries: indexmap::IndexMap<Arc<str>, Datum, rustc_hash::FxBuildHasher>,
}

impl Dict {
    /// The value at a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Datum> {
        self.entries.get(key)
    }

    /// Keys and values in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Arc<str>, &Datum)> {
        self.entries.iter()
    }

    /// How many keys there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl FromIterator<(Arc<str>, Datum)> for Dict {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, Datum)>>(entries: I) -> Dict {
        Dict {
            entries: entries.into_iter().collect(),
        }
    }
}

/// A datum with marks, `sensitive` for example.
#[derive(Debug, Clone)]
pub struct Marked {
    /// The datum without them.
    pub datum: Datum,
    /// The marks.
    pub marks: setpoint_value::Marks,
}

/// A typed placeholder that is resolved on the machine each time a resource is applied.
#[derive(Debug, Clone)]
pub struct Deferred {
    /// Where it comes from.
    pub source: DeferredSource,
    /// The type of what it will be.
    pub ty: crate::hir::SignatureType,
}

/// Where the value of a deferred reference comes from.
#[derive(Debug, Clone)]
pub enum DeferredSource {
    /// A number that is known, as a reference.
    Int(Datum),
    /// An environment variable of the machine.
    Environment(Datum),
    /// A fact of a resource.
    Fact {
        /// The resource.
        resource: InstanceId,
        /// The name of the fact.
        fact: Arc<str>,
    },
    /// What another resource sends.
    Send {
        /// The resource.
        resource: InstanceId,
        /// Which of what it sends.
        key: Arc<str>,
    },
}
