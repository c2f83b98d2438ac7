//! Deploys: programs that are published to all hosts of a cluster.
//!
//! ```text
//! /deploy/ID/payload   the record, JSON        /deploy/ID/hash           the commit, where there is one
//! /deploy/ID/rollout   who may take it, where that is not everybody
//! /deploy/ID/steered   that somebody steers that; it goes with who does
//! /fs/deploy/NAME      which files it has      /storage/HASH/NUMBER      contents, in parts, each compressed; the same one is stored once
//! ```
//!
//! Ids follow each other without gaps: whoever adds one compares and sets. Members run the newest that they may take.

mod clearing;
mod fetching;
mod files;
mod following;
mod proposing;
mod publishing;
mod record;
mod rollout;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use setpoint_world::{Entry, Key, Operation, Outcome, Selection, State, Store, StoreError, Transaction};

pub use clearing::{CLEARED, CLEARING, NotCleared};
pub use files::{DeployedFile, FILES, LARGEST, ListedFile, STORAGE, Upload};
pub use following::{Deployed, Follower};
pub(crate) use proposing::Proposed;
pub use proposing::{ANSWERS, Answer, Answers, PROPOSALS, Proposal};
pub(crate) use publishing::deploy_of;
pub use publishing::{DeployedProgram, record_of};
pub use record::{Frontend, Record};
pub use rollout::{Place, Rollout};

/// Below it are the deploys.
pub const DEPLOYS: &str = "/deploy/";

/// The deploys of a cluster.
#[derive(Clone)]
pub struct Deploys {
    store: Arc<dyn Store>,
}

/// A deploy, as the store has it.
pub struct Stored {
    /// Its number, from 1.
    pub id: u64,
    /// What it says; what is wrong with it where that cannot be read.
    pub record: Result<Record, String>,
    /// The commit that the next one must follow: that from which it was made, or, where somebody went back, that of the deploy before.
    pub hash: Option<String>,
    /// Who may take it where that is not everybody; what is wrong with that where it cannot be read.
    pub rollout: Option<Result<Rollout, String>>,
    /// Whether somebody lets further hosts take it.
    pub is_steered: bool,
}

impl Stored {
    /// The commit from which it was made, by all that there are.
    pub fn made_from<'s>(&'s self, all: &'s [Stored]) -> Option<&'s str> {
        let original = match self.copy_of() {
            Some(id) => all.iter().find(|one| one.id == id)?,
            None => self,
        };
        original.hash.as_deref()
    }

    /// The one whose copy it is, where somebody went back.
    pub fn copy_of(&self) -> Option<u64> {
        self.record.as_ref().ok()?.copy_of
    }

    /// Whether a host may take it. What cannot be read lets nobody in.
    pub fn lets(&self, host: &str) -> bool {
        match &self.rollout {
            None => true,
            Some(Ok(rollout)) => rollout.lets(host, self.id),
            Some(Err(_)) => false,
        }
    }
}

/// Between which commits a deploy is.
#[derive(Debug, Clone, Default)]
pub struct Commits {
    /// The one that it is made from.
    pub hash: Option<String>,
    /// The one that the deploy before must be of, where that is compared.
    pub previous: Option<String>,
}

/// Why a deploy was not added.
#[derive(Debug)]
pub enum NotAdded {
    /// Somebody else was faster, or a record is missing: the number is taken, or the one before it is not there.
    Raced(String),
    /// Old deploys were cleared away, perhaps with files of this one.
    Void,
    /// The commits do not follow each other.
    Chain(String),
    /// The store did not do it.
    Store(StoreError),
}

impl fmt::Display for NotAdded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotAdded::Raced(why) | NotAdded::Chain(why) => f.write_str(why),
            NotAdded::Void => {
                f.write_str("old deploys were cleared away meanwhile, perhaps with files of this one")
            }
            NotAdded::Store(error) => error.fmt(f),
        }
    }
}

impl From<StoreError> for NotAdded {
    fn from(error: StoreError) -> NotAdded {
        NotAdded::Store(error)
    }
}

impl Deploys {
    /// The deploys in this store.
    pub fn new(store: Arc<dyn Store>) -> Deploys {
        Deploys { store }
    }

