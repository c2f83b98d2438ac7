//! What holds for every kind that keeps a part of the machine right, on a real machine: a run that may not repair changes nothing and tells
//! what is wrong, a run repairs it, a second one finds nothing, and what drifts while it runs is repaired when it happens.
//!
//! A kind is tried with each of its rows. All rows run on one machine, one after the other.

use std::time::{Duration, Instant};

use serde_json::Value as Json;
use setpoint_testing::Hermetic;

use crate::end_to_end::{Engine, run_command};
use crate::fwupd::FWUPD;
use crate::place::{Place, shell};

/// How long a repair may take on a slow machine. What is not seen by an event is looked at far less often.
const SEEN_WITHIN: Duration = Duration::from_secs(10);

/// A resource on a machine that is not as it wants.
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
    /// Shell commands after which it is not right any more.
    drift: &'static str,
}

const ROWS: &[Row] = &[
    Row {
        name: "a service that shall run and start by itself",
        program: "svc \"sleeper\" {\n\tstate => \"running\",\n\tstartup => \"enabled\",\n}\n",
        resource: ("svc", "sleeper"),
        prepare: "printf '[Service]\\nExecStart=/bin/sleep 1000\\n[Install]\\nWantedBy=fixture.target\\n' \
                  > /etc/systemd/system/sleeper.service; systemctl daemon-reload",
        digest: "systemctl show sleeper -P ActiveState; systemctl is-enabled sleeper || true",
        right: "active\nenabled",
        drift: "systemctl stop sleeper",
    },
    Row {
        name: "a service that shall not run, nor ever start",
        program: "svc \"unwanted\" {\n\tstate => \"stopped\",\n\tmasked => true,\n}\n",
        resource: ("svc", "unwanted"),
        prepare: "printf '[Service]\\nExecStart=/bin/sleep 1000\\n' > /run/systemd/system/unwanted.service; \
                  systemctl daemon-reload; systemctl start unwanted",
        digest: "systemctl show unwanted -P ActiveState; systemctl is-enabled unwanted || true",
        right: "inactive\nmasked",
        drift: "systemctl unmask unwanted",
    },
    Row {
        name: "a package that shall not be installed",
        program: "pkg \"local-test\" {\n\tstate => \"uninstalled\",\n}\n",
        resource: ("pkg", "local-test"),
        prepare: "mkdir -p /build/DEBIAN; \
                  printf 'Package: local-test\\nVersion: 1\\nArchitecture: all\\nMaintainer: test\\nDescription: a test\\n' > /build/DEBIAN/control; \
                  dpkg-deb -b /build /local-test.deb > /dev/null; dpkg -i /local-test.deb > /dev/null",
        digest: "dpkg-query -W -f '${db:Status-Abbrev}' local-test 2>/dev/null | grep -o ^ii || echo none",
        right: "none",
        drift: "dpkg -i /local-test.deb > /dev/null 2>&1",
    },
    Row {
        name: "a timer and what it runs",
        program: "cron \"nightly\" {\n\ttrigger => \"OnCalendar\",\n\ttime => \"*-*-* 03:00\",\n\tcommand => \"/bin/true\",\n}\n",
        resource: ("cron", "nightly"),
        prepare: "printf '[Timer]\\nOnCalendar=daily\\n[Install]\\nWantedBy=timers.target\\n' > /etc/systemd/system/nightly.timer",
        digest: "systemctl show nightly.timer -P ActiveState; systemctl is-enabled nightly.timer || true; \
                 systemctl show nightly.timer -P TimersCalendar | grep -o 'OnCalendar=[^;]*[^ ;]'; grep ExecStart /etc/systemd/system/nightly.service || true",
        right: "active\nenabled\nOnCalendar=*-*-* 03:00:00\nExecStart=/bin/true",
        drift: "sed -i s/03:00/04:00/ /etc/systemd/system/nightly.timer; systemctl daemon-reload; systemctl stop nightly.timer",
    },
    Row {
        name: "a timer that shall not be",
        program: "cron \"former\" {\n\tstate => \"absent\",\n}\n",
        resource: ("cron", "former"),
        prepare: "printf '[Timer]\\nOnCalendar=daily\\n[Install]\\nWantedBy=timers.target\\n' > /etc/systemd/system/former.timer; \
                  printf '[Service]\\nType=oneshot\\nExecStart=/bin/true\\n' > /run/systemd/system/former.service; \
                  systemctl daemon-reload; systemctl enable --now former.timer",
        digest: "systemctl show former.timer -P LoadState -P ActiveState; ls /etc/systemd/system/former.timer \
                 /etc/systemd/system/timers.target.wants/former.timer 2>/dev/null || true",
        right: "not-found\ninactive",
        drift: "printf '[Timer]\\nOnCalendar=daily\\n' > /etc/systemd/system/former.timer; systemctl daemon-reload; systemctl start former.timer || true",
    },
    Row {
        name: "a file system",
        program: "mount \"/srv/scratch\" {\n\tstate => \"exists\",\n\tdevice => \"scratch\",\n\ttype => \"tmpfs\",\n\toptions => {\"size\" => \"1m\",},\n}\n",
        resource: ("mount", "/srv/scratch"),
        prepare: "printf '# mine\\n' > /etc/fstab",
        digest: "cat /etc/fstab; grep -c ' /srv/scratch tmpfs .*size=1024k' /proc/mounts || true",
        right: "# mine\nscratch /srv/scratch tmpfs size=1m 0 0\n1",
        drift: "umount /srv/scratch",
    },
    Row {
        name: "a network interface",
        program: "net \"one\" {\n\tstate => \"up\",\n\taddrs => [\"192.0.2.7/24\",],\n\tgateway => \"192.0.2.1\",\n}\n",
        resource: ("net", "one"),
        prepare: "ip link add one type veth peer name one-peer; ip link set one-peer up",
        digest: "ip -o -4 addr show dev one up | awk '{print $4}'; ip route show default dev one | sed 's/ *$//'; cat /etc/systemd/network/setpoint-one.network 2>/dev/null || true",
        right: "192.0.2.7/24\ndefault via 192.0.2.1 proto static\n[Match]\nName=one\n[Network]\nAddress=192.0.2.7/24\nGateway=192.0.2.1",
        drift: "ip link set one down; rm /etc/systemd/network/setpoint-one.network",
    },
    Row {
        name: "a source of firmware",
        program: "fwupd:remote \"lvfs-testing\" {\n\tenabled => true,\n}\n",
        resource: ("fwupd:remote", "lvfs-testing"),
        prepare: FWUPD,
        digest: "grep Enabled= /etc/fwupd/remotes.d/lvfs-testing.conf",
        right: "Enabled=true",
        drift: "busctl call org.freedesktop.fwupd / org.freedesktop.fwupd ModifyRemote sss lvfs-testing Enabled false",
    },
    Row {
        name: "a machine of systemd-nspawn",
        program: "nspawn \"tree\" {}\n",
        resource: ("nspawn", "tree"),
        prepare: "cd /var/lib/machines; mkdir -p tree/bin tree/sbin tree/etc tree/proc tree/sys tree/dev tree/tmp tree/usr; \
                  cp /bin/busybox tree/bin; ln -s busybox tree/bin/sh; ln -s ../bin/busybox tree/sbin/init; \
                  echo ::respawn:/bin/busybox sleep 1000 > tree/etc/inittab; echo NAME=tree > tree/etc/os-release; \
                  mkdir -p /etc/systemd/nspawn; printf '[Exec]\\nPrivateUsers=no\\n[Network]\\nVirtualEthernet=no\\n' > /etc/systemd/nspawn/tree.nspawn",
        digest: "systemctl show systemd-nspawn@tree -P ActiveState",
        right: "active",
        drift: "systemctl kill --signal=KILL systemd-nspawn@tree",
    },
    Row {
        name: "an account",
        program: "user \"ada\" {\n\tstate => \"exists\",\n\tuid => 4242,\n\tshell => \"/bin/bash\",\n}\n",
        resource: ("user", "ada"),
        prepare: "useradd --uid 4300 --shell /bin/sh ada",
        digest: "cut -d: -f1,3,7 /etc/passwd | grep ^ada",
        right: "ada:4242:/bin/bash",
        drift: "userdel ada",
    },
    Row {
        name: "a group that shall not be",
        program: "group \"former\" {\n\tstate => \"absent\",\n}\n",
        resource: ("group", "former"),
        prepare: "groupadd former",
        digest: "grep ^former /etc/group || echo none",
        right: "none",
        drift: "groupadd former",
    },
    Row {
        name: "a parameter of the kernel",
        program: "sysctl \"net.ipv4.ip_forward\" {\n\tvalue => \"1\",\n}\n",
        resource: ("sysctl", "net.ipv4.ip_forward"),
        prepare: "echo 0 > /proc/sys/net/ipv4/ip_forward",
        digest: "cat /proc/sys/net/ipv4/ip_forward /etc/sysctl.d/99-net.ipv4.ip_forward.conf 2>&1 || true",
        right: "1\nnet.ipv4.ip_forward = 1",
        drift: "echo 0 > /proc/sys/net/ipv4/ip_forward; rm /etc/sysctl.d/99-net.ipv4.ip_forward.conf",
    },
    Row {
        name: "several numbers of a parameter of the kernel, until the next start",
        program: "sysctl \"net/ipv4/ip_local_port_range\" {\n\tvalue => \"20000 30000\",\n\tpersist => false,\n}\n",
        resource: ("sysctl", "net/ipv4/ip_local_port_range"),
        prepare: "true",
        digest: "cat /proc/sys/net/ipv4/ip_local_port_range | xargs",
        right: "20000 30000",
        drift: "echo 30000 40000 > /proc/sys/net/ipv4/ip_local_port_range",
    },
    Row {
        name: "a key with which somebody may log in",
        program: "ssh:authorized_key \"work\" {\n\tstate => \"exists\",\n\tuser => \"games\",\n\ttype => \"ssh-ed25519\",\n\tkey => \"AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f\",\n}\n",
        resource: ("ssh:authorized_key", "work"),
        prepare: "mkdir -p ~games; chown games ~games",
        digest: "stat -c '%U %G %a' ~games/.ssh ~games/.ssh/authorized_keys 2>&1 || true; cat ~games/.ssh/authorized_keys || true",
        right: "games games 700\ngames games 600\nssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f",
        drift: "mv ~games/.ssh ~games/before",
    },
    Row {
        name: "a value of a structured file",
        program: "augeas \"root\" {\n\tfile => \"/small/sshd.test\",\n\tlens => \"Sshd.lns\",\n\tsets => [struct{path => \"PermitRootLogin\", value => \"no\",},],\n}\n",
        resource: ("augeas", "root"),
        prepare: "printf '# mine\nPermitRootLogin yes\nX11Forwarding no\n' > /small/sshd.test",
        digest: "cat /small/sshd.test",
        right: "# mine\nPermitRootLogin no\nX11Forwarding no",
        drift: "sed -i 's/Login no/Login yes/' /small/sshd.test",
    },
    Row {
        name: "a block of lines",
        program: "block \"cluster\" {\n\tfile => \"/small/blocks\",\n\tstate => \"exists\",\n\tcontent => \"a\\n\",\n}\n",
        resource: ("block", "cluster"),
        prepare: "echo before > /small/blocks",
        digest: "cat /small/blocks",
        right: "before\n# setpoint begin: cluster\na\n# setpoint end: cluster",
        drift: "sed -i s/a$/b/ /small/blocks",
    },
    Row {
        name: "a line of a file of somebody's home",
        program: "line \"alias\" {\n\tfile => \"~root/.lines\",\n\tstate => \"exists\",\n\tcontent => \"alias ll='ls -l'\",\n}\n",
        resource: ("line", "alias"),
        prepare: "printf 'one' > /root/.lines",
        digest: "cat /root/.lines",
        right: "one\nalias ll='ls -l'",
        drift: "sed -i 2d /root/.lines",
    },
    Row {
        name: "a line that shall not be",
        program: "line \"no\" {\n\tfile => \"/small/lines\",\n\tstate => \"absent\",\n\tcontent => \" b \",\n\ttrim => true,\n}\n",
        resource: ("line", "no"),
        prepare: "printf 'a\\nb\\nc\\nb\\n' > /small/lines",
        digest: "cat /small/lines",
        right: "a\nc",
        drift: "echo b >> /small/lines",
    },
    Row {
        name: "an entry of a JSON document",
        program: "json:edit \"/small/daemon.json\" {\n\tedits => [\".log.level = \\\"warn\\\"\"],\n}\n",
        resource: ("json:edit", "/small/daemon.json"),
        prepare: "printf '{\"log\": {\"level\": \"info\"}}' > /small/daemon.json",
        digest: "cat /small/daemon.json",
        right: "{\"log\": {\"level\": \"warn\"}}",
        drift: "printf '{\"log\": {}}' > /small/daemon.json",
    },
    Row {
        name: "a setting of somebody's desktop",
        program: "gsettings \"org.gnome.desktop.interface gtk-theme\" {\n\ttype => \"str\",\n\tvalue => \"It's dark\",\n\tuser => \"games\",\n}\n",
        resource: ("gsettings", "org.gnome.desktop.interface gtk-theme"),
        prepare: "mkdir -p ~games; chown games ~games; loginctl enable-linger games; systemctl start user@5.service; \
                  printf '#!/bin/sh\nexec setpriv --reuid games --regid games --init-groups env -i PATH=/usr/bin:/bin XDG_RUNTIME_DIR=/run/user/5/ DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/5/bus gsettings \"$@\"' \
                  > /usr/local/bin/as-games; chmod 755 /usr/local/bin/as-games",
        digest: "as-games get org.gnome.desktop.interface gtk-theme",
        right: "\"It's dark\"",
        drift: "as-games reset org.gnome.desktop.interface gtk-theme",
    },
    Row {
        name: "services and ports of the firewall",
        program: "firewalld \"web\" {\n\tzone => \"public\",\n\tservices => [\"http\", \"https\"],\n\tports => [\"8080/tcp\"],\n}\n",
        resource: ("firewalld", "web"),
        prepare: "systemctl start firewalld; firewall-cmd -q --zone=public --add-service=http",
        digest: "firewall-cmd --zone=public --list-services; firewall-cmd --zone=public --list-ports",
        right: "dhcpv6-client http https ssh\n8080/tcp",
        drift: "firewall-cmd -q --zone=public --remove-service=https; firewall-cmd -q --zone=public --remove-port=8080/tcp",
    },
    Row {
        name: "a port that shall be closed, in a range that is open",
        program: "firewalld \"no\" {\n\tstate => \"absent\",\n\tports => [\"7005/udp\"],\n}\n",
        resource: ("firewalld", "no"),
        prepare: "systemctl start firewalld; firewall-cmd -q --set-default-zone=work; firewall-cmd -q --zone=work --add-port=7000-7010/udp",
        digest: "firewall-cmd --zone=work --list-ports",
        right: "7000-7004/udp 7006-7010/udp",
        drift: "firewall-cmd -q --zone=work --add-port=7004-7006/udp",
    },
    Row {
        name: "all names of the machine",
        program: "hostname \"web1.example\" {}\n",
        resource: ("hostname", "web1.example"),
        prepare: "hostnamectl set-hostname before; hostnamectl set-hostname --pretty 'Before that'",
        digest: "cat /etc/hostname; hostname; hostnamectl --pretty",
        right: "web1.example\nweb1.example\nweb1.example",
        drift: "echo other > /etc/hostname",
    },
    Row {
        name: "the name that the kernel has",
        program: "hostname \"transient\" {\n\ttransient_hostname => \"web2\",\n\tstatic_hostname => \"\",\n\tpretty_hostname => \"\",\n}\n",
        resource: ("hostname", "transient"),
        prepare: "hostnamectl set-hostname --static ''; hostname before",
        digest: "hostname",
        right: "web2",
        drift: "hostname other",
    },
    Row {
        name: "the name for people",
        program: "hostname \"pretty\" {\n\tpretty_hostname => \"The ‹web› server\",\n\tstatic_hostname => \"\",\n\ttransient_hostname => \"\",\n}\n",
        resource: ("hostname", "pretty"),
        prepare: "hostnamectl set-hostname --pretty 'Before that'",
        digest: "hostnamectl --pretty",
        right: "The ‹web› server",
        drift: "hostnamectl set-hostname --pretty other",
    },
];

