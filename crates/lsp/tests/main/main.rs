//! The server, asked through the protocol as an editor asks it.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::mutable_key_type,
    reason = "tests read the files of the repository, and an address is never changed"
)]

mod client;
mod editing;
mod editors;
mod grammar;
mod hostile;
mod linting;
mod models;
mod questions;
