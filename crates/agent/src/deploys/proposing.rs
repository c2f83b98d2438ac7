//! Proposed deploys: each member plans one, and no member runs it.
//!
//! ```text
//! /proposal/NAME        the record of the deploy; it goes with the process that asks
//! /proposed/HOST/NAME   the plan of a host, JSON, compressed; it goes after a minute
//! ```

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde::{Deserialize, Serialize};
use setpoint_world::{
    Change, Entry, Key, Lease, Operation, Outcome, Selection, State, Store, StoreError, Transaction, Watch,
    Watched,
};

use super::{Deploys, NotAdded, Record, Upload};

/// The prefix of the proposals that members plan.
pub const PROPOSALS: &str = "/proposal/";

/// The prefix of their answers.
pub const ANSWERS: &str = "/proposed/";

/// The time that a proposal survives the process that made it.
const LIVES: Duration = Duration::from_secs(10);

/// The time that an answer stays in the store.
const ANSWER_LIVES: Duration = Duration::from_secs(60);

/// The largest answer in the store, in bytes.
const LARGEST_ANSWER: usize = 256 << 10;

/// The largest answer after decompression, in bytes.
const LARGEST_PLAN: u64 = 64 << 20;

/// The answer of a member to a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// The plan as `setpoint plan --json` prints it.
    Plan(String),
    /// Why the member has no plan.
    Error(String),
}

impl Answer {
    fn read(value: &[u8]) -> Answer {
        let mut bytes = Vec::new();
        let read = ZlibDecoder::new(value).take(LARGEST_PLAN).read_to_end(&mut bytes);
        let answer = read
            .map_err(|error| error.to_string())
            .and_then(|_| serde_json::from_slice(&bytes).map_err(|error| error.to_string()));
        answer.unwrap_or_else(|why| Answer::Error(format!("the answer cannot be read: {why}")))
    }

    fn value(&self) -> Vec<u8> {
        let compressed = self.compressed();
        if compressed.len() <= LARGEST_ANSWER {
            return compressed;
        }
        let why = format!(
            "the plan is too large for the store ({} KiB compressed, at most {} KiB); `setpoint plan` on the host shows it",
            compressed.len() >> 10,
            LARGEST_ANSWER >> 10
        );
        Answer::Error(why).compressed()
    }

    fn compressed(&self) -> Vec<u8> {
        let json = serde_json::to_vec(self).expect("it contains only text");
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        let written = encoder.write_all(&json).and_then(|()| encoder.finish());
        written.expect("memory accepts every write")
    }
}

/// A proposal of this process. It ends when this is dropped.
pub struct Proposal {
    store: Arc<dyn Store>,
    name: String,
    _lease: Lease,
}

impl Deploys {
    /// Asks all members for their plans of a deploy. Its files are stored already.
    ///
    /// # Errors
    /// When the store does not accept it.
    pub async fn propose(&self, record: &Record, upload: &Upload) -> Result<Proposal, NotAdded> {
        let lease = self.store.lease(LIVES).await?;
        let name = lease.id().to_string();
        let put = Operation::put_leased(proposal_key(&name), record.text().into_bytes(), lease.id());
        match self
            .store
            .transact(upload.must_be_whole(Transaction::of([put])))
            .await?
        {
            Outcome::Done(_) => Ok(Proposal {
                store: self.store.clone(),
                name,
                _lease: lease,
            }),
            Outcome::Refused(_) => Err(NotAdded::Void),
        }
    }
}

impl Proposal {
    /// The answers so far, by host, and those that follow.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn answers(&self) -> Result<Answers, StoreError> {
        let selection = Selection::prefix(ANSWERS);
        let found = self.store.read(std::slice::from_ref(&selection)).await?;
        let mut answers = Answers {
            name: self.name.clone(),
            by_host: BTreeMap::new(),
            watch: self.store.watch(selection, found.revision),
        };
        found.all().for_each(|entry| answers.take(entry));
        Ok(answers)
    }

    /// Withdraws the proposal at once.
    pub async fn withdraw(self) {
        let delete = Operation::Delete(proposal_key(&self.name).into());
        // Otherwise it disappears with the lease.
        let _ = self.store.transact(Transaction::of([delete])).await;
    }
}

