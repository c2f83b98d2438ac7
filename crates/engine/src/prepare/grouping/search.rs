//! Looks for groups: who is applied as part of whom.
//!
//! The rule tries all pairs, in an order, and asks of each whether one has to wait for the other. Here each resource finds those that fit
//! it by key, and whom it has to wait for, or who waits for it, is found once for all of them and followed as its group grows.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use setpoint_graph::{DesiredResource, MetaName, ResourceId};

use super::super::order::Order;
use super::Candidate;
use crate::GroupKey;

/// The meta parameters in which resources of one kind must agree to be applied as one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Terms {
    noop: bool,
    /// None where it is not written: that is a value of its own.
    retry: Option<i16>,
    retryreset: bool,
    delay: Option<u64>,
    timeout: u64,
    poll: i32,
    limit: u64,
    burst: u64,
    reset: bool,
    rewatch: bool,
    realize: bool,
    reverse: bool,
}

impl Terms {
    pub(super) const NAMES: [MetaName; 12] = [
        MetaName::Noop,
        MetaName::Retry,
        MetaName::Retryreset,
        MetaName::Delay,
        MetaName::Timeout,
        MetaName::Poll,
        MetaName::Limit,
        MetaName::Burst,
        MetaName::Reset,
        MetaName::Rewatch,
        MetaName::Realize,
        MetaName::Reverse,
    ];

    pub(super) fn of(resource: &DesiredResource) -> Terms {
        let meta = &resource.meta;
        let is_written = |name: MetaName| meta.written.contains(name);
        Terms {
            noop: meta.noop,
            retry: (meta.retry != 0 || is_written(MetaName::Retry)).then_some(meta.retry),
            retryreset: meta.retryreset,
            delay: (meta.delay != 0 || is_written(MetaName::Delay)).then_some(meta.delay),
            timeout: meta.timeout,
            poll: meta.poll,
            limit: meta.limit.to_bits(),
            burst: meta.burst,
            reset: meta.reset,
            rewatch: meta.rewatch,
            realize: meta.realize,
            reverse: meta.reverse,
        }
    }
}

/// A candidate while groups are looked for.
struct Entry<'a> {
    id: &'a ResourceId,
    candidate: &'a Candidate,
    /// A number for its [`Terms`].
    terms: u32,
    parent: Option<u32>,
    has_members: bool,
    /// The places in the order of edges of it and of all who are applied with it, as far as they have edges.
    nodes: Vec<u32>,
}

/// What a search found.
pub(super) struct Found {
    /// As part of whom each member is applied.
    pub(super) parents: BTreeMap<ResourceId, ResourceId>,
    /// How many resources were looked at and edges followed.
    pub(super) steps: usize,
}

/// Looks for groups. It takes time in proportion to the resources and edges, but for candidates that stand in several chains beside each
/// other: each of their groups is looked for among all of them.
pub(super) fn groups(candidates: &BTreeMap<ResourceId, Candidate>, order: &Order) -> Found {
    let mut sorted: Vec<(&ResourceId, &Candidate)> = candidates.iter().collect();
    sorted.sort_unstable_by(|(a, _), (b, _)| rank(a).cmp(&rank(b)));
    let mut numbers: FxHashMap<Terms, u32> = FxHashMap::default();
    let entries = sorted.into_iter().map(|(id, candidate)| {
        let count = numbers.len() as u32;
        let terms = *numbers.entry(Terms::of(&candidate.resource)).or_insert(count);
        Entry {
            id,
            candidate,
            terms,
            parent: None,
            has_members: false,
            nodes: order.place(id).into_iter().collect(),
        }
    });
    let mut search = Search::new(entries.collect(), order);
    for taker in 0..search.entries.len() as u32 {
        search.fill(taker);
    }
    let steps = search.steps + search.comparable.steps;
    let entries = search.entries;
    let members = entries.iter().filter_map(|entry| {
        let parent = &entries[entry.parent? as usize];
        Some((entry.id.clone(), parent.id.clone()))
    });
    Found {
        parents: members.collect(),
        steps,
    }
}

/// More parts in the kind first; then its parts, then names, each in reverse order.
fn rank(id: &ResourceId) -> (Reverse<usize>, Reverse<impl Ord + '_>, Reverse<&str>) {
    let parts = id.kind.split(':');
    let count = parts.clone().count();
    let parts = Parts(&id.kind);
    (Reverse(count), Reverse(parts), Reverse(&*id.name))
}

/// A kind, compared part by part.
#[derive(PartialEq, Eq)]
struct Parts<'a>(&'a str);

impl PartialOrd for Parts<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Parts<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.split(':').cmp(other.0.split(':'))
    }
}

fn first_part(kind: &str) -> &str {
    kind.split(':').next().unwrap_or(kind)
}

