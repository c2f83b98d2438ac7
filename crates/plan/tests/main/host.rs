//! A machine of a few files, accounts and services in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};

/// The things of a machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Things {
    /// Files and directories by path. Each one but the first of a path needs the one above it.
    pub(crate) files: BTreeMap<&'static str, File>,
    pub(crate) accounts: BTreeSet<&'static str>,
    pub(crate) packages: BTreeSet<&'static str>,
    /// Services that run, with the contents of their unit when they were started.
    pub(crate) services: BTreeMap<&'static str, String>,
    /// The number of runs of each command.
    pub(crate) ran: BTreeMap<String, u32>,
}

/// A file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct File {
    pub(crate) content: String,
    pub(crate) owner: &'static str,
}

/// The paths of files.
pub(crate) const PATHS: [&str; 5] = ["/a", "/a/x", "/a/x/y", "/b", "/b/z"];
/// The names of accounts. The first one always exists.
pub(crate) const ACCOUNTS: [&str; 3] = ["root", "ada", "bob"];
/// The names of packages.
pub(crate) const PACKAGES: [&str; 2] = ["p", "q"];
/// The services, and the paths of their units.
pub(crate) const SERVICES: [(&str, &str); 2] = [("s", "/a/x"), ("t", "/b")];

/// The name in a list that equals a text.
pub(crate) fn known(all: &[&'static str], text: &str) -> &'static str {
    all.iter()
        .find(|known| **known == text)
        .expect("a name of the list")
}

/// The path above a path.
pub(crate) fn above(path: &str) -> Option<&str> {
    let (above, _) = path.rsplit_once('/')?;
    (!above.is_empty()).then_some(above)
}

impl Things {
    /// Whether a file can be at a path.
    pub(crate) fn has_room(&self, path: &str) -> bool {
        above(path).is_none_or(|above| self.files.contains_key(above))
    }

    /// Changes a file, if it is there.
    pub(crate) fn change(&mut self, path: &str, change: impl FnOnce(&mut File)) {
        if let Some(file) = self.files.get_mut(path) {
            change(file);
        }
    }

    /// Installs a package with its files.
    pub(crate) fn install(&mut self, name: &'static str) {
        self.packages.insert(name);
        let paths: &[&str] = match name {
            "p" => &["/a", "/a/x"],
            _ => &["/b"],
        };
        for path in paths {
            let content = format!("of {name}");
            self.files.insert(
                path,
                File {
                    content,
                    owner: "root",
                },
            );
        }
    }

    /// Removes a file and all below it.
    pub(crate) fn remove(&mut self, path: &str) {
        let below = format!("{path}/");
        self.files
            .retain(|known, _| *known != path && !known.starts_with(&below));
    }
}

/// A machine that kinds reach as an extension of the engine.
#[derive(Debug, Default)]
pub(crate) struct Machine(Mutex<Things>);

impl Machine {
    pub(crate) fn new(things: Things) -> Machine {
        Machine(Mutex::new(things))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Things> {
        self.0.lock().unwrap()
    }
}
