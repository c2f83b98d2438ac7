//! The last seen state of the selections that programs follow. A host that starts while the store is away continues with it.
//!
//! Each selection has a file of its own. Secrets are encrypted in it as in the store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use setpoint_host::files::{AbsolutePath, Committer, Entry as FileEntry};
use setpoint_host::state::{StateDirectory, Stored};
use setpoint_world::{Entry, Key, Revision, Selection};
use sha2::{Digest, Sha256};

/// The version of the form of the files.
const VERSION: u32 = 1;

/// The time between two writes of one file, at least. A crash loses what was seen meanwhile.
pub(super) const WRITE_EVERY: Duration = Duration::from_secs(1);

/// A directory with one file for each selection.
#[derive(Debug, Clone)]
pub(super) struct Memories {
    directory: AbsolutePath,
    committer: Arc<Committer>,
}

impl Memories {
    pub(super) fn new(directory: AbsolutePath, committer: Arc<Committer>) -> Memories {
        Memories { directory, committer }
    }

    pub(super) fn of(&self, selection: &Selection) -> Memory {
        let (form, text) = match selection {
            Selection::Key(key) => ("key", key.as_str()),
            Selection::Prefix(prefix) => ("prefix", &**prefix),
        };
        let hash = Sha256::digest(format!("{form} {text}").as_bytes());
        let name = hash[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        Memory {
            memories: self.clone(),
            selection: text.to_owned(),
            name,
        }
    }
}

/// The memory of one selection.
#[derive(Debug, Clone)]
pub(super) struct Memory {
    memories: Memories,
    selection: String,
    name: String,
}

/// The form of a file.
#[derive(Serialize, Deserialize)]
struct Remembered {
    selection: String,
    /// When it was seen, in seconds since 1970.
    seen: u64,
    entries: BTreeMap<String, String>,
}

/// A remembered state.
pub(super) struct Recalled {
    pub(super) entries: BTreeMap<Key, Entry>,
    /// How long ago it was seen.
    pub(super) age: Duration,
}

impl Memory {
    /// Keeps a state. A value that is no text was written by no host of ours, and is left out.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn remember(&self, entries: &BTreeMap<Key, Entry>) -> Result<(), String> {
        let text = |entry: &Entry| Some((entry.key.as_str().to_owned(), entry.text()?.to_owned()));
        let remembered = Remembered {
            selection: self.selection.clone(),
            seen: now().as_secs(),
            entries: entries.values().filter_map(text).collect(),
        };
        let bytes = serde_json::to_vec(&remembered).expect("it has only texts and numbers");
        let Memories { directory, committer } = &self.memories;
        let write = || {
            FileEntry::create_directories(directory, 0o700, 0o700)?;
            let directory = StateDirectory::open_existing(directory)?;
            directory.write_versioned(committer, &self.name, VERSION, &bytes)
        };
        write().map_err(|error| error.to_string())
    }

    /// The last state that was kept; none if there is none of use.
    pub(super) fn recall(&self) -> Option<Recalled> {
        let directory = StateDirectory::open_existing(&self.memories.directory).ok()?;
        let Stored::Payload(payload) = directory.load(&self.name, VERSION, true).ok()? else {
            return None;
        };
        let remembered: Remembered = serde_json::from_slice(&payload).ok()?;
        if remembered.selection != self.selection {
            return None;
        }
        let entries = remembered.entries.into_iter().filter_map(|(key, value)| {
            let key = Key::new(key).ok()?;
            let entry = Entry {
                key: key.clone(),
                value: value.into_bytes().into(),
                created: Revision::default(),
                modified: Revision::default(),
                lease: None,
            };
            Some((key, entry))
        });
        Some(Recalled {
            entries: entries.collect(),
            age: now().saturating_sub(Duration::from_secs(remembered.seen)),
        })
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "the file outlives the process, so its age needs the clock of the system"
)]
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_is_recalled_as_it_was_last_seen() {
        let place = tempfile::tempdir().unwrap();
        let directory = AbsolutePath::new(place.path().join("seen")).unwrap();
        let memories = Memories::new(directory, Arc::new(Committer::default()));
        let (one, other) = (Selection::prefix("/strings/"), Selection::prefix("/exported/"));
        assert!(memories.of(&one).recall().is_none());
        let entry = |key: &str, value: &str| {
            let key = Key::new(key).unwrap();
            let entry = Entry {
                key: key.clone(),
                value: value.as_bytes().into(),
                created: Revision::default(),
                modified: Revision::default(),
                lease: None,
            };
            (key, entry)
        };
        for value in ["old", "new"] {
            let seen = BTreeMap::from([entry("/strings/a", value)]);
            memories.of(&one).remember(&seen).unwrap();
            assert_eq!(memories.of(&one).recall().unwrap().entries, seen);
        }
        assert!(memories.of(&other).recall().is_none());
    }
}
