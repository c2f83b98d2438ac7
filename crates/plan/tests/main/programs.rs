//! Random programs for the machine in memory, and random machines.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use proptest::prelude::*;
use setpoint_diagnostics::{FileId, Span};
use setpoint_graph::{
    DesiredEdge, DesiredGraph, DesiredMembers, DesiredResource, MetaParameters, Parameters, ResourceId,
};
use setpoint_value::Value;

use crate::host::{ACCOUNTS, File, PACKAGES, PATHS, SERVICES, Things, above};
use crate::kinds::KINDS;

/// A program.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) items: Vec<Item>,
    pub(crate) edges: Vec<Edge>,
}

/// A resource.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) id: ResourceId,
    parameters: Vec<(&'static str, Value)>,
    is_off: bool,
    /// The things that its run, or the judgement of it, depends on.
    reads: BTreeSet<Thing>,
    /// The things that its run can change.
    writes: BTreeSet<Thing>,
    /// The things before which it gets an automatic edge.
    follows: BTreeSet<Thing>,
    /// The things that it is, for automatic edges.
    is: Option<Thing>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Thing {
    File(&'static str),
    Account(&'static str),
}

/// An edge between two resources, by their places in the program.
#[derive(Debug, Clone)]
pub(crate) struct Edge {
    from: usize,
    to: usize,
    notifies: bool,
    sends: bool,
}

/// Random numbers for one resource.
type Dice = (u8, usize, usize, u8, u8);

/// Random programs with the machine on which they run.
pub(crate) fn programs() -> impl Strategy<Value = (Program, Things)> {
    let dice = (0..16u8, 0..60usize, 0..60usize, any::<u8>(), any::<u8>());
    let edges = proptest::collection::vec((0..9usize, 0..9usize, 0..4u8), 0..8);
    let program =
        (proptest::collection::vec(dice, 1..9), edges).prop_map(|(dice, edges)| Program::of(dice, edges));
    (program, machines())
}

fn machines() -> impl Strategy<Value = Things> {
    let file = || proptest::option::of((0..4u8, 0..ACCOUNTS.len()));
    let files = [(); PATHS.len()].map(|()| file());
    (files, any::<u8>()).prop_map(|(files, bits)| {
        let mut things = Things::default();
        things.accounts.insert("root");
        let has = |bit: u8| bits & (1 << bit) != 0;
        for (at, name) in ACCOUNTS[1..].iter().enumerate() {
            if has(at as u8) {
                things.accounts.insert(name);
            }
        }
        for (path, file) in PATHS.iter().zip(files) {
            if let Some((content, owner)) = file.filter(|_| things.has_room(path)) {
                let owner = ACCOUNTS[owner];
                let content = content.to_string();
                things.files.insert(path, File { content, owner });
            }
        }
        for (at, package) in PACKAGES.iter().enumerate() {
            if has(2 + at as u8) {
                things.packages.insert(package);
            }
        }
        for (at, (service, _)) in SERVICES.iter().enumerate() {
            if has(4 + at as u8) {
                things.services.insert(service, String::new());
            }
        }
        things
    })
}

impl Program {
    fn of(dice: Vec<Dice>, edges: Vec<(usize, usize, u8)>) -> Program {
        let mut items: Vec<Item> = Vec::new();
        for (at, dice) in dice.into_iter().enumerate() {
            let item = Item::of(at, dice);
            let is_taken = |known: &Item| known.id == item.id || item.is.is_some() && known.is == item.is;
            if !items.iter().any(is_taken) {
                items.push(item);
            }
        }
        let mut program = Program {
            items,
            edges: Vec::new(),
        };
        let mut receivers = BTreeSet::new();
        for (a, b, what) in edges {
            let (from, to) = (a.min(b), a.max(b));
            if to >= program.items.len() || from == to || program.has_edge(from, to) {
                continue;
            }
            let is_document = |at: usize| &*program.items[at].id.kind == "document";
            let sends = what == 3 && is_document(from) && is_document(to) && receivers.insert(to);
            let notifies = what >= 2 && !sends;
            program.edges.push(Edge {
                from,
                to,
                notifies,
                sends,
            });
        }
        program.order_what_is_shared();
        program
    }

    /// Whether repairs of a resource are off.
    pub(crate) fn is_off(&self, id: &ResourceId) -> bool {
        self.items.iter().any(|item| item.id == *id && item.is_off)
    }

    fn has_edge(&self, from: usize, to: usize) -> bool {
        self.edges.iter().any(|edge| edge.from == from && edge.to == to)
    }

    /// If two resources use the same thing and one changes it, they get an edge, unless they have an automatic one. No plan can say
    /// the fate of a thing that two resources change in any order.
    fn order_what_is_shared(&mut self) {
        for to in 0..self.items.len() {
            for from in 0..to {
                let (a, b) = (&self.items[from], &self.items[to]);
                let touches = |writer: &Item, other: &Item| {
                    let mut all = other.reads.union(&other.writes);
                    all.any(|thing| writer.writes.contains(thing))
                };
                let follows = |a: &Item, b: &Item| a.is.as_ref().is_some_and(|is| b.follows.contains(is));
                let has_automatic = follows(a, b) || follows(b, a);
                if (touches(a, b) || touches(b, a)) && !has_automatic && !self.has_edge(from, to) {
                    self.edges.push(Edge {
                        from,
                        to,
                        notifies: false,
                        sends: false,
                    });
                }
            }
        }
    }

    /// The program as a graph.
    pub(crate) fn graph(&self) -> DesiredGraph {
        let mut graph = DesiredGraph {
            generation: 1,
            ..DesiredGraph::default()
        };
        let span = Span::new(FileId(0), 0, 0);
        for item in &self.items {
            let spec = KINDS.iter().find(|spec| spec.schema.kind == &*item.id.kind);
            let resource = DesiredResource {
                id: item.id.clone(),
                schema: spec.expect("a kind of the list").schema,
                parameters: Parameters::new(item.parameters.iter().cloned()),
                meta: MetaParameters {
                    noop: item.is_off,
                    ..MetaParameters::default()
                }
                .into(),
                span,
                parameter_spans: Arc::new([]),
                chain: None,
                members: DesiredMembers::default(),
            };
            graph.resources.insert(item.id.clone(), Arc::new(resource));
        }
        for edge in &self.edges {
            let (from, to) = (self.items[edge.from].id.clone(), self.items[edge.to].id.clone());
            let send = match edge.sends {
                true => vec![("content".into(), "content".into())],
                false => Vec::new(),
            };
            let edge = DesiredEdge {
                from: from.clone(),
                to: to.clone(),
                notify: edge.notifies,
                send,
                span,
                parts: None,
            };
            graph.edges.insert((from, to), Arc::new(edge));
        }
        graph
    }
}

impl Item {
    fn of(at: usize, (kind, a, b, flags, more): Dice) -> Item {
        let has = |bit: u8| flags & (1 << bit) != 0;
        let path = PATHS[a % PATHS.len()];
        let other = PATHS[b % PATHS.len()];
        let owner = ACCOUNTS[b % ACCOUNTS.len()];
        let mut item = match kind {
            0..6 => Item::document(
                path,
                has(0) && has(1),
                has(2).then_some(more % 4),
                has(3).then_some(owner),
            ),
            6 | 7 => Item::account(ACCOUNTS[1 + a % 2], has(0) && has(1)),
            8 if path != other => Item::copy(path, other),
            9 => Item::package(PACKAGES[a % PACKAGES.len()]),
            10 | 11 => Item::service(SERVICES[a % SERVICES.len()]),
            12 => Item::plain("message", &format!("m{at}")),
            _ => Item::command(at, flags, more, path, other),
        };
        item.is_off = more % 16 == 0;
        item
    }

    fn plain(kind: &str, name: &str) -> Item {
        Item {
            id: ResourceId::new(kind, name),
            parameters: Vec::new(),
            is_off: false,
            reads: BTreeSet::new(),
            writes: BTreeSet::new(),
            follows: BTreeSet::new(),
            is: None,
        }
    }

    fn document(path: &'static str, absent: bool, content: Option<u8>, owner: Option<&'static str>) -> Item {
        let mut item = Item::plain("document", path);
        item.is = Some(Thing::File(path));
        item.writes.insert(Thing::File(path));
        item.needs(above_of(path));
        item.follows.extend(above_of(path));
        if absent {
            item.parameters.push(("absent", Value::Bool(true)));
            item.writes.extend(below(path));
        }
        if let Some(content) = content {
            item.parameters.push(("content", Value::str(content.to_string())));
        }
        if let Some(owner) = owner {
            item.parameters.push(("owner", Value::str(owner)));
            item.needs(Some(Thing::Account(owner)));
            item.follows.insert(Thing::Account(owner));
        }
        item
    }

    fn account(name: &'static str, absent: bool) -> Item {
        let mut item = Item::plain("account", name);
        item.is = Some(Thing::Account(name));
        item.writes.insert(Thing::Account(name));
        item.parameters.push(("absent", Value::Bool(absent)));
        item
    }

    fn copy(path: &'static str, source: &'static str) -> Item {
        let mut item = Item::plain("copy", path);
        item.is = Some(Thing::File(path));
        item.writes.insert(Thing::File(path));
        for needed in above_of(path).into_iter().chain([Thing::File(source)]) {
            item.needs(Some(needed));
        }
        item.follows
            .extend(above_of(path).into_iter().chain([Thing::File(source)]));
        item.parameters.push(("source", Value::str(source)));
        item
    }

    fn package(name: &'static str) -> Item {
        let mut item = Item::plain("package", name);
        let mut things = Things::default();
        things.install(name);
        item.writes
            .extend(things.files.keys().map(|path| Thing::File(path)));
        item
    }

    fn service((name, unit): (&'static str, &'static str)) -> Item {
        let mut item = Item::plain("service", name);
        item.needs(Some(Thing::File(unit)));
        item.follows.insert(Thing::File(unit));
        item
    }

    fn command(at: usize, flags: u8, more: u8, path: &'static str, other: &'static str) -> Item {
        let mut item = Item::plain("command", &format!("c{at}"));
        let has = |bit: u8| flags & (1 << bit) != 0;
        let mut set = |name: &'static str, path: &'static str| item.parameters.push((name, Value::str(path)));
        let mut reads = vec![];
        match more % 3 {
            0 => {
                set("only_if", other);
                reads.push(other);
            }
            1 => {
                set("creates", other);
                reads.push(other);
            }
            _ => {}
        }
        match more / 3 % 3 {
            0 => {
                set("writes", path);
                item.writes.insert(Thing::File(path));
                item.reads.extend(above_of(path));
            }
            1 => {
                set("removes", path);
                item.writes.insert(Thing::File(path));
                item.writes.extend(below(path));
            }
            _ => {}
        }
        item.reads.extend(reads.into_iter().map(Thing::File));
        item.parameters.push(("refresh_only", Value::Bool(has(0))));
        item.parameters
            .push(("fails", Value::Bool(has(1) && has(2) && has(3))));
        item
    }

    fn needs(&mut self, thing: Option<Thing>) {
        self.reads.extend(thing);
    }
}

fn above_of(path: &'static str) -> Option<Thing> {
    above(path).map(Thing::File)
}

fn below(path: &'static str) -> impl Iterator<Item = Thing> {
    let below = PATHS
        .iter()
        .filter(move |known| known.len() > path.len() && known.starts_with(path));
    below.map(|path| Thing::File(path))
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for item in &self.items {
            let off = if item.is_off { " off" } else { "" };
            writeln!(f, "{}{off} {:?}", item.id, item.parameters)?;
        }
        for edge in &self.edges {
            let (from, to) = (&self.items[edge.from].id, &self.items[edge.to].id);
            let verb = match (edge.notifies, edge.sends) {
                (true, _) => "notifies",
                (_, true) => "sends to",
                _ => "before",
            };
            writeln!(f, "{from} {verb} {to}")?;
        }
        Ok(())
    }
}
