//! A directory that a new version replaces in one step. The new version is prepared in a second directory next to it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use setpoint_engine::{Attempting, Failure};
use setpoint_host::files::{AbsolutePath, Entry};

/// The directory at a path that ends in a slash, and the second one.
///
/// # Errors
/// When the directory around them cannot be opened.
pub(crate) fn places(path: &AbsolutePath) -> Result<(Entry, Entry), Failure> {
    let bytes = path.as_bytes();
    let bare = OsStr::from_bytes(bytes.strip_suffix(b"/").unwrap_or(bytes));
    let path = AbsolutePath::new(bare).map_err(|error| Failure::new("use the path").because(error))?;
    let place = Entry::at(&path)
        .and_then(|entry| entry.follow())
        .attempting("write to", &path)?;
    let second = place
        .directory()
        .entry(format!(".{}.setpoint-new", place.name().to_string_lossy()));
    Ok((place, second))
}

/// Removes the second directory that a killed run has left.
///
/// # Errors
/// As the system says.
pub(crate) fn remove_leftover(path: &AbsolutePath) -> Result<(), Failure> {
    let (_, second) = places(path)?;
    match second.stat()? {
        Some(_) => Ok(second.remove_tree()?),
        None => Ok(()),
    }
}
