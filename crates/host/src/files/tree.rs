//! Removing trees, by descriptor and without following anything.
//!
//! What others put into a tree must not save it: an entry that cannot be removed does not end the removal of the
//! others, depth costs no descriptors, and only what this program is making just now is spared.

use super::directory::names;
use super::temporary::is_in_the_making;
use super::{Directory, Entry, FileError, FileType, ListedEntry, Stat};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// So many directories of a descent are held open; those further up are found again on the way back.
const OPEN: usize = 32;
/// Counting ends here.
const COUNTED: u64 = 100_000;
/// So many errors are kept; the rest is only counted.
const KEPT_ERRORS: usize = 20;
/// Deeper paths are shortened in messages.
const DEEPEST_SHOWN: usize = 64;

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

/// What a purge came to.
#[derive(Debug, Default)]
pub struct Purged {
    /// What went or would go, sorted by path: one for each whole tree.
    pub removed: Vec<Removed>,
    /// What could not be looked at or removed.
    pub leftovers: Leftovers,
}

/// Something that a purge removes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// Relative to the directory that is purged.
    pub path: PathBuf,
    /// What it is, and what goes with it.
    pub extent: Extent,
}

/// An entry, with how much lies below it.
///
/// Reads as «regular file», «empty directory», or «directory with 3 entries».
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Something that is no directory.
    Single(FileType),
    /// A directory with so many entries, those of its directories counted. Counting ends at a hundred thousand, and
    /// at what cannot be read.
    Directory {
        /// How many were counted.
        entries: u64,
        /// Whether there may be more.
        more: bool,
    },
}

impl fmt::Display for Extent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Single(file_type) => file_type.fmt(formatter),
            Self::Directory {
                entries: 0,
                more: false,
            } => formatter.write_str("empty directory"),
            Self::Directory { entries, more } => {
                let least = if *more { "at least " } else { "" };
                let plural = if *entries == 1 { "entry" } else { "entries" };
                write!(formatter, "directory with {least}{entries} {plural}")
            }
        }
    }
}

/// What is still there although it should have gone, and why.
#[derive(Debug, Default)]
pub struct Leftovers {
    errors: Vec<FileError>,
    more: usize,
}

impl Leftovers {
    /// The first error, if there is one, and how many further ones there were.
    pub fn into_first(mut self) -> Option<(FileError, usize)> {
        let others = self.count().saturating_sub(1);
        (!self.errors.is_empty()).then(|| (self.errors.swap_remove(0), others))
    }

    fn count(&self) -> usize {
        self.errors.len() + self.more
    }

    fn add(&mut self, error: FileError) {
        if self.errors.len() < KEPT_ERRORS {
            self.errors.push(error);
        } else {
            self.more += 1;
        }
    }
}

impl Entry {
    /// Removes whatever is here with everything below it; fine if nothing is. The root directory is refused, and so are
    /// mounted file systems in the tree. What cannot be removed does not save the rest; the first error is answered.
    pub fn remove_tree(&self) -> Result<(), FileError> {
        if self.name() == "." {
            return Err(self.failed("remove", Errno::BUSY));
        }
        let mut leftovers = Leftovers::default();
        remove_any(
            self.directory().as_fd(),
            self.name(),
            &self.path(),
            &mut leftovers,
        );
        leftovers.into_first().map_or(Ok(()), |(error, _)| Err(error))
    }

    /// What is here, and how much lies below it; nothing if nothing is here.
    pub fn extent(&self) -> Result<Option<Extent>, FileError> {
        Ok(self
            .stat()?
            .map(|stat| extent(self.directory().as_fd(), self.name(), stat.file_type)))
    }
}

