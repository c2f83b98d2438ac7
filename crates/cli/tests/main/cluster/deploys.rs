//! Programs that are published to all hosts of a cluster.

use std::process::Stdio;

use setpoint_testing::etcd::has_etcd;
use setpoint_testing::{Finished, Running};

use super::{BINARY, Cluster};
use crate::several_hosts::{Host, eventually};

/// Commands of whoever publishes, from a repository of its own.
pub(super) struct Publisher<'a> {
    pub(super) cluster: &'a Cluster,
}

impl Publisher<'_> {
    pub(super) fn write(&self, name: &str, content: &str) {
        let root = self.cluster.place.path("").display().to_string();
        self.cluster
            .place
            .write(&format!("repository/{name}"), content.replace("PLACE/", &root));
    }

    pub(super) fn git(&self, arguments: &[&str]) -> String {
        let mut command = self.cluster.place.command("git");
        command.current_dir(self.cluster.place.path("repository"));
        command
            .args(["-c", "user.name=Test", "-c", "user.email=test@example.com"])
            .args(arguments);
        let ran = command.output().expect("there is a `git`");
        assert!(ran.status.success(), "{ran:?}");
        String::from_utf8_lossy(&ran.stdout).trim().to_owned()
    }

    pub(super) fn commit(&self, message: &str) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.git(&["rev-parse", "HEAD"])
    }

    pub(super) fn deploy(&self, arguments: &[&str]) -> Finished {
        self.deploy_from(Stdio::null(), arguments)
    }

    /// Deploys with an answer that contains this, and returns the exit code.
    #[track_caller]
    fn answers(&self, arguments: &[&str], said: &str) -> i32 {
        let ran = self.deploy(arguments);
        assert!(ran.stderr.contains(said), "{arguments:?}: {}", ran.stderr);
        ran.code
    }

    /// The same, with something on standard input.
    fn deploy_from(&self, input: impl Into<Stdio>, arguments: &[&str]) -> Finished {
        let mut command = self.cluster.place.command(BINARY);
        command.current_dir(self.cluster.place.path("repository"));
        command.args([
            "deploy",
            "--etcd-endpoints",
            &self.cluster.etcd.endpoints().join(","),
        ]);
        command.stdin(input);
        finished(&mut command, arguments)
    }
}

