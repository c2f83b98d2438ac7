//! What a script wants: a few resources of the cast with meta parameters, and edges between them.

use std::collections::BTreeMap;
use std::sync::Arc;

use setpoint_diagnostics::{FileId, Span};
use setpoint_graph::{
    DesiredEdge, DesiredGraph, DesiredMembers, DesiredResource, MetaName, MetaParameters, Parameters,
};
use setpoint_value::Value;

use crate::cast::{Role, Roles, each};
use crate::random::Random;

/// A program: what is wanted of some of the cast.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Program {
    /// At most one for each role.
    pub resources: Vec<Wanted>,
    /// At most one for each pair of resources, all of which go forwards in the cast, so that there is no circle.
    pub arrows: Vec<Arrow>,
    /// Resources that are applied as one; together with the arrows they make no circle.
    pub group: Option<Group>,
}

/// Parts that are applied as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The one that stands for all.
    pub parent: Role,
    /// The others.
    pub members: Vec<Role>,
}

/// What is wanted of one resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// Which one.
    pub role: Role,
    /// What shall be in it.
    pub content: u8,
    /// What the engine is told.
    pub meta: MetaParameters,
}

/// An edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrow {
    /// Who comes first.
    pub from: Role,
    /// Who comes after it.
    pub to: Role,
    /// What else it says.
    pub bond: Bond,
}

/// What an edge says beside the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bond {
    /// Nothing.
    Order,
    /// A repair notifies.
    Notify,
    /// The content is what the other sends.
    Send,
}

impl Program {
    /// A program that follows from a source of chance.
    pub(crate) fn random(random: &mut Random) -> Program {
        let mut resources = Vec::new();
        let share = random.of(&[50, 75, 90]);
        for role in Role::all() {
            if random.chance(share) {
                let content = 1 + random.below(2) as u8;
                let meta = random_meta(random, role);
                resources.push(Wanted { role, content, meta });
            }
        }
        let mut arrows = Vec::new();
        let mut receivers: Roles = 0;
        let density = random.of(&[5, 15, 25]);
        for (at, from) in resources.iter().enumerate() {
            for to in &resources[at + 1..] {
                let (from, to) = (from.role, to.role);
                let bond = match random.below(100) {
                    chance if chance < density / 2 => Bond::Order,
                    chance if chance < density => Bond::Notify,
                    chance if chance < density + 4 && receivers & to.bit() == 0 => Bond::Send,
                    _ => continue,
                };
                if bond == Bond::Send {
                    // What is hidden sends nothing.
                    if resources[at].meta.hidden {
                        continue;
                    }
                    receivers |= to.bit();
                }
                arrows.push(Arrow { from, to, bond });
            }
        }
        let mut program = Program {
            resources,
            arrows,
            group: None,
        };
        if random.chance(60) {
            program.group_parts(random);
        }
        program
    }

    /// Makes a group of two or three parts, where that makes no circle.
    fn group_parts(&mut self, random: &mut Random) {
        let parts = self
            .resources
            .iter()
            .map(|wanted| wanted.role)
            .filter(|role| role.is_part());
        let mut members: Vec<Role> = parts.collect();
        if members.len() > 2 && random.chance(30) {
            members.remove(random.below(3) as usize);
        }
        if members.len() < 2 {
            return;
        }
        let parent = members.remove(random.below(members.len() as u64) as usize);
        let all = members.iter().fold(parent.bit(), |all, role| all | role.bit());
        let inside = |arrow: &Arrow| all & arrow.from.bit() != 0 && all & arrow.to.bit() != 0;
        if self.arrows.iter().any(inside) {
            return;
        }
        self.group = Some(Group { parent, members });
        let ancestors = self.ancestors();
        if Role::all().any(|role| ancestors[role.place()] & role.bit() != 0) {
            self.group = None;
            return;
        }
        // What is applied as one is told the same.
        for wanted in self
            .resources
            .iter_mut()
            .filter(|wanted| all & wanted.role.bit() != 0)
        {
            wanted.meta = MetaParameters {
                export: std::mem::take(&mut wanted.meta.export),
                ..MetaParameters::default()
            };
        }
    }

    /// Who stands for a resource: itself, or the parent of its group.
    pub(crate) fn holder(&self, role: Role) -> Role {
        match &self.group {
            Some(group) if group.members.contains(&role) => group.parent,
            _ => role,
        }
    }

    /// What is wanted of one resource, if anything.
    #[must_use]
    pub fn wanted(&self, role: Role) -> Option<&Wanted> {
        self.resources.iter().find(|wanted| wanted.role == role)
    }

    /// For each role who comes right before it.
    pub(crate) fn predecessors(&self) -> [Roles; 16] {
        let mut all = [0; 16];
        for arrow in &self.arrows {
            all[self.holder(arrow.to).place()] |= self.holder(arrow.from).bit();
        }
        all
    }

    /// For each role whom a repair of it notifies.
    pub(crate) fn notified(&self) -> [Roles; 16] {
        let mut all = [0; 16];
        for arrow in self.arrows.iter().filter(|arrow| arrow.bond == Bond::Notify) {
            all[self.holder(arrow.from).place()] |= self.holder(arrow.to).bit();
        }
        all
    }

    /// For each role all who come before it, over any number of edges.
    pub(crate) fn ancestors(&self) -> [Roles; 16] {
        let mut all = self.predecessors();
        loop {
            let known = all;
            for role in Role::all() {
                for before in each(all[role.place()]) {
                    all[role.place()] |= all[before.place()];
                }
            }
            if all == known {
                return all;
            }
        }
    }

