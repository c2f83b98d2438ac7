//! Replacing one file or link: what is asked for, and everything up to the moment of the sync.

use super::access;
use super::attributes::{self, Keep, SELINUX};
use super::sparse;
use super::temporary::Temporary;
use super::{AbsolutePath, Directory, Entry, FileError, OpenFile, Stat, Timestamp, Writer, own_uid, umask};
use rustix::fs::{Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags};
use rustix::io::Errno;
use std::fmt;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the bytes of a new file come from.
pub enum Content {
    /// Memory, in whatever holds it.
    Bytes(Box<dyn AsRef<[u8]> + Send>),
    /// Another file, freshly opened; sharing its blocks where the file system can.
    Copy(OpenFile),
    /// A function that writes them.
    Written(WriteFunction),
    /// None: a symbolic link with this text takes the place.
    Link(PathBuf),
}

/// Writes the contents of a new file.
pub type WriteFunction = Box<dyn FnOnce(&mut File) -> io::Result<()> + Send>;

impl fmt::Debug for Content {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The bytes may be a secret.
        formatter.write_str(match self {
            Self::Bytes(_) => "Bytes(..)",
            Self::Copy(_) => "Copy(..)",
            Self::Written(_) => "Written(..)",
            Self::Link(_) => "Link(..)",
        })
    }
}

/// A wish to put new contents at a path, old or new.
///
/// What is not asked for is kept from the file that is there; a new one belongs to this process and has mode 0666
/// less the umask. Bits that let a program run as its owner or group are never kept, and where `mode` is asked for, no
/// access list is. A file that is taken from a user who is not trusted ([`super::is_trusted_owner`]) gives nothing to
/// the new one but the permission bits that the umask leaves.
#[derive(Debug)]
#[must_use = "nothing happens until a committer is given the request"]
pub struct Replace {
    path: AbsolutePath,
    content: Content,
    owner: Option<u32>,
    group: Option<u32>,
    mode: Option<u32>,
    context: Option<Vec<u8>>,
    seen: Option<(Entry, Option<Stat>)>,
    writer: Option<Writer>,
}

impl Replace {
    /// Contents from anywhere. A symbolic link at the path is followed: it stays, and its target is replaced.
    pub fn new(path: AbsolutePath, content: Content) -> Self {
        Self {
            path,
            content,
            owner: None,
            group: None,
            mode: None,
            context: None,
            seen: None,
            writer: None,
        }
    }

    /// A file with these bytes as its contents.
    pub fn bytes(path: AbsolutePath, bytes: impl AsRef<[u8]> + Send + 'static) -> Self {
        Self::new(path, Content::Bytes(Box::new(bytes)))
    }

    /// A symbolic link, in the place of whatever but a directory is there.
    pub fn link(path: AbsolutePath, text: impl Into<PathBuf>) -> Self {
        Self::new(path, Content::Link(text.into()))
    }

    /// Who is to own it; nothing keeps what is.
    pub fn owner(mut self, owner: impl Into<Option<u32>>, group: impl Into<Option<u32>>) -> Self {
        (self.owner, self.group) = (owner.into(), group.into());
        self
    }

    /// The twelve permission bits it is to have; nothing keeps what is.
    pub fn mode(mut self, mode: impl Into<Option<u32>>) -> Self {
        self.mode = mode.into();
        self
    }

    /// The SELinux context it is to have, empty for none; nothing keeps what is.
    pub fn security_context(mut self, context: impl Into<Option<Vec<u8>>>) -> Self {
        self.context = context.into();
        self
    }

    /// Spares a second walk and a second look: this entry is where the links at the path lead, and this was found there
    /// just now.
    pub fn seen(mut self, entry: Entry, found: Option<Stat>) -> Self {
        self.seen = Some((entry, found));
        self
    }

    /// Who watches the path and need not be told of this replacement, because nothing happened but what it asked for.
    ///
    /// They are told all the same where somebody else could have changed the new file before it took its place.
    pub fn written_by(mut self, writer: impl Into<Option<Writer>>) -> Self {
        self.writer = writer.into();
        self
    }

