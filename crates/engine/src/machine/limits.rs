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

    /// When it is over, if nothing is repaired until then.
    pub(super) fn over_at(&self) -> Duration {
        self.last.saturating_add(QUIET + Duration::from_millis(1))
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
    drift.member.hash(&mut hasher);
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

    #[test]
    fn a_token_that_is_given_back_is_there_and_no_more_than_the_burst() {
        let now = Duration::ZERO;
        let mut bucket = TokenBucket::new(now, 1);
        bucket.give_back(1);
        assert_eq!(bucket.take(now, 0.5, 1), None);
        assert_eq!(bucket.take(now, 0.5, 1), Some(Duration::from_secs(2)));
        bucket.give_back(1);
        assert_eq!(bucket.take(now, 0.5, 1), Some(Duration::from_secs(2)));
    }

    fn drift(field: &'static str, want: &str, repaired: bool) -> Drift {
        Drift {
            member: None,
            field: field.into(),
            effect: crate::Effect::Change,
            attributes: Vec::new(),
            is: "wrong".into(),
            want: want.into(),
            repaired,
            is_done: false,
        }
    }

    /// When a fight is found, if something is repaired every so many milliseconds.
    fn found(every: u64, drifts: impl Fn(u64) -> Vec<Drift>) -> Option<u64> {
        let mut fight = Fight::default();
        (0..100).find(|n| {
            fight
                .note(Duration::from_millis(n * every), &drifts(*n))
                .is_some()
        })
    }

    #[test]
    fn a_fight_is_more_than_ten_repairs_of_one_field_to_one_value_in_ten_seconds() {
        let same = |_| vec![drift("mode", "0644", true)];
        assert_eq!(found(10, same), Some(10));
        assert_eq!(
            found(1_000, same),
            Some(10),
            "the first is just within ten seconds"
        );
        assert_eq!(found(1_001, same), None);
        assert_eq!(found(10, |_| vec![drift("mode", "0644", false)]), None);
        assert_eq!(found(10, |n| vec![drift("mode", &n.to_string(), true)]), None);
        // Each field counts for itself, and the drift that shows it is named.
        let two = |n: u64| vec![drift(["mode", "owner"][(n % 2) as usize], "x", true)];
        assert_eq!(found(10, two), Some(20));
        let mut fight = Fight::default();
        let drifts = [drift("owner", "b", false), drift("mode", "0644", true)];
        let named: Vec<_> = (0..11)
            .filter_map(|_| fight.note(Duration::ZERO, &drifts))
            .collect();
        assert_eq!(named, [1]);
        assert_eq!(
            fight.about().map(|about| &**about),
            Some("stay right: something keeps changing mode to wrong, and it shall be 0644")
        );
        // More fields than are followed push the oldest out.
        let many = |n: u64| vec![drift("mode", &(n % 9).to_string(), true)];
        assert_eq!(found(1, many), None);
        let few = |n: u64| vec![drift("mode", &(n % 8).to_string(), true)];
        assert_eq!(found(1, few), Some(80));
    }

    #[test]
    fn repairs_are_spaced_out_more_and_more_until_a_minute_is_quiet() {
        let ms = Duration::from_millis;
        let drifts = [drift("mode", "0644", true)];
        let mut fight = Fight::default();
        assert_eq!(fight.earliest(ms(0)), None);
        for _ in 0..11 {
            fight.note(ms(0), &drifts);
        }
        assert_eq!(fight.earliest(ms(0)), Some(ms(100)));
        assert_eq!(fight.earliest(ms(100)), None, "that long has passed");
        let mut now = ms(100);
        let mut spaces = Vec::new();
        for _ in 0..9 {
            assert_eq!(fight.note(now, &drifts), None, "it is reported once");
            let next = fight.earliest(now).unwrap();
            spaces.push((next - now).as_millis());
            now = next;
        }
        assert_eq!(spaces, [200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000]);
        fight.note(now, &drifts);
        assert!(fight.about().is_some());
        assert_eq!(fight.earliest(now + ms(60_000)), None);
        assert!(fight.about().is_some(), "a minute is not over yet");
        assert_eq!(fight.earliest(now + ms(60_001)), None);
        assert!(fight.about().is_none());
        // The same when a repair comes first.
        for _ in 0..11 {
            fight.note(now, &drifts);
        }
        assert!(fight.about().is_some());
        fight.note(now + ms(60_001), &drifts);
        assert!(fight.about().is_none());
    }
}
