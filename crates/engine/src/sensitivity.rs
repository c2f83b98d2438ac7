//! Which parameters of a resource are sensitive.

/// Which parameters are sensitive, and which ever were: what a kind remembers of these stays so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sensitivity {
    pub(crate) now: ParameterSet,
    pub(crate) ever: ParameterSet,
}

impl Sensitivity {
    pub(crate) fn insert(&mut self, index: usize) {
        self.now.insert(index);
        self.ever.insert(index);
    }
}

/// Some parameters of a kind, by their place in its schema. No kind has more than 63; from there on places are one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ParameterSet(u64);

impl ParameterSet {
    fn bit(index: usize) -> u64 {
        1 << index.min(63)
    }

    pub(crate) fn insert(&mut self, index: usize) {
        self.0 |= ParameterSet::bit(index);
    }

    pub(crate) fn remove(&mut self, index: usize) {
        // The shared last place is never cleared: better redacted once too often.
        if index < 63 {
            self.0 &= !ParameterSet::bit(index);
        }
    }

    pub(crate) fn contains(self, index: usize) -> bool {
        self.0 & ParameterSet::bit(index) != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}
