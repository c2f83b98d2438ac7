//! The named values of this host: what the kind `value` sets and the functions `value.get*` read.
//!
//! Each is kept in a file of its own, so that they outlive the process. Sensitive values are an exception:
//! they stay in memory and are set anew by their resource after a restart, because nothing sensitive is written
//! unencrypted.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use setpoint_host::files::{AbsolutePath, Committer, Entry};
use setpoint_host::state::{StateDirectory, Stored};
use setpoint_host::sync::Mutex;
use setpoint_value::{Timer, Value, Values, Wake};
use sha2::{Digest, Sha256};

use setpoint_engine::{Attempting, Failure};

use crate::value_encoding;

/// The local value store: files of a directory, and in memory what was asked for. Reading and following are [`Values`]'.
pub struct LocalValues {
    directory: AbsolutePath,
    committer: Arc<Committer>,
    /// Whether what cannot be used is set aside.
    may_change: bool,
    state: Arc<Mutex<StoredValues>>,
}

#[derive(Default)]
struct StoredValues {
    /// What is known: none says that there is no such value.
    known: BTreeMap<String, Option<Value>>,
    /// Values that a plan would set. Functions read them, and nothing stores them.
    foreseen: BTreeMap<String, Foreseen>,
    followers: BTreeMap<u64, (String, Wake)>,
    next: u64,
    reports: Vec<String>,
}

/// A value that a plan would set.
#[derive(Default)]
struct Foreseen {
    value: Option<Value>,
    changes: u32,
}

/// So often a value may change in a plan, because of values that depend on it, before it counts as one that never settles.
const MOST_CHANGES: u32 = 8;

impl LocalValues {
    /// Over a directory, which is made with the first value: `PREFIX/local/value`.
    #[must_use]
    pub fn new(directory: AbsolutePath, committer: Arc<Committer>) -> LocalValues {
        LocalValues {
            directory,
            committer,
            may_change: true,
            state: Arc::default(),
        }
    }

    /// The same for a process that changes nothing there.
    #[must_use]
    pub fn reading(mut self) -> LocalValues {
        self.may_change = false;
        self
    }

    /// Sets a key. Followers hear of it when the value differs.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub fn set(&self, key: &str, value: &Value) -> Result<(), Failure> {
        self.change(key, Some(value))
    }

    /// Removes a key. No error when there is none.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn delete(&self, key: &str) -> Result<(), Failure> {
        self.change(key, None)
    }

    /// In a plan, this value would be set, or removed. Followers hear of it when it differs.
    ///
    /// # Errors
    /// When it changes again and again, because it depends on itself.
    pub fn foresee(&self, key: &str, value: Option<&Value>) -> Result<(), Failure> {
        if self.get(key).as_ref() == value {
            return Ok(());
        }
        {
            let mut state = self.state.lock();
            let foreseen = state.foreseen.entry(key.to_owned()).or_default();
            foreseen.changes += 1;
            foreseen.value = value.cloned();
            if foreseen.changes > MOST_CHANGES {
                let why = "it depends on itself, and changes each time";
                return Err(Failure::new("say what the value will be").because(why));
            }
        }
        self.wake_followers(key);
        Ok(())
    }

    /// The value that is stored, whatever a plan would set.
    #[must_use]
    pub fn stored(&self, key: &str) -> Option<Value> {
        if let Some(known) = self.state.lock().known.get(key) {
            return known.clone();
        }
        let loaded = self.load(key);
        let mut state = self.state.lock();
        state.known.entry(key.to_owned()).or_insert(loaded).clone()
    }

    fn wake_followers(&self, key: &str) {
        let wakes: Vec<Wake> = {
            let state = self.state.lock();
            let followers = state.followers.values();
            followers
                .filter(|(followed, _)| followed == key)
                .map(|(_, wake)| wake.clone())
                .collect()
        };
        wakes.iter().for_each(Wake::wake);
    }

    fn path(&self, key: &str) -> AbsolutePath {
        self.directory.join(file_name(key))
    }

    /// What the file of a key holds. What cannot be used counts as none, is set aside and told: its resource writes it anew.
    fn load(&self, key: &str) -> Option<Value> {
        let directory = StateDirectory::open_existing(&self.directory).ok()?;
        let file = file_name(key);
        let stored = directory
            .load(&file, value_encoding::VERSION, self.may_change)
            .ok()?;
        let unusable = match stored {
            Stored::Nothing => return None,
            Stored::Payload(payload) => match value_encoding::decode(&payload) {
                Ok((name, value)) => return (name == key).then_some(value),
                Err(why) => directory
                    .set_aside(&file, &why.to_string(), self.may_change)
                    .ok()?,
            },
            unusable @ Stored::Unusable(_) => unusable,
        };
        if let Stored::Unusable(why) = unusable {
            self.state.lock().reports.push(why);
        }
        None
    }

    /// What was found that could not be used, since this was asked last: lines for the log.
    #[must_use]
    pub fn take_reports(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().reports)
    }

    fn store(&self, key: &str, value: &Value) -> Result<(), Failure> {
        if value.is_sensitive() {
            return self.remove(key);
        }
        let bytes = value_encoding::encode(key, value).attempting("store the value", key)?;
        Entry::create_directories(&self.directory, 0o700, 0o700)?;
        let directory = StateDirectory::open_existing(&self.directory)?;
        directory.write_versioned(&self.committer, &file_name(key), value_encoding::VERSION, &bytes)?;
        Ok(())
    }

    fn remove(&self, key: &str) -> Result<(), Failure> {
        let removed = Entry::at(&self.path(key)).and_then(|entry| entry.remove_file());
        match removed {
            Err(error) if !error.is_not_found() => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn change(&self, key: &str, value: Option<&Value>) -> Result<(), Failure> {
        if self.stored(key).as_ref() == value {
            return Ok(());
        }
        match value {
            Some(value) => self.store(key, value)?,
            None => self.remove(key)?,
        }
        self.state.lock().known.insert(key.to_owned(), value.cloned());
        self.wake_followers(key);
        Ok(())
    }
}

impl Values for LocalValues {
    fn get(&self, key: &str) -> Option<Value> {
        if let Some(foreseen) = self.state.lock().foreseen.get(key) {
            return foreseen.value.clone();
        }
        self.stored(key)
    }

    fn watch(&self, key: &str, wake: Wake) -> Timer {
        let mut state = self.state.lock();
        let id = state.next;
        state.next += 1;
        state.followers.insert(id, (key.to_owned(), wake));
        Box::new(Follower {
            state: self.state.clone(),
            id,
        })
    }
}

/// Ends the following when it is dropped.
struct Follower {
    state: Arc<Mutex<StoredValues>>,
    id: u64,
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.state.lock().followers.remove(&self.id);
    }
}

