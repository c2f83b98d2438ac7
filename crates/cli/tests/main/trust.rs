//! Signals and output of the real binary: a stop is taken whatever becomes of the output, the exit code says whether the work was done,
//! and events tell of every end.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use setpoint_testing::{Hermetic, Running};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

/// Generous: machines of CI are slow.
const LIMIT: Duration = Duration::from_secs(60);

/// `setpoint run` with its state below the place, outside of any terminal.
fn run_command(place: &Hermetic, arguments: &[&str]) -> Command {
    let mut command = place.command(BINARY);
    command.args([
        "run",
        "--no-raise-limits",
        "--hostname",
        "host.example",
        "--state-dir",
    ]);
    command.arg(place.path("prefix")).args(arguments);
    command.stdin(Stdio::null());
    command
}

fn signal(process: u32, name: &str) {
    let status = Command::new("kill")
        .arg(format!("-{name}"))
        .arg(process.to_string())
        .status();
    assert!(status.expect("there is a `kill`").success());
}

/// Waits for the end. The process is killed when it does not come.
fn end_of(child: &mut Child) -> Option<ExitStatus> {
    let deadline = Instant::now() + LIMIT;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().expect("the child is ours") {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

fn events(text: &str) -> Vec<Json> {
    text.lines()
        .map(|line| serde_json::from_str(line).expect("every line is one JSON object"))
        .collect()
}

/// Waits until something holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < deadline, "no {what} in time");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A program whose output nobody takes: `print`s that fill any pipe.
fn talkative(place: &Hermetic) -> String {
    let lines = "x".repeat(200);
    let numbers: String = (0..2000).map(|n| format!("\"{n}\",")).collect();
    let program =
        format!("for $i, $x in [{numbers}] {{\n\tprint \"p${{x}}\" {{\n\t\tmsg => \"{lines}\",\n\t}}\n}}\n");
    place.write("talkative.mcl", program).display().to_string()
}

#[test]
fn a_stop_is_taken_while_nobody_takes_the_output() {
    let place = Hermetic::new();
    let program = talkative(&place);
    let marker = place.path("converged").display().to_string();
    let arguments = [
        "--converger-timeout",
        "0",
        "--converger-status-file",
        &marker,
        &program,
    ];
    for json in [false, true] {
        let mut command = run_command(&place, &arguments);
        if json {
            command.arg("--json");
        }
        // The pipes are read by nobody.
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        until("convergence", || {
            std::fs::read_to_string(&marker).is_ok_and(|text| text.contains("true"))
        });
        signal(child.id(), "TERM");
        let status = end_of(&mut child).unwrap_or_else(|| panic!("SIGTERM is lost (json: {json})"));
        let expected = if json { 1 } else { 0 };
        assert_eq!(
            status.code(),
            Some(expected),
            "what was asked for could not be written (json: {json})"
        );
        std::fs::remove_file(&marker).unwrap();
    }
}

#[test]
fn once_ends_although_nobody_takes_its_events() {
    let place = Hermetic::new();
    let program = talkative(&place);
    let mut command = run_command(&place, &["--once", "--json", &program]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let status = end_of(&mut child).expect("it ends");
    assert_eq!(status.code(), Some(1), "the events could not be written");
}

#[test]
fn once_says_by_which_signal_it_was_kept_from_its_work() {
    let place = Hermetic::new();
    let started = place.path("started");
    let program = format!(
        "exec \"slow\" {{\n\tcmd => \"touch {} && exec sleep 600\",\n\tshell => \"/bin/sh\",\n}}\n",
        started.display()
    );
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let mut command = run_command(&place, &["--once", "--json", &program]);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        until("run", || started.exists());
        signal(child.id(), name);
        // Ctrl-C is repeated by the person at the terminal; a service manager's signal goes on by itself, but slowly.
        for _ in 0..2 {
            std::thread::sleep(Duration::from_millis(200));
            signal(child.id(), name);
        }
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{errors}");
        let events = events(&String::from_utf8_lossy(&output.stdout));
        let last = events.last().expect("there are events");
        assert_eq!(
            (&last["event"], &last["reason"]),
            (&"ended".into(), &"signal".into()),
            "{last}"
        );
        assert_eq!(last["exit_code"], code, "{last}");
        std::fs::remove_file(&started).unwrap();
    }
    // One that stays was told to stop, and did.
    let mut running = Running::start({
        let mut command = run_command(&place, &["--json", "test \"a\" {}"]);
        command.stdin(Stdio::null());
        command
    });
    running.wait_for("rest", |line| line.contains("\"converged\""));
    running.signal("INT");
    assert_eq!(running.finish().0.code(), Some(0));
}

#[test]
fn a_compile_error_and_the_end_are_events() {
    let place = Hermetic::new();
    let program = place
        .write("wrong.mcl", "$x = $nope\ntest $x {}\n")
        .display()
        .to_string();
    let output = run_command(&place, &["--json", "--once", &program])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let events = events(&String::from_utf8_lossy(&output.stdout));
    let names: Vec<&str> = events
        .iter()
        .filter_map(|event| event["event"].as_str())
        .collect();
    assert_eq!(names, ["started", "diagnostic", "ended"], "{events:?}");
    assert_eq!(events[0]["schema"], 2, "{}", events[0]);
    let diagnostic = &events[1]["diagnostic"];
    assert_eq!(
        (&diagnostic["code"], &diagnostic["line"]),
        (&"E0101".into(), &1.into()),
        "{diagnostic}"
    );
    assert_eq!(diagnostic["file"], program.as_str());
    assert_eq!(
        (&events[2]["reason"], &events[2]["exit_code"]),
        (&"program-wrong".into(), &1.into())
    );
}

#[test]
fn events_are_numbered_through_and_the_last_one_counts() {
    let place = Hermetic::new();
    let file = place.path("file").display().to_string();
    let program = format!("file \"{file}\" {{\n\tcontent => \"x\",\n}}\ntest \"a\" {{}}\n");
    let output = run_command(&place, &["--json", "--once", &program])
        .output()
        .unwrap();
    let events = events(&String::from_utf8_lossy(&output.stdout));
    let numbers: Vec<u64> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
    let last = events.last().expect("there are events");
    assert_eq!(
        (&last["event"], &last["reason"]),
        (&"ended".into(), &"converged".into()),
        "{last}"
    );
    assert_eq!(
        (&last["resources"]["created"], &last["resources"]["unchanged"]),
        (&1.into(), &1.into()),
        "{last}"
    );
}

#[test]
fn events_that_cannot_be_written_are_told_once_and_make_the_end_an_error() {
    let place = Hermetic::new();
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = run_command(&place, &["--json", "--once", "test \"a\" {}"])
        .stdout(full())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert_eq!(errors.matches("No space left on device").count(), 1, "{errors}");
}

#[test]
fn a_user_signal_has_every_resource_looked_at() {
    let place = Hermetic::new();
    let counted = place.path("counted");
    let command = format!("echo >> {}", counted.display());
    let program = format!(
        "exec \"count\" {{\n\tcmd => \"{command}\",\n\tshell => \"/bin/sh\",\n}}\nnoop \"other\" {{}}\n"
    );
    let program = place.write("p.mcl", program);
    let mut running = Running::start(run_command(&place, &["--json", &program.display().to_string()]));
    running.wait_for("the first look", |line| line.contains("\"converged\""));
    running.signal("USR1");
    let mut missing = vec!["\"name\":\"count\"", "\"name\":\"other\""];
    running.wait_for("a look at both", |line| {
        if line.contains("\"rechecked\"") {
            missing.retain(|name| !line.contains(name));
        }
        missing.is_empty()
    });
    until("the second run of the command", || {
        std::fs::read_to_string(&counted).is_ok_and(|text| text.lines().count() == 2)
    });
    running.signal("TERM");
    let (status, errors) = running.finish();
    assert_eq!(status.code(), Some(0), "{errors}");
}

#[test]
fn a_hangup_reads_the_program_again_and_a_broken_text_keeps_the_old_one() {
    let place = Hermetic::new();
    let file = place.path("file");
    let text = |content: &str| {
        format!(
            "file \"{}\" {{\n\tcontent => \"{content}\",\n}}\n",
            file.display()
        )
    };
    let program = place.write("p.mcl", text("one"));
    let holds = |wanted: &str| std::fs::read_to_string(&file).is_ok_and(|found| found == wanted);
    let mut running = Running::start(run_command(&place, &["--json", &program.display().to_string()]));
    until("first content", || holds("one"));
    std::fs::write(&program, text("two")).unwrap();
    running.signal("HUP");
    until("content of the new text", || holds("two"));
    std::fs::write(&program, "file {").unwrap();
    running.signal("HUP");
    // The one is the command's event and the other the engine's: they may come in either order.
    let mut missing = vec!["\"event\":\"diagnostic\"", "\"graph rejected\""];
    running.wait_for("diagnostic and rejection", |line| {
        missing.retain(|wanted| !line.contains(wanted));
        missing.is_empty()
    });
    std::fs::write(&file, "nonsense").unwrap();
    until("care by the old text", || holds("two"));
    std::fs::write(&program, text("three")).unwrap();
    running.signal("HUP");
    until("content of the mended text", || holds("three"));
    running.signal("TERM");
    let (status, errors) = running.finish();
    assert_eq!(status.code(), Some(0), "{errors}");
    assert!(
        errors.contains("the machine is kept as the program was before"),
        "{errors}"
    );
}

#[test]
fn a_program_whose_values_have_changed_is_read_again_too() {
    let place = Hermetic::new();
    let (file, input) = (place.path("file"), place.write("input", "0"));
    let text = |version: &str| {
        format!(
            "import \"os\"\n$input = os.readfile(\"{}\")\nfile \"{}\" {{\n\tcontent => \"{version} ${{input}}\",\n}}\n",
            input.display(),
            file.display()
        )
    };
    let program = place.write("p.mcl", text("old"));
    let holds = |wanted: &str| std::fs::read_to_string(&file).is_ok_and(|found| found == wanted);
    let running = Running::start(run_command(&place, &["--json", &program.display().to_string()]));
    until("first content", || holds("old 0"));
    // Each makes another graph of the old text.
    for number in ["1", "2", "3"] {
        std::fs::write(&input, number).unwrap();
        until("content of the new value", || holds(&format!("old {number}")));
    }
    std::fs::write(&program, text("new")).unwrap();
    running.signal("HUP");
    until("content of the new text", || holds("new 3"));
    std::fs::write(&input, "4").unwrap();
    until("a value of the new text", || holds("new 4"));
    running.signal("TERM");
    let (status, errors) = running.finish();
    assert_eq!(status.code(), Some(0), "{errors}");
}

#[test]
fn a_hangup_while_the_first_program_is_compiled_does_not_end_the_run() {
    let place = Hermetic::new();
    let many: String = (0..3000)
        .map(|index| format!("noop \"n{index}\" {{}}\n"))
        .collect();
    let program = place.write("p.mcl", many).display().to_string();
    let mut running = Running::start(run_command(&place, &["--json", &program]));
    running.wait_for("the start", |line| line.contains("\"started\""));
    running.signal("HUP");
    running.wait_for("a graph", |line| line.contains("\"graph accepted\""));
    running.signal("TERM");
    let (status, errors) = running.finish();
    assert_eq!(status.code(), Some(0), "{errors}");
}

#[test]
fn a_watched_program_is_read_again_when_its_files_change() {
    let place = Hermetic::new();
    let file = place.path("file");
    let program = place.write(
        "p/main.mcl",
        format!(
            "import \"words.mcl\"\nfile \"{}\" {{\n\tcontent => $words.text,\n}}\n",
            file.display()
        ),
    );
    place.write("p/words.mcl", "$text = \"one\"\n");
    let holds = |wanted: &str| std::fs::read_to_string(&file).is_ok_and(|found| found == wanted);
    let mut running = Running::start(run_command(
        &place,
        &["--json", "--watch", &program.display().to_string()],
    ));
    until("first content", || holds("one"));
    place.write("p/words.mcl", "$text = \"two\"\n");
    until("content of the new text", || holds("two"));
    // An editor removes and makes anew; in between the program does not compile.
    std::fs::remove_file(place.path("p/words.mcl")).unwrap();
    running.wait_for("diagnostic", |line| line.contains("\"event\":\"diagnostic\""));
    place.write("p/words.mcl", "$text = \"three\"\n");
    until("content of the newest text", || holds("three"));
    running.signal("TERM");
    assert_eq!(running.finish().0.code(), Some(0));
}

#[test]
fn the_end_of_the_terminal_ends_the_run_and_takes_its_temporary_directory_away() {
    let place = Hermetic::new();
    let temporary = place.path("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let started = place.path("started");
    let program = format!(
        "exec \"slow\" {{\n\tcmd => \"echo $$ > {} && exec sleep 600\",\n\tshell => \"/bin/sh\",\n}}\n",
        started.display()
    );
    let program = place.write("p.mcl", program);
    // `script` gives the command a terminal; when `script` is killed, that terminal is gone.
    let line = format!(
        "TMPDIR={} exec {BINARY} run --no-raise-limits --tmp-state-dir {}",
        temporary.display(),
        program.display()
    );
    let mut terminal = place.command("script");
    terminal.args(["--quiet", "--flush", "--command", &line, "/dev/null"]);
    let terminal = terminal
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut terminal = terminal.expect("there is a `script`");
    until("run", || {
        std::fs::read_to_string(&started).is_ok_and(|text| text.ends_with('\n'))
    });
    let child = std::fs::read_to_string(&started).unwrap();
    let child = format!("/proc/{}", child.trim());
    assert!(std::path::Path::new(&child).exists());
    assert_eq!(
        std::fs::read_dir(&temporary).unwrap().count(),
        1,
        "the state directory"
    );
    terminal.kill().unwrap();
    let status = terminal.wait().unwrap();
    assert_eq!(status.signal(), Some(9));
    until("end of the child", || !std::path::Path::new(&child).exists());
    until("removal of the working directory", || {
        std::fs::read_dir(&temporary).unwrap().count() == 0
    });
}
