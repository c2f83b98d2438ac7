//! The mounted file systems that the hub does not touch, and what changes with them.
//!
//! A file system that a user serves (FUSE), or that is served over a network, may answer late or never. A single call
//! that it does not answer would end the watching of everything. So below such a mount nothing is looked at here;
//! whoever watches a path there is told to look at regular intervals instead.

use crate::mounts::{Mount, MountList};
use std::os::fd::OwnedFd;

/// The mounted file systems, as they were when last read.
#[derive(Debug)]
pub(super) struct Mounts {
    /// Nothing where the list cannot be read; then every file system counts as a local one that stays.
    list: Option<MountList>,
    all: Vec<Mount>,
    /// Those that are served, and those below them.
    apart: Vec<Mount>,
}

impl Mounts {
    /// Reads the list.
    pub(super) fn new() -> Self {
        let mut mounts = Self {
            list: MountList::open().ok(),
            all: Vec::new(),
            apart: Vec::new(),
        };
        mounts.update();
        mounts
    }

    /// The list, to poll for its changes.
    pub(super) fn descriptor(&self) -> Option<OwnedFd> {
        self.list.as_ref()?.descriptor().ok()
    }

    /// Reads the list again, and answers the points where something is mounted now that was not before, or the other
    /// way round.
    pub(super) fn update(&mut self) -> Vec<Box<[u8]>> {
        let Some(Ok(all)) = self.list.as_mut().map(MountList::read) else {
            return Vec::new();
        };
        let old = std::mem::replace(&mut self.all, all);
        let served: Vec<&Mount> = self.all.iter().filter(|mount| mount.served).collect();
        let apart = |mount: &&Mount| served.iter().any(|served| is_inside(&mount.point, &served.point));
        self.apart = self.all.iter().filter(apart).cloned().collect();
        let gone = old.iter().filter(|mount| !self.all.contains(mount));
        let new = self.all.iter().filter(|mount| !old.contains(mount));
        let mut changed: Vec<_> = gone.chain(new).map(|mount| mount.point.clone()).collect();
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    /// Whether a path without links lies at or below a file system that is not touched.
    pub(super) fn is_served(&self, path: &[u8]) -> bool {
        let mut nearest: Option<&Mount> = None;
        for mount in &self.apart {
            // Of several at one point, the last is on top.
            if is_inside(path, &mount.point)
                && nearest.is_none_or(|nearest| nearest.point.len() <= mount.point.len())
            {
                nearest = Some(mount);
            }
        }
        nearest.is_some_and(|mount| mount.served)
    }
}

fn is_inside(path: &[u8], point: &[u8]) -> bool {
    path.strip_prefix(point)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}
