//! The task that serves the followers of a bus: it keeps a connection, asks the bus for the signals that somebody wants, and hands them on.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use zbus::message::Type as MessageType;
use zbus::{Message, MessageStream, OwnedMatchRule};

use super::{ANSWERING, BusError, Follower, Heard, Link, Shared};

/// How long to wait before a connection is tried again, at first and at most. Nothing tells when a bus is started.
const AGAIN: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(5));

/// What the bus was asked for, and who was told so.
#[derive(Default)]
struct Arranged {
    rules: HashSet<OwnedMatchRule>,
    told: BTreeSet<u64>,
}

impl Shared {
    /// Serves until nobody follows any more.
    pub(super) async fn serve(self: Arc<Self>) {
        let mut again = AGAIN.0;
        loop {
            {
                let mut followers = self.followers.lock();
                if followers.by_number.is_empty() {
                    followers.is_served = false;
                    *self.link.lock() = None;
                    return;
                }
            }
            match self.connect().await {
                Ok(link) => {
                    let since = tokio::time::Instant::now();
                    self.attend(&link).await;
                    // Whoever asks from here on needs another one.
                    self.link.lock().take_if(|known| known.is(&link));
                    self.tell_all(|| Heard::Lost);
                    if since.elapsed() > AGAIN.1 {
                        again = AGAIN.0;
                    }
                }
                Err(error) => self.tell_all(|| Heard::Unreachable(&error)),
            }
            tokio::select! {
                () = tokio::time::sleep(again) => again = (again * 2).min(AGAIN.1),
                () = self.changed.notified() => {}
            }
        }
    }

    /// Hands on what a connection brings, until it ends or nobody follows.
    async fn attend(self: &Arc<Self>, link: &Link) {
        let mut messages = MessageStream::from(&link.connection);
        // Beside: while it waits for answers, signals must be taken off the queue, or no answer comes.
        let mut arranging = Some(Box::pin(self.clone().arrange(link.clone(), Arranged::default())));
        let mut arranged = None;
        loop {
            tokio::select! {
                message = messages.next() => match message {
                    Some(Ok(message)) => self.dispatch(&message),
                    Some(Err(_)) | None => return,
                },
                done = async { arranging.as_mut().expect("it is asked only while there is one").await }, if arranging.is_some() => {
                    arranging = None;
                    match done {
                        Ok(done) => arranged = Some(done),
                        Err(_) => return,
                    }
                }
                () = self.changed.notified(), if arranging.is_none() => {
                    if self.followers.lock().by_number.is_empty() {
                        return;
                    }
                    let known = arranged.take().unwrap_or_default();
                    arranging = Some(Box::pin(self.clone().arrange(link.clone(), known)));
                }
            }
        }
    }

    /// Asks for what is wanted now, and tells new followers that they are heard.
    async fn arrange(self: Arc<Self>, link: Link, mut arranged: Arranged) -> Result<Arranged, BusError> {
        let everyone = self.everyone();
        let wanted: HashSet<OwnedMatchRule> = everyone
            .iter()
            .flat_map(|(_, follower)| follower.rules.iter().cloned())
            .collect();
        if !link.is_direct() {
            for rule in wanted.difference(&arranged.rules) {
                link.match_rule("AddMatch", rule).await?;
            }
            for rule in arranged.rules.difference(&wanted) {
                link.match_rule("RemoveMatch", rule).await?;
            }
        }
        arranged.rules = wanted;
        for (number, follower) in &everyone {
            if arranged.told.insert(*number) {
                (follower.hears)(Heard::Connected(&link));
            }
        }
        Ok(arranged)
    }

    fn dispatch(&self, message: &Message) {
        if message.message_type() != MessageType::Signal {
            return;
        }
        for (_, follower) in self.everyone() {
            let mut rules = follower.rules.iter();
            if rules.any(|rule| rule.matches(message).unwrap_or(false)) {
                (follower.hears)(Heard::Signal(message));
            }
        }
    }

    fn tell_all<'a>(&self, what: impl Fn() -> Heard<'a>) {
        for (_, follower) in self.everyone() {
            (follower.hears)(what());
        }
    }

    fn everyone(&self) -> Vec<(u64, Arc<Follower>)> {
        let followers = self.followers.lock();
        let each = followers.by_number.iter();
        each.map(|(number, follower)| (*number, follower.clone()))
            .collect()
    }
}

impl Link {
    async fn match_rule(&self, method: &str, rule: &OwnedMatchRule) -> Result<(), BusError> {
        let bus = "org.freedesktop.DBus";
        let rule = rule.to_string();
        let call = self
            .connection
            .call_method(Some(bus), "/org/freedesktop/DBus", Some(bus), method, &rule);
        match tokio::time::timeout(ANSWERING, call).await {
            Ok(answer) => answer.map(drop).map_err(|error| self.failed(&error)),
            Err(_) => Err(BusError::Silent { limit: ANSWERING }),
        }
    }

    /// Whether both are one connection.
    fn is(&self, other: &Link) -> bool {
        Arc::ptr_eq(&self.bus, &other.bus)
    }
}
