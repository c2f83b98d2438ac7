//! Grouping: which resources are applied as part of others.
//!
//! Resources whose kinds declare that they fit are tried in an order, each as the one that takes in the others; two that have to wait for
//! each other are never put together. Groups are found anew when something changes that they follow from, and only then; what
//! is applied is then brought in line where it differs.

mod search;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_graph::{
    DesiredEdge, DesiredGraph, DesiredMembers, DesiredResource, GraphChange, MetaName, ResourceId, diff,
};

use super::order::Order;
use crate::Grouping;

type Pair = (ResourceId, ResourceId);

/// A graph in which groups stand as one resource each.
#[derive(Debug)]
pub(super) struct Grouped {
    pub(super) graph: DesiredGraph,
    /// Resources that have others members than before, or members that differ; sorted.
    pub(super) regrouped: Vec<ResourceId>,
    /// What users probably did not mean, as lines for the log.
    pub(super) warnings: Vec<String>,
}

/// A resource that can be grouped.
#[derive(Debug)]
struct Candidate {
    resource: Arc<DesiredResource>,
    grouping: Grouping,
}

/// The groups of a graph, and what they follow from.
#[derive(Debug, Default)]
pub(super) struct Groups {
    candidates: BTreeMap<ResourceId, Candidate>,
    /// As part of which resource each member is applied.
    parents: BTreeMap<ResourceId, ResourceId>,
    /// The members of each, without members of members; sorted.
    members: FxHashMap<ResourceId, Vec<ResourceId>>,
    /// The edges of the graph for which each edge between groups stands, unless it is that edge itself.
    moved: BTreeMap<Pair, BTreeSet<Pair>>,
    /// The graph as it was last, before grouping and after.
    last: DesiredGraph,
    last_grouped: DesiredGraph,
    /// Of whom it was said that it is of no use alone.
    told_alone: FxHashSet<ResourceId>,
    /// How often groups were looked for, and how many steps that took.
    searches: usize,
    steps: usize,
}

impl Groups {
    /// Groups a graph. `order` has all its edges, and `fresh` what resources that are new or changed fit; those that are not in it are as
    /// before.
    pub(super) fn update(
        &mut self,
        graph: &DesiredGraph,
        order: &Order,
        fresh: Vec<(ResourceId, Grouping)>,
    ) -> Grouped {
        let change = diff(&self.last, graph);
        let must_search = self.learn(&change, graph, fresh) || self.edges_matter(&change, order);
        if self.candidates.is_empty() && self.parents.is_empty() {
            self.last = graph.clone();
            self.last_grouped = graph.clone();
            return Grouped {
                graph: graph.clone(),
                regrouped: Vec::new(),
                warnings: Vec::new(),
            };
        }
        let before = Place {
            parents: std::mem::take(&mut self.parents),
            graph: self.last.clone(),
        };
        let members_before = std::mem::take(&mut self.members);
        if must_search {
            let found = search::groups(&self.candidates, order);
            self.searches += 1;
            self.steps += found.steps;
            self.parents = found.parents;
            for (member, parent) in &self.parents {
                let members = self.members.entry(parent.clone()).or_default();
                members.push(member.clone());
            }
        } else {
            self.parents.clone_from(&before.parents);
            self.members = members_before.clone();
        }
        let now = Place {
            parents: std::mem::take(&mut self.parents),
            graph: graph.clone(),
        };

        let moved_nodes = self.moved_nodes(&before, &now, &change, must_search);
        let mut output = change.apply(&self.last_grouped);
        let mut regrouped = self.place_resources(&mut output, graph, &change, &now, &moved_nodes);
        self.place_edges(&mut output, graph, order, &change, [&before, &now], &moved_nodes);

        // Members that came, or may be applied otherwise than they say.
        let mut warnings = Vec::new();
        if must_search {
            self.warn_of_lone(&now, &mut warnings);
        }
        for id in &moved_nodes {
            self.warn_of_unused(id, &now, &mut warnings);
        }
        regrouped.retain(|id| output.resources.contains_key(id));
        self.parents = now.parents;
        self.last = graph.clone();
        self.last_grouped = output.clone();
        Grouped {
            graph: output,
            regrouped,
            warnings,
        }
    }

