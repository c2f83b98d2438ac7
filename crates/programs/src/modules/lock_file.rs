//! The lock file of a program: which commit of each module it was last given, and what that holds.
//!
//! It lies beside the program and belongs into its repository. It is JSON, sorted, so that versions of it compare line by line.
//!
//! Several processes may fetch the modules of one program. Each reads the lock file, fetches, and then decides what it shall hold while
//! the directory is locked; whoever finds then that the lock file is not what was read begins again with what is there now.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use setpoint_host::files::{AbsolutePath, Committer, FileError, Replace};
use setpoint_mcl::{Entry, RemoteImport};

use crate::failure::{Failure, system_text};
use crate::input::Input;
use setpoint_host::files::{DirectoryLock, LockHolder};

const VERSION: u32 = 1;

/// The lock file of a program, there or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockFile {
    /// Where it is, as the user can open it.
    pub path: PathBuf,
    /// Modules by their directories in a deploy; none while there is no file.
    modules: Option<BTreeMap<String, LockedModule>>,
}

/// A module in a lock file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockedModule {
    /// Where it comes from.
    pub url: String,
    /// Its commit; none where it is not a repository.
    pub commit: Option<String>,
    /// What its files hold.
    pub sha256: String,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    version: u32,
    modules: BTreeMap<String, LockedModule>,
}

impl LockFile {
    /// The lock file of a program; none for a program that is not a file.
    ///
    /// # Errors
    /// When there is one that cannot be used.
    pub fn of(input: &Input) -> Result<Option<LockFile>, Failure> {
        let name = match &input.entry {
            Entry::Code { .. } => return Ok(None),
            Entry::Directory(_) => "setpoint.lock".to_owned(),
            Entry::File(name) => format!("{name}.lock"),
        };
        LockFile::read(PathBuf::from(format!("{}{name}", input.root))).map(Some)
    }

