//! Commands that programs run, with the real binary: when they run, what they inherit, and what is left of them.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use setpoint_testing::{Finished, Hermetic, Running};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

/// `setpoint run` of a program, with its state below the place.
fn command(place: &Hermetic, program: &str, arguments: &[&str]) -> Command {
    let program = place.write("p.mcl", program);
    let mut command = place.command(BINARY);
    command.args(["run", "--no-raise-limits", "--state-dir"]);
    command.arg(place.path("prefix")).args(arguments).arg(program);
    command
}

fn once(place: &Hermetic, program: &str) -> Finished {
    let program = place.write("p.mcl", program).display().to_string();
    let prefix = place.path("prefix").display().to_string();
    let arguments = [
        "run",
        "--once",
        "--no-raise-limits",
        "--state-dir",
        &prefix,
        &program,
    ];
    place.run(BINARY, &arguments)
}

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).unwrap_or_default().lines().count()
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Waits until something holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "{what} does not come true");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn lives(process: &str) -> bool {
    // A process that has ended and was not waited for yet is no more.
    let status = std::fs::read_to_string(format!("/proc/{process}/stat"));
    status.is_ok_and(|status| !status.contains(") Z "))
}

#[test]
fn a_notification_runs_it_and_one_that_only_reloads_waits_for_it() {
    let place = Hermetic::new();
    let (config, always, reloads) = (place.path("config"), place.path("always"), place.path("reloads"));
    let program = format!(
        r#"
file "{config}" {{
	content => "right\n",
	Notify => Exec["always"],
	Notify => Exec["reload"],
}}
exec "always" {{
	cmd => "echo ran >> {always}",
	shell => "/bin/sh",
}}
exec "reload" {{
	cmd => "echo ran >> {reloads}",
	shell => "/bin/sh",
	refresh_only => true,
}}
"#,
        config = config.display(),
        always = always.display(),
        reloads = reloads.display()
    );
    let first = once(&place, &program);
    assert_eq!(first.code, 0, "{}", first.stderr);
    assert_eq!((lines(&always), lines(&reloads)), (1, 1));
    // Nothing has changed: what has no guard runs once at each start, and what only reloads does not.
    let second = once(&place, &program);
    assert_eq!(
        (second.code, lines(&always), lines(&reloads)),
        (0, 2, 1),
        "{}",
        second.stderr
    );

    let running = Running::start(command(&place, &program, &[]));
    until("the start", || lines(&always) == 3);
    std::fs::write(&config, "wrong\n").unwrap();
    until("a reload", || lines(&reloads) == 2 && lines(&always) == 4);
    running.signal("TERM");
    let (status, errors) = running.finish();
    assert_eq!(status.code(), Some(0), "{errors}");
    assert_eq!((lines(&always), lines(&reloads)), (4, 2));
}

#[test]
fn a_notification_that_a_guard_refuses_is_a_failure_and_is_served_when_the_guard_agrees() {
    for guard in [
        "ifcmd => \"echo line 5 is wrong; grep -q good CONFIG\",\n\tifshell => \"/bin/sh\",",
        "nifcmd => \"echo line 5 is wrong; grep -q broken CONFIG\",\n\tnifshell => \"/bin/sh\",",
        "ifcmd => \"grep broken CONFIG; true\",\n\tifshell => \"/bin/sh\",\n\tifequals => \"broken\\n\",",
    ] {
        let place = Hermetic::new();
        let (config, reloads) = (place.path("config"), place.path("reloads"));
        let program = |content: &str| {
            let guard = guard.replace("CONFIG", &config.display().to_string());
            format!(
                "file \"{}\" {{\n\tcontent => \"{content}\\n\",\n\tNotify => Exec[\"reload\"],\n}}\n\
                 exec \"reload\" {{\n\tcmd => \"echo ran >> {}\",\n\tshell => \"/bin/sh\",\n\t{guard}\n\
                 \trefresh_only => true,\n}}\n",
                config.display(),
                reloads.display()
            )
        };
        // The second run has the notification of the first.
        for _ in 0..2 {
            let refused = once(&place, &program("broken"));
            assert_eq!(
                (refused.code, lines(&reloads)),
                (1, 0),
                "{guard}: {}",
                refused.stderr
            );
            let told = [
                "failed to run, as file[$DIR/config] asks: its guard",
                "the notification stays pending",
                "failed: exec[reload]",
            ];
            for wanted in told {
                assert!(
                    refused.stderr.contains(wanted),
                    "{guard}: {wanted}: {}",
                    refused.stderr
                );
            }
        }
        // The file is corrected by hand, and the program too: nothing is repaired, and the notification is still served.
        std::fs::write(&config, "good\n").unwrap();
        for _ in 0..2 {
            let served = once(&place, &program("good"));
            assert_eq!(
                (served.code, lines(&reloads)),
                (0, 1),
                "{guard}: {}",
                served.stderr
            );
        }
    }
}

