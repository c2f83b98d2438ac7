//! `exec`: guards, output, times, credentials, stopping.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use setpoint_engine::{CancelCause, FailureReason, Level, Watch, Watcher};
use setpoint_host::watch::Depth;
use setpoint_resources::sorts::{Account, FILE, PACKAGE_FILE, USER};
use setpoint_value::Value;
use tokio_util::sync::CancellationToken;

use crate::harness::{Bench, Run, Subject, is_root, map, refused, text, texts};

/// A shell command with more parameters.
fn shell(bench: &Bench, command: &str, more: &[(&str, Value)]) -> Subject {
    let mut parameters = vec![("cmd", text(command)), ("shell", text("/bin/sh"))];
    parameters.extend(more.iter().cloned());
    bench.resource("exec", "e", &parameters)
}

/// A command that leaves a line each time it runs, behind guards.
fn guarded(bench: &Bench, guards: &[(&str, Value)]) -> Subject {
    shell(bench, &format!("echo ran >> {}", bench.path("trace")), guards)
}

fn runs(bench: &Bench) -> usize {
    std::fs::read_to_string(bench.path("trace"))
        .unwrap_or_default()
        .lines()
        .count()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// Runs, and cancels as soon as the command has made the file `ready`.
fn cancelled_when_ready(bench: &Bench, subject: &mut Subject, cancel: impl FnOnce() + Send + 'static) -> Run {
    let ready = bench.path("ready");
    runtime().block_on(async {
        let canceller = tokio::spawn(async move {
            while std::fs::metadata(&ready).is_err() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            cancel();
        });
        let run = subject.run_in_runtime(true).await;
        canceller.await.unwrap();
        run
    })
}

#[test]
fn it_runs_each_time_without_a_guard_and_sends_its_output() {
    let bench = Bench::new();
    let mut exec = shell(&bench, "echo out; echo err >&2; printf end", &[]);
    let run = exec.apply();
    assert_eq!(
        run.drifted(&["run"]).report(),
        ["run: no guard → echo out; echo err >&2; printf end"]
    );
    assert_eq!(run.sent("stdout"), Some(text("out\nend")));
    assert_eq!(run.sent("stderr"), Some(text("err\n")));
    let output = run
        .sent("output")
        .unwrap()
        .as_str()
        .unwrap()
        .to_lossy()
        .into_owned();
    assert_eq!(output.len(), "out\nerr\nend".len());
    exec.apply().drifted(&["run"]);
}

#[test]
fn the_name_is_the_command_and_streams_without_a_byte_are_unset() {
    let bench = Bench::new();
    let mut exec = bench.resource("exec", "/bin/echo a  b", &[]);
    let run = exec.apply();
    assert_eq!(run.drifted(&["run"]).sent("stdout"), Some(text("a b\n")));
    assert!(run.sent("stderr").unwrap().is_null());
}

#[test]
fn arguments_are_passed_as_they_are() {
    let bench = Bench::new();
    let args = texts(&["%s|", "a b", "$HOME", "*"]);
    let mut exec = bench.resource("exec", "e", &[("cmd", text("printf")), ("args", args)]);
    assert_eq!(exec.apply().sent("stdout"), Some(text("a b|$HOME|*|")));
}

#[test]
fn the_environment_is_exactly_what_is_set() {
    let bench = Bench::new();
    let env = ("env", map(&[("B", ""), ("A", "1 2")]));
    let mut exec = bench.resource("exec", "/usr/bin/env", &[env, ("cwd", text(bench.path("")))]);
    assert_eq!(exec.apply().sent("stdout"), Some(text("A=1 2\nB=\n")));
    let mut empty = bench.resource("exec", "/usr/bin/env", &[]);
    assert!(empty.apply().sent("stdout").unwrap().is_null());
}

#[test]
fn noop_runs_guards_and_nothing_else_and_sends_the_last_output() {
    let bench = Bench::new();
    let guard = format!("echo guard >> {}", bench.path("guards"));
    let guards = [("ifcmd", text(guard)), ("ifshell", text("/bin/sh"))];
    let mut exec = guarded(&bench, &guards);
    assert_eq!(exec.check().drifted(&["run"]).sent("output"), None);
    assert_eq!((runs(&bench), bench.read("guards").lines().count()), (0, 1));
    assert!(!bench.exists("prefix/engine/state"));
}

#[test]
fn guards_decide_by_their_exit_status() {
    for (guards, expected) in [
        (vec![("ifcmd", "exit 0")], 1),
        (vec![("ifcmd", "exit 1")], 0),
        (vec![("ifcmd", "exit 127")], 0),
        (vec![("ifcmd", "no-such-program-at-all")], 0),
        (vec![("nifcmd", "exit 0")], 0),
        (vec![("nifcmd", "exit 1")], 1),
        (vec![("nifcmd", "exit 126")], 1),
        (vec![("ifcmd", "exit 0"), ("nifcmd", "exit 0")], 0),
        (vec![("ifcmd", "exit 0"), ("nifcmd", "exit 2")], 1),
        (vec![("ifcmd", "exit 3"), ("nifcmd", "exit 2")], 0),
    ] {
        let bench = Bench::new();
        let shells = [("ifshell", text("/bin/sh")), ("nifshell", text("/bin/sh"))];
        let mut all: Vec<(&str, Value)> = guards
            .iter()
            .map(|(name, command)| (*name, text(command)))
            .collect();
        all.extend(shells);
        let run = guarded(&bench, &all).apply();
        assert!(run.result.is_ok(), "{}", run.failure());
        assert_eq!(runs(&bench), expected, "{guards:?}");
    }
}

#[test]
fn a_guard_that_could_not_answer_is_an_error() {
    let bench = Bench::new();
    for name in ["ifcmd", "nifcmd"] {
        let failure = guarded(&bench, &[(name, text("no-such-program-at-all"))])
            .apply()
            .failure();
        assert!(
            failure.contains("there is no program `no-such-program-at-all` in PATH"),
            "{failure}"
        );
        let shell = if name == "ifcmd" { "ifshell" } else { "nifshell" };
        let killed = [(name, text("kill -9 $$")), (shell, text("/bin/sh"))];
        let failure = guarded(&bench, &killed).apply().failure();
        assert_eq!(failure, format!("run `{name}`: killed by SIGKILL"));
    }
    assert_eq!(runs(&bench), 0);
}

#[test]
fn an_equal_answer_of_the_guard_means_that_all_is_done() {
    for (wanted, name, expected) in [
        ("out\nerr\n", "ifequals", 0),
        ("out\n", "ifequals", 1),
        ("out\n", "ifequals_stdout", 0),
        ("out", "ifequals_stdout", 1),
        ("", "ifequals", 1),
    ] {
        let bench = Bench::new();
        let guards = [
            ("ifcmd", text("echo out; sleep 0.05; echo err >&2")),
            ("ifshell", text("/bin/sh")),
            (name, text(wanted)),
        ];
        guarded(&bench, &guards).apply();
        assert_eq!(runs(&bench), expected, "{name} {wanted:?}");
    }
    let bench = Bench::new();
    let silent = [("ifcmd", text("true")), ("ifequals", text(""))];
    guarded(&bench, &silent).apply().is_ok();
}

#[test]
fn it_does_not_run_when_what_it_creates_is_there() {
    let bench = Bench::new();
    let made = bench.path("made");
    let mut exec = shell(&bench, &format!("touch {made}"), &[("creates", text(&made))]);
    let run = exec.apply();
    assert!(run.drifted(&["run"]).report()[0].starts_with("run: what it `creates` is not there → "));
    exec.apply().is_ok();
    bench.write("file", "");
    let odd = shell(&bench, "true", &[("creates", text(bench.path("file/below")))]).apply();
    assert!(odd.failure().contains("Not a directory"), "{}", odd.failure());
}

#[test]
fn a_newer_file_overrules_the_guards() {
    let bench = Bench::new();
    let input = bench.write("input", "1");
    let directory = bench.make_directory("inputs/");
    let old = std::time::SystemTime::now() - Duration::from_secs(1000);
    let set_time = |path: &str, time| std::fs::File::open(path).unwrap().set_modified(time).unwrap();
    set_time(&input, old);
    set_time(&directory, old);
    let guards = [("mtimes", texts(&[&input, &directory])), ("ifcmd", text("false"))];
    let mut exec = guarded(&bench, &guards);
    let run = exec.apply();
    assert!(
        run.drifted(&["run"]).report()[0].contains("input is newer than the last run"),
        "{run:?}"
    );
    exec.apply().is_ok();
    // Another process's resource of the same name knows of the run.
    guarded(&bench, &guards).apply().is_ok();
    set_time(
        &directory,
        std::time::SystemTime::now() + Duration::from_secs(1000),
    );
    exec.apply().drifted(&["run"]);
    exec.apply().drifted(&["run"]);
    set_time(&directory, old);
    exec.apply().is_ok();
    std::fs::remove_file(bench.path(&bench.own("var/mtimes"))).unwrap();
    exec.apply().drifted(&["run"]);
    std::fs::remove_file(&input).unwrap();
    let failure = exec.check().failure();
    assert!(failure.ends_with("input: it does not exist"), "{failure}");
}

#[test]
fn an_equal_time_is_not_newer() {
    let bench = Bench::new();
    let input = bench.write("input", "1");
    let guards = [("mtimes", texts(&[&input])), ("ifcmd", text("false"))];
    let mut exec = guarded(&bench, &guards);
    exec.apply().drifted(&["run"]);
    let last = std::fs::metadata(bench.path(&bench.own("var/mtimes"))).unwrap();
    std::fs::File::open(&input)
        .unwrap()
        .set_modified(last.modified().unwrap())
        .unwrap();
    exec.apply().is_ok();
}

#[test]
fn the_command_runs_again_when_what_is_done_after_it_failed() {
    let bench = Bench::new();
    let done = format!("test -e {}", bench.path("ready"));
    let input = bench.write("input", "1");
    let guards = [
        ("donecmd", text(done)),
        ("doneshell", text("/bin/sh")),
        ("mtimes", texts(&[&input])),
        ("ifcmd", text("false")),
    ];
    let mut exec = guarded(&bench, &guards);
    assert!(exec.apply().failure().starts_with("run `donecmd` "));
    assert!(exec.apply().failure().ends_with("exit status 1"));
    bench.write("ready", "");
    exec.apply().drifted(&["run"]);
    exec.apply().is_ok();
    assert_eq!(runs(&bench), 3);
}

#[test]
fn what_is_sent_survives_a_restart_and_a_failure() {
    let bench = Bench::new();
    let command = format!("cat {}", bench.write("text", "first"));
    shell(&bench, &command, &[]).apply().drifted(&["run"]);
    let stopped = [
        ("ifcmd", text("false")),
        ("send_stdout", text("unused")),
        ("send_stderr", text("filled")),
    ];
    let mut exec = shell(&bench, &command, &stopped);
    let run = exec.apply();
    run.is_ok();
    assert_eq!(
        (run.sent("stdout"), run.sent("stderr")),
        (Some(text("first")), Some(text("filled")))
    );
    std::fs::remove_file(bench.path("text")).unwrap();
    let mut failing = shell(&bench, &command, &[]);
    let run = failing.apply();
    assert!(
        run.sent.is_none() && run.failure().ends_with("exit status 1"),
        "{run:?}"
    );
    assert!(
        run.log
            .iter()
            .any(|(level, line)| *level == Level::Error && line.contains("No such file"))
    );
    assert_eq!(exec.apply().sent("stdout"), Some(text("first")));
    assert_eq!(bench.mode(&bench.own("var")), 0o700);
    assert_eq!(bench.mode(&bench.own("")), 0o700);
    assert_eq!(bench.mode(&bench.own("var/sent")), 0o600);
}

#[test]
fn what_another_version_has_sent_is_forgotten() {
    let bench = Bench::new();
    shell(&bench, "echo hello", &[]).apply().drifted(&["run"]);
    let stored = bench.path(&bench.own("var/sent"));
    let mut bytes = std::fs::read(&stored).unwrap();
    assert!(bytes.starts_with(b"setpoint-state 1\n"), "{bytes:?}");
    let stopped = || shell(&bench, "echo hello", &[("ifcmd", text("false"))]);
    assert_eq!(stopped().apply().sent("stdout"), Some(text("hello\n")));
    bytes["setpoint-state ".len()] = b'2';
    std::fs::write(&stored, bytes).unwrap();
    assert!(stopped().apply().sent("stdout").unwrap().is_null());
}

#[test]
fn send_fills_what_was_never_there() {
    let bench = Bench::new();
    let all = [
        ("ifcmd", text("false")),
        ("send_output", text("")),
        ("send_stdout", text("out")),
    ];
    let run = shell(&bench, "true", &all).apply();
    run.is_ok();
    assert_eq!(
        (run.sent("output"), run.sent("stdout")),
        (Some(text("")), Some(text("out")))
    );
    assert!(run.sent("stderr").unwrap().is_null());
}

#[test]
fn a_plan_writes_nothing() {
    let bench = Bench::planning();
    shell(&bench, "true", &[]).check().drifted(&["run"]);
    assert!(!bench.exists("prefix"));
}

#[test]
fn of_much_output_the_beginning_and_the_end_are_kept_and_that_is_said() {
    let bench = Bench::new();
    let command = "echo first; head -c 20000000 /dev/zero; echo last";
    let run = shell(&bench, command, &[]).apply();
    let sent = run.sent("stdout").unwrap().as_str().unwrap().as_bytes().to_vec();
    assert!(sent.starts_with(b"first\n") && sent.ends_with(b"last\n"));
    assert!(sent.len() < (1 << 20) + 100, "{}", sent.len());
    assert_eq!(
        run.log,
        [(
            Level::Warning,
            "the output is 20000011 bytes long: 18951435 of them are left out, because `output_limit` is 1048576"
                .to_owned()
        )]
    );
    let enough = [("output_limit", Value::Int(30_000_000))];
    let run = shell(&bench, command, &enough).apply();
    assert_eq!(run.sent("stdout").unwrap().as_str().unwrap().len(), 20_000_011);
    assert_eq!(run.log, []);
}

#[test]
fn limits_and_capabilities_hold() {
    let bench = Bench::new();
    let limits = Value::Map(setpoint_value::Map::new(
        setpoint_value::Type::Str,
        setpoint_value::Type::Int,
        [(text("files"), Value::Int(30))],
    ));
    let run = shell(&bench, "ulimit -n", &[("limits", limits)]).apply();
    assert_eq!(run.sent("stdout"), Some(text("30\n")));
    if is_root() {
        let none = [("capabilities", texts(&[]))];
        let run = shell(&bench, "grep CapEff /proc/self/status", &none).apply();
        assert_eq!(run.sent("stdout"), Some(text("CapEff:\t0000000000000000\n")));
    }
}

#[test]
fn a_notification_makes_it_run_as_its_guards_allow() {
    let bench = Bench::new();
    let made = bench.path("made");
    let mut exec = guarded(&bench, &[("creates", text(&made))]);
    exec.refresh = true;
    let run = exec.apply();
    assert!(
        run.drifted(&["run"]).report()[0].starts_with("run: notified, what it `creates` is not there → "),
        "{run:?}"
    );
    bench.write("made", "");
    exec.apply().is_ok();
    assert_eq!(runs(&bench), 1);
}

#[test]
fn with_refresh_only_nothing_is_started_without_a_notification() {
    let bench = Bench::new();
    let guard = format!("echo guard >> {}", bench.path("guards"));
    let guards = [
        ("refresh_only", Value::Bool(true)),
        ("ifcmd", text(guard)),
        ("ifshell", text("/bin/sh")),
        ("send_stdout", text("none yet")),
    ];
    let mut exec = guarded(&bench, &guards);
    let run = exec.apply();
    run.is_ok();
    assert_eq!(run.sent("stdout"), Some(text("none yet")));
    assert!(!bench.exists("guards"));
    exec.refresh = true;
    exec.apply().drifted(&["run"]);
    exec.refresh = false;
    exec.apply().is_ok();
    assert_eq!((runs(&bench), bench.read("guards").lines().count()), (1, 1));
}

#[test]
fn what_is_created_already_serves_a_notification() {
    let bench = Bench::new();
    let guards = [
        ("refresh_only", Value::Bool(true)),
        ("creates", text(bench.path("made"))),
    ];
    let mut exec = guarded(&bench, &guards);
    exec.refresh = true;
    bench.write("made", "");
    exec.apply().is_ok();
    assert_eq!(runs(&bench), 0);
}

#[test]
fn a_guard_that_refuses_a_notification_shows_nothing_secret() {
    let bench = Bench::new();
    let guards = [
        ("refresh_only", Value::Bool(true)),
        ("env", map(&[("TOKEN", "hunter2")]).sensitive()),
        ("ifcmd", text("echo $TOKEN; false # hunter2")),
        ("ifshell", text("/bin/sh")),
    ];
    let mut exec = guarded(&bench, &guards);
    exec.refresh = true;
    let run = exec.apply();
    let wanted =
        "run, as file[/etc/config] asks: its guard refuses (`ifcmd` failed); the notification stays pending";
    assert_eq!(run.failure(), wanted);
    assert!(!format!("{run:?}").contains("hunter2"), "{run:?}");
}

#[test]
fn the_output_of_a_command_with_a_secret_is_not_on_disk() {
    let bench = Bench::new();
    let secret = || ("env", map(&[("TOKEN", "hunter2")]).sensitive());
    let command = "echo $TOKEN; echo $TOKEN >&2";
    // One that the version before, without the mark, has left there.
    let plain = ("env", map(&[("TOKEN", "hunter2")]));
    shell(&bench, command, &[plain]).apply().drifted(&["run"]);
    assert!(bench.tree("prefix").concat().contains("hunter2"));
    let mut exec = shell(&bench, command, &[secret()]);
    exec.apply().drifted(&["run"]);
    assert!(!bench.tree("prefix").concat().contains("hunter2"));
    // What is sent is remembered all the same, as long as the resource lives.
    let run = exec.check();
    let sent = run.sent("stdout").unwrap();
    assert_eq!(sent.unmarked(), &text("hunter2\n"));
}

#[test]
fn a_descendant_that_keeps_the_pipe_is_not_waited_for() {
    let bench = Bench::new();
    let begun = std::time::Instant::now();
    let run = shell(
        &bench,
        "echo said; sleep 600 & echo $! > child",
        &[("cwd", text(bench.path("")))],
    )
    .apply();
    assert_eq!(run.drifted(&["run"]).sent("stdout"), Some(text("said\n")));
    assert!(begun.elapsed() < Duration::from_secs(60));
    let child = bench.read("child");
    std::process::Command::new("kill")
        .arg(child.trim())
        .status()
        .unwrap();
}

#[test]
fn a_command_that_cannot_be_started_is_a_failure_that_names_it() {
    let bench = Bench::new();
    let failure = bench.resource("exec", "no-such-program", &[]).apply().failure();
    assert_eq!(
        failure,
        "run `no-such-program`: there is no program `no-such-program` in PATH"
    );
    let failure = shell(&bench, "true", &[("cwd", text(bench.path("missing")))])
        .apply()
        .failure();
    assert!(failure.contains("missing"), "{failure}");
    let failure = bench
        .resource("exec", "/bin/true", &[("user", text("nobody-there"))])
        .check()
        .failure();
    assert!(failure.contains("there is no user `nobody-there`"), "{failure}");
}

#[test]
fn a_user_comes_with_its_groups_unless_a_group_is_set() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let group_of = |user: &str, option: &str| {
        let found = std::process::Command::new("id")
            .args([option, user])
            .output()
            .unwrap();
        String::from_utf8(found.stdout).unwrap()
    };
    // On Debian, this one has another number than its group, and `www-data` the same.
    for user in ["nobody", "man", "games"] {
        let run = shell(&bench, "id -g; id -G", &[("user", text(user))]).apply();
        let own = format!("{}{}", group_of(user, "-g"), group_of(user, "-G"));
        assert_eq!(run.drifted(&["run"]).sent("stdout"), Some(text(own)));
    }
    let group = ("group", text("12345"));
    let both = [("user", text("nobody")), group.clone()];
    let run = shell(&bench, "id -u; id -g; id -G", &both).apply();
    assert_eq!(run.sent("stdout"), Some(text("65534\n12345\n12345\n")));
    let run = shell(&bench, "id -u; id -G", &[group]).apply();
    assert_eq!(run.sent("stdout"), Some(text("0\n12345\n")));
    let failure = shell(&bench, "true", &[("user", text("54321"))])
        .apply()
        .failure();
    assert_eq!(
        failure,
        "find the group: the user `54321` has no account that says it: set `group` too"
    );
}

