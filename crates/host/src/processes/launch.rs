//! What a launcher is told, and what it answers.

use super::limits::{Capability, Limit};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;

/// Everything about a command that its own process arranges before the program begins.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Launch {
    /// Our process. One that has another parent has lost us.
    pub(super) parent: i32,
    /// What the command calls itself, and what is looked up.
    pub(super) program: OsString,
    pub(super) arguments: Vec<OsString>,
    pub(super) environment: BTreeMap<OsString, OsString>,
    pub(super) directory: Option<OsString>,
    pub(super) search_path: OsString,
    pub(super) credentials: Option<Credentials>,
    pub(super) limits: BTreeMap<Limit, u64>,
    pub(super) capabilities: Option<Vec<Capability>>,
}

/// Whom a command is run as, if not as us.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Credentials {
    pub(super) user: u32,
    pub(super) group: u32,
    pub(super) groups: Vec<u32>,
}

/// What a launcher answers when the program does not begin. When it does, there is no answer: the connection ends.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LaunchFailure {
    pub(super) step: Step,
    /// The system's number of the error.
    pub(super) error: i32,
}

/// What a launcher was about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Step {
    /// Leaving our session, our descriptors and our input.
    Isolate,
    /// Finding the program: there is none.
    Find,
    /// Finding the program: it is only in this relative entry of `PATH`.
    FindInRelative(OsString),
    /// Taking another user's rights.
    Credentials,
    /// Setting a limit.
    Limit(Limit),
    /// Giving capabilities up.
    Capabilities,
    /// Entering the working directory.
    Directory,
    /// Becoming this program.
    Start(OsString),
}
