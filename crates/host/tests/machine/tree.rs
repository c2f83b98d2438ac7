//! Removing trees and purging directories.

use crate::place::Place;
use setpoint_host::files::{Committer, Content, Directory, Entry, Fate, Purged, Removal, Replace};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[test]
fn a_tree_goes_as_a_whole_and_links_out_of_it_are_not_followed() {
    let place = Place::new();
    place.directory("outside");
    place.write("outside/f", "kept");
    place.directory("t/a/b");
    place.write("t/a/b/f", "");
    place.link("t/a/out", place.std("outside"));
    let tree = Entry::at(&place.path("t")).unwrap();
    tree.remove_tree().unwrap();
    tree.remove_tree().unwrap();
    assert_eq!(place.names(""), ["outside"]);
    assert_eq!(place.read("outside/f"), "kept");

    place.link("l", "outside");
    Entry::at(&place.path("l")).unwrap().remove_tree().unwrap();
    assert_eq!(place.names("outside"), ["f"]);
}

#[test]
fn a_deep_tree_does_not_overflow_anything() {
    let place = Place::new();
    let deep = vec!["d"; 300].join("/");
    place.directory(&deep);
    Entry::at(&place.path("d")).unwrap().remove_tree().unwrap();
    assert_eq!(place.names(""), [""; 0]);
}

#[test]
fn a_purge_keeps_what_is_protected_however_deep() {
    let place = Place::new();
    place.directory("t/keep/deeper/deepest");
    place.directory("t/gone/too");
    place.write("t/keep/deeper/deepest/managed", "");
    place.write("t/keep/deeper/deepest/stray", "");
    place.write("t/keep/stray", "");
    place.write("t/gone/too/f", "");
    place.write("t/stray", "");
    place.write("t/.setpoint-1-2-3", "anybody can use the name");
    let protected: BTreeSet<PathBuf> = [PathBuf::from("keep/deeper/deepest/managed")].into();
    let fate = |path: &Path| {
        if protected.contains(path) {
            Fate::Keep
        } else if protected.iter().any(|kept| kept.starts_with(path)) {
            Fate::Descend
        } else {
            Fate::Remove
        }
    };
    let directory = Directory::open(&place.path("t")).unwrap();
    let directory = Arc::new(directory);
    let expected = [
        ".setpoint-1-2-3: regular file",
        "gone: directory with 2 entries",
        "keep/deeper/deepest/stray: regular file",
        "keep/stray: regular file",
        "stray: regular file",
    ];

    let preview = directory.purge(Removal::Preview, fate).unwrap();
    assert_eq!(shown(&preview), expected);
    assert_eq!(place.names("t/gone/too"), ["f"]);
    let purged = directory.purge(Removal::Perform, fate).unwrap();
    assert_eq!(purged.removed.len(), 5);
    assert!(purged.leftovers.into_first().is_none());
    assert_eq!(place.names("t"), ["keep"]);
    assert_eq!(place.names("t/keep"), ["deeper"]);
    assert_eq!(place.names("t/keep/deeper/deepest"), ["managed"]);
    assert!(
        directory
            .purge(Removal::Perform, fate)
            .unwrap()
            .removed
            .is_empty()
    );
}

fn shown(purged: &Purged) -> Vec<String> {
    let removed = purged.removed.iter();
    removed
        .map(|removed| format!("{}: {}", removed.path.display(), removed.extent))
        .collect()
}

fn all(_: &Path) -> Fate {
    Fate::Remove
}

#[test]
fn a_purge_spares_what_is_being_made_just_now() {
    let place = Place::new();
    place.directory("t");
    let directory = Arc::new(Directory::open(&place.path("t")).unwrap());
    let inside = Arc::clone(&directory);
    let write = move |file: &mut std::fs::File| {
        let purged = inside.purge(Removal::Perform, all).unwrap();
        assert!(purged.removed.is_empty(), "{purged:?}");
        std::io::Write::write_all(file, b"made")
    };
    Committer::new()
        .replace(Replace::new(place.path("t/f"), Content::Written(Box::new(write))))
        .unwrap();
    assert_eq!(place.read("t/f"), "made");
}

