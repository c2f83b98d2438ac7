//! Putting templates in place.
//!
//! Nodes are made when somebody asks for them: statements ask for what they use, operations for their operands. What turns
//! out to depend on no source becomes a constant and no node; a branch, loop or call that is decided by constants is put
//! in place like any instance. Everything works on an explicit stack, so that nesting is bounded by memory only.

use std::sync::Arc;

use setpoint_graph::{Cause, Link};
use setpoint_value::{Func, Implementation, Value};
use smallvec::SmallVec;

use super::Evaluator;
use super::arena::{Kind, Reference, Site};
use super::environment::{Binding, Closure, Environment, EnvironmentId, ScopeId};
use super::outputs::OutputKey;
use super::resolution::{Resolution, Want};
use super::sources::SourceNode;
use super::statements::Unrolling;
use super::switches::Body;
use crate::{Operation, Program, Slot, TemplateId, TemplateNode};

/// Something to be done while instantiating.
pub(super) enum Task {
    /// Finds out what a slot stands for.
    Value(EnvironmentId, Slot),
    /// The same, for a slot that stands for an instance.
    Handle(EnvironmentId, Slot),
    /// Puts the statements of an environment in place, from a place in the list of its effects on.
    Effects(EnvironmentId, u32),
    /// Puts the body of a loop over a constant in place for each element.
    Unroll(Box<Unrolling>),
}

/// Where an instance is put.
pub(super) struct InstanceSite {
    pub(super) scope: ScopeId,
    /// The instance whose life it shares; without one it belongs to the scope directly.
    pub(super) parent: Option<EnvironmentId>,
    pub(super) path: OutputKey,
    pub(super) chain: Option<Arc<Link>>,
}

/// Which of its bodies an operation puts in place.
pub(super) enum Part {
    /// It has but one.
    Only,
    /// That for this condition.
    Branch(bool),
    /// That for the element with this index.
    Element(u32),
    /// That for the entry with this key; the number tells it from the others.
    Entry(u32, Value),
}

impl Part {
    /// Orders the bodies of an operation.
    fn number(&self) -> Option<u32> {
        match self {
            Part::Only => None,
            Part::Branch(condition) => Some(u32::from(!condition)),
            Part::Element(number) | Part::Entry(number, _) => Some(*number),
        }
    }
}

impl Evaluator {
    /// A new instance of a template, with its statements to be put in place by [`Evaluator::work`].
    pub(super) fn instance(
        &mut self,
        template: TemplateId,
        inputs: Vec<Binding>,
        place: InstanceSite,
        tasks: &mut Vec<Task>,
    ) -> EnvironmentId {
        let body = self.program.template(template);
        let mut slots = inputs;
        slots.resize(body.inputs as usize + body.nodes.len(), Binding::Unresolved);
        let has_effects = !self.prepared.of(template).effects.is_empty();
        let id = EnvironmentId(self.environments.insert(Environment {
            template,
            scope: place.scope,
            slots: slots.into_boxed_slice(),
            path: place.path,
            chain: place.chain,
            children: SmallVec::new(),
        }));
        match place
            .parent
            .and_then(|parent| self.environments.get_mut(parent.0))
        {
            Some(parent) => parent.children.push(id),
            None => {
                if let Some(scope) = self.scopes.get_mut(place.scope.0) {
                    scope.environments.push(id);
                }
            }
        }
        if has_effects {
            tasks.push(Task::Effects(id, 0));
        }
        id
    }

    /// Forgets an instance that nobody can ask anything of any more, the last that was made at its place.
    pub(super) fn forget_unless_lasting(&mut self, id: EnvironmentId, parent: Option<EnvironmentId>) {
        let Some(environment) = self.environments.get(id.0) else {
            return;
        };
        if self.prepared.of(environment.template).lasting {
            return;
        }
        let scope = environment.scope;
        let siblings = match parent.and_then(|parent| self.environments.get_mut(parent.0)) {
            Some(parent) => &mut parent.children,
            None => match self.scopes.get_mut(scope.0) {
                Some(scope) => &mut scope.environments,
                None => return,
            },
        };
        if let Some(at) = siblings.iter().rposition(|sibling| *sibling == id) {
            siblings.swap_remove(at);
        }
        self.forget(id);
    }

