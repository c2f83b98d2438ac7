//! The desired graph of all statements, kept up to date (rules graph.2 to graph.7 of the language).
//!
//! An [`Assembler`] knows what every statement gives at present. A change of some statements touches only the identities,
//! edges and receivers that these mention: they are combined anew, everything else stays as it is, shared with the graph
//! before. What is wrong is remembered by place, not by message, so that the diagnostics after any history are those of
//! the present statements in program order.
//!
//! Identities are slots of an arena; an edge lives in its `from` slot. Cycles are found while edges come
//! (`order`): a topological order is kept, and a new edge that agrees with it costs nothing.

mod duplicates;
mod edges;
mod order;
mod problems;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use setpoint_diagnostics::{Diagnostics, Span};

use crate::{
    DesiredEdge, DesiredGraph, DesiredResource, Language, ResourceId, StatementOutput, UnknownPart,
    UnknownWhat,
};

/// Keeps the desired graph of all statements. `K` names a statement's output and orders it as the program does: of two
/// resources that contradict, the one with the larger key is at fault.
#[derive(Clone)]
pub struct Assembler<K> {
    language: &'static dyn Language,
    outputs: BTreeMap<K, Arc<StatementOutput>>,
    /// Outputs with unknown parts.
    unknown: BTreeMap<K, Arc<StatementOutput>>,
    /// How many unknown names there are of a kind.
    unknown_kinds: BTreeMap<Arc<str>, usize>,
    /// How many unknown blocks there are.
    unknown_blocks: usize,
    index: FxHashMap<ResourceId, SlotId>,
    slots: Vec<Slot<K>>,
    free: Vec<SlotId>,
    next_position: u64,
    /// Identities with contradicting resources or exports.
    broken_identities: BTreeSet<SlotId>,
    /// Edges that cannot be, or not so.
    broken_edges: BTreeSet<(SlotId, SlotId)>,
    /// Edges without one of their ends; they are looked at again when what is unknown changes.
    loose_edges: BTreeSet<(SlotId, SlotId)>,
    /// Resources with two senders for one parameter.
    broken_receivers: BTreeSet<SlotId>,
    /// Whether there is a cycle; positions mean nothing then.
    cyclic: bool,
    /// What the statements give at present, right or wrong.
    working: DesiredGraph,
    /// The last graph that was right.
    published: Option<DesiredGraph>,
    /// Whether `working` may differ from `published`.
    changed: bool,
    /// Whether there were errors the last time.
    failed: bool,
}

type SlotId = u32;

/// An identity that a resource or an edge mentions.
#[derive(Clone)]
struct Slot<K> {
    id: ResourceId,
    /// The resources of this identity, in program order.
    contributors: Vec<Contributor<K>>,
    /// What they come to: the one that is applied here.
    normal: Option<Arc<DesiredResource>>,
    /// The distinct hidden ones.
    hidden: Vec<Arc<DesiredResource>>,
    outgoing: BTreeMap<SlotId, Edge<K>>,
    incoming: BTreeSet<SlotId>,
    /// Who sends to it.
    senders: BTreeSet<SlotId>,
    /// Place in the topological order.
    position: u64,
    touched: bool,
    receiver_touched: bool,
}

impl<K> Slot<K> {
    fn exists(&self) -> bool {
        self.normal.is_some() || !self.hidden.is_empty()
    }

    fn any(&self) -> Option<&Arc<DesiredResource>> {
        self.normal.as_ref().or(self.hidden.first())
    }
}

/// A resource of one statement.
#[derive(Clone)]
struct Contributor<K> {
    key: K,
    index: u32,
    resource: Arc<DesiredResource>,
}

/// An edge between two slots.
#[derive(Clone)]
struct Edge<K> {
    /// The statements that ask for it, in program order.
    contributors: Vec<EdgeContributor<K>>,
    /// What they come to, when both ends exist.
    merged: Option<Arc<DesiredEdge>>,
    /// Whether the topological order already respects it.
    ordered: bool,
    touched: bool,
}

/// An edge of one statement.
#[derive(Clone)]
struct EdgeContributor<K> {
    key: K,
    index: u32,
    notify: bool,
    send: Vec<(Arc<str>, Arc<str>)>,
    span: Span,
    statement: Option<Span>,
}

