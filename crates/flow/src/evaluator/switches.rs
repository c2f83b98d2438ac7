//! What decides which scopes there are: `if`, `<|>`, calls of function values.

use std::sync::Arc;

use setpoint_value::{CallError, Func, Marks, Shape, Shared, Type, Value};

use super::Evaluator;
use super::arena::{Input, Join, Kind, Reference, Site};
use super::environment::{Binding, Closure, EnvironmentId, Scope, ScopeId};
use super::instantiate::{InstanceSite, Part, Task, chain_inside};
use super::loops::{ForLoop, KeyLoop};
use super::shapes::ShapeCalls;
use super::state::NodeState;
use crate::{Block, Operation, TemplateId};

/// A node that owns scopes.
pub(super) struct Switch {
    /// The instance that it is part of: where its blocks capture from.
    pub(super) environment: EnvironmentId,
    /// The node that shows what its scopes result in; none for statements.
    pub(super) join: Option<u32>,
    pub(super) body: Body,
}

/// What there is inside, by the form.
pub(super) enum Body {
    /// `if`, as expression or statement.
    Branch {
        is_statement: bool,
        /// Which one, its scope (none for a block that is not there), and the marks of the condition.
        chosen: Option<(bool, Option<ScopeId>, Marks)>,
    },
    /// `<|>`.
    Except { fallback: Option<ScopeId> },
    /// A call of a function value.
    Apply { called: Option<(Func, ScopeId, Marks)> },
    /// `for`.
    For(ForLoop),
    /// `forkv`.
    ForKv(KeyLoop),
    /// A shape.
    Shape(Box<ShapeCalls>),
}

impl Body {
    pub(super) fn branch() -> Body {
        Body::Branch {
            is_statement: false,
            chosen: None,
        }
    }

    pub(super) fn statement() -> Body {
        Body::Branch {
            is_statement: true,
            chosen: None,
        }
    }

    pub(super) fn except() -> Body {
        Body::Except { fallback: None }
    }

    pub(super) fn apply() -> Body {
        Body::Apply { called: None }
    }

    pub(super) fn for_loop() -> Body {
        Body::For(ForLoop::default())
    }

    pub(super) fn key_loop() -> Body {
        Body::ForKv(KeyLoop::default())
    }

    pub(super) fn shape(shape: &Shared<dyn Shape>) -> Body {
        Body::Shape(Box::new(ShapeCalls::new(shape)))
    }

    /// The scopes there are.
    pub(super) fn scopes(&self) -> Box<dyn Iterator<Item = ScopeId> + '_> {
        match self {
            Body::Branch { chosen, .. } => Box::new(chosen.iter().filter_map(|chosen| chosen.1)),
            Body::Except { fallback } => Box::new(fallback.iter().copied()),
            Body::Apply { called } => Box::new(called.iter().map(|called| called.1)),
            Body::For(body) => Box::new(body.scopes()),
            Body::ForKv(body) => Box::new(body.scopes()),
            Body::Shape(body) => Box::new(body.scopes()),
        }
    }

    /// Nodes outside the scopes that are there for the switch alone.
    pub(super) fn pinned(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        match self {
            Body::Shape(body) => Box::new(body.joins()),
            _ => Box::new(std::iter::empty()),
        }
    }
}

/// What an input that decides about scopes says.
pub(super) enum Decided {
    Pending,
    Failed(Arc<super::state::Failure>),
    Unknown(Marks),
    Known(Value, Marks),
}

