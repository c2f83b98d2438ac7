//! Where something is inside a value: `.a[0].b`.

use std::fmt;
use std::sync::Arc;

use crate::Value;

/// One step into a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PathStep {
    /// A field of a struct.
    Field(Arc<str>),
    /// An element of a list or tuple.
    Index(usize),
    /// The value of a key of a map, or the element of a set that is this.
    Key(Value),
}

/// Steps from a value to a part of it; empty for the value itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Path(Vec<PathStep>);

impl Path {
    /// The steps, outermost first.
    #[must_use]
    pub fn steps(&self) -> &[PathStep] {
        &self.0
    }

    /// Whether it is the value itself.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Goes one step deeper.
    pub fn push(&mut self, step: PathStep) {
        self.0.push(step);
    }

    /// Goes back one step.
    pub fn pop(&mut self) -> Option<PathStep> {
        self.0.pop()
    }

    /// Puts a step before all others, for errors that learn their path on the way out.
    pub(crate) fn enter(&mut self, step: PathStep) {
        self.0.insert(0, step);
    }
}

impl FromIterator<PathStep> for Path {
    fn from_iter<T: IntoIterator<Item = PathStep>>(steps: T) -> Path {
        Path(steps.into_iter().collect())
    }
}

impl fmt::Display for PathStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathStep::Field(name) => write!(f, ".{name}"),
            PathStep::Index(index) => write!(f, "[{index}]"),
            PathStep::Key(key) => write!(f, "[{key}]"),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|step| write!(f, "{step}"))
    }
}