/// What a change set touches.
#[derive(Default)]
struct Touched {
    identities: Vec<SlotId>,
    edges: Vec<(SlotId, SlotId)>,
    receivers: Vec<SlotId>,
    /// Edges that came to be.
    new_edges: Vec<(SlotId, SlotId)>,
}

/// The graph of these statements, in program order.
///
/// # Errors
/// Everything that is wrong.
pub fn assemble(
    outputs: impl IntoIterator<Item = StatementOutput>,
    language: &'static dyn Language,
) -> Result<DesiredGraph, Diagnostics> {
    let numbered = outputs.into_iter().enumerate();
    let changes = numbered.map(|(key, output)| (key, Some(Arc::new(output))));
    Assembler::new(language).apply(changes.collect())
}

impl<K: Ord + Clone> Assembler<K> {
    /// An assembler that has no statements yet; `language` is theirs.
    #[must_use]
    pub fn new(language: &'static dyn Language) -> Assembler<K> {
        Assembler {
            language,
            outputs: BTreeMap::new(),
            unknown: BTreeMap::new(),
            unknown_kinds: BTreeMap::new(),
            unknown_blocks: 0,
            index: FxHashMap::default(),
            slots: Vec::new(),
            free: Vec::new(),
            next_position: 0,
            broken_identities: BTreeSet::new(),
            broken_edges: BTreeSet::new(),
            loose_edges: BTreeSet::new(),
            broken_receivers: BTreeSet::new(),
            cyclic: false,
            working: DesiredGraph::default(),
            published: None,
            changed: false,
            failed: false,
        }
    }

    /// Takes what statements give now, or that they are gone, and gives the graph of all. Of two changes of one key the
    /// later holds. The generation is 1 at first and rises whenever the graph is another one.
    ///
    /// # Errors
    /// Everything that is wrong with the present statements, in program order. The change is taken in all the same: a
    /// later change set that mends it succeeds, and whatever it does not mend is reported again.
    pub fn apply(
        &mut self,
        changes: Vec<(K, Option<Arc<StatementOutput>>)>,
    ) -> Result<DesiredGraph, Diagnostics> {
        let mut touched = Touched::default();
        for (key, output) in changes {
            self.replace(key, output, &mut touched);
        }
        let mut vacant = Vec::new();
        for slot in std::mem::take(&mut touched.identities) {
            self.combine(slot, &mut touched);
            vacant.push(slot);
        }
        for (from, to) in std::mem::take(&mut touched.edges) {
            self.match_edge(from, to, &mut touched);
            vacant.extend([from, to]);
        }
        for slot in std::mem::take(&mut touched.receivers) {
            self.match_senders(slot);
        }
        self.order(&touched.new_edges);
        for slot in vacant {
            self.release(slot);
        }
        let diagnostics = self.problems();
        if !diagnostics.is_empty() {
            self.failed = true;
            return Err(diagnostics);
        }
        Ok(self.publish())
    }

    /// The same for a language that executes its program anew: these are all statements there are now. Whatever is as it was is taken
    /// from what was there before, so that a change still costs no more than itself from here on.
    ///
    /// # Errors
    /// As [`Assembler::apply`].
    pub fn replace_all(
        &mut self,
        outputs: impl IntoIterator<Item = (K, StatementOutput)>,
    ) -> Result<DesiredGraph, Diagnostics> {
        let mut gone: BTreeSet<K> = self.outputs.keys().cloned().collect();
        let mut changes = Vec::new();
        for (key, mut output) in outputs {
            gone.remove(&key);
            let is_same = self.outputs.get(&key).is_some_and(|old| output.share(old));
            if !is_same {
                changes.push((key, Some(Arc::new(output))));
            }
        }
        changes.extend(gone.into_iter().map(|key| (key, None)));
        self.apply(changes)
    }

    /// The last graph without errors; empty, with generation 0, before the first.
    #[must_use]
    pub fn graph(&self) -> DesiredGraph {
        self.published.clone().unwrap_or_default()
    }

