//! Which file systems are mounted where, who serves them, and when that changes: told without touching them, since looking
//! at one that hangs would hang too.

mod in_use;

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, mount_remount};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

pub use in_use::{Tie, Use, uses};

/// Where the kernel lists mounted file systems, and tells of changes.
const LIST: &str = "/proc/self/mountinfo";

/// File systems whose answers depend on somebody else, besides FUSE.
const SERVED: &[&[u8]] = &[
    b"nfs",
    b"nfs4",
    b"cifs",
    b"smb3",
    b"smbfs",
    b"ceph",
    b"afs",
    b"9p",
    b"lustre",
    b"beegfs",
    b"ncpfs",
    b"autofs",
    b"coda",
    b"orangefs",
    b"gfs2",
    b"ocfs2",
];

/// Where file systems are mounted.
#[derive(Debug, Clone, Default)]
pub struct Mounts(Vec<PathBuf>);

impl Mounts {
    /// As this process sees them now.
    pub fn read() -> io::Result<Self> {
        let mounts = MountList::open()?.read()?;
        Ok(Self::of(&mounts))
    }

    fn of(mounts: &[Mount]) -> Self {
        let path = |mount: &Mount| match &*mount.point {
            b"" => PathBuf::from("/"),
            point => PathBuf::from(OsString::from_vec(point.to_vec())),
        };
        Self(mounts.iter().map(path).collect())
    }

    /// The mount point nearest above an absolute path, by its text alone: links are not followed.
    pub fn point_above(&self, path: &Path) -> &Path {
        let above = self.0.iter().filter(|point| path.starts_with(point));
        above
            .max_by_key(|point| point.as_os_str().len())
            .map_or(Path::new("/"), PathBuf::as_path)
    }
}

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// Without a slash at the end; empty for the root.
    pub(crate) point: Box<[u8]>,
    /// The kernel's number for the mount.
    number: Box<[u8]>,
    /// The number of the file system, as [`crate::files::Stat`] has it.
    device: u64,
    /// Whether a program or another machine answers for it: late, or never.
    pub(crate) served: bool,
    /// The user who answers for it and can claim any owner for its files, if it is not root.
    server: Option<u32>,
}

/// A mounted file system, with what the kernel tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountedFileSystem {
    /// `ext4`, `tmpfs`, `fuse.sshfs`.
    pub kind: String,
    /// What is mounted, as whoever mounted it called it.
    pub source: String,
    /// Options of the mount point: `rw`, `nosuid`, `relatime`.
    pub options: Vec<String>,
    /// Options of the file system, and its own: `rw`, `size=1024k`.
    pub system_options: Vec<String>,
    /// Where it is mounted.
    point: PathBuf,
    /// What of the file system is seen there: `/`, or what is bound.
    root: PathBuf,
    /// The kernel's number for the mount, and for the one that it is mounted on.
    number: u64,
    parent: u64,
    /// The number of the device.
    device: u64,
}

/// What is mounted at a path, and is reached by it: on top of what was mounted there before, and not below what was mounted above it later. Told without touching it.
///
/// # Errors
/// When the list cannot be read.
pub fn mounted_at(point: &Path) -> io::Result<Option<MountedFileSystem>> {
    let table = Table::read()?;
    Ok(table.under(point).filter(|found| found.point == point).cloned())
}

/// Sets the flags of a mount point, as the kernel lists them (`nosuid`, `noatime`): all others are cleared. The options of
/// the file system itself do not change.
///
/// # Errors
/// When the kernel refuses it.
pub fn set_flags(point: &Path, flags: &[&str]) -> io::Result<()> {
    const KNOWN: [(&str, MountFlags); 7] = [
        ("ro", MountFlags::RDONLY),
        ("nosuid", MountFlags::NOSUID),
        ("nodev", MountFlags::NODEV),
        ("noexec", MountFlags::NOEXEC),
        ("noatime", MountFlags::NOATIME),
        ("nodiratime", MountFlags::NODIRATIME),
        ("strictatime", MountFlags::STRICTATIME),
    ];
    let named = KNOWN.into_iter().filter(|(name, _)| flags.contains(name));
    let mut set = named.fold(MountFlags::BIND, |all, (_, flag)| all | flag);
    if !set.intersects(MountFlags::NOATIME | MountFlags::STRICTATIME) {
        // The kernel keeps the current setting unless a call names one.
        set |= MountFlags::RELATIME;
    }
    Ok(mount_remount(point, set, "")?)
}

