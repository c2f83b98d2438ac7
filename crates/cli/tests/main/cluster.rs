//! Hosts that share a real etcd.

use setpoint_testing::etcd::{EtcdCluster, has_etcd};
use setpoint_testing::{Finished, Hermetic, Running};

use setpoint_world::{Change, EtcdOptions, EtcdStore, Revision, Selection, Store, Watched};

use crate::several_hosts::{Host, becomes, eventually};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

/// A cluster with a place for what its hosts do.
struct Cluster {
    etcd: EtcdCluster,
    place: Hermetic,
}

impl Cluster {
    fn start(members: usize) -> Cluster {
        Cluster {
            etcd: EtcdCluster::start(members),
            place: Hermetic::new(),
        }
    }

    fn command(&self, host: &str, program: &str, further: &[&str]) -> std::process::Command {
        let root = self.place.path("").display().to_string();
        let program = self
            .place
            .write(&format!("{host}.mcl"), program.replace("PLACE/", &root));
        let mut command = self.place.command(BINARY);
        command.args([
            "run",
            "--no-deploy",
            "--no-raise-limits",
            "--hostname",
            host,
            "--seeds",
        ]);
        command.arg(self.etcd.endpoints().join(","));
        command
            .arg("--prefix")
            .arg(self.place.path(&format!("prefix-{host}")));
        command.args(further).arg(program);
        command
    }

    fn host(&self, host: &str, program: &str) -> Host {
        Host::of_running(Running::start(self.command(
            host,
            program,
            &["--json", "--watch"],
        )))
    }

