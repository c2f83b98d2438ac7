//! What services say on the system bus, which several kinds follow in the same way.

use std::sync::atomic::{AtomicBool, Ordering};

use setpoint_engine::{Attempting, Failure, Handle, HubWatcher};
use setpoint_host::bus::{Buses, Following, Heard, MatchRule, Message};

/// The buses of this machine.
pub(crate) fn buses(handle: &Handle) -> Result<&Buses, Failure> {
    handle.extension()
}

/// Follows what a service says. An event is what `told` makes of a signal; nothing for one that is about something else.
pub(crate) fn follow(
    watcher: HubWatcher,
    service: &'static str,
    rules: Vec<MatchRule<'static>>,
    told: impl Fn(&Message) -> Option<&'static str> + Send + Sync + 'static,
) -> Result<Following, Failure> {
    let bus = buses(&watcher.handle)?.system.clone();
    let was_there = AtomicBool::new(false);
    let followed = bus.follow(rules, move |heard| match heard {
        Heard::Connected(_) => {
            was_there.store(true, Ordering::Relaxed);
            (watcher.event)("the system bus is followed");
        }
        Heard::Signal(message) => {
            if let Some(told) = told(message) {
                (watcher.event)(told);
            }
        }
        // A bus that was there comes back, and is found again.
        Heard::Unreachable(error) if !was_there.load(Ordering::Relaxed) => {
            (watcher.failed)(Failure::new("follow").on(service).because(error.clone()));
        }
        Heard::Unreachable(_) | Heard::Lost => {}
    });
    followed.attempting("follow", service)
}
