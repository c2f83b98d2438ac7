//! Which file of several holds when the machine starts, as sysctl.d(5) says: files of all directories in the order of their names, the last
//! assignment holds, and of two of one name that of the first directory is read.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use setpoint_host::files::AbsolutePath;

use super::assignments::assigned;
use super::even;
use crate::text_lines;

/// Where the files are that are read, the first one before the others.
const DIRECTORIES: [&str; 4] = [
    "/etc/sysctl.d",
    "/run/sysctl.d",
    "/usr/local/lib/sysctl.d",
    "/usr/lib/sysctl.d",
];

/// Why a parameter will be something else after the next start than a file says; none if it will not. Of a file that is nowhere where it is read
/// nothing is known.
pub(super) fn overruled(file: &AbsolutePath, name: &str, value: &str) -> Option<String> {
    overruled_in(&DIRECTORIES.map(Path::new), file.as_path(), name, value)
}

fn overruled_in(directories: &[&Path], file: &Path, name: &str, value: &str) -> Option<String> {
    let own = file.file_name()?;
    let is_read = directories
        .iter()
        .any(|directory| file.parent() == Some(directory));
    if !is_read {
        return None;
    }
    let mut files: BTreeMap<OsString, PathBuf> = BTreeMap::new();
    for directory in directories {
        let Ok(entries) = std::fs::read_dir(directory) else {
            continue;
        };
        for path in entries.flatten().map(|entry| entry.path()) {
            let is_one = path.extension().is_some_and(|extension| extension == "conf");
            if let (true, Some(name)) = (is_one, path.file_name()) {
                files.entry(name.to_owned()).or_insert(path);
            }
        }
    }
    let shown = file.display();
    if let Some(other) = files.get(own).filter(|other| *other != file) {
        return Some(format!(
            "{shown} is not read when the machine starts: {} has the same name and is read instead",
            other.display()
        ));
    }
    let mut last = None;
    for (_, path) in files.range(own.to_owned()..).filter(|(other, _)| *other != own) {
        for is in assigned_in(path, name) {
            last = Some((path, is));
        }
    }
    let (path, is) = last.filter(|(_, is)| *is != even(value))?;
    Some(format!(
        "{name} will be `{is}` after the next start: {} is read after {shown}",
        path.display()
    ))
}

/// The values that a file assigns to a parameter, in order; none if there is no such file.
fn assigned_in(path: &Path, name: &str) -> Vec<String> {
    let text = AbsolutePath::new(path)
        .ok()
        .and_then(|path| text_lines::read(&path).ok()?);
    assigned(&text.unwrap_or_default(), name)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a test makes what others have made")]
mod tests {
    use super::*;

    #[test]
    fn the_last_file_by_name_holds_and_of_two_of_a_name_the_first() {
        let place = tempfile::tempdir().unwrap();
        let (etc, lib) = (place.path().join("etc"), place.path().join("lib"));
        let write = |path: PathBuf, text: &str| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let own = etc.join("99-net.ipv4.ip_forward.conf");
        let said = || overruled_in(&[&etc, &lib], &own, "net.ipv4.ip_forward", "1 2");
        write(own.clone(), "net.ipv4.ip_forward = 1 2\n");
        write(etc.join("10-early.conf"), "net.ipv4.ip_forward = 0\n");
        write(etc.join("99-z.txt"), "net.ipv4.ip_forward = 0\n");
        assert_eq!(said(), None);
        write(
            lib.join("99-z.conf"),
            "# net.ipv4.ip_forward = 7\n-net/ipv4/ip_forward=1\t2\n",
        );
        assert_eq!(said(), None);
        write(
            lib.join("99-z.conf"),
            "net.ipv4.ip_forward = 8\n net.ipv4.ip_forward = 0\n",
        );
        let why = said().unwrap();
        assert!(
            why.starts_with("net.ipv4.ip_forward will be `0` after the next start: ")
                && why.contains("lib/99-z.conf"),
            "{why}"
        );
        // It is put out of force by one of its name.
        write(etc.join("99-z.conf"), "");
        assert_eq!(said(), None);
        assert_eq!(overruled_in(&[&lib], &own, "net.ipv4.ip_forward", "1 2"), None);
        std::os::unix::fs::symlink("/dev/null", etc.join("99-zz.conf")).unwrap();
        assert_eq!(said(), None);
        let why = overruled_in(&[&etc, &lib], &lib.join("99-z.conf"), "a.b", "1").unwrap();
        assert!(why.contains("is not read when the machine starts"), "{why}");
    }
}