pub(super) fn finished(command: &mut std::process::Command, arguments: &[&str]) -> Finished {
    let output = command.args(arguments).output().expect("it can be started");
    Finished {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

impl Cluster {
    /// A host that runs what is deployed.
    pub(super) fn member(&self, host: &str, further: &[&str]) -> Host {
        let mut command = self.host_command(host, None);
        command.args(further).arg("empty");
        Host::of_running(Running::start(command))
    }
}

pub(super) fn says(text: &str) -> String {
    format!("file \"PLACE/${{hostname}}.says\" {{\n\tstate => \"exists\",\n\tcontent => \"{text}\",\n}}\n")
}

#[test]
fn all_members_run_the_newest_deploy() {
    if !has_etcd("all_members_run_the_newest_deploy") {
        return;
    }
    let mut cluster = Cluster::start(1);
    let publisher = Publisher { cluster: &cluster };
    publisher.write("main.mcl", &says("one"));
    publisher.write("wrong.mcl", "file \"PLACE/x\" {\n\tcontent => 7,\n}\n");
    publisher.write(
        "graph.yaml",
        "graph: g\nresources:\n  file:\n    - name: PLACE/yaml\n      state: exists\n      content: y\n",
    );
    let a = cluster.member("a", &[]);
    let first = a_deploy_is_of_a_commit(&publisher);
    let b = cluster.member("b", &[]);
    cluster.becomes("b.says", "two");
    a_commit_must_follow_that_of_the_deploy_before(&publisher);
    a_rollback_is_a_deploy_that_others_follow(&publisher);
    all_deploys_are_listed(&publisher, &first);
    a.stop();
    b.stop();
    let b = a_host_without_a_store_runs_the_newest_deploy_that_it_had(&mut cluster);
    programs_are_deployed_from_the_command_line_and_standard_input(&Publisher { cluster: &cluster });
    b.stop();
}

/// Returns the first commit.
fn a_deploy_is_of_a_commit(publisher: &Publisher<'_>) -> String {
    assert_eq!(
        publisher.answers(&["main.mcl"], "a deploy is made from a git repository"),
        1
    );
    publisher.git(&["init", "-q"]);
    let first = publisher.commit("one");
    assert_eq!(publisher.answers(&["lang", "main.mcl"], "success, id: 1"), 0);
    publisher.cluster.becomes("a.says", "one");
    assert_eq!(
        publisher.answers(
            &["main.mcl"],
            "there is nothing new to deploy: deploy 1 is of this commit"
        ),
        1
    );
    publisher.write("main.mcl", &says("two"));
    assert_eq!(
        publisher.answers(&["main.mcl"], "has changes that are in no commit: M main.mcl"),
        1
    );
    publisher.commit("two");
    assert_eq!(publisher.answers(&["wrong.mcl"], "error[E"), 1);
    assert_eq!(publisher.answers(&["main.mcl"], "success, id: 2"), 0);
    publisher.cluster.becomes("a.says", "two");
    first
}

fn a_commit_must_follow_that_of_the_deploy_before(publisher: &Publisher<'_>) {
    // Another branch does not follow, and neither does an older commit.
    publisher.git(&["checkout", "-q", "-b", "other", "HEAD~1"]);
    assert_eq!(publisher.answers(&["main.mcl"], "does not follow it"), 1);
    publisher.write("main.mcl", &says("other"));
    publisher.commit("other");
    assert_eq!(publisher.answers(&["main.mcl"], "does not follow it"), 1);
    publisher.git(&["checkout", "-q", "-"]);
    // A clone without the history cannot tell.
    let root = publisher.cluster.place.path("");
    let from = format!("file://{}", root.join("repository").display());
    let to = root.join("shallow").display().to_string();
    publisher.commit("three");
    publisher.git(&["clone", "-q", "--depth", "1", &from, &to]);
    assert_eq!(
        publisher.answers(&[&format!("{to}/main.mcl")], "lacks the history"),
        1
    );
    // A file that git ignores is in no commit.
    publisher.write(".gitignore", "*.secret\n");
    publisher.write("with/main.mcl", &says("with"));
    publisher.write("with/metadata.yaml", "");
    publisher.commit("ignores");
    publisher.write("with/files/x.secret", "hunter7");
    let lacks = "the program has files that its commit lacks: with/files/x.secret";
    assert_eq!(publisher.answers(&["with/"], lacks), 1);
    publisher.write("main.mcl", &says("four"));
    publisher.commit("four");
    // Several commits on, without a word.
    assert_eq!(publisher.answers(&["main.mcl"], "success, id: 3"), 0);
    publisher.cluster.becomes("a.says", "four");
    publisher.cluster.becomes("b.says", "four");
}

fn a_rollback_is_a_deploy_that_others_follow(publisher: &Publisher<'_>) {
    assert_eq!(publisher.answers(&["rollback", "1"], "success, id: 4"), 0);
    publisher.cluster.becomes("b.says", "one");
    assert_eq!(publisher.answers(&["rollback", "9"], "there is no deploy 9"), 1);
    // What went back is published again, and what is committed next follows it: nobody has to insist.
    assert_eq!(publisher.answers(&["main.mcl"], "success, id: 5"), 0);
    publisher.cluster.becomes("b.says", "four");
    assert_eq!(
        publisher.answers(&["main.mcl"], "there is nothing new to deploy"),
        1
    );
    assert_eq!(publisher.answers(&["rollback", "1"], "success, id: 6"), 0);
    publisher.write("main.mcl", &says("five"));
    publisher.commit("five");
    assert_eq!(publisher.answers(&["main.mcl"], "success, id: 7"), 0);
    publisher.cluster.becomes("b.says", "five");
}

fn all_deploys_are_listed(publisher: &Publisher<'_>, first: &str) {
    assert_eq!(
        publisher.answers(&["--no-git", "yaml", "graph.yaml"], "success, id: 8"),
        0
    );
    publisher.cluster.becomes("yaml", "y");
    let list = publisher.deploy(&["list"]).stdout;
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(lines.len(), 8, "{list}");
    assert!(
        lines[0].contains(first)
            && lines[3].contains(first)
            && lines[3].ends_with("lang, as 1")
            && lines[7].ends_with("yaml"),
        "{list}"
    );
    assert!(publisher.deploy(&["show", "4"]).stdout.contains(first));
    assert_eq!(
        publisher.answers(&["rolback", "1"], "did you mean `rollback`?"),
        64,
        "it is no program with a word too many"
    );
    assert_eq!(publisher.answers(&["list", "1"], "unexpected argument `1`"), 64);
}

fn a_host_without_a_store_runs_the_newest_deploy_that_it_had(cluster: &mut Cluster) -> Host {
    cluster.etcd.kill_member(0);
    std::fs::remove_file(cluster.place.path("yaml")).expect("it is there");
    let b = cluster.member("b", &[]);
    cluster.becomes("yaml", "y");
    cluster.etcd.start_member(0);
    cluster.etcd.wait_until_ready();
    let publisher = Publisher { cluster };
    assert_eq!(publisher.deploy(&["--no-git", "main.mcl"]).code, 0);
    cluster.becomes("b.says", "five");
    b
}

fn programs_are_deployed_from_the_command_line_and_standard_input(publisher: &Publisher<'_>) {
    let root = publisher.cluster.place.path("").display().to_string();
    let code = says("six").replace("PLACE/", &root);
    assert_eq!(publisher.deploy(&["--no-git", &code]).code, 0);
    publisher.cluster.becomes("b.says", "six");
    publisher.write("seven", &says("seven"));
    let read = |name: &str| {
        let file = std::fs::File::open(publisher.cluster.place.path(&format!("repository/{name}")));
        file.expect("it is there")
    };
    assert_eq!(publisher.deploy_from(read("seven"), &["--no-git", "-"]).code, 0);
    publisher.cluster.becomes("b.says", "seven");
    std::fs::remove_file(publisher.cluster.place.path("yaml")).expect("it is there");
    assert_eq!(
        publisher
            .deploy_from(read("graph.yaml"), &["--no-git", "yaml", "-"])
            .code,
        0
    );
    publisher.cluster.becomes("yaml", "y");
}

#[test]
fn a_deploy_brings_its_options_and_files() {
    if !has_etcd("a_deploy_brings_its_options_and_files") {
        return;
    }
    let cluster = Cluster::start(1);
    let publisher = Publisher { cluster: &cluster };
    publisher.write("main.mcl", &says("one"));
    publisher.write("next.mcl", &says("two"));
    publisher.write("metadata.yaml", "main: \"main.mcl\"\nfiles: \"files/\"\n");
    publisher.write("files/motto", "from a file");
    let reads = format!(
        "import \"deploy\"\n{}",
        says("x").replace("\"x\"", "deploy.readfile(\"/files/motto\")")
    );
    publisher.write("module/main.mcl", &reads);
    publisher.write("module/files/motto", "from a file");
    publisher.write("module/metadata.yaml", "main: \"main.mcl\"\nfiles: \"files/\"\n");
    options_and_files_reach_a_member(&publisher);
    a_member_that_waits_runs_only_the_next_deploy(&publisher);
    a_host_that_runs_a_program_publishes_it(&publisher);
    a_deploy_that_cannot_be_read_is_skipped(&publisher);
}

fn options_and_files_reach_a_member(publisher: &Publisher<'_>) {
    let cluster = publisher.cluster;
    let mut a = cluster.member("a", &[]);
    assert_eq!(publisher.deploy(&["--no-git", "--noop", "main.mcl"]).code, 0);
    let path = cluster.place.path("a.says").display().to_string();
    a.of("file", &path, "drift");
    a.event("rest", |event| event["event"] == "converged");
    assert!(!cluster.place.path("a.says").exists());
    assert_eq!(publisher.deploy(&["--no-git", "--sema", "1", "next.mcl"]).code, 0);
    cluster.becomes("a.says", "two");
    // A module with its files, in another directory than anywhere on the members.
    assert_eq!(publisher.deploy(&["--no-git", "module/"]).code, 0);
    cluster.becomes("a.says", "from a file");
    let kept = cluster.place.path("prefix-a/deploys/3/files/motto");
    assert_eq!(
        std::fs::read_to_string(kept).expect("it was fetched"),
        "from a file"
    );
    // An empty one leaves nothing to keep right.
    assert_eq!(publisher.deploy(&["--no-git", "empty"]).code, 0);
    a.event("an empty graph", |event| {
        event["event"] == "graph accepted" && event["removed"] == 1
    });
    std::fs::write(&path, "mine").expect("the place is writable");
    assert_eq!(publisher.deploy(&["--no-git", "main.mcl"]).code, 0);
    cluster.becomes("a.says", "one");
    a.stop();
}

fn a_member_that_waits_runs_only_the_next_deploy(publisher: &Publisher<'_>) {
    let cluster = publisher.cluster;
    let late = cluster.member("late", &["--wait"]);
    eventually("it has seen what is there", || {
        cluster.keys().contains("/members/late")
    });
    assert_eq!(publisher.deploy(&["--no-git", "next.mcl"]).code, 0);
    cluster.becomes("late.says", "two");
    late.stop();
}

fn a_host_that_runs_a_program_publishes_it(publisher: &Publisher<'_>) {
    let cluster = publisher.cluster;
    publisher.write("own.mcl", &says("own"));
    let start = || {
        let mut command = cluster.place.command(BINARY);
        command.current_dir(cluster.place.path("repository"));
        command.args([
            "run",
            "--no-raise-limits",
            "--json",
            "--hostname",
            "runs",
            "--etcd-endpoints",
            &cluster.etcd.endpoints().join(","),
        ]);
        command
            .arg("--state-dir")
            .arg(cluster.place.path("prefix-runs"))
            .arg("own.mcl");
        Host::of_running(Running::start(command))
    };
    let deploys = || publisher.deploy(&["list"]).stdout.lines().count();
    let runs = start();
    cluster.becomes("runs.says", "own");
    assert_eq!(deploys(), 7);
    // One that starts again takes back nothing that was deployed since, and is not published twice.
    assert_eq!(publisher.deploy(&["--no-git", "next.mcl"]).code, 0);
    cluster.becomes("runs.says", "two");
    runs.stop();
    std::fs::remove_file(cluster.place.path("runs.says")).expect("it was made");
    let again = start();
    cluster.becomes("runs.says", "two");
    assert_eq!(deploys(), 8);
    again.stop();
}

fn a_deploy_that_cannot_be_read_is_skipped(publisher: &Publisher<'_>) {
    let cluster = publisher.cluster;
    let b = cluster.member("b", &[]);
    cluster.becomes("b.says", "two");
    cluster
        .etcd
        .control(&["put", "/setpoint/deploy/9/payload", "nonsense"]);
    assert_eq!(publisher.deploy(&["--no-git", "main.mcl"]).code, 0);
    cluster.becomes("b.says", "one");
    b.stop();
}

#[test]
fn of_many_who_deploy_at_once_each_has_its_number_or_is_told() {
    if !has_etcd("of_many_who_deploy_at_once_each_has_its_number_or_is_told") {
        return;
    }
    let cluster = Cluster::start(3);
    let publisher = Publisher { cluster: &cluster };
    publisher.write("main.mcl", &says("one"));
    let results: Vec<Finished> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..10)
            .map(|_| scope.spawn(|| publisher.deploy(&["--no-git", "main.mcl"])))
            .collect();
        all.into_iter().map(|one| one.join().expect("it ends")).collect()
    });
    let done = results.iter().filter(|ran| ran.code == 0).count();
    for lost in results.iter().filter(|ran| ran.code != 0) {
        assert!(
            lost.stderr.contains("meanwhile") && lost.stderr.contains("try again"),
            "{}",
            lost.stderr
        );
    }
    let list = publisher.deploy(&["list"]).stdout;
    let ids = list
        .lines()
        .map(|line| line.split_whitespace().next().unwrap_or_default().to_owned());
    let wanted: Vec<String> = (1..=done).map(|id| id.to_string()).collect();
    assert_eq!(ids.collect::<Vec<_>>(), wanted, "no gaps: {list}");
}

