//! A tree whose contents others chose, such as those of an archive: written below one directory, and never outside of it.

use super::{Directory, Entry, FileError};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Gid, Mode, OFlags, RenameFlags, ResolveFlags, Uid};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How a directory of the tree is reached: below the root, over no link, and on the same file system. So neither a link in the tree nor one that appears meanwhile leads anywhere else.
const BELOW: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_XDEV);

/// A directory that is filled with entries. Paths are relative to it, without `..`.
#[derive(Debug)]
pub struct NewTree {
    root: OwnedFd,
    path: PathBuf,
    /// The directory that was written to last.
    last: Option<(PathBuf, OwnedFd)>,
}

impl NewTree {
    /// Creates the directory, which only its owner can enter until it has its mode. An entry with its name is removed.
    ///
    /// # Errors
    /// As the system says.
    pub fn create(entry: &Entry) -> Result<NewTree, FileError> {
        entry.remove_tree()?;
        entry.create_directory(0o700)?;
        NewTree::open(entry)
    }

    /// Opens a directory that exists.
    ///
    /// # Errors
    /// As the system says.
    pub fn open(entry: &Entry) -> Result<NewTree, FileError> {
        let directory = entry.open_directory()?;
        Ok(NewTree {
            root: directory.open_for_reading()?,
            path: entry.path(),
            last: None,
        })
    }

    /// Creates a directory, and those above it. One that exists stays.
    ///
    /// # Errors
    /// When something else is in its place, or as the system says.
    pub fn directory(&mut self, path: &Path) -> Result<(), FileError> {
        self.parent_of(&path.join("x")).map(|_| ())
    }

    /// Writes a file. It replaces another entry, except a directory.
    ///
    /// # Errors
    /// As the system says, or when the contents cannot be read.
    pub fn file(&mut self, path: &Path, mode: u32, contents: &mut dyn Read) -> Result<(), FileError> {
        let attempted = "write";
        let temporary = temporary(path);
        let failed = failing(attempted, self.path.join(path));
        let written = self.parent_of(path).and_then(|(parent, name)| {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let _ = rustix::fs::unlinkat(parent, &temporary, AtFlags::empty());
            let opened = rustix::fs::openat(parent, &temporary, flags, Mode::from_raw_mode(0o600));
            let mut file = File::from(opened.map_err(&failed)?);
            let copied = io::copy(contents, &mut file).and_then(|_| file.flush());
            copied.map_err(|error| FileError::new(attempted, path, error))?;
            rustix::fs::fchmod(&file, Mode::from_raw_mode(mode)).map_err(&failed)?;
            rustix::fs::renameat(parent, &temporary, parent, name).map_err(&failed)
        });
        if written.is_err()
            && let Ok((parent, _)) = self.parent_of(path)
        {
            let _ = rustix::fs::unlinkat(parent, &temporary, AtFlags::empty());
        }
        written
    }

    /// Makes a symbolic link. It replaces another entry, except a directory.
    ///
    /// # Errors
    /// As the system says.
    pub fn link(&mut self, path: &Path, text: &OsStr) -> Result<(), FileError> {
        let failed = failing("make the link", self.path.join(path));
        let temporary = temporary(path);
        let (parent, name) = self.parent_of(path)?;
        let _ = rustix::fs::unlinkat(parent, &temporary, AtFlags::empty());
        rustix::fs::symlinkat(text, parent, &temporary).map_err(&failed)?;
        rustix::fs::renameat(parent, &temporary, parent, name).map_err(&failed)
    }

    /// Makes another name of a file of this tree.
    ///
    /// # Errors
    /// When there is no such file, or as the system says.
    pub fn hard_link(&mut self, path: &Path, target: &Path) -> Result<(), FileError> {
        let failed = failing("make the link", self.path.join(path));
        let from = {
            let (parent, _) = self.parent_of(target)?;
            rustix::io::dup(parent).map_err(&failed)?
        };
        let target = target.file_name().unwrap_or_default().to_owned();
        let (parent, name) = self.parent_of(path)?;
        let _ = rustix::fs::unlinkat(parent, name, AtFlags::empty());
        rustix::fs::linkat(&from, &target, parent, name, AtFlags::empty()).map_err(&failed)
    }

