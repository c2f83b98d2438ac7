//! Leases of an etcd, kept alive.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc::channel;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;

use super::connection::Connection;
use super::protocol::{Calls, LeaseGrantRequest, LeaseKeepAliveRequest, LeaseRevokeRequest};
use super::refusals;
use crate::lease::LeaseControl;
use crate::{Backoff, Lease, LeaseId, StoreError};

/// A lease, and who keeps it alive.
pub(super) async fn grant(connection: Arc<Connection>, time_to_live: Duration) -> Result<Lease, StoreError> {
    let seconds = i64::try_from(time_to_live.as_secs_f64().ceil() as u64)
        .unwrap_or(i64::MAX)
        .max(1);
    let asked = Instant::now();
    let granted = connection
        .ask(true, async |calls: Calls| {
            calls.grant(LeaseGrantRequest { ttl: seconds }).await
        })
        .await?;
    // etcd gives none that is shorter than its own elections.
    let time_to_live = Duration::from_secs(u64::try_from(granted.ttl).unwrap_or(0));
    let (is_lost, lost) = watch::channel(false);
    let keeper = Keeper {
        connection: connection.clone(),
        id: granted.id,
        time_to_live,
        lives_until: asked + time_to_live,
    };
    let control = Kept {
        connection,
        id: granted.id,
        task: tokio::spawn(async move {
            keeper.keep().await;
            is_lost.send_replace(true);
        }),
    };
    Ok(Lease::new(LeaseId(granted.id), time_to_live, lost, control))
}

struct Kept {
    connection: Arc<Connection>,
    id: i64,
    task: JoinHandle<()>,
}

#[async_trait]
impl LeaseControl for Kept {
    async fn revoke(&self) -> Result<(), StoreError> {
        self.task.abort();
        let id = self.id;
        let revoked = self
            .connection
            .ask(true, async |calls: Calls| {
                calls.revoke(LeaseRevokeRequest { id }).await
            })
            .await;
        match revoked {
            Ok(_) | Err(StoreError::LeaseEnded) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Keeper {
    connection: Arc<Connection>,
    id: i64,
    time_to_live: Duration,
    /// Until when it certainly lives: counted from when this host last spoke, so that it never ends later here than there.
    lives_until: Instant,
}

impl Keeper {
    /// Keeps it alive until it is lost.
    async fn keep(mut self) {
        let mut backoff = Backoff::default();
        loop {
            // It ended there, or nothing was heard until here.
            if let StoreError::LeaseEnded = self.speak(&mut backoff).await {
                return;
            }
            let pause = backoff.pause().min(self.time_to_live / 5);
            if self.within(tokio::time::sleep(pause)).await.is_none() {
                return;
            }
        }
    }

    /// Waits for something, but no longer than the lease certainly lives.
    async fn within<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::time::timeout_at(self.lives_until, work).await.ok()
    }

    /// Waits for an answer of a member. While the lease lives, a late answer is an error, so that another member is asked.
    async fn answer<T>(&self, work: impl Future<Output = T>) -> Result<T, StoreError> {
        match self
            .within(tokio::time::timeout(self.time_to_live / 3, work))
            .await
        {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(_)) => Err(refusals::told_of_watch("a member does not answer")),
            None => Err(StoreError::LeaseEnded),
        }
    }

    /// Speaks over one connection until that breaks, and answers what broke it.
    async fn speak(&mut self, backoff: &mut Backoff) -> StoreError {
        let (number, calls) = match self.within(self.connection.calls()).await {
            Some(Ok(made)) => made,
            Some(Err(error)) => return error,
            None => return StoreError::LeaseEnded,
        };
        let (sender, requests) = channel(1);
        // etcd begins to answer with the first request.
        let mut spoken = Instant::now();
        let _ = sender.try_send(LeaseKeepAliveRequest { id: self.id });
        let broken = match self.answer(calls.keep_alive(ReceiverStream::new(requests))).await {
            Err(error) => error,
            Ok(Err(error)) => refusals::told(&error, false),
            Ok(Ok(mut answers)) => loop {
                match self.answer(answers.message()).await {
                    Ok(Ok(Some(answer))) if answer.ttl > 0 => {}
                    Ok(Ok(Some(_))) => return StoreError::LeaseEnded,
                    Ok(Ok(None)) => break refusals::told_of_watch("the connection has ended"),
                    Ok(Err(error)) => break refusals::told(&error, false),
                    Err(error) => break error,
                }
                backoff.reset();
                self.lives_until = spoken + self.time_to_live;
                // A process that was frozen meanwhile hears an answer from long ago.
                if self
                    .within(tokio::time::sleep(self.time_to_live / 3))
                    .await
                    .is_none()
                {
                    return StoreError::LeaseEnded;
                }
                spoken = Instant::now();
                // Where it cannot be sent, the stream has ended, which is seen next.
                let _ = sender.try_send(LeaseKeepAliveRequest { id: self.id });
            },
        };
        self.connection.doubt(number, &broken).await;
        broken
    }
}
