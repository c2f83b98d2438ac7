//! The planned world: what the resources of a run without repairs would make of the machine.
//!
//! A resource can depend on a result of an earlier one: the owner of a file, the directory that holds it, a program that a package
//! installs. Where nothing is repaired, none of these is there. So each run records what it would create, and later runs ask here
//! before they report that something is missing. A fact counts only for what comes after the resource that would create it.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_graph::ResourceId;
use setpoint_host::sync::Mutex;

use crate::{Identity, ResourceName};

/// The things that a run of a kind can create besides the resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Brings {
    /// No more than the resource itself.
    #[default]
    Itself,
    /// Anything: a command, the files of a package.
    Anything,
    /// Nothing on the machine: a message.
    Nothing,
}

/// Whether something that was not found will be there when a resource runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Foreseen {
    /// Nothing before the resource creates it.
    No,
    /// This resource runs before, and would create it.
    Created(ResourceId),
    /// This resource runs before, and can bring anything.
    Perhaps(ResourceId),
}

/// Something that a run looked for and that an earlier resource would create.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Need {
    /// The thing: `user ada`, `/srv/notes/`.
    pub what: String,
    /// The resource that would create it.
    pub by: ResourceName,
    /// Whether that resource creates it for sure.
    #[serde(rename = "certain")]
    pub is_certain: bool,
}

/// Why it cannot be said what a resource would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unsure {
    /// The reason, as a part of a sentence: `runs if …`, `today it fails: …`.
    pub why: Arc<str>,
    /// The resources that must run before it can be said, the nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<ResourceName>,
}

/// The forecast for a run with repairs, from a run without.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Forecast {
    /// Why it cannot be said what the run would do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsure: Option<Unsure>,
    /// Things that it needs, and that an earlier resource would create or may bring.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
    /// Whose repairs would notify it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notified_by: Vec<ResourceName>,
    /// The forecast holds only until this resource has run, because it can bring anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<ResourceName>,
}

/// The fate of a thing if a resource ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Becomes {
    /// It is created.
    Created,
    /// It exists, and changes.
    Changed,
    /// It is removed.
    Removed,
    /// It cannot be said. It may be removed only if the run wants that.
    Unsure { removes: bool },
}

impl Becomes {
    /// Whether it is removed, or may be.
    fn removes(self) -> bool {
        matches!(self, Becomes::Removed | Becomes::Unsure { removes: true })
    }
}

/// How a run without repairs was judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Judged {
    /// Not yet, or it fails.
    #[default]
    Open,
    /// Nothing would change.
    Right,
    /// It would change something.
    Moved,
    /// It may change something.
    Unsure,
}

impl Judged {
    fn is_moved(self) -> bool {
        matches!(self, Judged::Moved | Judged::Unsure)
    }
}

#[derive(Debug, Default)]
struct Node {
    /// The direct predecessors.
    before: Vec<ResourceId>,
    brings: Brings,
    judged: Judged,
    /// The nearest predecessor that would change something, at any distance.
    moved_before: Option<ResourceId>,
    /// The nearest predecessor that would run and can bring anything.
    opaque_before: Option<ResourceId>,
}

/// The planned world of an engine that repairs nothing.
#[derive(Debug, Default)]
pub struct Foresight(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    nodes: FxHashMap<ResourceId, Node>,
    facts: Facts,
}

/// The resource that decides a thing, and its fate.
type Fate = (ResourceId, Becomes);

/// The fates of things, with the resource that decides each, by identity.
#[derive(Debug, Default)]
struct Facts {
    exact: FxHashMap<Identity, Vec<Fate>>,
    /// Those of sorts that are not matched by equal keys, by the name of the sort.
    partial: FxHashMap<&'static str, Vec<(Identity, Fate)>>,
    by_maker: FxHashMap<ResourceId, Vec<Identity>>,
    /// How many of them say that something is removed, or may be.
    removals: usize,
}

impl Foresight {
    /// A run begins, after these.
    pub(crate) fn begin(&self, id: &ResourceId, before: &[ResourceId], brings: Brings) {
        let mut table = self.0.lock();
        table.facts.forget(id);
        let mut node = Node {
            before: before.to_vec(),
            brings,
            ..Node::default()
        };
        for direct in before {
            let Some(known) = table.nodes.get(direct) else {
                continue;
            };
            let changes = known.judged.is_moved() && known.brings != Brings::Nothing;
            let moved = changes.then_some(direct).or(known.moved_before.as_ref());
            let is_opaque = changes && known.brings == Brings::Anything;
            let opaque = is_opaque.then_some(direct).or(known.opaque_before.as_ref());
            node.moved_before = node.moved_before.or_else(|| moved.cloned());
            node.opaque_before = node.opaque_before.or_else(|| opaque.cloned());
        }
        table.nodes.insert(id.clone(), node);
    }

    /// A run has ended. This would become of what has these identities.
    pub(crate) fn end(&self, id: &ResourceId, judged: Judged, facts: Vec<(Identity, Becomes)>) {
        let mut table = self.0.lock();
        if let Some(node) = table.nodes.get_mut(id) {
            node.judged = judged;
        }
        if !facts.is_empty() {
            table.facts.note(id, facts);
        }
    }

