//! What the hub knows, and the life of a single watch.
//!
//! Three sorts of things refer to each other by number:
//!
//! - A [`Node`] is a directory as it is on the machine, reached without any link: it holds the kernel watch. Nodes
//!   form a tree; a node lives as long as something looks into it.
//! - A [`Walk`] is a path to a directory as somebody wrote it. It is looked up in the node of its parent walk, and
//!   ends at a node, or nowhere yet. Where a link is met, the walk depends on the walks that the link's text leads
//!   through. Walks are shared by text.
//! - A [`Watched`] is one path that somebody watches: a name in a walk's directory. It costs no node and no kernel
//!   watch of its own, unless it is a directory to be looked into, a link, or a file with several names.
//!
//! Events change nodes, changed nodes queue the walks that looked into them, changed walks queue their children and
//! dependents and mark their paths as dirty. [`State::settle_some`] works through the queues.

use super::arena::{Arena, Id};
use super::mounts::Mounts;
use super::work::{Progress, Work};
use super::{Cause, Depth, PollReason, WatchError, WatchEvent, WatchSink, WatchToken};
use crate::files::{OwnRenames, Stat};
use hashbrown::HashTable;
use rustc_hash::{FxHashMap, FxHashSet};
use rustix::fs::CWD;
use rustix::fs::inotify::{self, WatchFlags};
use rustix::io::Errno;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// As many links as the kernel itself would follow.
pub(super) const LINK_LIMIT: u8 = 40;

/// A directory as it is on the machine.
#[derive(Debug)]
pub(super) struct Node {
    /// Nothing for the root.
    pub(super) parent: Option<Id<Node>>,
    /// Where it is, without a link in it, without a slash at the end; empty for the root.
    pub(super) path: Box<[u8]>,
    /// File system and number, to tell whether the same directory is still there.
    pub(super) identity: (u64, u64),
    /// The kernel's number of the watch on it, if there is one.
    pub(super) watch: Option<i32>,
    /// Why there is none.
    pub(super) error: Option<Errno>,
    /// Whether writes and attributes of entries are watched too, and not only their coming and going.
    pub(super) contents: bool,
    /// How many watches look at everything below.
    pub(super) recursive: u32,
    /// By the last component of their path.
    pub(super) children: HashTable<Id<Node>>,
    /// The walks that look for their name here, by that name.
    pub(super) lookups: HashTable<Id<Walk>>,
    /// The walks that end here.
    pub(super) walks: SmallVec<[Id<Walk>; 1]>,
}

/// What a walk's last step is.
#[derive(Debug)]
pub(super) enum Place {
    Root,
    /// A name in the directory where another walk ends.
    Child {
        parent: Id<Walk>,
        name: Box<[u8]>,
    },
    /// A text with `..` in it, which a link holds, from where another walk ends.
    Text {
        base: Id<Walk>,
        text: Box<[u8]>,
    },
}

/// A path to a directory as somebody wrote it.
#[derive(Debug)]
pub(super) struct Walk {
    pub(super) place: Place,
    /// Where it ends; nothing if there is no directory.
    pub(super) node: Option<Id<Node>>,
    /// Where the name was last looked for.
    pub(super) registered: Option<Id<Node>>,
    /// The walks that a link at the last step led through, each held.
    pub(super) links: SmallVec<[Id<Walk>; 1]>,
    /// The walks whose `links` hold this one.
    pub(super) dependents: SmallVec<[Id<Walk>; 1]>,
    pub(super) children: HashTable<Id<Walk>>,
    /// The paths watched in this directory, by name. Several may have the same name.
    pub(super) entries: HashTable<Id<Watched>>,
    /// The paths that *are* this directory and are looked into.
    pub(super) inside: SmallVec<[Id<Watched>; 1]>,
    /// How many of those look at everything below.
    pub(super) recursive: u32,
    /// Children, entries, members of `inside`, and links that hold this walk.
    pub(super) references: u32,
    /// Its node was taken away since it was last resolved.
    pub(super) moved: bool,
    /// It is being resolved just now: whoever comes back to it has met a loop of links.
    pub(super) resolving: bool,
    pub(super) queued: bool,
    /// It ends nowhere because it leads to a file system that is not touched.
    pub(super) apart: bool,
}

