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
        _ if has("password was given for no password user") => StoreError::NotLetIn {
            reason: "its user has no password in etcd, as those have none that `setpoint rights` makes for certificates; `etcdctl user add` makes one that has".into(),
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
        Code::ResourceExhausted if has("space exceeded") => StoreError::Full {
            reason: "its quota is used up. It takes what is new again after `etcdctl compaction`, `etcdctl defrag` of each member and `etcdctl alarm disarm`".into(),
        },
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
            reason: match has("missing grpc-status") || has("h2 protocol error") && cause.is_none() {
                true => "it has closed the connection".into(),
                false => cause.map_or(reason, Into::into),
            },
            // Without a leader a member takes nothing.
            is_ambiguous: is_write && !has("no leader"),
        },
        _ => StoreError::Refused { reason },
    }
}

/// The operation that failed, in words.
pub(super) fn cause(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    without_number(&cause.to_string()).to_owned()
}

/// An error of the system without its number at the end, which says nothing that the words do not.
pub(super) fn without_number(text: &str) -> &str {
    text.rfind(" (os error ").map_or(text, |at| &text[..at])
}

/// The cause of the end of a watch.
pub(super) fn told_of_watch(reason: &str) -> StoreError {
    let code = match reason.contains("permission denied") {
        true => Code::PermissionDenied,
        false => Code::Unavailable,
    };
    by_code(code, reason, None, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_without_a_password_is_no_store_that_is_away() {
        let message = "auth: authentication failed, password was given for no password user";
        let told = told(&Status::unknown(message), false);
        assert!(
            !told.is_passing() && told.to_string().contains("has no password in etcd"),
            "{told}"
        );
    }

    #[test]
    fn a_store_that_goes_is_told_of_without_words_of_the_protocol() {
        let message =
            "protocol error: missing grpc-status trailer, stream was terminated without a final status";
        let told = told(&Status::internal(message), false);
        assert_eq!(
            told.to_string(),
            "the store does not answer: it has closed the connection"
        );
    }
}
