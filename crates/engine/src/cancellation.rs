//! How a run is told to stop.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::Failure;

/// How a run is told to stop, and then to stop at once. Clones are one and the same.
#[derive(Debug, Clone, Default)]
pub struct Cancellation(Arc<CancellationState>);

#[derive(Debug, Default)]
struct CancellationState {
    cancelled: CancellationToken,
    interrupted: CancellationToken,
    cause: OnceLock<CancelCause>,
}

/// Why a run is told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelCause {
    /// The meta parameter `timeout` ran out.
    Timeout(Duration),
    /// The resource's watch failed, or what it depends on is no longer settled.
    Superseded,
    /// The second request to stop the program.
    Stopping,
}

impl Cancellation {
    /// Nothing has been asked for.
    #[must_use]
    pub fn new() -> Cancellation {
        Cancellation::default()
    }

    /// Asks the run to stop. The first cause stays.
    pub fn cancel(&self, cause: CancelCause) {
        let _ = self.0.cause.set(cause);
        self.0.cancelled.cancel();
    }

    /// Asks the run to stop at once and start nothing new.
    pub fn interrupt(&self) {
        self.cancel(CancelCause::Stopping);
        self.0.interrupted.cancel();
    }

    /// Whether it was asked to stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.is_cancelled()
    }

    /// Whether it was asked to stop at once.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.0.interrupted.is_cancelled()
    }

    /// Why it was asked to stop.
    #[must_use]
    pub fn cause(&self) -> Option<CancelCause> {
        self.0.cause.get().copied()
    }

    /// Waits until it is asked to stop.
    pub async fn cancelled(&self) {
        self.0.cancelled.cancelled().await;
    }

    /// Waits until it is asked to stop at once.
    pub async fn interrupted(&self) {
        self.0.interrupted.cancelled().await;
    }

    /// The token that fires when it is asked to stop.
    #[must_use]
    pub fn token(&self) -> &CancellationToken {
        &self.0.cancelled
    }

    /// The token that fires when it is asked to stop at once.
    #[must_use]
    pub fn interrupt_token(&self) -> &CancellationToken {
        &self.0.interrupted
    }

    /// Goes on unless it was asked to stop.
    ///
    /// # Errors
    /// A cancelled failure of what is `attempted` next.
    pub fn check(&self, attempted: &'static str) -> Result<(), Failure> {
        if self.is_cancelled() {
            Err(Failure::cancelled(attempted))
        } else {
            Ok(())
        }
    }
}
