//! Functions that build scopes: the calls that a shape asks for, one a slot, and what it makes of their results.

use std::sync::Arc;

use setpoint_value::{
    CallError, Func, Marks, ScopeArgument, ScopeBuilder, Shape, ShapeState, Shared, Value, check_size,
};

use super::Evaluator;
use super::arena::{Input, Join, Kind, NodeId, Reference};
use super::computation::{guarded, redacted, unknown_result};
use super::environment::{Binding, EnvironmentId, ScopeId};
use super::state::NodeState;
use crate::Operation;

/// What there is inside a call of a shape.
pub(super) struct ShapeCalls {
    shape: Shared<dyn Shape>,
    state: Option<Box<dyn ShapeState>>,
    slots: Vec<ScopedCall>,
    /// Marks of the arguments, which go onto the result.
    marks: Marks,
}

/// A scoped call.
struct ScopedCall {
    function: Func,
    arguments: Vec<Argument>,
    scope: ScopeId,
    /// The node that shows its result, whatever scope that lies in.
    join: u32,
}

#[derive(Clone, Copy, PartialEq)]
enum Argument {
    /// A node that is given the value.
    Given(u32),
    /// The result of the call in this slot.
    Result(usize),
}

impl ShapeCalls {
    pub(super) fn new(shape: &Shared<dyn Shape>) -> ShapeCalls {
        ShapeCalls {
            shape: shape.clone(),
            state: None,
            slots: Vec::new(),
            marks: Marks::none(),
        }
    }

    pub(super) fn scopes(&self) -> impl Iterator<Item = ScopeId> {
        self.slots.iter().map(|slot| slot.scope)
    }

    pub(super) fn joins(&self) -> impl Iterator<Item = u32> {
        self.slots.iter().map(|slot| slot.join)
    }
}

/// Writes down what a shape asks for.
#[derive(Default)]
struct Wishes(Vec<Wish>);

enum Wish {
    Call(usize, Func, Vec<ScopeArgument>),
    Truncate(usize),
}

impl ScopeBuilder for Wishes {
    fn call(&mut self, slot: usize, function: &Func, arguments: &[ScopeArgument]) {
        self.0
            .push(Wish::Call(slot, function.clone(), arguments.to_vec()));
    }

    fn truncate(&mut self, first: usize) {
        self.0.push(Wish::Truncate(first));
    }
}

impl Evaluator {
    pub(super) fn compute_shape(
        &mut self,
        index: u32,
        environment: EnvironmentId,
        join: Option<u32>,
        body: &mut ShapeCalls,
    ) {
        let Some(join) = join else {
            return;
        };
        let state = match self.gather(index) {
            Err(state) => state,
            Ok(values) => match self.update_shape(index, environment, join, body, &values) {
                Ok(None) => {
                    if let Kind::Gather(gather) = &mut self.arena.kind[join as usize] {
                        gather.fixed = None;
                    }
                    self.enqueue(join);
                    return;
                }
                Ok(Some(unknown)) => NodeState::Value(unknown),
                Err(error) => self.fail(index, redacted(error, &values)),
            },
        };
        self.show_fixed(join, state);
        body.state = None;
        self.truncate_slots(join, body, 0);
    }

    /// Tells a shape its arguments and does what it asks for; or answers what stands for its unknown result.
    fn update_shape(
        &mut self,
        index: u32,
        environment: EnvironmentId,
        join: u32,
        body: &mut ShapeCalls,
        values: &[Value],
    ) -> Result<Option<Value>, CallError> {
        let node = Self::node_of(&self.program, self.arena.site[index as usize]);
        let Operation::Call { function, .. } = &node.operation else {
            return Err(CallError::fatal("this function is not a shape"));
        };
        let flags = |at: usize| function.flags(at);
        let is_unknown = |(at, value): (usize, &Value)| !flags(at).allow_unknown && value.is_unknown();
        if values.iter().enumerate().any(is_unknown) {
            return Ok(Some(unknown_result(function, values, &node.ty)));
        }
        body.marks = Marks::none();
        let mut arguments = Vec::with_capacity(values.len());
        for (at, value) in values.iter().enumerate() {
            if flags(at).allow_marked {
                arguments.push(value.clone());
            } else {
                arguments.push(value.unmark_deep(&mut body.marks));
            }
        }
        let mut wishes = Wishes::default();
        let shape = body.shape.clone();
        let state = &mut body.state;
        guarded(function, || {
            state
                .get_or_insert_with(|| shape.start())
                .update(&arguments, &mut wishes)
        })?;
        let mut highest = 0;
        for wish in wishes.0 {
            match wish {
                Wish::Truncate(first) => self.truncate_slots(join, body, first),
                Wish::Call(slot, function, arguments) => {
                    self.set_slot(index, environment, join, body, slot, function, &arguments)?;
                    let shown = body.slots[slot].join;
                    highest = highest.max(self.arena.height[shown as usize]);
                }
            }
        }
        // Once for all slots; what a slot is raised later it takes along.
        self.raise(join, highest.saturating_add(1));
        Ok(None)
    }

