//! Why a call has no value.

use std::fmt;

/// An argument that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentError {
    /// Its position from 0; none when it is the arguments as a whole (their number).
    pub index: Option<usize>,
    /// Name of the parameter, where known.
    pub parameter: Option<String>,
    /// What is wrong: lower case, no full stop, without the value when that is sensitive.
    pub message: String,
    /// Where inside the argument: `.a[0].b`; empty for the argument itself.
    pub path: String,
}

impl ArgumentError {
    /// About the argument at `index`.
    #[must_use]
    pub fn at(index: usize, message: impl Into<String>) -> ArgumentError {
        ArgumentError {
            index: Some(index),
            parameter: None,
            message: message.into(),
            path: String::new(),
        }
    }

    /// About the arguments as a whole.
    #[must_use]
    pub fn whole(message: impl Into<String>) -> ArgumentError {
        ArgumentError {
            index: None,
            parameter: None,
            message: message.into(),
            path: String::new(),
        }
    }
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parameter) = &self.parameter {
            write!(f, "`{parameter}`{}: ", self.path)?;
        } else if let Some(index) = self.index {
            write!(f, "argument {}{}: ", index + 1, self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// Why a call has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallError {
    /// An argument does not fit the signature: the program is wrong. Never catchable.
    Argument(ArgumentError),
    /// An argument of the right type has a value that the function does not take: the data is wrong. Catchable.
    Refused(ArgumentError),
    /// The implementation failed.
    Failed {
        /// What is wrong: lower case, no full stop.
        message: String,
        /// Whether mcl's `<|>` catches it.
        catchable: bool,
    },
    /// The implementation, or the type function, panicked. Never catchable.
    Panicked {
        /// The function.
        function: String,
        /// The panic's message.
        message: String,
    },
}

impl CallError {
    /// A failure that `<|>` catches.
    #[must_use]
    pub fn catchable(message: impl Into<String>) -> CallError {
        CallError::Failed {
            message: message.into(),
            catchable: true,
        }
    }

    /// A failure that nothing catches.
    #[must_use]
    pub fn fatal(message: impl Into<String>) -> CallError {
        CallError::Failed {
            message: message.into(),
            catchable: false,
        }
    }

    /// Whether `<|>` catches it.
    #[must_use]
    pub fn is_catchable(&self) -> bool {
        matches!(
            self,
            CallError::Refused(_) | CallError::Failed { catchable: true, .. }
        )
    }
}

impl From<ArgumentError> for CallError {
    fn from(error: ArgumentError) -> CallError {
        CallError::Argument(error)
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Argument(error) | CallError::Refused(error) => write!(f, "{error}"),
            CallError::Failed { message, .. } => f.write_str(message),
            CallError::Panicked { function, message } => {
                write!(f, "`{function}` stopped with an internal error: {message}")
            }
        }
    }
}

impl std::error::Error for CallError {}
