//! What the thread that runs programs is told, and what it answers.

use setpoint_programs::languages::compilation::ProgramSource;
use tokio::sync::oneshot;

/// What the thread is told.
pub(crate) enum Message {
    /// Somebody asked to read the program again, and perhaps wants to know what became of it.
    Reload(Option<ReloadAnswer>),
    /// Another program takes the place of this one.
    Take(Box<ProgramSource>),
    /// A file of the program may have changed.
    Changed,
    /// The engine has accepted the first graph of the program of this number.
    Accepted(u64),
    /// The program of this number cannot go on; why was told.
    Refused(u64),
    /// The run is over.
    Close,
}

/// What became of reading a program again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reloaded {
    /// It is in use.
    Accepted,
    /// It is wrong, and the old one stays in use: why.
    Rejected(String),
    /// It was not given as a file.
    NotAFile,
}

/// Where it is told what became of reading a program again.
pub(crate) type ReloadAnswer = oneshot::Sender<Reloaded>;