    /// What is unknown until it is applied, in program order.
    pub fn unknown(&self) -> impl Iterator<Item = &UnknownPart> {
        self.unknown.values().flat_map(|output| &output.unknown)
    }

    fn publish(&mut self) -> DesiredGraph {
        let generation = match &self.published {
            None => 1,
            Some(before) if self.is_another(before) => before.generation + 1,
            Some(before) => before.generation,
        };
        (self.changed, self.failed) = (false, false);
        self.working.generation = generation;
        self.published.insert(self.working.clone()).clone()
    }

    /// After errors a change may have been taken back, so that only a comparison tells.
    fn is_another(&self, before: &DesiredGraph) -> bool {
        let (resources, hidden) = (&self.working.resources, &self.working.hidden);
        let same_resources = || {
            let mut both = before.resources.iter().zip(resources);
            before.resources.len() == resources.len()
                && both.all(|((a, x), (b, y))| {
                    a == b && are_interchangeable(std::slice::from_ref(x), std::slice::from_ref(y))
                })
        };
        let same_hidden = || {
            let mut both = before.hidden.iter().zip(hidden);
            before.hidden.len() == hidden.len()
                && both.all(|((a, x), (b, y))| a == b && are_interchangeable(x, y))
        };
        let same_edges = || before.edges.diff(&self.working.edges).next().is_none();
        self.changed && !(self.failed && same_resources() && same_hidden() && same_edges())
    }

    /// Puts the new output of a statement in the place of the old one. What both hold alike is not touched.
    fn replace(&mut self, key: K, output: Option<Arc<StatementOutput>>, touched: &mut Touched) {
        let old = match &output {
            Some(new) => self.outputs.insert(key.clone(), new.clone()),
            None => self.outputs.remove(&key),
        };
        if let (Some(old), Some(new)) = (&old, &output)
            && Arc::ptr_eq(old, new)
        {
            return;
        }
        let empty = StatementOutput::default();
        let (old, new) = (
            old.as_deref().unwrap_or(&empty),
            output.as_deref().unwrap_or(&empty),
        );
        for index in 0..old.resources.len().max(new.resources.len()) {
            let (before, after) = (old.resources.get(index), new.resources.get(index));
            if let (Some(before), Some(after)) = (before, after)
                && before.is_interchangeable(after)
            {
                continue;
            }
            if let Some(resource) = before {
                self.detach(&key, index as u32, &resource.id, touched);
            }
            if let Some(resource) = after {
                self.attach(&key, index as u32, resource, touched);
            }
        }
        for index in 0..old.edges.len().max(new.edges.len()) {
            let (before, after) = (old.edges.get(index), new.edges.get(index));
            if before == after && old.span == new.span {
                continue;
            }
            if let Some(edge) = before {
                self.detach_edge(&key, index as u32, edge, touched);
            }
            if let Some(edge) = after {
                self.attach_edge(&key, index as u32, edge, new.span, touched);
            }
        }
        self.replace_unknown(key, old, output.as_ref(), touched);
    }

    fn replace_unknown(
        &mut self,
        key: K,
        old: &StatementOutput,
        new: Option<&Arc<StatementOutput>>,
        touched: &mut Touched,
    ) {
        let unknown = new.map(|output| output.unknown.as_slice()).unwrap_or_default();
        if old.unknown.is_empty() && unknown.is_empty() {
            return;
        }
        for part in unknown {
            match &part.what {
                UnknownWhat::Block => self.unknown_blocks += 1,
                UnknownWhat::Name(kind) => *self.unknown_kinds.entry(kind.clone()).or_default() += 1,
                _ => {}
            }
        }
        for part in &old.unknown {
            match &part.what {
                UnknownWhat::Block => self.unknown_blocks -= 1,
                UnknownWhat::Name(kind) => {
                    if let Some(count) = self.unknown_kinds.get_mut(kind) {
                        *count -= 1;
                        if *count == 0 {
                            self.unknown_kinds.remove(kind);
                        }
                    }
                }
                _ => {}
            }
        }
        match new {
            Some(output) if !unknown.is_empty() => self.unknown.insert(key, output.clone()),
            _ => self.unknown.remove(&key),
        };
        for (from, to) in self.loose_edges.clone() {
            self.touch_edge(from, to, touched);
        }
    }

