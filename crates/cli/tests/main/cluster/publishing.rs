//! What is in a deploy, what goes with it, and who takes it: real hosts and a real etcd.

use setpoint_testing::Running;
use setpoint_testing::etcd::has_etcd;

use super::deploys::{Publisher, finished, says};
use super::{BINARY, Cluster};
use crate::several_hosts::{Host, eventually};

impl Cluster {
    /// A host that publishes its program, and runs what is newest.
    fn publishing_host(&self, host: &str, program: &str) -> std::process::Command {
        let mut command = self.host_command(host, None);
        command.arg(self.place.path("repository").join(program));
        command
    }
}

#[test]
fn what_is_published_by_a_run_all_members_take_and_a_lost_race_is_run_again() {
    if !has_etcd("what_is_published_by_a_run_all_members_take_and_a_lost_race_is_run_again") {
        return;
    }
    let cluster = Cluster::start(3);
    let publisher = Publisher { cluster: &cluster };
    let member = cluster.member("member", &[]);
    // Many at once: each is published under a number of its own.
    let programs: Vec<String> = (0..6).map(|number| format!("p{number}.mcl")).collect();
    for name in &programs {
        publisher.write(name, &says(name));
    }
    let hosts: Vec<Host> = programs
        .iter()
        .enumerate()
        .map(|(number, name)| {
            let command = cluster.publishing_host(&format!("host-{number}"), name);
            Host::of_running(Running::start(command))
        })
        .collect();
    eventually("all are published", || {
        publisher.deploy(&["list"]).stdout.lines().count() == programs.len()
    });
    let list = publisher.deploy(&["list"]).stdout;
    let ids: Vec<&str> = list
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(ids, ["1", "2", "3", "4", "5", "6"], "{list}");
    // And the newest is what everybody runs in the end.
    let said = || std::fs::read_to_string(cluster.place.path("member.says")).unwrap_or_default();
    let newest = publisher.deploy(&["show", "6"]).stdout;
    let newest = programs
        .iter()
        .find(|name| newest.contains(&***name))
        .expect("it is one of them");
    eventually("the member runs the newest", || said() == *newest);
    for number in 0..programs.len() {
        cluster.becomes(&format!("host-{number}.says"), newest);
    }
    for host in hosts {
        host.stop();
    }
    member.stop();
}

#[test]
fn a_deploy_holds_its_files_alone_and_each_content_once() {
    if !has_etcd("a_deploy_holds_its_files_alone_and_each_content_once") {
        return;
    }
    let cluster = Cluster::start(1);
    let publisher = Publisher { cluster: &cluster };
    publisher.write("main.mcl", "import \"lib/\"\ninclude lib.greets\n");
    publisher.write("metadata.yaml", "main: \"main.mcl\"\nfiles: \"files/\"\n");
    publisher.write("files/deep/motto", "a motto of its own");
    publisher.write("lib/main.mcl", "class greets() {\n\tnoop \"hello\" {}\n}\n");
    publisher.write("lib/metadata.yaml", "");
    publisher.write("notes.txt", "what nobody is to read");
    publisher.write("unused/main.mcl", "noop \"nobody imports it\" {}\n");
    let deploy = |arguments: &[&str]| {
        let ran = publisher.deploy(arguments);
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
        ran
    };
    assert_eq!(deploy(&["--no-git", "./"]).code, 0);
    let keys = |prefix: &str| {
        let found = cluster.etcd.control(&["get", "--prefix", prefix, "--keys-only"]);
        found.lines().filter(|line| !line.is_empty()).count()
    };
    let stored = keys("/setpoint/storage/");
    assert!(stored >= 3, "{stored}");
    assert_eq!(deploy(&["--no-git", "./"]).code, 0);
    assert_eq!(keys("/setpoint/storage/"), stored, "contents are stored once");
    assert_eq!(keys("/setpoint/deploy/"), 2);
    let shown = deploy(&["show", "2"]).stdout;
    for file in [
        "/main.mcl",
        "/metadata.yaml",
        "/files/deep/motto",
        "/lib/main.mcl",
    ] {
        assert!(shown.contains(file), "{file}: {shown}");
    }
    let all = cluster.etcd.control(&["get", "--prefix", "/setpoint/"]);
    let place = cluster.place.directory().display().to_string();
    for what in ["notes.txt", "nobody", "unused", &place] {
        assert!(!shown.contains(what) && !all.contains(what), "{what}: {shown}");
    }
}

