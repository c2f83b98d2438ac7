//! The evaluator, through its public face.

mod incremental;
mod library;
mod oracle;
mod program_builder;
mod random_programs;
mod world;
