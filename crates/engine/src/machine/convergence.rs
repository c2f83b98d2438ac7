//! Convergence: whether the host is quiet, and has been for as long as asked.

use std::time::Duration;

use super::{Action, EventKind, ExitReason, Machine, StopStage};

#[derive(Debug, Default)]
pub(super) struct Convergence {
    /// When the quiet time began anew: a swap, drift, a failure.
    pub(super) broken_at: Duration,
    pub(super) has_graph: bool,
    pub(super) preparing: bool,
    pub(super) sources_busy: bool,
    pub(super) guarded: bool,
    pub(super) converged: bool,
    /// The break that was seen last.
    seen_break: Duration,
    /// Runs that repaired something.
    pub(super) repaired: u64,
    /// When the last of them ended.
    pub(super) repaired_at: Option<Duration>,
    /// Runs that would have but for noop.
    pub(super) would_change: u64,
}

impl Machine {
    /// Whether nothing is under way.
    fn is_quiet(&self) -> bool {
        let convergence = &self.convergence;
        convergence.has_graph
            && self.busy == 0
            && !convergence.preparing
            && !convergence.sources_busy
            && !convergence.guarded
            && self.stopping.is_none()
    }

    /// When the host will be converged, if nothing happens until then.
    pub(super) fn quiet_deadline(&self) -> Option<Duration> {
        let max_runtime = self.options.max_runtime.filter(|_| self.stopping.is_none());
        let converge = match self.options.converge {
            Some(timeout) if !self.convergence.converged && self.is_quiet() => {
                Some(self.convergence.broken_at.saturating_add(timeout))
            }
            _ => None,
        };
        [max_runtime, converge].into_iter().flatten().min()
    }

    pub(super) fn look_for_quiet(&mut self) {
        if let Some(limit) = self.options.max_runtime
            && self.now >= limit
            && self.stopping.is_none()
        {
            self.stop(StopStage::Finish, true, ExitReason::MaxRuntime);
            self.run_to_fixpoint();
        }
        let Some(timeout) = self.options.converge else {
            return;
        };
        let broken_at = self.convergence.broken_at;
        if std::mem::replace(&mut self.convergence.seen_break, broken_at) != broken_at
            && std::mem::replace(&mut self.convergence.converged, false)
        {
            self.emit(None, EventKind::Unconverged);
            self.actions.push(Action::Converged(false));
        }
        if self.convergence.converged || !self.is_quiet() || self.now < broken_at.saturating_add(timeout) {
            return;
        }
        self.convergence.converged = true;
        self.emit(None, EventKind::Converged);
        self.actions.push(Action::Converged(true));
        if self.options.exit_when_converged {
            self.stop(StopStage::Finish, true, ExitReason::Converged);
            self.run_to_fixpoint();
        }
    }
}
