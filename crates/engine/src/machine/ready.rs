//! Who may run: predecessors that are settled, semaphores, the number of jobs, and the order among those that may.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::semaphores::{Place, Wanted};
use super::vertex::{NONE, Phase};
use super::{EventKind, Machine, some};

/// Vertices that wait for an unsettled ancestor, by that ancestor. An entry whose vertex waits elsewhere by now is void.
pub(super) type Waiters = FxHashMap<u32, Vec<u32>>;

/// Vertices that may run but for the number of jobs, a pause, or semaphores that were not asked for yet.
///
/// Longest remaining path first, then oldest. What has run in this round comes after all that have not, so that a vertex
/// that is always ready keeps nobody waiting for more than a round.
#[derive(Debug, Default)]
pub(super) struct Ready {
    queue: BTreeSet<(u64, Reverse<u32>, u64, u32)>,
    round: u64,
    tickets: u64,
}

impl Ready {
    fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }
}

impl Machine {
    /// Looks at everything that changed until nothing moves any more.
    pub(super) fn settle(&mut self) {
        loop {
            if let Some(slot) = self.touched.pop() {
                self.reconcile(slot);
            } else if let Some(slot) = self.recheck.pop_front() {
                self.consider(slot);
            } else if !self.dispatch() {
                break;
            }
        }
    }

    /// Brings what is remembered about a vertex elsewhere in line with the vertex.
    fn reconcile(&mut self, slot: u32) {
        let epoch = self.epoch;
        let vertex = &mut self.vertices[slot as usize];
        vertex.flags.touched = false;
        if vertex.blocked_by != NONE
            && (vertex.phase != Phase::Watching || !vertex.flags.dirty || vertex.flags.leaving)
        {
            vertex.blocked_by = NONE;
        }

        let busy = vertex.is_busy();
        if busy != std::mem::replace(&mut vertex.flags.busy, busy) {
            if busy {
                self.busy += 1;
            } else {
                self.busy -= 1;
            }
        }
        let blocked = vertex.blocked_by != NONE;
        if blocked != std::mem::replace(&mut vertex.flags.blocked, blocked) {
            if blocked {
                self.blocked += 1;
            } else {
                self.blocked -= 1;
            }
        }
        if vertex.has_failed() {
            self.failed.insert(slot);
        } else {
            self.failed.remove(&slot);
        }

        let settled = vertex.is_locally_settled();
        if settled != std::mem::replace(&mut vertex.flags.locally_settled, settled) {
            if settled {
                self.wake(slot);
            } else {
                // Only what was found settled can have made others so.
                if vertex.settled_epoch == epoch && !vertex.outgoing.is_empty() {
                    self.epoch += 1;
                }
                vertex.settled_epoch = 0;
            }
        }

        let vertex = &mut self.vertices[slot as usize];
        let obstructs = if vertex.obstructs_others() {
            slot
        } else {
            vertex.blocked_by
        };
        if obstructs != std::mem::replace(&mut vertex.obstructs, obstructs)
            && let Some(list) = self.waiters.get(&slot)
        {
            for waiter in list.clone() {
                if self.vertex(waiter).waiting_on == slot {
                    self.set_blocked(waiter, obstructs);
                }
            }
        }
        if self.vertex(slot).is_eligible() {
            self.recheck.push_back(slot);
        }
    }

    /// Lets everything that waits for a vertex look again.
    pub(super) fn wake(&mut self, slot: u32) {
        for waiter in self.waiters.remove(&slot).unwrap_or_default() {
            if self.vertex(waiter).waiting_on == slot {
                self.vertices[waiter as usize].waiting_on = NONE;
                self.recheck.push_back(waiter);
            }
        }
    }

    /// Lets everything that waits for any vertex look again: edges went away.
    pub(super) fn wake_all(&mut self) {
        let mut ancestors: Vec<u32> = self.waiters.keys().copied().collect();
        ancestors.sort_unstable();
        for ancestor in ancestors {
            self.wake(ancestor);
        }
    }

    fn set_blocked(&mut self, slot: u32, by: u32) {
        if self.vertex(slot).blocked_by == by {
            return;
        }
        self.vertex_mut(slot).blocked_by = by;
        if let Some(by) = some(by) {
            let by = self.show(by);
            self.emit(Some(slot), EventKind::BlockedBy { by });
        }
    }

    /// Puts a dirty vertex where it belongs: into the ready queue, or into the list of what it waits for.
    fn consider(&mut self, slot: u32) {
        if !self.vertex(slot).is_eligible() {
            return;
        }
        match self.unsettled_ancestor(slot) {
            Some(ancestor) => {
                self.vertices[slot as usize].waiting_on = ancestor;
                self.waiters.entry(ancestor).or_default().push(slot);
                let by = self.vertex(ancestor).obstructs;
                self.set_blocked(slot, by);
            }
            None => {
                self.set_blocked(slot, NONE);
                self.enqueue(slot);
            }
        }
    }

    pub(super) fn enqueue(&mut self, slot: u32) {
        let ticket = self.ready.ticket();
        let current = self.ready.round;
        let vertex = self.vertex_mut(slot);
        vertex.flags.ready = true;
        vertex.ticket = ticket;
        let round = if vertex.round == current {
            current + 1
        } else {
            current
        };
        let height = vertex.height;
        self.ready.queue.insert((round, Reverse(height), ticket, slot));
    }

