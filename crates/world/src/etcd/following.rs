//! Changes of an etcd that are followed, however often the way there breaks.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;
use tokio_stream::StreamExt;

use super::connection::Connection;
use super::protocol::{
    Calls, DELETE, RangeRequest, RequestKind, RequestOp, TxnRequest, WatchCreateRequest, WatchRequest,
    WatchRequestKind, WatchResponse,
};
use super::{refusals, revision_of};
use crate::watch::WatchSource;
use crate::{Backoff, Batch, Change, Revision, Selection, StoreError, Watched};

/// Number of events that are buffered for a slow receiver. More events wait in the connection.
const WAITING: usize = 64;

/// Changes on their way.
pub(super) struct Following {
    heard: Receiver<Watched>,
    task: JoinHandle<()>,
}

impl Following {
    pub(super) fn begin(connection: Arc<Connection>, selection: Selection, after: Revision) -> Following {
        let (sender, heard) = channel(WAITING);
        let follower = Follower {
            set_backs: connection.known().set_backs,
            connection,
            selection,
            seen: after,
            told: None,
            sender,
        };
        Following {
            heard,
            task: tokio::spawn(follower.run()),
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[async_trait]
impl WatchSource for Following {
    async fn next(&mut self) -> Watched {
        match self.heard.recv().await {
            Some(heard) => heard,
            // The task ends with this only; or it has panicked, and then nothing is heard any more.
            None => std::future::pending().await,
        }
    }
}

/// Nobody listens any more.
struct Gone;

/// The end of a watch.
enum Ended {
    /// The way to the store, or it does not allow it.
    Broken(StoreError),
    /// The first revision was compacted, which was reported.
    Forgotten,
}

struct Follower {
    connection: Arc<Connection>,
    selection: Selection,
    /// Up to where everything was told.
    seen: Revision,
    /// Number of known set-backs of the store at the last report.
    set_backs: u64,
    /// Why it is away, as it was told.
    told: Option<StoreError>,
    sender: Sender<Watched>,
}

impl Follower {
    async fn run(mut self) {
        let mut backoff = Backoff::default();
        loop {
            let error = match self.follow(&mut backoff).await {
                Ok(Ended::Broken(error)) => error,
                Ok(Ended::Forgotten) => continue,
                Err(Gone) => return,
            };
            if self.told.as_ref() != Some(&error) {
                self.told = Some(error.clone());
                if self.tell(Watched::Away(error)).await.is_err() {
                    return;
                }
            }
            tokio::time::sleep(backoff.pause()).await;
        }
    }

    async fn tell(&self, heard: Watched) -> Result<(), Gone> {
        self.sender.send(heard).await.map_err(|_| Gone)
    }

    /// Follows until that ends, and answers what ended it.
    async fn follow(&mut self, backoff: &mut Backoff) -> Result<Ended, Gone> {
        // From what was seen last, and not from the next one: whether that one is forgotten is told only then.
        let from = i64::try_from(self.seen.0.max(1)).unwrap_or(i64::MAX);
        let (key, range_end) = self.connection.range(&self.selection);
        let create = WatchCreateRequest {
            key,
            range_end,
            start_revision: from,
            progress_notify: true,
        };
        let request = Some(WatchRequestKind::Create(create));
        let (number, calls) = match self.connection.calls().await {
            Ok(made) => made,
            Err(error) => return Ok(Ended::Broken(error)),
        };
        let endpoint = calls.endpoint();
        // The stream of requests must not end, or etcd takes it for the end of the watch.
        let requests = tokio_stream::iter([WatchRequest { request }]).chain(tokio_stream::pending());
        let broken = match calls.watch(requests).await {
            Err(error) => refusals::told(&error, false),
            Ok(mut answers) => loop {
                let ended = match answers.message().await {
                    Ok(Some(answer)) => match self.compare(&answer, &calls).await? {
                        None => self.take(answer, backoff).await?,
                        ended => ended,
                    },
                    Ok(None) => break refusals::told_of_watch("the connection has ended"),
                    Err(error) => break refusals::told(&error, false),
                };
                match ended {
                    None => {}
                    Some(Ended::Broken(error)) => break error,
                    Some(Ended::Forgotten) => return Ok(Ended::Forgotten),
                }
            },
        };
        self.connection.doubt(number, &broken).await;
        Ok(Ended::Broken(self.connection.placed(broken, &endpoint)))
    }

    /// Compares a store that answers anew with the one that there was. One that has been set back would keep a watch waiting without a word, for
    /// revisions that it may never come to.
    async fn compare(&mut self, answer: &WatchResponse, calls: &Calls) -> Result<Option<Ended>, Gone> {
        let Some(header) = answer.header.as_ref().filter(|_| answer.created) else {
            return Ok(None);
        };
        let known = self.connection.known();
        let revision = revision_of(header.revision);
        if known.set_backs == self.set_backs && known.can_become(header) && revision >= self.seen {
            self.connection.saw(revision, self.set_backs);
            return Ok(None);
        }
        // A member may be behind the others, which no read is.
        let (key, range_end) = self.connection.range(&self.selection);
        let read = RangeRequest {
            key,
            range_end,
            limit: 1,
            keys_only: true,
        };
        let request = TxnRequest {
            success: vec![RequestOp {
                request: Some(RequestKind::Range(read)),
            }],
            ..TxnRequest::default()
        };
        let now = match calls.transact(request).await {
            Ok(answer) => answer.header.unwrap_or_default(),
            Err(error) => return Ok(Some(Ended::Broken(refusals::told(&error, false)))),
        };
        let set_backs = self.connection.has_read(&known, &now);
        let revision = revision_of(now.revision);
        if set_backs == self.set_backs && revision >= self.seen {
            return Ok(None);
        }
        self.set_backs = set_backs;
        self.seen = revision;
        self.tell(Watched::SetBack(self.seen)).await?;
        Ok(Some(Ended::Forgotten))
    }

    /// Takes an answer, and answers what ended the watch, if that did.
    async fn take(&mut self, answer: WatchResponse, backoff: &mut Backoff) -> Result<Option<Ended>, Gone> {
        if answer.compact_revision > 0 {
            self.seen = self.seen.max(revision_of(answer.compact_revision));
            backoff.reset();
            self.tell(Watched::Compacted(self.seen)).await?;
            return Ok(Some(Ended::Forgotten).filter(|_| answer.canceled));
        }
        if answer.canceled {
            return Ok(Some(Ended::Broken(refusals::told_of_watch(
                &answer.cancel_reason,
            ))));
        }
        backoff.reset();
        if self.told.take().is_some() {
            self.tell(Watched::Back).await?;
        }
        let mut batch: Option<Batch> = None;
        let is_progress = answer.events.is_empty() && !answer.created;
        for event in answer.events {
            let Some(found) = event.kv else { continue };
            let revision = revision_of(found.mod_revision);
            if revision <= self.seen {
                continue;
            }
            let change = match event.kind {
                DELETE => self.connection.own_key(&found.key).map(Change::Deleted),
                _ => self.connection.entry(found).map(Change::Put),
            };
            match &mut batch {
                Some(batch) if batch.revision == revision => batch.changes.extend(change),
                other => {
                    let done = other.replace(Batch {
                        revision,
                        changes: change.into_iter().collect(),
                    });
                    self.pass(done).await?;
                }
            }
        }
        self.pass(batch).await?;
        if is_progress {
            let now = answer.header.map_or(0, |header| header.revision);
            self.seen = self.seen.max(revision_of(now));
        }
        Ok(None)
    }

    async fn pass(&mut self, batch: Option<Batch>) -> Result<(), Gone> {
        let Some(batch) = batch else { return Ok(()) };
        self.seen = batch.revision;
        self.connection.saw(self.seen, self.set_backs);
        match batch.changes.is_empty() {
            true => Ok(()),
            false => self.tell(Watched::Changed(batch)).await,
        }
    }
}
