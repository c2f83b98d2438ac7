//! The places that the resources of a graph decide. No two resources may want different things of one place.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_graph::{DesiredGraph, DesiredResource, Finding, GraphChange, ResourceId};
use smallvec::SmallVec;

use super::autoedges::Interests;
use super::{Instances, Preparer, is_known};
use crate::panics::guarded;
use crate::{Claim, Identity, Resource, Stake};

/// So much of a part's name is shown, in characters.
const SHOWN_PART: usize = 60;

/// The claims of all resources of a graph, by place.
#[derive(Debug, Default)]
pub(super) struct Claims {
    /// Claims of whole files are left out: there are many, and an identity of the resource finds each of them.
    by_place: FxHashMap<Identity, SmallVec<[(ResourceId, Stake); 1]>>,
    places: FxHashMap<ResourceId, Vec<Identity>>,
}

/// The claims of resources that are new or changed.
pub(super) type FreshClaims = Vec<(ResourceId, Vec<Claim>)>;

/// Something that one resource should manage: the name of its sort, and its key.
type Thing = (&'static str, Vec<u8>);

/// The values that a resource decides, by name.
type Decided = BTreeMap<&'static str, Vec<u8>>;

/// The claims of one place.
type Claimants = BTreeMap<ResourceId, Stake>;

impl Claims {
    /// Takes the changes of a graph.
    pub(super) fn update(&mut self, change: &GraphChange, fresh: FreshClaims) {
        let changed = change.changed.iter().map(|(old, _)| old);
        for resource in change.removed.iter().chain(changed) {
            for place in self.places.remove(&resource.id).into_iter().flatten() {
                if let Some(claimants) = self.by_place.get_mut(&place) {
                    claimants.retain(|(id, _)| *id != resource.id);
                    if claimants.is_empty() {
                        self.by_place.remove(&place);
                    }
                }
            }
        }
        for (id, claims) in fresh {
            for claim in claims.into_iter().filter(|claim| claim.stake != Stake::Whole) {
                self.places
                    .entry(id.clone())
                    .or_default()
                    .push(claim.place.clone());
                self.by_place
                    .entry(claim.place)
                    .or_default()
                    .push((id.clone(), claim.stake));
            }
        }
    }
}

/// Resources that would undo each other.
#[derive(Debug, Default)]
pub(super) struct Conflicts {
    /// The mistakes of the program.
    pub(super) refused: Vec<Finding>,
    /// The disagreements with resources of other hosts. No other host keeps this one from taking a new program.
    pub(super) warnings: Vec<String>,
}

impl Conflicts {
    fn add(&mut self, own: &DesiredResource, other: &DesiredResource, finding: Finding) {
        if own.is_collected() || other.is_collected() {
            self.warnings.push(finding.message().to_owned());
        } else {
            self.refused.push(finding);
        }
    }

    /// Adds those of another look.
    pub(super) fn merge(&mut self, other: Conflicts) {
        self.refused.extend(other.refused);
        self.warnings.extend(other.warnings);
    }
}

impl Preparer {
    /// The claims of new instances. A resource that undoes an earlier one claims nothing, and neither does one with unknown parameters.
    pub(super) fn claims_of(&self, graph: &DesiredGraph, instances: &Instances) -> FreshClaims {
        let fresh = instances.iter().filter(|(id, _)| {
            let resource = graph.resources.get(*id);
            resource.is_some_and(|resource| !resource.meta.is_reversal && is_known(resource))
        });
        fresh
            .map(|(id, made)| (id.clone(), claims(made.instance.resource())))
            .filter(|(_, claims)| !claims.is_empty())
            .collect()
    }

    /// The disagreements of new claims with each other and with those of the rest of the graph.
    pub(super) fn conflicts(&self, graph: &DesiredGraph, fresh: &FreshClaims) -> Conflicts {
        let mut conflicts = Conflicts::default();
        let is_whole = |claim: &Claim| claim.stake == Stake::Whole;
        if self.claims.by_place.is_empty() && fresh.iter().all(|(_, claims)| claims.iter().all(is_whole)) {
            return conflicts;
        }
        let mut places: BTreeMap<(&str, &[u8]), (&Identity, Claimants)> = BTreeMap::new();
        for (id, claims) in fresh {
            for Claim { place, stake } in claims {
                let key = (place.sort.name, &*place.key);
                let (_, claimants) = places.entry(key).or_insert_with(|| (place, Claimants::new()));
                claimants.insert(id.clone(), stake.clone());
            }
        }
        let is_fresh: FxHashSet<&ResourceId> = fresh.iter().map(|(id, _)| id).collect();
        // Two that disagree are one mistake, in however many places they do.
        let mut told: FxHashSet<(ResourceId, ResourceId)> = FxHashSet::default();
        for (place, mut claimants) in places.into_values() {
            self.add_staying(graph, place, &is_fresh, &mut claimants);
            for ((own, other), finding) in disagreements(graph, place, &claimants) {
                if told.insert((own.id.clone(), other.id.clone())) {
                    conflicts.add(own, other, finding);
                }
            }
        }
        conflicts
    }

    /// The resources that manage one thing and decide different values of it, if one of them is new or changed.
    pub(super) fn different_wishes(
        &self,
        graph: &DesiredGraph,
        instances: &Instances,
        fresh: &[(ResourceId, Interests)],
    ) -> Conflicts {
        let mut conflicts = Conflicts::default();
        for ((_, key), holders) in self.managed_twice(graph, fresh) {
            let holders = holders.into_iter().filter_map(|id| graph.resources.get(id));
            let holders = holders.filter(|resource| !resource.meta.is_reversal && is_known(resource));
            let decided: Vec<(&Arc<DesiredResource>, Decided)> = holders
                .map(|resource| (resource, self.decided(resource, instances)))
                .collect();
            for (number, (own, values)) in decided.iter().enumerate() {
                let mut earlier = decided[..number].iter();
                let found = earlier.find_map(|(other, others)| Some((other, difference(values, others)?)));
                if let Some((other, name)) = found {
                    let what = format!("the {name} of {}", String::from_utf8_lossy(&key));
                    let finding = Finding::disagreement(&what, (&own.id, own.span), (&other.id, other.span));
                    conflicts.add(own, other, finding);
                }
            }
        }
        conflicts
    }

    /// The things that several resources manage, if one of these is new or changed.
    fn managed_twice<'a>(
        &'a self,
        graph: &DesiredGraph,
        fresh: &'a [(ResourceId, Interests)],
    ) -> BTreeMap<Thing, BTreeSet<&'a ResourceId>> {
        let mut managed_by: FxHashMap<Thing, &ResourceId> = FxHashMap::default();
        let mut twice: BTreeMap<Thing, BTreeSet<&ResourceId>> = BTreeMap::new();
        for (id, interests) in fresh {
            for (identity, managed) in interests.managed() {
                let aliases = (managed.aliases)(&identity.key);
                let staying: Vec<&ResourceId> = aliases
                    .iter()
                    .flat_map(|key| self.edges.holders(identity.sort, key))
                    .filter(|holder| *holder != id && self.stays(graph, holder))
                    .collect();
                let Some(key) = aliases.into_iter().next() else {
                    continue;
                };
                let thing = (identity.sort.name, key);
                // Nearly all things are managed by one resource.
                let first = *managed_by.entry(thing.clone()).or_insert(id);
                if first != id || !staying.is_empty() {
                    let holders = twice.entry(thing).or_default();
                    holders.extend(staying.into_iter().chain([first, id]));
                }
            }
        }
        twice
    }

    /// The values that a resource decides of the thing that it manages.
    fn decided(&self, resource: &Arc<DesiredResource>, instances: &Instances) -> Decided {
        let decides = |resource: &dyn Resource| guarded("say what it decides", || resource.decides());
        let decided = match instances.get(&resource.id) {
            Some(made) => decides(made.instance.resource()),
            None => match self.decode(resource) {
                Ok((instance, ..)) => decides(instance.resource()),
                Err(_) => return Decided::new(),
            },
        };
        decided.unwrap_or_default().into_iter().collect()
    }

    /// Whether a resource of the last graph is in the new one as it was.
    fn stays(&self, graph: &DesiredGraph, id: &ResourceId) -> bool {
        let pair = self.last_input.resources.get(id).zip(graph.resources.get(id));
        pair.is_some_and(|(old, new)| old.is_unchanged(new))
    }

    /// Adds the claims of resources that did not change.
    fn add_staying(
        &self,
        graph: &DesiredGraph,
        place: &Identity,
        is_fresh: &FxHashSet<&ResourceId>,
        claimants: &mut Claimants,
    ) {
        let stays = |id: &ResourceId| !is_fresh.contains(id) && self.stays(graph, id);
        let known = self.claims.by_place.get(place).into_iter().flatten();
        for (id, stake) in known.filter(|(id, _)| stays(id)) {
            claimants.insert(id.clone(), stake.clone());
        }
        if !claimants.values().any(|stake| *stake == Stake::Part) {
            return;
        }
        for id in self.edges.holders(place.sort, &place.key).filter(|id| stays(id)) {
            let Some(resource) = graph.resources.get(id) else {
                continue;
            };
            let made = self.decode(resource);
            let claims = made.map_or(Vec::new(), |(instance, ..)| claims(instance.resource()));
            let whole = claims
                .into_iter()
                .find(|claim| claim.stake == Stake::Whole && claim.place == *place);
            claimants.extend(whole.map(|claim| (id.clone(), claim.stake)));
        }
    }
}

