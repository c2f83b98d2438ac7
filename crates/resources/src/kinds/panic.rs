//! The `_panic` kind: what the compiler makes of a `panic(…)` statement.

use setpoint_engine::Resource;
use setpoint_graph::Parameters;

/// The body of a `panic` statement. Made by the compiler; always right.
#[derive(Debug, Resource)]
#[resource(kind = "_panic")]
pub(crate) struct Panic {}

impl Resource for Panic {
    fn same(_: &str, _: &Parameters, _: &Parameters) -> bool {
        true
    }
}
