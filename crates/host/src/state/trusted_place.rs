//! Whether a directory for our own state can be trusted: nobody else could have planted anything in it, or could put
//! another one in its place.

use crate::files::{
    AbsolutePath, Directory, Entry, FileError, Stat, directory_open_to_others, is_writable_by_others, own_uid,
};
use std::path::PathBuf;

/// Why a directory is not used for our own state.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// It belongs to somebody else, who may have put anything into it.
    #[error("the directory {} belongs to uid {owner} and not to this user, uid {}, so what it holds cannot be trusted", path.display(), own_uid())]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// Who owns it.
        owner: u32,
    },
    /// Others can write in it.
    #[error("others can write in the directory {}, so what it holds cannot be trusted; `chmod go-w` ends that, after a look at what is in it", path.display())]
    Writable {
        /// The directory.
        path: PathBuf,
    },
    /// Others could put another directory in its place.
    #[error("others can write in {}, which lies above {}, and could put another directory in its place", above.display(), path.display())]
    Replaceable {
        /// The directory.
        path: PathBuf,
        /// The one above it that is open to others.
        above: PathBuf,
    },
    /// It is no path of a directory.
    #[error("{}: {reason}", path.display())]
    Unusable {
        /// What was given.
        path: PathBuf,
        /// Why it is none.
        reason: String,
    },
    /// It could not be looked at or made.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Makes the directory if it is missing, private whatever the umask is, and judges it and all above it.
pub(super) fn prepare(path: &AbsolutePath) -> Result<(), StateError> {
    let missing = match Entry::at(path) {
        Ok(entry) => entry.stat_following()?.is_none(),
        Err(error) if error.is_not_found() => true,
        Err(error) => return Err(error.into()),
    };
    if missing {
        // What is above it is judged before anything is made, else whoever can write there learns of it.
        judge_existing_above(path)?;
        Entry::create_directories(path, 0o700, 0o755)?;
    }
    let found = judge(path)?;
    if missing && found.mode & 0o777 != 0o700 {
        Entry::at(path)?.follow()?.set_mode(0o700)?;
    }
    Ok(())
}

/// Judges a directory that is there.
pub(super) fn judge(path: &AbsolutePath) -> Result<Stat, StateError> {
    let directory = Directory::open(path)?;
    let found = directory.stat()?;
    let shown = || path.as_path().to_path_buf();
    if found.uid != own_uid() {
        return Err(StateError::Foreign {
            path: shown(),
            owner: found.uid,
        });
    }
    if is_writable_by_others(&found) {
        return Err(StateError::Writable { path: shown() });
    }
    match directory.real_path()?.parent() {
        Some(above) => judge_from(path, &above).map(|()| found),
        None => Ok(found),
    }
}

/// Judges what is there of the directories above one that is missing.
fn judge_existing_above(path: &AbsolutePath) -> Result<(), StateError> {
    let mut above = path.parent();
    while let Some(here) = above {
        match judge_from(path, &here) {
            Err(StateError::File(error)) if error.is_not_found() => above = here.parent(),
            judged => return judged,
        }
    }
    Ok(())
}

/// Judges a directory above the path and all above that.
fn judge_from(path: &AbsolutePath, above: &AbsolutePath) -> Result<(), StateError> {
    match directory_open_to_others(above, None)? {
        None => Ok(()),
        Some(open) => Err(StateError::Replaceable {
            path: path.as_path().to_path_buf(),
            above: open.as_path().to_path_buf(),
        }),
    }
}
