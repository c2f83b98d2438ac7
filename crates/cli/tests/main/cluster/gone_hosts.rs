//! Hosts, and whoever deploys, that go while a deploy is on its way: they are not taken for right, nor for busy.

use setpoint_testing::etcd::has_etcd;
use setpoint_testing::{Finished, Running};

use super::deploys::{Publisher, says};
use super::{BINARY, Cluster};
use crate::several_hosts::{Host, eventually};

impl Cluster {
    /// Publishes something, in the background.
    fn begin_deploy(&self, arguments: &[&str]) -> Running {
        let mut command = self.place.command(BINARY);
        command.current_dir(self.place.path("repository"));
        command.args([
            "deploy",
            "--no-git",
            "--etcd-endpoints",
            &self.etcd.endpoints().join(","),
        ]);
        command.args(arguments);
        Running::start(command)
    }
}

/// The last line that `list` shows.
fn newest(publisher: &Publisher<'_>) -> String {
    let list = publisher.deploy(&["list"]).stdout;
    list.lines().last().unwrap_or_default().to_owned()
}

#[test]
fn a_host_that_is_gone_during_a_deploy_does_not_count_as_right() {
    if !has_etcd("a_host_that_is_gone_during_a_deploy_does_not_count_as_right") {
        return;
    }
    let cluster = Cluster::start(1);
    let publisher = Publisher { cluster: &cluster };
    publisher.write("one.mcl", &says("one"));
    publisher.write("two.mcl", &says("two"));
    let a = cluster.member("a", &[]);
    let b = cluster.member("b", &[]);
    assert_eq!(deploy(&publisher, &["one.mcl"]).code, 0);
    for host in ["a.says", "b.says"] {
        cluster.becomes(host, "one");
    }
    eventually("both have it", || cluster.members_saying(" 1  right") == 2);

    a_deploy_does_not_wait_for_a_host_whose_lease_ended(&publisher, &b);
    a_rollout_stops_at_a_host_that_is_gone(&publisher, b);
    a_rollout_resumes_when_the_host_is_removed(&publisher);
    a_host_that_stops_is_not_waited_for(&publisher);
    a.stop();
}

fn deploy(publisher: &Publisher<'_>, arguments: &[&str]) -> Finished {
    publisher.deploy(&[&["--no-git"], arguments].concat())
}

fn a_deploy_does_not_wait_for_a_host_whose_lease_ended(publisher: &Publisher<'_>, b: &Host) {
    b.freeze();
    let waited = deploy(publisher, &["--wait", "--wait-timeout", "25", "two.mcl"]);
    assert_eq!(waited.code, 3, "{}{}", waited.stdout, waited.stderr);
    let row = waited.stdout.lines().find(|line| line.starts_with("b "));
    assert!(row.is_some_and(|row| row.contains("gone")), "{}", waited.stdout);
}

fn a_rollout_stops_at_a_host_that_is_gone(publisher: &Publisher<'_>, b: Host) {
    let cluster = publisher.cluster;
    b.thaw();
    cluster.becomes("b.says", "two");
    eventually("it is back", || cluster.members_saying(" 2  right") == 2);
    b.freeze();
    let stopped = deploy(publisher, &["--canary", "b", "--wait-timeout", "1", "one.mcl"]);
    assert_eq!(stopped.code, 1, "{}", stopped.stderr);
    b.kill();
    eventually("it is gone", || cluster.members_saying("  gone  ") == 1);
    let resumed = deploy(publisher, &["--wait-timeout", "1", "resume", "3"]);
    assert!(
        resumed.code == 1 && resumed.stderr.contains("b is gone"),
        "{}",
        resumed.stderr
    );
    assert!(
        resumed.stderr.contains("setpoint members remove b"),
        "{}",
        resumed.stderr
    );
    cluster.becomes("a.says", "two");
}

