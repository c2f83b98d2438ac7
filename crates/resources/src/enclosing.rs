//! The directories and mount points above a path. A resource that makes or mounts one of them comes before those in it.

use setpoint_engine::{Apply, Identity, Wanted, WantedOrder, WantedReach};
use setpoint_host::files::AbsolutePath;

use crate::ProgramFiles;
use crate::sorts::{FILE, MOUNT_POINT, UNMOUNTED};

/// The identity of a path: a file, or with a slash at its end a directory.
pub(crate) fn file(path: &AbsolutePath) -> Identity {
    FILE.identity(path.cleaned().as_bytes())
}

/// The identity of a path as a file, and as a directory.
pub(crate) fn file_or_directory(path: &AbsolutePath) -> [Identity; 2] {
    let path = path.cleaned();
    let path = path.as_bytes();
    let file = path.strip_suffix(b"/").unwrap_or(path);
    [FILE.identity(file), FILE.identity([file, b"/"].concat())]
}

/// The run depends on the contents of a path (see [`Apply::reads`]). Answers the path to read: in a plan, the original of a copy that
/// the run would make of a file of the program.
pub(crate) fn reads(apply: &mut Apply<'_>, path: &AbsolutePath) -> AbsolutePath {
    apply.reads(&file(path), &path.to_string());
    let files = apply
        .is_plan()
        .then(|| apply.handle().extension::<ProgramFiles>().ok());
    let original = files.flatten().and_then(|files| files.original(path));
    original.unwrap_or_else(|| path.clone())
}

/// The edge from the nearest resource above a path.
pub(crate) fn wanted(path: &Identity) -> Wanted {
    Wanted {
        order: WantedOrder::FoundFirst,
        identities: ancestors(path)
            .flat_map(|above| [of(&MOUNT_POINT, &above), above])
            .collect(),
        reach: WantedReach::First,
    }
}

/// The edge from a resource that removes a path to one that unmounts a directory above it.
pub(crate) fn wanted_to_go(path: &Identity) -> Wanted {
    Wanted {
        order: WantedOrder::FoundAfter,
        identities: ancestors(path).map(|above| of(&UNMOUNTED, &above)).collect(),
        reach: WantedReach::First,
    }
}

/// The edge to a resource that works in a directory: from the directory itself, or the nearest resource above it.
pub(crate) fn wanted_in(directory: &AbsolutePath) -> Wanted {
    let directory = directory.cleaned();
    let directory = directory.as_bytes();
    let directory = directory.strip_suffix(b"/").unwrap_or(directory);
    wanted(&FILE.identity([directory, b"/."].concat()))
}

fn of(sort: &'static setpoint_engine::Sort, path: &Identity) -> Identity {
    Identity {
        sort,
        key: path.key.clone(),
    }
}

/// The directories above a path, nearest first, each with a trailing slash.
pub(crate) fn ancestors(path: &Identity) -> impl Iterator<Item = Identity> {
    let end = path.key.strip_suffix(b"/").unwrap_or(&path.key).len();
    let slashes = (0..end).rev().filter(|at| path.key[*at] == b'/');
    slashes.map(|at| path.beginning(at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestors_go_from_the_nearest_to_the_root() {
        let of = |path: &[u8]| {
            ancestors(&FILE.identity(path))
                .map(|above| String::from_utf8(above.key.to_vec()).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(of(b"/a/b/c"), ["/a/b/", "/a/", "/"]);
        assert_eq!(of(b"/a/b/"), ["/a/", "/"]);
        assert!(of(b"/").is_empty());
    }

    #[test]
    fn who_works_in_a_directory_waits_for_it_and_for_what_is_mounted_there() {
        let path = AbsolutePath::new("/srv/a/").unwrap();
        let names: Vec<(&str, String)> = wanted_in(&path)
            .identities
            .iter()
            .map(|identity| {
                (
                    identity.sort.name,
                    String::from_utf8_lossy(&identity.key).into_owned(),
                )
            })
            .collect();
        let first = [
            ("mount point", "/srv/a/".to_owned()),
            ("file", "/srv/a/".to_owned()),
        ];
        assert_eq!(names[..2], first);
    }
}
