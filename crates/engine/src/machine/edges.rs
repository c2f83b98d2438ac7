//! The edges of the running graph, in an arena, with their pending notifications.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use setpoint_graph::{DesiredEdge, ResourceId};

/// A notification over an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refresh {
    None,
    /// Waits for a successful run of the receiver.
    Pending,
    /// The receiver's run in progress has seen it.
    Taken,
    /// Nothing is repaired, and a repair of the sender would send it, or may.
    Foreseen {
        is_certain: bool,
    },
}

#[derive(Debug)]
pub(super) struct Edge {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) desired: Arc<DesiredEdge>,
    pub(super) refresh: Refresh,
    /// The sender repaired something in a run that failed: its next success notifies.
    pub(super) perhaps: bool,
}

impl Edge {
    pub(super) fn notifies(&self) -> bool {
        self.desired.notify
    }

    pub(super) fn sends(&self) -> bool {
        self.desired.sends()
    }

    /// The first of these resources at which the edge begins: itself, or one of the edges of members that it stands for.
    pub(super) fn begins_at<'r, T>(&self, resources: &'r [(ResourceId, T)]) -> Option<&'r ResourceId> {
        let parts = self.desired.parts();
        let begins = |id: &ResourceId| match parts {
            [] => self.desired.from == *id,
            parts => parts.iter().any(|part| part.from == *id),
        };
        resources.iter().map(|(id, _)| id).find(|id| begins(id))
    }
}

#[derive(Debug, Default)]
pub(super) struct Edges {
    arena: Vec<Option<Edge>>,
    free: Vec<u32>,
    by_ends: FxHashMap<(u32, u32), u32>,
}

impl Edges {
    pub(super) fn find(&self, from: u32, to: u32) -> Option<u32> {
        self.by_ends.get(&(from, to)).copied()
    }

    pub(super) fn insert(&mut self, edge: Edge) -> u32 {
        let ends = (edge.from, edge.to);
        let index = match self.free.pop() {
            Some(index) => {
                self.arena[index as usize] = Some(edge);
                index
            }
            None => {
                self.arena.push(Some(edge));
                self.arena.len() as u32 - 1
            }
        };
        self.by_ends.insert(ends, index);
        index
    }

    pub(super) fn remove(&mut self, index: u32) -> Option<Edge> {
        let edge = self.arena.get_mut(index as usize)?.take()?;
        self.free.push(index);
        self.by_ends.remove(&(edge.from, edge.to));
        Some(edge)
    }

    pub(super) fn get(&self, index: u32) -> &Edge {
        self.arena[index as usize]
            .as_ref()
            .expect("edge numbers in vertices are of edges that exist")
    }

    pub(super) fn get_mut(&mut self, index: u32) -> &mut Edge {
        self.arena[index as usize]
            .as_mut()
            .expect("edge numbers in vertices are of edges that exist")
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Edge)> {
        self.arena
            .iter()
            .enumerate()
            .filter_map(|(index, edge)| edge.as_ref().map(|edge| (index as u32, edge)))
    }

    pub(super) fn len(&self) -> usize {
        self.by_ends.len()
    }
}
