//! What fails in a cluster, and that it holds.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use setpoint_testing::etcd::{EtcdCluster, Recording, has_etcd};
use setpoint_testing::history::{Recorded, Wanted};
use setpoint_testing::{Network, Running};

use super::members::{ended, finished, program, wanted};
use super::{BINARY, Cluster};
use crate::several_hosts::{PATIENCE, eventually};

#[test]
fn a_leader_of_the_store_that_is_killed_is_not_missed_by_hosts() {
    if !has_etcd("a_leader_of_the_store_that_is_killed_is_not_missed_by_hosts") {
        return;
    }
    let mut cluster = Cluster::start(3);
    let mut recording = Recording::start(&cluster.etcd, "/setpoint");
    let (a, b) = (cluster.member_here("a"), cluster.member_here("b"));
    cluster.publish(None, &program("one", ""));
    cluster.comes_to("a.deploy", "one");
    cluster.comes_to("b.deploy", "one");
    cluster.chosen_become(&["a", "b"]);
    let leader = cluster.etcd.leader();
    cluster.etcd.kill_member(leader);
    let second = cluster.publish(None, &program("two", ""));
    cluster.comes_to("a.deploy", "two");
    cluster.comes_to("b.deploy", "two");
    cluster.etcd.start_member(leader);
    cluster.etcd.wait_until_ready();
    // One that has lost its disk comes back with nothing, in its own place.
    cluster.etcd.replace_member(leader);
    cluster.etcd.wait_until_ready();
    let third = cluster.publish(None, &program("three", ""));
    for host in ["a", "b"] {
        cluster.comes_to(&format!("{host}.deploy"), "three");
        cluster.eventually_reports(host, Some(third));
    }
    assert_eq!((second, third), (2, 3));
    cluster.chosen_become(&["a", "b"]);
    let wanted = Wanted {
        published: [1, 2, 3].into(),
        ..wanted(&["a", "b"])
    };
    cluster.look_at(&mut recording, vec![("a", a), ("b", b)], &wanted);
}

/// Says in a file what is under a key that nobody keeps.
const FREE: &str = r#"
import "fmt"
import "world"
$free = world.getval("free")
$gone = world.getval("gone")
file "PLACE/${hostname}.free" {
	state => "exists",
	content => fmt.printf("%t %s %t", $free->exists, $free->value, $gone->exists),
}
"#;

#[test]
fn a_host_that_is_cut_off_is_replaced_and_catches_up() {
    let test = "a_host_that_is_cut_off_is_replaced_and_catches_up";
    if !has_etcd(test) {
        return;
    }
    // Three members, and then the hosts a, b and c.
    let Some(network) = Network::of(6, test) else {
        return;
    };
    let cluster = Cluster::on(&network, 3);
    let mut recording = Recording::start(&cluster.etcd, "/setpoint");
    let from = network.bridge();
    let start = |host: &str, node: usize| {
        Running::start(cluster.member_command(host, Some(&network.namespace(node))))
    };
    let deploy = |version: &str| cluster.publish(Some(&from), &program(version, FREE));
    let a = start("a", 3);
    deploy("one");
    cluster.comes_to("a.deploy", "one");
    cluster.chosen_become(&["a"]);
    let b = start("b", 4);
    cluster.chosen_become(&["a", "b"]);
    let c = start("c", 5);
    cluster.comes_to("b.deploy", "one");
    cluster.comes_to("c.deploy", "one");
    cluster.chosen_become(&["a", "b"]);
    cluster.etcd.control(&["put", "/setpoint/strings/free", "before"]);
    cluster.etcd.control(&["put", "/setpoint/strings/gone", "before"]);
    cluster.comes_to("b.free", "true before true");

    a_chosen_host_misses_what_the_store_forgets(&cluster, &network, &mut recording);
    the_host_that_decides_elections_is_cut_off(&cluster, &network);
    let last = a_host_is_alone_with_the_leader_of_the_store(&cluster, &network);
    for host in ["a", "b", "c"] {
        cluster.comes_to(&format!("{host}.deploy"), "four");
        cluster.eventually_reports(host, Some(last));
    }
    let wanted = Wanted {
        published: (1..=last).collect(),
        ..wanted(&["a", "b", "c"])
    };
    cluster.look_at(&mut recording, vec![("a", a), ("b", b), ("c", c)], &wanted);
}

