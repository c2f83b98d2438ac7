//! The watch hub, on real inotify.
//!
//! The kernel queues an event before the call that causes it returns, and `catch_up` delivers all that is queued;
//! so these tests wait for nothing but the hub's own thread where that is the point.

use crate::place::{Place, is_root};
use setpoint_host::files::{AbsolutePath, Committer, Replace};
use setpoint_host::watch::{
    Cause, Depth, Follow, Pace, Subscriber, WatchError, WatchEvent, WatchHandle, WatchHub, WatchToken,
};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// A hub with one subscriber that writes down what it is told.
pub(crate) struct Watching {
    pub(crate) hub: WatchHub,
    subscriber: Subscriber,
    pub(crate) events: Receiver<WatchEvent>,
}

impl Watching {
    pub(crate) fn new() -> Self {
        Self::with_pace(Pace::default())
    }

    pub(crate) fn with_pace(pace: Pace) -> Self {
        let hub = WatchHub::with_pace(pace).unwrap();
        let (sender, events) = channel();
        let sink = move |told: &[WatchEvent]| {
            for event in told {
                let _ = sender.send(event.clone());
            }
        };
        let subscriber = hub.subscribe(Arc::new(sink));
        Self {
            hub,
            subscriber,
            events,
        }
    }

    /// Waits until the hub tells something of a watch.
    #[track_caller]
    pub(crate) fn wait(&self, token: u64, wanted: impl Fn(&Cause) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let event = self.events.recv_timeout(left).expect("the hub tells it in time");
            if event.token == WatchToken(token) && wanted(&event.cause) {
                return;
            }
        }
    }

    /// Waits until something holds of the hub.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, holds: impl Fn(&WatchHub) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !holds(&self.hub) {
            assert!(Instant::now() < deadline, "{what}: {:?}", self.hub.statistics());
            let _ = self.events.recv_timeout(Duration::from_millis(10));
        }
    }

    pub(crate) fn watch(&self, path: &AbsolutePath, depth: Depth, token: u64) -> WatchHandle {
        self.subscriber
            .watch(path, depth, Follow::Target, WatchToken(token))
            .unwrap()
    }

    /// The tokens that were reported until now, each once.
    pub(crate) fn changed(&self) -> Vec<u64> {
        self.hub.catch_up().unwrap();
        let mut tokens: Vec<u64> = self.events.try_iter().map(|event| event.token.0).collect();
        tokens.sort_unstable();
        tokens.dedup();
        tokens
    }

    /// Does something, and says whether watch 1 noticed; nothing may have been noticed before.
    #[track_caller]
    fn notices(&self, what: &str, change: impl FnOnce()) {
        assert_eq!(self.changed(), [], "before: {what}");
        change();
        assert_eq!(self.changed(), [1], "{what}");
    }

    #[track_caller]
    fn ignores(&self, what: &str, change: impl FnOnce()) {
        assert_eq!(self.changed(), [], "before: {what}");
        change();
        assert_eq!(self.changed(), [], "{what}");
    }
}

fn append(path: impl AsRef<std::path::Path>) {
    OpenOptions::new()
        .append(true)
        .open(path)
        .unwrap()
        .write_all(b"+")
        .unwrap();
}

#[test]
fn every_sort_of_change_of_a_file_is_noticed() {
    let place = Place::new();
    let watching = Watching::new();
    let _handle = watching.watch(&place.path("f"), Depth::Entry, 1);
    let path = place.std("f");
    watching.notices("created", || drop(place.write("f", "a")));
    watching.notices("written", || append(&path));
    watching.notices("mode changed", || place.chmod("f", 0o600));
    watching.ignores("read", || drop(fs::read(&path).unwrap()));
    watching.ignores("a neighbour", || drop(place.write("g", "b")));
    watching.notices("replaced by rename", || {
        fs::rename(place.std("g"), &path).unwrap();
    });
    watching.notices("written after the replacement", || append(&path));
    watching.notices("moved away", || fs::rename(&path, place.std("h")).unwrap());
    watching.ignores("written elsewhere", || append(place.std("h")));
    watching.notices("moved back", || fs::rename(place.std("h"), &path).unwrap());
    watching.notices("removed", || fs::remove_file(&path).unwrap());
    watching.notices("a directory instead", || drop(place.directory("f")));
    watching.ignores("what is in it", || drop(place.write("f/x", "")));
}

