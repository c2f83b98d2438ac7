//! Secrets in the store: encrypted to the hosts that may read them.
//!
//! ```text
//! /keys/HOST    the public key of a host, `age1…`, which it writes itself
//! ```
//!
//! A secret lies there as JSON that names its readers with their keys, so that it is seen without any key whether it is still for the right ones. Whoever writes
//! one is among its readers: otherwise it could not see whether it has to be written again. When hosts come, or get other keys, who keeps a secret encrypts it anew.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::str::FromStr;
use std::sync::Arc;

use age::x25519::Recipient;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use setpoint_world::{Backoff, Key, Operation, Selection, StoreError, Transaction};

use super::{Member, keys};
use crate::host_key::HostKey;
use crate::report::Importance;

/// Where the public keys of hosts are.
pub const KEYS: &str = "/keys";

const VERSION: u32 = 1;

/// Hosts with their keys.
pub(super) type Readers = BTreeMap<String, String>;

/// A secret as it lies in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sealed {
    /// The version of this form.
    encrypted: u32,
    /// To whom.
    pub(super) readers: Readers,
    /// What, by age, in base64.
    data: String,
}

/// Why a secret cannot be read here.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// It is for others.
    NotForThisHost,
    /// It is damaged.
    Damaged,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unreadable::NotForThisHost => "it is encrypted, and not for the key of this host",
            Unreadable::Damaged => "it is encrypted and damaged",
        })
    }
}

impl Sealed {
    /// Encrypts a text.
    ///
    /// # Errors
    /// Which key is none.
    pub(super) fn new(text: &str, readers: Readers) -> Result<Sealed, String> {
        let recipients = readers.iter().map(|(host, key)| {
            Recipient::from_str(key)
                .map_err(|why| format!("the key of {host} in the store is damaged: {why}"))
        });
        let recipients = recipients.collect::<Result<Vec<Recipient>, String>>()?;
        let each = recipients
            .iter()
            .map(|recipient| recipient as &dyn age::Recipient);
        let failed = |why: &dyn fmt::Display| format!("it cannot be encrypted: {why}");
        let encryptor = age::Encryptor::with_recipients(each).map_err(|why| failed(&why))?;
        let mut encrypted = Vec::new();
        let write = |encryptor: age::Encryptor, encrypted: &mut Vec<u8>| {
            let mut writer = encryptor.wrap_output(encrypted)?;
            writer.write_all(text.as_bytes())?;
            writer.finish().map(drop)
        };
        write(encryptor, &mut encrypted).map_err(|why| failed(&why))?;
        Ok(Sealed {
            encrypted: VERSION,
            readers,
            data: STANDARD.encode(encrypted),
        })
    }

    /// The secret that a value of the store is, if it is one.
    pub(super) fn read(text: &str) -> Option<Sealed> {
        if !text.starts_with('{') {
            return None;
        }
        let sealed: Sealed = serde_json::from_str(text).ok()?;
        (sealed.encrypted == VERSION).then_some(sealed)
    }

    /// As it lies in the store.
    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).expect("it has only texts and numbers")
    }

    /// What it says.
    pub(super) fn open(&self, key: &HostKey) -> Result<String, Unreadable> {
        let encrypted = STANDARD.decode(&self.data).map_err(|_| Unreadable::Damaged)?;
        let text = key.decrypt(&encrypted).map_err(|error| match error {
            age::DecryptError::NoMatchingKeys => Unreadable::NotForThisHost,
            _ => Unreadable::Damaged,
        })?;
        String::from_utf8(text).map_err(|_| Unreadable::Damaged)
    }
}

impl Member {
    /// All hosts with their keys, and this one.
    pub(super) async fn all_readers(&self) -> Result<Readers, StoreError> {
        let (store, begin) = (self.store.clone(), format!("{KEYS}/"));
        let all = Selection::prefix(begin.clone());
        let found = self.ask(async move { store.read(&[all]).await }).await?;
        let readers = found.all().filter_map(|entry| {
            let [host] = keys::parts(&entry.key, &begin)?;
            Some((host, entry.text()?.trim().to_owned()))
        });
        let mut readers: Readers = readers.collect();
        readers.extend(self.key.iter().map(|key| (self.hostname.clone(), key.public())));
        Ok(readers)
    }

