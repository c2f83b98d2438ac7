//! What can go wrong with a file, always with its path.

use super::FileType;
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};

/// An operation on a file that did not succeed.
///
/// The texts are fragments that read after «failed to»: `read /etc/motd: permission denied`.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The system refused.
    #[error("{attempted} {}: {source}", path.display())]
    System {
        /// What was tried, as a verb phrase.
        attempted: &'static str,
        /// What it was tried on.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// There is something of another type than the operation is for.
    #[error("{attempted} {}: it is a {found}", path.display())]
    WrongType {
        /// What was tried, as a verb phrase.
        attempted: &'static str,
        /// What it was tried on.
        path: PathBuf,
        /// What is there.
        found: FileType,
    },
    /// A symbolic link that an ordinary user controls leads to something that is not theirs.
    #[error("follow the link {}: uid {link_owner} controls it, but what it leads to belongs to uid {target_owner}", path.display())]
    UnsafeLink {
        /// The path on whose way the link lies.
        path: PathBuf,
        /// Who controls the link.
        link_owner: u32,
        /// Who owns what it leads to.
        target_owner: u32,
    },
    /// A symbolic link of root's, in a directory where others may have put it.
    #[error("follow the link {}: it lies in a directory that others can write in, so that anybody may have put it there", path.display())]
    MovableLink {
        /// The path on whose way the link lies.
        path: PathBuf,
    },
    /// A hard link that an ordinary user may have made to somebody else's file.
    #[error("{attempted} {}: it has several names, and others than its owner uid {owner} can write in this directory and may have given it this one", path.display())]
    UnsafeHardLink {
        /// What was tried, as a verb phrase.
        attempted: &'static str,
        /// What it was tried on.
        path: PathBuf,
        /// Who owns the file.
        owner: u32,
    },
    /// A file of another user cannot be taken from them, because it cannot be replaced by a new one.
    #[error("take over {}: it belongs to uid {owner}, who may hold it open, and it cannot be replaced because something is mounted on it", path.display())]
    NotToBeTakenOver {
        /// The file that has other names.
        path: PathBuf,
        /// Who owns it.
        owner: u32,
    },
    /// Another file system is mounted on it.
    #[error("{attempted} {}: another file system is mounted on it", path.display())]
    MountedOn {
        /// What was tried, as a verb phrase.
        attempted: &'static str,
        /// What it was tried on.
        path: PathBuf,
    },
    /// Something else was put in the place of what was to be written to.
    #[error("{attempted} {}: somebody put another file in its place meanwhile", path.display())]
    Exchanged {
        /// What was tried, as a verb phrase.
        attempted: &'static str,
        /// What it was tried on.
        path: PathBuf,
    },
}

impl FileError {
    pub(crate) fn new(
        attempted: &'static str,
        path: impl Into<PathBuf>,
        source: impl Into<io::Error>,
    ) -> Self {
        Self::System {
            attempted,
            path: path.into(),
            source: source.into(),
        }
    }

    /// For `map_err`: names what was tried on which path.
    pub(crate) fn on<E: Into<io::Error>>(attempted: &'static str, path: &Path) -> impl FnOnce(E) -> Self {
        move |source| Self::new(attempted, path, source)
    }

    /// What was tried, as a verb phrase.
    pub fn attempted(&self) -> &'static str {
        match self {
            Self::System { attempted, .. }
            | Self::WrongType { attempted, .. }
            | Self::UnsafeHardLink { attempted, .. }
            | Self::MountedOn { attempted, .. }
            | Self::Exchanged { attempted, .. } => attempted,
            Self::UnsafeLink { .. } | Self::MovableLink { .. } => "follow the link",
            Self::NotToBeTakenOver { .. } => "take over",
        }
    }

    /// Why it did not succeed, without what was tried on which path.
    pub fn reason(&self) -> String {
        let text = self.to_string();
        let known = format!("{} {}: ", self.attempted(), self.path().display());
        text.strip_prefix(&known).map_or(text.clone(), str::to_owned)
    }

    /// What it was tried on.
    pub fn path(&self) -> &Path {
        match self {
            Self::System { path, .. }
            | Self::WrongType { path, .. }
            | Self::UnsafeLink { path, .. }
            | Self::MovableLink { path }
            | Self::NotToBeTakenOver { path, .. }
            | Self::Exchanged { path, .. }
            | Self::MountedOn { path, .. }
            | Self::UnsafeHardLink { path, .. } => path,
        }
    }

    /// The kind of the system's answer; [`io::ErrorKind::Other`] where we refused ourselves.
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::System { source, .. } => source.kind(),
            _ => io::ErrorKind::Other,
        }
    }

    /// Whether nothing is there, also because a directory on the way is missing.
    pub fn is_not_found(&self) -> bool {
        self.kind() == io::ErrorKind::NotFound
    }

    pub(crate) fn errno(&self) -> Option<Errno> {
        match self {
            Self::System { source, .. } => Errno::from_io_error(source),
            _ => None,
        }
    }
}