impl Evaluator {
    /// A switch that results in something, with its join.
    pub(super) fn make_switch(
        &mut self,
        environment: EnvironmentId,
        slot: crate::Slot,
        site: Site,
        operands: &[Reference],
        body: Body,
    ) {
        let (scope, chain) = self.surroundings(environment);
        let kind = match &body {
            Body::Shape(_) => Kind::Gather(Box::default()),
            _ => Kind::Join(Box::new(Join {
                fixed: NodeState::Pending,
                marks: Marks::none(),
            })),
        };
        let switch = Kind::Switch(Box::new(Switch {
            environment,
            join: None,
            body,
        }));
        let switch = self.add_node(switch, site, scope, chain.clone(), operands);
        let join = self.arena.add(kind, site, scope, chain, 0);
        let id = self.arena.id(join);
        // Not computed before the switch says so; it lies where its scopes will probably not reach.
        let depth = self.estimate(site).saturating_add(1);
        self.arena.height[join as usize] = self.arena.height[switch as usize].saturating_add(depth);
        let source = self.arena.id(switch);
        self.arena.push_input(join, Reference::Node(source));
        if matches!(self.arena.kind[join as usize], Kind::Join(_)) {
            self.arena.inputs[join as usize].push(Input::Nothing);
        }
        if let Kind::Switch(switch) = &mut self.arena.kind[switch as usize] {
            switch.join = Some(join);
        }
        if let Some(scope) = self.scopes.get_mut(scope.0)
            && scope.switch.is_some()
        {
            scope.members.push(id);
        }
        self.bind_node(environment, slot, join);
    }

    /// A switch that is a statement.
    pub(super) fn make_statement_switch(
        &mut self,
        environment: EnvironmentId,
        site: Site,
        operands: &[Reference],
        body: Body,
    ) {
        let switch = Switch {
            environment,
            join: None,
            body,
        };
        self.make_root(environment, site, Kind::Switch(Box::new(switch)), operands);
    }

    /// About how high the scopes of a switch reach above it.
    fn estimate(&self, site: Site) -> u32 {
        let depth = |block: &Block| self.prepared.of(block.template).depth;
        1 + match &Self::node_of(&self.program, site).operation {
            Operation::If { then, otherwise, .. } => depth(then).max(depth(otherwise)),
            Operation::Except { fallback, .. } => depth(fallback),
            _ => 2,
        }
    }

    pub(super) fn compute_switch(&mut self, index: u32) {
        self.no_longer_unknown(index);
        let at = index as usize;
        // Taken out while it works: nothing that happens inside asks for it.
        let kind = std::mem::replace(&mut self.arena.kind[at], Kind::Plain);
        let Kind::Switch(mut switch) = kind else {
            self.arena.kind[at] = kind;
            return;
        };
        let Switch {
            environment,
            join,
            body,
        } = &mut *switch;
        let (environment, join) = (*environment, *join);
        match body {
            Body::Branch { is_statement, chosen } => {
                let is_statement = *is_statement;
                self.compute_branch(index, environment, join, is_statement, chosen);
            }
            Body::Except { fallback } => self.compute_except(index, environment, join, fallback),
            Body::Apply { called } => self.compute_apply(index, environment, join, called),
            Body::For(body) => self.compute_for(index, environment, body),
            Body::ForKv(body) => self.compute_key_loop(index, environment, body),
            Body::Shape(body) => self.compute_shape(index, environment, join, body),
        }
        self.arena.kind[at] = Kind::Switch(switch);
    }

    /// What the first input of a switch says.
    pub(super) fn decided(&self, index: u32) -> Decided {
        match self.input(index, 0) {
            NodeState::Pending => Decided::Pending,
            NodeState::Failed(failure) => Decided::Failed(failure),
            NodeState::Value(value) => {
                let (plain, marks) = value.unmark();
                match plain {
                    Value::Unknown(_) => Decided::Unknown(marks),
                    plain => Decided::Known(plain.clone(), marks),
                }
            }
        }
    }

