//! Plans of deploys on all hosts.

use setpoint_testing::etcd::has_etcd;

use super::Cluster;
use super::deploys::Publisher;
use crate::several_hosts::eventually;

/// A file that all hosts write, and one more on the host `c`.
fn program(text: &str) -> String {
    format!(
        "file \"PLACE/motd\" {{\n\tstate => \"exists\",\n\tcontent => \"{text}\\n\",\n}}\n\n\
         if $hostname == \"c\" {{\n\tfile \"PLACE/of-c\" {{\n\t\tstate => \"exists\",\n\t\tcontent => \"{text}\\n\",\n\t}}\n}}\n"
    )
}

#[test]
fn a_deploy_is_planned_on_all_hosts_and_run_on_none() {
    if !has_etcd("a_deploy_is_planned_on_all_hosts_and_run_on_none") {
        return;
    }
    let cluster = Cluster::start(1);
    let publisher = Publisher { cluster: &cluster };
    let root = cluster.place.path("").display().to_string();
    publisher.write("main.mcl", &program("one"));
    publisher.write("other.mcl", &program("two"));
    let first = publisher.deploy(&["--no-git", "main.mcl"]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    let hosts = ["a", "b", "c"].map(|host| cluster.member(host, &[]));
    for host in ["a", "b", "c"] {
        let report = || cluster.value(&format!("/members/{host}"));
        eventually("all hosts run the deploy", || report().contains("\"running\":1"));
    }
    cluster.becomes("of-c", "one\n");

    let planned = publisher.deploy(&["--plan", "--diff", "none", "other.mcl"]);
    let screen = planned.stdout.replace(&root, "PLACE/");
    let expected = "\
a, b

  ~ file[PLACE/motd]  content                                                            other.mcl:1

1 to change

c

  ~ file[PLACE/motd]  content                                                            other.mcl:1
  ~ file[PLACE/of-c]  content                                                             other.mcl:7

2 to change
";
    assert_eq!(
        (planned.code, &*squeezed(&screen)),
        (0, &*squeezed(expected)),
        "{}",
        planned.stderr
    );
    let nothing = publisher.deploy(&["--plan", "--detailed-exitcode", "main.mcl"]);
    assert!(
        nothing.code == 0 && nothing.stdout.contains("nothing to do: 1 resource is unchanged"),
        "{}{}",
        nothing.stdout,
        nothing.stderr
    );
    let something = publisher.deploy(&["--plan", "--detailed-exitcode", "--json", "other.mcl"]);
    assert_eq!(something.code, 2, "{}", something.stderr);
    let plans: Vec<serde_json::Value> = something
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("each line is a plan"))
        .collect();
    let names: Vec<&str> = plans
        .iter()
        .filter_map(|plan| plan["host"]["name"].as_str())
        .collect();
    assert_eq!(names, ["a, b", "c"]);

    // A host without an answer is named, and the others are shown.
    hosts[1].freeze();
    let silent = publisher.deploy(&["--plan", "--wait-timeout", "3", "other.mcl"]);
    hosts[1].thaw();
    assert_eq!(silent.code, 1);
    assert!(silent.stdout.contains("a\n"), "{}", silent.stdout);
    assert_eq!(silent.stderr, "error: b: no answer within 3 s\n");

    assert_eq!(publisher.deploy(&["list"]).stdout.lines().count(), 1);
    assert_eq!(
        std::fs::read_to_string(cluster.place.path("motd")).unwrap(),
        "one\n"
    );
    assert!(!cluster.keys().contains("/proposal/"), "{}", cluster.keys());
    for switch in [
        &["--plan", "list"][..],
        &["--json", "main.mcl"],
        &["--plan", "--wait", "main.mcl"],
    ] {
        assert_eq!(publisher.deploy(switch).code, 64, "{switch:?}");
    }

    the_desired_states_of_deploys_are_compared(&publisher);
    for host in hosts {
        host.stop();
    }
}

fn the_desired_states_of_deploys_are_compared(publisher: &Publisher<'_>) {
    let cluster = publisher.cluster;
    let seeds = cluster.etcd.endpoints().join(",");
    let other = cluster.place.path("repository/other.mcl").display().to_string();
    let diff = |old: &str| {
        let arguments = [
            "diff",
            "--etcd-endpoints",
            &seeds,
            "--hostname",
            "a",
            "--diff",
            "none",
            old,
            &other,
        ];
        cluster.place.run(super::BINARY, &arguments)
    };
    for old in ["deploy:1", "deploy:newest"] {
        let ran = diff(old);
        assert!(
            ran.code == 0 && ran.stdout.contains("1 changed"),
            "{}{}",
            ran.stdout,
            ran.stderr
        );
    }
    let missing = diff("deploy:7");
    assert_eq!(missing.code, 1);
    assert!(
        missing.stderr.contains("there is no deploy 7"),
        "{}",
        missing.stderr
    );
}

/// A screen without the width of its columns, which depends on the directory of the test.
fn squeezed(screen: &str) -> String {
    let lines = screen
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n")
}