#[test]
fn a_cancelled_command_gets_its_signal_and_the_run_has_failed() {
    let bench = Bench::new();
    // Not SIGINT: whoever starts the tests in the background may have it ignored, and then no shell can trap it.
    let command = "trap 'echo asked > asked; exit 0' USR1; touch ready; while :; do sleep 0.01; done";
    let more = [("sig", text("SIGUSR1")), ("cwd", text(bench.path("")))];
    let mut exec = shell(&bench, command, &more);
    let cancellation = exec.cancellation.clone();
    let run = cancelled_when_ready(&bench, &mut exec, move || {
        cancellation.cancel(CancelCause::Stopping);
    });
    assert_eq!(
        run.result.as_ref().unwrap_err().reason(),
        FailureReason::Cancelled
    );
    assert_eq!(bench.read("asked"), "asked\n");
    assert!(run.sent.is_none());
}

#[test]
fn a_command_that_ends_the_program_serves_its_notification_in_the_end() {
    let bench = Bench::new();
    let command = "rm -f ready; touch ready; while :; do sleep 0.01; done";
    let more = [("cwd", text(bench.path(""))), ("refresh_only", Value::Bool(true))];
    let interrupted = || {
        let mut exec = shell(&bench, command, &more);
        exec.refresh = true;
        let cancellation = exec.cancellation.clone();
        let run = cancelled_when_ready(&bench, &mut exec, move || {
            cancellation.cancel(CancelCause::Stopping);
        });
        std::fs::remove_file(bench.path("ready")).unwrap();
        run
    };
    for _ in 0..2 {
        assert_eq!(
            interrupted().result.unwrap_err().reason(),
            FailureReason::Cancelled,
            "it is served at the next start"
        );
        let run = interrupted();
        assert!(run.result.is_ok(), "{run:?}");
        let told = run
            .log
            .iter()
            .any(|line| format!("{line:?}").contains("counts as served"));
        assert!(told, "{run:?}");
    }
}

