//! A topological order, kept while edges come and go.
//!
//! A new edge that agrees with the order costs nothing; one that does not moves only what lies between its ends (Pearce and
//! Kelly, *A dynamic topological sort algorithm for directed acyclic graphs*, 2006). Edges that go need nothing. Many new
//! edges at once, or a cycle the last time, mean one pass over everything.

use std::collections::VecDeque;

use super::{Assembler, SlotId};

impl<K: Ord + Clone> Assembler<K> {
    /// Takes in new edges and finds out whether there is a cycle.
    pub(super) fn order(&mut self, new_edges: &[(SlotId, SlotId)]) {
        if self.cyclic || new_edges.len() > 16 && new_edges.len() > self.working.edges.len() / 8 {
            self.cyclic = !self.order_everything();
            return;
        }
        for (from, to) in new_edges {
            let is_there = |edge: &super::Edge<K>| edge.merged.is_some() && !edge.ordered;
            if self.slots[*from as usize].outgoing.get(to).is_some_and(is_there)
                && !self.order_edge(*from, *to)
            {
                self.cyclic = true;
                return;
            }
        }
    }

    /// Orders all slots; whether that is possible.
    fn order_everything(&mut self) -> bool {
        let mut waiting = self.incoming_counts();
        let mut ready: VecDeque<SlotId> = (0..self.slots.len() as SlotId)
            .filter(|slot| waiting[*slot as usize] == 0)
            .collect();
        let mut position = 0;
        while let Some(slot) = ready.pop_front() {
            let s = &mut self.slots[slot as usize];
            s.position = position;
            position += 1;
            for (to, edge) in &mut s.outgoing {
                if edge.merged.is_none() {
                    continue;
                }
                edge.ordered = true;
                waiting[*to as usize] -= 1;
                if waiting[*to as usize] == 0 {
                    ready.push_back(*to);
                }
            }
        }
        self.next_position = position;
        position == self.slots.len() as u64
    }