#[test]
fn the_hubs_own_thread_delivers() {
    let place = Place::new();
    let watching = Watching::new();
    let _handle = watching.watch(&place.path("f"), Depth::Entry, 7);
    place.write("f", "x");
    let event = watching.events.recv_timeout(Duration::from_secs(10)).unwrap();
    assert_eq!(event.token, WatchToken(7));
    assert!(matches!(event.cause, Cause::Changed));
}

/// What a settling watch was told last, and nothing if it was told nothing.
fn newest(watching: &Watching) -> Option<&'static str> {
    watching.hub.catch_up().unwrap();
    watching.events.try_iter().last().map(|event| match event.cause {
        Cause::Unsettled => "being written",
        Cause::Changed => "finished",
        Cause::Overflow | Cause::BegunAnew | Cause::Polled(_) | Cause::Failed(_) => "trouble",
    })
}

#[test]
fn a_settling_watch_tells_a_file_that_is_being_written_from_a_finished_one() {
    let place = Place::new();
    let watching = Watching::new();
    let path = place.path("f");
    let _handle = watching.subscriber.watch_settling(&path, WatchToken(1)).unwrap();
    let mut file = fs::File::create(place.std("f")).unwrap();
    assert_eq!(newest(&watching), Some("being written"), "created");
    file.write_all(b"a").unwrap();
    assert_eq!(newest(&watching), Some("being written"));
    drop(file);
    assert_eq!(newest(&watching), Some("finished"), "closed");
    place.write("f", "b");
    assert_eq!(
        newest(&watching),
        Some("finished"),
        "written and closed in one batch"
    );
    let mut other = fs::File::create(place.std("g")).unwrap();
    other.write_all(b"c").unwrap();
    fs::rename(place.std("g"), place.std("f")).unwrap();
    assert_eq!(newest(&watching), Some("finished"), "moved here");
    other.write_all(b"d").unwrap();
    assert_eq!(
        newest(&watching),
        Some("being written"),
        "by who had it open before"
    );
    drop(other);
    assert_eq!(newest(&watching), Some("finished"));
    fs::remove_file(place.std("f")).unwrap();
    assert_eq!(newest(&watching), Some("finished"), "removed");
    std::os::unix::fs::symlink("target", place.std("f")).unwrap();
    // That a new file was closed may have been missed: it was not watched itself yet.
    place.write("target", "e");
    newest(&watching);
    append(place.std("target"));
    assert_eq!(newest(&watching), Some("finished"), "through a link");
}

#[test]
fn one_batch_reports_a_path_once() {
    let place = Place::new();
    let watching = Watching::new();
    let _handle = watching.watch(&place.path("f"), Depth::Entry, 1);
    let held = watching.hub.hold();
    for _ in 0..50 {
        place.write("f", "x");
        fs::remove_file(place.std("f")).unwrap();
    }
    drop(held);
    watching.hub.catch_up().unwrap();
    assert_eq!(watching.events.try_iter().count(), 1);
}

#[test]
fn an_open_deleted_file_is_not_taken_for_its_successor() {
    let place = Place::new();
    let watching = Watching::new();
    let path = place.write("f", "old");
    let mut old = OpenOptions::new().append(true).open(&path).unwrap();
    let _handle = watching.watch(&place.path("f"), Depth::Entry, 1);
    watching.notices("replaced", || {
        place.write("new", "new");
        fs::rename(place.std("new"), &path).unwrap();
    });
    watching.ignores("the old one is written to", || old.write_all(b"more").unwrap());
}

#[test]
fn our_own_replacement_makes_one_report_and_no_loop() {
    let place = Place::new();
    let watching = Watching::new();
    place.write("f", "old");
    let _handle = watching.watch(&place.path("f"), Depth::Entry, 1);
    let _directory = watching.watch(&place.path(""), Depth::Children, 2);
    let _tree = watching.watch(&place.path(""), Depth::Recursive, 3);
    let held = watching.hub.hold();
    Committer::new()
        .replace(Replace::bytes(place.path("f"), b"new"))
        .unwrap();
    drop(held);
    assert_eq!(watching.changed(), [1, 2, 3]);
    // A temporary file that comes and goes is nobody's business.
    place.write(".setpoint-1-2-3", "x");
    fs::remove_file(place.std(".setpoint-1-2-3")).unwrap();
    assert_eq!(watching.changed(), []);
}