impl Walk {
    pub(super) fn new(place: Place) -> Self {
        Self {
            place,
            node: None,
            registered: None,
            links: SmallVec::new(),
            dependents: SmallVec::new(),
            children: HashTable::new(),
            entries: HashTable::new(),
            inside: SmallVec::new(),
            recursive: 0,
            references: 0,
            moved: false,
            resolving: false,
            queued: false,
            apart: false,
        }
    }

    pub(super) fn name(&self) -> &[u8] {
        match &self.place {
            Place::Child { name, .. } => name,
            Place::Root | Place::Text { .. } => &[],
        }
    }
}

/// One watched path.
#[derive(Debug)]
pub(super) struct Watched {
    /// Empty if the path is the walk's directory itself.
    name: Box<[u8]>,
    token: WatchToken,
    walk: Id<Walk>,
    subscriber: SinkId,
    /// The batch in which it was last reported.
    reported: u32,
    depth: Depth,
    follow: bool,
    /// Whoever asked for it knows that it is watched, so what happens from now on is news.
    armed: bool,
    /// Whether another look at what it is waits already.
    queued: bool,
    /// Whether a file's writers matter: it is watched for their closing it too.
    settling: bool,
    /// How many more links may be followed from here.
    links_left: u8,
    /// What most paths have nothing of.
    extra: Option<Box<Extra>>,
}

#[derive(Debug, Default)]
struct Extra {
    /// The path is a directory, and this is the walk to its inside.
    inside: Option<Id<Walk>>,
    /// The path is a link, and this is the path that it leads to.
    target: Option<Id<Watched>>,
    /// The path is a file with several names or one whose writers matter, and this is the kernel's watch on the file.
    inode: Option<i32>,
}

/// A wish for a watch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wish {
    pub(super) token: WatchToken,
    pub(super) subscriber: SinkId,
    pub(super) depth: Depth,
    pub(super) follow: bool,
    pub(super) settling: bool,
}

/// Whom to tell.
pub(super) type SinkId = Id<Arc<dyn WatchSink>>;

/// All that the hub knows.
pub(super) struct State {
    pub(super) inotify: Arc<OwnedFd>,
    pub(super) renames: Arc<OwnRenames>,
    /// Temporary files of ours that have left their name and must arrive under another one: by the kernel's cookie, the
    /// subscriber and token of who renames them.
    pub(super) arriving: FxHashMap<u32, (u64, u64)>,
    pub(super) hasher: RandomState,
    pub(super) nodes: Arena<Node>,
    pub(super) walks: Arena<Walk>,
    pub(super) watched: Arena<Watched>,
    pub(super) subscribers: Arena<Arc<dyn WatchSink>>,
    /// Several nodes may have one watch: the same directory, mounted twice.
    pub(super) by_watch: FxHashMap<i32, SmallVec<[Id<Node>; 1]>>,
    pub(super) inodes: FxHashMap<i32, SmallVec<[Id<Watched>; 1]>>,
    /// What is still to be looked at.
    pub(super) work: Work,
    pub(super) mounts: Mounts,
    /// The paths that are looked at in intervals, because they cannot be watched.
    pub(super) polled: BTreeMap<Id<Watched>, PollReason>,
    /// Nodes that could not be armed since the last batch.
    pub(super) failed: Vec<(Id<Node>, Errno)>,
    /// After an overflow, until everything has been looked at.
    pub(super) recovering: bool,
    /// Rises when everything is begun anew.
    pub(super) generation: u64,
    /// What has which number now, by generation and number of before.
    pub(super) successors: FxHashMap<(u64, Id<Watched>), Id<Watched>>,
    /// How many links deep the current walk is.
    pub(super) hops: u8,
    batch: u32,
    dirty: Vec<(SinkId, WatchEvent)>,
}

