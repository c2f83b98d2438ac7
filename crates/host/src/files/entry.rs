//! One entry of a directory: the handle that a resource works with.

use super::directory::{follow, link_text, open_parent};
use super::{AbsolutePath, Directory, FileError, OpenFile, Stat};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A name in an open directory, whether or not something is there.
///
/// Nothing here follows a symbolic link at the name itself, except [`Entry::follow`] and what is built on it.
#[derive(Debug, Clone)]
pub struct Entry {
    directory: Arc<Directory>,
    /// A single component; `.` stands for the directory itself.
    name: OsString,
}

impl Entry {
    /// Walks to the parent of `path` (by the rule of [`Directory::open`]). The entry itself need not exist; its
    /// parent must.
    pub fn at(path: &AbsolutePath) -> Result<Self, FileError> {
        let (descriptor, name) = open_parent(path)?;
        let parent = if name == "." {
            path.as_path().to_path_buf()
        } else {
            path.as_path()
                .parent()
                .unwrap_or_else(|| Path::new("/"))
                .to_path_buf()
        };
        Ok(Self {
            directory: Arc::new(Directory::from_descriptor(descriptor, parent)),
            name,
        })
    }

    pub(super) fn in_directory(directory: Arc<Directory>, name: OsString) -> Self {
        Self { directory, name }
    }

    /// The directory that holds it.
    pub fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    /// Its name there.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// Where it is, for messages.
    pub fn path(&self) -> PathBuf {
        self.directory.path_of(&self.name)
    }