#[test]
fn an_interrupt_kills_what_ignores_the_signal() {
    let bench = Bench::new();
    let command = "trap '' TERM; touch ready; while :; do sleep 0.01; done";
    let mut exec = shell(&bench, command, &[("cwd", text(bench.path("")))]);
    let cancellation = exec.cancellation.clone();
    let run = cancelled_when_ready(&bench, &mut exec, move || {
        cancellation.cancel(CancelCause::Stopping);
        cancellation.interrupt();
    });
    assert_eq!(
        run.result.as_ref().unwrap_err().reason(),
        FailureReason::Interrupted
    );
}

#[test]
fn an_interrupt_during_a_guard_starts_nothing_more() {
    let bench = Bench::new();
    let guard = format!("touch {}; sleep 600", bench.path("ready"));
    let mut exec = guarded(&bench, &[("ifcmd", text(guard)), ("ifshell", text("/bin/sh"))]);
    let cancellation = exec.cancellation.clone();
    let run = cancelled_when_ready(&bench, &mut exec, move || cancellation.interrupt());
    assert_eq!(
        run.result.as_ref().unwrap_err().reason(),
        FailureReason::Interrupted
    );
    assert_eq!(runs(&bench), 0);
}

#[test]
fn a_run_that_was_cancelled_before_it_began_starts_nothing() {
    let bench = Bench::new();
    let mut exec = guarded(&bench, &[]);
    exec.cancellation.cancel(CancelCause::Superseded);
    assert_eq!(
        exec.apply().result.unwrap_err().reason(),
        FailureReason::Cancelled
    );
    assert_eq!(runs(&bench), 0);
}

