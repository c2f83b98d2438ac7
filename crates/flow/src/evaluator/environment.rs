//! Environments and scopes.
//!
//! An *environment* is an instance of a template: what each of its slots stands for, filled in when somebody asks. A
//! *scope* is what comes and goes as a whole: the statements of a branch, of an element, of a call. Nodes of a scope that
//! nobody asks for are not made, and nodes that nobody asks for any more go away by themselves.

use std::sync::Arc;

use setpoint_graph::Link;
use setpoint_value::{CallError, Callable, Value};
use smallvec::SmallVec;

use super::arena::NodeId;
use super::outputs::OutputKey;
use crate::{Slot, TemplateId};

/// Things that come and go, under ids that never mean another one.
pub(super) struct Slab<T> {
    entries: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

/// The name of an entry of a [`Slab`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlabId {
    index: u32,
    generation: u32,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab {
            entries: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    pub(super) fn insert(&mut self, entry: T) -> SlabId {
        if let Some(index) = self.free.pop() {
            let (generation, place) = &mut self.entries[index as usize];
            *place = Some(entry);
            return SlabId {
                index,
                generation: *generation,
            };
        }
        let index = u32::try_from(self.entries.len()).expect("fewer than 2³² entries fit into memory");
        self.entries.push((0, Some(entry)));
        SlabId { index, generation: 0 }
    }

    pub(super) fn get(&self, id: SlabId) -> Option<&T> {
        let (generation, entry) = self.entries.get(id.index as usize)?;
        entry.as_ref().filter(|_| *generation == id.generation)
    }

    pub(super) fn get_mut(&mut self, id: SlabId) -> Option<&mut T> {
        let (generation, entry) = self.entries.get_mut(id.index as usize)?;
        entry.as_mut().filter(|_| *generation == id.generation)
    }

    pub(super) fn remove(&mut self, id: SlabId) -> Option<T> {
        let (generation, entry) = self.entries.get_mut(id.index as usize)?;
        if *generation != id.generation {
            return None;
        }
        let entry = entry.take()?;
        *generation = generation.wrapping_add(1);
        self.free.push(id.index);
        Some(entry)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }
}

/// An environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EnvironmentId(pub(super) SlabId);

/// A scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScopeId(pub(super) SlabId);

/// An instance of a template.
pub(super) struct Environment {
    pub(super) template: TemplateId,
    /// Where its nodes belong.
    pub(super) scope: ScopeId,
    /// What each slot stands for.
    pub(super) slots: Box<[Binding]>,
    /// Where its statements stand in program order; empty without statements.
    pub(super) path: OutputKey,
    /// How one gets here.
    pub(super) chain: Option<Arc<Link>>,
    /// Instances put in place inside it, which go when it goes.
    pub(super) children: SmallVec<[EnvironmentId; 2]>,
}

/// What a slot stands for.
#[derive(Clone, Default)]
pub(super) enum Binding {
    /// Nobody has asked yet.
    #[default]
    Unresolved,
    /// What another slot stands for, and the node that that was when it was last looked at.
    Same(EnvironmentId, Slot, Option<NodeId>),
    /// A value that depends on no source.
    Constant(Value),
    /// A node, unless it is gone: then as if nobody had asked.
    Node(NodeId),
    /// An instance: the result of its body, or a way to what it exports.
    Instance(EnvironmentId),
}

/// What comes and goes as a whole.
#[derive(Default)]
pub(super) struct Scope {
    /// The switch that owns it; none for the entry's.
    pub(super) switch: Option<u32>,
    /// Statements, which are there without anybody asking for them.
    pub(super) roots: Vec<u32>,
    /// Elements and arguments, which their owner sets.
    pub(super) given: SmallVec<[u32; 2]>,
    /// Its nodes, and some that are gone.
    pub(super) members: SmallVec<[NodeId; 4]>,
    /// When to look for those that are gone.
    pub(super) prune_at: usize,
    /// Instances in it that are not inside others.
    pub(super) environments: SmallVec<[EnvironmentId; 2]>,
    /// What statements without a source gave.
    pub(super) outputs: Vec<(OutputKey, Arc<setpoint_graph::StatementOutput>)>,
}

/// A function value of a program: a body and the slots that it captures.
pub(super) struct Closure {
    /// Which evaluator it belongs to.
    pub(super) owner: Arc<()>,
    /// Where it was written.
    pub(super) environment: EnvironmentId,
    pub(super) template: TemplateId,
    /// Slots of `environment`.
    pub(super) captures: Arc<[Slot]>,
}

impl Callable for Closure {
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }

    fn call(&self, _: &[Value]) -> Result<Value, CallError> {
        Err(CallError::fatal(
            "a function of the program can only be called by the program",
        ))
    }
}