    fn compute_branch(
        &mut self,
        index: u32,
        environment: EnvironmentId,
        join: Option<u32>,
        is_statement: bool,
        chosen: &mut Option<(bool, Option<ScopeId>, Marks)>,
    ) {
        let state = match self.decided(index) {
            Decided::Known(Value::Bool(branch), marks) => {
                if let Some((current, _, current_marks)) = chosen
                    && *current == branch
                {
                    if *current_marks != marks {
                        current_marks.clone_from(&marks);
                        self.mark_join(join, marks);
                    }
                    return;
                }
                let program = Arc::clone(&self.program);
                let block = match &Self::node_of(&program, self.arena.site[index as usize]).operation {
                    Operation::If { then, otherwise, .. } => Some(if branch { then } else { otherwise }),
                    Operation::IfStatement { then, otherwise, .. } => {
                        if branch {
                            then.as_ref()
                        } else {
                            otherwise.as_ref()
                        }
                    }
                    _ => None,
                };
                // The new one first, so that what both capture stays.
                let built = block.map(|block| {
                    let scope = self.scope_of(index);
                    let inputs = Self::captures(&block.captures, environment).collect();
                    let (body, part) = (block.template, Part::Branch(branch));
                    let result = self.build_in(index, scope, environment, body, inputs, part, !is_statement);
                    (scope, result)
                });
                let old = chosen.take();
                *chosen = Some((branch, built.as_ref().map(|built| built.0), marks.clone()));
                if let (Some(join), Some(result)) = (join, built.and_then(|built| built.1)) {
                    self.show(join, result, marks);
                }
                if let Some((_, Some(scope), _)) = old {
                    self.tear_down(scope);
                }
                return;
            }
            Decided::Known(..) => self.fail(index, CallError::fatal("the condition is not a bool")),
            Decided::Pending => NodeState::Pending,
            Decided::Failed(failure) => NodeState::Failed(failure),
            Decided::Unknown(marks) => NodeState::Value(self.unknown_of(index).with_marks(&marks)),
        };
        self.settle(index, environment, join, state);
        if let Some((_, Some(scope), _)) = chosen.take() {
            self.tear_down(scope);
        }
    }

    fn compute_except(
        &mut self,
        index: u32,
        environment: EnvironmentId,
        join: Option<u32>,
        fallback: &mut Option<ScopeId>,
    ) {
        let Some(join) = join else {
            return;
        };
        match self.input(index, 0) {
            NodeState::Failed(failure) if failure.is_catchable() => {
                if fallback.is_some() {
                    return;
                }
                let program = Arc::clone(&self.program);
                let operation = &Self::node_of(&program, self.arena.site[index as usize]).operation;
                if let Operation::Except { fallback: block, .. } = operation {
                    let inputs = Self::captures(&block.captures, environment).collect();
                    let scope = self.scope_of(index);
                    let result = self.build_in(
                        index,
                        scope,
                        environment,
                        block.template,
                        inputs,
                        Part::Only,
                        true,
                    );
                    *fallback = Some(scope);
                    if let Some(result) = result {
                        self.show(join, result, Marks::none());
                    }
                }
                return;
            }
            NodeState::Value(value) if value.is_unknown() => {
                let (_, marks) = value.unmark();
                let unknown = self.unknown_of(index).with_marks(&marks);
                self.show_fixed(join, NodeState::Value(unknown));
            }
            NodeState::Value(value) => {
                let reference = match self.arena.inputs[index as usize].first() {
                    Some(Input::Node { index, .. }) => Reference::Node(self.arena.id(*index)),
                    _ => Reference::Constant(value),
                };
                self.show(join, reference, Marks::none());
            }
            state => self.show_fixed(join, state),
        }
        if let Some(scope) = fallback.take() {
            self.tear_down(scope);
        }
    }

