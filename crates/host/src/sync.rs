//! The locks of everything that shares state between threads.
//!
//! They do not know poisoning: a panic in one resource's code must not take the rest of the machine with it, and no
//! structure guarded by them is left half-changed over a call into foreign code. One place, too, to swap the primitives for
//! those of a scheduler that explores interleavings.

use std::sync::atomic::{AtomicUsize, Ordering};
pub use std::sync::{Condvar, MutexGuard};
use std::sync::{PoisonError, RwLockReadGuard, RwLockWriteGuard, TryLockError};
use std::time::Duration;

/// A mutex that ignores poisoning.
#[derive(Debug, Default)]
pub struct Mutex<T> {
    inner: std::sync::Mutex<T>,
    /// How many threads wait for it.
    waiting: AtomicUsize,
}

impl<T> Mutex<T> {
    /// Guards a value.
    pub const fn new(value: T) -> Self {
        Self {
            inner: std::sync::Mutex::new(value),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Waits until no other thread holds it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        if let Some(guard) = self.try_lock() {
            return guard;
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let guard = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        guard
    }

    /// Takes it if no other thread holds it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.inner.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Gives those who wait a moment to take it, for whoever has given it up and wants it again at once. The system's mutex
    /// is not fair: without this the others could wait for ever.
    pub fn let_others_in(&self) {
        for _ in 0..50 {
            if self.waiting.load(Ordering::Relaxed) == 0 {
                return;
            }
            std::thread::sleep(Duration::from_micros(20));
        }
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
