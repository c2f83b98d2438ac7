//! For tests only: data-driven cases, a hermetic environment for the real binary.
//!
//! - [`cases`] finds the programs below `tests/cases`, runs each as a test of its own name, and compares or rewrites what
//!   lies beside it. What a stage does with a program is the caller's, so this crate knows no language.
//! - [`Hermetic`] runs the binary with nothing of the developer's surroundings in it; [`Running`] follows one that stays.
//!
//! The rules that hold for the whole repository are `tests/tidy.rs`.

#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests read and write files and start processes"
)]

pub mod cases;
mod hermetic;
mod running;

pub use hermetic::{Finished, Hermetic};
pub use running::Running;

use std::path::{Path, PathBuf};

/// Root of the repository.
#[must_use]
pub fn repository() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).unwrap_or(manifest).to_owned()
}
