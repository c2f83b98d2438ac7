//! The kind `svc` with a real systemd: what a run does and refuses, notifications, and what is seen while it watches, whatever becomes of the bus and of systemd.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use setpoint_testing::Hermetic;

use crate::book::{examples_of_kinds, snippets};
use crate::end_to_end::{Engine, text};
use crate::kind::{change, events, run};
use setpoint_testing::place::{Place, shell};

/// How long anything may take before a test gives up.
const LIMIT: Duration = Duration::from_secs(60);

/// Where packages have their unit files: masks and files of the administrator come before them.
const UNITS: &str = "/usr/lib/systemd/system";

/// The drift of a service that does not run.
const TO_ON: [&str; 2] = [
    "startup: disabled -> enabled",
    "state: inactive (dead) -> running",
];

fn unit(name: &str, service: &str) {
    // However often it is started: what is tried is not the limit that systemd has for that.
    let text = format!(
        "[Unit]\nStartLimitIntervalSec=0\n[Service]\n{service}\n[Install]\nWantedBy=fixture.target\n"
    );
    std::fs::write(format!("{UNITS}/{name}.service"), text).expect("unit files can be written");
}

fn property(name: &str, property: &str) -> String {
    shell(&format!("systemctl show {name} -P {property}"))
}

fn event(line: &str) -> Json {
    serde_json::from_str(line).expect("every line is one JSON object")
}

/// The drift and the first error of one run, of the two kinds that need a machine of their own.
fn once(program: &str, arguments: &[&str]) -> (Vec<String>, Option<String>) {
    let mut events = events(&run(program, arguments));
    events.retain(|event| event["kind"] == "svc" || event["kind"] == "hostname");
    let (drifts, others): (Vec<Json>, Vec<Json>) =
        events.into_iter().partition(|event| event["event"] == "drift");
    let error = others.iter().find_map(|event| event["error"].as_str());
    (drifts.iter().map(change).collect(), error.map(str::to_owned))
}

/// A run that finds this, and does not fail.
fn finds(program: &str, arguments: &[&str], wanted: &[&str]) {
    let (drifts, error) = once(program, arguments);
    assert_eq!(drifts, wanted, "{program}: {error:?}");
    assert_eq!(error, None, "{program}");
}

/// A run that fails and says this.
fn fails(program: &str, wanted: &str) {
    let (_, error) = once(program, &[]);
    assert_eq!(error.as_deref(), Some(wanted), "{program}");
}

#[test]
fn services_reach_their_state_or_the_run_reports_why_not() {
    let test = "svc::services_reach_their_state_or_the_run_reports_why_not";
    Place::machine(test).run(|| {
        unit("sleeper", "ExecStart=/bin/sleep 1000");
        std::fs::write(
            "/etc/systemd/system/fixed.service",
            "[Service]\nExecStart=/bin/sleep 1000\n",
        )
        .unwrap();
        unit("broken", "ExecStart=/no/such/program\nType=exec");
        unit("short", "ExecStart=/bin/true\nType=oneshot");
        unit("slow", "ExecStartPre=/bin/sleep 0.5\nExecStart=/bin/sleep 1000");
        unit("instance@", "ExecStart=/bin/sleep %i");
        std::fs::write(
            "/etc/systemd/system/conditional.service",
            "[Unit]\nConditionPathExists=/no/such/path\n[Service]\nExecStart=/bin/sleep 1000\n",
        )
        .unwrap();
        shell("systemctl daemon-reload");

        services_start_stop_and_are_enabled();
        masks_are_set_and_removed();
        static_and_missing_units_are_reported();
        a_script_of_init_is_enabled_and_disabled();
        instances_and_oneshot_services_start_and_failed_starts_are_reported();
        a_start_that_exceeds_the_timeout_continues();
    });
}

