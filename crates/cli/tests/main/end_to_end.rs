//! The real binary on real files: a shipped example that keeps them right, exit codes, signals, the lock.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value as Json;
use setpoint_testing::{Finished, Hermetic, Running, repository};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

/// `setpoint run --json`, with its state below the place.
pub(crate) fn run_command(place: &Hermetic, arguments: &[&str]) -> Command {
    let mut command = place.command(BINARY);
    command.args([
        "run",
        "--json",
        "--no-raise-limits",
        "--hostname",
        "host.example",
        "--state-dir",
    ]);
    command.arg(place.path("prefix")).args(arguments);
    command
}

pub(crate) fn run(place: &Hermetic, arguments: &[&str]) -> Finished {
    let prefix = place.path("prefix").display().to_string();
    let mut all = vec![
        "run",
        "--no-raise-limits",
        "--hostname",
        "host.example",
        "--state-dir",
        &prefix,
    ];
    all.extend(arguments);
    place.run(BINARY, &all)
}

/// Permission bits; none of a file that is not there.
fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).map_or(0, |found| found.permissions().mode() & 0o7777)
}

/// Whether the last line of a run says that nothing was changed: `3 unchanged in 41 ms`.
pub(crate) fn is_unchanged(recap: &str) -> bool {
    let (counts, _) = recap.split_once(" in ").unwrap_or_default();
    let number = counts.strip_suffix(" unchanged");
    number.is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
}

pub(crate) fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// A program that runs, and its events.
pub(crate) struct Engine(Running);

impl Engine {
    pub(crate) fn start(place: &Hermetic, arguments: &[&str]) -> Engine {
        Engine(Running::start(run_command(place, arguments)))
    }

    /// Runs the program of this text.
    pub(crate) fn of_program(place: &Hermetic, program: impl AsRef<[u8]>) -> Engine {
        let main = place.write("main.mcl", program);
        Engine::start(place, &[main.to_str().expect("the place has a plain name")])
    }

    /// One that was started otherwise.
    pub(crate) fn of(running: Running) -> Engine {
        Engine(running)
    }

    /// Waits for an event, and gives it.
    pub(crate) fn event(&mut self, what: &str, mut wanted: impl FnMut(&Json) -> bool) -> Json {
        let line = self.0.wait_for(what, |line| {
            let event: Json = serde_json::from_str(line).expect("every line is one JSON object");
            wanted(&event)
        });
        serde_json::from_str(&line).expect("it was read before")
    }

    /// Waits until a run of the resource has found something wrong and repaired it.
    pub(crate) fn repaired(&mut self, kind: &str, name: &str) {
        let is_of = |event: &Json, what: &str| {
            event["event"] == what && event["kind"] == kind && event["name"] == name
        };
        self.event(&format!("repair of {kind}[{name}]"), |event| {
            is_of(event, "repaired")
        });
        self.event(&format!("end of the run of {kind}[{name}]"), |event| {
            is_of(event, "run ended")
        });
    }

    /// Waits for repairs of the resource until something holds. Writing a file is more than one event, and what is read between
    /// them is a state too.
    pub(crate) fn repaired_until(&mut self, kind: &str, name: &str, holds: impl Fn() -> bool) {
        self.repaired(kind, name);
        while !holds() {
            self.repaired(kind, name);
        }
    }

    /// Itself, for who wants to end it otherwise.
    pub(crate) fn into_running(self) -> Running {
        self.0
    }

    /// Ends it politely.
    pub(crate) fn stop(self) {
        self.0.signal("TERM");
        let (status, errors) = self.0.finish();
        assert_eq!(status.code(), Some(0), "{errors}");
    }
}

/// The shipped example, with its directory in the place.
fn message_of_the_day(place: &Hermetic) -> (PathBuf, PathBuf) {
    let program = text(&repository().join("examples/motd/main.mcl"));
    let demo = place.path("demo");
    let moved = program.replace("/tmp/setpoint-demo/", &format!("{}/", demo.display()));
    assert_ne!(program, moved, "the example says where it works");
    (place.write("motd/main.mcl", moved), demo)
}