#[test]
fn a_deploy_that_waits_reports_the_state_of_each_host() {
    if !has_etcd("a_deploy_that_waits_reports_the_state_of_each_host") {
        return;
    }
    let cluster = Cluster::start(1);
    let publisher = Publisher { cluster: &cluster };
    publisher.write("main.mcl", &says("one"));
    let broken = "if $hostname == \"b\" {\n\tfile \"/proc/none/x\" {\n\t\tstate => \"exists\",\n\t}\n}\n";
    publisher.write("broken.mcl", &(says("two") + broken));
    let deploy = |arguments: &[&str]| {
        let mut all = vec!["--no-git", "--wait", "--grace", "1"];
        all.extend(arguments);
        publisher.deploy(&all)
    };
    let nobody = deploy(&["main.mcl"]);
    assert_eq!(nobody.code, 0, "{}", nobody.stderr);
    assert!(
        nobody.stderr.contains("no host is there that runs deploys"),
        "{}",
        nobody.stderr
    );
    let a = cluster.member("a", &[]);
    let b = cluster.member("b", &[]);
    cluster.becomes("a.says", "one");
    cluster.becomes("b.says", "one");
    let right = deploy(&["main.mcl"]);
    assert_eq!(
        (right.code, rows(&right)),
        (0, vec!["a 2 right".to_owned(), "b 2 right".to_owned()]),
        "{}",
        right.stderr
    );
    // It goes wrong on one of them.
    let wrong = deploy(&["broken.mcl"]);
    assert_eq!(
        (wrong.code, rows(&wrong)),
        (1, vec!["a 3 right".to_owned(), "b 3 failing".to_owned()]),
        "{}",
        wrong.stderr
    );
    let back = deploy(&["rollback", "2"]);
    assert_eq!(
        (back.code, rows(&back)),
        (0, vec!["a 4 right".to_owned(), "b 4 right".to_owned()]),
        "{}",
        back.stderr
    );
    std::fs::remove_file(cluster.place.path("a.says")).expect("it is there");
    cluster.becomes("a.says", "one");
    members_are_listed_with_their_deploy(&cluster);
    b.stop();
    a_member_that_ended_is_listed_until_it_is_removed(&cluster);
    a.stop();
}