#[test]
fn a_cancel_that_comes_after_the_end_changes_nothing() {
    let bench = Bench::new();
    let mut exec = shell(&bench, "true", &[]);
    exec.apply().drifted(&["run"]);
    exec.cancellation.cancel(CancelCause::Stopping);
}

#[test]
fn secrets_are_in_no_report() {
    let bench = Bench::new();
    let secret = ("env", map(&[("TOKEN", "hunter2")]).sensitive());
    let mut exec = shell(&bench, "echo $TOKEN hunter2; exit 1", &[secret]);
    let run = exec.apply();
    assert!(!format!("{run:?}").contains("hunter2"), "{run:?}");
    assert_eq!(run.failure(), "run (sensitive): exit status 1");
}

// Watching

struct Watching {
    events: Arc<Mutex<Vec<String>>>,
    log: Arc<Mutex<Vec<String>>>,
    cancellation: CancellationToken,
}

/// Starts the loop of `watchcmd`.
fn watcher(subject: &Subject) -> (Watching, setpoint_engine::WatchFuture) {
    let own = subject
        .resource()
        .watches()
        .into_iter()
        .find_map(|watch| match watch {
            Watch::Own(own) => Some(own),
            Watch::Path { .. } | Watch::Tick(_) | Watch::Hub(_) => None,
        });
    let watching = Watching {
        events: Arc::default(),
        log: Arc::default(),
        cancellation: CancellationToken::new(),
    };
    let (events, log) = (watching.events.clone(), watching.log.clone());
    let future = own.unwrap().start(Watcher {
        handle: subject.handle.clone(),
        has_sensitive: subject.instance.is_sensitive("env"),
        cancellation: watching.cancellation.clone(),
        event: Box::new(move |cause| events.lock().unwrap().push(cause.to_owned())),
        log: Box::new(move |_, line| log.lock().unwrap().push(line.to_owned())),
    });
    (watching, future)
}

