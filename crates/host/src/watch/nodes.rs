//! The tree of directories that are watched: arming, covering whole trees, tearing down.

use super::arena::Id;
use super::state::{Node, State, Walk, Watched, join};
use crate::files::Stat;
use hashbrown::HashTable;
use rustc_hash::FxHashSet;
use rustix::fs::inotify::{self, WatchFlags};
use rustix::io::Errno;
use smallvec::SmallVec;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// What every directory on the way to a watched path is watched for: entries that come and go.
const STRUCTURE: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::DONT_FOLLOW)
    // A deleted file that somebody still writes to must not be taken for its successor.
    .union(WatchFlags::EXCL_UNLINK)
    // Two nodes may be one directory: what the other wants is kept.
    .union(WatchFlags::MASK_ADD);

/// What a directory with watched entries is watched for besides.
const CONTENTS: WatchFlags = WatchFlags::MODIFY.union(WatchFlags::ATTRIB);

impl State {
    /// Makes the one node and the one walk that are always there.
    pub(super) fn plant_root(&mut self) {
        let identity = self.look(b"/").map_or((0, 0), |stat| (stat.device, stat.inode));
        let node = self.nodes.insert(new_node(None, Box::default(), identity));
        let mut walk = Walk::new(super::state::Place::Root);
        walk.node = Some(node);
        walk.references = 1;
        let walk = self.walks.insert(walk);
        self.nodes[node].walks.push(walk);
        self.arm(node, false);
    }

    pub(super) fn path_of(&self, node: &Id<Node>) -> PathBuf {
        match &*self.nodes[*node].path {
            [] => PathBuf::from("/"),
            path => PathBuf::from(OsStr::from_bytes(path)),
        }
    }

    pub(super) fn child_of(&self, node: Id<Node>, name: &[u8]) -> Option<Id<Node>> {
        let children = &self.nodes[node].children;
        if children.is_empty() {
            return None;
        }
        children
            .find(self.hash(name), |child| {
                last_component(&self.nodes[*child].path) == name
            })
            .copied()
    }

    /// The node of a directory that was just seen in another one.
    pub(super) fn child_node(&mut self, parent: Id<Node>, name: &[u8], seen: &Stat) -> Id<Node> {
        let (node, new) = self.find_or_make_child(parent, name, seen);
        if new && self.is_covered(parent) {
            self.scan(node, true);
        }
        node
    }

    pub(super) fn find_or_make_child(
        &mut self,
        parent: Id<Node>,
        name: &[u8],
        seen: &Stat,
    ) -> (Id<Node>, bool) {
        let identity = (seen.device, seen.inode);
        match self.child_of(parent, name) {
            Some(child) if self.nodes[child].identity == identity => return (child, false),
            Some(child) => self.detach(child),
            None => {}
        }
        let path = join(&self.nodes[parent].path, name).into_boxed_slice();
        let node = self.nodes.insert(new_node(Some(parent), path, identity));
        let mut children = std::mem::take(&mut self.nodes[parent].children);
        let hash = self.hash(name);
        children.insert_unique(hash, node, |child| {
            self.hash(last_component(&self.nodes[*child].path))
        });
        self.nodes[parent].children = children;
        self.arm(node, false);
        (node, true)
    }

    /// Sees to it that a node has a kernel watch, for its entries' contents too if wanted.
    pub(super) fn arm(&mut self, id: Id<Node>, contents: bool) {
        let node = &mut self.nodes[id];
        if node.watch.is_some() && (node.contents || !contents) {
            return;
        }
        node.contents |= contents;
        let flags = if node.contents {
            STRUCTURE | CONTENTS
        } else {
            STRUCTURE
        };
        let path: &[u8] = if node.path.is_empty() { b"/" } else { &node.path };
        match inotify::add_watch(&self.inotify, path, flags) {
            Ok(watch) => {
                node.error = None;
                if node.watch != Some(watch) {
                    self.disarm(id);
                    self.nodes[id].watch = Some(watch);
                    self.by_watch.entry(watch).or_default().push(id);
                }
            }
            // It has just gone, which its parent's watch will tell.
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(error) => {
                node.error = Some(error);
                // Directories on the way that may be passed but not read are common, and none of ours to change.
                if node.contents || error != Errno::ACCESS {
                    self.failed.push((id, error));
                }
            }
        }
    }