    /// What is there; nothing if nothing is.
    pub fn stat(&self) -> Result<Option<Stat>, FileError> {
        match Stat::of_entry(&self.directory, &self.name) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.failed("look at", error)),
        }
    }

    /// What is there after following links; nothing also for a dangling link.
    pub fn stat_following(&self) -> Result<Option<Stat>, FileError> {
        match self.stat()? {
            Some(stat) if stat.is_link() => match self.follow() {
                Ok(end) => end.stat(),
                Err(error) if error.is_not_found() => Ok(None),
                Err(error) => Err(error),
            },
            stat => Ok(stat),
        }
    }

    /// The entry at the end of the links that begin here, by the rule of [`Directory::open`]; itself if it is no
    /// link. The end need not exist, the directory that would hold it must.
    pub fn follow(&self) -> Result<Self, FileError> {
        let path = self.path();
        let end = follow(self.directory.as_fd(), &self.name, &path)?;
        match end.directory {
            None => Ok(Self {
                directory: Arc::clone(&self.directory),
                name: end.name,
            }),
            Some(descriptor) => {
                // Asking the kernel is the only way to tell where the walk led; it serves messages alone.
                let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&descriptor));
                let directory = std::fs::read_link(link).unwrap_or(path);
                let directory = Arc::new(Directory::from_descriptor(descriptor, directory));
                Ok(Self {
                    directory,
                    name: end.name,
                })
            }
        }
    }

    /// Opens the regular file here for reading. Anything else is refused without being opened: a pipe would block
    /// and a device might act.
    pub fn open(&self) -> Result<OpenFile, FileError> {
        OpenFile::open(self)
    }

    /// Opens the regular file here for reading, to give its contents to another owner.
    ///
    /// Refuses a hard link that somebody may have made to a file which they may not read themselves.
    pub fn open_to_take_over(&self) -> Result<OpenFile, FileError> {
        let file = OpenFile::open(self)?;
        if self.is_foreign_hard_link(file.stat())? {
            return Err(FileError::UnsafeHardLink {
                attempted: "take over",
                path: self.path(),
                owner: file.stat().uid,
            });
        }
        Ok(file)
    }

    /// All bytes of the regular file here.
    pub fn read(&self) -> Result<Vec<u8>, FileError> {
        self.open()?.read_all()
    }

    /// Opens the directory here.
    pub fn open_directory(&self) -> Result<Directory, FileError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = rustix::fs::openat(&self.directory, &self.name, flags, Mode::empty())
            .map_err(|error| self.failed("open the directory", error))?;
        Ok(Directory::from_descriptor(descriptor, self.path()))
    }

    /// The text of the symbolic link here; nothing if something else or nothing is here.
    pub fn read_link(&self) -> Result<Option<PathBuf>, FileError> {
        match link_text(&self.directory, &self.name) {
            Ok(text) => Ok(Some(text)),
            Err(Errno::NOENT | Errno::INVAL) => Ok(None),
            Err(error) => Err(self.failed("read the link", error)),
        }
    }

    /// Makes an empty file, failing if anything is here. The umask takes its bits from `mode`.
    pub fn create_file(&self, mode: u32) -> Result<(), FileError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&self.directory, &self.name, flags, Mode::from_raw_mode(mode))
            .map(drop)
            .map_err(|error| self.failed("create", error))?;
        self.inherit_from_trusted_only()
    }

    /// Writes to the file here, which must be there, from its beginning and in one call: for files that are none, but parameters of the
    /// kernel. A link is not followed.
    pub fn write_parameter(&self, bytes: &[u8]) -> Result<(), FileError> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.directory, &self.name, flags, Mode::empty());
        let written = file.and_then(|file| rustix::io::write(file, bytes));
        match written {
            Ok(length) if length == bytes.len() => Ok(()),
            Ok(_) => Err(self.failed("write", Errno::IO)),
            Err(error) => Err(self.failed("write", error)),
        }
    }

    /// Appends to the regular file here, which is made with this mode if it is missing. A link is not followed, and
    /// what is neither a file nor a name of this directory's own is refused.
    pub fn append(&self, bytes: &[u8], mode: u32) -> Result<(), FileError> {
        self.append_to(bytes, mode).map(drop)
    }

    /// The same, and returns when it would survive a loss of power.
    pub fn append_durably(&self, bytes: &[u8], mode: u32) -> Result<(), FileError> {
        let is_new = self.stat()?.is_none();
        let file = self.append_to(bytes, mode)?;
        file.sync_data().map_err(|error| self.failed("sync", error))?;
        if is_new {
            self.directory.sync()?;
        }
        Ok(())
    }

    /// Gives what is here another name in the same directory, in the place of what has that name.
    pub fn rename(&self, name: &str) -> Result<(), FileError> {
        rustix::fs::renameat(&self.directory, &self.name, &self.directory, name)
            .map_err(|error| self.failed("rename", error))
    }

    fn append_to(&self, bytes: &[u8], mode: u32) -> Result<std::fs::File, FileError> {
        let attempted = "append to";
        let flags = OFlags::WRONLY
            | OFlags::APPEND
            | OFlags::CREATE
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::NOCTTY
            | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.directory, &self.name, flags, Mode::from_raw_mode(mode))
            .map_err(|error| self.failed(attempted, error))?;
        let stat = Stat::of_descriptor(&opened).map_err(|error| self.failed(attempted, error))?;
        let path = self.path();
        if !stat.is_regular() {
            return Err(FileError::WrongType {
                attempted,
                path,
                found: stat.file_type,
            });
        }
        if self.is_foreign_hard_link(&stat)? {
            return Err(FileError::UnsafeHardLink {
                attempted,
                path,
                owner: stat.uid,
            });
        }
        let mut file = std::fs::File::from(opened);
        std::io::Write::write_all(&mut file, bytes).map_err(|error| self.failed(attempted, error))?;
        Ok(file)
    }

    /// Makes a directory, failing if anything is here. The umask takes its bits from `mode`.
    pub fn create_directory(&self, mode: u32) -> Result<(), FileError> {
        rustix::fs::mkdirat(&self.directory, &self.name, Mode::from_raw_mode(mode))
            .map_err(|error| self.failed("create the directory", error))?;
        self.inherit_from_trusted_only()
    }

    /// Takes from what was just made the access lists that a directory which others can write in gave to it: they
    /// would let those in for whom the mode is meant to be closed.
    fn inherit_from_trusted_only(&self) -> Result<(), FileError> {
        if self.directory.stat()?.is_open_to_others() {
            self.remove_access_lists()?;
        }
        Ok(())
    }

    /// Makes a directory at `path` and every missing one above it. Those above get the mode `above`, since a private
    /// or sticky leaf says nothing about its parents. The umask takes its bits from both.
    pub fn create_directories(path: &AbsolutePath, mode: u32, above: u32) -> Result<(), FileError> {
        let mut missing = Vec::new();
        let mut here = path.clone();
        loop {
            match Self::at(&here) {
                Ok(entry) => {
                    entry.create_directory_unless_there(if missing.is_empty() { mode } else { above })?;
                    break;
                }
                Err(error) if error.is_not_found() => {
                    let Some(parent) = here.parent() else {
                        return Err(error);
                    };
                    missing.push(std::mem::replace(&mut here, parent));
                }
                Err(error) => return Err(error),
            }
        }
        while let Some(next) = missing.pop() {
            Self::at(&next)?.create_directory_unless_there(if missing.is_empty() { mode } else { above })?;
        }
        Ok(())
    }

    fn create_directory_unless_there(&self, mode: u32) -> Result<(), FileError> {
        match self.create_directory(mode) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => match self.stat_following()? {
                Some(stat) if stat.is_directory() => Ok(()),
                _ => Err(error),
            },
            result => result,
        }
    }

    /// Removes the file or link here.
    pub fn remove_file(&self) -> Result<(), FileError> {
        rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty())
            .map_err(|error| self.failed("remove", error))
    }

    /// Removes the empty directory here.
    pub fn remove_directory(&self) -> Result<(), FileError> {
        rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::REMOVEDIR)
            .map_err(|error| self.failed("remove the directory", error))
    }

    /// Gives the entry itself, not what a link leads to, another owner or group.
    ///
    /// Changing the owner clears the set-user-id and set-group-id bits.
    pub fn set_owner(&self, owner: Option<u32>, group: Option<u32>) -> Result<(), FileError> {
        let attempted = "change the owner of";
        let (handle, _) = self.open_handle(attempted)?;
        let (owner, group) = (owner.map(Uid::from_raw), group.map(Gid::from_raw));
        rustix::fs::chownat(&handle, "", owner, group, AtFlags::EMPTY_PATH)
            .map_err(|error| self.failed(attempted, error))
    }

    /// Sets the twelve permission bits of the entry. A symbolic link has none and is refused.
    pub fn set_mode(&self, mode: u32) -> Result<(), FileError> {
        let attempted = "set the mode of";
        let (handle, stat) = self.open_handle(attempted)?;
        if stat.is_link() {
            return Err(FileError::WrongType {
                attempted,
                path: self.path(),
                found: stat.file_type,
            });
        }
        rustix::fs::chmod(descriptor_path(&handle), Mode::from_raw_mode(mode))
            .map_err(|error| self.failed(attempted, error))
    }

    /// A descriptor that names exactly what is here, whatever it is.
    ///
    /// Refuses a hard link that an ordinary user, in a directory of theirs, may have made to another's file: root
    /// would change the other file.
    pub(super) fn open_handle(&self, attempted: &'static str) -> Result<(OwnedFd, Stat), FileError> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(&self.directory, &self.name, flags, Mode::empty())
            .map_err(|error| self.failed(attempted, error))?;
        let stat = Stat::of_descriptor(&handle).map_err(|error| self.failed(attempted, error))?;
        if self.is_foreign_hard_link(&stat)? {
            return Err(FileError::UnsafeHardLink {
                attempted,
                path: self.path(),
                owner: stat.uid,
            });
        }
        Ok((handle, stat))
    }

    /// Whether `stat` is that of a hard link which somebody may have put here to make root change a file of somebody
    /// else. Where only the owner of the file can write in the directory, it is at most a file of their own.
    pub(super) fn is_foreign_hard_link(&self, stat: &Stat) -> Result<bool, FileError> {
        if stat.is_directory() || stat.links < 2 || !rustix::process::geteuid().is_root() {
            return Ok(false);
        }
        let holder = self.directory.stat()?;
        Ok(holder.is_open_to_others() && (holder.uid != stat.uid || holder.mode & 0o022 != 0))
    }

    pub(crate) fn failed(&self, attempted: &'static str, error: impl Into<std::io::Error>) -> FileError {
        FileError::new(attempted, self.path(), error)
    }
}

/// The path under which `/proc` shows a descriptor, for calls that take no descriptor of the `O_PATH` sort.
pub(super) fn descriptor_path(descriptor: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(descriptor))
}
