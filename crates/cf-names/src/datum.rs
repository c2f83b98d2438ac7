//! What variables and attributes hold while a model is executed.
//!
//! The model language has values that nothing else knows: instances, which are equal only to themselves, and unknowns that are told apart by
//! their creation. Everything else is small and shared. A datum becomes a [`setpoint_value::Value`] where it leaves for a function or the
//! desired graph.

mod json;
mod value;

use std::sync::Arc;

use setpoint_cf_syntax::ast::Literal;
use setpoint_value::Marks;

use crate::ids::EntityId;
use crate::types::SignatureType;

pub use json::{from_json, to_json};
pub use value::{to_datum, to_value};

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

impl Datum {
    /// A text.
    pub fn text(text: impl Into<Arc<str>>) -> Datum {
        Datum::Text(text.into())
    }

    /// The datum itself, marks at the outside aside.
    #[must_use]
    pub fn unmarked(&self) -> &Datum {
        match self {
            Datum::Marked(marked) => &marked.datum,
            plain => plain,
        }
    }

    /// With marks added at the outside. What has no value of its own (null, instances, unknowns, deferred references) takes none.
    #[must_use]
    pub fn with_marks(self, marks: &Marks) -> Datum {
        if marks.is_empty() {
            return self;
        }
        match self {
            Datum::Null | Datum::Instance(_) | Datum::Unknown(_) | Datum::Deferred(_) => self,
            Datum::Marked(inner) => {
                let mut all = inner.marks.clone();
                all.union(marks);
                Datum::Marked(Arc::new(Marked {
                    datum: inner.datum.clone(),
                    marks: all,
                }))
            }
            datum => Datum::Marked(Arc::new(Marked {
                datum,
                marks: marks.clone(),
            })),
        }
    }

    /// Whether nobody could tell one from the other: types, the order of dicts and marks count too.
    #[must_use]
    pub fn is_identical(&self, other: &Datum) -> bool {
        match (self, other) {
            (Datum::Null, Datum::Null) => true,
            (Datum::Bool(one), Datum::Bool(other)) => one == other,
            (Datum::Int(one), Datum::Int(other)) => one == other,
            (Datum::Float(one), Datum::Float(other)) => one.to_bits() == other.to_bits(),
            (Datum::Text(one), Datum::Text(other)) => one == other,
            (Datum::List(one), Datum::List(other)) => {
                Arc::ptr_eq(one, other)
                    || one.len() == other.len()
                        && one
                            .iter()
                            .zip(other.iter())
                            .all(|(one, other)| one.is_identical(other))
            }
            (Datum::Dict(one), Datum::Dict(other)) => {
                let mut both = one.iter().zip(other.iter());
                Arc::ptr_eq(one, other)
                    || one.len() == other.len()
                        && both.all(|((key, one), (other_key, other))| {
                            key == other_key && one.is_identical(other)
                        })
            }
            (Datum::Instance(one), Datum::Instance(other)) => one == other,
            (Datum::Unknown(one), Datum::Unknown(other)) => one == other,
            (Datum::Deferred(one), Datum::Deferred(other)) => {
                Arc::ptr_eq(one, other) || one.ty == other.ty && one.source.is_identical(&other.source)
            }
            (Datum::Marked(one), Datum::Marked(other)) => {
                one.marks == other.marks && one.datum.is_identical(&other.datum)
            }
            _ => false,
        }
    }

    /// Whether there is a mark at the outside or on a part.
    #[must_use]
    pub fn has_marks(&self) -> bool {
        self.any_part(&mut |part| matches!(part, Datum::Marked(_)))
    }

    /// Takes in the marks of the datum and of all its parts.
    pub fn collect_marks(&self, marks: &mut Marks) {
        self.any_part(&mut |part| {
            if let Datum::Marked(marked) = part {
                marks.union(&marked.marks);
            }
            false
        });
    }

    /// Without marks anywhere; those that were there are taken in.
    #[must_use]
    pub fn unmark_deep(&self, marks: &mut Marks) -> Datum {
        if !self.has_marks() {
            return self.clone();
        }
        match self {
            Datum::Marked(marked) => {
                marks.union(&marked.marks);
                marked.datum.unmark_deep(marks)
            }
            Datum::List(items) => Datum::List(items.iter().map(|item| item.unmark_deep(marks)).collect()),
            Datum::Dict(dict) => {
                let entries = dict
                    .iter()
                    .map(|(key, value)| (key.clone(), value.unmark_deep(marks)));
                Datum::Dict(Arc::new(entries.collect()))
            }
            plain => plain.clone(),
        }
    }