#[test]
fn who_replaces_a_file_is_not_told_of_it_but_of_everything_else() {
    let place = Place::new();
    let watching = Watching::new();
    place.write("f", "old");
    let _handle = watching.watch(&place.path("f"), Depth::Entry, 1);
    let _other = watching.watch(&place.path("f"), Depth::Entry, 2);
    let _directory = watching.watch(&place.path(""), Depth::Children, 3);
    let writer = watching.subscriber.writer(WatchToken(1));
    let committer = Committer::new();
    let replace = |mode: u32| {
        let request = Replace::bytes(place.path("f"), b"new").mode(mode);
        committer.replace(request.written_by(writer.clone())).unwrap();
    };
    for _ in 0..3 {
        replace(0o644);
        assert_eq!(watching.changed(), [2, 3]);
    }
    // What somebody does before and after it is told.
    let held = watching.hub.hold();
    append(place.std("f"));
    replace(0o644);
    drop(held);
    assert_eq!(watching.changed(), [1, 2, 3]);
    let held = watching.hub.hold();
    replace(0o644);
    append(place.std("f"));
    drop(held);
    assert_eq!(watching.changed(), [1, 2, 3]);
    // Others could have written to a file of this mode before it was put in place.
    replace(0o666);
    assert_eq!(watching.changed(), [1, 2, 3]);
    // Another watch of the path is another watch.
    let _again = watching.watch(&place.path("f"), Depth::Entry, 4);
    replace(0o644);
    assert_eq!(watching.changed(), [2, 3, 4]);
}

#[test]
fn a_name_like_those_of_our_temporary_files_hides_nothing() {
    let place = Place::new();
    let watching = Watching::new();
    place.write("f", "old");
    let _handle = watching.watch(&place.path("f"), Depth::Entry, 1);
    let writer = watching.subscriber.writer(WatchToken(1));
    // Learns the name of a temporary file, and uses it again.
    let content = setpoint_host::files::Content::Written(Box::new({
        let (directory, copy) = (place.std(""), place.std("learnt"));
        move |file| {
            let mut names = fs::read_dir(&directory)?.map(|entry| entry.unwrap().file_name());
            let name = names
                .find(|name| setpoint_host::files::is_temporary(name))
                .unwrap();
            fs::write(&copy, name.as_encoded_bytes())?;
            file.write_all(b"new")
        }
    }));
    let request = Replace::new(place.path("f"), content).mode(0o644);
    Committer::new().replace(request.written_by(writer)).unwrap();
    assert_eq!(watching.changed(), []);
    let name = place.read("learnt");
    place.write(&name, "forged");
    fs::rename(place.std(&name), place.std("f")).unwrap();
    assert_eq!(watching.changed(), [1]);
}

#[test]
fn a_missing_tree_made_faster_than_the_watch_descends_is_seen() {
    let place = Place::new();
    let watching = Watching::new();
    let _handle = watching.watch(&place.path("a/b/c/d/f"), Depth::Entry, 1);
    let held = watching.hub.hold();
    place.directory("a/b/c/d");
    place.write("a/b/c/d/f", "x");
    drop(held);
    assert_eq!(watching.changed(), [1]);
    watching.notices("written afterwards", || append(place.std("a/b/c/d/f")));
}

#[test]
fn the_watch_descends_and_ascends_with_its_parents() {
    let place = Place::new();
    let watching = Watching::new();
    let _handle = watching.watch(&place.path("a/b/f"), Depth::Entry, 1);
    watching.ignores("a further ancestor appears", || drop(place.directory("a")));
    watching.notices("the parent appears", || drop(place.directory("a/b")));
    watching.notices("the file appears", || drop(place.write("a/b/f", "")));
    watching.notices("a grandparent moves away", || {
        fs::rename(place.std("a"), place.std("z")).unwrap();
    });
    watching.ignores("written where it is now", || append(place.std("z/b/f")));
    watching.notices("another tree takes the place", || {
        place.directory("y/b");
        fs::rename(place.std("y"), place.std("a")).unwrap();
    });
    watching.notices("created there", || drop(place.write("a/b/f", "")));
    watching.notices("all removed", || fs::remove_dir_all(place.std("a")).unwrap());
    watching.notices("and made again", || {
        place.directory("a/b");
        place.write("a/b/f", "");
    });
    watching.notices("exchanged in one step", || {
        let flags = rustix::fs::RenameFlags::EXCHANGE;
        let cwd = rustix::fs::CWD;
        rustix::fs::renameat_with(cwd, place.std("a"), cwd, place.std("z"), flags).unwrap();
    });
    watching.notices("written after the exchange", || append(place.std("a/b/f")));
}

