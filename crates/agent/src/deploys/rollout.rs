//! Deploys that hosts take one after the other.
//!
//! Which hosts may take a deploy is beside its record, `/deploy/ID/rollout`, as long as that is not all of them: those that are named, and of the
//! others all whose place is not behind a certain one. A host's place is a hash of its name and the deploy, so neighbours by name, who often do the
//! same work, are not gone over together; and it needs one short value however many hosts there are.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use setpoint_world::{Backoff, Operation, State, StoreError, Transaction, Value};
use sha2::{Digest, Sha256};

use super::{Deploys, key};

const VERSION: u32 = 1;

/// How long somebody who is silent still counts as steering.
const STEERED: Duration = Duration::from_secs(10);

/// Which hosts may take a deploy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollout {
    version: u32,
    /// These may, the first ones.
    pub canaries: BTreeSet<String>,
    /// Of all others those up to this place.
    pub until: Option<Place>,
    /// How many of those that may take it may at most be without it at a time; none: all.
    pub at_once: Option<usize>,
    /// Why it does not go on.
    pub stopped: Option<String>,
}

/// Where a host comes in a rollout. Other hosts come first in the next one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place(String);

impl Place {
    /// Of a host in the rollout of a deploy.
    pub fn of(host: &str, id: u64) -> Place {
        let digest = Sha256::digest(format!("{id}/{host}"));
        Place(digest[..16].iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

impl Rollout {
    /// One in which nobody may take it yet but the canaries.
    pub fn new(canaries: BTreeSet<String>, at_once: Option<usize>) -> Rollout {
        Rollout {
            version: VERSION,
            canaries,
            until: None,
            at_once,
            stopped: None,
        }
    }

    /// Whether a host may take the deploy.
    pub fn lets(&self, host: &str, id: u64) -> bool {
        let is_before = |until: &Place| Place::of(host, id) <= *until;
        self.canaries.contains(host) || self.until.as_ref().is_some_and(is_before)
    }

    /// Reads one.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn read(value: &[u8]) -> Result<Rollout, String> {
        let rollout: Rollout =
            serde_json::from_slice(value).map_err(|error| format!("it cannot be read: {error}"))?;
        match rollout.version {
            VERSION => Ok(rollout),
            other => Err(format!(
                "it is of version {other}, and this program knows version {VERSION}"
            )),
        }
    }

    /// As it is written.
    pub(super) fn value(&self) -> Value {
        let text = serde_json::to_vec(self).expect("it has only texts and numbers");
        text.into()
    }
}

impl Rollout {
    /// How it stands, in a few words, by whether somebody steers it.
    pub fn in_words(&self, is_steered: bool) -> String {
        match &self.stopped {
            Some(why) => format!("stopped: {why}"),
            None if is_steered => "being rolled out".to_owned(),
            None => "stopped: whoever rolled it out is gone".to_owned(),
        }
    }
}

impl Deploys {
    /// Says that somebody steers the rollout of a deploy, for as long as this is waited for. It goes with the process, however that ends.
    pub async fn say_steered(&self, id: u64) -> Infallible {
        let mut backoff = Backoff::default();
        loop {
            // A store that is away is told of by what the rollout itself asks of it.
            if let Ok(lease) = self.store.lease(STEERED).await {
                let put = Operation::put_leased(key(id, "steered"), Vec::new(), lease.id());
                if self.store.transact(Transaction::of([put])).await.is_ok() {
                    backoff.reset();
                    lease.lost().await;
                }
            }
            tokio::time::sleep(backoff.pause()).await;
        }
    }

    /// Says that nobody does any more.
    pub async fn say_not_steered(&self, id: u64) {
        let delete = Operation::Delete(key(id, "steered").into());
        // Otherwise it goes with the lease.
        let _ = self.store.transact(Transaction::of([delete])).await;
    }

    /// Changes who may take a deploy, if it is still as it was: `None` is everybody. Answers whether it was.
    pub async fn set_rollout(
        &self,
        id: u64,
        was: &Rollout,
        now: Option<&Rollout>,
    ) -> Result<bool, StoreError> {
        let key = key(id, "rollout");
        let operation = match now {
            Some(now) => Operation::put(key.clone(), now.value()),
            None => Operation::Delete(key.clone().into()),
        };
        let transaction = Transaction::of([operation]).when(key, State::Value(was.value()));
        Ok(self.store.transact(transaction).await?.is_done())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_let_in_by_name_and_by_place() {
        let mut rollout = Rollout::new(BTreeSet::from(["a".to_owned()]), Some(2));
        let hosts = ["a", "b", "c", "d", "e"];
        let may = |rollout: &Rollout| hosts.iter().filter(|host| rollout.lets(host, 7)).count();
        assert_eq!(may(&rollout), 1);
        let mut others: Vec<&str> = hosts[1..].to_vec();
        others.sort_by_key(|host| Place::of(host, 7));
        for (at, host) in others.iter().enumerate() {
            rollout.until = Some(Place::of(host, 7));
            assert_eq!(may(&rollout), at + 2);
        }
        let mut later: Vec<&str> = hosts[1..].to_vec();
        later.sort_by_key(|host| Place::of(host, 8));
        assert_ne!(others, later, "each deploy begins elsewhere");
        assert_eq!(Rollout::read(&rollout.value()), Ok(rollout));
        let newer = br#"{"version":2,"canaries":[],"until":null,"at_once":null,"stopped":null}"#;
        let why = "it is of version 2, and this program knows version 1";
        assert_eq!(Rollout::read(newer).unwrap_err(), why);
        assert!(Rollout::read(b"nonsense").is_err());
    }
}
