//! What the hub has still to look at, in slices: whoever waits for the hub's lock waits for one of them at most.
//!
//! Walks and paths come first, because reports wait for them. Then comes what an overflow has made doubtful, and the
//! directories of covered trees, which may be very many.

use super::Cause;
use super::Depth;
use super::arena::Id;
use super::state::{Node, State, Walk, Watched, join};
use rustix::fs::{FileType, Mode, OFlags};
use std::collections::VecDeque;

/// So many system calls, about, are made under the lock at a time.
const SLICE: usize = 128;

/// Queues of what is to be looked at.
#[derive(Debug, Default)]
pub(super) struct Work {
    walks: VecDeque<Id<Walk>>,
    watched: VecDeque<Id<Watched>>,
    /// Directories that may not be where they were.
    doubtful: VecDeque<Id<Node>>,
    scans: VecDeque<Scan>,
}

/// A part of a covered tree, to be armed.
#[derive(Debug)]
struct Scan {
    /// A directory, or the one that holds it.
    node: Id<Node>,
    /// The entry of it that is meant, if it is not the directory itself.
    name: Option<Box<[u8]>>,
    /// Whether whoever covers the tree is told of what is found. It may have changed before it was armed.
    news: bool,
}

/// How far a slice has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing is left.
    Done,
    /// Every watch is where its path leads; directories of trees are left.
    Settled,
    /// There is more.
    More,
}

impl Work {
    pub(super) fn resolve(&mut self, walk: Id<Walk>) {
        self.walks.push_back(walk);
    }

    pub(super) fn examine(&mut self, watched: Id<Watched>) {
        self.watched.push_back(watched);
    }
}

impl State {
    /// Does a part of what is left.
    pub(super) fn settle_some(&mut self) -> Progress {
        for _ in 0..SLICE {
            if let Some(walk) = self.work.walks.pop_front() {
                if let Some(found) = self.walks.get_mut(walk) {
                    found.queued = false;
                    self.resolve(walk);
                }
            } else if let Some(watched) = self.work.watched.pop_front() {
                self.examine(watched);
            } else if let Some(node) = self.work.doubtful.pop_front() {
                if self.nodes.contains(node) && !self.is_in_place(node) {
                    self.detach(node);
                }
                if self.work.doubtful.is_empty() {
                    self.end_doubts();
                }
            } else if let Some(scan) = self.work.scans.pop_front() {
                self.scan_one(scan);
            } else {
                self.recovering = false;
                return Progress::Done;
            }
        }
        let settled = self.work.walks.is_empty() && self.work.watched.is_empty() && !self.recovering;
        if settled {
            Progress::Settled
        } else {
            Progress::More
        }
    }

    /// After the kernel's queue has overflowed: everything is reported, when it was looked where everything is.
    pub(super) fn begin_recovery(&mut self) {
        self.recovering = true;
        self.renames.clear();
        self.arriving.clear();
        let watched: Vec<Id<Watched>> = self.watched.ids().collect();
        for id in watched {
            self.report(id, Cause::Overflow);
        }
        self.work.doubtful = self.and_below(Id::FIRST).into();
    }

    fn end_doubts(&mut self) {
        let walks: Vec<Id<Walk>> = self.walks.ids().collect();
        for walk in walks {
            self.queue_resolution(walk);
        }
        let watched: Vec<Id<Watched>> = self.watched.ids().collect();
        for id in watched {
            self.queue_examination(id);
        }
        let roots: Vec<Id<Node>> = self
            .nodes
            .ids()
            .filter(|node| self.nodes[*node].recursive > 0)
            .collect();
        for node in roots {
            self.scan(node, true);
        }
    }

    /// Arms every directory below a node, later. With `news`, whoever covers it is told again when that is done.
    pub(super) fn scan(&mut self, node: Id<Node>, news: bool) {
        let name = None;
        self.work.scans.push_back(Scan { node, name, news });
    }

    /// Each directory is armed before it is listed, so that no entry is missed.
    fn scan_one(&mut self, scan: Scan) {
        // Numbers are used again; what is armed for a tree must be in one.
        if !self.nodes.contains(scan.node) || !self.is_covered(scan.node) {
            return;
        }
        let node = match &scan.name {
            None => scan.node,
            Some(name) => match self.look(&join(&self.nodes[scan.node].path, name)) {
                Some(stat) if stat.is_directory() => self.find_or_make_child(scan.node, name, &stat).0,
                _ => return,
            },
        };
        self.arm(node, true);
        let names = list_directories(&self.nodes[node].path);
        let (news, name) = (scan.news, |name: Vec<u8>| Some(name.into_boxed_slice()));
        let inner = names.into_iter().map(|found| Scan {
            node,
            name: name(found),
            news,
        });
        self.work.scans.extend(inner);
        if news {
            self.report_covering(node);
        }
    }

    /// Reports those that look at everything below a directory or one above it.
    fn report_covering(&mut self, node: Id<Node>) {
        let above: Vec<Id<Node>> = self.and_above(node).collect();
        for node in above {
            for walk in self.nodes[node].walks.clone() {
                for watched in self.looking_inside(walk, Depth::Recursive) {
                    self.report(watched, Cause::Changed);
                }
            }
        }
    }
}

/// The names of the directories in a directory; none if it cannot be read.
fn list_directories(path: &[u8]) -> Vec<Vec<u8>> {
    let path = if path.is_empty() { b"/" } else { path };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty()).and_then(rustix::fs::Dir::new);
    let Ok(entries) = opened else { return Vec::new() };
    entries
        .filter_map(Result::ok)
        .filter(|entry| matches!(entry.file_type(), FileType::Directory | FileType::Unknown))
        .map(|entry| entry.file_name().to_bytes().to_vec())
        .filter(|name| name != b"." && name != b"..")
        .collect()
}
