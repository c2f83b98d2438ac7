//! Automatic edges: what a resource is, what it wants edges with, and the edges that follow.
//!
//! They are kept from one graph to the next. A change looks again at those who want what came or went, and at nobody else.
//! Which edges there are depends on no order, unless one of them would close a circle and is left out: then all of them are
//! found anew, in the order of identities.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use setpoint_diagnostics::Span;
use setpoint_graph::{DesiredEdge, DesiredGraph, GraphChange, ResourceId};
use smallvec::SmallVec;

use super::order::Order;
use crate::graph_view::ViewChange;
use crate::panics::guarded;
use crate::{Failure, Identity, Managed, Relations, Resource, Sort, Wanted, WantedOrder, WantedReach};

/// What a resource is and wants.
#[derive(Debug, Clone, Default)]
pub(super) struct Interests {
    has: Vec<Identity>,
    wants: Vec<Wanted>,
    /// Whether there are edges from or to it.
    takes_part: bool,
    /// Why it could not tell.
    pub(super) untold: Option<Failure>,
}

impl Interests {
    /// The things that it manages, of the sorts that only one resource should manage.
    pub(super) fn managed(&self) -> impl Iterator<Item = (&Identity, Managed)> {
        self.has
            .iter()
            .filter_map(|identity| Some((identity, identity.sort.managed?)))
    }

    pub(super) fn of(resource: &dyn Resource, takes_part: bool) -> Interests {
        // A panic in either costs the edges of this resource, not the graph.
        let told = guarded("say what it is and wants edges with", || {
            let wants = if takes_part { resource.wanted() } else { Vec::new() };
            (resource.identities(), wants)
        });
        let (told, untold) = match told {
            Ok(told) => (told, None),
            Err(failure) => (Default::default(), Some(failure)),
        };
        let (has, wants) = told;
        Interests {
            has,
            wants,
            takes_part,
            untold,
        }
    }

    pub(super) fn takes_part(&self) -> bool {
        self.takes_part
    }

    /// What the machine has told beside.
    pub(super) fn add(&mut self, relations: Relations) {
        self.has.extend(relations.identities);
        self.wants.extend(relations.wanted);
    }

    fn is_empty(&self) -> bool {
        self.has.is_empty() && self.wants.is_empty()
    }
}

type Pair = (ResourceId, ResourceId);

/// What an update found so far.
#[derive(Default)]
struct Work {
    /// By how many edges between two resources there are more, or fewer.
    delta: BTreeMap<Pair, i32>,
    /// Who is to look again.
    affected: BTreeSet<u32>,
    /// What somebody manages or managed, where only one should.
    touched: Vec<Identity>,
}

impl Work {
    fn touch(&mut self, identity: &Identity) {
        if identity.sort.managed.is_some() {
            self.touched.push(identity.clone());
        }
    }
}

/// What changed.
#[derive(Debug, Default)]
pub(super) struct EdgeChange {
    pub(super) removed: Vec<Pair>,
    pub(super) added: Vec<Pair>,
    pub(super) view: ViewChange,
    /// Groups of resources that manage the same thing, when they may have changed.
    pub(super) sharing: Option<Vec<Vec<ResourceId>>>,
    pub(super) warnings: Vec<String>,
    /// How many resources were asked whom they find.
    pub(super) looked_at: usize,
}

/// The automatic edges of a graph, and what they follow from.
#[derive(Debug, Default)]
pub(super) struct AutomaticEdges {
    members: Vec<Option<Member>>,
    free: Vec<u32>,
    places: FxHashMap<ResourceId, u32>,
    identities: Identities,
    /// How many resources want an edge.
    uses: FxHashMap<(u32, u32), u32>,
    /// Of written and automatic edges.
    order: Order,
    /// Whether an edge was left out, or the order is not that of the graph before.
    is_to_be_found_anew: bool,
    /// Who manages the same thing, by what is shown of it.
    sharing: BTreeMap<(&'static str, Vec<u8>), Vec<ResourceId>>,
}

/// A resource that is or wants something.
#[derive(Debug)]
struct Member {
    id: ResourceId,
    has: Box<[u32]>,
    wants: Box<[Want]>,
    takes_part: bool,
    /// The edges that it wants.
    edges: Vec<(u32, u32)>,
}

#[derive(Debug)]
struct Want {
    order: WantedOrder,
    reach: WantedReach,
    identities: Box<[u32]>,
}

/// An identity by its parts, to look one up.
#[derive(Hash)]
struct Named<'a>(&'static str, &'a [u8]);

impl hashbrown::Equivalent<Identity> for Named<'_> {
    fn equivalent(&self, identity: &Identity) -> bool {
        self.0 == identity.sort.name && *self.1 == *identity.key
    }
}

