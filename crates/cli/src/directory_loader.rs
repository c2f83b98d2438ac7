//! Files of a program on disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use setpoint_diagnostics::{LoadError, Loader};

/// Reads below a directory. Paths are relative to it, so that they are the same wherever the program lies; absolute ones
/// (modules in the global directory) are taken as they are.
#[derive(Debug, Clone)]
pub struct DirectoryLoader {
    root: PathBuf,
}

impl DirectoryLoader {
    /// Reads below `root`.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> DirectoryLoader {
        DirectoryLoader { root: root.into() }
    }

    /// The directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn path(&self, path: &str) -> PathBuf {
        // An empty root is the working directory, and an empty path the root itself.
        let joined = self.root.join(path);
        if joined.as_os_str().is_empty() {
            PathBuf::from(".")
        } else {
            joined
        }
    }
}

impl Loader for DirectoryLoader {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, LoadError> {
        match std::fs::read(self.path(path)) {
            Ok(bytes) => Ok(bytes.into()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(LoadError::NotFound),
            Err(error) => Err(LoadError::Unreadable(error.to_string())),
        }
    }

    fn is_file(&self, path: &str) -> bool {
        self.path(path).is_file()
    }

    fn is_directory(&self, path: &str) -> bool {
        self.path(path).is_dir()
    }

    fn list(&self, directory: &str) -> Result<Vec<String>, LoadError> {
        let directory = directory.trim_end_matches('/');
        let mut found = Vec::new();
        let mut waiting = vec![directory.to_owned()];
        while let Some(current) = waiting.pop() {
            let entries = std::fs::read_dir(self.path(&current));
            let entries = entries.map_err(|error| LoadError::Unreadable(error.to_string()))?;
            for entry in entries {
                let entry = entry.map_err(|error| LoadError::Unreadable(error.to_string()))?;
                let Ok(name) = entry.file_name().into_string() else {
                    continue;
                };
                let path = if current.is_empty() {
                    name
                } else {
                    format!("{current}/{name}")
                };
                // A link to a directory is not descended, so that a circle of links ends.
                let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if is_directory {
                    waiting.push(path);
                } else if self.is_file(&path) {
                    found.push(path);
                }
            }
        }
        found.sort();
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_root_and_sorted() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("files/b")).unwrap();
        std::fs::write(root.path().join("files/b/two"), "2").unwrap();
        std::fs::write(root.path().join("files/a"), "1").unwrap();
        let loader = DirectoryLoader::new(root.path());
        assert_eq!(loader.list("files/").unwrap(), ["files/a", "files/b/two"]);
        assert!(loader.is_directory("files") && loader.is_directory(""));
        assert_eq!(loader.read("files/a").as_deref(), Ok(&b"1"[..]));
        assert_eq!(loader.read("nothing"), Err(LoadError::NotFound));
        let absolute = root.path().join("files/a").to_string_lossy().into_owned();
        assert!(loader.is_file(&absolute));
    }
}
