//! What dpkg says is installed: its status file (deb-control(5), dpkg(1)), read once for all and again when it has changed.
//!
//! While dpkg works, and after it was interrupted, what is newer lies in numbered files of the same form beside it.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use setpoint_host::files::{AbsolutePath, Entry, FileError, Stamp, Timestamp};

/// The status file.
pub(crate) const STATUS: &str = "/var/lib/dpkg/status";
/// Where what is newer lies.
const UPDATES: &str = "/var/lib/dpkg/updates";

/// All packages that dpkg knows something of.
#[derive(Debug, Default)]
pub(crate) struct Database {
    by_name: HashMap<Box<str>, Vec<Entered>>,
    /// The architecture of this machine, as far as its packages say it.
    native: Option<Box<str>>,
    /// Whether dpkg was interrupted, or works just now.
    pub(crate) is_interrupted: bool,
}

/// What it says of a package of one architecture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entered {
    pub(crate) architecture: Box<str>,
    pub(crate) version: Box<str>,
    pub(crate) status: Status,
    /// Whether upgrades leave it alone.
    pub(crate) held: bool,
}

/// How far a package is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Status {
    Installed,
    /// Not, but for its configuration perhaps.
    Absent,
    /// Neither, as dpkg calls it: `half-configured`.
    Between(Box<str>),
}

/// What was read last, and of which files.
type Known = Option<(Vec<(PathBuf, Option<Stamp>)>, Arc<Database>)>;

static KNOWN: Mutex<Known> = Mutex::new(None);

impl Database {
    /// As it is now. Blocks.
    pub(crate) fn read() -> io::Result<Arc<Database>> {
        let updates = updates()?;
        let files: Vec<PathBuf> = std::iter::once(PathBuf::from(STATUS))
            .chain(updates.clone())
            .collect();
        let stamps = || -> Vec<(PathBuf, Option<Stamp>)> {
            files.iter().map(|file| (file.clone(), stamp(file))).collect()
        };
        let before = stamps();
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((stamps, database)) = &*known
            && *stamps == before
        {
            return Ok(database.clone());
        }
        let mut database = Database::default();
        database.take_in(&content(Path::new(STATUS))?);
        for update in &updates {
            match content(update) {
                // It has been taken over into the status file.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                text => database.take_in(&text?),
            }
        }
        database.is_interrupted = !updates.is_empty();
        let database = Arc::new(database);
        // Two changes in one tick of the clock have one stamp.
        let is_settled = before.iter().all(|(_, stamp)| {
            stamp.is_some_and(|stamp| Timestamp::now().seconds - stamp.changed.seconds > 2)
        });
        *known = (is_settled && stamps() == before).then(|| (before, database.clone()));
        Ok(database)
    }

    /// A package by its name, or by name and architecture: `libc6:i386`.
    pub(crate) fn package(&self, name: &str) -> Option<&Entered> {
        let (name, architecture) = match name.split_once(':') {
            Some((name, architecture)) => (name, Some(architecture)),
            None => (name, None),
        };
        let entered = self.by_name.get(name)?;
        let native = self.native.as_deref();
        let is_right = |entered: &&Entered| match architecture {
            None | Some("native") => [Some("all"), native].contains(&Some(&*entered.architecture)),
            Some("any") => entered.status == Status::Installed,
            Some(architecture) => *entered.architecture == *architecture,
        };
        entered.iter().find(is_right)
    }

    /// Takes in what a file says; what it says of a package takes the place of what was said before.
    fn take_in(&mut self, text: &[u8]) {
        let (mut name, mut architecture, mut version, mut status) = ("", "", "", "");
        let text = String::from_utf8_lossy(text);
        for line in text.split('\n').chain([""]) {
            if line.is_empty() {
                if !name.is_empty() {
                    self.enter(name, architecture, version, status);
                }
                (name, architecture, version, status) = ("", "", "", "");
            } else if let Some(value) = line.strip_prefix("Package: ") {
                name = value.trim();
            } else if let Some(value) = line.strip_prefix("Status: ") {
                status = value.trim();
            } else if let Some(value) = line.strip_prefix("Version: ") {
                version = value.trim();
            } else if let Some(value) = line.strip_prefix("Architecture: ") {
                architecture = value.trim();
            }
        }
    }

    fn enter(&mut self, name: &str, architecture: &str, version: &str, status: &str) {
        // Selection, flag, state.
        let mut words = status.split(' ');
        let (selection, _, state) = (
            words.next(),
            words.next(),
            words.next().unwrap_or("not-installed"),
        );
        let status = match state {
            "installed" | "triggers-awaited" | "triggers-pending" => Status::Installed,
            "not-installed" | "config-files" => Status::Absent,
            state => Status::Between(state.into()),
        };
        if name == "dpkg" && status != Status::Absent {
            self.native = Some(architecture.into());
        }
        let entered = Entered {
            architecture: architecture.into(),
            version: version.into(),
            status,
            held: selection == Some("hold"),
        };
        let all = self.by_name.entry(name.into()).or_default();
        match all
            .iter_mut()
            .find(|other| other.architecture == entered.architecture)
        {
            Some(other) => *other = entered,
            None => all.push(entered),
        }
    }
}

/// The numbered files, in order.
fn updates() -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(UPDATES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut updates = Vec::new();
    for entry in entries {
        let entry = entry?;
        let is_number = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
        if entry.file_name().to_str().is_some_and(is_number) {
            updates.push(entry.path());
        }
    }
    updates.sort();
    Ok(updates)
}

fn entry(path: &Path) -> io::Result<Entry> {
    let path = AbsolutePath::new(path.as_os_str()).map_err(io::Error::other)?;
    Entry::at(&path).map_err(of_file)
}

fn stamp(path: &Path) -> Option<Stamp> {
    Some(entry(path).ok()?.stat().ok()??.stamp())
}

fn content(path: &Path) -> io::Result<Vec<u8>> {
    entry(path)?.read().map_err(of_file)
}

fn of_file(error: FileError) -> io::Error {
    io::Error::new(error.kind(), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
Package: dpkg
Status: install ok installed
Architecture: amd64
Version: 1.21.22

Package: libc6
Status: install ok installed
Architecture: amd64
Multi-Arch: same
Version: 2.36-9
Description: GNU C Library
 Package: not-a-package
 .
 more

Package: libc6
Status: hold ok installed
Architecture: i386
Version: 2.36-8

Package: gone
Status: deinstall ok config-files
Architecture: all
Version: 1

Package: half
Status: install reinstreq half-configured
Architecture: all
Version: 1";

    #[test]
    fn packages_are_found_by_name_and_architecture() {
        let mut database = Database::default();
        database.take_in(TEXT.as_bytes());
        let of = |name: &str| {
            database
                .package(name)
                .map(|entered| (&*entered.version, entered.status.clone(), entered.held))
        };
        assert_eq!(of("libc6"), Some(("2.36-9", Status::Installed, false)));
        assert_eq!(of("libc6:i386"), Some(("2.36-8", Status::Installed, true)));
        assert_eq!(of("libc6:arm64"), None);
        assert_eq!(of("gone"), Some(("1", Status::Absent, false)));
        assert_eq!(
            of("half"),
            Some(("1", Status::Between("half-configured".into()), false))
        );
        assert_eq!(of("not-a-package"), None);
        database.take_in(b"Package: half\nStatus: install ok installed\nArchitecture: all\nVersion: 2\n");
        assert_eq!(
            database.package("half").map(|entered| &*entered.version),
            Some("2")
        );
    }
}
