//! From a desired graph to one that the machine may take: decoded, validated, with automatic edges, free of circles.
//!
//! This may do I/O and take its time, so it happens beside the machine, one graph at a time. What did not change since the
//! graph before is not looked at again.

mod autoedges;
mod inquiries;
mod order;

use std::panic::resume_unwind;
use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap};
use setpoint_graph::{DesiredEdge, DesiredGraph, DesiredResource, Finding, Invalid, ResourceId};

use crate::graph_view::ViewChange;
use crate::{Failure, Instance, KindSpec};
use autoedges::{AutomaticEdges, Interests};
pub(crate) use inquiries::Inquirer;
use inquiries::Inquiries;

/// Kinds by name.
pub(crate) type Kinds = FxHashMap<&'static str, KindSpec>;

/// Instances that were made on the way, by identity; each belongs to the resource beside it and to no other.
pub(crate) type Instances = FxHashMap<ResourceId, (Arc<DesiredResource>, Instance)>;

/// A graph that the machine may take.
pub(crate) struct Prepared {
    pub(crate) graph: DesiredGraph,
    pub(crate) instances: Instances,
    /// How many resources of before are gone.
    pub(crate) removed: usize,
    /// What changed of the view that resources have of the graph.
    pub(crate) view: ViewChange,
    /// Resources that manage one and the same thing, by groups, when they may have changed.
    pub(crate) sharing: Option<Vec<Vec<ResourceId>>>,
    /// Automatic edges that were left out and things that are shared, as lines for the log.
    pub(crate) warnings: Vec<String>,
}

/// The automatic edges that an engine with these kinds would add to a graph; none for a graph that it would refuse.
#[must_use]
pub fn automatic_edges(kinds: &[KindSpec], graph: &DesiredGraph) -> Vec<Arc<DesiredEdge>> {
    let kinds: Kinds = kinds.iter().map(|spec| (spec.schema.kind, *spec)).collect();
    let Ok(prepared) = Preparer::new(Arc::new(kinds), true, None).prepare(graph) else {
        return Vec::new();
    };
    let edges = prepared.graph.edges.iter();
    edges
        .filter(|(ends, _)| !graph.edges.contains_key(*ends))
        .map(|(_, edge)| edge.clone())
        .collect()
}

/// A resource decoded, with what it is and wants; or what is wrong with it.
type Decoded = Result<(Instance, Interests), Vec<Finding>>;

/// So many resources are worth a thread that decodes them.
const WORTH_A_THREAD: usize = 512;

/// Prepares one graph after the other.
pub(crate) struct Preparer {
    kinds: Arc<Kinds>,
    automatic_edges: bool,
    /// The graph as it came last, and as it was given on.
    last_input: DesiredGraph,
    last_output: DesiredGraph,
    edges: AutomaticEdges,
    /// Asks resources what only the machine can tell; none where there is no machine.
    inquirer: Option<Arc<Inquirer>>,
    inquiries: Inquiries,
    /// Whether no graph was prepared yet: what others know of earlier ones is void.
    is_first: bool,
}

impl Preparer {
    pub(crate) fn new(kinds: Arc<Kinds>, automatic_edges: bool, inquirer: Option<Arc<Inquirer>>) -> Preparer {
        Preparer {
            kinds,
            automatic_edges,
            last_input: DesiredGraph::default(),
            last_output: DesiredGraph::default(),
            edges: AutomaticEdges::default(),
            inquirer,
            inquiries: Inquiries::default(),
            is_first: true,
        }
    }

    /// One that has seen nothing.
    pub(crate) fn fresh(&self) -> Preparer {
        Preparer::new(self.kinds.clone(), self.automatic_edges, self.inquirer.clone())
    }

