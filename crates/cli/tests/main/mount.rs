//! The kind `mount` with a real systemd: what a run does and refuses, and what is seen when the kernel tells of it.

use std::path::Path;

use setpoint_testing::Hermetic;

use crate::end_to_end::{Engine, text};
use crate::kind::{error, events, fields, once, part, repairs, run};
use setpoint_testing::place::{Place, shell};

fn scratch(more: &str) -> String {
    format!("mount \"/srv/a b\" {{ state => \"exists\", device => \"tmpfs\", type => \"tmpfs\", {more} }}\n")
}

fn mounted() -> bool {
    shell("mountpoint -q '/srv/a b' && echo yes || true") == "yes"
}

#[test]
fn a_run_mounts_mounts_otherwise_and_unmounts() {
    let test = "mount::a_run_mounts_mounts_otherwise_and_unmounts";
    Place::machine(test).run(|| {
        let mine = "# mine\n\nproc\t/proc  proc\tdefaults 0 0 # last";
        std::fs::write("/etc/fstab", mine).expect("the file can be written");
        let small = scratch("options => {\"size\" => \"1m\", \"nosuid\" => \"\",},");
        repairs(&small, &["fstab", "mounted"]);
        let with = |options: &str| format!("{mine}\ntmpfs /srv/a\\040b tmpfs {options} 0 0\n");
        assert_eq!(text(Path::new("/etc/fstab")), with("nosuid,size=1m"));
        assert!(mounted());
        // Mounted otherwise by hand, and by another program, without taking it away.
        shell("touch '/srv/a b/kept'; mount -o remount,suid '/srv/a b'");
        repairs(&small, &["options"]);
        repairs(&scratch("options => {\"size\" => \"2m\", \"ro\" => \"\",},"), &["fstab", "options"]);
        assert_eq!(text(Path::new("/etc/fstab")), with("size=2m,ro"));
        assert!(Path::new("/srv/a b/kept").exists(), "it was not unmounted for that");
        // An option that leaves the program also leaves the mounted file system.
        repairs(&scratch("options => {\"size\" => \"2m\", \"noatime\" => \"\", \"noexec\" => \"\",},"), &["fstab", "options"]);
        repairs(&scratch("options => {\"size\" => \"2m\",},"), &["fstab", "options"]);
        let held = || shell("findmnt -n -o OPTIONS '/srv/a b'");
        let of = |options: &str| ["ro", "noatime", "noexec"].iter().any(|flag| options.split(',').any(|one| one == *flag));
        assert!(!of(&held()), "{}", held());
        shell("mount -o remount,ro '/srv/a b'");
        repairs(&scratch("options => {\"size\" => \"2m\",},"), &["options"]);
        assert!(!of(&held()), "{}", held());
        // An option that stands for several flags comes first.
        repairs(&scratch("options => {\"size\" => \"2m\", \"user\" => \"\", \"exec\" => \"\",},"), &["fstab", "options"]);
        assert_eq!(text(Path::new("/etc/fstab")), with("size=2m,user,exec"));
        assert!(held().contains("nosuid") && !held().contains("noexec"), "{}", held());
        repairs(&scratch("options => {\"size\" => \"2m\", \"ro\" => \"\",},"), &["fstab", "options"]);
        // What is in use stays, and that is said; afterwards it goes.
        let gone = "mount \"/srv/a b\" { state => \"absent\", }\n";
        shell("mount -o remount,rw '/srv/a b'; cd '/srv/a b'; sleep 1000 > /dev/null 2>&1 & echo $! > /run/user-of-it");
        let (fields, error) = once(gone);
        assert_eq!(fields, ["fstab", "mounted"]);
        let error = error.expect("it is in use");
        let user = text(Path::new("/run/user-of-it"));
        let named = format!("it is in use by process {} (`sleep`), which works in /srv/a b", user.trim());
        assert!(error.starts_with("unmount /srv/a b: ") && error.ends_with(&named), "{error}");
        shell("kill $(cat /run/user-of-it)");
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while Path::new(&format!("/proc/{}", text(Path::new("/run/user-of-it")).trim())).exists() {
            assert!(std::time::Instant::now() < deadline, "it ends");
            std::thread::yield_now();
        }
        repairs(gone, &["mounted"]);
        assert_eq!(text(Path::new("/etc/fstab")), format!("{mine}\n"));
        assert!(!mounted());
        // What cannot be mounted is told.
        let of = |device: &str, kind: &str| {
            once(&format!("mount \"/srv/no\" {{ state => \"exists\", device => \"{device}\", type => \"{kind}\", }}\n"))
        };
        let said = |device: &str, kind: &str, wanted: &str| {
            let (_, error) = of(device, kind);
            let error = error.unwrap_or_else(|| panic!("{device} cannot be mounted"));
            assert!(error.starts_with("mount /srv/no: ") && error.ends_with(wanted), "{error}");
        };
        said("nothing", "no_such", "the kernel has no file system `no_such`, and there is no program `mount.no_such`");
        shell("mkdir -p /dev/disk/by-label; ln -s ../../null '/dev/disk/by-label/my\\x20disk'");
        said("LABEL=my disc", "ext4", "no device has the LABEL `my disc`; did you mean `my\\x20disk`?");
        said("/dev/no-such", "ext4", "there is nothing at /dev/no-such");
        shell("mkdir /srv/real; ln -s real /srv/link");
        let (_, error) = once("mount \"/srv/link/x\" { state => \"exists\", device => \"tmpfs\", type => \"tmpfs\", }\n");
        let error = error.expect("systemd takes no links");
        assert!(error.ends_with("without it is /srv/real/x"), "{error}");
    });
}

