//! Strings that hosts share.

use setpoint_engine::{Failure, Watch, Watcher, async_trait};
use setpoint_resources::{SharedKey, SharedStrings};
use setpoint_world::{Entry, Key, Operation, Selection, State, Transaction};

use super::{ClusterWorld, Member, failed, keys};

pub(super) const STRINGS: &str = "/strings";
pub(super) const HOST_STRINGS: &str = "/host-strings";

impl Member {
    fn string(&self, key: SharedKey<'_>) -> Key {
        match key {
            SharedKey::ForAll(key) => keys::key(STRINGS, &[key]),
            SharedKey::OfThisHost(key) => keys::key(HOST_STRINGS, &[key, &self.hostname]),
        }
    }

    async fn entry(&self, key: &Key) -> Result<Option<Entry>, Failure> {
        let (store, selection) = (self.store.clone(), Selection::from(key.clone()));
        let read = self.ask(async move { store.read(&[selection]).await }).await;
        let read = read.map_err(|error| failed("read what hosts share under", key, error))?;
        Ok(read.all().next().cloned())
    }

    async fn write(&self, key: &Key, transaction: Transaction) -> Result<bool, Failure> {
        let store = self.store.clone();
        let done = self.ask(async move { store.transact(transaction).await }).await;
        let done = done.map_err(|error| failed("set what hosts share under", key, error))?;
        Ok(done.is_done())
    }
}

fn text(entry: &Entry) -> String {
    String::from_utf8_lossy(&entry.value).into_owned()
}

#[async_trait]
impl SharedStrings for ClusterWorld {
    async fn get(&self, key: SharedKey<'_>) -> Result<Option<String>, Failure> {
        let key = self.member.string(key);
        Ok(self.member.entry(&key).await?.as_ref().map(text))
    }

    async fn set(&self, key: SharedKey<'_>, value: Option<&str>) -> Result<(), Failure> {
        let key = self.member.string(key);
        // What is so already is not written: others would be woken by it.
        let is = self.member.entry(&key).await?;
        if is.as_ref().map(text).as_deref() == value {
            return Ok(());
        }
        let operation = match value {
            Some(value) => Operation::put(key.clone(), value.as_bytes()),
            None => Operation::Delete(key.clone().into()),
        };
        self.member
            .write(&key, Transaction::of([operation]))
            .await
            .map(drop)
    }

    async fn set_if(&self, key: SharedKey<'_>, was: Option<&str>, value: &str) -> Result<bool, Failure> {
        let key = self.member.string(key);
        let state = was.map_or(State::Absent, |was| State::Value(was.as_bytes().into()));
        let put = Operation::put(key.clone(), value.as_bytes());
        let transaction = Transaction::of([put]).when(key.clone(), state);
        self.member.write(&key, transaction).await
    }

    fn watch(&self, key: SharedKey<'_>) -> Watch {
        let (member, key) = (self.member.clone(), self.member.string(key));
        Watch::own(|watcher| async move {
            let mirror = member.mirror(key.into());
            follow(&watcher, mirror.look()).await;
            Ok(())
        })
    }
}

/// Tells a resource of each change.
pub(super) async fn follow(watcher: &Watcher, mut seen: tokio::sync::watch::Receiver<super::mirror::Seen>) {
    let mut known = None;
    (watcher.event)("what hosts share is followed");
    loop {
        let now = seen.borrow_and_update().clone();
        if now.entries.is_some() && known != now.entries {
            // What is seen first is what the resource is run for anyway.
            if known.is_some() {
                (watcher.event)("what hosts share has changed");
            }
            known = now.entries;
        }
        tokio::select! {
            changed = seen.changed() => if changed.is_err() {
                return;
            },
            () = watcher.cancellation.cancelled() => return,
        }
    }
}
