//! What keeps each of them from being repaired for a while.

use super::Trouble;

/// Takes all of it, and gives it back.
const FILL: &str = "number=0; while touch /small/fill.$number 2>/dev/null; do number=$((number + 1)); done";
const EMPTY: &str = "rm /small/fill.*";
/// Firmware that is not what its metadata says, a daemon that has another version installed, and what ends that.
const OTHER_FIRMWARE: &str = "cd /usr/share/installed-tests/fwupd; cp fwupd-tests.xml /run/fwupd-tests.xml; sed -i 's/sha256\">[0-9a-f]\\{8\\}/sha256\">00000000/' fwupd-tests.xml";
const OTHER_VERSION: &str = "systemctl reset-failed fwupd || true; systemctl restart fwupd";
const RIGHT_FIRMWARE: &str = "cp /run/fwupd-tests.xml /usr/share/installed-tests/fwupd/; systemctl reset-failed fwupd || true; systemctl restart fwupd";
/// Takes the message buses away, and gives them back.
const NO_BUS: &str = "systemctl stop dbus.socket dbus.service";
const BUS: &str = "systemctl start dbus.socket dbus.service";

pub(super) const TROUBLES: &[Trouble] = &[
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
        row: "a line that replaces others",
        begin: FILL,
        drift: "printf '#Port 1\\na\\n' > /small/ports",
        said: "o space left",
        end: EMPTY,
    },
    Trouble {
        row: "text that is replaced",
        begin: FILL,
        drift: "printf 'listen = 0.0.0.0\\n' > /small/listen",
        said: "o space left",
        end: EMPTY,
    },
    Trouble {
        row: "settings of a section",
        begin: FILL,
        drift: "printf '[PHP]\\n;memory_limit = 128M\\n' > /small/php.ini",
        said: "o space left",
        end: EMPTY,
    },
    Trouble {
        row: "a file from a server",
        begin: FILL,
        drift: "printf changed > /small/fetched",
        said: "o space left",
        end: EMPTY,
    },
    Trouble {
        row: "a directory from an archive",
        begin: FILL,
        drift: "printf changed > /small/opt/a",
        said: "o space left",
        end: EMPTY,
    },
    Trouble {
        row: "a checkout",
        begin: "mv /srv/origin /srv/away",
        drift: "rm -r /srv/tree",
        said: "does not appear to be a git repository",
        end: "mv /srv/away /srv/origin",
    },
    Trouble {
        row: "the names of an address",
        begin: FILL,
        drift: "printf '127.0.0.1 localhost\\n192.0.2.7 old\\n' > /small/hosts",
        said: "o space left",
        end: EMPTY,
    },
    Trouble {
        row: "rights to run commands",
        begin: "echo 'wrong line' > /etc/sudoers.d/10-other",
        drift: "rm /etc/sudoers.d/50-deploy",
        said: "refuses them",
        end: "rm /etc/sudoers.d/10-other",
    },
    Trouble {
        row: "the time zone",
        begin: "mv /usr/share/zoneinfo/Europe/Berlin /usr/share/zoneinfo/Berlin",
        drift: "ln -sf /usr/share/zoneinfo/Etc/UTC /etc/localtime",
        said: "there is no time zone",
        end: "mv /usr/share/zoneinfo/Berlin /usr/share/zoneinfo/Europe/Berlin",
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
    Trouble {
        row: "a group with members",
        begin: "sleep 1000 > /dev/null 2>&1 & echo $! > /etc/group.lock",
        drift: "sed -i s/^crew:x:4711:games/crew:x:4711:/ /etc/group",
        said: "has locked the account files; waits",
        end: "kill $(cat /etc/group.lock); rm /etc/group.lock",
    },
    Trouble {
        row: "a source of packages",
        begin: "mkdir -p /under; mount --bind /etc/apt/sources.list.d /under; mount --bind /etc/apt/sources.list.d /etc/apt/sources.list.d; \
                mount -o remount,bind,ro /etc/apt/sources.list.d",
        drift: "rm /under/ours.sources",
        said: "ead-only file system",
        end: "umount /etc/apt/sources.list.d /under",
    },
    Trouble {
        row: "the firmware of a device",
        begin: OTHER_FIRMWARE,
        drift: OTHER_VERSION,
        said: "not that of its metadata",
        end: RIGHT_FIRMWARE,
    },
    Trouble {
        row: "the firmware of all devices",
        begin: OTHER_FIRMWARE,
        drift: OTHER_VERSION,
        said: "not that of its metadata",
        end: RIGHT_FIRMWARE,
    },
    Trouble {
        row: "a file that keeps copies of what it was",
        begin: FILL,
        drift: "echo drifted > /small/file",
        said: "o space left",
        end: EMPTY,
    },
    Trouble {
        row: "a command that makes a file",
        begin: "mkdir -p /under; mount --bind /small /under; mount --bind /small /small; mount -o remount,bind,ro /small",
        drift: "rm /under/made",
        said: "exit status 1",
        end: "umount /small /under",
    },
    Trouble {
        row: "a compressed text",
        begin: FILL,
        drift: "echo other > /small/text.gz",
        said: "o space left",
        end: EMPTY,
    },
    Trouble {
        row: "an archive",
        begin: FILL,
        drift: "echo other > /small/all.tar",
        said: "o space left",
        end: EMPTY,
    },
    Trouble {
        row: "an archive of the program",
        begin: FILL,
        drift: "echo other > /small/program.tar",
        said: "o space left",
        end: EMPTY,
    },
    Trouble {
        row: "a password that is kept",
        begin: "mkdir -p /under; cd PLACE/prefix/engine/state/*/var/; mount --bind . /under; mount --bind . \"$PWD\"; mount -o remount,bind,ro \"$PWD\"",
        drift: "rm /under/password",
        said: "ead-only file system",
        end: "umount PLACE/prefix/engine/state/*/var /under",
    },
    Trouble {
        row: "a setting of the firmware",
        begin: "true",
        drift: "cd /sys/class/firmware-attributes/thinklmi/attributes; mv AssetTag /sys/class/aside",
        said: "the driver thinklmi has none of this name",
        end: "echo none > /sys/class/aside/current_value; mv /sys/class/aside /sys/class/firmware-attributes/thinklmi/attributes/AssetTag",
    },
];

/// Troubles that are there when the program starts.
pub(super) const TROUBLES_AT_START: &[Trouble] = &[
    Trouble {
        row: "a string that hosts share",
        begin: "rm PLACE/prefix/world; echo no directory > PLACE/prefix/world",
        drift: "SETPOINT run --once --quiet --no-raise-limits --hostname other --state-dir PLACE/other 'kv \"motto\" { value => \"carpe diem\", }'",
        said: "PLACE/prefix/world",
        end: "rm PLACE/prefix/world; ln -s PLACE/world PLACE/prefix/world",
    },
    Trouble {
        row: "a host that stands for something",
        begin: "rm PLACE/prefix/world; echo no directory > PLACE/prefix/world",
        drift: "SETPOINT run --once --quiet --no-raise-limits --hostname host.example --state-dir PLACE/other 'schedule \"leader\" { withdraw => true, }'",
        said: "PLACE/prefix/world",
        end: "rm PLACE/prefix/world; ln -s PLACE/world PLACE/prefix/world",
    },
    Trouble {
        row: "a message to the journal",
        begin: "mv /run/systemd/journal/socket /run/systemd/journal/aside",
        drift: "true",
        said: "journal",
        end: "mv /run/systemd/journal/aside /run/systemd/journal/socket",
    },
];
