//! `kill -9` at random moments, of hosts, of whoever deploys and of etcd's members, again and again; then the whole history is looked at.
//!
//! `SETPOINT_CLUSTER_KILLS` says how often, `SETPOINT_RANDOM_SEED` in which way; `bench/cluster-crash.sh` sets both.

use std::collections::BTreeSet;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use setpoint_testing::Running;
use setpoint_testing::etcd::{Recording, has_etcd};
use setpoint_testing::history::{Ran, Recorded, Wanted, check};

use super::Cluster;
use super::members::{deploys_in, program};

const HOSTS: [&str; 3] = ["a", "b", "c"];

/// Longer than a host counts that is silent.
const AWAY: Duration = Duration::from_millis(3000);

/// Numbers that look random and are the same for the same seed (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn pause(&mut self, most: u64) {
        std::thread::sleep(Duration::from_millis(self.below(most)));
    }
}

/// What was killed, and what came of it.
#[derive(Default)]
struct Counts {
    hosts: usize,
    members: usize,
    commands: usize,
    published: usize,
    rests: usize,
    slowest: Duration,
}

struct Crash {
    cluster: Cluster,
    random: Random,
    hosts: Vec<Option<Running>>,
    /// Somebody who deploys.
    publisher: Option<Child>,
    /// The newest program.
    version: u64,
    ran: Vec<Ran>,
    wanted: Wanted,
    counts: Counts,
}

impl Crash {
    fn of(cluster: Cluster, seed: u64) -> Crash {
        Crash {
            cluster,
            random: Random(seed),
            hosts: vec![None, None, None],
            publisher: None,
            version: 0,
            ran: Vec::new(),
            wanted: Wanted {
                // They are in every program, and no restart takes them back.
                kept: vec![
                    "/exported/".to_owned(),
                    "/strings/".to_owned(),
                    "/host-strings/".to_owned(),
                ],
                right_in_the_end: HOSTS.map(str::to_owned).into(),
                ..Wanted::default()
            },
            counts: Counts::default(),
        }
    }

    fn start_host(&mut self, number: usize) {
        let host = HOSTS[number];
        let running = Running::start(self.cluster.member_command(host, None));
        self.hosts[number] = Some(running);
    }

    fn kill_host(&mut self, number: usize) {
        let Some(mut running) = self.hosts[number].take() else {
            return;
        };
        for line in running.drain() {
            assert!(
                !line.contains("\"event\":\"ended\""),
                "a host has ended by itself: {line}"
            );
        }
        running.signal("KILL");
        let (_, errors) = running.finish();
        assert!(!errors.contains("panicked"), "{errors}");
        let deploys = deploys_in(&errors);
        let host = HOSTS[number].to_owned();
        self.ran.push(Ran { host, deploys });
    }

    fn kill_member(&mut self, number: usize) {
        if self.cluster.etcd.runs(number) {
            self.cluster.etcd.kill_member(number);
        }
    }

    fn start_what_is_down(&mut self) {
        for number in 0..self.cluster.etcd.count() {
            if !self.cluster.etcd.runs(number) {
                self.cluster.etcd.start_member(number);
            }
        }
        for number in 0..HOSTS.len() {
            if self.hosts[number].is_none() {
                self.start_host(number);
            }
        }
    }

    /// Begins to publish the next program, if nobody is at it.
    fn publish(&mut self) {
        self.reap(false);
        if self.publisher.is_none() {
            self.version += 1;
            let mut command = self.cluster.publishing(&program(&self.version.to_string(), ""));
            let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
            self.publisher = Some(child.expect("it can be started"));
        }
    }

