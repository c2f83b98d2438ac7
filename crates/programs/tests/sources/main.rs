//! Sources against what really changes them: files, processes, the network, the kernel, the bus, the clock, other members.
//!
//! Each test compiles a program of one expression, follows its value on the real machine, and changes the real thing. Tests
//! that would change the machine of others run again in namespaces of their own ([`place`]), which is why they are a binary of
//! their own. Whatever cannot run here says `skipped: ` and why.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests change files, start processes and say why they cannot run"
)]

mod bus;
mod clock;
mod commands;
mod files;
mod functions;
mod kernel;
mod machine;
mod network;
mod program;
mod stores;
mod teardown;
