//! The elections of the local world.
//!
//! ```text
//! candidates/NAMESPACE/HOST   the options with which a host stands        members/HOST   locked as long as its process lives
//! deciding                    locked by who decides                       schedules/NAMESPACE   who is chosen
//! ```
//!
//! Nobody is elected to decide: each process that stands does, one at a time, and all come to the same result. The system itself says who has gone: it gives
//! back the locks of a process that ends, however that happens.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use setpoint_engine::{Failure, Level, Watcher, async_trait};
use setpoint_host::files::AbsolutePath;
use setpoint_resources::{Candidacy, Elections, Recorded, elected};
use setpoint_value::{Wake, WatchDepth};
use tokio::sync::Notify;

use super::{LocalWorld, Member, content, escaped, names, unescaped};

/// How often is looked whether others are still there. Nobody else tells that a process has ended.
const LOOK: Duration = Duration::from_secs(1);

/// Since when hosts are away, as far as this process has seen it.
type Away = BTreeMap<String, Instant>;

#[async_trait]
impl Elections for LocalWorld {
    async fn candidacy(&self, namespace: &str) -> Result<Option<Recorded>, Failure> {
        let attempted = "look whether this host stands for";
        let namespace = namespace.to_owned();
        let look = move |member: &Member| {
            let own = content(member.candidate(&namespace, &member.hostname).as_path());
            let own = own.map_err(|error| failed(attempted, &namespace, error))?;
            let is_here = !matches!(*member.presence.lock(), Presence::Unannounced);
            Ok(own.map(|text| {
                let candidacy = Candidacy::stored(&text);
                Recorded {
                    candidacy,
                    is_current: is_here || candidacy.persist,
                }
            }))
        };
        self.in_background(attempted, look).await
    }

    async fn stand(&self, namespace: &str, candidacy: Candidacy) -> Result<(), Failure> {
        let namespace = namespace.to_owned();
        let stand = move |member: &Member| {
            let stand = || {
                member.be_here()?;
                let parts = ["candidates", &*namespace, &member.hostname];
                member.put(&parts, Some(&candidacy.to_string()))?;
                member.decide(&namespace, &mut Away::new()).map(drop)
            };
            stand().map_err(|error| failed("stand for", &namespace, error))
        };
        self.in_background("stand", stand).await
    }

    async fn withdraw(&self, namespace: &str) -> Result<(), Failure> {
        let namespace = namespace.to_owned();
        let withdraw = move |member: &Member| {
            let withdraw = || {
                member.put(&["candidates", &*namespace, &member.hostname], None)?;
                member.decide(&namespace, &mut Away::new()).map(drop)
            };
            withdraw().map_err(|error| failed("stand no more for", &namespace, error))
        };
        self.in_background("stand no more", withdraw).await
    }

    async fn follow(&self, namespace: &str, watcher: Watcher) -> Result<(), Failure> {
        let changed = Arc::new(Notify::new());
        let wake = {
            let changed = changed.clone();
            Wake::new(move || changed.notify_one())
        };
        let mut watches = Vec::new();
        for (parts, depth) in [
            (["candidates", namespace], WatchDepth::Recursive),
            (["schedules", namespace], WatchDepth::Entry),
        ] {
            let path = self.member.path(&parts);
            let watch = self
                .member
                .files
                .watch(&path.as_path().to_string_lossy(), depth, wake.clone());
            watches.push(watch.map_err(|error| failed("follow", namespace, error))?);
        }
        (watcher.event)("armed");
        let mut seen = None;
        let mut away = Away::new();
        loop {
            let (member, decided) = (self.member.clone(), namespace.to_owned());
            let work = tokio::task::spawn_blocking(move || {
                let state = member.decide_if_standing(&decided, &mut away);
                (state, away)
            });
            let state;
            (state, away) = work
                .await
                .map_err(|ended| failed("follow", namespace, io::Error::other(ended)))?;
            let state = state.map_err(|error| failed("decide who is chosen for", namespace, error))?;
            for warning in &state.warnings {
                (watcher.log)(Level::Warning, warning);
            }
            let others = state.others;
            if seen
                .replace(state.shown.clone())
                .is_some_and(|seen| seen != state.shown)
            {
                (watcher.event)("the election changed");
            }
            let look = async {
                match others {
                    true => tokio::time::sleep(LOOK).await,
                    false => std::future::pending().await,
                }
            };
            tokio::select! {
                () = changed.notified() => {}
                () = look => {}
                () = watcher.cancellation.cancelled() => return Ok(()),
            }
        }
    }
}

/// Whether others can see that this host is here.
#[derive(Default)]
pub(super) enum Presence {
    /// It has not stood for anything.
    #[default]
    Unannounced,
    /// It stands, and another process of its name says that it is here.
    OfAnother,
    /// It holds the lock that says so.
    Announced { _lock: File },
}

/// How an election stands.
struct State {
    /// Who stands and who is chosen, to notice changes.
    shown: String,
    /// Whether another host stands that may go.
    others: bool,
    warnings: Vec<String>,
}

