//! Modules that are compiled in: `std`, and `setpoint` with an entity for each kind of resource.

use setpoint_graph::Library;

use crate::kinds;

/// The text of a namespace that is built in.
#[must_use]
pub fn text(library: &Library, namespace: &str) -> Option<&'static str> {
    match namespace {
        "std" => Some(include_str!("../../std/std.cf")),
        "std::testing" => Some(include_str!("../../std/testing.cf")),
        "setpoint" => Some(include_str!("../../std/setpoint.cf")),
        namespace if kinds::is_namespace(library, namespace) => Some(""),
        _ => None,
    }
}

/// The names of all namespaces that are built in.
pub fn namespaces(library: &Library) -> Vec<String> {
    let mut names = kinds::namespaces(library);
    names.extend(["std", "std::testing", "setpoint"].map(str::to_owned));
    names.sort();
    names.dedup();
    names
}