fn members_are_listed_with_their_deploy(cluster: &Cluster) {
    let seeds = cluster.etcd.endpoints().join(",");
    let members = cluster
        .place
        .run(BINARY, &["members", "--etcd-endpoints", &seeds, "--json"]);
    let members: Vec<serde_json::Value> = members
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("it is JSON"))
        .collect();
    assert_eq!(members.len(), 2);
    assert_eq!(
        (&members[0]["host"], &members[0]["running"]),
        (&"a".into(), &4.into()),
        "{members:?}"
    );
}

/// It is no member any more, but when it was last seen is known until it is removed.
fn a_member_that_ended_is_listed_until_it_is_removed(cluster: &Cluster) {
    let seeds = cluster.etcd.endpoints().join(",");
    let members = |further: &[&str]| {
        let arguments = [&["members", "--etcd-endpoints", &seeds], further].concat();
        cluster.place.run(BINARY, &arguments).stdout
    };
    let left = members(&[]);
    let version = env!("CARGO_PKG_VERSION");
    assert!(
        left.contains(&format!("\na          4  right         {version}"))
            && left.contains(&format!(
                "\nb          4  ended         {version}    last heard of "
            ))
            && left.contains(" s ago, 2"),
        "{left}"
    );
    let seen = |at: i64| {
        let record =
            format!(r#"{{"version":1,"at":{at},"program":"{version}","running":4,"has_ended":true}}"#);
        for host in ["a", "b"] {
            cluster
                .etcd
                .control(&["put", &format!("/setpoint/last-seen/{host}"), &record]);
        }
        members(&[])
    };
    let ahead = seen(jiff::Timestamp::now().as_second() + 3 * 86_400 + 60);
    for host in ["right", "ended"] {
        let row = ahead.lines().find(|row| row.contains(host)).unwrap_or_default();
        assert!(row.contains("its clock is 3 d 0 h ahead"), "{ahead}");
    }
    seen(jiff::Timestamp::now().as_second());
    let gone: serde_json::Value =
        serde_json::from_str(members(&["--json"]).lines().last().unwrap_or_default()).expect("it is JSON");
    assert_eq!(
        (&gone["host"], &gone["state"], &gone["running"]),
        (&"b".into(), &"ended".into(), &4.into())
    );
    let removed = cluster
        .place
        .run(BINARY, &["keys", "--etcd-endpoints", &seeds, "remove", "b"]);
    assert_eq!(removed.code, 0, "{}", removed.stderr);
    assert!(!members(&[]).contains("\nb "));
}

const HOSTS: [&str; 4] = ["web-1", "web-2", "web-3", "db-1"];

/// The first three words of each row below the heading: host, deploy, state.
fn rows(ran: &Finished) -> Vec<String> {
    let row = |line: &str| line.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
    ran.stdout.lines().skip(1).map(row).collect()
}

/// The rows when this deploy is right on all of [`HOSTS`].
fn all_right(id: u32) -> Vec<String> {
    ["db-1", "web-1", "web-2", "web-3"]
        .map(|host| format!("{host} {id} right"))
        .to_vec()
}

#[test]
fn a_rollout_continues_only_while_its_hosts_are_right() {
    if !has_etcd("a_rollout_continues_only_while_its_hosts_are_right") {
        return;
    }
    let cluster = Cluster::start(1);
    let mut rollout = Rollout::of(Publisher { cluster: &cluster });
    rollout.needs_a_host_that_runs_deploys();
    rollout.hosts = HOSTS.iter().map(|host| cluster.member(host, &[])).collect();
    rollout.brings_the_first_deploy_to_all_hosts();
    rollout.refuses_canaries_that_are_no_members();
    rollout.stops_when_a_canary_fails();
    rollout.keeps_a_stopped_deploy_from_hosts_that_join();
    rollout.stays_stopped_until_another_deploy_replaces_it();
    rollout.ends_when_all_hosts_are_right();
    rollout.is_finished_by_hand_although_a_host_fails();
    rollout.stops_at_a_host_that_hangs_and_resumes();
    rollout.shows_deploys_and_their_differences();
    rollout.removes_old_deploys();
    rollout.goes_on_past_a_failure_that_passes();
    for host in rollout.hosts {
        host.stop();
    }
}

/// Hosts that get deploys step by step.
struct Rollout<'a> {
    publisher: Publisher<'a>,
    hosts: Vec<Host>,
}

