//! The kind `json:edit`, by the real program.

use setpoint_testing::{Finished, Hermetic, Running};

use crate::end_to_end::text;

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

fn write(place: &Hermetic, program: &str) -> String {
    let root = place.path("").display().to_string();
    let program = place.write("p.mcl", program.replace("PLACE/", &root));
    program.display().to_string()
}

fn run(place: &Hermetic, further: &[&str], program: &str) -> Finished {
    let program = write(place, program);
    let prefix = place.path("prefix").display().to_string();
    let mut all = vec!["run", "--once", "--no-raise-limits", "--state-dir", &prefix];
    all.extend(further);
    all.push(&program);
    place.run(BINARY, &all)
}

/// As an administrator would have it.
const PROGRAM: &str = "\
json:edit \"PLACE/daemon.json\" {
	edits => [
		\".log.level = \\\"warn\\\"\",
		\".dns = [\\\"10.0.0.1\\\", \\\"10.0.0.2\\\"]\",
		\"del(.debug)\",
	],
}
";

const DOCUMENT: &str =
    "{\n  \"debug\": true,\n  \"log\": { \"level\": \"info\", \"size\": 1.50 },\n  \"z\" : [1,2]\n}\n";

const EDITED: &str = "{\n  \"log\": { \"level\": \"warn\", \"size\": 1.50 },\n  \"z\" : [1,2],\n  \"dns\": [\"10.0.0.1\", \"10.0.0.2\"]\n}\n";

#[test]
fn what_is_not_edited_stays_and_what_is_right_is_not_written() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let place = Hermetic::new();
    let path = place.write("daemon.json", DOCUMENT);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let noop = run(&place, &["--noop"], PROGRAM);
    assert_eq!(
        (noop.code, text(&path)),
        (0, DOCUMENT.to_owned()),
        "{}",
        noop.stderr
    );
    assert!(noop.stderr.contains("would change .log.level"), "{}", noop.stderr);
    let first = run(&place, &[], PROGRAM);
    assert_eq!(
        (first.code, text(&path)),
        (0, EDITED.to_owned()),
        "{}",
        first.stderr
    );
    assert!(first.stderr.contains("1 changed"), "{}", first.stderr);
    let stat = std::fs::metadata(&path).unwrap();
    assert_eq!(stat.permissions().mode() & 0o7777, 0o640);
    let second = run(&place, &[], PROGRAM);
    assert!(second.stderr.contains("1 unchanged"), "{}", second.stderr);
    assert_eq!(
        std::fs::metadata(&path).unwrap().ino(),
        stat.ino(),
        "it was not written"
    );
}

/// Puts a document in its place at once: one that is written into the file would be seen while it is half of it.
fn put(path: &std::path::Path, document: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, document).expect("the place is writable");
    std::fs::rename(&new, path).expect("the place is writable");
}

#[test]
fn drift_is_repaired_and_so_is_a_document_that_comes_back() {
    let place = Hermetic::new();
    let path = place.write("daemon.json", DOCUMENT);
    let program = write(&place, PROGRAM);
    let prefix = place.path("prefix").display().to_string();
    let mut command = place.command(BINARY);
    command.args([
        "run",
        "--json",
        "--no-raise-limits",
        "--state-dir",
        &prefix,
        &program,
    ]);
    let mut running = Running::start(command);
    let event = |name: &'static str| move |line: &str| line.starts_with(&format!("{{\"event\":\"{name}\""));
    running.wait_for("the first repair", event("converged"));
    put(&path, DOCUMENT);
    running.wait_for("the second repair", event("repaired"));
    running.wait_for("rest", event("converged"));
    assert_eq!(text(&path), EDITED);
    // What is no document is left alone, and told.
    put(&path, "{\"a\": }\n");
    let told = running.wait_for("a failure", event("backing off"));
    assert!(
        told.contains("it is not valid JSON: expected value at line 1 column 7"),
        "{told}"
    );
    assert_eq!(text(&path), "{\"a\": }\n");
    std::fs::remove_file(&path).unwrap();
    let told = running.wait_for("a failure", |line| {
        event("backing off")(line) && line.contains("no such file")
    });
    assert!(
        told.contains("a `file` resource before this one can make it"),
        "{told}"
    );
    put(&path, "{}");
    running.wait_for("the last repair", event("repaired"));
    running.wait_for("rest", event("converged"));
    let made = "{\n\t\"log\": {\n\t\t\"level\": \"warn\"\n\t},\n\t\"dns\": [\"10.0.0.1\", \"10.0.0.2\"]\n}";
    assert_eq!(text(&path), made);
    running.signal("TERM");
    assert_eq!(running.finish().0.code(), Some(0));
}

