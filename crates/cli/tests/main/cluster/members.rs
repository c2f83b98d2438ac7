//! Hosts that run what is deployed, and what is asked of them.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use setpoint_testing::etcd::{EtcdCluster, Recording};
use setpoint_testing::history::{Broken, Ran, Wanted, check};
use setpoint_testing::{Finished, Hermetic, Network, Running};

use super::{BINARY, Cluster};
use crate::several_hosts::PATIENCE;

/// How long a machine under load may take beyond what is promised.
const SLACK: Duration = Duration::from_secs(20);

/// A program that says its version in a file, stands for something, shares strings, exports and collects: each file is one host's alone.
pub(super) fn program(version: &str, further: &str) -> String {
    let text = r#"
file "PLACE/${hostname}.deploy" {
	state => "exists",
	content => "VERSION",
}
kv "shared" {
	value => "kept",
}
kv "own" {
	value => "of ${hostname}",
	mapped => true,
}
schedule "leader" {
	max => 2,
	ttl => 2,
}
file "PLACE/version of ${hostname}" {
	state => "exists",
	content => "VERSION",
	Meta:hidden => true,
	Meta:export => ["*",],
}
file "PLACE/always from ${hostname}" {
	state => "exists",
	content => "the same",
	Meta:hidden => true,
	Meta:export => ["*",],
}
if $hostname == "b" {
	collect file "PLACE/version of a" {}
}
if $hostname == "c" {
	collect file "PLACE/version of b" {}
}
if $hostname == "a" {
	collect file "PLACE/version of c" {}
}
"#;
    text.replace("VERSION", version) + further
}

/// The deploys of which a host has said on standard error that it runs them.
pub(super) fn deploys_in(errors: &str) -> Vec<u64> {
    let said = errors
        .lines()
        .filter_map(|line| line.split_once(" deploy ")?.1.parse().ok());
    said.collect()
}

impl Cluster {
    /// One whose members are on the first hosts of a network.
    pub(super) fn on(network: &Network, members: usize) -> Cluster {
        Cluster {
            etcd: EtcdCluster::start_on(network, members),
            place: Hermetic::new(),
        }
    }

    pub(super) fn with(etcd: EtcdCluster) -> Cluster {
        Cluster {
            etcd,
            place: Hermetic::new(),
        }
    }

    /// In how many lines `members` says this.
    pub(super) fn members_saying(&self, state: &str) -> usize {
        let seeds = self.etcd.endpoints().join(",");
        let members = self.place.run(BINARY, &["members", "--etcd-endpoints", &seeds]);
        members.stdout.lines().filter(|line| line.contains(state)).count()
    }

    /// A host that runs what is deployed, in a network namespace or in that of the test.
    pub(super) fn member_command(&self, host: &str, namespace: Option<&str>) -> Command {
        let mut command = self.host_command(host, namespace);
        command.arg("empty");
        command
    }

    /// A host with a prefix of its own, but for what it runs.
    pub(super) fn host_command(&self, host: &str, namespace: Option<&str>) -> Command {
        let mut command = self.in_namespace(namespace);
        command.args([
            "run",
            "--no-raise-limits",
            "--json",
            "--hostname",
            host,
            "--etcd-endpoints",
        ]);
        command.arg(self.etcd.endpoints().join(","));
        command
            .arg("--state-dir")
            .arg(self.place.path(&format!("prefix-{host}")));
        command
    }

    fn in_namespace(&self, namespace: Option<&str>) -> Command {
        match namespace {
            None => self.place.command(BINARY),
            Some(namespace) => {
                let mut command = self.place.command("ip");
                command.args(["netns", "exec", namespace, BINARY]);
                command
            }
        }
    }

    pub(super) fn member_here(&self, host: &str) -> Running {
        Running::start(self.member_command(host, None))
    }

    /// The command that publishes a program.
    pub(super) fn publishing(&self, program: &str) -> Command {
        self.publishing_from(None, program)
    }

    pub(super) fn publishing_from(&self, namespace: Option<&str>, program: &str) -> Command {
        let root = self.place.path("").display().to_string();
        let program = program.replace("PLACE/", &root);
        let file = self.place.write("published.mcl", program);
        let mut command = self.in_namespace(namespace);
        command.args([
            "deploy",
            "--no-git",
            "--etcd-endpoints",
            &self.etcd.endpoints().join(","),
        ]);
        command.arg(file);
        command
    }

