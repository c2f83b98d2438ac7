//! Rollouts: a deploy goes to a few hosts first, and on only as long as it is right there.
//!
//! Whoever deploys steers it: it lets hosts in, one after the other, and looks at what they report. Where one does not get it right, or is gone, it
//! stops; so it does, for ever, when who steers it goes: hosts that were not let in stay with what they have. What it has come to is beside the deploy, and
//! `resume` goes on from there.

use std::collections::{BTreeMap, BTreeSet};
use std::task::Poll;
use std::time::Duration;

use globset::{Glob, GlobMatcher};
use setpoint_agent::deploys::{Deploys, Place, Rollout};
use setpoint_agent::membership::{MemberOfCluster, Standing};
use setpoint_diagnostics::{did_you_mean, visible};
use setpoint_programs::failure::Failure;
use setpoint_programs::report::Importance;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

use super::history::existing;
use super::patience::{Patience, Verdicts};
use super::waiting::{Members, shown, wait_for, wait_for_members};
use super::{Arguments, cannot};
use crate::session::Session;

/// In which order hosts take a deploy.
pub(super) struct Waves {
    canaries: Vec<Canary>,
    at_once: Option<usize>,
}

/// Who takes it first.
enum Canary {
    /// So many, whichever.
    Count(usize),
    /// All with such a name.
    Named(GlobMatcher),
}

impl Waves {
    /// As the command line says; none where all hosts take it at once.
    pub(super) fn of(arguments: &Arguments) -> Result<Option<Waves>, Failure> {
        if arguments.canary.is_empty() && arguments.max_unavailable.is_none() {
            return Ok(None);
        }
        let canaries = arguments.canary.iter().map(|text| match text.parse() {
            Ok(0) => Err(Failure::usage("`--canary 0` is nobody")),
            Ok(count) => Ok(Canary::Count(count)),
            Err(_) => {
                let glob = Glob::new(text);
                let glob = glob.map_err(|error| {
                    Failure::usage(format!("`{text}` is no pattern of names: {}", error.kind()))
                });
                glob.map(|glob| Canary::Named(glob.compile_matcher()))
            }
        });
        Ok(Some(Waves {
            canaries: canaries.collect::<Result<_, _>>()?,
            at_once: arguments.max_unavailable.map(|count| count as usize),
        }))
    }

    /// Who may take a deploy when it is published.
    pub(super) async fn first(&self, deploys: &Deploys, id: u64) -> Result<Rollout, Failure> {
        let members = Members::of(deploys).now(Instant::now()).await?;
        let mut hosts: Vec<&str> = members.iter().map(|member| member.host.as_str()).collect();
        hosts.sort_by_key(|host| Place::of(host, id));
        let mut first = BTreeSet::new();
        for canary in &self.canaries {
            let before = first.len();
            match canary {
                Canary::Count(count) => {
                    let others = hosts.iter().filter(|host| !first.contains(**host));
                    let more: Vec<&str> = others.take(*count).copied().collect();
                    first.extend(more);
                }
                Canary::Named(pattern) => {
                    first.extend(hosts.iter().copied().filter(|host| pattern.is_match(host)));
                }
            }
            let is_new = first.len() > before;
            let is_there =
                matches!(canary, Canary::Named(pattern) if first.iter().any(|host| pattern.is_match(host)));
            if !is_new && !is_there {
                return Err(nobody(canary, &hosts));
            }
        }
        let first = first.into_iter().map(str::to_owned).collect();
        Ok(Rollout::new(first, self.at_once))
    }
}

fn nobody(canary: &Canary, hosts: &[&str]) -> Failure {
    let failure = Failure::wrong("there is no canary: nothing was deployed");
    match canary {
        _ if hosts.is_empty() => failure.because("no host is there that runs deploys"),
        Canary::Count(_) => failure.because("there are no more hosts"),
        Canary::Named(pattern) => {
            let pattern = pattern.glob().glob();
            let failure = failure.because(format!("no member is called `{pattern}`"));
            match did_you_mean(pattern, hosts.iter().copied()) {
                Some(meant) => failure.hint(meant),
                None => failure.hint("`setpoint members` shows who is there"),
            }
        }
    }
}

/// Goes on with a rollout.
pub(super) async fn resume(
    session: &Session,
    deploys: &Deploys,
    id: &str,
    arguments: &Arguments,
) -> Result<u8, Failure> {
    let (id, was) = under_way(deploys, id).await?;
    let mut now = was.clone();
    now.stopped = None;
    if let Some(at_once) = arguments.max_unavailable {
        now.at_once = Some(at_once as usize);
    }
    change(deploys, id, &was, Some(&now)).await?;
    roll_out(session, deploys, id, now, arguments.patience()).await
}

