//! The `_panic` kind: what the compiler makes of a `panic(…)` statement.

use setpoint_engine::{Apply, Failure, Resource, async_trait};
use setpoint_graph::Parameters;

/// The body of a `panic` statement. Made by the compiler; always right.
#[derive(Debug, Resource)]
#[resource(kind = "_panic")]
pub(crate) struct Panic {}

#[async_trait]
impl Resource for Panic {
    fn same(_: &str, _: &Parameters, _: &Parameters) -> bool {
        true
    }

    /// The statement's text has failed the program before a resource is made.
    async fn check_apply(&mut self, _: &mut Apply<'_>) -> Result<(), Failure> {
        Ok(())
    }
}
