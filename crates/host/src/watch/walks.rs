//! Paths to directories as somebody wrote them, and where they lead.

use super::Cause;
use super::Depth;
use super::arena::Id;
use super::state::{LINK_LIMIT, Node, Place, State, Walk, Watched, join};
use smallvec::SmallVec;

/// Where a last step leads, and the walks that it led through, each held.
type Found = (Option<Id<Node>>, SmallVec<[Id<Walk>; 1]>);

impl State {
    /// The walk along `text`, from where `base` ends or from the root. Held for the caller.
    pub(super) fn walk_to(&mut self, base: Id<Walk>, text: &[u8]) -> Id<Walk> {
        let base = if text.starts_with(b"/") { Id::FIRST } else { base };
        if text.split(|byte| *byte == b'/').any(|name| name == b"..") {
            // `..` leads to the parent of where the walk *is*, so such a text cannot be shared step by step.
            self.walks[base].references += 1;
            let mut walk = Walk::new(Place::Text {
                base,
                text: text.into(),
            });
            walk.references = 1;
            let walk = self.walks.insert(walk);
            self.resolve(walk);
            return walk;
        }
        let mut walk = self.hold(base);
        for name in text
            .split(|byte| *byte == b'/')
            .filter(|name| !name.is_empty() && *name != b".")
        {
            walk = self.step(walk, name);
        }
        walk
    }

    /// The walk to a node, by the path without links. Held for the caller.
    pub(super) fn walk_to_node(&mut self, node: Id<Node>) -> Id<Walk> {
        let path = self.nodes[node].path.clone();
        self.walk_to(Id::FIRST, &path)
    }

    /// One name further; gives up the hold on where it came from.
    fn step(&mut self, walk: Id<Walk>, name: &[u8]) -> Id<Walk> {
        let next = self.child_walk(walk, name);
        self.release_walk(walk);
        next
    }

    /// The walk to a name in the directory where another walk ends. Held for the caller.
    pub(super) fn child_walk(&mut self, parent: Id<Walk>, name: &[u8]) -> Id<Walk> {
        let hash = self.hash(name);
        if let Some(walk) = self.walks[parent]
            .children
            .find(hash, |child| self.walks[*child].name() == name)
        {
            let walk = *walk;
            return self.hold(walk);
        }
        self.walks[parent].references += 1;
        let mut walk = Walk::new(Place::Child {
            parent,
            name: name.into(),
        });
        walk.references = 1;
        let walk = self.walks.insert(walk);
        let mut children = std::mem::take(&mut self.walks[parent].children);
        children.insert_unique(hash, walk, |child| self.hash(self.walks[*child].name()));
        self.walks[parent].children = children;
        self.resolve(walk);
        walk
    }

    pub(super) fn hold(&mut self, walk: Id<Walk>) -> Id<Walk> {
        self.walks[walk].references += 1;
        walk
    }

    /// Gives up one hold on a walk, and what nobody holds then.
    pub(super) fn release_walk(&mut self, id: Id<Walk>) {
        let mut pending = vec![id];
        while let Some(id) = pending.pop() {
            self.walks[id].references -= 1;
            if self.walks[id].references > 0 {
                continue;
            }
            let hash = self.hash(self.walks[id].name());
            let Some(walk) = self.walks.remove(id) else {
                continue;
            };
            match walk.place {
                Place::Root => {}
                Place::Child { parent, .. } => {
                    if let Ok(found) = self.walks[parent].children.find_entry(hash, |child| *child == id) {
                        found.remove();
                    }
                    pending.push(parent);
                }
                Place::Text { base, .. } => pending.push(base),
            }
            for link in walk.links {
                self.forget_dependent(link, id);
                pending.push(link);
            }
            if let Some(node) = walk.node {
                self.nodes[node].walks.retain(|other| *other != id);
                self.release_node(node);
            }
            if let Some(node) = walk.registered
                && self.nodes.contains(node)
            {
                self.forget_lookup(node, hash, id);
                self.release_node(node);
            }
        }
    }

