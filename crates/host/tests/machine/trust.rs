//! Directories that others can write in, and what they may have put there.

use crate::place::{Place, is_root};
use setpoint_host::files::{Committer, Entry, FileError, Method, Replace};
use std::fs;

const USER: u32 = 65534;

#[test]
fn root_follows_no_link_of_its_own_where_others_could_have_moved_it() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    place.chmod("", 0o755);
    place.directory("system");
    place.directory("shared");
    place.link("shared/by-root", place.std("system"));
    for mode in [0o775, 0o1777] {
        place.chmod("shared", mode);
        let error = Entry::at(&place.path("shared/by-root/f")).unwrap_err();
        assert!(
            matches!(error, FileError::MovableLink { .. }),
            "{mode:o}: {error}"
        );
        let replace = Replace::bytes(place.path("shared/by-root"), "evil");
        let error = Committer::new().replace(replace).unwrap_err();
        assert!(
            matches!(error, FileError::MovableLink { .. }),
            "{mode:o}: {error}"
        );
    }
    place.chmod("shared", 0o755);
    Entry::at(&place.path("shared/by-root/f")).unwrap();
}

#[test]
fn root_changes_no_hard_link_in_a_directory_of_its_own_that_others_can_write_in() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    place.write("shadow", "secret");
    place.chmod("shadow", 0o600);
    place.directory("shared");
    place.chmod("shared", 0o1777);
    fs::hard_link(place.std("shadow"), place.std("shared/f")).unwrap();
    let entry = Entry::at(&place.path("shared/f")).unwrap();
    let error = entry.set_owner(Some(USER), None).unwrap_err();
    assert!(matches!(error, FileError::UnsafeHardLink { .. }), "{error}");
    let done = Committer::new()
        .replace(Replace::bytes(place.path("shared/f"), "new"))
        .unwrap();
    assert_eq!(done.method, Method::Atomically);
    assert_eq!(
        (place.read("shadow").as_str(), place.read("shared/f").as_str()),
        ("secret", "new")
    );
}
