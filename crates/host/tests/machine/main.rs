//! Tests on the real machine: temporary directories, inotify, child processes.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests change the machine by other means than those that they test, and say what they skip"
)]

mod access_lists;
mod contents;
mod files;
mod history;
mod place;
mod power_loss;
mod processes;
mod state;
mod tree;
mod trust;
mod users;
mod watch;
mod watch_failing;
