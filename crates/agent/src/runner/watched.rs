//! The watches of a program's files.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use setpoint_host::files::AbsolutePath;
use setpoint_host::sync::Mutex;
use setpoint_host::watch::{Depth, Follow, Subscriber, WatchEvent, WatchHandle, WatchSink, WatchToken};
use setpoint_programs::local_machine::LocalMachine;

use crate::messages::Message;

/// The watches of a program's files.
pub(super) struct Watched {
    subscriber: Subscriber,
    handles: Vec<((PathBuf, Depth), WatchHandle)>,
    sender: Sender<Message>,
}

impl Watched {
    /// Watches nothing yet. What changes is told as [`Message::Changed`].
    pub(super) fn new(machine: &LocalMachine, sender: Sender<Message>) -> Watched {
        let told = sender.clone();
        let changed = Changed(Mutex::new(sender));
        let hub = &machine.host.watches;
        Watched {
            subscriber: hub.subscribe(Arc::new(changed)),
            handles: Vec::new(),
            sender: told,
        }
    }

    /// Watches the files that something was made of, and no others; where something is wrong, their directories too, as what is missing may
    /// come in any of them. Answers why something cannot be watched.
    pub(super) fn follow(&mut self, files: Vec<PathBuf>, is_wrong: bool) -> Option<String> {
        let mut wanted: Vec<(PathBuf, Depth)> = Vec::new();
        if is_wrong {
            let directories = files.iter().filter_map(|file| file.parent());
            wanted.extend(directories.map(|directory| (directory.to_owned(), Depth::Children)));
        }
        wanted.extend(files.into_iter().map(|file| (file, Depth::Entry)));
        wanted.sort();
        wanted.dedup();
        let (failed, is_more) = self.set(wanted);
        if is_more {
            // They may have changed since they were read, before somebody watched.
            let _ = self.sender.send(Message::Changed);
        }
        failed
    }

    /// Watches these and no others. Answers why something cannot be watched, and whether there are new ones.
    fn set(&mut self, wanted: Vec<(PathBuf, Depth)>) -> (Option<String>, bool) {
        self.handles.retain(|(place, _)| wanted.contains(place));
        let (mut failed, before) = (None, self.handles.len());
        for (path, depth) in wanted {
            if self
                .handles
                .iter()
                .any(|((known, at), _)| *known == path && *at == depth)
            {
                continue;
            }
            let Ok(absolute) = AbsolutePath::new(path.clone()) else {
                continue;
            };
            match self
                .subscriber
                .watch(&absolute, depth, Follow::Target, WatchToken(0))
            {
                Ok(handle) => self.handles.push(((path, depth), handle)),
                Err(error) => failed = Some(error.to_string()),
            }
        }
        (failed, self.handles.len() > before)
    }
}

/// Passes news of watches on.
struct Changed(Mutex<Sender<Message>>);

impl WatchSink for Changed {
    fn dirty(&self, _: &[WatchEvent]) {
        let sender = self.0.lock();
        let _ = sender.send(Message::Changed);
    }
}
