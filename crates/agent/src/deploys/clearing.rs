//! Clearing old deploys away, with the files that no other one has.
//!
//! A file that is stored already is not stored again by who deploys, so it must not go in the midst of that. Whoever clears holds `/clearing`, which goes
//! with its lease, for which uploads wait, and counts up `/cleared`: what was uploaded before that is not added any more, but uploaded again. What is
//! deleted is bound to `/clearing`, so who has lost it deletes nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use setpoint_world::{Condition, Key, Operation, Outcome, State, StoreError, Transaction};

use super::files::{AT_ONCE, FILES, NotFetched, STORAGE};
use super::{Deploys, Stored, key};

/// Held by who clears.
pub const CLEARING: &str = "/clearing";

/// Changed by each who clears.
pub const CLEARED: &str = "/cleared";

/// How long who is silent still clears.
const LIVES: Duration = Duration::from_secs(15);

/// What was cleared away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cleared {
    /// How many deploys.
    pub deploys: usize,
    /// How many values of files that no other deploy has.
    pub values: usize,
}

/// Why it was not, or not all.
#[derive(Debug, thiserror::Error)]
pub enum NotCleared {
    /// Another process does.
    #[error("somebody else is clearing deploys away")]
    Busy,
    /// The claim to be the only one ran out.
    #[error("this took too long, and somebody else may be clearing now")]
    Lost,
    /// The store does not answer, or refuses.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A deploy cannot be read.
    #[error("which files are still needed is not known: {0}")]
    Unknown(NotFetched),
}

impl Deploys {
    /// Clears away all but the newest deploys, and but those that hosts still run which may not take a newer one. At least one stays.
    ///
    /// A store that is full takes nothing but deletes, so that nobody can hold `/clearing`; neither can anybody add a deploy then.
    pub async fn clear(&self, keep: usize) -> Result<Cleared, NotCleared> {
        match self.clear_alone(keep).await {
            Err(NotCleared::Store(StoreError::Full { .. })) => {
                let nobody = Condition::new(plain(CLEARING), State::Absent);
                self.clear_as(&nobody, keep).await
            }
            cleared => cleared,
        }
    }

    async fn clear_alone(&self, keep: usize) -> Result<Cleared, NotCleared> {
        let lease = self.store.lease(LIVES).await?;
        let clearing = plain(CLEARING);
        let begin = Transaction::of([
            Operation::put_leased(clearing.clone(), *b"", lease.id()),
            Operation::put(plain(CLEARED), *b""),
        ]);
        let begun = self.store.transact(begin.when(clearing.clone(), State::Absent));
        let own = match begun.await? {
            Outcome::Done(revision) => Condition::new(clearing, State::Created(revision)),
            Outcome::Refused(_) => {
                lease.revoke().await?;
                return Err(NotCleared::Busy);
            }
        };
        let cleared = self.clear_as(&own, keep).await;
        // What is not given back runs out.
        let _ = lease.revoke().await;
        cleared
    }

    async fn clear_as(&self, own: &Condition, keep: usize) -> Result<Cleared, NotCleared> {
        let all = self.all().await?;
        let old = old(&all, keep);
        let (gone, kept) = all.split_at(old);
        let mut contents = BTreeSet::new();
        let lists: BTreeSet<&str> = kept.iter().filter_map(files).collect();
        for list in &lists {
            let read = self.contents(list).await;
            contents.extend(read.map_err(NotCleared::Unknown)?);
        }
        let of_deploys = gone
            .iter()
            .flat_map(|stored| ["payload", "hash", "rollout", "steered"].map(|what| key(stored.id, what)));
        let of_lists = self.store.keys(FILES).await?;
        let of_lists = of_lists.into_iter().filter(|key| !lists.contains(key.as_str()));
        let of_contents = self.store.keys(STORAGE).await?;
        let of_contents = of_contents.into_iter().filter(|key| {
            let name = key.as_str()[STORAGE.len()..].split('/').next();
            !name.is_some_and(|name| contents.contains(name))
        });
        // Who has a list has what is in it, also when this ends in the midst.
        let values: Vec<Key> = of_lists.chain(of_contents).collect();
        self.delete(own, of_deploys.collect()).await?;
        let cleared = Cleared {
            deploys: gone.len(),
            values: values.len(),
        };
        self.delete(own, values).await?;
        Ok(cleared)
    }