    /// Forgets an instance and those inside it.
    pub(super) fn forget(&mut self, id: EnvironmentId) {
        let mut doomed = vec![id];
        while let Some(id) = doomed.pop() {
            if let Some(environment) = self.environments.remove(id.0) {
                doomed.extend(environment.children);
            }
        }
    }

    /// The captures of a block, as inputs.
    pub(super) fn captures(captures: &[Slot], environment: EnvironmentId) -> impl Iterator<Item = Binding> {
        captures
            .iter()
            .map(move |slot| Binding::Same(environment, *slot, None))
    }

    /// Does all tasks, and those that come up meanwhile.
    pub(super) fn work(&mut self, tasks: &mut Vec<Task>) {
        let program = Arc::clone(&self.program);
        while let Some(task) = tasks.pop() {
            if self.stop.is_stopped() {
                tasks.clear();
                return;
            }
            match task {
                Task::Value(environment, slot) => self.work_value(&program, environment, slot, tasks),
                Task::Handle(environment, slot) => self.work_handle(&program, environment, slot, tasks),
                Task::Effects(environment, at) => self.work_effects(&program, environment, at, tasks),
                Task::Unroll(rest) => self.unroll(&program, rest, tasks),
            }
        }
    }

    fn work_handle(
        &mut self,
        program: &Program,
        environment: EnvironmentId,
        slot: Slot,
        tasks: &mut Vec<Task>,
    ) {
        let Resolution::Unresolved(environment, slot) = self.find(environment, slot, Want::Instance) else {
            return;
        };
        match self.operation(program, environment, slot) {
            Some((_, Operation::Instance { .. })) => {
                self.put_in_place(program, environment, slot, tasks);
            }
            Some((_, Operation::Exported { instance, export })) => {
                let (instance, export) = (*instance, *export);
                self.work_exported(program, environment, slot, (instance, export), true, tasks);
            }
            _ => {}
        }
    }

    /// Lets a slot stand for what an instance exports; asks for the instance first if it is not there, and then for the
    /// slot again.
    fn work_exported(
        &mut self,
        program: &Program,
        environment: EnvironmentId,
        slot: Slot,
        (instance, export): (Slot, u32),
        as_handle: bool,
        tasks: &mut Vec<Task>,
    ) {
        let again = if as_handle {
            Task::Handle(environment, slot)
        } else {
            Task::Value(environment, slot)
        };
        match self.find(environment, instance, Want::Instance) {
            Resolution::Instance(inner) => {
                let exported = self
                    .environments
                    .get(inner.0)
                    .and_then(|found| program.template(found.template).exports.get(export as usize));
                // A slot that is in no template stands for a mistake; looking for it finds that it is gone.
                let exported = exported.copied().unwrap_or(Slot(u32::MAX));
                self.bind(environment, slot, Binding::Same(inner, exported, None));
                tasks.push(again);
            }
            Resolution::Unresolved(..) => {
                tasks.push(again);
                tasks.push(Task::Handle(environment, instance));
            }
            Resolution::Reference(_) | Resolution::Gone => {
                let gone = Binding::Same(environment, Slot(u32::MAX), None);
                self.bind(environment, slot, gone);
            }
        }
    }

    /// Makes the instance behind an operation that is one.
    pub(super) fn put_in_place(
        &mut self,
        program: &Program,
        environment: EnvironmentId,
        slot: Slot,
        tasks: &mut Vec<Task>,
    ) {
        let Some((site, Operation::Instance { template, arguments })) =
            self.operation(program, environment, slot)
        else {
            return;
        };
        let inputs = Self::captures(arguments, environment).collect();
        let place = self.place_inside(program, environment, site.node, *template, Part::Only);
        let id = self.instance(*template, inputs, place, tasks);
        self.bind(environment, slot, Binding::Instance(id));
    }

    /// A place inside another instance, for what an operation of it puts in place.
    pub(super) fn place_inside(
        &self,
        program: &Program,
        environment: EnvironmentId,
        node: u32,
        template: TemplateId,
        part: Part,
    ) -> InstanceSite {
        let around = self
            .environments
            .get(environment.0)
            .expect("an instance is there while its operations are being set up");
        let operation = &program.template(around.template).nodes[node as usize];
        InstanceSite {
            scope: around.scope,
            parent: Some(environment),
            path: self.path_inside(environment, node, template, &part),
            chain: chain_inside(program, operation, template, part, &around.chain),
        }
    }