    fn truncate_slots(&mut self, join: u32, body: &mut ShapeCalls, first: usize) {
        if first >= body.slots.len() {
            return;
        }
        for (at, slot) in body.slots.drain(first..).enumerate().rev() {
            self.arena.clear_input(join, (first + at) as u32 + 1);
            self.arena.pinned[slot.join as usize] = false;
            self.drop_if_idle(slot.join);
            self.tear_down(slot.scope);
        }
        self.arena.inputs[join as usize].truncate(first + 1);
        if let Kind::Gather(gather) = &mut self.arena.kind[join as usize] {
            let first = first as u32;
            gather.without.split_off(&first);
            gather.untold.split_off(&first);
            gather.changed.retain(|slot| *slot < first);
        }
    }

    /// Sees to it that a slot holds this call.
    #[expect(clippy::too_many_arguments, reason = "where, and what the shape asked for")]
    fn set_slot(
        &mut self,
        index: u32,
        environment: EnvironmentId,
        join: u32,
        body: &mut ShapeCalls,
        at: usize,
        function: Func,
        arguments: &[ScopeArgument],
    ) -> Result<(), CallError> {
        if at > body.slots.len() {
            return Err(CallError::fatal("a slot is used before those in front of it"));
        }
        let is_earlier = |argument: &ScopeArgument| match argument {
            ScopeArgument::Value(_) => true,
            ScopeArgument::Result(slot) => *slot < at,
        };
        if !arguments.iter().all(is_earlier) {
            return Err(CallError::fatal("a call needs the result of a later one"));
        }
        if let Some(slot) = body.slots.get(at)
            && slot.function == function
            && slot.arguments.len() == arguments.len()
            && slot.arguments.iter().zip(arguments).all(is_same_kind)
        {
            let given: Vec<Argument> = slot.arguments.clone();
            for (old, new) in given.into_iter().zip(arguments) {
                if let (Argument::Given(given), ScopeArgument::Value(value)) = (old, new) {
                    self.give(given, value.clone());
                }
            }
            return Ok(());
        }
        let scope = self.scope_of(index);
        let mut kept = Vec::with_capacity(arguments.len());
        let mut bindings = Vec::with_capacity(arguments.len());
        for argument in arguments {
            match argument {
                ScopeArgument::Value(value) => {
                    let given = self.add_given(index, scope, value.clone());
                    kept.push(Argument::Given(given));
                    bindings.push(Binding::Node(self.arena.id(given)));
                }
                ScopeArgument::Result(slot) => {
                    kept.push(Argument::Result(*slot));
                    bindings.push(Binding::Node(self.arena.id(body.slots[*slot].join)));
                }
            }
        }
        let result = match self.build_call(index, scope, environment, &function, bindings) {
            Ok(result) => result,
            Err(error) => {
                self.tear_down(scope);
                return Err(error);
            }
        };
        match body.slots.get_mut(at) {
            Some(slot) => {
                slot.function = function;
                slot.arguments = kept;
                let old = std::mem::replace(&mut slot.scope, scope);
                let shown = slot.join;
                self.show(shown, result, Marks::none());
                self.tear_down(old);
            }
            None => {
                let shown = self.add_slot_join(index, join, at);
                self.show(shown, result, Marks::none());
                body.slots.push(ScopedCall {
                    function,
                    arguments: kept,
                    scope,
                    join: shown,
                });
            }
        }
        Ok(())
    }