    /// It as a graph; what is as it was in `before` is shared with it.
    pub(crate) fn graph(&self, generation: u64, before: &DesiredGraph) -> DesiredGraph {
        let mut graph = before.clone();
        graph.generation = generation;
        graph.resources = Default::default();
        graph.hidden = Default::default();
        graph.edges = Default::default();
        let span = Span::new(FileId(0), 0, 0);
        let made = |wanted: &Wanted, members: DesiredMembers| DesiredResource {
            id: wanted.role.id(),
            schema: wanted.role.schema(),
            parameters: Parameters::new([("content", content(wanted.content))]),
            meta: wanted.meta.clone().into(),
            span,
            parameter_spans: Arc::new([]),
            chain: None,
            members,
        };
        let holds = |wanted: &&Wanted| self.holder(wanted.role) == wanted.role;
        for wanted in self.resources.iter().filter(holds) {
            let id = wanted.role.id();
            let members = self.group.iter().filter(|group| group.parent == wanted.role);
            let members = members.flat_map(|group| &group.members);
            let members = members
                .filter_map(|role| Some(Arc::new(made(self.wanted(*role)?, DesiredMembers::default()))));
            let resource = made(wanted, DesiredMembers::new(members));
            let old = before
                .resources
                .get(&id)
                .filter(|old| old.is_unchanged(&resource));
            let resource = old.cloned().unwrap_or_else(|| Arc::new(resource));
            if wanted.meta.hidden {
                graph.hidden.insert(id, vec![resource]);
            } else {
                graph.resources.insert(id, resource);
            }
        }
        let mut edges: BTreeMap<(Role, Role), Vec<&Arrow>> = BTreeMap::new();
        for arrow in &self.arrows {
            let ends = (self.holder(arrow.from), self.holder(arrow.to));
            edges.entry(ends).or_default().push(arrow);
        }
        for ((from, to), mut arrows) in edges {
            arrows.sort_by_key(|arrow| (arrow.from.id(), arrow.to.id()));
            let edge = |arrow: &Arrow| DesiredEdge {
                from: arrow.from.id(),
                to: arrow.to.id(),
                notify: arrow.bond == Bond::Notify,
                send: match arrow.bond {
                    Bond::Send => vec![("out".into(), "content".into())],
                    Bond::Order | Bond::Notify => Vec::new(),
                },
                span,
                parts: None,
            };
            let is_own = |arrow: &Arrow| arrow.from == from && arrow.to == to;
            let own = arrows.iter().find(|arrow| is_own(arrow)).map(|arrow| edge(arrow));
            let parts = arrows.iter().filter(|arrow| !is_own(arrow));
            let parts: Vec<Arc<DesiredEdge>> = parts.map(|arrow| Arc::new(edge(arrow))).collect();
            let edge = DesiredEdge {
                from: from.id(),
                to: to.id(),
                notify: arrows.iter().any(|arrow| arrow.bond == Bond::Notify),
                send: own.map(|own| own.send).unwrap_or_default(),
                span,
                parts: (!parts.is_empty()).then(|| parts.into()),
            };
            graph.edges.insert((from.id(), to.id()), Arc::new(edge));
        }
        graph
    }

    /// The semaphores that are in use with their counts.
    pub(crate) fn semaphores(&self) -> BTreeMap<&str, usize> {
        let all = self.resources.iter().flat_map(|wanted| &wanted.meta.sema);
        all.map(|id| (&**id, count(id))).collect()
    }
}

/// How a number stands for a content.
pub(crate) fn content(number: u8) -> Value {
    Value::str(CONTENTS[usize::from(number) % CONTENTS.len()])
}

/// The number of a content that is one of ours.
pub(crate) fn content_number(value: &Value) -> Option<u8> {
    let text = value.as_str()?;
    CONTENTS
        .iter()
        .position(|known| text.as_bytes() == known.as_bytes())
        .map(|at| at as u8)
}

const CONTENTS: [&str; 8] = ["", "one", "two", "three", "four", "five", "six", "seven"];

fn count(semaphore: &str) -> usize {
    let after = semaphore
        .rsplit_once(':')
        .and_then(|(_, count)| count.parse().ok());
    after.unwrap_or(1)
}

fn random_meta(random: &mut Random, role: Role) -> MetaParameters {
    let mut meta = MetaParameters::default();
    if random.chance(20) {
        let hosts = random.of(&[&["*"][..], &["web"], &["web", "*"]]);
        meta.export = hosts.iter().map(|host| (*host).to_owned()).collect();
    }
    // Most are plain, so that what is special meets what is usual.
    if random.chance(50) {
        return meta;
    }
    if random.chance(40) {
        meta.retry = random.of(&[0, 1, 3, -1]);
        meta.written.insert(MetaName::Retry);
        if random.chance(60) {
            meta.delay = random.of(&[0, 10, 200]);
            meta.written.insert(MetaName::Delay);
        }
        meta.retryreset = random.chance(30);
        meta.reset = random.chance(20);
    }
    meta.noop = random.chance(10);
    meta.rewatch = random.chance(20);
    if random.chance(30) {
        meta.sema = random
            .of(&[&["x"][..], &["y:2"], &["x", "y:2"], &["y:2", "y:2"]])
            .iter()
            .map(|id| (*id).into())
            .collect();
    }
    if random.chance(15) {
        (meta.limit, meta.burst) = (5.0, 2);
    }
    meta.timeout = if random.chance(20) { 30 } else { 0 };
    meta.poll = random.of(&[0, 0, 0, 0, 0, 0, 0, 1, 30]);
    meta.realize = random.chance(10);
    meta.reverse = !role.is_part() && random.chance(30);
    meta.hidden = role.may_be_hidden() && random.chance(40);
    meta
}
