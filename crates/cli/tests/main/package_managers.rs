//! The kind `pkg` with other managers of packages than apt: the real dnf and rpm, the real pacman and the real PackageKit, each on a machine whose packages are its own, and a
//! stand-in for `apk`, which this distribution does not have.

use std::fs;

use setpoint_testing::Hermetic;

use crate::end_to_end::Engine;
use crate::kind::{failure, run};
use crate::packages::{REPOSITORY, drifts, repair};
use setpoint_testing::place::{Place, shell};

const RPM_REPOSITORY: &str = include_str!("../../../testing/fixtures/rpm-repository.sh");
const PACMAN_REPOSITORY: &str = include_str!("../../../testing/fixtures/pacman-repository.sh");

/// What is different between managers of packages.
struct Manager {
    /// Prints the version of the package `$1`, or `-`.
    version: &'static str,
    /// What follows a version: its release.
    release: &'static str,
    /// Whether a source has several versions of a package.
    has_versions: bool,
    /// Whether a package can be held.
    holds: bool,
    /// A parameter that every package needs here.
    parameter: &'static str,
    /// Removes the package `one` by hand.
    by_hand: &'static str,
}

impl Manager {
    fn versions(&self, names: &[&str]) -> String {
        let of = |name: &&str| shell(&format!("set -- {name}; {}", self.version));
        names.iter().map(of).collect::<Vec<String>>().join(" ")
    }

    /// Packages `one` in the versions 1 and 2, `two`, `needy`, which needs it, and `broken`, which needs what there is not, are there to be had. Of `one`, version 2 only
    /// once `publish` has been run, where there is one version of each.
    fn is_used(&self, publish: &str) {
        let with = |program: &str| program.replace('{', &format!("{{ {} ", self.parameter));
        let repair = |program: &str| repair(&with(program));
        let failure = |program: &str| failure(&with(program));
        let v = |version: &str| format!("{version}{}", self.release);
        let exactly =
            |version: &str, more: &str| format!("pkg \"one\" {{ state => \"{}\", {more} }}\n", v(version));
        // Looking changes nothing.
        let looked = run(
            &with("pkg \"one\" {}\npkg \"two\" { state => \"uninstalled\", }\n"),
            &["--noop"],
        );
        assert_eq!(
            drifts(&looked),
            ["one state: uninstalled -> installed"],
            "{}",
            looked.stdout
        );
        assert_eq!(self.versions(&["one", "two"]), "- -");
        assert_eq!(
            repair(&exactly("1", "")),
            [format!("one version: (absent) -> {}", v("1"))]
        );
        shell(publish);
        let newest = "pkg \"one\" { state => \"newest\", }\npkg \"two\" { state => \"newest\", }\n";
        if self.has_versions {
            let found = repair(newest);
            assert_eq!(found[0], format!("one version: {} -> {}", v("1"), v("2")));
            // Some know the newest version of what is not installed, too.
            assert!(
                found[1].starts_with("two state: uninstalled -> newest"),
                "{found:?}"
            );
            assert_eq!(self.versions(&["one", "two"]), format!("{} {}", v("2"), v("1")));
            let said = failure(&exactly("1", ""));
            assert!(
                said.contains("`allowdowngrade => true` allows to go back"),
                "{said}"
            );
            repair(&exactly("1", "allowdowngrade => true,"));
            repair(newest);
        } else {
            repair(newest);
        }
        assert_eq!(self.versions(&["one", "two"]), format!("{} {}", v("2"), v("1")));
        let said = failure(&exactly("9", ""));
        assert!(said.contains("one in the version 9"), "{said}");
        // What needs it goes with it, and what nobody knows is not there.
        repair("pkg \"needy\" {}\n");
        repair(
            "pkg \"two\" { state => \"uninstalled\", }\npkg \"unheard-of\" { state => \"uninstalled\", }\n",
        );
        assert_eq!(self.versions(&["one", "two", "needy"]), format!("{} - -", v("2")));
        // Of many, those are told that are to blame, and the others are brought.
        repair("pkg \"one\" { state => \"uninstalled\", }\n");
        let said = failure("pkg \"one\" {}\npkg \"unheard-of\" {}\npkg \"broken\" {}\npkg \"two\" {}\n");
        for (name, is_blamed) in [
            ("unheard-of", true),
            ("broken", true),
            ("one", false),
            ("two", false),
        ] {
            assert_eq!(
                said.contains(&format!("install {name}: ")),
                is_blamed,
                "{name}: {said}"
            );
        }
        assert_eq!(
            self.versions(&["one", "two", "broken"]),
            format!("{} {} -", v("2"), v("1"))
        );
        if self.holds {
            assert_eq!(
                repair("pkg \"one\" { hold => true, }\n"),
                ["one hold: not held -> held"]
            );
            assert_eq!(
                repair("pkg \"one\" { hold => false, }\n"),
                ["one hold: held -> not held"]
            );
        }
        // What is removed by hand is brought back when it happens.
        let place = Hermetic::new();
        let mut engine = Engine::of_program(&place, with("pkg \"one\" {}\n"));
        engine.event("convergence", |event| event["event"] == "converged");
        shell(self.by_hand);
        engine.repaired_until("pkg", "one", || self.versions(&["one"]) == v("2"));
        // Looking at the packages does not count as a change of them.
        let mut running = engine.into_running();
        running.drain();
        std::thread::sleep(std::time::Duration::from_secs(1));
        let runs = running
            .drain()
            .iter()
            .filter(|event| event.contains("started run"))
            .count();
        assert!(runs <= 2, "{runs} runs in a second in which nothing happens");
        running.signal("TERM");
        running.finish();
    }
}