#[test]
fn a_notification_that_goes_with_a_temporary_directory_is_reported() {
    let place = Hermetic::new();
    let config = place.path("config").display().to_string();
    let program = format!(
        "file \"{config}\" {{\n\tcontent => \"new\\n\",\n\tNotify => Exec[\"reload\"],\n}}\n\
         exec \"reload\" {{\n\tcmd => \"true\",\n\tshell => \"/bin/sh\",\n\trefresh_only => true,\n}}\n"
    );
    let blocked = program.replace("refresh_only", "Depend => Exec[\"unrelated\"],\n\trefresh_only")
        + "exec \"unrelated\" {\n\tcmd => \"false\",\n\tshell => \"/bin/sh\",\n\tMeta:retry => 0,\n}\n";
    let forgotten = "1 notification is forgotten with the temporary state directory: exec[reload]";
    for (program, tells) in [(blocked, true), (program, false)] {
        let program = place.write("p.mcl", &program).display().to_string();
        let finished = place.run(
            BINARY,
            &["run", "--once", "--tmp-state-dir", "--no-raise-limits", &program],
        );
        assert_eq!(finished.stderr.contains(forgotten), tells, "{}", finished.stderr);
        std::fs::remove_file(&config).unwrap();
    }
}

#[test]
fn a_command_has_no_terminal_to_push_into() {
    let place = Hermetic::new();
    let found = place.path("found");
    // With a controlling terminal, whoever has it open may push input that the shell that started us would read.
    let program = format!(
        r#"
exec "look" {{
	cmd => "(: </dev/tty) 2>/dev/null && echo terminal > {0} || echo none > {0}; readlink /proc/self/fd/0 >> {0}",
	shell => "/bin/sh",
}}
"#,
        found.display()
    );
    let inner = command(&place, &program, &["--once"]);
    let words: Vec<String> = std::iter::once(inner.get_program())
        .chain(inner.get_args())
        .map(|word| format!("'{}'", word.to_string_lossy()))
        .collect();
    let mut terminal = place.command("script");
    terminal.args(["--quiet", "--return", "--command", &words.join(" "), "/dev/null"]);
    let output = terminal.output().expect("`script` is there");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert_eq!(text(&found), "none\n/dev/null\n");
}

#[test]
fn a_descriptor_that_we_were_started_with_is_not_handed_on() {
    let place = Hermetic::new();
    let (secret, found) = (place.write("secret", "hunter2\n"), place.path("found"));
    let program = format!(
        "exec \"look\" {{\n\tcmd => \"cat <&9 > {0}; ls /proc/self/fd | tr '\\\\n' ' ' >> {0}\",\n\tshell => \"/bin/bash\",\n}}\n",
        found.display()
    );
    let inner = command(&place, &program, &["--once"]);
    let mut shell = place.command("/bin/bash");
    shell.args(["-c", "exec 9<\"$0\"; \"$@\""]).arg(secret);
    shell.arg(inner.get_program()).args(inner.get_args());
    let output = shell.output().expect("there is a shell");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let found = text(&found);
    assert!(!found.contains("hunter2") && !found.contains('9'), "{found}");
}

#[test]
fn without_repairs_who_receives_its_output_is_looked_at_once() {
    let place = Hermetic::new();
    let file = place.path("file");
    let program = format!(
        "exec \"say\" {{\n\tcmd => \"/bin/echo hello\",\n}}\nfile \"{0}\" {{\n\tstate => \"exists\",\n}}\nExec[\"say\"].stdout -> File[\"{0}\"].content\n",
        file.display()
    );
    let output = command(&place, &program, &["--once", "--noop", "--json"]).output();
    let output = output.expect("the program can be started");
    let events = String::from_utf8_lossy(&output.stdout).into_owned();
    let of_file = |line: &&str| line.contains("\"kind\":\"file\"");
    let runs = events
        .lines()
        .filter(of_file)
        .filter(|line| line.contains("\"started run\""));
    assert_eq!(runs.count(), 1, "{events}");
    assert!(!file.exists());
}

/// The process that ends the commands of a program when the program no longer can.
fn guardian(program: u32) -> Option<i32> {
    let children = std::fs::read_dir(format!("/proc/{program}/task")).ok()?;
    let children =
        children.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok());
    let children: String = children.collect();
    children
        .split_whitespace()
        .find(|child| text(Path::new(&format!("/proc/{child}/comm"))).trim() == "setpoint-guard")
        .and_then(|child| child.parse().ok())
}

