//! Where equations stand: the order in which the rules of mcl (6.3) let errors count.
//!
//! By these rules a definition's equations stand where it is first used. But definitions are typed in the order of their
//! dependencies, so that no chain of them is deep. So the equations of a definition that is typed ahead go into a *segment* of their
//! own, which is put in its place when the use is met; what comes first is counted at the end.

/// A place among the equations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Place {
    segment: Segment,
    step: u32,
}

/// Equations that stand together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Segment(u32);

#[derive(Debug, Default)]
struct Steps {
    count: u32,
    /// Segments that stand inside, each with the number of steps in front of it.
    inner: Vec<(u32, Segment)>,
}

/// All places, while equations are met.
#[derive(Debug)]
pub(super) struct Places {
    segments: Vec<Steps>,
    current: Segment,
}

impl Default for Places {
    fn default() -> Places {
        Places {
            segments: vec![Steps::default()],
            current: Segment(0),
        }
    }
}

impl Places {
    /// The next place.
    pub(super) fn next(&mut self) -> Place {
        let steps = &mut self.segments[self.current.0 as usize];
        steps.count += 1;
        Place {
            segment: self.current,
            step: steps.count,
        }
    }

    /// Begins a segment that is put in its place later. Answers the one to go back to.
    pub(super) fn open(&mut self) -> Segment {
        self.segments.push(Steps::default());
        let outer = self.current;
        self.current = Segment(self.segments.len() as u32 - 1);
        outer
    }

    /// Goes back to the segment before, and answers the one that ends; none if nothing is in it.
    pub(super) fn close(&mut self, outer: Segment) -> Option<Segment> {
        let ended = std::mem::replace(&mut self.current, outer);
        let steps = &self.segments[ended.0 as usize];
        if steps.count > 0 || !steps.inner.is_empty() {
            return Some(ended);
        }
        if ended.0 as usize + 1 == self.segments.len() {
            self.segments.pop();
        }
        None
    }

    /// Puts a segment here.
    pub(super) fn put(&mut self, segment: Segment) {
        let steps = &mut self.segments[self.current.0 as usize];
        steps.inner.push((steps.count, segment));
    }

    /// The order of all places.
    pub(super) fn order(&self) -> Order<'_> {
        let count = self.segments.len();
        let mut order = Order {
            places: self,
            starts: vec![None; count],
            lengths: vec![0; count],
        };
        // Only few are in none: those of definitions whose use was given up.
        let mut inside = vec![false; count];
        for (_, inner) in self.segments.iter().flat_map(|steps| &steps.inner) {
            inside[inner.0 as usize] = true;
        }
        let roots = (0..count).filter(|root| !inside[*root]);
        let mut next = 0;
        for root in roots {
            next = order.lay_out(Segment(root as u32), next);
        }
        order
    }
}

/// Which place stands in front of which.
#[derive(Debug)]
pub(super) struct Order<'a> {
    places: &'a Places,
    starts: Vec<Option<u64>>,
    lengths: Vec<u64>,
}

impl Order<'_> {
    /// Lays a segment and those inside of it out from `start`; answers where it ends.
    fn lay_out(&mut self, root: Segment, start: u64) -> u64 {
        let mut open = vec![(root, 0, start)];
        let mut end = start;
        while let Some((segment, child, at)) = open.pop() {
            let index = segment.0 as usize;
            let steps = &self.places.segments[index];
            if child == 0 {
                self.starts[index] = Some(at);
            }
            let start = self.starts[index].unwrap_or(at);
            if let Some((_, inner)) = steps.inner.get(child) {
                let before = if child == 0 { start } else { end };
                let passed = child.checked_sub(1).map_or(0, |last| steps.inner[last].0);
                let begin = before + u64::from(steps.inner[child].0 - passed);
                open.push((segment, child + 1, at));
                open.push((*inner, 0, begin));
                end = begin;
                continue;
            }
            let passed = steps.inner.last().map_or(0, |(step, _)| *step);
            let before = if steps.inner.is_empty() { start } else { end };
            end = before + u64::from(steps.count - passed);
            self.lengths[index] = end - start;
        }
        end
    }

    /// A number that is smaller for what stands further in front.
    pub(super) fn rank(&self, place: Place) -> u64 {
        let index = place.segment.0 as usize;
        let start = self.starts[index].unwrap_or(u64::MAX / 2);
        let inner = &self.places.segments[index].inner;
        let before = inner.partition_point(|(step, _)| *step < place.step);
        let inside: u64 = match before.checked_sub(1) {
            None => 0,
            // The last of them ends so far behind the start, less the steps of the segment itself.
            Some(last) => {
                let (step, segment) = inner[last];
                let last = segment.0 as usize;
                let end = self.starts[last].unwrap_or(start) + self.lengths[last];
                end - start - u64::from(step)
            }
        };
        start + inside + u64::from(place.step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_ahead_stands_where_it_is_used() {
        let mut places = Places::default();
        let first = places.next();
        let outer = places.open();
        let ahead = [places.next(), places.next()];
        let segment = places.close(outer);
        let outer = places.open();
        let further_ahead = places.next();
        places.put(segment.unwrap_or(Segment(0)));
        let after = places.next();
        let segment = places.close(outer);
        let second = places.next();
        places.put(segment.unwrap_or(Segment(0)));
        let third = places.next();
        let order = places.order();
        let expected = [first, second, further_ahead, ahead[0], ahead[1], after, third];
        let ranks: Vec<u64> = expected.iter().map(|place| order.rank(*place)).collect();
        assert_eq!(ranks, [1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn a_segment_without_equations_is_none() {
        let mut places = Places::default();
        let outer = places.open();
        assert_eq!(places.close(outer), None);
        let (one, two) = (places.next(), places.next());
        let order = places.order();
        assert!(order.rank(one) < order.rank(two));
    }
}