/// The answers to a proposal.
pub struct Answers {
    /// The name of the proposal.
    name: String,
    /// The answers by host.
    pub by_host: BTreeMap<String, Answer>,
    watch: Watch,
}

impl Answers {
    /// Waits for further answers.
    pub async fn next(&mut self) {
        if let Watched::Changed(batch) = self.watch.next().await {
            for change in batch.changes {
                if let Change::Put(entry) = change {
                    self.take(&entry);
                }
            }
        }
    }

    fn take(&mut self, entry: &Entry) {
        let below = entry.key.as_str().strip_prefix(ANSWERS);
        if let Some((host, name)) = below.and_then(|below| below.rsplit_once('/'))
            && name == self.name
        {
            self.by_host.insert(host.to_owned(), Answer::read(&entry.value));
        }
    }
}

/// A proposal, as a member sees it.
pub(crate) struct Proposed {
    pub(crate) name: String,
    /// The record, or why it cannot be read.
    pub(crate) record: Result<Record, String>,
}

impl Proposed {
    /// The proposal in an entry of the store.
    pub(crate) fn of(entry: &Entry) -> Option<Proposed> {
        let name = entry.key.as_str().strip_prefix(PROPOSALS)?;
        // A directory gets this name.
        let is_plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_plain.then(|| Proposed {
            name: name.to_owned(),
            record: Record::read(entry.text().unwrap_or_default()),
        })
    }

    /// Writes the answer of this host, unless the proposal is gone.
    pub(crate) async fn answer(
        &self,
        store: &dyn Store,
        host: &str,
        answer: &Answer,
    ) -> Result<(), StoreError> {
        let lease = store.lease(ANSWER_LIVES).await?;
        let put = Operation::put_leased(answer_key(&self.name, host), answer.value(), lease.id());
        let transaction = Transaction::of([put]).when(proposal_key(&self.name), State::Present);
        store.transact(transaction).await.map(|_| ())
    }
}

fn proposal_key(name: &str) -> Key {
    Key::new(format!("{PROPOSALS}{name}")).expect("it is not empty")
}

fn answer_key(name: &str, host: &str) -> Key {
    Key::new(format!("{ANSWERS}{host}/{name}")).expect("it is not empty")
}

#[cfg(test)]
mod tests {
    use setpoint_world::MemoryStore;

    use super::*;
    use crate::deploys::Frontend;

    #[tokio::test]
    async fn answers_arrive_until_the_proposal_is_withdrawn() {
        let store = Arc::new(MemoryStore::new());
        let deploys = Deploys::new(store.clone());
        let upload = deploys.begin_upload().await.unwrap();
        let proposal = deploys
            .propose(&Record::of(Frontend::Empty), &upload)
            .await
            .unwrap();
        let found = store.read(&[Selection::prefix(PROPOSALS)]).await.unwrap();
        let proposed = Proposed::of(found.all().next().unwrap()).unwrap();
        assert_eq!(proposed.record, Ok(Record::of(Frontend::Empty)));
        let plan = Answer::Plan("{}".to_owned());
        proposed.answer(&*store, "a", &plan).await.unwrap();
        let mut answers = proposal.answers().await.unwrap();
        let noise: String = (0..2_000_000_u64)
            .map(|number| format!("{:x}", number.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
            .collect();
        proposed.answer(&*store, "b", &Answer::Plan(noise)).await.unwrap();
        answers.next().await;
        assert_eq!(answers.by_host["a"], plan);
        let Answer::Error(why) = &answers.by_host["b"] else {
            panic!("it does not fit");
        };
        assert!(why.starts_with("the plan is too large"), "{why}");
        proposal.withdraw().await;
        proposed.answer(&*store, "c", &plan).await.unwrap();
        let left = store.keys("").await.unwrap();
        let left: Vec<&str> = left.iter().map(Key::as_str).collect();
        assert!(
            left.iter()
                .all(|key| !key.starts_with(PROPOSALS) && !key.contains("/c/")),
            "{left:?}"
        );
        assert_eq!(
            Answer::read(b"damaged"),
            Answer::Error("the answer cannot be read: corrupt deflate stream".to_owned())
        );
    }
}
