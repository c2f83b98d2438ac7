//! Strings that hosts share.

use std::collections::BTreeMap;
use std::sync::Arc;

use setpoint_engine::{Failure, Watch, Watcher, async_trait};
use setpoint_resources::{Secrecy, SharedKey, SharedString, SharedStrings};
use setpoint_world::{Entry, Key, Operation, Selection, State, Transaction};

use super::mirror::Seen;
use super::secrets::{KEYS, Readers, Sealed};
use super::{Member, SharedWorld, failed, keys, unencrypted};

/// Below it are values that all hosts share.
pub const STRINGS: &str = "/strings";
/// Below it are values that each host sets for itself.
pub const HOST_STRINGS: &str = "/host-strings";

impl Member {
    fn string(&self, key: SharedKey<'_>) -> Key {
        match key {
            SharedKey::ForAll(key) => keys::key(STRINGS, &[key]),
            SharedKey::OfThisHost(key) => keys::key(HOST_STRINGS, &[&self.hostname, key]),
            SharedKey::OfHost(host, key) => keys::key(HOST_STRINGS, &[host, key]),
        }
    }

    async fn entry(&self, key: &Key) -> Result<Option<Entry>, Failure> {
        let (store, selection) = (self.store.clone(), Selection::from(key.clone()));
        let read = self.ask(async move { store.read(&[selection]).await }).await;
        let read = read.map_err(|error| failed("read the shared string", key, error))?;
        Ok(read.all().next().cloned())
    }

    async fn write(&self, key: &Key, transaction: Transaction) -> Result<bool, Failure> {
        let store = self.store.clone();
        let done = self.ask(async move { store.transact(transaction).await }).await;
        let done = done.map_err(|error| failed(SET, key, error))?;
        Ok(done.is_done())
    }
}

fn text(entry: &Entry) -> String {
    String::from_utf8_lossy(&entry.value).into_owned()
}

impl Member {
    /// A string as it lies in the store.
    async fn stored(&self, entry: &Entry) -> Result<SharedString, Failure> {
        let text = text(entry);
        let Some(own) = &self.key else {
            return Ok(unencrypted::string(text));
        };
        let Some(sealed) = Sealed::read(&text) else {
            return Ok(SharedString::open(text));
        };
        let readers = self.readers(&entry.key).await?;
        Ok(SharedString {
            text: sealed.open(own).ok(),
            secrecy: Secrecy::Secret,
            is_current: sealed.readers == readers,
        })
    }

    async fn readers(&self, key: &Key) -> Result<Readers, Failure> {
        let readers = self.all_readers().await;
        readers.map_err(|error| failed("read the keys of hosts for", key, error))
    }

    /// A string as it shall lie in the store.
    async fn written(&self, key: &Key, value: &str, secrecy: Secrecy) -> Result<Vec<u8>, Failure> {
        if self.key.is_none() {
            return Ok(unencrypted::written(value, secrecy).into_bytes());
        }
        let refused = |why: String| Failure::new(SET).on(key).because(why);
        match secrecy {
            Secrecy::Open if Sealed::read(value).is_some() => {
                Err(refused("it looks like an encrypted one".to_owned()))
            }
            Secrecy::Open => Ok(value.as_bytes().to_vec()),
            Secrecy::Secret => {
                let sealed = Sealed::new(value, self.readers(key).await?);
                Ok(sealed.map_err(refused)?.text().into_bytes())
            }
        }
    }
}

/// What is done with it, in messages.
const SET: &str = "set the shared string";

#[async_trait]
impl SharedStrings for SharedWorld {
    async fn get(&self, key: SharedKey<'_>) -> Result<Option<SharedString>, Failure> {
        let member = &self.member;
        match member.entry(&member.string(key)).await? {
            Some(entry) => member.stored(&entry).await.map(Some),
            None => Ok(None),
        }
    }

    async fn set(&self, key: SharedKey<'_>, value: Option<&str>, secrecy: Secrecy) -> Result<(), Failure> {
        let member = &self.member;
        let key = member.string(key);
        // What is so already is not written: others would be woken by it.
        let is = member.entry(&key).await?;
        let operation = match (value, &is) {
            (None, None) => return Ok(()),
            (None, Some(_)) => Operation::Delete(key.clone().into()),
            (Some(value), is) => {
                if let Some(is) = is {
                    let stored = member.stored(is).await?;
                    if stored.text.as_deref() == Some(value) && stored.misses(secrecy).is_none() {
                        return Ok(());
                    }
                }
                Operation::put(key.clone(), member.written(&key, value, secrecy).await?)
            }
        };
        member.write(&key, Transaction::of([operation])).await.map(drop)
    }

