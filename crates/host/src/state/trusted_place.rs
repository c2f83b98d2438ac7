//! Whether a directory for our own state can be trusted: nobody else could have planted anything in it, or could put
//! another one in its place.

use crate::files::{AbsolutePath, Directory, Entry, FileError, Stat, is_trusted_owner, own_gid, own_uid};
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
    let real = real_path(path)?;
    let found = Directory::open(&real)?.stat()?;
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
    judge_above(path, &real)?;
    Ok(found)
}

fn judge_existing_above(path: &AbsolutePath) -> Result<(), StateError> {
    let mut above = path.parent();
    while let Some(here) = above {
        match real_path(&here) {
            Ok(real) => {
                judge_holder(path, &real)?;
                return judge_above(path, &real);
            }
            Err(error) if error.is_not_found() => above = here.parent(),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn judge_above(path: &AbsolutePath, real: &AbsolutePath) -> Result<(), StateError> {
    let mut above = real.parent();
    while let Some(here) = above {
        judge_holder(path, &here)?;
        above = here.parent();
    }
    Ok(())
}

/// In a sticky directory, such as `/tmp`, nobody else can rename or remove what is ours.
fn judge_holder(path: &AbsolutePath, holder: &AbsolutePath) -> Result<(), StateError> {
    const STICKY: u32 = 0o1000;
    let found = Directory::open(holder)?.stat()?;
    let open = !is_trusted_owner(found.uid) || (is_writable_by_others(&found) && found.mode & STICKY == 0);
    if open {
        return Err(StateError::Replaceable {
            path: path.as_path().to_path_buf(),
            above: holder.as_path().to_path_buf(),
        });
    }
    Ok(())
}

/// A group of one's own, as most systems give to every user, is nobody else; root's is not taken for one.
fn is_writable_by_others(found: &Stat) -> bool {
    let own_group = own_uid() != 0 && found.gid == own_gid() && found.uid == own_uid();
    let others = if own_group { 0o002 } else { 0o022 };
    found.mode & others != 0
}

/// The path without links in it, each of which is judged on the way.
fn real_path(path: &AbsolutePath) -> Result<AbsolutePath, FileError> {
    Directory::open(path)?.real_path()
}