    /// Whether something that was not found will be there when a resource runs.
    pub(crate) fn asks(&self, id: &ResourceId, identity: &Identity) -> Foreseen {
        match self.becomes(id, identity) {
            Some((maker, Becomes::Created)) => return Foreseen::Created(maker),
            Some((maker, Becomes::Unsure { .. } | Becomes::Changed)) => return Foreseen::Perhaps(maker),
            Some((_, Becomes::Removed)) | None => {}
        }
        match self.opaque_before(id) {
            Some(opaque) => Foreseen::Perhaps(opaque),
            None => Foreseen::No,
        }
    }

    /// The fate of a thing before a resource runs, and the resource that decides it.
    pub(crate) fn becomes(&self, id: &ResourceId, identity: &Identity) -> Option<Fate> {
        self.0.lock().becomes(id, identity)
    }

    /// A resource before another one that would change something, or what is in it.
    pub(crate) fn alters(&self, id: &ResourceId, identity: &Identity) -> Option<ResourceId> {
        let table = self.0.lock();
        let of_thing = table.becomes(id, identity);
        let mut within = table
            .facts
            .within(identity)
            .filter_map(|inner| table.becomes(id, inner));
        let (by, _) = of_thing.or_else(|| within.next())?;
        Some(by)
    }

    /// A resource before another one that would remove one of these things, or may.
    pub(crate) fn remover(&self, id: &ResourceId, wanted: impl Fn() -> Vec<Identity>) -> Option<ResourceId> {
        let table = self.0.lock();
        if table.facts.removals == 0 {
            return None;
        }
        wanted().iter().find_map(|identity| {
            let (remover, becomes) = table.becomes(id, identity)?;
            becomes.removes().then_some(remover)
        })
    }

    /// The nearest resource before that would change something.
    pub(crate) fn moved_before(&self, id: &ResourceId) -> Option<ResourceId> {
        self.0.lock().nodes.get(id)?.moved_before.clone()
    }

    /// The nearest resource before that can bring anything.
    pub(crate) fn opaque_before(&self, id: &ResourceId) -> Option<ResourceId> {
        self.0.lock().nodes.get(id)?.opaque_before.clone()
    }

    /// A resource that would create something, in whatever order it runs.
    pub(crate) fn maker(&self, identity: &Identity) -> Option<ResourceId> {
        let table = self.0.lock();
        let mut facts = table.facts.of(identity);
        let (maker, _) =
            facts.find(|(_, becomes)| matches!(becomes, Becomes::Created | Becomes::Unsure { .. }))?;
        Some(maker.clone())
    }
}

impl Table {
    /// The fate of a thing before a resource runs, and the nearest resource that decides it. If two of them disagree, it is unsure.
    fn becomes(&self, id: &ResourceId, identity: &Identity) -> Option<Fate> {
        let mut makers: FxHashMap<&ResourceId, Becomes> = self
            .facts
            .of(identity)
            .map(|(maker, becomes)| (maker, *becomes))
            .collect();
        let holders = identity.sort.holders.filter(|_| self.facts.removals > 0);
        for holder in holders.map(|holders| holders(identity)).unwrap_or_default() {
            let removers = self.facts.of(&holder);
            let removers = removers.filter(|(_, becomes)| becomes.removes());
            makers.extend(removers.map(|(remover, becomes)| (remover, *becomes)));
        }
        if makers.is_empty() {
            return None;
        }
        let mut found: Option<Fate> = None;
        let mut seen: FxHashSet<&ResourceId> = FxHashSet::default();
        let mut left = vec![id];
        while let Some(node) = left.pop().and_then(|id| self.nodes.get(id)) {
            for before in &node.before {
                if let Some(becomes) = makers.get(before) {
                    match &mut found {
                        None => found = Some((before.clone(), *becomes)),
                        Some((_, known)) if *known != *becomes => {
                            let removes = known.removes() || becomes.removes();
                            *known = Becomes::Unsure { removes };
                        }
                        Some(_) => {}
                    }
                }
                // Nothing before the first that changes something has to do with anything.
                let leads_on = self
                    .nodes
                    .get(before)
                    .is_some_and(|node| node.moved_before.is_some());
                if leads_on && seen.insert(before) {
                    left.push(before);
                }
            }
        }
        found
    }
}

impl Facts {
    fn note(&mut self, id: &ResourceId, facts: Vec<(Identity, Becomes)>) {
        let mut identities = Vec::with_capacity(facts.len());
        for (identity, becomes) in facts {
            self.removals += usize::from(becomes.removes());
            let fact = (id.clone(), becomes);
            match identity.sort.is_met_by {
                None => self.exact.entry(identity.clone()).or_default().push(fact),
                Some(_) => {
                    let of_sort = self.partial.entry(identity.sort.name).or_default();
                    of_sort.push((identity.clone(), fact));
                }
            }
            identities.push(identity);
        }
        self.by_maker.insert(id.clone(), identities);
    }

