//! Extended attributes: access control lists, security contexts, a user's own.

use super::entry::descriptor_path;
use super::{Entry, FileError};
use rustix::fs::XattrFlags;
use rustix::io::{Errno, Result};
use std::os::fd::AsFd;

/// Where SELinux keeps a file's context.
pub(super) const SELINUX: &str = "security.selinux";

/// Attributes that speak about the contents and must not outlive them. The kernel drops them at a write, too.
const ABOUT_CONTENTS: &[&[u8]] = &[b"security.capability", b"security.ima", b"security.evm"];

impl Entry {
    /// An extended attribute of the entry itself. Nothing, if it has none of that name or its file system has no
    /// attributes.
    pub fn attribute(&self, name: &str) -> std::result::Result<Option<Vec<u8>>, FileError> {
        let attempted = "read an extended attribute of";
        let (handle, _) = self.open_handle(attempted)?;
        let path = descriptor_path(&handle);
        match growing(|buffer| rustix::fs::getxattr(path.as_str(), name, buffer)) {
            Ok(value) => Ok(Some(value)),
            Err(Errno::NODATA | Errno::NOTSUP) => Ok(None),
            Err(error) => Err(self.failed(attempted, error)),
        }
    }

    /// Sets an extended attribute of the entry itself.
    pub fn set_attribute(&self, name: &str, value: &[u8]) -> std::result::Result<(), FileError> {
        let attempted = "set an extended attribute of";
        let (handle, _) = self.open_handle(attempted)?;
        rustix::fs::setxattr(descriptor_path(&handle), name, value, XattrFlags::empty())
            .map_err(|error| self.failed(attempted, error))
    }

    /// Removes an extended attribute of the entry itself; fine if there is none.
    pub fn remove_attribute(&self, name: &str) -> std::result::Result<(), FileError> {
        let attempted = "remove an extended attribute of";
        let (handle, _) = self.open_handle(attempted)?;
        match rustix::fs::removexattr(descriptor_path(&handle), name) {
            Ok(()) | Err(Errno::NODATA | Errno::NOTSUP) => Ok(()),
            Err(error) => Err(self.failed(attempted, error)),
        }
    }

    /// The SELinux context of the entry itself, without its final NUL.
    pub fn security_context(&self) -> std::result::Result<Option<Vec<u8>>, FileError> {
        let context = self.attribute(SELINUX)?;
        Ok(context.map(|mut context| {
            while context.last() == Some(&0) {
                context.pop();
            }
            context
        }))
    }
}

/// Which attributes go without saying to the file that takes another one's place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keep {
    /// The SELinux context.
    pub(super) context: bool,
    /// The access list.
    pub(super) access_list: bool,
}

/// Copies what says who may do what with a file, and what a user noted on it, from one to the other.
pub(super) fn copy(from: impl AsFd, to: impl AsFd, keep: Keep) -> Result<()> {
    let names = match growing(|buffer| rustix::fs::flistxattr(&from, buffer)) {
        Ok(names) => names,
        Err(Errno::NOTSUP) => return Ok(()),
        Err(error) => return Err(error),
    };
    for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        if ABOUT_CONTENTS.contains(&name)
            || (!keep.context && name == SELINUX.as_bytes())
            || (!keep.access_list && name == super::access::OWN.as_bytes())
        {
            continue;
        }
        let value = match growing(|buffer| rustix::fs::fgetxattr(&from, name, buffer)) {
            Ok(value) => value,
            Err(Errno::NODATA) => continue,
            Err(error) => return Err(error),
        };
        rustix::fs::fsetxattr(&to, name, &value, XattrFlags::empty())?;
    }
    Ok(())
}

/// Calls with a larger and larger buffer until the answer fits.
fn growing(mut call: impl FnMut(&mut [u8]) -> Result<usize>) -> Result<Vec<u8>> {
    let mut buffer = vec![0; 512];
    loop {
        match call(&mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                return Ok(buffer);
            }
            // The kernel's own limit for both names and values is 64 KiB.
            Err(Errno::RANGE) if buffer.len() < 128 * 1024 => buffer.resize(buffer.len() * 4, 0),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_grows_until_the_answer_fits_or_nothing_could() {
        let answer = |length: usize| {
            move |buffer: &mut [u8]| match buffer.get_mut(..length) {
                Some(place) => {
                    place.fill(7);
                    Ok(length)
                }
                None => Err(Errno::RANGE),
            }
        };
        // The kernel's own limit is 64 KiB.
        for length in [0, 1, 512, 513, 2048, 2049, 64 * 1024] {
            let mut calls = 0;
            let found = growing(|buffer| {
                calls += 1;
                answer(length)(buffer)
            });
            assert_eq!(found, Ok(vec![7; length]));
            assert!(calls <= 5, "{calls} calls for {length} bytes");
        }
        assert_eq!(growing(answer(1 << 20)), Err(Errno::RANGE));
        assert_eq!(growing(|_| Err(Errno::NODATA)), Err(Errno::NODATA));
    }
}
