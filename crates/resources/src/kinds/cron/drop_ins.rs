//! Drop-ins of a timer: files `*.conf` in a directory `NAME.timer.d`, which change it, systemd.unit(5).
//!
//! systemd says by itself that one was changed, but only of directories that were there when it read its files. So whether there is one in a new directory is looked for here.
//! Directories of several units (`timer.d`, `backup-.timer.d`) are not, as whoever uses those tells systemd.

use std::io;
use std::path::{Path, PathBuf};

/// Places of files that come with packages or are generated: one of the same name in a directory of the administrator replaces them.
const LESS_IMPORTANT: [&str; 4] = [
    "/usr",
    "/lib",
    "/run/systemd/generator",
    "/run/systemd/generator.late",
];

/// Whether one of the directories, the most important first, has a drop-in that is not among those that were read and that none of them replaces.
pub(super) fn has_unread(directories: &[PathBuf], read: &[PathBuf]) -> io::Result<bool> {
    for (at, directory) in directories.iter().enumerate() {
        let entries = match std::fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                continue;
            }
            Err(error) => return Err(error),
        };
        for entry in entries {
            let path = entry?.path();
            let is_less_important = |other: &Path| {
                let later = directories[at + 1..].iter();
                later.map(PathBuf::as_path).any(|later| other.starts_with(later))
                    || LESS_IMPORTANT.iter().any(|place| other.starts_with(place))
            };
            let is_known = |known: &PathBuf| {
                *known == path || (known.file_name() == path.file_name() && !is_less_important(known))
            };
            if is_drop_in(&path) && !read.iter().any(is_known) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Whether systemd takes a file for one. A link to `/dev/null`, which switches off what it replaces, is one.
fn is_drop_in(path: &Path) -> bool {
    let is_hidden = |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(b".");
    path.extension().is_some_and(|extension| extension == "conf")
        && !path.file_name().is_some_and(is_hidden)
        // One that has gone meanwhile is none.
        && path.exists()
        && !path.is_dir()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make the files that they look at")]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_read_is_found_unless_something_replaces_it() {
        let place = tempfile::tempdir().expect("a directory for the test");
        let [first, second] = ["first/a.timer.d", "second/a.timer.d"].map(|name| place.path().join(name));
        let directories = [first.join(""), second.join("")];
        let unread = |read: &[&Path]| {
            let read: Vec<PathBuf> = read.iter().map(|path| path.to_path_buf()).collect();
            has_unread(&directories, &read).expect("the directories can be read")
        };
        assert!(!unread(&[]), "there is no such directory");
        std::fs::create_dir_all(&second).expect("it can be made");
        for other in [".hidden.conf", "backup.conf~", "README"] {
            std::fs::write(second.join(other), "").expect("it can be written");
        }
        assert!(!unread(&[]));
        let own = second.join("more.conf");
        std::fs::write(&own, "").expect("it can be written");
        assert!(unread(&[]));
        assert!(!unread(&[&own]));
        assert!(!unread(&[&first.join("more.conf")]), "replaced");
        assert!(unread(&[Path::new(
            "/usr/lib/systemd/system/a.timer.d/more.conf"
        )]));
        std::fs::create_dir_all(&first).expect("it can be made");
        std::fs::write(first.join("more.conf"), "").expect("it can be written");
        assert!(unread(&[&own]), "what replaces it was not read");
    }
}