    /// Takes over what resources fit. Whether groups are to be looked for.
    fn learn(
        &mut self,
        change: &GraphChange,
        graph: &DesiredGraph,
        fresh: Vec<(ResourceId, Grouping)>,
    ) -> bool {
        let mut is_other = false;
        for gone in &change.removed {
            is_other |= self.candidates.remove(&gone.id).is_some();
            self.told_alone.remove(&gone.id);
        }
        for (id, grouping) in fresh {
            let Some(resource) = graph.resources.get(&id) else {
                continue;
            };
            let before = self.candidates.remove(&id);
            let may = resource.schema.autogroup && resource.meta.autogroup && !grouping.is_none();
            if !may {
                is_other |= before.is_some();
                continue;
            }
            let resource = resource.clone();
            is_other |= before.is_none_or(|before| {
                before.grouping != grouping
                    || search::Terms::of(&before.resource) != search::Terms::of(&resource)
            });
            self.candidates.insert(id, Candidate { resource, grouping });
        }
        is_other
    }

    /// Whether a change of edges may be one of who waits for whom among those that can be grouped.
    fn edges_matter(&self, change: &GraphChange, order: &Order) -> bool {
        let edges = || change.edges_added.iter().chain(&change.edges_removed);
        if self.candidates.is_empty() || edges().next().is_none() {
            return false;
        }
        // Along the edges of both graphs.
        let mut after: FxHashMap<&ResourceId, Vec<&ResourceId>> = FxHashMap::default();
        let mut before: FxHashMap<&ResourceId, Vec<&ResourceId>> = FxHashMap::default();
        for edge in &change.edges_removed {
            after.entry(&edge.from).or_default().push(&edge.to);
            before.entry(&edge.to).or_default().push(&edge.from);
        }
        let finds = |start: &mut dyn Iterator<Item = &ResourceId>, forward: bool| {
            let mut look: Vec<ResourceId> = start.cloned().collect();
            let mut seen: FxHashSet<ResourceId> = look.iter().cloned().collect();
            while let Some(id) = look.pop() {
                if self.candidates.contains_key(&id) {
                    return true;
                }
                let removed = if forward { after.get(&id) } else { before.get(&id) };
                let next = removed.into_iter().flatten().copied();
                let neighbours = order.neighbours(&id, forward);
                for next in next.chain(neighbours) {
                    if seen.insert(next.clone()) {
                        look.push(next.clone());
                    }
                }
            }
            false
        };
        finds(&mut edges().map(|edge| &edge.from), false) && finds(&mut edges().map(|edge| &edge.to), true)
    }

    /// Resources that are applied as part of another one than before, or no longer.
    fn moved_nodes(
        &self,
        before: &Place,
        now: &Place,
        change: &GraphChange,
        searched: bool,
    ) -> BTreeSet<ResourceId> {
        let mut moved = BTreeSet::new();
        if searched {
            let differs = |id: &&ResourceId| {
                before.parents.get(*id) != now.parents.get(*id) || before.root(id) != now.root(id)
            };
            moved.extend(before.parents.keys().filter(differs).cloned());
            moved.extend(now.parents.keys().filter(differs).cloned());
        }
        let hidden = change.hidden.iter().map(|hidden| &hidden.id);
        let is_member = |id: &&ResourceId| before.parents.contains_key(*id) || now.parents.contains_key(*id);
        moved.extend(hidden.filter(is_member).cloned());
        moved
    }