#[test]
fn a_purge_that_fails_reports_what_it_removed() {
    let test = "mount::a_purge_that_fails_reports_what_it_removed";
    Place::machine(test).run(|| {
        shell("mkdir -p /srv/d/a/b /srv/d/mnt; touch /srv/d/f; mount -t tmpfs tmpfs /srv/d/mnt");
        let program =
            "file \"/srv/d/\" { state => \"exists\", purge => true, recurse => true, Meta:retry => 0, }\n";
        let planned = run(program, &["--noop"]);
        assert_eq!(
            fields(&planned),
            ["purge /srv/d/a", "purge /srv/d/f"],
            "a mount point cannot go"
        );
        let finished = run(program, &[]);
        assert_eq!(finished.code, 1);
        let repaired: Vec<String> = events(&finished)
            .iter()
            .filter(|event| event["event"] == "repaired")
            .map(|event| part(event, "field"))
            .collect();
        assert_eq!(
            repaired,
            ["purge /srv/d/a", "purge /srv/d/f"],
            "{}",
            finished.stdout
        );
        assert!(!finished.stdout.contains("not repaired"), "{}", finished.stdout);
        let error = error(&finished).expect("the mount point stays");
        assert!(
            error.contains("/srv/d/mnt: another file system is mounted on it"),
            "{error}"
        );
        assert!(!Path::new("/srv/d/a").exists() && Path::new("/srv/d/mnt").exists());
    });
}

/// What is mounted at a point and on top there, in the words of findmnt(8).
fn top(point: &str, column: &str) -> String {
    shell(&format!(
        "findmnt --noheadings --mountpoint {point} --output {column} | tail -1"
    ))
}

