//! Laws and the call protocol, from outside the crate.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod allocations;
mod counting_allocator;
mod generate;
mod json;
mod laws;
mod protocol;
mod refinements;
mod walk;
