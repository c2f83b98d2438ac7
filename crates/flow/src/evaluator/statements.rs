//! Putting statements in place: as outputs and scopes for good where constants decide, else as nodes.

use setpoint_value::Value;

use super::arena::{Kind, Reference, Site};
use super::environment::{Binding, EnvironmentId};
use super::instantiate::{Part, Task};
use super::resolution::{Resolution, Want};
use super::switches::Body;
use super::{Evaluator, computation};
use crate::{Block, Operation, Program, Slot};

/// The rest of a loop over a constant.
pub(super) struct Unrolling {
    environment: EnvironmentId,
    node: u32,
    at: u32,
    /// Indexes or keys, and elements.
    elements: std::vec::IntoIter<(Value, Value)>,
    /// The instance for the element before.
    last: Option<EnvironmentId>,
}

impl Evaluator {
    /// Puts the statements of an instance in place, from a place in the list of its effects on.
    pub(super) fn work_effects(
        &mut self,
        program: &Program,
        environment: EnvironmentId,
        at: u32,
        tasks: &mut Vec<Task>,
    ) {
        let Some(template) = self.environments.get(environment.0).map(|found| found.template) else {
            return;
        };
        let Some(node) = self.prepared.of(template).effects.get(at as usize).copied() else {
            return;
        };
        let site = Site { template, node };
        let operation = &program.template(template).nodes[node as usize].operation;
        if let Operation::Instance { .. } = operation {
            let slot = Slot(program.template(template).inputs + node);
            tasks.push(Task::Effects(environment, at + 1));
            if matches!(
                self.find(environment, slot, Want::Instance),
                Resolution::Unresolved(..)
            ) {
                self.put_in_place(program, environment, slot, tasks);
            }
            return;
        }
        let waiting = tasks.len();
        tasks.push(Task::Effects(environment, at));
        if let Some(operands) = self.operands(program, environment, site, tasks) {
            tasks[waiting] = Task::Effects(environment, at + 1);
            self.make_statement(program, environment, site, operation, &operands, tasks);
        }
    }

    fn make_statement(
        &mut self,
        program: &Program,
        environment: EnvironmentId,
        site: Site,
        operation: &Operation,
        operands: &[Reference],
        tasks: &mut Vec<Task>,
    ) {
        let constant = match operands.first() {
            Some(Reference::Constant(value)) => Some(value),
            _ => None,
        };
        match operation {
            Operation::Resource(_) | Operation::Collect { .. } | Operation::Edge(_) => {
                self.make_output(environment, site, operation, operands);
            }
            Operation::Panic { .. } => {
                let is_constant = operands.iter().all(|o| matches!(o, Reference::Constant(_)));
                if !(is_constant && constant.is_some_and(computation::is_calm)) {
                    self.make_root(environment, site, Kind::Panic, operands);
                }
            }
            Operation::IfStatement { then, otherwise, .. } => match constant.and_then(Value::as_bool) {
                Some(chosen) => {
                    let block = if chosen { then } else { otherwise };
                    if let Some(block) = block {
                        let inputs = Self::captures(&block.captures, environment).collect();
                        let part = Part::Branch(chosen);
                        let place = self.place_inside(program, environment, site.node, block.template, part);
                        self.instance(block.template, inputs, place, tasks);
                    }
                }
                None => self.make_statement_switch(environment, site, operands, Body::statement()),
            },
            Operation::For { body, .. } => match constant.and_then(Value::as_list) {
                Some(list) => {
                    let marks = constant.map(|value| value.unmark().1).unwrap_or_default();
                    let elements = list.iter().enumerate().map(|(index, element)| {
                        (Value::Int(index as i64), element.clone().with_marks(&marks))
                    });
                    self.start_unrolling(environment, site, body, elements.collect(), tasks);
                }
                None => self.make_statement_switch(environment, site, operands, Body::for_loop()),
            },
            Operation::ForKv { body, .. } => match constant.and_then(Value::as_map) {
                Some(map) => {
                    let marks = constant.map(|value| value.unmark().1).unwrap_or_default();
                    let marked = |value: &Value| value.clone().with_marks(&marks);
                    let elements = map.iter().map(|(key, value)| (marked(key), marked(value)));
                    self.start_unrolling(environment, site, body, elements.collect(), tasks);
                }
                None => self.make_statement_switch(environment, site, operands, Body::key_loop()),
            },
            _ => {}
        }
    }

    /// A node that is there without anybody asking for it.
    pub(super) fn make_root(
        &mut self,
        environment: EnvironmentId,
        site: Site,
        kind: Kind,
        operands: &[Reference],
    ) -> u32 {
        let (scope, chain) = self.surroundings(environment);
        let index = self.add_node(kind, site, scope, chain, operands);
        self.arena.pinned[index as usize] = true;
        if let Some(scope) = self.scopes.get_mut(scope.0) {
            scope.roots.push(index);
        }
        index
    }

    fn start_unrolling(
        &mut self,
        environment: EnvironmentId,
        site: Site,
        body: &Block,
        elements: Vec<(Value, Value)>,
        tasks: &mut Vec<Task>,
    ) {
        if self.prepared.of(body.template).effects.is_empty() {
            return;
        }
        tasks.push(Task::Unroll(Box::new(Unrolling {
            environment,
            node: site.node,
            at: 0,
            elements: elements.into_iter(),
            last: None,
        })));
    }

    /// Puts the body of a loop over a constant in place for the next element.
    pub(super) fn unroll(&mut self, program: &Program, mut rest: Box<Unrolling>, tasks: &mut Vec<Task>) {
        if let Some(last) = rest.last.take() {
            self.forget_unless_lasting(last, Some(rest.environment));
        }
        let Some((first, second)) = rest.elements.next() else {
            return;
        };
        let Some(template) = self
            .environments
            .get(rest.environment.0)
            .map(|found| found.template)
        else {
            return;
        };
        let (body, part) = match &program.template(template).nodes[rest.node as usize].operation {
            Operation::For { body, .. } => (body, Part::Element(rest.at)),
            Operation::ForKv { body, .. } => (body, Part::Entry(rest.at, first.clone())),
            _ => return,
        };
        let inputs = [Binding::Constant(first), Binding::Constant(second)]
            .into_iter()
            .chain(Self::captures(&body.captures, rest.environment))
            .collect();
        let place = self.place_inside(program, rest.environment, rest.node, body.template, part);
        let mut inner = Vec::new();
        rest.last = Some(self.instance(body.template, inputs, place, &mut inner));
        rest.at += 1;
        tasks.push(Task::Unroll(rest));
        tasks.append(&mut inner);
    }
}