/// All identities that somebody has or wants.
#[derive(Debug, Default)]
struct Identities {
    by_identity: hashbrown::HashMap<Identity, u32, FxBuildHasher>,
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
    /// Those of sorts that match by parts.
    partial: FxHashMap<&'static str, BTreeSet<u32>>,
}

#[derive(Debug)]
struct Entry {
    identity: Identity,
    /// Who has it, sorted by identity of the resource.
    holders: Vec<u32>,
    wanters: FxHashSet<u32>,
}

impl Identities {
    fn entry(&mut self, identity: &Identity) -> u32 {
        if let Some(known) = self.by_identity.get(identity) {
            return *known;
        }
        let entry = Entry {
            identity: identity.clone(),
            holders: Vec::new(),
            wanters: FxHashSet::default(),
        };
        let number = match self.free.pop() {
            Some(number) => {
                self.entries[number as usize] = Some(entry);
                number
            }
            None => {
                self.entries.push(Some(entry));
                self.entries.len() as u32 - 1
            }
        };
        self.by_identity.insert(identity.clone(), number);
        if identity.sort.is_met_by.is_some() {
            self.partial.entry(identity.sort.name).or_default().insert(number);
        }
        number
    }

    fn get(&self, number: u32) -> &Entry {
        self.entries[number as usize]
            .as_ref()
            .expect("an identity lives while somebody has or wants it")
    }

    fn get_mut(&mut self, number: u32) -> &mut Entry {
        self.entries[number as usize]
            .as_mut()
            .expect("an identity lives while somebody has or wants it")
    }

    /// Forgets what nobody has or wants any more.
    fn release(&mut self, number: u32) {
        let entry = self.get(number);
        if !entry.holders.is_empty() || !entry.wanters.is_empty() {
            return;
        }
        let identity = entry.identity.clone();
        self.entries[number as usize] = None;
        self.free.push(number);
        self.by_identity.remove(&identity);
        if let Some(of_sort) = self.partial.get_mut(identity.sort.name) {
            of_sort.remove(&number);
        }
    }

    /// All who want what this identity may meet.
    fn wanters(&self, number: u32) -> Vec<u32> {
        let entry = self.get(number);
        match self.partial.get(entry.identity.sort.name) {
            Some(of_sort) if entry.identity.sort.is_met_by.is_some() => of_sort
                .iter()
                .flat_map(|other| self.get(*other).wanters.iter().copied())
                .collect(),
            _ => entry.wanters.iter().copied().collect(),
        }
    }
}

impl AutomaticEdges {
    /// Takes over the change of written edges.
    ///
    /// # Errors
    /// A circle of written edges. Everything is as before then.
    pub(super) fn take_written(
        &mut self,
        change: &GraphChange,
        graph: &DesiredGraph,
    ) -> Result<(), Vec<ResourceId>> {
        if change.edges_added.is_empty() && change.edges_removed.is_empty() {
            return Ok(());
        }
        if !self.is_to_be_found_anew {
            for edge in &change.edges_removed {
                self.order.remove(&edge.from, &edge.to);
            }
            let mut added = change.edges_added.iter();
            if added.all(|edge| self.order.add(&edge.from, &edge.to).is_ok()) {
                return Ok(());
            }
            // The circle may be one with automatic edges.
            self.is_to_be_found_anew = true;
        }
        written_order(graph).map(drop)
    }

    /// Takes over what resources are and want now, and finds the edges.
    pub(super) fn update(
        &mut self,
        graph: &DesiredGraph,
        removed: impl Iterator<Item = ResourceId>,
        fresh: Vec<(ResourceId, Interests)>,
    ) -> EdgeChange {
        let mut change = EdgeChange::default();
        let mut work = Work::default();
        for id in removed.chain(fresh.iter().map(|(id, _)| id.clone())) {
            self.forget(&id, &mut work, &mut change);
        }
        for (id, interests) in fresh {
            if !interests.is_empty() {
                self.learn(id, interests, &mut work, &mut change);
            }
        }
        let Work {
            mut delta,
            affected,
            touched,
        } = work;
        self.find_sharing(touched, &mut change);
        if !self.is_to_be_found_anew {
            for member in &affected {
                self.drop_edges(*member, &mut delta);
            }
            change.looked_at = affected.len();
            if affected
                .iter()
                .all(|member| self.find_edges(*member, &mut delta, None))
            {
                settle(delta, &mut change);
                return change;
            }
        }
        self.find_all(graph, &mut delta, &mut change);
        settle(delta, &mut change);
        change
    }

