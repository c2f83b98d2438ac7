//! Elections: which of the hosts that stand for something are chosen, and the service of the store through which they stand.
//!
//! What is chosen follows from who stands, with which options, and who was chosen before. Whoever decides comes to the same result.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use setpoint_engine::{Failure, Watcher, Words, async_trait};

/// The options with which a host stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidacy {
    /// The rules by which hosts are chosen.
    pub strategy: Strategy,
    /// How many are chosen; not 0.
    pub max: u32,
    /// Whether it goes on to stand when it is away.
    pub persist: bool,
    /// How long after it has gone it still counts; none where that was not said.
    pub ttl: Option<Duration>,
}

/// How hosts are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// Who was chosen stays; who comes is put at the end.
    #[default]
    Kept,
    /// The first by name.
    Alphabetical,
}

impl Words for Strategy {
    const ONE: &'static str = "a strategy";

    fn words() -> impl Iterator<Item = (&'static str, Strategy)> {
        [("rr", Strategy::Kept), ("alpha", Strategy::Alphabetical)].into_iter()
    }
}

impl Default for Candidacy {
    fn default() -> Candidacy {
        Candidacy {
            strategy: Strategy::default(),
            max: 1,
            persist: false,
            ttl: None,
        }
    }
}

/// What a store says of a host that stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// The options.
    pub candidacy: Candidacy,
    /// Whether it is not what an earlier process has left.
    pub is_current: bool,
}

/// As it is stored: the encoding of queries, keys sorted.
impl fmt::Display for Candidacy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Candidacy {
            strategy,
            max,
            persist,
            ttl,
        } = self;
        write!(f, "maxCount={max}&persist={persist}")?;
        if let Some(ttl) = ttl {
            write!(f, "&sessionTTL={}", ttl.as_secs())?;
        }
        let name = Strategy::words().find(|(_, word)| word == strategy);
        write!(f, "&strategy={}", name.map_or("", |(name, _)| name))
    }
}

impl Candidacy {
    /// What is stored. What cannot be read holds as if it were not set.
    #[must_use]
    pub fn stored(text: &str) -> Candidacy {
        let mut candidacy = Candidacy::default();
        for (key, value) in text.split('&').filter_map(|field| field.split_once('=')) {
            match key {
                "maxCount" => candidacy.max = value.parse().ok().filter(|max| *max > 0).unwrap_or(1),
                "persist" => candidacy.persist = value == "true",
                "sessionTTL" => {
                    let seconds = value.parse().ok().filter(|seconds| *seconds > 0);
                    candidacy.ttl = seconds.map(Duration::from_secs);
                }
                "strategy" => {
                    let found = Strategy::words().find(|(name, _)| *name == value);
                    candidacy.strategy = found.map(|(_, strategy)| strategy).unwrap_or_default();
                }
                _ => {}
            }
        }
        candidacy
    }
}

/// The hosts that are chosen of the candidates, when these were chosen before, in the order in which they were.
///
/// Where options differ, those of the host that decides hold, or else those with the smallest `max`: a host that writes a larger number
/// changes nothing for the others.
#[must_use]
pub fn elected(candidates: &BTreeMap<String, Candidacy>, before: &[String], decider: &str) -> Vec<String> {
    let smallest = || candidates.values().min_by_key(|candidacy| candidacy.max);
    let Some(Candidacy { strategy, max, .. }) = candidates.get(decider).or_else(smallest) else {
        return Vec::new();
    };
    let mut chosen: Vec<String> = Vec::new();
    if *strategy == Strategy::Kept {
        for host in before.iter().filter(|host| candidates.contains_key(*host)) {
            if !chosen.contains(host) {
                chosen.push(host.clone());
            }
        }
    }
    let others: Vec<String> = candidates
        .keys()
        .filter(|host| !chosen.contains(host))
        .cloned()
        .collect();
    chosen.extend(others);
    chosen.truncate(usize::try_from(*max).unwrap_or(usize::MAX));
    chosen
}

/// The elections of a store that hosts share.
#[async_trait]
pub trait Elections: Send + Sync {
    /// What the store says of this host; none if it does not stand.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn candidacy(&self, namespace: &str) -> Result<Option<Recorded>, Failure>;

    /// Has this host stand from now on.
    ///
    /// # Errors
    /// When the store cannot be written.
    async fn stand(&self, namespace: &str, candidacy: Candidacy) -> Result<(), Failure>;

