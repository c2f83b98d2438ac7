//! Removing trees and purging directories.

use crate::place::Place;
use setpoint_host::files::{Directory, Entry, Fate, Removal};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

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
    place.write("t/.setpoint-1-2-3", "in the making");
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
    let expected = ["gone", "keep/deeper/deepest/stray", "keep/stray", "stray"].map(PathBuf::from);

    assert_eq!(directory.purge(Removal::Preview, fate).unwrap(), expected);
    assert_eq!(place.names("t/gone/too"), ["f"]);
    assert_eq!(directory.purge(Removal::Perform, fate).unwrap(), expected);
    assert_eq!(place.names("t"), [".setpoint-1-2-3", "keep"]);
    assert_eq!(place.names("t/keep"), ["deeper"]);
    assert_eq!(place.names("t/keep/deeper/deepest"), ["managed"]);
    assert_eq!(
        directory.purge(Removal::Perform, fate).unwrap(),
        Vec::<PathBuf>::new()
    );
}
