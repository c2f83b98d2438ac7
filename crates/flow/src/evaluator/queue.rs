//! Nodes that are to be computed, lowest height first.
//!
//! One list for each height, linked through the nodes themselves, so that a hundred thousand heights cost no allocation each;
//! a tree of bits finds the lowest list that is not empty in a few steps, however far apart they are.

/// The end of a list.
const NONE: u32 = u32::MAX;

/// A queue of node indexes by height, first in first out within one height.
#[derive(Default)]
pub(super) struct HeightQueue {
    /// First and last of the list of each height.
    lists: Vec<(u32, u32)>,
    /// By node index: the next one in its list.
    next: Vec<u32>,
    /// Level 0 has a bit for each height, each further level a bit for each word below.
    levels: Vec<Vec<u64>>,
}

impl HeightQueue {
    /// Puts in a node that is in no list.
    pub(super) fn push(&mut self, index: u32, height: u32) {
        let at = height as usize;
        if at >= self.lists.len() {
            self.grow(at + 1);
        }
        if self.next.len() <= index as usize {
            self.next.resize(index as usize + 1, NONE);
        }
        self.next[index as usize] = NONE;
        let (first, last) = &mut self.lists[at];
        if *first == NONE {
            *first = index;
            *last = index;
            self.mark(at);
        } else {
            let before = std::mem::replace(last, index);
            self.next[before as usize] = index;
        }
    }

    /// Takes out the first node of the lowest height, with the height under which it was put in; none if that is above
    /// `highest`.
    pub(super) fn pop(&mut self, highest: u32) -> Option<(u32, u32)> {
        let at = self.lowest()?;
        if at as u64 > u64::from(highest) {
            return None;
        }
        let first = self.lists[at].0;
        let next = self.next[first as usize];
        self.lists[at].0 = next;
        if next == NONE {
            self.lists[at].1 = NONE;
            self.unmark(at);
        }
        Some((first, at as u32))
    }

    fn grow(&mut self, heights: usize) {
        let heights = heights.next_power_of_two().max(64);
        self.lists.resize(heights, (NONE, NONE));
        let mut words = heights.div_ceil(64);
        let mut level = 0;
        loop {
            if level == self.levels.len() {
                // A new level on top: what lies below may already have bits.
                let mut bits = vec![0u64; words];
                if level > 0 {
                    for (i, word) in self.levels[level - 1].iter().enumerate() {
                        bits[i / 64] |= u64::from(*word != 0) << (i % 64);
                    }
                }
                self.levels.push(bits);
            } else {
                self.levels[level].resize(words, 0);
            }
            if words == 1 {
                break;
            }
            words = words.div_ceil(64);
            level += 1;
        }
    }

    fn mark(&mut self, mut at: usize) {
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            let was = *word;
            *word |= 1 << (at % 64);
            if was != 0 {
                break;
            }
            at /= 64;
        }
    }

    fn unmark(&mut self, mut at: usize) {
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            *word &= !(1 << (at % 64));
            if *word != 0 {
                break;
            }
            at /= 64;
        }
    }

    fn lowest(&self) -> Option<usize> {
        let top = self.levels.last()?;
        if top[0] == 0 {
            return None;
        }
        let mut at = 0;
        for level in self.levels.iter().rev() {
            at = at * 64 + level[at].trailing_zeros() as usize;
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, VecDeque};

    use super::HeightQueue;

    #[test]
    fn nodes_come_out_by_height_and_then_in_the_order_in_which_they_went_in() {
        let mut queue = HeightQueue::default();
        queue.push(1, 7);
        queue.push(2, 90_000);
        queue.push(3, 7);
        queue.push(4, 0);
        assert_eq!(queue.pop(u32::MAX), Some((4, 0)));
        assert_eq!(queue.pop(u32::MAX), Some((1, 7)));
        queue.push(5, 3);
        assert_eq!(queue.pop(u32::MAX), Some((5, 3)));
        assert_eq!(queue.pop(u32::MAX), Some((3, 7)));
        assert_eq!(queue.pop(u32::MAX), Some((2, 90_000)));
        assert_eq!(queue.pop(u32::MAX), None);
    }

    #[test]
    fn a_queue_that_grows_keeps_what_is_in_it() {
        let mut queue = HeightQueue::default();
        let heights = [5u32, 63, 64, 4095, 4096, 300_000, 12];
        for (index, height) in heights.into_iter().enumerate() {
            queue.push(index as u32, height);
        }
        let mut sorted = heights.to_vec();
        sorted.sort_unstable();
        let popped: Vec<u32> = std::iter::from_fn(|| queue.pop(u32::MAX).map(|(_, height)| height)).collect();
        assert_eq!(popped, sorted);
    }

    #[test]
    fn a_queue_is_a_list_for_each_height_whatever_the_order_of_going_in_and_out() {
        // Heights at and around the words of each level of bits.
        let heights = [
            0u32, 1, 62, 63, 64, 65, 127, 128, 4095, 4096, 4097, 262_143, 262_144, 300_000,
        ];
        for seed in 1..40u64 {
            let mut queue = HeightQueue::default();
            let mut lists: BTreeMap<u32, VecDeque<u32>> = BTreeMap::new();
            let mut random = seed;
            let mut number = |below: usize| {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (random >> 33) as usize % below
            };
            for index in 0..200 {
                // Later nodes may lie higher than everything before.
                let height = heights[number(heights.len().min(1 + index / 8))];
                queue.push(index as u32, height);
                lists.entry(height).or_default().push_back(index as u32);
                while number(2) == 0 {
                    let highest = heights[number(heights.len())];
                    let expected = lists
                        .first_entry()
                        .filter(|list| *list.key() <= highest)
                        .map(|mut list| (list.get_mut().pop_front().expect("no list is empty"), *list.key()));
                    lists.retain(|_, list| !list.is_empty());
                    assert_eq!(queue.pop(highest), expected, "seed {seed}");
                }
            }
        }
    }
}
