//! The kinds against the real machine, in directories of their own.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests set machines up and look at them afterwards"
)]

mod archive;
mod conforms;
mod download;
mod edits;
mod exec;
mod file;
mod file_backup;
mod file_ownership;
mod file_tree;
mod git;
mod harness;
mod hello;
mod kind_walk_through;
mod made;
mod server;
mod small;
mod waiting;
