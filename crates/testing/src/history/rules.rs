//! The rules, one after the other over all revisions.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value as Json;

use super::{Broken, Ran, Recorded, Wanted};

const DECIDERS: &str = "/scheduler/election/";
const CANDIDATES: &str = "/scheduler/hostname/";
const RESULTS: &str = "/scheduler/schedule/";
const MEMBERS: &str = "/members/";
const DEPLOYS: &str = "/deploy/";

/// How everything is, at one revision.
#[derive(Default)]
pub(super) struct State {
    entries: BTreeMap<String, Recorded>,
    /// What each deploy said first.
    payloads: BTreeMap<u64, String>,
    /// Who has ever stood: namespace and host.
    stood: BTreeSet<(String, String)>,
    /// The most that those wanted who have stood since a result was written.
    most: BTreeMap<String, usize>,
    /// Since when a host is chosen that does not stand: by namespace and host.
    strangers: BTreeMap<(String, String), Option<Duration>>,
}

impl State {
    /// Takes what one revision changes.
    pub(super) fn take(&mut self, batch: &[Recorded], wanted: &Wanted, broken: &mut Vec<Broken>) {
        let could_decide = self.below(DECIDERS).next().is_some();
        for change in batch {
            self.look(change, could_decide, wanted, broken);
            match change.value {
                Some(_) => drop(self.entries.insert(change.key.clone(), change.clone())),
                None => drop(self.entries.remove(&change.key)),
            }
        }
        let results: BTreeSet<String> = batch
            .iter()
            .filter_map(|change| below(&change.key, RESULTS))
            .collect();
        self.look_at_results(batch, &results, broken);
        self.look_at_strangers(batch[0].at, wanted, broken);
    }

    /// A change by itself, before it is made.
    fn look(&mut self, change: &Recorded, could_decide: bool, wanted: &Wanted, broken: &mut Vec<Broken>) {
        let Recorded { key, revision, .. } = change;
        let revision = *revision;
        if change.value.is_none() && wanted.kept.iter().any(|begin| key.starts_with(begin)) {
            broken.push(Broken::Deleted {
                key: key.clone(),
                revision,
            });
        }
        let is_leased = key.starts_with(MEMBERS) || key.starts_with(DECIDERS);
        if is_leased && change.value.is_some() && change.lease == 0 {
            broken.push(Broken::NoLease { key: key.clone() });
        }
        if let Some(namespace) = below(key, RESULTS)
            && !could_decide
        {
            broken.push(Broken::NobodyDecides { namespace, revision });
        }
        if let (Some((host, namespace)), Some(value)) = (candidate(key), &change.value) {
            let most = self.most.entry(namespace.clone()).or_default();
            *most = (*most).max(most_of(value));
            self.stood.insert((namespace, host));
        }
        if let (Some(deploy), Some(value)) = (deploy(key), &change.value) {
            match self.payloads.get(&deploy) {
                Some(first) if first != value => broken.push(Broken::Rewritten { deploy, revision }),
                Some(_) => {}
                None if deploy > 1 && !self.payloads.contains_key(&(deploy - 1)) => {
                    broken.push(Broken::Gap { deploy });
                }
                None => {}
            }
            self.payloads.entry(deploy).or_insert_with(|| value.clone());
        }
    }

    fn look_at_results(&mut self, batch: &[Recorded], written: &BTreeSet<String>, broken: &mut Vec<Broken>) {
        let revision = batch[0].revision;
        for namespace in written {
            let chosen = self.chosen(namespace);
            let most = self.most.get(namespace).copied().unwrap_or(0);
            let different: BTreeSet<&String> = chosen.iter().collect();
            if chosen.len() > most {
                let namespace = namespace.clone();
                broken.push(Broken::TooMany { namespace, revision });
            }
            if different.len() < chosen.len() {
                let namespace = namespace.clone();
                broken.push(Broken::Twice { namespace, revision });
            }
            for host in different {
                if !self.stood.contains(&(namespace.clone(), host.clone())) {
                    let (namespace, host) = (namespace.clone(), host.clone());
                    broken.push(Broken::NeverStood { namespace, host });
                }
            }
            // Whoever decides next has seen who stands now, or may still have seen who stood just before.
            let now = self.below(CANDIDATES).filter_map(|entry| {
                let (_, of) = candidate(&entry.key)?;
                (of == *namespace).then(|| entry.value.as_deref().map_or(0, most_of))
            });
            let now = now.max().unwrap_or(0);
            self.most.insert(namespace.clone(), now.max(chosen.len()));
        }
    }

