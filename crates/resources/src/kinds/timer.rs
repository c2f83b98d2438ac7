//! The `timer` kind: an event every so many seconds.

use std::time::Duration;

use setpoint_engine::{Apply, Failure, Resource, Watch};
use setpoint_graph::{Invalid, MetaParameters};

/// An event every so many seconds.
///
/// A tick alone notifies nobody. A notification begins the interval anew and is passed on.
#[derive(Debug, Resource)]
#[resource(kind = "timer", refreshable, action)]
pub(crate) struct Timer {
    /// Seconds from one event to the next.
    interval: u32,
}

impl Resource for Timer {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        if self.interval == 0 {
            invalid.push(Invalid::parameter("interval", "must be at least 1 second"));
        }
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::Interval(Duration::from_secs(self.interval.into()))]
    }

    fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        if apply.refresh_pending() && apply.drift("refresh", "pending", "interval begun anew") {
            apply.restart_interval();
        }
        Ok(())
    }
}