/// Whether the kernel has a type of file systems. What it needs for one it loads when that is first mounted.
#[must_use]
pub fn is_file_system(kind: &str) -> bool {
    let all = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    all.lines().any(|line| line.rsplit('\t').next() == Some(kind))
}

/// All mounted file systems, as a process sees them.
#[derive(Debug, Default)]
struct Table(Vec<MountedFileSystem>);

impl Table {
    /// As this process sees them now.
    fn read() -> io::Result<Table> {
        let mut text = Vec::new();
        MountList::open()?.0.read_to_end(&mut text)?;
        Ok(Table::parse(&text))
    }

    fn parse(text: &[u8]) -> Table {
        let lines = text.split(|byte| *byte == b'\n');
        Table(lines.filter_map(parse_mounted).collect())
    }

    /// Which mount an absolute path leads to by its text alone: links are not followed. None below a root that is itself nowhere mounted.
    fn under(&self, path: &Path) -> Option<&MountedFileSystem> {
        let numbers: HashSet<u64> = self.0.iter().map(|mount| mount.number).collect();
        let mut reached: Option<&MountedFileSystem> = None;
        let mut prefixes: Vec<&Path> = path.ancestors().collect();
        prefixes.reverse();
        for prefix in prefixes {
            loop {
                // The parent of what is mounted first of all is not in the list, or is it itself.
                let is_next = |mount: &&MountedFileSystem| {
                    mount.point == prefix
                        && match reached {
                            Some(on) => mount.parent == on.number && mount.number != on.number,
                            None => mount.parent == mount.number || !numbers.contains(&mount.parent),
                        }
                };
                match self.0.iter().rev().find(is_next) {
                    Some(next) => reached = Some(next),
                    None => break,
                }
            }
        }
        reached
    }
}

fn parse_mounted(line: &[u8]) -> Option<MountedFileSystem> {
    let text = |field: &[u8]| String::from_utf8_lossy(&unescape(field)).into_owned();
    let path = |field: &[u8]| PathBuf::from(OsString::from_vec(unescape(field)));
    let number = |field: &[u8]| std::str::from_utf8(field).ok()?.parse::<u64>().ok();
    let list = |field: &[u8]| {
        field
            .split(|byte| *byte == b',')
            .map(text)
            .collect::<Vec<String>>()
    };
    let mount = parse_line(line)?;
    let mut fields = line.split(|byte| *byte == b' ');
    let (own, parent) = (number(fields.next()?)?, number(fields.next()?)?);
    let mut fields = fields.skip(1);
    let (root, point) = (path(fields.next()?), path(fields.next()?));
    let options = list(fields.next()?);
    let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
    Some(MountedFileSystem {
        kind: text(fields.next()?),
        source: text(fields.next()?),
        options,
        system_options: fields.next().map(list).unwrap_or_default(),
        point,
        root,
        number: own,
        parent,
        device: mount.device,
    })
}

impl MountedFileSystem {
    /// Whether it is on the block device at a path, or on the file there through a loop device. Nothing where something else is at the path, or nothing.
    #[must_use]
    pub fn is_on(&self, path: &Path) -> Option<bool> {
        use std::os::unix::fs::{FileTypeExt, MetadataExt};
        let found = std::fs::metadata(path).ok()?;
        if found.file_type().is_block_device() {
            return Some(found.rdev() == self.device);
        }
        if !found.is_file() {
            return None;
        }
        let (major, minor) = (rustix::fs::major(self.device), rustix::fs::minor(self.device));
        let backing = std::fs::read(format!("/sys/dev/block/{major}:{minor}/loop/backing_file")).ok()?;
        let backing = PathBuf::from(OsString::from_vec(backing.trim_ascii_end().to_vec()));
        let path = std::fs::canonicalize(path).ok()?;
        Some(backing == path)
    }

