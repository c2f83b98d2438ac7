//! What can go wrong with a bus, in the words of who refused.

use std::sync::Arc;
use std::time::Duration;

use zbus::DBusError as _;

/// Why something could not be asked of a bus.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BusError {
    /// There is no way to it.
    #[error("{bus} cannot be reached: {reason}")]
    Unreachable {
        /// Which one.
        bus: Arc<str>,
        /// Why.
        reason: Arc<str>,
    },
    /// The connection ended, or who was asked left the bus, before there was an answer.
    #[error("the connection over {bus} ended before there was an answer")]
    Lost {
        /// Over which one.
        bus: Arc<str>,
    },
    /// Who was asked refused, or is not there.
    #[error("{reason}")]
    Refused {
        /// The name of the error on the bus: `org.freedesktop.systemd1.NoSuchUnit`; empty if it has none.
        name: Arc<str>,
        /// Why.
        reason: Arc<str>,
    },
    /// No answer came in time.
    #[error("there is no answer in {} s", limit.as_secs())]
    Silent {
        /// How long it was waited for.
        limit: Duration,
    },
    /// The answer is not of the form that it must have.
    #[error("the answer cannot be understood: {reason}")]
    Malformed {
        /// What is wrong with it.
        reason: Arc<str>,
    },
}

impl BusError {
    /// Whether it is an error of this name, of who was asked.
    #[must_use]
    pub fn is_named(&self, wanted: &str) -> bool {
        matches!(self, BusError::Refused { name, .. } if **name == *wanted)
    }
}

/// The name that an error has on the bus; empty if it has none.
pub(super) fn name(error: &zbus::Error) -> Arc<str> {
    match error {
        zbus::Error::MethodError(name, ..) => name.as_str().into(),
        zbus::Error::FDO(error) => error.name().as_str().into(),
        _ => "".into(),
    }
}

/// What an error says to a person, as a fragment without a full stop.
pub(super) fn told(error: &zbus::Error) -> String {
    let text = match error {
        zbus::Error::MethodError(name, None, _) => name.to_string(),
        zbus::Error::MethodError(_, Some(text), _) => text.clone(),
        zbus::Error::FDO(error) => {
            let described = error.description().filter(|text| !text.is_empty());
            described.map_or_else(|| error.name().to_string(), str::to_owned)
        }
        zbus::Error::InputOutput(error) | zbus::Error::Connection(error, _) => error.to_string(),
        other => other.to_string(),
    };
    text.trim_end_matches(['.', '\n']).to_owned()
}