impl State {
    pub(super) fn new(inotify: Arc<OwnedFd>, renames: Arc<OwnRenames>, generation: u64) -> Self {
        let mut state = Self {
            inotify,
            renames,
            arriving: FxHashMap::default(),
            hasher: RandomState::new(),
            nodes: Arena::default(),
            walks: Arena::default(),
            watched: Arena::default(),
            subscribers: Arena::default(),
            by_watch: FxHashMap::default(),
            inodes: FxHashMap::default(),
            work: Work::default(),
            mounts: Mounts::new(),
            polled: BTreeMap::new(),
            failed: Vec::new(),
            recovering: false,
            generation,
            successors: FxHashMap::default(),
            hops: 0,
            batch: 1,
            dirty: Vec::new(),
        };
        state.plant_root();
        state
    }

    /// Begins to watch a cleaned absolute path. It is armed when the state has settled and [`Self::armed`] was asked.
    pub(super) fn watch(&mut self, path: &[u8], wish: Wish) -> Id<Watched> {
        let id = self.add(Id::FIRST, path, wish, LINK_LIMIT);
        self.rearm(self.watched[id].walk);
        id
    }

    /// After the state has settled: whether the path is watched, at least by looking at it in intervals.
    pub(super) fn armed(&mut self, id: Id<Watched>) -> Result<(), WatchError> {
        match self.failure_of(id) {
            None => {}
            Some((node, Errno::NOSPC)) => {
                let error = WatchError::new(self.path_of(&node), Errno::NOSPC);
                self.poll(id, PollReason::OutOfWatches(Arc::new(error)));
            }
            Some((node, error)) => {
                let path = self.path_of(&node);
                self.unwatch(id);
                return Err(WatchError::new(path, error));
            }
        }
        let target = |id: &Id<Watched>| self.watched[*id].extra.as_ref()?.target;
        let all: Vec<Id<Watched>> = std::iter::successors(Some(id), target).collect();
        for id in all {
            self.watched[id].armed = true;
        }
        Ok(())
    }

    /// From now on, the path is looked at in intervals.
    fn poll(&mut self, id: Id<Watched>, reason: PollReason) {
        if self.polled.insert(id, reason.clone()).is_none() {
            self.report(id, Cause::Polled(reason));
        }
    }

    /// Reports everything that is looked at in intervals, and tries again to watch what there were no watches left for.
    pub(super) fn report_polled(&mut self) {
        let polled: Vec<(Id<Watched>, bool)> = self
            .polled
            .iter()
            .map(|(id, reason)| (*id, matches!(reason, PollReason::OutOfWatches(_))))
            .collect();
        for (id, out_of_watches) in polled {
            self.report(id, Cause::Changed);
            if out_of_watches {
                self.retry(id);
            }
        }
    }

    fn retry(&mut self, id: Id<Watched>) {
        self.rearm(self.watched[id].walk);
        let inside = self.watched[id].extra.as_ref().and_then(|extra| extra.inside);
        let mut nodes = vec![self.nearest_node(self.watched[id].walk)];
        if let Some(node) = inside.and_then(|inside| self.walks[inside].node) {
            nodes.extend(self.and_below(node));
        }
        for node in &nodes {
            if self.nodes[*node].error == Some(Errno::NOSPC) {
                self.arm(*node, false);
            }
        }
        self.queue_examination(id);
        if nodes.iter().all(|node| self.nodes[*node].error.is_none()) {
            self.polled.remove(&id);
            // What was not armed was not looked into either.
            if let Some(node) = inside.and_then(|inside| self.walks[inside].node)
                && self.watched[id].depth == Depth::Recursive
            {
                self.scan(node, true);
            }
        }
    }

