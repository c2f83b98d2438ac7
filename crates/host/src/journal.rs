//! The system's log, by its native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL), and by that of `syslog(3)`.
//!
//! The protocols are small and written here, because what the libraries do is log everything of a whole program through a global.

use std::io::{self, IoSlice, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, sendmsg_addr};

/// Where the journal listens.
pub const JOURNAL: &str = "/run/systemd/journal/socket";

/// Where `syslog(3)` sends to.
pub const SYSLOG: &str = "/dev/log";

/// An entry of the journal that is put together.
#[derive(Debug, Default)]
pub struct JournalEntry(Vec<u8>);

impl JournalEntry {
    /// One without fields.
    #[must_use]
    pub fn new() -> JournalEntry {
        JournalEntry::default()
    }

    /// With one more field. Its name is of capital letters, digits and `_`; the journal drops a field that it does not like. What holds line
    /// feeds goes by its length.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl AsRef<[u8]>) -> JournalEntry {
        let (entry, value) = (&mut self.0, value.as_ref());
        entry.extend_from_slice(name.as_bytes());
        if value.contains(&b'\n') {
            entry.push(b'\n');
            entry.extend_from_slice(&(value.len() as u64).to_le_bytes());
        } else {
            entry.push(b'=');
        }
        entry.extend_from_slice(value);
        entry.push(b'\n');
        self
    }
}

/// What listens for datagrams at a path: the journal, or a daemon of `syslog(3)`.
#[derive(Debug)]
pub struct LogSocket {
    socket: UnixDatagram,
    path: PathBuf,
}

impl LogSocket {
    /// At a path. Nothing that is sent waits: what is not taken at once is not taken.
    ///
    /// # Errors
    /// When nothing is there, or the system gives no socket.
    pub fn at(path: impl AsRef<Path>) -> io::Result<LogSocket> {
        let path = path.as_ref();
        std::fs::symlink_metadata(path)?;
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(LogSocket {
            socket,
            path: path.to_path_buf(),
        })
    }

    /// Sends an entry to the journal, of whatever size.
    ///
    /// # Errors
    /// When it is not taken.
    pub fn send(&self, entry: &JournalEntry) -> io::Result<()> {
        match self.send_datagram(&entry.0) {
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::MSGSIZE.raw_os_error()) => {
                self.hand_over(&entry.0)
            }
            sent => sent,
        }
    }

    /// Sends bytes as one datagram.
    ///
    /// # Errors
    /// When it is not taken, which what is too long for a datagram never is.
    pub fn send_datagram(&self, bytes: &[u8]) -> io::Result<()> {
        self.socket.send_to(bytes, &self.path).map(drop)
    }

    /// Tells something that is too large for a datagram: in a file in memory that nobody can change any more.
    fn hand_over(&self, entry: &[u8]) -> io::Result<()> {
        let flags = MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC;
        let mut file = std::fs::File::from(memfd_create("setpoint-journal", flags)?);
        file.write_all(entry)?;
        fcntl_add_seals(
            &file,
            SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL,
        )?;
        let files = [file.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&files));
        let address = SocketAddrUnix::new(&self.path)?;
        let nothing = [IoSlice::new(&[])];
        sendmsg_addr(
            &self.socket,
            &address,
            &nothing,
            &mut control,
            SendFlags::NOSIGNAL,
        )?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek};
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

    use super::*;

    #[test]
    fn what_is_too_large_for_a_datagram_comes_in_a_sealed_file() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("socket");
        let log = UnixDatagram::bind(&path).unwrap();
        log.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let journal = LogSocket::at(&path).unwrap();
        let large = "x".repeat(4 << 20);
        journal.send(&JournalEntry::new().with("MESSAGE", large)).unwrap();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        recvmsg(&log, &mut [], &mut control, RecvFlags::empty()).unwrap();
        let files: Vec<OwnedFd> = control
            .drain()
            .flat_map(|message| match message {
                RecvAncillaryMessage::ScmRights(files) => files.collect(),
                _ => Vec::new(),
            })
            .collect();
        let mut file = std::fs::File::from(files.into_iter().next().expect("a file came"));
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("MESSAGE=xxx") && text.len() > 4 << 20);
        assert!(file.write_all(b"y").is_err(), "it is sealed");
    }

    #[test]
    fn without_a_log_nothing_is_taken() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("socket");
        assert!(LogSocket::at(&path).is_err());
        let log = UnixDatagram::bind(&path).unwrap();
        let journal = LogSocket::at(&path).unwrap();
        let entry = JournalEntry::new().with("MESSAGE", "x");
        drop(log);
        assert!(journal.send(&entry).is_err());
        // Nor by one that takes nothing for long.
        std::fs::remove_file(&path).unwrap();
        let _full = UnixDatagram::bind(&path).unwrap();
        assert!((0..10_000).any(|_| journal.send(&entry).is_err()));
    }
}