#[test]
fn what_is_bound_is_what_it_shall_be() {
    let test = "mount::what_is_bound_is_what_it_shall_be";
    Place::machine(test).run(|| {
        shell("mkdir -p /srv/one /srv/two; touch /srv/one/of-one /srv/two/of-two; ln -s two /srv/link");
        let bound = |device: &str, options: &str| {
            format!("mount \"/srv/bound\" {{ state => \"exists\", device => \"{device}\", type => \"none\", options => {{\"bind\" => \"\",{options}}}, }}\n")
        };
        let holds = |file: &str| Path::new("/srv/bound").join(file).exists();
        repairs(&bound("/srv/one", ""), &["fstab", "mounted"]);
        assert!(holds("of-one"));
        repairs(&bound("/srv/one", "\"ro\" => \"\","), &["fstab", "options"]);
        assert!(shell("touch /srv/bound/new 2>&1 || true").contains("Read-only"));
        shell("touch /srv/one/new");
        // Another place of the same file system, and a link to it.
        repairs(&bound("/srv/two", ""), &["fstab", "device"]);
        assert!(holds("of-two"));
        repairs(&bound("/srv/link", ""), &["fstab"]);
        // By hand, something else.
        shell("umount /srv/bound; mount --bind /srv/one /srv/bound");
        repairs(&bound("/srv/two", ""), &["fstab", "device"]);
        assert!(holds("of-two"));
        // A place that was made anew is another one.
        shell("rm -r /srv/two; mkdir /srv/two; touch /srv/two/again");
        repairs(&bound("/srv/two", ""), &["device"]);
        assert!(holds("again"));
        // In something that is mounted itself.
        shell("mount -t tmpfs tmpfs /srv/one; mkdir /srv/one/deep; touch /srv/one/deep/below");
        repairs(&bound("/srv/one/deep", ""), &["fstab", "device"]);
        assert!(holds("below"));
        let gone = "mount \"/srv/bound\" { state => \"absent\", }\n";
        repairs(gone, &["fstab", "mounted"]);
        // On itself.
        repairs(&bound("/srv/bound", "").replace("\"bind\" => \"\",", "\"bind\" => \"\", \"noexec\" => \"\","), &["fstab", "mounted"]);
        repairs(gone, &["fstab", "mounted"]);
    });
}

#[test]
fn devices_are_known_by_what_they_are() {
    let test = "mount::devices_are_known_by_what_they_are";
    Place::machine(test).needing(&["mkfs.ext4", "losetup"]).run(|| {
        // What a device manager does is done by hand.
        shell("mknod /dev/loop-control c 10 237; for number in $(seq 0 63); do mknod /dev/loop$number b 7 $number; done");
        shell("for disk in one two; do truncate -s 8M /srv/$disk.img; done; mkfs.ext4 -q -U 0a3407de-014b-458b-b5c1-848e92a327a3 -L 'my disk' /srv/one.img; mkfs.ext4 -q /srv/two.img");
        let mount = |device: &str, more: &str| {
            format!("mount \"/srv/data\" {{ state => \"exists\", device => \"{device}\", type => \"ext4\", {more} }}\n")
        };
        let gone = "mount \"/srv/data\" { state => \"absent\", }\n";
        // A file, of which mount(8) makes a device.
        let file = mount("/srv/one.img", "options => {\"loop\" => \"\",},");
        repairs(&file, &["fstab", "mounted"]);
        assert!(top("/srv/data", "SOURCE").starts_with("/dev/loop"));
        repairs(&mount("/srv/two.img", "options => {\"loop\" => \"\",},"), &["fstab", "device"]);
        repairs(gone, &["fstab", "mounted"]);
        // A device, by its names.
        let device = shell("losetup --find --show /srv/one.img");
        let other = shell("losetup --find --show /srv/two.img");
        shell(&format!(
            "mkdir -p /dev/disk/by-uuid /dev/disk/by-label; ln -s {device} /dev/disk/by-uuid/0a3407de-014b-458b-b5c1-848e92a327a3; ln -s {device} '/dev/disk/by-label/my\\x20disk'"
        ));
        // Systemd makes no units of entries with devices where `/sys` cannot be written, as here.
        shell("printf '[Mount]\\nWhat=/dev/disk/by-uuid/0a3407de-014b-458b-b5c1-848e92a327a3\\nWhere=/srv/data\\nType=ext4\\n' > /etc/systemd/system/srv-data.mount");
        let by_uuid = mount("uuid=0a3407de-014b-458b-b5c1-848e92a327a3", "passno => 2,");
        repairs(&by_uuid, &["fstab", "mounted"]);
        assert_eq!(top("/srv/data", "SOURCE"), device);
        assert_eq!(text(Path::new("/etc/fstab")).lines().last(), Some("UUID=0a3407de-014b-458b-b5c1-848e92a327a3 /srv/data ext4 defaults 0 2"));
        let by_label = mount("LABEL=my disk", "");
        repairs(&by_label, &["fstab"]);
        // Another device in its place, and stacked on it.
        shell(&format!("umount /srv/data; mount {other} /srv/data"));
        repairs(&by_label, &["device"]);
        assert_eq!(top("/srv/data", "SOURCE"), device);
        shell("mount -t tmpfs tmpfs /srv/data");
        repairs(&by_label, &["type"]);
        assert_eq!(top("/srv/data", "SOURCE"), device);
        repairs(gone, &["fstab", "mounted"]);
        shell(&format!("losetup -d {device}; losetup -d {other}"));
    });
}