    /// Hears what came of it: at its end, or if it has ended.
    fn reap(&mut self, waits: bool) {
        let Some(mut child) = self.publisher.take() else {
            return;
        };
        if !waits && child.try_wait().expect("it is ours").is_none() {
            self.publisher = Some(child);
            return;
        }
        let output = child.wait_with_output().expect("it is ours");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!said.contains("panicked"), "{said}");
        if output.status.success() {
            let id = said.rsplit("id: ").next().and_then(|id| id.trim().parse().ok());
            self.wanted
                .published
                .insert(id.unwrap_or_else(|| panic!("no number: {said}")));
            self.counts.published += 1;
        }
    }

    fn round(&mut self) {
        if self.random.below(3) == 0 {
            self.publish();
        }
        self.random.pause(250);
        let victim = usize::try_from(self.random.below(3)).expect("it is small");
        match self.random.below(20) {
            0..8 => {
                self.kill_host(victim);
                self.counts.hosts += 1;
                // Sometimes it is away for longer than it counts, and others are chosen.
                if self.random.below(8) == 0 {
                    std::thread::sleep(AWAY);
                }
            }
            8..16 => {
                self.kill_member(victim);
                self.counts.members += 1;
            }
            _ => {
                self.publish();
                self.random.pause(300);
                if let Some(child) = &mut self.publisher {
                    child.kill().expect("it is ours");
                }
                self.reap(true);
                self.counts.commands += 1;
            }
        }
        // Mostly at once, and sometimes after more has gone.
        if self.random.below(4) > 0 {
            self.start_what_is_down();
        }
    }

    /// Nothing is killed any more: all hosts come to what is newest.
    fn rest(&mut self) {
        self.start_what_is_down();
        self.reap(true);
        self.cluster.etcd.wait_until_ready();
        let begun = Instant::now();
        loop {
            let before = self.counts.published;
            self.publish();
            self.reap(true);
            if self.counts.published > before {
                break;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "nothing can be deployed"
            );
        }
        let newest = Instant::now();
        let version = self.version.to_string();
        for host in HOSTS {
            self.is_at(&format!("{host}.deploy"), &version);
            // What each exports has come to the others.
            self.is_at(&format!("version of {host}"), &version);
        }
        self.counts.slowest = self.counts.slowest.max(newest.elapsed());
        self.counts.rests += 1;
    }

    fn is_at(&mut self, file: &str, version: &str) {
        let deadline = Instant::now() + Duration::from_secs(40);
        let path = self.cluster.place.path(file);
        while std::fs::read_to_string(&path).ok().as_deref() != Some(version) {
            if Instant::now() > deadline {
                let is = std::fs::read_to_string(&path);
                let mut said = Vec::new();
                for running in self.hosts.iter_mut().filter_map(Option::take) {
                    running.signal("KILL");
                    let (_, errors) = running.finish();
                    said.extend(errors.lines().rev().take(12).map(str::to_owned));
                }
                panic!("{file} is not {version} but {is:?}: {said:#?}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Prints what happened, for a reader of `--nocapture`.
    fn report(&self, seed: u64, kills: u64, changes: &[Recorded]) {
        let Counts {
            hosts,
            members,
            commands,
            published,
            rests,
            slowest,
        } = &self.counts;
        let deploys: BTreeSet<&str> = changes
            .iter()
            .map(|change| change.key.as_str())
            .filter(|key| key.ends_with("/payload"))
            .collect();
        println!(
            "seed {seed}: {kills} kills: {hosts} of hosts, {members} of etcd's members, {commands} of whoever deploys"
        );
        println!(
            "{published} deploys were published, {} are there; {} processes of hosts ran one {} times, and none the same one twice",
            deploys.len(),
            self.ran.len(),
            self.ran.iter().map(|ran| ran.deploys.len()).sum::<usize>()
        );
        println!(
            "{} changes in the whole history, {} of them of who is chosen; {rests} times all hosts came to the newest deploy, within {:.1} s",
            changes.len(),
            changes
                .iter()
                .filter(|change| change.key.starts_with("/scheduler/schedule/"))
                .count(),
            slowest.as_secs_f64()
        );
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(otherwise, |text| text.parse().expect("it is a number"))
}

#[test]
fn nothing_is_lost_or_done_twice_however_often_anything_is_killed() {
    if !has_etcd("nothing_is_lost_or_done_twice_however_often_anything_is_killed") {
        return;
    }
    let kills = number("SETPOINT_CLUSTER_KILLS", 30);
    let seed = number("SETPOINT_RANDOM_SEED", 1);
    let cluster = Cluster::start(3);
    let mut recording = Recording::start(&cluster.etcd, "/setpoint");
    let mut crash = Crash::of(cluster, seed);
    crash.rest();
    for kill in 1..=kills {
        crash.round();
        if kill % 25 == 0 {
            crash.rest();
        }
    }
    crash.rest();
    let newest = crash.wanted.published.last().copied();
    for host in HOSTS {
        crash.cluster.eventually_reports(host, newest);
        let key = format!("/host-strings/{host}/own");
        crash.wanted.in_the_end.insert(key, Some(format!("of {host}")));
    }
    crash
        .wanted
        .in_the_end
        .insert("/strings/shared".to_owned(), Some("kept".to_owned()));
    crash.cluster.settles(&crash.wanted.right_in_the_end);
    let changes = recording.until_now(&crash.cluster.etcd).to_vec();
    for number in 0..HOSTS.len() {
        crash.kill_host(number);
    }
    let broken = check(&changes, &crash.ran, &crash.wanted);
    crash.report(seed, kills, &changes);
    assert!(broken.is_empty(), "{broken:#?}");
}
