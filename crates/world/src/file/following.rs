//! Watches of the file: what it remembers is read whenever something may have been written.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use setpoint_host::watch::WatchHandle;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::Shared;
use super::requests::{Answer, Question};
use super::tables::News;
use crate::watch::WatchSource;
use crate::{Backoff, Revision, Selection, StoreError, Watched};

pub(super) struct Follower {
    shared: Arc<Shared>,
    selection: Selection,
    /// Until here everything was read.
    read: Revision,
    /// Events that were read and are returned next.
    heard: VecDeque<Watched>,
    /// Identity of the store, once known.
    made: Option<u64>,
    /// Why it cannot be read now.
    away: Option<StoreError>,
    backoff: Backoff,
    /// Time of the next attempt if reading failed.
    again: Option<Instant>,
    changed: watch::Receiver<u64>,
    /// Watch of the file for writes by other processes, after the first read.
    armed: Option<Arc<WatchHandle>>,
    /// Whether something may have been written since it was read.
    is_stale: bool,
}

impl Follower {
    pub(super) fn new(shared: Arc<Shared>, selection: Selection, after: Revision) -> Follower {
        let changed = shared.changed.subscribe();
        Follower {
            shared,
            selection,
            read: after,
            heard: VecDeque::new(),
            made: None,
            away: None,
            backoff: Backoff::default(),
            again: None,
            changed,
            armed: None,
            is_stale: true,
        }
    }

    async fn ask(&mut self) -> Result<News, StoreError> {
        // Before it is read, so that nothing is written in between.
        if self.armed.is_none() {
            self.armed = Some(self.shared.arm()?);
        }
        let question = Question::News(self.selection.clone(), self.read);
        match self.shared.ask(question).await? {
            Answer::News(news) => Ok(news),
            other => unreachable!("{other:?} is no answer to who asks for news"),
        }
    }

    /// Takes what was read, to be heard next.
    fn take(&mut self, news: News) {
        if self.away.take().is_some() {
            self.heard.push_back(Watched::Back);
        }
        let before = self.made.replace(news.made);
        // One that is made where none was is the one that is followed.
        let is_other = before.is_some_and(|made| made != news.made && made != 0);
        self.read = news.until;
        match news.batches {
            Some(batches) if !is_other => {
                self.heard.extend(batches.into_iter().map(Watched::Changed));
                self.is_stale = news.is_cut;
            }
            // What came after that is read next.
            _ => {
                self.heard.push_back(Watched::Compacted(news.until));
                self.is_stale = true;
            }
        }
    }

    /// Waits until there may be something to read.
    async fn wait(&mut self) {
        match self.again {
            // What is out of order is not tried faster because somebody else tries.
            Some(again) => sleep_until(again).await,
            None => self.shared.stirred(&mut self.changed).await,
        }
        self.is_stale = true;
    }
}

#[async_trait]
impl WatchSource for Follower {
    async fn next(&mut self) -> Watched {
        loop {
            if let Some(heard) = self.heard.pop_front() {
                return heard;
            }
            if !self.is_stale {
                self.wait().await;
            }
            self.changed.mark_unchanged();
            match self.ask().await {
                Ok(news) => {
                    self.again = None;
                    self.backoff.reset();
                    self.take(news);
                }
                Err(error) => {
                    self.is_stale = false;
                    self.again = Some(Instant::now() + self.backoff.pause());
                    if self.away.as_ref() != Some(&error) {
                        self.away = Some(error.clone());
                        return Watched::Away(error);
                    }
                }
            }
        }
    }
}
