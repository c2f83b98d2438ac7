//! From a desired graph to one that the machine may take: decoded, validated, with automatic edges, free of circles.
//!
//! This may do I/O and take its time, so it happens beside the machine, one graph at a time. What did not change since the
//! graph before is not looked at again.

mod autoedges;
mod claims;
mod grouping;
mod inquiries;
mod order;

use std::panic::resume_unwind;
use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap};
use setpoint_graph::{
    DesiredEdge, DesiredGraph, DesiredResource, Finding, GraphChange, Invalid, Parameters, ResourceId,
};

use crate::graph_view::ViewChange;
use crate::panics::guarded;
use crate::resource::Kinds;
use crate::{Failure, Grouping, Instance, KindSpec};
use autoedges::{AutomaticEdges, EdgeChange, Interests};
use claims::Claims;
use grouping::{Grouped, Groups};
pub(crate) use inquiries::Inquirer;
use inquiries::Inquiries;

/// Instances that were made on the way, by identity.
pub(crate) type Instances = FxHashMap<ResourceId, Made>;

/// An instance that was made on the way. It belongs to this resource and to no other.
pub(crate) struct Made {
    pub(crate) resource: Arc<DesiredResource>,
    pub(crate) instance: Instance,
    /// Those of its members, sorted by identity, as far as they were made.
    pub(crate) members: Vec<Made>,
}

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

/// What an engine does by itself to a graph before it applies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preparation {
    /// Whether automatic edges are made.
    pub automatic_edges: bool,
    /// Whether resources are grouped.
    pub grouping: bool,
}

impl Default for Preparation {
    fn default() -> Preparation {
        Preparation {
            automatic_edges: true,
            grouping: true,
        }
    }
}

/// What an engine would add to a graph.
#[derive(Debug, Clone, Default)]
pub struct Additions {
    /// Automatic edges.
    pub edges: Vec<Arc<DesiredEdge>>,
    /// Groups: who is applied, and what is applied as part of it; sorted. A member may have members itself.
    pub groups: Vec<(ResourceId, Vec<ResourceId>)>,
}

/// Computes the edges and groups that an engine with these kinds adds to a graph.
///
/// # Errors
/// Everything for which it would refuse the graph.
pub fn additions(
    kinds: &[KindSpec],
    preparation: Preparation,
    graph: &DesiredGraph,
) -> Result<Additions, Vec<Finding>> {
    let kinds: Kinds = kinds.iter().map(|spec| (spec.schema.kind, *spec)).collect();
    let mut preparer = Preparer::new(Arc::new(kinds), preparation, None);
    preparer.prepare(graph)?;
    let edges = preparer.last_whole.edges.iter();
    let edges = edges.filter(|(ends, _)| !graph.edges.contains_key(*ends));
    Ok(Additions {
        edges: edges.map(|(_, edge)| edge.clone()).collect(),
        groups: preparer.groups.list(),
    })
}

/// A resource decoded, with what it is and wants, and whom it fits; or what is wrong with it.
type Decoded = Result<(Instance, Interests, Grouping), Vec<Finding>>;

/// What is new in a graph or changed, decoded.
struct Fresh {
    instances: Instances,
    /// What each is and wants.
    interests: Vec<(ResourceId, Interests)>,
    /// Whom those fit that can be grouped.
    fitting: Vec<(ResourceId, Grouping)>,
}

/// So many resources are worth a thread that decodes them.
const WORTH_A_THREAD: usize = 512;

/// Prepares one graph after the other.
pub(crate) struct Preparer {
    kinds: Arc<Kinds>,
    preparation: Preparation,
    /// The graph as it came last, and with automatic edges.
    last_input: DesiredGraph,
    last_whole: DesiredGraph,
    edges: AutomaticEdges,
    /// Asks resources what only the machine can tell; none where there is no machine.
    inquirer: Option<Arc<Inquirer>>,
    inquiries: Inquiries,
    groups: Groups,
    claims: Claims,
    /// Whether no graph was prepared yet: what others know of earlier ones is void.
    is_first: bool,
}

impl Preparer {
    pub(crate) fn new(
        kinds: Arc<Kinds>,
        preparation: Preparation,
        inquirer: Option<Arc<Inquirer>>,
    ) -> Preparer {
        Preparer {
            kinds,
            preparation,
            last_input: DesiredGraph::default(),
            last_whole: DesiredGraph::default(),
            edges: AutomaticEdges::default(),
            inquirer,
            inquiries: Inquiries::default(),
            groups: Groups::default(),
            claims: Claims::default(),
            is_first: true,
        }
    }

    /// One that has seen nothing.
    pub(crate) fn fresh(&self) -> Preparer {
        Preparer::new(self.kinds.clone(), self.preparation, self.inquirer.clone())
    }

