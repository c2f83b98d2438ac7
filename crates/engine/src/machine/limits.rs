//! Rates: the token bucket of `limit` and `burst`, and the detection of a fight over a field.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHasher;

use crate::Drift;

/// Fills at `limit` tokens a second and holds `burst`.
#[derive(Debug)]
pub(super) struct TokenBucket {
    /// Below zero when a token was promised for later.
    tokens: f64,
    filled: Duration,
    /// The last run repaired something: the next event may be that of our own repair.
    pub(super) after_repair: bool,
}

/// Longer than any process lives; what a limit of zero waits for.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

impl TokenBucket {
    pub(super) fn new(now: Duration, burst: u64) -> TokenBucket {
        TokenBucket {
            tokens: burst as f64,
            filled: now,
            after_repair: false,
        }
    }

    /// Takes a token. When there is none: the moment at which the one that was taken will have come.
    pub(super) fn take(&mut self, now: Duration, limit: f64, burst: u64) -> Option<Duration> {
        let passed = now.saturating_sub(self.filled).as_secs_f64();
        self.filled = now;
        self.tokens = (self.tokens + passed * limit.max(0.0)).min(burst as f64);
        self.tokens -= 1.0;
        // A little tolerance: a timer that fires exactly on time must find its token in spite of rounding.
        if self.tokens >= -1e-9 {
            return None;
        }
        let wait = Duration::try_from_secs_f64(-self.tokens / limit.max(0.0)).unwrap_or(FOR_EVER);
        Some(now + wait.min(FOR_EVER))
    }
}

impl TokenBucket {
    /// Gives a token back that was taken for nothing.
    pub(super) fn give_back(&mut self, burst: u64) {
        self.tokens = (self.tokens + 1.0).min(burst as f64);
    }
}

const FIGHT_REPAIRS: usize = 10;
const FIGHT_WINDOW: Duration = Duration::from_secs(10);
const FIRST_SPACING: Duration = Duration::from_millis(100);
const LAST_SPACING: Duration = Duration::from_secs(10);
const QUIET: Duration = Duration::from_secs(60);
/// Fields that are followed at a time. A kind has few.
const FOLLOWED: usize = 8;

/// The repairs that watch events caused lately.
#[derive(Debug, Default)]
pub(super) struct Fight {
    repairs: Vec<Repairs>,
    /// Between repairs, since the fight was reported.
    spacing: Option<Duration>,
    last: Duration,
    /// What it is about, since it was reported.
    about: Option<Arc<str>>,
}

#[derive(Debug)]
struct Repairs {
    /// Of the field and the wanted value.
    key: u64,
    times: VecDeque<Duration>,
}

impl Fight {
    /// Notes what a run repaired. Answers which of the drifts shows that something fights us, the first time.
    pub(super) fn note(&mut self, now: Duration, drifts: &[Drift]) -> Option<usize> {
        if now.saturating_sub(self.last) > QUIET {
            *self = Fight::default();
        }
        self.last = now;
        if let Some(spacing) = &mut self.spacing {
            *spacing = (*spacing * 2).min(LAST_SPACING);
            return None;
        }
        let mut found = None;
        for (index, drift) in drifts.iter().enumerate().filter(|(_, drift)| drift.repaired) {
            let key = key_of(drift);
            let at = match self.repairs.iter().position(|repairs| repairs.key == key) {
                Some(at) => at,
                None => {
                    if self.repairs.len() == FOLLOWED {
                        self.repairs.remove(0);
                    }
                    self.repairs.push(Repairs {
                        key,
                        times: VecDeque::new(),
                    });
                    self.repairs.len() - 1
                }
            };
            let times = &mut self.repairs[at].times;
            times.push_back(now);
            while times
                .front()
                .is_some_and(|first| now.saturating_sub(*first) > FIGHT_WINDOW)
            {
                times.pop_front();
            }
            if times.len() > FIGHT_REPAIRS {
                found = found.or(Some(index));
            }
        }
        if let Some(drift) = found.and_then(|index| drifts.get(index)) {
            self.spacing = Some(FIRST_SPACING);
            let Drift { field, is, want, .. } = drift;
            let about =
                format!("stay right: something keeps changing {field} to {is}, and it shall be {want}");
            self.about = Some(about.into());
        }
        found
    }

    /// What it is about, if it is one and goes on.
    pub(super) fn about(&self) -> Option<&Arc<str>> {
        self.about.as_ref()
    }

    /// The earliest moment for a run that an event of the watch asks for now, if that is later than now.
    pub(super) fn earliest(&mut self, now: Duration) -> Option<Duration> {
        let spacing = self.spacing?;
        if now.saturating_sub(self.last) > QUIET {
            *self = Fight::default();
            return None;
        }
        Some(self.last + spacing).filter(|at| *at > now)
    }
}

fn key_of(drift: &Drift) -> u64 {
    let mut hasher = FxHasher::default();
    drift.field.hash(&mut hasher);
    drift.want.to_string().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_promises_tokens_in_order() {
        let at = Duration::from_secs;
        let mut bucket = TokenBucket::new(at(0), 2);
        assert_eq!(bucket.take(at(0), 1.0, 2), None);
        assert_eq!(bucket.take(at(0), 1.0, 2), None);
        assert_eq!(bucket.take(at(0), 1.0, 2), Some(at(1)));
        assert_eq!(bucket.take(at(1), 1.0, 2), Some(at(2)));
        assert_eq!(bucket.take(at(9), 1.0, 2), None);
        assert!(bucket.take(at(9), 0.0, 2).is_none());
        assert!(bucket.take(at(9), 0.0, 2).unwrap() > at(1_000_000));
    }
}
