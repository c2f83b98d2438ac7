//! Our own state on disk: private directories, files that are replaced whole and say their version, and the lock
//! that keeps a second process out.
//!
//! Everything can be killed at any time. A state file is always complete, old or new, and start-up needs no repair.

mod lock;
mod trusted_place;

pub use lock::{LOCK_NAME, LockError, PrefixLock};
pub use trusted_place::StateError;

use crate::files::{AbsolutePath, Committer, Directory, Entry, FileError, FileType, Replace, is_temporary};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::io;
use std::sync::Arc;

/// What the first line of a versioned file begins with.
const HEADER: &[u8] = b"setpoint-state ";
/// File systems take names of 255 bytes; what is longer than this is hashed.
const LONGEST_NAME: usize = 200;

/// A directory that only this user can enter.
#[derive(Debug, Clone)]
pub struct StateDirectory {
    path: AbsolutePath,
    directory: Arc<Directory>,
}

/// A state file's contents, with the version of its form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versioned {
    /// The version that it was written with.
    pub version: u32,
    /// What was written.
    pub payload: Vec<u8>,
}

/// What a versioned file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored {
    /// There is no such file.
    Nothing,
    /// What was written.
    Payload(Vec<u8>),
    /// Nothing that can be used; a line for the user says why, and where it is now.
    Unusable(String),
}

impl StateDirectory {
    /// Opens the directory at `path`, making it (mode 0700) and what is missing above it (mode 0755 less the umask).
    ///
    /// What is read from it later is trusted, so it must be nobody else's: it belongs to this user, only this user
    /// can write in it, and nobody else can put another one in its place.
    pub fn open(path: &AbsolutePath) -> Result<Self, StateError> {
        trusted_place::prepare(path)?;
        Ok(Self::open_existing(path)?)
    }

    /// Opens the directory at `path` as it is.
    pub fn open_existing(path: &AbsolutePath) -> Result<Self, FileError> {
        Ok(Self {
            path: path.clone(),
            directory: Arc::new(Directory::open(path)?),
        })
    }

    /// Where it is.
    pub fn path(&self) -> &AbsolutePath {
        &self.path
    }

