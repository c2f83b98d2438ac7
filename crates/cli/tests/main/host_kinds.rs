//! What holds for every kind that keeps a part of the machine right, on a real machine: a run that may not repair changes nothing and tells
//! what is wrong, a run repairs it, a second one finds nothing, what drifts while it runs is repaired when it happens, what cannot be repaired is
//! told and repaired when it can be, and what is sensitive is told nowhere.
//!
//! A kind is tried with each of its rows. The rows of a group of kinds run on one machine, one after the other; with `SETPOINT_TEST_ROW=text` only those
//! whose name contains the text.

mod rows;
mod secrets;
mod troubles;
mod wrong;

use std::time::{Duration, Instant};

use serde_json::Value as Json;
use setpoint_resources::KINDS;
use setpoint_testing::Hermetic;

use crate::end_to_end::{Engine, run_command};
use crate::fwupd::FWUPD;
use rows::ROWS;
use secrets::SECRETS;
use setpoint_testing::place::Place;
use troubles::{TROUBLES, TROUBLES_AT_START};
use wrong::WRONG;

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

/// How long a repair may take on a slow machine. What is not seen by an event is looked at far less often.
const SEEN_WITHIN: Duration = Duration::from_secs(10);

/// A resource on a machine that is not as it wants. In shell commands, `PLACE` is a directory of the row's own, in which `prefix` is that of the
/// program, and `SETPOINT` the program.
struct Row {
    /// What is told of it when it fails.
    name: &'static str,
    program: &'static str,
    /// Which resource of the program is looked at: kind and name.
    resource: (&'static str, &'static str),
    /// Shell commands that bring the machine into a state that is wrong.
    prepare: &'static str,
    /// A shell command that prints what the resource is about. Nothing that may not repair changes that.
    digest: &'static str,
    /// What that prints when all is right.
    right: &'static str,
    /// Shell commands after which it is not right any more. Empty for those that [`NOTHING_DRIFTS`] names.
    drift: &'static str,
}

/// Kinds whose rows run on one machine, in the order of [`ROWS`].
struct Group {
    kinds: &'static [&'static str],
    /// Programs without which the test is skipped.
    needs: &'static [&'static str],
    /// Shell commands that prepare the machine.
    prepare: &'static str,
}

const SERVICES: Group = Group {
    kinds: &["svc", "cron", "nspawn", "msg"],
    needs: &["machinectl", "busybox"],
    prepare: "true",
};

const ACCOUNTS: Group = Group {
    kinds: &["user", "group", "ssh:authorized_key", "gsettings", "hostname"],
    needs: &["gsettings"],
    prepare: "true",
};

/// What is told of the firmware hides much of what the kernel tells, so `fwattr` is the last.
const PACKAGES: Group = Group {
    kinds: &[
        "pkg",
        "pkg:repository",
        "fwupd:remote",
        "fwupd:device",
        "fwupd:system",
        "fwattr",
    ],
    needs: &["fwupdmgr", "apt-get"],
    prepare: FWUPD,
};

const NETWORKS: Group = Group {
    kinds: &["mount", "net", "sysctl", "firewalld"],
    needs: &["firewall-cmd"],
    prepare: "true",
};

const EDITS: Group = Group {
    kinds: &[
        "augeas",
        "block",
        "line",
        "substitute",
        "ini",
        "hosts",
        "sudoers",
        "timezone",
        "json:edit",
    ],
    needs: &["augtool", "visudo"],
    prepare: "true",
};

const FILES: Group = Group {
    kinds: &[
        "file",
        "exec",
        "download",
        "archive",
        "git",
        "gzip",
        "tar",
        "deploy:tar",
        "password",
        "kv",
        "schedule",
    ],
    needs: &["git", "tar"],
    prepare: "true",
};

const GROUPS: [&Group; 6] = [&SERVICES, &ACCOUNTS, &PACKAGES, &NETWORKS, &EDITS, &FILES];

