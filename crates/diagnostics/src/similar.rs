//! «did you mean»: the one place that decides which names are near enough to suggest.
//!
//! Candidates may be all resources of a large machine, so a candidate costs no more than it takes to see that it loses: most are told by
//! their length and letters, and the others are compared only as far as they could still win.

/// Slips that a name may have at most, however long it is: one with more is another name.
const MOST_SLIPS: usize = 8;

/// The candidate nearest to `name`, if one is near enough to be a slip of the finger.
///
/// ```
/// use setpoint_diagnostics::closest;
/// assert_eq!(closest("contnet", ["content", "source"]), Some("content"));
/// assert_eq!(closest("xyz", ["content", "source"]), None);
/// assert_eq!(closest("x", ["y"]), None);
/// ```
#[must_use]
pub fn closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut search = Closest::to(name);
    for candidate in candidates {
        search.offer(candidate);
    }
    search.found()
}

/// The sentence for a diagnostic's help: ``did you mean `content`?``.
#[must_use]
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    closest(name, candidates).map(|found| format!("did you mean `{found}`?"))
}

/// A search for the candidate nearest to a name, where there are so many that they are offered a few at a time.
///
/// A slip is a letter too much, one too few, a wrong one, or two that stand next to each other in the wrong order.
#[derive(Debug)]
pub struct Closest<'a> {
    name: Vec<char>,
    text: String,
    /// Slips that a candidate may have.
    allowed: usize,
    best: Option<(usize, &'a str)>,
    letters: Vec<char>,
    rows: Rows,
}

impl<'a> Closest<'a> {
    /// Near to this name.
    #[must_use]
    pub fn to(name: &str) -> Closest<'a> {
        let letters: Vec<char> = name.chars().collect();
        Closest {
            // Of names of one letter every other is one slip away, which would help nobody.
            allowed: match letters.len() {
                0 | 1 => 0,
                length => (length / 3).clamp(1, MOST_SLIPS),
            },
            name: letters,
            text: name.to_owned(),
            best: None,
            letters: Vec::new(),
            rows: Rows::default(),
        }
    }

    /// Compares one more. Of several that are equally near the first in the order of the alphabet is found, in whatever order they come.
    pub fn offer(&mut self, candidate: &'a str) {
        let most = match self.best {
            None => self.allowed,
            Some((slips, found)) if candidate < found => slips,
            Some((slips, _)) => slips - 1,
        };
        if most == 0 || candidate == self.text {
            return;
        }
        self.letters.clear();
        self.letters.extend(candidate.chars());
        if let Some(slips) = self.rows.slips(&self.name, &self.letters, most) {
            self.best = Some((slips, candidate));
        }
    }

    /// The nearest of those that were offered, if one is near enough.
    #[must_use]
    pub fn found(self) -> Option<&'a str> {
        self.best.map(|(_, found)| found)
    }
}

/// The three rows of the table of distances that are in use, kept from candidate to candidate.
#[derive(Debug, Default)]
struct Rows {
    before_last: Vec<usize>,
    last: Vec<usize>,
    row: Vec<usize>,
}