/// The number of a host in the network, in which the members of etcd come first.
fn node_of(host: &str) -> usize {
    let position = ["a", "b", "c"].iter().position(|one| *one == host);
    3 + position.expect("it is one of them")
}

/// Deletes, recreated keys and a deploy are compacted before the host is back.
fn a_chosen_host_misses_what_the_store_forgets(
    cluster: &Cluster,
    network: &Network,
    recording: &mut Recording,
) {
    network.cut_off(node_of("b"));
    let out = cluster.chosen_become(&["a", "c"]);
    cluster.publish(Some(&network.bridge()), &program("two", FREE));
    for host in ["a", "c"] {
        cluster.comes_to(&format!("{host}.deploy"), "two");
    }
    for arguments in [
        &["del", "/setpoint/strings/free"][..],
        &["del", "/setpoint/strings/gone"],
        &["put", "/setpoint/strings/free", "after"],
    ] {
        cluster.etcd.control(arguments);
    }
    recording.until_now(&cluster.etcd);
    cluster.etcd.compact();
    network.join(node_of("b"));
    let back = cluster.comes_to("b.deploy", "two");
    cluster.comes_to("b.free", "true after false");
    println!(
        "a chosen host was out {out:.1?} after it was cut off, and caught up {back:.1?} after it was back"
    );
}

fn the_host_that_decides_elections_is_cut_off(cluster: &Cluster, network: &Network) {
    let deciders = cluster.etcd.control(&[
        "get",
        "--prefix",
        "/setpoint/scheduler/election/",
        "--sort-by=CREATE",
        "--print-value-only",
    ]);
    let decider = deciders
        .split_whitespace()
        .next()
        .expect("somebody decides")
        .to_owned();
    network.cut_off(node_of(&decider));
    let others: Vec<&str> = ["a", "b", "c"]
        .into_iter()
        .filter(|host| *host != decider)
        .collect();
    let out = cluster.chosen_become(&others);
    cluster.publish(Some(&network.bridge()), &program("three", FREE));
    network.join(node_of(&decider));
    let back = cluster.comes_to(&format!("{decider}.deploy"), "three");
    println!(
        "{decider}, who decided, was out {out:.1?} after it was cut off, and caught up {back:.1?} after it was back"
    );
}

fn a_host_is_alone_with_the_leader_of_the_store(cluster: &Cluster, network: &Network) -> u64 {
    let leader = cluster.etcd.leader();
    let chosen = cluster.value("/scheduler/schedule/leader");
    let alone = chosen.split(',').next().expect("somebody is chosen");
    network.part(&[leader, node_of(alone)]);
    let others: Vec<&str> = ["a", "b", "c"]
        .into_iter()
        .filter(|host| *host != alone)
        .collect();
    let out = cluster.chosen_become(&others);
    let last = cluster.publish(Some(&network.bridge()), &program("four", FREE));
    network.heal();
    let back = cluster.comes_to(&format!("{alone}.deploy"), "four");
    println!(
        "{alone}, with a member alone, was out after {out:.1?}, and caught up {back:.1?} after it was back"
    );
    last
}

#[test]
fn a_host_that_was_frozen_beyond_its_lease_undoes_nothing_that_was_decided_since() {
    if !has_etcd("a_host_that_was_frozen_beyond_its_lease_undoes_nothing_that_was_decided_since") {
        return;
    }
    let cluster = Cluster::start(3);
    let mut recording = Recording::start(&cluster.etcd, "/setpoint");
    let one = program("one", "").replace("max => 2", "max => 1");
    let a = cluster.member_here("a");
    cluster.publish(None, &one);
    cluster.chosen_become(&["a"]);
    let b = cluster.member_here("b");
    cluster.comes_to("b.deploy", "one");
    // It decides, and is chosen.
    for _ in 0..2 {
        let chosen = cluster.value("/scheduler/schedule/leader");
        let (frozen, other) = if chosen == "a" { (&a, "b") } else { (&b, "a") };
        frozen.signal("STOP");
        cluster.chosen_become(&[other]);
        frozen.signal("CONT");
        cluster.eventually_reports(&chosen, Some(1));
        eventually("it stands again", || {
            !cluster
                .value(&format!("/scheduler/hostname/{chosen}/leader"))
                .is_empty()
        });
        assert_eq!(
            cluster.value("/scheduler/schedule/leader"),
            other,
            "who was chosen since stays"
        );
    }
    cluster.look_at(&mut recording, vec![("a", a), ("b", b)], &wanted(&["a", "b"]));
}