    /// Puts members where they belong. Answers who has members that differ from those before.
    fn place_resources(
        &self,
        output: &mut DesiredGraph,
        graph: &DesiredGraph,
        change: &GraphChange,
        now: &Place,
        moved: &BTreeSet<ResourceId>,
    ) -> Vec<ResourceId> {
        let mut dirty: BTreeSet<&ResourceId> = BTreeSet::new();
        let changed = change.changed.iter().map(|(_, new)| &new.id);
        let touched = change.added.iter().map(|new| &new.id).chain(changed).chain(moved);
        for id in touched {
            let root = now.root(id);
            if root == id {
                if let Some(resource) = graph.resources.get(id) {
                    output.resources.insert(id.clone(), resource.clone());
                }
            } else {
                output.resources.remove(id);
            }
            dirty.insert(root);
        }
        // Those whose members left, too.
        let had = |id: &ResourceId| {
            let resource = self.last_grouped.resources.get(id);
            resource.is_some_and(|resource| !resource.members.is_empty())
        };
        let left: Vec<&ResourceId> = self
            .last_grouped
            .resources
            .values()
            .filter(|_| !moved.is_empty())
            .map(|resource| &resource.id)
            .filter(|id| had(id))
            .collect();
        dirty.extend(left);
        let mut regrouped = Vec::new();
        for id in dirty {
            let Some(resource) = graph.resources.get(id).filter(|_| now.root(id) == id) else {
                continue;
            };
            let built = self.built(graph, resource);
            let before = self.last_grouped.resources.get(id);
            let kept = before.filter(|before| before.is_unchanged(&built));
            if kept.is_none() && (!built.members.is_empty() || had(id)) {
                regrouped.push(id.clone());
            }
            let built = kept.cloned().unwrap_or(built);
            output.resources.insert(id.clone(), built);
        }
        regrouped
    }

    /// A resource with its members.
    fn built(&self, graph: &DesiredGraph, resource: &Arc<DesiredResource>) -> Arc<DesiredResource> {
        let Some(members) = self.members.get(&resource.id) else {
            return resource.clone();
        };
        let members = members.iter().filter_map(|id| graph.resources.get(id));
        Arc::new(DesiredResource {
            members: DesiredMembers::new(members.map(|member| self.built(graph, member))),
            ..(**resource).clone()
        })
    }

    /// Puts edges between the resources that stand for their ends.
    fn place_edges(
        &mut self,
        output: &mut DesiredGraph,
        graph: &DesiredGraph,
        order: &Order,
        change: &GraphChange,
        [before, now]: [&Place; 2],
        moved: &BTreeSet<ResourceId>,
    ) {
        let ends = |edge: &Arc<DesiredEdge>| (edge.from.clone(), edge.to.clone());
        let edges = change.edges_added.iter().chain(&change.edges_removed);
        let mut sources: BTreeSet<Pair> = edges.map(ends).collect();
        for id in moved {
            let after = order.neighbours(id, true);
            sources.extend(after.map(|after| (id.clone(), after.clone())));
            let previous = order.neighbours(id, false);
            sources.extend(previous.map(|previous| (previous.clone(), id.clone())));
        }
        let mut dirty: BTreeSet<Pair> = BTreeSet::new();
        for source in sources {
            for pair in before.pairs(&source) {
                if let Some(parts) = self.moved.get_mut(&pair) {
                    parts.remove(&source);
                    if parts.is_empty() {
                        self.moved.remove(&pair);
                    }
                }
                dirty.insert(pair);
            }
            for pair in now.pairs(&source) {
                if pair != source && graph.edges.contains_key(&source) {
                    self.moved.entry(pair.clone()).or_default().insert(source.clone());
                }
                dirty.insert(pair);
            }
            dirty.insert(source);
        }
        for pair in dirty {
            let own = graph.edges.get(&pair).filter(|_| now.is_kept(&pair));
            let parts = self.moved.get(&pair);
            let parts = parts
                .into_iter()
                .flatten()
                .filter_map(|part| graph.edges.get(part));
            let parts: Box<[Arc<DesiredEdge>]> = parts.cloned().collect();
            let built = match (own, parts.first()) {
                (None, None) => {
                    output.edges.remove(&pair);
                    continue;
                }
                (Some(own), None) => own.clone(),
                (own, Some(first)) => Arc::new(DesiredEdge {
                    from: pair.0.clone(),
                    to: pair.1.clone(),
                    notify: own.is_some_and(|own| own.notify) || parts.iter().any(|part| part.notify),
                    send: own.map(|own| own.send.clone()).unwrap_or_default(),
                    span: own.map_or(first.span, |own| own.span),
                    parts: Some(parts),
                }),
            };
            let kept = self.last_grouped.edges.get(&pair);
            let kept = kept.filter(|kept| kept.is_equal(&built)).cloned();
            output.edges.insert(pair, kept.unwrap_or(built));
        }
    }

