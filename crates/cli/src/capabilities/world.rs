//! The local world: what the members of one machine share, in files.
//!
//! It stands behind [`WorldReader`] until a cluster's store does. Members are processes, or parts of one, that were given the
//! same directory; each sees what the others write through the watches of its own files.
//!
//! ```text
//! strings/KEY            hosts/NAMESPACE/HOST            schedules/NAMESPACE            exports/KIND/TO/FROM/NAME
//! candidates/NAMESPACE/HOST                              members/HOST                   changing, deciding: locks
//! ```
//!
//! An export says in its first two lines, written like names, whom it is for and of which resource it is: the name of a file has not
//! room for every name. Names are written so that any text is one file name. Each file is replaced as a whole. On one machine nobody shares it; where the
//! directory lies on a file system that machines share, they are its members.

mod elections;
mod exports;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use setpoint_engine::{Failure, Watch, async_trait};
use setpoint_host::Host;
use setpoint_host::files::{AbsolutePath, Entry, FileError, Replace};
use setpoint_host::sync::Mutex;
use setpoint_host::watch::{Depth, Follow};
use setpoint_resources::{Secrecy, SharedKey, SharedString, SharedStrings};
use setpoint_value::{
    Awaited, FileWatch, StoredText, Wake, WatchDepth, WorldAnswer, WorldFeed, WorldQuery, WorldReader,
};
use sha2::{Digest, Sha256};

use super::background::Threads;
use super::files::FileWatches;
use elections::Presence;

/// Who stands for all hosts in an export.
const EVERYONE: &str = "*";

/// What is done with it, in messages.
const READ: &str = "read the store that machines share, at";
const WRITE: &str = "write to the store that machines share";

/// A member of the local world.
pub struct LocalWorld {
    member: Arc<Member>,
    kinds: BTreeSet<String>,
}

struct Member {
    directory: AbsolutePath,
    hostname: String,
    host: Arc<Host>,
    files: FileWatches,
    background: Arc<Threads>,
    /// What says to others that this host is here, once it stands in an election.
    presence: Mutex<Presence>,
}

impl LocalWorld {
    /// The member `hostname` of the world in a directory, which is made with the first thing in it: `PREFIX/world`. `kinds`
    /// are the kinds of resources that there are.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub fn new(
        directory: AbsolutePath,
        hostname: &str,
        host: &Arc<Host>,
        kinds: impl IntoIterator<Item = String>,
    ) -> io::Result<LocalWorld> {
        Ok(LocalWorld {
            member: Arc::new(Member {
                directory,
                hostname: hostname.to_owned(),
                host: host.clone(),
                files: FileWatches::new(host),
                background: Arc::new(Threads::new()?),
                presence: Mutex::default(),
            }),
            kinds: kinds.into_iter().collect(),
        })
    }

    /// Sets the string of a key, or removes it.
    ///
    /// # Errors
    /// As the system says.
    pub fn set_string(&self, key: &str, value: Option<&str>) -> io::Result<()> {
        self.member.put(&["strings", key], value)
    }

    /// Sets this member's string in a namespace, or removes it.
    ///
    /// # Errors
    /// As the system says.
    pub fn set_own_string(&self, namespace: &str, value: Option<&str>) -> io::Result<()> {
        self.member
            .put(&["hosts", namespace, &self.member.hostname], value)
    }

    /// Does what reads or writes files, which may keep one waiting.
    async fn in_background<T: Send + 'static>(
        &self,
        attempted: &'static str,
        work: impl FnOnce(&Member) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let member = self.member.clone();
        let done = tokio::task::spawn_blocking(move || work(&member)).await;
        done.unwrap_or_else(|ended| Err(Failure::new(attempted).because(ended)))
    }
}

