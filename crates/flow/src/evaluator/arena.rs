//! The nodes, as a structure of arrays, and the edges between them.
//!
//! An edge is stored at both ends, each knowing its place at the other, so that it goes away in constant time. A node index
//! is used again after the node is gone; a [`NodeId`] carries the generation and so never means another node.

use std::sync::Arc;

use setpoint_graph::Link;
use setpoint_value::Value;
use smallvec::SmallVec;

use super::environment::ScopeId;
use super::outputs::OutputKey;
use super::sources::SourceNode;
use super::state::NodeState;
use super::switches::Switch;
use crate::TemplateId;

/// A node that may be gone by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeId {
    pub(super) index: u32,
    pub(super) generation: u32,
}

/// What a node gets something from.
#[derive(Clone)]
pub(super) enum Input {
    /// Nothing, at the moment.
    Nothing,
    /// A constant.
    Constant(Value),
    /// A node, and the place of this edge among its dependants.
    Node { index: u32, position: u32 },
}

/// Who gets something from a node, and as which of its inputs.
#[derive(Clone, Copy)]
pub(super) struct Dependant {
    pub(super) index: u32,
    pub(super) port: u32,
}

/// Which node of which template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Site {
    pub(super) template: TemplateId,
    pub(super) node: u32,
}

/// What a node does.
pub(super) enum Kind {
    /// There is no node here.
    Free,
    /// Its owner sets its value: an element of a loop, an argument of a scoped call.
    Given,
    /// Computes the operation at its site from its inputs.
    Plain,
    /// A call of a source.
    Source(Box<SourceNode>),
    /// A call of a function value that is no closure; the first input is the function.
    Direct,
    /// Owns scopes and decides by its inputs which there are. Has no value.
    Switch(Box<Switch>),
    /// Shows what a switch (its first input) points at: its second input, or what is in here.
    Join(Box<Join>),
    /// Gathers what the scoped calls of a shape give: the first input is the switch, one more for each slot.
    Gather(Box<Gather>),
    /// A resource or edge statement.
    Output(Box<Output>),
    /// A panic statement.
    Panic,
    /// Something whose inputs are gone; only a mistake in a program can lead here.
    Broken,
}

/// See [`Kind::Join`].
pub(super) struct Join {
    /// Shown while the second input is nothing.
    pub(super) fixed: NodeState,
    /// Go onto every value.
    pub(super) marks: setpoint_value::Marks,
}

/// See [`Kind::Gather`].
#[derive(Default)]
pub(super) struct Gather {
    /// Shown instead of what the shape makes, when there is something.
    pub(super) fixed: Option<NodeState>,
    /// Slots with news since the last time it was computed.
    pub(super) changed: Vec<u32>,
    /// Slots with news that the shape has not been told.
    pub(super) untold: std::collections::BTreeSet<u32>,
    /// Slots without a value.
    pub(super) without: std::collections::BTreeSet<u32>,
}

/// See [`Kind::Output`].
pub(super) struct Output {
    /// Where the statement stands in program order.
    pub(super) key: OutputKey,
    /// What it gave last.
    pub(super) output: Option<Arc<setpoint_graph::StatementOutput>>,
}

/// Nodes and edges.
#[derive(Default)]
pub(super) struct Arena {
    pub(super) kind: Vec<Kind>,
    pub(super) state: Vec<NodeState>,
    pub(super) inputs: Vec<SmallVec<[Input; 2]>>,
    pub(super) dependants: Vec<SmallVec<[Dependant; 2]>>,
    /// Above those of all inputs and of the switch that owns the scope.
    pub(super) height: Vec<u32>,
    pub(super) generation: Vec<u32>,
    pub(super) scope: Vec<ScopeId>,
    pub(super) site: Vec<Site>,
    pub(super) chain: Vec<Option<Arc<Link>>>,
    /// Stays without dependants: a statement, or a node that its owner sets.
    pub(super) pinned: Vec<bool>,
    pub(super) queued: Vec<bool>,
    free: Vec<u32>,
    live: usize,
}