#[test]
fn edits_of_one_document_by_many_are_all_made() {
    let place = Hermetic::new();
    let path = place.write("many.json", "{}");
    let edits: String = (0..50)
        .map(|number| {
            format!(
                "json:edit \"edit {number}\" {{\n\tstore => \"file://PLACE/many.json\",\n\tedits => [\".k{number} = {number}\"],\n}}\n"
            )
        })
        .collect();
    let edits = edits.replace("file://PLACE/", &format!("file://{}", place.path("").display()));
    let ran = run(&place, &[], &edits);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("50 changed"), "{}", ran.stderr);
    let document: serde_json::Value = serde_json::from_str(&text(&path)).unwrap();
    assert_eq!(document.as_object().unwrap().len(), 50);
    assert_eq!(document["k49"], 49);
}

#[test]
fn edits_of_one_file_by_several_processes_are_all_made() {
    let place = Hermetic::new();
    let file = place.write("many.json", "{}");
    let programs = (0..4).map(|process| {
        let edit = |number: u32| {
            format!("json:edit \"{number}\" {{\n\tstore => \"{}\",\n\tedits => [\".p{process}k{number} = 1\"],\n}}\n", file.display())
        };
        let program: String = (0..25).map(edit).collect();
        let program = place.write(&format!("p{process}.mcl"), program);
        let prefix = place.path(&format!("prefix{process}"));
        let words = ["run", "--once", "--json", "--no-raise-limits", "--state-dir"].map(str::to_owned);
        let mut words = words.to_vec();
        words.extend([prefix.display().to_string(), program.display().to_string()]);
        words
    });
    // Somebody edits there, and takes a while.
    let directory = std::fs::File::open(place.path("")).unwrap();
    rustix::fs::flock(&directory, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let mut started: Vec<Running> = programs
        .map(|words| {
            let mut command = place.command(BINARY);
            command.args(words);
            Running::start(command)
        })
        .collect();
    for running in &mut started {
        let waits = running.wait_for("a word about who is waited for", |line| line.contains("; waits"));
        assert!(waits.contains("has locked the directory"), "{waits}");
    }
    assert_eq!(text(&file), "{}");
    drop(directory);
    for running in started {
        assert_eq!(running.finish().0.code(), Some(0));
    }
    let document: serde_json::Value = serde_json::from_str(&text(&file)).unwrap();
    assert_eq!(document.as_object().unwrap().len(), 100);
}

#[test]
fn a_key_of_the_shared_store_is_a_document_too() {
    let place = Hermetic::new();
    let program = "json:edit \"etcd:///app/config\" {\n\tedits => [\".a.b = true\"],\n}\n";
    let first = run(&place, &[], program);
    assert_eq!(first.code, 0, "{}", first.stderr);
    let shared = crate::several_hosts::Shared::at(place.path("prefix/world"));
    let document = shared.text("/strings/app%2Fconfig");
    assert_eq!(
        document.as_deref(),
        Some("{\n\t\"a\": {\n\t\t\"b\": true\n\t}\n}\n")
    );
    assert!(run(&place, &[], program).stderr.contains("1 unchanged"));
}

#[test]
fn what_is_secret_stays_so_and_what_is_in_the_way_is_told() {
    let place = Hermetic::new();
    let path = place.write("s.json", "{\"token\": \"old secret\", \"list\": [1]}");
    let secret =
        "json:edit \"PLACE/s.json\" {\n\tedits => [sensitive(\".token = \\\"correct horse\\\"\")],\n}\n";
    let ran = run(&place, &["--json"], secret);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(text(&path).contains("correct horse"));
    let all = format!("{}{}", ran.stdout, ran.stderr);
    assert!(
        !all.contains("correct horse") && !all.contains("old secret"),
        "{all}"
    );

    let wrong = "json:edit \"PLACE/s.json\" {\n\tedits => [\".a = 1\", \".list.x = 1\"],\n}\n";
    let ran = run(&place, &[], wrong);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let told = "failed to edit .list.x in $DIR/s.json: .list is not an object";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    assert!(!text(&path).contains("\"a\""), "all edits are made, or none");

    std::os::unix::fs::symlink(&path, place.path("link.json")).unwrap();
    let link = "json:edit \"PLACE/link.json\" {\n\tedits => [\".a = 1\"],\n}\n";
    let ran = run(&place, &[], link);
    assert!(ran.stderr.contains("it is a symbolic link"), "{}", ran.stderr);
    assert_eq!(ran.code, 1);
}
