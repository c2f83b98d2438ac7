//! The members of a cluster, as each says of itself how it stands: which deploy it runs, and whether the machine is right.
//!
//! ```text
//! /members/HOST   a report, JSON; it goes with the lease of the process
//! ```

mod last_seen;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use setpoint_diagnostics::visible;
use setpoint_engine::Engine;
use setpoint_programs::report::Reporter;
use setpoint_world::{
    Backoff, Change, Entry, Key, Lease, Operation, Outcome, Revision, Selection, Store, StoreError,
    Transaction, Watch, Watched,
};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::attachment::AgentHandle;
use crate::health::Health;
use crate::program_state::ProgramState;
pub use last_seen::{LAST_SEEN, LastSeen, all_last_seen, key_of_last_seen};

const VERSION: u32 = 1;

/// What all keys of members begin with.
pub const MEMBERS: &str = "/members/";

/// How long a member that is silent still counts as one.
const LIVES: Duration = Duration::from_secs(15);

/// A report is not written more often than this: who looks on is no faster.
const BREATH: Duration = Duration::from_millis(300);

/// A host that was right is reported as under way only when it has been so for this long: a polled command would be two writes a run.
const LASTING: Duration = Duration::from_secs(5);

/// What a member says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    version: u32,
    /// The version of the program that runs there.
    pub program: String,
    /// The newest deploy that it has taken.
    pub taken: Option<u64>,
    /// The deploy whose graph it keeps.
    pub running: Option<u64>,
    /// How that stands.
    pub state: Standing,
    /// Whether something has failed that is not tried again.
    #[serde(default)]
    pub has_given_up: bool,
    /// Whether it runs a program of its own instead of the deploys.
    #[serde(default)]
    pub has_own_program: bool,
    /// Whether another process reports under the same name.
    #[serde(default)]
    pub has_namesake: bool,
    /// How it stands, in a line.
    pub line: String,
}

/// How a member stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// There is no deploy yet.
    NoProgram,
    /// It is at it.
    UnderWay,
    /// It is as it should be.
    Right,
    /// It is not, and nothing is repaired there.
    NotRepaired,
    /// Something has failed.
    Failing,
    /// The deploy that it has taken is wrong there.
    Rejected,
}

impl Standing {
    /// In a word or two.
    pub fn text(self) -> &'static str {
        match self {
            Standing::NoProgram => "no program",
            Standing::UnderWay => "under way",
            Standing::Right => "right",
            Standing::NotRepaired => "not repaired",
            Standing::Failing => "failing",
            Standing::Rejected => "rejected",
        }
    }
}

/// A member that is there.
pub struct MemberOfCluster {
    /// Its name.
    pub host: String,
    /// What it says; what is wrong with that where it cannot be read.
    pub report: Result<Report, String>,
}

impl MemberOfCluster {
    /// The member of a key, if it is one of those.
    pub fn of(entry: &Entry) -> Option<MemberOfCluster> {
        let host = entry.key.as_str().strip_prefix(MEMBERS)?.to_owned();
        let read: Result<Report, _> = serde_json::from_slice(&entry.value);
        let report = match read {
            Ok(report) if report.version == VERSION => Ok(report),
            Ok(report) => Err(format!("it reports in version {}", report.version)),
            Err(error) => Err(format!("its report cannot be read: {error}")),
        };
        Some(MemberOfCluster { host, report })
    }

    /// Whether it takes deploys. A host that cannot be read might.
    pub fn takes_deploys(&self) -> bool {
        self.report
            .as_ref()
            .map_or(true, |report| !report.has_own_program)
    }

    /// Whether what fails there is tried again, so that it can become right without a new deploy.
    pub fn tries_again(&self) -> bool {
        self.report
            .as_ref()
            .is_ok_and(|report| report.state == Standing::Failing && !report.has_given_up)
    }

