//! Random programs and mutated texts, with all functions and kinds.
#![allow(
    clippy::disallowed_methods,
    reason = "environment variables set how much is tried; the mutations are read from files and tried in another process"
)]

mod random;
mod random_programs;
mod token_mutations;
