//! How long to wait before the next try.

use std::time::Duration;

use setpoint_host::random;

/// The first pause.
const FIRST: Duration = Duration::from_millis(100);

/// The longest one.
const LONGEST: Duration = Duration::from_secs(10);

/// Pauses that double from a tenth of a second to ten, each between half of that and all of it, so that hosts which lost a store together do not
/// come back together.
#[derive(Debug)]
pub struct Backoff {
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff { next: FIRST }
    }
}

impl Backoff {
    /// Time to wait now.
    pub fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(LONGEST);
        let mut byte = [0; 1];
        random::fill(&mut byte);
        pause / 2 + (pause / 2) * u32::from(byte[0]) / 255
    }

    /// It has succeeded: the next pause is a short one again.
    pub fn reset(&mut self) {
        *self = Backoff::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_anew() {
        let mut backoff = Backoff::default();
        let mut whole = FIRST;
        for _ in 0..12 {
            let pause = backoff.pause();
            assert!(whole / 2 <= pause && pause <= whole, "{pause:?} of {whole:?}");
            whole = (whole * 2).min(LONGEST);
        }
        assert_eq!(whole, LONGEST);
        backoff.reset();
        assert!(backoff.pause() <= FIRST);
    }
}
