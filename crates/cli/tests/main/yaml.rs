//! Graphs in YAML: the cases of `crates/yaml/tests/cases`, what `setpoint graph` says of each, and a run that follows its file.

use setpoint_testing::{Hermetic, repository};

use crate::end_to_end::{Engine, run, text};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

/// What is wrong, then the graph. `UPDATE=1` rewrites the expectations.
#[test]
fn every_case_gives_what_is_expected() {
    let cases = repository().join("crates/yaml/tests/cases");
    let place = Hermetic::new();
    let (mut count, mut wrong) = (0, String::new());
    for entry in std::fs::read_dir(&cases).expect("the folder is there") {
        let path = entry.expect("it can be read").path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        count += 1;
        let name = path
            .file_name()
            .expect("it has a name")
            .to_string_lossy()
            .into_owned();
        place.write(&name, text(&path));
        let finished = place.run(BINARY, &["graph", "--no-autoedges", "yaml", &name]);
        let given = format!("{}{}{}\n", finished.stderr, finished.stdout, finished.code);
        let expectation = path.with_extension("expect");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&expectation, given).expect("it can be written");
        } else if given != text(&expectation) {
            wrong.push_str(&format!("== {name}\n{given}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count > 5, "{count} cases");
}

const GRAPH: &str = "\
graph: demonstration
resources:
  file:
  - name: PLACE/motd
    content: hello
    mode: 0640
  exec:
  - name: after
    cmd: echo ran >> PLACE/ran
    shell: /bin/sh
    refresh_only: true
edges:
- from: {kind: file, name: PLACE/motd}
  to: {kind: exec, name: after}
  notify: true
";

#[test]
fn a_run_makes_the_machine_what_the_graph_says() {
    use std::os::unix::fs::PermissionsExt;
    let place = Hermetic::new();
    let graph = GRAPH.replace("PLACE", &place.directory().display().to_string());
    place.write("any.name", graph);
    let finished = run(&place, &["--once", "yaml", "any.name"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert_eq!(text(&place.path("motd")), "hello");
    let mode = std::fs::metadata(place.path("motd"))
        .expect("it is there")
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o640);
    assert_eq!(text(&place.path("ran")), "ran\n");
}

#[test]
fn a_run_follows_the_file_and_keeps_the_last_good_graph() {
    let place = Hermetic::new();
    let graph = GRAPH.replace("PLACE", &place.directory().display().to_string());
    place.write("graph.yaml", &graph);
    let name = place.path("motd").display().to_string();
    let mut engine = Engine::start(&place, &["--watch", "graph.yaml"]);
    engine.repaired("file", &name);
    place.write("graph.yaml", "graph: [");
    engine.event("what is wrong", |event| event.to_string().contains("E0701"));
    std::fs::write(place.path("motd"), "other").expect("it can be written");
    engine.repaired_until("file", &name, || text(&place.path("motd")) == "hello");
    place.write("graph.yaml", graph.replace("content: hello", "content: welcome"));
    engine.repaired_until("file", &name, || text(&place.path("motd")) == "welcome");
    engine.stop();
}

#[test]
fn what_is_no_graph_is_told_as_such() {
    let place = Hermetic::new();
    for (arguments, code, told) in [
        (
            &["graph", "missing.yaml"][..],
            1,
            "there is no file `missing.yaml`",
        ),
        (&["graph", "yaml", "."], 1, "`.` is a directory"),
        (&["graph", "yaml"], 64, "`yaml` needs a file behind it"),
    ] {
        let finished = place.run(BINARY, arguments);
        assert_eq!(finished.code, code, "{arguments:?}: {}", finished.stderr);
        assert!(finished.stderr.contains(told), "{}", finished.stderr);
    }
    std::fs::write(place.path("bytes.yaml"), b"graph: \xff\n").expect("it can be written");
    let finished = place.run(BINARY, &["check", "bytes.yaml"]);
    assert_eq!(finished.code, 1);
    assert!(
        finished.stderr.contains("not UTF-8 from byte 7"),
        "{}",
        finished.stderr
    );
}