    /// Whether something holds for the datum or for a part of it: elements, values of dicts, what marks are on.
    pub fn any_part(&self, holds: &mut dyn FnMut(&Datum) -> bool) -> bool {
        if holds(self) {
            return true;
        }
        match self {
            Datum::List(items) => items.iter().any(|item| item.any_part(holds)),
            Datum::Dict(dict) => dict.iter().any(|(_, value)| value.any_part(holds)),
            Datum::Marked(marked) => marked.datum.any_part(holds),
            _ => false,
        }
    }

    /// How deep it nests and how many parts it has, those that occur several times counted each time.
    #[must_use]
    pub fn extent(&self) -> Extent {
        match self {
            Datum::List(items) => Extent::around(items.iter()),
            Datum::Dict(dict) => dict.extent,
            Datum::Marked(marked) => marked.datum.extent(),
            _ => Extent { depth: 0, parts: 1 },
        }
    }
}

/// How large a datum is. A program can make one that nests or grows without end out of parts that are shared; who makes a list or dict
/// refuses what [`Extent::is_allowed`] does not allow, so that everybody else may walk over data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extent {
    /// Levels of lists and dicts.
    pub depth: u32,
    /// Data in it, itself included.
    pub parts: u64,
}

impl Extent {
    /// Lists and dicts nest no deeper than this.
    pub const DEEPEST: u32 = 200;

    /// That of a list or dict of these.
    fn around<'a>(parts: impl Iterator<Item = &'a Datum>) -> Extent {
        let mut whole = Extent { depth: 0, parts: 1 };
        for part in parts {
            let extent = part.extent();
            whole.depth = whole.depth.max(extent.depth);
            whole.parts = whole.parts.saturating_add(extent.parts);
        }
        Extent {
            depth: whole.depth.saturating_add(1),
            ..whole
        }
    }

    /// Whether such a datum may be.
    #[must_use]
    pub fn is_allowed(self) -> bool {
        self.depth <= Extent::DEEPEST && self.parts <= setpoint_value::MOST_PARTS as u64
    }
}

/// A dict: unchangeable, in the order in which it was written.
#[derive(Debug, Clone, Default)]
pub struct Dict {
    entries: indexmap::IndexMap<Arc<str>, Datum, rustc_hash::FxBuildHasher>,
    extent: Extent,
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
        let entries: indexmap::IndexMap<_, _, _> = entries.into_iter().collect();
        let extent = Extent::around(entries.values());
        Dict { entries, extent }
    }
}

/// A datum with marks, `sensitive` for example.
#[derive(Debug, Clone)]
pub struct Marked {
    /// The datum without them.
    pub datum: Datum,
    /// The marks.
    pub marks: Marks,
}

/// A typed placeholder that is resolved on the machine each time a resource is applied.
#[derive(Debug, Clone)]
pub struct Deferred {
    /// Where it comes from.
    pub source: DeferredSource,
    /// The type of what it will be.
    pub ty: SignatureType,
}

impl DeferredSource {
    fn is_identical(&self, other: &DeferredSource) -> bool {
        match (self, other) {
            (DeferredSource::Int(one), DeferredSource::Int(other))
            | (DeferredSource::Environment(one), DeferredSource::Environment(other)) => {
                one.is_identical(other)
            }
            (
                DeferredSource::Fact { resource, fact },
                DeferredSource::Fact {
                    resource: other_resource,
                    fact: other_fact,
                },
            ) => resource == other_resource && fact == other_fact,
            (
                DeferredSource::Send { resource, key },
                DeferredSource::Send {
                    resource: other_resource,
                    key: other_key,
                },
            ) => resource == other_resource && key == other_key,
            _ => false,
        }
    }
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

/// What type checks and texts of values want to know of instances.
pub trait Instances {
    /// The entity of an instance.
    fn entity(&self, instance: InstanceId) -> EntityId;

    /// Where an instance was constructed, as `file:line`, the first construction first.
    fn places(&self, instance: InstanceId) -> Vec<String>;
}

/// Hands out the numbers of unknowns. There is one of it in an execution.
#[derive(Debug, Default)]
pub struct Unknowns {
    next: u32,
}

impl Unknowns {
    /// An unknown that is equal to no other.
    pub fn create(&mut self) -> Datum {
        let id = UnknownId(self.next);
        // Unknowns are told apart as long as there are fewer than four milliards of them.
        self.next = self.next.wrapping_add(1);
        Datum::Unknown(id)
    }
}

impl From<&Literal> for Datum {
    fn from(literal: &Literal) -> Datum {
        match literal {
            Literal::Int(number) => Datum::Int(*number),
            Literal::Float(number) => Datum::Float(*number),
            Literal::Text(text) => Datum::Text(text.clone()),
            Literal::Bool(value) => Datum::Bool(*value),
            Literal::Null => Datum::Null,
        }
    }
}
