//! The locks of this crate.
//!
//! Everything here that is shared between threads takes its lock through this module, so that there is one place
//! to swap the primitives for those of a scheduler that explores interleavings.

pub(crate) use std::sync::Condvar;
use std::sync::{MutexGuard, PoisonError};

/// A mutex that ignores poisoning: a panic in one resource's code must not take the rest of the machine with it,
/// and no structure guarded here is left half-changed over a call into foreign code.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits on `condition`, giving up the lock meanwhile.
pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}
