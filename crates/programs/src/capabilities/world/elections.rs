//! Elections of a cluster.
//!
//! Each host that stands for something holds a key that goes with its lease, and one by which it may decide: of those that are there the oldest
//! decides for all namespaces, as in etcd's usual election. What it writes is bound to that key and to the result that it has seen, so whoever has
//! lost its lease decides nothing any more, and a result never holds more hosts than are wanted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use setpoint_engine::{Failure, Level, Watcher, async_trait};
use setpoint_resources::{Candidacy, Elections, Recorded, elected};
use setpoint_world::{
    Backoff, Entry, Key, Lease, Operation, Selection, State, Store, StoreError, Transaction,
};
use tokio::task::JoinHandle;

use super::mirror::Seen;
use super::strings::follow;
use super::{Member, SharedWorld, failed, keys};
use crate::capabilities::World;

/// Below it is everything of schedulers.
pub const SCHEDULER: &str = "/scheduler";
/// Below it each schedule has its hosts.
pub const SCHEDULES: &str = "/scheduler/schedule";
/// Below it the hosts stand that can be scheduled.
pub const CANDIDATES: &str = "/scheduler/hostname";
/// Below it the host is elected that decides.
pub const DECIDERS: &str = "/scheduler/election";

/// How long whoever decides may be silent before another one does.
const DECIDER_LIVES: Duration = Duration::from_secs(2);

/// How long a host stands that is silent, where it does not say.
const CANDIDATE_LIVES: Duration = Duration::from_secs(10);

/// The same on one machine, where the system tells that a process has ended.
const PROCESS_LIVES: Duration = Duration::from_secs(1);

/// Time that a host waits for a decision. It is longer than the time after which another host takes over from a silent one.
const DECIDED_WITHIN: Duration = Duration::from_secs(5);

/// How long until a host that may not decide asks again whether it may.
const ASK_AGAIN: Duration = Duration::from_secs(300);

/// How long taking back what this host stands for may take at its end.
const LEAVE_WITHIN: Duration = Duration::from_secs(5);

/// What this host stands for.
#[derive(Default)]
pub(super) struct Standing {
    candidacies: BTreeMap<String, Stood>,
    /// Decides, when it is this host's turn.
    deciding: Option<Deciding>,
}

/// Who decides when it is this host's turn, until it is dropped. What its lease holds is free a little later.
struct Deciding(JoinHandle<()>);

impl Drop for Deciding {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A candidacy of this process.
struct Stood {
    candidacy: Candidacy,
    /// None where it stays when this host goes.
    lease: Option<Arc<Lease>>,
    /// Whether it was told that another process stands in the name of this host.
    has_namesake: bool,
}

/// Who is chosen, as a result says it, in the order in which they were.
pub(super) fn chosen(entry: &Entry) -> Vec<String> {
    let text = entry.text().unwrap_or_default();
    text.split(',')
        .filter(|host| !host.is_empty())
        .map(str::to_owned)
        .collect()
}

#[async_trait]
impl Elections for SharedWorld {
    async fn candidacy(&self, namespace: &str) -> Result<Option<Recorded>, Failure> {
        let member = &self.member;
        let (store, key) = (member.store.clone(), member.candidate(namespace));
        let read = member.ask(async move { store.read(&[key.into()]).await }).await;
        let read = read.map_err(|error| failed("look whether this host stands for", namespace, error))?;
        Ok(read.all().next().map(|entry| {
            let candidacy = Candidacy::stored(entry.text().unwrap_or_default());
            let mut standing = member.standing.lock();
            let stood = standing.candidacies.get_mut(namespace);
            let live = stood.and_then(|stood| {
                let lease = stood.lease.clone().filter(|lease| !lease.is_lost())?;
                Some((stood, lease.id()))
            });
            match live {
                // Both would write for ever what the other has written: the later one holds, and the other one stands again when that goes.
                Some((stood, lease)) if entry.lease.is_some_and(|other| other != lease) => {
                    if !std::mem::replace(&mut stood.has_namesake, true) {
                        member.telling.has_namesake(namespace);
                    }
                    Recorded {
                        candidacy: stood.candidacy,
                        is_current: true,
                    }
                }
                live => Recorded {
                    candidacy,
                    is_current: live.is_some_and(|(_, lease)| entry.lease == Some(lease))
                        || candidacy.persist && entry.lease.is_none(),
                },
            }
        }))
    }

