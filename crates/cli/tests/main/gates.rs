//! Machines that execute one model and wait for each other, over a store that they share.

use serde_json::{Value as Json, json};
use setpoint_testing::{Finished, Hermetic, Running};

use crate::end_to_end::text;
use crate::several_hosts::{self, Host, Shared, arguments};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

/// The model: the application on `web` needs the database on `db`.
const MODEL: &str = "\
import setpoint
database = setpoint::File(name=\"database\", machine=\"db\", path=\"PLACE/database\", state=\"exists\", content=std::source(\"/database\"))
app = setpoint::File(name=\"app\", machine=\"web\", path=\"PLACE/app\", state=\"exists\", content=\"app\\n\", requires=database)
setpoint::File(name=\"alone\", machine=\"web\", path=\"PLACE/alone\", state=\"exists\", content=\"alone\\n\")
";

/// The key under which the store holds what `db` says of its database.
const KEY: &str = "/host-strings/db/settled%2Flocal%2Fdb%2Ffile%2Fdatabase";

const GATE: &str = "db/file[database]";

/// A project, and a working directory for each machine. They share what is in `world`.
fn place() -> Hermetic {
    let place = several_hosts::place();
    let root = place.path("").display().to_string();
    place.write("site/project.yml", "name: site\nmodulepath: libs\n");
    place.write("site/files/database", "one\n");
    place.write("site/main.cf", MODEL.replace("PLACE/", &root));
    place
}

/// Runs a machine to its end.
fn run(place: &Hermetic, machine: &str, further: &[&str]) -> Finished {
    let mut all = arguments(place, machine);
    all.extend(further.iter().map(|argument| (*argument).to_owned()));
    all.push("site".to_owned());
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    place.run(BINARY, &all)
}

/// A machine that begins to run, and goes on.
fn start(place: &Hermetic, machine: &str, further: &[&str]) -> Host {
    let mut command = place.command(BINARY);
    command.args(arguments(place, machine)).arg("--json");
    command.args(further).arg("site");
    Host::of_running(Running::start(command))
}

/// The graph of a machine.
fn graph(place: &Hermetic, machine: &str) -> Json {
    let arguments = ["graph", "--format", "json", "--hostname", machine, "site"];
    let finished = place.run(BINARY, &arguments);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    serde_json::from_str(&finished.stdout).expect("it is JSON")
}

fn resource(graph: &Json, kind: &str) -> Json {
    let resources = graph["resources"].as_array().into_iter().flatten();
    let mut of_kind = resources.filter(|resource| resource["kind"] == kind);
    of_kind.next().cloned().unwrap_or_default()
}

fn shared(place: &Hermetic) -> Shared {
    Shared::at(place.path("world"))
}

/// What `db` has said.
fn said(place: &Hermetic) -> Option<String> {
    shared(place).text(KEY)
}

/// As another machine's engine says it.
fn say_settled(place: &Hermetic, hash: &str) {
    shared(place).set(KEY, Some(hash));
}

#[test]
fn a_machine_goes_on_when_another_one_has_settled_what_it_waits_for() {
    let place = place();
    let mut web = start(&place, "web", &["--converger-timeout", "0"]);
    let waits = web.of("gate", GATE, "waiting for host");
    assert_eq!(waits["missing"], "file[database] is not settled on db yet");
    let blocked = web.of("file", "app", "blocked by");
    assert_eq!(blocked["by"], "gate[db/file[database]]");
    // What waits for another machine keeps nobody from being quiet, and everything else is right.
    web.event("convergence", |event| event["event"] == "converged");
    assert_eq!(text(&place.path("alone")), "alone\n");
    assert!(!place.path("app").exists());
    // Whoever asks is told the same: not that something is under way here, and not that something has failed.
    let prefix = place.path("web").display().to_string();
    let status = |further: &[&str]| {
        let words: Vec<&str> = ["status", "--state-dir", &prefix]
            .iter()
            .chain(further)
            .copied()
            .collect();
        place.run(BINARY, &words)
    };
    let all = status(&[]);
    assert_eq!(all.code, 3, "{}", all.stdout);
    let counts = "1 waiting for something outside this machine, 1 blocked, 1 right";
    let wanted = format!("waiting for another machine: {counts}\n");
    assert!(all.stdout.starts_with(&wanted), "{}", all.stdout);
    for wanted in [
        "\nnothing under way (converged)",
        "  gate[db/file[database]]: file[database] is not settled on db yet\n",
        "  file[app]: waits for gate[db/file[database]], which waits for something outside this machine\n",
    ] {
        assert!(all.stdout.contains(wanted), "{}", all.stdout);
    }
    let blocked = status(&["file[app]"]);
    assert_eq!(blocked.code, 3, "{}", blocked.stdout);
    let wanted = "waiting for another machine: 1 blocked\n\nblocked\n  file[app]: waits for gate[db/file[database]], which waits";
    assert!(blocked.stdout.starts_with(wanted), "{}", blocked.stdout);

    let db = run(&place, "db", &["--once"]);
    assert_eq!(db.code, 0, "{}", db.stderr);
    assert_eq!(text(&place.path("database")), "one\n");
    web.of("file", "app", "repaired");
    web.event("convergence", |event| event["event"] == "converged");
    assert_eq!(text(&place.path("app")), "app\n");
    web.stop();
}

#[test]
fn a_gate_closes_when_other_parameters_are_wanted_until_these_are_settled() {
    let place = place();
    assert_eq!(run(&place, "db", &["--once"]).code, 0);
    let mut web = start(&place, "web", &[]);
    web.of("file", "app", "repaired");
    // A file that the model reads changes: only what is waited for is another one.
    place.write("site/files/database", "two\n");
    let swapped = web.event("the next graph", |event| {
        event["event"] == "graph accepted" && event["changed"] == 1
    });
    assert_eq!((&swapped["kept"], &swapped["added"]), (&json!(2), &json!(0)));
    let waits = web.of("gate", GATE, "waiting for host");
    assert_eq!(
        waits["missing"],
        "file[database] is settled on db with other parameters than those wanted here"
    );
    // What must run now waits.
    std::fs::remove_file(place.path("app")).unwrap();
    web.of("file", "app", "blocked by");
    assert_eq!(run(&place, "db", &["--once"]).code, 0);
    web.of("file", "app", "repaired");
    web.stop();
    assert_eq!(text(&place.path("database")), "two\n");
}

#[test]
fn a_machine_says_what_it_has_settled_under_the_key_and_with_the_hash_that_others_look_for() {
    let place = place();
    let (gate, told) = (graph(&place, "web"), graph(&place, "db"));
    let (gate, told) = (resource(&gate, "gate"), resource(&told, "settled"));
    assert_eq!((&gate["name"], &told["name"]), (&json!(GATE), &json!(GATE)));
    for parameter in ["key", "hash", "resource"] {
        assert_eq!(gate["params"][parameter], told["params"][parameter]);
    }
    assert_eq!(gate["params"]["key"], "settled/local/db/file/database");
    assert_eq!(gate["params"]["machine"], "db");
    let first = run(&place, "db", &["--once"]);
    assert!(
        first
            .stderr
            .contains("settled[db/file[database]]: told other machines that file[database] is settled"),
        "{}",
        first.stderr
    );
    assert_eq!(json!(said(&place)), gate["params"]["hash"]);
    // After a restart, what is said already is not said again; what was taken away is.
    let set = || shared(&place).below(KEY)[0].modified;
    let before = set();
    let second = run(&place, "db", &["--once", "--detailed-exitcode"]);
    assert_eq!((second.code, set()), (0, before), "{}", second.stderr);
    shared(&place).set(KEY, None);
    assert_eq!(run(&place, "db", &["--once", "--detailed-exitcode"]).code, 2);
    assert_eq!(json!(said(&place)), gate["params"]["hash"]);
    // Nobody on `db` is waited for but the database, and nobody on `web` at all.
    assert_eq!(graph(&place, "db")["resources"].as_array().map(Vec::len), Some(2));
    assert_eq!(resource(&graph(&place, "web"), "settled"), Json::Null);
}

#[test]
fn what_is_not_right_is_not_said_to_be() {
    let place = place();
    // It cannot be made.
    std::fs::create_dir(place.path("database")).unwrap();
    let failed = run(&place, "db", &["--once"]);
    assert_eq!(
        (failed.code, said(&place).is_some()),
        (1, false),
        "{}",
        failed.stderr
    );
    std::fs::remove_dir(place.path("database")).unwrap();
    // It may not be made.
    let noop = run(&place, "db", &["--once", "--noop"]);
    assert_eq!((noop.code, said(&place).is_some()), (0, false), "{}", noop.stderr);
    assert!(
        noop.stderr.contains("would tell other machines"),
        "{}",
        noop.stderr
    );
    assert!(!place.path("database").exists());
    // It is only reported on: that it was looked at says nothing.
    let model = text(&place.path("site/main.cf"));
    place.write(
        "site/main.cf",
        model.replace("machine=\"db\"", "machine=\"db\", report_only=true"),
    );
    let reported = run(&place, "db", &["--once"]);
    assert_eq!(
        (reported.code, said(&place).is_some()),
        (0, false),
        "{}",
        reported.stderr
    );
}

#[test]
fn without_repairs_a_closed_gate_says_so_and_what_is_behind_it_is_looked_at() {
    let place = place();
    let noop = run(&place, "web", &["--once", "--noop", "--detailed-exitcode"]);
    assert_eq!(noop.code, 2, "{}", noop.stderr);
    for line in [
        "gate[db/file[database]]: would wait until file[database] is settled on db",
        "file[app]: would be created",
    ] {
        assert!(noop.stderr.contains(line), "{}", noop.stderr);
    }
    assert!(!place.path("app").exists());
    let world: Vec<_> = std::fs::read_dir(place.path("world")).unwrap().collect();
    assert!(world.is_empty(), "{world:?}");
}

#[test]
fn who_runs_once_does_not_wait_and_ends_with_an_error_that_names_whom() {
    let place = place();
    let once = run(&place, "web", &["--once"]);
    assert_eq!(
        (once.code, place.path("app").exists()),
        (1, false),
        "{}",
        once.stderr
    );
    for line in [
        "gate[db/file[database]]: failed to go on: file[database] is not settled on db yet",
        "file[app]: could not run, because gate[db/file[database]] failed",
    ] {
        assert!(once.stderr.contains(line), "{}", once.stderr);
    }
    assert_eq!(text(&place.path("alone")), "alone\n");
    // One that stays until it is quiet ends so, too.
    let quiet = run(&place, "web", &["--converger-timeout", "0", "--converged-exit"]);
    assert_eq!(quiet.code, 1, "{}", quiet.stderr);
    for line in [
        "gate[db/file[database]]: waits, because file[database] is not settled on db yet",
        "1 waiting for other machines, 1 blocked, 1 unchanged",
    ] {
        assert!(quiet.stderr.contains(line), "{}", quiet.stderr);
    }
    let hash = resource(&graph(&place, "web"), "gate")["params"]["hash"].clone();
    say_settled(&place, hash.as_str().expect("it is text"));
    let once = run(&place, "web", &["--once"]);
    assert_eq!(
        (once.code, &*text(&place.path("app"))),
        (0, "app\n"),
        "{}",
        once.stderr
    );
}

#[test]
fn a_store_that_cannot_be_read_or_written_is_told_and_tried_again() {
    let place = place();
    place.write("world/store.redb", "no store");
    let mut web = start(&place, "web", &[]);
    let fails = web.of("gate", GATE, "backing off");
    let error = fails["error"].as_str().unwrap_or_default();
    assert!(error.contains("the store is damaged: "), "{error}");
    let mut db = start(&place, "db", &[]);
    let fails = db.of("settled", GATE, "backing off");
    let error = fails["error"].as_str().unwrap_or_default();
    assert!(error.contains("the store is damaged: "), "{error}");
    std::fs::remove_file(place.path("world/store.redb")).unwrap();
    db.of("settled", GATE, "repaired");
    web.of("file", "app", "repaired");
    web.stop();
    db.stop();

    std::fs::remove_dir_all(place.path("world")).unwrap();
    place.write("world", "no directory");
    let db = run(&place, "db", &["--once"]);
    assert_eq!(db.code, 1, "{}", db.stderr);
    assert!(
        db.stderr.contains("is in the place of a directory") || db.stderr.contains("ot a directory"),
        "{}",
        db.stderr
    );
}

#[test]
fn a_graph_of_a_resource_set_shows_its_gates() {
    let place = place();
    let model = text(&place.path("site/main.cf"));
    let set = "std::ResourceSet(name=\"app\", resources=[app, database])\n";
    place.write("site/main.cf", model + set);
    let shown = |machine: &str| {
        let arguments = ["graph", "--set", "app", "--hostname", machine, "site"];
        place.run(BINARY, &arguments).stdout
    };
    let (web, db) = (shown("web"), shown("db"));
    assert!(
        web.contains("gate \"db/file[database]\" -> file \"app\"") && !web.contains("alone"),
        "{web}"
    );
    assert!(
        db.contains("file \"database\" -> settled \"db/file[database]\""),
        "{db}"
    );
}

/// A program that `db` includes, of which `web` waits for all.
const PROGRAM: &str = "\
import \"fmt\"
class store($port int) {
	print \"first\" { msg => fmt.printf(\"%d\", $port), }
	print \"second\" { msg => \"x\", Depend => Print[\"first\"], }
}
";

#[test]
fn an_instance_of_a_program_is_settled_when_all_its_resources_are() {
    let place = place();
    place.write("site/libs/db/main.mcl", PROGRAM);
    let model = "\
import setpoint
import db
store = db::Store(name=\"store\", machine=\"db\", port=5432)
setpoint::Noop(name=\"app\", machine=\"web\", requires=store)
";
    place.write("site/main.cf", model);
    let told = graph(&place, "db");
    let edges = told["edges"].as_array().cloned().unwrap_or_default();
    let to_settled: Vec<&Json> = edges
        .iter()
        .filter(|edge| edge["to"]["kind"] == "settled")
        .map(|edge| &edge["from"]["name"])
        .collect();
    assert_eq!(to_settled, [&json!("second")], "{told}");
    let gate = resource(&graph(&place, "web"), "gate");
    assert_eq!(gate["name"], "db/program[store]");
    assert_eq!(
        gate["params"]["hash"],
        resource(&told, "settled")["params"]["hash"]
    );
    // What one of its resources only reports on, nobody is told of.
    let reporting = PROGRAM.replace("msg => \"x\",", "msg => \"x\", Meta:noop => true,");
    place.write("site/libs/db/main.mcl", reporting);
    let settled = resource(&graph(&place, "db"), "settled");
    assert_eq!(settled["meta"], json!({ "noop": true }));
}

#[test]
fn a_program_that_includes_a_model_waits_as_the_model_does() {
    let place = place();
    place.write("main.mcl", "import \"site/\"\ninclude site.model()\n");
    let arguments = ["graph", "--format", "json", "--hostname", "web", "main.mcl"];
    let finished = place.run(BINARY, &arguments);
    let graph: Json = serde_json::from_str(&finished.stdout).expect("it is JSON");
    assert_eq!(resource(&graph, "gate")["name"], GATE, "{}", finished.stderr);
}
