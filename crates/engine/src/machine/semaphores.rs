//! Semaphores: all of a vertex's at once or none, first come first served.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The semaphores of one vertex, without repeats.
pub(super) type Wanted = SmallVec<[u32; 4]>;

/// One entry of a queue: whose, and which of its requests (an older one is void).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QueueEntry {
    pub(super) slot: u32,
    pub(super) ticket: u64,
}

/// All semaphores of the process; they outlive graphs.
#[derive(Debug, Default)]
pub(super) struct Semaphores {
    list: Vec<Semaphore>,
    by_id: FxHashMap<Arc<str>, u32>,
}

#[derive(Debug)]
struct Semaphore {
    id: Arc<str>,
    count: u32,
    held: u32,
    queue: VecDeque<QueueEntry>,
}

impl Semaphores {
    /// The semaphores of these ids.
    pub(super) fn wanted<'a>(&mut self, ids: impl IntoIterator<Item = &'a str>) -> Wanted {
        let mut wanted = Wanted::new();
        for id in ids {
            let index = match self.by_id.get(id) {
                Some(index) => *index,
                None => {
                    let index = self.list.len() as u32;
                    let id: Arc<str> = id.into();
                    self.list.push(Semaphore {
                        count: count(&id),
                        id: id.clone(),
                        held: 0,
                        queue: VecDeque::new(),
                    });
                    self.by_id.insert(id, index);
                    index
                }
            };
            if !wanted.contains(&index) {
                wanted.push(index);
            }
        }
        wanted
    }

    /// Takes all if all are free and nobody waits for any; else takes a place in each queue.
    pub(super) fn take_or_queue(&mut self, wanted: &Wanted, entry: QueueEntry) -> bool {
        let free = wanted.iter().all(|index| {
            let semaphore = &self.list[*index as usize];
            semaphore.held < semaphore.count && semaphore.queue.is_empty()
        });
        for index in wanted {
            let semaphore = &mut self.list[*index as usize];
            if free {
                semaphore.held += 1;
            } else {
                semaphore.queue.push_back(entry);
            }
        }
        free
    }

    /// Gives back. [`Semaphores::grant`] of each must follow.
    pub(super) fn release(&mut self, wanted: &Wanted) {
        for index in wanted {
            let semaphore = &mut self.list[*index as usize];
            semaphore.held = semaphore.held.saturating_sub(1);
        }
    }

    /// Who is first in the queue, void places aside.
    pub(super) fn first(&mut self, index: u32, is_void: impl Fn(QueueEntry) -> bool) -> Option<QueueEntry> {
        let queue = &mut self.list[index as usize].queue;
        while queue.front().is_some_and(|entry| is_void(*entry)) {
            queue.pop_front();
        }
        queue.front().copied()
    }

    /// Whether one of this semaphore is free.
    pub(super) fn is_free(&self, index: u32) -> bool {
        let semaphore = &self.list[index as usize];
        semaphore.held < semaphore.count
    }

    /// Gives all to who is first in each of the queues.
    pub(super) fn grant(&mut self, wanted: &Wanted) {
        for index in wanted {
            let semaphore = &mut self.list[*index as usize];
            semaphore.queue.pop_front();
            semaphore.held += 1;
        }
    }

    /// The ids, to be shown.
    pub(super) fn ids(&self, wanted: &Wanted) -> Vec<Arc<str>> {
        wanted
            .iter()
            .map(|index| self.list[*index as usize].id.clone())
            .collect()
    }

    /// Each id with how many are held and how many there are.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, u32, u32)> {
        self.list.iter().map(|s| (&s.id, s.held, s.count))
    }
}

/// The positive integer after the last `:`, else 1.
fn count(id: &str) -> u32 {
    id.rsplit_once(':')
        .and_then(|(_, count)| count.parse().ok())
        .filter(|count| *count > 0)
        .unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_the_positive_integer_after_the_last_colon() {
        let counts = ["foo", "foo:1", "foo:2", "a:3:4", ":4", "foo:0", "foo:-2", "foo:x"].map(count);
        assert_eq!(counts, [1, 1, 2, 4, 4, 1, 1, 1]);
    }
}