    fn forget(&mut self, id: &ResourceId) {
        for identity in self.by_maker.remove(id).unwrap_or_default() {
            let mut removals = 0;
            let mut is_other = |(maker, becomes): &Fate| {
                let is_other = maker != id;
                removals += usize::from(!is_other && becomes.removes());
                is_other
            };
            match identity.sort.is_met_by {
                None => {
                    if let Some(facts) = self.exact.get_mut(&identity) {
                        facts.retain(is_other);
                    }
                }
                Some(_) => {
                    if let Some(of_sort) = self.partial.get_mut(identity.sort.name) {
                        of_sort.retain(|(_, fact)| is_other(fact));
                    }
                }
            }
            self.removals -= removals;
        }
    }

    /// The things in a thing whose fate is known.
    fn within<'a>(&'a self, holder: &'a Identity) -> impl Iterator<Item = &'a Identity> {
        let holders = holder.sort.holders;
        let known = self.exact.iter().filter(|(_, facts)| !facts.is_empty());
        known.filter_map(move |(inner, _)| {
            let is_of_sort = inner.sort.name == holder.sort.name;
            (is_of_sort && holders?(inner).contains(holder)).then_some(inner)
        })
    }

    fn of(&self, wanted: &Identity) -> impl Iterator<Item = &Fate> {
        let exact = self.exact.get(wanted).into_iter().flatten();
        let is_met_by = wanted.sort.is_met_by;
        let partial = self.partial.get(wanted.sort.name).into_iter().flatten();
        let partial = partial.filter(move |(has, _)| is_met_by.is_some_and(|met| met(&wanted.key, &has.key)));
        exact.chain(partial.map(|(_, fact)| fact))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sort;

    static THING: Sort = Sort::exact("thing");
    static NAMED: Sort = Sort::partial("named", |wanted, has| has.starts_with(wanted));

    fn id(name: &str) -> ResourceId {
        ResourceId::new("test", name)
    }

    fn thing(key: &str) -> Identity {
        THING.identity(key.as_bytes())
    }

    #[test]
    fn a_fact_counts_for_what_comes_after_its_maker() {
        let foresight = Foresight::default();
        foresight.begin(&id("a"), &[], Brings::Itself);
        foresight.end(&id("a"), Judged::Moved, vec![(thing("x"), Becomes::Created)]);
        foresight.begin(&id("b"), &[id("a")], Brings::Itself);
        foresight.end(&id("b"), Judged::Right, Vec::new());
        foresight.begin(&id("c"), &[id("b")], Brings::Itself);
        foresight.begin(&id("d"), &[], Brings::Itself);
        assert_eq!(foresight.asks(&id("c"), &thing("x")), Foreseen::Created(id("a")));
        assert_eq!(foresight.asks(&id("c"), &thing("y")), Foreseen::No);
        assert_eq!(foresight.asks(&id("d"), &thing("x")), Foreseen::No);
        assert_eq!(foresight.maker(&thing("x")), Some(id("a")));
        assert_eq!(foresight.moved_before(&id("c")), Some(id("a")));
        assert_eq!(foresight.moved_before(&id("d")), None);
        // The next run of the maker finds it there.
        foresight.begin(&id("a"), &[], Brings::Itself);
        foresight.end(&id("a"), Judged::Right, Vec::new());
        assert_eq!(foresight.asks(&id("c"), &thing("x")), Foreseen::No);
    }

    #[test]
    fn what_can_bring_anything_makes_everything_after_it_possible() {
        let foresight = Foresight::default();
        foresight.begin(&id("package"), &[], Brings::Anything);
        foresight.end(&id("package"), Judged::Moved, Vec::new());
        foresight.begin(&id("message"), &[], Brings::Nothing);
        foresight.end(&id("message"), Judged::Moved, Vec::new());
        foresight.begin(&id("after"), &[id("message")], Brings::Itself);
        assert_eq!(foresight.moved_before(&id("after")), None);
        foresight.begin(&id("after"), &[id("message"), id("package")], Brings::Itself);
        assert_eq!(
            foresight.asks(&id("after"), &thing("x")),
            Foreseen::Perhaps(id("package"))
        );
        assert_eq!(foresight.opaque_before(&id("after")), Some(id("package")));
        // A resource without drift runs nothing.
        foresight.begin(&id("package"), &[], Brings::Anything);
        foresight.end(&id("package"), Judged::Right, Vec::new());
        foresight.begin(&id("after"), &[id("package")], Brings::Itself);
        assert_eq!(foresight.asks(&id("after"), &thing("x")), Foreseen::No);
    }

    #[test]
    fn a_sort_decides_what_meets_a_wish() {
        let foresight = Foresight::default();
        foresight.begin(&id("a"), &[], Brings::Itself);
        foresight.end(
            &id("a"),
            Judged::Moved,
            vec![(NAMED.identity(&b"ada 1000"[..]), Becomes::Created)],
        );
        foresight.begin(&id("b"), &[id("a")], Brings::Itself);
        let asks = |key: &[u8]| foresight.asks(&id("b"), &NAMED.identity(key));
        assert_eq!(asks(b"ada"), Foreseen::Created(id("a")));
        assert_eq!(asks(b"bob"), Foreseen::No);
    }
}