#[test]
fn each_line_of_watchcmd_is_an_event_and_its_end_a_failure() {
    let bench = Bench::new();
    let command = "echo one; echo; echo oops >&2; echo two; sleep 0.05";
    let all = [("watchcmd", text(command)), ("watchshell", text("/bin/sh"))];
    let exec = shell(&bench, "true", &all);
    let failure = runtime().block_on(async {
        let (watching, future) = watcher(&exec);
        let failure = future.await.unwrap_err();
        let events = watching.events.lock().unwrap().clone();
        assert_eq!(
            events,
            [
                "`watchcmd` was started",
                "`watchcmd` printed a line",
                "`watchcmd` printed a line"
            ]
        );
        assert_eq!(*watching.log.lock().unwrap(), ["`watchcmd`: oops"]);
        failure
    });
    assert_eq!(
        failure.chain(),
        "watch with `watchcmd`: it ended with exit status 0"
    );
}

#[test]
fn what_watchcmd_says_with_a_secret_is_not_shown() {
    let bench = Bench::new();
    let all = [
        ("watchcmd", text("echo $TOKEN | rev >&2; echo one")),
        ("watchshell", text("/bin/sh")),
        ("env", map(&[("TOKEN", "hunter2")]).sensitive()),
    ];
    let exec = shell(&bench, "true", &all);
    runtime().block_on(async {
        let (watching, future) = watcher(&exec);
        future.await.unwrap_err();
        assert_eq!(watching.events.lock().unwrap().len(), 2);
        assert_eq!(*watching.log.lock().unwrap(), Vec::<String>::new());
    });
}