    /// The order of all edges, written and automatic.
    pub(super) fn order(&self) -> &Order {
        &self.order
    }

    /// Where an automatic edge between these two comes from, if there is one: the one who wants it.
    fn wanted_by(&self, from: &ResourceId, to: &ResourceId) -> Option<&ResourceId> {
        let pair = (*self.places.get(from)?, *self.places.get(to)?);
        self.uses.get(&pair)?;
        let ends = [pair.0, pair.1]
            .into_iter()
            .filter_map(|end| self.members[end as usize].as_ref());
        let mut wanting = ends.filter(|member| member.edges.contains(&pair));
        wanting.next().map(|member| &member.id)
    }

    /// The automatic edge between these two, as the graph has it.
    pub(super) fn edge(
        &self,
        graph: &DesiredGraph,
        from: &ResourceId,
        to: &ResourceId,
    ) -> Option<Arc<DesiredEdge>> {
        let span = graph.resources.get(self.wanted_by(from, to)?)?.span;
        Some(automatic_edge(from, to, span))
    }

    fn member(&self, place: u32) -> &Member {
        self.members[place as usize]
            .as_ref()
            .expect("callers look only at places of members that are in the graph")
    }

    fn pair(&self, pair: (u32, u32)) -> Pair {
        (self.member(pair.0).id.clone(), self.member(pair.1).id.clone())
    }

    /// A resource is gone, or is about to be another one. Who wanted it is to look again.
    fn forget(&mut self, id: &ResourceId, work: &mut Work, change: &mut EdgeChange) {
        let Some(place) = self.places.get(id).copied() else {
            return;
        };
        let mut wanters = BTreeSet::new();
        for number in &self.member(place).has {
            wanters.extend(self.identities.wanters(*number));
        }
        wanters.insert(place);
        // While their names are known.
        for wanter in &wanters {
            self.drop_edges(*wanter, &mut work.delta);
        }
        work.affected.extend(wanters);
        work.affected.remove(&place);
        let member = self.members[place as usize]
            .take()
            .expect("the place came from the index of members, which changes with them");
        for number in &member.has {
            let entry = self.identities.get_mut(*number);
            entry.holders.retain(|holder| *holder != place);
            work.touch(&entry.identity);
            change.view.removed.push((entry.identity.clone(), id.clone()));
        }
        let wanted = member.wants.iter().flat_map(|want| &want.identities);
        for number in wanted.clone() {
            self.identities.get_mut(*number).wanters.remove(&place);
        }
        let all: BTreeSet<u32> = member.has.iter().chain(wanted).copied().collect();
        for number in all {
            self.identities.release(number);
        }
        self.places.remove(id);
        self.free.push(place);
    }

    /// A resource is there. It and who wants what it is are to look.
    fn learn(&mut self, id: ResourceId, interests: Interests, work: &mut Work, change: &mut EdgeChange) {
        let place = self.free.pop().unwrap_or(self.members.len() as u32);
        let has: BTreeSet<u32> = interests
            .has
            .iter()
            .map(|has| self.identities.entry(has))
            .collect();
        let wants: Box<[Want]> = interests
            .wants
            .iter()
            .map(|wanted| Want {
                order: wanted.order,
                reach: wanted.reach,
                identities: wanted
                    .identities
                    .iter()
                    .map(|identity| self.identities.entry(identity))
                    .collect(),
            })
            .collect();
        for number in wants.iter().flat_map(|want| &want.identities) {
            self.identities.get_mut(*number).wanters.insert(place);
        }
        for number in &has {
            let members = &self.members;
            let entry = self.identities.get_mut(*number);
            let known = |holder: &u32| members[*holder as usize].as_ref().map(|member| &member.id);
            let at = entry.holders.partition_point(|holder| known(holder) < Some(&id));
            entry.holders.insert(at, place);
            work.touch(&entry.identity);
            change.view.added.push((entry.identity.clone(), id.clone()));
            if interests.takes_part {
                work.affected.extend(self.identities.wanters(*number));
            }
        }
        work.affected.insert(place);
        self.places.insert(id.clone(), place);
        let member = Member {
            id,
            has: has.into_iter().collect(),
            wants,
            takes_part: interests.takes_part,
            edges: Vec::new(),
        };
        match self.members.get_mut(place as usize) {
            Some(free) => *free = Some(member),
            None => self.members.push(Some(member)),
        }
    }

