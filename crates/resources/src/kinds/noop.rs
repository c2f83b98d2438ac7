//! The `noop` kind: nothing, as a place for edges.

use setpoint_engine::{Apply, Failure, Grouping, Level, Members, Resource, async_trait};

/// Nothing. A place for edges to meet.
#[derive(Debug, Resource)]
#[resource(kind = "noop", brings = nothing, refreshable, autogroup)]
pub(crate) struct Noop {
    /// A note for whoever reads the program.
    comment: String,
    #[state]
    members: Members,
}

#[async_trait]
impl Resource for Noop {
    fn grouping(&self) -> Grouping {
        Grouping::with_equals("noop", "")
    }

    fn members(&mut self) -> Option<&mut Members> {
        Some(&mut self.members)
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        if apply.refresh_pending() {
            apply.log(Level::Info, "received a notification");
        }
        Ok(())
    }
}