    async fn delete(&self, own: &Condition, keys: Vec<Key>) -> Result<(), NotCleared> {
        for some in keys.chunks(AT_ONCE) {
            let delete = some.iter().map(|key| Operation::Delete(key.clone().into()));
            let transaction = Transaction::of(delete).when(own.key.clone(), own.is.clone());
            if !self.store.transact(transaction).await?.is_done() {
                return Err(NotCleared::Lost);
            }
        }
        Ok(())
    }
}

/// How many of all deploys, from the oldest, are not needed any more.
fn old(all: &[Stored], keep: usize) -> usize {
    let by_number = all.len().saturating_sub(keep.max(1));
    // Hosts that may not take a newer one run the newest that is for all.
    let for_all = all.iter().rposition(|stored| stored.rollout.is_none());
    by_number.min(for_all.unwrap_or(0))
}

fn files(stored: &Stored) -> Option<&str> {
    stored.record.as_ref().ok()?.files.as_deref()
}

pub(super) fn plain(text: &'static str) -> Key {
    Key::new(text).expect("it is not empty")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use setpoint_world::{MemoryStore, Store};

    use super::*;
    use crate::deploys::{Commits, DeployedFile, Frontend, NotAdded, Record, Rollout};

    async fn deployed(deploys: &Deploys, id: u64, contents: &[&str], rollout: Option<&Rollout>) {
        let upload = deploys.begin_upload().await.unwrap();
        let file = |(at, content): (usize, &&str)| DeployedFile {
            path: format!("/{at}"),
            mode: 0o644,
            content: content.as_bytes().to_vec(),
        };
        let files: Vec<DeployedFile> = contents.iter().enumerate().map(file).collect();
        let mut record = Record::of(Frontend::Lang);
        record.files = Some(deploys.store_files(&files).await.unwrap());
        let none = Commits::default();
        let added = deploys.add(id, &record, &none, rollout, &upload).await;
        added.unwrap();
    }

    #[tokio::test]
    async fn what_no_deploy_has_any_more_goes_and_the_rest_stays() {
        let store = MemoryStore::new();
        let deploys = Deploys::new(Arc::new(store.clone()));
        deployed(&deploys, 1, &["one", "always"], None).await;
        deployed(&deploys, 2, &["two", "always"], None).await;
        deployed(&deploys, 3, &["three", "always"], None).await;
        // Of one who was interrupted.
        let stray = [DeployedFile {
            path: "/stray".to_owned(),
            mode: 0o644,
            content: b"stray".to_vec(),
        }];
        deploys.store_files(&stray).await.unwrap();
        // Two records; two lists, their contents, two files; the stray one, its list and that one's content.
        let cleared = deploys.clear(1).await.unwrap();
        assert_eq!((cleared.deploys, cleared.values), (2, 2 + 2 + 2 + 3));
        let place = tempfile::tempdir().unwrap();
        let all = deploys.all().await.unwrap();
        assert_eq!(all.len(), 1);
        let files = all[0].record.as_ref().unwrap().files.clone().unwrap();
        deploys
            .fetch_files(&files, &place.path().join("3"))
            .await
            .unwrap();
        assert_eq!(
            deploys.clear(0).await.unwrap(),
            Cleared::default(),
            "the last one stays"
        );
        assert!(store.keys(CLEARING).await.unwrap().is_empty());
        // While a rollout is under way those that hosts go back to stay.
        let rollout = Rollout::new(BTreeSet::new(), None);
        deployed(&deploys, 4, &["four"], Some(&rollout)).await;
        deployed(&deploys, 5, &["five"], Some(&rollout)).await;
        assert_eq!(deploys.clear(1).await.unwrap().deploys, 0);
    }

    #[tokio::test]
    async fn an_upload_in_the_midst_is_not_added_without_its_files() {
        let store = MemoryStore::new();
        let deploys = Deploys::new(Arc::new(store.clone()));
        deployed(&deploys, 1, &["one"], None).await;
        let upload = deploys.begin_upload().await.unwrap();
        deploys.clear(1).await.unwrap();
        let (record, none) = (Record::of(Frontend::Empty), Commits::default());
        let added = deploys.add(2, &record, &none, None, &upload).await;
        assert!(matches!(added, Err(NotAdded::Void)));
        // Two at once.
        let held = Operation::put(plain(CLEARING), *b"");
        store.transact(Transaction::of([held])).await.unwrap();
        assert!(matches!(deploys.clear(1).await, Err(NotCleared::Busy)));
    }
}