    /// How many edges lead to each slot.
    fn incoming_counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.slots.len()];
        for slot in &self.slots {
            for (to, edge) in &slot.outgoing {
                counts[*to as usize] += u32::from(edge.merged.is_some());
            }
        }
        counts
    }

    /// Makes the order respect one more edge; whether that is possible.
    fn order_edge(&mut self, from: SlotId, to: SlotId) -> bool {
        if from == to {
            return false;
        }
        let position = |slot: SlotId| self.slots[slot as usize].position;
        let (low, high) = (position(to), position(from));
        if low < high {
            // What comes after `to`, up to `from`; finding `from` there is a cycle.
            let mut after = vec![to];
            let mut seen = rustc_hash::FxHashSet::from_iter([to]);
            let mut next = 0;
            while let Some(slot) = after.get(next).copied() {
                next += 1;
                for (successor, edge) in &self.slots[slot as usize].outgoing {
                    if *successor == from && edge.ordered {
                        return false;
                    }
                    if edge.ordered && position(*successor) <= high && seen.insert(*successor) {
                        after.push(*successor);
                    }
                }
            }
            // What comes before `from`, down to `to`.
            let mut before = vec![from];
            seen.insert(from);
            let mut next = 0;
            while let Some(slot) = before.get(next).copied() {
                next += 1;
                for predecessor in &self.slots[slot as usize].incoming {
                    let edge = self.slots[*predecessor as usize].outgoing.get(&slot);
                    if edge.is_some_and(|edge| edge.ordered)
                        && position(*predecessor) >= low
                        && seen.insert(*predecessor)
                    {
                        before.push(*predecessor);
                    }
                }
            }
            before.sort_unstable_by_key(|slot| position(*slot));
            after.sort_unstable_by_key(|slot| position(*slot));
            before.append(&mut after);
            let mut places: Vec<u64> = before.iter().map(|slot| position(*slot)).collect();
            places.sort_unstable();
            for (slot, place) in before.into_iter().zip(places) {
                self.slots[slot as usize].position = place;
            }
        }
        if let Some(edge) = self.slots[from as usize].outgoing.get_mut(&to) {
            edge.ordered = true;
        }
        true
    }

    /// A shortest cycle through the first resource, in program order, of each knot of resources that wait for each other.
    /// Each begins with that resource; the edge from the last leads back to it.
    pub(super) fn cycles(&self) -> Vec<Vec<SlotId>> {
        let mut cycles: Vec<Vec<SlotId>> = self
            .knots()
            .into_iter()
            .filter_map(|knot| {
                let first = *knot.iter().min_by_key(|slot| self.place(**slot))?;
                self.way_round(first, &knot.into_iter().collect())
            })
            .collect();
        cycles.sort_by_key(|cycle| self.place(cycle[0]));
        cycles
    }

    /// Where the program first speaks of a resource.
    fn place(&self, slot: SlotId) -> (Option<(&K, u32)>, &crate::ResourceId) {
        let s = &self.slots[slot as usize];
        (s.contributors.first().map(|c| (&c.key, c.index)), &s.id)
    }

    fn way_round(&self, first: SlotId, knot: &rustc_hash::FxHashSet<SlotId>) -> Option<Vec<SlotId>> {
        let mut came_from = rustc_hash::FxHashMap::default();
        let mut queue = VecDeque::from([first]);
        while let Some(slot) = queue.pop_front() {
            let outgoing = self.slots[slot as usize].outgoing.iter();
            let mut successors: Vec<SlotId> = outgoing
                .filter(|(to, edge)| edge.merged.is_some() && knot.contains(to))
                .map(|(to, _)| *to)
                .collect();
            successors.sort_by_key(|slot| self.place(*slot));
            for to in successors {
                if to == first {
                    let mut path = vec![slot];
                    while let Some(before) = path.last().and_then(|last| came_from.get(last)) {
                        path.push(*before);
                    }
                    path.reverse();
                    return Some(path);
                }
                if let std::collections::hash_map::Entry::Vacant(entry) = came_from.entry(to) {
                    entry.insert(slot);
                    queue.push_back(to);
                }
            }
        }
        None
    }

    /// Strongly connected components with a cycle (Tarjan, without recursion).
    fn knots(&self) -> Vec<Vec<SlotId>> {
        const UNSEEN: u32 = u32::MAX;
        let count = self.slots.len();
        let (mut number, mut lowest) = (vec![UNSEEN; count], vec![0; count]);
        let mut on_stack = vec![false; count];
        let (mut stack, mut knots, mut next) = (Vec::new(), Vec::new(), 0);
        for root in 0..count as SlotId {
            if number[root as usize] != UNSEEN {
                continue;
            }
            let mut path: Vec<(SlotId, Vec<SlotId>)> = vec![(root, self.successors(root))];
            (number[root as usize], lowest[root as usize]) = (next, next);
            next += 1;
            stack.push(root);
            on_stack[root as usize] = true;
            while let Some((slot, successors)) = path.last_mut() {
                let slot = *slot;
                if let Some(to) = successors.pop() {
                    if number[to as usize] == UNSEEN {
                        (number[to as usize], lowest[to as usize]) = (next, next);
                        next += 1;
                        stack.push(to);
                        on_stack[to as usize] = true;
                        path.push((to, self.successors(to)));
                    } else if on_stack[to as usize] {
                        lowest[slot as usize] = lowest[slot as usize].min(number[to as usize]);
                    }
                    continue;
                }
                path.pop();
                if let Some((parent, _)) = path.last() {
                    lowest[*parent as usize] = lowest[*parent as usize].min(lowest[slot as usize]);
                }
                if lowest[slot as usize] == number[slot as usize] {
                    let mut knot = Vec::new();
                    while let Some(member) = stack.pop() {
                        on_stack[member as usize] = false;
                        knot.push(member);
                        if member == slot {
                            break;
                        }
                    }
                    if knot.len() > 1 || self.successors(slot).contains(&slot) {
                        knots.push(knot);
                    }
                }
            }
        }
        knots
    }

    fn successors(&self, slot: SlotId) -> Vec<SlotId> {
        let outgoing = self.slots[slot as usize].outgoing.iter();
        outgoing
            .filter(|(_, edge)| edge.merged.is_some())
            .map(|(to, _)| *to)
            .collect()
    }
}