#[test]
fn two_processes_of_one_name_do_not_overwrite_each_other_and_report_it() {
    if !has_etcd("two_processes_of_one_name_do_not_overwrite_each_other_and_report_it") {
        return;
    }
    let cluster = Cluster::start(1);
    let mut recording = Recording::start(&cluster.etcd, "/setpoint");
    let first = cluster.member_here("a");
    cluster.publish(None, &program("one", ""));
    cluster.chosen_become(&["a"]);
    cluster.eventually_reports("a", Some(1));
    let mut command = cluster.place.command(BINARY);
    command.args([
        "run",
        "--no-raise-limits",
        "--json",
        "--hostname",
        "a",
        "--etcd-endpoints",
    ]);
    command.arg(cluster.etcd.endpoints().join(","));
    command
        .arg("--state-dir")
        .arg(cluster.place.path("prefix-elsewhere"))
        .arg("empty");
    let mut second = Running::start(command);
    second.wait_for("that it is right", |line| line.contains("\"converged\""));
    cluster.publish(None, &program("two", ""));
    cluster.eventually_reports("a", Some(2));
    eventually("both know of the other", || {
        let changes = recording.until_now(&cluster.etcd);
        let knows = |change: &&Recorded| {
            let value = change.value.as_deref().unwrap_or_default();
            change.key == "/members/a" && value.contains("\"has_namesake\":true")
        };
        let leases: BTreeSet<i64> = changes.iter().filter(knows).map(|change| change.lease).collect();
        leases.len() == 2
    });
    // When one of them goes, the other one is still there.
    second.signal("KILL");
    let (_, errors) = second.finish();
    let told = "another host has the name of this one, a: give each a name of its own with `--hostname`";
    assert_eq!(errors.matches(told).count(), 1, "{errors}");
    let changes = recording.until_now(&cluster.etcd).to_vec();
    let stood = |changes: &[Recorded]| {
        let key = "/scheduler/hostname/a/leader";
        changes
            .iter()
            .filter(|change| change.key == key && change.value.is_some())
            .count()
    };
    assert!(stood(&changes) <= 3, "{changes:#?}");
    the_first_process_takes_over_what_the_second_left(&cluster, &mut recording);
    let said = ended(first);
    let told = "another process with the name of this host is a candidate for leader too: give each host its own name with `--hostname`";
    assert_eq!(said.matches(told).count(), 1, "{said}");
    let told = "another host has the name of this one, a: give each a name of its own with `--hostname`";
    assert_eq!(said.matches(told).count(), 1, "{said}");
}

