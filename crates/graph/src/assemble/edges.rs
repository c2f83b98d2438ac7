//! Edges: both ends, what they carry, and who sends what.

use std::sync::Arc;

use super::{Assembler, Edge, EdgeContributor, SlotId, Touched};
use crate::{DesiredEdge, KindSchema, ParameterType};

/// What is wrong with something that an edge sends.
pub(super) enum Mismatch {
    /// The sender's kind has no such key.
    NoKey,
    /// The receiver's kind receives nothing.
    NotReceiving,
    /// The receiver's kind has no such parameter.
    NoParameter,
    /// The types differ.
    Types(&'static ParameterType, &'static ParameterType),
}

/// Whether what `key` gives fits `parameter`: the same check as at stage *type*, for languages without that stage. An optional or
/// any-typed side is converted when the value moves.
pub(super) fn mismatch(
    sender: &KindSchema,
    receiver: &KindSchema,
    key: &str,
    parameter: &str,
) -> Option<Mismatch> {
    let Some(key) = sender.send_key(key) else {
        return Some(Mismatch::NoKey);
    };
    if !receiver.receives {
        return Some(Mismatch::NotReceiving);
    }
    let Some(parameter) = receiver.parameter(parameter) else {
        return Some(Mismatch::NoParameter);
    };
    let is_loose = |parameter_type: &ParameterType| {
        matches!(parameter_type, ParameterType::Optional(_) | ParameterType::Any)
    };
    let fits = is_loose(key.parameter_type)
        || is_loose(parameter.parameter_type)
        || key.parameter_type == parameter.parameter_type;
    (!fits).then_some(Mismatch::Types(key.parameter_type, parameter.parameter_type))
}

impl<K: Ord + Clone> Assembler<K> {
    pub(super) fn touch_edge(&mut self, from: SlotId, to: SlotId, touched: &mut Touched) {
        if let Some(edge) = self.slots[from as usize].outgoing.get_mut(&to)
            && !std::mem::replace(&mut edge.touched, true)
        {
            touched.edges.push((from, to));
        }
    }

    pub(super) fn attach_edge(
        &mut self,
        key: &K,
        index: u32,
        edge: &DesiredEdge,
        statement: Option<setpoint_diagnostics::Span>,
        touched: &mut Touched,
    ) {
        let (from, to) = (self.slot(&edge.from), self.slot(&edge.to));
        self.slots[to as usize].incoming.insert(from);
        let state = self.slots[from as usize]
            .outgoing
            .entry(to)
            .or_insert_with(|| Edge {
                contributors: Vec::with_capacity(1),
                merged: None,
                ordered: false,
                touched: false,
            });
        let at = state
            .contributors
            .partition_point(|c| (&c.key, c.index) < (key, index));
        state.contributors.insert(
            at,
            EdgeContributor {
                key: key.clone(),
                index,
                notify: edge.notify,
                send: edge.send.clone(),
                span: edge.span,
                statement,
            },
        );
        self.touch_edge(from, to, touched);
    }

    pub(super) fn detach_edge(&mut self, key: &K, index: u32, edge: &DesiredEdge, touched: &mut Touched) {
        let (from, to) = (self.slot(&edge.from), self.slot(&edge.to));
        if let Some(state) = self.slots[from as usize].outgoing.get_mut(&to)
            && let Ok(at) = state
                .contributors
                .binary_search_by(|c| (&c.key, c.index).cmp(&(key, index)))
        {
            state.contributors.remove(at);
        }
        self.touch_edge(from, to, touched);
    }

    /// Whether an end may yet turn up, because some name or block is unknown.
    pub(super) fn may_appear(&self, slot: SlotId) -> bool {
        self.unknown_blocks > 0
            || self
                .unknown_kinds
                .contains_key(&self.slots[slot as usize].id.kind)
    }

