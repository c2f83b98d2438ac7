//! A service: what the service manager and the system's log are told, with a socket of our own, and with the real ones.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use setpoint_testing::{Hermetic, Running, repository};

use crate::end_to_end::{run_command, text};
use setpoint_testing::place::{Place, shell};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

/// How long anything may take before a test gives up.
const LIMIT: Duration = Duration::from_secs(60);

/// What a service manager hears.
struct Manager(UnixDatagram);

impl Manager {
    /// Waits for lines that hold something.
    fn hears(&self, wanted: &str) -> String {
        let mut seen = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            match self.0.recv(&mut buffer) {
                Ok(length) => {
                    let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
                    if text.contains(wanted) {
                        return text;
                    }
                    seen.push(text);
                }
                Err(error) => panic!("no `{wanted}`: {error}; heard {seen:?}"),
            }
        }
    }
}

fn managed(place: &Hermetic, arguments: &[&str]) -> (Manager, Running) {
    let path = place.path("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket can be made");
    socket
        .set_read_timeout(Some(LIMIT))
        .expect("it takes a time limit");
    let mut command = run_command(place, arguments);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "200000");
    (Manager(socket), Running::start(command))
}

#[test]
fn the_service_manager_is_told_what_it_asks_for() {
    let place = Hermetic::new();
    let file = place.path("file").display().to_string();
    let program = format!("file \"{file}\" {{\n\tcontent => \"right\\n\",\n}}\n");
    let main = place.write("main.mcl", &program);
    let (manager, running) = managed(&place, &[main.to_str().unwrap()]);
    assert_eq!(manager.hears("READY=1"), "READY=1", "before anything else");
    assert_eq!(manager.hears("STATUS=right"), "STATUS=right: 1 resource");
    manager.hears("WATCHDOG=1");
    // A new program, and one that is wrong: both are an end of reading it again.
    std::fs::write(&main, program.replace("right", "new")).unwrap();
    running.signal("HUP");
    let reloading = manager.hears("RELOADING=1");
    let at = reloading
        .lines()
        .find_map(|line| line.strip_prefix("MONOTONIC_USEC="));
    assert!(
        at.is_some_and(|at| at.parse::<u64>().is_ok_and(|at| at > 0)),
        "{reloading}"
    );
    manager.hears("READY=1");
    std::fs::write(&main, "wrong").unwrap();
    running.signal("HUP");
    manager.hears("RELOADING=1");
    manager.hears("READY=1");
    manager.hears("STATUS=the newest program is wrong and not in use; ");
    // What is stopped by somebody does not say that it is alive.
    running.signal("STOP");
    manager
        .0
        .set_read_timeout(Some(Duration::from_millis(600)))
        .unwrap();
    let mut buffer = [0; 4096];
    while manager.0.recv(&mut buffer).is_ok() {}
    manager.0.set_read_timeout(Some(LIMIT)).unwrap();
    running.signal("CONT");
    manager.hears("WATCHDOG=1");
    running.signal("TERM");
    manager.hears("STOPPING=1");
    assert_eq!(running.finish().0.code(), Some(0));
}

