//! Whom files may be believed to come from.
//!
//! Root changes files in directories that others can write in. Everything found there may have been put there to
//! lead root astray: a link, a hard link, a file whose maker still holds it open. What is judged is always an inode
//! that is already held by a descriptor, never a path.

use super::{AbsolutePath, Directory, FileError, Stat};

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

/// The nearest of a directory and those above it in which somebody else can put another entry in the place of a trusted one;
/// nothing if nobody can. Nobody else is root, the user of this process, and the user `also`.
///
/// In a sticky directory, such as `/tmp`, others can neither rename nor remove what is not theirs.
pub fn directory_open_to_others(
    path: &AbsolutePath,
    also: Option<u32>,
) -> Result<Option<AbsolutePath>, FileError> {
    const STICKY: u32 = 0o1000;
    // Without a link in it: each is judged on the way.
    let mut next = Some(Directory::open(path)?.real_path()?);
    while let Some(here) = next {
        let found = Directory::open(&here)?.stat()?;
        let is_trusted = is_trusted_owner(found.uid) || also == Some(found.uid);
        if !is_trusted || (is_writable_by_others(&found) && found.mode & STICKY == 0) {
            return Ok(Some(here));
        }
        next = here.parent();
    }
    Ok(None)
}

/// Whether the mode lets others than the owner change what is in it. A group of one's own, as most systems give to every
/// user, is nobody else; root's is not taken for one.
pub(crate) fn is_writable_by_others(found: &Stat) -> bool {
    let own_group = own_uid() != 0 && found.gid == own_gid() && found.uid == own_uid();
    let others = if own_group { 0o002 } else { 0o022 };
    found.mode & others != 0
}