/// A name for the file of a key: letters, digits, `-` and `_` as they are, everything else as `%XX`; long ones hashed.
fn file_name(key: &str) -> String {
    let mut name = String::new();
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' {
            name.push(char::from(byte));
        } else {
            let _ = write!(name, "%{byte:02x}");
        }
    }
    if name.len() > 200 {
        name.truncate(100);
        name.push_str("%%");
        for byte in Sha256::digest(key.as_bytes()) {
            let _ = write!(name, "{byte:02x}");
        }
    }
    name.push_str(".json");
    name
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn store(directory: &tempfile::TempDir) -> LocalValues {
        let path = AbsolutePath::new(directory.path().join("local/value")).unwrap();
        LocalValues::new(path, Arc::new(Committer::new()))
    }

    #[test]
    fn values_outlive_the_process_under_any_name() {
        let directory = tempfile::tempdir().unwrap();
        let long = "x".repeat(5000);
        for name in ["a", "..", "a/b", "ä\0", &long] {
            store(&directory).set(name, &Value::str(name)).unwrap();
            assert_eq!(store(&directory).get(name), Some(Value::str(name)), "{name:?}");
        }
        store(&directory).delete("a/b").unwrap();
        assert_eq!(store(&directory).get("a/b"), None);
        assert_eq!(
            store(&directory).get("..").map(|v| v.to_string()).as_deref(),
            Some("\"..\"")
        );
    }

    #[test]
    fn only_changes_wake_and_only_who_follows_the_key() {
        let directory = tempfile::tempdir().unwrap();
        let values = store(&directory);
        let woken = Arc::new(AtomicUsize::new(0));
        let counter = woken.clone();
        let follow = values.watch(
            "a",
            Wake::new(move || {
                counter.fetch_add(1, Ordering::SeqCst);
            }),
        );
        values.set("a", &Value::Int(1)).unwrap();
        values.set("a", &Value::Int(1)).unwrap();
        values.set("b", &Value::Int(1)).unwrap();
        assert_eq!(woken.load(Ordering::SeqCst), 1);
        drop(follow);
        values.delete("a").unwrap();
        assert_eq!(woken.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn sensitive_values_never_reach_the_disk() {
        let directory = tempfile::tempdir().unwrap();
        let values = store(&directory);
        values.set("key", &Value::str("plain")).unwrap();
        values.set("key", &Value::str("secret").sensitive()).unwrap();
        assert_eq!(values.get("key"), Some(Value::str("secret").sensitive()));
        assert_eq!(store(&directory).get("key"), None);
    }

    #[test]
    fn a_damaged_file_counts_as_no_value() {
        let directory = tempfile::tempdir().unwrap();
        store(&directory).set("a", &Value::Int(1)).unwrap();
        let file = directory.path().join("local/value/a.json");
        let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        #[allow(clippy::disallowed_methods, reason = "damages what the store wrote")]
        std::fs::write(&file, b"{\"version\":1").unwrap();
        let values = store(&directory);
        assert_eq!(values.get("a"), None);
        let reports = values.take_reports();
        assert!(
            matches!(&reports[..], [one] if one.contains("a.json.set-aside")),
            "{reports:?}"
        );
        values.set("a", &Value::Int(2)).unwrap();
        assert_eq!(store(&directory).get("a"), Some(Value::Int(2)));
    }
}