/// Lets all hosts take what was being rolled out.
pub(super) async fn finish(
    session: &Session,
    deploys: &Deploys,
    id: &str,
    patience: Option<Patience>,
) -> Result<u8, Failure> {
    let (id, was) = under_way(deploys, id).await?;
    change(deploys, id, &was, None).await?;
    session
        .output
        .say(Importance::Notice, format!("all hosts take deploy {id}"));
    wait_for_members(session, deploys, id, patience).await
}

async fn under_way(deploys: &Deploys, id: &str) -> Result<(u64, Rollout), Failure> {
    let stored = existing(deploys, id).await?;
    let id = stored.id;
    let newest = deploys.newest().await;
    let newest = newest.map_err(|error| cannot("read the deploys", error))?;
    if newest != id {
        let failure = Failure::wrong(format!("deploy {id} is rolled out no more"));
        return Err(failure.because(format!("deploy {newest} has come after it")));
    }
    match stored.rollout {
        Some(Ok(rollout)) => Ok((id, rollout)),
        Some(Err(why)) => Err(cannot(&format!("roll out deploy {id}"), why)),
        None => {
            let failure = Failure::wrong(format!("deploy {id} is not being rolled out"));
            Err(failure.because("all hosts may take it"))
        }
    }
}

async fn change(deploys: &Deploys, id: u64, was: &Rollout, now: Option<&Rollout>) -> Result<(), Failure> {
    let attempted = format!("roll out deploy {id}");
    match deploys.set_rollout(id, was, now).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(cannot(&attempted, "somebody else steers it meanwhile")),
        Err(error) => Err(cannot(&attempted, error)),
    }
}

/// What a look at the members shows.
enum Look {
    /// So many more hosts can be let in.
    Free(usize),
    /// As many as may be are under way.
    UnderWay,
    /// All that are there have it right.
    Everybody,
    /// It must not go on.
    Stop(String),
}

/// Steers a rollout until all hosts have the deploy right, or one has not.
pub(super) async fn roll_out(
    session: &Session,
    deploys: &Deploys,
    id: u64,
    rollout: Rollout,
    patience: Patience,
) -> Result<u8, Failure> {
    let mut steering = Steering {
        session,
        deploys,
        id,
        rollout,
        since: BTreeMap::new(),
        verdicts: Verdicts::new(id, patience),
        patience: patience.until_right,
    };
    let mut members = Members::of(deploys);
    let done = tokio::select! {
        done = steering.steer(&mut members) => done,
        () = told_to_end() => Ok(Some("it was interrupted".to_owned())),
        never = deploys.say_steered(id) => match never {},
    };
    deploys.say_not_steered(id).await;
    let goes_on = format!(
        "other hosts stay with what they have; `setpoint deploy resume {id}` goes on, `finish {id}` gives it to all, `rollback ID` takes it back"
    );
    let Some(why) = done.map_err(|failure| failure.hint(&*goes_on))? else {
        return wait_for(session, members, id, patience).await;
    };
    let was = steering.rollout;
    let mut now = was.clone();
    now.stopped = Some(why.clone());
    let changed = change(deploys, id, &was, Some(&now)).await;
    changed.map_err(|failure| failure.hint(&*goes_on))?;
    let all = members.now(Instant::now()).await?;
    session.output.print(&shown(&all, &[]))?;
    let failure = Failure::wrong(format!("deploy {id} has stopped")).because(visible(&why));
    Err(match deploys.get(id + 1).await {
        Ok(Some(_)) => failure,
        _ => failure.hint(goes_on),
    })
}

/// Comes when somebody wants the command to end.
async fn told_to_end() {
    let mut signals: Vec<Signal> = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
    ]
    .into_iter()
    .filter_map(|kind| signal(kind).ok())
    .collect();
    std::future::poll_fn(|context| {
        let mut is_there = signals.iter_mut().map(|one| one.poll_recv(context).is_ready());
        match is_there.any(|is_there| is_there) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
}

struct Steering<'a> {
    session: &'a Session,
    deploys: &'a Deploys,
    id: u64,
    rollout: Rollout,
    /// Since when each host may take it, for all that is known.
    since: BTreeMap<String, Instant>,
    verdicts: Verdicts,
    /// How long a host may take.
    patience: Duration,
}