#[async_trait]
impl SharedStrings for LocalWorld {
    async fn get(&self, key: SharedKey<'_>) -> Result<Option<SharedString>, Failure> {
        let path = self.member.string_path(key);
        let read = move |_: &Member| {
            let failed = |error| Failure::new(READ).on(path.as_path().display()).because(error);
            let text = content(path.as_path()).map_err(|error: io::Error| failed(error))?;
            Ok(text.map(read_string))
        };
        self.in_background(READ, read).await
    }

    async fn set(&self, key: SharedKey<'_>, value: Option<&str>, secrecy: Secrecy) -> Result<(), Failure> {
        let value = value.map(|value| written_string(value, secrecy));
        let path = self.member.string_path(key);
        let write = move |member: &Member| {
            let set = || {
                let _changing = member.lock_file(&["changing"], FlockOperation::LockExclusive)?;
                member.put_at(path, value.as_deref())
            };
            set().map_err(|error: io::Error| Failure::new(WRITE).because(error))
        };
        self.in_background(WRITE, write).await
    }

    async fn set_if(
        &self,
        key: SharedKey<'_>,
        was: Option<&str>,
        value: &str,
        secrecy: Secrecy,
    ) -> Result<bool, Failure> {
        let path = self.member.string_path(key);
        let (was, value) = (was.map(str::to_owned), written_string(value, secrecy));
        let write = move |member: &Member| {
            let set = || {
                let _changing = member.lock_file(&["changing"], FlockOperation::LockExclusive)?;
                let is = content(path.as_path())?.and_then(|text| read_string(text).text);
                let is_so = is == was;
                if is_so {
                    member.put_at(path, Some(&value))?;
                }
                Ok(is_so)
            };
            set().map_err(|error: io::Error| Failure::new(WRITE).because(error))
        };
        self.in_background(WRITE, write).await
    }

    fn watch(&self, key: SharedKey<'_>) -> Watch {
        Watch::Path {
            path: self.member.string_path(key),
            depth: Depth::Entry,
            follow: Follow::Target,
        }
    }
}

impl WorldReader for LocalWorld {
    fn follow(&self, query: &WorldQuery, wake: Wake) -> Box<dyn WorldFeed> {
        let is_stale = Arc::new(AtomicBool::new(true));
        let (stale, owner) = (is_stale.clone(), wake.clone());
        Box::new(Feed {
            member: self.member.clone(),
            query: query.clone(),
            wake,
            changed: Wake::new(move || {
                stale.store(true, Ordering::SeqCst);
                owner.wake();
            }),
            is_stale,
            watch: None,
            reading: None,
        })
    }

    fn knows_kind(&self, kind: &str) -> bool {
        self.kinds.contains(kind)
    }
}

/// What a reading gives: the answer, and the watch that it armed before.
type Read = (Result<WorldAnswer, String>, Option<FileWatch>);

/// An answer that is read in the background: its files may lie on a disk that keeps one waiting.
struct Feed {
    member: Arc<Member>,
    query: WorldQuery,
    /// Says that there is something to take.
    wake: Wake,
    /// What the watch calls: there may be something to read.
    changed: Wake,
    /// Whether something may have changed since the last reading began.
    is_stale: Arc<AtomicBool>,
    watch: Option<FileWatch>,
    reading: Option<Awaited<Read>>,
}

impl Feed {
    fn begin(&mut self) {
        let (member, query) = (self.member.clone(), self.query.clone());
        let changed = self.watch.is_none().then(|| self.changed.clone());
        let work = move || {
            // Armed before reading, so that no change falls between.
            let watch = match changed.map(|changed| member.watch(&query, changed)).transpose() {
                Ok(watch) => watch,
                Err(error) => return (Err(format!("it can't be watched: {error}")), None),
            };
            (member.answer(&query).map_err(|error| error.to_string()), watch)
        };
        self.reading = Some(Awaited::begin(&*self.member.background, self.wake.clone(), work));
    }
}