impl Rows {
    /// How many slips make one of the other, if these are no more than `most`.
    fn slips(&mut self, one: &[char], other: &[char], most: usize) -> Option<usize> {
        let same = |pair: &(&char, &char)| pair.0 == pair.1;
        let prefix = one.iter().zip(other).take_while(same).count();
        let (one, other) = (&one[prefix..], &other[prefix..]);
        let suffix = one.iter().rev().zip(other.iter().rev()).take_while(same).count();
        let (one, other) = (&one[..one.len() - suffix], &other[..other.len() - suffix]);
        if one.len().abs_diff(other.len()) > most || letters_apart(one, other) > most {
            return None;
        }
        let beyond = most + 1;
        for row in [&mut self.before_last, &mut self.last, &mut self.row] {
            row.clear();
            row.resize(other.len() + 1, beyond);
        }
        for (at, cell) in self.last.iter_mut().enumerate() {
            *cell = at.min(beyond);
        }
        for at in 1..=one.len() {
            // Further from the diagonal is further away than `most`.
            let (begin, end) = (at.saturating_sub(most).max(1), other.len().min(at + most));
            self.row[begin - 1] = if begin == 1 { at.min(beyond) } else { beyond };
            let mut nearest = self.row[begin - 1];
            for to in begin..=end {
                let is_wrong = usize::from(one[at - 1] != other[to - 1]);
                let mut cell = (self.last[to - 1] + is_wrong)
                    .min(self.last[to] + 1)
                    .min(self.row[to - 1] + 1);
                if at > 1 && to > 1 && one[at - 1] == other[to - 2] && one[at - 2] == other[to - 1] {
                    cell = cell.min(self.before_last[to - 2] + 1);
                }
                self.row[to] = cell.min(beyond);
                nearest = nearest.min(cell);
            }
            if let Some(cell) = self.row.get_mut(end + 1) {
                *cell = beyond;
            }
            // An exchange reaches over one row.
            if nearest > most && self.last.iter().all(|cell| *cell > most) {
                return None;
            }
            std::mem::swap(&mut self.before_last, &mut self.last);
            std::mem::swap(&mut self.last, &mut self.row);
        }
        self.last.last().copied().filter(|slips| *slips <= most)
    }
}

/// How many slips there are at least, from the letters alone: each slip exchanges one letter for another.
fn letters_apart(one: &[char], other: &[char]) -> usize {
    // Letters that share a place only make the answer smaller.
    let mut excess = [0i32; 64];
    let place = |letter: &char| *letter as usize % 64;
    for letter in one {
        excess[place(letter)] += 1;
    }
    for letter in other {
        excess[place(letter)] -= 1;
    }
    let too_many: i32 = excess.iter().filter(|count| **count > 0).sum();
    let too_few: i32 = excess.iter().filter(|count| **count < 0).sum();
    too_many.max(-too_few).unsigned_abs() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of few letters, so that many are near each other.
    fn words(count: usize, mut state: u64) -> Vec<String> {
        let mut random = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let letters = ['a', 'b', 'c', 'ä', '/', '0'];
        let mut word = || {
            let length = random(14);
            (0..length)
                .map(|_| letters[random(letters.len() as u64) as usize])
                .collect()
        };
        (0..count).map(|_| word()).collect()
    }

    #[test]
    fn slips_are_counted_as_by_the_whole_table() {
        let (names, candidates) = (words(60, 1), words(300, 2));
        let mut rows = Rows::default();
        for name in &names {
            let letters: Vec<char> = name.chars().collect();
            for candidate in &candidates {
                let other: Vec<char> = candidate.chars().collect();
                let real = strsim::osa_distance(name, candidate);
                for most in 1..=MOST_SLIPS {
                    let wanted = (real <= most).then_some(real);
                    assert_eq!(
                        rows.slips(&letters, &other, most),
                        wanted,
                        "{name} {candidate} {most}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_nearest_is_found_in_whatever_order_they_come() {
        let mut candidates = words(400, 3);
        for name in words(60, 4) {
            let length = name.chars().count();
            let wanted = candidates
                .iter()
                .filter(|candidate| **candidate != name && length > 1)
                .map(|candidate| (strsim::osa_distance(&name, candidate), candidate.as_str()))
                .filter(|(slips, _)| *slips <= (length / 3).clamp(1, MOST_SLIPS))
                .min()
                .map(|(_, candidate)| candidate.to_owned());
            let found = closest(&name, candidates.iter().map(String::as_str));
            assert_eq!(found.map(str::to_owned), wanted, "{name}");
            candidates.rotate_left(7);
        }
    }

    #[test]
    fn long_names_with_many_slips_are_other_names() {
        let name = "/etc/nginx/sites-enabled/customer-portal.conf";
        let near = "/etc/nginx/sites-available/customer-portal.conf";
        let far = "/etc/apache2/sites-enabled/customer-login.conf";
        assert_eq!(closest(name, [far, near]), Some(near));
        assert_eq!(closest(name, [far]), None);
    }
}