/// Makes room for few files below `/small`.
const SMALL: &str = "mkdir /small; mount -t tmpfs -o size=1m,nr_inodes=40 tmpfs /small";
/// Takes all of it, and gives it back.
const FILL: &str = "number=0; while touch /small/fill.$number 2>/dev/null; do number=$((number + 1)); done";
const EMPTY: &str = "rm /small/fill.*";
/// Takes the message buses away, and gives them back.
const NO_BUS: &str = "systemctl stop dbus.socket dbus.service";
const BUS: &str = "systemctl start dbus.socket dbus.service";

/// Something that keeps a resource from being repaired for a while.
struct Trouble {
    /// The name of the row.
    row: &'static str,
    /// Shell commands that make the trouble, and after them those that make something wrong.
    begin: &'static str,
    drift: &'static str,
    /// What is said then.
    said: &'static str,
    /// Shell commands that end it.
    end: &'static str,
}

const TROUBLES: &[Trouble] = &[
    Trouble {
        row: "a service that shall run and start by itself",
        begin: "sed -i s,/bin/sleep,/bin/false, /etc/systemd/system/sleeper.service; printf '[Service]\\nExecStartPre=/bin/false\\n' > /run/broken.conf; \
                mkdir -p /run/systemd/system/sleeper.service.d; mv /run/broken.conf /run/systemd/system/sleeper.service.d/; systemctl daemon-reload",
        drift: "systemctl stop sleeper",
        said: "start sleeper",
        end: "sed -i s,/bin/false,/bin/sleep, /etc/systemd/system/sleeper.service; rm -r /run/systemd/system/sleeper.service.d; systemctl daemon-reload; systemctl reset-failed sleeper || true",
    },
    Trouble {
        row: "a package that shall not be installed",
        begin: "echo 'DPkg::Pre-Invoke {\"false\";};' > /etc/apt/apt.conf.d/99broken",
        drift: "dpkg -i /local-test.deb > /dev/null 2>&1",
        said: "remove local-test",
        end: "rm /etc/apt/apt.conf.d/99broken",
    },
    Trouble {
        row: "a network interface",
        begin: "true",
        drift: "ip link set one down; ip link set one name elsewhere",
        said: "find the interface one",
        end: "ip addr flush dev elsewhere; ip link set elsewhere name one",
    },
    Trouble {
        row: "an account",
        begin: "sleep 1000 > /dev/null 2>&1 & echo $! > /etc/passwd.lock",
        drift: "sed /^ada:/d /etc/passwd > /etc/passwd.other; mv /etc/passwd.other /etc/passwd",
        said: "has locked the account files; waits",
        end: "kill $(cat /etc/passwd.lock); rm /etc/passwd.lock",
    },
    Trouble {
        row: "a timer and what it runs",
        begin: "mkdir -p /run/systemd/system/nightly.timer.d; printf '[Unit]\\nAssertPathExists=/none\\n' > /run/systemd/system/nightly.timer.d/broken.conf; systemctl daemon-reload",
        drift: "systemctl stop nightly.timer",
        said: "nightly.timer",
        end: "rm -r /run/systemd/system/nightly.timer.d; systemctl daemon-reload",
    },
    Trouble {
        row: "a file system",
        begin: "mkdir -p /run/systemd/system/srv-scratch.mount.d; printf '[Unit]\\nAssertPathExists=/none\\n' > /run/systemd/system/srv-scratch.mount.d/broken.conf; systemctl daemon-reload",
        drift: "umount /srv/scratch",
        said: "mount /srv/scratch",
        end: "rm -r /run/systemd/system/srv-scratch.mount.d; systemctl daemon-reload",
    },
    Trouble {
        row: "a source of firmware",
        begin: "true",
        drift: "mv /etc/fwupd/remotes.d/lvfs-testing.conf /etc/fwupd/aside",
        said: "find the remote lvfs-testing: fwupd has no such remote",
        end: "sed -i s/Enabled=true/Enabled=false/ /etc/fwupd/aside; mv /etc/fwupd/aside /etc/fwupd/remotes.d/lvfs-testing.conf",
    },
    Trouble {
        row: "a machine of systemd-nspawn",
        begin: "mkdir -p /run/systemd/system/systemd-nspawn@tree.service.d; \
                printf '[Unit]\\nAssertPathExists=/none\\n' > /run/systemd/system/systemd-nspawn@tree.service.d/broken.conf; systemctl daemon-reload",
        drift: "systemctl kill --signal=KILL systemd-nspawn@tree",
        said: "systemd-nspawn@tree",
        end: "rm -r /run/systemd/system/systemd-nspawn@tree.service.d; systemctl daemon-reload",
    },
    Trouble {
        row: "a group that shall not be",
        begin: "sleep 1000 > /dev/null 2>&1 & echo $! > /etc/group.lock",
        drift: "printf 'former:x:4400:\\n' >> /etc/group",
        said: "has locked the account files; waits",
        end: "kill $(cat /etc/group.lock); rm /etc/group.lock",
    },
    Trouble {
        row: "a parameter of the kernel",
        begin: "mkdir -p /under; mount --bind /etc/sysctl.d /under; mount --bind /etc/sysctl.d /etc/sysctl.d; mount -o remount,bind,ro /etc/sysctl.d",
        drift: "rm /under/99-net.ipv4.ip_forward.conf; echo 0 > /proc/sys/net/ipv4/ip_forward",
        said: "ead-only file system",
        end: "umount /etc/sysctl.d /under",
    },
    Trouble {
        row: "a key with which somebody may log in",
        begin: "mkdir -p /under; mount --bind ~games/.ssh /under; mount --bind ~games/.ssh ~games/.ssh; mount -o remount,bind,ro ~games/.ssh",
        drift: ": > /under/authorized_keys",
        said: "ead-only file system",
        end: "umount ~games/.ssh /under",
    },
    Trouble {
        row: "services and ports of the firewall",
        begin: "true",
        drift: "systemctl stop firewalld",
        said: "firewalld",
        end: "systemctl start firewalld",
    },
    Trouble {
        row: "a setting of somebody's desktop",
        begin: "systemctl stop user@5.service",
        drift: "rm ~games/.config/dconf/user",
        said: "",
        end: "systemctl start user@5.service",
    },
    Trouble {
        row: "a value of a structured file",
        begin: FILL,
        drift: "printf 'PermitRootLogin yes\\n' > /small/sshd.test",
        said: "",
        end: "rm /small/fill.*; printf '# mine\\nPermitRootLogin yes\\nX11Forwarding no\\n' > /small/sshd.test",
    },
    Trouble {
        row: "a block of lines",
        begin: FILL,
        drift: "printf 'before\\n' > /small/blocks",
        said: "o space left",
        end: EMPTY,
    },
    Trouble {
        row: "a line that shall not be",
        begin: FILL,
        drift: "echo b >> /small/lines",
        said: "o space left",
        end: EMPTY,
    },
    Trouble {
        row: "an entry of a JSON document",
        begin: FILL,
        drift: "printf '{\"log\": {\"level\": \"info\"}}' > /small/daemon.json",
        said: "o space left",
        end: EMPTY,
    },
    Trouble {
        row: "all names of the machine",
        begin: NO_BUS,
        drift: "echo other > /etc/hostname",
        said: "cannot be reached",
        end: BUS,
    },
];