    fn compute_apply(
        &mut self,
        index: u32,
        environment: EnvironmentId,
        join: Option<u32>,
        called: &mut Option<(Func, ScopeId, Marks)>,
    ) {
        let state = match self.decided(index) {
            Decided::Known(Value::Func(function), marks) => {
                if let Some((current, _, current_marks)) = called
                    && *current == function
                {
                    if *current_marks != marks {
                        current_marks.clone_from(&marks);
                        self.mark_join(join, marks);
                    }
                    return;
                }
                let program = Arc::clone(&self.program);
                let operation = &Self::node_of(&program, self.arena.site[index as usize]).operation;
                let arguments: Vec<Binding> = match operation {
                    Operation::Apply { arguments, .. } => Self::captures(arguments, environment).collect(),
                    _ => Vec::new(),
                };
                let old = called.take();
                // Statements of a body have the same place in program order as those of the one before.
                let mut late = old.map(|(_, scope, _)| scope);
                if let Some((_, template, _)) = self.as_closure(&function)
                    && !self.prepared.of(template).effects.is_empty()
                    && let Some(scope) = late.take()
                {
                    self.tear_down(scope);
                }
                let scope = self.scope_of(index);
                match self.build_call(index, scope, environment, &function, arguments) {
                    Ok(result) => {
                        *called = Some((function, scope, marks.clone()));
                        if let Some(join) = join {
                            self.show(join, result, marks);
                        }
                    }
                    Err(error) => {
                        self.tear_down(scope);
                        let state = self.fail(index, error);
                        self.settle(index, environment, join, state);
                    }
                }
                if let Some(scope) = late {
                    self.tear_down(scope);
                }
                return;
            }
            Decided::Known(..) => self.fail(index, CallError::fatal("what is called is not a function")),
            Decided::Pending => NodeState::Pending,
            Decided::Failed(failure) => NodeState::Failed(failure),
            Decided::Unknown(marks) => NodeState::Value(self.unknown_of(index).with_marks(&marks)),
        };
        self.settle(index, environment, join, state);
        if let Some((_, scope, _)) = called.take() {
            self.tear_down(scope);
        }
    }

    /// Puts a call of a function value into a scope of a switch; what it results in.
    pub(super) fn build_call(
        &mut self,
        owner: u32,
        scope: ScopeId,
        environment: EnvironmentId,
        function: &Func,
        arguments: Vec<Binding>,
    ) -> Result<Reference, CallError> {
        let any = function.implementation().as_any();
        if any.downcast_ref::<Closure>().is_some() {
            let Some((home, template, captures)) = self.as_closure(function) else {
                return Err(CallError::fatal(
                    "the function value belongs to a part of the program that is gone",
                ));
            };
            if !self.fits(template, arguments.len(), &captures) {
                return Err(CallError::fatal(
                    "the function value takes another number of arguments",
                ));
            }
            let mut inputs = arguments;
            inputs.extend(Self::captures(&captures, home));
            let result = self.build_in(owner, scope, environment, template, inputs, Part::Only, true);
            return Ok(result.unwrap_or(Reference::Constant(Value::Null(Type::Dynamic))));
        }
        let mut operands = vec![Reference::Constant(Value::Func(function.clone()))];
        for argument in arguments {
            match argument {
                Binding::Constant(value) => operands.push(Reference::Constant(value)),
                Binding::Node(id) => operands.push(Reference::Node(id)),
                Binding::Same(environment, slot, _) => operands.push(self.demand(environment, slot)),
                Binding::Unresolved | Binding::Instance(_) => {}
            }
        }
        let at = owner as usize;
        let (site, chain) = (self.arena.site[at], self.arena.chain[at].clone());
        let call = self.add_node(Kind::Direct, site, scope, chain, &operands);
        Ok(Reference::Node(self.arena.id(call)))
    }

    /// An empty scope of a switch.
    pub(super) fn scope_of(&mut self, owner: u32) -> ScopeId {
        ScopeId(self.scopes.insert(Scope {
            switch: Some(owner),
            ..Scope::default()
        }))
    }

