//! Stores: one suite of cases for all, laws against a naive one, and what only a real etcd can do to its clients.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests, of which each failure is a panic"
)]

mod etcd;
mod faults;
mod file;
mod laws;
mod ssh;
mod suite;

use setpoint_world::MemoryStore;

#[test]
fn the_suite_holds_in_memory() {
    suite::run(|_| std::sync::Arc::new(MemoryStore::new()));
}

#[test]
fn the_suite_holds_in_a_file() {
    let place = file::Place::new();
    suite::run(|name| std::sync::Arc::new(place.store(&name.replace(' ', "-"))));
}