#[test]
fn a_file_among_the_parents_counts_as_missing() {
    let place = Place::new();
    let watching = Watching::new();
    place.write("a", "");
    let _handle = watching.watch(&place.path("a/b/f"), Depth::Entry, 1);
    watching.notices("a directory takes the file's place", || {
        fs::remove_file(place.std("a")).unwrap();
        place.directory("a/b");
        place.write("a/b/f", "");
    });
    watching.notices("written", || append(place.std("a/b/f")));
}

#[test]
fn children_are_reported_only_to_those_who_ask() {
    let place = Place::new();
    let watching = Watching::new();
    place.directory("d/sub");
    let _entry = watching.watch(&place.path("d"), Depth::Entry, 1);
    let _children = watching.watch(&place.path("d/"), Depth::Children, 2);
    let _tree = watching.watch(&place.path("d/"), Depth::Recursive, 3);
    place.write("d/f", "");
    assert_eq!(watching.changed(), [2, 3]);
    append(place.std("d/f"));
    assert_eq!(watching.changed(), [2, 3]);
    place.write("d/sub/f", "");
    assert_eq!(watching.changed(), [3]);
    place.chmod("d", 0o700);
    assert_eq!(watching.changed(), [1, 2, 3]);
    fs::remove_dir_all(place.std("d")).unwrap();
    assert_eq!(watching.changed(), [1, 2, 3]);
    place.directory("d");
    assert_eq!(watching.changed(), [1, 2, 3]);
    place.write("d/again", "");
    assert_eq!(watching.changed(), [2, 3]);
}

#[test]
fn directories_that_appear_later_in_a_tree_are_watched_too() {
    let place = Place::new();
    let watching = Watching::new();
    place.directory("t/old");
    let _handle = watching.watch(&place.path("t/"), Depth::Recursive, 1);
    watching.notices("a whole tree appears", || drop(place.directory("t/old/a/b/c")));
    watching.notices("a file deep in it", || drop(place.write("t/old/a/b/c/f", "")));
    watching.notices("written", || append(place.std("t/old/a/b/c/f")));
    watching.notices("moved within the tree", || {
        fs::rename(place.std("t/old/a"), place.std("t/moved")).unwrap();
    });
    watching.notices("written after the move", || append(place.std("t/moved/b/c/f")));
    watching.notices("moved in from outside", || {
        place.directory("outside/deep");
        fs::rename(place.std("outside"), place.std("t/in")).unwrap();
    });
    watching.notices("written in what was moved in", || {
        drop(place.write("t/in/deep/f", ""));
    });
    watching.notices("moved out", || {
        fs::rename(place.std("t/in"), place.std("out")).unwrap();
    });
    watching.ignores("written outside", || drop(place.write("out/deep/g", "")));
    let before = watching.hub.statistics().kernel_watches;
    watching.notices("removed", || fs::remove_dir_all(place.std("t/moved")).unwrap());
    assert_eq!(watching.hub.statistics().kernel_watches, before - 3);
}

#[test]
fn a_tree_watch_ends_without_a_trace() {
    let place = Place::new();
    let watching = Watching::new();
    place.directory("t/a/b/c");
    let before = watching.hub.statistics();
    let outer = watching.watch(&place.path("t/"), Depth::Recursive, 1);
    let inner = watching.watch(&place.path("t/a/"), Depth::Recursive, 2);
    drop(outer);
    place.write("t/f", "");
    place.write("t/a/b/c/f", "");
    assert_eq!(watching.changed(), [2]);
    drop(inner);
    place.write("t/a/b/c/g", "");
    assert_eq!(watching.changed(), []);
    assert_eq!(watching.hub.statistics(), before);
}

