//! Which file systems are mounted where, who serves them, and when that changes: told without touching them, since looking
//! at one that hangs would hang too.

use rustix::fs::{Mode, OFlags};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

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
    let is_fuse = kind == b"fuse" || kind == b"fuseblk" || kind.starts_with(b"fuse.");
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

/// Spaces and the like are written as a backslash and three octal digits.
fn unescape(text: &[u8]) -> Vec<u8> {
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
    fn the_real_table_is_read() {
        let mounts = Mounts::read().unwrap();
        assert_eq!(
            mounts.point_above(Path::new("/proc/self/status")),
            Path::new("/proc")
        );
    }
}
