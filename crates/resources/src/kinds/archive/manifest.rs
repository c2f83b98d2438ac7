//! The entries that a resource has unpacked, and how a directory differs from them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::GlobSet;
use serde::{Deserialize, Serialize};
use setpoint_engine::{Apply, Failure};
use setpoint_host::files::{Directory, Entry, FileType, Stat};
use setpoint_host::state::Stored;
use tokio_util::sync::CancellationToken;

use crate::checksum::Algorithm;

/// The name and the version of its form in the private directory.
const STORED: (&str, u32) = ("manifest", 1);

/// The unpacked entries.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// The checksum of the archive.
    pub(super) version: String,
    /// The parameters that decide what comes out of the archive.
    pub(super) options: String,
    /// The stamp of an archive on this machine.
    pub(super) source: String,
    /// Paths below the directory; each byte of a path is one character.
    pub(super) items: BTreeMap<String, Item>,
}

/// An entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Item {
    pub(super) sort: Sort,
    pub(super) mode: u32,
    pub(super) owner: u32,
    pub(super) group: u32,
    /// The stamp of a file when it was found right.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) stamp: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Sort {
    #[serde(rename = "d")]
    Directory,
    /// A file with this SHA-256.
    #[serde(rename = "f")]
    File(String),
    /// A link with this text, as a path is kept.
    #[serde(rename = "l")]
    Link(String),
}

/// A difference between a directory and a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) what: &'static str,
    pub(super) path: PathBuf,
    pub(super) is: String,
    pub(super) want: String,
}

impl Manifest {
    /// The entries that the resource has unpacked, if it has.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn load(apply: &Apply<'_>) -> Result<Option<Manifest>, Failure> {
        match apply.handle().load(STORED.0, STORED.1)? {
            Stored::Payload(payload) => Ok(serde_json::from_slice(&payload).ok()),
            Stored::Nothing | Stored::Unusable(_) => Ok(None),
        }
    }

    /// Keeps it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn store(&self, apply: &Apply<'_>) -> Result<(), Failure> {
        let payload = serde_json::to_vec(self).expect("it has only texts and numbers");
        apply.handle().store(STORED.0, STORED.1, &payload)
    }

    /// The differences of a directory: entries that are changed or missing, and, if it belongs to the archive alone, further ones.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn differences(&self, comparison: &Comparison<'_>) -> Result<Vec<Difference>, Failure> {
        let mut found = BTreeMap::new();
        if let Some(root) = comparison.root {
            let device = root.stat()?.device;
            comparison.walk(root, Path::new(""), device, &mut found)?;
        }
        let mut differences = Vec::new();
        for (key, item) in &self.items {
            let path = path_of(key);
            if comparison.keeps(&path) && found.contains_key(key) {
                continue;
            }
            match found.get(key) {
                None => differences.push(Difference {
                    what: "missing",
                    is: "absent".to_owned(),
                    want: item.shown(),
                    path,
                }),
                Some((entry, stat)) => {
                    differences.extend(comparison.difference(&path, item, entry, stat)?);
                }
            }
        }
        if comparison.is_whole {
            let extra = found.iter().filter(|(key, _)| !self.items.contains_key(*key));
            let extra = extra.map(|(key, (_, stat))| (path_of(key), stat));
            differences.extend(
                extra
                    .filter(|(path, _)| !comparison.keeps(path))
                    .map(|(path, stat)| Difference {
                        what: "extra",
                        is: stat.file_type.to_string(),
                        want: "absent".to_owned(),
                        path,
                    }),
            );
        }
        Ok(differences)
    }
}

impl Item {
    fn shown(&self) -> String {
        match &self.sort {
            Sort::Directory => "directory".to_owned(),
            Sort::File(_) => format!("file, {:04o}", self.mode),
            Sort::Link(text) => format!("link to {}", path_of(text).display()),
        }
    }
}

/// A comparison of a directory with a manifest.
pub(super) struct Comparison<'a> {
    /// None if there is no directory.
    pub(super) root: Option<&'a Arc<Directory>>,
    /// Entries that others may change.
    pub(super) keep: &'a GlobSet,
    /// Whether contents count, or only whether an entry is there.
    pub(super) contents: bool,
    /// Whether the directory belongs to the archive alone.
    pub(super) is_whole: bool,
    pub(super) stop: &'a CancellationToken,
}

