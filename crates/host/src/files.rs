//! Files, by descriptor: reading, comparing, replacing and removing without being led astray.
//!
//! Root writes below directories that users own, so no operation here trusts a path string for longer than one
//! system call. [`Entry::at`] walks to the *parent* of a path once, judging every symbolic link on the way (see
//! [`Directory::open`] for the rule), and everything afterwards is relative to the parent's descriptor. The last
//! component is never followed unless [`Entry::follow`] is asked to.
//!
//! Contents are replaced, not overwritten: a temporary file in the same directory gets its final owner, mode,
//! extended attributes and bytes, is synced, and is renamed over the old one. [`Committer`] does that for many
//! files at the price of a few syncs. Everything is blocking and belongs on worker threads.

mod access;
mod attributes;
mod committer;
mod directory;
mod directory_lock;
mod entry;
mod error;
mod new_tree;
mod own_renames;
mod path;
mod read;
mod replace;
mod sparse;
mod stat;
mod temporary;
mod tree;
mod trust;
mod verified;

pub use committer::{Committer, Lead, Party};
pub use directory::{Directory, ListedEntry};
pub use directory_lock::{DirectoryLock, LockHolder, NotLocked};
pub use entry::Entry;
pub use error::FileError;
pub use new_tree::{NewTree, exchange_directory};
pub(crate) use own_renames::OwnRenames;
pub use own_renames::Writer;
pub use path::{AbsolutePath, InvalidPath};
pub use read::{OpenFile, same_content};
pub use replace::{Content, InPlaceReason, Method, Prepared, Replace, Replaced, WriteFunction};
pub use stat::{FileType, Stamp, Stat, Timestamp};
pub(crate) use temporary::number_of;
pub use temporary::{TEMPORARY_PREFIX, is_temporary};
pub use tree::{Extent, Fate, Leftovers, Purged, Removal, Removed};
pub(crate) use trust::is_writable_by_others;
pub use trust::{directory_open_to_others, is_trusted_owner, own_gid, own_uid};
pub use verified::{Fingerprint, VerifiedFiles};

/// The permission bits that the process's umask takes away from new files.
///
/// Read once from `/proc/self/status`, because asking the kernel means setting it, which other threads would see.
pub fn umask() -> u32 {
    static UMASK: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *UMASK.get_or_init(|| {
        std::fs::read_to_string("/proc/self/status")
            .ok()
            .and_then(|status| {
                let line = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
                u32::from_str_radix(line.trim(), 8).ok()
            })
            .unwrap_or(0o022)
    })
}