    async fn set_if(
        &self,
        key: SharedKey<'_>,
        was: Option<&str>,
        value: &str,
        secrecy: Secrecy,
    ) -> Result<bool, Failure> {
        let member = &self.member;
        let key = member.string(key);
        let is = member.entry(&key).await?;
        let text = match &is {
            Some(is) => member.stored(is).await?.text,
            None => None,
        };
        if is.is_some() != was.is_some() || text.as_deref() != was {
            return Ok(false);
        }
        let state = is.map_or(State::Absent, |is| State::Modified(is.modified));
        let put = Operation::put(key.clone(), member.written(&key, value, secrecy).await?);
        member
            .write(&key, Transaction::of([put]).when(key.clone(), state))
            .await
    }

    fn watch(&self, key: SharedKey<'_>) -> Watch {
        let (member, key) = (self.member.clone(), self.member.string(key));
        Watch::own(|watcher| async move {
            let mirror = member.mirror(key.into());
            // Whose readers are others than before is encrypted anew.
            let keys = member.mirror(Selection::prefix(format!("{KEYS}/")));
            let (own, keys) = (mirror.look(), keys.look());
            tokio::join!(follow(&watcher, own.clone()), follow_readers(&watcher, own, keys));
            Ok(())
        })
    }
}

/// What a resource was told of a part of the store.
#[derive(Default)]
struct Followed {
    is_begun: bool,
    known: Option<Arc<BTreeMap<Key, Entry>>>,
}

impl Followed {
    /// What it is told, of what is seen now. It begins when something is seen, or that nothing can be: a resource that looks before that sees what
    /// may change without a word.
    fn event(&mut self, now: &Seen) -> Option<&'static str> {
        let is_new = now.entries.is_some() && self.known != now.entries;
        let begins = !self.is_begun && (is_new || now.away.is_some());
        if is_new {
            self.known.clone_from(&now.entries);
        }
        self.is_begun |= begins;
        match (begins, is_new) {
            (true, _) => Some("the shared string is watched"),
            (false, true) => Some("the shared string has changed"),
            (false, false) => None,
        }
    }
}

/// Tells a resource when hosts have other keys, if its string is a secret.
async fn follow_readers(
    watcher: &Watcher,
    own: tokio::sync::watch::Receiver<Seen>,
    mut keys: tokio::sync::watch::Receiver<Seen>,
) {
    let mut known = keys.borrow_and_update().entries.clone();
    loop {
        tokio::select! {
            changed = keys.changed() => if changed.is_err() {
                return;
            },
            () = watcher.cancellation.cancelled() => return,
        }
        let now = keys.borrow_and_update().entries.clone();
        let is_secret = own.borrow().entries.as_ref().is_some_and(|entries| {
            let mut entries = entries.values();
            entries.any(|entry| Sealed::read(&text(entry)).is_some())
        });
        // What is seen first may be newer than what the resource has seen.
        if known != now && is_secret {
            (watcher.event)("the hosts that share a secret are others");
        }
        known = now;
    }
}

/// Tells a resource of each change.
pub(super) async fn follow(watcher: &Watcher, mut seen: tokio::sync::watch::Receiver<Seen>) {
    let mut followed = Followed::default();
    loop {
        if let Some(event) = followed.event(&seen.borrow_and_update()) {
            (watcher.event)(event);
        }
        tokio::select! {
            changed = seen.changed() => if changed.is_err() {
                return;
            },
            () = watcher.cancellation.cancelled() => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use setpoint_world::{Revision, StoreError};

    use super::*;

    fn seen(text: &str) -> Seen {
        let key = Key::new("/strings/key").unwrap();
        let entry = Entry {
            key: key.clone(),
            value: text.as_bytes().into(),
            created: Revision(1),
            modified: Revision(1),
            lease: None,
        };
        Seen {
            entries: Some(Arc::new(BTreeMap::from([(key, entry)]))),
            ..Seen::default()
        }
    }

    fn away(seen: Seen) -> Seen {
        let reason = "there is no way".into();
        Seen {
            away: Some(StoreError::Away {
                reason,
                is_ambiguous: false,
            }),
            ..seen
        }
    }

    const FOLLOWED: Option<&str> = Some("the shared string is watched");
    const CHANGED: Option<&str> = Some("the shared string has changed");

    #[test]
    fn nothing_changes_unseen_between_the_first_look_and_what_is_followed() {
        let mut followed = Followed::default();
        assert_eq!(
            followed.event(&Seen::default()),
            None,
            "a look would be too early"
        );
        assert_eq!(followed.event(&seen("one")), FOLLOWED);
        assert_eq!(followed.event(&seen("one")), None);
        assert_eq!(followed.event(&away(seen("one"))), None);
        assert_eq!(followed.event(&seen("two")), CHANGED);
        // Who begins while the store is away looks in vain, and again when it is back.
        let mut followed = Followed::default();
        assert_eq!(followed.event(&away(Seen::default())), FOLLOWED);
        assert_eq!(followed.event(&away(Seen::default())), None);
        assert_eq!(followed.event(&seen("one")), CHANGED);
    }
}