impl Group {
    /// Tries the rows of the group on a machine of their own.
    fn try_rows(&self, test: &'static str) {
        Place::machine(test).needing(self.needs).run(|| {
            setpoint_testing::place::shell(SMALL);
            setpoint_testing::place::shell(self.prepare);
            let text = std::env::var("SETPOINT_TEST_ROW").unwrap_or_default();
            ROWS.iter()
                .filter(|row| self.kinds.contains(&row.resource.0) && row.name.contains(&text))
                .for_each(try_row);
        });
    }
}

/// Something that keeps a resource from being repaired for a while.
struct Trouble {
    /// The name of the row.
    row: &'static str,
    /// Shell commands that make the trouble, and after them those that make something wrong. The other way round for what is there at the start.
    begin: &'static str,
    drift: &'static str,
    /// What is said then.
    said: &'static str,
    /// Shell commands that end it.
    end: &'static str,
}

/// What is written in the program of a row, how it is written to be sensitive, and what must then be nowhere.
struct Secret {
    row: &'static str,
    written: &'static str,
    hidden: &'static str,
    /// A text, or after `FILE` what is in a file.
    text: &'static str,
    /// What a run tells of it while it is not sensitive: mostly itself.
    told: &'static str,
}

/// Kinds that keep nothing of a machine right, and why.
const KEEP_NOTHING: &[(&str, &str)] = &[
    ("print", "it prints"),
    ("noop", "it does nothing"),
    ("timer", "it waits"),
    ("wait", "it waits"),
    ("value", "it hands a value on"),
    ("test", "it takes parameters of every type and keeps none"),
    ("exit", "it ends the program"),
    (
        "remote",
        "it keeps another host, of which the tests of the cluster tell",
    ),
    ("_panic", "it is a mistake on purpose"),
];

/// Rows of which nothing can drift, nor be right at the start of another process, and why.
const NOTHING_DRIFTS: &[(&str, &str)] = &[(
    "a message to the journal",
    "each process sends it once when it starts; what was sent cannot drift",
)];

/// Rows whose secret is told by no run, also where it is none, and why: what was asserted of the others cannot be of these.
const NEVER_TOLD: &[(&str, &str)] = &[
    (
        "the firmware of all devices",
        "there is one word for its state, and what is excluded is passed over",
    ),
    (
        "a password that is kept",
        "what is generated is told nowhere, however long it shall be",
    ),
];

/// Makes room for few files below `/small`.
const SMALL: &str = "mkdir /small; mount -t tmpfs -o size=1m,nr_inodes=80 tmpfs /small";

/// Everything on the disks of the machine that is not as when the machine was started, and each change of it: where it is, its type, mode, owner and size,
/// when and as what it was written. What the system manager, the kernel and the journal keep is not asked, nor what fwupd makes for itself
/// a while after its start, nor our own prefix, which is below `/tmp`.
const WHOLE_ROOT: &str = "cd /run/changed; find . /small -xdev \
                          \\( -path ./tmp -o -path ./run -o -path ./proc -o -path ./sys -o -path ./dev -o -path ./var/log -o -path ./var/cache/fwupd \\) -prune -o \
                          -printf '%p %y %m %U:%G %s %T+ %C+ %i %l\\n' | sort";

/// A directory of a row's own.
struct Site(Hermetic);

impl Site {
    /// Names of the place and the program instead of the words that stand for them.
    fn filled(&self, text: &str) -> String {
        let place = self.0.path("").display().to_string();
        text.replace("PLACE/", &place).replace("SETPOINT", BINARY)
    }

    fn shell(&self, command: &str) -> String {
        setpoint_testing::place::shell(&self.filled(command))
    }

