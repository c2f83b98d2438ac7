//! Handles on directories, and the walk that gets to them.

use super::path::components;
use super::{AbsolutePath, FileError, FileType, Stat};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Dir, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use smallvec::SmallVec;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// As many links as the kernel itself would follow (`path_resolution(7)`).
const LINK_LIMIT: u32 = 40;

/// How directories are held: a descriptor that names one, without the right to read it.
const HANDLE: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// An open directory, to do things relative to.
#[derive(Debug)]
pub struct Directory {
    descriptor: OwnedFd,
    /// How it was asked for; for messages only.
    path: PathBuf,
    /// File system and number, once somebody asked.
    identity: OnceLock<(u64, u64)>,
}

/// One entry of a directory listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedEntry {
    /// Its name in the directory.
    pub name: OsString,
    /// What it is itself, links not followed.
    pub file_type: FileType,
}

impl Directory {
    /// Opens a directory, following symbolic links on the way and at the end as far as that is safe.
    ///
    /// The rule holds when this process is root: a link that an ordinary user owns, or that lies in a directory
    /// that one owns, must lead to something that belongs to the same user. Whoever could redirect root can then
    /// only redirect it to what is theirs anyway. A link of root's in a directory that others can write in is not
    /// followed. What lies on a file system that a user serves (FUSE) counts as that user's. A path without any link is opened in one system call.
    pub fn open(path: &AbsolutePath) -> Result<Self, FileError> {
        let descriptor = open_directory(path.as_bytes(), path.as_path())?;
        Ok(Self::from_descriptor(descriptor, path.as_path().to_path_buf()))
    }

    /// How the directory was asked for.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the file system says about the directory itself.
    pub fn stat(&self) -> Result<Stat, FileError> {
        Stat::of_descriptor(&self.descriptor).map_err(FileError::on("look at", &self.path))
    }

    /// Where the directory is now, without a link in the path.
    pub fn real_path(&self) -> Result<AbsolutePath, FileError> {
        let link = format!(
            "/proc/self/fd/{}",
            std::os::fd::AsRawFd::as_raw_fd(&self.descriptor)
        );
        let found = rustix::fs::readlink(link, Vec::new()).map_err(FileError::on("look at", &self.path))?;
        AbsolutePath::new(OsString::from_vec(found.into_bytes()))
            .map_err(|error| FileError::new("look at", &self.path, std::io::Error::other(error)))
    }

    /// The entries, sorted by name, without `.` and `..`.
    pub fn list(&self) -> Result<Vec<ListedEntry>, FileError> {
        names(&self.descriptor).map_err(FileError::on("list", &self.path))
    }

    /// A handle on one entry, which need not exist. `name` is a single component.
    pub fn entry(self: &Arc<Self>, name: impl Into<OsString>) -> super::Entry {
        super::Entry::in_directory(Arc::clone(self), name.into())
    }

    /// Makes what was renamed, created and removed in this directory survive a loss of power.
    pub fn sync(&self) -> Result<(), FileError> {
        let readable = self.open_for_reading()?;
        rustix::fs::fsync(&readable).map_err(FileError::on("sync the directory", &self.path))
    }

    pub(super) fn from_descriptor(descriptor: OwnedFd, path: PathBuf) -> Self {
        Self {
            descriptor,
            path,
            identity: OnceLock::new(),
        }
    }

    /// The file system, and the directory's number in it.
    pub(super) fn identity(&self) -> Result<(u64, u64), FileError> {
        if let Some(identity) = self.identity.get() {
            return Ok(*identity);
        }
        let stat = self.stat()?;
        Ok(*self.identity.get_or_init(|| (stat.device, stat.inode)))
    }

    pub(super) fn open_for_reading(&self) -> Result<OwnedFd, FileError> {
        open_for_reading(&self.descriptor).map_err(FileError::on("open the directory", &self.path))
    }

