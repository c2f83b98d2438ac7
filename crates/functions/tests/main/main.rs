//! The library as its users see it.

mod census;
#[path = "../../../value/tests/main/counting_allocator.rs"]
mod counting_allocator;
mod laws;
mod machine;
mod marks;
mod pure;
mod shapes;
mod sources;