    /// Looks at an edge anew: whether its ends are there, and what its statements come to.
    pub(super) fn match_edge(&mut self, from: SlotId, to: SlotId, touched: &mut Touched) {
        let (sender, receiver) = (&self.slots[from as usize], &self.slots[to as usize]);
        let Some(state) = sender.outgoing.get(&to) else {
            return;
        };
        let before = state.merged.clone();
        let is_loose = !(sender.exists() && receiver.exists());
        let missing = |slot: SlotId| !self.slots[slot as usize].exists() && !self.may_appear(slot);
        let merged = match state.contributors.first() {
            Some(first) if !is_loose => Some(Arc::new(merge(
                sender.id.clone(),
                receiver.id.clone(),
                first,
                &state.contributors,
            ))),
            _ => None,
        };
        let is_gone = state.contributors.is_empty();
        let mut is_broken = missing(from) || missing(to);
        if let Some(edge) = &merged
            && !edge.send.is_empty()
            && let (Some(s), Some(r)) = (sender.any(), receiver.any())
        {
            is_broken |= !sender.hidden.is_empty();
            is_broken |= edge
                .send
                .iter()
                .any(|(key, parameter)| mismatch(s.schema, r.schema, key, parameter).is_some());
        }
        self.remember(from, to, is_broken && !is_gone, is_loose && !is_gone);
        if merged != before {
            let ends = (
                self.slots[from as usize].id.clone(),
                self.slots[to as usize].id.clone(),
            );
            match &merged {
                Some(edge) => self.working.edges.insert(ends, edge.clone()),
                None => self.working.edges.remove(&ends),
            };
            self.changed = true;
        }
        let sends = merged.as_ref().is_some_and(|edge| !edge.send.is_empty());
        if sends || before.as_ref().is_some_and(|edge| !edge.send.is_empty()) {
            let receiver = &mut self.slots[to as usize];
            if sends {
                receiver.senders.insert(from);
            } else {
                receiver.senders.remove(&from);
            }
            if !std::mem::replace(&mut receiver.receiver_touched, true) {
                touched.receivers.push(to);
            }
        }
        if is_gone {
            self.slots[from as usize].outgoing.remove(&to);
            self.slots[to as usize].incoming.remove(&from);
        } else if let Some(state) = self.slots[from as usize].outgoing.get_mut(&to) {
            state.touched = false;
            match (&before, &merged) {
                (None, Some(_)) => touched.new_edges.push((from, to)),
                (Some(_), None) => state.ordered = false,
                _ => {}
            }
            if merged != before {
                state.merged = merged;
            }
        }
    }

    fn remember(&mut self, from: SlotId, to: SlotId, is_broken: bool, is_loose: bool) {
        for (set, is_in) in [
            (&mut self.broken_edges, is_broken),
            (&mut self.loose_edges, is_loose),
        ] {
            if is_in {
                set.insert((from, to));
            } else {
                set.remove(&(from, to));
            }
        }
    }

    /// Looks anew at who sends to a resource: a parameter has one sender and key.
    pub(super) fn match_senders(&mut self, to: SlotId) {
        let receiver = &mut self.slots[to as usize];
        receiver.receiver_touched = false;
        let mut taken: Vec<(&Arc<str>, SlotId, &Arc<str>)> = Vec::new();
        let receiver = &self.slots[to as usize];
        for from in &receiver.senders {
            let edge = self.slots[*from as usize].outgoing.get(&to);
            let send = edge.and_then(|edge| edge.merged.as_ref()).map(|edge| &edge.send);
            for (key, parameter) in send.into_iter().flatten() {
                taken.push((parameter, *from, key));
            }
        }
        taken.sort_unstable();
        let is_broken = taken.windows(2).any(|pair| pair[0].0 == pair[1].0);
        if is_broken {
            self.broken_receivers.insert(to);
        } else {
            self.broken_receivers.remove(&to);
        }
    }
}

/// Parallel edges as one: it notifies if any does, and sends what any sends.
fn merge<K>(
    from: crate::ResourceId,
    to: crate::ResourceId,
    first: &EdgeContributor<K>,
    all: &[EdgeContributor<K>],
) -> DesiredEdge {
    let mut send: Vec<(Arc<str>, Arc<str>)> = all.iter().flat_map(|c| c.send.iter().cloned()).collect();
    send.sort_unstable();
    send.dedup();
    DesiredEdge {
        from,
        to,
        notify: all.iter().any(|c| c.notify),
        send,
        span: first.span,
        parts: None,
    }
}