    async fn stand(&self, namespace: &str, candidacy: Candidacy) -> Result<(), Failure> {
        let member = &self.member;
        member.begin_deciding();
        let stood = member.stand(namespace, candidacy).await;
        stood.map_err(|error| failed("stand for", namespace, error))
    }

    async fn withdraw(&self, namespace: &str) -> Result<(), Failure> {
        let member = &self.member;
        // Another host may not be there to decide that this one is out.
        member.begin_deciding();
        let (store, key) = (member.store.clone(), member.candidate(namespace));
        let withdraw = async move {
            store
                .transact(Transaction::of([Operation::Delete(key.into())]))
                .await
        };
        let withdrawn = member.ask(withdraw).await;
        withdrawn.map_err(|error| failed("stand no more for", namespace, error))?;
        member.standing.lock().candidacies.remove(namespace);
        member.standing_changed.send_replace(());
        Ok(())
    }

    async fn elect(&self, namespace: &str, candidacy: Option<Candidacy>) {
        if candidacy.is_some() {
            self.member.begin_deciding();
        }
        self.member.decided(namespace, candidacy).await;
    }

    async fn follow(&self, namespace: &str, watcher: Watcher) -> Result<(), Failure> {
        let member = &self.member;
        let own = member.mirror(member.candidate(namespace).into());
        let result = member.mirror(keys::key(SCHEDULES, &[namespace]).into());
        let (own, result) = (own.look(), result.look());
        tokio::join!(
            follow(&watcher, own),
            follow(&watcher, result),
            member.warn_of_options(namespace, &watcher)
        );
        Ok(())
    }
}

#[async_trait]
impl World for SharedWorld {
    /// Takes back what this host stands for, where nobody said how long it counts without a word.
    async fn leave(&self) {
        let member = &self.member;
        let standing = std::mem::take(&mut *member.standing.lock());
        let leases = standing.candidacies.into_values().filter_map(|stood| {
            let lease = stood.lease?;
            // Who said how long it counts without a word wants to count so long.
            stood.candidacy.ttl.is_none().then_some(lease)
        });
        let leases: Vec<Lease> = leases.filter_map(Arc::into_inner).collect();
        let revoke = member.ask(async move {
            for lease in leases {
                lease.revoke().await?;
            }
            Ok(())
        });
        // What is not given back runs out.
        let _ = tokio::time::timeout(LEAVE_WITHIN, revoke).await;
    }
}

impl Member {
    fn candidate(&self, namespace: &str) -> Key {
        keys::key(CANDIDATES, &[&self.hostname, namespace])
    }

    async fn stand(&self, namespace: &str, candidacy: Candidacy) -> Result<(), StoreError> {
        let lives = candidacy.ttl.unwrap_or(match self.key {
            Some(_) => CANDIDATE_LIVES,
            None => PROCESS_LIVES,
        });
        let kept = {
            let standing = self.standing.lock();
            let stood = standing.candidacies.get(namespace);
            let kept = stood.and_then(|stood| {
                stood
                    .lease
                    .clone()
                    .filter(|_| stood.candidacy.ttl == candidacy.ttl)
            });
            kept.filter(|lease| !lease.is_lost())
        };
        let has_kept = kept.is_some();
        let lease = match (candidacy.persist, kept) {
            (true, _) => None,
            (false, Some(lease)) => Some(lease),
            (false, None) => Some(self.lease(lives).await?),
        };
        let lease = match self.write_candidacy(namespace, candidacy, lease).await {
            // The store has lost it before this host has heard of that.
            Err(StoreError::LeaseEnded) if has_kept => {
                let lease = self.lease(lives).await?;
                self.write_candidacy(namespace, candidacy, Some(lease)).await?
            }
            written => written?,
        };
        let stood = Stood {
            candidacy,
            lease,
            has_namesake: false,
        };
        let mut standing = self.standing.lock();
        standing.candidacies.insert(namespace.to_owned(), stood);
        drop(standing);
        self.standing_changed.send_replace(());
        Ok(())
    }

    async fn lease(&self, lives: Duration) -> Result<Arc<Lease>, StoreError> {
        let store = self.store.clone();
        let lease = self.ask(async move { store.lease(lives).await }).await?;
        let (loss, changed) = (lease.loss(), self.standing_changed.clone());
        self.runtime().spawn(async move {
            loss.await;
            changed.send_replace(());
        });
        Ok(Arc::new(lease))
    }