    /// Where the statements of a body stand in program order that an operation of an instance puts in place.
    pub(super) fn path_inside(
        &self,
        environment: EnvironmentId,
        node: u32,
        template: TemplateId,
        part: &Part,
    ) -> OutputKey {
        let mut path = OutputKey::default();
        if !self.prepared.of(template).effects.is_empty()
            && let Some(around) = self.environments.get(environment.0)
        {
            path.clone_from(&around.path);
            path.push(node);
            path.extend(part.number());
        }
        path
    }

    fn work_value(
        &mut self,
        program: &Program,
        environment: EnvironmentId,
        slot: Slot,
        tasks: &mut Vec<Task>,
    ) {
        let Resolution::Unresolved(environment, slot) = self.find(environment, slot, Want::Value) else {
            return;
        };
        let Some((site, operation)) = self.operation(program, environment, slot) else {
            return;
        };
        match operation {
            Operation::Constant(value) => {
                self.bind(environment, slot, Binding::Constant(value.clone()));
            }
            Operation::Closure(block) => {
                let ty = program.template(site.template).nodes[site.node as usize]
                    .ty
                    .clone();
                let closure = Closure {
                    owner: self.identity.clone(),
                    environment,
                    template: block.template,
                    captures: block.captures.as_slice().into(),
                };
                let value = Value::Func(Func::new(ty, closure));
                self.bind(environment, slot, Binding::Constant(value));
            }
            Operation::Instance { .. } => {
                tasks.push(Task::Value(environment, slot));
                self.put_in_place(program, environment, slot, tasks);
            }
            Operation::Exported { instance, export } => {
                let (instance, export) = (*instance, *export);
                self.work_exported(program, environment, slot, (instance, export), false, tasks);
            }
            _ => {
                tasks.push(Task::Value(environment, slot));
                if let Some(operands) = self.operands(program, environment, site, tasks) {
                    tasks.pop();
                    self.make(program, environment, slot, site, &operands, tasks);
                }
            }
        }
    }

    /// Sets up an operation whose operands are there: as a constant, as a part of its instance, or as a node.
    fn make(
        &mut self,
        program: &Program,
        environment: EnvironmentId,
        slot: Slot,
        site: Site,
        operands: &[Reference],
        tasks: &mut Vec<Task>,
    ) {
        let node = &program.template(site.template).nodes[site.node as usize];
        match &node.operation {
            Operation::If {
                condition: _,
                then,
                otherwise,
            } => match operands.first() {
                Some(Reference::Constant(Value::Bool(chosen))) => {
                    let block = if *chosen { then } else { otherwise };
                    let inputs = Self::captures(&block.captures, environment).collect();
                    self.inline(program, environment, slot, site, block.template, inputs, tasks);
                }
                _ => self.make_switch(environment, slot, site, operands, Body::branch()),
            },
            Operation::Except { value, .. } => match operands.first() {
                Some(Reference::Constant(known)) if !known.is_unknown() => {
                    self.bind(environment, slot, Binding::Same(environment, *value, None));
                }
                _ => self.make_switch(environment, slot, site, operands, Body::except()),
            },
            Operation::Apply { arguments, .. } => {
                let closure = match operands.first() {
                    Some(Reference::Constant(Value::Func(function))) => self.as_closure(function),
                    _ => None,
                };
                match closure {
                    Some((home, template, captures)) if self.fits(template, arguments.len(), &captures) => {
                        let inputs = Self::captures(arguments, environment)
                            .chain(Self::captures(&captures, home))
                            .collect();
                        self.inline(program, environment, slot, site, template, inputs, tasks);
                    }
                    _ => self.make_switch(environment, slot, site, operands, Body::apply()),
                }
            }
            Operation::Call {
                function,
                module_directory,
                ..
            } => match &function.implementation {
                Implementation::Source(_) => {
                    let kind = Kind::Source(Box::new(SourceNode::new(
                        function.clone(),
                        module_directory.clone(),
                    )));
                    self.make_node(environment, slot, site, kind, operands);
                }
                Implementation::Shape(shape) => {
                    self.make_switch(environment, slot, site, operands, Body::shape(shape));
                }
                Implementation::Pure(_) => {
                    self.make_plain(environment, slot, site, node, operands);
                }
            },
            _ => self.make_plain(environment, slot, site, node, operands),
        }
    }

