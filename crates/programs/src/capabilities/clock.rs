//! The machine's clock, and one thread that wakes whoever asked.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use setpoint_host::sync::{Condvar, Mutex, MutexGuard, wait, wait_timeout};
use setpoint_value::{Clock, Timer, Wake};

/// Nobody can use more than a thousand wakes a second, and what is missed coalesces.
const SHORTEST: Duration = Duration::from_millis(1);

/// The real clock.
pub(crate) struct RealClock {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// By when they are due; the number keeps those of one moment apart.
    due: BTreeMap<(Instant, u64), Alarm>,
    next: u64,
    stopping: bool,
}

struct Alarm {
    wake: Wake,
    period: Option<Duration>,
    running: Arc<()>,
}

impl RealClock {
    /// Starts the thread, which sleeps while nobody waits for anything.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(super) fn new() -> io::Result<RealClock> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let served = shared.clone();
        let thread = std::thread::Builder::new()
            .name("timers".to_owned())
            .spawn(move || served.serve())?;
        Ok(RealClock {
            shared,
            thread: Some(thread),
        })
    }

    fn set(&self, delay: Duration, period: Option<Duration>, wake: Wake) -> Timer {
        let running = Arc::new(());
        let mut state = self.shared.lock();
        let number = state.next;
        state.next += 1;
        // A moment that is too far away to be a moment never comes.
        if let Some(at) = Instant::now().checked_add(delay) {
            state.due.insert(
                (at, number),
                Alarm {
                    wake,
                    period,
                    running: running.clone(),
                },
            );
            drop(state);
            self.shared.changed.notify_one();
        }
        Box::new(Alive {
            shared: self.shared.clone(),
            number,
            _running: running,
        })
    }
}

impl Clock for RealClock {
    fn now(&self) -> Duration {
        SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default()
    }

    fn every(&self, period: Duration, wake: Wake) -> Timer {
        let period = period.max(SHORTEST);
        self.set(period, Some(period), wake)
    }

    fn after(&self, delay: Duration, wake: Wake) -> Timer {
        self.set(delay, None, wake)
    }

    fn zone(&self) -> Option<String> {
        if let Ok(zone) = std::env::var("TZ") {
            let zone = zone.trim_start_matches(':');
            let name = zone.split_once("/zoneinfo/").map_or(zone, |(_, name)| name);
            return (!name.is_empty() && !name.starts_with('/')).then(|| name.to_owned());
        }
        let target = std::fs::canonicalize("/etc/localtime").ok()?;
        let target = target.to_str()?;
        target.split_once("/zoneinfo/").map(|(_, name)| name.to_owned())
    }
}

impl Drop for RealClock {
    fn drop(&mut self) {
        self.shared.lock().stopping = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn serve(&self) {
        let mut state = self.lock();
        while !state.stopping {
            let Some(next) = state.due.first_key_value().map(|((at, _), _)| *at) else {
                state = wait(&self.changed, state);
                continue;
            };
            let now = Instant::now();
            if next > now {
                state = wait_timeout(&self.changed, state, next - now).0;
                continue;
            }
            let Some(((at, number), alarm)) = state.due.pop_first() else {
                continue;
            };
            let wake = alarm.wake.clone();
            if let Some(period) = alarm.period
                && Arc::strong_count(&alarm.running) > 1
            {
                // Moments that have passed meanwhile are not made up for, but the rhythm stays.
                let missed = now.duration_since(at).as_nanos() / period.as_nanos().max(1);
                let steps = u32::try_from(missed).unwrap_or(u32::MAX).saturating_add(1);
                let again = period.checked_mul(steps).and_then(|after| at.checked_add(after));
                if let Some(again) = again {
                    state.due.insert((again, number), alarm);
                }
            }
            drop(state);
            wake.wake();
            state = self.lock();
        }
    }
}

/// Ends the timer when it is dropped.
struct Alive {
    shared: Arc<Shared>,
    number: u64,
    _running: Arc<()>,
}

impl Drop for Alive {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let key = state
            .due
            .keys()
            .find(|(_, number)| *number == self.number)
            .copied();
        let removed = key.and_then(|key| state.due.remove(&key));
        drop(state);
        // Outside the lock: what is woken may own timers.
        drop(removed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn timers_fire_in_order_repeat_and_end_when_dropped() {
        let clock = RealClock::new().unwrap();
        let (sender, fired) = channel();
        let wake = |name: &'static str| {
            let sender = sender.clone();
            Wake::new(move || {
                let _ = sender.send(name);
            })
        };
        let late = clock.after(Duration::from_millis(30), wake("late"));
        let early = clock.after(Duration::from_millis(5), wake("early"));
        let never = clock.after(Duration::from_millis(10), wake("never"));
        let eternal = clock.after(Duration::MAX, wake("eternal"));
        drop(never);
        let limit = Duration::from_secs(20);
        assert_eq!(fired.recv_timeout(limit), Ok("early"));
        assert_eq!(fired.recv_timeout(limit), Ok("late"));
        let ticks = clock.every(Duration::ZERO, wake("tick"));
        for _ in 0..3 {
            assert_eq!(fired.recv_timeout(limit), Ok("tick"));
        }
        drop((late, early, eternal, ticks));
        assert!(clock.shared.lock().due.is_empty());
    }
}