    /// Prepares a graph.
    ///
    /// # Errors
    /// Everything that is wrong with it. Nothing has changed then.
    pub(crate) fn prepare(&mut self, graph: &DesiredGraph) -> Result<Prepared, Vec<Finding>> {
        let mut change = setpoint_graph::diff(&self.last_input, graph);
        let Fresh {
            mut instances,
            interests,
            mut fitting,
        } = self.decode_changed(&change)?;
        let claims = self.claims_of(graph, &instances);
        let mut conflicts = self.conflicts(graph, &claims);
        conflicts.merge(self.different_wishes(graph, &instances, &interests));
        if !conflicts.refused.is_empty() {
            return Err(conflicts.refused);
        }
        if let Err(circle) = self.edges.take_written(&change, graph) {
            return Err(vec![describe_circle(graph, &circle)]);
        }

        // From here on nothing is refused.
        self.claims.update(&change, claims);
        let mut warnings = conflicts.warnings;
        let found = self.find_edges(graph, &change, interests, &mut warnings);
        change.changed.retain(|(old, new)| {
            let is_same = self.is_the_same(old, new);
            if is_same {
                instances.remove(&new.id);
            }
            !is_same
        });
        let whole = self.with_automatic_edges(graph, &change, &found);
        fitting.retain(|(id, _)| instances.contains_key(id));
        let grouped = self.groups.update(&whole, self.edges.order(), fitting);
        put_members_into_groups(&grouped, &mut instances);
        self.last_input = graph.clone();
        self.last_whole = whole;
        warnings.extend(found.warnings);
        warnings.extend(grouped.warnings);
        Ok(Prepared {
            graph: grouped.graph,
            instances,
            removed: change.removed.len(),
            view: found.view,
            sharing: found.sharing,
            warnings,
        })
    }

    /// Decodes what is new or changed.
    fn decode_changed(&self, change: &GraphChange) -> Result<Fresh, Vec<Finding>> {
        let mut findings: Vec<Finding> = Vec::new();
        let changed = change.changed.iter().map(|(_, new)| new);
        let wanted: Vec<&Arc<DesiredResource>> = change.added.iter().chain(changed).collect();
        let mut fresh = Fresh {
            instances: Instances::with_capacity_and_hasher(wanted.len(), FxBuildHasher),
            interests: Vec::with_capacity(wanted.len()),
            fitting: Vec::new(),
        };
        for (resource, decoded) in wanted.iter().zip(self.decode_all(&wanted)) {
            match decoded {
                Ok((instance, interests, grouping)) => {
                    let id = resource.id.clone();
                    fresh.interests.push((id.clone(), interests));
                    if resource.schema.autogroup && self.preparation.grouping {
                        fresh.fitting.push((id.clone(), grouping));
                    }
                    let made = Made {
                        resource: (*resource).clone(),
                        instance,
                        members: Vec::new(),
                    };
                    fresh.instances.insert(id, made);
                }
                Err(found) => findings.extend(found),
            }
        }
        for hidden in change.hidden.iter().flat_map(|change| &change.new) {
            if !self.kinds.contains_key(&*hidden.id.kind) {
                findings.push(Finding::unknown_kind(&hidden.id.kind, hidden.span));
            }
        }
        if findings.is_empty() {
            Ok(fresh)
        } else {
            Err(findings)
        }
    }

    /// Which automatic edges come and go, by what is new or changed and what the machine tells.
    fn find_edges(
        &mut self,
        graph: &DesiredGraph,
        change: &GraphChange,
        mut fresh: Vec<(ResourceId, Interests)>,
        warnings: &mut Vec<String>,
    ) -> EdgeChange {
        warnings.extend(self.inquire(graph, &mut fresh));
        for (id, interests) in &mut fresh {
            let untold = interests.untold.take();
            warnings.extend(untold.map(|failure| without_edges(id, &failure)));
        }
        fresh.retain(|(id, interests)| !self.edges.knows(id, interests));
        fresh.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let removed = change.removed.iter().map(|resource| resource.id.clone());
        let mut found = self.edges.update(graph, removed, fresh);
        found.view.is_anew = std::mem::take(&mut self.is_first);
        found
    }