fn a_rollout_resumes_when_the_host_is_removed(publisher: &Publisher<'_>) {
    let cluster = publisher.cluster;
    let seeds = cluster.etcd.endpoints().join(",");
    let removed = cluster
        .place
        .run(BINARY, &["members", "--etcd-endpoints", &seeds, "remove", "b"]);
    assert_eq!(removed.code, 0, "{}", removed.stderr);
    let resumed = deploy(publisher, &["resume", "3"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert!(
        resumed.stdout.contains(" 3  right"),
        "all others have it when it says so: {}",
        resumed.stdout
    );
}

fn a_host_that_stops_is_not_waited_for(publisher: &Publisher<'_>) {
    let cluster = publisher.cluster;
    let c = cluster.member("c", &[]);
    cluster.becomes("c.says", "one");
    let slow = "exec \"slow\" {\n\tcmd => \"/bin/sleep 4\",\n\tshell => \"\",\n}\n";
    publisher.write("slow.mcl", slow);
    let waiting = cluster.begin_deploy(&["--wait", "slow.mcl"]);
    eventually("it is on its way", || newest(publisher).starts_with("    4"));
    c.stop();
    let (status, errors) = waiting.finish();
    assert_eq!(status.code(), Some(0), "{errors}");
}

#[test]
fn a_rollout_that_nobody_steers_is_told_as_stopped() {
    if !has_etcd("a_rollout_that_nobody_steers_is_told_as_stopped") {
        return;
    }
    let cluster = Cluster::start(1);
    let publisher = Publisher { cluster: &cluster };
    publisher.write("one.mcl", &says("one"));
    publisher.write("two.mcl", &says("two"));
    let a: Host = cluster.member("a", &[]);
    let b: Host = cluster.member("b", &[]);
    let first = publisher.deploy(&["--no-git", "one.mcl"]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    eventually("both have it", || cluster.members_saying(" 1  right") == 2);
    b.freeze();
    for (signal, why) in [("TERM", "it was interrupted"), ("HUP", "it was interrupted")] {
        let rollout = cluster.begin_deploy(&["--canary", "b", "two.mcl"]);
        eventually("it is steered", || {
            newest(&publisher).contains("being rolled out")
        });
        rollout.signal(signal);
        let (status, errors) = rollout.finish();
        assert!(status.code() == Some(1) && errors.contains(why), "{errors}");
        let told = newest(&publisher);
        assert!(told.contains(&format!("stopped: {why}")), "{told}");
        let back = publisher.deploy(&["rollback", "1"]);
        assert_eq!(back.code, 0, "{}", back.stderr);
    }
    let rollout = cluster.begin_deploy(&["--canary", "b", "two.mcl"]);
    eventually("it is steered", || {
        newest(&publisher).contains("being rolled out")
    });
    rollout.signal("KILL");
    eventually("nobody steers it", || {
        newest(&publisher).contains("stopped: whoever rolled it out is gone")
    });
    cluster.becomes("a.says", "one");
    drop(rollout);
    b.thaw();
    // And back to what was before, first on one of them.
    let back = publisher.deploy(&["--canary", "a", "--max-unavailable", "1", "rollback", "1"]);
    assert_eq!(back.code, 0, "{}", back.stderr);
    eventually("both have it", || cluster.members_saying("  right") == 2);
    a.stop();
    b.stop();
}

#[test]
fn switches_that_would_do_nothing_are_refused_before_anything_is_done() {
    if !has_etcd("switches_that_would_do_nothing_are_refused_before_anything_is_done") {
        return;
    }
    let cluster = Cluster::start(1);
    let publisher = Publisher { cluster: &cluster };
    publisher.write("one.mcl", &says("one"));
    for _ in 0..3 {
        assert_eq!(publisher.deploy(&["--no-git", "one.mcl"]).code, 0);
    }
    let before = cluster.etcd.control(&["get", "--prefix", "/setpoint/deploy/"]);
    for words in [
        &["--noop", "gc", "--keep", "1"][..],
        &["--noop", "rollback", "1"],
        &["--sema", "1", "rollback", "1"],
        &["--no-autoedges", "finish", "3"],
        &["--canary", "1", "resume", "3"],
        &["--max-unavailable", "1", "gc", "--keep", "1"],
        &["--wait", "list"],
    ] {
        let refused = publisher.deploy(words);
        assert_eq!(refused.code, 64, "{words:?}: {}", refused.stderr);
        let said = format!("`{}` does nothing with `", words[0]);
        assert!(refused.stderr.contains(&said), "{words:?}: {}", refused.stderr);
    }
    let mistyped = publisher.deploy(&["lst"]);
    assert!(
        mistyped.code == 64 && mistyped.stderr.contains("did you mean `list`?"),
        "{}",
        mistyped.stderr
    );
    let after = cluster.etcd.control(&["get", "--prefix", "/setpoint/deploy/"]);
    assert_eq!(after, before);
}

/// Each host tells the others its address, and exports a file that says that it is there.
const SHARES: &str = "\
import \"fmt\"
import \"world\"
import \"world/collect\"

kv \"address\" {
	value => \"of ${hostname}\",
	mapped => true,
}
file \"PLACE/${hostname}-is-there\" {
	state => \"exists\",
	content => \"yes\",
	Meta:hidden => true,
	Meta:export => [\"*\",],
}
if $hostname == \"a\" {
	collect file collect.res(\"file\") {
		Meta:autogroup => false,
	}
	file \"PLACE/a.knows\" {
		state => \"exists\",
		content => fmt.printf(\"%v\", world.kvlookup(\"address\")),
	}
}
";

#[test]
fn what_a_gone_host_has_shared_goes_when_it_is_removed() {
    if !has_etcd("what_a_gone_host_has_shared_goes_when_it_is_removed") {
        return;
    }
    let cluster = Cluster::start(1);
    let publisher = Publisher { cluster: &cluster };
    publisher.write("shares.mcl", SHARES);
    let a = cluster.member("a", &[]);
    let b = cluster.member("b", &[]);
    let deployed = publisher.deploy(&["--no-git", "shares.mcl"]);
    assert_eq!(deployed.code, 0, "{}", deployed.stderr);
    cluster.becomes("a.knows", "{\"a\": \"of a\", \"b\": \"of b\"}");
    cluster.becomes("b-is-there", "yes");
    let seeds = cluster.etcd.endpoints().join(",");
    let members = |words: &[&str]| {
        let arguments = [&["members", "--etcd-endpoints", &seeds], words].concat();
        cluster.place.run(BINARY, &arguments)
    };
    // Not while it is there.
    let refused = members(&["remove", "b"]);
    assert!(
        refused.code == 1 && refused.stderr.contains("b stays: the host is a member now"),
        "{}",
        refused.stderr
    );
    b.kill();
    eventually("it is gone", || cluster.members_saying("  gone  ") == 1);
    let meant = members(&["remove", "bb"]);
    assert!(
        meant.code == 1 && meant.stderr.contains("bb has left nothing behind"),
        "{}",
        meant.stderr
    );
    // Its string stays until the host is removed.
    assert_eq!(cluster.value("/host-strings/b/address"), "of b");
    let removed = members(&["remove", "b"]);
    assert_eq!(removed.code, 0, "{}", removed.stderr);
    let told = "b is removed: its key, 1 exported resource, 1 string, 0 candidacies";
    assert!(removed.stderr.contains(told), "{}", removed.stderr);
    cluster.becomes("a.knows", "{\"a\": \"of a\"}");
    assert_eq!(cluster.members_saying("  gone  "), 0);
    let keys = cluster
        .etcd
        .control(&["get", "--prefix", "/setpoint/", "--keys-only"]);
    let of_b: Vec<&str> = keys
        .lines()
        .filter(|key| key.split('/').any(|part| part == "b"))
        .collect();
    assert_eq!(of_b, [""; 0]);
    // It may come back, as a new one.
    let b = cluster.member("b", &[]);
    cluster.becomes("a.knows", "{\"a\": \"of a\", \"b\": \"of b\"}");
    a.stop();
    b.stop();
}
