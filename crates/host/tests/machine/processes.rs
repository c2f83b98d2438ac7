//! Commands, with real processes.

use crate::place::{Place, is_root};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use setpoint_host::processes::{
    Capability, Command, ConversationError, Environment, Exit, Finished, Launcher, Limit, LineEvent,
    Processes, ProgramError, RunError, Signal, Stop,
};
use std::path::PathBuf;
use std::time::{Duration, Instant};

fn processes() -> Processes {
    let launcher = Launcher::program(env!("CARGO_BIN_EXE_setpoint-test-launcher"));
    Processes::new("/usr/local/bin:/usr/bin:/bin").launched_by(launcher)
}

fn sh(text: &str) -> Command {
    Command::shell("/bin/sh", text)
}

async fn run(command: Command) -> Result<Finished, RunError> {
    processes().run(&command, &Stop::default()).await
}

async fn stdout(command: Command) -> String {
    let finished = run(command).await.unwrap();
    assert!(
        finished.exit.is_success(),
        "{:?} {}",
        finished.exit,
        finished.output.text()
    );
    String::from_utf8(finished.output.stdout()).unwrap()
}

/// Waits until a process is no more.
fn assert_ends(process: i32) {
    let Ok(descriptor) = pidfd_open(Pid::from_raw(process).unwrap(), PidfdFlags::empty()) else {
        return;
    };
    let mut sources = [PollFd::new(&descriptor, PollFlags::IN)];
    let limit = rustix::time::Timespec {
        tv_sec: 10,
        tv_nsec: 0,
    };
    // The runtime's own signal handler may interrupt the wait.
    let ended = loop {
        match poll(&mut sources, Some(&limit)) {
            Err(rustix::io::Errno::INTR) => {}
            result => break result.unwrap(),
        }
    };
    assert_eq!(ended, 1, "process {process} lives on");
}

#[tokio::test]
async fn exit_status_and_signal_are_told_apart() {
    assert_eq!(run(sh("exit 0")).await.unwrap().exit, Exit::Code(0));
    assert_eq!(run(sh("exit 126")).await.unwrap().exit, Exit::Code(126));
    let killed = run(sh("kill -USR1 $$")).await.unwrap().exit;
    assert_eq!(killed, Exit::Signal(10));
    assert_eq!(killed.to_string(), "killed by SIGUSR1");
}

#[tokio::test]
async fn a_missing_program_is_no_exit_status_except_in_a_shell() {
    let error = run(Command::words("no-such-program-here x").unwrap())
        .await
        .unwrap_err();
    assert!(
        matches!(error, RunError::Program(ProgramError::NotFound { .. })),
        "{error}"
    );
    let error = run(Command::words("/no/such/program").unwrap())
        .await
        .unwrap_err();
    assert!(
        matches!(&error, RunError::Start { source, .. } if source.raw_os_error() == Some(2)),
        "{error}"
    );
    assert_eq!(
        run(sh("no-such-program-here")).await.unwrap().exit,
        Exit::Code(127)
    );
}

#[tokio::test]
async fn a_missing_working_directory_is_named() {
    let error = run(sh("true").directory(PathBuf::from("/no/such/directory")))
        .await
        .unwrap_err();
    assert!(matches!(&error, RunError::Directory { .. }), "{error}");
    assert!(error.to_string().contains("/no/such/directory"));
}

#[tokio::test]
async fn words_are_split_at_white_space_and_nothing_else() {
    let command = Command::words(" printf\u{2003}%s|  'a  b\" ").unwrap();
    assert_eq!(stdout(command).await, "'a|b\"|");
    assert_eq!(Command::words(" \t "), None);
    let command = Command::words("printf")
        .unwrap()
        .arguments(["%s.", "a b", "$HOME"]);
    assert_eq!(stdout(command).await, "a b.$HOME.");
}

#[tokio::test]
async fn the_environment_is_exactly_what_was_given() {
    let variables = [("B", "2"), ("A", ""), ("C", "x y")].map(|(name, value)| (name.into(), value.into()));
    let exact = Environment::Exactly(variables.into());
    let command = Command::new("env", ["-u", "none"]).environment(exact.clone());
    assert_eq!(stdout(command).await, "A=\nB=2\nC=x y\n");
    // The search is along our PATH, not the command's.
    let elsewhere = Environment::Exactly([("PATH".into(), "/nowhere".into())].into());
    assert_eq!(
        stdout(Command::new("env", [""; 0]).environment(elsewhere)).await,
        "PATH=/nowhere\n"
    );
    // Who inherits ours gets the same PATH, whatever we were given.
    assert_eq!(stdout(sh("echo $PATH")).await, "/usr/local/bin:/usr/bin:/bin\n");
}