    pub(super) fn queue_resolution(&mut self, walk: Id<Walk>) {
        let found = &mut self.walks[walk];
        if !found.queued {
            found.queued = true;
            self.work.resolve(walk);
        }
    }

    /// Looks where a walk leads now, and tells whom it concerns if that is elsewhere than before.
    pub(super) fn resolve(&mut self, id: Id<Walk>) {
        if self.walks[id].resolving {
            return;
        }
        self.walks[id].resolving = true;
        let mut apart = false;
        let (node, links) = match &self.walks[id].place {
            Place::Root => (Some(Id::FIRST), SmallVec::new()),
            Place::Child { parent, name } => {
                let (directory, name) = (self.walks[*parent].node, name.clone());
                apart = match directory {
                    Some(directory) => self.mounts.is_served(&join(&self.nodes[directory].path, &name)),
                    None => self.walks[*parent].apart,
                };
                self.register(id, directory);
                // Registered first: whatever changes after this look makes an event that queues this walk.
                directory.map_or((None, SmallVec::new()), |directory| {
                    self.look_up(directory, &name)
                })
            }
            Place::Text { base, text } => {
                let (base, text) = (*base, text.clone());
                self.follow(base, &text)
            }
        };
        self.walks[id].resolving = false;
        apart |= links.iter().any(|link| self.walks[*link].apart);
        self.walks[id].apart = apart && node.is_none();
        for link in &links {
            self.walks[*link].dependents.push(id);
        }
        let old_links = std::mem::replace(&mut self.walks[id].links, links);
        // Before anything is let go of, because what is new may hang on what is old.
        self.move_to(id, node);
        for link in old_links {
            self.forget_dependent(link, id);
            self.release_walk(link);
        }
    }

    /// Registers a walk as one that looks for its name in a directory.
    fn register(&mut self, id: Id<Walk>, directory: Option<Id<Node>>) {
        let old = self.walks[id].registered;
        if old == directory {
            return;
        }
        let hash = self.hash(self.walks[id].name());
        if let Some(node) = directory {
            let mut lookups = std::mem::take(&mut self.nodes[node].lookups);
            lookups.insert_unique(hash, id, |walk| self.hash(self.walks[*walk].name()));
            self.nodes[node].lookups = lookups;
        }
        self.walks[id].registered = directory;
        if let Some(node) = old {
            self.forget_lookup(node, hash, id);
            self.release_node(node);
        }
    }

    fn forget_lookup(&mut self, node: Id<Node>, hash: u64, walk: Id<Walk>) {
        if let Ok(found) = self.nodes[node].lookups.find_entry(hash, |other| *other == walk) {
            found.remove();
        }
    }

    fn forget_dependent(&mut self, walk: Id<Walk>, dependent: Id<Walk>) {
        if let Some(walk) = self.walks.get_mut(walk)
            && let Some(index) = walk.dependents.iter().position(|other| *other == dependent)
        {
            walk.dependents.swap_remove(index);
        }
    }

    fn look_up(&mut self, directory: Id<Node>, name: &[u8]) -> Found {
        let path = join(&self.nodes[directory].path, name);
        match self.look(&path) {
            Some(stat) if stat.is_directory() => {
                (Some(self.child_node(directory, name, &stat)), SmallVec::new())
            }
            Some(stat) if stat.is_link() && self.hops < LINK_LIMIT => {
                let Ok(text) = rustix::fs::readlink(&path[..], Vec::new()) else {
                    return Found::default();
                };
                let base = self.walk_to_node(directory);
                let found = self.follow(base, text.as_bytes());
                self.release_walk(base);
                found
            }
            _ => Found::default(),
        }
    }

