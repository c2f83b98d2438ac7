//! What differs between two graphs. What they share is skipped by address, so that the cost is that of the difference.

use std::sync::Arc;

use imbl::ordmap::DiffItem;

use crate::{DesiredEdge, DesiredGraph, DesiredResource, ResourceId};

/// The way from one graph to another. Places in the text are no difference. Everything is sorted by identity.
#[derive(Debug, Clone, Default)]
pub struct GraphChange {
    /// The generation that it leads to.
    pub generation: u64,
    /// Resources that come.
    pub added: Vec<Arc<DesiredResource>>,
    /// Resources that go.
    pub removed: Vec<Arc<DesiredResource>>,
    /// Resources that are to be otherwise: old and new.
    pub changed: Vec<(Arc<DesiredResource>, Arc<DesiredResource>)>,
    /// Identities whose hidden resources differ.
    pub hidden: Vec<HiddenChange>,
    /// Edges that come; an edge that only notifies or sends otherwise goes and comes.
    pub edges_added: Vec<Arc<DesiredEdge>>,
    /// Edges that go.
    pub edges_removed: Vec<Arc<DesiredEdge>>,
}

/// The hidden resources of one identity.
#[derive(Debug, Clone)]
pub struct HiddenChange {
    /// The identity that they share.
    pub id: ResourceId,
    /// The hidden resources that there were.
    pub old: Vec<Arc<DesiredResource>>,
    /// The hidden resources that there shall be.
    pub new: Vec<Arc<DesiredResource>>,
}

/// What leads from `old` to `new`.
#[must_use]
pub fn diff(old: &DesiredGraph, new: &DesiredGraph) -> GraphChange {
    let mut change = GraphChange {
        generation: new.generation,
        ..GraphChange::default()
    };
    for item in old.resources.diff(&new.resources) {
        match item {
            DiffItem::Add(_, resource) => change.added.push(resource.clone()),
            DiffItem::Remove(_, resource) => change.removed.push(resource.clone()),
            DiffItem::Update {
                old: (_, old),
                new: (_, new),
            } => {
                if !old.is_unchanged(new) {
                    change.changed.push((old.clone(), new.clone()));
                }
            }
        }
    }
    for item in old.hidden.diff(&new.hidden) {
        let (id, old, new) = match item {
            DiffItem::Add(id, new) => (id, &[][..], new.as_slice()),
            DiffItem::Remove(id, old) => (id, old.as_slice(), &[][..]),
            DiffItem::Update {
                old: (id, old),
                new: (_, new),
            } => (id, old.as_slice(), new.as_slice()),
        };
        let unchanged = old.len() == new.len() && old.iter().zip(new).all(|(a, b)| a.is_unchanged(b));
        if !unchanged {
            change.hidden.push(HiddenChange {
                id: id.clone(),
                old: old.to_vec(),
                new: new.to_vec(),
            });
        }
    }
    for item in old.edges.diff(&new.edges) {
        match item {
            DiffItem::Add(_, edge) => change.edges_added.push(edge.clone()),
            DiffItem::Remove(_, edge) => change.edges_removed.push(edge.clone()),
            DiffItem::Update {
                old: (_, old),
                new: (_, new),
            } => {
                if !old.is_equal(new) {
                    change.edges_removed.push(old.clone());
                    change.edges_added.push(new.clone());
                }
            }
        }
    }
    change
}

impl DesiredGraph {
    /// Whether both want the same. Generation and places in the text do not count.
    #[must_use]
    pub fn is_equal(&self, other: &DesiredGraph) -> bool {
        diff(self, other).is_empty()
    }
}

impl GraphChange {
    /// Whether nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.added.is_empty()
            && self.removed.is_empty()
            && self.changed.is_empty()
            && self.hidden.is_empty()
            && self.edges_added.is_empty()
            && self.edges_removed.is_empty()
    }

    /// The graph that this leads to from `old`.
    #[must_use]
    pub fn apply(&self, old: &DesiredGraph) -> DesiredGraph {
        let mut graph = old.clone();
        graph.generation = self.generation;
        for resource in &self.removed {
            graph.resources.remove(&resource.id);
        }
        for resource in self.added.iter().chain(self.changed.iter().map(|(_, new)| new)) {
            graph.resources.insert(resource.id.clone(), resource.clone());
        }
        for change in &self.hidden {
            if change.new.is_empty() {
                graph.hidden.remove(&change.id);
            } else {
                graph.hidden.insert(change.id.clone(), change.new.clone());
            }
        }
        for edge in &self.edges_removed {
            graph.edges.remove(&(edge.from.clone(), edge.to.clone()));
        }
        for edge in &self.edges_added {
            graph
                .edges
                .insert((edge.from.clone(), edge.to.clone()), edge.clone());
        }
        graph
    }
}