    /// Has this host stand no more.
    ///
    /// # Errors
    /// When the store cannot be written.
    async fn withdraw(&self, namespace: &str) -> Result<(), Failure>;

    /// Lets this host decide when it is its turn, if it is a candidate. Waits a few seconds until the result takes its candidacy or withdrawal into
    /// account, and reports a warning if no host decides.
    async fn elect(&self, namespace: &str, candidacy: Option<Candidacy>);

    /// Follows a namespace for a resource: its own candidacy and the result.
    ///
    /// # Errors
    /// When the store cannot be followed.
    async fn follow(&self, namespace: &str, watcher: Watcher) -> Result<(), Failure>;
}

/// The elections as a service of kinds. Clones are one and the same.
#[derive(Clone)]
pub struct SharedElections(Arc<dyn Elections>);

impl SharedElections {
    /// These.
    #[must_use]
    pub fn new(elections: Arc<dyn Elections>) -> SharedElections {
        SharedElections(elections)
    }
}

impl std::ops::Deref for SharedElections {
    type Target = dyn Elections;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Debug for SharedElections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedElections")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Strategy;
    use super::*;

    fn standing(hosts: &[&str], max: u32, strategy: Strategy) -> BTreeMap<String, Candidacy> {
        let candidacy = Candidacy {
            max,
            strategy,
            ..Candidacy::default()
        };
        hosts.iter().map(|host| ((*host).to_owned(), candidacy)).collect()
    }

    fn chosen(hosts: &[&str], max: u32, strategy: Strategy, before: &[&str]) -> Vec<String> {
        let before: Vec<String> = before.iter().map(|host| (*host).to_owned()).collect();
        elected(&standing(hosts, max, strategy), &before, "")
    }

    #[test]
    fn who_was_chosen_stays_and_who_goes_is_replaced() {
        assert_eq!(chosen(&["a", "b", "c"], 2, Strategy::Kept, &[]), ["a", "b"]);
        assert_eq!(
            chosen(&["a", "b", "c"], 2, Strategy::Kept, &["c", "b"]),
            ["c", "b"]
        );
        assert_eq!(chosen(&["a", "c"], 2, Strategy::Kept, &["c", "b"]), ["c", "a"]);
        assert_eq!(
            chosen(&["a", "b", "c"], 2, Strategy::Alphabetical, &["c", "b"]),
            ["a", "b"]
        );
        assert_eq!(chosen(&[], 2, Strategy::Kept, &["c"]), [""; 0]);
    }

    #[test]
    fn a_host_that_writes_a_larger_number_changes_nothing_for_the_others() {
        let mut candidates = standing(&["a", "b", "c"], 1, Strategy::Kept);
        candidates.extend(standing(&["z"], 100, Strategy::Alphabetical));
        let before = ["b".to_owned()];
        assert_eq!(elected(&candidates, &before, "other"), ["b"]);
        assert_eq!(elected(&candidates, &before, "a"), ["b"]);
        let own = elected(&candidates, &before, "z");
        assert_eq!(own.len(), 4, "who decides has its own options");
    }

    #[test]
    fn options_are_read_as_they_are_written() {
        let all = Candidacy {
            strategy: Strategy::Alphabetical,
            max: 3,
            persist: true,
            ttl: Some(Duration::from_secs(7)),
        };
        assert_eq!(
            all.to_string(),
            "maxCount=3&persist=true&sessionTTL=7&strategy=alpha"
        );
        for candidacy in [all, Candidacy::default()] {
            assert_eq!(Candidacy::stored(&candidacy.to_string()), candidacy);
        }
        assert_eq!(
            Candidacy::stored("hostsFilter=a&maxCount=0&x&strategy=?"),
            Candidacy::default()
        );
    }

    proptest! {
        #[test]
        fn a_result_is_of_candidates_each_once_and_no_more_than_wanted(
            hosts in proptest::collection::btree_set("[a-e]", 0..5),
            before in proptest::collection::vec("[a-e]", 0..5),
            max in 1u32..4,
            kept in any::<bool>(),
        ) {
            let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
            let strategy = if kept { Strategy::Kept } else { Strategy::Alphabetical };
            let candidates = standing(&hosts, max, strategy);
            let result = elected(&candidates, &before, "");
            prop_assert_eq!(result.len(), hosts.len().min(max as usize));
            for (index, host) in result.iter().enumerate() {
                prop_assert!(candidates.contains_key(host) && !result[..index].contains(host));
            }
            prop_assert_eq!(elected(&candidates, &result, ""), result.clone(), "it stays when nothing changes");
        }
    }
}