    /// Folds an operation of constants, if that works out; else it is a node, which then fails in its turn.
    fn make_plain(
        &mut self,
        environment: EnvironmentId,
        slot: Slot,
        site: Site,
        node: &crate::TemplateNode,
        operands: &[Reference],
    ) {
        let constants: Option<SmallVec<[Value; 4]>> = operands
            .iter()
            .map(|operand| match operand {
                Reference::Constant(value) => Some(value.clone()),
                Reference::Node(_) => None,
            })
            .collect();
        if let Some(constants) = constants
            && let Ok(value) = self.value_of(node, &constants)
        {
            self.bind(environment, slot, Binding::Constant(value));
            return;
        }
        self.make_node(environment, slot, site, Kind::Plain, operands);
    }

    fn make_node(
        &mut self,
        environment: EnvironmentId,
        slot: Slot,
        site: Site,
        kind: Kind,
        operands: &[Reference],
    ) {
        let (scope, chain) = self.surroundings(environment);
        let index = self.add_node(kind, site, scope, chain, operands);
        self.bind_node(environment, slot, index);
    }

    /// Scope and chain of the nodes of an instance.
    pub(super) fn surroundings(&self, environment: EnvironmentId) -> (ScopeId, Option<Arc<Link>>) {
        match self.environments.get(environment.0) {
            Some(environment) => (environment.scope, environment.chain.clone()),
            None => (self.entry_scope, None),
        }
    }

    /// Puts a body in place of an operation, for good.
    #[expect(
        clippy::too_many_arguments,
        reason = "everything about the operation, and what is to be put there"
    )]
    fn inline(
        &mut self,
        program: &Program,
        environment: EnvironmentId,
        slot: Slot,
        site: Site,
        template: TemplateId,
        inputs: Vec<Binding>,
        tasks: &mut Vec<Task>,
    ) {
        let place = self.place_inside(program, environment, site.node, template, Part::Only);
        tasks.push(Task::Value(environment, slot));
        let id = self.instance(template, inputs, place, tasks);
        let result = program.template(template).result.unwrap_or(Slot(u32::MAX));
        self.bind(environment, slot, Binding::Same(id, result, None));
    }

    /// The parts of a function value of this program whose home is still there.
    pub(super) fn as_closure(&self, function: &Func) -> Option<(EnvironmentId, TemplateId, Arc<[Slot]>)> {
        let closure = function.implementation().as_any().downcast_ref::<Closure>()?;
        let is_ours = Arc::ptr_eq(&closure.owner, &self.identity);
        let is_there = self.environments.get(closure.environment.0).is_some();
        (is_ours && is_there).then(|| (closure.environment, closure.template, closure.captures.clone()))
    }

    /// Whether a body takes so many arguments and captures.
    pub(super) fn fits(&self, template: TemplateId, arguments: usize, captures: &[Slot]) -> bool {
        self.program.template(template).inputs as usize == arguments + captures.len()
    }
}

/// The chain inside a body that an operation puts in place; that around it, where the operation is no step worth telling.
pub(super) fn chain_inside(
    program: &Program,
    node: &TemplateNode,
    template: TemplateId,
    part: Part,
    outer: &Option<Arc<Link>>,
) -> Option<Arc<Link>> {
    let body = program.template(template);
    let (cause, span) = match (&node.operation, part) {
        (Operation::Instance { .. }, _) if body.result.is_none() => {
            (Cause::Include(body.name.clone()), node.span)
        }
        (Operation::Instance { .. } | Operation::Apply { .. } | Operation::Call { .. }, _) => {
            (Cause::Call(body.name.clone()), node.span)
        }
        (Operation::IfStatement { head, .. }, Part::Branch(condition)) => {
            (Cause::Condition(condition), *head)
        }
        (Operation::For { head, .. }, Part::Element(index)) => (Cause::Index(index as usize), *head),
        (Operation::ForKv { head, .. }, Part::Entry(_, key)) => (Cause::Key(key), *head),
        _ => return outer.clone(),
    };
    let outer = outer.clone();
    Some(Arc::new(Link { cause, span, outer }))
}
