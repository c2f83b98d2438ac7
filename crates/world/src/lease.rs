//! Leases: what goes with a host that goes.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use crate::StoreError;

/// The number of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub i64);

/// As etcd writes it: hexadecimal.
impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

/// A lease that is kept alive. Dropping it leaves it to run out.
#[must_use = "it runs out when this is dropped"]
pub struct Lease {
    id: LeaseId,
    time_to_live: Duration,
    is_lost: watch::Receiver<bool>,
    control: Box<dyn LeaseControl>,
}

/// Keeps a lease alive until it is dropped.
#[async_trait]
pub(crate) trait LeaseControl: Send + Sync {
    /// Ends the lease at once.
    async fn revoke(&self) -> Result<(), StoreError>;
}

impl Lease {
    pub(crate) fn new(
        id: LeaseId,
        time_to_live: Duration,
        is_lost: watch::Receiver<bool>,
        control: impl LeaseControl + 'static,
    ) -> Lease {
        Lease {
            id,
            time_to_live,
            is_lost,
            control: Box::new(control),
        }
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> LeaseId {
        self.id
    }

    /// Lifetime without a keep-alive from this host.
    #[must_use]
    pub fn time_to_live(&self) -> Duration {
        self.time_to_live
    }

    /// Whether it has ended, or may have: measured by this host's own clock from its last word that was answered, so that it is known here
    /// before the store gives to others what went with it.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        *self.is_lost.borrow()
    }

    /// Waits until it is lost.
    pub async fn lost(&self) {
        let mut is_lost = self.is_lost.clone();
        // Whoever keeps it alive is gone when it is dropped, which this borrow excludes; then it is lost, too.
        let _ = is_lost.wait_for(|is_lost| *is_lost).await;
    }

    /// The same, for who does not hold it. A lease that is dropped counts as lost.
    pub fn loss(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut is_lost = self.is_lost.clone();
        async move {
            let _ = is_lost.wait_for(|is_lost| *is_lost).await;
        }
    }

    /// Ends it at once, and with it all keys that go with it.
    ///
    /// # Errors
    /// When the store cannot be asked. Then it runs out by itself.
    pub async fn revoke(self) -> Result<(), StoreError> {
        self.control.revoke().await
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Lease");
        shown.field("id", &self.id).field("is_lost", &self.is_lost());
        shown.finish_non_exhaustive()
    }
}