impl Steering<'_> {
    /// Answers why it stopped; nothing when all hosts may take it.
    async fn steer(&mut self, members: &mut Members) -> Result<Option<String>, Failure> {
        self.expect_canaries(members).await?;
        loop {
            let all = members.now(Instant::now() + self.patience).await?;
            let later = self.deploys.get(self.id + 1).await;
            if later.is_ok_and(|later| later.is_some()) {
                return Ok(Some(format!("deploy {} has come after it", self.id + 1)));
            }
            match self.look(&all) {
                Look::Stop(why) => return Ok(Some(why)),
                Look::Everybody => {
                    change(self.deploys, self.id, &self.rollout, None).await?;
                    return Ok(None);
                }
                Look::Free(count) => {
                    self.let_in(&all, count).await?;
                    continue;
                }
                Look::UnderWay => {}
            }
            let first = self.since.values().min().copied();
            let now = Instant::now();
            let until = first.unwrap_or(now) + self.patience;
            let until = self.verdicts.next(now).unwrap_or(until).min(until);
            members.changed(until.max(now + Duration::from_millis(50))).await;
        }
    }

    /// Those that were to take it first count also when they are gone, perhaps of what they took; but not those that nobody knows any more.
    async fn expect_canaries(&mut self, members: &mut Members) -> Result<(), Failure> {
        let now = Instant::now();
        let all = members.now(now + self.patience).await?;
        let is_there = |host: &str| all.iter().any(|member| member.host == host);
        for host in &self.rollout.canaries {
            if is_there(host) {
                self.since.insert(host.clone(), now);
            } else if members.last_seen(host, now + self.patience).await?.is_some() {
                self.since.insert(host.clone(), now);
                let shown = visible(host);
                let text = format!(
                    "waiting for {shown}, which was to take it first and is gone; if it is gone for good: `setpoint members remove {shown}`"
                );
                self.session.output.say(Importance::Notice, text);
            }
        }
        Ok(())
    }

    fn look(&mut self, all: &[MemberOfCluster]) -> Look {
        let now = Instant::now();
        let id = self.id;
        let mut under_way = 0;
        let (let_in, others): (Vec<_>, Vec<_>) =
            all.iter().partition(|member| self.rollout.lets(&member.host, id));
        for member in &let_in {
            let line = || match &member.report {
                Err(why) => why.clone(),
                Ok(report) if report.running.is_some_and(|running| running >= id) => report.line.clone(),
                Ok(report) if report.state == Standing::Rejected => report.line.clone(),
                // What it says is of what it still has.
                Ok(_) => "it has not taken it yet".to_owned(),
            };
            match self.verdicts.of(member, now) {
                Some(true) => {
                    self.since.insert(member.host.clone(), now);
                }
                Some(false) => return Look::Stop(format!("{}: {}", member.host, line())),
                None => {
                    under_way += 1;
                    let since = *self.since.entry(member.host.clone()).or_insert(now);
                    if now - since >= self.patience {
                        let seconds = self.patience.as_secs();
                        return Look::Stop(format!(
                            "{} is not right after {seconds} s: {}",
                            member.host,
                            line()
                        ));
                    }
                }
            }
        }
        for (host, since) in &self.since {
            if !all.iter().any(|member| member.host == *host) {
                under_way += 1;
                if now - *since >= self.patience {
                    return Look::Stop(format!("{host} is gone"));
                }
            }
        }
        let canaries_are_right = under_way == 0 || self.rollout.until.is_some();
        match (self.rollout.at_once, others.len()) {
            (_, 0) if under_way == 0 => Look::Everybody,
            (None, _) if under_way == 0 => Look::Everybody,
            (Some(at_once), 1..) if canaries_are_right && under_way < at_once => {
                Look::Free(at_once - under_way)
            }
            _ => Look::UnderWay,
        }
    }

    /// Lets more hosts in.
    async fn let_in(&mut self, all: &[MemberOfCluster], count: usize) -> Result<(), Failure> {
        let id = self.id;
        let others = all.iter().filter(|member| !self.rollout.lets(&member.host, id));
        let mut others: Vec<Place> = others.map(|member| Place::of(&member.host, id)).collect();
        others.sort_unstable();
        let mut now = self.rollout.clone();
        now.until = others.into_iter().take(count).next_back().or(now.until);
        change(self.deploys, id, &self.rollout, Some(&now)).await?;
        self.rollout = now;
        let taking = all
            .iter()
            .filter(|member| self.rollout.lets(&member.host, id))
            .count();
        let text = format!("deploy {id} is for {taking} of {} hosts", all.len());
        self.session.output.say(Importance::Info, text);
        Ok(())
    }
}