type FoundEntries = BTreeMap<String, (Entry, Stat)>;

impl Comparison<'_> {
    fn keeps(&self, path: &Path) -> bool {
        self.keep.is_match(path)
    }

    fn walk(
        &self,
        directory: &Arc<Directory>,
        below: &Path,
        device: u64,
        found: &mut FoundEntries,
    ) -> Result<(), Failure> {
        for listed in directory.list()? {
            if self.stop.is_cancelled() {
                return Err(Failure::new("compare the directory").because("cancelled"));
            }
            let path = below.join(&listed.name);
            let entry = directory.entry(listed.name);
            let Some(stat) = entry.stat()? else { continue };
            let is_directory = listed.file_type == FileType::Directory && stat.device == device;
            if is_directory && !self.keeps(&path) {
                let opened = Arc::new(entry.open_directory()?);
                self.walk(&opened, &path, device, found)?;
            }
            found.insert(key_of(&path), (entry, stat));
        }
        Ok(())
    }

    fn difference(
        &self,
        path: &Path,
        item: &Item,
        entry: &Entry,
        stat: &Stat,
    ) -> Result<Option<Difference>, Failure> {
        let changed = |what: &'static str, is: String, want: String| {
            Some(Difference {
                what,
                path: path.to_path_buf(),
                is,
                want,
            })
        };
        let is_right_type = match item.sort {
            Sort::Directory => stat.is_directory(),
            Sort::File(_) => stat.is_regular(),
            Sort::Link(_) => stat.is_link(),
        };
        if !is_right_type {
            return Ok(changed("changed", stat.file_type.to_string(), item.shown()));
        }
        if !self.contents {
            return Ok(None);
        }
        if (stat.uid, stat.gid) != (item.owner, item.group) {
            let pair = |user: u32, group: u32| format!("{user}:{group}");
            return Ok(changed(
                "owner",
                pair(stat.uid, stat.gid),
                pair(item.owner, item.group),
            ));
        }
        if stat.mode != item.mode && !matches!(item.sort, Sort::Link(_)) {
            return Ok(changed(
                "mode",
                format!("{:04o}", stat.mode),
                format!("{:04o}", item.mode),
            ));
        }
        match &item.sort {
            Sort::Directory => Ok(None),
            Sort::Link(text) => {
                let is = entry.read_link()?.unwrap_or_default();
                let is_right = key_of(&is) == *text;
                let told = || changed("changed", format!("link to {}", is.display()), item.shown());
                Ok(if is_right { None } else { told() })
            }
            Sort::File(_) if item.stamp == stamp(stat) => Ok(None),
            Sort::File(sha256) => {
                let mut contents = entry.open()?;
                let is = Algorithm::Sha256.of(&mut contents, self.stop);
                let is = is.map_err(|error| Failure::new("read").on(path.display()).because(error))?;
                let is_right = is.to_string() == *sha256;
                let told = || {
                    changed(
                        "changed",
                        format!("{} bytes", stat.size),
                        "as in the archive".to_owned(),
                    )
                };
                Ok(if is_right { None } else { told() })
            }
        }
    }
}

/// The text by which a change of a file shows.
pub(super) fn stamp(stat: &Stat) -> String {
    let time = |stamp: setpoint_host::files::Timestamp| format!("{}.{}", stamp.seconds, stamp.nanoseconds);
    format!(
        "{} {} {} {}",
        stat.inode,
        stat.size,
        time(stat.modified),
        time(stat.changed)
    )
}

/// A path as a key: each byte is one character.
pub(super) fn key_of(path: &Path) -> String {
    path.as_os_str()
        .as_bytes()
        .iter()
        .map(|byte| char::from(*byte))
        .collect()
}

/// The path of a key.
pub(super) fn path_of(key: &str) -> PathBuf {
    let bytes = key
        .chars()
        .map(|sign| u8::try_from(u32::from(sign)).unwrap_or(b'?'));
    PathBuf::from(OsString::from_vec(bytes.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_any_bytes_is_its_key_again() {
        let path = PathBuf::from(OsString::from_vec(vec![b'a', 0xff, b'/', 0xc3, 0xa4]));
        assert_eq!(path_of(&key_of(&path)), path);
    }
}