#[test]
fn a_link_on_the_way_is_watched_like_what_it_leads_to() {
    let place = Place::new();
    let watching = Watching::new();
    place.directory("v1/conf");
    place.directory("v2/conf");
    place.write("v2/conf/f", "");
    place.link("current", "v1");
    let _handle = watching.watch(&place.path("current/conf/f"), Depth::Entry, 1);
    watching.notices("created at the target", || drop(place.write("v1/conf/f", "")));
    watching.notices("the link changes", || {
        place.link("next", "v2");
        fs::rename(place.std("next"), place.std("current")).unwrap();
    });
    watching.notices("written at the new target", || append(place.std("v2/conf/f")));
    watching.ignores("written at the old target", || append(place.std("v1/conf/f")));
    watching.notices("the link goes", || fs::remove_file(place.std("current")).unwrap());
    watching.notices("a link that leads up and down again", || {
        drop(place.link("current", "v2/../v2/./conf/.."));
    });
    watching.notices("written through it", || append(place.std("v2/conf/f")));
    watching.notices("the target moves away", || {
        fs::rename(place.std("v2"), place.std("v3")).unwrap();
    });
}

#[test]
fn a_link_at_the_path_is_followed_or_not_as_asked() {
    let place = Place::new();
    let watching = Watching::new();
    place.directory("d");
    place.write("d/f", "");
    place.link("d/middle", "../d/f");
    place.link("l", "d/middle");
    let _target = watching.watch(&place.path("l"), Depth::Entry, 1);
    let _link = watching
        .subscriber
        .watch(&place.path("l"), Depth::Entry, Follow::Link, WatchToken(2))
        .unwrap();
    append(place.std("d/f"));
    assert_eq!(watching.changed(), [1]);
    fs::remove_file(place.std("d/middle")).unwrap();
    assert_eq!(watching.changed(), [1]);
    place.link("d/middle", "g");
    assert_eq!(watching.changed(), [1]);
    place.write("d/g", "");
    assert_eq!(watching.changed(), [1]);
    append(place.std("d/f"));
    assert_eq!(watching.changed(), []);
    fs::remove_file(place.std("l")).unwrap();
    assert_eq!(watching.changed(), [1, 2]);
    append(place.std("d/g"));
    assert_eq!(watching.changed(), []);
}

#[test]
fn a_link_to_a_directory_shows_its_children() {
    let place = Place::new();
    let watching = Watching::new();
    place.directory("real/sub");
    place.link("l", "real");
    let _children = watching.watch(&place.path("l/"), Depth::Children, 1);
    let _tree = watching.watch(&place.path("l/"), Depth::Recursive, 2);
    place.write("real/f", "");
    assert_eq!(watching.changed(), [1, 2]);
    place.write("real/sub/f", "");
    assert_eq!(watching.changed(), [2]);
}

#[test]
fn loops_of_links_are_watched_like_missing_files_and_can_be_cut() {
    let place = Place::new();
    let watching = Watching::new();
    place.link("a", "b");
    place.link("b", "a");
    place.link("self", "self");
    let _through = watching.watch(&place.path("a/f"), Depth::Entry, 1);
    let _at = watching.watch(&place.path("self"), Depth::Entry, 2);
    assert_eq!(watching.changed(), []);
    fs::remove_file(place.std("b")).unwrap();
    assert_eq!(watching.changed(), []);
    place.directory("b");
    assert_eq!(watching.changed(), [1]);
    place.write("b/f", "");
    assert_eq!(watching.changed(), [1]);
    fs::remove_file(place.std("self")).unwrap();
    assert_eq!(watching.changed(), [2]);
}

#[test]
fn writes_through_another_hard_link_are_noticed() {
    let place = Place::new();
    let watching = Watching::new();
    place.directory("other");
    place.write("f", "");
    fs::hard_link(place.std("f"), place.std("other/name")).unwrap();
    let handle = watching.watch(&place.path("f"), Depth::Entry, 1);
    watching.notices("written through the other name", || {
        append(place.std("other/name"));
    });
    watching.notices("replaced by a single file", || {
        place.write("g", "");
        fs::rename(place.std("g"), place.std("f")).unwrap();
    });
    watching.ignores("the other name is on its own now", || {
        append(place.std("other/name"));
    });
    watching.notices("linked anew", || {
        fs::remove_file(place.std("f")).unwrap();
        fs::hard_link(place.std("other/name"), place.std("f")).unwrap();
    });
    watching.notices("written through the other name again", || {
        append(place.std("other/name"));
    });
    let with = watching.hub.statistics().kernel_watches;
    let same = watching.watch(&place.path("f"), Depth::Entry, 2);
    assert_eq!(watching.hub.statistics().kernel_watches, with);
    drop(handle);
    append(place.std("other/name"));
    assert_eq!(watching.changed(), [2]);
    drop(same);
}