    /// Takes over an entry of another tree on the same file system, at the same path: another name of a file or link, or a directory with
    /// the same owner and mode.
    ///
    /// # Errors
    /// As the system says.
    pub fn take_over(&mut self, path: &Path, from: &Entry) -> Result<(), FileError> {
        let failed = failing("keep", self.path.join(path));
        let Some(stat) = from.stat()? else { return Ok(()) };
        if stat.is_directory() {
            self.directory(path)?;
            self.owner(path, stat.uid, stat.gid)?;
            return self.mode(path, stat.mode);
        }
        let directory = from.directory().open_for_reading()?;
        let (parent, name) = self.parent_of(path)?;
        match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(failed(error)),
        }
        rustix::fs::linkat(&directory, from.name(), parent, name, AtFlags::empty()).map_err(&failed)
    }

    /// Sets the owner and the group of an entry; of a link, its own.
    ///
    /// # Errors
    /// As the system says.
    pub fn owner(&mut self, path: &Path, user: u32, group: u32) -> Result<(), FileError> {
        let failed = failing("set the owner of", self.path.join(path));
        let (user, group) = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
        if path.as_os_str().is_empty() {
            return rustix::fs::fchown(&self.root, user, group).map_err(&failed);
        }
        let (parent, name) = self.parent_of(path)?;
        rustix::fs::chownat(parent, name, user, group, AtFlags::SYMLINK_NOFOLLOW).map_err(&failed)
    }

    /// Sets the mode of a file or directory.
    ///
    /// # Errors
    /// As the system says.
    pub fn mode(&mut self, path: &Path, mode: u32) -> Result<(), FileError> {
        let failed = failing("set the mode of", self.path.join(path));
        let mode = Mode::from_raw_mode(mode);
        if path.as_os_str().is_empty() {
            return rustix::fs::fchmod(&self.root, mode).map_err(&failed);
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let (parent, name) = self.parent_of(path)?;
        let entry = rustix::fs::openat2(parent, name, flags, Mode::empty(), BELOW).map_err(&failed)?;
        rustix::fs::fchmod(&entry, mode).map_err(&failed)
    }

    /// Makes everything survive a loss of power.
    ///
    /// # Errors
    /// As the system says.
    pub fn sync(&self) -> Result<(), FileError> {
        rustix::fs::syncfs(&self.root).map_err(FileError::on("sync", &self.path))
    }

    /// The directory of a path, which is created if it is missing, and the last part of the path.
    fn parent_of<'p>(&mut self, path: &'p Path) -> Result<(&OwnedFd, &'p OsStr), FileError> {
        let name = path.file_name().unwrap_or_default();
        let parent = path.parent().unwrap_or(Path::new(""));
        if parent.as_os_str().is_empty() {
            return Ok((&self.root, name));
        }
        if self.last.as_ref().is_none_or(|(known, _)| known != parent) {
            let opened = match self.open_below(parent) {
                Err(Errno::NOENT) => self.create_below(parent),
                opened => opened,
            };
            let opened = opened.map_err(failing("create the directory", self.path.join(parent)))?;
            self.last = Some((parent.to_path_buf(), opened));
        }
        let (_, directory) = self.last.as_ref().expect("it was just set");
        Ok((directory, name))
    }

    fn open_below(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat2(&self.root, path, flags, Mode::empty(), BELOW)
    }

    fn create_below(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let mut so_far = PathBuf::new();
        let mut directory = rustix::io::dup(&self.root)?;
        for part in path.components() {
            so_far.push(part);
            match rustix::fs::mkdirat(&directory, part.as_os_str(), Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
            directory = self.open_below(&so_far)?;
        }
        Ok(directory)
    }
}

