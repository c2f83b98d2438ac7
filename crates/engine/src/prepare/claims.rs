//! The places that the resources of a graph decide. No two resources may want different things of one place.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_graph::{DesiredGraph, Finding, GraphChange, ResourceId};
use smallvec::SmallVec;

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
    pub(super) fn conflicts(&self, graph: &DesiredGraph, fresh: &FreshClaims) -> Vec<Finding> {
        let is_whole = |claim: &Claim| claim.stake == Stake::Whole;
        if self.claims.by_place.is_empty() && fresh.iter().all(|(_, claims)| claims.iter().all(is_whole)) {
            return Vec::new();
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
        let mut findings = Vec::new();
        // Two that disagree are one mistake, in however many places they do.
        let mut told: FxHashSet<(ResourceId, ResourceId)> = FxHashSet::default();
        for (place, mut claimants) in places.into_values() {
            self.add_staying(graph, place, &is_fresh, &mut claimants);
            for (pair, finding) in disagreements(graph, place, &claimants) {
                if told.insert(pair) {
                    findings.push(finding);
                }
            }
        }
        findings
    }

    /// Adds the claims of resources that did not change.
    fn add_staying(
        &self,
        graph: &DesiredGraph,
        place: &Identity,
        is_fresh: &FxHashSet<&ResourceId>,
        claimants: &mut Claimants,
    ) {
        let stays = |id: &ResourceId| {
            let old = self.last_input.resources.get(id);
            let new = graph.resources.get(id);
            let pair = old.zip(new);
            !is_fresh.contains(id) && pair.is_some_and(|(old, new)| old.is_unchanged(new))
        };
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

/// The pairs of resources that disagree, each with its finding.
fn disagreements(
    graph: &DesiredGraph,
    place: &Identity,
    claimants: &Claimants,
) -> Vec<((ResourceId, ResourceId), Finding)> {
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
        let pair = (id.0.clone(), other.0.clone());
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
        findings.push((pair, finding));
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