    /// What a resource that wants an identity finds: the first that has it, in the order of names.
    fn first(&self, number: u32, except: u32) -> Option<u32> {
        let takes_part = |holder: &&u32| **holder != except && self.member(**holder).takes_part;
        let entry = self.identities.get(number);
        let Some(is_met_by) = entry.identity.sort.is_met_by else {
            return entry.holders.iter().find(takes_part).copied();
        };
        let of_sort = self.identities.partial.get(entry.identity.sort.name)?;
        let met = of_sort.iter().map(|other| self.identities.get(*other));
        let met = met.filter(|other| is_met_by(&entry.identity.key, &other.identity.key));
        let holders = met.filter_map(|other| other.holders.iter().find(takes_part));
        holders.copied().min_by_key(|holder| &self.member(*holder).id)
    }

    /// All who have an identity, in the order of names.
    fn everyone(&self, number: u32, except: u32) -> SmallVec<[u32; 1]> {
        let holders = self.identities.get(number).holders.iter().copied();
        holders
            .filter(|holder| *holder != except && self.member(*holder).takes_part)
            .collect()
    }

    fn drop_edges(&mut self, place: u32, delta: &mut BTreeMap<Pair, i32>) {
        let Some(member) = &mut self.members[place as usize] else {
            return;
        };
        for pair in std::mem::take(&mut member.edges) {
            let Some(uses) = self.uses.get_mut(&pair) else {
                continue;
            };
            *uses -= 1;
            if *uses == 0 {
                self.uses.remove(&pair);
                let ids = self.pair(pair);
                self.order.remove(&ids.0, &ids.1);
                *delta.entry(ids).or_default() -= 1;
            }
        }
    }

    /// Finds the edges that a resource wants. With `warnings`, those that would close a circle are left out and told.
    /// Without, it ends at the first that would, and says so.
    fn find_edges(
        &mut self,
        place: u32,
        delta: &mut BTreeMap<Pair, i32>,
        mut warnings: Option<&mut Vec<String>>,
    ) -> bool {
        let Some(member) = &self.members[place as usize] else {
            return true;
        };
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for want in &member.wants {
            for number in &want.identities {
                let found: SmallVec<[u32; 1]> = match want.reach {
                    WantedReach::All => self.everyone(*number, place),
                    WantedReach::Each | WantedReach::First => {
                        self.first(*number, place).into_iter().collect()
                    }
                };
                for found in &found {
                    let pair = match want.order {
                        WantedOrder::FoundFirst => (*found, place),
                        WantedOrder::FoundAfter => (place, *found),
                    };
                    if !pairs.contains(&pair) {
                        pairs.push(pair);
                    }
                }
                if want.reach == WantedReach::First && !found.is_empty() {
                    break;
                }
            }
        }
        let mut kept = Vec::with_capacity(pairs.len());
        for pair in pairs {
            if let Some(uses) = self.uses.get_mut(&pair) {
                *uses += 1;
                kept.push(pair);
                continue;
            }
            let ids = self.pair(pair);
            match self.order.add(&ids.0, &ids.1) {
                Ok(()) => {
                    self.uses.insert(pair, 1);
                    kept.push(pair);
                    *delta.entry(ids).or_default() += 1;
                }
                Err(way) => match &mut warnings {
                    Some(warnings) => {
                        self.is_to_be_found_anew = true;
                        warnings.push(left_out(&ids, &way));
                    }
                    None => return false,
                },
            }
        }
        if let Some(member) = &mut self.members[place as usize] {
            member.edges = kept;
        }
        true
    }

    /// Finds all edges anew, in the order of identities.
    fn find_all(&mut self, graph: &DesiredGraph, delta: &mut BTreeMap<Pair, i32>, change: &mut EdgeChange) {
        for pair in std::mem::take(&mut self.uses)
            .into_keys()
            .collect::<BTreeSet<_>>()
        {
            let ids = self.pair(pair);
            *delta.entry(ids).or_default() -= 1;
        }
        for member in self.members.iter_mut().flatten() {
            member.edges.clear();
        }
        // A circle of written edges was refused before.
        self.order = written_order(graph).unwrap_or_default();
        self.is_to_be_found_anew = false;
        let mut all: Vec<u32> = self.places.values().copied().collect();
        all.sort_unstable_by_key(|place| &self.member(*place).id);
        change.looked_at = all.len();
        for place in all {
            let found = self.find_edges(place, delta, Some(&mut change.warnings));
            debug_assert!(found, "what closes a circle is left out");
        }
    }

