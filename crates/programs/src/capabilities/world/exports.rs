//! What this host exports.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value as Json;
use setpoint_engine::{ExportChange, ExportKey, ExportStore, Failure, async_trait};
use setpoint_graph::{ENCRYPTED, ResourceId, SECRETS};
use setpoint_value::StoredText;
use setpoint_world::{Backoff, Entry, Key, MOST_OPERATIONS, Operation, Selection, StoreError, Transaction};

use super::secrets::{KEYS, Readers, Sealed, Unreadable};
use super::{Member, SharedWorld, failed, keys};
use crate::host_key::HostKey;

/// Below it are exported resources.
pub const EXPORTED: &str = "/exported";

/// For whom hosts export anything: so a host finds its own again without reading those of others.
pub const EXPORTING: &str = "/exporting";

/// Who stands for all hosts in an export.
pub const EVERYONE: &str = "*";

#[async_trait]
impl ExportStore for SharedWorld {
    async fn exported(&self) -> Result<Vec<ExportKey>, Failure> {
        let own = self.member.own_exports().await;
        own.map_err(|error| failed("read what this host exports, below", EXPORTED, error))
    }

    async fn change(&self, changes: Vec<ExportChange>) -> Vec<Result<(), Failure>> {
        match self.member.change(&changes).await {
            Ok(()) => changes.iter().map(|_| Ok(())).collect(),
            // One of them may be to blame, and the others are not.
            Err(error) if changes.len() > 1 && !error.is_passing() => {
                let mut results = Vec::new();
                for change in &changes {
                    let result = self.member.change(std::slice::from_ref(change)).await;
                    results.push(result.map_err(|error| refused(change, error)));
                }
                results
            }
            Err(error) => changes
                .iter()
                .map(|change| Err(refused(change, error.clone())))
                .collect(),
        }
    }

    fn keeps_secrets(&self) -> bool {
        self.member.key.is_some()
    }

    fn at_a_time(&self) -> usize {
        MOST_OPERATIONS
    }
}

fn refused(change: &ExportChange, error: StoreError) -> Failure {
    let attempted = match change.data {
        Some(_) => "export",
        None => "take back",
    };
    failed(attempted, &change.key, error)
}

/// What is known of the exports of this host while they are written.
#[derive(Default)]
pub(super) struct OwnExports {
    /// What is exported, before its secrets are encrypted.
    written: BTreeMap<ExportKey, Arc<str>>,
    /// Whether it is seen to that secrets are for the right keys, and that all is written again when the store has lost it.
    is_followed: bool,
    /// For whom it is noted that this host exports anything.
    noted: BTreeSet<Arc<str>>,
}

/// The text of a resource, taken apart: what everybody may know, and its secrets.
struct Parted {
    open: serde_json::Map<String, Json>,
    secrets: String,
}

impl Parted {
    /// Of a text with secrets; none of one without.
    fn of(text: &str) -> Option<Parted> {
        if !text.contains(SECRETS) {
            return None;
        }
        let mut open: serde_json::Map<String, Json> = serde_json::from_str(text).ok()?;
        let secrets = open.remove(SECRETS)?.to_string();
        Some(Parted { open, secrets })
    }

    /// Of one that is encrypted; none of one that is not.
    fn of_encrypted(text: &str, key: &HostKey) -> Option<Result<(Parted, Readers), Unreadable>> {
        if !text.contains(ENCRYPTED) {
            return None;
        }
        let mut open: serde_json::Map<String, Json> = serde_json::from_str(text).ok()?;
        let sealed: Sealed = serde_json::from_value(open.remove(ENCRYPTED)?).ok()?;
        let secrets = sealed.open(key);
        Some(secrets.map(|secrets| (Parted { open, secrets }, sealed.readers)))
    }

    /// As it is before it is encrypted.
    fn text(mut self) -> Result<String, Unreadable> {
        let secrets = serde_json::from_str(&self.secrets).map_err(|_| Unreadable::Damaged)?;
        self.open.insert(SECRETS.to_owned(), secrets);
        Ok(Json::Object(self.open).to_string())
    }

