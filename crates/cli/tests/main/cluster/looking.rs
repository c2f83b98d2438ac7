//! Who only looks, or runs once: what that is to the other hosts of a cluster, and how it ends.

use setpoint_testing::Finished;
use setpoint_testing::etcd::{EtcdCluster, has_etcd};

use super::deploys::{Publisher, says};
use super::{BINARY, Cluster};
use crate::several_hosts::eventually;

impl Cluster {
    /// A run that ends by itself, as a host with a prefix of its own.
    fn run_once(&self, host: &str, prefix: &str, further: &[&str]) -> Finished {
        let seeds = self.etcd.endpoints().join(",");
        let prefix = self.place.path(prefix).display().to_string();
        let mut arguments = vec![
            "run",
            "--once",
            "--no-raise-limits",
            "--hostname",
            host,
            "--etcd-endpoints",
            &seeds,
            "--state-dir",
            &prefix,
        ];
        arguments.extend(further);
        self.place.run(BINARY, &arguments)
    }
}

#[test]
fn a_look_is_nothing_to_the_other_hosts() {
    if !has_etcd("a_look_is_nothing_to_the_other_hosts") {
        return;
    }
    let cluster = Cluster::start(1);
    let publisher = Publisher { cluster: &cluster };
    publisher.write("main.mcl", &says("one"));
    publisher.write("other.mcl", &says("two"));
    let other = cluster.place.path("repository/other.mcl").display().to_string();
    let first = publisher.deploy(&["--no-git", "main.mcl"]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    let a = cluster.member("a", &[]);
    cluster.becomes("a.says", "one");
    let key = || cluster.value("/keys/a");
    eventually("its key is there", || !key().is_empty());
    let own = key();
    let looked = cluster.run_once("a", "elsewhere", &["--noop", &other]);
    assert_eq!(looked.code, 0, "{}", looked.stderr);
    let once = cluster.run_once("b", "elsewhere-b", &[&other]);
    assert_eq!(once.code, 0, "{}", once.stderr);
    cluster.becomes("b.says", "two");
    assert_eq!(publisher.deploy(&["list"]).stdout.lines().count(), 1);
    assert_eq!(key(), own, "who looks on has no key to be told");
    cluster.becomes("a.says", "one");

    // What a member needs is not taken away from it.
    let seeds = cluster.etcd.endpoints().join(",");
    let remove = || {
        cluster
            .place
            .run(BINARY, &["keys", "--etcd-endpoints", &seeds, "remove", "a"])
    };
    eventually("it is a member", || !cluster.value("/members/a").is_empty());
    let kept = remove();
    assert!(
        kept.code == 1 && kept.stderr.contains("the host is a member now"),
        "{}",
        kept.stderr
    );
    assert_eq!(key(), own);
    a.stop();
    assert_eq!(remove().code, 0);
}

#[test]
fn a_single_run_without_a_deploy_ends_and_says_why() {
    if !has_etcd("a_single_run_without_a_deploy_ends_and_says_why") {
        return;
    }
    let cluster = Cluster::start(1);
    let none = cluster.run_once("a", "prefix-a", &["empty"]);
    assert!(
        none.code == 1 && none.stderr.contains("there is no deploy for this host yet"),
        "{} {}",
        none.code,
        none.stderr
    );
    let publisher = Publisher { cluster: &cluster };
    publisher.write("main.mcl", &says("one"));
    let deployed = publisher.deploy(&["--no-git", "main.mcl"]);
    assert_eq!(deployed.code, 0, "{}", deployed.stderr);
    let ran = cluster.run_once("a", "prefix-a", &["empty"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    cluster.becomes("a.says", "one");
    let reads = "import \"world\"\nprint \"x\" {\n\tmsg => world.getval(\"key\")->value,\n}\n";
    let reads = cluster.place.write("reads.mcl", reads).display().to_string();
    for (program, why) in [
        (&["empty"][..], "no deploy is known here"),
        (&["--no-deploy", &reads], "`world.getval` failed"),
    ] {
        let options = [
            "run",
            "--once",
            "--no-raise-limits",
            "--etcd-endpoints",
            "http://127.0.0.1:1",
            "--tmp-state-dir",
        ];
        let away = cluster.place.run(BINARY, &[&options, program].concat());
        assert!(
            away.code == 1 && away.stderr.contains(why),
            "{} {}",
            away.code,
            away.stderr
        );
    }
}

#[test]
fn a_deploy_that_does_not_fit_leaves_room_and_a_full_store_can_be_cleared() {
    if !has_etcd("a_deploy_that_does_not_fit_leaves_room_and_a_full_store_can_be_cleared") {
        return;
    }
    let cluster = Cluster::with(EtcdCluster::start_with(1, &["--quota-backend-bytes", "6000000"]));
    let publisher = Publisher { cluster: &cluster };
    publisher.write("one.mcl", &says("one"));
    for _ in 0..3 {
        let ran = publisher.deploy(&["--no-git", "one.mcl"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    publisher.write("big/main.mcl", &says("big"));
    publisher.write("big/metadata.yaml", "main: \"main.mcl\"\nfiles: \"files/\"\n");
    setpoint_testing::place::shell(&format!(
        "cd {}; mkdir -p big/files; head -c 9000000 /dev/urandom > big/files/noise",
        cluster.place.path("repository").display()
    ));
    let full = publisher.deploy(&["--no-git", "big/"]);
    assert!(
        full.code == 1 && full.stderr.contains("the store is full"),
        "{}",
        full.stderr
    );
    let parts = cluster
        .etcd
        .control(&["get", "--prefix", "/setpoint/storage/", "--keys-only"]);
    assert!(
        parts.lines().filter(|line| !line.is_empty()).count() <= 6,
        "nothing of it is left: {parts}"
    );
    let cleared = publisher.deploy(&["gc", "--keep", "1"]);
    assert!(
        cleared.code == 0 && cleared.stderr.contains("cleared away: 2 deploys"),
        "{}",
        cleared.stderr
    );
    // As the message says.
    cluster.etcd.compact();
    cluster.etcd.control(&["defrag"]);
    cluster.etcd.control(&["alarm", "disarm"]);
    let again = publisher.deploy(&["--no-git", "one.mcl"]);
    assert_eq!(again.code, 0, "{}", again.stderr);
}

/// Runs a command every second that takes longer than a report waits.
const POLLS: &str = "\
exec \"work\" {
	cmd => \"sleep 0.4; echo ran >> PLACE/runs\",
	shell => \"/bin/sh\",
	Meta:poll => 1,
}
";

#[test]
fn a_command_that_runs_every_second_writes_nothing_to_the_store() {
    if !has_etcd("a_command_that_runs_every_second_writes_nothing_to_the_store") {
        return;
    }
    let cluster = Cluster::start(1);
    let publisher = Publisher { cluster: &cluster };
    publisher.write("polls.mcl", POLLS);
    let a = cluster.member("a", &[]);
    let deployed = publisher.deploy(&["--no-git", "polls.mcl"]);
    assert_eq!(deployed.code, 0, "{}", deployed.stderr);
    eventually("it is right", || cluster.members_saying(" 1  right") == 1);
    let runs = || std::fs::read_to_string(cluster.place.path("runs")).map_or(0, |text| text.lines().count());
    let reports = || cluster.history("/members/").len();
    let (before, runs_before) = (reports(), runs());
    eventually("it has run a few times", || runs() >= runs_before + 4);
    assert_eq!(reports(), before, "{:?}", cluster.history("/members/"));
    a.stop();
}