    /// Puts an instance into a scope of a switch.
    #[expect(
        clippy::too_many_arguments,
        reason = "what to put in place, where, and what for"
    )]
    pub(super) fn build_in(
        &mut self,
        owner: u32,
        scope: ScopeId,
        environment: EnvironmentId,
        template: TemplateId,
        inputs: Vec<Binding>,
        part: Part,
        wants_result: bool,
    ) -> Option<Reference> {
        let program = Arc::clone(&self.program);
        let site = self.arena.site[owner as usize];
        let path = self.path_inside(environment, site.node, template, &part);
        let operation = Self::node_of(&program, site);
        let chain = chain_inside(
            &program,
            operation,
            template,
            part,
            &self.arena.chain[owner as usize],
        );
        let place = InstanceSite {
            scope,
            parent: None,
            path,
            chain,
        };
        let mut tasks = Vec::new();
        let instance = self.instance(template, inputs, place, &mut tasks);
        let result = program.template(template).result.filter(|_| wants_result);
        tasks.extend(result.map(|slot| Task::Value(instance, slot)));
        self.work(&mut tasks);
        let result = if wants_result {
            let slot = result.unwrap_or(crate::Slot(u32::MAX));
            Some(self.reference(instance, slot))
        } else {
            None
        };
        self.forget_unless_lasting(instance, None);
        result
    }

    /// An unknown of the type of a node.
    pub(super) fn unknown_of(&self, index: u32) -> Value {
        Value::unknown(
            Self::node_of(&self.program, self.arena.site[index as usize])
                .ty
                .clone(),
        )
    }

    /// What a switch comes to that has no scope to show: its join shows it; a statement notes it.
    pub(super) fn settle(
        &mut self,
        index: u32,
        environment: EnvironmentId,
        join: Option<u32>,
        state: NodeState,
    ) {
        match (join, state) {
            (Some(join), state) => self.show_fixed(join, state),
            (None, NodeState::Failed(failure)) => self.not_caught(index, failure),
            (None, NodeState::Value(_)) => self.unknown_block(index, environment),
            (None, NodeState::Pending) => {}
        }
    }

    /// Lets a join show what something in a scope has.
    pub(super) fn show(&mut self, join: u32, reference: Reference, marks: Marks) {
        let is_there = matches!(
            (&self.arena.inputs[join as usize][1], &reference),
            (Input::Node { index, .. }, Reference::Node(id)) if *index == id.index
        );
        if !is_there {
            let old = self.arena.clear_input(join, 1);
            if let Reference::Node(id) = &reference {
                let height = self.arena.height[id.index as usize].saturating_add(1);
                self.raise(join, height);
            }
            self.arena.set_input(join, 1, reference);
            if let Some(old) = old {
                self.drop_if_idle(old);
            }
        }
        if let Kind::Join(shown) = &mut self.arena.kind[join as usize] {
            shown.marks = marks;
        }
        self.enqueue(join);
    }

    /// Lets a join show a state.
    pub(super) fn show_fixed(&mut self, join: u32, state: NodeState) {
        if let Kind::Gather(gather) = &mut self.arena.kind[join as usize] {
            gather.fixed = Some(state);
            self.enqueue(join);
            return;
        }
        let old = self.arena.clear_input(join, 1);
        if let Kind::Join(shown) = &mut self.arena.kind[join as usize] {
            shown.fixed = state;
            shown.marks = Marks::none();
        }
        self.enqueue(join);
        if let Some(old) = old {
            self.drop_if_idle(old);
        }
    }

    fn mark_join(&mut self, join: Option<u32>, marks: Marks) {
        if let Some(join) = join
            && let Kind::Join(shown) = &mut self.arena.kind[join as usize]
        {
            shown.marks = marks;
            self.enqueue(join);
        }
    }

    pub(super) fn compute_join(&mut self, index: u32) {
        let Kind::Join(join) = &self.arena.kind[index as usize] else {
            return;
        };
        let state = match &self.arena.inputs[index as usize][1] {
            Input::Nothing => join.fixed.clone(),
            Input::Constant(_) | Input::Node { .. } => match self.input(index, 1) {
                NodeState::Value(value) => NodeState::Value(value.with_marks(&join.marks)),
                state => state,
            },
        };
        self.set_state(index, state);
    }
}
