//! What runs share that are made together, one right after the other.
//!
//! All runs of a batch could begin at the same moment, so none of them depends on another: what one has found about the
//! directory that holds its file, or about an account, holds for the next one too. A new batch looks again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use setpoint_host::files::{AbsolutePath, Directory, Entry, FileError};
use setpoint_host::sync::{Mutex, MutexGuard};
use setpoint_host::users::{AccountError, Users};

/// What the runs that are made together have found so far.
#[derive(Debug, Default)]
pub(crate) struct Batch(Mutex<Found>);

#[derive(Debug, Default)]
struct Found {
    /// The directory that a file was looked for in last: it may not answer.
    looking_in: Option<PathBuf>,
    /// The same, open.
    last: Option<Arc<Directory>>,
    users: Vec<(String, u32)>,
    groups: Vec<(String, u32)>,
}

impl Batch {
    fn found(&self) -> MutexGuard<'_, Found> {
        self.0.lock()
    }

    /// Where the run at hand is looking.
    pub(crate) fn looking_in(&self) -> Option<PathBuf> {
        self.found().looking_in.clone()
    }

    /// The entry at a path; its directory is opened once.
    pub(crate) fn entry(&self, path: &AbsolutePath) -> Result<Entry, FileError> {
        let Some((parent, name)) = plain(path.as_path()) else {
            return Entry::at(path);
        };
        let mut found = self.found();
        if found.looking_in.as_deref() != Some(parent) {
            found.last = None;
            found.looking_in = Some(parent.to_path_buf());
        }
        if let Some(directory) = &found.last {
            return Ok(directory.entry(name));
        }
        // Unlocked, because this may take for ever.
        drop(found);
        let entry = Entry::at(path)?;
        self.found().last = Some(Arc::clone(entry.directory()));
        Ok(entry)
    }

    /// The number of a user; see [`Users::user`].
    pub(crate) fn user(&self, users: &Users, text: &str) -> Result<u32, AccountError> {
        let known = known(&self.found().users, text);
        known.map_or_else(
            || {
                let number = users.user(text)?;
                self.found().users.push((text.to_owned(), number));
                Ok(number)
            },
            Ok,
        )
    }

    /// The number of a group; see [`Users::group`].
    pub(crate) fn group(&self, users: &Users, text: &str) -> Result<u32, AccountError> {
        let known = known(&self.found().groups, text);
        known.map_or_else(
            || {
                let number = users.group(text)?;
                self.found().groups.push((text.to_owned(), number));
                Ok(number)
            },
            Ok,
        )
    }
}

fn known(accounts: &[(String, u32)], text: &str) -> Option<u32> {
    let found = accounts.iter().find(|(known, _)| known == text);
    found.map(|(_, number)| *number)
}

/// Directory and name of a path whose text says both plainly.
fn plain(path: &Path) -> Option<(&Path, &std::ffi::OsStr)> {
    use std::os::unix::ffi::OsStrExt;
    let (parent, name) = (path.parent()?, path.file_name()?);
    // `Path` leaves out what the text has beside names; then the two would not give the same text.
    let length = parent.as_os_str().len() + name.len() + usize::from(parent != Path::new("/"));
    (length == path.as_os_str().as_bytes().len()).then_some((parent, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_taken_apart_only_where_its_text_is_plain() {
        let taken = |text: &'static str| plain(Path::new(text)).map(|(parent, _)| parent.to_str().unwrap());
        assert_eq!(taken("/etc/passwd"), Some("/etc"));
        assert_eq!(taken("/passwd"), Some("/"));
        for odd in ["/", "/etc/", "/etc//passwd", "/etc/.", "/etc/.."] {
            assert_eq!(taken(odd), None, "{odd}");
        }
    }
}
