//! The library as its users see it.

mod allocations;
mod census;
mod laws;
mod machine;
mod marks;
mod pure;
mod shapes;
mod sources;