#[test]
fn of_mounts_that_are_stacked_the_one_on_top_counts() {
    let test = "mount::of_mounts_that_are_stacked_the_one_on_top_counts";
    Place::machine(test).run(|| {
        repairs(&scratch(""), &["fstab", "mounted"]);
        shell("mkdir /srv/other; mount --bind /srv/other '/srv/a b'");
        repairs(&scratch(""), &["type"]);
        let listed = || shell("grep -c '/srv/a.040b ' /proc/self/mountinfo || true");
        assert_eq!(listed(), "1", "what was stacked is gone");
        shell("mount -t tmpfs more '/srv/a b'; mount -t tmpfs more '/srv/a b'");
        assert_eq!(listed(), "3");
        // What something else is mounted over is not what is there.
        shell("mkdir /run/kept; mount --bind /srv /run/kept; mount -t tmpfs tmpfs /srv");
        let (fields, _) = once(&scratch(""));
        assert_eq!(fields, ["mounted"]);
        shell("umount -R /srv");
        let gone = "mount \"/srv/a b\" { state => \"absent\", }\n";
        let (fields, error) = once(gone);
        assert_eq!((fields.first().map(String::as_str), error), (Some("fstab"), None));
        assert_eq!(listed(), "0");
    });
}

#[test]
fn who_keeps_a_file_system_busy_is_named() {
    let test = "mount::who_keeps_a_file_system_busy_is_named";
    Place::machine(test).needing(&["python3"]).run(|| {
        repairs(&scratch(""), &["fstab", "mounted"]);
        let gone = "mount \"/srv/a b\" { state => \"absent\", }\n";
        let is_called = |name: &str| format!("grep -q {name} /proc/$(cat /run/user-of-it)/comm");
        for (use_it, is_ready, named) in [
            (
                "exec 9> '/srv/a b/open'; rm '/srv/a b/open'; exec sleep 1000",
                is_called("sleep"),
                "(`sleep`), which has /srv/a b/open (deleted) open",
            ),
            (
                "cp /bin/sleep '/srv/a b/own'; exec '/srv/a b/own' 1000",
                is_called("own"),
                "(`own`), which is the program /srv/a b/own",
            ),
            (
                "exec python3 -c 'import mmap, os, time; f = open(\"/srv/a b/map\", \"wb+\"); f.truncate(9); m = mmap.mmap(f.fileno(), 9); os.closerange(3, 99); os.mkdir(\"/run/maps\"); time.sleep(1000)'",
                "[ -e /run/maps ]".to_owned(),
                "(`python3`), which has /srv/a b/map in its memory",
            ),
            (
                "exec python3 -c 'import os, socket, time; s = socket.socket(socket.AF_UNIX); s.bind(\"/srv/a b/s\"); os.mkdir(\"/run/binds\"); time.sleep(1000)'",
                "[ -e /run/binds ]".to_owned(),
                "(`python3`), which has the socket /srv/a b/s open",
            ),
        ] {
            shell(&format!("({use_it}) > /dev/null 2>&1 & echo $! > /run/user-of-it"));
            let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
            while shell(&format!("{is_ready} && echo yes || true")) != "yes" {
                assert!(std::time::Instant::now() < deadline, "{use_it}");
            }
            let user = text(Path::new("/run/user-of-it")).trim().to_owned();
            let error = once(gone).1.expect("it is in use");
            assert!(error.ends_with(&format!("it is in use by process {user} {named}")), "{error}");
            shell(&format!("kill {user}; while [ -e /proc/{user} ]; do :; done"));
            repairs(&scratch(""), &["fstab"]);
        }
        // Something else than a process.
        shell("mkdir '/srv/a b/below'; mount -t tmpfs tmpfs '/srv/a b/below'; cd '/srv/a b/below'; sleep 1000 > /dev/null 2>&1 & echo $! > /run/user-of-it");
        let (_, error) = once(gone);
        let error = error.expect("what is mounted below it is in use");
        assert!(error.contains("it is in use by what is mounted at /srv/a b/below; process "), "{error}");
        shell("kill $(cat /run/user-of-it)");
    });
}

