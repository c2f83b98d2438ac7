//! What hosts export to each other and collect, by processes that share a store.

use setpoint_testing::Hermetic;

use crate::end_to_end::text;
use crate::several_hosts::{Host, Shared, becomes, place, place_of, run, write};

/// The records in the store: their keys.
fn records(place: &Hermetic) -> Vec<String> {
    let all = shared(place).below("/exported/");
    all.iter().map(|entry| entry.key.to_string()).collect()
}

fn shared(place: &Hermetic) -> Shared {
    Shared::at(place.path("world"))
}

/// Exports a line for the configuration of everybody.
const EXPORTS: &str = "\
file \"PLACE/db.line\" {
	content => \"database = db\\n\",
	Meta:export => [\"*\",],
	Meta:hidden => true,
}
file \"PLACE/own\" {
	content => \"for web\\n\",
	Meta:export => [\"web\", \"other\",],
}
";

/// Collects all of it.
const COLLECTS: &str = "\
import \"world/collect\"
collect file collect.res(\"file\") {
	state => \"exists\",
}
";

#[test]
fn what_one_host_exports_another_has_while_it_does() {
    let place = place();
    let mut web = Host::start(&place, "web", COLLECTS);
    web.event("the first graph", |event| event["event"] == "graph swapped");
    let mut db = Host::start(&place, "db", EXPORTS);
    let root = place.path("").display().to_string();
    let (line, own) = (format!("{root}db.line"), format!("{root}own"));
    let told = db.of("file", &line, "exported");
    assert_eq!(told["to"], serde_json::json!(["*"]));
    // What is hidden is not made on the host that exports it, and on the other one it is.
    web.all_of(&[&line, &own], "run ended");
    assert_eq!(text(&place.path("db.line")), "database = db\n");

    // Another content is another record, and nothing else is written.
    let changed = EXPORTS.replace("= db", "= db.example");
    write(&place, "db", &changed);
    db.of("file", &line, "exported");
    web.of("file", &line, "repaired");
    assert_eq!(text(&place.path("db.line")), "database = db.example\n");

    // What is no longer exported is gone there too; with the record of another host it stays.
    write(
        &place,
        "db",
        &changed.replace("[\"web\", \"other\",]", "[\"other\",]"),
    );
    let left = db.of("file", &own, "unexported");
    assert_eq!(left["to"], serde_json::json!(["web"]));
    web.of("file", &own, "removed");
    write(&place, "db", "");
    db.of("file", &line, "unexported");
    web.of("file", &line, "removed");
    assert_eq!(records(&place), [""; 0]);
    // A file that is no longer managed stays.
    assert_eq!(text(&place.path("db.line")), "database = db.example\n");
    web.stop();
    db.stop();
}

#[test]
fn an_export_comes_after_what_the_resource_waits_for_and_has_what_it_receives() {
    let place = place();
    let program = "\
exec \"PLACE/key\" {
	cmd => \"cat PLACE/pipe; echo the key\",
	shell => \"/bin/sh\",
	ifcmd => \"test ! -e PLACE/done\",
}
file \"PLACE/known\" {
	state => \"exists\",
	Meta:export => [\"*\",],
	Meta:hidden => true,
}
Exec[\"PLACE/key\"].stdout -> File[\"PLACE/known\"].content
";
    let made = std::process::Command::new("mkfifo")
        .arg(place.path("pipe"))
        .status();
    assert!(made.is_ok_and(|status| status.success()));
    let mut db = Host::start(&place, "db", program);
    let root = place.path("").display().to_string();
    db.of("exec", &format!("{root}key"), "started run");
    assert_eq!(records(&place), [""; 0]);
    std::fs::write(place.path("pipe"), "").unwrap();
    db.of("file", &format!("{root}known"), "exported");
    let collects = "collect file \"PLACE/known\" {}\n";
    let web = run(&place, "web", &["--once"], collects);
    assert_eq!(
        (web.code, text(&place.path("known"))),
        (0, "the key\n".to_owned()),
        "{}",
        web.stderr
    );
    db.stop();
}