impl Directory {
    /// Removes the entries of this directory that `fate` does not keep. Temporary files that this program, or another
    /// process of it, is making just now are neither asked about nor removed.
    ///
    /// # Errors
    /// When this directory itself cannot be listed. All other errors are in the answer.
    pub fn purge(
        self: &Arc<Self>,
        removal: Removal,
        mut fate: impl FnMut(&Path) -> Fate,
    ) -> Result<Purged, FileError> {
        let mut purged = Purged::default();
        // Directories still to be looked through, by path and not by descriptor: there may be very many.
        let mut pending = vec![PathBuf::new()];
        while let Some(below) = pending.pop() {
            let listed = self
                .open_inside(&below)
                .and_then(|directory| Ok((directory.list()?, directory)));
            let (listed, directory) = match listed {
                Ok(listed) => listed,
                Err(error) if below.as_os_str().is_empty() => return Err(error),
                Err(error) => {
                    purged.leftovers.add(error);
                    continue;
                }
            };
            for listed in listed {
                let relative = below.join(&listed.name);
                match fate(&relative) {
                    Fate::Keep => {}
                    Fate::Descend if listed.file_type == FileType::Directory => pending.push(relative),
                    Fate::Descend => {}
                    Fate::Remove if is_in_the_making(&directory, &listed.name) => {}
                    Fate::Remove => {
                        let path = directory.path_of(&listed.name);
                        let before = purged.leftovers.count();
                        let extent = match removal {
                            Removal::Preview => {
                                if listed.file_type == FileType::Directory
                                    && let Err(error @ Errno::XDEV) = open_below(&*directory, &listed.name)
                                {
                                    purged.leftovers.add(refused("remove", &path, error));
                                }
                                extent(directory.as_fd(), &listed.name, listed.file_type)
                            }
                            Removal::Perform => {
                                remove_any(directory.as_fd(), &listed.name, &path, &mut purged.leftovers);
                                Extent::Single(listed.file_type)
                            }
                        };
                        // What stays, or a part of it, was not removed.
                        if purged.leftovers.count() == before {
                            purged.removed.push(Removed {
                                path: relative,
                                extent,
                            });
                        }
                    }
                }
            }
        }
        purged
            .removed
            .sort_unstable_by(|left, right| left.path.cmp(&right.path));
        Ok(purged)
    }

    /// The directory at a path below this one, without a link or a mounted file system on the way.
    fn open_inside(self: &Arc<Self>, relative: &Path) -> Result<Arc<Directory>, FileError> {
        let mut here = Arc::clone(self);
        for name in relative.components() {
            let path = here.path_of(name.as_os_str());
            let opened = open_below(&here, name.as_os_str())
                .map_err(|error| refused("open the directory", &path, error))?;
            here = Arc::new(Directory::from_descriptor(opened, path));
        }
        Ok(here)
    }
}

/// A directory that a descent is in.
struct Level {
    /// Nothing while the descent is far below.
    directory: Option<OwnedFd>,
    identity: (u64, u64),
    name: OsString,
    rest: Vec<ListedEntry>,
    /// Something in it stays, and so it does.
    stays: bool,
}

/// A way down a tree, which may be deeper than there are descriptors.
struct Descent<'a> {
    top: BorrowedFd<'a>,
    levels: Vec<Level>,
}

impl<'a> Descent<'a> {
    fn new(top: BorrowedFd<'a>) -> Self {
        let levels = Vec::new();
        Self { top, levels }
    }

