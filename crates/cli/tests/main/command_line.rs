//! The command line as scripts write it: flags of older programs too, values of the environment, where a run works, and how it ends.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use setpoint_testing::etcd::{EtcdCluster, has_etcd};
use setpoint_testing::{Finished, Hermetic, Running};

use crate::end_to_end::{Engine, run, run_command, text};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

fn setpoint(place: &Hermetic, arguments: &[&str]) -> Finished {
    place.run(BINARY, arguments)
}

fn finished(command: &mut Command) -> Finished {
    let output = command.stdin(Stdio::null()).output().expect("it can be started");
    Finished {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A program that makes a file.
fn makes(place: &Hermetic, name: &str) -> String {
    let path = place.path(name).display().to_string();
    format!("file \"{path}\" {{\n\tstate => \"exists\",\n\tcontent => \"made\",\n}}\n")
}

#[test]
fn without_a_command_the_help_is_shown_and_help_is_a_command_too() {
    let place = Hermetic::new();
    let alone = setpoint(&place, &[]);
    let help = setpoint(&place, &["help"]);
    let flag = setpoint(&place, &["--help"]);
    let short = setpoint(&place, &["-h"]);
    for shown in [&alone, &help, &flag, &short] {
        assert_eq!((shown.code, &*shown.stderr), (0, ""));
        assert!(shown.stdout.contains("Usage: setpoint"), "{}", shown.stdout);
        assert!(shown.stdout.contains("\n  run "), "{}", shown.stdout);
    }
    assert_eq!(help.stdout, flag.stdout);
    let of_run = setpoint(&place, &["help", "run"]);
    assert_eq!(of_run, setpoint(&place, &["run", "--help"]));
    let version = setpoint(&place, &["--version"]);
    assert_eq!(
        (version.code, &*version.stdout, &*version.stderr),
        (0, concat!(env!("CARGO_PKG_VERSION"), "\n"), "")
    );
    let licence = setpoint(&place, &["--license"]);
    assert_eq!((licence.code, &*licence.stderr), (0, ""));
    assert!(licence.stdout.contains("Apache License, Version 2.0") && licence.stdout.contains("MIT"));
}

/// The lines of a help that are not indented and end in a colon.
fn headings(help: &str) -> Vec<&str> {
    let lines = help.lines().filter(|line| !line.starts_with(' '));
    lines.filter_map(|line| line.strip_suffix(':')).collect()
}

#[test]
fn the_short_help_of_run_fits_a_screen_and_the_long_one_has_every_option() {
    let place = Hermetic::new();
    let [short, long] = ["-h", "--help"].map(|flag| setpoint(&place, &["run", flag]).stdout);
    assert!(short.lines().count() <= 60, "{short}");
    let groups = ["Program", "Run", "Engine", "Output", "Cluster"];
    for help in [&short, &long] {
        assert_eq!(
            headings(help),
            [&["Arguments", "Options"][..], &groups].concat(),
            "{help}"
        );
    }
    let options = |help: &str| {
        let words = help
            .split([' ', '\n', '[', ','])
            .filter(|word| word.starts_with("--"));
        words
            .map(str::to_owned)
            .collect::<std::collections::BTreeSet<_>>()
    };
    let rare = options(&long).difference(&options(&short)).count();
    assert!(
        options(&long).is_superset(&options(&short)) && rare > 10,
        "{long}"
    );
}

#[test]
fn every_command_is_under_one_heading() {
    let place = Hermetic::new();
    let help = setpoint(&place, &["-h"]).stdout;
    let commands = |text: &str| {
        let words = text
            .lines()
            .filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
        let words = words.filter(|word| !word.is_empty() && !word.starts_with('-'));
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    let shown = commands(&help);
    let mut sorted = shown.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(shown.len(), sorted.len(), "{help}");
    let completions = setpoint(&place, &["completions", "fish"]).stdout;
    let all: std::collections::BTreeSet<&str> = completions
        .lines()
        .filter(|line| line.contains("needs_command") && line.contains(" -a \""))
        .filter_map(|line| line.split(" -a \"").nth(1)?.split('"').next())
        .filter(|name| *name != "help")
        .collect();
    assert_eq!(sorted, all.into_iter().collect::<Vec<_>>(), "{completions}");
}

#[test]
fn flags_stand_before_and_behind_the_word_for_the_language() {
    let place = Hermetic::new();
    let program = makes(&place, "file");
    for arguments in [
        &["--once", "--noop", "lang", &program][..],
        &["--once", "lang", "--noop", &program],
        &["lang", &program, "--noop", "--once"],
    ] {
        let ran = run(&place, arguments);
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("would be created"),
            "{arguments:?}: {}",
            ran.stderr
        );
    }
    assert!(!place.path("file").exists());
}

#[test]
fn a_switch_has_a_value_where_one_is_written() {
    let place = Hermetic::new();
    let program = makes(&place, "file");
    let ran = run(&place, &["--once", "--noop=true", &program]);
    assert_eq!(
        (ran.code, place.path("file").exists()),
        (0, false),
        "{}",
        ran.stderr
    );
    let ran = run(&place, &["--once=true", "--noop", "--noop=false", &program]);
    assert_eq!(
        (ran.code, place.path("file").exists()),
        (0, true),
        "{}",
        ran.stderr
    );
    let wrong = run(&place, &["--once", "--noop=maybe", &program]);
    assert_eq!(wrong.code, 64);
    assert!(
        wrong.stderr.contains("maybe") && wrong.stderr.contains("--noop"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn addresses_that_were_forgotten_are_asked_for_with_their_equals_sign() {
    let place = Hermetic::new();
    for flag in ["--etcd-endpoints", "--client-urls", "--advertise-server-urls"] {
        for word in ["lang", "yaml", "empty"] {
            for rest in [&["x"][..], &[]] {
                let mut arguments = vec![flag, word];
                arguments.extend(rest);
                let ran = run(&place, &arguments);
                assert_eq!(ran.code, 64, "{arguments:?}: {}", ran.stderr);
                let said =
                    format!("with an equals sign between, as in `--etcd-endpoints=https://host:2379 {word}`");
                assert!(
                    ran.stderr.contains(&said) && ran.stderr.contains(flag),
                    "{arguments:?}: {}",
                    ran.stderr
                );
            }
        }
    }
}

#[test]
fn what_a_server_inside_would_be_told_is_taken_and_has_no_effect() {
    let place = Hermetic::new();
    let program = "noop \"a\" {}\n";
    let ran = run(
        &place,
        &[
            "--once",
            "--client-urls=http://127.0.0.1:2379,http://127.0.0.1:2380",
            "--server-urls",
            "http://127.0.0.1:2379",
            "--advertise-client-urls=http://a:1",
            "--advertise-server-urls=http://a:2",
            "--no-network",
            program,
        ],
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for flag in [
        "--client-urls",
        "--server-urls",
        "--advertise-client-urls",
        "--advertise-server-urls",
        "--no-network",
    ] {
        assert!(
            ran.stderr.contains(&format!("warning: `{flag}` has no effect: ")),
            "{}",
            ran.stderr
        );
    }
    // Nothing is said of what nobody misses.
    let ran = run(
        &place,
        &[
            "--once",
            "--no-pgp",
            "--pgp-key-path",
            "/nowhere",
            "--pgp-identity",
            "me",
            program,
        ],
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!ran.stderr.contains("pgp"), "{}", ran.stderr);
}

#[test]
fn a_run_without_a_store_of_others_listens_nowhere() {
    let place = Hermetic::new();
    let mut engine = Engine::start(&place, &["noop \"a\" {}\n"]);
    engine.event("convergence", |event| event["event"] == "converged");
    let engine = engine.into_running();
    let descriptors = format!("/proc/{}/fd", engine.id());
    let held: Vec<String> = std::fs::read_dir(descriptors)
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .filter_map(|link| {
            Some(
                link.to_str()?
                    .strip_prefix("socket:[")?
                    .strip_suffix(']')?
                    .to_owned(),
            )
        })
        .collect();
    for protocol in ["tcp", "tcp6", "udp", "udp6"] {
        let table =
            std::fs::read_to_string(format!("/proc/{}/net/{protocol}", engine.id())).unwrap_or_default();
        let ours = table.lines().filter(|line| {
            let inode = line.split_whitespace().nth(9).unwrap_or_default();
            held.iter().any(|held| held == inode)
        });
        assert_eq!(ours.count(), 0, "{protocol}: {table}");
    }
}

#[test]
fn profiles_are_refused_with_what_gives_them() {
    let place = Hermetic::new();
    let program = "noop \"a\" {}\n";
    for arguments in [
        &["--pprof", "lang", program][..],
        &["--pprof", "--noop", program],
        &["lang", program, "--pprof"],
        &["--pprof=127.0.0.1:6060", program],
        &["--pprof", "127.0.0.1:6060", "lang", program],
    ] {
        let ran = run(&place, arguments);
        assert_eq!(ran.code, 64, "{arguments:?}: {}", ran.stderr);
        for part in ["`--pprof` is not there", "perf record", "--prometheus"] {
            assert!(ran.stderr.contains(part), "{arguments:?}: {}", ran.stderr);
        }
    }
    // Older programs wrote a profile where this named a file.
    let mut command = run_command(&place, &["--once", program]);
    command
        .env("MGMT_PPROF", "127.0.0.1:6060")
        .env("MGMT_PPROF_PATH", place.path("profile"));
    assert_eq!(finished(&mut command).code, 0);
    assert!(!place.path("profile").exists());
}

#[test]
fn a_flag_counts_more_than_the_environment() {
    let place = Hermetic::new();
    let program = "noop \"a\" {}\n";
    let with = |variables: &[(&str, &str)], arguments: &[&str]| {
        let mut command = place.command(BINARY);
        command
            .args(["run", "--once", "--no-raise-limits"])
            .args(arguments)
            .arg(program);
        command.envs(variables.iter().copied());
        finished(&mut command)
    };
    let path = |name: &str| place.path(name).display().to_string();
    // The prefix, by both names of the variable; the newer name counts more.
    for (variables, arguments, made) in [
        (&[("MGMT_PREFIX", path("old"))][..], &[][..], "old"),
        (
            &[
                ("SETPOINT_STATE_DIR", path("new")),
                ("MGMT_PREFIX", path("other")),
            ],
            &[],
            "new",
        ),
        (
            &[("SETPOINT_STATE_DIR", path("other"))],
            &["--state-dir", &path("flag")],
            "flag",
        ),
    ] {
        let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, &**value)).collect();
        let ran = with(&variables, arguments);
        assert_eq!(ran.code, 0, "{made}: {}", ran.stderr);
        assert!(place.path(made).join("lock").exists(), "{made}");
    }
    assert!(!place.path("other").exists());
    let prefix = path("flag");
    let refused = with(&[("SETPOINT_MAX_RUNTIME", "soon")], &["--state-dir", &prefix]);
    assert_eq!(refused.code, 64, "{}", refused.stderr);
    let taken = with(
        &[("SETPOINT_MAX_RUNTIME", "soon")],
        &["--state-dir", &prefix, "--max-runtime", "0"],
    );
    assert_eq!(taken.code, 0, "{}", taken.stderr);
    let refused = with(&[("SETPOINT_MODULE_PATH", "no/slash")], &["--state-dir", &prefix]);
    assert!(refused.stderr.contains("must end in `/`"), "{}", refused.stderr);
    let taken = with(
        &[("SETPOINT_MODULE_PATH", "no/slash")],
        &["--state-dir", &prefix, "--module-path", "a/"],
    );
    assert_eq!(taken.code, 0, "{}", taken.stderr);
    let refused = with(&[("MGMT_SEEDS", "nonsense://a")], &["--state-dir", &prefix]);
    assert_eq!(refused.code, 64, "{}", refused.stderr);
}

#[test]
fn seeds_are_a_list_however_they_are_given() {
    if !has_etcd("seeds_are_a_list_however_they_are_given") {
        return;
    }
    let place = Hermetic::new();
    let etcd = EtcdCluster::start(1);
    let there = etcd.endpoints().join(",");
    // Nobody listens at the first one, so who takes that alone has no store.
    let away = "http://127.0.0.1:1";
    let program = "kv \"key\" {\n\tvalue => \"TEXT\",\n}\n";
    let both = format!("{away},{there}");
    let spaced = format!("{away}; {there}");
    for (number, (arguments, variable)) in [
        (vec![format!("--etcd-endpoints={both}")], None),
        (
            vec!["--etcd-endpoints".to_owned(), both.clone(), "lang".to_owned()],
            None,
        ),
        (
            vec![
                "--etcd-endpoints".to_owned(),
                away.to_owned(),
                "--etcd-endpoints".to_owned(),
                there.clone(),
            ],
            None,
        ),
        (vec![format!("--etcd-endpoints={spaced}")], None),
        (Vec::new(), Some(("SETPOINT_ETCD_ENDPOINTS", &both))),
        (Vec::new(), Some(("MGMT_SEEDS", &both))),
    ]
    .into_iter()
    .enumerate()
    {
        let value = format!("value {number}");
        let mut command = place.command(BINARY);
        command.args(["run", "--once", "--no-raise-limits", "--no-deploy", "--state-dir"]);
        command
            .arg(place.path("prefix"))
            .args(&arguments)
            .arg(program.replace("TEXT", &value));
        command.envs(variable);
        let ran = finished(&mut command);
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
        let found = etcd.control(&["get", "--print-value-only", "/setpoint/strings/key"]);
        assert_eq!(found.trim(), value, "{arguments:?}");
    }
}

#[test]
fn a_secret_of_the_store_that_others_can_read_is_refused() {
    let place = Hermetic::new();
    let with_mode = |name: &str, mode: u32| {
        let path = place.write(name, "secret\n");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("it is ours");
        path.display().to_string()
    };
    let (authority, certificate) = (with_mode("ca.pem", 0o644), with_mode("cert.pem", 0o644));
    let refusal = "others can read or change the file";
    for (mode, hint) in [(0o644, Some("chmod 640")), (0o640, None)] {
        let key = with_mode("key.pem", mode);
        let files = [
            "--etcd-ca",
            &authority,
            "--etcd-cert",
            &certificate,
            "--etcd-key",
            &key,
        ];
        let arguments = [
            &["members", "--etcd-endpoints", "https://127.0.0.1:1"][..],
            &files,
        ]
        .concat();
        let ran = place.run(BINARY, &arguments);
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        assert_eq!(
            ran.stderr.contains(refusal),
            hint.is_some(),
            "{mode:o}: {}",
            ran.stderr
        );
        assert!(
            hint.is_none_or(|hint| ran.stderr.contains(hint)),
            "{}",
            ran.stderr
        );
    }
    for (mode, is_refused) in [(0o640, true), (0o600, false)] {
        let password = with_mode("password", mode);
        let login = ["--etcd-user", "web", "--etcd-password-file", &password];
        let arguments = [&["members", "--etcd-endpoints", "http://127.0.0.1:1"][..], &login].concat();
        let ran = place.run(BINARY, &arguments);
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        assert_eq!(
            ran.stderr.contains(refusal),
            is_refused,
            "{mode:o}: {}",
            ran.stderr
        );
    }
}

#[test]
fn a_run_works_where_it_is_told_to() {
    let place = Hermetic::new();
    let program = place.write("p.mcl", "noop \"a\" {}\n").display().to_string();
    let with = |arguments: &[&str]| {
        let mut command = place.command(BINARY);
        command
            .args(["run", "--once", "--no-raise-limits"])
            .args(arguments)
            .arg(&program);
        command
            .env("STATE_DIRECTORY", place.path("state"))
            .env("XDG_CACHE_HOME", place.path("cache"));
        finished(&mut command)
    };
    let ran = with(&[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(place.path("state/lock").exists() && !place.path("cache").exists());
    let prefix = place.path("prefix").display().to_string();
    let ran = with(&["--state-dir", &prefix]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(place.path("prefix/lock").exists());
    let both = with(&["--state-dir", &prefix, "--tmp-state-dir"]);
    assert_eq!(both.code, 64, "{}", both.stderr);
    assert!(
        both.stderr.contains("--state-dir") && both.stderr.contains("--tmp-state-dir"),
        "{}",
        both.stderr
    );
    // Where there is a file in the way, a temporary one does, if that is wanted.
    let file = place.write("file", "").join("below").display().to_string();
    let refused = with(&["--state-dir", &file]);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert!(refused.stderr.contains("--tmp-state-dir"), "{}", refused.stderr);
    let ran = with(&["--state-dir", &file, "--allow-tmp-state-dir"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn only_what_can_be_a_name_is_taken_as_the_name_of_a_host() {
    let place = Hermetic::new();
    let long = format!("{}a", "a.".repeat(126));
    for name in ["a", "A_b-c.d", "9", "a..b", &long] {
        let ran = setpoint(
            &place,
            &[
                "run",
                "--once",
                "--tmp-state-dir",
                "--hostname",
                name,
                "noop \"a\" {}",
            ],
        );
        assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
    }
    assert_eq!(long.len(), 253);
    let longer = format!("{long}b");
    for name in ["", "*", "a/b", ".a", "-a", "ä", "a b", "._-", &longer, "a\n"] {
        let argument = format!("--hostname={name}");
        let ran = setpoint(
            &place,
            &["run", "--once", "--tmp-state-dir", &argument, "noop \"a\" {}"],
        );
        assert_eq!(ran.code, 64, "{name}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("is not a host name"),
            "{name}: {}",
            ran.stderr
        );
    }
}

#[test]
fn a_run_that_ends_when_converged_does_what_is_to_be_done_first() {
    let place = Hermetic::new();
    let status = place.path("status").display().to_string();
    let program = makes(&place, "file");
    let began = Instant::now();
    let ran = run(
        &place,
        &[
            "--converger-timeout",
            "1",
            "--converged-exit",
            "--converger-status-file",
            &status,
            &program,
        ],
    );
    assert_eq!(
        (ran.code, &*text(&place.path("file"))),
        (0, "made"),
        "{}",
        ran.stderr
    );
    assert!(
        began.elapsed() >= Duration::from_secs(1),
        "it was quiet for a second"
    );
    assert_eq!(text(&place.path("status")), "true\n");
    // Without a time it would never end, which is said instead.
    for further in [
        &["--converged-exit"][..],
        &["--converged-exit", "--converger-timeout", "-1"],
    ] {
        let mut arguments = further.to_vec();
        arguments.push(&program);
        let ran = run(&place, &arguments);
        assert_eq!(ran.code, 64, "{}", ran.stderr);
        assert!(
            ran.stderr.contains("needs --converger-timeout of 0 or more"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn the_status_file_has_a_line_for_each_transition() {
    let place = Hermetic::new();
    let status = place.path("status").display().to_string();
    let program = place.write("p.mcl", makes(&place, "file")).display().to_string();
    let mut engine = Engine::start(
        &place,
        &[
            "--converger-timeout",
            "0",
            "--converger-status-file",
            &status,
            &program,
        ],
    );
    engine.event("convergence", |event| event["event"] == "converged");
    for _ in 0..3 {
        std::fs::write(place.path("file"), "wrong").unwrap();
        engine.event("work", |event| event["event"] == "unconverged");
        engine.event("convergence", |event| event["event"] == "converged");
    }
    let mut engine = engine.into_running();
    let of_events = |lines: &[String]| -> Vec<String> {
        let is = |line: &String| match () {
            () if line.contains("\"event\":\"converged\"") => Some("true".to_owned()),
            () if line.contains("\"event\":\"unconverged\"") => Some("false".to_owned()),
            () => None,
        };
        lines.iter().filter_map(is).collect()
    };
    engine.signal("TERM");
    engine.wait_for("its end", |line| {
        line.contains("\"event\":\"ended\"") || line.contains("\"event\":\"end\"")
    });
    let seen = of_events(engine.seen());
    let (status, errors) = engine.finish();
    assert_eq!(status.code(), Some(0), "{errors}");
    let lines: Vec<String> = text(&place.path("status")).lines().map(str::to_owned).collect();
    assert_eq!(lines, seen);
    assert!(
        lines.len() >= 7 && lines.windows(2).all(|pair| pair[0] != pair[1]),
        "{lines:?}"
    );
}

#[test]
fn one_at_a_time_is_one_at_a_time() {
    let place = Hermetic::new();
    let log = place.path("log").display().to_string();
    let commands: String = (0..6)
        .map(|number| {
            format!(
                "exec \"e{number}\" {{\n\tcmd => \"echo begin >> {log}; sleep 0.05; echo end >> {log}\",\n\tshell => \"/bin/sh\",\n}}\n"
            )
        })
        .collect();
    let program = place.write("p.mcl", commands).display().to_string();
    let ran = run(&place, &["--once", "--sema", "1", &program]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(text(&place.path("log")), "begin\nend\n".repeat(6));
}

#[test]
fn signals_stop_a_run_in_stages() {
    let place = Hermetic::new();
    let said = place.path("said").display().to_string();
    // It says which signal it gets, and goes on whatever it is told.
    let stubborn = format!(
        "trap 'echo TERM >> {said}' TERM; trap 'echo INT >> {said}' INT; echo began >> {said}; while true; do sleep 0.02; done"
    );
    let program = format!("exec \"stubborn\" {{\n\tcmd => \"{stubborn}\",\n\tshell => \"/bin/sh\",\n}}\n");
    let program = place.write("p.mcl", program).display().to_string();
    let until = |what: &str, holds: &dyn Fn() -> bool| {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !holds() {
            assert!(Instant::now() < deadline, "not in time: {what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    let mut running = Running::start(run_command(&place, &[&program]));
    until("its beginning", &|| text(&place.path("said")) == "began\n");
    let stage = |running: &mut Running, signal: &str, number: u64| {
        running.signal(signal);
        running.wait_for("a stage of stopping", |line| {
            let event: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
            event["event"] == "stopping" && event["stage"] == number
        });
    };
    // The first lets it finish, the second asks it to, the third kills it.
    stage(&mut running, "INT", 1);
    assert_eq!(text(&place.path("said")), "began\n");
    stage(&mut running, "INT", 2);
    until("its signal", &|| text(&place.path("said")).contains("TERM"));
    stage(&mut running, "INT", 3);
    let (status, errors) = running.finish();
    assert_eq!(status.code(), Some(0), "{errors}");
    assert!(
        !text(&place.path("said")).contains("INT"),
        "it is in a group of its own"
    );
    // One that ends when it is asked to needs two.
    std::fs::remove_file(place.path("said")).unwrap();
    let polite = format!(
        "exec \"polite\" {{\n\tcmd => \"echo began >> {said}; exec sleep 600\",\n\tshell => \"/bin/sh\",\n}}\n"
    );
    let program = place.write("p.mcl", polite).display().to_string();
    let mut running = Running::start(run_command(&place, &[&program]));
    until("its beginning", &|| text(&place.path("said")) == "began\n");
    stage(&mut running, "INT", 1);
    stage(&mut running, "INT", 2);
    let (status, errors) = running.finish();
    assert_eq!(status.code(), Some(0), "{errors}");
}

#[test]
fn after_one_sigterm_the_stages_follow_by_themselves() {
    let place = Hermetic::new();
    let began = place.path("began").display().to_string();
    let stubborn = format!("trap '' TERM; touch {began}; while true; do sleep 0.05; done");
    let program = format!("exec \"stubborn\" {{\n\tcmd => \"{stubborn}\",\n\tshell => \"/bin/sh\",\n}}\n");
    let program = place.write("p.mcl", program).display().to_string();
    let mut running = Running::start(run_command(&place, &[&program]));
    running.wait_for("its beginning", |line| line.contains("started run"));
    let deadline = Instant::now() + Duration::from_secs(60);
    while !place.path("began").exists() {
        assert!(Instant::now() < deadline, "it begins in time");
        std::thread::sleep(Duration::from_millis(10));
    }
    running.signal("TERM");
    let mut times = Vec::new();
    for stage in 1..=3_u64 {
        let line = running.wait_for("a stage of stopping", |line| {
            let event: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
            event["event"] == "stopping" && event["stage"] == stage
        });
        let event: serde_json::Value = serde_json::from_str(&line).unwrap();
        times.push(event["time"].as_f64().unwrap());
    }
    let (status, errors) = running.finish();
    assert_eq!(status.code(), Some(0), "{errors}");
    for pair in times.windows(2) {
        assert!(pair[1] - pair[0] >= 14.9, "{times:?}");
    }
}

#[test]
fn watch_limits_are_raised_where_they_are_lower_and_never_in_the_way() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("watch_limits_are_raised_where_they_are_lower_and_never_in_the_way: needs root, left out");
        return;
    }
    let place = Hermetic::new();
    // The real ones are those of the whole machine: in a namespace of its own a directory of ours lies over them.
    let limits = |instances: &str, watches: &str, further: &str, options: &str| {
        place.write("limits/max_user_instances", instances);
        place.write("limits/max_user_watches", watches);
        let script = format!(
            "mount --bind {0} /proc/sys/fs/inotify && {further} exec {BINARY} run --once --tmp-state-dir {options} 'noop \"a\" {{}}'",
            place.path("limits").display()
        );
        let mut command = place.command("unshare");
        command.args(["--mount", "--propagation", "private", "/bin/sh", "-c", &script]);
        let ran = finished(&mut command);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let read = |name: &str| text(&place.path(&format!("limits/{name}"))).trim().to_owned();
        (read("max_user_instances"), read("max_user_watches"))
    };
    let are = |instances: &str, watches: &str| (instances.to_owned(), watches.to_owned());
    assert_eq!(limits("128\n", "8192\n", "", ""), are("512", "242940"));
    assert_eq!(limits("1024\n", "8192\n", "", ""), are("1024", "242940"));
    assert_eq!(limits("512\n", "1000000\n", "", ""), are("512", "1000000"));
    assert_eq!(
        limits("128\n", "8192\n", "", "--no-raise-limits"),
        are("128", "8192")
    );
    // Where they may not be changed, or are not there, that is all right.
    let read_only = "mount -o remount,bind,ro /proc/sys/fs/inotify &&";
    assert_eq!(limits("128\n", "8192\n", read_only, ""), are("128", "8192"));
    assert_eq!(limits("many\n", "", "", ""), are("many", ""));
}

#[test]
fn lines_of_a_run_that_stays_begin_with_the_time() {
    let place = Hermetic::new();
    let mut command = place.command(BINARY);
    command.args(["run", "--no-raise-limits", "--max-runtime", "1", "--state-dir"]);
    command.arg(place.path("prefix")).arg(makes(&place, "file"));
    let ran = finished(&mut command);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("created"), "{}", ran.stderr);
    for line in ran.stderr.lines().filter(|line| !line.starts_with(' ')) {
        let shape: String = line
            .chars()
            .take(26)
            .map(|c| if c.is_ascii_digit() { '0' } else { c })
            .collect();
        assert_eq!(shape, "0000-00-00T00:00:00+00:00 ", "{}", ran.stderr);
    }
}
