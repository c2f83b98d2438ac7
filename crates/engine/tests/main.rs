//! Tests of the engine: the machine on a simulated host, and the engine with real workers.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests say what they expect, and their machine is a temporary directory"
)]

mod engine;
mod machine;
