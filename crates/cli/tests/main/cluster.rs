//! Hosts that share a real etcd.

mod away;
mod crash;
mod deploys;
mod faults;
mod gone_hosts;
mod looking;
mod members;
mod plans;
mod publishing;
mod remote;
mod rights;
mod secrets;
mod shared_values;
mod ssh;

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
            "--etcd-endpoints",
        ]);
        command.arg(self.etcd.endpoints().join(","));
        command
            .arg("--state-dir")
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
            ssh: None,
        };
        let store = EtcdStore::new(options).expect("the endpoints are right");
        // Another one each time, as earlier ones are part of the history.
        let end = format!("{:?}", std::time::SystemTime::now());
        self.etcd
            .control(&["put", &format!("/setpoint{prefix}~end"), &end]);
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
                    if !change.key().as_str().ends_with("~end") {
                        all.push((change.key().to_string(), value));
                    } else if value == end {
                        return all;
                    }
                }
            }
        })
    }

    /// What is in the store, without its values, and but for the public keys of hosts, and for whom they export.
    fn keys(&self) -> String {
        let keys = self
            .etcd
            .control(&["get", "--prefix", "/setpoint", "--keys-only"]);
        let keys = keys
            .lines()
            .filter(|key| !key.is_empty() && !key.starts_with("/setpoint/keys/"))
            .filter(|key| !key.starts_with("/setpoint/exporting/"));
        keys.flat_map(|key| [key, "\n"]).collect()
    }

    /// The same without what hosts say of themselves.
    fn shared_keys(&self) -> String {
        let keys = self.keys();
        let of_hosts = ["/setpoint/members/", "/setpoint/last-seen/"];
        let shared = keys
            .lines()
            .filter(|key| !of_hosts.iter().any(|prefix| key.starts_with(prefix)));
        shared.flat_map(|key| [key, "\n"]).collect()
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
    assert!(again.stderr.contains("2 unchanged"), "{}", again.stderr);
    assert_eq!(
        cluster.shared_keys(),
        "/setpoint/host-strings/app/role\n/setpoint/host-strings/web/role\n/setpoint/strings/motto%2Fof all\n"
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
    let web = cluster.host("web", &(exports("one", "all") + &exports("hush", "db")));
    cluster.becomes("for all", "one");
    cluster.becomes("for db", "hush");
    eventually("hosts with a program of their own are listed", || {
        cluster.members_saying("own  right") == 2
    });
    // What is for another host is nobody else's.
    let app = cluster.once("app", &collects.replace("PLACE/", "PLACE/app "));
    assert_eq!(app.code, 0, "{}", app.stderr);
    cluster.rewrite("web", &exports("two", "all"));
    cluster.becomes("for all", "two");
    let is_gone = |file: &str| !cluster.place.path(file).exists();
    eventually("what is exported no more is undone", || is_gone("for db"));
    assert_eq!(
        cluster.shared_keys().lines().count(),
        1,
        "{}",
        cluster.shared_keys()
    );
    // A clean end and a restart take nothing back.
    web.stop();
    assert_eq!(cluster.shared_keys().lines().count(), 1);
    let web = cluster.host("web", "noop \"nothing\" {}\n");
    eventually("another program takes back all", || is_gone("for all"));
    assert_eq!(cluster.shared_keys(), "");
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
    // Connections that end with the process are another matter.
    let errors = errors.split("stopping: ").next().unwrap_or_default();
    for said in [
        "cannot read the shared store: the store does not answer: ",
        "the shared store is reachable again",
    ] {
        assert_eq!(errors.matches(said).count(), 1, "{errors}");
    }
}
