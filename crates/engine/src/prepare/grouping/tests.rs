//! Grouping against the rule: all pairs, in order, each asked anew.

use std::fmt::Write as _;

use setpoint_diagnostics::{FileId, Span};
use setpoint_graph::{KindSchema, MetaParameters, Parameters};
use setpoint_value::Value;

use super::*;

const fn kind(kind: &'static str) -> KindSchema {
    KindSchema {
        autogroup: true,
        ..KindSchema::plain(kind, "A thing.", &[])
    }
}

static KINDS: [KindSchema; 6] = [
    kind("a"),
    kind("a:b"),
    kind("a:c"),
    kind("a:b:d"),
    kind("a-b"),
    kind("z"),
];

fn id(text: &str) -> ResourceId {
    let (kind, name) = text.split_once('[').unwrap();
    ResourceId::new(kind, name.trim_end_matches(']'))
}

/// A graph that is being written down, with what its resources fit.
#[derive(Clone, Default)]
struct Program {
    graph: DesiredGraph,
    fits: BTreeMap<ResourceId, Grouping>,
}

impl Program {
    fn put(&mut self, id: &ResourceId, grouping: Grouping, change: impl FnOnce(&mut MetaParameters)) {
        let mut meta = MetaParameters::default();
        change(&mut meta);
        let schema = KINDS.iter().find(|schema| schema.kind == &*id.kind).unwrap();
        let resource = DesiredResource {
            id: id.clone(),
            schema,
            // What a resource fits follows from its parameters.
            parameters: Parameters::new([("fits", Value::str(format!("{grouping:?}")))]),
            meta: meta.into(),
            span: Span::new(FileId(0), 0, 0),
            parameter_spans: Arc::new([]),
            chain: None,
            members: DesiredMembers::default(),
        };
        self.graph.resources.insert(id.clone(), Arc::new(resource));
        self.fits.insert(id.clone(), grouping);
    }

    /// Any with any of its kind.
    fn of(names: impl IntoIterator<Item = String>) -> Program {
        let mut program = Program::default();
        for name in names {
            program.put(&id(&name), Grouping::with_equals("all", ""), |_| {});
        }
        program
    }

    fn hide(&mut self, id: &ResourceId) {
        if let Some(resource) = self.graph.resources.get(id) {
            self.graph.hidden.insert(id.clone(), vec![resource.clone()]);
        }
    }

    fn edge(&mut self, from: &ResourceId, to: &ResourceId, notify: bool, send: bool) {
        let edge = DesiredEdge {
            from: from.clone(),
            to: to.clone(),
            notify,
            send: send
                .then(|| ("key".into(), "parameter".into()))
                .into_iter()
                .collect(),
            span: Span::new(FileId(0), 0, 0),
            parts: None,
        };
        self.graph
            .edges
            .insert((from.clone(), to.clone()), Arc::new(edge));
    }

    fn drop(&mut self, id: &ResourceId) {
        self.graph.resources.remove(id);
        self.graph.hidden.remove(id);
        self.fits.remove(id);
        let edges = self.graph.edges.clone();
        for pair in edges.keys().filter(|(from, to)| from == id || to == id) {
            self.graph.edges.remove(pair);
        }
    }

    fn order(&self) -> Option<Order> {
        Order::of(self.graph.edges.keys().map(|(from, to)| (from, to))).ok()
    }

    /// Brings groups in line with what it says now.
    fn update(&self, groups: &mut Groups) -> Grouped {
        let change = diff(&groups.last, &self.graph);
        let changed = change.changed.iter().map(|(_, new)| new);
        let fresh = change.added.iter().chain(changed);
        let fresh = fresh.map(|resource| (resource.id.clone(), self.fits[&resource.id].clone()));
        groups.update(&self.graph, &self.order().unwrap(), fresh.collect())
    }
}