#[test]
fn dnf() {
    Place::machine("package_managers::dnf")
        .needing(&["dnf", "rpm", "rpmbuild", "createrepo_c"])
        .run(|| {
            shell(RPM_REPOSITORY);
            shell("package one 1; package one 2; package two 1; package needy 1 'Requires: two'; package broken 1 'Requires: nothing-has-this'; index");
            let source = "pkg:repository \"test\" { state => \"exists\", uris => [\"file:///repo\",], trusted => true, }\n";
            assert_eq!(
                repair(&format!("{source}pkg \"two\" {{}}\n"))[1..],
                ["test source: (absent) -> 88 bytes", "two state: uninstalled -> installed"]
            );
            assert_eq!(shell("tail -n +2 /etc/yum.repos.d/test.repo"), "[test]\nname=test\nbaseurl=file:///repo\nenabled=1\ngpgcheck=0");
            repair("pkg \"two\" { state => \"uninstalled\", }\n");
            let manager = Manager {
                version: "rpm -q $1 > /dev/null && rpm -q --qf '%{VERSION}-%{RELEASE}' $1 || echo -",
                release: "-1",
                has_versions: true,
                holds: false,
                parameter: "",
                by_hand: "rpm -e one",
            };
            manager.is_used("true");
        });
}

#[test]
fn pacman() {
    Place::machine("package_managers::pacman")
        .needing(&["pacman"])
        .run(|| {
            shell(PACMAN_REPOSITORY);
            shell(
                "package one 1; package two 1; package needy 1 two; package broken 1 nothing-has-this; index",
            );
            let manager = Manager {
                version: "pacman -Q $1 2>/dev/null | cut -d' ' -f2 | grep . || echo -",
                release: "-1",
                has_versions: false,
                holds: true,
                parameter: "",
                by_hand: "pacman -R --noconfirm one > /dev/null",
            };
            // The lists were fetched for the first package, and are fetched again by hand.
            manager.is_used("package one 2; index; pacman -Sy > /dev/null");
            assert_eq!(
                shell("cat /etc/pacman.conf"),
                "[options]\nArchitecture = auto\nSigLevel = Never\n[test]\nServer = file:///repo"
            );
            // A lock that nobody holds any more is told, with what to do.
            shell("pacman -R --noconfirm one > /dev/null; touch /var/lib/pacman/db.lck");
            let said = failure("pkg \"one\" {}\n");
            assert!(
                said.contains("what was interrupted has left /var/lib/pacman/db.lck"),
                "{said}"
            );
        });
}

#[test]
fn packagekit() {
    Place::machine("package_managers::packagekit")
        .needing(&["apt-get", "dpkg-deb", "pkcon"])
        .run(|| {
            shell(REPOSITORY);
            shell("package one 1; package one 2; package two 1; package needy 1 'Depends: two'; package broken 1 'Depends: nothing-has-this'; index");
            // The service has the packages of dpkg, and nobody else sees them.
            shell(
                "mv /var/lib/dpkg /var/lib/dpkg.hidden; mkdir /var/lib/dpkg; mkdir -p /etc/systemd/system/packagekit.service.d; \
                 printf '[Service]\\nBindPaths=/var/lib/dpkg.hidden:/var/lib/dpkg\\n' > /etc/systemd/system/packagekit.service.d/hidden.conf; systemctl daemon-reload; systemctl stop packagekit",
            );
            let manager = Manager {
                version: "dpkg-query --admindir=/var/lib/dpkg.hidden -W -f '${db:Status-Abbrev} ${Version}\\n' $1 2>/dev/null | sed -n 's/^[ih]i *//p' | grep . || echo -",
                release: "",
                has_versions: true,
                holds: false,
                parameter: "allowunsupported => true,",
                by_hand: concat!(
                    "echo 'pkg \"one\" { state => \"uninstalled\", allowunsupported => true, }' > /gone.mcl; ",
                    env!("CARGO_BIN_EXE_setpoint"),
                    " run --once --state-dir /gone /gone.mcl > /dev/null"
                ),
            };
            manager.is_used("true");
            let said = failure("pkg \"one\" { hold => true, allowunsupported => true, }\n");
            assert!(said.contains("has no way to do that"), "{said}");
            repair("pkg \"one\" { state => \"uninstalled\", }\n");
            let said = failure("pkg \"one\" {}\n");
            assert!(said.contains("`allowunsupported => true` allows it"), "{said}");
        });
}