#[tokio::test]
async fn programs_are_found_along_absolute_entries_and_beside_the_working_directory() {
    let place = Place::new();
    place.directory("bin");
    place.write("bin/tool", "#!/bin/sh\npwd\n");
    place.chmod("bin/tool", 0o755);
    place.write("bin/data", "no program");
    let here = place.std("").canonicalize().unwrap();
    let command = Command::new("bin/tool", [""; 0]).directory(here.clone());
    assert_eq!(stdout(command).await.trim_end(), here.to_str().unwrap());

    let search = Processes::new(format!("::relative:{}", here.join("bin").display()));
    assert_eq!(search.find("tool".as_ref(), None).unwrap(), here.join("bin/tool"));
    assert!(matches!(
        search.find("data".as_ref(), None),
        Err(ProgramError::NotFound { .. })
    ));
    assert!(matches!(
        search.find("".as_ref(), None),
        Err(ProgramError::NotFound { .. })
    ));

    // The tests run in the crate's folder, where there is no program; so the relative entry leads out of it.
    let up = format!("{}bin", "../".repeat(40));
    let relative = Processes::new(&up);
    let found = relative.find("sh".as_ref(), None);
    assert!(matches!(found, Err(ProgramError::RelativeEntry { entry, .. }) if entry.to_str() == Some(&up)));
}

#[tokio::test]
async fn both_streams_are_kept_apart_and_together() {
    let text = "echo one; read x </dev/null; echo two >&2; echo three";
    let output = run(sh(text)).await.unwrap().output;
    assert_eq!(output.stdout(), b"one\nthree\n");
    assert_eq!(output.stderr(), b"two\n");
    assert_eq!(output.combined().len(), "one\ntwo\nthree\n".len());
}

#[tokio::test]
async fn pieces_are_in_the_order_in_which_they_arrived() {
    let text = "echo one; echo two >&2; sleep 0.2; echo three; exit 3";
    let mut lines = processes().start_lines(&sh(text)).await.unwrap();
    let mut seen = Vec::new();
    loop {
        match lines.next().await.unwrap() {
            LineEvent::Line(line) | LineEvent::ErrorLine(line) => seen.push(String::from_utf8(line).unwrap()),
            LineEvent::Ended(exit) => {
                assert_eq!(exit, Exit::Code(3));
                break;
            }
        }
    }
    assert_eq!(seen, ["one", "two", "three"]);
}

#[tokio::test]
async fn of_much_output_the_beginning_and_the_end_are_kept() {
    let text = "echo first; head -c 20000000 /dev/zero; echo last; head -c 300000 /dev/zero >&2";
    let finished = run(sh(text)).await.unwrap();
    let stdout = finished.output.stdout();
    assert!(stdout.starts_with(b"first\n") && stdout.ends_with(b"last\n"));
    assert!(stdout.len() < (1 << 20) + 100, "{}", stdout.len());
    assert_eq!(finished.output.stderr().len(), 300_000);
    let left_out = 20_000_011 - (1 << 20);
    assert_eq!(finished.output.written_and_left_out(), (20_300_011, left_out));
    let whole = run(sh(text).most_output(30_000_000)).await.unwrap();
    assert_eq!(whole.output.stdout().len(), 20_000_011);
}

#[tokio::test]
async fn a_descendant_that_keeps_the_pipe_is_not_waited_for() {
    let begin = Instant::now();
    let output = stdout(sh("sleep 1000 & echo $!")).await;
    assert!(begin.elapsed() < Duration::from_secs(100));
    let sleeper: i32 = output.trim().parse().unwrap();
    // It lives, since nobody asked it to end.
    let sleeper = Pid::from_raw(sleeper).unwrap();
    rustix::process::kill_process(sleeper, rustix::process::Signal::KILL).unwrap();

    let begin = Instant::now();
    let output = stdout(sh("yes & echo $!; kill -STOP $! ; kill -CONT $!")).await;
    assert!(begin.elapsed() < Duration::from_secs(100));
    // Whoever writes into the abandoned pipe is ended by that.
    assert_ends(output.lines().find(|line| *line != "y").unwrap().parse().unwrap());
}

#[tokio::test]
async fn what_is_written_just_before_the_end_is_not_lost() {
    for _ in 0..50 {
        assert_eq!(stdout(sh("printf x")).await, "x");
    }
}

