//! How a command deals with modules from elsewhere.

use std::path::PathBuf;
use std::time::Duration;

/// How a command deals with modules from elsewhere.
#[derive(Debug, Clone, Default)]
pub struct ModulePolicy {
    /// What is fetched; none: nothing.
    pub fetch: Option<Fetch>,
    /// Whether only what the lock file says is taken.
    pub locked: bool,
    /// The prefix below which the modules directory lies, if nobody named another one: it is made when it is needed.
    pub prefix: Option<PathBuf>,
}

/// What is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fetch {
    /// Whether modules that are there are replaced by their newest version.
    pub update: bool,
    /// How long each call of `git` may take.
    pub patience: Duration,
}