    fn slot(&mut self, id: &ResourceId) -> SlotId {
        if let Some(slot) = self.index.get(id) {
            return *slot;
        }
        let new = Slot {
            id: id.clone(),
            contributors: Vec::new(),
            normal: None,
            hidden: Vec::new(),
            outgoing: BTreeMap::new(),
            incoming: BTreeSet::new(),
            senders: BTreeSet::new(),
            position: self.next_position,
            touched: false,
            receiver_touched: false,
        };
        self.next_position += 1;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = new;
                slot
            }
            None => {
                self.slots.push(new);
                self.slots.len() as SlotId - 1
            }
        };
        self.index.insert(id.clone(), slot);
        slot
    }

    /// Gives a slot back that nothing mentions any more.
    fn release(&mut self, slot: SlotId) {
        let s = &self.slots[slot as usize];
        let is_vacant = s.contributors.is_empty() && s.outgoing.is_empty() && s.incoming.is_empty();
        if is_vacant && self.index.get(&s.id) == Some(&slot) {
            self.index.remove(&s.id);
            self.free.push(slot);
        }
    }

    fn touch(&mut self, slot: SlotId, touched: &mut Touched) {
        let s = &mut self.slots[slot as usize];
        if !std::mem::replace(&mut s.touched, true) {
            touched.identities.push(slot);
        }
    }

    fn attach(&mut self, key: &K, index: u32, resource: &Arc<DesiredResource>, touched: &mut Touched) {
        let slot = self.slot(&resource.id);
        self.touch(slot, touched);
        let list = &mut self.slots[slot as usize].contributors;
        let at = list.partition_point(|c| (&c.key, c.index) < (key, index));
        list.insert(
            at,
            Contributor {
                key: key.clone(),
                index,
                resource: resource.clone(),
            },
        );
    }

    fn detach(&mut self, key: &K, index: u32, id: &ResourceId, touched: &mut Touched) {
        let slot = self.slot(id);
        self.touch(slot, touched);
        let list = &mut self.slots[slot as usize].contributors;
        if let Ok(at) = list.binary_search_by(|c| (&c.key, c.index).cmp(&(key, index))) {
            list.remove(at);
        }
    }

    /// Combines the resources of an identity anew.
    fn combine(&mut self, slot: SlotId, touched: &mut Touched) {
        let s = &mut self.slots[slot as usize];
        s.touched = false;
        let (existed, was_hidden) = (s.exists(), !s.hidden.is_empty());
        let combined = duplicates::combine(&s.contributors);
        let is_broken = !combined.problems.is_empty();
        if !are_interchangeable(combined.normal.as_slice(), s.normal.as_slice()) {
            match &combined.normal {
                Some(resource) => self.working.resources.insert(s.id.clone(), resource.clone()),
                None => self.working.resources.remove(&s.id),
            };
            s.normal = combined.normal;
            self.changed = true;
        }
        if !are_interchangeable(&combined.hidden, &s.hidden) {
            if combined.hidden.is_empty() {
                self.working.hidden.remove(&s.id);
            } else {
                self.working.hidden.insert(s.id.clone(), combined.hidden.clone());
            }
            s.hidden = combined.hidden;
            self.changed = true;
        }
        if existed != s.exists() || was_hidden == s.hidden.is_empty() {
            let outgoing: Vec<SlotId> = s.outgoing.keys().copied().collect();
            let incoming: Vec<SlotId> = s.incoming.iter().copied().collect();
            outgoing
                .into_iter()
                .for_each(|to| self.touch_edge(slot, to, touched));
            incoming
                .into_iter()
                .for_each(|from| self.touch_edge(from, slot, touched));
        }
        if is_broken {
            self.broken_identities.insert(slot);
        } else {
            self.broken_identities.remove(&slot);
        }
    }
}

fn are_interchangeable(a: &[Arc<DesiredResource>], b: &[Arc<DesiredResource>]) -> bool {
    let same = |(a, b): (&Arc<_>, &Arc<DesiredResource>)| Arc::ptr_eq(a, b) || a.is_interchangeable(b);
    a.len() == b.len() && a.iter().zip(b).all(same)
}
