//! The time that hosts have for a deploy: until they have it right, and while they fail and try again.

use std::collections::BTreeMap;
use std::time::Duration;

use setpoint_agent::membership::MemberOfCluster;
use tokio::time::Instant;

/// The time that a host has for a deploy.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// Until a host has the deploy right.
    pub(super) until_right: Duration,
    /// While a host fails and tries again. A lock that another process holds, or a slow start, is over by then.
    pub(super) while_failing: Duration,
}

/// Decides what became of a deploy on each host.
#[derive(Debug)]
pub(super) struct Verdicts {
    deploy: u64,
    while_failing: Duration,
    /// Since when hosts have been failing that try again.
    failing_since: BTreeMap<String, Instant>,
}

impl Verdicts {
    pub(super) fn new(deploy: u64, patience: Patience) -> Verdicts {
        Verdicts {
            deploy,
            while_failing: patience.while_failing,
            failing_since: BTreeMap::new(),
        }
    }

    /// Whether a host has the deploy right. None while that is open, also while a host has been failing for less than its grace.
    pub(super) fn of(&mut self, member: &MemberOfCluster, now: Instant) -> Option<bool> {
        let verdict = member.verdict(self.deploy);
        if verdict == Some(false) && member.tries_again() {
            let since = *self.failing_since.entry(member.host.clone()).or_insert(now);
            return (now - since >= self.while_failing).then_some(false);
        }
        self.failing_since.remove(&member.host);
        verdict
    }

    /// The next time at which an open verdict can change although no host reports anything.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        let ends = self
            .failing_since
            .values()
            .map(|since| *since + self.while_failing);
        ends.filter(|end| *end > now).min()
    }
}