#[test]
fn options_go_with_the_deploy_to_every_member() {
    if !has_etcd("options_go_with_the_deploy_to_every_member") {
        return;
    }
    let cluster = Cluster::start(1);
    let publisher = Publisher { cluster: &cluster };
    write_programs_that_options_change(&publisher);
    let deploy = |arguments: &[&str]| {
        let mut all = vec!["--no-git", "--wait"];
        all.extend(arguments);
        publisher.deploy(&all)
    };
    let graph = cluster.place.path("graph").display().to_string();
    let hosts = ["one", "two"].map(|host| cluster.member(host, &["--graphviz", &graph]));
    let drawn = |host: &str| {
        std::fs::read_to_string(cluster.place.path(&format!("graph@{host}"))).unwrap_or_default()
    };
    eventually("both are members", || {
        ["one", "two"]
            .iter()
            .all(|host| cluster.keys().contains(&format!("/members/{host}")))
    });
    let noop = deploy(&["--noop", "says.mcl"]);
    assert!(
        noop.stdout.contains("one ") && noop.stdout.contains("two "),
        "{noop:?}"
    );
    for host in ["one", "two"] {
        assert!(!cluster.place.path(&format!("{host}.says")).exists(), "{noop:?}");
    }
    assert_eq!(deploy(&["--sema", "1", "log.mcl"]).code, 0);
    for host in ["one", "two"] {
        cluster.becomes(&format!("{host}.log"), &"begin\nend\n".repeat(4));
    }
    let edge = |host: &str| drawn(host).contains("dir/]\" -> ");
    let group = |host: &str| drawn(host).contains("arrowhead=none");
    assert_eq!(deploy(&["graph.mcl"]).code, 0);
    for host in ["one", "two"] {
        eventually("both are there", || edge(host) && group(host));
    }
    assert_eq!(deploy(&["--no-autoedges", "graph.mcl"]).code, 0);
    for host in ["one", "two"] {
        eventually("there is no edge", || !edge(host) && group(host));
    }
    assert_eq!(deploy(&["--no-autogroup", "graph.mcl"]).code, 0);
    for host in ["one", "two"] {
        eventually("there is no group", || edge(host) && !group(host));
    }
    for host in hosts {
        host.stop();
    }
}

fn write_programs_that_options_change(publisher: &Publisher<'_>) {
    // An automatic edge, from the directory to what is in it, and resources that are applied together.
    publisher.write(
        "graph.mcl",
        "file \"PLACE/dir/\" {\n\tstate => \"exists\",\n}\nfile \"PLACE/dir/file\" {\n\tstate => \"exists\",\n}\nprint \"a\" {}\nprint \"b\" {}\n",
    );
    publisher.write("says.mcl", &says("one"));
    publisher.write(
        "log.mcl",
        "for $i, $name in [\"a\", \"b\", \"c\", \"d\",] {\n\texec \"${name}\" {\n\t\tcmd => \"echo begin >> PLACE/${hostname}.log; sleep 0.05; echo end >> PLACE/${hostname}.log\",\n\t\tshell => \"/bin/sh\",\n\t}\n}\n",
    );
}

#[test]
fn a_deploy_without_a_graph_leaves_a_member_unchanged() {
    if !has_etcd("a_deploy_without_a_graph_leaves_a_member_unchanged") {
        return;
    }
    let cluster = Cluster::start(1);
    let publisher = Publisher { cluster: &cluster };
    publisher.write("main.mcl", &says("one"));
    publisher.write(
        "reads.mcl",
        "import \"os\"\nfile \"PLACE/other\" {\n\tcontent => os.readfile(\"PLACE/missing\"),\n}\n",
    );
    publisher.write(
        "graph.yaml",
        "graph: g\nresources:\n  file:\n    - name: PLACE/yaml\n      state: exists\n      content: y\n",
    );
    let deploy = |arguments: &[&str]| {
        let mut all = vec!["--no-git"];
        all.extend(arguments);
        let ran = publisher.deploy(&all);
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
    };
    let is_kept = |file: &str, content: &str| {
        std::fs::write(cluster.place.path(file), "by hand").expect("the place is writable");
        cluster.becomes(file, content);
    };
    let mut host = cluster.member("a", &[]);
    // A graph in YAML, after a program, after a graph.
    deploy(&["yaml", "graph.yaml"]);
    cluster.becomes("yaml", "y");
    deploy(&["main.mcl"]);
    cluster.becomes("a.says", "one");
    deploy(&["yaml", "graph.yaml"]);
    is_kept("yaml", "y");
    deploy(&["main.mcl"]);
    is_kept("a.says", "one");
    // One that has no value for its machine, and one whose files are not there.
    deploy(&["reads.mcl"]);
    host.event("a rejection", |event| {
        event["event"] == "graph rejected" || event["event"] == "diagnostics"
    });
    is_kept("a.says", "one");
    publish_without_files(&cluster);
    is_kept("a.says", "one");
    publisher.write("main.mcl", &says("two"));
    deploy(&["main.mcl"]);
    cluster.becomes("a.says", "two");
    host.stop();
}