#[test]
fn overflow_reports_every_path_and_finds_what_has_moved() {
    let place = Place::new();
    let watching = Watching::new();
    place.write("f", "");
    place.directory("noise");
    place.directory("t/a");
    let _file = watching.watch(&place.path("f"), Depth::Entry, 1);
    let _missing = watching.watch(&place.path("x/y/f"), Depth::Entry, 2);
    let _tree = watching.watch(&place.path("t/"), Depth::Recursive, 3);
    let _noise = watching.watch(&place.path("noise/"), Depth::Children, 4);
    let _moved = watching.watch(&place.path("noise/d/f"), Depth::Entry, 5);
    let limit: usize = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events")
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let held = watching.hub.hold();
    for _ in 0..limit / 2 + 10 {
        place.write("noise/n", "");
        fs::remove_file(place.std("noise/n")).unwrap();
    }
    // The kernel has no room to tell of these.
    place.directory("x/y");
    place.directory("t/b");
    place.directory("noise/d");
    fs::rename(place.std("t/a"), place.std("t/c")).unwrap();
    drop(held);
    watching.hub.catch_up().unwrap();
    let overflows: Vec<u64> = watching
        .events
        .try_iter()
        .filter(|event| matches!(event.cause, Cause::Overflow))
        .map(|event| event.token.0)
        .collect();
    assert_eq!(overflows, [1, 2, 3, 4, 5]);

    for (file, tokens) in [
        ("f", &[1][..]),
        ("x/y/f", &[2]),
        ("t/b/f", &[3]),
        ("t/c/f", &[3]),
        ("noise/d/f", &[5]),
    ] {
        place.write(file, "after");
        assert_eq!(watching.changed(), tokens, "{file}");
    }
}

#[test]
fn ten_thousand_files_of_a_directory_cost_one_kernel_watch() {
    let place = Place::new();
    let watching = Watching::new();
    let before = watching.hub.statistics();
    let begin = Instant::now();
    let first = watching.watch(&place.path("d/0"), Depth::Entry, 0);
    let after_first = watching.hub.statistics();
    place.directory("d");
    assert_eq!(watching.changed(), [0]);
    let handles: Vec<WatchHandle> = (1..10_000)
        .map(|number| watching.watch(&place.path(&format!("d/{number}")), Depth::Entry, number))
        .collect();
    let took = begin.elapsed();
    let after_all = watching.hub.statistics();
    assert_eq!(after_all.kernel_watches, after_first.kernel_watches + 1);
    assert_eq!((after_all.paths, after_all.walks), (10_000, after_first.walks));
    eprintln!("10 000 watches in one directory: {took:?}");

    place.write("d/4711", "");
    assert_eq!(watching.changed(), [4711]);
    drop((first, handles));
    assert_eq!(watching.hub.statistics(), before);
}

#[test]
fn many_directories_are_watched_and_given_back() {
    let place = Place::new();
    let watching = Watching::new();
    let before = watching.hub.statistics();
    for number in 0..2_000 {
        place.directory(&format!("d{number}/e"));
    }
    let begin = Instant::now();
    let handles: Vec<WatchHandle> = (0..2_000)
        .map(|number| watching.watch(&place.path(&format!("d{number}/e/f")), Depth::Entry, number))
        .collect();
    eprintln!("2 000 watches in as many directories: {:?}", begin.elapsed());
    place.write("d77/e/f", "");
    assert_eq!(watching.changed(), [77]);
    drop(handles);
    assert_eq!(watching.hub.statistics(), before);
}

#[test]
fn a_dropped_handle_is_silent_and_others_go_on() {
    let place = Place::new();
    let watching = Watching::new();
    let first = watching.watch(&place.path("f"), Depth::Entry, 1);
    let _second = watching.watch(&place.path("f"), Depth::Entry, 2);
    drop(first);
    place.write("f", "");
    assert_eq!(watching.changed(), [2]);
}

