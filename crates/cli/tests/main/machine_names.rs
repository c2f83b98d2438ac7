//! The kinds `hostname` and `sysctl` on a machine without systemd: in namespaces of a test's own, where the name of the host is another one.

use setpoint_testing::{Finished, Hermetic, Running};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

/// What makes the machine: its own names and its own `/etc`; the marks of systemd are out of sight.
const MACHINE: &str = "set -e; mount -t tmpfs none /run; mkdir /run/etc; \
    cp -a /etc/passwd /etc/group /etc/nsswitch.conf /run/etc/; mount --bind /run/etc /etc; hostname before; ";

/// The words that run a script there, in which `PROGRAM` is the program.
fn words(script: &str) -> Vec<String> {
    let script = format!("{MACHINE}{}", script.replace("PROGRAM", BINARY));
    let words = [
        "--uts",
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        &script,
    ];
    words.map(str::to_owned).to_vec()
}

fn run(place: &Hermetic, script: &str) -> Finished {
    let words = words(script);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    place.run("unshare", &words)
}

/// Whether such a machine can be made; says why not.
#[expect(
    clippy::print_stderr,
    reason = "who runs the tests wants to know what was not tested"
)]
fn is_possible(place: &Hermetic) -> bool {
    let made = run(place, "true");
    if made.code != 0 {
        eprintln!(
            "skipped: a machine with names of its own cannot be made here: {}",
            made.stderr
        );
    }
    made.code == 0
}

const NAMES: &str = "hostname \"web1.example.com\" {\n\tpretty_hostname => \"Ann's \\\"box\\\"\",\n}\n";

#[test]
fn the_names_of_a_machine_without_the_service_are_kept_in_its_files_and_the_kernel() {
    let place = Hermetic::new();
    let program = place.write("p.mcl", NAMES).display().to_string();
    let prefix = place.path("prefix").display().to_string();
    let once = format!("PROGRAM run --once --no-raise-limits --state-dir {prefix}");
    let script = format!(
        "printf 'CHASSIS=vm\\n' > /etc/machine-info; {once} --noop {program}; cat /etc/hostname 2>&1 || true; hostname; \
         {once} {program}; cat /etc/hostname /etc/machine-info; hostname; {once} {program}"
    );
    if !is_possible(&place) {
        return;
    }
    let ran = run(&place, &script);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let wanted = "No such file or directory\nbefore\nweb1.example.com\nCHASSIS=vm\n\
                  PRETTY_HOSTNAME=\"Ann's \\\"box\\\"\"\nweb1.example.com\n";
    assert!(ran.stdout.ends_with(wanted), "{}", ran.stdout);
    for said in ["would change transient_hostname", "1 changed", "1 unchanged"] {
        assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
    }
}

#[test]
fn names_that_others_set_are_set_back_at_once() {
    let place = Hermetic::new();
    let program = place.write("p.mcl", NAMES).display().to_string();
    let prefix = place.path("prefix").display().to_string();
    if !is_possible(&place) {
        return;
    }
    let mut command = place.command("unshare");
    command.args(words(&format!(
        "exec PROGRAM run --json --no-raise-limits --state-dir {prefix} {program}"
    )));
    let mut running = Running::start(command);
    let event = |name: &'static str| move |line: &str| line.starts_with(&format!("{{\"event\":\"{name}\""));
    running.wait_for("the first repair", event("converged"));
    let there = |process: u32, script: &str| {
        let process = process.to_string();
        let ran = place.run(
            "nsenter",
            &["-t", &process, "--uts", "--mount", "sh", "-c", script],
        );
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stdout
    };
    for (script, field) in [
        ("hostname other", "transient_hostname"),
        (
            "echo other > /etc/new; mv /etc/new /etc/hostname",
            "static_hostname",
        ),
        ("rm /etc/machine-info", "pretty_hostname"),
    ] {
        there(running.id(), script);
        let drift = |line: &str| event("drift")(line) && line.contains(field);
        running.wait_for(field, drift);
        running.wait_for("rest", event("converged"));
    }
    let names = there(running.id(), "cat /etc/hostname /etc/machine-info; hostname");
    assert_eq!(
        names,
        "web1.example.com\nPRETTY_HOSTNAME=\"Ann's \\\"box\\\"\"\nweb1.example.com\n"
    );
    running.signal("TERM");
    assert_eq!(running.finish().0.code(), Some(0));
}

#[test]
fn a_file_that_is_read_later_at_the_start_is_told_of() {
    let place = Hermetic::new();
    let program = "sysctl \"kernel.domainname\" {\n\tvalue => \"example.com\",\n}\n";
    let program = place.write("p.mcl", program).display().to_string();
    let prefix = place.path("prefix").display().to_string();
    let once = format!("PROGRAM run --once --no-raise-limits --state-dir {prefix} {program}");
    let script = format!(
        "mkdir /etc/sysctl.d; echo 'kernel/domainname = other' > /etc/sysctl.conf; ln -s ../sysctl.conf /etc/sysctl.d/99-sysctl.conf; {once}; \
         cat /etc/sysctl.d/99-kernel.domainname.conf /proc/sys/kernel/domainname"
    );
    if !is_possible(&place) {
        return;
    }
    let ran = run(&place, &script);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.stdout, "kernel.domainname = example.com\nexample.com\n");
    let wanted = "kernel.domainname will be `other` after the next start: /etc/sysctl.d/99-sysctl.conf is read after \
                  /etc/sysctl.d/99-kernel.domainname.conf";
    assert!(ran.stderr.contains(wanted), "{}", ran.stderr);
}