#[test]
fn a_shipped_example_keeps_its_files_right_while_it_runs() {
    let place = Hermetic::new();
    let (program, demo) = message_of_the_day(&place);
    let motd = demo.join("motd");
    let name = motd.display().to_string();
    let calm = "Welcome to host.example. The mood is calm.\n";
    let mut engine = Engine::start(&place, &[&program.display().to_string()]);
    engine.repaired("file", &name);
    assert_eq!((&*text(&motd), mode(&motd)), (calm, 0o644));

    // What somebody does by hand is undone: an edit, a removal, a change of the mode.
    std::fs::write(&motd, "nonsense").unwrap();
    engine.repaired_until("file", &name, || text(&motd) == calm);
    std::fs::remove_file(&motd).unwrap();
    engine.repaired_until("file", &name, || text(&motd) == calm && mode(&motd) == 0o644);
    std::fs::set_permissions(&motd, std::fs::Permissions::from_mode(0o600)).unwrap();
    engine.repaired_until("file", &name, || mode(&motd) == 0o644);

    // A file that the program reads changes content and mode of another at once, in one graph.
    std::fs::write(demo.join("mood"), "party\n").unwrap();
    engine.event("the next graph", |event| {
        event["event"] == "graph accepted" && event["changed"] == 1
    });
    let party = "Welcome to host.example. The mood is party.\n";
    engine.repaired_until("file", &name, || text(&motd) == party && mode(&motd) == 0o666);
    std::fs::remove_file(demo.join("mood")).unwrap();
    engine.repaired_until("file", &name, || text(&motd) == calm && mode(&motd) == 0o644);
    engine.stop();
    assert_eq!(text(&motd), calm, "nothing is undone at the end");
}

#[test]
fn once_makes_it_right_and_says_whether_something_was_wrong() {
    let place = Hermetic::new();
    let file = place.path("file");
    let program = place.write(
        "p.mcl",
        format!("file \"{}\" {{\n\tcontent => \"right\",\n}}\n", file.display()),
    );
    let program = program.display().to_string();
    let noop = run(&place, &["--once", "--noop", "--detailed-exitcode", &program]);
    assert_eq!((noop.code, file.exists()), (2, false), "{}", noop.stderr);
    assert!(noop.stderr.contains("would be created"), "{}", noop.stderr);
    let first = run(&place, &["--once", "--detailed-exitcode", "lang", &program]);
    assert_eq!((first.code, &*text(&file)), (2, "right"), "{}", first.stderr);
    let second = run(&place, &["--once", "--detailed-exitcode", &program]);
    assert_eq!(second.code, 0, "{}", second.stderr);
    std::fs::write(&file, "wrong").unwrap();
    assert_eq!(run(&place, &["--once", &program]).code, 0);
    assert_eq!(text(&file), "right");
}

#[test]
fn what_failed_for_good_and_what_it_blocks_make_the_end_an_error() {
    let place = Hermetic::new();
    let blocked = place.path("blocked");
    let program = format!(
        "test \"no such directory\" {{}}\nfile \"/proc/no/such/place\" {{\n\tcontent => \"x\",\n\tBefore => File[\"{0}\"],\n}}\nfile \"{0}\" {{\n\tcontent => \"x\",\n}}\n",
        blocked.display()
    );
    let program = place.write("p.mcl", program);
    let finished = run(
        &place,
        &[
            "--converger-timeout",
            "0",
            "--converged-exit",
            &program.display().to_string(),
        ],
    );
    assert_eq!(
        (finished.code, blocked.exists()),
        (1, false),
        "{}",
        finished.stderr
    );
    assert!(
        finished.stderr.contains("/proc/no/such/place"),
        "{}",
        finished.stderr
    );
    assert!(finished.stderr.contains("could not run"), "{}", finished.stderr);
}

#[test]
fn an_error_before_the_first_graph_ends_the_program_and_a_later_one_does_not() {
    let place = Hermetic::new();
    let (input, output) = (place.path("input"), place.path("output"));
    let program = format!(
        "import \"os\"\n$text = os.readfile(\"{}\")\nfile \"{}\" {{\n\tcontent => $text,\n}}\n",
        input.display(),
        output.display()
    );
    let program = place.write("p.mcl", program).display().to_string();
    let finished = run(&place, &[&program]);
    assert_eq!((finished.code, output.exists()), (1, false));
    assert!(finished.stderr.contains("p.mcl:2:9"), "{}", finished.stderr);

    std::fs::write(&input, "one").unwrap();
    let mut engine = Engine::start(&place, &[&program]);
    let name = output.display().to_string();
    engine.repaired("file", &name);
    std::fs::remove_file(&input).unwrap();
    engine.event("rejection", |event| event["event"] == "graph rejected");
    // The machine is still kept as the last good values want it.
    std::fs::write(&output, "nonsense").unwrap();
    engine.repaired_until("file", &name, || text(&output) == "one");
    std::fs::write(&input, "two").unwrap();
    engine.event("recovery", |event| event["event"] == "graph accepted");
    engine.repaired_until("file", &name, || text(&output) == "two");
    engine.stop();
}

