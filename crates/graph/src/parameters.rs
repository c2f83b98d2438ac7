//! The parameters of a resource.

use std::fmt;
use std::sync::Arc;

use setpoint_value::Value;

/// The parameters that a program sets, by name. Cheap to clone. What is not set is absent.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Parameters(Arc<[(&'static str, Value)]>);

impl Parameters {
    /// From names (of the kind's schema) and values, in any order; of two with one name the later holds.
    #[must_use]
    pub fn new(entries: impl IntoIterator<Item = (&'static str, Value)>) -> Parameters {
        let mut list: Vec<(&'static str, Value)> = Vec::new();
        for (name, value) in entries {
            match list.binary_search_by_key(&name, |(n, _)| n) {
                Ok(at) => list[at].1 = value,
                Err(at) => list.insert(at, (name, value)),
            }
        }
        Parameters(list.into())
    }

    /// The value of a parameter, if it is set.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0
            .binary_search_by_key(&name, |(n, _)| n)
            .ok()
            .map(|at| &self.0[at].1)
    }

    /// Names and values, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'static str, &Value)> {
        self.0.iter().map(|(name, value)| (*name, value))
    }

    /// How many are set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// These, with others set over them.
    #[must_use]
    pub fn overlaid(&self, over: impl IntoIterator<Item = (&'static str, Value)>) -> Parameters {
        Parameters::new(self.0.iter().cloned().chain(over))
    }
}

impl fmt::Debug for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