/// The rule, as it is written.
fn by_the_rule(program: &Program) -> BTreeMap<ResourceId, ResourceId> {
    let parts = |id: &ResourceId| id.kind.split(':').map(str::to_owned).collect::<Vec<_>>();
    let mut candidates: Vec<&ResourceId> = program.graph.resources.keys().collect();
    candidates.retain(|id| program.graph.resources[*id].meta.autogroup);
    candidates.sort_by(|a, b| {
        let (of_a, of_b) = (parts(a), parts(b));
        (of_b.len(), of_b, &b.name).cmp(&(of_a.len(), of_a, &a.name))
    });
    let mut parents: BTreeMap<ResourceId, ResourceId> = BTreeMap::new();
    for v in &candidates {
        for w in &candidates {
            if v == w || parents.contains_key(*v) || parents.contains_key(*w) || parts(v)[0] != parts(w)[0] {
                continue;
            }
            let (takes, joins) = (&program.fits[*v].takes, &program.fits[*w].joins);
            if !takes.iter().any(|key| joins.contains(key)) {
                continue;
            }
            let meta = |id: &ResourceId| search::Terms::of(&program.graph.resources[id]);
            let holds_others = parents.values().any(|parent| parent == *w);
            if v.kind == w.kind && (meta(v) != meta(w) || holds_others) {
                continue;
            }
            if !leads(program, &parents, v, w) && !leads(program, &parents, w, v) {
                parents.insert((*w).clone(), (*v).clone());
            }
        }
    }
    parents
}

fn root<'a>(parents: &'a BTreeMap<ResourceId, ResourceId>, mut id: &'a ResourceId) -> &'a ResourceId {
    while let Some(parent) = parents.get(id) {
        id = parent;
    }
    id
}

fn leads(
    program: &Program,
    parents: &BTreeMap<ResourceId, ResourceId>,
    from: &ResourceId,
    to: &ResourceId,
) -> bool {
    let mut seen = BTreeSet::from([from.clone()]);
    let mut left = vec![from.clone()];
    while let Some(at) = left.pop() {
        for (a, b) in program.graph.edges.keys() {
            if *root(parents, a) == at && seen.insert(root(parents, b).clone()) {
                left.push(root(parents, b).clone());
            }
        }
    }
    seen.contains(to)
}

/// Everything that a grouped graph says, as text.
fn shown(graph: &DesiredGraph) -> String {
    fn members(resource: &DesiredResource) -> String {
        let members = resource.members.direct().iter();
        let members: Vec<String> = members.map(|m| format!("{}{}", m.id, members_of(m))).collect();
        members.join(" ")
    }
    fn members_of(resource: &DesiredResource) -> String {
        match resource.members.is_empty() {
            true => String::new(),
            false => format!("({})", members(resource)),
        }
    }
    let mut text = String::new();
    for resource in graph.resources.values() {
        let noop = resource.meta.noop;
        let _ = writeln!(text, "{}{} {noop}", resource.id, members_of(resource));
    }
    for edge in graph.edges.values() {
        let parts: Vec<String> = edge
            .parts()
            .iter()
            .map(|p| format!("{}->{}", p.from, p.to))
            .collect();
        let _ = writeln!(
            text,
            "{} -> {} {} {} {}",
            edge.from,
            edge.to,
            edge.notify,
            edge.send.len(),
            parts.join(" ")
        );
    }
    text
}

/// The grouped graph, built from nothing.
fn contracted(program: &Program, parents: &BTreeMap<ResourceId, ResourceId>) -> DesiredGraph {
    fn build(
        program: &Program,
        parents: &BTreeMap<ResourceId, ResourceId>,
        id: &ResourceId,
    ) -> Arc<DesiredResource> {
        let own = parents.iter().filter(|(_, parent)| *parent == id);
        let members = own.map(|(member, _)| build(program, parents, member));
        Arc::new(DesiredResource {
            members: DesiredMembers::new(members.collect::<Vec<_>>()),
            ..(*program.graph.resources[id]).clone()
        })
    }
    let mut graph = DesiredGraph {
        hidden: program.graph.hidden.clone(),
        ..DesiredGraph::default()
    };
    for id in program
        .graph
        .resources
        .keys()
        .filter(|id| !parents.contains_key(*id))
    {
        graph.resources.insert(id.clone(), build(program, parents, id));
    }
    let ends = |id: &ResourceId| {
        let mut ends = BTreeSet::from([root(parents, id).clone()]);
        if program.graph.hidden.contains_key(id) {
            ends.insert(id.clone());
        }
        ends
    };
    for (source, edge) in &program.graph.edges {
        for from in ends(&source.0) {
            for to in ends(&source.1) {
                let pair = (from.clone(), to.clone());
                let is_own = pair == *source;
                let known = graph.edges.get(&pair).map(|known| (**known).clone());
                let mut built = known.unwrap_or_else(|| DesiredEdge {
                    from: from.clone(),
                    to: to.clone(),
                    notify: false,
                    send: Vec::new(),
                    span: edge.span,
                    parts: None,
                });
                built.notify |= edge.notify;
                if is_own {
                    built.send.clone_from(&edge.send);
                } else {
                    let mut parts = built.parts.take().unwrap_or_default().into_vec();
                    parts.push(edge.clone());
                    built.parts = Some(parts.into());
                }
                graph.edges.insert(pair, Arc::new(built));
            }
        }
    }
    graph
}

/// xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % bound
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

fn random_change(program: &mut Program, ids: &[ResourceId], random: &mut Random) {
    let any = |random: &mut Random| ids[random.below(ids.len() as u64) as usize].clone();
    match random.below(10) {
        0..=3 => {
            let id = any(random);
            let mut grouping = Grouping::none();
            for key in ["x", "y"] {
                if random.chance(40) {
                    grouping = grouping.taking("key", key);
                }
                if random.chance(60) {
                    grouping = grouping.joining("key", key);
                }
            }
            let (noop, autogroup) = (random.chance(15), random.chance(90));
            program.put(&id, grouping, |meta| {
                (meta.noop, meta.autogroup) = (noop, autogroup);
            });
        }
        4 => program.drop(&any(random)),
        5..=7 => {
            let (from, to) = (any(random), any(random));
            let there = |id: &ResourceId| program.graph.resources.contains_key(id);
            if from != to && there(&from) && there(&to) {
                let before = program.graph.clone();
                program.edge(&from, &to, random.chance(50), random.chance(30));
                if program.order().is_none() {
                    program.graph = before;
                }
            }
        }
        8 => {
            let edges: Vec<Pair> = program.graph.edges.keys().cloned().collect();
            if !edges.is_empty() {
                let pair = &edges[random.below(edges.len() as u64) as usize];
                program.graph.edges.remove(pair);
            }
        }
        _ => {
            let id = any(random);
            if random.chance(50) {
                program.hide(&id);
            } else {
                program.graph.hidden.remove(&id);
            }
        }
    }
}

#[test]
fn random_histories_agree_with_the_rule() {
    let mut grouped_ever = 0;
    for seed in 1..=60u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let ids: Vec<ResourceId> = (0..14)
            .map(|number| {
                let kind = KINDS[random.below(KINDS.len() as u64) as usize].kind;
                ResourceId::new(kind, format!("{number}"))
            })
            .collect();
        let mut program = Program::default();
        let mut groups = Groups::default();
        for step in 0..60 {
            for _ in 0..=random.below(if step == 0 { 30 } else { 3 }) {
                random_change(&mut program, &ids, &mut random);
            }
            let grouped = program.update(&mut groups);
            let parents = by_the_rule(&program);
            grouped_ever += parents.len();
            let found: BTreeMap<_, _> = groups.parents.clone().into_iter().collect();
            assert_eq!(
                found,
                parents,
                "seed {seed}, step {step}:\n{}",
                shown(&program.graph)
            );
            let wanted = contracted(&program, &parents);
            assert_eq!(shown(&grouped.graph), shown(&wanted), "seed {seed}, step {step}");
            assert!(
                diff(&grouped.graph, &wanted).is_empty(),
                "seed {seed}, step {step}"
            );
        }
    }
    assert!(grouped_ever > 1000, "{grouped_ever}");
}

fn names(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|number| format!("a[{number:05}]"))
}