    /// Tells all hosts the key of this one.
    pub(super) fn publish_key(self: &Arc<Self>) {
        let (store, key) = (self.store.clone(), key_of(&self.hostname));
        let Some(public) = self.key.as_ref().map(HostKey::public) else {
            return;
        };
        let reporter = self.telling.reporter.clone();
        // It holds nothing of this, which is dropped while it goes on.
        let mirror = self.mirror(key.clone().into());
        self.runtime().spawn(async move {
            let mut seen = mirror.look();
            let mut set_backs = 0;
            let mut backoff = Backoff::default();
            let mut told = None;
            loop {
                let publish = async {
                    let found = store.read(&[key.clone().into()]).await?;
                    let there = found.all().next().and_then(|entry| entry.text().map(str::to_owned));
                    if there.as_ref() == Some(&public) {
                        return Ok(false);
                    }
                    let put = Operation::put(key.clone(), public.as_bytes());
                    store.transact(Transaction::of([put])).await?;
                    Ok(there.is_some())
                };
                match publish.await {
                    Ok(true) => {
                        let text = "this host has another key than before: secrets are encrypted to it anew when those who keep them see it";
                        reporter.say(Importance::Notice, text);
                    }
                    Ok(false) => {}
                    // That the store is away is told by who follows it.
                    Err(StoreError::Away { .. }) => {
                        tokio::time::sleep(backoff.pause()).await;
                        continue;
                    }
                    Err(error) => {
                        let error = format!("secrets cannot be encrypted to this host: its key is not in the store: {error}");
                        if told.as_ref() != Some(&error) {
                            reporter.warning(error.clone());
                            told = Some(error);
                        }
                        tokio::time::sleep(backoff.pause()).await;
                        continue;
                    }
                }
                backoff.reset();
                // It is written again only where the store has lost it, and not where somebody has taken it away.
                let lost = seen.wait_for(|seen| seen.set_backs > set_backs).await;
                match lost {
                    Ok(seen) => set_backs = seen.set_backs,
                    Err(_) => return,
                }
            }
        });
    }
}

/// Where the key of a host is.
pub fn key_of(host: &str) -> Key {
    keys::key(KEYS, &[host])
}

/// The host whose key is there; none where it is no such key.
pub fn host_of_key(key: &Key) -> Option<String> {
    let [host] = keys::parts(key, &format!("{KEYS}/"))?;
    Some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_by_its_readers_and_by_nobody_else() {
        let [one, two, other] = [(); 3].map(|()| HostKey::of_nobody());
        let readers = Readers::from([("one".to_owned(), one.public()), ("two".to_owned(), two.public())]);
        let sealed = Sealed::new("geheim ä\n", readers.clone()).unwrap();
        let text = sealed.text();
        assert!(!text.contains("geheim"), "{text}");
        let read = Sealed::read(&text).unwrap();
        assert_eq!(read, sealed);
        assert_eq!(read.open(&one).as_deref(), Ok("geheim ä\n"));
        assert_eq!(read.open(&two).as_deref(), Ok("geheim ä\n"));
        assert_eq!(read.open(&other), Err(Unreadable::NotForThisHost));
        let mut damaged = sealed.clone();
        damaged.data.replace_range(200..204, "AAAA");
        assert_eq!(damaged.open(&one), Err(Unreadable::Damaged));
        damaged.data = "no base64".to_owned();
        assert_eq!(damaged.open(&one), Err(Unreadable::Damaged));
        let wrong = Readers::from([("one".to_owned(), "age1nonsense".to_owned())]);
        assert!(
            Sealed::new("x", wrong)
                .unwrap_err()
                .contains("the key of one in the store is damaged")
        );
        for open in [
            "",
            "geheim",
            "{}",
            "{\"a\":1}",
            "{\"encrypted\":2,\"readers\":{},\"data\":\"\"}",
        ] {
            assert_eq!(Sealed::read(open), None, "{open}");
        }
    }
}