    /// Looks upwards for an ancestor that is not settled by itself. None: all predecessors are settled.
    pub(super) fn unsettled_ancestor(&mut self, slot: u32) -> Option<u32> {
        // It runs before a swap takes it away; its predecessors were settled when that was decided.
        let vertex = self.vertex(slot);
        if vertex.flags.realizing || vertex.incoming.is_empty() {
            return None;
        }
        let epoch = self.epoch;
        let mut path = vec![slot];
        while let Some(&top) = path.last() {
            let vertex = &mut self.vertices[top as usize];
            if vertex.cursor_epoch != epoch {
                vertex.cursor_epoch = epoch;
                vertex.cursor = 0;
            }
            let Some(&edge) = vertex.incoming.get(vertex.cursor as usize) else {
                if top != slot {
                    vertex.settled_epoch = epoch;
                }
                path.pop();
                if let Some(&below) = path.last() {
                    self.vertices[below as usize].cursor += 1;
                }
                continue;
            };
            let from = self.edges.get(edge).from;
            let predecessor = &self.vertices[from as usize];
            if predecessor.settled_epoch == epoch {
                self.vertices[top as usize].cursor += 1;
            } else if !predecessor.is_locally_settled() || path.len() > self.vertices.len() {
                return Some(from);
            } else {
                path.push(from);
            }
        }
        None
    }

    /// Starts what is first in the ready queue, or finds another place for it. False when nothing may start.
    fn dispatch(&mut self) -> bool {
        if self.paused || self.running >= self.options.jobs.max(1) {
            return false;
        }
        let Some((round, _, ticket, slot)) = self.ready.queue.pop_first() else {
            return false;
        };
        self.ready.round = self.ready.round.max(round);
        let vertex = self.vertex(slot);
        if !vertex.flags.ready || vertex.ticket != ticket {
            return true;
        }
        self.vertex_mut(slot).flags.ready = false;
        if !self.vertex(slot).is_eligible() || self.unsettled_ancestor(slot).is_some() {
            self.give_back_semaphores(slot);
            return true;
        }
        if !self.vertex(slot).flags.holding && !self.take_semaphores(slot) {
            return true;
        }
        self.vertex_mut(slot).round = round;
        self.start_run(slot);
        true
    }

    /// Takes a vertex out of everything in which it waits to run.
    pub(super) fn withdraw(&mut self, slot: u32) {
        let vertex = self.vertex_mut(slot);
        vertex.flags.ready = false;
        vertex.waiting_on = NONE;
        vertex.hold = super::Hold::None;
        if std::mem::replace(&mut vertex.flags.queued, false) {
            let wanted = self.wanted_semaphores(slot);
            self.grant_semaphores(&wanted);
        }
        if !self.vertex(slot).flags.running {
            self.give_back_semaphores(slot);
        }
    }

    fn wanted_semaphores(&mut self, slot: u32) -> Wanted {
        let resource = self.live(slot).clone();
        let for_all = self.options.sema.map(|count| format!(":{count}"));
        let ids = resource
            .meta
            .sema
            .iter()
            .map(String::as_str)
            .chain(for_all.as_deref());
        self.semaphores.wanted(ids)
    }

    /// Whether all were free; if not, it waits for them now.
    fn take_semaphores(&mut self, slot: u32) -> bool {
        if self.live(slot).meta.sema.is_empty() && self.options.sema.is_none() {
            return true;
        }
        let wanted = self.wanted_semaphores(slot);
        let ticket = self.ready.ticket();
        // Queues in which only void places are left are empty.
        for index in wanted.clone() {
            self.first_in_queue(index);
        }
        let taken = self.semaphores.take_or_queue(&wanted, Place { slot, ticket });
        let vertex = self.vertex_mut(slot);
        vertex.ticket = ticket;
        vertex.flags.holding = taken;
        vertex.flags.queued = !taken;
        if !taken {
            let semaphores = self.semaphores.ids(&wanted);
            self.emit(Some(slot), EventKind::WaitingForSemaphore { semaphores });
        }
        taken
    }

    pub(super) fn give_back_semaphores(&mut self, slot: u32) {
        if std::mem::replace(&mut self.vertex_mut(slot).flags.holding, false) {
            let wanted = self.wanted_semaphores(slot);
            self.semaphores.release(&wanted);
            self.grant_semaphores(&wanted);
        }
    }

    fn first_in_queue(&mut self, index: u32) -> Option<Place> {
        let vertices = &self.vertices;
        self.semaphores.first(index, |place| {
            let vertex = &vertices[place.slot as usize];
            !vertex.flags.queued || vertex.ticket != place.ticket
        })
    }

    /// Lets who waits for these semaphores have them, as far as they go.
    fn grant_semaphores(&mut self, freed: &Wanted) {
        let mut look: Vec<u32> = freed.to_vec();
        while let Some(index) = look.pop() {
            if !self.semaphores.is_free(index) {
                continue;
            }
            let Some(place) = self.first_in_queue(index) else {
                continue;
            };
            let wanted = self.wanted_semaphores(place.slot);
            let all = wanted
                .iter()
                .all(|index| self.semaphores.is_free(*index) && self.first_in_queue(*index) == Some(place));
            if !all {
                continue;
            }
            self.semaphores.grant(&wanted);
            let vertex = self.vertex_mut(place.slot);
            vertex.flags.queued = false;
            vertex.flags.holding = true;
            self.enqueue(place.slot);
            look.extend(wanted);
        }
    }
}