    /// Ends a watch, and gives back what only it needed.
    pub(super) fn unwatch(&mut self, id: Id<Watched>) {
        let Some(watched) = self.watched.get_mut(id) else {
            return;
        };
        let (walk, extra) = (watched.walk, watched.extra.take());
        if let Some(extra) = extra {
            self.drop_extra(id, &extra);
        }
        let hash = self.hash(&self.watched[id].name);
        if let Ok(found) = self.walks[walk].entries.find_entry(hash, |other| *other == id) {
            found.remove();
        }
        self.watched.remove(id);
        self.polled.remove(&id);
        self.release_walk(walk);
    }

    /// Puts a path, relative to where `base` ends, among the watched ones. It is armed when the state has settled.
    fn add(&mut self, base: Id<Walk>, text: &[u8], wish: Wish, links_left: u8) -> Id<Watched> {
        let last = text.split(|byte| *byte == b'/').next_back().unwrap_or_default();
        let (directory, name) = match last {
            b"" | b"." | b".." => (text, &[][..]),
            name => text.split_at(text.len() - name.len()),
        };
        let walk = self.walk_to(base, directory);
        let id = self.watched.insert(Watched {
            name: name.into(),
            token: wish.token,
            walk,
            subscriber: wish.subscriber,
            reported: 0,
            depth: wish.depth,
            follow: wish.follow,
            armed: false,
            queued: false,
            settling: wish.settling,
            links_left,
            extra: None,
        });
        if !name.is_empty() {
            let hash = self.hash(name);
            let mut entries = std::mem::take(&mut self.walks[walk].entries);
            entries.insert_unique(hash, id, |other| self.hash(&self.watched[*other].name));
            self.walks[walk].entries = entries;
            if let Some(node) = self.walks[walk].node {
                self.arm(node, true);
            }
        }
        self.queue_examination(id);
        id
    }

    /// Looks at what a watched path is now, and watches what belongs to that.
    pub(super) fn examine(&mut self, id: Id<Watched>) {
        let Some(watched) = self.watched.get_mut(id) else {
            return;
        };
        watched.queued = false;
        let old = watched.extra.take().map_or_else(Extra::default, |extra| *extra);
        let watched = &self.watched[id];
        let (walk, depth, links_left) = (watched.walk, watched.depth, watched.links_left);
        let follow = watched.follow && links_left > 0;
        let wish = Wish {
            token: watched.token,
            subscriber: watched.subscriber,
            depth,
            follow,
            settling: watched.settling,
        };
        let mut new = Extra::default();
        let mut apart = self.walks[walk].apart;
        let is_armed = watched.armed;
        if watched.name.is_empty() {
            new.inside = Some(self.hold(walk));
        } else if let Some(node) = self.walks[walk].node {
            let path = join(&self.nodes[node].path, &watched.name);
            apart = self.mounts.is_served(&path);
            match self.look(&path) {
                Some(stat) if stat.is_directory() && depth > Depth::Entry => {
                    let name = watched.name.clone();
                    new.inside = Some(self.child_walk(walk, &name));
                }
                Some(stat) if stat.is_link() && follow => {
                    if let Ok(text) = rustix::fs::readlink(&path[..], Vec::new()) {
                        let base = self.walk_to_node(node);
                        let target = self.add(base, text.as_bytes(), wish, links_left - 1);
                        self.watched[target].armed = is_armed;
                        new.target = Some(target);
                        self.release_walk(base);
                    }
                }
                Some(stat) if stat.is_regular() && (stat.links > 1 || watched.settling) => {
                    new.inode = self.watch_inode(id, &path, watched.settling);
                }
                _ => {}
            }
        }
        if apart {
            self.poll(id, PollReason::Served);
        } else if matches!(self.polled.get(&id), Some(PollReason::Served)) {
            self.polled.remove(&id);
        }
        // What stays is taken up before it is let go, so that nothing is torn down to be built again.
        if let Some(inside) = new.inside
            && old.inside != new.inside
        {
            self.look_inside(inside, id, depth, is_armed);
        }
        if old.inside.is_some() && old.inside == new.inside {
            self.drop_extra(id, &Extra { inside: None, ..old });
            if let Some(inside) = new.inside {
                self.release_walk(inside);
            }
        } else {
            let inode = old.inode.filter(|inode| Some(*inode) != new.inode);
            self.drop_extra(id, &Extra { inode, ..old });
        }
        if new.inside.is_some() || new.target.is_some() || new.inode.is_some() {
            self.watched[id].extra = Some(Box::new(new));
        }
    }