/// Those who join under a key, of one kind; of the same terms, or of any.
type Joining<'a> = (&'a GroupKey, &'a str, Option<u32>);

#[derive(Default)]
struct List {
    members: Vec<u32>,
    /// The component of the graph in which all of them are, if it is one; not known yet.
    component: Option<Option<u32>>,
}

struct Search<'a> {
    entries: Vec<Entry<'a>>,
    joining: FxHashMap<Joining<'a>, List>,
    /// The kinds of those who join under a key.
    kinds: FxHashMap<&'a GroupKey, Vec<&'a str>>,
    comparable: Comparable<'a>,
    /// How many were looked at, of those who fit somebody.
    steps: usize,
}

impl<'a> Search<'a> {
    fn new(entries: Vec<Entry<'a>>, order: &'a Order) -> Search<'a> {
        let mut joining: FxHashMap<Joining<'a>, List> = FxHashMap::default();
        let mut kinds: FxHashMap<&'a GroupKey, Vec<&'a str>> = FxHashMap::default();
        for (place, entry) in entries.iter().enumerate() {
            let kind = &*entry.id.kind;
            for key in &entry.candidate.grouping.joins {
                for terms in [Some(entry.terms), None] {
                    let list = joining.entry((key, kind, terms)).or_default();
                    list.members.push(place as u32);
                }
                let of_key = kinds.entry(key).or_default();
                if !of_key.contains(&kind) {
                    of_key.push(kind);
                }
            }
        }
        Search {
            entries,
            joining,
            kinds,
            comparable: Comparable::new(order),
            steps: 0,
        }
    }

    /// Lets one take in whoever can be a member of it.
    fn fill(&mut self, taker: u32) {
        let entry = &self.entries[taker as usize];
        if entry.parent.is_some() || entry.candidate.grouping.takes.is_empty() {
            return;
        }
        let own_kind = &*entry.id.kind;
        let mut lists: Vec<Joining<'a>> = Vec::new();
        for key in &entry.candidate.grouping.takes {
            let kinds = self.kinds.get(key).into_iter().flatten();
            let kinds = kinds.filter(|kind| first_part(kind) == first_part(own_kind));
            let list = kinds.map(|kind| (key, *kind, (*kind == own_kind).then_some(entry.terms)));
            lists.extend(list.filter(|list| self.joining.contains_key(list)));
        }
        if self.nobody_is_independent(taker, &lists) {
            return;
        }
        let mut fitting: Vec<u32> = Vec::new();
        for list in &lists {
            let Some(list) = self.joining.get_mut(list) else {
                continue;
            };
            let entries = &self.entries;
            list.members
                .retain(|member| entries[*member as usize].parent.is_none());
            fitting.extend_from_slice(&list.members);
        }
        if lists.len() > 1 {
            fitting.sort_unstable();
            fitting.dedup();
        }
        self.steps += fitting.len();
        if fitting.is_empty() || fitting == [taker] {
            return;
        }
        self.comparable.begin(taker, &self.entries);
        for member in fitting {
            let (entry, other) = (&self.entries[taker as usize], &self.entries[member as usize]);
            // Groups of one kind are flat.
            let is_nested = entry.id.kind == other.id.kind && other.has_members;
            if member == taker || is_nested || self.comparable.has(other) {
                continue;
            }
            self.comparable.take_in(taker, member, &self.entries);
            let nodes = std::mem::take(&mut self.entries[member as usize].nodes);
            self.entries[member as usize].parent = Some(taker);
            let entry = &mut self.entries[taker as usize];
            entry.nodes.extend(nodes);
            entry.has_members = true;
        }
    }
}

impl<'a> Search<'a> {
    /// Whether one comes before or after all others that its edges lead to, however far, and whoever fits it is among these. So it is in a
    /// chain, of which nobody needs to be asked.
    fn nobody_is_independent(&mut self, taker: u32, lists: &[Joining<'a>]) -> bool {
        let &[node] = &*self.entries[taker as usize].nodes else {
            return false;
        };
        if !self.comparable.is_bottleneck(node) {
            return false;
        }
        let component = self.comparable.component(node);
        lists.iter().all(|list| {
            let Some(list) = self.joining.get_mut(list) else {
                return true;
            };
            let (entries, comparable) = (&self.entries, &mut self.comparable);
            let in_one = *list.component.get_or_insert_with(|| {
                let mut components = list.members.iter().map(|member| {
                    let node = entries[*member as usize].nodes.first();
                    node.map(|node| comparable.component(*node))
                });
                let first = components.next().flatten()?;
                components.all(|other| other == Some(first)).then_some(first)
            });
            in_one == Some(component)
        })
    }
}

/// Who has to wait for a group, and for whom it has to wait.
struct Comparable<'a> {
    order: &'a Order,
    /// By place: the group that it is in, by who stands for that.
    group: Vec<Option<u32>>,
    /// By place: the last group of which it was found to come before or after.
    before: Vec<u32>,
    after: Vec<u32>,
    /// The number of the group that is being filled.
    current: u32,
    /// By place: the component of the graph that it is in, from 1, or 0 while that is not known.
    components: Vec<u32>,
    /// By place: whether it comes before or after all others of its component.
    bottlenecks: Vec<bool>,
    count: u32,
    /// How many edges were followed.
    steps: usize,
}