#[tokio::test]
async fn a_cancelled_command_gets_the_signal_with_its_whole_group() {
    let place = Place::new();
    let ready = place.path("ready");
    let stop = Stop {
        signal: named(Signal::all(), "SIGUSR1"),
        grace: None,
        ..Stop::default()
    };
    let token = stop.cancel.clone();
    // The shell's child prints that it was asked, and the shell ends well; the result is the cancellation.
    let child = format!("trap 'echo asked; exit' USR1; echo ready > {ready}; while :; do sleep 0.01; done");
    let text = format!("trap : USR1; ({child}) & wait; wait; exit 0");
    let running = tokio::spawn(async move { processes().run(&sh(&text), &stop).await });
    wait_for_file(ready.as_path()).await;
    token.cancel();
    match running.await.unwrap() {
        Err(RunError::Cancelled { output }) => assert_eq!(output.stdout(), b"asked\n"),
        other => panic!("{other:?}"),
    }
}

/// Waits for a file by its watch.
async fn wait_for_file(path: &std::path::Path) {
    use setpoint_host::files::AbsolutePath;
    use setpoint_host::watch::{Depth, Follow, WatchEvent, WatchHub, WatchToken};
    let hub = WatchHub::new().unwrap();
    let changed = std::sync::Arc::new(tokio::sync::Notify::new());
    let told = changed.clone();
    let subscriber = hub.subscribe(std::sync::Arc::new(move |_: &[WatchEvent]| told.notify_one()));
    let watched = AbsolutePath::new(path).unwrap();
    let _handle = subscriber
        .watch(&watched, Depth::Entry, Follow::Link, WatchToken(1))
        .unwrap();
    while std::fs::metadata(path).map_or(0, |found| found.len()) == 0 {
        tokio::time::timeout(Duration::from_secs(10), changed.notified())
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_command_that_ignores_the_signal_is_killed_after_the_grace() {
    let place = Place::new();
    let ready = place.path("ready");
    let stop = Stop {
        grace: Some(Duration::from_millis(50)),
        ..Stop::default()
    };
    let token = stop.cancel.clone();
    let text = format!("trap '' TERM; sleep 1000 & echo $! > {ready}; wait");
    let running = tokio::spawn(async move { processes().run(&sh(&text), &stop).await });
    wait_for_file(ready.as_path()).await;
    token.cancel();
    assert!(matches!(running.await.unwrap(), Err(RunError::Cancelled { .. })));
    assert_ends(place.read("ready").trim().parse().unwrap());
}

#[tokio::test]
async fn an_interrupt_kills_at_once() {
    let place = Place::new();
    let ready = place.path("ready");
    let stop = Stop::default();
    let token = stop.interrupt.clone();
    let text = format!("trap '' TERM; sleep 1000 & echo $! > {ready}; wait");
    let running = tokio::spawn(async move { processes().run(&sh(&text), &stop).await });
    wait_for_file(ready.as_path()).await;
    token.cancel();
    assert!(matches!(
        running.await.unwrap(),
        Err(RunError::Interrupted { .. })
    ));
    assert_ends(place.read("ready").trim().parse().unwrap());
}

#[tokio::test]
async fn what_was_stopped_before_the_start_is_not_started() {
    let place = Place::new();
    let touch = Command::new("touch", [place.std("made")]);
    let stop = Stop::default();
    stop.cancel.cancel();
    assert!(matches!(
        processes().run(&touch, &stop).await,
        Err(RunError::Cancelled { .. })
    ));
    stop.interrupt.cancel();
    assert!(matches!(
        processes().run(&touch, &stop).await,
        Err(RunError::Interrupted { .. })
    ));
    assert_eq!(place.names(""), Vec::<String>::new());
}

#[tokio::test]
async fn giving_up_the_future_kills_the_group() {
    let place = Place::new();
    let ready = place.path("ready");
    let text = format!("trap '' TERM HUP; sleep 1000 & echo $! > {ready}; wait");
    let running = tokio::spawn(async move { run(sh(&text)).await });
    wait_for_file(ready.as_path()).await;
    running.abort();
    running.await.unwrap_err();
    assert_ends(place.read("ready").trim().parse().unwrap());
}

#[tokio::test]
async fn credentials_come_with_the_groups_that_are_given_and_no_others() {
    if !is_root() {
        return;
    }
    let identity = || Command::new("id", [""; 0]).directory(PathBuf::from("/"));
    assert_eq!(
        stdout(identity().credentials(54321, 54322)).await,
        "uid=54321 gid=54322 groups=54322\n"
    );
    assert_eq!(
        stdout(identity().credentials(54321, 54322).groups([54323, 54324])).await,
        "uid=54321 gid=54322 groups=54322,54323,54324\n"
    );
    let user_only = stdout(identity().credentials(54321, None)).await;
    assert!(
        user_only.starts_with("uid=54321 gid=0(root) groups=0(root)"),
        "{user_only}"
    );
    let group_only = stdout(identity().credentials(None, 54322)).await;
    assert!(
        group_only.starts_with("uid=0(root) gid=54322 groups=54322"),
        "{group_only}"
    );
    // Our own are no change.
    assert!(
        stdout(identity().credentials(0, 0))
            .await
            .starts_with("uid=0(root) gid=0(root)")
    );
}

/// What the kernel says of a process, by the name of the line in its `status`.
async fn status_of(command: Command, wanted: &str) -> String {
    let text = stdout(command).await;
    let line = text.lines().find(|line| line.starts_with(wanted)).unwrap();
    line.split_once(':').unwrap().1.trim().to_owned()
}

#[tokio::test]
async fn a_command_has_a_session_of_its_own_and_no_descriptor_of_ours() {
    // Not closed by exec, like what a shell hands on with `9<file`.
    let secret = std::fs::File::open("/etc/passwd").unwrap();
    let inherited = rustix::io::fcntl_setfd(&secret, rustix::io::FdFlags::empty());
    inherited.unwrap();
    // The fourth is of the directory that is being read.
    assert_eq!(
        stdout(Command::new("ls", ["/proc/self/fd"])).await,
        "0\n1\n2\n3\n"
    );
    assert_eq!(stdout(sh("readlink /proc/self/fd/0")).await, "/dev/null\n");
    let ids = stdout(sh("echo $$; cut -d' ' -f5,6 /proc/$$/stat")).await;
    let (process, group_and_session) = ids.trim().split_once('\n').unwrap();
    assert_eq!(group_and_session, format!("{process} {process}"));
}

#[tokio::test]
async fn other_credentials_can_gain_no_rights() {
    let status = || Command::new("cat", ["/proc/self/status"]).directory(PathBuf::from("/"));
    assert_eq!(status_of(status(), "NoNewPrivs").await, "0");
    if is_root() {
        assert_eq!(
            status_of(status().credentials(54321, 54322), "NoNewPrivs").await,
            "1"
        );
    }
}

#[tokio::test]
async fn limits_hold_and_those_that_we_are_under_are_not_lifted() {
    let limits = [(Limit::Files, 20), (Limit::Core, 0)];
    let text = "ulimit -n; ulimit -c";
    assert_eq!(stdout(sh(text).limits(limits.into())).await, "20\n0\n");
    let more = [(Limit::Files, u64::MAX - 1)];
    let own = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    let own = own.map_or("unlimited".to_owned(), |own| own.to_string());
    assert_eq!(stdout(sh("ulimit -n").limits(more.into())).await.trim(), own);
    let written = run(
        sh("head -c 100000 /dev/zero > /tmp/$$; code=$?; rm /tmp/$$; exit $code")
            .limits([(Limit::FileSize, 1000)].into()),
    );
    assert!(!written.await.unwrap().exit.is_success());
}

#[tokio::test]
async fn capabilities_are_those_that_are_given_and_no_others() {
    if !is_root() {
        return;
    }
    let kept = named(Capability::all(), "CAP_NET_BIND_SERVICE");
    let status = || {
        Command::new("cat", ["/proc/self/status"])
            .directory(PathBuf::from("/"))
            .capabilities(Some(vec![kept]))
    };
    for command in [status(), status().credentials(54321, 54322)] {
        for set in ["CapEff", "CapPrm", "CapBnd"] {
            assert_eq!(status_of(command.clone(), set).await, "0000000000000400", "{set}");
        }
    }
    let none = sh("chown 1:1 /tmp").capabilities(Some(Vec::new()));
    assert!(!run(none).await.unwrap().exit.is_success());
}

#[tokio::test]
async fn a_library_of_the_command_is_not_loaded_with_our_rights() {
    // The loader would complain about a library that is not there, already in the launcher.
    let variables = [("LD_PRELOAD".into(), "/no/such/library.so".into())];
    let command = sh("echo x").environment(Environment::Exactly(variables.into()));
    let finished = run(command).await.unwrap();
    let complaints = finished.output.stderr();
    assert_eq!(
        String::from_utf8_lossy(&complaints)
            .matches("/no/such/library.so")
            .count(),
        1
    );
}

#[tokio::test]
async fn lines_are_events() {
    let text = "printf 'a\\n\\nb'; sleep 0.05; printf 'c\\nlast'; printf 'oops\\n' >&2";
    let mut lines = processes().start_lines(&sh(text)).await.unwrap();
    let mut events = Vec::new();
    let exit = loop {
        match lines.next().await.unwrap() {
            LineEvent::Ended(exit) => break exit,
            event => events.push(event),
        }
    };
    assert_eq!(exit, Exit::Code(0));
    assert_eq!(lines.next().await.unwrap(), LineEvent::Ended(exit));
    let printed: Vec<_> = events
        .iter()
        .filter(|event| matches!(event, LineEvent::Line(_)))
        .collect();
    let expected = [b"a".to_vec(), Vec::new(), b"bc".to_vec(), b"last".to_vec()].map(LineEvent::Line);
    assert_eq!(printed, expected.iter().collect::<Vec<_>>());
    assert!(events.contains(&LineEvent::ErrorLine(b"oops".to_vec())));
}

#[tokio::test]
async fn a_chatty_standard_error_blocks_nothing_and_long_lines_are_cut() {
    let text = "head -c 1000000 /dev/zero >&2; head -c 1000000 /dev/zero | tr '\\0' x; echo; echo end";
    let mut lines = processes().start_lines(&sh(text)).await.unwrap();
    let mut printed = Vec::new();
    while let event @ (LineEvent::Line(_) | LineEvent::ErrorLine(_)) = lines.next().await.unwrap() {
        if let LineEvent::Line(line) = event {
            printed.push(line);
        }
    }
    assert_eq!(printed, [vec![b'x'; 64 * 1024], b"end".to_vec()]);
}

#[tokio::test]
async fn a_running_command_is_stopped_by_signal_or_by_force() {
    for (text, grace, expected) in [
        (
            "trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done",
            None,
            Exit::Code(7),
        ),
        (
            "trap '' TERM; echo ready; while :; do sleep 0.01; done",
            Some(Duration::from_millis(50)),
            Exit::Signal(9),
        ),
    ] {
        let mut lines = processes().start_lines(&sh(text)).await.unwrap();
        assert_eq!(lines.next().await.unwrap(), LineEvent::Line(b"ready".to_vec()));
        assert_eq!(lines.stop(Signal::TERM, grace).await.unwrap(), expected);
    }
}

#[tokio::test]
async fn dropping_a_running_command_kills_its_group() {
    let mut lines = processes()
        .start_lines(&sh("sleep 1000 & echo $!; wait"))
        .await
        .unwrap();
    let LineEvent::Line(line) = lines.next().await.unwrap() else {
        panic!("no line")
    };
    drop(lines);
    assert_ends(String::from_utf8(line).unwrap().parse().unwrap());
}

#[tokio::test]
async fn a_conversation_goes_both_ways_over_standard_output() {
    let mut echo = processes().start_conversation(&sh("exec cat <&1")).await.unwrap();
    for frame in [&b"hello"[..], b"", &[b'x'; 100_000]] {
        echo.send(frame, None).await.unwrap();
        assert_eq!(echo.receive(100_000, None).await.unwrap(), frame);
    }
    echo.send(b"hello", None).await.unwrap();
    let refused = echo.receive(4, None).await;
    assert!(
        matches!(refused, Err(ConversationError::TooLong(5))),
        "{refused:?}"
    );
    echo.close().await;
}

#[tokio::test]
async fn a_conversation_ends_with_the_time_or_the_command() {
    let soon = || Some(tokio::time::Instant::now() + Duration::from_millis(20));
    for text in ["sleep 1000", "while :; do echo talks and talks >&2; done"] {
        let mut silent = processes().start_conversation(&sh(text)).await.unwrap();
        let ended = silent.receive(1000, soon()).await;
        assert!(
            matches!(ended, Err(ConversationError::TimedOut)),
            "{text}: {ended:?}"
        );
    }
    let mut deaf = processes().start_conversation(&sh("sleep 1000")).await.unwrap();
    let ended = deaf.send(&vec![0; 32 << 20], soon()).await;
    assert!(matches!(ended, Err(ConversationError::TimedOut)), "{ended:?}");
    let mut dead = processes()
        .start_conversation(&sh("echo alas >&2; exit 3"))
        .await
        .unwrap();
    match dead.receive(1000, None).await {
        Err(ConversationError::Ended { exit, said }) => {
            assert_eq!((exit, said.as_slice()), (Some(Exit::Code(3)), &b"alas\n"[..]));
        }
        other => panic!("{other:?}"),
    }
}

fn named<T>(all: impl IntoIterator<Item = (&'static str, T)>, name: &str) -> T {
    let found = all.into_iter().find(|(known, _)| *known == name);
    found.unwrap().1
}
