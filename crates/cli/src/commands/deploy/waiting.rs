//! How a deploy stands on the hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use setpoint_agent::deploys::Deploys;
use setpoint_agent::membership::{LastSeen, MemberOfCluster, all_members, key_of_last_seen};
use setpoint_diagnostics::visible;
use setpoint_programs::failure::Failure;
use setpoint_world::{Change, Entry, Key, Selection, Snapshot, Store, Watch, Watched};
use tokio::time::Instant;

use super::cannot;
use super::patience::{Patience, Verdicts};
use crate::exit_code;
use crate::session::Session;
use crate::view::span_text;

/// How long is waited before a store that is away is asked again.
const PAUSE: Duration = Duration::from_millis(500);

/// So many hosts are told by name.
const TOLD: usize = 5;

/// For how long changes are gathered before all are looked at.
const GATHERED: Duration = Duration::from_millis(20);

/// The members, as they come and go and report. What has changed is all that is asked for, however many there are.
pub(super) struct Members {
    store: std::sync::Arc<dyn Store>,
    followed: Option<Followed>,
    /// All that were there since somebody looks on.
    known: BTreeSet<String>,
    /// Those of them that are gone without having been told to end.
    lost: BTreeMap<String, LastSeen>,
    /// Whether anybody was ever there.
    has_seen_any: bool,
}

/// What is known of them, and what goes on.
struct Followed {
    entries: BTreeMap<Key, Entry>,
    watch: Watch,
}

impl Members {
    pub(super) fn of(deploys: &Deploys) -> Members {
        Members {
            store: deploys.store(),
            followed: None,
            known: BTreeSet::new(),
            lost: BTreeMap::new(),
            has_seen_any: false,
        }
    }

    /// Those that take deploys now. A store that is away is waited for until then.
    pub(super) async fn now(&mut self, deadline: Instant) -> Result<Vec<MemberOfCluster>, Failure> {
        loop {
            if let Some(followed) = &self.followed {
                return Ok(followed
                    .entries
                    .values()
                    .filter_map(MemberOfCluster::of)
                    .filter(MemberOfCluster::takes_deploys)
                    .collect());
            }
            let found = self.read(all_members(), deadline).await?;
            let entries = found.all().map(|entry| (entry.key.clone(), entry.clone()));
            self.followed = Some(Followed {
                entries: entries.collect(),
                watch: self.store.watch(all_members(), found.revision),
            });
        }
    }

    /// Those that were there while somebody looked on, and are gone without having been told to end: what they got may be why. `there` are those that
    /// there are now.
    pub(super) async fn lost(
        &mut self,
        there: &[MemberOfCluster],
        deadline: Instant,
    ) -> Result<Vec<(String, LastSeen)>, Failure> {
        let there: BTreeSet<&str> = there.iter().map(|member| &*member.host).collect();
        self.lost.retain(|host, _| !there.contains(&**host));
        let gone: Vec<String> = self
            .known
            .iter()
            .filter(|host| !there.contains(&***host))
            .cloned()
            .collect();
        for host in gone {
            let seen = self.last_seen(&host, deadline).await?;
            self.known.remove(&host);
            if let Some(seen) = seen.filter(|seen| !seen.has_ended) {
                self.lost.insert(host, seen);
            }
        }
        self.has_seen_any |= !there.is_empty();
        self.known.extend(there.into_iter().map(str::to_owned));
        Ok(self
            .lost
            .iter()
            .map(|(host, seen)| (host.clone(), seen.clone()))
            .collect())
    }

    /// When a host was seen last; none if it is not known.
    pub(super) async fn last_seen(&self, host: &str, deadline: Instant) -> Result<Option<LastSeen>, Failure> {
        let found = self.read(key_of_last_seen(host).into(), deadline).await?;
        Ok(found.all().find_map(LastSeen::of).map(|(_, seen)| seen))
    }

