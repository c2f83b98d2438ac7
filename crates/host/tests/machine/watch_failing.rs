//! The watch hub where the machine fails it: mounts that come and go, file systems that never answer, no watches left, no
//! descriptors left.

use crate::place::{Place, is_root};
use crate::watch::{Watching, in_user_namespace, inside};
use setpoint_host::files::AbsolutePath;
use setpoint_host::watch::{Cause, Depth, Follow, Pace, PollReason, WatchHub, WatchToken};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);
const NEVER: Duration = Duration::from_secs(3600);

fn quick(poll: Duration, round: Duration) -> Pace {
    Pace {
        poll,
        round,
        each: Duration::ZERO,
    }
}

fn path(directory: &Path, name: &str) -> AbsolutePath {
    AbsolutePath::new(directory.join(name)).unwrap()
}

fn mount(arguments: &[&str]) {
    let status = Command::new("mount").args(arguments).status().unwrap();
    assert!(status.success(), "mount {arguments:?}");
}

#[test]
fn mounting_over_a_watched_directory_and_unmounting_are_noticed() {
    let Some(place) = Place::of_root() else {
        return;
    };
    place.directory("d/inner");
    place.write("d/inner/f", "below");
    inside(
        &["unshare", "--mount"],
        "watch_failing::mounting_over_a_watched_directory_and_unmounting_are_noticed",
        &place,
        |directory| {
            let watching = Watching::new();
            let _file = watching.watch(&path(directory, "d/inner/f"), Depth::Entry, 1);
            let _tree = watching.watch(&path(directory, "d/"), Depth::Recursive, 2);
            let point = directory.join("d").display().to_string();
            let both = |what: &str, change: &dyn Fn()| {
                let _ = watching.changed();
                change();
                assert_eq!(watching.changed(), [1, 2], "{what}");
            };
            both("mounted", &|| mount(&["-t", "tmpfs", "none", &point]));
            both("made in the mount", &|| {
                fs::create_dir(directory.join("d/inner")).unwrap();
                fs::write(directory.join("d/inner/f"), "above").unwrap();
            });
            both("written in the mount", &|| {
                fs::write(directory.join("d/inner/f"), "again").unwrap();
            });
            both("unmounted", &|| {
                let status = Command::new("umount").arg(&point).status().unwrap();
                assert!(status.success());
            });
            both("written where nothing is mounted any more", &|| {
                fs::write(directory.join("d/inner/f"), "below again").unwrap();
            });
        },
    );
}

/// A file system that never answers, for as long as this lives.
struct Hung(Child);

impl Hung {
    fn mount(point: &str) -> Hung {
        let options = "fd=3,rootmode=40000,user_id=65534,group_id=65534,allow_other";
        let script = format!(
            "exec 3<>/dev/fuse && mount -i -t fuse.hung -o {options} none '{point}' && echo mounted && exec sleep 3600"
        );
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut output, &mut line).unwrap();
        assert_eq!(line, "mounted\n");
        Hung(child)
    }
}