/// A stand-in for `apk` by what its manual says of its commands: packages are lines in `/repo/index`, and `/repo/NAME-VERSION` says what one needs.
const APK: &str = r#"#!/bin/sh
db=/lib/apk/db/installed world=/etc/apk/world
installed() { awk -v RS= -v name="$1" '{ p = ""; v = ""; for (i = 1; i <= NF; i++) { if ($i ~ /^P:/) p = substr($i, 3); if ($i ~ /^V:/) v = substr($i, 3) } if (p == name) print v }' $db; }
put() { awk -v RS= -v ORS='\n\n' -v name="P:$1" '{ keep = 1; for (i = 1; i <= NF; i++) if ($i == name) keep = 0; if (keep) print }' $db > $db.new; [ -z "$2" ] || printf 'P:%s\nV:%s\nF:usr/share/%s\nR:version\n\n' $1 $2 $1 >> $db.new; mv $db.new $db; }
available() { grep "^$1 " /repo/index | cut -d' ' -f2 | sort -V; }
command=$1; shift; upgrade= ; rdepends= ; names=
while [ $# -gt 0 ]; do case $1 in --upgrade) upgrade=1;; --rdepends) rdepends=1;; --wait|-l) shift;; -t) shift; [ "$1" = "$2" ] && echo = || { [ "$(printf '%s\n%s\n' $1 $2 | sort -V | head -1)" = "$1" ] && echo '<' || echo '>'; }; exit 0;; --*) ;; *) names="$names $1";; esac; shift; done
case $command in
update) exit 0;;
version) echo 'Installed:                                Available:'
	for name in $names; do is=$(installed $name); new=$(available $name | tail -1); [ -z "$is" ] || [ "$is" = "$new" ] || echo "$name-$is < $new "; done;;
add)
	for name in $names; do
		wanted=${name#*=}; bare=${name%%=*}; [ "$wanted" != "$name" ] || wanted=$(available $bare | tail -1)
		if ! available $bare | grep -q .; then echo "ERROR: unable to select packages:
  $bare (no such package):
    required by: world[$bare]" >&2; exit 1; fi
		if ! available $bare | grep -qx "$wanted"; then echo "ERROR: unable to select packages:
  $bare-$(available $bare | tail -1):
    breaks: world[$name]" >&2; exit 1; fi
		need=$(cat /repo/$bare-$wanted 2>/dev/null); if [ -n "$need" ] && ! available $need | grep -q .; then echo "ERROR: unable to select packages:
  $need (no such package):
    required by: $bare-$wanted[$need]" >&2; exit 1; fi
	done
	for name in $names; do
		wanted=${name#*=}; bare=${name%%=*}; is=$(installed $bare)
		[ "$wanted" != "$name" ] || { wanted=$is; [ -n "$is" ] && [ -z "$upgrade" ] || wanted=$(available $bare | tail -1); }
		need=$(cat /repo/$bare-$wanted 2>/dev/null); [ -z "$need" ] || [ -n "$(installed $need)" ] || put $need $(available $need | tail -1)
		grep -v "^$bare\(=\|$\)" $world > $world.new; echo $name >> $world.new; mv $world.new $world
		put $bare $wanted
	done;;
del)
	for name in $names; do
		grep -v "^$name\(=\|$\)" $world > $world.new; mv $world.new $world; put $name
		for file in $(grep -lx $name /repo/*-[0-9]* 2>/dev/null); do user=$(basename $file); put ${user%-*}; done
	done;;
esac
"#;

#[test]
fn apk() {
    Place::machine("package_managers::apk").run(|| {
        shell("mv /var/lib/dpkg/status /var/lib/dpkg/status.hidden; mkdir -p /lib/apk/db /etc/apk /repo; touch /lib/apk/db/installed /etc/apk/world");
        fs::write("/usr/local/bin/apk", APK).expect("the stand-in can be written");
        shell("chmod +x /usr/local/bin/apk; printf 'one 1\\none 2\\ntwo 1\\nneedy 1\\nbroken 1\\n' > /repo/index; echo two > /repo/needy-1; echo nothing-has-this > /repo/broken-1");
        let manager = Manager {
            version: "grep -A1 -x P:$1 /lib/apk/db/installed | sed -n s/^V://p | grep . || echo -",
            release: "",
            has_versions: true,
            holds: true,
            parameter: "",
            by_hand: "apk del one",
        };
        manager.is_used("true");
    });
}
