//! A topological order that is kept while edges come, so that an edge that would close a circle is noticed.
//!
//! After Pearce and Kelly, «A dynamic topological sort algorithm for directed acyclic graphs» (2006): an edge that agrees
//! with the order costs nothing, any other moves only what lies between its ends in the order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_graph::ResourceId;

#[derive(Debug, Default)]
pub(super) struct Order {
    index: FxHashMap<ResourceId, u32>,
    nodes: Vec<Node>,
    /// Places of nodes without edges, which are in no index.
    free: Vec<u32>,
    next_position: u64,
}

#[derive(Debug)]
struct Node {
    id: ResourceId,
    position: u64,
    after: Vec<u32>,
    before: Vec<u32>,
}

impl Order {
    fn node(&mut self, id: &ResourceId) -> u32 {
        if let Some(node) = self.index.get(id) {
            return *node;
        }
        self.next_position += 1;
        let fresh = Node {
            id: id.clone(),
            position: self.next_position,
            after: Vec::new(),
            before: Vec::new(),
        };
        let node = self.free.pop().unwrap_or(self.nodes.len() as u32);
        match self.nodes.get_mut(node as usize) {
            Some(free) => *free = fresh,
            None => self.nodes.push(fresh),
        }
        self.index.insert(id.clone(), node);
        node
    }

    /// The place of a resource that has edges.
    pub(super) fn place(&self, id: &ResourceId) -> Option<u32> {
        self.index.get(id).copied()
    }

    /// Places are smaller than this.
    pub(super) fn places(&self) -> usize {
        self.nodes.len()
    }

    /// Smaller than that of all whom edges lead to from there.
    pub(super) fn position(&self, place: u32) -> u64 {
        self.nodes[place as usize].position
    }

    /// Whom edges lead to from a place, or from whom edges lead to it.
    pub(super) fn next(&self, place: u32, forward: bool) -> &[u32] {
        let node = &self.nodes[place as usize];
        if forward { &node.after } else { &node.before }
    }

    /// The same of a resource.
    pub(super) fn neighbours(&self, id: &ResourceId, forward: bool) -> impl Iterator<Item = &ResourceId> {
        let next = self.place(id).map_or(&[][..], |place| self.next(place, forward));
        next.iter().map(|next| &self.nodes[*next as usize].id)
    }

