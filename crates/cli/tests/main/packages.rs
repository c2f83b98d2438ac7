//! The kind `pkg`, with the real apt and dpkg on a machine of its own and a repository that is made on the spot.

use setpoint_testing::{Finished, Hermetic};

use crate::end_to_end::Engine;
use crate::kind::{self, change, events, failure, part, run, run_in};
use setpoint_testing::place::{Place, shell};

/// Makes a repository in `/repo`, the only one that there is, and functions for packages in it: `package NAME VERSION [CONTROL…]` makes one of what
/// is in `/build`, and `index` has apt know of them.
pub(crate) const REPOSITORY: &str = include_str!("../../../testing/fixtures/local-repository.sh");

/// The drift that a run found, with the name of each package, sorted.
pub(crate) fn drifts(finished: &Finished) -> Vec<String> {
    let all = kind::drifts(finished);
    let mut drifts: Vec<String> = all
        .iter()
        .map(|drift| format!("{} {}", part(drift, "name"), change(drift)))
        .collect();
    drifts.sort();
    drifts
}

/// Runs a program that must succeed, and returns the drift that it found.
#[track_caller]
pub(crate) fn repair(program: &str) -> Vec<String> {
    let place = Hermetic::new();
    let finished = run_in(&place, program, &[]);
    assert_eq!(finished.code, 0, "{}{}", finished.stdout, finished.stderr);
    let again = run_in(&place, program, &[]);
    assert_eq!(drifts(&again), [""; 0], "a second run: {}", again.stdout);
    drifts(&finished)
}

/// Versions of packages, `-` for one that is not there.
fn versions(names: &[&str]) -> String {
    let of = |name: &&str| {
        shell(&format!(
            "dpkg-query -W -f '${{db:Status-Abbrev}} ${{Version}}\\n' {name} 2>/dev/null | sed -n 's/^[ih]i *//p' | grep . || echo -"
        ))
    };
    names.iter().map(of).collect::<Vec<String>>().join(" ")
}

#[test]
fn packages_are_installed_removed_upgraded_and_held() {
    let test = "packages::packages_are_installed_removed_upgraded_and_held";
    Place::machine(test).needing(&["apt-get", "dpkg-deb"]).run(|| {
        shell(REPOSITORY);
        shell("package one 1.0; package one 1.1; package two 1; package needy 1 'Depends: two'; index");
        states();
        whom_to_blame();
        what_is_edited_stays();
        locked_and_interrupted();
        followed();
    });
}

fn states() {
    assert_eq!(
        repair("pkg \"one\" {\n\tstate => \"1.0\",\n}\n"),
        ["one version: (absent) -> 1.0"]
    );
    assert_eq!(versions(&["one", "two"]), "1.0 -");
    assert_eq!(repair("pkg \"one\" {}\n"), [""; 0]);
    let newest = "pkg \"one\" {\n\tstate => \"newest\",\n}\npkg \"two\" {\n\tstate => \"newest\",\n}\n";
    assert_eq!(
        repair(newest),
        ["one version: 1.0 -> 1.1", "two state: uninstalled -> newest (1)"]
    );
    assert_eq!(versions(&["one", "two"]), "1.1 1");
    let said = failure("pkg \"one\" {\n\tstate => \"1.0\",\n}\n");
    assert!(
        said.contains("`allowdowngrade => true` allows to go back"),
        "{said}"
    );
    let lower = "pkg \"one\" {\n\tstate => \"1.0\",\n\tallowdowngrade => true,\n\thold => true,\n}\n";
    assert_eq!(
        repair(lower),
        [
            "one hold: not held -> held",
            "one version: installed (1.1) -> 1.0"
        ]
    );
    assert_eq!(shell("apt-mark showhold"), "one");
    let said = failure("pkg \"one\" {\n\tstate => \"newest\",\n}\n");
    assert!(said.contains("it is held; set `hold`"), "{said}");
    let freed = "pkg \"one\" {\n\tstate => \"newest\",\n\thold => false,\n}\n";
    assert_eq!(
        repair(freed),
        ["one hold: held -> not held", "one version: 1.0 -> 1.1"]
    );
    // A held package keeps its version and its hold, although another one of the transaction may change.
    shell(
        "package held 1.0; package other 1.0; index; apt-get install -qq held other; apt-mark hold held other; package held 1.1; package other 1.1; index",
    );
    let other = "pkg \"held\" {\n\tstate => \"newest\",\n}\npkg \"other\" {\n\tstate => \"newest\",\n\thold => true,\n}\n";
    let said = failure(other);
    assert!(said.contains("it is held; set `hold`"), "{said}");
    assert_eq!(versions(&["held", "other"]), "1.0 1.1");
    assert_eq!(shell("apt-mark showhold"), "held\nother");
    shell("apt-mark unhold held other");
    // A virtual package is refused before a provider is chosen.
    shell("package provider 1 'Provides: service'; index");
    let said = failure("pkg \"service\" {}\n");
    assert!(
        said.contains("it is a virtual package; name one of those that provide it: provider"),
        "{said}"
    );
    assert_eq!(versions(&["provider"]), "-");
    // What needs it goes with it, and what nobody knows is not there.
    repair("pkg \"needy\" {}\n");
    let gone = "pkg \"two\" {\n\tstate => \"uninstalled\",\n}\npkg \"unheard-of\" {\n\tstate => \"uninstalled\",\n}\n";
    assert_eq!(repair(gone), ["two state: installed (1) -> uninstalled"]);
    assert_eq!(versions(&["one", "two", "needy"]), "1.1 - -");
    let merged = "pkg \"two\" {}\npkg \"two\" {\n\tstate => \"newest\",\n}\n";
    assert_eq!(repair(merged), ["two state: uninstalled -> newest (1)"]);
}