    /// The graph with its automatic edges. It is built from the one that was given before, so that the two share what did not change.
    fn with_automatic_edges(
        &self,
        graph: &DesiredGraph,
        change: &GraphChange,
        found: &EdgeChange,
    ) -> DesiredGraph {
        let mut whole = change.apply(&self.last_whole);
        for pair in found
            .removed
            .iter()
            .filter(|pair| !graph.edges.contains_key(*pair))
        {
            whole.edges.remove(pair);
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
                whole.edges.insert(pair, edge);
            }
        }
        if found.view.is_anew && whole.edges.len() == graph.edges.len() {
            // Nothing was added, and so the two can be one.
            return graph.clone();
        }
        whole
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
            if let (false, Ok((_, interests, _))) = (known, self.decode(&resource)) {
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
        // A pure evaluation leaves parameters unknown. The evaluator has already reported errors in the known ones.
        let is_known = is_known(resource);
        let parameters = match is_known {
            true => resource.parameters.clone(),
            false => known_of(&resource.parameters),
        };
        let decoded = guarded("decode", || {
            Instance::new(spec, resource.id.name.clone(), &parameters)
        });
        let invalid = match decoded {
            Ok(Ok(instance)) => {
                let mut invalid = Vec::new();
                if is_known {
                    instance.validate(&resource.meta, &mut invalid);
                }
                // Doubts were told when the resource was made from its statement.
                invalid.retain(Invalid::is_error);
                if invalid.is_empty() {
                    let takes_part = self.preparation.automatic_edges
                        && resource.meta.autoedge
                        && resource.schema.autoedge;
                    let interests = Interests::of(instance.resource(), takes_part);
                    // A panic costs its groups, not the graph.
                    let grouping = || instance.resource().grouping();
                    let grouping = guarded("say whom it fits", grouping).ok();
                    let grouping = grouping.filter(|_| is_known).unwrap_or_default();
                    return Ok((instance, interests, grouping));
                }
                invalid
            }
            Ok(Err(invalid)) => invalid,
            Err(failure) => vec![Invalid::new(failure.chain())],
        };
        let found = invalid.into_iter().map(|invalid| {
            let written = invalid.parameter.and_then(|name| {
                let written = resource
                    .parameter_spans
                    .iter()
                    .find(|(written, _)| *written == name);
                written.map(|(_, span)| *span)
            });
            let place = (written.unwrap_or(resource.span), written.is_some());
            Finding::invalid(&resource.id, invalid, resource.span, place)
        });
        Err(found.collect())
    }

    /// Whether the kind says that a resource which differs is the same to it. The old one stays in the graph then.
    fn is_the_same(&self, old: &Arc<DesiredResource>, new: &Arc<DesiredResource>) -> bool {
        let given = self.last_whole.resources.get(&new.id).unwrap_or(old);
        self.kinds.get(&*new.id.kind).is_some_and(|spec| {
            let same = || (spec.same)(&new.id.name, &given.parameters, &new.parameters);
            given.meta.is_same(&new.meta)
                && given.meta.leaves_alike(&new.meta)
                && guarded("compare", same).unwrap_or(false)
        })
    }
}

/// Whether all parameters of a resource are known.
fn is_known(resource: &DesiredResource) -> bool {
    let mut parameters = resource.parameters.iter();
    parameters.all(|(_, value)| value.is_wholly_known())
}

/// Those of some parameters whose values are known.
pub(crate) fn known_of(parameters: &Parameters) -> Parameters {
    let known = parameters.iter().filter(|(_, value)| value.is_wholly_known());
    Parameters::new(known.map(|(name, value)| (name, value.clone())))
}

/// A resource goes without the automatic edges that it could not tell.
fn without_edges(id: &ResourceId, failure: &Failure) -> String {
    format!(
        "{id} has no automatic edges of its own: failed to {}",
        failure.chain()
    )
}

/// Members live in the resources that they are part of, and so do their instances.
fn put_members_into_groups(grouped: &Grouped, instances: &mut Instances) {
    for id in &grouped.regrouped {
        let made = instances.contains_key(id);
        let group = grouped.graph.resources.get(id).filter(|_| made);
        match group.and_then(|group| take_made(group, instances)) {
            Some(made) => instances.insert(id.clone(), made),
            None => instances.remove(id),
        };
    }
    if !grouped.regrouped.is_empty() {
        let applied = &grouped.graph.resources;
        instances.retain(|id, made| {
            let resource = applied.get(id);
            resource.is_some_and(|resource| Arc::ptr_eq(resource, &made.resource))
        });
    }
}

/// Takes what was made of a resource and of its members, if that is there.
fn take_made(resource: &Arc<DesiredResource>, instances: &mut Instances) -> Option<Made> {
    let made = instances.remove(&resource.id)?;
    let members = resource.members.direct().iter();
    let members: Vec<Made> = members
        .filter_map(|member| take_made(member, instances))
        .collect();
    Some(Made {
        resource: resource.clone(),
        members,
        ..made
    })
}

fn describe_circle(graph: &DesiredGraph, circle: &[ResourceId]) -> Finding {
    let resource = |id: &ResourceId| Some(graph.resources.get(id)?.span);
    let edge = |from: &ResourceId, to: &ResourceId| Some(graph.edges.get(&(from.clone(), to.clone()))?.span);
    Finding::circle(circle, &resource, &edge).expect("the edges of a circle are edges of the graph")
}