#[test]
fn ten_thousand_that_fit_each_other_are_found_in_a_few_steps_each() {
    const COUNT: usize = 10_000;
    // Without edges, before and behind one, in two layers, and in pairs.
    let alone = Program::of(names(COUNT));
    let mut star = alone.clone();
    let mut layers = alone.clone();
    let mut pairs = alone.clone();
    let middle = id("z[middle]");
    for program in [&mut star, &mut layers] {
        program.put(&middle, Grouping::none(), |_| {});
    }
    for (number, name) in names(COUNT).enumerate() {
        star.edge(&middle, &id(&name), false, false);
        let (from, to) = match number % 2 {
            0 => (id(&name), middle.clone()),
            _ => (middle.clone(), id(&name)),
        };
        layers.edge(&from, &to, false, false);
        let other = id(&format!("z[{name}]").replace("a[", "").replace("]]", "]"));
        pairs.put(&other, Grouping::none(), |_| {});
        pairs.edge(&id(&name), &other, true, false);
    }
    for (what, program, groups_wanted) in [
        ("alone", alone, 1),
        ("star", star, 1),
        ("layers", layers, 2),
        ("pairs", pairs, 1),
    ] {
        let mut groups = Groups::default();
        program.update(&mut groups);
        assert_eq!(groups.members.len(), groups_wanted, "{what}");
        assert!(groups.steps < 20 * COUNT, "{what}: {} steps", groups.steps);
    }
}

#[test]
fn a_chain_of_ten_thousand_is_not_tried_in_pairs() {
    const COUNT: usize = 10_000;
    let mut program = Program::of(names(COUNT));
    let all: Vec<ResourceId> = names(COUNT).map(|name| id(&name)).collect();
    for pair in all.windows(2) {
        program.edge(&pair[0], &pair[1], false, false);
    }
    let mut groups = Groups::default();
    let grouped = program.update(&mut groups);
    assert!(groups.members.is_empty());
    assert!(diff(&grouped.graph, &program.graph).is_empty());
    assert!(groups.steps < 20 * COUNT, "{} steps", groups.steps);
}

#[test]
fn what_groups_do_not_follow_from_is_no_reason_to_look_for_them() {
    let mut program = Program::of(names(100));
    program.put(&id("z[one]"), Grouping::none(), |_| {});
    program.put(&id("z[two]"), Grouping::none(), |_| {});
    let mut groups = Groups::default();
    let first = program.update(&mut groups);
    program.edge(&id("z[one]"), &id("z[two]"), false, false);
    program.edge(&id("a[00001]"), &id("z[one]"), false, false);
    program.put(&id("z[three]"), Grouping::none(), |_| {});
    let second = program.update(&mut groups);
    assert_eq!(groups.searches, 1);
    assert!(second.regrouped.is_empty());
    let leader = id("a[00099]");
    let (before, after) = (&first.graph.resources[&leader], &second.graph.resources[&leader]);
    assert!(Arc::ptr_eq(before, after), "the group is shared");
    // A member that differs makes its group another one, without a search.
    program.put(&id("a[00001]"), Grouping::with_equals("all", ""), |meta| {
        meta.sema = vec!["x".to_owned()];
    });
    let third = program.update(&mut groups);
    assert_eq!((groups.searches, third.regrouped), (1, vec![leader.clone()]));
    let shown: Vec<&str> = third.graph.resources[&leader].semaphores().collect();
    assert_eq!(shown, ["x"]);
}

#[test]
fn members_of_another_kind_and_those_that_nobody_takes_are_told_once() {
    let mut program = Program::default();
    let (server, file) = (id("a[server]"), id("a:b[file]"));
    let lost = Grouping::none()
        .joining("a", "elsewhere")
        .useless_alone("serves nothing: there is no `a` for it");
    program.put(&server, Grouping::none().taking("a", ""), |_| {});
    program.put(&file, Grouping::none().joining("a", ""), |meta| {
        meta.noop = true;
        meta.retry = 3;
        meta.delay = 5;
        for name in [MetaName::Noop, MetaName::Retry, MetaName::Delay, MetaName::Sema] {
            meta.written.insert(name);
        }
    });
    program.put(&id("a:b[lost]"), lost, |_| {});
    let mut groups = Groups::default();
    let grouped = program.update(&mut groups);
    assert_eq!(
        grouped.warnings,
        [
            "`a:b[lost]` serves nothing: there is no `a` for it",
            "`Meta:retry`, `Meta:delay` of `a:b[file]` does nothing, because it is applied as part of `a[server]`: \
             what is written there holds",
        ]
    );
    program.put(&id("z[other]"), Grouping::none(), |_| {});
    program.put(&id("a:c[more]"), Grouping::none().joining("a", ""), |_| {});
    assert_eq!(program.update(&mut groups).warnings, Vec::<String>::new());
}