    /// The node that shows the result of a slot, and the gathering node's edge to it.
    fn add_slot_join(&mut self, index: u32, join: u32, at: usize) -> u32 {
        let place = index as usize;
        let (site, scope) = (self.arena.site[place], self.arena.scope[place]);
        let chain = self.arena.chain[place].clone();
        let kind = Kind::Join(Box::new(Join {
            fixed: NodeState::Pending,
            marks: Marks::none(),
        }));
        // Above the switch, which may give it another scope to show, but without an edge from it: that would keep the switch
        // when nobody asks for the shape's result any more.
        let shown = self.add_node(kind, site, scope, chain, &[]);
        let height = self.arena.height[place].saturating_add(1);
        self.raise(shown, height);
        self.arena.inputs[shown as usize].extend([Input::Nothing, Input::Nothing]);
        self.arena.pinned[shown as usize] = true;
        let id: NodeId = self.arena.id(shown);
        self.arena.push_input(join, Reference::Node(id));
        if let Kind::Gather(gather) = &mut self.arena.kind[join as usize] {
            gather.changed.push(at as u32);
        }
        shown
    }

    pub(super) fn compute_gather(&mut self, index: u32) {
        let at = index as usize;
        let kind = std::mem::replace(&mut self.arena.kind[at], Kind::Plain);
        let Kind::Gather(mut gather) = kind else {
            self.arena.kind[at] = kind;
            return;
        };
        for slot in std::mem::take(&mut gather.changed) {
            gather.untold.insert(slot);
            match self.input(index, slot as usize + 1) {
                NodeState::Value(_) => gather.without.remove(&slot),
                NodeState::Pending | NodeState::Failed(_) => gather.without.insert(slot),
            };
        }
        let failed = gather.without.iter().find_map(|slot| {
            let state = self.input(index, *slot as usize + 1);
            matches!(state, NodeState::Failed(_)).then_some(state)
        });
        let state = match (&gather.fixed, failed) {
            (Some(fixed), _) => fixed.clone(),
            (None, Some(failed)) => failed,
            (None, None) if !gather.without.is_empty() => NodeState::Pending,
            (None, None) => {
                let changed: Vec<usize> = std::mem::take(&mut gather.untold)
                    .into_iter()
                    .map(|slot| slot as usize)
                    .collect();
                self.collect(index, &changed)
            }
        };
        self.arena.kind[at] = Kind::Gather(gather);
        self.set_state(index, state);
    }

    /// Lets a shape make its result.
    fn collect(&mut self, index: u32, changed: &[usize]) -> NodeState {
        let Some(Input::Node { index: switch, .. }) = self.arena.inputs[index as usize].first() else {
            return NodeState::Pending;
        };
        let switch = *switch as usize;
        let kind = std::mem::replace(&mut self.arena.kind[switch], Kind::Plain);
        let Kind::Switch(mut owner) = kind else {
            self.arena.kind[switch] = kind;
            return NodeState::Pending;
        };
        let mut state = NodeState::Pending;
        if let super::switches::Body::Shape(body) = &mut owner.body
            && let Some(shape) = &mut body.state
        {
            let results = |slot: usize| match self.input(index, slot + 1) {
                NodeState::Value(value) => value,
                NodeState::Pending | NodeState::Failed(_) => Value::Null(setpoint_value::Type::Dynamic),
            };
            let operation = self.operation_of(index);
            let name: Arc<str> = match operation {
                Operation::Call { function, .. } => function.to_string().into(),
                _ => "a shape".into(),
            };
            state = match guarded(&name, || {
                let value = shape.collect(&results, changed)?;
                check_size(&value)?;
                Ok(value)
            }) {
                Ok(value) => NodeState::Value(value.with_marks(&body.marks)),
                Err(error) => {
                    let is_secret = !body.marks.is_empty();
                    let hidden: &[Value] = &[Value::Bool(true).with_marks(&body.marks)];
                    let arguments = if is_secret { hidden } else { &[] };
                    self.fail(index, redacted(error, arguments))
                }
            };
        }
        self.arena.kind[switch] = Kind::Switch(owner);
        self.log_shape(switch as u32, &state);
        state
    }

    /// Tells who searches for a mistake what a call of a shape has given.
    fn log_shape(&self, switch: u32, state: &NodeState) {
        let given = match state {
            NodeState::Value(value) => Ok(value),
            NodeState::Failed(failure) => Err(&failure.error),
            NodeState::Pending => return,
        };
        if let (Operation::Call { function, .. }, true) = (
            self.operation_of(switch),
            self.capabilities
                .as_ref()
                .is_some_and(|machine| machine.log().is_some()),
        ) && let Ok(arguments) = self.gather(switch)
        {
            self.log_call(function, &arguments, Some(given));
        }
    }
}

fn is_same_kind((old, new): (&Argument, &ScopeArgument)) -> bool {
    match (old, new) {
        (Argument::Given(_), ScopeArgument::Value(_)) => true,
        (Argument::Result(a), ScopeArgument::Result(b)) => a == b,
        _ => false,
    }
}
