//! Messages to the runner, and its answers.

use setpoint_programs::languages::compilation::ProgramSource;
use tokio::sync::oneshot;

/// A message to the runner.
pub(crate) enum Message {
    /// A request to read the program again. The answer is optional.
    Reload(Option<ReloadAnswer>),
    /// Another program takes the place of this one.
    Take(Box<ProgramSource>),
    /// A file of the program may have changed.
    Changed,
    /// The engine has accepted the first graph of the program of this number.
    Accepted(u64),
    /// The program of this number failed. It has reported why.
    Refused(u64),
    /// The run is over.
    Close,
}

/// The result of reading a program again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reloaded {
    /// It is in use.
    Accepted,
    /// It is wrong, and the old one stays in use: why.
    Rejected(String),
    /// It was not given as a file.
    NotAFile,
}

/// Takes the result of reading a program again.
pub(crate) type ReloadAnswer = oneshot::Sender<Reloaded>;
