//! The kind `mount` with a real systemd: what a run does and refuses, and what is seen when the kernel tells of it.

use std::path::Path;

use serde_json::Value as Json;
use setpoint_testing::Hermetic;

use crate::end_to_end::{Engine, run_command, text};
use crate::place::{Place, shell};

/// What one run finds different, and says when it fails.
fn once(program: &str) -> (Vec<String>, Option<String>) {
    let place = Hermetic::new();
    let main = place.write("main.mcl", program);
    let main = main.to_str().expect("the place has a plain name");
    let output = run_command(&place, &["--once", main])
        .output()
        .expect("the program can be started");
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let events = lines
        .lines()
        .map(|line| serde_json::from_str::<Json>(line).expect("every line is one JSON object"));
    let (mut fields, mut error) = (Vec::new(), None);
    for event in events.filter(|event| event["kind"] == "mount") {
        if event["event"] == "drift" {
            fields.push(event["field"].as_str().unwrap_or_default().to_owned());
        } else if let Some(said) = event["error"].as_str() {
            error.get_or_insert_with(|| said.to_owned());
        }
    }
    (fields, error)
}

/// A run that finds these fields different, repairs them, and after which a second one finds nothing.
fn repairs(program: &str, wanted: &[&str]) {
    let wanted: Vec<String> = wanted.iter().map(ToString::to_string).collect();
    assert_eq!(once(program), (wanted, None), "{program}");
    assert_eq!(once(program), (Vec::new(), None), "{program}");
}

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
        assert_eq!(text(Path::new("/etc/fstab")), with("ro,size=2m"));
        assert!(Path::new("/srv/a b/kept").exists(), "it was not unmounted for that");
        // What is in use stays, and that is said; afterwards it goes.
        let gone = "mount \"/srv/a b\" { state => \"absent\", }\n";
        shell("mount -o remount,rw '/srv/a b'; cd '/srv/a b'; sleep 1000 > /dev/null 2>&1 & echo $! > /run/user-of-it");
        let (fields, error) = once(gone);
        assert_eq!(fields, ["fstab", "mounted"]);
        let error = error.expect("it is in use");
        assert!(error.starts_with("unmount /srv/a b: ") && error.contains("in use"), "{error}");
        shell("kill $(cat /run/user-of-it)");
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while Path::new(&format!("/proc/{}", text(Path::new("/run/user-of-it")).trim())).exists() {
            assert!(std::time::Instant::now() < deadline, "it ends");
            std::thread::yield_now();
        }
        repairs(gone, &["mounted"]);
        assert_eq!(text(Path::new("/etc/fstab")), format!("{mine}\n"));
        assert!(!mounted());
        // What cannot be mounted is told.
        let (_, error) = once("mount \"/srv/no\" { state => \"exists\", device => \"/dev/no-such\", type => \"no_such\", }\n");
        let error = error.expect("there is no such type");
        assert!(error.starts_with("mount /srv/no: "), "{error}");
    });
}

#[test]
fn what_is_unmounted_is_mounted_when_the_kernel_tells_of_it() {
    let test = "mount::what_is_unmounted_is_mounted_when_the_kernel_tells_of_it";
    Place::machine(test).run(|| {
        let place = Hermetic::new();
        let main = place.write("main.mcl", scratch(""));
        let mut engine = Engine::start(&place, &[main.to_str().expect("the place has a plain name")]);
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