    /// The store that they are in.
    pub fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    /// All of them, the oldest first.
    pub async fn all(&self) -> Result<Vec<Stored>, StoreError> {
        let found = self.store.read(&[Selection::prefix(DEPLOYS)]).await?;
        let by_id = |what| -> BTreeMap<u64, &Entry> {
            let own = found
                .all()
                .filter_map(|entry| Some((id_of(&entry.key, what)?, entry)));
            own.collect()
        };
        let (hashes, rollouts, steered) = (by_id("hash"), by_id("rollout"), by_id("steered"));
        let all = by_id("payload").into_iter().map(|(id, entry)| Stored {
            id,
            record: Record::read(entry.text().unwrap_or_default()),
            hash: hashes.get(&id).and_then(|entry| entry.text().map(str::to_owned)),
            rollout: rollouts.get(&id).map(|entry| Rollout::read(&entry.value)),
            is_steered: steered.contains_key(&id),
        });
        Ok(all.collect())
    }

    /// The number of the newest; 0 where there is none.
    pub async fn newest(&self) -> Result<u64, StoreError> {
        let found = self.store.read(&[Selection::prefix(DEPLOYS)]).await?;
        let ids = found.all().filter_map(|entry| id_of(&entry.key, "payload"));
        Ok(ids.max().unwrap_or(0))
    }

    /// The commit of one of them; none where it is of none, or not there.
    pub async fn hash(&self, id: u64) -> Result<Option<String>, StoreError> {
        let found = self.store.read(&[key(id, "hash").into()]).await?;
        let text = found
            .all()
            .next()
            .and_then(|entry| entry.text().map(str::to_owned));
        Ok(text)
    }

    /// One of them; none where it is not there.
    pub async fn get(&self, id: u64) -> Result<Option<Stored>, StoreError> {
        let what = ["payload", "hash", "rollout", "steered"].map(|what| key(id, what).into());
        let found = self.store.read(&what).await?;
        let entry = |at: usize| found.entries.get(at).and_then(|entries| entries.first());
        Ok(entry(0).map(|payload| Stored {
            id,
            record: Record::read(payload.text().unwrap_or_default()),
            hash: entry(1).and_then(|entry| entry.text().map(str::to_owned)),
            rollout: entry(2).map(|entry| Rollout::read(&entry.value)),
            is_steered: entry(3).is_some(),
        }))
    }

    /// Adds one under this number, which must be the next one, for all hosts or those that a rollout lets.
    pub async fn add(
        &self,
        id: u64,
        record: &Record,
        commits: &Commits,
        rollout: Option<&Rollout>,
        upload: &Upload,
    ) -> Result<(), NotAdded> {
        let payload = key(id, "payload");
        let mut operations = vec![Operation::put(payload.clone(), record.text().into_bytes())];
        if let Some(hash) = &commits.hash {
            operations.push(Operation::put(key(id, "hash"), hash.as_bytes()));
        }
        operations.extend(rollout.map(|rollout| Operation::put(key(id, "rollout"), rollout.value())));
        let mut transaction = Transaction::of(operations)
            .when(payload.clone(), State::Absent)
            .otherwise(payload);
        if id > 1 {
            transaction = transaction
                .when(key(id - 1, "payload"), State::Present)
                .otherwise(key(id - 1, "payload"))
                .otherwise(key(id - 1, "hash"));
            if let (Some(_), Some(previous)) = (&commits.hash, &commits.previous) {
                let is = State::Value(previous.as_bytes().into());
                transaction = transaction.when(key(id - 1, "hash"), is);
            }
        }
        let transaction = upload.must_be_whole(transaction);
        let there = match self.store.transact(transaction).await? {
            Outcome::Done(_) => return Ok(()),
            Outcome::Refused(there) => there,
        };
        if upload.is_void(&there) {
            return Err(NotAdded::Void);
        }
        let first = |place: usize| there.entries.get(place).and_then(|found| found.first());
        Err(refusal(
            id,
            commits,
            first(0).is_some(),
            first(1).is_some(),
            first(2),
        ))
    }

