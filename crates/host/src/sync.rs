//! The locks of everything that shares state between threads.
//!
//! They do not know poisoning: a panic in one resource's code must not take the rest of the machine with it, and no
//! structure guarded by them is left half-changed over a call into foreign code. One place, too, to swap the primitives for
//! those of a scheduler that explores interleavings.

pub use std::sync::{Condvar, MutexGuard};
use std::sync::{PoisonError, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

/// A mutex that ignores poisoning.
#[derive(Debug, Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// Guards a value.
    pub const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    /// Waits until no other thread holds it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits on `condition`, giving up the lock meanwhile.
pub fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// Waits on `condition` for so long at most, giving up the lock meanwhile. Also says whether the time ran out.
pub fn wait_timeout<'a, T>(
    condition: &Condvar,
    guard: MutexGuard<'a, T>,
    limit: Duration,
) -> (MutexGuard<'a, T>, bool) {
    let waited = condition.wait_timeout(guard, limit);
    let (guard, result) = waited.unwrap_or_else(PoisonError::into_inner);
    (guard, result.timed_out())
}

/// A lock for many readers or one writer that ignores poisoning.
#[derive(Debug, Default)]
pub struct RwLock<T>(std::sync::RwLock<T>);

impl<T> RwLock<T> {
    /// Guards a value.
    pub const fn new(value: T) -> Self {
        Self(std::sync::RwLock::new(value))
    }

    /// Waits until no other thread writes.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other thread reads or writes.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
