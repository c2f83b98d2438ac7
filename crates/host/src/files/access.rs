//! Access lists (`acl(5)`): who else than owner, group and others may do what.

use super::entry::descriptor_path;
use super::{Entry, FileError};
use rustix::io::{Errno, Result};
use std::fmt::Write;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;

/// Where Linux keeps the list of a file or directory itself.
pub(super) const OWN: &str = "system.posix_acl_access";
/// Where it keeps the list that a directory gives to what is made in it.
const INHERITED: &str = "system.posix_acl_default";

impl Entry {
    /// The access lists of the entry itself, and those that a directory hands on, as text; nothing if there are none.
    ///
    /// Written as `getfacl(1)` does, users and groups by number: `user:65534:rw-, default:group:100:r-x`.
    pub fn access_lists(&self) -> std::result::Result<Option<String>, FileError> {
        let mut path = format!("/proc/self/fd/{}/", self.directory().as_fd().as_raw_fd()).into_bytes();
        path.extend_from_slice(self.name().as_bytes());
        let mut text = String::new();
        for (name, prefix) in [(OWN, ""), (INHERITED, "default:")] {
            let mut buffer = vec![0; 256];
            let found = loop {
                match rustix::fs::lgetxattr(&path[..], name, &mut buffer[..]) {
                    Ok(length) => break Some(length),
                    Err(Errno::RANGE) if buffer.len() < 64 * 1024 => buffer.resize(64 * 1024, 0),
                    Err(Errno::NODATA | Errno::NOTSUP | Errno::NOENT) => break None,
                    Err(error) => return Err(self.failed("read the access list of", error)),
                }
            };
            if let Some(length) = found {
                describe(&buffer[..length], prefix, &mut text);
            }
        }
        Ok((!text.is_empty()).then_some(text))
    }

    /// Removes the access lists of the entry itself, and those that a directory hands on; fine if there are none.
    pub fn remove_access_lists(&self) -> std::result::Result<(), FileError> {
        let attempted = "remove the access list of";
        let (handle, stat) = self.open_handle(attempted)?;
        if stat.is_link() {
            return Ok(());
        }
        let path = descriptor_path(&handle);
        for name in [OWN, INHERITED] {
            match rustix::fs::removexattr(&path, name) {
                Ok(()) | Err(Errno::NODATA | Errno::NOTSUP) => {}
                Err(Errno::ACCESS | Errno::INVAL) if name == INHERITED && !stat.is_directory() => {}
                Err(error) => return Err(self.failed(attempted, error)),
            }
        }
        Ok(())
    }
}

/// Removes the list that a new file was given by the directory that it was made in.
pub(super) fn remove(file: impl AsFd) -> Result<()> {
    match rustix::fs::fremovexattr(file, OWN) {
        Err(Errno::NODATA | Errno::NOTSUP) => Ok(()),
        result => result,
    }
}

/// Appends the entries that say more than the mode does. The form is the kernel's: a version, then for each entry a
/// tag, its permissions, and the number of the user or group.
fn describe(list: &[u8], prefix: &str, text: &mut String) {
    const USER: u16 = 0x02;
    const GROUP: u16 = 0x08;
    let entries = list.get(4..).unwrap_or_default().chunks_exact(8);
    for entry in entries {
        let half = |at: usize| u16::from_le_bytes([entry[at], entry[at + 1]]);
        let number = u32::from_le_bytes([entry[4], entry[5], entry[6], entry[7]]);
        let whom = match half(0) {
            USER => format!("user:{number}"),
            GROUP => format!("group:{number}"),
            // Everything that a directory hands on is more than its mode says.
            tag if !prefix.is_empty() => match tag {
                0x01 => "user:".to_owned(),
                0x04 => "group:".to_owned(),
                0x10 => "mask:".to_owned(),
                _ => "other:".to_owned(),
            },
            _ => continue,
        };
        let permissions = half(2);
        let letter = |bit: u16, letter: char| if permissions & bit == 0 { '-' } else { letter };
        let separator = if text.is_empty() { "" } else { ", " };
        let _ = write!(
            text,
            "{separator}{prefix}{whom}:{}{}{}",
            letter(4, 'r'),
            letter(2, 'w'),
            letter(1, 'x')
        );
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_entries_beyond_the_mode_are_described() {
        let mut list = vec![2, 0, 0, 0];
        for (tag, permissions, number) in [
            (0x01u16, 6u16, u32::MAX),
            (0x02, 5, 65_534),
            (0x04, 4, u32::MAX),
            (0x10, 7, u32::MAX),
            (0x20, 0, u32::MAX),
        ] {
            list.extend_from_slice(&tag.to_le_bytes());
            list.extend_from_slice(&permissions.to_le_bytes());
            list.extend_from_slice(&number.to_le_bytes());
        }
        let mut text = String::new();
        super::describe(&list, "", &mut text);
        assert_eq!(text, "user:65534:r-x");
        super::describe(&list[..12], "default:", &mut text);
        assert_eq!(text, "user:65534:r-x, default:user::rw-");
    }
}
