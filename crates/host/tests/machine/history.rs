//! Random histories: whatever is done to a small tree, every watch whose answer would differ now is told.

use crate::place::Place;
use setpoint_host::files::AbsolutePath;
use setpoint_host::watch::{Depth, Follow, WatchEvent, WatchHandle, WatchHub, WatchToken};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;

/// A small generator with a seed (xorshift64*), so that a failure can be run again.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }

    fn path(&mut self, root: &Path) -> PathBuf {
        let mut path = root.to_path_buf();
        for _ in 0..=self.below(3) {
            path.push(["a", "b", "c"][self.below(3)]);
        }
        path
    }
}

/// What somebody sees who looks where a watch looks.
type Sight = BTreeMap<PathBuf, Option<Seen>>;

#[derive(Debug)]
struct Seen {
    mode: u32,
    inode: u64,
    length: u64,
    text: Option<PathBuf>,
    /// It lies in a watched directory and has other names, so what is written through those is not promised.
    shared: bool,
}

impl PartialEq for Seen {
    fn eq(&self, other: &Self) -> bool {
        self.inode == other.inode
            && self.text == other.text
            && (self.shared || other.shared || (self.mode, self.length) == (other.mode, other.length))
    }
}

fn see(path: &Path, depth: Depth, follow: Follow) -> Sight {
    let mut sight = Sight::new();
    note(path, false, &mut sight);
    let end = match follow {
        Follow::Target => fs::metadata(path),
        Follow::Link => fs::symlink_metadata(path),
    };
    let Ok(end) = end else { return sight };
    sight.insert(PathBuf::from("end"), Some(seen(&end, None, false)));
    if end.is_dir() && depth > Depth::Entry {
        look_into(path, depth, &mut sight);
    }
    sight
}

fn look_into(directory: &Path, depth: Depth, sight: &mut Sight) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        note(&path, true, sight);
        if depth == Depth::Recursive && fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()) {
            look_into(&path, depth, sight);
        }
    }
}

fn note(path: &Path, inside: bool, sight: &mut Sight) {
    let found = fs::symlink_metadata(path).ok();
    sight.insert(
        path.to_path_buf(),
        found.map(|found| seen(&found, fs::read_link(path).ok(), inside)),
    );
}

fn seen(found: &fs::Metadata, text: Option<PathBuf>, inside: bool) -> Seen {
    // A directory's own length is its children's business.
    let length = if found.is_dir() { 0 } else { found.len() };
    let shared = inside && found.is_file() && found.nlink() > 1;
    Seen {
        mode: found.mode(),
        inode: found.ino(),
        length,
        text,
        shared,
    }
}

/// Whether everything that an operation on `path` could touch lies below `root`, though links may lead out of it.
///
/// The history itself makes links with `..` and moves them about; without this it would reach the machine's own
/// directories. `path` itself is not followed by the operations that this is asked for.
fn is_confined(path: &Path, root: &Path) -> bool {
    let above: Vec<&Path> = path
        .ancestors()
        .skip(1)
        .take_while(|above| above.starts_with(root))
        .collect();
    for above in above.into_iter().rev() {
        if fs::symlink_metadata(above).is_err() {
            return true;
        }
        if !above.canonicalize().is_ok_and(|real| real.starts_with(root)) {
            return false;
        }
    }
    true
}