    /// As it lies in the store.
    fn encrypted(mut self, readers: Readers) -> Result<String, String> {
        let sealed = Sealed::new(&self.secrets, readers)?;
        let sealed = serde_json::to_value(sealed).map_err(|error| error.to_string())?;
        self.open.insert(ENCRYPTED.to_owned(), sealed);
        Ok(Json::Object(self.open).to_string())
    }
}

/// The text of a resource that others export, as far as this host can read it.
pub(super) fn read_exported(text: String, key: &HostKey) -> Result<StoredText, Unreadable> {
    match Parted::of_encrypted(&text, key) {
        None => Ok(text.into()),
        Some(parted) => Ok(StoredText::secret(parted?.0.text()?)),
    }
}

impl Member {
    /// What this host exports, as the store has it.
    async fn own_exports(self: &Arc<Self>) -> Result<Vec<ExportKey>, StoreError> {
        let mut known = self.own_exports.lock().await;
        let (store, begin) = (self.store.clone(), keys::below(EXPORTING, &[&self.hostname]));
        let noted = Selection::prefix(begin.clone());
        let noted = self.ask(async move { store.read(&[noted]).await }).await?;
        let noted = noted.all().filter_map(|entry| {
            let [to] = keys::parts(&entry.key, &begin)?;
            Some(to)
        });
        let noted: Vec<String> = noted.collect();
        let mut own = Vec::new();
        for some in noted.chunks(MOST_OPERATIONS) {
            let begins: Vec<String> = some
                .iter()
                .map(|to| keys::below(EXPORTED, &[to, &self.hostname]))
                .collect();
            let selections: Vec<Selection> = begins.iter().cloned().map(Selection::prefix).collect();
            let store = self.store.clone();
            let read = self.ask(async move { store.read(&selections).await }).await?;
            for ((to, begin), entries) in some.iter().zip(begins).zip(&read.entries) {
                let to: Arc<str> = to.as_str().into();
                own.extend(entries.iter().filter_map(|entry| {
                    let [kind, name] = keys::parts(&entry.key, &begin)?;
                    Some(ExportKey {
                        resource: ResourceId::new(kind.as_str(), name),
                        to: to.clone(),
                    })
                }));
                known.noted.insert(to);
            }
        }
        Ok(own)
    }

    /// Notes for whom this host exports anything, before it does.
    async fn note_targets(&self, known: &mut OwnExports, changes: &[ExportChange]) -> Result<(), StoreError> {
        let new = changes.iter().filter(|change| change.data.is_some());
        let new: BTreeSet<Arc<str>> = new
            .map(|change| change.key.to.clone())
            .filter(|to| !known.noted.contains(to))
            .collect();
        if new.is_empty() {
            return Ok(());
        }
        let note = |to: &Arc<str>| Operation::put(keys::key(EXPORTING, &[&self.hostname, to]), *b"");
        let notes = Transaction::of(new.iter().map(note));
        let store = self.store.clone();
        self.ask(async move { store.transact(notes).await }).await?;
        known.noted.extend(new);
        Ok(())
    }

    /// Writes what is not so yet, in one transaction.
    async fn change(self: &Arc<Self>, changes: &[ExportChange]) -> Result<(), StoreError> {
        let mut own = self.own_exports.lock().await;
        self.note_targets(&mut own, changes).await?;
        self.write_exports(changes).await?;
        for ExportChange { key, data } in changes {
            match data {
                Some(data) => drop(own.written.insert(key.clone(), data.clone())),
                None => drop(own.written.remove(key)),
            }
        }
        // Nothing of this happens to what the processes of one machine share.
        if self.key.is_some() && !own.written.is_empty() && !std::mem::replace(&mut own.is_followed, true) {
            self.follow_readers();
        }
        Ok(())
    }

    /// Encrypts what this host exports anew when hosts have other keys, and writes all of it again when the store has lost what it had.
    fn follow_readers(self: &Arc<Self>) {
        let mirror = self.mirror(Selection::prefix(format!("{KEYS}/")));
        let member = Arc::downgrade(self);
        self.runtime().spawn(async move {
            let mut seen = mirror.look();
            let mut set_backs = seen.borrow_and_update().set_backs;
            let mut backoff = Backoff::default();
            while seen.changed().await.is_ok() {
                loop {
                    let Some(member) = member.upgrade() else {
                        return;
                    };
                    let now = seen.borrow_and_update().set_backs;
                    let is_done = member.write_again(now > set_backs).await.is_ok();
                    drop(member);
                    if is_done {
                        set_backs = now;
                        break;
                    }
                    tokio::time::sleep(backoff.pause()).await;
                }
                backoff.reset();
            }
        });
    }