    /// The path that is replaced.
    pub fn path(&self) -> &AbsolutePath {
        &self.path
    }

    /// Writes the temporary file, with everything it is to have, beside its target. `parent` is the directory of the
    /// path, if it is open already.
    pub(super) fn prepare(mut self, parent: Option<&Arc<Directory>>) -> Result<Prepared, FileError> {
        let (target, existing) = self.find_target(parent)?;
        if let Some(stat) = existing
            && !self.may_replace(&stat)
        {
            let (path, found) = (target.path(), stat.file_type);
            return Err(FileError::WrongType {
                attempted: "replace the contents of",
                path,
                found,
            });
        }
        match &self.content {
            Content::Link(text) => self.prepare_link(target, text),
            Content::Bytes(_) | Content::Copy(_) | Content::Written(_) => {
                self.prepare_file(target, existing.filter(Stat::is_regular))
            }
        }
    }

    /// What is to be replaced, and what it is now.
    fn find_target(&mut self, parent: Option<&Arc<Directory>>) -> Result<(Entry, Option<Stat>), FileError> {
        let (target, existing) = match (self.seen.take(), parent, self.path.file_name()) {
            (Some(seen), _, _) => seen,
            (None, Some(directory), Some(name)) if name != ".." => {
                let entry = directory.entry(name);
                let found = entry.stat()?;
                (entry, found)
            }
            _ => {
                let entry = Entry::at(&self.path)?;
                let found = entry.stat()?;
                (entry, found)
            }
        };
        // A link that is to be made takes the place of the one that is there.
        let follows = !matches!(self.content, Content::Link(_));
        if follows && existing.is_some_and(|stat| stat.is_link()) {
            let target = target.follow()?;
            let existing = target.stat()?;
            return Ok((target, existing));
        }
        Ok((target, existing))
    }

    fn prepare_link(&self, target: Entry, text: &Path) -> Result<Prepared, FileError> {
        let temporary = Temporary::create_link(target.directory(), text)?;
        let entry = temporary.entry();
        if self.owner.is_some() || self.group.is_some() {
            entry.set_owner(self.owner, self.group)?;
        }
        let Some(made) = entry.stat()? else {
            return Err(entry.failed("look at the new", Errno::NOENT));
        };
        Ok(Prepared {
            temporary,
            target,
            in_place: None,
            existing: None,
            taken_over: false,
            made,
            is_link: true,
            metadata: Metadata::default(),
            modified: None,
            writer: None,
        })
    }

    fn prepare_file(self, target: Entry, existing: Option<Stat>) -> Result<Prepared, FileError> {
        let mut temporary = Temporary::create_file(target.directory())?;
        let failed = |error: io::Error| target.failed("write", error);
        write_content(self.content, temporary.file()?).map_err(failed)?;

        let taken_over = existing.is_some_and(|stat| {
            stat.is_made_by_others() && self.owner.is_some_and(|owner| owner != stat.uid)
        });
        // What the new file has from the old one, where nothing else is asked for.
        let inherited = existing.filter(|_| !taken_over);
        let kept_mode = match (inherited, existing) {
            // What runs as its owner or group does so by an explicit wish alone, never because the last file did.
            (Some(stat), _) => stat.mode & 0o1777,
            (None, Some(stat)) => stat.mode & 0o777 & !umask(),
            (None, None) => 0o666 & !umask(),
        };
        let metadata = Metadata {
            owner: self.owner,
            group: self.group,
            mode: self.mode.unwrap_or(kept_mode),
            keeps_access_list: self.mode.is_none(),
            context: self.context,
        };
        let inherits_access =
            self.mode.is_none() && existing.is_none() && !target.directory().stat()?.is_open_to_others();
        if !inherits_access {
            access::remove(temporary.file()?).map_err(|error| target.failed("write", error))?;
        }
        let in_place = match inherited {
            Some(stat) => metadata.reason_in_place(&stat, &target, temporary.file()?)?,
            None => None,
        };
        let made = Stat::of_descriptor(temporary.file()?).map_err(|error| target.failed("write", error))?;
        let owner = metadata
            .owner
            .or(inherited.map(|stat| stat.uid))
            .unwrap_or(made.uid);
        let group = metadata
            .group
            .or(inherited.map(|stat| stat.gid))
            .unwrap_or(made.gid);
        if in_place.is_none() {
            let (owner, group) = (
                (owner != made.uid).then_some(owner),
                (group != made.gid).then_some(group),
            );
            metadata.apply(owner, group, &target, temporary.file()?)?;
        }
        // From here on nobody but this user could write to it: then what takes its place is what was written.
        let stays_ours = in_place.is_none() && metadata.mode & 0o022 == 0 && owner == own_uid();
        let modified = match stays_ours {
            true => set_unrepeatable_time(temporary.file()?),
            false => None,
        };
        Ok(Prepared {
            temporary,
            target,
            in_place,
            existing,
            taken_over,
            made,
            is_link: false,
            metadata,
            modified,
            writer: self.writer.filter(|_| stays_ours),
        })
    }