    fn drop_extra(&mut self, id: Id<Watched>, extra: &Extra) {
        if let Some(inside) = extra.inside {
            let depth = self.watched[id].depth;
            self.stop_looking_inside(inside, id, depth);
            self.release_walk(inside);
        }
        if let Some(target) = extra.target {
            self.unwatch(target);
        }
        if let Some(watch) = extra.inode
            && let Some(members) = self.inodes.get_mut(&watch)
        {
            members.retain(|member| *member != id);
            if members.is_empty() {
                self.inodes.remove(&watch);
                // The file may be gone, and its watch with it.
                let _ = inotify::remove_watch(&self.inotify, watch);
            }
        }
    }

    fn watch_inode(&mut self, id: Id<Watched>, path: &[u8], settling: bool) -> Option<i32> {
        let mut flags =
            WatchFlags::MODIFY | WatchFlags::ATTRIB | WatchFlags::DONT_FOLLOW | WatchFlags::MASK_ADD;
        if settling {
            flags |= WatchFlags::CLOSE_WRITE;
        }
        match inotify::add_watch(&self.inotify, path, flags) {
            Ok(watch) => {
                let members = self.inodes.entry(watch).or_default();
                if !members.contains(&id) {
                    members.push(id);
                }
                Some(watch)
            }
            Err(Errno::NOENT | Errno::NOTDIR) => None,
            Err(error) => {
                let node = self.walks[self.watched[id].walk].node;
                self.failed.extend(node.map(|node| (node, error)));
                None
            }
        }
    }

    pub(super) fn is_settling(&self, id: Id<Watched>) -> bool {
        self.watched.get(id).is_some_and(|watched| watched.settling)
    }

    /// Notes that a path may have changed. Answers whether that is news in this batch.
    pub(super) fn report(&mut self, id: Id<Watched>, cause: Cause) -> bool {
        let batch = self.batch;
        let Some(watched) = self.watched.get_mut(id) else {
            return false;
        };
        // Of one that is settling, the last event of a batch says whether it has.
        if watched.reported == batch && matches!(cause, Cause::Changed) && !watched.settling {
            return false;
        }
        let news = watched.reported != batch;
        watched.reported = batch;
        self.dirty.push((
            watched.subscriber,
            WatchEvent {
                token: watched.token,
                cause,
            },
        ));
        news
    }

    /// Whether a path is watched by this writer, and is an ordinary file that needs no watch of its own.
    pub(super) fn is_plain_watch_of(&self, id: Id<Watched>, writer: Option<(u64, u64)>) -> bool {
        let watched = &self.watched[id];
        watched.extra.is_none() && Some((watched.subscriber.number(), watched.token.0)) == writer
    }