    /// Adds one under the next number, whatever that is when it is done.
    pub async fn add_next(&self, record: &Record, upload: &Upload) -> Result<u64, NotAdded> {
        loop {
            let id = self.newest().await? + 1;
            match self.add_unchained(id, record, None, upload).await {
                Ok(()) => return Ok(id),
                Err(NotAdded::Raced(_)) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Adds one under this number, which must be the next one, without holding it against the commits of the one before. One that goes back to an
    /// earlier one takes nothing away from the commits: what is committed next follows those that were there before.
    pub async fn add_unchained(
        &self,
        id: u64,
        record: &Record,
        rollout: Option<&Rollout>,
        upload: &Upload,
    ) -> Result<(), NotAdded> {
        let commits = match record.copy_of {
            Some(_) => Commits {
                hash: self.hash(id - 1).await?,
                previous: None,
            },
            None => Commits::default(),
        };
        self.add(id, record, &commits, rollout, upload).await
    }
}

/// Says why a deploy was refused, by what there is.
fn refusal(
    id: u64,
    commits: &Commits,
    is_taken: bool,
    has_previous: bool,
    previous: Option<&Entry>,
) -> NotAdded {
    if is_taken {
        return NotAdded::Raced(format!("somebody else has made deploy {id} meanwhile"));
    }
    if id > 1 && !has_previous {
        return NotAdded::Raced(format!("deploy {} is not there, which would come before", id - 1));
    }
    let is = previous.and_then(Entry::text);
    NotAdded::Chain(match (is, &commits.hash, &commits.previous) {
        (Some(is), Some(hash), _) if is == hash => {
            format!(
                "there is nothing new to deploy: deploy {} is of this commit, {hash}",
                id - 1
            )
        }
        (Some(is), _, Some(wanted)) => {
            format!(
                "deploy {} is of commit {is}, and this commit follows {wanted}",
                id - 1
            )
        }
        (None, _, Some(wanted)) => {
            format!(
                "deploy {} is of no commit, and this commit follows {wanted}",
                id - 1
            )
        }
        _ => "the store has changed meanwhile".to_owned(),
    })
}

fn key(id: u64, what: &str) -> Key {
    Key::new(format!("{DEPLOYS}{id}/{what}")).expect("it is not empty")
}

fn id_of(key: &Key, what: &str) -> Option<u64> {
    let (id, rest) = key.as_str().strip_prefix(DEPLOYS)?.split_once('/')?;
    (rest == what).then(|| id.parse().ok())?
}

#[cfg(test)]
mod tests {
    use setpoint_world::MemoryStore;

    use super::*;

    fn commits(hash: &str, previous: &str) -> Commits {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Commits {
            hash: some(hash),
            previous: some(previous),
        }
    }

    #[tokio::test]
    async fn deploys_follow_each_other_and_so_do_their_commits() {
        let deploys = Deploys::new(Arc::new(MemoryStore::new()));
        let record = Record::of(Frontend::Empty);
        let upload = deploys.begin_upload().await.unwrap();
        let add = async |id, commits: Commits| {
            let added = deploys.add(id, &record, &commits, None, &upload).await;
            added.map_err(|why| why.to_string())
        };
        assert_eq!(deploys.newest().await, Ok(0));
        assert_eq!(
            add(2, Commits::default()).await,
            Err("deploy 1 is not there, which would come before".into())
        );
        assert_eq!(
            add(1, commits("aa", "99")).await,
            Ok(()),
            "nothing comes before the first"
        );
        assert_eq!(
            add(1, commits("bb", "aa")).await,
            Err("somebody else has made deploy 1 meanwhile".into())
        );
        let nothing = "there is nothing new to deploy: deploy 1 is of this commit, aa";
        assert_eq!(add(2, commits("aa", "99")).await, Err(nothing.into()));
        let other = "deploy 1 is of commit aa, and this commit follows bb";
        assert_eq!(add(2, commits("cc", "bb")).await, Err(other.into()));
        assert_eq!(add(2, commits("cc", "")).await, Ok(()), "it is not compared");
        assert_eq!(add(3, Commits::default()).await, Ok(()));
        let none = "deploy 3 is of no commit, and this commit follows cc";
        assert_eq!(add(4, commits("dd", "cc")).await, Err(none.into()));
        assert_eq!(deploys.newest().await, Ok(3));
        let all = deploys.all().await.unwrap();
        let all: Vec<(u64, Option<&str>)> = all.iter().map(|one| (one.id, one.hash.as_deref())).collect();
        assert_eq!(all, [(1, Some("aa")), (2, Some("cc")), (3, None)]);
        assert_eq!(deploys.add_next(&record, &upload).await.ok(), Some(4));
        // Whoever goes back does not stand in the way of who mends it and goes on.
        assert_eq!(add(5, commits("ee", "")).await, Ok(()));
        let mut back = record.clone();
        back.copy_of = Some(2);
        assert_eq!(deploys.add_next(&back, &upload).await.ok(), Some(6));
        assert_eq!(deploys.add_next(&back, &upload).await.ok(), Some(7));
        assert_eq!(add(8, commits("ff", "ee")).await, Ok(()));
        let all = deploys.all().await.unwrap();
        let made_from: Vec<Option<&str>> = all[4..].iter().map(|one| one.made_from(&all)).collect();
        assert_eq!(made_from, [Some("ee"), Some("cc"), Some("cc"), Some("ff")]);
    }
}