    /// What becomes of a deploy there: none while that is open, else whether it is right.
    pub fn verdict(&self, id: u64) -> Option<bool> {
        let report = self.report.as_ref().ok()?;
        let is_running = report.running.is_some_and(|running| running >= id);
        let is_taken = report.taken.is_some_and(|taken| taken >= id);
        match report.state {
            Standing::Right | Standing::NotRepaired if is_running => Some(true),
            Standing::Failing if is_running => Some(false),
            Standing::Rejected if is_taken => Some(false),
            _ => None,
        }
    }
}

/// Where the report of a member is.
pub fn key_of_member(host: &str) -> Key {
    Key::new(format!("{MEMBERS}{host}")).expect("it is not empty")
}

/// Where all members are.
pub fn all_members() -> Selection {
    Selection::prefix(MEMBERS)
}

/// Says how this host stands, until the engine has ended.
pub(crate) struct Reporting {
    store: Arc<dyn Store>,
    hostname: String,
    engine: Engine,
    state: ProgramState,
    /// The newest deploy that was taken; nothing where the host has a program of its own.
    taken: Option<watch::Receiver<Option<u64>>>,
    /// For the warning that another host has the name of this one.
    reporter: Reporter,
    /// Whether that was reported.
    has_namesake: bool,
}

/// Whether the report of this host is still as it was written.
enum Became {
    Same,
    /// It is to be written again.
    Other,
}

/// What is heard of it, once it is followed.
async fn next(watch: Option<&mut Watch>) -> Watched {
    match watch {
        Some(watch) => watch.next().await,
        None => std::future::pending().await,
    }
}

/// Whether a host that was right runs something again, of the same deploy.
fn is_passing(told: &Report, now: &Report) -> bool {
    told.state == Standing::Right
        && now.state == Standing::UnderWay
        && (told.taken, told.running) == (now.taken, now.running)
}

/// Waits until another deploy is taken.
async fn next_deploy(taken: Option<&mut watch::Receiver<Option<u64>>>) {
    match taken {
        // The sender goes only when the agent does.
        Some(taken) => drop(taken.changed().await),
        None => std::future::pending().await,
    }
}

/// Until then, or for ever.
async fn lasts(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}