fn whom_to_blame() {
    shell(
        "mkdir -p /build/DEBIAN; printf '#!/bin/sh\\n[ -e /may-work ]\\n' > /build/DEBIAN/postinst; chmod 755 /build/DEBIAN/postinst; package broken 1",
    );
    shell(
        "package good 1; package fine 1; package clash 1 'Conflicts: good'; package lacking 1 'Depends: not-there'; index",
    );
    let program = "\
pkg [\"good\", \"fine\", \"broken\", \"nowhere\", \"lacking\",] {
	Meta:retry => 0,
}
exec \"configure good\" {
	cmd => \"echo configured >> /after-good\",
	shell => \"/bin/sh\",
	refresh_only => true,
	Listen => Pkg[\"good\"],
}
exec \"use nowhere\" {
	cmd => \"touch /after-nowhere\",
	shell => \"/bin/sh\",
	Depend => Pkg[\"nowhere\"],
}
";
    let finished = run(program, &[]);
    assert_eq!(finished.code, 1);
    // The others are right, also the one that has taken all of them in, and the resources after them run.
    assert_eq!(
        shell("cat /after-good; ls /after-nowhere 2>/dev/null || true"),
        "configured"
    );
    let counts = events(&finished)
        .last()
        .map(|event| event["resources"].clone())
        .unwrap_or_default();
    assert_eq!(
        (
            &counts["failed"],
            &counts["blocked"],
            &counts["created"],
            &counts["ran"]
        ),
        (&3.into(), &1.into(), &2.into(), &1.into()),
        "{counts}"
    );
    let of = |name: &str, event: &str| {
        events(&finished)
            .iter()
            .any(|told| told["name"] == name && told["event"] == event)
    };
    for name in ["good", "fine"] {
        assert!(of(name, "repaired") && !of(name, "gave up"), "{name}");
    }
    for name in ["broken", "nowhere", "lacking"] {
        assert!(of(name, "not repaired") && of(name, "gave up"), "{name}");
    }
    let said = finished.stdout + &finished.stderr;
    for blamed in [
        "install nowhere: no source of packages has one of this name",
        "install broken: installed broken package post-installation script subprocess returned error exit status 1",
        "install lacking: Depends: not-there but it is not installable",
    ] {
        assert!(said.contains(blamed), "{blamed}: {said}");
    }
    assert_eq!(versions(&["good", "fine", "broken", "lacking"]), "1 1 - -");
    // What stands half-installed is brought to its end as soon as that can be.
    shell("touch /may-work");
    assert_eq!(
        repair("pkg \"broken\" {}\n"),
        ["broken state: half-configured -> installed"]
    );
    let said = failure("pkg \"clash\" {\n\tMeta:retry => 0,\n}\n");
    assert!(
        said.contains("install clash: ") && said.contains("remove is disabled"),
        "{said}"
    );
    assert_eq!(
        versions(&["good", "clash"]),
        "1 -",
        "nothing else goes to make room"
    );
    let said = failure("pkg \"one\" {\n\tstate => \"7.7\",\n\tMeta:retry => 0,\n}\n");
    assert!(said.contains("there is no version 7.7 of it"), "{said}");
}