    fn read(path: PathBuf) -> Result<LockFile, Failure> {
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(LockFile { path, modules: None });
            }
            Err(error) => return Err(Failure::io(format_args!("read {}", path.display()), &error)),
        };
        let modules = modules(&bytes).map_err(|why| {
            Failure::wrong(format!("the lock file {} cannot be used", path.display()))
                .because(why)
                .hint("remove it, and `setpoint modules get` writes another one")
        })?;
        Ok(LockFile {
            path,
            modules: Some(modules),
        })
    }

    /// Whether there is a file.
    pub fn is_there(&self) -> bool {
        self.modules.is_some()
    }

    /// What it says of an import.
    pub fn get(&self, import: &RemoteImport, global: Option<&str>) -> Option<&LockedModule> {
        self.modules.as_ref()?.get(&key(import, global)?)
    }

    /// Whether it would hold something that it does not, if it held nothing but these modules.
    pub(super) fn differs_from(&self, modules: &BTreeMap<String, LockedModule>) -> bool {
        match &self.modules {
            Some(present) => present != modules,
            None => !modules.is_empty(),
        }
    }

    /// Waits until no other process decides what it shall hold.
    pub(super) fn hold(
        &self,
        patience: Duration,
        waiting: impl FnMut(&LockHolder),
    ) -> Result<DirectoryLock, Failure> {
        let directory = match self.path.parent() {
            Some(directory) if directory != Path::new("") => directory,
            _ => Path::new("."),
        };
        DirectoryLock::take(directory, patience, waiting).map_err(|why| {
            let shown = directory.display();
            Failure::wrong(format!(
                "the directory {shown} cannot be locked for the lock file"
            ))
            .because(why)
            .hint("`--download-timeout` says how many seconds to wait for others")
        })
    }

    /// What it is now.
    pub(super) fn read_again(&self) -> Result<LockFile, Failure> {
        LockFile::read(self.path.clone())
    }

    /// Makes it hold these modules, whose directory is [held](LockFile::hold).
    pub(super) fn write(
        &self,
        modules: BTreeMap<String, LockedModule>,
        _held: &DirectoryLock,
    ) -> Result<Writing, Failure> {
        let shown = self.path.display().to_string();
        let failed = |why: String| Failure::wrong(format!("failed to write {shown}")).because(why);
        let stored = Stored {
            version: VERSION,
            modules,
        };
        let mut text = serde_json::to_string_pretty(&stored).map_err(|error| failed(error.to_string()))?;
        text.push('\n');
        let path = std::path::absolute(&self.path).map_err(|error| failed(system_text(&error)))?;
        let path = AbsolutePath::new(path).map_err(|error| failed(error.to_string()))?;
        match Committer::new().replace(Replace::bytes(path, text.into_bytes())) {
            Ok(_) => Ok(Writing::Done),
            // Not one of us, since we hold it: an editor, or git that changes branches.
            Err(FileError::Exchanged { .. }) => Ok(Writing::Interrupted),
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

/// What came of writing a lock file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writing {
    /// It is written.
    Done,
    /// Somebody else wrote it at the same moment.
    Interrupted,
}

/// The modules in the text of a lock file, or why it cannot be used.
fn modules(bytes: &[u8]) -> Result<BTreeMap<String, LockedModule>, String> {
    let any: serde_json::Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let version = any.get("version").and_then(serde_json::Value::as_u64);
    if version.is_some_and(|version| version > u64::from(VERSION)) {
        return Err("a newer version of setpoint has written it".to_owned());
    }
    let stored: Stored = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    // These become arguments of git.
    let is_commit = |commit: &String| {
        matches!(commit.len(), 40 | 64) && commit.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    for (directory, module) in &stored.modules {
        if !module.commit.as_ref().is_none_or(is_commit) {
            return Err(format!("the commit of `{directory}` is not one"));
        }
    }
    Ok(stored.modules)
}

/// The directory of an import in a deploy, which is the same wherever the program and the modules lie. None where there is no directory
/// for it.
pub(super) fn key(import: &RemoteImport, global: Option<&str>) -> Option<String> {
    let directory = import.modules_directory.as_ref()?;
    let place = format!("{directory}{}", import.module);
    Some(match global.and_then(|global| place.strip_prefix(global)) {
        Some(rest) => format!("/modules/{rest}"),
        None => place,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{
  "version": 1,
  "modules": {
    "modules/example.com/a/": { "url": "https://example.com/a", "commit": "0123456789abcdef0123456789abcdef01234567", "sha256": "00" },
    "modules/example.com/b/": { "url": "https://example.com/b", "commit": null, "sha256": "11" }
  }
}"#;

    #[test]
    fn any_bytes_are_a_lock_file_or_a_reason_in_words() {
        assert_eq!(modules(GOOD.as_bytes()).unwrap().len(), 2);
        // Every byte taken away, doubled, or replaced by each that means something in JSON, and every beginning of the text.
        for at in 0..GOOD.len() {
            let (before, after) = (&GOOD.as_bytes()[..at], &GOOD.as_bytes()[at + 1..]);
            let own = [GOOD.as_bytes()[at]; 2];
            let mut texts = vec![
                before.to_vec(),
                [before, after].concat(),
                [before, &own, after].concat(),
            ];
            for byte in *b"{}[]\",:-1e\\\0\xff\n" {
                texts.push([before, &[byte], after].concat());
            }
            for text in texts {
                match modules(&text) {
                    // What becomes an argument of git is a commit, whatever stands in the file.
                    Ok(modules) => assert!(modules.values().all(|module| {
                        let commit = module.commit.as_deref().unwrap_or_default();
                        commit.bytes().all(|byte| byte.is_ascii_hexdigit())
                    })),
                    Err(why) => assert!(!why.is_empty()),
                }
            }
        }
        let newer = GOOD.replace("\"version\": 1", "\"version\": 2");
        assert!(modules(newer.as_bytes()).unwrap_err().contains("newer version"));
        let deep = "[".repeat(1_000_000);
        assert!(modules(deep.as_bytes()).unwrap_err().contains("recursion"));
    }
}
