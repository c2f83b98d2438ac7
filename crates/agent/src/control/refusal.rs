//! Why a request is not answered as it was meant.

use super::protocol::{Answer, ErrorCode};

/// Why nothing more is answered.
pub(super) enum Stop {
    /// The request is refused.
    Refused(Refusal),
    /// The client is gone.
    Gone,
}

/// Why a request is refused.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) id: Option<u64>,
    pub(super) code: ErrorCode,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

impl Refusal {
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Refusal {
        Refusal {
            id: None,
            code,
            message: message.into(),
            help: None,
        }
    }

    pub(super) fn of(mut self, id: u64) -> Refusal {
        self.id = Some(id);
        self
    }

    pub(super) fn helped(mut self, help: Option<String>) -> Refusal {
        self.help = help;
        self
    }

    pub(super) fn answer(self) -> Answer {
        Answer::Error {
            id: self.id,
            code: self.code,
            message: self.message,
            help: self.help,
        }
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Stop {
        Stop::Refused(refusal)
    }
}
