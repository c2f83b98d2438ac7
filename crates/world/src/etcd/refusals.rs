//! What etcd and the way to it say when something is refused, told to an administrator.

use std::error::Error;

use tonic::{Code, Status};

use crate::StoreError;

/// The error that an answer of etcd is. `is_write` says whether something may have been changed.
pub(super) fn told(status: &Status, is_write: bool) -> StoreError {
    // What ended the connection is told last.
    let cause = status.source().map(cause);
    by_code(status.code(), status.message(), cause.as_deref(), is_write)
}

fn by_code(code: Code, message: &str, cause: Option<&str>, is_write: bool) -> StoreError {
    let said = message.strip_prefix("etcdserver: ").unwrap_or(message);
    let has = |part: &str| said.contains(part);
    let reason = said.into();
    match code {
        Code::Unauthenticated => StoreError::NotLetIn { reason },
        Code::InvalidArgument if has("authentication failed") => StoreError::NotLetIn {
            reason: "the name of the user or the password is wrong".into(),
        },
        Code::InvalidArgument if has("user name is empty") => StoreError::NotLetIn {
            reason: "it asks for a user, and none is given".into(),
        },
        Code::InvalidArgument if has("revision of auth store is old") => StoreError::NotLetIn { reason },
        Code::FailedPrecondition if has("authentication is not enabled") => StoreError::NotLetIn {
            reason: "a user is given, but this store asks for none".into(),
        },
        Code::PermissionDenied if has("permission denied") => StoreError::Denied {
            reason: "its user has no right to that; `setpoint rights` shows who has which".into(),
        },
        Code::PermissionDenied => StoreError::Denied { reason },
        Code::NotFound if has("lease not found") => StoreError::LeaseEnded,
        Code::ResourceExhausted if has("space exceeded") => StoreError::Full { reason },
        Code::InvalidArgument if has("too large") || has("too many operations") => {
            StoreError::TooLarge { reason }
        }
        Code::ResourceExhausted | Code::OutOfRange if has("larger than max") => {
            StoreError::TooLarge { reason }
        }
        Code::ResourceExhausted
        | Code::Unavailable
        | Code::DeadlineExceeded
        | Code::Cancelled
        | Code::Unknown
        | Code::Internal => StoreError::Away {
            reason: cause.map_or(reason, Into::into),
            is_ambiguous: is_write,
        },
        _ => StoreError::Refused { reason },
    }
}

/// What an error began with, in words.
pub(super) fn cause(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    let text = cause.to_string();
    // The number says nothing that the words do not.
    let words = text.rfind(" (os error ").map_or(text.as_str(), |at| &text[..at]);
    words.to_owned()
}

/// What a watch was ended with.
pub(super) fn told_of_watch(reason: &str) -> StoreError {
    let code = match reason.contains("permission denied") {
        true => Code::PermissionDenied,
        false => Code::Unavailable,
    };
    by_code(code, reason, None, false)
}