fn do_something(random: &mut Random, root: &Path) -> String {
    let path = random.path(root);
    let other = random.path(root);
    let operation = random.below(12);
    let choices = (random.below(4), random.below(64));
    if !is_confined(&path, root) || !is_confined(&other, root) {
        return format!("(nothing: {path:?} or {other:?} leads out)");
    }
    // What follows a link at the path itself is not done to one.
    let is_link = fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink());
    if is_link && matches!(operation, 0..=3 | 11) {
        return format!("(nothing: {path:?} is a link)");
    }
    match operation {
        0 | 1 => {
            let _ = fs::create_dir_all(&path);
            format!("mkdir -p {path:?}")
        }
        2 | 3 => {
            let length = fs::metadata(&path).map_or(0, |found| found.len());
            let _ = fs::write(&path, "x".repeat(usize::try_from(length).unwrap() % 50 + 1));
            format!("write {path:?}")
        }
        4 => {
            let _ = fs::remove_file(&path);
            format!("rm {path:?}")
        }
        5 => {
            let _ = fs::remove_dir_all(&path);
            format!("rm -r {path:?}")
        }
        6 | 7 => {
            let _ = fs::rename(&path, &other);
            format!("mv {path:?} {other:?}")
        }
        8 => {
            let target = match choices.0 {
                0 => other.clone(),
                1 => PathBuf::from(["a", "b", "c"][choices.1 % 3]),
                2 => Path::new("..").join(["a", "b/c", "c/../b", ".."][choices.1 % 4]),
                _ => Path::new("a/..").join(["b", "b/../c"][choices.1 % 2]),
            };
            let _ = symlink(&target, &path);
            format!("ln -s {target:?} {path:?}")
        }
        9 => {
            let _ = fs::hard_link(&other, &path);
            // That a file has a second name is noticed at the next event of its first one: here is one.
            if let Ok(found) = fs::symlink_metadata(&other)
                && found.is_file()
            {
                fs::set_permissions(&other, found.permissions()).unwrap();
            }
            format!("ln {other:?} {path:?}")
        }
        10 => {
            let flags = rustix::fs::RenameFlags::EXCHANGE;
            let cwd = rustix::fs::CWD;
            let _ = rustix::fs::renameat_with(cwd, &path, cwd, &other, flags);
            format!("exchange {path:?} {other:?}")
        }
        _ => {
            use std::os::unix::fs::PermissionsExt;
            let mode = 0o700 + u32::try_from(choices.1).unwrap();
            let _ = fs::set_permissions(&path, fs::Permissions::from_mode(mode));
            format!("chmod {path:?}")
        }
    }
}

/// `grouped`: several changes before the hub may read, so that it always comes too late.
fn history(seed: u64, steps: usize, grouped: bool) {
    let place = Place::new();
    // No link leads further up than two directories from the root, so that looking stays in here, too.
    let root = place.directory("first/second/third/root").canonicalize().unwrap();
    let hub = WatchHub::new().unwrap();
    let (sender, events) = channel();
    let subscriber = hub.subscribe(Arc::new(move |told: &[WatchEvent]| {
        for event in told {
            let _ = sender.send(event.token);
        }
    }));
    let before = hub.statistics();
    let mut random = Random(seed * 2 + 1);
    let mut watches: Vec<(PathBuf, Depth, Follow, WatchHandle)> = Vec::new();
    for number in 0..24 {
        let path = random.path(&root);
        let depth = [Depth::Entry, Depth::Children, Depth::Recursive][random.below(3)];
        let follow = [Follow::Target, Follow::Target, Follow::Link][random.below(3)];
        let watched = AbsolutePath::new(&path).unwrap();
        let handle = subscriber
            .watch(&watched, depth, follow, WatchToken(number))
            .unwrap();
        watches.push((path, depth, follow, handle));
    }
    let mut log = Vec::new();
    for _ in 0..steps {
        let sights: Vec<Sight> = watches
            .iter()
            .map(|(path, depth, follow, _)| see(path, *depth, *follow))
            .collect();
        hub.catch_up().unwrap();
        while events.try_recv().is_ok() {}
        let held = hub.hold();
        for _ in 0..=(if grouped { random.below(6) } else { 0 }) {
            log.push(do_something(&mut random, &root));
        }
        drop(held);
        hub.catch_up().unwrap();
        let told: Vec<WatchToken> = events.try_iter().collect();
        for (number, (path, depth, follow, _)) in watches.iter().enumerate() {
            let sight = see(path, *depth, *follow);
            assert!(
                sight == sights[number] || told.contains(&WatchToken(number as u64)),
                "seed {seed}: {path:?} {depth:?} {follow:?} was not told\nbefore {:?}\nafter {sight:?}\n{}",
                sights[number],
                log.join("\n"),
            );
        }
        if random.below(10) == 0 {
            // One watch is made anew, elsewhere or not.
            let number = random.below(watches.len());
            let path = random.path(&root);
            let (_, depth, follow, _) = &watches[number];
            let (depth, follow) = (*depth, *follow);
            let watched = AbsolutePath::new(&path).unwrap();
            let handle = subscriber
                .watch(&watched, depth, follow, WatchToken(number as u64))
                .unwrap();
            watches[number] = (path, depth, follow, handle);
        }
    }
    fs::remove_dir_all(&root).unwrap();
    hub.catch_up().unwrap();
    drop(watches);
    assert_eq!(hub.statistics(), before, "seed {seed}");
}

#[test]
fn no_change_is_missed_when_the_hub_keeps_up() {
    for seed in 0..SEEDS {
        history(seed, 60, false);
    }
}

#[test]
fn no_change_is_missed_when_the_hub_comes_late() {
    for seed in 0..SEEDS {
        history(1000 + seed, 40, true);
    }
}

const SEEDS: u64 = 40;
