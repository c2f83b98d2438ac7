//! From what the kernel says to what is dirty.

use super::arena::Id;
use super::state::{Node, State, Walk, Watched, join};
use super::{Cause, Depth};
use crate::files::{is_temporary, number_of};
use rustix::fs::inotify::{self, ReadFlags, WatchFlags};
use smallvec::SmallVec;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// An entry came or went.
const STRUCTURE: ReadFlags = ReadFlags::CREATE
    .union(ReadFlags::DELETE)
    .union(ReadFlags::MOVED_FROM)
    .union(ReadFlags::MOVED_TO);

/// The watched directory itself is not where it was.
const GONE: ReadFlags = ReadFlags::DELETE_SELF
    .union(ReadFlags::MOVE_SELF)
    .union(ReadFlags::UNMOUNT)
    .union(ReadFlags::IGNORED);

impl State {
    /// Takes one event in. What follows from it is done by [`State::settle_some`].
    pub(super) fn process(&mut self, watch: i32, events: ReadFlags, cookie: u32, name: &[u8]) {
        if events.contains(ReadFlags::QUEUE_OVERFLOW) {
            self.begin_recovery();
            return;
        }
        let number = number_of(name);
        if let Some(number) = number.filter(|_| events.contains(ReadFlags::MOVED_FROM))
            && let Some(writer) = self.renames.take(number)
        {
            self.arriving.insert(cookie, writer);
        }
        if number.is_some() {
            // Our own temporary files: nobody watches them.
            return;
        }
        let writer = match events.contains(ReadFlags::MOVED_TO) {
            true => self.arriving.remove(&cookie),
            false => None,
        };
        if let Some(watched) = self.inodes.get(&watch).cloned() {
            for id in watched {
                // That of a file with one name is told by the directory, as far as it is a change at all.
                if events.contains(ReadFlags::ATTRIB) && self.is_settling(id) {
                    continue;
                }
                self.report(id, self.cause_for(id, events));
                self.queue_examination(id);
            }
            if events.contains(ReadFlags::IGNORED) {
                self.inodes.remove(&watch);
            }
        }
        let Some(nodes) = self.by_watch.get(&watch).cloned() else {
            return;
        };
        for node in nodes {
            if !self.nodes.contains(node) {
                continue;
            }
            if events.intersects(GONE) {
                self.node_is_gone(node, events.contains(ReadFlags::IGNORED));
            } else if name.is_empty() {
                self.report_inside(node, Depth::Entry);
            } else {
                self.entry_changed(node, name, events, writer);
            }
        }
    }

    /// Takes in that other file systems are mounted now.
    pub(super) fn mounts_changed(&mut self) {
        for point in self.mounts.update() {
            let Some(slash) = point.iter().rposition(|byte| *byte == b'/') else {
                continue;
            };
            let (parent, name) = (&point[..slash], &point[slash + 1..]);
            if let Some(parent) = self.node_at(parent) {
                self.entry_changed(parent, name, ReadFlags::CREATE | ReadFlags::ISDIR, None);
            }
        }
    }

    /// The node of a directory, if it is known.
    fn node_at(&self, path: &[u8]) -> Option<Id<Node>> {
        path.split(|byte| *byte == b'/')
            .filter(|name| !name.is_empty())
            .try_fold(Id::FIRST, |node, name| self.child_of(node, name))
    }

    /// Whether a node's directory is still at its path. Asking for its watch again tells: the kernel answers with
    /// the same number for the same directory, and queues no event.
    pub(super) fn is_in_place(&self, id: Id<Node>) -> bool {
        let node = &self.nodes[id];
        let path: &[u8] = if node.path.is_empty() { b"/" } else { &node.path };
        let Some(watch) = node.watch else {
            return self
                .look(path)
                .is_some_and(|stat| (stat.device, stat.inode) == node.identity);
        };
        let flags = WatchFlags::CREATE | WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW | WatchFlags::MASK_ADD;
        match inotify::add_watch(&self.inotify, path, flags) {
            Ok(found) if found == watch => true,
            Ok(found) => {
                if !self.by_watch.contains_key(&found) {
                    let _ = inotify::remove_watch(&self.inotify, found);
                }
                false
            }
            Err(_) => false,
        }
    }