impl Drop for Hung {
    fn drop(&mut self) {
        // What waits for an answer is told that there will be none.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_file_system_that_never_answers_is_looked_at_in_intervals_and_holds_nobody_up() {
    if !is_root() || !Path::new("/dev/fuse").exists() {
        return;
    }
    let place = Place::new();
    place.directory("before");
    place.directory("later");
    place.write("later/f", "");
    place.write("fine", "");
    place.link("link", "before/f");
    inside(
        &["unshare", "--mount"],
        "watch_failing::a_file_system_that_never_answers_is_looked_at_in_intervals_and_holds_nobody_up",
        &place,
        |directory| {
            let hung = Hung::mount(&directory.join("before").display().to_string());
            let watching = Watching::with_pace(quick(Duration::from_millis(50), NEVER));
            let _fine = watching.watch(&path(directory, "fine"), Depth::Entry, 1);
            let _inside = watching.watch(&path(directory, "before/d/f"), Depth::Entry, 2);
            let _at = watching.watch(&path(directory, "before/"), Depth::Recursive, 3);
            let _link = watching.watch(&path(directory, "link"), Depth::Entry, 4);
            let _above = watching.watch(&path(directory, ""), Depth::Recursive, 5);
            let _later = watching.watch(&path(directory, "later/f"), Depth::Entry, 6);
            let also_hung = Hung::mount(&directory.join("later").display().to_string());
            for token in [2, 3, 4, 6] {
                watching.wait(token, |cause| matches!(cause, Cause::Polled(PollReason::Served)));
            }
            for token in [2, 3, 4, 6] {
                watching.wait(token, |cause| matches!(cause, Cause::Changed));
            }
            fs::write(directory.join("fine"), "x").unwrap();
            watching.wait(1, |cause| matches!(cause, Cause::Changed));
            drop((hung, also_hung));
        },
    );
}

#[test]
fn what_there_is_no_watch_left_for_is_looked_at_in_intervals() {
    let place = Place::new();
    for number in 0..20 {
        place.directory(&format!("t/{number}"));
    }
    in_user_namespace(
        "watch_failing::what_there_is_no_watch_left_for_is_looked_at_in_intervals",
        &place,
        |directory| {
            let watching = Watching::with_pace(quick(Duration::from_millis(50), NEVER));
            let _file = watching.watch(&path(directory, "t/0/f"), Depth::Entry, 1);
            let _tree = watching.watch(&path(directory, "t/"), Depth::Recursive, 2);
            watching.wait(2, |cause| match cause {
                Cause::Polled(PollReason::OutOfWatches(error)) => {
                    error.to_string().contains("fs.inotify.max_user_watches")
                }
                _ => false,
            });
            watching.wait(2, |cause| matches!(cause, Cause::Changed));
            watching.wait(2, |cause| matches!(cause, Cause::Changed));

            // A tree that outgrows the limit later is no different.
            fs::create_dir(directory.join("small")).unwrap();
            let small = watching.watch(&path(directory, "small/"), Depth::Recursive, 3);
            for number in 0..20 {
                fs::create_dir(directory.join(format!("small/{number}"))).unwrap();
            }
            watching.wait(3, |cause| {
                matches!(cause, Cause::Polled(PollReason::OutOfWatches(_)))
            });
            drop(small);

            // When there are watches again, they are used.
            fs::write("/proc/sys/user/max_inotify_watches", "1000").unwrap();
            watching.wait_until("all are watched", |hub| hub.statistics().kernel_watches > 20);
            watching.wait_until("nothing is looked at in intervals", |hub| {
                hub.statistics().polled == 0
            });
        },
    );
}

#[test]
fn what_no_event_tells_is_looked_at_once_in_a_while() {
    let place = Place::new();
    place.write("f", "");
    let watching = Watching::with_pace(quick(NEVER, Duration::from_millis(50)));
    let _file = watching.watch(&place.path("f"), Depth::Entry, 1);
    let _other = watching.watch(&place.path("g"), Depth::Entry, 2);
    for token in [1, 2, 1, 2] {
        watching.wait(token, |cause| matches!(cause, Cause::Changed));
    }
}

#[test]
fn a_hub_that_breaks_off_tells_everybody_and_begins_anew() {
    let place = Place::new();
    place.write("f", "");
    inside(
        &["env"],
        "watch_failing::a_hub_that_breaks_off_tells_everybody_and_begins_anew",
        &place,
        |directory| {
            use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
            let watching = Watching::new();
            let file = watching.watch(&path(directory, "f"), Depth::Entry, 1);
            let old = getrlimit(Resource::Nofile);
            // With so few descriptors allowed, not even waiting for events works.
            let few = Rlimit {
                current: Some(1),
                maximum: old.maximum,
            };
            let deadline = Instant::now() + LIMIT;
            let mut told = false;
            while !told {
                assert!(Instant::now() < deadline, "everybody is told");
                setrlimit(Resource::Nofile, few).unwrap();
                // An event, so that the hub looks up from its wait; and time to go back to it.
                fs::rename(directory.join("f"), directory.join("g")).unwrap();
                fs::rename(directory.join("g"), directory.join("f")).unwrap();
                let back = Instant::now() + Duration::from_millis(20);
                while Instant::now() < back {
                    std::thread::yield_now();
                }
                setrlimit(Resource::Nofile, old).unwrap();
                // If it did, it tries once a second to get what it needs.
                while let Ok(event) = watching.events.recv_timeout(Duration::from_secs(3)) {
                    if matches!(event.cause, Cause::BegunAnew) {
                        told = true;
                        break;
                    }
                }
            }
            let _ = watching.changed();
            fs::write(directory.join("f"), "what was watched before is watched again").unwrap();
            watching.wait(1, |cause| matches!(cause, Cause::Changed));
            let again = watching.watch(&path(directory, "f"), Depth::Entry, 2);
            drop(file);
            let _ = watching.changed();
            fs::write(
                directory.join("f"),
                "the handle of before ends its own watch alone",
            )
            .unwrap();
            assert_eq!(watching.changed(), [2]);
            drop(again);
        },
    );
}

#[test]
fn a_large_tree_is_armed_in_slices() {
    let place = Place::new();
    for outer in 0..60 {
        for inner in 0..50 {
            place.directory(&format!("t/{outer}/{inner}"));
        }
    }
    let hub = WatchHub::new().unwrap();
    let subscriber = hub.subscribe(std::sync::Arc::new(|_: &[setpoint_host::watch::WatchEvent]| {}));
    let (tree, subscriber) = (place.path("t/"), &subscriber);
    let mut seen = std::collections::BTreeSet::new();
    std::thread::scope(|scope| {
        let arming = scope.spawn(move || {
            subscriber
                .watch(&tree, Depth::Recursive, Follow::Target, WatchToken(1))
                .unwrap()
        });
        while !arming.is_finished() {
            seen.insert(hub.statistics().kernel_watches);
            std::thread::yield_now();
        }
        let handle = arming.join().unwrap();
        assert!(hub.statistics().kernel_watches > 3060);
        drop(handle);
    });
    assert!(seen.len() > 3, "{seen:?}");
}