    /// Whether it is what lies at a path, as where that is bound. Nothing where nothing is at the path. Links in it are followed, unless it is on a file system that somebody
    /// else serves, which is not touched.
    #[must_use]
    pub fn is_bound_from(&self, path: &Path) -> Option<bool> {
        let table = Table::read().ok()?;
        let on = table.under(path)?;
        let is_served = is_fuse(on.kind.as_bytes()) || SERVED.contains(&on.kind.as_bytes());
        let path = match is_served {
            true => path.to_path_buf(),
            false => std::fs::canonicalize(path).ok()?,
        };
        let on = table.under(&path)?;
        let below = path.strip_prefix(&on.point).ok()?;
        Some(self.device == on.device && self.root == on.root.join(below))
    }

    /// What of the file system is seen, as a path in it: `/`, or what was bound.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// In few words: `tmpfs on tmpfs`.
    #[must_use]
    pub fn shown(&self) -> String {
        format!("{} ({})", self.source, self.kind)
    }
}

/// Follows the list of mounted file systems, from when it is made on.
#[derive(Debug)]
pub struct MountChanges(AsyncFd<File>);

impl MountChanges {
    /// Begins to follow it. For tasks of a runtime with input and output.
    ///
    /// # Errors
    /// When the list cannot be read or polled.
    #[expect(
        deprecated,
        reason = "its replacement is for what may lie about its descriptor, and unsafe; a file keeps its own while it lives"
    )]
    pub fn follow() -> io::Result<MountChanges> {
        AsyncFd::with_interest(MountList::open()?.0, Interest::PRIORITY).map(MountChanges)
    }

    /// Waits until something was mounted, unmounted or mounted otherwise.
    ///
    /// # Errors
    /// When the list cannot be polled any more.
    pub async fn changed(&mut self) -> io::Result<()> {
        let mut ready = self.0.ready(Interest::PRIORITY).await?;
        ready.clear_ready();
        Ok(())
    }
}

/// The list, open for looking at it again.
#[derive(Debug)]
pub(crate) struct MountList(File);

impl MountList {
    /// Opens the list.
    pub(crate) fn open() -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(Self(File::from(rustix::fs::open(LIST, flags, Mode::empty())?)))
    }

    /// The same list once more, to poll for `POLLPRI`, which says that it has changed.
    pub(crate) fn descriptor(&self) -> io::Result<OwnedFd> {
        self.0.as_fd().try_clone_to_owned()
    }

    /// All mounted file systems; of several at one point the last is on top.
    pub(crate) fn read(&mut self) -> io::Result<Vec<Mount>> {
        let mut text = Vec::new();
        self.0.rewind()?;
        self.0.read_to_end(&mut text)?;
        Ok(parse(&text))
    }
}

/// The user who answers for a file system and can claim any owner for its files; nobody for a file system of the
/// kernel's or of root's.
pub(crate) fn server_of(device: u64) -> Option<u32> {
    // What a program serves has no device of its own, and so the major number 0.
    if rustix::fs::major(device) != 0 {
        return None;
    }
    let mounts = MountList::open().and_then(|mut list| list.read()).ok()?;
    mounts
        .iter()
        .find(|mount| mount.device == device)
        .and_then(|mount| mount.server)
}

fn parse(text: &[u8]) -> Vec<Mount> {
    text.split(|byte| *byte == b'\n').filter_map(parse_line).collect()
}

/// One line, `proc_pid_mountinfo(5)`: number, parent, device, root, mount point, options, optional fields, a dash, type,
/// source, options of the file system.
fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let number = fields.next()?;
    let device = std::str::from_utf8(fields.nth(1)?).ok()?;
    let (major, minor) = device.split_once(':')?;
    let point = unescape(fields.nth(1)?);
    let point = point.strip_suffix(b"/").unwrap_or(&point);
    let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
    let kind = fields.next()?;
    let is_fuse = is_fuse(kind);
    let user = fields.nth(1).and_then(|options| {
        let user = options
            .split(|byte| *byte == b',')
            .find_map(|option| option.strip_prefix(b"user_id="))?;
        std::str::from_utf8(user).ok()?.parse().ok()
    });
    Some(Mount {
        // Where the whole machine lies on such a file system, nothing is gained by staying away from it.
        served: !point.is_empty() && (is_fuse || SERVED.contains(&kind)),
        point: point.into(),
        number: number.into(),
        device: rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?),
        server: user.filter(|user| is_fuse && *user != 0),
    })
}

