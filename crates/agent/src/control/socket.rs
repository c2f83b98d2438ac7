//! Where the socket is, and how it is made and found.
//!
//! A socket's address holds a path of at most 107 bytes, and a prefix may be longer. So both sides go by a descriptor of the directory,
//! `/proc/self/fd/N/control.sock`; no directory on the way can be exchanged then either.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, chmodat, openat, renameat, statat, unlinkat};

/// Its name in the prefix.
pub(super) const NAME: &str = "control.sock";

/// The name under which it is made.
const MAKING: &str = "control.sock.new";

/// Bytes of a path that an address takes.
const LONGEST_ADDRESS: usize = 107;

/// The socket's name in the file system. It goes away when this is dropped, which must be while the lock of the prefix is held.
pub(crate) struct SocketFile(OwnedFd);

/// Makes the socket in a prefix whose lock we hold: what lies in its place is of a process that is no more.
pub(super) fn bind(prefix: &Path) -> io::Result<(UnixListener, SocketFile)> {
    let directory = open(prefix)?;
    remove(&directory, MAKING)?;
    let listener = UnixListener::bind(address(&directory, prefix, MAKING)?)?;
    // Nobody can have come in: the directory is ours alone, and nothing has the final name yet.
    chmodat(&directory, MAKING, Mode::RUSR | Mode::WUSR, AtFlags::empty())?;
    remove(&directory, NAME)?;
    renameat(&directory, MAKING, &directory, NAME)?;
    listener.set_nonblocking(true)?;
    Ok((listener, SocketFile(directory)))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = remove(&self.0, NAME);
    }
}

/// Connects to the process of a prefix.
pub(super) fn connect(prefix: &Path) -> io::Result<UnixStream> {
    let directory = open(prefix)?;
    UnixStream::connect(address(&directory, prefix, NAME)?)
}

fn open(prefix: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(CWD, prefix, flags, Mode::empty())?)
}

fn address(directory: &OwnedFd, prefix: &Path, name: &str) -> io::Result<PathBuf> {
    let by_descriptor = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
    if by_descriptor.exists() {
        return Ok(by_descriptor.join(name));
    }
    // Without /proc only a short path can be told.
    let path = prefix.join(name);
    if path.as_os_str().len() > LONGEST_ADDRESS {
        let why = format!("without /proc its path can have {LONGEST_ADDRESS} bytes, and has more");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    Ok(path)
}

/// Removes a socket or a link of that name, if there is one. Anything else is none of ours.
fn remove(directory: &OwnedFd, name: &str) -> io::Result<()> {
    let found = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => FileType::from_raw_mode(found.st_mode),
        Err(rustix::io::Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if !matches!(found, FileType::Socket | FileType::Symlink) {
        let why = format!("something else has the name `{name}`, and is left alone");
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
    }
    Ok(unlinkat(directory, name, AtFlags::empty())?)
}

/// Who holds the lock of a prefix. The number in its file outlives a process that was killed, and may be another one's by now: so it counts
/// only while that process has the file open, unless that cannot be seen.
pub(super) fn holder(prefix: &Path) -> Option<u32> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, prefix.join("lock"), flags, Mode::empty()).ok()?);
    let lock = file.metadata().ok()?;
    let mut text = String::new();
    io::Read::read_to_string(&mut io::Read::take(file, 32), &mut text).ok()?;
    let pid: u32 = text.trim().parse().ok()?;
    let has_it_open = match std::fs::read_dir(format!("/proc/{pid}/fd")) {
        Ok(descriptors) => descriptors
            .flatten()
            .filter_map(|descriptor| std::fs::metadata(descriptor.path()).ok())
            .any(|open| (open.dev(), open.ino()) == (lock.dev(), lock.ino())),
        Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
    };
    has_it_open.then_some(pid)
}

/// Whether something lies in the socket's place that is none, and so is left there by every process.
pub(super) fn is_taken(prefix: &Path) -> bool {
    let found = statat(CWD, prefix.join(NAME), AtFlags::SYMLINK_NOFOLLOW);
    found.is_ok_and(|found| {
        !matches!(
            FileType::from_raw_mode(found.st_mode),
            FileType::Socket | FileType::Symlink
        )
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_socket_is_private_replaces_what_a_dead_process_left_and_goes_away() {
        let place = tempfile::tempdir().unwrap();
        let victim = place.path().join("victim");
        std::fs::write(&victim, "kept").unwrap();
        let path = place.path().join(NAME);
        drop(UnixListener::bind(&path).unwrap());
        symlink(&victim, place.path().join(MAKING)).unwrap();
        let (listener, file) = bind(place.path()).unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        listener.set_nonblocking(false).unwrap();
        let mut client = connect(place.path()).unwrap();
        let _accepted = listener.accept().unwrap();
        client.write_all(b"x").unwrap();
        drop(file);
        assert!(!path.exists() && !place.path().join(MAKING).exists());
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "kept");
        // A link in its place is replaced and not followed; anything else is left alone.
        symlink(&victim, &path).unwrap();
        drop(bind(place.path()).unwrap());
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "kept");
        std::fs::write(&path, "mine").unwrap();
        assert!(bind(place.path()).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    }

    #[test]
    fn a_long_path_is_no_hindrance() {
        let place = tempfile::tempdir().unwrap();
        let deep = place.path().join("d".repeat(120)).join("e".repeat(120));
        std::fs::create_dir_all(&deep).unwrap();
        let (listener, file) = bind(&deep).unwrap();
        assert!(connect(&deep).is_ok());
        drop((listener, file));
        assert!(connect(&deep).is_err());
    }
}
