//! The files of a unit: its unit file, and its drop-ins, files `*.conf` in a directory `NAME.d`, which change it, systemd.unit(5).
//!
//! systemd reports when a file has changed, but it knows only the directories and files that were there when it read its files. So this
//! module looks for new ones.

use std::io;
use std::path::{Path, PathBuf};

use setpoint_host::systemd::{Unit, UnitName};

/// Places of files that come with packages or are generated: one of the same name in a directory of the administrator replaces them.
const LESS_IMPORTANT: [&str; 4] = [
    "/usr",
    "/lib",
    "/run/systemd/generator",
    "/run/systemd/generator.late",
];

/// Whether a unit has other files than those that the manager has read. `directories` are those in which the manager looks, the most important first.
pub(crate) fn differ(directories: &[PathBuf], name: &UnitName, unit: &Unit) -> io::Result<bool> {
    let names = [Some(name.clone()), name.template()];
    let names = names.iter().flatten();
    let mut places = names.flat_map(|name| directories.iter().map(|directory| directory.join(name.as_str())));
    let found = places.find_map(|path| path.canonicalize().ok());
    let read = unit.file.as_ref().and_then(|path| path.canonicalize().ok());
    // A file that has gone is reported by the manager.
    if found.is_some() && found != read {
        return Ok(true);
    }
    let of_units = drop_in_names(name);
    let drop_ins = directories
        .iter()
        .flat_map(|directory| of_units.iter().map(|unit| directory.join(format!("{unit}.d/"))));
    has_unread(&drop_ins.collect::<Vec<_>>(), &unit.drop_ins)
}

/// The names before `.d` of the directories in which drop-ins of a unit are: for `a-b@c.service` its own name, `a-b@.service`, `a-.service` and `service`.
fn drop_in_names(name: &UnitName) -> Vec<String> {
    let mut names = vec![name.as_str().to_owned()];
    names.extend(name.template().map(|template| template.as_str().to_owned()));
    let Some((stem, suffix)) = name.as_str().rsplit_once('.') else {
        return names;
    };
    let stem = stem.split('@').next().unwrap_or(stem);
    let dashes = stem.match_indices('-').map(|(at, _)| at).rev();
    names.extend(dashes.map(|at| format!("{}-.{suffix}", &stem[..at])));
    names.push(suffix.to_owned());
    names
}

/// Whether one of the directories, the most important first, has a drop-in that is not among those that were read and that none of them replaces.
pub(crate) fn has_unread(directories: &[PathBuf], read: &[PathBuf]) -> io::Result<bool> {
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
    fn units_have_drop_ins_under_several_names() {
        let names = |name: &str| drop_in_names(&UnitName::new(name.to_owned()).expect("a name"));
        assert_eq!(
            names("a-b-c@i-j.service"),
            [
                "a-b-c@i-j.service",
                "a-b-c@.service",
                "a-b-.service",
                "a-.service",
                "service"
            ]
        );
        assert_eq!(names("plain.timer"), ["plain.timer", "timer"]);
    }

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