#[test]
fn the_end_of_watching_stops_watchcmd() {
    let bench = Bench::new();
    let command = format!(
        "trap 'echo bye > {}; exit' TERM; echo x; while :; do sleep 0.01; done",
        bench.path("bye")
    );
    let exec = shell(
        &bench,
        "true",
        &[("watchcmd", text(command)), ("watchshell", text("/bin/sh"))],
    );
    runtime().block_on(async {
        let (watching, future) = watcher(&exec);
        let task = tokio::spawn(future);
        while watching.events.lock().unwrap().len() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        watching.cancellation.cancel();
        task.await.unwrap().unwrap();
    });
    assert_eq!(bench.read("bye"), "bye\n");
}

#[test]
fn paths_are_watched_and_trees_below() {
    let bench = Bench::new();
    let all = [
        ("watchfiles", texts(&["/f", "/d/"])),
        ("creates", text("/c")),
        ("mtimes", texts(&["/m"])),
    ];
    let watches = shell(&bench, "true", &all).resource().watches();
    let shown: Vec<_> = watches
        .iter()
        .map(|watch| match watch {
            Watch::Path { path, depth, .. } => (path.to_string(), *depth),
            Watch::Tick(_) | Watch::Own(_) | Watch::Hub(_) => panic!("{watch:?}"),
        })
        .collect();
    let entry = |path: &str| (path.to_owned(), Depth::Entry);
    assert_eq!(
        shown,
        [
            entry("/m"),
            entry("/f"),
            ("/d/".to_owned(), Depth::Recursive),
            entry("/c")
        ]
    );
}