    /// Prepares a graph.
    ///
    /// # Errors
    /// Everything that is wrong with it. Nothing has changed then.
    pub(crate) fn prepare(&mut self, graph: &DesiredGraph) -> Result<Prepared, Vec<Finding>> {
        let change = setpoint_graph::diff(&self.last_input, graph);
        let mut findings: Vec<Finding> = Vec::new();
        let changed = change.changed.iter().map(|(_, new)| new);
        let wanted: Vec<&Arc<DesiredResource>> = change.added.iter().chain(changed).collect();
        let mut instances = Instances::with_capacity_and_hasher(wanted.len(), FxBuildHasher);
        let mut all_interests = Vec::with_capacity(wanted.len());
        for (resource, decoded) in wanted.iter().zip(self.decode_all(&wanted)) {
            match decoded {
                Ok((instance, interests)) => {
                    let id = resource.id.clone();
                    all_interests.push((id.clone(), interests));
                    instances.insert(id, ((*resource).clone(), instance));
                }
                Err(found) => findings.extend(found),
            }
        }
        for hidden in change.hidden.iter().flat_map(|change| &change.new) {
            if !self.kinds.contains_key(&*hidden.id.kind) {
                findings.push(Finding::unknown_kind(&hidden.id.kind, hidden.span));
            }
        }
        if !findings.is_empty() {
            return Err(findings);
        }

        if let Err(circle) = self.edges.take_written(&change, graph) {
            return Err(vec![describe_circle(graph, &circle)]);
        }

        // From here on nothing is refused.
        let mut fresh = all_interests;
        let mut warnings = self.inquire(graph, &mut fresh);
        for (id, interests) in &mut fresh {
            let untold = interests.untold.take();
            warnings.extend(untold.map(|failure| without_edges(id, &failure)));
        }
        fresh.retain(|(id, interests)| !self.edges.knows(id, interests));
        fresh.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let removed = change.removed.iter().map(|resource| resource.id.clone());
        let mut found = self.edges.update(graph, removed, fresh);
        let is_first = std::mem::take(&mut self.is_first);
        found.view.is_anew = is_first;

        // Built from what was given before, so that the two share what did not change.
        let mut change = change;
        change.changed.retain(|(old, new)| {
            let is_same = self.is_the_same(old, new);
            if is_same {
                instances.remove(&new.id);
            }
            !is_same
        });
        let mut output = change.apply(&self.last_output);
        for pair in found
            .removed
            .iter()
            .filter(|pair| !graph.edges.contains_key(*pair))
        {
            output.edges.remove(pair);
        }
        // Those that were written until now, and still follow by themselves.
        let no_longer_written = change
            .edges_removed
            .iter()
            .map(|edge| (edge.from.clone(), edge.to.clone()));
        for pair in found.added.iter().cloned().chain(no_longer_written) {
            if !graph.edges.contains_key(&pair)
                && let Some(edge) = self.edges.edge(graph, &pair.0, &pair.1)
            {
                output.edges.insert(pair, edge);
            }
        }
        if is_first && output.edges.len() == graph.edges.len() {
            // Nothing was added, and so the two can be one.
            output = graph.clone();
        }
        self.last_input = graph.clone();
        self.last_output = output.clone();
        Ok(Prepared {
            graph: output,
            instances,
            removed: change.removed.len(),
            view: found.view,
            sharing: found.sharing,
            warnings: {
                warnings.extend(found.warnings);
                warnings
            },
        })
    }

    /// Adds to what these are and want what only the machine can tell, and tells of whom it could not be told.
    fn inquire(&mut self, graph: &DesiredGraph, fresh: &mut Vec<(ResourceId, Interests)>) -> Vec<String> {
        let Some(inquirer) = self.inquirer.clone() else {
            return Vec::new();
        };
        let inquires = |id: &ResourceId| self.kinds.get(&*id.kind).is_some_and(|spec| spec.inquires);
        let again: Vec<Arc<DesiredResource>> = self.inquiries.unanswered(graph).cloned().collect();
        for resource in again {
            let known = fresh.iter().any(|(id, _)| *id == resource.id);
            if let (false, Ok((_, interests))) = (known, self.decode(&resource)) {
                fresh.push((resource.id.clone(), interests));
            }
        }
        let asked = fresh.iter().enumerate();
        let asked = asked.filter(|(_, (id, interests))| interests.takes_part() && inquires(id));
        let (places, asked): (Vec<usize>, Vec<Arc<DesiredResource>>) = asked
            .filter_map(|(place, (id, _))| Some((place, graph.resources.get(id)?.clone())))
            .unzip();
        let places: FxHashMap<ResourceId, usize> = asked
            .iter()
            .map(|resource| resource.id.clone())
            .zip(places)
            .collect();
        let mut warnings = Vec::new();
        for (id, answer) in self.inquiries.ask(&inquirer, &self.kinds, graph, &asked) {
            match answer {
                Ok(relations) => fresh[places[&id]].1.add(relations),
                Err(failure) => warnings.push(without_edges(&id, &failure)),
            }
        }
        warnings
    }