    /// All that was noted since the last time, by subscriber.
    pub(super) fn take_reports(&mut self) -> Vec<(Arc<dyn WatchSink>, Vec<WatchEvent>)> {
        self.report_failures();
        self.batch = self.batch.wrapping_add(1).max(1);
        let mut dirty = std::mem::take(&mut self.dirty);
        // A link and its target report under one token: once is enough, and a failure says more than a change.
        let rank = |cause: &Cause| match cause {
            Cause::Failed(_) => 0,
            Cause::Polled(_) => 1,
            Cause::Overflow | Cause::BegunAnew => 2,
            Cause::Changed | Cause::Unsettled => 3,
        };
        dirty.sort_by_key(|(subscriber, event)| (*subscriber, event.token, rank(&event.cause)));
        dirty.dedup_by(|later, kept| {
            let is_same = (later.0, later.1.token) == (kept.0, kept.1.token);
            if is_same && rank(&later.1.cause) == rank(&kept.1.cause) {
                std::mem::swap(later, kept);
            }
            is_same
        });
        let mut reports: Vec<(SinkId, Vec<WatchEvent>)> = Vec::new();
        for (subscriber, event) in dirty {
            match reports.last_mut() {
                Some((last, events)) if *last == subscriber => events.push(event),
                _ => reports.push((subscriber, vec![event])),
            }
        }
        reports
            .into_iter()
            .filter_map(|(subscriber, events)| Some((Arc::clone(self.subscribers.get(subscriber)?), events)))
            .collect()
    }

    /// Whether somebody should be told something.
    pub(super) fn has_reports(&self) -> bool {
        !self.dirty.is_empty() || !self.failed.is_empty()
    }

    /// Marks a path for another look at what it is.
    pub(super) fn queue_examination(&mut self, id: Id<Watched>) {
        // Several events of one batch are one look.
        if let Some(watched) = self.watched.get_mut(id)
            && !std::mem::replace(&mut watched.queued, true)
        {
            self.work.examine(id);
        }
    }

    /// Reports some of all paths, and answers where to go on; nothing when all had their turn.
    pub(super) fn report_some(&mut self, from: usize, count: usize) -> Option<usize> {
        let some: Vec<Id<Watched>> = self.watched.ids().skip(from).take(count).collect();
        for id in &some {
            // Of a file that must not be read while it is written, a look says nothing about its writers.
            if !self.is_settling(*id) {
                self.report(*id, Cause::Changed);
            }
        }
        (from + some.len() < self.watched.len()).then_some(from + some.len())
    }

    /// Everything that was asked to be watched: its number here, the path, and the wish. Targets of links follow from these.
    pub(super) fn asked_for(&self) -> Vec<(Id<Watched>, Vec<u8>, Wish)> {
        let target = |id: Id<Watched>| self.watched[id].extra.as_ref()?.target;
        let targets: FxHashSet<Id<Watched>> = self.watched.ids().filter_map(target).collect();
        let asked = self.watched.ids().filter(|id| !targets.contains(id));
        let described = asked.map(|id| {
            let watched = &self.watched[id];
            let mut names: Vec<&[u8]> = vec![&watched.name];
            let mut walk = &self.walks[watched.walk];
            // No `..` is in the path of a wish.
            while let Place::Child { parent, name } = &walk.place {
                names.push(name);
                walk = &self.walks[*parent];
            }
            names.push(b"");
            names.reverse();
            let wish = Wish {
                token: watched.token,
                subscriber: watched.subscriber,
                depth: watched.depth,
                follow: watched.follow,
                settling: watched.settling,
            };
            let path = names.join(&b'/');
            (id, path.strip_suffix(b"/").unwrap_or(&path).to_vec(), wish)
        });
        described.collect()
    }

    /// Watches again, after everything was begun anew, what was watched before; and tells all whom that concerns.
    pub(super) fn take_over(&mut self, old: State, asked: Vec<(Id<Watched>, Vec<u8>, Wish)>) {
        self.subscribers = old.subscribers;
        let mut numbers: FxHashMap<Id<Watched>, Id<Watched>> = FxHashMap::default();
        let mut wishes = Vec::with_capacity(asked.len());
        for (before, path, wish) in asked {
            let id = self.watch(&path, wish);
            numbers.insert(before, id);
            wishes.push((id, wish));
        }
        let older = old.successors.into_iter();
        self.successors
            .extend(older.filter_map(|(key, before)| Some((key, *numbers.get(&before)?))));
        let generation = old.generation;
        self.successors
            .extend(numbers.into_iter().map(|(before, id)| ((generation, before), id)));
        while self.settle_some() != Progress::Done {}
        for (id, wish) in wishes {
            let Wish {
                token, subscriber, ..
            } = wish;
            let cause = match self.armed(id) {
                Ok(()) => Cause::BegunAnew,
                Err(error) => Cause::Failed(Arc::new(error)),
            };
            self.dirty.push((subscriber, WatchEvent { token, cause }));
        }
    }

