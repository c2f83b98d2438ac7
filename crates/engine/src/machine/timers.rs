//! What waits for a moment in time. Entries are not taken back: one that no longer matters is found void when it is due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// The wait of a vertex is over.
    Wait { slot: u32, incarnation: u32 },
    /// A run has had its time.
    Timeout { slot: u32, run: u64 },
    /// A vertex's interval has passed.
    Interval { slot: u32, incarnation: u32 },
    /// Nobody may have undone a vertex's repairs for long.
    FightOver { slot: u32, incarnation: u32 },
}

#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Duration, u64, Due)>>,
    /// Orders what is due at one moment.
    count: u64,
}

impl Timers {
    pub(super) fn set(&mut self, at: Duration, due: Due) {
        self.count += 1;
        self.heap.push(Reverse((at, self.count, due)));
    }

    /// Takes the next that is due by now.
    pub(super) fn pop(&mut self, now: Duration) -> Option<Due> {
        if self.heap.peek()?.0.0 > now {
            return None;
        }
        self.heap.pop().map(|entry| entry.0.2)
    }

    /// The earliest that is not void.
    pub(super) fn next(&mut self, is_void: impl Fn(Due, Duration) -> bool) -> Option<Duration> {
        while let Some(Reverse((at, _, due))) = self.heap.peek() {
            if !is_void(*due, *at) {
                return Some(*at);
            }
            self.heap.pop();
        }
        None
    }

    /// Throws void entries away when they may have become the greater part.
    pub(super) fn tidy(&mut self, vertices: usize, is_void: impl Fn(Due, Duration) -> bool) {
        if self.heap.len() > 4 * vertices + 256 {
            self.heap.retain(|Reverse((at, _, due))| !is_void(*due, *at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(slot: u32) -> Due {
        Due::Wait { slot, incarnation: 0 }
    }

    #[test]
    fn what_is_due_comes_in_order_and_not_before_its_time() {
        let at = Duration::from_secs;
        let mut timers = Timers::default();
        timers.set(at(2), due(1));
        timers.set(at(1), due(2));
        // At one moment, what was set first comes first, whatever it is.
        timers.set(at(2), due(0));
        assert_eq!(timers.pop(at(0)), None);
        let all: Vec<Due> = std::iter::from_fn(|| timers.pop(at(2))).collect();
        assert_eq!(all, [due(2), due(1), due(0)]);
        assert_eq!(timers.next(|_, _| false), None);
    }

    #[test]
    fn what_is_void_is_skipped_and_thrown_away_when_there_is_much_of_it() {
        let at = Duration::from_secs;
        let mut timers = Timers::default();
        for slot in 0..264 {
            timers.set(at(slot.into()), due(slot));
        }
        let is_void = |due: Due, _| matches!(due, Due::Wait { slot, .. } if slot < 263);
        timers.tidy(2, is_void);
        assert_eq!(timers.heap.len(), 264, "as many as are no burden");
        timers.tidy(1, is_void);
        assert_eq!(timers.heap.len(), 1);
        timers.set(at(0), due(7));
        assert_eq!(timers.next(is_void), Some(at(263)));
        assert_eq!(timers.heap.len(), 1);
    }
}
