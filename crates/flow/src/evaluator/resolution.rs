//! Finding out what a slot stands for, as far as somebody has asked for it already.

use setpoint_value::Value;
use smallvec::SmallVec;

use super::Evaluator;
use super::arena::{Kind, NodeId, Reference, Site};
use super::environment::{Binding, EnvironmentId};
use super::instantiate::Task;
use crate::{Operation, Program, Slot};

/// What a slot is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    /// Its value; that of an instance is the result of its body.
    Value,
    /// The instance that it stands for.
    Instance,
}

/// Where looking for a slot ends.
pub(super) enum Resolution {
    Reference(Reference),
    Instance(EnvironmentId),
    /// At an operation that nobody has asked for yet.
    Unresolved(EnvironmentId, Slot),
    /// At an instance that is gone, or a slot that never was.
    Gone,
}

impl Evaluator {
    /// What a slot stands for, making the nodes that this takes.
    pub(super) fn demand(&mut self, environment: EnvironmentId, slot: Slot) -> Reference {
        let mut tasks = vec![Task::Value(environment, slot)];
        self.work(&mut tasks);
        self.reference(environment, slot)
    }

    /// What a slot that was asked for stands for; a broken node if it cannot be found.
    pub(super) fn reference(&mut self, environment: EnvironmentId, slot: Slot) -> Reference {
        if let Resolution::Reference(reference) = self.find(environment, slot, Want::Value) {
            return reference;
        }
        let (site, scope, chain) = match self.environments.get(environment.0) {
            Some(found) => {
                let template = self.program.template(found.template);
                let last = (template.nodes.len() as u32).saturating_sub(1);
                let node = slot.0.saturating_sub(template.inputs).min(last);
                let template = found.template;
                (Site { template, node }, found.scope, found.chain.clone())
            }
            None => {
                let template = self.program.entry;
                (Site { template, node: 0 }, self.entry_scope, None)
            }
        };
        let index = self.add_node(Kind::Broken, site, scope, chain, &[]);
        Reference::Node(self.arena.id(index))
    }

    /// Follows a slot as far as it has been asked for.
    pub(super) fn find(&mut self, environment: EnvironmentId, slot: Slot, want: Want) -> Resolution {
        let (mut at, mut steps) = ((environment, slot), 0u32);
        let found = loop {
            let Some(current) = self.environments.get(at.0.0) else {
                break Resolution::Gone;
            };
            match current.slots.get(at.1.0 as usize) {
                None => break Resolution::Gone,
                Some(Binding::Unresolved) => {
                    // An input is never waiting to be made.
                    let is_input = at.1.0 < self.program.template(current.template).inputs;
                    break if is_input {
                        Resolution::Gone
                    } else {
                        Resolution::Unresolved(at.0, at.1)
                    };
                }
                Some(Binding::Constant(value)) => {
                    break Resolution::Reference(Reference::Constant(value.clone()));
                }
                Some(Binding::Node(id)) if self.arena.is_alive(*id) => {
                    break Resolution::Reference(Reference::Node(*id));
                }
                Some(Binding::Node(_)) => {
                    // An operation can be set up again; an input that its owner set does not come back.
                    let is_input = at.1.0 < self.program.template(current.template).inputs;
                    break if is_input {
                        Resolution::Gone
                    } else {
                        Resolution::Unresolved(at.0, at.1)
                    };
                }
                Some(Binding::Instance(id)) if want == Want::Instance => break Resolution::Instance(*id),
                Some(Binding::Instance(id)) => {
                    let inner = self.environments.get(id.0);
                    match inner.and_then(|inner| self.program.template(inner.template).result) {
                        Some(result) => at = (*id, result),
                        None => break Resolution::Gone,
                    }
                }
                Some(Binding::Same(_, _, Some(id))) if self.arena.is_alive(*id) => {
                    break Resolution::Reference(Reference::Node(*id));
                }
                Some(Binding::Same(next, slot, _)) => {
                    at = (*next, *slot);
                    steps += 1;
                }
            }
        };
        if steps > 1
            && let Resolution::Reference(Reference::Node(id)) = &found
        {
            self.shorten(environment, slot, *id);
        }
        found
    }

    /// Notes along the way what was found at its end, so that long ways are walked once.
    fn shorten(&mut self, environment: EnvironmentId, slot: Slot, id: NodeId) {
        let mut at = (environment, slot);
        while let Some(current) = self.environments.get_mut(at.0.0)
            && let Some(Binding::Same(next, slot, cached)) = current.slots.get_mut(at.1.0 as usize)
        {
            *cached = Some(id);
            at = (*next, *slot);
        }
    }

    pub(super) fn bind(&mut self, environment: EnvironmentId, slot: Slot, binding: Binding) {
        if let Some(environment) = self.environments.get_mut(environment.0)
            && let Some(place) = environment.slots.get_mut(slot.0 as usize)
        {
            *place = binding;
        }
    }

    /// Lets a slot stand for a node.
    pub(super) fn bind_node(&mut self, environment: EnvironmentId, slot: Slot, index: u32) {
        let id = self.arena.id(index);
        self.bind(environment, slot, Binding::Node(id));
    }

    /// The operation behind a slot that is no input, with its number.
    pub(super) fn operation<'a>(
        &self,
        program: &'a Program,
        environment: EnvironmentId,
        slot: Slot,
    ) -> Option<(Site, &'a Operation)> {
        let id = self.environments.get(environment.0)?.template;
        let template = program.template(id);
        let node = slot.0.checked_sub(template.inputs)?;
        let operation = &template.nodes.get(node as usize)?.operation;
        Some((Site { template: id, node }, operation))
    }

    /// The operands of a node, if all are there; if not, what is missing is asked for.
    pub(super) fn operands(
        &mut self,
        program: &Program,
        environment: EnvironmentId,
        site: Site,
        tasks: &mut Vec<Task>,
    ) -> Option<SmallVec<[Reference; 4]>> {
        let before = tasks.len();
        let count = self.prepared.of(site.template).operands(site.node).len();
        let mut references = SmallVec::with_capacity(count);
        let mut is_broken = false;
        for at in 0..count {
            let operand = self.prepared.of(site.template).operands(site.node)[at];
            match self.find(environment, operand, Want::Value) {
                Resolution::Reference(reference) => references.push(reference),
                Resolution::Unresolved(home, slot) => match self.operation(program, home, slot) {
                    // Most of what is missing in a program's text is a literal.
                    Some((_, Operation::Constant(value))) => {
                        self.bind(home, slot, Binding::Constant(value.clone()));
                        references.push(Reference::Constant(value.clone()));
                    }
                    _ => tasks.push(Task::Value(home, slot)),
                },
                Resolution::Instance(_) | Resolution::Gone => {
                    is_broken = true;
                    references.push(Reference::Constant(Value::Bool(false)));
                }
            }
        }
        if tasks.len() > before {
            tasks[before..].reverse();
            return None;
        }
        if is_broken {
            for (at, reference) in references.iter_mut().enumerate() {
                let operand = self.prepared.of(site.template).operands(site.node)[at];
                *reference = self.reference(environment, operand);
            }
        }
        Some(references)
    }
}