#[test]
fn nothing_is_ready_before_the_first_graph() {
    let place = Hermetic::new();
    let main = place.write(
        "main.mcl",
        "import \"os\"\nfile \"/proc/no/such\" {\n\tcontent => \"x\",\n}\n",
    );
    let (manager, running) = managed(&place, &[main.to_str().unwrap()]);
    manager.hears("READY=1");
    manager.hears("STATUS=wrong: 1 failing");
    running.signal("TERM");
    running.finish();
    std::fs::remove_file(place.path("notify")).unwrap();
    // Without a program there is nothing to wait for.
    let (manager, running) = managed(&place, &["empty"]);
    assert_eq!(manager.hears("READY=1"), "READY=1\nSTATUS=no program");
    running.signal("TERM");
    running.finish();
    // What is wrong from the beginning is never ready.
    std::fs::remove_file(place.path("notify")).unwrap();
    let (manager, running) = managed(&place, &["$x = $y"]);
    assert_eq!(running.finish().0.code(), Some(1));
    manager.0.set_nonblocking(true).unwrap();
    assert!(manager.0.recv(&mut [0; 64]).is_err());
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !holds() {
        let journal = shell("journalctl -u setpoint --no-pager | tail -40");
        assert!(Instant::now() < deadline, "not in time: {what}\n{journal}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Whether a shell command succeeds.
fn succeeds(command: &str) -> bool {
    let status = std::process::Command::new("/bin/sh")
        .args(["-c", command])
        .status();
    status.is_ok_and(|status| status.success())
}

#[test]
fn the_shipped_unit_runs_reloads_logs_and_restarts_the_service() {
    let test = "service::the_shipped_unit_runs_reloads_logs_and_restarts_the_service";
    Place::machine(test).needing(&["journalctl"]).run(|| {
        let program = "file \"/srv/motd\" {\n\tcontent => \"welcome\\n\",\n}\n";
        std::fs::create_dir_all("/etc/setpoint").unwrap();
        std::fs::write("/etc/setpoint/main.mcl", program).unwrap();
        let unit = text(&repository().join("packaging/setpoint.service"));
        std::fs::write("/etc/systemd/system/setpoint.service", unit).unwrap();
        shell(&format!("ln -sf {BINARY} /usr/local/bin/setpoint"));
        let verified = shell("systemd-analyze verify /etc/systemd/system/setpoint.service 2>&1 || true");
        assert!(!verified.contains("setpoint.service:"), "{verified}");
        // A start that has succeeded means that the graph is in place.
        shell("systemctl daemon-reload; systemctl start setpoint");
        assert_eq!(property("ActiveState"), "active");
        wait_until("the file", || text(Path::new("/srv/motd")) == "welcome\n");
        wait_until("the line of status", || {
            property("StatusText") == "right: 1 resource"
        });
        // As root it is found where the unit keeps its state.
        let status = shell("setpoint status");
        assert!(status.starts_with("right: 1 resource\n"), "{status}");
        assert_eq!(
            shell("stat -c %a /var/lib/setpoint /var/lib/setpoint/control.sock"),
            "700\n600"
        );

        a_reload_waits_for_the_new_program_and_fails_with_a_wrong_one(program);
        the_journal_finds_repairs_by_resource();
        a_process_that_hangs_is_restarted();
        files_and_commands_are_as_open_as_in_a_run_by_hand();
        a_program_restarts_its_own_service_once();
        shell("systemctl stop setpoint");
        assert_eq!(
            (property("ActiveState"), property("Result")),
            ("inactive".to_owned(), "success".to_owned())
        );
        assert!(!Path::new("/var/lib/setpoint/control.sock").exists());
    });
}

fn property(name: &str) -> String {
    shell(&format!("systemctl show setpoint -P {name}"))
}

fn a_reload_waits_for_the_new_program_and_fails_with_a_wrong_one(program: &str) {
    std::fs::write("/etc/setpoint/main.mcl", program.replace("welcome", "hello")).unwrap();
    shell("systemctl reload setpoint");
    wait_until("the new content", || text(Path::new("/srv/motd")) == "hello\n");
    std::fs::write("/etc/setpoint/main.mcl", "file $nothing {}").unwrap();
    assert!(!succeeds("systemctl reload setpoint"), "the program is wrong");
    assert_eq!(property("ActiveState"), "active");
    std::fs::write("/etc/setpoint/main.mcl", program).unwrap();
    shell("systemctl reload setpoint");
    wait_until("the old content", || text(Path::new("/srv/motd")) == "welcome\n");
}

fn the_journal_finds_repairs_by_resource() {
    let entries = || -> Vec<Json> {
        let found = shell(
            "journalctl 'SETPOINT_RESOURCE=file[/srv/motd]' SETPOINT_EVENT=repaired -o json --no-pager",
        );
        found
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    wait_until("the entries", || entries().len() >= 3);
    let entry = &entries()[0];
    assert_eq!(entry["SETPOINT_KIND"], "file");
    assert_eq!(entry["SETPOINT_NAME"], "/srv/motd");
    assert_eq!(entry["PRIORITY"], "5");
    assert_eq!(entry["SYSLOG_IDENTIFIER"], "setpoint");
    assert_eq!(entry["_SYSTEMD_UNIT"], "setpoint.service");
    let message = entry["MESSAGE"].as_str().unwrap();
    assert!(message.starts_with("file[/srv/motd]: created"), "{message}");
}

fn files_and_commands_are_as_open_as_in_a_run_by_hand() {
    let program = "file \"/srv/open\" {\n\tstate => \"exists\",\n\tcontent => \"x\",\n}\n\
        file \"/srv/site/\" {\n\tstate => \"exists\",\n}\n\
        exec \"make\" {\n\tcmd => \"mkdir /srv/made; touch /srv/made/file\",\n\tshell => \"/bin/sh\",\n\tcreates => \"/srv/made\",\n}\n";
    let modes = || {
        shell("stat -c %a /srv/open /srv/site /srv/made /srv/made/file; rm -r /srv/open /srv/site /srv/made")
    };
    std::fs::write("/etc/setpoint/main.mcl", program).unwrap();
    shell("systemctl restart setpoint");
    wait_until("the command", || Path::new("/srv/made/file").exists());
    wait_until("the directory", || {
        Path::new("/srv/site").exists() && Path::new("/srv/open").exists()
    });
    shell("systemctl stop setpoint");
    let by_service = modes();
    shell("umask 077; setpoint run --once --tmp-state-dir /etc/setpoint/");
    assert_eq!(by_service, modes());
    assert_eq!(by_service, "644\n755\n755\n644");
}

/// A notification of the own service is served before the restart that it causes, whatever asks for the restart.
fn a_program_restarts_its_own_service_once() {
    let starts = || shell("journalctl -u setpoint --no-pager -o cat | grep -c '^Started' || true");
    shell("printf '[Service]\\nExecStart=/bin/sleep 1000\\n[Unit]\\n' > /etc/systemd/system/base.service");
    for (number, receiver, resource) in [
        (
            1,
            "Svc[\"setpoint\"]",
            "svc \"setpoint\" {\n\tstate => \"running\",\n\ton_refresh => \"restart\",\n}\n",
        ),
        (
            2,
            "Svc[\"base\"]",
            "svc \"base\" {\n\tstate => \"running\",\n\ton_refresh => \"restart\",\n}\n",
        ),
    ] {
        let program = format!(
            "file \"/srv/conf\" {{\n\tstate => \"exists\",\n\tcontent => \"v{number}\\n\",\n\tNotify => {receiver},\n}}\n{resource}"
        );
        std::fs::write("/etc/setpoint/main.mcl", "noop \"none\" {}\n").unwrap();
        let part = if number == 2 {
            "PartOf=base.service\nAfter=base.service\n"
        } else {
            ""
        };
        std::fs::write(
            "/etc/systemd/system/setpoint.service.d/part.conf",
            format!("[Unit]\n{part}"),
        )
        .unwrap();
        shell("systemctl daemon-reload; systemctl start base; systemctl restart setpoint");
        let before: u32 = starts().parse().unwrap();
        std::fs::write("/etc/setpoint/main.mcl", program).unwrap();
        shell("systemctl reload setpoint || true");
        wait_until("the restart", || starts() == (before + 1).to_string());
        wait_until("that all is right", || {
            property("StatusText") == "right: 2 resources"
        });
        assert_eq!(starts(), (before + 1).to_string());
        assert_eq!(
            shell("find /var/lib/setpoint/engine -name refresh -size +0 | wc -l"),
            "0"
        );
    }
}

fn a_process_that_hangs_is_restarted() {
    std::fs::create_dir_all("/etc/systemd/system/setpoint.service.d").unwrap();
    let faster = "[Service]\nWatchdogSec=4s\nTimeoutAbortSec=1s\nRestartSec=100ms\n";
    std::fs::write("/etc/systemd/system/setpoint.service.d/test.conf", faster).unwrap();
    shell("systemctl daemon-reload; systemctl restart setpoint");
    let before = property("MainPID");
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(
        property("MainPID"),
        before,
        "as long as it answers it is left alone"
    );
    shell(&format!("kill -STOP {before}"));
    wait_until("another process", || {
        property("NRestarts") == "1" && property("ActiveState") == "active"
    });
    assert_ne!(property("MainPID"), before);
    std::fs::write("/srv/motd", "wrong").unwrap();
    wait_until("a repair", || text(Path::new("/srv/motd")) == "welcome\n");
}