// Description

#[test]
fn contradictions_are_refused() {
    for (name, parameters, expected) in [
        ("  ", vec![], "cmd: there is no command"),
        (
            "a b",
            vec![("args", texts(&["c"]))],
            "args: the arguments are either in `cmd` or in `args`",
        ),
        (
            "a",
            vec![("args", texts(&["c"])), ("shell", text("/bin/sh"))],
            "args: a shell takes its command from `cmd` alone",
        ),
        (
            "a",
            vec![("env", map(&[("1A", "")]))],
            "env: at `[\"1A\"]`: `1A` is not a name of an environment variable",
        ),
        ("a", vec![("sig", text("int"))], "sig: `int` is not a signal"),
        (
            "a",
            vec![(
                "limits",
                setpoint_value::Value::Map(setpoint_value::Map::new(
                    setpoint_value::Type::Str,
                    setpoint_value::Type::Int,
                    [(text("ram"), Value::Int(1))],
                )),
            )],
            "limits: at `[\"ram\"]`: `ram` is not a limit",
        ),
        (
            "a",
            vec![("capabilities", texts(&["NET_ADMIN"]))],
            "capabilities: at `[0]`: `NET_ADMIN` is not a capability",
        ),
        (
            "a",
            vec![("creates", text("rel"))],
            "creates: `rel` is not an absolute path",
        ),
        (
            "a",
            vec![("mtimes", texts(&["rel"]))],
            "mtimes: at `[0]`: `rel` is not an absolute path",
        ),
        (
            "a",
            vec![("watchfiles", texts(&["rel"]))],
            "watchfiles: at `[0]`: `rel` is not an absolute path",
        ),
    ] {
        assert_eq!(refused("exec", name, &parameters), [expected]);
    }
    assert_eq!(
        refused("exec", "a", &[("sig", text("SIGUSR1"))]),
        Vec::<String>::new()
    );
}