    /// Whether this host may still be one of the chosen of a namespace, as far as it knows itself: it is not, once its lease has ended.
    pub(super) fn may_be_chosen(&self, namespace: &str, is_away: bool) -> bool {
        match self.standing.lock().candidacies.get(namespace) {
            Some(stood) => stood.lease.as_ref().is_none_or(|lease| !lease.is_lost()),
            None => !is_away,
        }
    }

    async fn write_candidacy(
        &self,
        namespace: &str,
        candidacy: Candidacy,
        lease: Option<Arc<Lease>>,
    ) -> Result<Option<Arc<Lease>>, StoreError> {
        let (key, text) = (self.candidate(namespace), candidacy.to_string());
        let put = match &lease {
            Some(lease) => Operation::put_leased(key, text.as_bytes(), lease.id()),
            None => Operation::put(key, text.as_bytes()),
        };
        let store = self.store.clone();
        self.ask(async move { store.transact(Transaction::of([put])).await })
            .await?;
        Ok(lease)
    }

    /// Says when hosts stand with different options: only one of them can hold.
    async fn warn_of_options(self: &Arc<Self>, namespace: &str, watcher: &Watcher) {
        let mirror = self.mirror(Selection::prefix(format!("{CANDIDATES}/")));
        let mut seen = mirror.look();
        let mut told = false;
        loop {
            let candidates = seen
                .borrow_and_update()
                .candidates()
                .remove(namespace)
                .unwrap_or_default();
            let options: BTreeSet<String> = candidates
                .values()
                .map(|one| format!("{:?} {}", one.strategy, one.max))
                .collect();
            let differ = options.len() > 1;
            if differ && !told {
                let text = format!(
                    "candidates for {namespace} have different options; the options of the deciding host apply"
                );
                (watcher.log)(Level::Warning, &text);
            }
            told = differ;
            tokio::select! {
                changed = seen.changed() => if changed.is_err() {
                    return;
                },
                () = watcher.cancellation.cancelled() => return,
            }
        }
    }

    /// Waits until the result of a namespace takes this host's candidacy into account. After the first timeout it reports a warning and no longer waits.
    async fn decided(self: &Arc<Self>, namespace: &str, candidacy: Option<Candidacy>) {
        let mirror = self.mirror(Selection::prefix(format!("{SCHEDULER}/")));
        let mut seen = mirror.look();
        let decided = seen.wait_for(|seen| {
            let is_decided = seen.is_decided(namespace, &self.hostname, candidacy);
            if seen.entries.is_some() && !is_decided {
                // There may be no other host that can decide.
                self.begin_deciding();
            }
            is_decided || seen.away.is_some() || self.has_namesake(namespace)
        });
        let wait = match self.telling.is_undecided(namespace) {
            true => Duration::ZERO,
            false => DECIDED_WITHIN,
        };
        match tokio::time::timeout(wait, decided).await {
            Ok(_) => self.telling.decided(namespace),
            Err(_) => self.telling.undecided(namespace),
        }
    }

    fn has_namesake(&self, namespace: &str) -> bool {
        let standing = self.standing.lock();
        let stood = standing.candidacies.get(namespace);
        stood.is_some_and(|stood| stood.has_namesake)
    }

