//! What can be said about templates before any is instantiated.

use setpoint_graph::{EdgeStatement, ResourceStatement};

use crate::{Operation, Program, Slot, TemplateId, TemplateNode};

/// Estimates beyond this are cut: a join that comes to lie too low is raised.
const MAXIMUM_DEPTH: u32 = 32;

/// Facts about the templates of a program.
pub(super) struct Prepared {
    templates: Vec<PreparedTemplate>,
}

/// Facts about one template.
#[derive(Default)]
pub(super) struct PreparedTemplate {
    /// The slots that each node is computed from; node `i` has `operands[starts[i]..starts[i + 1]]`.
    operands: Vec<Slot>,
    starts: Vec<u32>,
    /// Nodes that are there without anybody asking for them: statements, and instances that hold some.
    pub(super) effects: Vec<u32>,
    /// About how many nodes lie between what goes in and what comes out.
    pub(super) depth: u32,
    /// Whether its instances can be asked for more slots later: something in it captures.
    pub(super) lasting: bool,
}

impl PreparedTemplate {
    /// The slots that a node is computed from, in the order of its inputs.
    pub(super) fn operands(&self, node: u32) -> &[Slot] {
        let at = node as usize;
        &self.operands[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

impl Prepared {
    /// Looks at all templates of a program.
    pub(super) fn new(program: &Program) -> Prepared {
        let mut templates: Vec<PreparedTemplate> = program
            .templates
            .iter()
            .map(|template| {
                let mut prepared = PreparedTemplate::default();
                prepared.starts.push(0);
                for node in &template.nodes {
                    operands(&node.operation, &mut prepared.operands);
                    prepared.starts.push(prepared.operands.len() as u32);
                }
                prepared
            })
            .collect();
        for id in bottom_up(program) {
            let facts = facts(program, &templates, id);
            let prepared = &mut templates[id];
            (prepared.effects, prepared.depth, prepared.lasting) = facts;
        }
        Prepared { templates }
    }

    /// The facts about a template.
    pub(super) fn of(&self, id: TemplateId) -> &PreparedTemplate {
        &self.templates[id.0 as usize]
    }
}

/// The slots that an operation needs before it can be set up, each once, in order. Captures and the arguments of instances
/// and of function values are not among them: whoever needs those asks for them.
fn operands(operation: &Operation, into: &mut Vec<Slot>) {
    match operation {
        Operation::Constant(_) | Operation::Closure(_) | Operation::Instance { .. } => {}
        Operation::Exported { .. } => {}
        Operation::List(slots) | Operation::Struct(slots) => into.extend(slots),
        Operation::Call { arguments, .. } => into.extend(arguments),
        Operation::Map(entries) => into.extend(entries.iter().flat_map(|(k, v)| [*k, *v])),
        Operation::Field { of, .. } => into.push(*of),
        Operation::Apply { function, .. } => into.push(*function),
        Operation::If { condition, .. } | Operation::IfStatement { condition, .. } => into.push(*condition),
        Operation::Except { value, .. } => into.push(*value),
        Operation::For { list, .. } => into.push(*list),
        Operation::ForKv { map, .. } => into.push(*map),
        Operation::Resource(statement) => resource_operands(statement, None, into),
        Operation::Collect { statement, exports } => resource_operands(statement, Some(*exports), into),
        Operation::Edge(statement) => edge_operands(statement, into),
        Operation::Panic { condition, message } => {
            into.push(*condition);
            into.extend(*message);
        }
    }
}

fn resource_operands(statement: &ResourceStatement<Slot>, exports: Option<Slot>, into: &mut Vec<Slot>) {
    let start = into.len();
    into.push(statement.name);
    into.extend(exports);
    for field in &statement.fields {
        into.push(field.value);
        into.extend(field.condition);
    }
    for meta in &statement.meta {
        into.push(meta.value);
        into.extend(meta.condition);
    }
    for edge in &statement.edges {
        into.push(edge.endpoint.name);
        into.extend(edge.condition);
    }
    distinct(into, start);
}

fn edge_operands(statement: &EdgeStatement<Slot>, into: &mut Vec<Slot>) {
    let start = into.len();
    into.extend(statement.endpoints.iter().map(|endpoint| endpoint.name));
    distinct(into, start);
}

/// Sorts what came in from `start` on, so that a slot's input is found by a binary search.
fn distinct(slots: &mut Vec<Slot>, start: usize) {
    slots[start..].sort_unstable();
    let mut kept = start;
    for at in start..slots.len() {
        if kept == start || slots[kept - 1] != slots[at] {
            slots[kept] = slots[at];
            kept += 1;
        }
    }
    slots.truncate(kept);
}

/// Templates such that those a template names come before it. A program without recursion has such an order; in one with it,
/// which only a mistake could make, some facts are estimates.
fn bottom_up(program: &Program) -> Vec<usize> {
    let count = program.templates.len();
    let below: Vec<Vec<usize>> = program
        .templates
        .iter()
        .map(|template| {
            let named = template.nodes.iter().flat_map(|node| node.operation.templates());
            named
                .flatten()
                .map(|id| id.0 as usize)
                .filter(|id| *id < count)
                .collect()
        })
        .collect();
    let mut order = Vec::with_capacity(count);
    let mut visited = vec![false; count];
    for start in 0..count {
        let mut stack = vec![(start, 0usize)];
        while let Some((id, at)) = stack.pop() {
            if at == 0 && std::mem::replace(&mut visited[id], true) {
                continue;
            }
            match below[id].get(at) {
                None => order.push(id),
                Some(next) => {
                    stack.push((id, at + 1));
                    if !visited[*next] {
                        stack.push((*next, 0));
                    }
                }
            }
        }
    }
    order
}

fn facts(program: &Program, templates: &[PreparedTemplate], id: usize) -> (Vec<u32>, u32, bool) {
    let template = &program.templates[id];
    let prepared = &templates[id];
    let mut effects = Vec::new();
    let mut lasting = false;
    let inputs = template.inputs as usize;
    let mut depths = vec![0u32; inputs + template.nodes.len()];
    let depth_of = |id: TemplateId| templates.get(id.0 as usize).map_or(0, |t| t.depth);
    for (node, TemplateNode { operation, .. }) in template.nodes.iter().enumerate() {
        let own = match operation {
            Operation::Instance { template, .. } => {
                let inner = templates.get(template.0 as usize);
                if inner.is_some_and(|t| !t.effects.is_empty()) {
                    effects.push(node as u32);
                }
                lasting |= inner.is_none_or(|t| t.lasting);
                depth_of(*template)
            }
            Operation::If { then, otherwise, .. } => {
                lasting = true;
                2 + depth_of(then.template).max(depth_of(otherwise.template))
            }
            Operation::Except { fallback, .. } => {
                lasting = true;
                2 + depth_of(fallback.template)
            }
            Operation::Apply { .. } => {
                lasting = true;
                4
            }
            Operation::Closure(_) => {
                lasting = true;
                0
            }
            Operation::IfStatement { .. } | Operation::For { .. } | Operation::ForKv { .. } => {
                lasting = true;
                effects.push(node as u32);
                0
            }
            Operation::Resource(_)
            | Operation::Collect { .. }
            | Operation::Edge(_)
            | Operation::Panic { .. } => {
                effects.push(node as u32);
                0
            }
            Operation::Constant(_) | Operation::Exported { .. } => 0,
            Operation::List(_)
            | Operation::Map(_)
            | Operation::Struct(_)
            | Operation::Field { .. }
            | Operation::Call { .. } => 1,
        };
        let below = prepared
            .operands(node as u32)
            .iter()
            .chain(arguments(operation))
            .filter_map(|slot| depths.get(slot.0 as usize))
            .max();
        depths[inputs + node] = (below.copied().unwrap_or(0) + own).min(MAXIMUM_DEPTH);
    }
    let result = template.result.and_then(|slot| depths.get(slot.0 as usize));
    (effects, result.copied().unwrap_or(0), lasting)
}

fn arguments(operation: &Operation) -> &[Slot] {
    match operation {
        Operation::Instance { arguments, .. } | Operation::Apply { arguments, .. } => arguments,
        _ => &[],
    }
}