fn is_fuse(kind: &[u8]) -> bool {
    kind == b"fuse" || kind == b"fuseblk" || kind.starts_with(b"fuse.")
}

/// Spaces and the like are written as a backslash and three octal digits.
#[must_use]
pub fn unescape(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| *first == b'\\');
        let number = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        plain.push(number.unwrap_or(*first));
        rest = if number.is_some() { &after[3..] } else { after };
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_where_what_and_who() {
        let found = parse(
            b"21 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n\
              30 21 0:40 / /home/a\\040b rw,nosuid shared:1 master:2 - fuse.sshfs a@b: rw,user_id=1000,group_id=1000\n\
              31 21 0:41 / /net rw - nfs4 server:/ rw\n\
              32 21 0:42 / /root-fuse rw - fuse none rw,user_id=0\n",
        );
        let seen: Vec<_> = found
            .iter()
            .map(|mount| (&*mount.point, mount.device, mount.served, mount.server))
            .collect();
        let device = rustix::fs::makedev;
        assert_eq!(
            seen,
            [
                (&b""[..], device(8, 1), false, None),
                (b"/home/a b", device(0, 40), true, Some(1000)),
                (b"/net", device(0, 41), true, None),
                (b"/root-fuse", device(0, 42), true, None),
            ]
        );
    }

    #[test]
    fn the_nearest_mount_point_counts() {
        let table = b"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
            23 22 8:2 / /srv rw,noatime shared:1 - ext4 /dev/sda2 rw\n\
            24 23 0:30 / /srv/my\\040files rw - nfs4 host:/files rw\n";
        let mounts = Mounts::of(&parse(table));
        for (path, point) in [
            ("/etc/hosts", "/"),
            ("/srv/a", "/srv"),
            ("/srvant/a", "/"),
            ("/srv/my files/a/b", "/srv/my files"),
        ] {
            assert_eq!(mounts.point_above(Path::new(path)), Path::new(point));
        }
    }

    #[test]
    fn what_is_on_top_and_not_hidden_is_reached() {
        let table = Table::parse(
            b"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
              30 22 0:30 / /srv/a rw - tmpfs below rw\n\
              25 30 0:31 / /srv/a rw - tmpfs top rw\n\
              40 22 0:32 / /opt/b rw - tmpfs hidden rw\n\
              41 22 0:33 / /opt rw - tmpfs over rw\n\
              42 22 8:1 /var/x /mnt rw - ext4 /dev/sda1 rw\n",
        );
        let reached = |path: &str| table.under(Path::new(path)).map(|found| found.source.as_str());
        assert_eq!(reached("/srv/a/file"), Some("top"));
        assert_eq!(reached("/opt/b"), Some("over"));
        assert_eq!(reached("/etc"), Some("/dev/sda1"));
        let bound = table.under(Path::new("/mnt")).expect("it is mounted");
        assert_eq!((bound.root(), bound.number), (Path::new("/var/x"), 42));
        // In a root that is no mount point.
        let table =
            Table::parse(b"50 49 0:30 / /a rw - tmpfs below rw\n51 50 0:31 / /a/b rw - tmpfs top rw\n");
        let reached = |path: &str| table.under(Path::new(path)).map(|found| found.source.as_str());
        assert_eq!((reached("/"), reached("/a/b/c")), (None, Some("top")));
    }

    #[test]
    fn the_real_table_is_read() {
        let mounts = Mounts::read().unwrap();
        assert_eq!(
            mounts.point_above(Path::new("/proc/self/status")),
            Path::new("/proc")
        );
    }
}