    fn may_replace(&self, there: &Stat) -> bool {
        match self.content {
            Content::Link(_) => !there.is_directory(),
            Content::Bytes(_) | Content::Copy(_) | Content::Written(_) => there.is_regular(),
        }
    }
}

/// How a replacement was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// By renaming a complete file over the old one: nobody ever saw half of it.
    Atomically,
    /// By writing into the old file.
    InPlace(InPlaceReason),
}

/// Why a file had to be written in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InPlaceReason {
    /// It has several hard links, which are to stay the same file.
    SeveralNames,
    /// Something is mounted on it, as on `/etc/hosts` in a container.
    MountPoint,
    /// Its owner, access list or other attributes cannot be given to a new file by this user.
    NotOurs,
}

impl fmt::Display for InPlaceReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::SeveralNames => "it has several hard links",
            Self::MountPoint => "it is a mount point",
            Self::NotOurs => "its owner and attributes cannot be given to a new file",
        })
    }
}

/// A replacement that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replaced {
    /// Whether a new file took its place.
    pub method: Method,
    /// What is there now.
    pub stat: Stat,
    /// Whether the stamp of `stat` proves the contents from now on, however soon after this another write may come.
    pub is_proof: bool,
}

/// Gives a file a time of modification that no later write can give it by accident: those are the kernel's ticks, this is
/// exact to the nanosecond. Nothing if the file system does not take it.
fn set_unrepeatable_time(file: &File) -> Option<Timestamp> {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    let times = Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: now,
    };
    rustix::fs::futimens(file, &times).ok()?;
    Some(Timestamp {
        seconds: now.tv_sec,
        nanoseconds: u32::try_from(now.tv_nsec).ok()?,
    })
}

/// What a file has beside its bytes.
#[derive(Debug, Default)]
struct Metadata {
    owner: Option<u32>,
    group: Option<u32>,
    mode: u32,
    /// Whether nobody said who may do what, so that the access list of the old file goes on to hold.
    keeps_access_list: bool,
    context: Option<Vec<u8>>,
}

impl Metadata {
    /// Why the old file must be written to instead of being replaced; nothing where its attributes are taken over.
    fn reason_in_place(
        &self,
        old: &Stat,
        target: &Entry,
        new: &File,
    ) -> Result<Option<InPlaceReason>, FileError> {
        if old.links > 1 && !target.is_foreign_hard_link(old)? {
            return Ok(Some(InPlaceReason::SeveralNames));
        }
        Ok(match self.carry_over(old, target, new)? {
            true => None,
            false => Some(InPlaceReason::NotOurs),
        })
    }