#[test]
fn a_second_process_on_the_same_prefix_is_refused_with_the_first_ones_number() {
    let place = Hermetic::new();
    let mut engine = Engine::start(&place, &["--converger-timeout", "0", "test \"a\" {}"]);
    engine.event("convergence", |event| event["event"] == "converged");
    let finished = run(&place, &["--once", "test \"b\" {}"]);
    assert_eq!(finished.code, 1);
    assert!(
        finished.stderr.contains(&engine.0.id().to_string()),
        "{}",
        finished.stderr
    );
    engine.stop();
    assert_eq!(run(&place, &["--once", "test \"b\" {}"]).code, 0);
}

#[test]
fn programs_end_by_exit_resources_and_by_the_clock() {
    let place = Hermetic::new();
    let finished = run(&place, &["exit \"e\" { code => 7, }"]);
    assert_eq!(finished.code, 7, "{}", finished.stderr);
    let finished = run(&place, &["--max-runtime", "1", "test \"a\" {}"]);
    assert_eq!(finished.code, 1, "{}", finished.stderr);
}

#[test]
fn a_program_without_resources_waits_until_it_is_told_to_stop() {
    let place = Hermetic::new();
    let status = place.path("status");
    let status_file = status.display().to_string();
    let arguments = [
        "--converger-timeout",
        "0",
        "--converger-status-file",
        &status_file,
    ];
    let command = format!("echo ran > {} && true", place.path("command").display());
    let mut with_program: Vec<&str> = arguments.to_vec();
    with_program.extend(["--converger-command", &command]);
    with_program.push("# nothing\n");
    let mut engine = Engine::start(&place, &with_program);
    engine.event("convergence", |event| event["event"] == "converged");
    engine.0.signal("INT");
    let (exit, errors) = engine.0.finish();
    assert_eq!(exit.code(), Some(0), "{errors}");
    assert!(text(&status).starts_with("true\n"), "{}", text(&status));
    assert_eq!(text(&place.path("command")), "ran\n");
    let empty = Running::start(run_command(&place, &["empty"]));
    // It takes its lock first, and serves signals then.
    while !place.path("prefix/lock").exists() || text(&place.path("prefix/lock")).trim().is_empty() {
        std::thread::yield_now();
    }
    empty.signal("TERM");
    let _ = empty.finish();
}

#[test]
fn values_are_sent_from_one_resource_to_another() {
    let place = Hermetic::new();
    let file = place.path("file");
    let program = format!(
        "exec \"hello\" {{\n\tcmd => \"/bin/echo\",\n\targs => [\"from exec\",],\n}}\nfile \"{0}\" {{\n\tcontent => \"before\",\n}}\nExec[\"hello\"].stdout -> File[\"{0}\"].content\n",
        file.display()
    );
    let program = place.write("p.mcl", program);
    let finished = run(&place, &["--once", &program.display().to_string()]);
    assert_eq!(
        (finished.code, text(&file).trim()),
        (0, "from exec"),
        "{}",
        finished.stderr
    );
}

#[test]
fn every_shipped_example_is_right_and_formatted() {
    let place = Hermetic::new();
    let examples = repository().join("examples");
    let mut count = 0;
    let below = |directory: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(directory).unwrap().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let is_program = |path: &Path| {
        let names = ["main.mcl", "metadata.yaml", "main.cf", "project.yml"];
        path.is_file() || names.iter().any(|name| path.join(name).exists())
    };
    // What has none is a demonstration, with a test of its own.
    for path in below(&examples).into_iter().filter(|path| is_program(path)) {
        let path = path.display().to_string();
        let finished = place.run(BINARY, &["check", "--json", &path]);
        assert_eq!(
            (finished.code, &*finished.stdout),
            (0, "{\"diagnostics\":[]}\n"),
            "{path}"
        );
        count += 1;
    }
    assert!(count >= 3, "there are only {count} examples");
}
