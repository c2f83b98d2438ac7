//! Whom files may be believed to come from.
//!
//! Root changes files in directories that others can write in. Everything found there may have been put there to
//! lead root astray: a link, a hard link, a file whose maker still holds it open. What is judged is always an inode
//! that is already held by a descriptor, never a path.

use super::Stat;

/// The user that this process acts as, to whom what it makes belongs.
pub fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The group that this process acts as, to which what it makes belongs.
pub fn own_gid() -> u32 {
    rustix::process::getegid().as_raw()
}

/// Whether what belongs to this user was made by somebody who may do as much as this process: root, or the user that
/// it runs as.
pub fn is_trusted_owner(uid: u32) -> bool {
    uid == 0 || uid == own_uid()
}

impl Stat {
    /// Whom this belongs to as far as the kernel vouches for it. On a file system that a user serves (FUSE), the files
    /// belong to whom that user says; what can be believed is only that they are that user's.
    pub(super) fn believed_owner(&self) -> u32 {
        crate::mounts::server_of(self.device).unwrap_or(self.uid)
    }

    /// Whether others than root and the user of this process can add, rename or remove entries of this directory.
    ///
    /// An access list needs no look of its own: what it grants to named users and groups is bounded by the bits of
    /// the group.
    pub fn is_open_to_others(&self) -> bool {
        !is_trusted_owner(self.uid) || self.mode & 0o022 != 0
    }

    /// Whether somebody who may do less than this process made the file, and may still hold it open or mapped.
    ///
    /// Only root can take such a file from its owner, so for everyone else the answer is no.
    pub fn is_made_by_others(&self) -> bool {
        rustix::process::geteuid().is_root() && !is_trusted_owner(self.uid)
    }
}