impl<'a> Comparable<'a> {
    fn new(order: &'a Order) -> Comparable<'a> {
        let places = order.places();
        Comparable {
            order,
            group: vec![None; places],
            before: vec![0; places],
            after: vec![0; places],
            current: 0,
            components: vec![0; places],
            bottlenecks: vec![false; places],
            count: 0,
            steps: 0,
        }
    }

    fn component(&mut self, node: u32) -> u32 {
        if self.components[node as usize] == 0 {
            self.explore(node);
        }
        self.components[node as usize]
    }

    fn is_bottleneck(&mut self, node: u32) -> bool {
        self.component(node);
        self.bottlenecks[node as usize]
    }

    /// Finds a component, and who of it comes before or after all others. In a topological order, all that stand before somebody lead to
    /// him if each of them has a successor that does not stand behind him; and likewise of those behind.
    fn explore(&mut self, start: u32) {
        self.count += 1;
        self.components[start as usize] = self.count;
        let mut all = vec![start];
        let mut at = 0;
        while let Some(node) = all.get(at).copied() {
            at += 1;
            for next in [true, false]
                .into_iter()
                .flat_map(|way| self.order.next(node, way))
            {
                self.steps += 1;
                let component = &mut self.components[*next as usize];
                if std::mem::replace(component, self.count) == 0 {
                    all.push(*next);
                }
            }
        }
        all.sort_unstable_by_key(|node| self.order.position(*node));
        let positions = |node: u32, forward: bool| {
            let next = self.order.next(node, forward).iter();
            next.map(|next| self.order.position(*next))
        };
        let mut is_passed = vec![true; all.len()];
        let mut furthest = 0;
        for (node, is_passed) in all.iter().zip(&mut is_passed) {
            *is_passed = furthest <= self.order.position(*node);
            furthest = furthest.max(positions(*node, true).min().unwrap_or(u64::MAX));
        }
        let mut nearest = u64::MAX;
        for (node, is_passed) in all.iter().zip(is_passed).rev() {
            self.bottlenecks[*node as usize] = is_passed && nearest >= self.order.position(*node);
            nearest = nearest.min(positions(*node, false).max().unwrap_or(0));
        }
    }

    /// Forgets the group before, and looks around the one who begins another.
    fn begin(&mut self, taker: u32, entries: &[Entry<'_>]) {
        self.current += 1;
        self.look(taker, entries, &entries[taker as usize].nodes);
    }

    /// Whether one must wait for the group, or the group for it.
    fn has(&self, other: &Entry<'_>) -> bool {
        let mut nodes = other.nodes.iter().map(|node| *node as usize);
        nodes.any(|node| self.before[node] == self.current || self.after[node] == self.current)
    }

    fn take_in(&mut self, taker: u32, member: u32, entries: &[Entry<'_>]) {
        let nodes = &entries[member as usize].nodes;
        for node in nodes.iter().chain(&entries[taker as usize].nodes) {
            self.group[*node as usize] = Some(taker);
        }
        self.look(taker, entries, nodes);
    }

    /// Follows edges from these both ways. Where one of a group is reached, all of it are.
    fn look(&mut self, taker: u32, entries: &[Entry<'_>], from: &[u32]) {
        for forward in [true, false] {
            let seen = if forward {
                &mut self.after
            } else {
                &mut self.before
            };
            let mut left = from.to_vec();
            while let Some(node) = left.pop() {
                for next in self.order.next(node, forward) {
                    self.steps += 1;
                    if std::mem::replace(&mut seen[*next as usize], self.current) == self.current {
                        continue;
                    }
                    left.push(*next);
                    let group = self.group[*next as usize].filter(|group| *group != taker);
                    let Some(group) = group else { continue };
                    for other in &entries[top(group, entries) as usize].nodes {
                        if std::mem::replace(&mut seen[*other as usize], self.current) != self.current {
                            left.push(*other);
                        }
                    }
                }
            }
        }
    }
}

/// Who stands for a group that may have become part of another one.
fn top(mut group: u32, entries: &[Entry<'_>]) -> u32 {
    while let Some(parent) = entries[group as usize].parent {
        group = parent;
    }
    group
}