impl Member {
    fn candidate(&self, namespace: &str, host: &str) -> AbsolutePath {
        self.path(&["candidates", namespace]).join(super::file_name(host))
    }

    /// Decides, if this host stands. Who does not, or may not change anything, only looks.
    fn decide_if_standing(&self, namespace: &str, away: &mut Away) -> io::Result<State> {
        if !matches!(*self.presence.lock(), Presence::Unannounced)
            && content(self.candidate(namespace, &self.hostname).as_path())?.is_some()
        {
            self.be_here()?;
            return self.decide(namespace, away);
        }
        let (candidates, warnings) = self.candidates(namespace)?;
        let chosen = self.chosen(namespace)?;
        Ok(State {
            shown: format!("{candidates:?} {chosen:?}"),
            others: false,
            warnings,
        })
    }

    /// Finds out who is chosen, and writes that if it is not so yet.
    fn decide(&self, namespace: &str, away: &mut Away) -> io::Result<State> {
        let _deciding = self.lock_file(&["deciding"], FlockOperation::LockExclusive)?;
        let (mut candidates, warnings) = self.candidates(namespace)?;
        let mut gone = Vec::new();
        for (host, candidacy) in &candidates {
            if candidacy.persist || self.is_here(host)? {
                away.remove(host);
                continue;
            }
            let since = *away.entry(host.clone()).or_insert_with(Instant::now);
            if candidacy.ttl.is_none_or(|ttl| since.elapsed() >= ttl) {
                gone.push(host.clone());
            }
        }
        for host in gone {
            self.put(&["candidates", namespace, &host], None)?;
            candidates.remove(&host);
            away.remove(&host);
        }
        let before = self.chosen(namespace)?;
        let chosen = elected(&candidates, &before);
        if chosen != before {
            let lines: String = chosen.iter().map(|host| format!("{}\n", escaped(host))).collect();
            let content = (!chosen.is_empty()).then_some(lines);
            self.put(&["schedules", namespace], content.as_deref())?;
        }
        Ok(State {
            shown: format!("{candidates:?} {chosen:?}"),
            others: candidates.keys().any(|host| *host != self.hostname),
            warnings,
        })
    }

    /// Who stands, and what is to be said of that.
    fn candidates(&self, namespace: &str) -> io::Result<(BTreeMap<String, Candidacy>, Vec<String>)> {
        let mut candidates = BTreeMap::new();
        for host in names(self.path(&["candidates", namespace]).as_path())? {
            // Whoever has withdrawn between is not there.
            if let Some(text) = content(self.candidate(namespace, &host).as_path())? {
                candidates.insert(host, Candidacy::stored(&text));
            }
        }
        let options = candidates
            .values()
            .map(|candidacy| (candidacy.strategy, candidacy.max));
        let mut different: Vec<_> = options.collect();
        different.dedup();
        let mut warnings = Vec::new();
        if different.len() > 1
            && let Some(last) = candidates.keys().next_back()
        {
            warnings.push(format!(
                "hosts stand for {namespace} with different options; those of {last} hold, the last by name"
            ));
        }
        Ok((candidates, warnings))
    }

    /// Who is chosen, in the order in which they were.
    fn chosen(&self, namespace: &str) -> io::Result<Vec<String>> {
        let lines = content(self.path(&["schedules", namespace]).as_path())?.unwrap_or_default();
        Ok(lines.lines().filter_map(unescaped).collect())
    }

    /// Holds the lock that says that this host is here, until the process ends.
    fn be_here(&self) -> io::Result<()> {
        let mut presence = self.presence.lock();
        if matches!(*presence, Presence::Announced { .. }) {
            return Ok(());
        }
        // Who decides looks at the locks of all.
        let _deciding = self.lock_file(&["deciding"], FlockOperation::LockExclusive)?;
        let parts = ["members", self.hostname.as_str()];
        *presence = match self.lock_file(&parts, FlockOperation::NonBlockingLockExclusive) {
            Ok(lock) => Presence::Announced { _lock: lock },
            Err(error) if is_taken(&error) => Presence::OfAnother,
            Err(error) => return Err(error),
        };
        Ok(())
    }

    /// Whether a process of a host is here.
    fn is_here(&self, host: &str) -> io::Result<bool> {
        if host == self.hostname && matches!(*self.presence.lock(), Presence::Announced { .. }) {
            return Ok(true);
        }
        // Several may look at a time.
        match self.lock_file(&["members", host], FlockOperation::NonBlockingLockShared) {
            Ok(_) => Ok(false),
            Err(error) if is_taken(&error) => Ok(true),
            Err(error) => Err(error),
        }
    }
}

fn is_taken(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::WOULDBLOCK.raw_os_error())
}

fn failed(attempted: &'static str, namespace: &str, error: io::Error) -> Failure {
    Failure::new(attempted).on(namespace).because(error)
}
