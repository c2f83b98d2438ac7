//! Telling our own renames from everybody else's.
//!
//! A replaced file comes back from the watches as a rename. It would be looked at once more, although nothing happened that
//! its resource does not know. So whoever renames says so beforehand, by the number in the temporary file's name; the hub
//! sees that name leave and the file's name arrive under one cookie, and leaves out this one report to this one writer.
//! Everybody else who watches the path is told.

use crate::sync::Mutex;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// More than can be under way at a time. Renames that no watch sees stay here, so at some point all are forgotten; what is
/// forgotten is reported, which costs one look too many.
const MOST: usize = 64 * 1024;

/// Renames that are about to be seen.
#[derive(Debug, Default)]
pub(crate) struct OwnRenames(Mutex<FxHashMap<u64, (u64, u64)>>);

impl OwnRenames {
    /// Who has announced the rename of the temporary file with this number. Answers once: a name that somebody else gives
    /// to a file of theirs afterwards is not ours.
    pub(crate) fn take(&self, number: u64) -> Option<(u64, u64)> {
        self.0.lock().remove(&number)
    }

    /// Forgets all: after events were lost nobody can tell which were seen.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}

/// Somebody who watches a path and replaces the file there.
#[derive(Debug, Clone)]
pub struct Writer {
    renames: Arc<OwnRenames>,
    /// The subscriber and the token of the watch.
    watch: (u64, u64),
}

impl Writer {
    pub(crate) fn new(renames: Arc<OwnRenames>, subscriber: u64, token: u64) -> Self {
        Self {
            renames,
            watch: (subscriber, token),
        }
    }

    pub(super) fn announce(&self, number: u64) {
        let mut renames = self.renames.0.lock();
        if renames.len() >= MOST {
            renames.clear();
        }
        renames.insert(number, self.watch);
    }

    pub(super) fn withdraw(&self, number: u64) {
        self.renames.take(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_announced_is_answered_once_and_only_the_newest_are_kept() {
        let renames = Arc::new(OwnRenames::default());
        let writer = Writer::new(Arc::clone(&renames), 3, 4);
        let count = MOST as u64;
        for number in 0..count {
            writer.announce(number);
        }
        assert_eq!(renames.0.lock().len(), 65_536, "as many as are no burden");
        assert_eq!(renames.take(0), Some((3, 4)));
        assert_eq!(renames.take(0), None);
        writer.withdraw(1);
        assert_eq!(renames.take(1), None);
        for number in [count, count + 1, count + 2] {
            writer.announce(number);
        }
        assert_eq!(renames.take(2), None, "one more than fits makes room");
        assert_eq!(renames.take(count + 2), Some((3, 4)));
        writer.announce(5);
        renames.clear();
        assert_eq!(renames.take(5), None);
    }
}