fn services_start_stop_and_are_enabled() {
    // Nothing of it is managed, or all is right already.
    finds("svc \"sleeper\" {}", &[], &[]);
    let off = r#"svc "sleeper" { state => "stopped", startup => "disabled", masked => false, }"#;
    finds(off, &[], &[]);
    // On and off again, and each time a second run finds nothing.
    let on = r#"svc "sleeper" { state => "running", startup => "enabled", }"#;
    finds(on, &["--noop"], &TO_ON);
    finds(on, &[], &TO_ON);
    finds(on, &[], &[]);
    assert_eq!(property("sleeper", "ActiveState"), "active");
    finds(
        off,
        &[],
        &[
            "startup: enabled -> disabled",
            "state: active (running) -> stopped",
        ],
    );
    finds(off, &[], &[]);
    // Links that last until the next start of the machine count, and are removed.
    shell("systemctl enable --runtime sleeper");
    finds(r#"svc "sleeper" { startup => "enabled", }"#, &[], &[]);
    finds(off, &[], &["startup: enabled-runtime -> disabled"]);
    finds(off, &[], &[]);
}

fn masks_are_set_and_removed() {
    let off = r#"svc "sleeper" { state => "stopped", startup => "disabled", masked => false, }"#;
    shell("systemctl mask --runtime sleeper");
    finds(off, &[], &["masked: masked-runtime -> not masked"]);
    finds(off, &[], &[]);
    // The unit file itself is in the way of a mask.
    let (_, error) = once(r#"svc "fixed" { masked => true, }"#, &[]);
    assert!(
        error.unwrap().contains("exists"),
        "systemd says what is in the way"
    );
    shell(
        "mv /etc/systemd/system/fixed.service /usr/lib/systemd/system/; systemctl daemon-reload; systemctl start fixed",
    );
    let never = r#"svc "fixed" { state => "stopped", startup => "disabled", masked => true, }"#;
    let to_never = [
        "state: active (running) -> stopped",
        "masked: not masked -> masked",
    ];
    finds(never, &["--noop"], &to_never);
    finds(never, &[], &to_never);
    finds(never, &[], &[]);
    fails(
        r#"svc "fixed" { state => "running", }"#,
        "start fixed.service: it is masked; `masked => false` takes the mask away",
    );
    fails(
        r#"svc "fixed" { startup => "enabled", }"#,
        "enable fixed.service: it is `masked`: it is masked; `masked => false` takes the mask away",
    );
    let again = r#"svc "fixed" { state => "running", masked => false, }"#;
    finds(
        again,
        &[],
        &[
            "masked: masked -> not masked",
            "state: inactive (dead) -> running",
        ],
    );
    // What nobody has heard of can be masked too.
    finds(
        r#"svc "unheard" { masked => true, }"#,
        &[],
        &["masked: not masked -> masked"],
    );
    finds(r#"svc "unheard" { masked => true, }"#, &[], &[]);
}

fn a_script_of_init_is_enabled_and_disabled() {
    shell(
        "printf '#!/bin/sh\\n### BEGIN INIT INFO\\n# Provides: oldie\\n# Required-Start: $remote_fs\\n# Required-Stop: $remote_fs\\n\
         # Default-Start: 2 3 4 5\\n# Default-Stop: 0 1 6\\n# Short-Description: old\\n### END INIT INFO\\nexit 0\\n' > /etc/init.d/oldie; \
         chmod 755 /etc/init.d/oldie; systemctl daemon-reload",
    );
    let enabled = "svc \"oldie\" { startup => \"enabled\", }";
    let disabled = "svc \"oldie\" { startup => \"disabled\", }";
    finds(enabled, &[], &["startup: disabled -> enabled"]);
    assert_eq!(shell("systemctl is-enabled oldie 2>/dev/null"), "enabled");
    finds(enabled, &[], &[]);
    finds(disabled, &[], &["startup: enabled -> disabled"]);
    assert_eq!(
        shell("systemctl is-enabled oldie 2>/dev/null || true"),
        "disabled"
    );
    finds(disabled, &[], &[]);
}

fn static_and_missing_units_are_reported() {
    // What cannot be enabled.
    fails(
        r#"svc "fixed" { startup => "enabled", }"#,
        "enable fixed.service: it is `static`: its unit file has no `WantedBy`, `RequiredBy` or `Alias` in a section `[Install]`; what wants it starts it",
    );
    finds(r#"svc "fixed" { startup => "disabled", }"#, &[], &[]);

    // What is not there.
    finds(
        r#"svc "nothing" { state => "stopped", startup => "disabled", }"#,
        &[],
        &[],
    );
    let nothing = r#"svc "nothing" { state => "running", startup => "enabled", }"#;
    fails(
        nothing,
        "find nothing.service: systemd finds no unit file of this name, in `/etc/systemd/system` for one",
    );
    let (drifts, error) = once(nothing, &["--noop"]);
    assert_eq!(
        (drifts.len(), error.is_some()),
        (0, true),
        "a plan fails like the run"
    );
    // Unless an earlier resource creates its file.
    finds(
        &format!(
            "file \"/etc/systemd/system/nothing.service\" {{ content => \"[Service]\\n\", }}\n{nothing}"
        ),
        &["--noop"],
        &["startup: not found -> enabled", "state: not found -> running"],
    );
}

fn instances_and_oneshot_services_start_and_failed_starts_are_reported() {
    finds(
        r#"svc "instance@777" { state => "running", startup => "enabled", }"#,
        &[],
        &TO_ON,
    );
    assert!(
        text(Path::new(&format!(
            "/proc/{}/cmdline",
            property("instance@777", "MainPID")
        )))
        .contains("777")
    );
    finds(
        r#"svc "instance@777" { state => "running", startup => "enabled", }"#,
        &[],
        &[],
    );
    let short = r#"svc "short" { state => "running", }"#;
    finds(short, &[], &["state: inactive (dead) -> running"]);
    finds(short, &[], &["state: inactive (dead) -> running"]);
    fails(
        r#"svc "broken" { state => "running", }"#,
        "start broken.service: its job failed; `systemctl status` and the journal say why",
    );
    fails(
        r#"svc "conditional" { state => "running", }"#,
        "start conditional.service: a condition of its unit file does not hold",
    );
    // A start that somebody else has begun is waited for.
    shell("systemctl start --no-block slow");
    finds(r#"svc "slow" { state => "running", }"#, &[], &[]);
    assert_eq!(property("slow", "ActiveState"), "active");
}

fn a_start_that_exceeds_the_timeout_continues() {
    unit(
        "forever",
        "ExecStartPre=/bin/sleep 1000\nExecStart=/bin/sleep 1000\nTimeoutStartSec=infinity",
    );
    shell("systemctl daemon-reload");
    let (_, error) = once(
        r#"svc "forever" { state => "running", Meta:timeout => 300, }"#,
        &[],
    );
    let error = error.unwrap();
    assert!(error.contains("timeout"), "{error}");
    assert_eq!(property("forever", "ActiveState"), "activating");
}

#[test]
fn the_programs_of_the_book_with_services_make_a_machine_right() {
    let test = "svc::the_programs_of_the_book_with_services_make_a_machine_right";
    Place::machine(test).run(|| {
        let mut count = 0;
        let of_guides = snippets()
            .into_iter()
            .filter(|snippet| snippet.page.starts_with("docs/guide/"))
            // They need packages, too, and have a test of their own.
            .filter(|snippet| !snippet.page.ends_with("/every-day.md"));
        for snippet in of_guides.chain(examples_of_kinds()) {
            let needs_a_machine = ["svc \"", "hostname \""];
            let needs_one = needs_a_machine.iter().any(|kind| snippet.text.contains(kind));
            if snippet.language != "mcl" || !needs_one {
                continue;
            }
            count += 1;
            let (_, error) = once(&snippet.text, &[]);
            assert_eq!(error, None, "{}:{}", snippet.page, snippet.line);
            let (drifts, error) = once(&snippet.text, &[]);
            assert_eq!(
                (drifts, error),
                (Vec::new(), None),
                "{}:{}",
                snippet.page,
                snippet.line
            );
        }
        assert_eq!(count, 6);
    });
}

#[test]
fn files_of_a_unit_come_before_its_service_by_themselves() {
    let test = "svc::files_of_a_unit_come_before_its_service_by_themselves";
    Place::machine(test).run(|| {
        // The names sort behind those of the services, and nothing says an order.
        let program = r#"
            svc "edged@7" { state => "running", startup => "enabled", }
            file "/etc/systemd/system/edged@.service" {
                content => "[Service]\nExecStart=/bin/sleep 1%i\n[Install]\nWantedBy=fixture.target\n",
            }
            file "/etc/systemd/system/edged@.service.d/" { state => "exists", }
            file "/etc/systemd/system/edged@.service.d/a.conf" {
                content => "[Service]\nExecStart=\nExecStart=/bin/sleep 2%i\n",
            }
            file "/etc/systemd/system/edged@7.service.d/" { state => "exists", }
            file "/etc/systemd/system/edged@7.service.d/a.conf" {
                content => "[Service]\nExecStart=\nExecStart=/bin/sleep 3%i\n",
            }
            file "/etc/systemd/system/edged@7.service.d/b.conf" {
                content => "[Service]\nExecStart=\nExecStart=/bin/sleep 4%i\n",
            }
        "#;
        let wanted = TO_ON;
        finds(program, &[], &wanted);
        let command = text(Path::new(&format!(
            "/proc/{}/cmdline",
            property("edged@7", "MainPID")
        )));
        assert!(command.contains("47"), "{command}");
    });
}

#[test]
fn a_notification_reloads_or_restarts_what_runs() {
    let test = "svc::a_notification_reloads_or_restarts_what_runs";
    Place::machine(test).run(|| {
        // It can reload: that is counted.
        let counts = "ExecStart=/bin/sleep 1000\nExecReload=/bin/sh -c 'echo >> /srv/reloads'";
        unit("reloads", counts);
        unit("plain", "ExecStart=/bin/sleep 1000");
        unit("asleep", "ExecStart=/bin/sleep 1000");
        shell("systemctl daemon-reload; systemctl start reloads plain");
        let reloads = || text(Path::new("/srv/reloads")).lines().count();
        assert_eq!(notified("reloads", ""), reloaded("reload-or-restart"));
        assert_eq!(reloads(), 1);
        assert_eq!(
            notified("reloads", "state => \"running\", on_refresh => \"reload\","),
            reloaded("reload")
        );
        assert_eq!(reloads(), 2);
        let process = || property("plain", "MainPID");
        let before = process();
        assert_eq!(notified("plain", ""), reloaded("reload-or-restart"));
        let after = process();
        assert_ne!(before, after, "it cannot reload");
        let (_, error) = notified("plain", "on_refresh => \"reload\",");
        assert_eq!(process(), after);
        assert!(error.is_some(), "systemd refuses to reload it");
        assert_eq!(
            notified("plain", "on_refresh => \"try-restart\","),
            reloaded("try-restart")
        );
        assert_ne!(process(), after);
        let before = property("reloads", "MainPID");
        assert_eq!(
            notified("reloads", "on_refresh => \"restart\","),
            reloaded("restart")
        );
        assert_ne!(property("reloads", "MainPID"), before);
        assert_eq!(reloads(), 2);

        // A unit file that was edited is read before that.
        unit("plain", "ExecStart=/bin/sleep 2000");
        assert_eq!(property("plain", "NeedDaemonReload"), "yes");
        assert_eq!(notified("plain", ""), reloaded("reload-or-restart"));
        let command = text(Path::new(&format!("/proc/{}/cmdline", process())));
        assert!(command.contains("2000"), "{command}");

        new_files_of_a_unit_are_read_before_its_service_is_restarted();
        a_notification_starts_a_stopped_service_only_with_restart();
    });
}

/// systemd itself does not notice a new directory of drop-ins, nor a unit file that comes before the one that it has read.
fn new_files_of_a_unit_are_read_before_its_service_is_restarted() {
    let administrators = "/etc/systemd/system";
    unit("changed", "ExecStart=/bin/sleep 1000");
    unit("replaced", "ExecStart=/bin/sleep 1000\nEnvironment=OLD=1");
    unit("dash-ed", "ExecStart=/bin/sleep 1000");
    unit("made@", "ExecStart=/bin/sleep 1000");
    shell("systemctl daemon-reload; systemctl start changed replaced dash-ed made@one");
    let drop_in = |number: u32| format!("[Service]\nEnvironment=NEW={number}\n");
    let whole = |number: u32| format!("[Service]\nExecStart=/bin/sleep 1000\nEnvironment=NEW={number}\n");
    for (service, file, content) in [
        (
            "changed",
            "changed.service.d/x.conf",
            &drop_in as &dyn Fn(u32) -> String,
        ),
        ("dash-ed", "dash-.service.d/x.conf", &drop_in),
        ("made@one", "made@.service.d/x.conf", &drop_in),
        ("replaced", "replaced.service", &whole),
    ] {
        for number in [1, 2] {
            let path = format!("{administrators}/{file}");
            let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
            let program = format!(
                "file \"{directory}/\" {{ state => \"exists\", }}\n\
                 file \"{path}\" {{ state => \"exists\", content => \"{}\", Notify => Svc[\"{service}\"], }}\n\
                 svc \"{service}\" {{ state => \"running\", on_refresh => \"restart\", }}\n",
                content(number).replace('\n', "\\n")
            );
            assert_eq!(once(&program, &[]), reloaded_by(&path, "restart"), "{service}");
            assert_eq!(
                property(service, "Environment"),
                format!("NEW={number}"),
                "{service}"
            );
            let process = property(service, "MainPID");
            let environment = text(Path::new(&format!("/proc/{process}/environ")));
            assert!(
                environment.contains(&format!("NEW={number}")),
                "{service}: {environment:?}"
            );
            assert_eq!(once(&program, &[]), (Vec::new(), None), "{service}");
        }
    }
}

/// What a run finds when a file that it writes notifies the service.
fn notified(name: &str, parameters: &str) -> (Vec<String>, Option<String>) {
    let file = "/srv/configuration";
    let _ = std::fs::remove_file(file);
    let program = format!(
        "file \"{file}\" {{ content => \"new\\n\", Notify => Svc[\"{name}\"], }}\nsvc \"{name}\" {{ {parameters} }}\n"
    );
    once(&program, &[])
}

fn reloaded(word: &str) -> (Vec<String>, Option<String>) {
    reloaded_by("/srv/configuration", word)
}

fn reloaded_by(file: &str, word: &str) -> (Vec<String>, Option<String>) {
    (vec![format!("reload: notified by file[{file}] -> {word}")], None)
}

fn a_notification_starts_a_stopped_service_only_with_restart() {
    // What does not run is not started, but by `restart`; and what the run has just started has read everything.
    for on_refresh in ["reload-or-restart", "reload", "try-restart"] {
        let parameters = format!("on_refresh => \"{on_refresh}\",");
        assert_eq!(notified("asleep", &parameters), reloaded(on_refresh));
        assert_eq!(property("asleep", "ActiveState"), "inactive");
    }
    let started = (vec!["state: inactive (dead) -> running".to_owned()], None);
    assert_eq!(notified("asleep", "state => \"running\","), started);
    shell("systemctl stop asleep");
    assert_eq!(
        notified("asleep", "on_refresh => \"restart\","),
        reloaded("restart")
    );
    assert_eq!(property("asleep", "ActiveState"), "active");
}

/// A program that runs beside a test.
struct Followed {
    engine: Engine,
    /// Where its program is.
    _place: Hermetic,
}

impl Followed {
    /// Waits until the first runs have ended.
    fn start(program: &str) -> Followed {
        let place = Hermetic::new();
        let main = place.write("main.mcl", program);
        let main = main.to_str().expect("the place has a plain name");
        let mut engine = Engine::start(&place, &[main]);
        engine.event("convergence", |event| event["event"] == "converged");
        Followed {
            engine,
            _place: place,
        }
    }

    /// How long it takes until a service that is made to drift is right again.
    fn repairs(&mut self, name: &str, drift: &str, holds: impl Fn() -> bool) {
        shell(drift);
        self.engine.repaired_until("svc", name, holds);
    }
}

fn runs(name: &str) -> bool {
    property(name, "ActiveState") == "active"
}

#[test]
fn changes_of_services_are_repaired_when_they_happen() {
    let test = "svc::changes_of_services_are_repaired_when_they_happen";
    Place::machine(test).run(|| {
        unit("kept", "ExecStart=/bin/sleep 1000");
        unit("quiet", "ExecStart=/bin/sleep 1000");
        unit("short", "ExecStart=/bin/true\nType=oneshot");
        shell("systemctl daemon-reload");
        let program = "
            svc \"kept\" { state => \"running\", startup => \"enabled\", masked => false, }
            svc \"quiet\" { state => \"stopped\", }
            svc \"short\" { state => \"running\", }
            svc \"later\" { state => \"running\", }
        ";
        let mut followed = {
            let place = Hermetic::new();
            let main = place.write("main.mcl", program);
            let mut engine = Engine::start(&place, &[main.to_str().unwrap()]);
            engine.event("the one that is not there", |event| {
                event["kind"] == "svc" && event["name"] == "later" && event["error"].is_string()
            });
            Followed {
                engine,
                _place: place,
            }
        };
        changes_by_hand_are_repaired_at_once(&mut followed);
        // A unit that appears: its file is seen before systemd was told.
        unit("later", "ExecStart=/bin/sleep 1000");
        followed.engine.repaired_until("svc", "later", || runs("later"));

        reads_restarts_and_finished_oneshot_services_are_no_drift(followed);
    });
}

fn changes_by_hand_are_repaired_at_once(followed: &mut Followed) {
    for _ in 0..10 {
        followed.repairs("kept", "systemctl stop kept", || runs("kept"));
        followed.repairs("quiet", "systemctl start quiet", || !runs("quiet"));
    }
    followed.repairs("kept", "systemctl kill -s KILL kept", || runs("kept"));
    let enabled = || shell("systemctl is-enabled kept || true") == "enabled";
    followed.repairs("kept", "systemctl disable kept", enabled);
    let process = property("kept", "MainPID");
    let unmasked = || shell("systemctl is-enabled kept || true") != "masked";
    followed.repairs("kept", "systemctl mask kept", unmasked);
    assert_eq!(property("kept", "MainPID"), process, "it was not touched");
}

fn reads_restarts_and_finished_oneshot_services_are_no_drift(mut followed: Followed) {
    let engine = &mut followed.engine;
    engine.event("quiet", |event| event["event"] == "converged");
    let mut running = followed.engine.into_running();
    running.drain();
    shell(
        "systemctl daemon-reload; systemctl restart kept; systemctl reload-or-restart later; systemctl start short",
    );
    // Something that is drift says when all of that was seen.
    shell("systemctl start quiet");
    let mut wrong = Vec::new();
    running.wait_for("the drift that was made", |line| {
        let event = event(line);
        let drifted = event["event"] == "drift";
        wrong.extend((drifted && event["name"] != "quiet").then(|| line.to_owned()));
        drifted && event["name"] == "quiet"
    });
    assert_eq!(wrong, [""; 0]);
    running.signal("TERM");
    running.finish();
    assert!(
        shell("journalctl -u short -o cat --no-pager | grep -c Starting || true")
            .parse::<u32>()
            .unwrap()
            <= 3,
        "a oneshot service is no loop"
    );
}

#[test]
fn a_bus_or_a_manager_that_is_started_anew_is_found_again() {
    let test = "svc::a_bus_or_a_manager_that_is_started_anew_is_found_again";
    Place::machine(test).run(|| {
        unit("kept", "ExecStart=/bin/sleep 1000");
        shell("systemctl daemon-reload");
        let mut followed = Followed::start("svc \"kept\" { state => \"running\", }\n");
        let stop = "systemctl stop kept";
        followed.repairs("kept", stop, || runs("kept"));
        shell("systemctl daemon-reexec");
        followed.repairs("kept", stop, || runs("kept"));
        shell("systemctl restart dbus");
        followed.repairs("kept", stop, || runs("kept"));
        // What happens while there is no way to it is seen afterwards.
        followed.repairs("kept", "systemctl stop kept; systemctl daemon-reexec", || {
            runs("kept")
        });
        // Without any bus the manager's own socket is as good.
        shell("systemctl stop dbus.socket dbus.service");
        followed.repairs("kept", stop, || runs("kept"));
        shell("systemctl daemon-reexec");
        followed.repairs("kept", stop, || runs("kept"));
        shell("systemctl start dbus.socket dbus.service");
        followed.repairs("kept", stop, || runs("kept"));
        shell("systemctl restart dbus");
        followed.repairs("kept", stop, || runs("kept"));
        followed.engine.stop();
    });
}

#[test]
fn a_service_that_ends_again_and_again_is_a_failure_that_is_told() {
    let test = "svc::a_service_that_ends_again_and_again_is_a_failure_that_is_told";
    Place::machine(test).run(|| {
        std::fs::write(
            format!("{UNITS}/crashing.service"),
            "[Unit]\nStartLimitIntervalSec=100\nStartLimitBurst=4\n\
             [Service]\nExecStart=/bin/sh -c 'sleep 0.1; exit 3'\nRestart=always\nRestartSec=50ms\n",
        )
        .unwrap();
        unit("instead", "ExecStart=/bin/sleep 1000");
        unit("ends", "ExecStart=/bin/true");
        unit("fails", "ExecStart=/bin/false");
        unit("loops", "ExecStart=/bin/false\nRestart=always\nRestartSec=10s");
        shell("systemctl daemon-reload");
        for (name, wanted) in [
            ("ends", "start ends.service: its command ended at once, without a failure; one that is to end needs `Type=oneshot`"),
            ("fails", "start fails.service: it failed at once; `systemctl status` and the journal say why"),
            ("loops", "start loops.service: it ended at once, and systemd starts it again and again; `systemctl status` and the journal say why"),
        ] {
            fails(&format!("svc \"{name}\" {{ state => \"running\", Meta:retry => 0, }}\n"), wanted);
        }
        let program = "svc \"crashing\" { state => \"running\", Meta:retry => 2, Meta:delay => 100, }
            svc \"instead\" { state => \"running\", }
        ";
        let place = Hermetic::new();
        let main = place.write("main.mcl", program);
        let mut engine = Engine::start(&place, &[main.to_str().unwrap()]);
        let failed = engine.event("the end of all tries", |event| {
            event["event"] == "gave up" && event["name"] == "crashing"
        });
        let error = failed["error"].as_str().unwrap();
        assert!(error.starts_with("start crashing.service: "), "{error}");
        // The others are kept right.
        shell("systemctl stop instead");
        engine.repaired_until("svc", "instead", || runs("instead"));
        engine.stop();
    });
}

#[test]
fn services_of_our_own_user_are_those_of_its_manager() {
    let test = "svc::services_of_our_own_user_are_those_of_its_manager";
    Place::machine(test).run(|| {
        let program = "svc \"mine\" { state => \"running\", startup => \"enabled\", session => true, }\n";
        // Before there is a manager: that is said, and it is found when it is there.
        let place = Hermetic::new();
        let main = place.write("main.mcl", program);
        let mut engine = Engine::start(&place, &[main.to_str().unwrap()]);
        let failed = engine.event("a failure", |event| event["error"].is_string());
        let error = failed["error"].as_str().unwrap();
        assert!(
            error.contains("the bus of our own user cannot be reached"),
            "{error}"
        );
        let user = "/root/.config/systemd/user";
        std::fs::create_dir_all(user).unwrap();
        std::fs::write(
            format!("{user}/mine.service"),
            "[Service]\nExecStart=/bin/sleep 1000\n[Install]\nWantedBy=default.target\n",
        )
        .unwrap();
        shell("loginctl enable-linger root; systemctl start user@0.service");
        let own = "XDG_RUNTIME_DIR=/run/user/0 systemctl --user";
        let runs = || shell(&format!("{own} show mine -P ActiveState || true")) == "active";
        engine.repaired_until("svc", "mine", runs);
        assert_eq!(shell(&format!("{own} is-enabled mine")), "enabled");
        shell(&format!("{own} stop mine"));
        engine.repaired_until("svc", "mine", runs);
        assert_eq!(
            property("mine", "LoadState"),
            "not-found",
            "the system has no such service"
        );
        engine.stop();
    });
}

#[test]
fn without_systemd_that_is_said() {
    let (_, error) = once("svc \"sshd\" { state => \"running\", }", &[]);
    if Path::new("/run/systemd/system").is_dir() {
        eprintln!("skipped: systemd runs on this machine");
        return;
    }
    let wanted = "use systemd: it does not run on this machine: `/run/systemd/system` is not a directory";
    assert_eq!(error.as_deref(), Some(wanted));
}

/// What a running process costs: threads, and processor time in hundredths of a second.
fn cost(process: u32) -> (usize, u64) {
    let stat = text(Path::new(&format!("/proc/{process}/stat")));
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let number = |at: usize| {
        fields[at]
            .parse::<u64>()
            .expect("the kernel writes a number there")
    };
    (number(17) as usize, number(11) + number(12))
}

#[test]
fn five_hundred_services_cost_nothing_at_rest() {
    let test = "svc::five_hundred_services_cost_nothing_at_rest";
    Place::machine(test).run(|| {
        unit("many@", "ExecStart=/bin/sleep 1000");
        unit("kept", "ExecStart=/bin/sleep 1000");
        shell("systemctl daemon-reload");
        let many: String = (0..500)
            .map(|number| {
                format!("svc \"many@{number}\" {{ state => \"stopped\", startup => \"disabled\", }}\n")
            })
            .collect();
        // One run asks more of systemd at a time than the bus lets one connection ask.
        finds(&many, &[], &[]);
        let program = format!("svc \"kept\" {{ state => \"running\", }}\n{many}");
        let place = Hermetic::new();
        let main = place.write("main.mcl", &program);
        let mut engine = Engine::start(&place, &[main.to_str().unwrap()]);
        engine.event("convergence", |event| event["event"] == "converged");
        let mut running = engine.into_running();
        running.drain();
        // It comes to rest: a whole second that costs nothing.
        let deadline = Instant::now() + LIMIT;
        loop {
            let (threads, before) = cost(running.id());
            std::thread::sleep(Duration::from_secs(1));
            let (_, after) = cost(running.id());
            assert!(threads < 40, "no thread for each: {threads}");
            assert!(
                Instant::now() < deadline,
                "it costs {} ms a second",
                (after - before) * 10
            );
            if after == before {
                break;
            }
        }
        let mut engine = Engine::of(running);
        shell("systemctl stop kept");
        engine.repaired_until("svc", "kept", || runs("kept"));
        let process = engine.into_running();
        process.signal("TERM");
        process.finish();
    });
}
