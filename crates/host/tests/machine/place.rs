//! A directory for one test, and short ways to put things into it.

use setpoint_host::files::AbsolutePath;
use std::fs;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};

/// A temporary directory, removed at the end of the test.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// One in which root acts for users who can look into it; none where the test may not.
    pub(crate) fn of_root() -> Option<Self> {
        is_root().then(|| {
            let place = Self::new();
            place.chmod("", 0o755);
            place
        })
    }

    /// The path of `name` here; `name` may end in a slash.
    pub(crate) fn path(&self, name: &str) -> AbsolutePath {
        AbsolutePath::new(self.0.path().join(name)).unwrap()
    }

    pub(crate) fn std(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.std(name);
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        String::from_utf8(fs::read(self.std(name)).unwrap()).unwrap()
    }

    pub(crate) fn directory(&self, name: &str) -> PathBuf {
        let path = self.std(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    pub(crate) fn link(&self, name: &str, text: impl AsRef<Path>) -> PathBuf {
        let path = self.std(name);
        symlink(text, &path).unwrap();
        path
    }

    pub(crate) fn chown(&self, name: &str, owner: u32) {
        lchown(self.std(name), Some(owner), Some(owner)).unwrap();
    }

    pub(crate) fn chmod(&self, name: &str, mode: u32) {
        fs::set_permissions(self.std(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(crate) fn mode(&self, name: &str) -> u32 {
        fs::symlink_metadata(self.std(name)).unwrap().permissions().mode() & 0o7777
    }

    /// The names here, sorted.
    pub(crate) fn names(&self, name: &str) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.std(name))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// Whether the test may act for other users. Says so if it is skipped.
pub(crate) fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("skipped: needs root");
    }
    root
}
