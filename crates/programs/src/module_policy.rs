//! How a command deals with modules from elsewhere.

use std::path::PathBuf;
use std::time::Duration;

/// How a command deals with modules from elsewhere.
#[derive(Debug, Clone, Default)]
pub struct ModulePolicy {
    /// How missing modules are fetched; none if they are not.
    pub fetch: Option<Fetch>,
    /// Whether only what the lock file says is taken.
    pub locked: bool,
    /// The state directory that contains the modules directory, unless the user named another one. It is created when needed.
    pub prefix: Option<PathBuf>,
}

/// How missing modules are fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fetch {
    /// Whether modules that are there are replaced by their newest version.
    pub update: bool,
    /// How long each call of `git` may take.
    pub patience: Duration,
}
