//! `--graphviz`: the running graph as a drawing, after each new graph.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use setpoint_testing::{Hermetic, Running};

use crate::end_to_end::{Engine, run, run_command, text};

#[expect(
    clippy::print_stderr,
    reason = "whoever runs the tests wants to know what was not tested"
)]
fn has_graphviz(test: &str) -> bool {
    let has = Command::new("dot")
        .arg("-V")
        .output()
        .is_ok_and(|ran| ran.status.success());
    if !has {
        eprintln!("skipped: {test}: needs the program `dot`");
    }
    has
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn is_picture(path: &Path) -> bool {
    std::fs::read(path)
        .is_ok_and(|bytes| bytes.starts_with(b"\x89PNG\r\n\x1a\n") && bytes.ends_with(b"IEND\xaeB`\x82"))
}

/// Two resources, one before the other.
const PROGRAM: &str = "test \"first\" {\n\tBefore => Test[\"then\"],\n}\ntest \"then\" {}\n";

#[test]
fn each_new_graph_is_drawn_and_belongs_to_its_owner_alone() {
    let place = Hermetic::new();
    let program = place.write("p.mcl", PROGRAM).display().to_string();
    let mut engine = Engine::start(&place, &["--watch", "--graphviz", "graph", &program]);
    let drawn = place.path("graph@host.example");
    until("the first graph", || {
        text(&drawn).contains("\"test[first]\" -> \"test[then]\"")
    });
    assert!(text(&drawn).starts_with("digraph ") && text(&drawn).ends_with("}\n"));
    let bits = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!(bits(&drawn), 0o600);
    place.write("p.mcl", "test \"other\" {}\n");
    until("the second graph", || text(&drawn).contains("test[other]"));
    assert!(!text(&drawn).contains("test[first]"));
    engine.event("the second graph", |event| {
        event["event"] == "graph swapped" && event["generation"] == 2
    });
    engine.stop();
    if has_graphviz("each_new_graph_is_drawn_and_belongs_to_its_owner_alone") {
        let mut engine = Engine::start(
            &place,
            &["--graphviz", "graph", "--graphviz-filter", "neato", &program],
        );
        let picture = place.path("graph@host.example.png");
        until("the picture", || is_picture(&picture));
        assert_eq!(bits(&picture), 0o600);
        engine.event("quiet", |event| event["event"] == "converged");
        engine.stop();
        let left: Vec<_> = std::fs::read_dir(place.path("prefix"))
            .unwrap()
            .flatten()
            .collect();
        assert!(
            left.iter()
                .all(|entry| !entry.file_name().to_string_lossy().starts_with("graphviz-")),
            "{left:?}"
        );
    }
}

#[test]
fn who_called_sudo_owns_the_drawing() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("who_called_sudo_owns_the_drawing: needs root, left out");
        return;
    }
    let place = Hermetic::new();
    let mut command = run_command(&place, &["--graphviz", "graph", "test \"a\" {}\n"]);
    command.env("SUDO_UID", "1234").env("SUDO_GID", "4321");
    let engine = Engine::of(Running::start(command));
    let drawn = place.path("graph@host.example");
    until("the graph", || drawn.exists());
    let found = drawn.metadata().unwrap();
    assert_eq!(
        (found.uid(), found.gid(), found.mode() & 0o7777),
        (1234, 4321, 0o600)
    );
    engine.stop();
}

#[test]
fn what_goes_wrong_with_a_drawing_is_told_and_nothing_else() {
    let place = Hermetic::new();
    // No such program of Graphviz: the file is written all the same.
    let mut engine = Engine::start(
        &place,
        &[
            "--graphviz",
            "graph",
            "--graphviz-filter",
            "rm -rf /",
            "test \"a\" {}\n",
        ],
    );
    until("the graph", || place.path("graph@host.example").exists());
    engine.event("quiet", |event| event["event"] == "converged");
    let running = engine.into_running();
    running.signal("TERM");
    let (status, errors) = running.finish();
    assert_eq!(status.code(), Some(0), "{errors}");
    assert!(
        errors.contains("no pictures are made: `rm -rf /` is no program of Graphviz that draws graphs; these are: dot, neato"),
        "{errors}"
    );
    assert!(!place.path("graph@host.example.png").exists());
    // A link that somebody put there leads nowhere.
    let other = place.write("other", "untouched");
    std::fs::remove_file(place.path("graph@host.example")).unwrap();
    symlink(&other, place.path("graph@host.example")).unwrap();
    let mut command = run_command(&place, &["--graphviz", "graph"]);
    command.arg("test \"a\" {}\n");
    let errors = errors_until(command, "a symbolic link is there");
    assert_eq!(text(&other), "untouched", "{errors}");
    // Nor is there a directory.
    let mut command = run_command(&place, &["--graphviz", "nowhere/graph"]);
    command.arg("test \"a\" {}\n");
    errors_until(command, "the graph cannot be drawn: failed to");
    // A program that is not there.
    let mut command = run_command(&place, &["--graphviz", "drawn"]);
    command.arg("test \"a\" {}\n").env("PATH", "/nowhere");
    let errors = errors_until(command, "there is no picture of the graph: ");
    assert!(errors.contains("dot"), "{errors}");
    assert!(text(&place.path("drawn@host.example")).contains("test[a]"));
    for wrong in ["", "directory/"] {
        let refused = run(&place, &["--once", "--graphviz", wrong, "test \"a\" {}\n"]);
        assert_eq!(refused.code, 64, "{}", refused.stderr);
    }
    let refused = run(&place, &["--once", "--graphviz-filter", "dot", "test \"a\" {}\n"]);
    assert_eq!(refused.code, 64, "{}", refused.stderr);
}

/// Runs until standard error has a text, and ends it; it goes on with its work.
fn errors_until(mut command: Command, said: &str) -> String {
    use std::io::{BufRead, BufReader};
    let mut child = command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("it can be started");
    let mut lines = BufReader::new(child.stderr.take().expect("it was piped")).lines();
    let mut seen = String::new();
    for line in lines.by_ref() {
        seen.push_str(&line.expect("it is text"));
        seen.push('\n');
        if seen.contains(said) {
            break;
        }
    }
    let status = Command::new("kill").arg(child.id().to_string()).status();
    assert!(status.is_ok_and(|status| status.success()), "it runs: {seen}");
    seen.extend(lines.map_while(Result::ok));
    assert!(child.wait().is_ok_and(|status| status.success()), "{seen}");
    assert!(seen.contains(said), "{seen}");
    seen
}

#[test]
fn a_run_that_ends_by_itself_leaves_its_drawing_and_picture() {
    if !has_graphviz("a_run_that_ends_by_itself_leaves_its_drawing_and_picture") {
        return;
    }
    for _ in 0..5 {
        let place = Hermetic::new();
        let output = run_command(&place, &["--once", "--graphviz", "graph", PROGRAM])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert!(text(&place.path("graph@host.example")).contains("test[then]"));
        assert!(is_picture(&place.path("graph@host.example.png")));
    }
}