    /// Publishes a program, and again until that succeeds. Answers its number.
    pub(super) fn publish(&self, namespace: Option<&str>, program: &str) -> u64 {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let ran = finished(&mut self.publishing_from(namespace, program));
            if ran.code == 0 {
                let id = ran
                    .stderr
                    .rsplit("id: ")
                    .next()
                    .and_then(|id| id.trim().parse().ok());
                return id.expect("it has a number");
            }
            assert!(Instant::now() < deadline, "{}", ran.stderr);
        }
    }

    /// Waits until a file has this content, and answers how long that took.
    pub(super) fn comes_to(&self, file: &str, content: &str) -> Duration {
        let begun = Instant::now();
        let path = self.place.path(file);
        while std::fs::read_to_string(&path).ok().as_deref() != Some(content) {
            assert!(
                begun.elapsed() < PATIENCE,
                "{file} is not {content:?} but {:?}",
                std::fs::read_to_string(&path)
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        begun.elapsed()
    }

    pub(super) fn value(&self, key: &str) -> String {
        let key = format!("/setpoint{key}");
        let value = self.etcd.control(&["get", &key, "--print-value-only"]);
        value.trim_end().to_owned()
    }

    pub(super) fn report(&self, host: &str) -> Json {
        serde_json::from_str(&self.value(&format!("/members/{host}"))).unwrap_or_default()
    }

    /// Waits until a host says that it has a deploy right.
    pub(super) fn eventually_reports(&self, host: &str, deploy: Option<u64>) {
        let begun = Instant::now();
        loop {
            let report = self.report(host);
            if report["running"].as_u64() == deploy && report["state"] == "right" {
                return;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "{host} has not got {deploy:?} right: {report}"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until all these hosts say that they are right, and none says anything else for a while: what one of them does makes
    /// others run again.
    pub(super) fn settles(&self, hosts: &BTreeSet<String>) {
        const QUIET: Duration = Duration::from_millis(700);
        let begun = Instant::now();
        let mut before = Vec::new();
        loop {
            let reports: Vec<Json> = hosts.iter().map(|host| self.report(host)).collect();
            if reports == before && reports.iter().all(|report| report["state"] == "right") {
                return;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "they are not all right and quiet: {reports:?}"
            );
            before = reports;
            std::thread::sleep(QUIET);
        }
    }

    /// Waits until these are chosen, and answers how long that took.
    pub(super) fn chosen_become(&self, hosts: &[&str]) -> Duration {
        let begun = Instant::now();
        loop {
            let value = self.value("/scheduler/schedule/leader");
            let mut chosen: Vec<&str> = value.split(',').filter(|host| !host.is_empty()).collect();
            chosen.sort_unstable();
            if chosen == hosts {
                return begun.elapsed();
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "chosen are {value}, and not {hosts:?}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends hosts, and looks at all that has happened.
    pub(super) fn look_at(&self, recording: &mut Recording, hosts: Vec<(&str, Running)>, wanted: &Wanted) {
        self.settles(&wanted.right_in_the_end);
        let changes = recording.until_now(&self.etcd).to_vec();
        let mut ran = Vec::new();
        let mut said = Vec::new();
        for (host, running) in hosts {
            let errors = ended(running);
            let deploys = deploys_in(&errors);
            let host = host.to_owned();
            ran.push(Ran { host, deploys });
            said.push(errors);
        }
        let broken = check(&changes, &ran, wanted);
        assert_eq!(broken, [] as [Broken; 0], "{said:#?}");
    }
}

/// Ends a host politely, and answers what it has said on standard error.
pub(super) fn ended(running: Running) -> String {
    running.signal("TERM");
    let (status, errors) = running.finish();
    assert_eq!(status.code(), Some(0), "{errors}");
    errors
}

pub(super) fn finished(command: &mut Command) -> Finished {
    let output = command.output().expect("it can be started");
    Finished {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

pub(super) fn wanted(hosts: &[&str]) -> Wanted {
    Wanted {
        kept: vec![
            "/exported/".to_owned(),
            "/strings/shared".to_owned(),
            "/host-strings/".to_owned(),
        ],
        right_in_the_end: hosts.iter().map(|host| (*host).to_owned()).collect(),
        out_within: Some(Duration::from_secs(1) + SLACK),
        ..Wanted::default()
    }
}
