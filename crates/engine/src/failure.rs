//! What a resource says when the machine refused: what was attempted, on what, and why.
//!
//! The cause is kept as it came and never pasted into a text, so that it can be shown as a chain. Texts are fragments
//! that read after «failed to»: `set the mode of /etc/motd: operation not permitted`. They never hold a value of a
//! parameter unless that value names the target.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use setpoint_diagnostics::without_system_numbers;
use setpoint_graph::ResourceId;
use setpoint_host::files::FileError;

/// Something that a resource could not do. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Failure(Arc<Facts>);

#[derive(Debug, Clone)]
struct Facts {
    attempted: Cow<'static, str>,
    target: Option<String>,
    source: Option<Arc<dyn Error + Send + Sync>>,
    reason: FailureReason,
}

/// What sort of failure it is; the engine treats them differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureReason {
    /// The machine is not as it must be, or refused.
    Refused,
    /// A received value does not fit, or makes the resource invalid.
    Unfit,
    /// The run was told to stop, and did.
    Cancelled,
    /// The run was interrupted (the third request to stop).
    Interrupted,
    /// Nothing is wrong here, but something outside this machine has not come to pass yet. What watches sees it come.
    Waiting,
    /// Another process replaced the file that the run was about to replace. The next run compares with the new file.
    Overtaken,
    /// A mistake of ours: a panic, or a broken promise of a kind.
    Bug,
}

impl Failure {
    /// Failed to do `attempted`, a verb phrase: `find the user`.
    #[must_use]
    pub fn new(attempted: impl Into<Cow<'static, str>>) -> Failure {
        Failure(Arc::new(Facts {
            attempted: attempted.into(),
            target: None,
            source: None,
            reason: FailureReason::Refused,
        }))
    }

    /// The run was told to stop while it did `attempted`.
    #[must_use]
    pub fn cancelled(attempted: impl Into<Cow<'static, str>>) -> Failure {
        Failure::new(attempted).reasoned(FailureReason::Cancelled)
    }

    /// Something outside this machine has not come to pass yet; `missing` says what, as a sentence.
    #[must_use]
    pub fn waiting(missing: impl Into<String>) -> Failure {
        Failure::new("go on")
            .because(missing.into())
            .reasoned(FailureReason::Waiting)
    }

    /// What it was attempted on.
    #[must_use]
    pub fn on(self, target: impl fmt::Display) -> Failure {
        let target = Some(target.to_string());
        self.with(|facts| facts.target = target)
    }

    /// With what made it fail.
    #[must_use]
    pub fn because(self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Failure {
        let source: Box<dyn Error + Send + Sync> = source.into();
        self.with(|facts| facts.source = Some(source.into()))
    }

    /// Of this sort.
    #[must_use]
    pub fn reasoned(self, reason: FailureReason) -> Failure {
        self.with(|facts| facts.reason = reason)
    }

    /// It is one of a member of a group: the resource that it is told of is not the one to blame.
    #[must_use]
    pub fn of_member(self, member: &ResourceId) -> Failure {
        let reason = self.reason();
        Failure::new("apply").on(member).because(self).reasoned(reason)
    }

    /// What was attempted, a verb phrase.
    #[must_use]
    pub fn attempted(&self) -> &str {
        &self.0.attempted
    }

    /// What it was attempted on.
    #[must_use]
    pub fn target(&self) -> Option<&str> {
        self.0.target.as_deref()
    }

    /// Of which sort it is, for whoever decides what to do about it.
    #[must_use]
    pub fn reason(&self) -> FailureReason {
        self.0.reason
    }

    /// Everything in one line, causes included: `set the mode of /etc/motd: operation not permitted`.
    #[must_use]
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            let next = error.to_string();
            // Many errors say their cause themselves, and name it as their source too.
            if !text.ends_with(&next) {
                text.push_str(": ");
                text.push_str(&next);
            }
            cause = error.source();
        }
        without_system_numbers(&text)
    }

    fn with(self, change: impl FnOnce(&mut Facts)) -> Failure {
        let mut facts = Arc::unwrap_or_clone(self.0);
        change(&mut facts);
        Failure(Arc::new(facts))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.attempted)?;
        match &self.0.target {
            Some(target) => write!(f, " {target}"),
            None => Ok(()),
        }
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Failure {
        match error {
            FileError::System {
                attempted,
                path,
                source,
            } => Failure::new(attempted).on(path.display()).because(source),
            FileError::Exchanged { .. } => Failure::new(error.attempted())
                .on(error.path().display())
                .because(error.reason())
                .reasoned(FailureReason::Overtaken),
            refused => Failure::new(refused.attempted())
                .on(refused.path().display())
                .because(refused.reason()),
        }
    }
}

/// Turns any error into a [`Failure`] that says what was attempted.
pub trait Attempting<T> {
    /// Names what was attempted and on what, should it have failed.
    ///
    /// # Errors
    /// The same as before, dressed.
    fn attempting(
        self,
        attempted: impl Into<Cow<'static, str>>,
        target: impl fmt::Display,
    ) -> Result<T, Failure>;
}

impl<T, E: Into<Box<dyn Error + Send + Sync>>> Attempting<T> for Result<T, E> {
    fn attempting(
        self,
        attempted: impl Into<Cow<'static, str>>,
        target: impl fmt::Display,
    ) -> Result<T, Failure> {
        self.map_err(|error| Failure::new(attempted).on(target).because(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_reads_after_failed_to() {
        let refused: Result<(), _> = Err(std::io::Error::from(std::io::ErrorKind::PermissionDenied));
        let failure = refused.attempting("set the mode of", "/etc/motd").unwrap_err();
        assert_eq!(failure.chain(), "set the mode of /etc/motd: permission denied");
        assert_eq!(failure.reason(), FailureReason::Refused);
        assert_eq!(failure.reasoned(FailureReason::Bug).target(), Some("/etc/motd"));
    }

    #[test]
    fn a_cause_that_was_said_already_is_not_said_again() {
        let missing = std::io::Error::from_raw_os_error(2);
        let error = FileError::System {
            attempted: "read",
            path: "/no/such/file".into(),
            source: missing,
        };
        let failure = Failure::new("read the settings").because(error);
        assert_eq!(
            failure.chain(),
            "read the settings: read /no/such/file: No such file or directory"
        );
    }

    #[test]
    fn a_refusal_says_its_reason_after_the_path() {
        let error = FileError::MovableLink {
            path: "/tmp/a: b".into(),
        };
        let failure = Failure::from(error);
        assert_eq!(failure.to_string(), "follow the link /tmp/a: b");
        assert!(
            failure.chain().contains("it lies in a directory"),
            "{}",
            failure.chain()
        );
    }
}
