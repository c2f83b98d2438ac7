//! Where commands are looked for.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use setpoint_diagnostics::visible;
use setpoint_host::files::{AbsolutePath, directory_open_to_others};

use crate::report::Reporter;

/// Bits of a mode that let others than the owner change something.
pub const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Where root's commands are when nothing says so.
const STANDARD_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Where commands are looked for. For root without what others can change: names that are not absolute, and directories that are not
/// root's, that others can write in, or that others can put another one in the place of.
pub fn command_path(reporter: &Reporter) -> OsString {
    let path = given_path();
    if !geteuid().is_root() {
        return path;
    }
    let (kept, left): (Vec<PathBuf>, Vec<PathBuf>) =
        std::env::split_paths(&path).partition(|directory| is_roots(directory));
    for directory in left {
        let shown = directory.display().to_string();
        reporter.warning(format!(
            "commands are not looked for in `{}` of PATH, because others than root can change what is there",
            visible(&shown)
        ));
    }
    std::env::join_paths(kept).unwrap_or_else(|_| STANDARD_PATH.into())
}

/// The directories of [`command_path`], without a word about those that are left out.
pub(crate) fn command_directories() -> Vec<PathBuf> {
    let path = given_path();
    std::env::split_paths(&path)
        .filter(|directory| is_trusted(directory))
        .collect()
}

/// Whether what a directory holds may be run and read: for root, if only root decides what it holds.
pub(crate) fn is_trusted(directory: &Path) -> bool {
    !geteuid().is_root() || is_roots(directory)
}

fn given_path() -> OsString {
    let given = std::env::var_os("PATH").filter(|path| !path.is_empty());
    given.unwrap_or_else(|| STANDARD_PATH.into())
}

/// Whether only root decides what a directory holds. Of one that is not there the nearest above it decides, where it would be made.
fn is_roots(directory: &Path) -> bool {
    let mut there = directory;
    let found = loop {
        match (std::fs::metadata(there), there.parent()) {
            (Ok(found), _) => break found,
            (Err(_), Some(above)) => there = above,
            (Err(_), None) => return false,
        }
    };
    found.uid() == 0
        && found.mode() & WRITABLE_BY_OTHERS == 0
        && matches!(open_to_others(there, None), Ok(None))
}

/// The directory, of this one and those above it, in which others than root and `also` can put something in the place of what is there.
///
/// # Errors
/// When one of them cannot be looked at.
pub fn open_to_others(directory: &Path, also: Option<u32>) -> std::io::Result<Option<PathBuf>> {
    let directory = AbsolutePath::new(directory).map_err(std::io::Error::other)?;
    let open = directory_open_to_others(&directory, also).map_err(std::io::Error::other)?;
    Ok(open.map(|open| open.as_path().to_path_buf()))
}