impl<'a> Rollout<'a> {
    fn of(publisher: Publisher<'a>) -> Rollout<'a> {
        let broken_on = |host: &str| {
            says("two")
                + &format!(
                    "if $hostname == \"{host}\" {{\n\tfile \"/proc/none/x\" {{\n\t\tstate => \"exists\",\n\t}}\n}}\n"
                )
        };
        publisher.write("one.mcl", &says("one"));
        publisher.write("two.mcl", &says("two"));
        publisher.write("broken-db.mcl", &broken_on("db-1"));
        publisher.write("broken-web.mcl", &broken_on("web-2"));
        Rollout {
            publisher,
            hosts: Vec::new(),
        }
    }

    fn deploy(&self, arguments: &[&str]) -> Finished {
        self.publisher
            .deploy(&[&["--no-git", "--grace", "1"], arguments].concat())
    }

    fn needs_a_host_that_runs_deploys(&self) {
        let nobody = self.deploy(&["--canary", "1", "one.mcl"]);
        assert_eq!(nobody.code, 1);
        assert!(
            nobody.stderr.contains("no host is there that runs deploys"),
            "{}",
            nobody.stderr
        );
    }

    fn brings_the_first_deploy_to_all_hosts(&self) {
        let first = self.deploy(&["--wait", "one.mcl"]);
        let first_rows = rows(&first);
        assert!(
            first.code == 0 && first.stdout.is_empty() || first_rows.iter().all(|row| row.contains(" 1 ")),
            "{first:?}"
        );
        for host in HOSTS {
            self.publisher.cluster.becomes(&format!("{host}.says"), "one");
        }
        eventually("all have said so", || {
            self.publisher.cluster.members_saying(" 1  right") == 4
        });
    }

    fn refuses_canaries_that_are_no_members(&self) {
        let wrong = self.deploy(&["--canary", "wed-1", "two.mcl"]);
        assert_eq!(wrong.code, 1);
        assert!(
            wrong.stderr.contains("no member is called `wed-1`")
                && wrong.stderr.contains("did you mean `web-1`?"),
            "{}",
            wrong.stderr
        );
        assert_eq!(self.deploy(&["--canary", "[", "two.mcl"]).code, 64);
        assert_eq!(self.deploy(&["--max-unavailable", "0", "two.mcl"]).code, 64);
        assert_eq!(
            self.publisher.deploy(&["list"]).stdout.lines().count(),
            1,
            "nothing was published"
        );
    }

    fn stops_when_a_canary_fails(&self) {
        let stopped = self.deploy(&["--canary", "web-*", "--max-unavailable", "1", "broken-web.mcl"]);
        assert_eq!(stopped.code, 1, "{}", stopped.stderr);
        assert!(
            stopped.stderr.contains("deploy 2 has stopped") && stopped.stderr.contains("web-2: "),
            "{}",
            stopped.stderr
        );
        assert!(
            rows(&stopped).contains(&"db-1 1 right".to_owned()),
            "{}",
            stopped.stdout
        );
        self.publisher.cluster.becomes("db-1.says", "one");
        let list = self.publisher.deploy(&["list"]).stdout;
        assert!(
            list.lines()
                .last()
                .is_some_and(|line| line.contains("stopped: web-2: ")),
            "{list}"
        );
    }

    fn keeps_a_stopped_deploy_from_hosts_that_join(&self) {
        let late = self.publisher.cluster.member("late", &[]);
        self.publisher.cluster.becomes("late.says", "one");
        late.stop();
    }

    fn stays_stopped_until_another_deploy_replaces_it(&self) {
        let again = self.deploy(&["resume", "2"]);
        assert!(
            again.code == 1 && again.stderr.contains("web-2: "),
            "{}",
            again.stderr
        );
        let back = self.deploy(&["--wait", "rollback", "1"]);
        assert_eq!((back.code, rows(&back)), (0, all_right(3)), "{}", back.stderr);
        let over = self.deploy(&["resume", "2"]);
        assert!(
            over.stderr.contains("deploy 3 has come after it"),
            "{}",
            over.stderr
        );
    }

    fn ends_when_all_hosts_are_right(&self) {
        let right = self.deploy(&["--canary", "1", "--max-unavailable", "2", "two.mcl"]);
        assert_eq!((right.code, rows(&right)), (0, all_right(4)), "{}", right.stderr);
        let over = self.deploy(&["resume", "4"]);
        assert!(over.stderr.contains("all hosts may take it"), "{}", over.stderr);
    }

    fn is_finished_by_hand_although_a_host_fails(&self) {
        let stopped = self.deploy(&["--max-unavailable", "1", "broken-db.mcl"]);
        assert!(
            stopped.code == 1 && stopped.stderr.contains("db-1: "),
            "{}",
            stopped.stderr
        );
        assert_eq!(self.deploy(&["finish", "5"]).code, 0);
        eventually("three have it", || {
            self.publisher.cluster.members_saying(" 5  right") == 3
        });
    }

    fn stops_at_a_host_that_hangs_and_resumes(&self) {
        let back = self.deploy(&["--wait", "rollback", "1"]);
        assert_eq!(back.code, 0, "{}", back.stderr);
        self.hosts[3].freeze();
        let stopped = self.deploy(&["--canary", "db-1", "--wait-timeout", "2", "two.mcl"]);
        assert!(
            stopped.code == 1
                && (stopped.stderr.contains("db-1 is not right after 2 s")
                    || stopped.stderr.contains("db-1 is gone")),
            "{}",
            stopped.stderr
        );
        self.hosts[3].thaw();
        let resumed = self.deploy(&["resume", "7"]);
        assert_eq!(resumed.code, 0, "{}", resumed.stderr);
        for host in HOSTS {
            self.publisher.cluster.becomes(&format!("{host}.says"), "two");
        }
    }

    fn shows_deploys_and_their_differences(&self) {
        let shown = self.deploy(&["show", "7"]);
        assert!(
            shown.stdout.contains("/two.mcl")
                && shown.stdout.contains(" of 4 hosts")
                && shown.stdout.contains("db-1 "),
            "{}",
            shown.stdout
        );
        let diff = self.deploy(&["diff", "1"]);
        assert!(
            diff.stdout.contains("--- a/one.mcl\n+++ /dev/null") && diff.stdout.contains("+++ b/two.mcl"),
            "{}",
            diff.stdout
        );
        assert!(
            self.deploy(&["diff", "1", "6"])
                .stdout
                .contains("+deploy 6: lang, as 1")
        );
        assert_eq!(self.deploy(&["show"]).code, 64);
        assert_eq!(self.deploy(&["show", "x"]).code, 64);
        assert_eq!(self.deploy(&["show", "77"]).code, 1);
    }

    fn removes_old_deploys(&self) {
        let cleared = self.deploy(&["gc", "--keep", "2"]);
        assert!(
            cleared.code == 0 && cleared.stderr.contains("cleared away: 5 deploys"),
            "{}",
            cleared.stderr
        );
        assert_eq!(self.publisher.deploy(&["list"]).stdout.lines().count(), 2);
        assert_eq!(self.deploy(&["--wait", "rollback", "6"]).code, 0);
        assert_eq!(self.deploy(&["--keep", "2", "list"]).code, 64);
    }

    fn goes_on_past_a_failure_that_passes(&self) {
        // Each host fails until it has been reported as failing, as with a lock that another process holds.
        let passing = "exec \"starts\" {\n\tcmd => \"test -e PLACE/released\",\n\tshell => \"/bin/sh\",\n\tMeta:delay => 100,\n\tMeta:retry => -1,\n}\n";
        let publisher = &self.publisher;
        publisher.write("passing.mcl", passing);
        let steered = std::thread::scope(|scope| {
            let steered = scope.spawn(|| {
                publisher.deploy(&["--no-git", "--canary", "db-1", "--grace", "60", "passing.mcl"])
            });
            eventually("the canary is reported as failing", || {
                publisher.cluster.members_saying(" 9  failing") == 1
            });
            publisher.cluster.place.write("released", "");
            steered.join().expect("the command is waited for")
        });
        assert_eq!(
            (steered.code, rows(&steered)),
            (0, all_right(9)),
            "{}",
            steered.stderr
        );
    }
}

#[test]
fn all_members_make_the_same_archive_of_each_deploy() {
    if !has_etcd("all_members_make_the_same_archive_of_each_deploy") {
        return;
    }
    let cluster = Cluster::start(1);
    let publisher = Publisher { cluster: &cluster };
    publisher.write(
        "main.mcl",
        "deploy:tar \"PLACE/${hostname}.tar\" {\n\tformat => $const.res.tar.format.gnu,\n}\n",
    );
    publisher.write("metadata.yaml", "main: \"main.mcl\"\nfiles: \"files/\"\n");
    publisher.write("files/motd", "one\n");
    publisher.write("files/below/run", "#!/bin/sh\n");
    setpoint_testing::place::shell(&format!(
        "chmod 711 {}",
        cluster.place.path("repository/files/below/run").display()
    ));
    let deploy = || {
        let ran = publisher.deploy(&["--no-git", "./"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    };
    let archive = |host: &str| std::fs::read(cluster.place.path(&format!("{host}.tar"))).unwrap_or_default();
    let unpacked = |host: &str, member: &str| {
        let archive = cluster.place.path(&format!("{host}.tar"));
        let mut tar = cluster.place.command("tar");
        let ran = tar.args(["-xPOf"]).arg(archive).arg(member).output();
        String::from_utf8_lossy(&ran.expect("there is a `tar`").stdout).into_owned()
    };
    let _a = cluster.member("a", &[]);
    deploy();
    let _b = cluster.member("b", &[]);
    eventually("both archives", || {
        unpacked("a", "/files/motd") == "one\n" && archive("a") == archive("b")
    });
    the_archive_has_the_files_of_the_deploy(&cluster);
    // The resource is the same, and what it is made of is another.
    publisher.write("files/motd", "two\n");
    deploy();
    eventually("both archives", || {
        unpacked("a", "/files/motd") == "two\n" && archive("a") == archive("b")
    });
    // Somebody touches it.
    std::fs::write(cluster.place.path("b.tar"), "nonsense").expect("it can be written");
    eventually("the archive", || archive("a") == archive("b"));
    // Code of a command line comes with its text.
    let root = cluster.place.path("").display().to_string();
    let code = format!("deploy:tar \"{root}code.tar\" {{}}");
    let ran = publisher.deploy(&["--no-git", &code]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    eventually("the archive of the code", || {
        unpacked("code", "/main.mcl") == code
    });
}

fn the_archive_has_the_files_of_the_deploy(cluster: &Cluster) {
    let mut tar = cluster.place.command("tar");
    let listed = tar.args(["-tvPf"]).arg(cluster.place.path("a.tar")).output();
    let listed = String::from_utf8_lossy(&listed.expect("there is a `tar`").stdout).into_owned();
    let members: Vec<Vec<&str>> = listed
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let members: Vec<(&str, &str)> = members
        .iter()
        .map(|words| (words[0], words[words.len() - 1]))
        .collect();
    assert_eq!(
        members,
        [
            ("drwxr-xr-x", "/files/"),
            ("drwxr-xr-x", "/files/below/"),
            ("-rwxr-xr-x", "/files/below/run"),
            ("-rw-r--r--", "/files/motd"),
            ("-rw-r--r--", "/main.mcl"),
            ("-rw-r--r--", "/metadata.yaml"),
        ],
        "{listed}"
    );
}