    fn once(&self, host: &str, program: &str) -> Finished {
        let output = self
            .command(host, program, &["--once"])
            .output()
            .expect("it can be started");
        Finished {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Gives a host that runs another program, at once.
    fn rewrite(&self, host: &str, program: &str) {
        let root = self.place.path("").display().to_string();
        let new = self.place.write("new", program.replace("PLACE/", &root));
        std::fs::rename(new, self.place.path(&format!("{host}.mcl"))).expect("the place is writable");
    }

    fn becomes(&self, file: &str, content: &str) {
        becomes(&self.place.path(file), content);
    }

    /// All values that keys below a prefix ever had, in order; those that were deleted are empty.
    fn history(&self, prefix: &str) -> Vec<(String, String)> {
        let options = EtcdOptions {
            endpoints: self.etcd.endpoints(),
            namespace: "/setpoint".to_owned(),
            login: None,
            tls: None,
        };
        let store = EtcdStore::new(options).expect("the endpoints are right");
        self.etcd.control(&["put", &format!("/setpoint{prefix}~end"), ""]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("there are threads").block_on(async {
            let mut watch = store.watch(Selection::prefix(prefix), Revision(0));
            let mut all = Vec::new();
            loop {
                let Watched::Changed(batch) = watch.next().await else {
                    continue;
                };
                for change in batch.changes {
                    let value = match &change {
                        Change::Put(entry) => entry.text().unwrap_or_default().to_owned(),
                        Change::Deleted(_) => String::new(),
                    };
                    if change.key().as_str().ends_with("~end") {
                        return all;
                    }
                    all.push((change.key().to_string(), value));
                }
            }
        })
    }

    /// What is in the store, without its values.
    fn keys(&self) -> String {
        self.etcd
            .control(&["get", "--prefix", "/setpoint", "--keys-only"])
            .replace("\n\n", "\n")
    }
}

/// Says in a file what hosts share.
const READS: &str = "\
import \"fmt\"
import \"world\"
$shared = world.getval(\"motto/of all\")
file \"PLACE/${hostname}.says\" {
	state => \"exists\",
	content => fmt.printf(\"%t %s %v\", $shared->exists, $shared->value, world.kvlookup(\"role\")),
}
";

#[test]
fn what_one_host_sets_the_others_see_at_once() {
    if !has_etcd("what_one_host_sets_the_others_see_at_once") {
        return;
    }
    let cluster = Cluster::start(1);
    let db = cluster.host("db", READS);
    cluster.becomes("db.says", "false  {}");
    let sets = |value: &str| {
        format!(
            "kv \"motto/of all\" {{\n\tvalue => \"{value}\",\n}}\nkv \"role\" {{\n\tvalue => \"of ${{hostname}}\",\n\tmapped => true,\n}}\n"
        )
    };
    assert_eq!(cluster.once("web", &sets("onward")).code, 0);
    cluster.becomes("db.says", "true onward {\"web\": \"of web\"}");
    assert_eq!(cluster.once("app", &sets("upward")).code, 0);
    cluster.becomes(
        "db.says",
        "true upward {\"app\": \"of app\", \"web\": \"of web\"}",
    );
    let again = cluster.once("app", &sets("upward"));
    assert!(again.stderr.contains("2 right"), "{}", again.stderr);
    assert_eq!(
        cluster.keys(),
        "/setpoint/host-strings/role/app\n/setpoint/host-strings/role/web\n/setpoint/strings/motto%2Fof all\n"
    );
    assert_eq!(
        cluster.once("web", "kv \"role\" {\n\tmapped => true,\n}\n").code,
        0
    );
    cluster.becomes("db.says", "true upward {\"app\": \"of app\"}");
    // What is removed behind a host's back comes back, and what is changed is repaired.
    let mut keeps = cluster.host("keeps", &sets("kept"));
    cluster.becomes(
        "db.says",
        "true kept {\"app\": \"of app\", \"keeps\": \"of keeps\"}",
    );
    cluster
        .etcd
        .control(&["put", "/setpoint/strings/motto%2Fof all", "by hand"]);
    keeps.of("kv", "motto/of all", "repaired");
    cluster.becomes(
        "db.says",
        "true kept {\"app\": \"of app\", \"keeps\": \"of keeps\"}",
    );
    keeps.stop();
    db.stop();
}

#[test]
fn what_a_host_exports_others_collect_and_what_it_takes_back_goes() {
    if !has_etcd("what_a_host_exports_others_collect_and_what_it_takes_back_goes") {
        return;
    }
    let cluster = Cluster::start(3);
    let collects = "collect file [\"PLACE/for all\", \"PLACE/for db\",] {\n\tMeta:reverse => true,\n}\n";
    let exports = |text: &str, to: &str| {
        format!(
            "file \"PLACE/for {to}\" {{\n\tstate => \"exists\",\n\tcontent => \"{text}\",\n\tMeta:hidden => true,\n\tMeta:export => [\"{}\",],\n}}\n",
            if to == "all" { "*" } else { to }
        )
    };
    let db = cluster.host("db", collects);
    let mut web = cluster.host("web", &(exports("one", "all") + &exports("hush", "db")));
    cluster.becomes("for all", "one");
    cluster.becomes("for db", "hush");
    // What is for another host is nobody else's.
    let app = cluster.once("app", &collects.replace("PLACE/", "PLACE/app "));
    assert_eq!(app.code, 0, "{}", app.stderr);
    cluster.rewrite("web", &exports("two", "all"));
    cluster.becomes("for all", "two");
    let for_db = cluster.place.path("for db");
    while for_db.exists() {
        web.event("anything", |_| true);
    }
    assert_eq!(cluster.keys().lines().count(), 1, "{}", cluster.keys());
    // A clean end and a restart take nothing back.
    web.stop();
    assert_eq!(cluster.keys().lines().count(), 1);
    let web = cluster.host("web", "noop \"nothing\" {}\n");
    while cluster.place.path("for all").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(cluster.keys(), "");
    web.stop();
    db.stop();
}

/// Stands, and says in a file who was chosen.
const STANDS: &str = "\
import \"golang/strings\" as strings
import \"world\"
schedule \"leader\" {
	OPTIONS
}
file \"PLACE/${hostname}.says\" {
	state => \"exists\",
	content => strings.join(world.schedule(\"leader\"), \" \"),
}
";

#[test]
fn as_many_are_chosen_as_are_wanted_and_who_goes_is_replaced() {
    if !has_etcd("as_many_are_chosen_as_are_wanted_and_who_goes_is_replaced") {
        return;
    }
    let cluster = Cluster::start(3);
    let stands = |options: &str| STANDS.replace("OPTIONS", options);
    let two = stands("max => 2,");
    let first = cluster.host("a", &two);
    cluster.becomes("a.says", "a");
    let second = cluster.host("b", &two);
    cluster.becomes("b.says", "a b");
    let third = cluster.host("c", &two);
    cluster.becomes("c.says", "a b");
    // Who decides is killed, and so is out when its lease has ended; another one decides then.
    first.kill();
    cluster.becomes("b.says", "b c");
    // Who leaves cleanly is replaced at once.
    let fourth = cluster.host("d", &two);
    cluster.becomes("d.says", "b c");
    second.stop();
    cluster.becomes("d.says", "c d");
    cluster.rewrite("c", &stands("withdraw => true,"));
    cluster.becomes("d.says", "d");
    fourth.stop();
    third.stop();
    // Never more than two, at any revision.
    let all = cluster.history("/scheduler/schedule/");
    assert!(all.len() >= 6, "{all:?}");
    for (key, value) in &all {
        assert!(value.split(',').count() <= 2, "{key} {value}");
    }
}

#[test]
fn a_host_outlives_its_store_and_catches_up() {
    if !has_etcd("a_host_outlives_its_store_and_catches_up") {
        return;
    }
    let mut cluster = Cluster::start(1);
    let mut db = cluster.host("db", READS);
    cluster.becomes("db.says", "false  {}");
    let sets = "kv \"motto/of all\" {\n\tvalue => \"onward\",\n}\n";
    let web = Running::start(cluster.command("web", sets, &["--watch"]));
    cluster.becomes("db.says", "true onward {}");
    cluster.etcd.kill_member(0);
    // It goes on with what it knew last.
    std::fs::write(cluster.place.path("db.says"), "by hand").expect("the place is writable");
    db.of(
        "file",
        &cluster.place.path("db.says").display().to_string(),
        "repaired",
    );
    cluster.becomes("db.says", "true onward {}");
    // A host that comes now has nothing to go on with, and waits.
    let late = cluster.host("late", &READS.replace("${hostname}", "late"));
    cluster.etcd.start_member(0);
    cluster.etcd.wait_until_ready();
    cluster.becomes("late.says", "true onward {}");
    cluster
        .etcd
        .control(&["put", "/setpoint/strings/motto%2Fof all", "by hand"]);
    let repaired = || {
        cluster
            .history("/strings/")
            .iter()
            .filter(|(_, value)| value == "onward")
            .count()
            == 2
    };
    while !repaired() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    cluster.becomes("db.says", "true onward {}");
    late.stop();
    db.stop();
    // And it says what it misses, once.
    web.signal("TERM");
    let (status, errors) = web.finish();
    assert_eq!(status.code(), Some(0), "{errors}");
    for said in [
        "what hosts share is not seen: the store does not answer: ",
        "what hosts share is seen again",
    ] {
        assert_eq!(errors.matches(said).count(), 1, "{errors}");
    }
}

/// Commands of whoever publishes, from a repository of its own.
struct Publisher<'a> {
    cluster: &'a Cluster,
}

impl Publisher<'_> {
    fn write(&self, name: &str, content: &str) {
        let root = self.cluster.place.path("").display().to_string();
        self.cluster
            .place
            .write(&format!("repository/{name}"), content.replace("PLACE/", &root));
    }

    fn git(&self, arguments: &[&str]) -> String {
        let mut command = self.cluster.place.command("git");
        command.current_dir(self.cluster.place.path("repository"));
        command
            .args(["-c", "user.name=Test", "-c", "user.email=test@example.com"])
            .args(arguments);
        let ran = command.output().expect("there is a `git`");
        assert!(ran.status.success(), "{ran:?}");
        String::from_utf8_lossy(&ran.stdout).trim().to_owned()
    }

    fn commit(&self, message: &str) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn deploy(&self, arguments: &[&str]) -> Finished {
        let mut command = self.cluster.place.command(BINARY);
        command.current_dir(self.cluster.place.path("repository"));
        command.args(["deploy", "--seeds", &self.cluster.etcd.endpoints().join(",")]);
        finished(&mut command, arguments)
    }
}

fn finished(command: &mut std::process::Command, arguments: &[&str]) -> Finished {
    let output = command.args(arguments).output().expect("it can be started");
    Finished {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

impl Cluster {
    /// A host that runs what is deployed.
    fn member(&self, host: &str, further: &[&str]) -> Host {
        let mut command = self.place.command(BINARY);
        command.args([
            "run",
            "--no-raise-limits",
            "--json",
            "--hostname",
            host,
            "--seeds",
        ]);
        command.arg(self.etcd.endpoints().join(","));
        command
            .arg("--prefix")
            .arg(self.place.path(&format!("prefix-{host}")));
        command.args(further).arg("empty");
        Host::of_running(Running::start(command))
    }
}

fn says(text: &str) -> String {
    format!("file \"PLACE/${{hostname}}.says\" {{\n\tstate => \"exists\",\n\tcontent => \"{text}\",\n}}\n")
}

#[test]
fn what_is_deployed_all_members_run_and_the_newest_who_comes_later() {
    if !has_etcd("what_is_deployed_all_members_run_and_the_newest_who_comes_later") {
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
    let deploy = |arguments: &[&str], said: &str| {
        let ran = publisher.deploy(arguments);
        assert!(ran.stderr.contains(said), "{arguments:?}: {}", ran.stderr);
        ran.code
    };
    assert_eq!(deploy(&["main.mcl"], "a deploy is made from a git repository"), 1);
    publisher.git(&["init", "-q"]);
    let first = publisher.commit("one");
    assert_eq!(deploy(&["lang", "main.mcl"], "success, id: 1"), 0);
    cluster.becomes("a.says", "one");
    assert_eq!(
        deploy(
            &["main.mcl"],
            "there is nothing new to deploy: deploy 1 is of this commit"
        ),
        1
    );
    publisher.write("main.mcl", &says("two"));
    assert_eq!(
        deploy(&["main.mcl"], "has changes that are in no commit: M main.mcl"),
        1
    );
    publisher.commit("two");
    assert_eq!(deploy(&["wrong.mcl"], "error[E"), 1);
    assert_eq!(deploy(&["main.mcl"], "success, id: 2"), 0);
    cluster.becomes("a.says", "two");
    let b = cluster.member("b", &[]);
    cluster.becomes("b.says", "two");
    // A commit that is left out is a gap, unless somebody insists.
    publisher.commit("three");
    publisher.write("main.mcl", &says("four"));
    let third = publisher.git(&["rev-parse", "HEAD"]);
    publisher.commit("four");
    assert_eq!(
        deploy(&["main.mcl"], &format!("and this commit follows {third}")),
        1
    );
    assert_eq!(deploy(&["--force", "main.mcl"], "success, id: 3"), 0);
    cluster.becomes("a.says", "four");
    cluster.becomes("b.says", "four");
    assert_eq!(deploy(&["rollback", "1"], "success, id: 4"), 0);
    cluster.becomes("b.says", "one");
    assert_eq!(deploy(&["rollback", "9"], "there is no deploy 9"), 1);
    assert_eq!(deploy(&["--no-git", "yaml", "graph.yaml"], "success, id: 5"), 0);
    cluster.becomes("yaml", "y");
    let list = publisher.deploy(&["list"]).stdout;
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(lines.len(), 5, "{list}");
    assert!(
        lines[0].contains(&first) && lines[3].ends_with("lang, as 1") && lines[4].ends_with("yaml"),
        "{list}"
    );
    // Without the store who is started again runs the newest that it had.
    a.stop();
    b.stop();
    cluster.etcd.kill_member(0);
    std::fs::remove_file(cluster.place.path("yaml")).expect("it is there");
    let b = cluster.member("b", &[]);
    cluster.becomes("yaml", "y");
    cluster.etcd.start_member(0);
    cluster.etcd.wait_until_ready();
    let publisher = Publisher { cluster: &cluster };
    assert_eq!(publisher.deploy(&["--no-git", "main.mcl"]).code, 0);
    cluster.becomes("b.says", "four");
    b.stop();
}

#[test]
fn what_goes_with_a_deploy_holds_on_all_members() {
    if !has_etcd("what_goes_with_a_deploy_holds_on_all_members") {
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
    // One that is not there yet is waited for, and the one that is there is not wanted.
    let late = cluster.member("late", &["--wait"]);
    assert_eq!(publisher.deploy(&["--no-git", "next.mcl"]).code, 0);
    cluster.becomes("late.says", "two");
    late.stop();
    // Whoever runs a program publishes it.
    let mut command = cluster.place.command(BINARY);
    command.current_dir(cluster.place.path("repository"));
    command.args([
        "run",
        "--no-raise-limits",
        "--json",
        "--hostname",
        "runs",
        "--seeds",
        &cluster.etcd.endpoints().join(","),
    ]);
    command
        .arg("--prefix")
        .arg(cluster.place.path("prefix-runs"))
        .arg("main.mcl");
    let runs = Host::of_running(Running::start(command));
    cluster.becomes("runs.says", "one");
    let list = publisher.deploy(&["list"]).stdout;
    assert_eq!(list.lines().count(), 7, "{list}");
    runs.stop();
    // What cannot be read is passed over.
    let b = cluster.member("b", &[]);
    cluster.becomes("b.says", "one");
    cluster
        .etcd
        .control(&["put", "/setpoint/deploy/8/payload", "nonsense"]);
    assert_eq!(publisher.deploy(&["--no-git", "next.mcl"]).code, 0);
    cluster.becomes("b.says", "two");
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
fn whoever_deploys_sees_how_it_stands_on_each_host() {
    if !has_etcd("whoever_deploys_sees_how_it_stands_on_each_host") {
        return;
    }
    let cluster = Cluster::start(1);
    let publisher = Publisher { cluster: &cluster };
    publisher.write("main.mcl", &says("one"));
    let broken = "if $hostname == \"b\" {\n\tfile \"/proc/none/x\" {\n\t\tstate => \"exists\",\n\t}\n}\n";
    publisher.write("broken.mcl", &(says("two") + broken));
    let deploy = |arguments: &[&str]| {
        let mut all = vec!["--no-git", "--wait"];
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
    let rows = |ran: &Finished| -> Vec<String> {
        let row = |line: &str| line.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
        ran.stdout.lines().skip(1).map(row).collect()
    };
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
    let seeds = cluster.etcd.endpoints().join(",");
    let members = cluster
        .place
        .run(BINARY, &["members", "--seeds", &seeds, "--json"]);
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
    // Who ends is no member any more.
    b.stop();
    let left = cluster.place.run(BINARY, &["members", "--seeds", &seeds]);
    assert!(
        left.stdout.contains("\na ") && !left.stdout.contains("\nb "),
        "{}",
        left.stdout
    );
    a.stop();
}

#[test]
fn a_rollout_goes_on_only_as_long_as_it_is_right() {
    if !has_etcd("a_rollout_goes_on_only_as_long_as_it_is_right") {
        return;
    }
    let cluster = Cluster::start(1);
    let publisher = Publisher { cluster: &cluster };
    let names = ["web-1", "web-2", "web-3", "db-1"];
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
    let deploy = |arguments: &[&str]| {
        let mut all = vec!["--no-git"];
        all.extend(arguments);
        publisher.deploy(&all)
    };
    let rows = |ran: &Finished| -> Vec<String> {
        let row = |line: &str| line.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
        ran.stdout.lines().skip(1).map(row).collect()
    };
    let all_at = |id: &str| {
        ["db-1", "web-1", "web-2", "web-3"]
            .map(|host| format!("{host} {id} right"))
            .to_vec()
    };
    // Nobody is there.
    let nobody = deploy(&["--canary", "1", "one.mcl"]);
    assert_eq!(nobody.code, 1);
    assert!(
        nobody.stderr.contains("no host is there that runs deploys"),
        "{}",
        nobody.stderr
    );
    let hosts: Vec<Host> = names.iter().map(|host| cluster.member(host, &[])).collect();
    let first = deploy(&["--wait", "one.mcl"]);
    let first_rows = rows(&first);
    assert!(
        first.code == 0 && first.stdout.is_empty() || first_rows.iter().all(|row| row.contains(" 1 ")),
        "{first:?}"
    );
    for host in names {
        cluster.becomes(&format!("{host}.says"), "one");
    }
    // What nobody is called.
    let wrong = deploy(&["--canary", "wed-1", "two.mcl"]);
    assert_eq!(wrong.code, 1);
    assert!(
        wrong.stderr.contains("no member is called `wed-1`")
            && wrong.stderr.contains("did you mean `web-1`?"),
        "{}",
        wrong.stderr
    );
    assert_eq!(deploy(&["--canary", "[", "two.mcl"]).code, 64);
    assert_eq!(deploy(&["--max-unavailable", "0", "two.mcl"]).code, 64);
    assert_eq!(
        publisher.deploy(&["list"]).stdout.lines().count(),
        1,
        "nothing was published"
    );
    // The canary gets it wrong: the others keep what they have.
    let stopped = deploy(&["--canary", "web-*", "--max-unavailable", "1", "broken-web.mcl"]);
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
    cluster.becomes("db-1.says", "one");
    let list = publisher.deploy(&["list"]).stdout;
    assert!(
        list.lines()
            .last()
            .is_some_and(|line| line.contains("stopped: web-2: ")),
        "{list}"
    );
    // Whoever comes now, or comes again, does not take it either, unless it is one of those.
    let late = cluster.member("late", &[]);
    cluster.becomes("late.says", "one");
    late.stop();
    // It stays wrong.
    let again = deploy(&["resume", "2"]);
    assert!(
        again.code == 1 && again.stderr.contains("web-2: "),
        "{}",
        again.stderr
    );
    let back = deploy(&["--wait", "rollback", "1"]);
    assert_eq!((back.code, rows(&back)), (0, all_at("3")), "{}", back.stderr);
    let over = deploy(&["resume", "2"]);
    assert!(
        over.stderr.contains("deploy 3 has come after it"),
        "{}",
        over.stderr
    );
    // One after the other, until all have it.
    let right = deploy(&["--canary", "1", "--max-unavailable", "2", "two.mcl"]);
    assert_eq!((right.code, rows(&right)), (0, all_at("4")), "{}", right.stderr);
    let over = deploy(&["resume", "4"]);
    assert!(over.stderr.contains("all hosts may take it"), "{}", over.stderr);
    // One that is wrong somewhere in the midst, and then is for all nevertheless.
    let stopped = deploy(&["--max-unavailable", "1", "broken-db.mcl"]);
    assert!(
        stopped.code == 1 && stopped.stderr.contains("db-1: "),
        "{}",
        stopped.stderr
    );
    assert_eq!(deploy(&["finish", "5"]).code, 0);
    let members = |state: &str| {
        let seeds = cluster.etcd.endpoints().join(",");
        let members = cluster.place.run(BINARY, &["members", "--seeds", &seeds]);
        members.stdout.lines().filter(|line| line.contains(state)).count()
    };
    eventually("three have it", || members(" 5  right") == 3);
    // A host that hangs is not waited for for ever.
    let back = deploy(&["--wait", "rollback", "1"]);
    assert_eq!(back.code, 0, "{}", back.stderr);
    hosts[3].freeze();
    let stopped = deploy(&["--canary", "db-1", "--wait-timeout", "2", "two.mcl"]);
    assert!(
        stopped.code == 1
            && (stopped.stderr.contains("db-1 is not right after 2 s")
                || stopped.stderr.contains("db-1 is gone")),
        "{}",
        stopped.stderr
    );
    hosts[3].thaw();
    let resumed = deploy(&["resume", "7"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    for host in names {
        cluster.becomes(&format!("{host}.says"), "two");
    }
    // What there is, and how two of them differ.
    let shown = deploy(&["show", "7"]);
    assert!(
        shown.stdout.contains("/two.mcl")
            && shown.stdout.contains(" of 4 hosts")
            && shown.stdout.contains("db-1 "),
        "{}",
        shown.stdout
    );
    let diff = deploy(&["diff", "1"]);
    assert!(
        diff.stdout.contains("--- a/one.mcl\n+++ /dev/null") && diff.stdout.contains("+++ b/two.mcl"),
        "{}",
        diff.stdout
    );
    assert!(
        deploy(&["diff", "1", "6"])
            .stdout
            .contains("+deploy 6: lang, as 1")
    );
    assert_eq!(deploy(&["show"]).code, 64);
    assert_eq!(deploy(&["show", "x"]).code, 64);
    assert_eq!(deploy(&["show", "77"]).code, 1);
    // Away with the old ones.
    let cleared = deploy(&["gc", "--keep", "2"]);
    assert!(
        cleared.code == 0 && cleared.stderr.contains("cleared away: 5 deploys"),
        "{}",
        cleared.stderr
    );
    assert_eq!(publisher.deploy(&["list"]).stdout.lines().count(), 2);
    assert_eq!(deploy(&["--wait", "rollback", "6"]).code, 0);
    assert_eq!(deploy(&["--keep", "2", "list"]).code, 64);
    for host in hosts {
        host.stop();
    }
}
