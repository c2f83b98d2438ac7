//! Counts what the engine does, event by event. Called where events are made, so that nothing is missed; it waits for nobody.

use std::collections::BTreeMap;
use std::sync::Arc;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;
use rustc_hash::FxHashSet;
use setpoint_engine::{Event, EventKind, RunSummary};
use setpoint_host::sync::Mutex;

/// Bounds of the durations of runs, in seconds: from what looks at one file to what installs packages.
const DURATIONS: [f64; 9] = [0.001, 0.005, 0.025, 0.1, 0.5, 2.0, 10.0, 60.0, 600.0];

/// What was counted.
pub(super) struct Counting {
    kinds: BTreeMap<&'static str, KindCounting>,
    pub(super) graphs_taken: Counter,
    pub(super) graphs_rejected: Counter,
    /// Of whom runs are under way that may not repair: the end of a run does not say it.
    without_repairs: Mutex<FxHashSet<(Arc<str>, Arc<str>)>>,
}

/// What was counted of the resources of a kind.
pub(super) struct KindCounting {
    /// Runs: whether repairs were allowed, whether something was wrong, whether it failed.
    pub(super) runs: [[[Counter; 2]; 2]; 2],
    pub(super) durations: Histogram,
    pub(super) drifts: Counter,
    pub(super) repairs: Counter,
    pub(super) repairs_failed: Counter,
    /// Failures that are tried again.
    pub(super) soft_failures: Counter,
    /// Failures after which no tries are left.
    pub(super) hard_failures: Counter,
    pub(super) fights: Counter,
    pub(super) silences: Counter,
}

impl Default for KindCounting {
    fn default() -> KindCounting {
        KindCounting {
            runs: Default::default(),
            durations: Histogram::new(DURATIONS),
            drifts: Counter::default(),
            repairs: Counter::default(),
            repairs_failed: Counter::default(),
            soft_failures: Counter::default(),
            hard_failures: Counter::default(),
            fights: Counter::default(),
            silences: Counter::default(),
        }
    }
}

impl Counting {
    /// Nothing yet, of these kinds.
    pub(super) fn of(kinds: impl IntoIterator<Item = &'static str>) -> Counting {
        let kinds = kinds.into_iter().map(|kind| (kind, KindCounting::default()));
        Counting {
            kinds: kinds.collect(),
            graphs_taken: Counter::default(),
            graphs_rejected: Counter::default(),
            without_repairs: Mutex::default(),
        }
    }

    /// What was counted of each kind, by name.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (&'static str, &KindCounting)> {
        self.kinds.iter().map(|(name, counting)| (*name, counting))
    }

    /// Takes note of an event.
    pub(super) fn count(&self, event: &Event) {
        match &event.what {
            EventKind::GraphAccepted { .. } => drop(self.graphs_taken.inc()),
            EventKind::GraphRejected { .. } => drop(self.graphs_rejected.inc()),
            _ => {}
        }
        let (Some(kind), Some(name)) = (&event.kind, &event.name) else {
            return;
        };
        let Some(counting) = self.kinds.get(&**kind) else {
            return;
        };
        match &event.what {
            EventKind::StartedRun { noop: true, .. } => {
                self.without_repairs.lock().insert((kind.clone(), name.clone()));
            }
            EventKind::RunEnded { result, duration, .. } => {
                let mut without_repairs = self.without_repairs.lock();
                let may_repair =
                    without_repairs.is_empty() || !without_repairs.remove(&(kind.clone(), name.clone()));
                drop(without_repairs);
                let (was_wrong, has_failed) = match result {
                    RunSummary::Ok | RunSummary::Waiting | RunSummary::Unsure => (false, false),
                    RunSummary::Drift => (true, false),
                    RunSummary::Failed => (false, true),
                };
                counting.runs[usize::from(may_repair)][usize::from(was_wrong)][usize::from(has_failed)].inc();
                counting.durations.observe(duration.as_secs_f64());
            }
            EventKind::Drift { .. } => drop(counting.drifts.inc()),
            EventKind::Repaired { .. } => drop(counting.repairs.inc()),
            EventKind::NotRepaired { .. } => drop(counting.repairs_failed.inc()),
            EventKind::BackingOff { .. } => drop(counting.soft_failures.inc()),
            EventKind::GaveUp { .. } => drop(counting.hard_failures.inc()),
            EventKind::Conflict { .. } => drop(counting.fights.inc()),
            EventKind::Unresponsive { .. } => drop(counting.silences.inc()),
            _ => {}
        }
    }
}
