//! A list that only grows, in blocks of one size: what it holds is never moved, so that a long one costs no second copy while it grows, as
//! a vector would.

use std::ops::{Index, IndexMut};

/// A list in blocks.
#[derive(Debug, Clone)]
pub struct Blocks<T> {
    /// All but the last are full.
    blocks: Vec<Vec<T>>,
    count: usize,
}

/// So many lie side by side. The first block grows as a vector does.
const SIDE_BY_SIDE: usize = 1 << SHIFT;
const SHIFT: u32 = 12;

impl<T> Blocks<T> {
    /// An empty one.
    #[must_use]
    pub const fn new() -> Blocks<T> {
        Blocks {
            blocks: Vec::new(),
            count: 0,
        }
    }

    /// How many it holds.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether it holds none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds one at the end.
    pub fn push(&mut self, item: T) {
        if self.count.is_multiple_of(SIDE_BY_SIDE) {
            let first = self.blocks.is_empty();
            self.blocks.push(if first {
                Vec::new()
            } else {
                Vec::with_capacity(SIDE_BY_SIDE)
            });
        }
        self.blocks[self.count >> SHIFT].push(item);
        self.count += 1;
    }

    /// The one of a number.
    #[must_use]
    pub fn get(&self, number: usize) -> Option<&T> {
        self.blocks.get(number >> SHIFT)?.get(number % SIDE_BY_SIDE)
    }

    /// The one of a number, to change it.
    #[must_use]
    pub fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        self.blocks
            .get_mut(number >> SHIFT)?
            .get_mut(number % SIDE_BY_SIDE)
    }

    /// All, first to last.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.blocks.iter().flatten()
    }
}

impl<T> Default for Blocks<T> {
    fn default() -> Blocks<T> {
        Blocks::new()
    }
}

impl<T> Extend<T> for Blocks<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        items.into_iter().for_each(|item| self.push(item));
    }
}

impl<T> Index<usize> for Blocks<T> {
    type Output = T;

    fn index(&self, number: usize) -> &T {
        &self.blocks[number >> SHIFT][number % SIDE_BY_SIDE]
    }
}

impl<T> IndexMut<usize> for Blocks<T> {
    fn index_mut(&mut self, number: usize) -> &mut T {
        &mut self.blocks[number >> SHIFT][number % SIDE_BY_SIDE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_found_by_its_number_across_blocks() {
        let mut blocks = Blocks::new();
        assert!(blocks.is_empty());
        let count = 2 * SIDE_BY_SIDE + 3;
        blocks.extend(0..count);
        assert_eq!(blocks.len(), count);
        assert!(blocks.iter().copied().eq(0..count));
        assert!(blocks.iter().rev().copied().eq((0..count).rev()));
        for number in [0, SIDE_BY_SIDE - 1, SIDE_BY_SIDE, 2 * SIDE_BY_SIDE, count - 1] {
            assert_eq!(blocks.get(number), Some(&number));
            blocks[number] += 1;
            assert_eq!(blocks[number], number + 1);
        }
        assert_eq!(blocks.get(count), None);
        assert_eq!(blocks.get_mut(usize::MAX), None);
    }
}
