//! What the file system says about an entry.

use rustix::fd::AsFd;
use rustix::fs::{AtFlags, Statx, StatxFlags, statx};
use std::fmt;

/// What sort of thing an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileType {
    /// An ordinary file.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character device.
    CharacterDevice,
    /// A block device.
    BlockDevice,
    /// Something this program has no word for.
    Unknown,
}

impl fmt::Display for FileType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Regular => "regular file",
            Self::Directory => "directory",
            Self::Link => "symbolic link",
            Self::Fifo => "named pipe",
            Self::Socket => "socket",
            Self::CharacterDevice => "character device",
            Self::BlockDevice => "block device",
            Self::Unknown => "file of unknown type",
        })
    }
}

impl From<rustix::fs::FileType> for FileType {
    fn from(found: rustix::fs::FileType) -> Self {
        match found {
            rustix::fs::FileType::RegularFile => Self::Regular,
            rustix::fs::FileType::Directory => Self::Directory,
            rustix::fs::FileType::Symlink => Self::Link,
            rustix::fs::FileType::Fifo => Self::Fifo,
            rustix::fs::FileType::Socket => Self::Socket,
            rustix::fs::FileType::CharacterDevice => Self::CharacterDevice,
            rustix::fs::FileType::BlockDevice => Self::BlockDevice,
            rustix::fs::FileType::Unknown => Self::Unknown,
        }
    }
}

/// A point in time as file systems store it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Seconds since 1970, negative before.
    pub seconds: i64,
    /// Nanoseconds after that second.
    pub nanoseconds: u32,
}

impl Timestamp {
    /// The time now, by the clock that file systems use.
    pub fn now() -> Self {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        Self {
            seconds: now.tv_sec,
            nanoseconds: u32::try_from(now.tv_nsec).unwrap_or(0),
        }
    }

    /// How many milliseconds lie between an earlier point and this one; negative if it is not earlier.
    pub(crate) fn milliseconds_since(self, earlier: Self) -> i64 {
        let seconds = self.seconds.saturating_sub(earlier.seconds).saturating_mul(1000);
        seconds.saturating_add((i64::from(self.nanoseconds) - i64::from(earlier.nanoseconds)) / 1_000_000)
    }
}

/// What identifies the present state of a file without reading it.
///
/// Two equal stamps mean unchanged contents and metadata, unless the file was changed twice within the file
/// system's clock tick; [`super::VerifiedFiles`] takes care of that case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// The file system.
    pub device: u64,
    /// The file in it.
    pub inode: u64,
    /// Length in bytes.
    pub size: u64,
    /// When the contents changed.
    pub modified: Timestamp,
    /// When anything changed.
    pub changed: Timestamp,
}

/// One entry's type, size, mode, owner and times, without following a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// What sort of thing it is.
    pub file_type: FileType,
    /// The twelve permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Length in bytes.
    pub size: u64,
    /// How many bytes it takes on its file system; less than its length if it has holes.
    pub allocated: u64,
    /// When the contents changed.
    pub modified: Timestamp,
    /// When anything changed.
    pub changed: Timestamp,
    /// The file's number in its file system.
    pub inode: u64,
    /// The file system's number.
    pub device: u64,
    /// How many names the file has.
    pub links: u32,
}

impl Stat {
    /// Whether it is an ordinary file.
    pub fn is_regular(&self) -> bool {
        self.file_type == FileType::Regular
    }

    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        self.file_type == FileType::Directory
    }

    /// Whether it is a symbolic link.
    pub fn is_link(&self) -> bool {
        self.file_type == FileType::Link
    }

    /// Whether it says that it is longer than what it holds.
    pub fn has_holes(&self) -> bool {
        self.allocated < self.size
    }

    /// What identifies this state.
    pub fn stamp(&self) -> Stamp {
        Stamp {
            device: self.device,
            inode: self.inode,
            size: self.size,
            modified: self.modified,
            changed: self.changed,
        }
    }

    /// Whether both are the same file, perhaps under two names.
    pub fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Asks for the entry `name` of a directory, not following a link.
    pub(crate) fn of_entry(directory: impl AsFd, name: impl rustix::path::Arg) -> rustix::io::Result<Self> {
        statx(
            directory,
            name,
            AtFlags::SYMLINK_NOFOLLOW,
            StatxFlags::BASIC_STATS,
        )
        .map(Into::into)
    }

    /// Asks for what a descriptor is open on.
    pub(crate) fn of_descriptor(descriptor: impl AsFd) -> rustix::io::Result<Self> {
        statx(descriptor, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS).map(Into::into)
    }
}

impl From<Statx> for Stat {
    fn from(found: Statx) -> Self {
        let mode = u32::from(found.stx_mode);
        Self {
            file_type: rustix::fs::FileType::from_raw_mode(mode).into(),
            mode: mode & 0o7777,
            uid: found.stx_uid,
            gid: found.stx_gid,
            size: found.stx_size,
            allocated: found.stx_blocks.saturating_mul(512),
            modified: Timestamp {
                seconds: found.stx_mtime.tv_sec,
                nanoseconds: found.stx_mtime.tv_nsec,
            },
            changed: Timestamp {
                seconds: found.stx_ctime.tv_sec,
                nanoseconds: found.stx_ctime.tv_nsec,
            },
            inode: found.stx_ino,
            device: rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor),
            links: found.stx_nlink,
        }
    }
}