#[test]
fn what_cannot_be_removed_saves_nothing_else() {
    if !crate::place::is_root() {
        return;
    }
    let place = Place::new();
    place.directory("t/a/mounted");
    place.directory("t/b");
    place.write("t/a/f", "");
    place.write("t/b/f", "");
    crate::watch::inside(
        &["unshare", "--mount"],
        "tree::what_cannot_be_removed_saves_nothing_else",
        &place,
        |directory| {
            let at = |name: &str| directory.join(name);
            let mounted = std::process::Command::new("mount")
                .args(["-t", "tmpfs", "none"])
                .arg(at("t/a/mounted"))
                .status()
                .unwrap();
            assert!(mounted.success());
            std::fs::write(at("t/a/mounted/kept"), "").unwrap();
            let tree = setpoint_host::files::AbsolutePath::new(at("t")).unwrap();
            let opened = Arc::new(Directory::open(&tree).unwrap());
            let purged = opened.purge(Removal::Perform, all).unwrap();
            let (error, others) = purged.leftovers.into_first().unwrap();
            assert!(
                error
                    .to_string()
                    .ends_with("t/a/mounted: another file system is mounted on it"),
                "{error}"
            );
            assert_eq!(others, 0);
            assert!(at("t/a/mounted/kept").exists());
            assert!(!at("t/a/f").exists() && !at("t/b").exists());
            let error = Entry::at(&tree).unwrap().remove_tree().unwrap_err();
            assert!(error.to_string().contains("is mounted on it"), "{error}");
        },
    );
}

#[test]
fn depth_costs_no_descriptors() {
    use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    const DEPTH: usize = 5_000;
    let place = Place::new();
    place.directory("t");
    let open = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut here = openat(CWD, place.std("t"), open, Mode::empty()).unwrap();
    for _ in 0..DEPTH {
        mkdirat(&here, "d", Mode::RWXU).unwrap();
        here = openat(&here, "d", open, Mode::empty()).unwrap();
    }
    drop(here);
    crate::watch::inside(
        &["env"],
        "tree::depth_costs_no_descriptors",
        &place,
        |directory| {
            let few = Rlimit {
                current: Some(100),
                maximum: getrlimit(Resource::Nofile).maximum,
            };
            setrlimit(Resource::Nofile, few).unwrap();
            let tree = setpoint_host::files::AbsolutePath::new(directory.join("t")).unwrap();
            let entry = Entry::at(&tree).unwrap();
            let extent = entry.extent().unwrap().unwrap();
            assert_eq!(extent.to_string(), format!("directory with {DEPTH} entries"));
            entry.remove_tree().unwrap();
            assert!(!directory.join("t").exists());
        },
    );
}

#[test]
fn a_purge_that_looks_into_everything_looks_into_directories_only() {
    let place = Place::new();
    place.directory("t/a");
    place.write("t/f", "");
    place.write("t/a/g", "");
    let directory = Arc::new(Directory::open(&place.path("t")).unwrap());
    let purged = directory
        .purge(Removal::Perform, |_: &Path| Fate::Descend)
        .unwrap();
    assert!(purged.removed.is_empty(), "{purged:?}");
    assert!(purged.leftovers.into_first().is_none());
    assert_eq!(place.names("t"), ["a", "f"]);
}

#[test]
fn of_very_many_that_cannot_be_removed_the_first_is_told_and_all_are_counted() {
    let place = Place::new();
    place.directory("t");
    for number in 0..50 {
        place.write(&format!("t/{number:02}"), "");
    }
    let immutable = |flag: &str| {
        let script = r#"chattr "$1" "$0"/*"#;
        let mut change = std::process::Command::new("sh");
        let change = change.arg("-c").arg(script).arg(place.std("t")).arg(flag);
        change
            .stderr(std::process::Stdio::null())
            .status()
            .unwrap()
            .success()
    };
    if !immutable("+i") {
        eprintln!("skipped: nothing can be made immutable here");
        return;
    }
    let directory = Arc::new(Directory::open(&place.path("t")).unwrap());
    let purged = directory
        .purge(Removal::Perform, |_: &Path| Fate::Remove)
        .unwrap();
    assert!(immutable("-i"));
    let (first, others) = purged.leftovers.into_first().unwrap();
    assert_eq!(first.path(), place.std("t/00"));
    assert_eq!(others, 49);
    assert_eq!(place.names("t").len(), 50);
}
