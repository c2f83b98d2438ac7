//! Which file system a path belongs to, told without touching it: looking at one that hangs would hang too.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Where file systems are mounted.
#[derive(Debug, Clone, Default)]
pub struct Mounts(Vec<PathBuf>);

impl Mounts {
    /// As this process sees them now.
    pub fn read() -> io::Result<Self> {
        Ok(Self::parse(&std::fs::read("/proc/self/mountinfo")?))
    }

    /// Of the text of `/proc/PID/mountinfo` (`proc_pid_mountinfo(5)`).
    fn parse(table: &[u8]) -> Self {
        let lines = table.split(|byte| *byte == b'\n');
        let points = lines.filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
        Self(points.map(unescape).collect())
    }

    /// The mount point nearest above an absolute path, by its text alone: links are not followed.
    pub fn point_above(&self, path: &Path) -> &Path {
        let above = self.0.iter().filter(|point| path.starts_with(point));
        above
            .max_by_key(|point| point.as_os_str().len())
            .map_or(Path::new("/"), PathBuf::as_path)
    }
}

/// White space and backslashes stand there in octal.
fn unescape(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|_| *first == b'\\');
        let code = octal
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_mount_point_counts() {
        let table = b"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
            23 22 8:2 / /srv rw,noatime shared:1 - ext4 /dev/sda2 rw\n\
            24 23 0:30 / /srv/my\\040files rw - nfs4 host:/files rw\n";
        let mounts = Mounts::parse(table);
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
