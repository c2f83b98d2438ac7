//! The system's log, by its native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL): what people are told, with the resource and the event that
//! it is about as fields, so that `journalctl 'SETPOINT_RESOURCE=file[/etc/motd]'` finds it.
//!
//! The protocol is small and written here, because what the libraries do is log everything of a whole program through a global; here one thread
//! tells what it would else write. What the log does not take goes to standard error, which leads there as well.

use std::io::{IoSlice, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, sendmsg_addr};
use setpoint_engine::{Event, EventKind, RunSummary};
use setpoint_graph::ResourceId;

use crate::output::Said;

/// Where the log listens.
const SOCKET: &str = "/run/systemd/journal/socket";

/// What lines are about.
#[derive(Debug, Clone, Default)]
pub(super) struct About {
    resource: Option<ResourceId>,
    event: Option<&'static str>,
}

/// Finds out what lines are about.
#[derive(Debug, Default)]
pub(super) struct Subjects {
    /// Whose repair was told of last; its lines come with the end of its run.
    repaired: Option<ResourceId>,
}

impl Subjects {
    /// What the lines of an event are about.
    pub(super) fn of(&mut self, event: &Event) -> About {
        let resource = event.identity();
        let name = match &event.what {
            EventKind::Repaired { .. } => {
                self.repaired.clone_from(&resource);
                event.what.name()
            }
            EventKind::RunEnded { result, .. } => {
                let repaired = self.repaired.take();
                match result {
                    RunSummary::Drift if repaired == resource => "repaired",
                    RunSummary::Drift => "drift",
                    _ => event.what.name(),
                }
            }
            what => what.name(),
        };
        About {
            resource,
            event: Some(name),
        }
    }
}

/// A connection to the log.
#[derive(Debug)]
pub(super) struct Journal {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Journal {
    /// To the log of this machine.
    pub(super) fn open() -> Option<Journal> {
        Journal::at(Path::new(SOCKET))
    }

    fn at(path: &Path) -> Option<Journal> {
        let socket = UnixDatagram::unbound().ok()?;
        // What is not taken at once is written elsewhere.
        socket.set_nonblocking(true).ok()?;
        path.exists().then(|| Journal {
            socket,
            path: path.to_path_buf(),
        })
    }

    /// Tells something. Answers whether the log has taken it.
    pub(super) fn log(&self, said: &Said, about: &About) -> bool {
        let message = anstream::adapter::strip_str(&said.text).to_string();
        if message.is_empty() {
            return true;
        }
        let mut entry = Vec::with_capacity(message.len() + 256);
        field("MESSAGE", &message, &mut entry);
        field("PRIORITY", &(said.importance as u8).to_string(), &mut entry);
        field("SYSLOG_IDENTIFIER", "setpoint", &mut entry);
        if let Some(id) = &about.resource {
            field("SETPOINT_RESOURCE", &id.to_string(), &mut entry);
            field("SETPOINT_KIND", &id.kind, &mut entry);
            field("SETPOINT_NAME", &id.name, &mut entry);
        }
        if let Some(event) = about.event {
            field("SETPOINT_EVENT", event, &mut entry);
        }
        match self.socket.send_to(&entry, &self.path) {
            Ok(_) => true,
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::MSGSIZE.raw_os_error()) => {
                self.hand_over(&entry).is_ok()
            }
            Err(_) => false,
        }
    }

    /// Tells something that is too large for a datagram: in a file in memory that nobody can change any more.
    fn hand_over(&self, entry: &[u8]) -> std::io::Result<()> {
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

/// A field. What holds line feeds goes by its length.
fn field(name: &str, value: &str, entry: &mut Vec<u8>) {
    entry.extend_from_slice(name.as_bytes());
    if value.contains('\n') {
        entry.push(b'\n');
        entry.extend_from_slice(&(value.len() as u64).to_le_bytes());
    } else {
        entry.push(b'=');
    }
    entry.extend_from_slice(value.as_bytes());
    entry.push(b'\n');
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek};
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

    use super::*;
    use crate::output::Importance;

    fn event(seq: u64, what: EventKind) -> Event {
        Event {
            what,
            time: Duration::ZERO,
            seq,
            kind: Some("file".into()),
            name: Some("/etc/motd".into()),
            group: None,
        }
    }

    fn said(text: &str) -> Said {
        Said {
            importance: Importance::Warning,
            text: text.to_owned(),
        }
    }

    #[test]
    fn lines_carry_the_resource_and_the_event_as_fields() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("socket");
        let log = UnixDatagram::bind(&path).unwrap();
        log.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let journal = Journal::at(&path).unwrap();
        let mut subjects = Subjects::default();
        let (field, is, want) = ("mode".into(), "0600".into(), "0644".into());
        subjects.of(&event(1, EventKind::Repaired { field, is, want }));
        let ended = EventKind::RunEnded {
            result: RunSummary::Drift,
            duration: Duration::ZERO,
            error: None,
        };
        let about = subjects.of(&event(2, ended.clone()));
        assert!(journal.log(&said("\u{1b}[1mfile[/etc/motd]\u{1b}[0m: repaired"), &about));
        let mut buffer = vec![0; 4096];
        let length = log.recv(&mut buffer).unwrap();
        assert_eq!(
            String::from_utf8_lossy(&buffer[..length]),
            "MESSAGE=file[/etc/motd]: repaired\nPRIORITY=4\nSYSLOG_IDENTIFIER=setpoint\n\
             SETPOINT_RESOURCE=file[/etc/motd]\nSETPOINT_KIND=file\nSETPOINT_NAME=/etc/motd\nSETPOINT_EVENT=repaired\n"
        );
        assert_eq!(
            subjects.of(&event(3, ended)).event,
            Some("drift"),
            "nothing was repaired"
        );
        // Several lines are one entry.
        assert!(journal.log(&said("a\nb"), &About::default()));
        let length = log.recv(&mut buffer).unwrap();
        assert!(buffer[..length].starts_with(b"MESSAGE\n\x03\0\0\0\0\0\0\0a\nb\nPRIORITY=4\n"));
    }

    #[test]
    fn what_is_too_large_for_a_datagram_comes_in_a_sealed_file() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("socket");
        let log = UnixDatagram::bind(&path).unwrap();
        log.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let journal = Journal::at(&path).unwrap();
        let large = "x".repeat(4 << 20);
        assert!(journal.log(&said(&large), &About::default()));
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
        assert!(Journal::at(&path).is_none());
        let log = UnixDatagram::bind(&path).unwrap();
        let journal = Journal::at(&path).unwrap();
        drop(log);
        assert!(!journal.log(&said("x"), &About::default()));
        // Nor by one that takes nothing for long.
        std::fs::remove_file(&path).unwrap();
        let _full = UnixDatagram::bind(&path).unwrap();
        assert!((0..10_000).any(|_| !journal.log(&said("x"), &About::default())));
    }
}
