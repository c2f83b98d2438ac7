//! For tests only: data-driven cases, a hermetic environment for the real binary.
//!
//! - [`cases`] finds the programs below `tests/cases`, runs each as a test of its own name, and compares or rewrites what
//!   lies beside it. What a stage does with a program is the caller's, so this crate knows no language.
//! - [`Hermetic`] runs the binary with nothing of the developer's surroundings in it; [`Running`] follows one that stays.
//! - [`etcd`] starts a real etcd, and has its members fail; [`history`] says whether what happened in it may have; [`Network`] has hosts that
//!   can be cut off from each other; [`sshd`] starts an SSH server; [`place`] runs
//!   a test again in namespaces of its own.
//!
//! The rules that hold for the whole repository are `tests/tidy`.

#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests read and write files and start processes"
)]

pub mod cases;
pub mod etcd;
mod hermetic;
pub mod history;
mod network;
pub mod place;
mod running;
pub mod sshd;

pub use hermetic::{Finished, Hermetic};
pub use network::Network;
pub use running::Running;

use std::path::{Path, PathBuf};

/// Root of the repository whose test is running.
#[must_use]
pub fn repository() -> PathBuf {
    // Cargo says where the package of the running test is; what was compiled in may be of another checkout.
    let running = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let manifest = running.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
    manifest
        .ancestors()
        .nth(2)
        .map(Path::to_owned)
        .unwrap_or(manifest)
}