    pub(super) fn path_of(&self, name: &OsStr) -> PathBuf {
        if name == "." {
            self.path.clone()
        } else {
            self.path.join(name)
        }
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// What a directory holds, sorted by name, without `.` and `..`.
pub(super) fn names(directory: impl AsFd) -> rustix::io::Result<Vec<ListedEntry>> {
    let mut entries = Vec::new();
    for entry in open_for_reading(&directory).and_then(Dir::new)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let mut file_type = FileType::from(entry.file_type());
        if file_type == FileType::Unknown {
            match Stat::of_entry(&directory, entry.file_name()) {
                Ok(stat) => file_type = stat.file_type,
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error),
            }
        }
        entries.push(ListedEntry {
            name: OsStr::from_bytes(name).to_os_string(),
            file_type,
        });
    }
    entries.sort_unstable_by(|left, right| left.name.cmp(&right.name));
    Ok(entries)
}

fn open_for_reading(directory: impl AsFd) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(
        directory,
        ".",
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

/// Opens the directory that holds the last component of `path`, and gives that component's name.
///
/// The name is `.` where the path names a directory without saying what it is called (`/`, `/a/..`).
pub(super) fn open_parent(path: &AbsolutePath) -> Result<(OwnedFd, OsString), FileError> {
    match path.file_name() {
        Some(name) if name != ".." => {
            let parent = before(path.as_bytes(), name.as_bytes());
            Ok((open_directory(parent, path.as_path())?, name.to_os_string()))
        }
        _ => Ok((
            open_directory(path.as_bytes(), path.as_path())?,
            OsString::from("."),
        )),
    }
}

/// Where a walk that follows the last component too has ended.
pub(super) struct Followed {
    /// The directory that holds the end; nothing if it is the one that the walk began in.
    pub(super) directory: Option<OwnedFd>,
    /// The entry's name there; it need not exist.
    pub(super) name: OsString,
}

/// Follows the entry `name` of `directory` to the end of its links.
pub(super) fn follow(directory: BorrowedFd<'_>, name: &OsStr, shown: &Path) -> Result<Followed, FileError> {
    let mut walk = Walk::new(directory, shown);
    walk.push(name.as_bytes());
    let name = walk.run(Goal::Entry)?;
    Ok(Followed {
        directory: walk.current,
        name: name.unwrap_or_else(|| OsString::from(".")),
    })
}

fn open_directory(text: &[u8], shown: &Path) -> Result<OwnedFd, FileError> {
    let text = if text.is_empty() { b"/" } else { text };
    let flags = HANDLE.difference(OFlags::NOFOLLOW);
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(CWD, text, flags, Mode::empty(), resolve) {
        Ok(descriptor) => return Ok(descriptor),
        // A link on the way, or a kernel or sandbox without openat2.
        Err(Errno::LOOP | Errno::NOSYS | Errno::PERM) => {}
        Err(error) => return Err(FileError::new("open the directory of", shown, error)),
    }
    let root = open_root(shown)?;
    let mut walk = Walk::new(root.as_fd(), shown);
    walk.push(text);
    walk.run(Goal::Directory)?;
    match walk.current.take() {
        Some(directory) => Ok(directory),
        None => Ok(root),
    }
}

fn open_root(shown: &Path) -> Result<OwnedFd, FileError> {
    rustix::fs::open("/", HANDLE, Mode::empty()).map_err(FileError::on("open the directory of", shown))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal {
    /// Every component is a directory.
    Directory,
    /// The last component is anything, or missing.
    Entry,
}

enum Step {
    Component(OsString),
    /// Everything that a link's text named was walked: what it led to must belong to these users.
    EndOfLink(SmallVec<[u32; 2]>),
}

/// A walk in progress, component by component, following links by hand.
struct Walk<'a> {
    start: BorrowedFd<'a>,
    /// Where the walk is, once it has left its start.
    current: Option<OwnedFd>,
    /// What is left to do, the next step last.
    pending: Vec<Step>,
    links: u32,
    privileged: bool,
    shown: &'a Path,
}

impl<'a> Walk<'a> {
    fn new(start: BorrowedFd<'a>, shown: &'a Path) -> Self {
        let privileged = rustix::process::geteuid().is_root();
        Self {
            start,
            current: None,
            pending: Vec::new(),
            links: 0,
            privileged,
            shown,
        }
    }

    fn push(&mut self, text: &[u8]) {
        self.pending.extend(
            components(text)
                .rev()
                .map(|name| Step::Component(name.to_os_string())),
        );
    }

    fn here(&self) -> BorrowedFd<'_> {
        self.current.as_ref().map_or(self.start, AsFd::as_fd)
    }

    /// Walks to the end; the answer is the last component's name, where the goal is an entry.
    fn run(&mut self, goal: Goal) -> Result<Option<OsString>, FileError> {
        let mut end: Option<(OsString, Option<Stat>)> = None;
        while let Some(step) = self.pending.pop() {
            let name = match step {
                Step::Component(name) => name,
                Step::EndOfLink(owners) => {
                    let reached = match &end {
                        Some((_, Some(stat))) => *stat,
                        _ => Stat::of_descriptor(self.here()).map_err(self.failed())?,
                    };
                    self.judge(&owners, reached.believed_owner())?;
                    continue;
                }
            };
            if name == ".." {
                self.current = Some(
                    rustix::fs::openat(self.here(), "..", HANDLE, Mode::empty()).map_err(self.failed())?,
                );
                continue;
            }
            let is_last =
                goal == Goal::Entry && !self.pending.iter().any(|step| matches!(step, Step::Component(_)));
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let found = match rustix::fs::openat(self.here(), &name, flags, Mode::empty()) {
                Ok(found) => found,
                Err(Errno::NOENT) if is_last => {
                    end = Some((name, None));
                    continue;
                }
                Err(error) => return Err(self.failed()(error)),
            };
            let stat = Stat::of_descriptor(&found).map_err(self.failed())?;
            if stat.is_link() {
                self.enter_link(&found, &stat)?;
            } else if is_last {
                end = Some((name, Some(stat)));
            } else if stat.is_directory() {
                self.current = Some(found);
            } else {
                return Err(self.failed()(Errno::NOTDIR));
            }
        }
        Ok(end.map(|(name, _)| name))
    }

    fn enter_link(&mut self, link: &OwnedFd, stat: &Stat) -> Result<(), FileError> {
        self.links += 1;
        if self.links > LINK_LIMIT {
            return Err(self.failed()(Errno::LOOP));
        }
        let text = rustix::fs::readlinkat(link, "", Vec::new()).map_err(self.failed())?;
        if self.privileged {
            let holder = Stat::of_descriptor(self.here()).map_err(self.failed())?;
            let controllers = [stat.believed_owner(), holder.believed_owner()];
            if controllers == [0, 0] && holder.is_open_to_others() {
                // It is root's, but whoever can write here may have moved it here from where it meant something else.
                return Err(FileError::MovableLink {
                    path: self.shown.to_path_buf(),
                });
            }
            let owners: SmallVec<[u32; 2]> = controllers.into_iter().filter(|owner| *owner != 0).collect();
            if !owners.is_empty() {
                self.pending.push(Step::EndOfLink(owners));
            }
        }
        if text.as_bytes().starts_with(b"/") {
            self.current = Some(open_root(self.shown)?);
        }
        self.push(text.as_bytes());
        Ok(())
    }

    fn judge(&self, link_owners: &[u32], target_owner: u32) -> Result<(), FileError> {
        match link_owners.iter().find(|owner| **owner != target_owner) {
            None => Ok(()),
            Some(link_owner) => Err(FileError::UnsafeLink {
                path: self.shown.to_path_buf(),
                link_owner: *link_owner,
                target_owner,
            }),
        }
    }

    fn failed<E: Into<std::io::Error>>(&self) -> impl FnOnce(E) -> FileError + use<E> {
        let path = self.shown.to_path_buf();
        move |error| FileError::new("open the directory of", path, error)
    }
}

/// What stands before the last component `name`, which may be followed by slashes and dots.
fn before<'a>(path: &'a [u8], name: &[u8]) -> &'a [u8] {
    let mut end = path.len();
    while end > 0 {
        let start = path[..end]
            .iter()
            .rposition(|byte| *byte == b'/')
            .map_or(0, |slash| slash + 1);
        if &path[start..end] == name {
            return &path[..start];
        }
        end = start.saturating_sub(1);
    }
    path
}

/// The text of a link as a path.
pub(super) fn link_text(directory: impl AsFd, name: &OsStr) -> rustix::io::Result<PathBuf> {
    let text = rustix::fs::readlinkat(directory, name, Vec::new())?;
    Ok(PathBuf::from(OsString::from_vec(text.into_bytes())))
}