#[test]
fn a_server_that_does_not_answer_holds_up_nobody() {
    let test = "mount::a_server_that_does_not_answer_holds_up_nobody";
    Place::machine(test).run(|| {
        let remote = "mount \"/srv/remote\" { state => \"exists\", device => \"192.0.2.1:/export\", type => \"nfs\", options => {\"x-systemd.mount-timeout\" => \"1s\",}, }\n";
        if setpoint_testing::place::find("mount.nfs").is_none() {
            let (fields, error) = once(remote);
            assert_eq!(fields, ["fstab", "mounted"]);
            let error = error.expect("nothing mounts it");
            let why = "there is no program `mount.nfs`; the package `nfs-common` (or `nfs-utils`) has it";
            assert!(error.starts_with("mount /srv/remote: ") && error.ends_with(why), "{error}");
        }
        // One that waits for its server, as that of NFS does for minutes.
        shell("printf '#!/bin/sh\\necho $$ >> /run/waits\\nexec sleep 1000\\n' > /sbin/mount.nfs; chmod 755 /sbin/mount.nfs");
        let (_, error) = once(remote);
        let error = error.expect("it takes too long");
        let why = "it took longer than systemd waits; the option `x-systemd.mount-timeout` says how long that is";
        assert!(error.starts_with("mount /srv/remote: ") && error.ends_with(why), "{error}");
        // Who ends us does not wait for it.
        shell("rm /run/waits");
        let place = Hermetic::new();
        let patient = remote.replace("1s", "infinity");
        let main = place.write("main.mcl", &patient);
        let engine = Engine::start(&place, &[main.to_str().expect("the place has a plain name")]);
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !Path::new("/run/waits").exists() {
            assert!(std::time::Instant::now() < deadline, "it is being mounted");
            std::thread::yield_now();
        }
        let mut running = engine.into_running();
        running.drain();
        running.signal("TERM");
        // What runs is given a while to end by itself.
        let begun = std::time::Instant::now();
        running.finish();
        assert!(begun.elapsed() < std::time::Duration::from_secs(40), "{:?}", begun.elapsed());
    });
}

#[test]
fn what_is_unmounted_is_mounted_when_the_kernel_tells_of_it() {
    let test = "mount::what_is_unmounted_is_mounted_when_the_kernel_tells_of_it";
    Place::machine(test).run(|| {
        let place = Hermetic::new();
        let mut engine = Engine::of_program(&place, scratch(""));
        engine.event("convergence", |event| event["event"] == "converged");
        for before in ["true", "systemctl restart dbus", "systemctl daemon-reexec"] {
            shell(&format!("{before}; umount '/srv/a b'"));
            engine.repaired_until("mount", "/srv/a b", mounted);
        }
        shell("sed -i /tmpfs/d /etc/fstab");
        engine.repaired_until("mount", "/srv/a b", || {
            text(Path::new("/etc/fstab")).contains("/srv/a\\040b")
        });
        engine.stop();
    });
}