    /// A directory in this one, made if it is missing. If others may enter it, that is ended.
    pub fn subdirectory(&self, name: &str) -> Result<Self, FileError> {
        let entry = self.entry(name);
        match entry.create_directory(0o700) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if let Some(stat) = entry.stat()?
                    && stat.is_directory()
                    && stat.mode & 0o077 != 0
                {
                    entry.set_mode(stat.mode & !0o077)?;
                }
            }
            Err(error) => return Err(error),
        }
        self.opened(name, &entry)
    }

    /// A directory in this one, if it is there. For those who may not change anything.
    pub fn find(&self, name: &str) -> Result<Option<Self>, FileError> {
        let entry = self.entry(name);
        match entry.stat()? {
            Some(_) => self.opened(name, &entry).map(Some),
            None => Ok(None),
        }
    }

    /// A handle on something in this directory.
    pub fn entry(&self, name: &str) -> Entry {
        self.directory.entry(name)
    }

    /// A file's contents; nothing if there is no such file.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, FileError> {
        match self.entry(name).read() {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces a file (mode 0600) and returns when it would survive a loss of power.
    pub fn write(
        &self,
        committer: &Committer,
        name: &str,
        bytes: impl AsRef<[u8]> + Send + 'static,
    ) -> Result<(), FileError> {
        committer
            .replace(Replace::bytes(self.path.join(name), bytes).mode(0o600))
            .map(drop)
    }

    /// A versioned file's contents; nothing if there is no such file. What is no versioned file is an error.
    pub fn read_versioned(&self, name: &str) -> Result<Option<Versioned>, FileError> {
        // A crash or a full disk can cut the first write of a file. Then nothing was stored in it yet.
        let Some(bytes) = self.read(name)?.filter(|bytes| !is_cut_header(bytes)) else {
            return Ok(None);
        };
        let parsed = bytes.strip_prefix(HEADER).and_then(|rest| {
            let end = rest.iter().position(|byte| *byte == b'\n')?;
            let version = std::str::from_utf8(&rest[..end]).ok()?.parse().ok()?;
            Some(Versioned {
                version,
                payload: rest[end + 1..].to_vec(),
            })
        });
        match parsed {
            Some(versioned) => Ok(Some(versioned)),
            None => {
                let source = io::Error::new(
                    io::ErrorKind::InvalidData,
                    "it is not a state file of this program",
                );
                Err(FileError::new("read", self.entry(name).path(), source))
            }
        }
    }

    /// A versioned file's contents in the form that `version` says. What is damaged or of another version (a newer
    /// program was here) is moved out of the way, unless nothing may be changed, and told.
    pub fn load(&self, name: &str, version: u32, may_change: bool) -> Result<Stored, FileError> {
        let why = match self.read_versioned(name) {
            Ok(None) => return Ok(Stored::Nothing),
            Ok(Some(stored)) if stored.version == version => return Ok(Stored::Payload(stored.payload)),
            Ok(Some(stored)) => format!(
                "it has version {}, and this program reads {version}",
                stored.version
            ),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => "it is damaged".to_owned(),
            Err(error) => return Err(error),
        };
        self.set_aside(name, &why, may_change)
    }

    /// Moves a file out of the way whose contents are of no use, unless nothing may be changed.
    pub fn set_aside(&self, name: &str, why: &str, may_change: bool) -> Result<Stored, FileError> {
        let path = self.path.join(name);
        if !may_change {
            return Ok(Stored::Unusable(format!("{path} is not used: {why}")));
        }
        let aside = format!("{name}.set-aside");
        self.entry(name).rename(&aside)?;
        Ok(Stored::Unusable(format!(
            "{path} is not used: {why}. It was renamed to {aside}"
        )))
    }

    /// Replaces a versioned file, as [`Self::write`] does.
    pub fn write_versioned(
        &self,
        committer: &Committer,
        name: &str,
        version: u32,
        payload: &[u8],
    ) -> Result<(), FileError> {
        let mut bytes = header(version);
        bytes.extend_from_slice(payload);
        self.write(committer, name, bytes)
    }

    /// Appends to a versioned file, which is begun if it is missing, and returns when that would survive a loss of power.
    /// What a crash left half-written at the end is for the reader to see: whole lines end in a newline.
    pub fn append_versioned(&self, name: &str, version: u32, bytes: &[u8]) -> Result<(), FileError> {
        let entry = self.entry(name);
        let complete = header(version).len() as u64;
        let is_cut = entry.stat()?.is_none_or(|stat| stat.size < complete)
            && self.read(name)?.is_none_or(|bytes| is_cut_header(&bytes));
        let mut all = Vec::new();
        if is_cut {
            self.remove(name)?;
            all = header(version);
        }
        all.extend_from_slice(bytes);
        entry.append_durably(&all, 0o600)
    }

    /// Removes a file or a whole directory; fine if there is none.
    pub fn remove(&self, name: &str) -> Result<(), FileError> {
        self.entry(name).remove_tree()
    }

    /// Returns when files that were removed from here would not come back after a loss of power.
    pub fn sync(&self) -> Result<(), FileError> {
        self.directory.sync()
    }

    /// Removes temporary files that a process which was killed has left. Only for whoever has the directory for itself.
    pub fn remove_leftovers(&self) -> Result<(), FileError> {
        for listed in self.directory.list()? {
            if is_temporary(&listed.name) {
                self.directory.entry(listed.name).remove_tree()?;
            }
        }
        Ok(())
    }

    /// The names of the directories in this one, sorted.
    pub fn subdirectories(&self) -> Result<Vec<OsString>, FileError> {
        Ok(self.names(FileType::Directory)?.collect())
    }

    /// The names of the files in this directory, sorted.
    pub fn files(&self) -> Result<Vec<OsString>, FileError> {
        Ok(self.names(FileType::Regular)?.collect())
    }

    fn names(&self, wanted: FileType) -> Result<impl Iterator<Item = OsString>, FileError> {
        let listed = self.directory.list()?.into_iter();
        Ok(listed
            .filter(move |entry| entry.file_type == wanted && !is_temporary(&entry.name))
            .map(|entry| entry.name))
    }

    fn opened(&self, name: &str, entry: &Entry) -> Result<Self, FileError> {
        let directory = Arc::new(entry.open_directory()?);
        Ok(Self {
            path: self.path.join(name),
            directory,
        })
    }
}

/// Whether a file has only a part of a header, or nothing.
fn is_cut_header(bytes: &[u8]) -> bool {
    match bytes.strip_prefix(HEADER) {
        Some(version) => version.iter().all(u8::is_ascii_digit),
        None => HEADER.starts_with(bytes),
    }
}

/// The first line of a versioned file.
fn header(version: u32) -> Vec<u8> {
    let mut bytes = HEADER.to_vec();
    bytes.extend_from_slice(version.to_string().as_bytes());
    bytes.push(b'\n');
    bytes
}

/// The name of the directory in which a resource's state is kept: readable where that is possible, of bounded
/// length always, and different for different resources.
///
/// A long name is hashed, so that the directory must store the name itself if anybody is to read it back.
pub fn identity_directory(kind: &str, name: &str) -> String {
    // A kind may hold colons, which are fine, and nothing else that a file system minds.
    let readable = format!("{}-{}", kind.replace('/', "+"), URL_SAFE_NO_PAD.encode(name));
    if readable.len() <= LONGEST_NAME {
        return readable;
    }
    let digest = Sha256::digest(format!("{kind}\0{name}"));
    // The dot is in no encoded name, so this cannot be taken for one.
    let kind: String = kind.replace('/', "+").chars().take(40).collect();
    format!("{kind}-.{}", URL_SAFE_NO_PAD.encode(digest))
}