    fn look_at_strangers(&mut self, at: Option<Duration>, wanted: &Wanted, broken: &mut Vec<Broken>) {
        let results: Vec<String> = self
            .below(RESULTS)
            .filter_map(|entry| below(&entry.key, RESULTS))
            .collect();
        let mut now = BTreeMap::new();
        for namespace in results {
            for host in self.chosen(&namespace) {
                if !self
                    .entries
                    .contains_key(&format!("{CANDIDATES}{host}/{namespace}"))
                {
                    let key = (namespace.clone(), host);
                    let since = self.strangers.get(&key).copied().unwrap_or(at);
                    now.insert(key, since);
                }
            }
        }
        let before = std::mem::replace(&mut self.strangers, now);
        for ((namespace, host), since) in before {
            let is_still = self.strangers.contains_key(&(namespace.clone(), host.clone()));
            let (Some(since), Some(at), Some(limit), false) = (since, at, wanted.out_within, is_still) else {
                continue;
            };
            let after = at.saturating_sub(since);
            if after > limit {
                let after = Some(after);
                broken.push(Broken::StaysChosen {
                    namespace,
                    host,
                    after,
                });
            }
        }
    }

    /// There is no more: what must have come of it.
    pub(super) fn end(self, ran: &[Ran], wanted: &Wanted, broken: &mut Vec<Broken>) {
        for deploy in &wanted.published {
            if !self.payloads.contains_key(deploy) {
                broken.push(Broken::Lost { deploy: *deploy });
            }
        }
        for Ran { host, deploys } in ran {
            let mut last = 0;
            for deploy in deploys {
                let (host, deploy) = (host.clone(), *deploy);
                if deploy <= last {
                    broken.push(Broken::RanAgain { host, deploy });
                } else if !self.payloads.contains_key(&deploy) {
                    broken.push(Broken::RanUnknown { host, deploy });
                }
                last = last.max(deploy);
            }
        }
        for (namespace, host) in self.strangers.keys().cloned() {
            let after = None;
            broken.push(Broken::StaysChosen {
                namespace,
                host,
                after,
            });
        }
        let is = |key: &String| self.entries.get(key).and_then(|entry| entry.value.clone());
        for (key, value) in &wanted.in_the_end {
            if is(key) != *value {
                let (key, is) = (key.clone(), is(key));
                broken.push(Broken::Wrong { key, is });
            }
        }
        for begin in &wanted.nothing_else_below {
            for entry in self
                .below(begin)
                .filter(|entry| !wanted.in_the_end.contains_key(&entry.key))
            {
                let (key, is) = (entry.key.clone(), entry.value.clone());
                broken.push(Broken::Wrong { key, is });
            }
        }
        let newest = self.payloads.keys().next_back().copied();
        for host in &wanted.right_in_the_end {
            let says = is(&format!("{MEMBERS}{host}"));
            let report: Json = says
                .as_deref()
                .and_then(|text| serde_json::from_str(text).ok())
                .unwrap_or_default();
            if report["running"].as_u64() != newest || report["state"] != "right" {
                let host = host.clone();
                broken.push(Broken::NotRight { host, says });
            }
        }
    }

    fn below<'a>(&'a self, begin: &'a str) -> impl Iterator<Item = &'a Recorded> {
        let found = self.entries.range(begin.to_owned()..);
        found
            .map(|(_, entry)| entry)
            .take_while(move |entry| entry.key.starts_with(begin))
    }

    fn chosen(&self, namespace: &str) -> Vec<String> {
        let result = self.entries.get(&format!("{RESULTS}{namespace}"));
        let text = result
            .and_then(|entry| entry.value.as_deref())
            .unwrap_or_default();
        text.split(',')
            .filter(|host| !host.is_empty())
            .map(str::to_owned)
            .collect()
    }
}

fn below(key: &str, begin: &str) -> Option<String> {
    key.strip_prefix(begin).map(str::to_owned)
}

/// The host and the namespace of a candidate's key.
fn candidate(key: &str) -> Option<(String, String)> {
    let (host, namespace) = key.strip_prefix(CANDIDATES)?.split_once('/')?;
    Some((host.to_owned(), namespace.to_owned()))
}

/// The number of a deploy whose key it is.
fn deploy(key: &str) -> Option<u64> {
    key.strip_prefix(DEPLOYS)?.strip_suffix("/payload")?.parse().ok()
}

/// How many a candidate wants to be chosen.
fn most_of(options: &str) -> usize {
    let most = options
        .split('&')
        .find_map(|option| option.strip_prefix("maxCount="));
    most.and_then(|most| most.parse().ok()).unwrap_or(1)
}
