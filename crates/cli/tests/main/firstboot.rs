//! `setpoint firstboot`: scripts that run once.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use setpoint_testing::{Hermetic, Running};

use crate::end_to_end::text;
use setpoint_testing::place::{Place, shell};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

/// How long anything may take before a test gives up.
const LIMIT: Duration = Duration::from_secs(60);

/// A command that runs the scripts of a place.
fn start(place: &Hermetic, more: &[&str]) -> Command {
    let mut command = place.command(BINARY);
    let directories = [
        "--scripts-dir=scripts/",
        "--logging-dir=logs/",
        "--lock-file-path=lock",
    ];
    command.args(["firstboot", "start"]).args(directories).args(more);
    command
}

/// Runs them to the end: exit code, standard output, standard error.
fn run(place: &Hermetic, more: &[&str]) -> (i32, String, String) {
    let output = start(place, more).output().expect("it can be started");
    let [printed, said] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("it is text"));
    (output.status.code().unwrap_or(-1), printed, said)
}

fn with_directories() -> Hermetic {
    let place = Hermetic::new();
    for name in ["scripts", "logs"] {
        std::fs::create_dir(place.path(name)).expect("the place is writable");
    }
    place
}

/// Writes a script that may be executed.
fn script(place: &Hermetic, name: &str, body: &str) {
    let path = place.write(&format!("scripts/{name}"), format!("#!/bin/sh\n{body}\n"));
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).expect("the place is writable");
}