#[test]
fn a_process_that_ends_leaves_its_exports_and_the_next_takes_back_what_it_does_not_want() {
    let place = place();
    let db = run(&place, "db", &["--once"], EXPORTS);
    assert_eq!(db.code, 0, "{}", db.stderr);
    let own: Vec<String> = records(&place);
    assert_eq!(own.len(), 3, "{own:?}");
    // Those of another host are its own.
    let other = EXPORTS.replace("db.line", "web.line");
    assert_eq!(run(&place, "web", &["--once"], &other).code, 0);
    assert_eq!(records(&place).len(), 6);
    // A host that is killed leaves them, too.
    let mut killed = Host::start(&place, "db", EXPORTS);
    killed.event("quiet", |event| event["event"] == "converged");
    killed.kill();
    assert_eq!(records(&place).len(), 6);

    // Where nothing may be changed, nothing is.
    let fewer = EXPORTS.replace(", \"other\",]", ",]");
    let noop = run(&place, "db", &["--once", "--noop"], &fewer);
    assert_eq!((noop.code, records(&place).len()), (0, 6), "{}", noop.stderr);
    let db = run(&place, "db", &["--once"], &fewer);
    assert_eq!(db.code, 0, "{}", db.stderr);
    assert_eq!(records(&place).len(), 5);
    let wrong = run(&place, "db", &["--once"], "file {\n");
    assert_eq!(
        (wrong.code, records(&place).len()),
        (1, 5),
        "no program takes nothing back"
    );
    let empty = run(&place, "db", &["--once"], "");
    assert_eq!((empty.code, records(&place).len()), (0, 3), "{}", empty.stderr);
}

#[test]
fn what_may_only_report_is_neither_exported_nor_taken_back() {
    let place = place();
    assert_eq!(run(&place, "db", &["--once"], EXPORTS).code, 0);
    let before = records(&place);
    let noop = EXPORTS
        .replace("Meta:hidden => true", "Meta:noop => true")
        .replace("= db", "= other");
    let root = place.path("").display().to_string();
    let ran = run(&place, "db", &["--once"], &noop);
    assert_eq!((ran.code, records(&place)), (0, before.clone()), "{}", ran.stderr);
    let record = before.iter().find(|path| path.contains("db.line")).unwrap();
    let record = shared(&place).text(record).unwrap();
    assert!(record.contains("database = db\\n"), "{record} of {root}");
}