/// A literal of a row's program that is made sensitive, and is then nowhere in what is said, whatever happens.
const SECRETS: &[(&str, &str)] = &[
    ("a timer and what it runs", "*-*-* 03:00"),
    ("a network interface", "192.0.2.1"),
    ("an account", "/bin/bash"),
    (
        "several numbers of a parameter of the kernel, until the next start",
        "20000 30000",
    ),
    (
        "a key with which somebody may log in",
        "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f",
    ),
    ("a line of a file of somebody's home", "alias ll='ls -l'"),
    ("a file system", "1m"),
    ("the name that the kernel has", "web2"),
    ("the name for people", "The ‹web› server"),
];

/// The events of a run that ends by itself.
fn events(place: &Hermetic, arguments: &[&str]) -> Vec<Json> {
    let output = run_command(place, arguments)
        .output()
        .expect("the program can be started");
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let parsed = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("every line is one JSON object"));
    parsed.collect()
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

#[expect(clippy::print_stderr, reason = "for who looks, with `--nocapture`")]
fn try_row(row: &Row) {
    let Row {
        name,
        program,
        resource,
        ..
    } = row;
    let place = Hermetic::new();
    let main = place.write("main.mcl", program);
    let main = main.to_str().expect("the place has a plain name");
    shell(row.prepare);
    let wrong = shell(row.digest);
    assert_ne!(wrong, row.right, "{name}: it is wrong at the beginning");
    let looked = events(&place, &["--once", "--noop", main]);
    assert!(!drifts(&looked, *resource).is_empty(), "{name}: {looked:?}");
    assert_eq!(shell(row.digest), wrong, "{name}: looking changes nothing");
    let repaired = events(&place, &["--once", main]);
    assert_eq!(shell(row.digest), row.right, "{name}: {repaired:?}");
    let again = events(&place, &["--once", main]);
    assert_eq!(drifts(&again, *resource), [""; 0], "{name}: a second run");

    let secret = SECRETS
        .iter()
        .find(|(row, _)| row == name)
        .map(|(_, secret)| *secret);
    let hidden = secret.map(|secret| {
        let hidden = program.replace(&format!("\"{secret}\""), &format!("sensitive(\"{secret}\")"));
        assert_ne!(hidden, *program, "{name}: its program contains the secret");
        hidden
    });
    if let (Some(hidden), Some(secret)) = (&hidden, secret) {
        place.write("main.mcl", hidden);
        shell(row.drift);
        for arguments in [&["--once", "--noop", main][..], &["--once", main]] {
            let output = run_command(&place, arguments)
                .output()
                .expect("the program can be started");
            for said in [output.stdout, output.stderr] {
                assert!(
                    !String::from_utf8_lossy(&said).contains(secret),
                    "{name}: {}",
                    String::from_utf8_lossy(&said)
                );
            }
        }
        assert_eq!(shell(row.digest), row.right, "{name}: hidden, and right");
    }
    let mut engine = Engine::start(&place, &[main]);
    let (kind, of) = *resource;
    engine.event("the first look", |event| {
        event["event"] == "run ended" && event["kind"] == kind && event["name"] == of
    });
    shell(row.drift);
    let begun = Instant::now();
    engine.repaired_until(kind, of, || shell(row.digest) == row.right);
    let took = begun.elapsed();
    eprintln!("{kind}, {name}: right again {took:.1?} after it was changed");
    assert!(
        took < SEEN_WITHIN,
        "{name}: it was seen by an event, not by looking again: {took:?}"
    );
    if let Some(trouble) = TROUBLES.iter().find(|trouble| trouble.row == *name) {
        shell(trouble.begin);
        shell(trouble.drift);
        engine.event(&format!("failure of {kind}[{of}]"), |event| {
            // A run that fails says why; one that waits for somebody says for whom.
            let said = match event["event"].as_str() {
                Some("log") => event["message"].as_str(),
                _ => event["error"].as_str(),
            };
            event["kind"] == kind
                && event["name"] == of
                && said.is_some_and(|said| !said.is_empty() && said.contains(trouble.said))
        });
        shell(trouble.end);
        engine.repaired_until(kind, of, || shell(row.digest) == row.right);
    }
    let mut running = engine.into_running();
    running.drain();
    if let Some(secret) = secret {
        assert!(
            !running.seen().join("\n").contains(secret),
            "{name}: {:#?}",
            running.seen()
        );
    }
    running.signal("TERM");
    let (status, errors) = running.finish();
    assert_eq!(status.code(), Some(0), "{name}: {errors}");
}

#[test]
fn what_rows_are_named_by_there_are() {
    let is_row = |name: &str| ROWS.iter().any(|row| row.name == name);
    for name in TROUBLES
        .iter()
        .map(|trouble| trouble.row)
        .chain(SECRETS.iter().map(|(row, _)| *row))
    {
        assert!(is_row(name), "{name}");
    }
}

#[test]
fn each_is_looked_at_repaired_left_alone_and_followed() {
    let test = "host_kinds::each_is_looked_at_repaired_left_alone_and_followed";
    Place::machine(test)
        .needing(&[
            "fwupdmgr",
            "augtool",
            "apt-get",
            "machinectl",
            "busybox",
            "firewall-cmd",
            "gsettings",
        ])
        .run(|| {
            shell(SMALL);
            ROWS.iter().for_each(try_row);
        });
}
