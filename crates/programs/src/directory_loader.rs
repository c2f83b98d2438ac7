//! Files of a program on disk.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use setpoint_diagnostics::{LoadError, Loader};

use crate::failure::system_text;

/// Reads below a directory, and nowhere else: neither `..` nor a link of a program that somebody wrote leads out of it. Paths are relative
/// to it, so that they are the same wherever the program lies; absolute ones are of modules from elsewhere, and stay below their directory.
#[derive(Debug, Clone)]
pub struct DirectoryLoader {
    root: PathBuf,
    /// Absolute.
    modules: Option<PathBuf>,
    /// The file that the user named, relative to the root: that one may be a link to anywhere.
    entry: Option<String>,
}

impl DirectoryLoader {
    /// Reads below `root`.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> DirectoryLoader {
        DirectoryLoader {
            root: root.into(),
            modules: None,
            entry: None,
        }
    }

    /// And, by absolute paths, below this directory.
    #[must_use]
    pub fn with_modules(mut self, directory: Option<&str>) -> DirectoryLoader {
        self.modules = directory.map(PathBuf::from);
        self
    }

    /// And this file, whatever it is a link to: the user named it.
    pub fn with_entry(mut self, file: &str) -> DirectoryLoader {
        self.entry = Some(file.to_owned());
        self
    }

    /// The directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Opens what is at a path, without leaving the directory on the way.
    fn open(&self, path: &str, flags: OFlags) -> Result<std::fs::File, Errno> {
        let (base, rest) = match Path::new(path).is_absolute() {
            false => (self.root.as_path(), path),
            true => {
                let modules = self.modules.as_deref().ok_or(Errno::XDEV)?;
                let rest = Path::new(path).strip_prefix(modules).map_err(|_| Errno::XDEV)?;
                (modules, rest.to_str().ok_or(Errno::INVAL)?)
            }
        };
        // An empty root is the working directory, and an empty path the root itself.
        let or_here = |path: &Path| match path.as_os_str().is_empty() {
            true => PathBuf::from("."),
            false => path.to_path_buf(),
        };
        // Opening a path alone does nothing to what is there, and knows no other flags.
        let flags = match flags.contains(OFlags::PATH) {
            true => flags | OFlags::CLOEXEC,
            false => flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY,
        };
        if self.entry.as_deref() == Some(path) {
            let opened = rustix::fs::openat(CWD, base.join(rest), flags, Mode::empty())?;
            return Ok(opened.into());
        }
        let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let base = rustix::fs::openat(CWD, or_here(base), directory, Mode::empty())?;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let rest = or_here(Path::new(rest));
        loop {
            match rustix::fs::openat2(&base, &rest, flags, Mode::empty(), resolve) {
                // A rename somewhere raced with a `..`.
                Err(Errno::AGAIN | Errno::INTR) => {}
                opened => return opened.map(Into::into),
            }
        }
    }

    /// Where what is at a path lies on this machine, links followed.
    pub(crate) fn real_path(&self, path: &str) -> io::Result<PathBuf> {
        use std::os::fd::AsRawFd;
        let opened = self.open(path, OFlags::PATH)?;
        std::fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd()))
    }

    fn type_of(&self, path: &str) -> Result<FileType, Errno> {
        let stat = rustix::fs::fstat(self.open(path, OFlags::PATH)?)?;
        Ok(FileType::from_raw_mode(stat.st_mode))
    }
}

/// What a path that leads out of the directory is told.
const OUTSIDE: &str = "it leads out of the program's directory";

fn load_error(error: &io::Error) -> LoadError {
    match error.kind() {
        io::ErrorKind::NotFound => LoadError::NotFound,
        io::ErrorKind::CrossesDevices => LoadError::Unreadable(OUTSIDE.to_owned()),
        _ => LoadError::Unreadable(system_text(error)),
    }
}

impl Loader for DirectoryLoader {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, LoadError> {
        let mut file = self
            .open(path, OFlags::RDONLY)
            .map_err(|error| load_error(&error.into()))?;
        let metadata = file.metadata().map_err(|error| load_error(&error))?;
        if !metadata.is_file() {
            return Err(LoadError::Unreadable("it is not a regular file".to_owned()));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|error| load_error(&error))?;
        Ok(bytes.into())
    }

    fn is_file(&self, path: &str) -> bool {
        match self.type_of(path) {
            Ok(found) => found == FileType::RegularFile,
            // It is there; reading it says what is wrong with it.
            Err(error) => error == Errno::XDEV,
        }
    }

    fn is_directory(&self, path: &str) -> bool {
        self.type_of(path).is_ok_and(|found| found == FileType::Directory)
    }

    fn list(&self, directory: &str) -> Result<Vec<String>, LoadError> {
        let directory = directory.trim_end_matches('/');
        let mut found = Vec::new();
        let mut waiting = vec![directory.to_owned()];
        while let Some(current) = waiting.pop() {
            let opened = self.open(&current, OFlags::RDONLY | OFlags::DIRECTORY);
            let opened = opened.map_err(|error| load_error(&error.into()))?;
            let entries = rustix::fs::Dir::new(opened).map_err(|error| load_error(&error.into()))?;
            for entry in entries {
                let entry = entry.map_err(|error| load_error(&error.into()))?;
                let Ok(name) = entry.file_name().to_str() else {
                    continue;
                };
                if name == "." || name == ".." {
                    continue;
                }
                let path = if current.is_empty() {
                    name.to_owned()
                } else {
                    format!("{current}/{name}")
                };
                // A link to a directory is not descended, so that a circle of links ends; one that leads out is no file of the program.
                let is_link = entry.file_type() == FileType::Symlink;
                match self.type_of(&path) {
                    Ok(FileType::Directory) if !is_link => waiting.push(path),
                    Ok(FileType::RegularFile) => found.push(path),
                    _ => {}
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
        assert_eq!(loader.read("files/b/../a").as_deref(), Ok(&b"1"[..]));
        assert_eq!(loader.read("nothing"), Err(LoadError::NotFound));
        let modules = root.path().to_str().map(|path| format!("{path}/"));
        let loader = DirectoryLoader::new("/nonexistent").with_modules(modules.as_deref());
        let absolute = root.path().join("files/a").to_string_lossy().into_owned();
        assert!(loader.is_file(&absolute));
    }

    #[test]
    fn nothing_leads_out_of_the_root() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("program");
        std::fs::create_dir_all(root.join("files")).unwrap();
        std::fs::write(place.path().join("secret"), "s").unwrap();
        std::os::unix::fs::symlink("../secret", root.join("link")).unwrap();
        std::os::unix::fs::symlink(place.path(), root.join("files/out")).unwrap();
        std::os::unix::fs::symlink("../secret", root.join("main.mcl")).unwrap();
        let absolute = place.path().join("secret").to_string_lossy().into_owned();
        let loader = DirectoryLoader::new(&root);
        let outside = Err(LoadError::Unreadable(OUTSIDE.to_owned()));
        for path in [
            "link",
            "../secret",
            "files/../../secret",
            "files/out/secret",
            &absolute,
        ] {
            assert_eq!(loader.read(path), outside, "{path}");
        }
        assert_eq!(loader.list("").unwrap(), Vec::<String>::new());
        assert_eq!(loader.list("../"), Err(LoadError::Unreadable(OUTSIDE.to_owned())));
        // But what the user names may be a link.
        let loader = loader.with_entry("main.mcl");
        assert_eq!(loader.read("main.mcl").as_deref(), Ok(&b"s"[..]));
    }
}
