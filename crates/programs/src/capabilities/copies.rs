//! Files as they will be when `deploy.directory` has copied what the program came with.
//!
//! Whoever only wants to know what a program describes changes nothing on the machine, and so makes no such copies; but a program may
//! read one. Below the place of the copies the files of the deploy are there instead, whatever an earlier run has left.

use std::io;
use std::sync::Arc;

use setpoint_value::{Deploy, FileWatch, Files, FollowedFile, Wake, WatchDepth};

use super::ProgramFiles;
use super::files::RealFiles;

/// The files of the machine, with the copies that a run would make.
pub(super) struct CopiesToBe {
    /// The machine's own.
    pub(super) files: RealFiles,
    deploy: Arc<ProgramFiles>,
    /// The directory in which a copy has the path that it has in the deploy.
    place: String,
}

impl CopiesToBe {
    pub(super) fn new(files: RealFiles, deploy: Arc<ProgramFiles>) -> CopiesToBe {
        let place = plain(&format!("{}vardir/directory", deploy.state_directory()));
        CopiesToBe { files, deploy, place }
    }

    /// The path in the deploy of which this one is a copy.
    fn original(&self, path: &str) -> Option<String> {
        let path = plain(path);
        let rest = path.strip_prefix(&self.place)?;
        rest.starts_with('/').then(|| rest.to_owned())
    }

    fn content(&self, original: &str) -> io::Result<Vec<u8>> {
        if !self.deploy.exists(original) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.deploy
            .read(original)
            .map_err(|problem| io::Error::new(io::ErrorKind::InvalidInput, problem))
    }
}

impl Files for CopiesToBe {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        match self.original(path) {
            Some(original) => self.content(&original),
            None => self.files.read(path),
        }
    }

    fn follow(&self, path: &str, wake: Wake) -> Box<dyn FollowedFile> {
        match self.original(path) {
            Some(original) => {
                wake.wake();
                Box::new(Unchanging(Some(self.content(&original))))
            }
            None => self.files.follow(path, wake),
        }
    }

    fn exists(&self, path: &str) -> bool {
        match self.original(path) {
            Some(original) => self.deploy.exists(&original),
            None => self.files.exists(path),
        }
    }

    fn read_link(&self, path: &str) -> io::Result<String> {
        match self.original(path) {
            Some(original) if self.deploy.exists(&original) => Err(io::ErrorKind::InvalidInput.into()),
            Some(_) => Err(io::ErrorKind::NotFound.into()),
            None => self.files.read_link(path),
        }
    }

    fn canonical(&self, path: &str) -> io::Result<String> {
        match self.original(path) {
            Some(original) if self.deploy.exists(&original) => Ok(plain(path)),
            Some(_) => Err(io::ErrorKind::NotFound.into()),
            None => self.files.canonical(path),
        }
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let Some(original) = self.original(path) else {
            return self.files.list(path);
        };
        let below = format!("{original}/");
        let files = self.deploy.list(&original);
        let names = files.iter().filter_map(|file| {
            let name = file.strip_prefix(&below)?.split('/').next()?;
            Some(name.to_owned())
        });
        // Sorted, as the files are; a directory comes once for each file below it.
        let mut names: Vec<String> = names.collect();
        names.dedup();
        match names.is_empty() {
            true if self.deploy.exists(&original) => Err(io::ErrorKind::NotADirectory.into()),
            true => Err(io::ErrorKind::NotFound.into()),
            false => Ok(names),
        }
    }

    fn is_executable(&self, path: &str) -> bool {
        match self.original(path) {
            Some(original) => self.deploy.exists(&original) && self.deploy.mode(&original) & 0o111 != 0,
            None => self.files.is_executable(path),
        }
    }

    fn watch(&self, path: &str, depth: WatchDepth, wake: Wake) -> io::Result<FileWatch> {
        self.files.watch(path, depth, wake)
    }
}

/// A file that says its content once.
struct Unchanging(Option<io::Result<Vec<u8>>>);

impl FollowedFile for Unchanging {
    fn take(&mut self) -> Option<io::Result<Vec<u8>>> {
        self.0.take()
    }
}

/// A path without empty parts, dots, and a slash at its end. Links are not looked at.
fn plain(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let start = if path.starts_with('/') { "/" } else { "" };
    format!("{start}{}", parts.join("/"))
}
