//! The codes of what can be wrong with a graph in YAML, before it is a graph.

use setpoint_diagnostics::{CodeInfo, Stage};

/// Text into a tree.
pub const PARSE: Stage = Stage::new("parse");
/// A tree into resources and edges.
pub const TYPE: Stage = Stage::new("type");

setpoint_diagnostics::codes! {
    pub
    NO_YAML = "E0701" "" PARSE "a text that is no YAML";
    SHAPE = "E0702" "" PARSE "a value of another shape than is needed there";
    MISSING_KEY = "E0703" "" PARSE "a key that is missing";
    UNKNOWN_KIND = "E0704" "" TYPE "a kind of resource that does not exist";
    VALUE_DOES_NOT_FIT = "E0705" "" TYPE "a value that does not fit its parameter";
    MISSING_END = "E0706" "" TYPE "an edge that notifies from a resource which does not exist";
    WITHOUT_EFFECT = "W0701" "" TYPE "a key without effect";
    UNKNOWN_KEY = "W0702" "" TYPE "a key that means nothing there";
}

/// All of them.
pub fn all() -> impl Iterator<Item = &'static CodeInfo> {
    CODES.iter().copied()
}
