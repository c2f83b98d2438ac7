//! What the machine offers to all resources: files, watches, processes, accounts, and our own state on disk.
//!
//! Resources share the few things here instead of opening their own: one watch hub for all paths, one committer
//! for all file contents, one account cache. The crate knows no resource, no language and no other Setpoint crate.
//! It is where input and output happen; whatever blocks says so and belongs on a worker thread.
//!
//! | module | gives |
//! |---|---|
//! | [`files`] | safe walking, reading, comparing, replacing (with shared syncs), removing |
//! | [`watch`] | one inotify instance for all watched paths |
//! | [`processes`] | commands in groups of their own, with their output; commands that run on |
//! | [`kernel_hostname`] | the host name of the kernel, followed |
//! | [`mounts`] | which file system a path is on, without touching it |
//! | [`network`] | network interfaces: their state, addresses and routes, changed and followed over one socket |
//! | [`bus`] | one connection to each message bus, and who follows what is said there |
//! | [`own_program`] | the program that this process is |
//! | [`ssh`] | connections to SSH servers: what goes through them, commands there, ports that lead here |
//! | [`systemd`] | the service managers: units, jobs, and news of both |
//! | [`download`](mod@download) | downloads over HTTP and HTTPS |
//! | [`journal`] | the system's log, as its daemons take it |
//! | [`random`] | unpredictable bytes |
//! | [`users`] | accounts by name or number |
//! | [`state`] | our own private directories, versioned files, and the lock on them |
//!
//! [`Host`] holds one of each.

#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "this crate is where the machine is read and changed"
)]

pub mod bus;
pub mod download;
pub mod files;
pub mod journal;
pub mod kernel_hostname;
mod machine;
pub mod mounts;
pub mod network;
pub mod own_program;
pub mod processes;
pub mod random;
pub mod ssh;
pub mod state;
pub mod sync;
pub mod systemd;
mod terminal;
pub mod users;
pub mod watch;

pub use machine::{Host, raise_open_file_limit, start_of_the_machine};
