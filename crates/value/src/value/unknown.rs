//! Unknown values: a type, and what is already certain about the value to come.

use crate::{Str, Type};

/// A value that will be known later.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Unknown {
    /// Its type; [`Type::Dynamic`] when that is not known either.
    pub ty: Type,
    /// What is certain about it.
    pub refinement: Refinement,
}

/// What an unknown value can be, narrowed down. The default says nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Refinement {
    /// It is not null.
    pub not_null: bool,
    /// A string that begins with these bytes.
    pub prefix: Option<Str>,
    /// A number not below this.
    pub lower: Option<Bound>,
    /// A number not above this.
    pub upper: Option<Bound>,
    /// A collection with at least so many elements.
    pub minimum_length: Option<usize>,
    /// A collection with at most so many elements.
    pub maximum_length: Option<usize>,
}

/// One end of a range of numbers.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    /// The number; an int bound is exact up to 2⁵³.
    pub value: f64,
    /// Whether the number itself is allowed.
    pub inclusive: bool,
}

impl PartialEq for Bound {
    fn eq(&self, other: &Bound) -> bool {
        self.value.to_bits() == other.value.to_bits() && self.inclusive == other.inclusive
    }
}

impl Eq for Bound {}

impl std::hash::Hash for Bound {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.value.to_bits().hash(state);
        self.inclusive.hash(state);
    }
}