    /// Has this host decide when it is its turn, from now on.
    fn begin_deciding(self: &Arc<Self>) {
        let mut standing = self.standing.lock();
        if standing.deciding.is_none() {
            // It holds nothing of this, which is dropped while it goes on.
            let mirror = self.mirror(Selection::prefix(format!("{SCHEDULER}/")));
            let (store, hostname) = (self.store.clone(), self.hostname.clone());
            let telling = self.telling.clone();
            standing.deciding = Some(Deciding(self.runtime().spawn(async move {
                let seen = mirror.look();
                let mut backoff = Backoff::default();
                loop {
                    // Whatever goes wrong, it campaigns again.
                    let decided = decide(&*store, &hostname, seen.clone(), &mut backoff).await;
                    let pause = match decided {
                        // Others may.
                        Err(StoreError::Denied { .. }) => {
                            telling.may_not_decide();
                            ASK_AGAIN
                        }
                        _ => backoff.pause(),
                    };
                    tokio::time::sleep(pause).await;
                }
            })));
        }
    }
}

/// Campaigns, and decides as long as it is this host's turn and its lease lives.
async fn decide(
    store: &dyn Store,
    hostname: &str,
    mut seen: tokio::sync::watch::Receiver<Seen>,
    backoff: &mut Backoff,
) -> Result<(), StoreError> {
    let lease = store.lease(DECIDER_LIVES).await?;
    let own = keys::key(DECIDERS, &[&lease.id().to_string()]);
    let campaign = Operation::put_leased(own.clone(), hostname.as_bytes(), lease.id());
    store.transact(Transaction::of([campaign])).await?;
    backoff.reset();
    loop {
        let now = seen.borrow_and_update().clone();
        if now.decider() == Some(&own) {
            for (namespace, entry, hosts) in now.to_be_decided(hostname) {
                let key = keys::key(SCHEDULES, &[&namespace]);
                let operation = match hosts.is_empty() {
                    true => Operation::Delete(key.clone().into()),
                    false => Operation::put(key.clone(), hosts.join(",").as_bytes()),
                };
                let is = entry.map_or(State::Absent, |entry| State::Modified(entry.modified));
                let decision = Transaction::of([operation])
                    .when(key, is)
                    .when(own.clone(), State::Present);
                // Where something has changed meanwhile, that is seen next.
                store.transact(decision).await?;
            }
        }
        tokio::select! {
            changed = seen.changed() => if changed.is_err() {
                return Ok(());
            },
            () = lease.lost() => return Ok(()),
        }
    }
}

impl Seen {
    /// The key of whoever may decide: the oldest.
    fn decider(&self) -> Option<&Key> {
        let entries = self.entries.as_ref()?;
        let begin = format!("{DECIDERS}/");
        let deciders = entries
            .values()
            .filter(|entry| entry.key.as_str().starts_with(&begin));
        deciders.min_by_key(|entry| entry.created).map(|entry| &entry.key)
    }

    /// Whether the store has what a host stands for, and the result follows from it.
    fn is_decided(&self, namespace: &str, host: &str, candidacy: Option<Candidacy>) -> bool {
        let Some(entries) = &self.entries else {
            return false;
        };
        let decider = self.decider().and_then(|key| entries.get(key)?.text());
        let candidates = self.candidates();
        let recorded = candidates.get(namespace).and_then(|hosts| hosts.get(host));
        let undecided = self.to_be_decided(decider.unwrap_or(host));
        recorded == candidacy.as_ref() && undecided.iter().all(|(of, _, _)| of != namespace)
    }

    /// Who stands, by namespace and host.
    fn candidates(&self) -> BTreeMap<String, BTreeMap<String, Candidacy>> {
        let begin = format!("{CANDIDATES}/");
        let mut candidates: BTreeMap<String, BTreeMap<String, Candidacy>> = BTreeMap::new();
        for entry in self.entries.iter().flat_map(|entries| entries.values()) {
            if let Some([host, namespace]) = keys::parts(&entry.key, &begin) {
                let candidacy = Candidacy::stored(entry.text().unwrap_or_default());
                candidates.entry(namespace).or_default().insert(host, candidacy);
            }
        }
        candidates
    }

    /// The namespaces whose result is not what follows from who stands: with the result that there is, and the right one.
    fn to_be_decided(&self, decider: &str) -> Vec<(String, Option<Entry>, Vec<String>)> {
        let begin = format!("{SCHEDULES}/");
        let mut results: BTreeMap<String, Entry> = BTreeMap::new();
        for entry in self.entries.iter().flat_map(|entries| entries.values()) {
            if let Some([namespace]) = keys::parts(&entry.key, &begin) {
                results.insert(namespace, entry.clone());
            }
        }
        let candidates = self.candidates();
        let namespaces: BTreeSet<&String> = candidates.keys().chain(results.keys()).collect();
        let nobody = BTreeMap::new();
        let decided = namespaces.into_iter().filter_map(|namespace| {
            let result = results.get(namespace);
            let before = result.map(chosen).unwrap_or_default();
            let hosts = elected(candidates.get(namespace).unwrap_or(&nobody), &before, decider);
            (hosts != before).then(|| (namespace.clone(), result.cloned(), hosts))
        });
        decided.collect()
    }
}