    /// Takes the old file's attributes over. Answers whether this user may do that, and may keep the old owner.
    fn carry_over(&self, old: &Stat, target: &Entry, new: &File) -> Result<bool, FileError> {
        let made = Stat::of_descriptor(new).map_err(|error| target.failed("write", error))?;
        let owner = (self.owner.is_none() && old.uid != made.uid).then_some(old.uid);
        let group = (self.group.is_none() && old.gid != made.gid).then_some(old.gid);
        if owner.is_some() || group.is_some() {
            match rustix::fs::fchown(new, owner.map(Uid::from_raw), group.map(Gid::from_raw)) {
                Ok(()) => {}
                Err(Errno::PERM) => return Ok(false),
                Err(error) => return Err(target.failed("change the owner of", error)),
            }
        }
        let source = target.open()?;
        if !source.stat().is_same_file(old) {
            let (attempted, path) = ("replace", target.path());
            return Err(FileError::Exchanged { attempted, path });
        }
        let keep = Keep {
            context: self.context.is_none(),
            access_list: self.keeps_access_list,
        };
        match attributes::copy(source.file(), new, keep) {
            Ok(()) => Ok(true),
            Err(Errno::PERM | Errno::ACCESS | Errno::NOTSUP) => Ok(false),
            Err(error) => Err(target.failed("copy the extended attributes of", error)),
        }
    }

    /// Owner first, because changing it clears bits of the mode.
    fn apply(
        &self,
        owner: Option<u32>,
        group: Option<u32>,
        target: &Entry,
        file: &File,
    ) -> Result<(), FileError> {
        if owner.is_some() || group.is_some() {
            rustix::fs::fchown(file, owner.map(Uid::from_raw), group.map(Gid::from_raw))
                .map_err(|error| target.failed("change the owner of", error))?;
        }
        if let Some(context) = &self.context {
            let result = if context.is_empty() {
                match rustix::fs::fremovexattr(file, SELINUX) {
                    Err(Errno::NODATA | Errno::NOTSUP) => Ok(()),
                    result => result,
                }
            } else {
                rustix::fs::fsetxattr(file, SELINUX, context, XattrFlags::empty())
            };
            result.map_err(|error| target.failed("set the security context of", error))?;
        }
        rustix::fs::fchmod(file, Mode::from_raw_mode(self.mode))
            .map_err(|error| target.failed("set the mode of", error))
    }
}

/// A complete temporary file beside its target, waiting to be synced and renamed. Dropped, it is removed.
#[derive(Debug)]
#[must_use = "the file is replaced when this is submitted to a committer"]
pub struct Prepared {
    pub(super) temporary: Temporary,
    target: Entry,
    in_place: Option<InPlaceReason>,
    /// The regular file that was there.
    existing: Option<Stat>,
    /// Whether it is taken from an owner who may still hold it open.
    taken_over: bool,
    /// The temporary file or link.
    pub(super) made: Stat,
    is_link: bool,
    metadata: Metadata,
    /// The time of modification that was given to it, to be recognised by.
    modified: Option<Timestamp>,
    writer: Option<Writer>,
}

impl Prepared {
    /// Whether the temporary file's bytes must be on disk before [`Self::finish`].
    pub(super) fn is_to_be_synced(&self) -> bool {
        self.in_place.is_none()
    }

    /// Whether a symbolic link is to be made, which has nothing that could be synced by itself.
    pub(super) fn is_link(&self) -> bool {
        self.is_link
    }

    /// Gives the descriptor back; the file stays.
    pub(super) fn close(&mut self) {
        // What is written in place is read from it once more.
        if self.in_place.is_none() {
            self.temporary.close();
        }
    }

    /// The path to be replaced, for messages.
    pub(super) fn path(&self) -> PathBuf {
        self.target.path()
    }