/// What is in a directory, by name.
fn listed(place: &Hermetic, directory: &str) -> Vec<String> {
    let entries = std::fs::read_dir(place.path(directory));
    let mut names: Vec<String> = entries
        .into_iter()
        .flatten()
        .map(|entry| {
            entry
                .expect("the directory can be read")
                .file_name()
                .into_string()
                .expect("names are text")
        })
        .collect();
    names.sort();
    names
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Scripts that succeed, fail, are kept and leave for another directory, and files that are no scripts.
fn with_scripts() -> Hermetic {
    let place = with_directories();
    let order = place.path("order").display().to_string();
    script(
        &place,
        "20-fails",
        &format!("echo two >> {order}; echo wrong >&2; exit 3"),
    );
    script(
        &place,
        "10-first",
        &format!("echo one >> {order}; echo hello; pwd"),
    );
    script(&place, "30-kept", &format!("echo three >> {order}; exit 1"));
    place.write("scripts/30-kept.yaml", "keep-on-fail: true\n");
    script(
        &place,
        "40-elsewhere",
        &format!("echo four >> {order}; echo secret"),
    );
    let elsewhere = place.path("elsewhere/").display().to_string();
    place.write(
        "scripts/40-elsewhere.yaml",
        format!("done-dir: {elsewhere}\nno-log: true\n"),
    );
    // No scripts.
    place.write("scripts/50-notes", "not executable");
    std::fs::create_dir(place.path("scripts/60-directory")).unwrap();
    std::os::unix::fs::symlink("/bin/false", place.path("scripts/70-link")).unwrap();
    place
}

#[test]
fn scripts_run_in_the_order_of_their_names_and_leave() {
    let place = with_scripts();
    let (code, printed, said) = run(&place, &[]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(text(&place.path("order")), "one\ntwo\nthree\nfour\n");
    assert_eq!(
        printed,
        "10-first: hello\n10-first: /\n20-fails: wrong\n40-elsewhere: secret\n"
    );
    for wanted in [
        "10-first: done",
        "error: 20-fails: exit status 3",
        "30-kept: is kept, and runs again at the next start",
        "50-notes is not run: its owner may not execute it",
        "70-link is not run: it is not a file",
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    assert_eq!(
        listed(&place, "scripts"),
        ["30-kept", "30-kept.yaml", "50-notes", "60-directory", "70-link"]
    );
    assert_eq!(listed(&place, "elsewhere"), ["40-elsewhere", "40-elsewhere.yaml"]);
}

#[test]
fn the_log_has_the_output_of_all_scripts_that_do_not_forbid_it() {
    let place = with_scripts();
    let (code, _, said) = run(&place, &[]);
    assert_eq!(code, 0, "{said}");
    let logs = listed(&place, "logs");
    assert_eq!(logs.len(), 1);
    assert!(
        logs[0].starts_with("setpoint-firstboot-") && logs[0].ends_with(".log"),
        "{logs:?}"
    );
    let log = text(&place.path(&format!("logs/{}", logs[0])));
    for wanted in [
        "== 10-first starts at ",
        "\nhello\n",
        "== 10-first: exit status 0\n",
        "\nwrong\n== 20-fails: exit status 3\n",
    ] {
        assert!(log.contains(wanted), "{log}");
    }
    assert!(!log.contains("secret"), "{log}");
}

#[test]
fn a_script_that_was_kept_runs_again() {
    let place = with_scripts();
    let (code, _, said) = run(&place, &[]);
    assert_eq!(code, 0, "{said}");
    script(
        &place,
        "30-kept",
        &format!("echo again >> {}", place.path("order").display()),
    );
    let (code, _, said) = run(&place, &["--done-dir=done"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(text(&place.path("order")), "one\ntwo\nthree\nfour\nagain\n");
    assert_eq!(listed(&place, "done"), ["30-kept", "30-kept.yaml"]);
    let moved = std::fs::metadata(place.path("done/30-kept")).unwrap();
    assert_eq!(moved.permissions().mode() & 0o777, 0o700);
}

#[test]
fn what_could_not_be_taken_away_or_is_said_wrongly_is_not_run() {
    let place = with_directories();
    let ran = place.path("ran").display().to_string();
    for name in ["1", "2", "3", "4"] {
        script(&place, name, &format!("echo {name} >> {ran}"));
    }
    place.write("scripts/1.yaml", "keep-on-fial: true\n");
    place.write("scripts/2.yaml", "done-dir: done/\n");
    place.write(
        "scripts/3.yaml",
        format!("done-dir: {}/x\n", place.write("file", "").display()),
    );
    let (code, _, said) = run(&place, &[]);
    assert_eq!(code, 1, "what is wrong with the place is seen: {said}");
    assert_eq!(text(&place.path("ran")), "4\n");
    for wanted in [
        "error: 1 is not run: failed to read ",
        "there is no option `keep-on-fial`\n  help: did you mean `keep-on-fail`?",
        "error: 2 is not run",
        "`done-dir`: the path is not absolute",
        "error: 3 is not run: it could not be moved to ",
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    // Where there are no scripts there is nothing to do, unless somebody says that there are.
    let (code, _, said) = run(&Hermetic::new(), &[]);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("`setpoint setup firstboot --mkdir` makes it"),
        "{said}"
    );
    // A program that is none fails as a script does.
    let place = with_directories();
    let path = place.write("scripts/none", "#!/no/such/interpreter\n");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).unwrap();
    let (code, _, said) = run(&place, &[]);
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains(
            "error: none: failed to start: its first line names `/no/such/interpreter`, which is not there"
        ),
        "{said}"
    );
    assert!(listed(&place, "scripts").is_empty());
    script(&place, "windows", "echo hello");
    let path = place.path("scripts/windows");
    std::fs::write(&path, "#!/bin/sh\r\necho hello\r\n").unwrap();
    let (_, _, said) = run(&place, &[]);
    assert!(
        said.contains("error: windows: failed to start: its lines end as on Windows"),
        "{said}"
    );
}

/// A script that hangs, with a process that it has started, and one after it.
struct Hanging {
    place: Hermetic,
    /// A file that the script makes when it starts.
    begun: PathBuf,
    /// A file with the number of the process that the script has started.
    child: PathBuf,
}

impl Hanging {
    fn new() -> Hanging {
        let place = with_directories();
        let (begun, child) = (place.path("begun"), place.path("child"));
        let next = format!("touch {}", place.path("next").display());
        script(&place, "2-next", &next);
        let hanging = Hanging { place, begun, child };
        script(&hanging.place, "1-hangs", &hanging.body());
        hanging
    }

    fn body(&self) -> String {
        format!(
            "sleep 1000 & echo $! > {}; echo begun >> {}; wait",
            self.child.display(),
            self.begun.display()
        )
    }

    /// Waits until the process that the script has started is gone.
    fn is_gone(&self) {
        let process = text(&self.child);
        wait_until("the end of what the script has started", || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", process.trim()));
            status.is_err() || status.is_ok_and(|status| status.contains("State:\tZ"))
        });
    }
}

#[test]
fn scripts_are_not_run_by_two_processes_at_once() {
    let hanging = Hanging::new();
    let running = Running::start(start(&hanging.place, &[]));
    wait_until("the script", || hanging.begun.exists());
    let (code, _, said) = run(&hanging.place, &[]);
    assert_eq!(code, 1);
    assert!(
        said.contains("error: the scripts are being run already: process "),
        "{said}"
    );
    running.signal("TERM");
    running.finish();
}

#[test]
fn a_script_that_is_stopped_ends_with_its_whole_group_and_runs_again() {
    let hanging = Hanging::new();
    let running = Running::start(start(&hanging.place, &[]));
    wait_until("the script", || hanging.begun.exists());
    running.signal("TERM");
    let (status, said) = running.finish();
    assert_eq!(status.code(), Some(143), "{said}");
    assert!(said.contains("1-hangs runs again at the next start"), "{said}");
    hanging.is_gone();
    assert_eq!(listed(&hanging.place, "scripts"), ["1-hangs", "2-next"]);
    assert!(!hanging.place.path("next").exists());
    // The lock was given back.
    script(&hanging.place, "1-hangs", "exit 0");
    let (code, _, said) = run(&hanging.place, &[]);
    assert_eq!(code, 0, "{said}");
    assert!(listed(&hanging.place, "scripts").is_empty() && hanging.place.path("next").exists());
}

#[test]
fn a_script_that_never_stops_printing_is_stopped() {
    let hanging = Hanging::new();
    script(
        &hanging.place,
        "1-hangs",
        &format!("echo begun >> {}; yes", hanging.begun.display()),
    );
    let running = Running::start(start(&hanging.place, &[]));
    wait_until("the script", || hanging.begun.exists());
    running.signal("INT");
    assert_eq!(running.finish().0.code(), Some(130));
    assert_eq!(listed(&hanging.place, "scripts"), ["1-hangs", "2-next"]);
}

#[test]
fn a_script_that_ignores_the_signal_is_killed() {
    let hanging = Hanging::new();
    script(
        &hanging.place,
        "1-hangs",
        &format!("trap '' TERM; {}; wait; wait", hanging.body()),
    );
    let mut running = Running::start(start(&hanging.place, &[]));
    wait_until("the script", || hanging.begun.exists());
    running.signal("TERM");
    running.signal("TERM");
    running.drain();
    assert_eq!(running.finish().0.code(), Some(143));
    hanging.is_gone();
}

#[test]
fn a_script_is_not_done_when_setpoint_is_killed() {
    let hanging = Hanging::new();
    let running = Running::start(start(&hanging.place, &[]));
    wait_until("the script", || hanging.begun.exists());
    running.signal("KILL");
    running.finish();
    hanging.is_gone();
    assert_eq!(listed(&hanging.place, "scripts"), ["1-hangs", "2-next"]);
}

#[test]
fn scripts_run_when_the_machine_comes_up() {
    let test = "firstboot::scripts_run_when_the_machine_comes_up";
    Place::machine(test).needing(&["journalctl"]).run(|| {
        let place = Hermetic::new();
        let binary = format!("--binary-path={BINARY}");
        let setup = |more: &[&str]| {
            let output = place.command(BINARY).args(["setup", "firstboot", &binary]).args(more).output();
            let output = output.unwrap();
            (output.status.code(), String::from_utf8(output.stderr).unwrap())
        };
        let (code, said) = setup(&["--mkdir", "--install", "--enable", "--done-dir=/srv/done scripts/"]);
        assert_eq!(code, Some(0), "{said}");
        for wanted in [
            "made /var/lib/setpoint/firstboot/\n",
            "made /srv/done scripts/\n",
            "wrote /etc/systemd/system/setpoint-firstboot.service\n",
            "enabled setpoint-firstboot.service\n",
        ] {
            assert!(said.contains(wanted), "{said}");
        }
        let unit = "/etc/systemd/system/setpoint-firstboot.service";
        assert!(text(Path::new(unit)).contains(&format!(
            "\nExecStart={BINARY} firstboot start \"--done-dir=/srv/done scripts/\"\n"
        )));
        let verified = shell(&format!("systemd-analyze verify {unit} 2>&1 || true"));
        assert!(!verified.contains("setpoint-firstboot"), "{verified}");
        std::fs::write("/var/lib/setpoint/firstboot/10-greet", "#!/bin/sh\necho welcome > /srv/greeting\necho greeted\n").unwrap();
        shell("chmod 700 /var/lib/setpoint/firstboot/10-greet");
        // What is wanted when the machine has come up is started, as it is at a boot.
        shell("systemctl start multi-user.target");
        wait_until("the end of the scripts", || {
            shell("systemctl show setpoint-firstboot -P ActiveState") == "active"
        });
        assert_eq!(text(Path::new("/srv/greeting")), "welcome\n");
        assert!(Path::new("/srv/done scripts/10-greet").exists());
        assert!(!Path::new("/var/lib/setpoint/firstboot/10-greet").exists());
        wait_until("the log", || {
            shell("journalctl -u setpoint-firstboot --no-pager").contains("10-greet: greeted")
        });
        assert_eq!(shell("cat /root/setpoint-firstboot-*.log | grep -c '^greeted$'"), "1");
        // A directory from which nothing can be taken away.
        std::fs::write("/var/lib/setpoint/firstboot/20-again", "#!/bin/sh\necho again >> /srv/greeting\n").unwrap();
        shell("chmod 700 /var/lib/setpoint/firstboot/20-again");
        shell("mount --bind /var/lib/setpoint/firstboot /var/lib/setpoint/firstboot; mount -o remount,bind,ro /var/lib/setpoint/firstboot");
        let output = place.command(BINARY).args(["firstboot", "start"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1));
        assert!(said.contains("scripts that have run could not be taken away from /var/lib/setpoint/firstboot/: Read-only file system"), "{said}");
        assert_eq!(text(Path::new("/srv/greeting")), "welcome\n");
        shell("umount /var/lib/setpoint/firstboot");
        // Stopped by the service manager in the midst of a script, which then runs at the next start.
        std::fs::write("/var/lib/setpoint/firstboot/20-again", "#!/bin/sh\ntouch /srv/begun\nsleep 1000\n").unwrap();
        shell("systemctl restart --no-block setpoint-firstboot");
        wait_until("the script", || Path::new("/srv/begun").exists());
        shell("systemctl stop setpoint-firstboot");
        assert!(Path::new("/var/lib/setpoint/firstboot/20-again").exists());
    });
}