fn what_is_edited_stays() {
    for version in ["1", "2"] {
        shell(&format!(
            "mkdir -p /build/etc /build/DEBIAN; echo {version} > /build/etc/configured.conf; echo /etc/configured.conf > /build/DEBIAN/conffiles; package configured {version}"
        ));
    }
    shell("index");
    repair("pkg \"configured\" {\n\tstate => \"1\",\n}\n");
    shell("echo mine > /etc/configured.conf");
    repair("pkg \"configured\" {\n\tstate => \"newest\",\n}\n");
    assert_eq!(versions(&["configured"]), "2");
    assert_eq!(shell("cat /etc/configured.conf"), "mine");
}

fn locked_and_interrupted() {
    shell("package late 1; index");
    // Another process changes packages for two seconds.
    let lock = "import fcntl, time\nfile = open('/var/lib/dpkg/lock-frontend', 'w')\nfcntl.lockf(file, fcntl.LOCK_EX)\nopen('/locked', 'w')\ntime.sleep(2)\n";
    let mut holder = std::process::Command::new("python3")
        .args(["-c", lock])
        .spawn()
        .expect("python3 can be started");
    while !std::path::Path::new("/locked").exists() {
        std::thread::yield_now();
    }
    let finished = run("pkg \"late\" {}\n", &[]);
    assert_eq!(finished.code, 0, "{}", finished.stdout);
    let told = format!("(process {}) changes packages just now; waits", holder.id());
    assert!(finished.stdout.contains(&told), "{told}: {}", finished.stdout);
    holder.wait().expect("it ends");
    // dpkg unpacked it and was killed.
    shell("package torn 1; index; dpkg --unpack /repo/torn_1_all.deb > /dev/null");
    shell(
        "printf 'Package: torn\\nStatus: install ok unpacked\\nArchitecture: all\\nVersion: 1\\nMaintainer: test\\nDescription: a test\\n\\n' > /var/lib/dpkg/updates/0000",
    );
    let finished = run("pkg \"torn\" {}\n", &[]);
    assert_eq!(finished.code, 0, "{}", finished.stdout);
    assert!(
        finished.stdout.contains("dpkg was interrupted before"),
        "{}",
        finished.stdout
    );
    assert_eq!(versions(&["torn"]), "1");
}

fn followed() {
    shell(
        "mkdir -p /build/usr/lib/systemd/system; printf '[Service]\\nExecStart=/bin/sleep 1000\\n' > /build/usr/lib/systemd/system/named-otherwise.service; package served 1; index",
    );
    let place = Hermetic::new();
    let program = "\
pkg \"served\" {}
svc \"named-otherwise\" {
	state => \"running\",
}
";
    repair("pkg \"served\" {}\n");
    let path = place.write("main.mcl", program);
    let path = path.to_str().expect("the place has a plain name");
    let mut engine = Engine::start(&place, &[path]);
    // The service comes after the package that brings it, whose files say so.
    engine.event("the first look at the package", |event| {
        assert!(event["event"] != "run ended" || event["kind"] != "svc", "{event}");
        event["event"] == "run ended" && event["kind"] == "pkg"
    });
    shell("dpkg --remove served > /dev/null 2>&1");
    engine.repaired_until("pkg", "served", || versions(&["served"]) == "1");
    engine.stop();
}

#[test]
fn what_is_newest_is_asked_of_lists_that_are_not_older_than_a_day() {
    let test = "packages::what_is_newest_is_asked_of_lists_that_are_not_older_than_a_day";
    Place::machine(test).needing(&["apt-get", "dpkg-deb"]).run(|| {
        shell(REPOSITORY);
        shell("package one 1.0; index; apt-get -q -y install one > /dev/null");
        // Another version comes, and nobody tells apt.
        shell("package one 2.0; sed '/apt-get/d' /usr/local/bin/index > /usr/local/bin/publish; chmod +x /usr/local/bin/publish; publish");
        let newest = "pkg \"one\" {\n\tstate => \"newest\",\n}\n";
        let place = Hermetic::new();
        assert_eq!(drifts(&run_in(&place, newest, &[])), [""; 0], "the lists were fetched just now");
        let age = "touch -d '25 hours ago' /var/lib/apt/lists /var/lib/apt/lists/partial";
        shell(age);
        // Who may not repair fetches nothing.
        assert_eq!(drifts(&run_in(&place, newest, &["--noop"])), [""; 0]);
        assert_eq!(drifts(&run_in(&place, newest, &[])), ["one version: 1.0 -> 2.0"]);
        // That is remembered, also where the lists themselves do not tell.
        shell("package one 3.0; publish");
        shell(age);
        assert_eq!(drifts(&run_in(&place, newest, &[])), [""; 0]);
    });
}