#[test]
fn a_secret_is_not_exported() {
    let place = place();
    let program = "\
file \"PLACE/secret\" {
	content => sensitive(\"correct horse\"),
	mode => \"0600\",
	Meta:export => [\"*\",],
}
";
    let ran = run(&place, "db", &["--once", "--json"], program);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let all = format!("{}{}", ran.stdout, ran.stderr);
    assert!(all.contains("`content` is sensitive"), "{all}");
    assert!(!all.contains("correct horse"), "{all}");
    // It is made all the same, here.
    assert_eq!(text(&place.path("secret")), "correct horse");
    assert_eq!(records(&place), [""; 0]);
}

#[test]
fn a_store_that_cannot_be_written_fails_who_exports_and_nobody_else() {
    let place = place();
    std::fs::remove_dir(place.path("world")).unwrap();
    place.write("world", "no directory");
    let program = EXPORTS.to_owned() + "file \"PLACE/alone\" {\n\tcontent => \"alone\\n\",\n}\n";
    let mut db = Host::start(&place, "db", &program);
    let root = place.path("").display().to_string();
    let own = format!("{root}own");
    let fails = db.of("file", &own, "backing off");
    let error = fails["error"].as_str().unwrap_or_default();
    assert!(error.starts_with(&format!("export file[{own}] for ")), "{error}");
    becomes(&place.path("alone"), "alone\n");
    assert_eq!(text(&place.path("own")), "for web\n");
    // What is there again is used again, without help.
    std::fs::remove_file(place.path("world")).unwrap();
    std::fs::create_dir(place.path("world")).unwrap();
    db.all_of(&[&own, &format!("{root}db.line")], "exported");
    assert_eq!(records(&place).len(), 3);
    db.stop();
}

#[test]
fn names_that_no_file_could_have_are_exported_and_collected() {
    let place = place();
    let name = format!("/{}/../ä\\n\u{7f}%", "long ".repeat(100));
    let program = format!("print \"{name}\" {{\n\tmsg => \"hello\",\n\tMeta:export => [\"*\",],\n}}\n");
    let db = run(&place, "db", &["--once"], &program);
    assert_eq!(db.code, 0, "{}", db.stderr);
    let collects = "import \"world/collect\"\ncollect print collect.res(\"print\") {}\n";
    let web = run(&place, "web", &["--once"], collects);
    assert!(
        web.stdout.contains("hello") || web.stderr.contains("hello"),
        "{}{}",
        web.stdout,
        web.stderr
    );
    let empty = run(&place, "db", &["--once"], "");
    assert_eq!((empty.code, records(&place)), (0, Vec::new()), "{}", empty.stderr);
}

#[test]
fn a_record_that_cannot_be_read_is_told_where_it_is_collected_and_mended_by_who_exports_it() {
    let place = place();
    assert_eq!(run(&place, "db", &["--once"], EXPORTS).code, 0);
    let collects = COLLECTS.replace("state => \"exists\",", "");
    let mut web = Host::start(&place, "web", &collects);
    web.event("quiet", |event| event["event"] == "converged");
    let record = records(&place).into_iter().find(|path| path.contains("db.line"));
    shared(&place).set(&record.unwrap(), Some("half"));
    let told = web.event("what is wrong", |event| event["event"] == "diagnostic");
    let told = told.to_string();
    assert!(
        told.contains("of the host `db` cannot be collected: its text is damaged"),
        "{told}"
    );
    // The rest of the program continues, and a run that ends counts the failure.
    let root = place.path("").display().to_string();
    std::fs::write(place.path("own"), "drift").unwrap();
    web.of("file", &format!("{root}own"), "repaired");
    web.stop();
    let once = run(&place, "web", &["--once"], &collects);
    assert_eq!(once.code, 1, "{}", once.stderr);
    assert_eq!(
        run(&place, "db", &["--once"], &EXPORTS.replace("= db", "= new")).code,
        0
    );
    assert_eq!(run(&place, "web", &["--once"], &collects).code, 0);
    assert_eq!(text(&place.path("db.line")), "database = new\n");
}

/// The example of the guide, with the directory of the test.
fn collects_from_web() -> String {
    let guide = std::fs::read_to_string(setpoint_testing::repository().join("docs/guide/cluster.md"));
    let guide = guide.expect("the guide is there");
    let from = guide.find("import \"iter\"\n").expect("the example is there");
    let example = &guide[from..];
    let example = &example[..example.find("```").expect("it ends")];
    example
        .replace("/etc/balancer/servers/", "PLACE/servers/")
        .replace("\t\towner => \"root\",\n", "")
}

#[test]
fn who_collects_decides_from_whom_and_where_it_is_made() {
    let place = place_of(&["web-1", "db", "balancer"]);
    std::fs::create_dir(place.path("servers")).expect("the place is writable");
    let stolen = |name: &str| {
        format!(
            "file \"PLACE/{name}\" {{\n\tpath => \"PLACE/anywhere\",\n\tcontent => \"{name}\\n\",\n\tmode => \"4755\",\n\
             \tMeta:export => [\"*\",],\n\tMeta:hidden => true,\n}}\n"
        )
    };
    for (host, program) in [("web-1", stolen("first")), ("db", stolen("second"))] {
        let exported = run(&place, host, &["--once"], &program);
        assert_eq!(exported.code, 0, "{}", exported.stderr);
    }
    let collected = run(&place, "balancer", &["--once"], &collects_from_web());
    assert_eq!(collected.code, 0, "{}", collected.stderr);
    assert!(!place.path("anywhere").exists());
    let made = std::fs::read_dir(place.path("servers")).expect("it is there");
    let made: Vec<String> = made
        .map(|entry| {
            entry
                .expect("it can be read")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    assert_eq!(made, ["web-1"], "{}", collected.stderr);
    let metadata = std::fs::metadata(place.path("servers/web-1")).expect("it is there");
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o7777,
        0o644
    );
    assert_eq!(text(&place.path("servers/web-1")), "first\n");
}

#[test]
fn what_another_host_exports_keeps_no_program_from_running() {
    let place = place_of(&["web", "db"]);
    let exported = "file \"PLACE/theirs\" {\n\tpath => \"PLACE/file\",\n\tcontent => \"theirs\\n\",\n\tMeta:export => [\"*\",],\n\tMeta:hidden => true,\n}\n\
                    line \"entry\" {\n\tfile => \"PLACE/lines\",\n\tstate => \"absent\",\n\tcontent => \"ours\",\n\tMeta:export => [\"*\",],\n\tMeta:hidden => true,\n}\n";
    let exports = run(&place, "web", &["--once"], exported);
    assert_eq!(exports.code, 0, "{}", exports.stderr);
    let own = "file \"PLACE/file\" {\n\tcontent => \"ours\\n\",\n}\n\
               line \"own\" {\n\tfile => \"PLACE/lines\",\n\tstate => \"exists\",\n\tcontent => \"ours\",\n}\n\
               file \"PLACE/other\" {\n\tcontent => \"made\\n\",\n}\n\
               collect file [struct{name => \"PLACE/theirs\", host => \"web\",},] {}\n\
               collect line [struct{name => \"entry\", host => \"web\",},] {}\n";
    let collected = run(&place, "db", &["--once"], own);
    assert_eq!(text(&place.path("other")), "made\n", "{}", collected.stderr);
    for wanted in ["of the content of", "of the line `ours` in"] {
        let warned = collected.stderr.lines().any(|line| {
            line.contains("warning: ") && line.contains("wants something else") && line.contains(wanted)
        });
        assert!(warned, "{}", collected.stderr);
    }
}