#[test]
fn no_command_outlives_a_killed_program() {
    let place = Hermetic::new();
    let (own, system) = (place.path("own"), place.path("system"));
    // Each has a child that the shell waits for: the end of the shell alone would leave it behind.
    let sleeper = |file: &Path| {
        format!(
            "sleep 1000 & echo $$ $! > {0}.new; mv {0}.new {0}; wait; true",
            file.display()
        )
    };
    let program = format!(
        r#"
import "os"
exec "sleep" {{
	cmd => "{}",
	shell => "/bin/sh",
}}
test "system" {{
	anotherstr => os.system("echo started; {}"),
}}
"#,
        sleeper(&own),
        sleeper(&system)
    );
    let running = Running::start(command(&place, &program, &[]));
    until("both commands", || own.exists() && system.exists());
    let processes = format!("{} {}", text(&own), text(&system));
    // Also where the guardian was killed before.
    let first = guardian(running.id()).expect("commands are guarded");
    let pid = rustix::process::Pid::from_raw(first).expect("a process is not 0");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it is ours");
    until("another guardian", || {
        guardian(running.id()).is_some_and(|now| now != first)
    });
    running.signal("KILL");
    for process in processes.split_whitespace() {
        until("the end of a command", || !lives(process));
    }
}

/// The most memory that a process has had, in bytes.
fn peak(process: u32) -> u64 {
    let status = text(Path::new(&format!("/proc/{process}/status")));
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.expect("a process has a peak") * 1024
}

#[test]
fn much_output_takes_little_memory_and_disk() {
    let place = Hermetic::new();
    let (done, newest) = (place.path("done"), place.path("newest"));
    let program = format!(
        r#"
import "os"
exec "much" {{
	cmd => "yes | head -c 200000000; yes | head -c 100000000 >&2",
	shell => "/bin/sh",
	donecmd => "/usr/bin/touch {}",
}}
file "{}" {{
	content => os.system("yes | tr -d '\\n' | head -c 200000000; echo; echo done; exec sleep 1000"),
}}
"#,
        done.display(),
        newest.display()
    );
    let running = Running::start(command(&place, &program, &[]));
    until("the end of both commands", || {
        done.exists() && text(&newest) == "done"
    });
    let peak = peak(running.id());
    assert!(peak < 150_000_000, "{peak} bytes");
    running.signal("TERM");
    let (status, errors) = running.finish();
    assert_eq!(status.code(), Some(0), "{errors}");
    let disk = Command::new("du").arg("-sk").arg(place.path("prefix")).output();
    let disk = String::from_utf8_lossy(&disk.expect("there is `du`").stdout).into_owned();
    let kilobytes = disk
        .split_whitespace()
        .next()
        .and_then(|count| count.parse::<u64>().ok());
    assert!(kilobytes.is_some_and(|kilobytes| kilobytes < 5_000), "{disk}");
}

#[test]
fn another_user_runs_it_with_its_own_groups_and_can_gain_no_rights() {
    if !is_root() {
        eprintln!("left out: only root may act for others");
        return;
    }
    let place = Hermetic::new();
    let found = place.write("found", "");
    let program = format!(
        "exec \"look\" {{\n\tcmd => \"id -u; id -g; id -G; grep NoNewPrivs /proc/self/status\",\n\tshell => \"/bin/sh\",\n\tuser => \"nobody\",\n\tcwd => \"/\",\n}}\nfile \"{}\" {{\n\tcontent => \"\",\n}}\nExec[\"look\"].stdout -> File[\"{0}\"].content\n",
        found.display()
    );
    let finished = once(&place, &program);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let nogroup = "65534\n65534\n65534\nNoNewPrivs:\t1\n";
    assert_eq!(text(&found), nogroup);
}

#[test]
fn few_descriptors_make_commands_wait_for_each_other() {
    let place = Hermetic::new();
    let commands = |number: usize| format!("exec \"{number}\" {{\n\tcmd => \"/bin/sleep 0.3\",\n}}\n");
    let program: String = (0..40).map(commands).collect();
    let inner = command(&place, &program, &["--once"]);
    let mut shell = place.command("/bin/sh");
    shell.args(["-c", "ulimit -n 128; exec \"$0\" \"$@\""]);
    shell.arg(inner.get_program()).args(inner.get_args());
    let output = shell.output().expect("there is a shell");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(!errors.contains("Too many open files"), "{errors}");
}
