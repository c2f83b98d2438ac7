//! Marks: tags that travel with values, `sensitive` first of all.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// A tag on a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mark {
    /// Must never be shown, logged or stored in the clear.
    Sensitive,
    /// The application's own.
    Named(Arc<str>),
}

/// A set of marks. Cheap to clone; the empty set costs nothing.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Marks(Option<Arc<BTreeSet<Mark>>>);

impl Marks {
    /// No marks.
    #[must_use]
    pub const fn none() -> Marks {
        Marks(None)
    }

    /// Only `sensitive`.
    #[must_use]
    pub fn sensitive() -> Marks {
        Marks::from_iter([Mark::Sensitive])
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether a mark is among them.
    #[must_use]
    pub fn contains(&self, mark: &Mark) -> bool {
        self.0.as_ref().is_some_and(|set| set.contains(mark))
    }

    /// The marks, sorted.
    pub fn iter(&self) -> impl Iterator<Item = &Mark> {
        self.0.iter().flat_map(|set| set.iter())
    }

    /// Takes in the marks of another set.
    pub fn union(&mut self, other: &Marks) {
        match (&mut self.0, &other.0) {
            (_, None) => {}
            (None, Some(set)) => self.0 = Some(set.clone()),
            (Some(mine), Some(theirs)) if Arc::ptr_eq(mine, theirs) => {}
            (Some(mine), Some(theirs)) => Arc::make_mut(mine).extend(theirs.iter().cloned()),
        }
    }

    /// The set without one mark.
    #[must_use]
    pub fn without(&self, mark: &Mark) -> Marks {
        self.iter().filter(|m| *m != mark).cloned().collect()
    }
}

impl FromIterator<Mark> for Marks {
    fn from_iter<T: IntoIterator<Item = Mark>>(iter: T) -> Marks {
        let set: BTreeSet<Mark> = iter.into_iter().collect();
        Marks((!set.is_empty()).then(|| Arc::new(set)))
    }
}

impl fmt::Debug for Marks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