    /// What a run that ends by itself says.
    fn said(&self, arguments: &[&str]) -> Said {
        let output = run_command(&self.0, arguments)
            .output()
            .expect("the program can be started");
        Said {
            events: String::from_utf8_lossy(&output.stdout).into_owned(),
            errors: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// That a secret is not in what was said.
    #[track_caller]
    fn assert_hidden(&self, secret: &Secret, said: &str) {
        let text = match secret.text.strip_prefix("FILE ") {
            Some(file) => self.shell(&format!("cat {file} 2>/dev/null || echo there is none")),
            None => secret.text.to_owned(),
        };
        for text in [&*text, secret.told] {
            assert!(!said.contains(text), "{}: `{text}` is in: {said}", secret.row);
        }
    }

    /// How many entries of the machine's journal have a text in any of their fields.
    fn in_journal(&self, text: &str) -> String {
        self.shell(&format!(
            "journalctl --sync; journalctl -q -a -o verbose --no-pager | grep -c -F -e '{text}' || true"
        ))
    }
}

/// What a run said: an event in each line, and what else there was to say.
struct Said {
    events: String,
    errors: String,
}

impl Said {
    fn events(&self) -> Vec<Json> {
        let lines = self.events.lines();
        lines
            .map(|line| serde_json::from_str(line).expect("every line is one JSON object"))
            .collect()
    }

    fn has(&self, text: &str) -> bool {
        self.events.contains(text) || self.errors.contains(text)
    }
}

/// The fields that a resource found wrong.
fn drifts(events: &[Json], (kind, name): (&str, &str)) -> Vec<String> {
    let of_it = |event: &&Json| event["event"] == "drift" && event["kind"] == kind && event["name"] == name;
    let fields = events
        .iter()
        .filter(of_it)
        .map(|event| event["field"].to_string());
    fields.collect()
}

/// Why a row is told in a list of exceptions.
#[expect(clippy::print_stderr, reason = "for who looks, with `--nocapture`")]
fn excepted(list: &[(&str, &str)], row: &Row) -> bool {
    let found = list.iter().find(|(name, _)| *name == row.name);
    if let Some((name, why)) = found {
        eprintln!("{}, {name}: {why}", row.resource.0);
    }
    found.is_some()
}

fn try_row(row: &Row) {
    let Row { name, program, .. } = row;
    let site = Site(Hermetic::new());
    let main = site.0.write("main.mcl", program);
    let main = main.to_str().expect("the place has a plain name");
    site.shell(row.prepare);
    let wrong = site.shell(row.digest);
    assert_ne!(wrong, row.right, "{name}: it is wrong at the beginning");
    let before = site.shell(WHOLE_ROOT);
    let looked = site.said(&["--once", "--noop", main]);
    let after = site.shell(WHOLE_ROOT);
    assert!(
        !drifts(&looked.events(), row.resource).is_empty(),
        "{name}: {}",
        looked.events
    );
    let touched: Vec<&str> = after
        .lines()
        .filter(|line| !before.lines().any(|known| known == *line))
        .collect();
    assert!(
        touched.is_empty() && before.lines().count() == after.lines().count(),
        "{name}: looking touches {touched:#?}"
    );
    assert_eq!(site.shell(row.digest), wrong, "{name}: looking changes nothing");
    let repaired = site.said(&["--once", main]);
    assert_eq!(site.shell(row.digest), row.right, "{name}: {}", repaired.events);
    let drifts_by_hand = !excepted(NOTHING_DRIFTS, row);
    if drifts_by_hand {
        let again = site.said(&["--once", main]).events();
        assert_eq!(drifts(&again, row.resource), [""; 0], "{name}: a second run");
    }
    let secret = SECRETS.iter().find(|secret| secret.row == *name);
    let mut in_journal = String::new();
    if let Some(secret) = secret {
        let told = looked.has(secret.told) || repaired.has(secret.told);
        assert!(
            told || excepted(NEVER_TOLD, row),
            "{name}: a run tells it while it is not sensitive: {}",
            repaired.events
        );
        if row.resource.0 == "msg" {
            in_journal = site.in_journal(secret.text);
        }
        hide(row, secret, &site, main);
    }
    let mut engine = Engine::start(&site.0, &[main]);
    let (kind, of) = row.resource;
    engine.event("the first look", |event| {
        event["event"] == "run ended" && event["kind"] == kind && event["name"] == of
    });
    if drifts_by_hand {
        drift_and_wait(row, &site, &mut engine);
    }
    if let Some(trouble) = TROUBLES.iter().find(|trouble| trouble.row == *name) {
        site.shell(trouble.begin);
        site.shell(trouble.drift);
        until_it_ends(row, trouble, &site, &mut engine);
    }
    end(row, secret, &site, engine);
    if let Some(trouble) = TROUBLES_AT_START.iter().find(|trouble| trouble.row == *name) {
        site.shell(trouble.drift);
        site.shell(trouble.begin);
        let mut engine = Engine::start(&site.0, &[main]);
        until_it_ends(row, trouble, &site, &mut engine);
        end(row, secret, &site, engine);
    }
    if let Some(secret) = secret.filter(|_| row.resource.0 == "msg") {
        assert_eq!(
            site.in_journal(secret.text),
            in_journal,
            "{name}: nor in the journal"
        );
    }
}

/// Runs the row's program with a parameter that is sensitive, and leaves it so.
fn hide(row: &Row, secret: &Secret, site: &Site, main: &str) {
    let Row { name, program, .. } = row;
    let hidden = program.replace(secret.written, secret.hidden);
    assert_ne!(hidden, *program, "{name}: its program contains the secret");
    site.0.write("main.mcl", &hidden);
    site.shell(row.drift);
    for arguments in [&["--once", "--noop", main][..], &["--once", main]] {
        let said = site.said(arguments);
        site.assert_hidden(secret, &said.events);
        site.assert_hidden(secret, &said.errors);
    }
    assert_eq!(site.shell(row.digest), row.right, "{name}: hidden, and right");
}

/// What is changed by hand is right again, and how soon.
#[expect(clippy::print_stderr, reason = "for who looks, with `--nocapture`")]
fn drift_and_wait(row: &Row, site: &Site, engine: &mut Engine) {
    let (kind, of) = row.resource;
    site.shell(row.drift);
    let begun = Instant::now();
    engine.repaired_until(kind, of, || site.shell(row.digest) == row.right);
    let took = begun.elapsed();
    eprintln!(
        "{kind}, {}: right again {took:.1?} after it was changed",
        row.name
    );
    assert!(
        took < SEEN_WITHIN,
        "{}: it was seen by an event, not by looking again: {took:?}",
        row.name
    );
}

/// The trouble is told, and when it ends all is right again without help.
fn until_it_ends(row: &Row, trouble: &Trouble, site: &Site, engine: &mut Engine) {
    let (kind, of) = row.resource;
    let wanted = site.filled(trouble.said);
    engine.event(&format!("failure of {kind}[{of}]"), |event| {
        // A run that fails says why; one that waits for somebody says for whom.
        let said = match event["event"].as_str() {
            Some("log") => event["message"].as_str(),
            _ => event["error"].as_str(),
        };
        event["kind"] == kind
            && event["name"] == of
            && said.is_some_and(|said| !said.is_empty() && said.contains(&wanted))
    });
    site.shell(trouble.end);
    engine.repaired_until(kind, of, || site.shell(row.digest) == row.right);
}

/// Ends it politely, and looks through all that it said.
fn end(row: &Row, secret: Option<&Secret>, site: &Site, engine: Engine) {
    let mut running = engine.into_running();
    running.drain();
    if let Some(secret) = secret {
        site.assert_hidden(secret, &running.seen().join("\n"));
    }
    running.signal("TERM");
    let (status, errors) = running.finish();
    assert_eq!(status.code(), Some(0), "{}: {errors}", row.name);
}

/// The kind of a row.
fn kind_of(name: &str) -> &'static str {
    let row = ROWS.iter().find(|row| row.name == name);
    row.unwrap_or_else(|| panic!("there is no row `{name}`"))
        .resource
        .0
}

#[test]
fn every_kind_has_its_rows() {
    for (kind, why) in KEEP_NOTHING {
        eprintln!("{kind}: there is nothing to keep right: {why}");
    }
    for (name, _) in NOTHING_DRIFTS {
        kind_of(name);
    }
    for kind in KINDS.iter().map(|spec| spec.schema.kind) {
        let keeps_nothing = KEEP_NOTHING.iter().any(|(name, _)| *name == kind);
        let has_row = ROWS.iter().any(|row| row.resource.0 == kind);
        assert_ne!(
            keeps_nothing, has_row,
            "{kind}: it has a row, or a reason to have none"
        );
        if !has_row {
            continue;
        }
        let groups = GROUPS.iter().filter(|group| group.kinds.contains(&kind));
        assert_eq!(groups.count(), 1, "{kind}: the groups of its rows");
        let mut troubles = TROUBLES.iter().chain(TROUBLES_AT_START);
        assert!(
            troubles.any(|trouble| kind_of(trouble.row) == kind),
            "{kind}: nothing keeps it from its repair"
        );
        let mut secrets = SECRETS.iter();
        assert!(
            secrets.any(|secret| kind_of(secret.row) == kind),
            "{kind}: nothing of it is sensitive"
        );
        let mut wrong = WRONG.iter();
        assert!(
            wrong.any(|(wrong, ..)| *wrong == kind),
            "{kind}: nothing of it is wrong"
        );
    }
}

#[test]
fn each_kind_refuses_what_is_wrong_at_its_place() {
    let place = Hermetic::new();
    let refusal = |program: &str| {
        let main = place.write("main.mcl", program);
        let finished = place.run(
            BINARY,
            &["graph", main.to_str().expect("the place has a plain name")],
        );
        assert_eq!(finished.code, 1, "{program}: {}", finished.stderr);
        finished.stderr
    };
    for (kind, resource, said) in WRONG {
        let (before, rest) = resource.split_once('«').expect("it says what is wrong");
        let (wrong, after) = rest.split_once('»').expect("it says where that ends");
        let told = refusal(&format!("{before}{wrong}{after}\n"));
        let first = told.lines().next().unwrap_or_default();
        assert!(first.contains(said), "{kind}: {told}");
        let column = before.lines().last().map_or(0, |last| last.chars().count()) + 1;
        let at = format!("main.mcl:{}:{column}\n", before.lines().count());
        assert!(told.contains(&at), "{kind}, at {at}{told}");
        let carets = "^".repeat(wrong.chars().count());
        let mut under = told.lines().map(|line| line.trim_start_matches(['|', ' ', '\t']));
        assert!(under.any(|line| line == carets), "{kind}: {told}");
        assert!(!told.contains("\nerror"), "{kind}, and nothing else: {told}");

        // The text of the program is shown, and not what it means.
        let (parameter, value) = wrong.split_once(" => ").expect("a parameter has a value");
        let value = value.trim_end_matches(',');
        let told = refusal(&format!("{before}{parameter} => sensitive({value}),{after}\n"));
        let hidden = told.lines().next().unwrap_or_default();
        let value = value.trim_matches(['[', ']', ',', '"']);
        assert!(
            value.len() < 2 || first.matches(value).count() == 0 || !hidden.contains(&format!("`{value}`")),
            "{kind}: {told}"
        );
        assert!(told.contains(&at), "{kind}, at {at}{told}");
    }
}

#[test]
fn services_are_checked_repaired_and_followed() {
    SERVICES.try_rows("host_kinds::services_are_checked_repaired_and_followed");
}

#[test]
fn accounts_and_names_are_checked_repaired_and_followed() {
    ACCOUNTS.try_rows("host_kinds::accounts_and_names_are_checked_repaired_and_followed");
}

#[test]
fn packages_and_firmware_are_checked_repaired_and_followed() {
    PACKAGES.try_rows("host_kinds::packages_and_firmware_are_checked_repaired_and_followed");
}

#[test]
fn networks_and_the_kernel_are_checked_repaired_and_followed() {
    NETWORKS.try_rows("host_kinds::networks_and_the_kernel_are_checked_repaired_and_followed");
}

#[test]
fn edits_of_files_are_checked_repaired_and_followed() {
    EDITS.try_rows("host_kinds::edits_of_files_are_checked_repaired_and_followed");
}

#[test]
fn files_and_values_are_checked_repaired_and_followed() {
    FILES.try_rows("host_kinds::files_and_values_are_checked_repaired_and_followed");
}