/// Replaces a directory by another one of the same parent, in one step, and removes the old one. Answers whether it was one step: on an
/// overlay, a directory of a lower layer is removed first.
///
/// # Errors
/// As the system says.
pub fn exchange_directory(new: &Entry, place: &Entry) -> Result<bool, FileError> {
    let parent: &Directory = new.directory();
    let descriptor = parent.open_for_reading()?;
    let failed = failing("put in place", place.path());
    let exchanged = rustix::fs::renameat_with(
        &descriptor,
        new.name(),
        &descriptor,
        place.name(),
        RenameFlags::EXCHANGE,
    );
    let in_one_step = match exchanged {
        Ok(()) => {
            parent.sync()?;
            new.remove_tree()?;
            return Ok(true);
        }
        Err(Errno::NOENT) => true,
        Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS) => {
            place.remove_tree()?;
            false
        }
        Err(error) => return Err(failed(error)),
    };
    rustix::fs::renameat(&descriptor, new.name(), &descriptor, place.name()).map_err(&failed)?;
    parent.sync()?;
    Ok(in_one_step)
}

/// The name under which an entry is written before it takes its place.
fn temporary(path: &Path) -> OsString {
    let mut name = OsString::from(super::temporary::TEMPORARY_PREFIX);
    name.push("new-");
    // A name of 255 bytes has no room for the beginning.
    let own = path.file_name().unwrap_or_default().as_bytes();
    name.push(OsStr::from_bytes(&own[..own.len().min(200)]));
    name
}

/// For `map_err`: names what was tried on which path.
fn failing(attempted: &'static str, path: PathBuf) -> impl Fn(Errno) -> FileError {
    move |error| FileError::new(attempted, path.clone(), error)
}

#[cfg(test)]
mod tests {
    use super::super::AbsolutePath;
    use super::*;

    fn entry(path: &Path) -> Entry {
        Entry::at(&AbsolutePath::new(path).unwrap()).unwrap()
    }

    #[test]
    fn nothing_leaves_the_tree() {
        let place = tempfile::tempdir().unwrap();
        let outside = place.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        let mut tree = NewTree::create(&entry(&place.path().join("tree"))).unwrap();
        tree.file(Path::new("a/b"), 0o640, &mut &b"text"[..]).unwrap();
        tree.link(Path::new("out"), outside.as_os_str()).unwrap();
        assert!(tree.file(Path::new("out/x"), 0o644, &mut &b""[..]).is_err());
        assert!(tree.file(Path::new("../x"), 0o644, &mut &b""[..]).is_err());
        assert!(tree.mode(Path::new("out"), 0o777).is_err());
        tree.hard_link(Path::new("c"), Path::new("a/b")).unwrap();
        assert!(tree.hard_link(Path::new("d"), Path::new("out/x")).is_err());
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
        assert_eq!(
            std::fs::read_to_string(place.path().join("tree/c")).unwrap(),
            "text"
        );
        // The link is replaced, and not its target.
        tree.file(Path::new("out"), 0o644, &mut &b"file"[..]).unwrap();
        assert_eq!(
            std::fs::read_to_string(place.path().join("tree/out")).unwrap(),
            "file"
        );
    }

    #[test]
    fn a_tree_takes_the_place_of_another_one_in_one_step() {
        let place = tempfile::tempdir().unwrap();
        let (new, old) = (place.path().join(".new"), place.path().join("tree"));
        for text in ["one", "two"] {
            let mut tree = NewTree::create(&entry(&new)).unwrap();
            tree.file(Path::new("version"), 0o644, &mut text.as_bytes())
                .unwrap();
            if text == "two" {
                std::fs::write(old.join("kept"), "kept").unwrap();
                tree.take_over(Path::new("kept"), &entry(&old.join("kept")))
                    .unwrap();
            }
            assert!(exchange_directory(&entry(&new), &entry(&old)).unwrap());
            assert_eq!(std::fs::read_to_string(old.join("version")).unwrap(), text);
            assert!(!new.exists());
        }
        assert_eq!(std::fs::read_to_string(old.join("kept")).unwrap(), "kept");
    }
}