    fn disarm(&mut self, id: Id<Node>) {
        let Some(watch) = self.nodes[id].watch.take() else {
            return;
        };
        if let Some(members) = self.by_watch.get_mut(&watch) {
            members.retain(|member| *member != id);
            if members.is_empty() {
                self.by_watch.remove(&watch);
                // The directory may be gone, and its watch with it.
                let _ = inotify::remove_watch(&self.inotify, watch);
            }
        }
    }

    /// Whether somebody looks at everything below this directory or one above it.
    pub(super) fn is_covered(&self, node: Id<Node>) -> bool {
        self.and_above(node).any(|node| self.nodes[node].recursive > 0)
    }

    /// A node and those that it is in, up to the root.
    pub(super) fn and_above(&self, node: Id<Node>) -> impl Iterator<Item = Id<Node>> {
        std::iter::successors(Some(node), |node| self.nodes[*node].parent)
    }

    /// Gives up what only a watch on everything below a node needed.
    pub(super) fn uncover(&mut self, node: Id<Node>) {
        if self.is_covered(node) {
            return;
        }
        for node in self.and_below(node).into_iter().rev() {
            self.release_node(node);
        }
    }

    /// A node and everything in it, outer ones first.
    pub(super) fn and_below(&self, node: Id<Node>) -> Vec<Id<Node>> {
        let mut nodes = vec![node];
        let mut next = 0;
        while let Some(node) = nodes.get(next) {
            nodes.extend(self.nodes[*node].children.iter().copied());
            next += 1;
        }
        nodes
    }

    /// Frees a node that nobody needs any more, and then those above it.
    pub(super) fn release_node(&mut self, mut id: Id<Node>) {
        while let Some(node) = self.nodes.get(id) {
            let Some(parent) = node.parent else { return };
            if !node.walks.is_empty()
                || !node.lookups.is_empty()
                || !node.children.is_empty()
                || self.is_covered(id)
            {
                return;
            }
            self.disarm(id);
            self.forget_child(parent, id);
            self.nodes.remove(id);
            id = parent;
        }
    }

    fn forget_child(&mut self, parent: Id<Node>, child: Id<Node>) {
        let hash = self.hash(last_component(&self.nodes[child].path));
        if let Ok(found) = self.nodes[parent]
            .children
            .find_entry(hash, |other| *other == child)
        {
            found.remove();
        }
    }

    /// Frees a node whose directory is no longer where it was, with all in it. Every walk that led there or beyond
    /// is queued.
    pub(super) fn detach(&mut self, id: Id<Node>) {
        let Some(parent) = self.nodes[id].parent else {
            return;
        };
        self.forget_child(parent, id);
        for node in self.and_below(id) {
            self.disarm(node);
            let Some(node) = self.nodes.remove(node) else {
                continue;
            };
            for walk in node.walks {
                self.walks[walk].node = None;
                self.walks[walk].moved = true;
                self.queue_resolution(walk);
            }
            for walk in node.lookups {
                self.walks[walk].registered = None;
                self.queue_resolution(walk);
            }
        }
        // Its parent is not released here: who detaches looks again at once, and mostly finds a successor.
    }

    /// The watched paths that miss something when a node is not watched.
    pub(super) fn concerned_by(&self, node: Id<Node>) -> Vec<Id<Watched>> {
        if !self.nodes.contains(node) {
            return Vec::new();
        }
        let mut concerned = Vec::new();
        for above in self.and_above(node) {
            for walk in &self.nodes[above].walks {
                concerned.extend(self.looking_inside(*walk, super::Depth::Recursive));
            }
        }
        let mut walks: Vec<Id<Walk>> = Vec::new();
        for node in self.and_below(node) {
            walks.extend(
                self.nodes[node]
                    .walks
                    .iter()
                    .chain(self.nodes[node].lookups.iter()),
            );
        }
        let mut visited = FxHashSet::default();
        while let Some(id) = walks.pop() {
            if visited.insert(id) {
                let walk = &self.walks[id];
                concerned.extend(walk.entries.iter().chain(walk.inside.iter()));
                walks.extend(walk.children.iter().chain(walk.dependents.iter()));
            }
        }
        concerned.sort_unstable();
        concerned.dedup();
        concerned
    }
}

fn new_node(parent: Option<Id<Node>>, path: Box<[u8]>, identity: (u64, u64)) -> Node {
    Node {
        parent,
        path,
        identity,
        watch: None,
        error: None,
        contents: false,
        recursive: 0,
        children: HashTable::new(),
        lookups: HashTable::new(),
        walks: SmallVec::new(),
    }
}

pub(super) fn last_component(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}
