//! Whether something shall be there, as several kinds say it in their parameter `state`.

use setpoint_engine::Words;
use setpoint_graph::Invalid;

/// What `state` can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Exists,
    Absent,
}

impl Words for Presence {
    const ONE: &'static str = "a state";

    fn words() -> impl Iterator<Item = (&'static str, Presence)> {
        [("exists", Presence::Exists), ("absent", Presence::Absent)].into_iter()
    }
}

/// What is wrong with a state that is not set where it must be.
pub(crate) fn state_missing() -> Invalid {
    Invalid::parameter("state", "`state` must be `exists` or `absent`").help("write `state => \"exists\",`")
}
