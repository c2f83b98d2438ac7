//! The `timer` kind: a notification every so many seconds.

use std::time::Duration;

use setpoint_engine::{Apply, Effect, Failure, Resource, Watch, async_trait};
use setpoint_graph::{Invalid, MetaParameters};

/// A notification every so many seconds.
///
/// Each tick notifies whoever depends on it by `Notify` or `Listen`, as if it had been repaired; under `noop` it does not.
/// A notification begins the interval anew and is passed on.
#[derive(Debug, Resource)]
#[resource(kind = "timer", brings = nothing, refreshable, action)]
pub(crate) struct Timer {
    /// Seconds from one tick to the next.
    interval: u32,
}

#[async_trait]
impl Resource for Timer {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        if self.interval == 0 {
            invalid.push(Invalid::parameter("interval", "must be at least 1 second"));
        }
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::Tick(Duration::from_secs(self.interval.into()))]
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        if apply.refresh_pending() && apply.act(Effect::Run, "refresh", "pending", "interval restarted") {
            apply.restart_interval();
        }
        Ok(())
    }
}