impl Reporting {
    /// `taken` is the newest deploy that was taken; nothing where the host has a program of its own.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        agent: &AgentHandle,
        taken: Option<watch::Receiver<Option<u64>>>,
    ) -> Reporting {
        Reporting {
            store,
            hostname: agent.machine.hostname.clone(),
            engine: agent.engine.clone(),
            state: agent.state.clone(),
            taken,
            reporter: agent.reporter.clone(),
            has_namesake: false,
        }
    }

    pub(crate) async fn run(mut self) {
        let mut backoff = Backoff::default();
        // A store that is away is told of by whoever follows it.
        while self.report(&mut backoff).await.is_err() {
            tokio::time::sleep(backoff.pause()).await;
        }
    }

    /// Reports under one lease. It is over when the engine is.
    async fn report(&mut self, backoff: &mut Backoff) -> Result<(), StoreError> {
        let lease = self.store.lease(LIVES).await?;
        backoff.reset();
        let mut events = self.engine.events();
        let mut told = None;
        let mut running = None;
        let mut own = None;
        let mut under_way_since: Option<Instant> = None;
        loop {
            let Some(now) = self.now().await else {
                return self.leave(running, lease).await;
            };
            running = now.running;
            let is_passing = told.as_ref().is_some_and(|told| is_passing(told, &now));
            let since = is_passing.then(|| *under_way_since.get_or_insert_with(Instant::now));
            under_way_since = since;
            let until = since
                .map(|since| since + LASTING)
                .filter(|until| Instant::now() < *until);
            if until.is_none() && told.as_ref() != Some(&now) {
                let written = self.write(&now, &lease).await?;
                own.get_or_insert_with(|| self.store.watch(self.key().into(), written));
                told = Some(now);
            }
            tokio::select! {
                heard = next(own.as_mut()) => match self.what_became(&heard, &lease) {
                    Became::Other => told = None,
                    Became::Same => continue,
                },
                event = events.next() => if event.is_none() {
                    return self.leave(running, lease).await;
                },
                () = next_deploy(self.taken.as_mut()) => {}
                () = lasts(until) => continue,
                () = lease.lost() => return Err(StoreError::LeaseEnded),
            }
            tokio::time::sleep(BREATH).await;
            while events.try_next().is_some() {}
        }
    }

    /// Says that this host has ended, as far as the store can be told.
    async fn leave(&self, running: Option<u64>, lease: Lease) -> Result<(), StoreError> {
        let left = LastSeen::now(running, true).put(&self.hostname);
        let _ = self.store.transact(Transaction::of([left])).await;
        lease.revoke().await.or(Ok(()))
    }

    /// What became of the report of this host, as it is heard.
    fn what_became(&mut self, heard: &Watched, lease: &Lease) -> Became {
        let changes = match heard {
            Watched::Changed(batch) => &batch.changes,
            Watched::Compacted(_) | Watched::SetBack(_) => return Became::Other,
            Watched::Away(_) | Watched::Back => return Became::Same,
        };
        match changes.last() {
            Some(Change::Deleted(_)) => {
                self.has_namesake = false;
                Became::Other
            }
            Some(Change::Put(entry)) if entry.lease.is_some_and(|other| other != lease.id()) => {
                if std::mem::replace(&mut self.has_namesake, true) {
                    // Both would write for ever what the other has written, so the later one holds.
                    return Became::Same;
                }
                let text = format!(
                    "another host has the name of this one, {}: give each a name of its own with `--hostname`",
                    self.hostname
                );
                self.reporter.warning(visible(&text));
                // The other one learns of it by one more report of this one, unless it knows.
                let other = MemberOfCluster::of(entry).and_then(|other| other.report.ok());
                match other.is_some_and(|other| other.has_namesake) {
                    true => Became::Same,
                    false => Became::Other,
                }
            }
            _ => Became::Same,
        }
    }

    fn key(&self) -> Key {
        key_of_member(&self.hostname)
    }

    async fn write(&self, report: &Report, lease: &Lease) -> Result<Revision, StoreError> {
        let text = serde_json::to_vec(report).expect("it has only texts and numbers");
        let put = Operation::put_leased(self.key(), text, lease.id());
        let seen = LastSeen::now(report.running, false).put(&self.hostname);
        match self.store.transact(Transaction::of([put, seen])).await? {
            Outcome::Done(revision) => Ok(revision),
            Outcome::Refused(found) => Ok(found.revision),
        }
    }

    /// How this host stands now; none when the engine has ended.
    async fn now(&mut self) -> Option<Report> {
        let taken = self.taken.as_mut().and_then(|taken| *taken.borrow_and_update());
        let program = self.state.get();
        let summary = self.engine.summary().await?;
        let accepted = program.accepted.as_ref();
        // What is accepted is not there before it was swapped in.
        let is_there = accepted.is_some_and(|accepted| summary.generation >= Some(accepted.graph.generation));
        let running = accepted.and_then(|accepted| accepted.deploy).filter(|_| is_there);
        let has_own_program = self.taken.is_none();
        let health = Health::of(summary.counts);
        let state = match health {
            _ if program.wrong.is_some() => Standing::Rejected,
            _ if taken.is_none() && !has_own_program => Standing::NoProgram,
            _ if !is_there || summary.new_graph => Standing::UnderWay,
            Health::Right => Standing::Right,
            Health::WouldChange => Standing::NotRepaired,
            Health::Wrong => Standing::Failing,
            Health::UnderWay | Health::WaitingForHost => Standing::UnderWay,
        };
        let line = match &program.wrong {
            Some(wrong) => wrong.lines().next().unwrap_or_default().to_owned(),
            None => health.line(summary.counts),
        };
        Some(Report {
            version: VERSION,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            taken,
            running,
            state,
            has_given_up: summary.counts.failed > 0,
            has_own_program,
            has_namesake: self.has_namesake,
            line,
        })
    }
}