    /// The order of written edges.
    ///
    /// # Errors
    /// A circle: each comes before the next, and the last before the first.
    pub(super) fn of<'a>(
        edges: impl Iterator<Item = (&'a ResourceId, &'a ResourceId)>,
    ) -> Result<Order, Vec<ResourceId>> {
        let mut order = Order::default();
        for (from, to) in edges {
            let (from, to) = (order.node(from), order.node(to));
            order.nodes[from as usize].after.push(to);
            order.nodes[to as usize].before.push(from);
        }
        let mut left: Vec<usize> = order.nodes.iter().map(|node| node.before.len()).collect();
        let roots = (0..order.nodes.len() as u32).filter(|node| left[*node as usize] == 0);
        // Of those that may come next the first by name, so that edges found later mostly agree.
        let by_name = |order: &Order, node: u32| Reverse((order.nodes[node as usize].id.clone(), node));
        let mut ready: BinaryHeap<Reverse<(ResourceId, u32)>> =
            roots.map(|node| by_name(&order, node)).collect();
        let mut position = 0;
        while let Some(Reverse((_, node))) = ready.pop() {
            position += 1;
            order.nodes[node as usize].position = position;
            for &next in &order.nodes[node as usize].after {
                left[next as usize] -= 1;
                if left[next as usize] == 0 {
                    ready.push(by_name(&order, next));
                }
            }
        }
        if position < order.nodes.len() as u64 {
            return Err(order.circle(&left));
        }
        order.next_position = position;
        Ok(order)
    }

    /// A circle among what is left over; each of these has a predecessor that is left over too.
    fn circle(&self, left: &[usize]) -> Vec<ResourceId> {
        let remaining = (0..self.nodes.len() as u32).filter(|node| left[*node as usize] > 0);
        let Some(first) = remaining.min_by_key(|node| &self.nodes[*node as usize].id) else {
            return Vec::new();
        };
        let mut way = vec![first];
        let mut seen: FxHashMap<u32, usize> = FxHashMap::default();
        seen.insert(first, 0);
        loop {
            let at = *way.last().expect("the way begins with one");
            let before = self.nodes[at as usize].before.iter().copied();
            let Some(previous) = before.filter(|node| left[*node as usize] > 0).min() else {
                return Vec::new();
            };
            if let Some(&start) = seen.get(&previous) {
                let circle = way[start..].iter().rev();
                let mut circle: Vec<ResourceId> =
                    circle.map(|node| self.nodes[*node as usize].id.clone()).collect();
                // Wherever the search met it, it is shown from its first name on.
                let least = (0..circle.len()).min_by_key(|at| &circle[*at]).unwrap_or(0);
                circle.rotate_left(least);
                return circle;
            }
            seen.insert(previous, way.len());
            way.push(previous);
        }
    }

    /// Adds an edge.
    ///
    /// # Errors
    /// The way from `to` back to `from`, both included, when the edge would close a circle; it is not added then.
    pub(super) fn add(&mut self, from: &ResourceId, to: &ResourceId) -> Result<(), Vec<ResourceId>> {
        let (from, to) = (self.node(from), self.node(to));
        if from == to {
            return Err(vec![self.nodes[from as usize].id.clone()]);
        }
        let lower = self.nodes[to as usize].position;
        let upper = self.nodes[from as usize].position;
        if upper > lower {
            self.reorder(from, to, lower, upper)?;
        }
        self.nodes[from as usize].after.push(to);
        self.nodes[to as usize].before.push(from);
        Ok(())
    }

    /// Removes an edge, once if it was added twice. The order stays as it is.
    pub(super) fn remove(&mut self, from: &ResourceId, to: &ResourceId) {
        let (Some(&from), Some(&to)) = (self.index.get(from), self.index.get(to)) else {
            return;
        };
        let take = |list: &mut Vec<u32>, node: u32| {
            if let Some(at) = list.iter().position(|other| *other == node) {
                list.swap_remove(at);
            }
        };
        take(&mut self.nodes[from as usize].after, to);
        take(&mut self.nodes[to as usize].before, from);
        for node in [from, to] {
            let Node {
                id, after, before, ..
            } = &self.nodes[node as usize];
            if after.is_empty() && before.is_empty() && self.index.remove(id).is_some() {
                self.free.push(node);
            }
        }
    }

    fn reorder(&mut self, from: u32, to: u32, lower: u64, upper: u64) -> Result<(), Vec<ResourceId>> {
        // What comes after `to` up to where `from` is.
        let mut parent: FxHashMap<u32, u32> = FxHashMap::default();
        let mut forward = vec![to];
        let mut look = vec![to];
        parent.insert(to, to);
        while let Some(node) = look.pop() {
            for &next in &self.nodes[node as usize].after {
                if next == from {
                    let mut way = vec![from, node];
                    let mut at = node;
                    while at != to {
                        at = parent[&at];
                        way.push(at);
                    }
                    way.reverse();
                    return Err(way
                        .iter()
                        .map(|node| self.nodes[*node as usize].id.clone())
                        .collect());
                }
                if self.nodes[next as usize].position < upper && !parent.contains_key(&next) {
                    parent.insert(next, node);
                    forward.push(next);
                    look.push(next);
                }
            }
        }
        // What comes before `from` down to where `to` is.
        let mut seen: FxHashSet<u32> = FxHashSet::default();
        let mut backward = vec![from];
        look.push(from);
        seen.insert(from);
        while let Some(node) = look.pop() {
            for &previous in &self.nodes[node as usize].before {
                if self.nodes[previous as usize].position > lower && seen.insert(previous) {
                    backward.push(previous);
                    look.push(previous);
                }
            }
        }
        let position = |nodes: &[Node], node: &u32| nodes[*node as usize].position;
        forward.sort_by_key(|node| position(&self.nodes, node));
        backward.sort_by_key(|node| position(&self.nodes, node));
        let moved: Vec<u32> = backward.into_iter().chain(forward).collect();
        let mut places: Vec<u64> = moved.iter().map(|node| position(&self.nodes, node)).collect();
        places.sort_unstable();
        for (node, place) in moved.into_iter().zip(places) {
            self.nodes[node as usize].position = place;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> ResourceId {
        ResourceId::new("k", name)
    }

    #[test]
    fn an_edge_that_would_close_a_circle_is_refused_with_the_way() {
        let mut order = Order::default();
        for (from, to) in [("c", "d"), ("b", "c"), ("a", "b"), ("x", "a")] {
            order.add(&id(from), &id(to)).unwrap();
        }
        let way = order.add(&id("d"), &id("a")).unwrap_err();
        assert_eq!(way, ["a", "b", "c", "d"].map(id));
    }

    #[test]
    fn a_written_circle_is_shown() {
        let edges = [("x", "a"), ("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")].map(|(a, b)| (id(a), id(b)));
        let circle = Order::of(edges.iter().map(|(a, b)| (a, b))).unwrap_err();
        assert_eq!(circle.len(), 3);
        for (at, from) in circle.iter().enumerate() {
            let to = &circle[(at + 1) % 3];
            assert!(edges.iter().any(|edge| (&edge.0, &edge.1) == (from, to)));
        }
    }

    #[test]
    fn random_edges_agree_with_a_search() {
        let mut state = 7u64;
        let mut random = move |bound: u64| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) % bound
        };
        for _ in 0..50 {
            let mut order = Order::default();
            let mut edges: Vec<(u64, u64)> = Vec::new();
            for _ in 0..60 {
                let (from, to) = (random(15), random(15));
                if edges.contains(&(from, to)) {
                    continue;
                }
                let mut reached = vec![to];
                let mut at = 0;
                while at < reached.len() {
                    let next: Vec<u64> = edges.iter().filter(|e| e.0 == reached[at]).map(|e| e.1).collect();
                    reached.extend(
                        next.into_iter()
                            .filter(|n| !reached.contains(n))
                            .collect::<Vec<_>>(),
                    );
                    at += 1;
                }
                let closes = reached.contains(&from);
                let added = order.add(&id(&from.to_string()), &id(&to.to_string()));
                assert_eq!(added.is_err(), closes);
                if added.is_ok() {
                    edges.push((from, to));
                }
            }
        }
    }
}