/// The claims of a resource. A panic costs the comparison with others, not the graph.
fn claims(resource: &dyn Resource) -> Vec<Claim> {
    guarded("say what it decides", || resource.claims()).unwrap_or_default()
}

/// The first value that both decide, and differently.
fn difference(values: &Decided, others: &Decided) -> Option<&'static str> {
    let mut both = values
        .iter()
        .filter_map(|(name, value)| Some((*name, value, others.get(name)?)));
    both.find(|(_, value, other)| value != other)
        .map(|(name, ..)| name)
}

/// Two resources that disagree.
type Pair<'g> = (&'g DesiredResource, &'g DesiredResource);

/// The pairs of resources that disagree, each with its finding.
fn disagreements<'g>(
    graph: &'g DesiredGraph,
    place: &Identity,
    claimants: &Claimants,
) -> Vec<(Pair<'g>, Finding)> {
    let mut findings = Vec::new();
    for (number, (id, stake)) in claimants.iter().enumerate() {
        let mut earlier = claimants.iter().take(number);
        let Some((other, other_stake)) = earlier.find(|(_, other)| !stake.agrees(other)) else {
            continue;
        };
        let (Some(own), Some(others)) = (graph.resources.get(id), graph.resources.get(other)) else {
            continue;
        };
        let has_secrets = [own, others]
            .iter()
            .any(|resource| resource.parameters.iter().any(|(_, value)| value.is_sensitive()));
        let (id, other) = ((id, own.span), (other, others.span));
        let finding = match (stake, other_stake) {
            (Stake::Whole, Stake::Part) => Finding::edits_a_whole(&shown(place, false), other, id),
            (Stake::Part, Stake::Whole) => Finding::edits_a_whole(&shown(place, false), id, other),
            (Stake::Alone, _) | (_, Stake::Alone) => {
                Finding::one_too_many(place.sort.name, &shown(place, false), id, other)
            }
            _ => {
                let what = match place.key.contains(&b'\0') {
                    true => shown(place, has_secrets),
                    false => format!("`{}`", shown(place, has_secrets)),
                };
                let what = format!("the {} {what}", place.sort.name);
                Finding::disagreement(&what, id, other)
            }
        };
        findings.push(((&**own, &**others), finding));
    }
    findings
}

/// A place as users read it. A secret part is left out.
fn shown(place: &Identity, is_secret: bool) -> String {
    let key = String::from_utf8_lossy(&place.key);
    match key.split_once('\0') {
        None => key.into_owned(),
        Some((whole, _)) if is_secret => format!("`(sensitive)` in {whole}"),
        Some((whole, part)) => {
            let mut shown: String = part.chars().take(SHOWN_PART).collect();
            if shown.len() < part.len() {
                shown.push('…');
            }
            format!("`{shown}` in {whole}")
        }
    }
}
