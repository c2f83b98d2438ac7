//! How often the hub reports paths although nothing has happened.

use std::time::Duration;

/// In which intervals paths are reported that no event may have told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Between two looks at what cannot be watched.
    pub poll: Duration,
    /// In which all paths are reported once, if they are few. Writes through a mapping make no events, nor do those of
    /// other machines.
    pub round: Duration,
    /// What a path takes of a round at least, so that a round of very many is longer.
    pub each: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            poll: Duration::from_secs(10),
            round: Duration::from_secs(15 * 60),
            each: Duration::from_millis(50),
        }
    }
}

impl Pace {
    /// How many of so many paths are reported at a time, and how long to wait then.
    pub(super) fn step(&self, paths: usize) -> (usize, Duration) {
        /// Waking up for a single path each time would cost more than the looks.
        const STEPS: u32 = 60;
        let paths = u32::try_from(paths).unwrap_or(u32::MAX);
        let round = self.round.max(self.each.saturating_mul(paths));
        let steps = STEPS.min(paths).max(1);
        (paths.div_ceil(steps) as usize, round / steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_reports_every_path_once() {
        let pace = Pace::default();
        for (paths, count, minutes) in [
            (1, 1, 15),
            (60, 1, 15),
            (90, 2, 15),
            (18_000, 300, 15),
            (36_000, 600, 30),
        ] {
            let (step, pause) = pace.step(paths);
            assert_eq!(step, count, "{paths}");
            let steps = u32::try_from(paths.min(60)).unwrap();
            assert_eq!(pause * steps, Duration::from_secs(minutes * 60), "{paths}");
        }
    }
}