#[test]
fn handles_may_be_made_and_dropped_in_the_sink_and_outlive_the_hub() {
    let place = Place::new();
    let hub = WatchHub::new().unwrap();
    let (sender, receiver) = channel();
    let other = hub.subscribe(Arc::new(|_: &[WatchEvent]| {}));
    let path = place.path("g");
    let sink = move |_: &[WatchEvent]| {
        drop(
            other
                .watch(&path, Depth::Entry, Follow::Target, WatchToken(9))
                .unwrap(),
        );
        let _ = sender.send(());
    };
    let subscriber = hub.subscribe(Arc::new(sink));
    let handle = subscriber
        .watch(&place.path("f"), Depth::Entry, Follow::Target, WatchToken(1))
        .unwrap();
    place.write("f", "");
    receiver.recv_timeout(Duration::from_secs(10)).unwrap();
    drop(hub);
    place.write("f", "");
    drop(handle);
    drop(subscriber);
    // The sink, and with it the sender, is gone now.
    assert!(receiver.recv_timeout(Duration::from_secs(10)).is_err());
}

#[test]
fn a_sink_that_panics_does_not_end_the_watching_of_others() {
    let place = Place::new();
    let watching = Watching::new();
    let bad = watching.hub.subscribe(Arc::new(|_: &[WatchEvent]| {
        panic!("a bug in a sink, wanted by this test")
    }));
    let _bad = bad
        .watch(&place.path("f"), Depth::Entry, Follow::Target, WatchToken(0))
        .unwrap();
    let _good = watching.watch(&place.path("f"), Depth::Entry, 1);
    watching.notices("the first time", || drop(place.write("f", "")));
    watching.notices("and the second", || append(place.std("f")));
}

#[test]
fn the_root_directory_can_be_watched() {
    let watching = Watching::new();
    let before = watching.hub.statistics();
    let handle = watching.watch(&AbsolutePath::new("/").unwrap(), Depth::Children, 1);
    drop(handle);
    assert_eq!(watching.hub.statistics(), before);
}

#[test]
fn writes_to_files_of_proc_are_noticed() {
    if !is_root() {
        return;
    }
    // Writing to itself what is there changes nothing.
    let path = AbsolutePath::new("/proc/sys/kernel/domainname").unwrap();
    let value = fs::read(&path).unwrap();
    let watching = Watching::new();
    let _handle = watching.watch(&path, Depth::Entry, 1);
    watching.notices("written", || fs::write(&path, value).unwrap());
}

#[test]
fn an_unreadable_directory_is_an_error_at_the_end_and_none_on_the_way() {
    let Some(place) = Place::of_root() else {
        return;
    };
    place.directory("closed/open");
    place.directory("sealed");
    place.chmod("closed", 0o711);
    place.chmod("closed/open", 0o755);
    place.chmod("sealed", 0o700);
    as_nobody(
        "watch::an_unreadable_directory_is_an_error_at_the_end_and_none_on_the_way",
        &place,
        |directory| {
            let watching = Watching::new();
            let path = |name: &str| AbsolutePath::new(directory.join(name)).unwrap();
            let _through = watching.watch(&path("closed/open/f"), Depth::Entry, 1);
            for (name, depth) in [
                ("closed/f", Depth::Entry),
                ("sealed/x/f", Depth::Entry),
                ("sealed/", Depth::Children),
            ] {
                let result = watching
                    .subscriber
                    .watch(&path(name), depth, Follow::Target, WatchToken(2));
                assert!(
                    matches!(result, Err(WatchError::PermissionDenied { .. })),
                    "{name}: {result:?}"
                );
            }
        },
    );
}

const INSIDE: &str = "SETPOINT_TEST_INSIDE";

/// Runs this test's second half as the user nobody, in another process.
fn as_nobody(test: &str, place: &Place, body: impl FnOnce(&std::path::Path)) {
    inside(
        &[
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--inh-caps=-all",
        ],
        test,
        place,
        body,
    );
}

/// Runs this test's second half with few kernel watches, in a user namespace of its own.
pub(crate) fn in_user_namespace(test: &str, place: &Place, body: impl FnOnce(&std::path::Path)) {
    let limit = "echo 12 > /proc/sys/user/max_inotify_watches && exec \"$@\"";
    inside(
        &["unshare", "--user", "--map-root-user", "sh", "-c", limit, "sh"],
        test,
        place,
        body,
    );
}

pub(crate) fn inside(wrapper: &[&str], test: &str, place: &Place, body: impl FnOnce(&std::path::Path)) {
    if let Some(directory) = std::env::var_os(INSIDE) {
        return body(std::path::Path::new(&directory));
    }
    // The copy lies where everybody may run it.
    let program = place.std("test-program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let output = std::process::Command::new(wrapper[0])
        .args(&wrapper[1..])
        .arg(program)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, place.std(""))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}