    /// Looks who manages the same thing as somebody else, of what was touched.
    fn find_sharing(&mut self, mut touched: Vec<Identity>, change: &mut EdgeChange) {
        touched.sort_unstable_by(|a, b| (a.sort.name, &a.key).cmp(&(b.sort.name, &b.key)));
        touched.dedup();
        let mut is_changed = false;
        for identity in touched {
            let (sort, Some(managed)) = (identity.sort, identity.sort.managed) else {
                continue;
            };
            let aliases = (managed.aliases)(&identity.key);
            let mut holders: SmallVec<[u32; 2]> = SmallVec::new();
            for key in &aliases {
                let named = Named(sort.name, key);
                if let Some(number) = self.identities.by_identity.get(&named) {
                    holders.extend_from_slice(&self.identities.get(*number).holders);
                }
            }
            // By far the most are managed by one, and always were.
            if holders.len() < 2 && self.sharing.is_empty() {
                continue;
            }
            let Some(first) = aliases.into_iter().next() else {
                continue;
            };
            let place = (sort.name, first);
            let ids: BTreeSet<ResourceId> = holders
                .iter()
                .map(|holder| self.member(*holder).id.clone())
                .collect();
            let ids: Vec<ResourceId> = ids.into_iter().collect();
            if ids.len() < 2 {
                is_changed |= self.sharing.remove(&place).is_some();
            } else if self.sharing.get(&place) != Some(&ids) {
                change.warnings.push(shared(managed.noun, &place.1, &ids));
                self.sharing.insert(place, ids);
                is_changed = true;
            }
        }
        change.sharing = is_changed.then(|| self.sharing.values().cloned().collect());
    }

    /// Who has the identity of a sort and key.
    pub(super) fn holders<'a>(
        &'a self,
        sort: &Sort,
        key: &[u8],
    ) -> impl Iterator<Item = &'a ResourceId> + use<'a> {
        let number = self.identities.by_identity.get(&Named(sort.name, key));
        let holders = number.map(|number| &*self.identities.get(*number).holders);
        holders
            .unwrap_or_default()
            .iter()
            .map(|holder| &self.member(*holder).id)
    }

    /// Whether a resource is and wants what is known of it.
    pub(super) fn knows(&self, id: &ResourceId, interests: &Interests) -> bool {
        let Some(place) = self.places.get(id) else {
            return interests.is_empty();
        };
        let member = self.member(*place);
        let number = |identity: &Identity| self.identities.by_identity.get(identity).copied();
        let has: Option<BTreeSet<u32>> = interests.has.iter().map(number).collect();
        let is_same = |(want, wanted): (&Want, &Wanted)| {
            want.order == wanted.order
                && want.reach == wanted.reach
                && want
                    .identities
                    .iter()
                    .copied()
                    .map(Some)
                    .eq(wanted.identities.iter().map(number))
        };
        member.takes_part == interests.takes_part
            && has.is_some_and(|has| has.iter().eq(&*member.has))
            && member.wants.len() == interests.wants.len()
            && member.wants.iter().zip(&interests.wants).all(is_same)
    }
}

/// The order of written edges.
///
/// # Errors
/// A circle.
fn written_order(graph: &DesiredGraph) -> Result<Order, Vec<ResourceId>> {
    Order::of(graph.edges.keys().map(|(from, to)| (from, to)))
}

fn settle(delta: BTreeMap<Pair, i32>, change: &mut EdgeChange) {
    for (pair, count) in delta {
        match count {
            0 => {}
            1.. => change.added.push(pair),
            _ => change.removed.push(pair),
        }
    }
}

fn automatic_edge(from: &ResourceId, to: &ResourceId, span: Span) -> Arc<DesiredEdge> {
    Arc::new(DesiredEdge {
        from: from.clone(),
        to: to.clone(),
        notify: false,
        send: Vec::new(),
        span,
        parts: None,
    })
}

/// Says which resources manage one and the same thing: where they differ, each undoes what the other did.
fn shared(noun: &str, key: &[u8], ids: &[ResourceId]) -> String {
    let names: Vec<String> = ids.iter().map(|id| format!("`{id}`")).collect();
    let (last, first) = names
        .split_last()
        .map_or(("", &[][..]), |(last, first)| (last.as_str(), first));
    format!(
        "{} and {last} manage the same {noun}, {}: where they differ, each undoes what the other does. Keep one of them",
        first.join(", "),
        String::from_utf8_lossy(key)
    )
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

#[cfg(test)]
mod tests;
