//! Removing trees, by descriptor and without following anything.

use super::directory::list;
use super::{Directory, Entry, FileError, FileType, ListedEntry, is_temporary};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// What is to become of an entry that a purge has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It goes, with everything below it.
    Remove,
    /// It stays, with everything below it.
    Keep,
    /// The directory stays, and its entries are asked about one by one.
    Descend,
}

/// Whether a purge does what it finds to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// Remove.
    Perform,
    /// Only say what would be removed.
    Preview,
}

impl Entry {
    /// Removes whatever is here with everything below it; fine if nothing is. The root directory and mounted file
    /// systems are refused.
    pub fn remove_tree(&self) -> Result<(), FileError> {
        if self.name() == "." {
            return Err(self.failed("remove", Errno::BUSY));
        }
        remove_any(self.directory(), self.name(), &self.path())
    }
}

impl Directory {
    /// Removes the entries of this directory that `fate` does not keep, and answers which: one path, relative to
    /// this directory, for each whole tree. Temporary files of this program are neither asked about nor removed.
    pub fn purge(
        &self,
        removal: Removal,
        mut fate: impl FnMut(&Path) -> Fate,
    ) -> Result<Vec<PathBuf>, FileError> {
        let mut removed = Vec::new();
        // Directories still to be looked through: where they are below this one, and a handle.
        let mut pending = vec![(PathBuf::new(), None::<Directory>)];
        while let Some((below, handle)) = pending.pop() {
            let directory = handle.as_ref().unwrap_or(self);
            for listed in directory.list()? {
                if is_temporary(&listed.name) {
                    continue;
                }
                let relative = below.join(&listed.name);
                match fate(&relative) {
                    Fate::Keep => {}
                    Fate::Descend if listed.file_type == FileType::Directory => {
                        let path = directory.path_of(&listed.name);
                        let child =
                            open_below(directory, &listed.name).map_err(FileError::on("open", &path))?;
                        pending.push((relative, Some(Directory::from_descriptor(child, path))));
                    }
                    Fate::Descend => {}
                    Fate::Remove => {
                        if removal == Removal::Perform {
                            remove_any(directory, &listed.name, &directory.path_of(&listed.name))?;
                        }
                        removed.push(relative);
                    }
                }
            }
        }
        removed.sort_unstable();
        Ok(removed)
    }
}

/// A directory that is being emptied.
struct Level {
    directory: OwnedFd,
    name: OsString,
    path: PathBuf,
    rest: Vec<ListedEntry>,
}

fn remove_any(parent: impl AsFd, name: &OsStr, path: &Path) -> Result<(), FileError> {
    // Most things are no directory, and a directory says so without harm.
    match rustix::fs::unlinkat(&parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR) => {}
        Err(error) => return Err(FileError::new("remove", path, error)),
    }
    // Levels are kept in a list and not on the stack, so that depth costs descriptors and nothing else.
    let mut levels = vec![enter(&parent, name, path)?];
    while let Some(level) = levels.last_mut() {
        if let Some(listed) = level.rest.pop() {
            let path = level.path.join(&listed.name);
            if listed.file_type == FileType::Directory {
                let entered = enter(&level.directory, &listed.name, &path);
                match entered {
                    Ok(next) => levels.push(next),
                    Err(error) if error.is_not_found() => {}
                    Err(error) => return Err(error),
                }
                continue;
            }
            match rustix::fs::unlinkat(&level.directory, &listed.name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(FileError::new("remove", path, error)),
            }
            continue;
        }
        let Some(emptied) = levels.pop() else { break };
        let holder = levels
            .last()
            .map_or(parent.as_fd(), |level| level.directory.as_fd());
        match rustix::fs::unlinkat(holder, &emptied.name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(FileError::new("remove the directory", emptied.path, error)),
        }
    }
    Ok(())
}

fn enter(parent: impl AsFd, name: &OsStr, path: &Path) -> Result<Level, FileError> {
    let directory = open_below(parent, name).map_err(FileError::on("remove", path))?;
    let rest = list(&directory, path)?;
    Ok(Level {
        directory,
        name: name.to_os_string(),
        path: path.to_path_buf(),
        rest,
    })
}

/// Opens a directory inside another one, refusing to cross into another mounted file system: what is mounted in a
/// tree is not part of what its owner asked to be removed.
fn open_below(parent: impl AsFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
    match rustix::fs::openat2(&parent, name, flags, Mode::empty(), resolve) {
        Err(Errno::NOSYS | Errno::PERM) => rustix::fs::openat(&parent, name, flags, Mode::empty()),
        result => result,
    }
}