    /// Decodes resources, each with what it is and wants; many at a time on all cores.
    fn decode_all(&self, resources: &[&Arc<DesiredResource>]) -> Vec<Decoded> {
        let each = |part: &[&Arc<DesiredResource>]| -> Vec<Decoded> {
            part.iter().map(|resource| self.decode(resource)).collect()
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let share = resources.len().div_ceil(cores).max(WORTH_A_THREAD);
        let mut parts = resources.chunks(share);
        let own = parts.next().unwrap_or_default();
        std::thread::scope(|scope| {
            let others: Vec<_> = parts.map(|part| scope.spawn(move || each(part))).collect();
            let mut all = each(own);
            for other in others {
                all.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
            }
            all
        })
    }

    fn decode(&self, resource: &DesiredResource) -> Decoded {
        let Some(spec) = self.kinds.get(&*resource.id.kind) else {
            return Err(vec![Finding::unknown_kind(&resource.id.kind, resource.span)]);
        };
        let decoded = crate::workers::guarded("decode", || {
            Instance::new(spec, resource.id.name.clone(), &resource.parameters)
        });
        let invalid = match decoded {
            Ok(Ok(instance)) => {
                let mut invalid = Vec::new();
                instance.validate(&resource.meta, &mut invalid);
                // Doubts were told when the resource was made from its statement.
                invalid.retain(Invalid::is_error);
                if invalid.is_empty() {
                    let takes_part =
                        self.automatic_edges && resource.meta.autoedge && resource.schema.autoedge;
                    let interests = Interests::of(instance.resource(), takes_part);
                    return Ok((instance, interests));
                }
                invalid
            }
            Ok(Err(invalid)) => invalid,
            Err(failure) => vec![Invalid::new(failure.chain())],
        };
        let found = invalid.into_iter().map(|invalid| {
            let place = invalid
                .parameter
                .map_or(resource.span, |name| resource.parameter_span(name));
            Finding::invalid(&resource.id, invalid, resource.span, place)
        });
        Err(found.collect())
    }

    /// Whether the kind says that a resource which differs is the same to it. The old one stays in the graph then.
    fn is_the_same(&self, old: &Arc<DesiredResource>, new: &Arc<DesiredResource>) -> bool {
        let given = self.last_output.resources.get(&new.id).unwrap_or(old);
        self.kinds.get(&*new.id.kind).is_some_and(|spec| {
            let same = || (spec.same)(&new.id.name, &given.parameters, &new.parameters);
            given.meta.is_same(&new.meta)
                && given.meta.leaves_alike(&new.meta)
                && crate::workers::guarded("compare", same).unwrap_or(false)
        })
    }
}

/// A resource goes without the automatic edges that it could not tell.
fn without_edges(id: &ResourceId, failure: &Failure) -> String {
    format!(
        "{id} has no automatic edges of its own: failed to {}",
        failure.chain()
    )
}

fn describe_circle(graph: &DesiredGraph, circle: &[ResourceId]) -> Finding {
    let resource = |id: &ResourceId| Some(graph.resources.get(id)?.span);
    let edge = |from: &ResourceId, to: &ResourceId| Some(graph.edges.get(&(from.clone(), to.clone()))?.span);
    Finding::circle(circle, &resource, &edge).expect("the edges of a circle are edges of the graph")
}