impl WorldFeed for Feed {
    fn latest(&mut self) -> Option<Result<WorldAnswer, String>> {
        let mut latest = None;
        loop {
            if let Some(reading) = &mut self.reading {
                let Some((answer, watch)) = reading.take() else {
                    return latest;
                };
                self.reading = None;
                self.watch = watch.or(self.watch.take());
                latest = Some(answer);
            }
            if !self.is_stale.swap(false, Ordering::SeqCst) {
                return latest;
            }
            self.begin();
        }
    }
}

impl Member {
    fn watch(&self, query: &WorldQuery, changed: Wake) -> io::Result<FileWatch> {
        let (parts, depth) = match query {
            WorldQuery::String(key) => (["strings", key], WatchDepth::Entry),
            WorldQuery::Strings(namespace) => (["hosts", namespace], WatchDepth::Entry),
            WorldQuery::Schedule(namespace) => (["schedules", namespace], WatchDepth::Entry),
            WorldQuery::Exports(kind) => (["exports", kind], WatchDepth::Recursive),
        };
        let path = self.path(&parts);
        self.files
            .watch(&path.as_path().to_string_lossy(), depth, changed)
    }

    fn string_path(&self, key: SharedKey<'_>) -> AbsolutePath {
        match key {
            SharedKey::ForAll(key) => self.path(&["strings", key]),
            SharedKey::OfThisHost(key) => self.path(&["hosts", key, &self.hostname]),
        }
    }

    fn path(&self, parts: &[&str]) -> AbsolutePath {
        let below = |path: AbsolutePath, part: &&str| path.join(file_name(part));
        parts.iter().fold(self.directory.clone(), below)
    }

    fn put(&self, parts: &[&str], content: Option<&str>) -> io::Result<()> {
        self.put_at(self.path(parts), content)
    }

    fn put_at(&self, path: AbsolutePath, content: Option<&str>) -> io::Result<()> {
        let Some(content) = content else {
            return remove(&path).map_err(io::Error::other);
        };
        let replaced = replacement(path, content).and_then(|request| self.host.committer.replace(request));
        replaced.map(drop).map_err(io::Error::other)
    }

    /// The lock of a file, which is made where it is missing.
    fn lock_file(&self, parts: &[&str], operation: FlockOperation) -> io::Result<File> {
        let path = self.path(parts);
        if let Some(parent) = path.parent() {
            Entry::create_directories(&parent, 0o700, 0o700).map_err(io::Error::other)?;
        }
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::open(path.as_path(), flags, Mode::RUSR | Mode::WUSR)?;
        flock(&opened, operation)?;
        Ok(File::from(opened))
    }

    fn answer(&self, query: &WorldQuery) -> io::Result<WorldAnswer> {
        Ok(match query {
            WorldQuery::String(key) => {
                let text = content(self.path(&["strings", key]).as_path())?;
                WorldAnswer::String(text.map(read_text))
            }
            WorldQuery::Strings(namespace) => {
                let directory = self.path(&["hosts", namespace]);
                let mut strings = BTreeMap::new();
                for host in names(directory.as_path())? {
                    // Whoever has left between is not there.
                    if let Some(value) = content(directory.join(escaped(&host)).as_path())? {
                        strings.insert(host, read_text(value));
                    }
                }
                WorldAnswer::Strings(strings)
            }
            WorldQuery::Schedule(namespace) => {
                let lines = content(self.path(&["schedules", namespace]).as_path())?.unwrap_or_default();
                let mut hosts: Vec<String> = lines.lines().filter_map(unescaped).collect();
                hosts.sort();
                WorldAnswer::Hosts(hosts)
            }
            WorldQuery::Exports(kind) => WorldAnswer::Exports(self.exports(kind)?),
        })
    }
}

/// What the file of a secret string begins with. Another one that begins so is written behind the second of these.
const SECRET: &str = "\0secret\0";
const OPEN: &str = "\0open\0";

/// What is in the file of a string.
fn written_string(text: &str, secrecy: Secrecy) -> String {
    match secrecy {
        Secrecy::Secret => format!("{SECRET}{text}"),
        Secrecy::Open if text.starts_with('\0') => format!("{OPEN}{text}"),
        Secrecy::Open => text.to_owned(),
    }
}

