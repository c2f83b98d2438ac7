//! How the languages read files: through a trait, so that they cannot do I/O by themselves.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Reads the files of a program.
///
/// Paths are `/`-separated and are what the caller was given or made from it by joining; a loader does not
/// interpret `..` beyond what its medium does.
pub trait Loader: Send + Sync {
    /// The bytes of a file.
    ///
    /// # Errors
    /// When there is no such file, or it cannot be read.
    fn read(&self, path: &str) -> Result<Arc<[u8]>, LoadError>;

    /// Whether a file (not a directory) is there.
    fn is_file(&self, path: &str) -> bool;

    /// Whether a directory is there.
    fn is_directory(&self, path: &str) -> bool;

    /// Files below a directory, recursively, as paths that begin with `directory`, sorted.
    ///
    /// # Errors
    /// When the directory cannot be read.
    fn list(&self, directory: &str) -> Result<Vec<String>, LoadError>;
}

/// Why a file could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadError {
    /// There is none.
    NotFound,
    /// It is there; the reason why it cannot be read.
    Unreadable(String),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::NotFound => f.write_str("no such file"),
            LoadError::Unreadable(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for LoadError {}

/// Files in memory: for tests, for code given as an argument, for embedded modules.
#[derive(Debug, Clone, Default)]
pub struct MemoryLoader {
    files: BTreeMap<String, Arc<[u8]>>,
}

impl MemoryLoader {
    /// No files.
    #[must_use]
    pub fn new() -> MemoryLoader {
        MemoryLoader::default()
    }

    /// Adds a file, or replaces it.
    #[must_use]
    pub fn with(mut self, path: impl Into<String>, bytes: impl AsRef<[u8]>) -> MemoryLoader {
        self.files.insert(path.into(), bytes.as_ref().into());
        self
    }
}

impl Loader for MemoryLoader {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, LoadError> {
        self.files.get(&clean(path)).cloned().ok_or(LoadError::NotFound)
    }

    fn is_file(&self, path: &str) -> bool {
        self.files.contains_key(&clean(path))
    }

    fn is_directory(&self, path: &str) -> bool {
        let prefix = format!("{}/", clean(path).trim_end_matches('/'));
        prefix == "/" || self.files.keys().any(|f| f.starts_with(&prefix))
    }

    fn list(&self, directory: &str) -> Result<Vec<String>, LoadError> {
        let directory = directory.trim_end_matches('/');
        let prefix = match clean(directory).as_str() {
            "" => String::new(),
            clean => format!("{clean}/"),
        };
        Ok(self
            .files
            .keys()
            .filter(|f| f.starts_with(&prefix))
            .cloned()
            .collect())
    }
}

/// Removes `.` and resolves `..` lexically, as a real directory without links would.
fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|p| *p != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    if path.starts_with('/') {
        format!("/{joined}")
    } else {
        joined
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_resolves_dots_and_knows_directories() {
        let loader = MemoryLoader::new().with("a/b/main.mcl", "x").with("a/c.mcl", "y");
        assert!(loader.is_file("a/b/../c.mcl"));
        assert!(loader.is_directory("a/b/"));
        assert!(!loader.is_directory("a/c.mcl"));
        assert_eq!(
            loader.list("a/").expect("memory cannot fail"),
            ["a/b/main.mcl", "a/c.mcl"]
        );
        assert_eq!(loader.read("nope"), Err(LoadError::NotFound));
    }
}