/// Publishes deploy 5 again, whose files are not in the store.
fn publish_without_files(cluster: &Cluster) {
    let record = cluster
        .etcd
        .control(&["get", "--print-value-only", "/setpoint/deploy/5/payload"]);
    let files = record
        .split('"')
        .find(|part| part.starts_with("/fs/"))
        .map(str::to_owned);
    let without_files = match files {
        Some(files) => record.replace(&files, "/fs/deploy/nowhere"),
        None => record.clone(),
    };
    assert_ne!(record, without_files, "it names its files: {record}");
    cluster
        .etcd
        .control(&["put", "/setpoint/deploy/6/payload", without_files.trim()]);
}

#[test]
fn who_stays_with_the_first_deploy_takes_no_other() {
    if !has_etcd("who_stays_with_the_first_deploy_takes_no_other") {
        return;
    }
    let cluster = Cluster::start(1);
    let publisher = Publisher { cluster: &cluster };
    publisher.write("main.mcl", &says("one"));
    assert_eq!(publisher.deploy(&["--no-git", "main.mcl"]).code, 0);
    let stays = cluster.member("stays", &["--no-deploy-watch"]);
    let follows = cluster.member("follows", &[]);
    cluster.becomes("stays.says", "one");
    cluster.becomes("follows.says", "one");
    publisher.write("main.mcl", &says("two"));
    assert_eq!(publisher.deploy(&["--no-git", "main.mcl"]).code, 0);
    cluster.becomes("follows.says", "two");
    std::fs::write(cluster.place.path("stays.says"), "by hand").expect("the place is writable");
    cluster.becomes("stays.says", "one");
    stays.stop();
    follows.stop();
}

#[test]
fn commits_are_held_against_the_deploy_before_and_a_missing_one_is_named() {
    if !has_etcd("commits_are_held_against_the_deploy_before_and_a_missing_one_is_named") {
        return;
    }
    let cluster = Cluster::start(1);
    let publisher = Publisher { cluster: &cluster };
    publisher.write("main.mcl", &says("one"));
    publisher.git(&["init", "-q"]);
    publisher.commit("one");
    assert_eq!(publisher.deploy(&["--no-git", "main.mcl"]).code, 0);
    publisher.write("main.mcl", &says("two"));
    let second = publisher.commit("two");
    let refused = publisher.deploy(&["main.mcl"]);
    assert_eq!(refused.code, 1);
    assert!(
        refused.stderr.contains("deploy 1 is of no commit"),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.contains("--force"), "{}", refused.stderr);
    assert_eq!(publisher.deploy(&["--force", "main.mcl"]).code, 0);
    // A commit that is not there is named.
    publisher.git(&["checkout", "-q", "--orphan", "new"]);
    publisher.commit("unrelated");
    let refused = publisher.deploy(&["main.mcl"]);
    assert_eq!(refused.code, 1);
    let named = format!("deploy 2 is of commit {second}");
    assert!(refused.stderr.contains(&named), "{}", refused.stderr);
    let list = publisher.deploy(&["list"]).stdout;
    assert_eq!(list.lines().count(), 2, "{list}");
    // Without a store there is nowhere to publish.
    let mut command = cluster.place.command(BINARY);
    command.current_dir(cluster.place.path("repository"));
    let nowhere = finished(&mut command, &["deploy", "main.mcl"]);
    assert_eq!(nowhere.code, 64, "{}", nowhere.stderr);
    assert!(nowhere.stderr.contains("--etcd-endpoints"), "{}", nowhere.stderr);
}
