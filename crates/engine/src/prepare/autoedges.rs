//! Automatic edges: what a resource is, what it wants edges with, and the edges that
//! follow. One lookup for each wanted identity.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use setpoint_graph::{DesiredEdge, DesiredGraph, ResourceId};

use super::order::Order;
use crate::{Identity, Resource, Wanted, WantedOrder, WantedReach};

/// What a resource is and wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Interests {
    pub(super) has: Vec<Identity>,
    wants: Vec<Wanted>,
    /// Whether there are edges from or to it.
    takes_part: bool,
}

impl Interests {
    pub(super) fn of(resource: &dyn Resource, takes_part: bool) -> Interests {
        // A panic in either costs the edges of this resource, not the graph.
        let has = crate::workers::guarded("say what it is", || resource.identities());
        let wanted = || crate::workers::guarded("say what it wants edges with", || resource.wanted());
        let wants = if takes_part {
            wanted().unwrap_or_default()
        } else {
            Vec::new()
        };
        Interests {
            has: has.unwrap_or_default(),
            wants,
            takes_part,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.has.is_empty() && self.wants.is_empty()
    }
}

/// The automatic edges of a graph.
#[derive(Debug, Default)]
pub(super) struct AutomaticEdges {
    edges: Vec<Arc<DesiredEdge>>,
    known: BTreeSet<(ResourceId, ResourceId)>,
}

/// Resources by what they are, in the order of their identities.
#[derive(Default)]
struct Index<'a> {
    exact: FxHashMap<&'a Identity, Vec<&'a ResourceId>>,
    /// Those that match by parts.
    partial: Vec<(&'a Identity, &'a ResourceId)>,
}

impl<'a> Index<'a> {
    fn first(&self, wanted: &Identity, except: &ResourceId) -> Option<&'a ResourceId> {
        if is_partial(wanted) {
            let mut found = self.partial.iter();
            return found
                .find(|(identity, id)| wanted.is_met_by(identity) && *id != except)
                .map(|(_, id)| *id);
        }
        self.exact.get(wanted)?.iter().find(|id| **id != except).copied()
    }
}

/// Whether equality is not all that matters.
fn is_partial(identity: &Identity) -> bool {
    matches!(
        identity,
        Identity::User(_) | Identity::Group(_) | Identity::FirmwareRemote(_)
    )
}

impl AutomaticEdges {
    /// Finds them, written edges and their order given.
    pub(super) fn find(
        interests: &FxHashMap<ResourceId, Interests>,
        graph: &DesiredGraph,
        mut order: Order,
        warnings: &mut Vec<String>,
    ) -> AutomaticEdges {
        let mut all: Vec<(&ResourceId, &Interests)> = interests.iter().collect();
        all.sort_unstable_by_key(|(id, _)| *id);
        let mut index = Index::default();
        for (id, interests) in all.iter().filter(|(_, interests)| interests.takes_part) {
            for identity in &interests.has {
                if is_partial(identity) {
                    index.partial.push((identity, id));
                } else {
                    index.exact.entry(identity).or_default().push(id);
                }
            }
        }
        let mut edges = Vec::new();
        let mut known: BTreeSet<(ResourceId, ResourceId)> = BTreeSet::new();
        for (id, interests) in &all {
            let resource = graph.resources.get(*id);
            let Some(resource) = resource else { continue };
            for wanted in &interests.wants {
                for identity in &wanted.identities {
                    let Some(found) = index.first(identity, id) else {
                        continue;
                    };
                    let ends = match wanted.order {
                        WantedOrder::FoundFirst => (found.clone(), (*id).clone()),
                        WantedOrder::FoundAfter => ((*id).clone(), found.clone()),
                    };
                    let is_new = !graph.edges.contains_key(&ends) && known.insert(ends.clone());
                    if is_new {
                        match order.add(&ends.0, &ends.1) {
                            Ok(()) => edges.push(Arc::new(DesiredEdge {
                                from: ends.0,
                                to: ends.1,
                                notify: false,
                                send: Vec::new(),
                                span: resource.span,
                            })),
                            Err(way) => {
                                known.remove(&ends);
                                warnings.push(left_out(&ends, &way));
                            }
                        }
                    }
                    if wanted.reach == WantedReach::First {
                        break;
                    }
                }
            }
        }
        AutomaticEdges { edges, known }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<DesiredEdge>> {
        self.edges.iter()
    }

    pub(super) fn contains(&self, edge: &DesiredEdge) -> bool {
        self.known.contains(&(edge.from.clone(), edge.to.clone()))
    }
}

fn left_out(ends: &(ResourceId, ResourceId), way: &[ResourceId]) -> String {
    let way: Vec<String> = way.iter().map(ToString::to_string).collect();
    format!(
        "`{}` would come before `{}` by itself, but the program says the contrary: {}",
        ends.0,
        ends.1,
        way.join(" -> ")
    )
}
