//! Who listens to what one thread hears, and the end of that thread when nobody does any more.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use setpoint_host::sync::{Mutex, MutexGuard};
use setpoint_value::{Timer, Wake};

/// Ends the thread that hears.
pub(super) type Stop = Box<dyn FnOnce() + Send>;

/// Everyone who listens, by topic. The thread that tells them runs while there is somebody.
pub(super) struct Listeners<T> {
    state: Mutex<State<T>>,
}

struct State<T> {
    by_number: BTreeMap<u64, (T, Wake)>,
    next: u64,
    /// None while no thread runs.
    stop: Option<Stop>,
}

impl<T: Eq + Send + 'static> Listeners<T> {
    /// Nobody listens yet.
    pub(super) fn new() -> Listeners<T> {
        Listeners {
            state: Mutex::new(State {
                by_number: BTreeMap::new(),
                next: 0,
                stop: None,
            }),
        }
    }

    /// Wakes whenever the topic is told of, until the answer is dropped. The first listener starts what hears.
    ///
    /// # Errors
    /// Those of `start`.
    pub(super) fn listen(
        self: &Arc<Self>,
        topic: T,
        wake: Wake,
        start: impl FnOnce() -> io::Result<Stop>,
    ) -> io::Result<Timer> {
        let mut state = self.lock();
        if state.stop.is_none() {
            state.stop = Some(start()?);
        }
        Ok(self.add(state, topic, wake))
    }

    /// The same where whoever tells needs no thread.
    pub(super) fn join(self: &Arc<Self>, topic: T, wake: Wake) -> Timer {
        self.add(self.lock(), topic, wake)
    }

    fn add(self: &Arc<Self>, mut state: MutexGuard<'_, State<T>>, topic: T, wake: Wake) -> Timer {
        let number = state.next;
        state.next += 1;
        state.by_number.insert(number, (topic, wake));
        Box::new(Listening {
            listeners: self.clone(),
            number,
        })
    }

    /// Wakes who listens to a topic.
    pub(super) fn tell(&self, topic: &T) {
        let wakes: Vec<Wake> = {
            let state = self.lock();
            let wanted = state.by_number.values().filter(|(other, _)| other == topic);
            wanted.map(|(_, wake)| wake.clone()).collect()
        };
        for wake in wakes {
            wake.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock()
    }
}

struct Listening<T: Eq + Send + 'static> {
    listeners: Arc<Listeners<T>>,
    number: u64,
}

impl<T: Eq + Send + 'static> Drop for Listening<T> {
    fn drop(&mut self) {
        let mut state = self.listeners.lock();
        let removed = state.by_number.remove(&self.number);
        let is_last = state.by_number.is_empty();
        let stop = state.stop.take_if(|_| is_last);
        drop(state);
        // Outside the lock: what is woken may own other listeners.
        drop(removed);
        if let Some(stop) = stop {
            stop();
        }
    }
}
