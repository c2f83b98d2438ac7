//! Turns at files and other documents that several resources edit: from reading one until what was edited is written, so that no edit is lost
//! below another one of this process.

use std::collections::HashSet;
use std::sync::{Condvar, Mutex, PoisonError};

/// What is being edited.
static TAKEN: Mutex<Option<HashSet<Vec<u8>>>> = Mutex::new(None);

/// A turn is over.
static LEFT: Condvar = Condvar::new();

/// The right to edit something, until it is dropped.
pub(crate) struct Turn(Vec<u8>);

impl Turn {
    /// Waits until nobody else of this process edits what has this name.
    pub(crate) fn take(name: impl Into<Vec<u8>>) -> Turn {
        let name = name.into();
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        while !taken.get_or_insert_default().insert(name.clone()) {
            taken = LEFT.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        Turn(name)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(taken) = taken.as_mut() {
            taken.remove(&self.0);
        }
        LEFT.notify_all();
    }
}