    fn node_is_gone(&mut self, id: Id<Node>, unwatched: bool) {
        let Some(parent) = self.nodes[id].parent else {
            return;
        };
        if unwatched && let Some(watch) = self.nodes[id].watch.take() {
            // The kernel has removed the watch itself.
            self.by_watch.remove(&watch);
        }
        let name = super::nodes::last_component(&self.nodes[id].path).to_vec();
        self.detach(id);
        self.adopt(parent, &name);
    }

    /// Takes a directory into a covered tree, if there is one of that name.
    fn adopt(&mut self, parent: Id<Node>, name: &[u8]) {
        if self.is_covered(parent)
            && let Some(stat) = self.look(&join(&self.nodes[parent].path, name))
            && stat.is_directory()
        {
            self.child_node(parent, name, &stat);
        }
    }

    /// An entry of a directory came, went, or was changed; by `writer`, if it is one of our own replacements.
    fn entry_changed(&mut self, id: Id<Node>, name: &[u8], events: ReadFlags, writer: Option<(u64, u64)>) {
        let structure = events.intersects(STRUCTURE);
        let temporary = is_temporary(OsStr::from_bytes(name));
        if structure {
            if let Some(child) = self.child_of(id, name) {
                let identity = self.nodes[child].identity;
                let found = self.look(&join(&self.nodes[id].path, name));
                if !found.is_some_and(|stat| stat.is_directory() && (stat.device, stat.inode) == identity) {
                    self.detach(child);
                }
            }
            if events.contains(ReadFlags::ISDIR) && events.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO)
            {
                self.adopt(id, name);
            }
            for walk in self.lookups_named(id, name) {
                self.queue_resolution(walk);
            }
        }
        for walk in self.nodes[id].walks.clone() {
            for watched in self.entries_named(walk, name) {
                // What it put there is a file with one name. Only if something else was there, there is more to do.
                if writer.is_some() && self.is_plain_watch_of(watched, writer) {
                    continue;
                }
                // Any event may mean that the file has got a second name, so each batch looks at it once.
                if self.report(watched, self.cause_for(watched, events)) || structure {
                    self.queue_examination(watched);
                }
            }
        }
        if temporary {
            return;
        }
        self.report_inside(id, Depth::Children);
        let above: SmallVec<[Id<Node>; 16]> = self
            .and_above(id)
            .skip(1)
            .filter(|node| self.nodes[*node].recursive > 0)
            .collect();
        for node in above {
            self.report_inside(node, Depth::Recursive);
        }
    }

    /// What an event at a path says to whoever watches it.
    fn cause_for(&self, id: Id<Watched>, events: ReadFlags) -> Cause {
        // A new name is that of a finished file only if it was moved here.
        const WRITING: ReadFlags = ReadFlags::MODIFY
            .union(ReadFlags::ATTRIB)
            .union(ReadFlags::CREATE);
        if self.is_settling(id) && events.intersects(WRITING) && !events.contains(ReadFlags::CLOSE_WRITE) {
            Cause::Unsettled
        } else {
            Cause::Changed
        }
    }

    /// Reports those that look into a directory, at least so deep.
    fn report_inside(&mut self, node: Id<Node>, depth: Depth) {
        for walk in self.nodes[node].walks.clone() {
            for watched in self.looking_inside(walk, depth) {
                self.report(watched, Cause::Changed);
            }
        }
    }

    fn lookups_named(&self, node: Id<Node>, name: &[u8]) -> SmallVec<[Id<Walk>; 2]> {
        let lookups = &self.nodes[node].lookups;
        if lookups.is_empty() {
            return SmallVec::new();
        }
        lookups
            .iter_hash(self.hash(name))
            .copied()
            .filter(|walk| self.walks[*walk].name() == name)
            .collect()
    }
}