/// The string that a file says. It need not be encrypted: only root reads it.
fn read_string(written: String) -> SharedString {
    if let Some(text) = written.strip_prefix(SECRET) {
        return SharedString {
            secrecy: Secrecy::Secret,
            ..SharedString::open(text.to_owned())
        };
    }
    let text = written.strip_prefix(OPEN).map(str::to_owned);
    SharedString::open(text.unwrap_or(written))
}

fn read_text(written: String) -> StoredText {
    let SharedString { text, secrecy, .. } = read_string(written);
    StoredText {
        text: text.unwrap_or_default(),
        is_secret: secrecy == Secrecy::Secret,
    }
}

/// What puts a text into a file, whose directory is made.
fn replacement(path: AbsolutePath, content: &str) -> Result<Replace, FileError> {
    if let Some(parent) = path.parent() {
        Entry::create_directories(&parent, 0o700, 0o700)?;
    }
    Ok(Replace::bytes(path, content.as_bytes().to_vec()).mode(0o600))
}

/// Removes a file, if it is there.
fn remove(path: &AbsolutePath) -> Result<(), FileError> {
    match Entry::at(path).and_then(|entry| entry.remove_file()) {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

/// The text of a file; none if there is no such file.
fn content(path: &Path) -> io::Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if is_absence(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What is in a directory, by the names that were given; nothing if there is no such directory.
fn names(directory: &Path) -> io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if is_absence(&error) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        // Files that are being written have names that no name is written as.
        names.extend(entry?.file_name().to_str().and_then(unescaped));
    }
    Ok(names)
}

fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// A file name for any text: `_`, then letters, digits and a few signs as they are, everything else as `%XX`.
fn escaped(text: &str) -> String {
    let mut name = String::from("_");
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte) {
            name.push(char::from(byte));
        } else {
            let _ = write!(name, "%{byte:02x}");
        }
    }
    name
}

/// The same, with a hash for the end where a file name has no room for all.
fn file_name(text: &str) -> String {
    const LONGEST: usize = 255;
    let mut name = escaped(text);
    if name.len() > LONGEST {
        let hash = Sha256::digest(text);
        // It is ASCII; no name that is written out has this sign.
        name.truncate(LONGEST - 1 - 2 * hash.len());
        name.push('=');
        for byte in hash {
            let _ = write!(name, "{byte:02x}");
        }
    }
    name
}

/// The text that is written so.
fn unescaped(name: &str) -> Option<String> {
    let mut parts = name
        .strip_prefix('_')
        .filter(|name| !name.contains('='))?
        .split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(code, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_string_is_read_back_with_its_secrecy() {
        for text in ["", "a", "\0", "\0secret\0x", "\0open\0", "ä\n"] {
            for secrecy in [Secrecy::Open, Secrecy::Secret] {
                let read = read_string(written_string(text, secrecy));
                assert_eq!((read.text.as_deref(), read.secrecy), (Some(text), secrecy));
            }
        }
    }

    #[test]
    fn any_text_is_a_file_name_and_is_read_back() {
        for text in ["", ".", "..", "a/b", "ä\0\n", "%41", "_x", "ssh:authorized_key"] {
            let name = escaped(text);
            assert!(
                name.starts_with('_') && !name.contains(['/', '\0', '\n']),
                "{name}"
            );
            assert_eq!(unescaped(&name).as_deref(), Some(text));
        }
        let long = [format!("{}a", "/".repeat(200)), format!("{}b", "/".repeat(200))];
        let names = [file_name(&long[0]), file_name(&long[1])];
        assert!(
            names[0] != names[1] && names.iter().all(|name| name.len() == 255),
            "{names:?}"
        );
        assert_eq!(unescaped(&names[0]), None);
        for no_name in ["", ".setpoint-1-2", "x", "_%4", "_%zz", "_%ff"] {
            assert_eq!(unescaped(no_name), None, "{no_name}");
        }
    }
}
