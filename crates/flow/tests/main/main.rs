//! The evaluator, through its public face.

mod incremental;
mod library;
mod program_builder;
mod world;
