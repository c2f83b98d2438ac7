//! Who may run: predecessors that are settled, semaphores, the number of jobs, and the order among those that may.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use setpoint_graph::ResourceId;

use super::life::{Life, Queue};
use super::semaphores::{QueueEntry, Wanted};
use super::status::GroupSize;
use super::vertex::Seen;
use super::{EventKind, Machine};

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
    pub(super) fn run_to_fixpoint(&mut self) {
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
        let before = vertex.seen;
        let obstructs = if vertex.life.as_ref().is_some_and(Life::obstructs_others) {
            Some(slot)
        } else {
            vertex.blocked_by()
        };
        let mut now = before;
        now.touched = false;
        now.busy = vertex.is_busy();
        now.blocked = vertex.blocked_by().is_some();
        now.locally_settled = vertex.is_locally_settled();
        now.partly_settled = vertex.is_partly_settled();
        now.obstructs = obstructs;
        now.stand(vertex.standing(), self.now);
        vertex.seen = now;
        count(&mut self.busy, before.busy, now.busy);
        count(&mut self.blocked, before.blocked, now.blocked);
        // Members stand like the resource that they are part of.
        let group = vertex.group_size();
        let group_before = match group {
            GroupSize::ALONE => self.group_sizes.remove(&slot),
            group => self.group_sizes.insert(slot, group),
        };
        let group_before = group_before.unwrap_or(GroupSize::ALONE);
        if before.standing != now.standing || group_before != group {
            for (standing, count) in group_before.standings(before.standing) {
                *self.counts.count_mut(standing) -= count;
            }
            for (standing, count) in group.standings(now.standing) {
                *self.counts.count_mut(standing) += count;
            }
        }
        if vertex.has_failed() {
            self.failed.insert(slot);
        } else {
            self.failed.remove(&slot);
        }

        let opens = |seen: Seen| seen.locally_settled || seen.partly_settled;
        if !before.locally_settled && now.locally_settled || !before.partly_settled && now.partly_settled {
            self.wake(slot);
        } else if opens(before) && !opens(now) {
            let vertex = &mut self.vertices[slot as usize];
            // Only what was found settled can have made others so.
            let was_found = vertex.search.settled_epoch == epoch || before.partly_settled;
            if was_found && !vertex.outgoing.is_empty() {
                self.epoch += 1;
            }
            vertex.search.settled_epoch = 0;
        }

        if now.obstructs != before.obstructs
            && let Some(list) = self.waiters.get(&slot)
        {
            for waiter in list.clone() {
                if self.vertex(waiter).waits_for() == Some(slot) {
                    self.set_blocked(waiter, obstructs);
                }
            }
        }
        if self.vertex(slot).is_undecided() {
            self.recheck.push_back(slot);
        }
    }

    /// Lets everything that waits for a vertex look again.
    pub(super) fn wake(&mut self, slot: u32) {
        for waiter in self.waiters.remove(&slot).unwrap_or_default() {
            if self.vertex(waiter).waits_for() == Some(slot) {
                self.move_to(waiter, Queue::Undecided);
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

    fn set_blocked(&mut self, slot: u32, by: Option<u32>) {
        if self.vertex(slot).blocked_by() == by {
            return;
        }
        self.life_mut(slot).block(by);
        if let Some(by) = by.and_then(|by| self.to_blame(slot, by)) {
            let by = by.to_string();
            self.emit(Some(slot), EventKind::BlockedBy { by });
        }
    }

    /// The resource to blame for what happens in `by`, as something behind it sees it: of a group, a member that failed.
    pub(super) fn to_blame(&self, slot: u32, by: u32) -> Option<ResourceId> {
        let failed = self.vertex(by).failed_members();
        let edge = self.edges.find(by, slot).map(|edge| self.edges.get(edge));
        let direct = edge.and_then(|edge| edge.begins_at(failed));
        let of_group = direct.or(failed.first().map(|(id, _)| id));
        of_group.cloned().or_else(|| self.identity(by))
    }

    /// Whether the end of an edge need not wait for its beginning, as far as that depends on the beginning alone.
    pub(super) fn is_open(&self, edge: u32) -> bool {
        let edge = self.edges.get(edge);
        let from = self.vertex(edge.from);
        let is_partly_open = || from.is_partly_settled() && edge.begins_at(from.failed_members()).is_none();
        from.is_locally_settled() || is_partly_open()
    }

    /// Puts a vertex that must run where it belongs: into the ready queue, or into the list of what it waits for.
    fn consider(&mut self, slot: u32) {
        if !self.vertex(slot).is_undecided() {
            return;
        }
        match self.unsettled_ancestor(slot) {
            Some(ancestor) => {
                self.move_to(slot, Queue::Ancestor(ancestor));
                self.waiters.entry(ancestor).or_default().push(slot);
                let by = self.vertex(ancestor).seen.obstructs;
                self.set_blocked(slot, by);
            }
            None => {
                self.set_blocked(slot, None);
                self.enqueue(slot, false);
            }
        }
    }

    /// Moves a run that must be made between queues. Nothing changes that others see of it.
    fn move_to(&mut self, slot: u32, queue: Queue) {
        if let Some(life) = &mut self.vertices[slot as usize].life {
            life.enter(queue);
        }
    }

    fn enqueue(&mut self, slot: u32, holds_semaphores: bool) {
        let ticket = self.ready.ticket();
        let turn = Queue::Turn {
            ticket,
            holds_semaphores,
        };
        self.move_to(slot, turn);
        let (current, vertex) = (self.ready.round, self.vertex(slot));
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
        if vertex.is_realizing() || vertex.incoming.is_empty() {
            return None;
        }
        let epoch = self.epoch;
        let mut path = vec![slot];
        while let Some(&top) = path.last() {
            let vertex = &mut self.vertices[top as usize];
            if vertex.search.cursor_epoch != epoch {
                vertex.search.cursor_epoch = epoch;
                vertex.search.cursor = 0;
            }
            let Some(&edge) = vertex.incoming.get(vertex.search.cursor as usize) else {
                // A group that failed in part is settled for some of its edges alone.
                if top != slot && vertex.is_locally_settled() {
                    vertex.search.settled_epoch = epoch;
                }
                path.pop();
                if let Some(&below) = path.last() {
                    self.vertices[below as usize].search.cursor += 1;
                }
                continue;
            };
            let from = self.edges.get(edge).from;
            let predecessor = &self.vertices[from as usize];
            if predecessor.search.settled_epoch == epoch {
                self.vertices[top as usize].search.cursor += 1;
            } else if !self.is_open(edge) || path.len() > self.vertices.len() {
                return Some(from);
            } else {
                path.push(from);
            }
        }
        None
    }

    /// Starts what is first in the ready queue, or finds another place for it. False when nothing may start.
    fn dispatch(&mut self) -> bool {
        if self.paused.is_some() || self.running >= self.options.jobs.max(1) {
            return false;
        }
        let Some((round, _, ticket, slot)) = self.ready.queue.pop_first() else {
            return false;
        };
        self.ready.round = self.ready.round.max(round);
        let holds_semaphores = match self.vertex(slot).queue() {
            Some(Queue::Turn {
                ticket: current,
                holds_semaphores,
            }) if current == ticket => holds_semaphores,
            _ => return true,
        };
        self.life_mut(slot).enter(Queue::Undecided);
        if self.unsettled_ancestor(slot).is_some() {
            if holds_semaphores {
                self.give_back_semaphores(slot);
            }
            return true;
        }
        if !holds_semaphores && !self.take_semaphores(slot) {
            return true;
        }
        self.vertex_mut(slot).round = round;
        self.start_run(slot);
        true
    }

    /// Takes a vertex out of everything in which it waits to run.
    pub(super) fn withdraw(&mut self, slot: u32) {
        let Some(queue) = self.vertex(slot).queue() else {
            return;
        };
        self.life_mut(slot).enter(Queue::Undecided);
        match queue {
            Queue::Semaphores { .. } => {
                let wanted = self.wanted_semaphores(slot);
                self.grant_semaphores(&wanted);
            }
            Queue::Turn {
                holds_semaphores: true,
                ..
            } => self.give_back_semaphores(slot),
            Queue::Undecided | Queue::Time(_) | Queue::Ancestor(_) | Queue::Turn { .. } => {}
        }
    }

    fn wanted_semaphores(&mut self, slot: u32) -> Wanted {
        let resource = self.live(slot).clone();
        let for_all = self.options.sema.map(|count| format!(":{count}"));
        let ids = resource.semaphores().chain(for_all.as_deref());
        self.semaphores.wanted(ids)
    }

    /// Whether all were free; if not, it waits for them now.
    fn take_semaphores(&mut self, slot: u32) -> bool {
        if self.live(slot).semaphores().next().is_none() && self.options.sema.is_none() {
            return true;
        }
        let wanted = self.wanted_semaphores(slot);
        let ticket = self.ready.ticket();
        // Queues in which only void places are left are empty.
        for index in wanted.clone() {
            self.first_in_queue(index);
        }
        let taken = self
            .semaphores
            .take_or_queue(&wanted, QueueEntry { slot, ticket });
        if !taken {
            self.move_to(slot, Queue::Semaphores { ticket });
            let semaphores = self.semaphores.ids(&wanted);
            self.emit(Some(slot), EventKind::WaitingForSemaphore { semaphores });
        }
        taken
    }

    pub(super) fn give_back_semaphores(&mut self, slot: u32) {
        let wanted = self.wanted_semaphores(slot);
        self.semaphores.release(&wanted);
        self.grant_semaphores(&wanted);
    }

    fn first_in_queue(&mut self, index: u32) -> Option<QueueEntry> {
        let vertices = &self.vertices;
        self.semaphores.first(index, |entry| {
            let ticket = entry.ticket;
            vertices[entry.slot as usize].queue() != Some(Queue::Semaphores { ticket })
        })
    }

    /// Lets who waits for these semaphores have them, as far as they go.
    fn grant_semaphores(&mut self, freed: &Wanted) {
        let mut look: Vec<u32> = freed.to_vec();
        while let Some(index) = look.pop() {
            if !self.semaphores.is_free(index) {
                continue;
            }
            let Some(first) = self.first_in_queue(index) else {
                continue;
            };
            let wanted = self.wanted_semaphores(first.slot);
            let all = wanted
                .iter()
                .all(|index| self.semaphores.is_free(*index) && self.first_in_queue(*index) == Some(first));
            if !all {
                continue;
            }
            self.semaphores.grant(&wanted);
            self.enqueue(first.slot, true);
            look.extend(wanted);
        }
    }
}

/// Keeps a count in line with what it counts.
fn count(counted: &mut usize, before: bool, now: bool) {
    match (before, now) {
        (false, true) => *counted += 1,
        (true, false) => *counted -= 1,
        _ => {}
    }
}
