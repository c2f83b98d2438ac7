//! What can go wrong with a store, in the words of an administrator.

use std::sync::Arc;

/// Why a store did not do what it was asked for.
///
/// The texts are clauses that stand after a colon: `read the deploys: the store does not answer: …`. No password is in them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It cannot be reached, or gave no answer in time.
    #[error("the store does not answer: {reason}")]
    Away {
        /// Error of the last attempt.
        reason: Arc<str>,
        /// Whether what was asked for may have been done all the same.
        is_ambiguous: bool,
    },
    /// The client is not allowed to do this.
    #[error("the store does not allow it: {reason}")]
    Denied {
        /// Message of the store.
        reason: Arc<str>,
    },
    /// The store does not know who asks.
    #[error("the store does not let this host in: {reason}")]
    NotLetIn {
        /// Problem with the name, the password or the certificate.
        reason: Arc<str>,
    },
    /// There is more in the request than the store takes.
    #[error("it is more than the store takes at once: {reason}")]
    TooLarge {
        /// Message of the store.
        reason: Arc<str>,
    },
    /// The lease has ended.
    #[error("the lease has ended")]
    LeaseEnded,
    /// The store has no room left.
    #[error("the store is full: {reason}")]
    Full {
        /// Message of the store.
        reason: Arc<str>,
    },
    /// The file is damaged.
    #[error("the store is damaged: {reason}")]
    Damaged {
        /// The problem, and a remedy.
        reason: Arc<str>,
    },
    /// Invalid connection options.
    #[error("{reason}")]
    Misconfigured {
        /// The problem.
        reason: Arc<str>,
    },
    /// Something else.
    #[error("the store says: {reason}")]
    Refused {
        /// Message of the store.
        reason: Arc<str>,
    },
}

impl StoreError {
    /// Whether the same may succeed later without anybody doing anything about it.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(self, StoreError::Away { .. })
    }

    /// Whether what was asked for may have been done all the same.
    #[must_use]
    pub fn is_ambiguous(&self) -> bool {
        matches!(
            self,
            StoreError::Away {
                is_ambiguous: true,
                ..
            }
        )
    }
}