#[test]
fn looking_changes_nothing_and_no_lock_keeps_from_it() {
    let test = "packages::looking_changes_nothing_and_no_lock_keeps_from_it";
    Place::machine(test).needing(&["apt-get", "dpkg-deb"]).run(|| {
        shell(REPOSITORY);
        shell("package one 1; index");
        let digest = || shell("find /var/lib/dpkg /etc -type f | sort | xargs sha256sum | sha256sum");
        let before = digest();
        let finished = run(
            "pkg \"one\" {}\npkg \"none\" {\n\tstate => \"newest\",\n}\n",
            &["--noop"],
        );
        assert_eq!(finished.code, 0, "{}", finished.stderr);
        assert_eq!(
            drifts(&finished),
            [
                "none state: uninstalled -> newest",
                "one state: uninstalled -> installed"
            ]
        );
        assert_eq!(digest(), before);
    });
}

#[test]
fn a_repository_is_set_up_with_its_key_before_its_packages() {
    let test = "packages::a_repository_is_set_up_with_its_key_before_its_packages";
    let machine = Place::machine(test).needing(&["apt-get", "dpkg-deb", "apt-ftparchive", "gpg"]);
    machine.run(|| {
        shell(REPOSITORY);
        shell("package inside 1; echo > /etc/apt/sources.list; apt-get -q update > /dev/null");
        // A repository that is signed.
        shell(
            "export GNUPGHOME=/gnupg; mkdir -m 700 /gnupg; \
             gpg --batch --quiet --pinentry-mode loopback --passphrase '' --quick-gen-key test@example.com ed25519 sign never; \
             mkdir -p /signed/dists/stable/main/binary-all /signed/dists/stable/main/binary-amd64 /signed/pool; mv /repo/inside_1_all.deb /signed/pool; \
             cd /signed; apt-ftparchive packages pool > dists/stable/main/binary-all/Packages; \
             cp dists/stable/main/binary-all/Packages dists/stable/main/binary-$(dpkg --print-architecture)/; \
             apt-ftparchive -o APT::FTPArchive::Release::Suite=stable -o APT::FTPArchive::Release::Components=main \
             -o APT::FTPArchive::Release::Architectures=\"all $(dpkg --print-architecture)\" release dists/stable > /Release; mv /Release dists/stable/; \
             gpg --batch --quiet --clearsign -o dists/stable/InRelease dists/stable/Release; \
             gpg --armor --export > /key.asc; gpg --batch --quiet --pinentry-mode loopback --passphrase '' --quick-gen-key other@example.com ed25519 sign never; \
             gpg --armor --export other@example.com > /other.asc; chmod -R a+rX /signed",
        );
        let program = |key: &str| {
            format!(
                "import \"os\"\npkg \"inside\" {{}}\npkg:repository \"ours\" {{\n\tstate => \"exists\",\n\turis => [\"file:/signed\",],\n\tsuites => [\"stable\",],\n\
                 \tcomponents => [\"main\",],\n\tkey => os.readfile(\"{key}\"),\n\tMeta:retry => 0,\n}}\n"
            )
        };
        let said = failure(&program("/other.asc"));
        assert!(said.contains("fetch the lists of packages of") && said.contains("NO_PUBKEY"), "{said}");
        assert_eq!(versions(&["inside"]), "-");
        let drifts = repair(&program("/key.asc"));
        assert!(drifts.contains(&"ours lists of ours: not fetched -> fetched".to_owned()), "{drifts:?}");
        assert_eq!(versions(&["inside"]), "1");
        assert_eq!(
            shell("cat /etc/apt/sources.list.d/ours.sources"),
            "# Setpoint writes this file.\nTypes: deb\nURIs: file:/signed\nSuites: stable\nComponents: main\nSigned-By: /etc/apt/keyrings/ours.asc"
        );
        // An address that becomes a secret is one for whoever could read it before, and apt still has the packages.
        let secret = program("/key.asc").replace("\"file:/signed\"", "sensitive(\"file:/signed\")");
        let drifts = repair(&secret);
assert!(drifts.contains(&"ours mode of the source: (sensitive) -> (sensitive)".to_owned()), "{drifts:?}");
        assert_eq!(shell("stat -c %a /etc/apt/sources.list.d/ours.sources /etc/apt/keyrings/ours.asc"), "600\n644");
        assert!(shell("apt-get -q update").contains("file:/signed"));
        repair("pkg:repository \"ours\" {\n\tstate => \"absent\",\n}\n");
        assert_eq!(shell("ls /etc/apt/sources.list.d /etc/apt/keyrings | grep ours || echo none"), "none");
    });
}