fn the_first_process_takes_over_what_the_second_left(cluster: &Cluster, recording: &mut Recording) {
    let deadline = Instant::now() + PATIENCE;
    let is_of_the_first = |key: &str, changes: &[Recorded]| {
        let mut of = changes
            .iter()
            .filter(|change| change.key == key && change.lease != 0);
        of.next().map(|change| change.lease) == of.next_back().map(|change| change.lease)
            && changes
                .iter()
                .rfind(|change| change.key == key)
                .is_some_and(|last| last.value.is_some())
    };
    loop {
        let changes = recording.until_now(&cluster.etcd).to_vec();
        let keys = ["/scheduler/hostname/a/leader", "/members/a"];
        if keys.iter().all(|key| is_of_the_first(key, &changes)) {
            break;
        }
        assert!(Instant::now() < deadline, "{changes:#?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_store_that_has_lost_everything_is_noticed_and_what_is_of_a_host_written_again() {
    if !has_etcd("a_store_that_has_lost_everything_is_noticed_and_what_is_of_a_host_written_again") {
        return;
    }
    let mut cluster = Cluster::start(1);
    let (a, b) = (cluster.member_here("a"), cluster.member_here("b"));
    for version in ["one", "two", "three"] {
        cluster.publish(None, &program(version, ""));
    }
    for host in ["a", "b"] {
        cluster.eventually_reports(host, Some(3));
    }
    cluster.etcd.kill_member(0);
    cluster.etcd.lose_data(0);
    cluster.etcd.start_member(0);
    cluster.etcd.wait_until_ready();
    // What hosts say of themselves comes by itself.
    for host in ["a", "b"] {
        let root = cluster.place.path("").display().to_string().replace('/', "%2F");
        for key in [
            format!("/host-strings/{host}/own"),
            "/strings/shared".to_owned(),
            format!("/members/{host}"),
            format!("/keys/{host}"),
            format!("/exported/*/{host}/file/{root}version of {host}"),
            format!("/scheduler/hostname/{host}/leader"),
        ] {
            let is_there = || !cluster.value(&key).is_empty();
            let deadline = Instant::now() + PATIENCE;
            while !is_there() {
                assert!(
                    Instant::now() < deadline,
                    "{key} is not there again: {}",
                    cluster.keys()
                );
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }
    cluster.chosen_become(&["a", "b"]);
    // Deploys begin anew, and their numbers with them.
    assert_eq!(cluster.publish(None, &program("four", "")), 1);
    for host in ["a", "b"] {
        cluster.comes_to(&format!("{host}.deploy"), "four");
    }
    cluster.comes_to("version of a", "four");
    for host in [a, b] {
        let said = ended(host);
        let told =
            "the shared store has lost data: reading it again, and writing the keys of this host again";
        assert_eq!(said.matches(told).count(), 1, "{said}");
        let told = "deploy 3 is not there any more: the store has lost deploys, and what it has holds";
        assert_eq!(said.matches(told).count(), 1, "{said}");
    }
}

#[test]
fn a_deploy_that_was_made_while_the_store_was_away_is_one_to_come() {
    if !has_etcd("a_deploy_that_was_made_while_the_store_was_away_is_one_to_come") {
        return;
    }
    let mut cluster = Cluster::start(3);
    let mut command = cluster.member_command("late", None);
    command.arg("--wait");
    let late = Running::start(command);
    eventually("it has seen what is there", || {
        cluster.keys().contains("/members/late")
    });
    // Its connection breaks before there is any deploy.
    for number in 0..3 {
        cluster.etcd.kill_member(number);
    }
    late.signal("STOP");
    for number in 0..3 {
        cluster.etcd.start_member(number);
    }
    cluster.etcd.wait_until_ready();
    cluster.publish(None, &program("one", ""));
    late.signal("CONT");
    cluster.comes_to("late.deploy", "one");
    ended(late);
}

#[test]
fn a_host_starts_without_its_store_and_deploys_outlive_a_restart_of_it() {
    if !has_etcd("a_host_starts_without_its_store_and_deploys_outlive_a_restart_of_it") {
        return;
    }
    let mut cluster = Cluster::start(1);
    cluster.publish(None, &program("one", ""));
    cluster.etcd.kill_member(0);
    // Nothing is known here yet.
    let mut a = cluster.member_here("a");
    a.wait_for("its start", |line| line.contains("\"started\""));
    cluster.etcd.start_member(0);
    cluster.etcd.wait_until_ready();
    let mut recording = Recording::start(&cluster.etcd, "/setpoint");
    cluster.comes_to("a.deploy", "one");
    let second = cluster.publish(None, &program("two", ""));
    cluster.comes_to("a.deploy", "two");
    cluster.eventually_reports("a", Some(second));
    cluster.look_at(&mut recording, vec![("a", a)], &wanted(&["a"]));
}

#[test]
fn a_store_that_is_full_is_told_of_and_found_well_again() {
    if !has_etcd("a_store_that_is_full_is_told_of_and_found_well_again") {
        return;
    }
    let quota = "--quota-backend-bytes=8388608";
    let cluster = Cluster::with(EtcdCluster::start_with(1, &["--unsafe-no-fsync", quota]));
    let mut a = cluster.member_here("a");
    cluster.publish(None, &program("one", ""));
    cluster.eventually_reports("a", Some(1));
    let large = "x".repeat(100_000);
    while cluster.etcd.tries(&["put", "/filled", &large]) {}
    assert!(cluster.etcd.control(&["alarm", "list"]).contains("NOSPACE"));
    let refused = finished(&mut cluster.publishing(&program("two", "")));
    let told = "the store is full: its quota is used up. It takes what is new again after `etcdctl compaction`, `etcdctl defrag` of each member and `etcdctl alarm disarm`";
    assert!(
        refused.code == 1 && refused.stderr.contains(told),
        "{}",
        refused.stderr
    );
    // What a host keeps there it cannot write, says why, and goes on to try.
    cluster.etcd.control(&["del", "/setpoint/strings/shared"]);
    a.wait_for("that it fails", |line| line.contains(told));
    std::fs::write(cluster.place.path("a.deploy"), "by hand").expect("the place is writable");
    cluster.comes_to("a.deploy", "one");
    cluster.etcd.compact();
    cluster.etcd.control(&["defrag"]);
    cluster.etcd.control(&["alarm", "disarm"]);
    let second = cluster.publish(None, &program("two", ""));
    cluster.eventually_reports("a", Some(second));
    assert_eq!(cluster.value("/strings/shared"), "kept");
    ended(a);
}

#[test]
fn a_disk_that_is_slow_delays_a_cluster_and_breaks_nothing() {
    let test = "a_disk_that_is_slow_delays_a_cluster_and_breaks_nothing";
    if !has_etcd(test) {
        return;
    }
    // This one waits for its disk.
    let cluster = Cluster::with(EtcdCluster::start_with(3, &[]));
    let mut recording = Recording::start(&cluster.etcd, "/setpoint");
    let (a, b) = (cluster.member_here("a"), cluster.member_here("b"));
    cluster.publish(None, &program("one", ""));
    for host in ["a", "b"] {
        cluster.comes_to(&format!("{host}.deploy"), "one");
    }
    let Some(slow) = SlowDisk::of(cluster.etcd.process_of(cluster.etcd.leader()), test) else {
        return;
    };
    let second = cluster.publish(None, &program("two", ""));
    for host in ["a", "b"] {
        cluster.comes_to(&format!("{host}.deploy"), "two");
    }
    drop(slow);
    for host in ["a", "b"] {
        cluster.eventually_reports(host, Some(second));
    }
    cluster.look_at(&mut recording, vec![("a", a), ("b", b)], &wanted(&["a", "b"]));
}

/// A process each of whose writes to disk takes half a second longer, until this is dropped.
struct SlowDisk(std::process::Child);

impl SlowDisk {
    /// None where this machine lets nobody trace, and then says that a test is skipped.
    #[expect(
        clippy::print_stderr,
        reason = "whoever runs the tests wants to know what was not tested"
    )]
    fn of(process: u32, test: &str) -> Option<SlowDisk> {
        let trace = Command::new("strace")
            .args(["-f", "-o", "/dev/null", "-e", "trace=fdatasync,fsync"])
            .args(["-e", "inject=fdatasync,fsync:delay_exit=500000"])
            .args(["-p", &process.to_string()])
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut trace) = trace else {
            eprintln!("skipped: {test}: needs the program `strace`");
            return None;
        };
        let errors = trace.stderr.take().expect("it was piped");
        let mut first = String::new();
        let _ = std::io::BufRead::read_line(&mut std::io::BufReader::new(errors), &mut first);
        if first.contains("attached") {
            return Some(SlowDisk(trace));
        }
        let _ = trace.kill();
        let _ = trace.wait();
        eprintln!("skipped: {test}: no process can be traced: {}", first.trim());
        None
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        // It lets go of the process, which goes on.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}
