//! A store that is away or frozen: hosts go on with what they know, and act as nothing that others may be by now.

use setpoint_testing::etcd::has_etcd;

use super::Cluster;
use crate::several_hosts::eventually;

/// Stands for something, reads a string, and manages a file that needs neither.
const HOST: &str = r#"
import "golang/strings" as strings
import "world"
schedule "leader" {
	ttl => 3,
}
file "PLACE/${hostname}.plain" {
	state => "exists",
	content => "right",
}
file "PLACE/${hostname}.chosen" {
	state => "exists",
	content => strings.join(world.schedule("leader"), " "),
}
$motto = world.getval("motto")
file "PLACE/${hostname}.motto" {
	state => "exists",
	content => $motto->value,
}
"#;

#[test]
fn a_host_that_starts_while_the_store_is_away_goes_on_with_what_it_saw_last() {
    if !has_etcd("a_host_that_starts_while_the_store_is_away_goes_on_with_what_it_saw_last") {
        return;
    }
    let mut cluster = Cluster::start(1);
    cluster
        .etcd
        .control(&["put", "/setpoint/strings/motto", "onward"]);
    let host = cluster.host("a", HOST);
    cluster.becomes("a.chosen", "a");
    cluster.becomes("a.motto", "onward");
    eventually("it is remembered", || {
        let shared = cluster.place.path("prefix-a/local/shared");
        let files = std::fs::read_dir(shared).into_iter().flatten().flatten();
        let mut texts = files.map(|file| std::fs::read(file.path()).unwrap_or_default());
        texts.any(|text| String::from_utf8_lossy(&text).contains("onward"))
    });
    host.stop();
    cluster.etcd.kill_member(0);
    for file in ["a.plain", "a.chosen", "a.motto"] {
        std::fs::remove_file(cluster.place.path(file)).expect("it was made");
    }
    let host = cluster.host("a", HOST);
    cluster.becomes("a.plain", "right");
    cluster.becomes("a.motto", "onward");
    // It has no lease, so another host may be chosen by now.
    cluster.becomes("a.chosen", "");
    cluster.etcd.start_member(0);
    cluster.becomes("a.chosen", "a");
    host.stop();
    // A value that was never read is not waited for by a run that ends.
    cluster.etcd.kill_member(0);
    let once = cluster.once(
        "b",
        "import \"world\"\n$x = world.getval(\"other\")\nprint \"x\" {\n\tmsg => $x->value,\n}\n",
    );
    assert_eq!(once.code, 1, "{}", once.stderr);
    assert!(
        once.stderr.contains("the store does not answer"),
        "{}",
        once.stderr
    );
}

#[test]
fn a_host_whose_lease_has_ended_is_not_chosen_in_its_own_eyes() {
    if !has_etcd("a_host_whose_lease_has_ended_is_not_chosen_in_its_own_eyes") {
        return;
    }
    let cluster = Cluster::start(1);
    let host = cluster.host("a", HOST);
    cluster.becomes("a.chosen", "a");
    cluster.etcd.signal_member(0, "STOP");
    cluster.becomes("a.chosen", "");
    cluster.etcd.signal_member(0, "CONT");
    cluster.becomes("a.chosen", "a");
    host.stop();
}

#[test]
fn a_member_of_the_store_that_is_frozen_costs_no_lease() {
    if !has_etcd("a_member_of_the_store_that_is_frozen_costs_no_lease") {
        return;
    }
    let cluster = Cluster::start(3);
    let host = cluster.host("a", HOST);
    cluster.becomes("a.chosen", "a");
    let leader = cluster.etcd.leader();
    let candidacy = || {
        let endpoint = &cluster.etcd.endpoints()[leader];
        cluster.etcd.control(&[
            "--endpoints",
            endpoint,
            "get",
            "/setpoint/scheduler/hostname/a/leader",
            "-w",
            "fields",
        ])
    };
    let created = |fields: &str| {
        let field = |line: &&str| line.starts_with("\"CreateRevision\"");
        fields.lines().find(field).map(str::to_owned)
    };
    let before = created(&candidacy());
    assert!(before.is_some());
    // The host is connected to one of the three. The two others see that its lease lives.
    for frozen in (0..3).filter(|member| *member != leader) {
        cluster.etcd.signal_member(frozen, "STOP");
        let begin = std::time::Instant::now();
        eventually("twice the time of the lease has passed", || {
            assert_eq!(created(&candidacy()), before, "the candidacy stays");
            begin.elapsed().as_secs() >= 6
        });
        cluster.etcd.signal_member(frozen, "CONT");
    }
    // A command that asks the members one after the other finds one that answers.
    cluster.etcd.signal_member(0, "STOP");
    let wrote = cluster.once("b", "kv \"x\" {\n\tvalue => \"1\",\n}\n");
    cluster.etcd.signal_member(0, "CONT");
    assert_eq!(wrote.code, 0, "{}", wrote.stderr);
    host.stop();
}