#[test]
fn what_only_a_shell_understands_is_doubted_where_there_is_none() {
    let doubt = |parameter: &str, word: &str, program: &str| {
        vec![format!(
            "{parameter}: `{parameter}` has no shell, so `{word}` is just an argument of `{program}`"
        )]
    };
    for (command, word) in [
        ("echo a | tr a b", "|"),
        ("make && make install", "&&"),
        ("echo x > /tmp/x", ">"),
        ("echo x >/tmp/x", ">/tmp/x"),
        ("ls 2>/dev/null", "2>/dev/null"),
        ("echo 'a b'", "'a"),
        ("echo a; echo b", "a;"),
        ("echo $(date)", "$(date)"),
    ] {
        let program = command.split(' ').next().unwrap();
        assert_eq!(refused("exec", command, &[]), doubt("cmd", word, program));
        assert_eq!(
            refused("exec", "true", &[("nifcmd", text(command))]),
            doubt("nifcmd", word, program)
        );
        let shell = [("cmd", text(command)), ("shell", text("/bin/sh"))];
        assert_eq!(refused("exec", "e", &shell), Vec::<String>::new());
    }
    for plain in [
        "grep a|b /etc/motd",
        "find / -exec rm {} \\;",
        "echo it's",
        "expr 1 * 2",
    ] {
        assert_eq!(refused("exec", plain, &[]), Vec::<String>::new(), "{plain}");
    }
}

#[test]
fn it_wants_its_programs_and_accounts_first() {
    let bench = Bench::new();
    let all = [
        ("cmd", text("/bin/a b")),
        ("ifcmd", text("x")),
        ("ifshell", text("/bin/sh")),
        ("user", text("u")),
    ];
    let exec = bench.resource("exec", "e", &all);
    let wanted = exec.resource().wanted();
    let identities = &wanted[0].identities;
    for path in ["/bin/a", "/bin/sh"] {
        assert!(identities.contains(&FILE.identity(path.as_bytes())), "{path}");
        assert!(
            identities.contains(&PACKAGE_FILE.identity(path.as_bytes())),
            "{path}"
        );
    }
    assert_eq!(identities.last(), Some(&Account::written("u").identity(&USER)));
}