impl Arena {
    /// A node without inputs.
    pub(super) fn add(
        &mut self,
        kind: Kind,
        site: Site,
        scope: ScopeId,
        chain: Option<Arc<Link>>,
        height: u32,
    ) -> u32 {
        self.live += 1;
        if let Some(index) = self.free.pop() {
            let at = index as usize;
            self.kind[at] = kind;
            self.state[at] = NodeState::Pending;
            self.height[at] = height;
            self.scope[at] = scope;
            self.site[at] = site;
            self.chain[at] = chain;
            self.pinned[at] = false;
            return index;
        }
        let index = u32::try_from(self.kind.len()).expect("fewer than 2³² nodes fit into memory");
        self.kind.push(kind);
        self.state.push(NodeState::Pending);
        self.inputs.push(SmallVec::new());
        self.dependants.push(SmallVec::new());
        self.height.push(height);
        self.generation.push(0);
        self.scope.push(scope);
        self.site.push(site);
        self.chain.push(chain);
        self.pinned.push(false);
        self.queued.push(false);
        index
    }

    /// How many nodes there are.
    pub(super) fn live(&self) -> usize {
        self.live
    }

    /// The name of a node that is there.
    pub(super) fn id(&self, index: u32) -> NodeId {
        NodeId {
            index,
            generation: self.generation[index as usize],
        }
    }

    /// Whether a node is still there.
    pub(super) fn is_alive(&self, id: NodeId) -> bool {
        self.generation[id.index as usize] == id.generation
    }

    /// Makes `input` the next input of a node.
    pub(super) fn push_input(&mut self, index: u32, input: Reference) {
        let port = self.inputs[index as usize].len() as u32;
        self.inputs[index as usize].push(Input::Nothing);
        self.set_input(index, port, input);
    }

    /// Fills an input that is nothing.
    pub(super) fn set_input(&mut self, index: u32, port: u32, input: Reference) {
        self.inputs[index as usize][port as usize] = match input {
            Reference::Constant(value) => Input::Constant(value),
            Reference::Node(source) => {
                let dependants = &mut self.dependants[source.index as usize];
                let position = dependants.len() as u32;
                dependants.push(Dependant { index, port });
                Input::Node {
                    index: source.index,
                    position,
                }
            }
        };
    }

    /// Empties an input; the node that was there.
    pub(super) fn clear_input(&mut self, index: u32, port: u32) -> Option<u32> {
        let input = std::mem::replace(&mut self.inputs[index as usize][port as usize], Input::Nothing);
        let Input::Node {
            index: source,
            position,
        } = input
        else {
            return None;
        };
        let dependants = &mut self.dependants[source as usize];
        dependants.swap_remove(position as usize);
        if let Some(moved) = dependants.get(position as usize) {
            let place = &mut self.inputs[moved.index as usize][moved.port as usize];
            if let Input::Node { position: place, .. } = place {
                *place = position;
            }
        }
        Some(source)
    }

    /// Whether nobody needs a node any more.
    pub(super) fn is_idle(&self, index: u32) -> bool {
        let at = index as usize;
        self.dependants[at].is_empty() && !self.pinned[at] && !matches!(self.kind[at], Kind::Free)
    }

    /// Removes a node whose inputs are cleared. Its index is free once it is in no queue.
    pub(super) fn remove(&mut self, index: u32) {
        let at = index as usize;
        self.kind[at] = Kind::Free;
        self.state[at] = NodeState::Pending;
        self.inputs[at].clear();
        self.dependants[at].clear();
        self.chain[at] = None;
        self.generation[at] = self.generation[at].wrapping_add(1);
        self.live -= 1;
        if !self.queued[at] {
            self.free.push(index);
        }
    }

    /// The index of a removed node, found in a queue, can be used again.
    pub(super) fn release(&mut self, index: u32) {
        self.free.push(index);
    }
}

/// What a slot stands for.
#[derive(Clone)]
pub(super) enum Reference {
    /// Depends on no source.
    Constant(Value),
    /// The value of a node.
    Node(NodeId),
}