    async fn read(&self, selection: Selection, deadline: Instant) -> Result<Snapshot, Failure> {
        loop {
            match self.store.read(std::slice::from_ref(&selection)).await {
                Ok(found) => return Ok(found),
                Err(error) if !error.is_passing() || Instant::now() >= deadline => {
                    return Err(cannot("see how the members stand", error));
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Waits until something may have changed, or until then.
    pub(super) async fn changed(&mut self, until: Instant) {
        let Some(followed) = &mut self.followed else {
            return;
        };
        let Ok(mut is_known) = tokio::time::timeout_at(until, followed.next()).await else {
            return;
        };
        // Many report at once, and who waits looks at all of them.
        let gathered = Instant::now() + GATHERED;
        while is_known && let Ok(next) = tokio::time::timeout_at(gathered, followed.next()).await {
            is_known = next;
        }
        if !is_known {
            self.followed = None;
        }
    }
}

impl Followed {
    /// Takes in what is heard next. Answers whether the members are known then; otherwise they are to be read anew.
    async fn next(&mut self) -> bool {
        let Watched::Changed(batch) = self.watch.next().await else {
            return false;
        };
        for change in batch.changes {
            match change {
                Change::Put(entry) => drop(self.entries.insert(entry.key.clone(), entry)),
                Change::Deleted(key) => drop(self.entries.remove(&key)),
            }
        }
        true
    }
}

/// Waits until every member has a deploy right, or does not get it right, and shows how they stand.
pub(super) async fn wait_for_members(
    session: &Session,
    deploys: &Deploys,
    id: u64,
    patience: Option<Patience>,
) -> Result<u8, Failure> {
    match patience {
        None => Ok(exit_code::DONE),
        Some(patience) => wait_for(session, Members::of(deploys), id, patience).await,
    }
}

/// The same, with what is known of the members already. One that goes meanwhile is waited for, too.
pub(super) async fn wait_for(
    session: &Session,
    mut all: Members,
    id: u64,
    patience: Patience,
) -> Result<u8, Failure> {
    let deadline = Instant::now() + patience.until_right;
    let mut verdicts = Verdicts::new(id, patience);
    let (members, lost, is_over) = loop {
        let members = all.now(deadline).await?;
        let lost = all.lost(&members, deadline).await?;
        let now = Instant::now();
        // All are looked at, for each that fails is given the same time.
        let open = members
            .iter()
            .filter(|member| verdicts.of(member, now).is_none())
            .count();
        if lost.is_empty() && open == 0 {
            break (members, lost, true);
        }
        if now >= deadline {
            break (members, lost, false);
        }
        let until = verdicts.next(now).unwrap_or(deadline).min(deadline);
        all.changed(until).await;
    };
    session.output.print(&shown(&members, &lost))?;
    if members.is_empty() && lost.is_empty() {
        session.output.warning(match all.has_seen_any {
            true => "all hosts have ended meanwhile",
            false => "no host is there that runs deploys",
        });
    }
    if !is_over {
        let open = members.iter().filter(|member| member.verdict(id).is_none());
        let open: Vec<&str> = open
            .map(|member| &*member.host)
            .chain(lost.iter().map(|(host, _)| &**host))
            .collect();
        let seconds = patience.until_right.as_secs();
        let text = format!(
            "after {seconds} s deploy {id} has not come to an end on {}",
            few(&open)
        );
        session.output.warning(visible(&text));
    }
    let has_ended = members.is_empty() && all.has_seen_any;
    let is_right =
        !has_ended && lost.is_empty() && members.iter().all(|member| member.verdict(id) == Some(true));
    Ok(match (is_over, is_right) {
        (_, true) => exit_code::DONE,
        (true, false) => exit_code::WRONG,
        (false, false) => exit_code::UNDER_WAY,
    })
}

/// Some names, and how many more there are.
fn few(names: &[&str]) -> String {
    // Instead of saying that there is one more, that one is named.
    match names.len() > TOLD + 1 {
        true => format!("{} and {} more", names[..TOLD].join(", "), names.len() - TOLD),
        false => names.join(", "),
    }
}

/// Members in a table, and behind them hosts that are gone.
pub(in crate::commands) fn shown(members: &[MemberOfCluster], gone: &[(String, LastSeen)]) -> String {
    let there = members.iter().map(row);
    let rows: Vec<[String; 5]> = there.chain(gone.iter().map(row_of_gone)).collect();
    if rows.is_empty() {
        return String::new();
    }
    let heading = ["host", "deploy", "state", "version", ""].map(str::to_owned);
    let width = |column: usize, least: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0).max(least)
    };
    let (host, version) = (width(0, 4), width(3, 7));
    let line = |[name, deploy, state, program, line]: &[String; 5]| {
        let text = format!("{name:host$}  {deploy:>6}  {state:12}  {program:version$}  {line}");
        format!("{}\n", text.trim_end())
    };
    std::iter::once(&heading).chain(&rows).map(line).collect()
}

fn number(deploy: Option<u64>) -> String {
    deploy.map_or_else(|| "-".to_owned(), |id| id.to_string())
}

fn row(member: &MemberOfCluster) -> [String; 5] {
    let host = visible(&member.host).into_owned();
    match &member.report {
        Ok(report) => [
            host,
            match report.has_own_program {
                true => "own".to_owned(),
                false => number(report.running),
            },
            report.state.text().to_owned(),
            visible(&report.program).into_owned(),
            visible(&report.line).into_owned(),
        ],
        Err(why) => [
            host,
            "?".to_owned(),
            "?".to_owned(),
            "?".to_owned(),
            visible(why).into_owned(),
        ],
    }
}

fn row_of_gone((host, seen): &(String, LastSeen)) -> [String; 5] {
    let at = seen.at().to_zoned(TimeZone::system()).strftime("%F %T %Z");
    let now = Timestamp::now();
    let heard = match seen.clock_is_ahead_by(now) {
        Some(ahead) => format!("last heard of {at}: {}", clock_text(ahead)),
        None => {
            let ago = now.duration_since(seen.at()).max(SignedDuration::ZERO);
            format!("last heard of {} ago, {at}", span_text(ago.as_secs_f64()))
        }
    };
    [
        visible(host).into_owned(),
        number(seen.running),
        seen.state().to_owned(),
        visible(&seen.program).into_owned(),
        heard,
    ]
}

/// The words for a clock that is ahead.
pub(in crate::commands) fn clock_text(ahead: Duration) -> String {
    format!("its clock is {} ahead", span_text(ahead.as_secs_f64()))
}
