//! `setpoint setup`: packages, and units that are written, enabled and started; and what `docs` writes for other programs.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use setpoint_testing::{Hermetic, repository};

use crate::end_to_end::text;
use setpoint_testing::place::{Place, find, shell};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

/// Where the unit lies.
const UNIT: &str = "/etc/systemd/system/setpoint.service";

/// Runs a command to its end: exit code, standard output, standard error.
fn run(place: &Hermetic, arguments: &[&str]) -> (i32, String, String) {
    let output = place
        .command(BINARY)
        .args(arguments)
        .output()
        .expect("it can be started");
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("it is text"));
    let [printed, said] = said;
    (output.status.code().unwrap_or(-1), printed, said)
}

/// The line of a unit with a setting.
fn setting<'a>(unit: &'a str, name: &str) -> &'a str {
    let found = unit
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("no {name} in\n{unit}"))
}

#[test]
fn the_unit_is_the_shipped_one_with_what_was_given_in_the_words_of_systemd() {
    let place = Hermetic::new();
    let seeds = "--etcd-endpoints=http://a.example:2379,http://b.example:2379";
    let arguments = [
        "setup",
        "svc",
        "--noop",
        seeds,
        "--etcd-namespace=/a $b",
        "--etcd-user",
        "web",
        "--etcd-password-file",
        "100% secret",
    ];
    let secret = place.write("100% secret", "x\n");
    std::fs::set_permissions(secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    let (code, unit, said) = run(&place, &arguments);
    assert_eq!(code, 0, "{said}");
    let file = place.path("100% secret").display().to_string().replace('%', "%%");
    let start = format!(
        "/usr/bin/setpoint run {seeds} \"--etcd-namespace=/a $$b\" --etcd-user=web \"--etcd-password-file={file}\" empty $OPTS"
    );
    assert_eq!(setting(&unit, "ExecStart"), start);
    assert_eq!(setting(&unit, "ExecReload"), "/usr/bin/setpoint reload");
    assert!(
        unit.starts_with("# Written by `setpoint setup svc`, checksum "),
        "{unit}"
    );
    // Everything else is what is shipped.
    let shipped = text(&repository().join("packaging/setpoint.service"));
    let rest = |unit: &str| -> Vec<String> {
        let lines = unit.lines().filter(|line| !line.starts_with("Exec"));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(rest(&unit)[1..], rest(&shipped));
    assert_eq!(said, "", "nothing but the unit was asked for");
    // What only the environment says is written down, too; a program in the place of what is deployed.
    let mut command = place.command(BINARY);
    command.env("SETPOINT_ETCD_ENDPOINTS", "http://c:2379").args([
        "setup",
        "svc",
        "--noop",
        "--binary-path=/opt/x",
    ]);
    let unit = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert_eq!(
        setting(&unit, "ExecStart"),
        "/opt/x run --etcd-endpoints=http://c:2379 empty $OPTS"
    );
    let (_, unit, said) = run(&place, &["setup", "svc", "--noop", "--program", "/etc/setpoint/"]);
    assert_eq!(
        setting(&unit, "ExecStart"),
        "/usr/bin/setpoint run /etc/setpoint/ $OPTS"
    );
    assert_eq!(said, "");
    let (_, _, said) = run(&place, &["setup", "svc", "--noop"]);
    assert!(
        said.starts_with("warning: neither a store nor a program is named"),
        "{said}"
    );
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_done() {
    let place = Hermetic::new();
    for (arguments, wanted) in [
        (&["setup"][..], "Usage: setpoint setup"),
        (&["setup", "svc"], "error: it is not said what to do"),
        (&["setup", "firstboot"], "error: it is not said what to do"),
        (
            &["setup", "svc", "--install", "--binary-path", "setpoint"],
            "the path is not absolute: `setpoint`",
        ),
        (
            &["setup", "svc", "--install", "--program", "x.mcl"],
            "the path of the program is not absolute",
        ),
        (
            &["setup", "svc", "--install", "--etcd-ca", "ca.pem"],
            "`--etcd-ca` means nothing without `--etcd-endpoints`",
        ),
        (&["setup", "svc", "--force", "--noop"], "--install"),
        (
            &[
                "setup",
                "svc",
                "--start",
                "--etcd-endpoints",
                "http://127.0.0.1:1",
            ],
            "what the service is given stands in its unit, which is not written",
        ),
        (&["setup", "pkg"], "--distro"),
        (
            &["setup", "pkg", "--distro", "fedorra"],
            "[possible values: fedora, debian]",
        ),
    ] {
        let (code, printed, said) = run(&place, arguments);
        assert_eq!((code, printed.as_str()), (64, ""), "{arguments:?}: {said}");
        assert!(said.contains(wanted), "{arguments:?}: {said}");
    }
}

#[test]
fn the_command_that_installs_packages_is_printed() {
    let place = Hermetic::new();
    let (code, debian, said) = run(&place, &["setup", "pkg", "--distro", "debian"]);
    assert_eq!((code, said.as_str()), (0, ""));
    assert!(
        debian.starts_with("/usr/bin/apt --yes install augeas-tools "),
        "{debian}"
    );
    assert!(
        debian.ends_with(" xfsprogs\n") && debian.contains(" passwd "),
        "{debian}"
    );
    let (_, fedora, _) = run(&place, &["setup", "pkg", "--distro=fedora", "--sudo"]);
    assert!(
        fedora.starts_with("/usr/bin/sudo /usr/bin/dnf --assumeyes install augeas "),
        "{fedora}"
    );
    assert!(fedora.contains(" shadow-utils "), "{fedora}");
    let (_, list, _) = run(&place, &["setup", "pkg", "--list"]);
    assert!(
        list.contains("augeas-tools or augeas\n    augtool: the kind `augeas`\n"),
        "{list}"
    );
}

#[test]
fn a_host_without_a_deploy_becomes_a_ready_service() {
    let test = "setup::a_host_without_a_deploy_becomes_a_ready_service";
    Place::machine(test).needing(&["journalctl"]).run(|| {
        let place = Hermetic::new();
        without_the_program_or_a_unit_nothing_is_written(&place);
        // A preview is only that.
        let (code, unit, said) = service(&place, &["--noop", "--install", "--enable", "--start"]);
        assert_eq!(code, 0, "{said}");
        assert!(
            said.contains(&format!(
                "would write {UNIT}\nwould enable setpoint.service\nwould start setpoint.service"
            )),
            "{said}"
        );
        assert!(!Path::new(UNIT).exists());

        the_service_is_installed_enabled_and_started_once(&place, &unit);
        options_of_the_administrator_reach_the_service();
    });
}

fn property(name: &str) -> String {
    shell(&format!("systemctl show setpoint -P {name}"))
}

/// Runs `setup svc` with our own binary.
fn service(place: &Hermetic, more: &[&str]) -> (i32, String, String) {
    run(place, &[&["setup", "svc", &*binary()], more].concat())
}

fn without_the_program_or_a_unit_nothing_is_written(place: &Hermetic) {
    let (code, _, said) = run(place, &["setup", "svc", "--install", "--start"]);
    assert_eq!(code, 1);
    assert!(
        said.contains("error: `/usr/bin/setpoint` cannot be started: No such file or directory"),
        "{said}"
    );
    assert!(
        said.contains(&format!("help: this program is `--binary-path {BINARY}`")),
        "{said}"
    );
    assert!(!Path::new(UNIT).exists());
    let (code, _, said) = service(place, &["--start"]);
    assert_eq!(code, 1);
    assert!(
        said.contains(
            "failed to start setpoint.service: there is no such unit\n  help: `--install` writes it"
        ),
        "{said}"
    );
}

fn the_service_is_installed_enabled_and_started_once(place: &Hermetic, unit: &str) {
    // A store that nobody answers for is no reason not to be ready.
    let seeds = "--etcd-endpoints=http://127.0.0.1:9";
    let (code, printed, said) = service(place, &[seeds, "--install", "--enable", "--start"]);
    assert_eq!((code, printed.as_str()), (0, ""), "{said}");
    assert_eq!(
        said,
        format!("wrote {UNIT}\nenabled setpoint.service\nstarted setpoint.service\n")
    );
    assert_eq!(property("ActiveState"), "active");
    assert_eq!(property("UnitFileState"), "enabled");
    assert_eq!(property("Type"), "notify");
    assert_eq!(shell(&format!("stat -c '%a %U' {UNIT}")), "644 root");
    let verified = shell(&format!("systemd-analyze verify {UNIT} 2>&1 || true"));
    assert!(!verified.contains("setpoint.service:"), "{verified}");
    // Again, and nothing is left to do.
    let (code, _, said) = service(place, &[seeds, "--install", "--enable", "--start"]);
    assert_eq!(code, 0);
    assert_eq!(
        said,
        format!(
            "{UNIT} is as it should be\nsetpoint.service is enabled already\nsetpoint.service runs already\n"
        )
    );
    // Other options: the service is started anew.
    let process = property("MainPID");
    assert!(unit.contains("run empty $OPTS"));
    let (code, _, said) = service(place, &["--install", "--start"]);
    assert_eq!(code, 0, "{said}");
    assert!(
        said.ends_with(&format!("replaced {UNIT}\nstarted anew setpoint.service\n")),
        "{said}"
    );
    assert_ne!(property("MainPID"), process);
    assert_eq!(property("ActiveState"), "active");
}

fn options_of_the_administrator_reach_the_service() {
    std::fs::create_dir_all("/etc/systemd/system/setpoint.service.d").unwrap();
    std::fs::write(
        "/etc/systemd/system/setpoint.service.d/own.conf",
        "[Service]\nEnvironment=\"OPTS=--sema 4 -v\"\n",
    )
    .unwrap();
    shell("systemctl daemon-reload; systemctl restart setpoint");
    let process = property("MainPID");
    let words = shell(&format!("tr '\\0' ' ' < /proc/{process}/cmdline"));
    assert!(words.ends_with("run empty --sema 4 -v"), "{words}");
}

#[test]
fn setup_respects_an_existing_file_in_the_place_of_the_unit() {
    let test = "setup::setup_respects_an_existing_file_in_the_place_of_the_unit";
    Place::machine(test).run(|| {
        let place = Hermetic::new();
        a_unit_that_was_written_by_hand_is_replaced_only_with_force(&place);
        a_link_a_mask_and_a_directory_are_left_alone(&place);
        // Nobody can write there.
        shell("mount --bind /etc/systemd /etc/systemd; mount -o remount,bind,ro /etc/systemd");
        refuses_to_install(&place, "Read-only file system");
        shell("umount /etc/systemd");
        a_service_that_does_not_start_is_reported_and_gets_the_given_words(&place);
    });
}

fn binary() -> String {
    format!("--binary-path={BINARY}")
}

fn install(place: &Hermetic, more: &[&str]) -> (i32, String, String) {
    let binary = binary();
    run(
        place,
        &[&["setup", "svc", &binary, "--program=/etc/setpoint/"], more].concat(),
    )
}

#[track_caller]
fn refuses_to_install(place: &Hermetic, wanted: &str) {
    let (code, _, said) = install(place, &["--install"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains(wanted), "{said}");
}

fn a_unit_that_was_written_by_hand_is_replaced_only_with_force(place: &Hermetic) {
    std::fs::write(UNIT, "[Service]\nExecStart=/bin/true\n").unwrap();
    refuses_to_install(place, "is there already, and somebody has written or changed it");
    assert_eq!(text(Path::new(UNIT)), "[Service]\nExecStart=/bin/true\n");
    let (code, _, said) = install(place, &["--install", "--noop"]);
    assert_eq!(code, 0);
    assert!(
        said.contains("would replace") && said.contains("\n- ExecStart=/bin/true"),
        "{said}"
    );
    let (code, _, said) = install(place, &["--install", "--force"]);
    assert_eq!(code, 0, "{said}");
    // What was written here and changed by hand.
    let written = text(Path::new(UNIT));
    std::fs::write(UNIT, written.replace("RestartSec=5s", "RestartSec=50s")).unwrap();
    refuses_to_install(place, "somebody has written or changed it");
    std::fs::write(UNIT, &written).unwrap();
    let (code, _, said) = install(place, &["--install"]);
    assert_eq!((code, said), (0, format!("{UNIT} is as it should be\n")));
}

fn a_link_a_mask_and_a_directory_are_left_alone(place: &Hermetic) {
    std::fs::remove_file(UNIT).unwrap();
    std::fs::write("/srv/other", "mine").unwrap();
    shell(&format!("ln -s /srv/other {UNIT}"));
    refuses_to_install(place, "it is a link to /srv/other");
    assert_eq!(text(Path::new("/srv/other")), "mine");
    shell(&format!("rm {UNIT}; systemctl mask setpoint 2>&1"));
    refuses_to_install(place, "it is masked: nobody shall start it");
    let (code, _, said) = run(place, &["setup", "svc", &binary(), "--start"]);
    assert_eq!(code, 1);
    assert!(
        said.contains("`systemctl unmask setpoint.service` allows it again"),
        "{said}"
    );
    shell(&format!("systemctl unmask setpoint 2>&1; mkdir {UNIT}"));
    refuses_to_install(place, "it is not a file");
    shell(&format!("rmdir {UNIT}"));
}

fn a_service_that_does_not_start_is_reported_and_gets_the_given_words(place: &Hermetic) {
    std::fs::create_dir_all("/srv/set point").unwrap();
    let script = "#!/bin/sh\nfor word in \"$@\"; do printf '<%s>\\n' \"$word\"; done > /srv/words\nexit 3\n";
    let program = "/srv/set point/50%$x";
    std::fs::write(program, script).unwrap();
    shell(&format!("chmod 755 '{program}'"));
    let odd = "/a b\"c'd\\e%n$HOME;";
    let (code, _, said) = run(
        place,
        &[
            "setup",
            "svc",
            "--install",
            "--start",
            "--etcd-endpoints=http://127.0.0.1:9",
            "--binary-path",
            program,
            "--etcd-namespace",
            odd,
        ],
    );
    assert_eq!(code, 1);
    assert!(
        said.contains(
            "error: failed to start setpoint.service: it ended with an error\n  help: `journalctl -u setpoint.service`"
        ),
        "{said}"
    );
    assert_eq!(
        text(Path::new("/srv/words")),
        format!("<run>\n<--etcd-endpoints=http://127.0.0.1:9>\n<--etcd-namespace={odd}>\n<empty>\n")
    );
}

#[test]
fn kinds_and_functions_are_written_as_json() {
    let place = Hermetic::new();
    let (code, _, said) = run(&place, &["docs", "generate"]);
    assert_eq!(code, 64, "{said}");
    let (code, _, said) = run(&place, &["docs", "generate", "--output", "all.txt"]);
    assert_eq!(code, 64);
    assert!(
        said.contains("`--output all.txt`: the name of the file has to end in `.json`"),
        "{said}"
    );
    assert!(!place.path("all.txt").exists());
    let (code, printed, said) = run(&place, &["docs", "generate", "--output", "all.json"]);
    assert_eq!((code, printed.as_str(), said.as_str()), (0, "", ""));
    let written = text(&place.path("all.json"));
    assert!(written.ends_with("}\n"));
    let all: serde_json::Value = serde_json::from_str(&written).unwrap();
    let file = &all["resources"]["file"];
    assert_eq!(file["kind"], "file");
    assert_eq!(file["fields"]["mode"]["name"], "mode");
    assert!(file["description"].as_str().is_some_and(|text| !text.is_empty()));
    assert_eq!(all["functions"]["strings.to_lower"]["package"], "strings");
    assert_eq!(all["functions"]["strings.to_lower"]["func"], "to_lower");
    let names = [&all["resources"], &all["functions"]].map(|all| all.as_object().unwrap().keys());
    assert!(names.into_iter().flatten().all(|name| !name.starts_with('_')));
    run(
        &place,
        &[
            "docs",
            "generate",
            "--output=less.json",
            "--no-resources",
            "--no-functions",
        ],
    );
    assert_eq!(
        text(&place.path("less.json")),
        format!("{{\"version\":\"{}\"}}\n", env!("CARGO_PKG_VERSION"))
    );
    let (code, _, said) = run(&place, &["docs", "generate", "--output", "none/all.json"]);
    assert_eq!(code, 1);
    assert!(said.contains("error: failed to write none/all.json: "), "{said}");
}

#[test]
fn each_command_has_a_page_that_man_accepts() {
    let place = Hermetic::new();
    let (code, _, said) = run(&place, &["docs", "man", "man/man1"]);
    assert_eq!((code, said.as_str()), (0, ""));
    let mut names: Vec<String> = std::fs::read_dir(place.path("man/man1"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    for wanted in [
        "setpoint.1",
        "setpoint-run.1",
        "setpoint-setup-svc.1",
        "setpoint-firstboot-start.1",
    ] {
        assert!(names.iter().any(|name| name == wanted), "{names:?}");
    }
    for name in &names {
        let page = text(&place.path(&format!("man/man1/{name}")));
        let title = name.trim_end_matches(".1").to_uppercase();
        assert!(page.contains(&format!(".TH {title} 1 ")), "{page}");
        for section in [".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION"] {
            assert!(page.contains(section), "{name} has no {section}");
        }
    }
    if find("groff").is_none() {
        eprintln!("skipped: the pages are not set: needs the program `groff`");
        return;
    }
    for name in &names {
        let page = place.path(&format!("man/man1/{name}"));
        let mut command = place.command("groff");
        let set = command
            .args(["-k", "-man", "-Tutf8", "-P-cbou", "-ww"])
            .arg(&page)
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&set.stderr), "", "{name}");
        assert!(
            String::from_utf8_lossy(&set.stdout).contains("SYNOPSIS"),
            "{name}"
        );
    }
}