    /// Writes again what is not so any more of what this host exports: all of it, or what has secrets.
    async fn write_again(&self, all: bool) -> Result<(), StoreError> {
        let mut own = self.own_exports.lock().await;
        let written = own.written.iter();
        let changes = written
            .filter(|(_, data)| all || Parted::of(data).is_some())
            .map(|(key, data)| ExportChange {
                key: key.clone(),
                data: Some(data.clone()),
            });
        let changes: Vec<ExportChange> = changes.collect();
        if all {
            own.noted.clear();
        }
        let mut written = Ok(());
        for some in changes.chunks(MOST_OPERATIONS) {
            let done = match self.note_targets(&mut own, some).await {
                Ok(()) => self.write_exports(some).await,
                Err(error) => Err(error),
            };
            written = written.and(done);
        }
        written
    }

    /// Writes what is not so yet, in one transaction.
    async fn write_exports(&self, changes: &[ExportChange]) -> Result<(), StoreError> {
        let keys: Vec<Key> = changes.iter().map(|change| self.exported(&change.key)).collect();
        let (store, selections) = (
            self.store.clone(),
            keys.iter().cloned().map(Selection::from).collect::<Vec<_>>(),
        );
        let there = self.ask(async move { store.read(&selections).await }).await?;
        // Without a key there are none with secrets.
        let parted = changes.iter().map(|change| {
            let own = self.key.as_ref()?;
            Some((Parted::of(change.data.as_deref()?)?, own))
        });
        let parted: Vec<Option<(Parted, &HostKey)>> = parted.collect();
        let hosts = match parted.iter().any(Option::is_some) {
            true => self.all_readers().await?,
            false => Readers::new(),
        };
        let mut operations = Vec::new();
        for (((change, key), parted), there) in changes.iter().zip(keys).zip(parted).zip(&there.entries) {
            let there = there.first();
            let wanted = match (&change.data, parted) {
                (None, _) => None,
                (Some(data), None) => Some(data.as_bytes().to_vec()),
                (Some(_), Some((parted, own))) => {
                    let readers = self.readers_of(&change.key, &hosts)?;
                    let is_so = there.and_then(Entry::text).is_some_and(|text| {
                        let is = Parted::of_encrypted(text, own).and_then(Result::ok);
                        is.is_some_and(|(is, of)| {
                            is.open == parted.open && is.secrets == parted.secrets && of == readers
                        })
                    });
                    if is_so {
                        continue;
                    }
                    let encrypted = parted.encrypted(readers);
                    let refused = |reason: String| StoreError::Misconfigured {
                        reason: reason.into(),
                    };
                    Some(encrypted.map_err(refused)?.into_bytes())
                }
            };
            if there.map(|entry| &*entry.value) != wanted.as_deref() {
                operations.push(match wanted {
                    Some(data) => Operation::put(key, data),
                    None => Operation::Delete(key.into()),
                });
            }
        }
        if operations.is_empty() {
            return Ok(());
        }
        let store = self.store.clone();
        self.ask(async move { store.transact(Transaction::of(operations)).await })
            .await
            .map(drop)
    }

    /// Who may read the secrets of an export: this host, and whom it is for.
    fn readers_of(&self, key: &ExportKey, hosts: &Readers) -> Result<Readers, StoreError> {
        if &*key.to == EVERYONE {
            return Ok(hosts.clone());
        }
        let readers = [&*key.to, &self.hostname].map(|host| {
            let key = hosts.get(host).ok_or_else(|| StoreError::Misconfigured {
                reason: format!("{host} has no key in the store yet, so that nothing can be encrypted to it")
                    .into(),
            })?;
            Ok((host.to_owned(), key.clone()))
        });
        readers.into_iter().collect()
    }

    fn exported(&self, key: &ExportKey) -> Key {
        let ExportKey { resource, to } = key;
        keys::key(EXPORTED, &[to, &self.hostname, &resource.kind, &resource.name])
    }
}