    /// Says of resources that do nothing alone that nobody takes them in.
    fn warn_of_lone(&mut self, now: &Place, warnings: &mut Vec<String>) {
        let mut lone: Vec<(&ResourceId, &'static str)> = Vec::new();
        for (id, candidate) in &self.candidates {
            if now.parents.contains_key(id) {
                self.told_alone.remove(id);
            } else if let Some(why) = candidate.grouping.alone
                && self.told_alone.insert(id.clone())
            {
                lone.push((id, why));
            }
        }
        lone.sort_unstable();
        warnings.extend(lone.into_iter().map(|(id, why)| format!("`{id}` {why}")));
    }

    /// Says of a member of another kind which of its meta parameters do not hold.
    fn warn_of_unused(&self, id: &ResourceId, now: &Place, warnings: &mut Vec<String>) {
        let (Some(parent), Some(candidate)) = (now.parents.get(id), self.candidates.get(id)) else {
            return;
        };
        if parent.kind == id.kind {
            return;
        }
        let written = candidate.resource.meta.written;
        let unused: Vec<String> = search::Terms::NAMES
            .into_iter()
            .filter(|name| *name != MetaName::Noop && written.contains(*name))
            .map(|name| format!("`Meta:{}`", name.name()))
            .collect();
        if !unused.is_empty() {
            warnings.push(format!(
                "{} of `{id}` does nothing, because it is applied as part of `{parent}`: what is written there holds",
                unused.join(", ")
            ));
        }
    }

    /// Each group: who is applied, and what is applied as part of it; sorted.
    pub(super) fn list(&self) -> Vec<(ResourceId, Vec<ResourceId>)> {
        let mut list: Vec<_> = self.members.clone().into_iter().collect();
        list.sort_unstable();
        list
    }
}

/// Where resources are applied.
struct Place {
    parents: BTreeMap<ResourceId, ResourceId>,
    graph: DesiredGraph,
}

impl Place {
    /// The resource that stands for one in the graph.
    fn root<'a>(&'a self, mut id: &'a ResourceId) -> &'a ResourceId {
        while let Some(parent) = self.parents.get(id) {
            id = parent;
        }
        id
    }

    /// All that stand for it: hidden ones of its identity are in no group.
    fn ends<'a>(&'a self, id: &'a ResourceId) -> impl Iterator<Item = &'a ResourceId> {
        let root = self.root(id);
        let hidden = (root != id && self.graph.hidden.contains_key(id)).then_some(id);
        hidden.into_iter().chain([root])
    }

    /// Between whom an edge is applied.
    fn pairs(&self, (from, to): &Pair) -> Vec<Pair> {
        let pair = |from: &ResourceId, to: &ResourceId| (from.clone(), to.clone());
        self.ends(from)
            .flat_map(|from| self.ends(to).map(move |to| pair(from, to)))
            .collect()
    }

    /// Whether an edge is applied between its own ends.
    fn is_kept(&self, (from, to): &Pair) -> bool {
        self.ends(from).any(|end| end == from) && self.ends(to).any(|end| end == to)
    }
}

#[cfg(test)]
mod tests;