    /// Follows the text of a link from where `base` ends.
    fn follow(&mut self, base: Id<Walk>, text: &[u8]) -> Found {
        self.hops += 1;
        let base = if text.starts_with(b"/") { Id::FIRST } else { base };
        let mut links = SmallVec::new();
        let mut walk = self.hold(base);
        let mut lost = false;
        for name in text
            .split(|byte| *byte == b'/')
            .filter(|name| !name.is_empty() && *name != b".")
        {
            if name != b".." {
                walk = self.step(walk, name);
                continue;
            }
            links.push(walk);
            let Some(node) = self.walks[walk].node else {
                lost = true;
                break;
            };
            let parent = self.nodes[node].parent.unwrap_or(Id::FIRST);
            walk = self.walk_to_node(parent);
        }
        let mut node = None;
        if !lost {
            node = self.walks[walk].node.filter(|_| !self.walks[walk].resolving);
            links.push(walk);
        }
        self.hops -= 1;
        (node, links)
    }

    /// Lets a walk end at `node`, and queues and reports whatever hangs on it if that is new.
    fn move_to(&mut self, id: Id<Walk>, node: Option<Id<Node>>) {
        let walk = &mut self.walks[id];
        let old = walk.node;
        if !std::mem::take(&mut walk.moved) && old == node {
            return;
        }
        walk.node = node;
        let recursive = walk.recursive;
        let needs_contents = !walk.entries.is_empty() || !walk.inside.is_empty();
        if old != node {
            if let Some(node) = node {
                self.nodes[node].walks.push(id);
                if needs_contents {
                    self.arm(node, true);
                }
                self.cover(node, recursive, true);
            }
            if let Some(old) = old {
                self.nodes[old].walks.retain(|other| *other != id);
                if recursive > 0 {
                    self.nodes[old].recursive -= recursive;
                    self.uncover(old);
                }
                if self.nodes.contains(old) {
                    self.release_node(old);
                }
            }
        }
        let walk = &self.walks[id];
        let hanging: Vec<Id<Walk>> = walk.children.iter().chain(&walk.dependents).copied().collect();
        let watched: Vec<Id<Watched>> = walk.entries.iter().chain(&walk.inside).copied().collect();
        for walk in hanging {
            self.queue_resolution(walk);
        }
        for watched in watched {
            self.report(watched, Cause::Changed);
            self.queue_examination(watched);
        }
    }

    /// Lets a watched path look into the directory where a walk ends. With `news`, what is found there is reported.
    pub(super) fn look_inside(&mut self, walk: Id<Walk>, watched: Id<Watched>, depth: Depth, news: bool) {
        let found = &mut self.walks[walk];
        found.inside.push(watched);
        let recursive = u32::from(depth == Depth::Recursive);
        found.recursive += recursive;
        if let Some(node) = found.node {
            self.arm(node, true);
            self.cover(node, recursive, news);
        }
    }

    /// Ends what [`Self::look_inside`] began.
    pub(super) fn stop_looking_inside(&mut self, walk: Id<Walk>, watched: Id<Watched>, depth: Depth) {
        let found = &mut self.walks[walk];
        found.inside.retain(|other| *other != watched);
        if depth == Depth::Recursive {
            found.recursive -= 1;
            if let Some(node) = found.node {
                self.nodes[node].recursive -= 1;
                self.uncover(node);
            }
        }
    }

    fn cover(&mut self, node: Id<Node>, recursive: u32, news: bool) {
        if recursive > 0 {
            let covered = self.is_covered(node);
            self.nodes[node].recursive += recursive;
            if !covered {
                self.scan(node, news);
            }
        }
    }

    /// The node nearest to where a walk should end.
    pub(super) fn nearest_node(&self, walk: Id<Walk>) -> Id<Node> {
        let mut walk = &self.walks[walk];
        loop {
            match (walk.node, &walk.place) {
                (Some(node), _) => return node,
                (None, Place::Child { parent, .. }) => walk = &self.walks[*parent],
                (None, Place::Text { base, .. }) => walk = &self.walks[*base],
                (None, Place::Root) => return Id::FIRST,
            }
        }
    }

    /// Tries once more to arm the directories that a walk leads through, where that failed before.
    pub(super) fn rearm(&mut self, walk: Id<Walk>) {
        let nodes: Vec<Id<Node>> = self.and_above(self.nearest_node(walk)).collect();
        for node in nodes {
            if self.nodes[node].error.is_some() {
                self.arm(node, false);
            }
        }
    }
}