    /// The innermost directory.
    fn here(&self) -> BorrowedFd<'_> {
        let innermost = self.levels.last().and_then(|level| level.directory.as_ref());
        innermost.map_or(self.top, AsFd::as_fd)
    }

    fn enter(&mut self, name: &OsStr) -> rustix::io::Result<()> {
        let directory = open_below(self.here(), name)?;
        let stat = Stat::of_descriptor(&directory)?;
        let rest = names(&directory)?;
        self.levels.push(Level {
            directory: Some(directory),
            identity: (stat.device, stat.inode),
            name: name.to_os_string(),
            rest,
            stays: false,
        });
        if let Some(far) = self.levels.len().checked_sub(OPEN + 1) {
            self.levels[far].directory = None;
        }
        Ok(())
    }

    /// Goes up by one, to where the descent came from and nowhere else.
    fn leave(&mut self) -> rustix::io::Result<Option<Level>> {
        let Some(left) = self.levels.pop() else {
            return Ok(None);
        };
        if let (Some(level), Some(from)) = (self.levels.last_mut(), &left.directory)
            && level.directory.is_none()
        {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let up = rustix::fs::openat(from, "..", flags, Mode::empty())?;
            let stat = Stat::of_descriptor(&up)?;
            if (stat.device, stat.inode) != level.identity {
                // Somebody moved the directory while it was being emptied.
                return Err(Errno::STALE);
            }
            level.directory = Some(up);
        }
        Ok(Some(left))
    }

    /// Where an entry of the innermost directory is, for messages.
    fn path_of(&self, top: &Path, name: &OsStr) -> PathBuf {
        // The first level is the top itself.
        let inner = self.levels.get(1..).unwrap_or_default();
        let mut path = top.to_path_buf();
        if inner.len() > DEEPEST_SHOWN {
            path.push("…");
        } else {
            path.extend(inner.iter().map(|level| &level.name));
        }
        path.join(name)
    }
}

fn remove_any(parent: BorrowedFd<'_>, name: &OsStr, path: &Path, leftovers: &mut Leftovers) {
    // Most things are no directory, and a directory says so without harm.
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return,
        Err(Errno::ISDIR) => {}
        Err(error) => return leftovers.add(refused("remove", path, error)),
    }
    let mut descent = Descent::new(parent);
    match descent.enter(name) {
        Ok(()) => {}
        Err(Errno::NOENT) => return,
        Err(error) => return leftovers.add(refused("remove", path, error)),
    }
    while let Some(level) = descent.levels.last_mut() {
        if let Some(listed) = level.rest.pop() {
            let outcome = if listed.file_type == FileType::Directory {
                descent.enter(&listed.name)
            } else {
                rustix::fs::unlinkat(descent.here(), &listed.name, AtFlags::empty())
            };
            match outcome {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => {
                    leftovers.add(refused("remove", &descent.path_of(path, &listed.name), error));
                    if let Some(level) = descent.levels.last_mut() {
                        level.stays = true;
                    }
                }
            }
            continue;
        }
        let emptied = match descent.leave() {
            Ok(Some(emptied)) => emptied,
            Ok(None) => return,
            Err(error) => return leftovers.add(refused("remove", path, error)),
        };
        let mut stays = emptied.stays;
        if !stays {
            match rustix::fs::unlinkat(descent.here(), &emptied.name, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => {
                    let shown = if descent.levels.is_empty() {
                        path.to_path_buf()
                    } else {
                        descent.path_of(path, &emptied.name)
                    };
                    leftovers.add(refused("remove the directory", &shown, error));
                    stays = true;
                }
            }
        }
        if let (true, Some(holder)) = (stays, descent.levels.last_mut()) {
            holder.stays = true;
        }
    }
}

/// How much lies at and below an entry.
fn extent(parent: BorrowedFd<'_>, name: &OsStr, file_type: FileType) -> Extent {
    if file_type != FileType::Directory {
        return Extent::Single(file_type);
    }
    let mut descent = Descent::new(parent);
    let mut entries = 0;
    let mut more = descent.enter(name).is_err();
    while let Some(level) = descent.levels.last_mut() {
        if entries >= COUNTED {
            more = true;
            break;
        }
        match level.rest.pop() {
            Some(listed) => {
                entries += 1;
                if listed.file_type == FileType::Directory {
                    more |= descent.enter(&listed.name).is_err();
                }
            }
            None if descent.leave().is_err() => {
                more = true;
                break;
            }
            None => {}
        }
    }
    Extent::Directory { entries, more }
}

fn refused(attempted: &'static str, path: &Path, error: Errno) -> FileError {
    match error {
        Errno::XDEV | Errno::BUSY => FileError::MountedOn {
            attempted,
            path: path.to_path_buf(),
        },
        Errno::STALE => FileError::Exchanged {
            attempted,
            path: path.to_path_buf(),
        },
        error => FileError::new(attempted, path, error),
    }
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