    /// Makes the new contents visible.
    pub(super) fn finish(&mut self) -> Result<Replaced, FileError> {
        let method = match self.in_place {
            Some(reason) => Method::InPlace(reason),
            None => match self.rename() {
                Ok(()) => Method::Atomically,
                Err(Errno::BUSY | Errno::XDEV) => Method::InPlace(InPlaceReason::MountPoint),
                Err(error) => return Err(self.target.failed("replace", error)),
            },
        };
        if method != Method::Atomically {
            if let (true, Some(existing)) = (self.taken_over, self.existing) {
                let (path, owner) = (self.target.path(), existing.uid);
                return Err(FileError::NotToBeTakenOver { path, owner });
            }
            return Ok(Replaced {
                method,
                stat: self.write_in_place()?,
                is_proof: false,
            });
        }
        match self.target.stat()? {
            Some(stat) if stat.is_same_file(&self.made) => Ok(Replaced {
                method,
                stat,
                is_proof: self.modified == Some(stat.modified),
            }),
            // Somebody was quicker than the look at it. What they put there is not what was written, and must not be
            // taken for it.
            _ => Ok(Replaced {
                method,
                stat: self.made,
                is_proof: false,
            }),
        }
    }

    fn rename(&mut self) -> rustix::io::Result<()> {
        let number = self.temporary.number();
        if let Some(writer) = &self.writer {
            writer.announce(number);
        }
        let renamed = self.temporary.rename_to(self.target.name());
        if let (Err(_), Some(writer)) = (&renamed, &self.writer) {
            writer.withdraw(number);
        }
        renamed
    }

    /// Answers what is known about the file after it was written.
    fn write_in_place(&mut self) -> Result<Stat, FileError> {
        let failed = |error: io::Error| self.target.failed("write in place", error);
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let (directory, name) = (self.target.directory(), self.target.name());
        let opened = rustix::fs::openat(directory, name, flags, Mode::empty());
        let mut file = File::from(opened.map_err(|error| failed(error.into()))?);
        let stat = Stat::of_descriptor(&file).map_err(|error| failed(error.into()))?;
        if !stat.is_regular() {
            let (attempted, path, found) = ("write in place", self.target.path(), stat.file_type);
            return Err(FileError::WrongType {
                attempted,
                path,
                found,
            });
        }
        if self
            .existing
            .is_some_and(|existing| !existing.is_same_file(&stat))
        {
            let (attempted, path) = ("write in place", self.target.path());
            return Err(FileError::Exchanged { attempted, path });
        }
        let Metadata {
            owner,
            group,
            mode,
            keeps_access_list,
            context,
        } = &self.metadata;
        if !keeps_access_list {
            access::remove(&file).map_err(|error| failed(error.into()))?;
        }
        // Before the bytes, so that nobody reads new ones by an old permission; after them too, because writing
        // clears bits that let a program run as its owner.
        let owner = owner.filter(|owner| *owner != stat.uid);
        let group = group.filter(|group| *group != stat.gid);
        let is_special = mode & 0o6000 != 0;
        if owner.is_some() || group.is_some() || *mode != stat.mode || context.is_some() {
            self.metadata.apply(owner, group, &self.target, &file)?;
        }
        let source = self.temporary.file()?;
        let has_holes = Stat::of_descriptor(&*source).is_ok_and(|stat| stat.has_holes());
        let copied = source.rewind().and_then(|()| {
            if has_holes {
                // Written over, holes would become zeros, and take as much room as they say.
                file.set_len(0)?;
                return sparse::copy(source, &file);
            }
            let length = io::copy(source, &mut file)?;
            file.set_len(length)
        });
        copied.map_err(failed)?;
        if is_special {
            self.metadata.apply(None, None, &self.target, &file)?;
        }
        file.sync_all()
            .map_err(|error| self.target.failed("sync", error))?;
        Stat::of_descriptor(&file).map_err(|error| self.target.failed("look at", error))
    }
}

fn write_content(content: Content, file: &mut File) -> io::Result<()> {
    match content {
        Content::Bytes(bytes) => file.write_all((*bytes).as_ref()),
        Content::Copy(source) => match rustix::fs::ioctl_ficlone(&*file, source.file()) {
            Ok(()) => Ok(()),
            Err(_) => sparse::copy(source.file(), file),
        },
        Content::Written(write) => write(file),
        Content::Link(_) => Ok(()),
    }
}
