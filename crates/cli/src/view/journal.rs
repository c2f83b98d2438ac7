//! The system's log: what people are told, with the resource and the event that it is about as fields, so that
//! `journalctl 'SETPOINT_RESOURCE=file[/etc/motd]'` finds it. What the log does not take goes to standard error, which leads there as well.

use setpoint_engine::{Event, EventKind, RunSummary};
use setpoint_graph::ResourceId;
use setpoint_host::journal::{JOURNAL, JournalEntry, LogSocket};
use setpoint_programs::report::Said;

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
pub(super) struct Journal(LogSocket);

impl Journal {
    /// To the log of this machine, if it has one.
    pub(super) fn open() -> Option<Journal> {
        LogSocket::at(JOURNAL).ok().map(Journal)
    }

    /// Tells something. Answers whether the log has taken it.
    pub(super) fn log(&self, said: &Said, about: &About) -> bool {
        let message = anstream::adapter::strip_str(&said.text).to_string();
        if message.is_empty() {
            return true;
        }
        let mut entry = JournalEntry::new()
            .with("MESSAGE", &message)
            .with("PRIORITY", (said.importance as u8).to_string())
            .with("SYSLOG_IDENTIFIER", "setpoint");
        if let Some(id) = &about.resource {
            entry = entry
                .with("SETPOINT_RESOURCE", id.to_string())
                .with("SETPOINT_KIND", id.kind.as_bytes())
                .with("SETPOINT_NAME", id.name.as_bytes());
        }
        if let Some(event) = about.event {
            entry = entry.with("SETPOINT_EVENT", event);
        }
        self.0.send(&entry).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;
    use std::time::Duration;

    use super::*;
    use setpoint_programs::report::Importance;

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
        let journal = Journal(LogSocket::at(&path).unwrap());
        let mut subjects = Subjects::default();
        let (field, is, want) = ("mode".into(), "0600".into(), "0644".into());
        subjects.of(&event(
            1,
            EventKind::Repaired {
                field,
                effect: setpoint_engine::Effect::Change,
                later: true,
                is,
                want,
            },
        ));
        let ended = EventKind::RunEnded {
            result: RunSummary::Drift,
            duration: Duration::ZERO,
            error: None,
            foreseen: None,
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
}