    /// The number that a watch has now; `generation` is that of when it was made. Nothing if it was given up.
    pub(super) fn number_now(&mut self, generation: u64, id: Id<Watched>) -> Option<Id<Watched>> {
        if generation == self.generation {
            Some(id)
        } else {
            self.successors.remove(&(generation, id))
        }
    }

    /// What is at a path; nothing also if the way there is closed, is not one of directories, or leads to a file system
    /// that is not touched.
    pub(super) fn look(&self, path: &[u8]) -> Option<Stat> {
        if self.mounts.is_served(path) {
            return None;
        }
        Stat::of_entry(CWD, path).ok()
    }

    pub(super) fn entries_named(&self, walk: Id<Walk>, name: &[u8]) -> SmallVec<[Id<Watched>; 2]> {
        let entries = &self.walks[walk].entries;
        if entries.is_empty() {
            return SmallVec::new();
        }
        entries
            .iter_hash(self.hash(name))
            .copied()
            .filter(|id| *self.watched[*id].name == *name)
            .collect()
    }

    /// Those that look into the directory where a walk ends, at least so deep.
    pub(super) fn looking_inside(&self, walk: Id<Walk>, depth: Depth) -> SmallVec<[Id<Watched>; 2]> {
        self.walks[walk]
            .inside
            .iter()
            .copied()
            .filter(|id| self.watched[*id].depth >= depth)
            .collect()
    }

    /// Why a path cannot be watched, if it cannot.
    fn failure_of(&mut self, id: Id<Watched>) -> Option<(Id<Node>, Errno)> {
        let failed = std::mem::take(&mut self.failed);
        let mut own = None;
        for (node, error) in failed {
            if own.is_none()
                && self
                    .concerned_by(node)
                    .iter()
                    .any(|other| self.leads_to(id, *other))
            {
                own = Some((node, error));
            } else {
                self.failed.push((node, error));
            }
        }
        own.or_else(|| {
            // What nobody may read cannot be watched. On the way that is passed over; at the end it is not.
            let node = self.nearest_node(self.watched[id].walk);
            let error = self.nodes[node].error?;
            Some((node, error))
        })
    }

    /// Whether one watched path is the other, or a link on whose way the other lies.
    fn leads_to(&self, id: Id<Watched>, other: Id<Watched>) -> bool {
        let target = |id: &Id<Watched>| self.watched[*id].extra.as_ref()?.target;
        std::iter::successors(Some(id), target).any(|id| id == other)
    }

    fn report_failures(&mut self) {
        for (node, error) in std::mem::take(&mut self.failed) {
            if !self.nodes.contains(node) {
                continue;
            }
            let out_of_watches = error == Errno::NOSPC;
            let error = Arc::new(WatchError::new(self.path_of(&node), error));
            for id in self.concerned_by(node) {
                if out_of_watches {
                    self.poll(id, PollReason::OutOfWatches(Arc::clone(&error)));
                } else {
                    self.report(id, Cause::Failed(Arc::clone(&error)));
                }
            }
        }
    }

    pub(super) fn hash(&self, name: &[u8]) -> u64 {
        self.hasher.hash_one(name)
    }
}

/// `name` in the directory at `path`.
pub(super) fn join(path: &[u8], name: &[u8]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(path.len() + 1 + name.len());
    joined.extend_from_slice(path);
    joined.push(b'/');
    joined.extend_from_slice(name);
    joined
}
