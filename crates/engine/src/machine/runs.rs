//! One run: what it is given, and what follows from how it ended.

use std::sync::Arc;
use std::time::Duration;

use setpoint_graph::ResourceId;

use super::edges::Refresh;
use super::vertex::{Hold, Phase};
use super::{Action, Check, Due, EventKind, Machine, RunRequest, RunResult};
use crate::{Cause, Drift, DriftValue, Failure, RunSummary};

impl Machine {
    /// Begins the run of a vertex whose turn it is.
    pub(super) fn start_run(&mut self, slot: u32) {
        self.runs += 1;
        self.running += 1;
        let run = self.runs;
        let now = self.now;
        let resource = self.live(slot).clone();
        let noop = self.is_noop(&resource);
        let vertex = self.vertex_mut(slot);
        vertex.run = run;
        vertex.run_began = now;
        let flags = &mut vertex.flags;
        flags.running = true;
        flags.dirty = false;
        flags.uncounted = false;
        flags.timed_out = false;
        flags.noop_run = noop;
        flags.run_by_watch = std::mem::take(&mut flags.by_watch);
        let hidden = flags.hidden;
        let priority = vertex.height;

        let mut pending = false;
        for at in 0..self.vertex(slot).incoming.len() {
            let edge = self.vertex(slot).incoming[at];
            let edge = self.edges.get_mut(edge);
            if edge.refresh == Refresh::Pending {
                edge.refresh = Refresh::Taken;
                pending = true;
            }
        }
        let refresh = pending && resource.schema.refreshable;
        self.emit(Some(slot), EventKind::StartedRun { noop, refresh });
        let transfer = match self.prepare_transfer(slot) {
            Ok(transfer) => transfer,
            Err(failure) => {
                return self.run_ended(
                    slot,
                    RunResult {
                        transferred: false,
                        checked: false,
                        ..RunResult::failed(failure)
                    },
                );
            }
        };
        let check = if hidden {
            Check::SkipAsOk
        } else if noop && refresh {
            Check::SkipAsDrift
        } else {
            Check::Call
        };
        let notifies = if noop { Vec::new() } else { self.notifies(slot) };
        let received = match &self.vertex(slot).extras {
            Some(extras) => extras.received.clone(),
            None => Vec::new(),
        };
        let timeout = resource.meta.timeout;
        if timeout > 0 {
            let at = now.saturating_add(Duration::from_millis(timeout));
            self.timers.set(at, Due::Timeout { slot, run });
        }
        let vertex = self.id(slot);
        self.actions.push(Action::Run {
            vertex,
            request: Box::new(RunRequest {
                run,
                priority,
                noop,
                check,
                refresh,
                transfer,
                received,
                notifies,
            }),
        });
    }

    /// Whom a repair of a vertex notifies.
    fn notifies(&self, slot: u32) -> Vec<ResourceId> {
        let edges = self.vertex(slot).outgoing.iter();
        let receivers = edges
            .map(|edge| self.edges.get(*edge))
            .filter(|edge| edge.notifies())
            .map(|edge| edge.desired.to.clone());
        let mut receivers: Vec<ResourceId> = receivers.collect();
        receivers.dedup();
        receivers
    }

    /// A run of a vertex has ended.
    pub(super) fn run_ended(&mut self, slot: u32, mut result: RunResult) {
        if !self.vertex(slot).flags.running {
            return;
        }
        self.running -= 1;
        let now = self.now;
        let resource = self.live(slot).clone();
        let vertex = self.vertex_mut(slot);
        vertex.flags.running = false;
        let duration = now.saturating_sub(vertex.run_began);
        let flags = vertex.flags;
        let refresh_waits = flags.noop_run
            && vertex.phase == Phase::Watching
            && result.outcome.is_ok()
            && !result.checked
            && !flags.hidden;
        self.give_back_semaphores(slot);
        if refresh_waits {
            result.drifts.push(Drift {
                field: "refresh".into(),
                is: DriftValue::from("pending"),
                want: DriftValue::from("served"),
                repaired: false,
            });
        }
        if flags.timed_out && result.outcome.is_err() {
            let after = Duration::from_millis(resource.meta.timeout).as_secs_f64();
            result.outcome = Err(Failure::new(format!("finish: timeout after {after} seconds")));
        }

        for drift in &result.drifts {
            let what = EventKind::Drift {
                field: drift.field.as_ref().into(),
                is: drift.is.to_string().into(),
                want: drift.want.to_string().into(),
                repaired: drift.repaired,
            };
            self.emit(Some(slot), what);
        }
        if let Some(extras) = &mut self.vertex_mut(slot).extras {
            let transferring = extras.transferring.take();
            if let Some(holding) = transferring.filter(|_| result.transferred) {
                extras.held = holding;
            }
            if result.restart_interval
                && let Some(interval) = extras.interval
            {
                self.start_interval(slot, interval);
            }
        }
        if let Some(sent) = result.sent.take() {
            self.publish(slot, sent);
        }

        let error: Option<Arc<str>> = result
            .outcome
            .as_ref()
            .err()
            .map(|failure| failure.chain().into());
        let summary = match &error {
            Some(_) => RunSummary::Failed,
            None if result.drifts.is_empty() => RunSummary::Ok,
            None => RunSummary::Drift,
        };
        let what = EventKind::RunEnded {
            result: summary,
            duration,
            error: error.clone(),
        };
        self.emit(Some(slot), what);
        if summary != RunSummary::Ok && !flags.uncounted {
            self.convergence.broken_at = now;
        }
        let repaired = result.drifts.iter().any(|drift| drift.repaired);
        if repaired {
            self.convergence.repaired += 1;
        }
        self.note_fight(slot, &result.drifts);

        match error {
            None if flags.noop_run => {
                self.put_back_refresh(slot);
                if summary == RunSummary::Drift {
                    self.convergence.would_repair += 1;
                }
                self.succeeded(slot);
            }
            None => {
                self.consume_refresh(slot);
                if (result.checked || flags.hidden)
                    && let Some(extras) = &mut self.vertex_mut(slot).extras
                {
                    for received in &mut extras.received {
                        received.changed = false;
                    }
                }
                if resource.meta.retryreset {
                    self.vertex_mut(slot).run_tries = 0;
                }
                self.notify(slot, summary == RunSummary::Drift);
                self.succeeded(slot);
            }
            Some(error) => {
                self.put_back_refresh(slot);
                if repaired {
                    self.note_perhaps(slot);
                }
                self.run_failed(slot, error);
            }
        }

        let vertex = self.vertex(slot);
        if vertex.flags.leaving {
            self.tear_down(slot);
        } else if vertex.phase == Phase::WatchWaits && vertex.hold == Hold::None {
            self.arm_again(slot);
        }
    }

    fn succeeded(&mut self, slot: u32) {
        let vertex = self.vertex_mut(slot);
        vertex.flags.settled_once = true;
        vertex.failures = 0;
        if let Some(extras) = &mut vertex.extras {
            extras.error = None;
        }
    }

    fn run_failed(&mut self, slot: u32, error: Arc<str>) {
        let resource = self.live(slot).clone();
        let retries = self.retries(&resource);
        let vertex = self.vertex_mut(slot);
        vertex.flags.dirty = true;
        if vertex.flags.uncounted || vertex.flags.leaving || vertex.phase != Phase::Watching {
            return;
        }
        vertex.extras().error = Some(error.clone());
        if retries.is_some_and(|retries| vertex.run_tries >= retries) {
            return self.fail_for_good(slot, error);
        }
        vertex.run_tries = vertex.run_tries.saturating_add(1);
        let left = retries.map(|retries| retries - vertex.run_tries);
        self.back_off(slot, error, left);
    }

    /// Waits before the next try.
    pub(super) fn back_off(&mut self, slot: u32, error: Arc<str>, tries_left: Option<u16>) {
        let resource = self.live(slot).clone();
        let vertex = self.vertex_mut(slot);
        vertex.failures = vertex.failures.saturating_add(1);
        let failures = vertex.failures;
        let until = self.now.saturating_add(self.delay(&resource, failures));
        self.hold(slot, Hold::Backoff, until);
        let what = EventKind::BackingOff {
            error,
            next_try: self.shown_time(until),
            tries_left,
        };
        self.emit(Some(slot), what);
    }

    /// The notifications that the run saw were not served.
    fn put_back_refresh(&mut self, slot: u32) {
        for at in 0..self.vertex(slot).incoming.len() {
            let edge = self.vertex(slot).incoming[at];
            let edge = self.edges.get_mut(edge);
            if edge.refresh == Refresh::Taken {
                edge.refresh = Refresh::Pending;
            }
        }
    }

    /// The notifications that the run saw were served, or came to a kind that does nothing with them.
    fn consume_refresh(&mut self, slot: u32) {
        let mut senders = Vec::new();
        for at in 0..self.vertex(slot).incoming.len() {
            let index = self.vertex(slot).incoming[at];
            let edge = self.edges.get_mut(index);
            // One that came during the run is pending again, and not taken.
            if edge.refresh == Refresh::Taken {
                edge.refresh = Refresh::None;
                let sender = edge.desired.from.clone();
                let by = sender.to_string();
                senders.push((sender, edge.from));
                self.emit(Some(slot), EventKind::RefreshConsumed { by });
            }
        }
        if !senders.is_empty() {
            self.clear_stored_refresh(slot, senders);
        }
    }

    /// Takes stored notifications back, but for what a run of the sender in progress may store anew.
    pub(super) fn clear_stored_refresh(&mut self, receiver: u32, senders: Vec<(ResourceId, u32)>) {
        let Some(receiver) = self.identity(receiver) else {
            return;
        };
        let mut idle = Vec::new();
        for (sender, slot) in senders {
            let vertex = self.vertex(slot);
            if vertex.flags.running {
                self.actions.push(Action::ClearRefresh {
                    receiver: receiver.clone(),
                    senders: vec![sender],
                    up_to_run: vertex.run - 1,
                });
            } else {
                idle.push(sender);
            }
        }
        if !idle.is_empty() {
            self.actions.push(Action::ClearRefresh {
                receiver,
                senders: idle,
                up_to_run: self.runs,
            });
        }
    }

    /// A run succeeded with repairs allowed: whom it notifies.
    fn notify(&mut self, slot: u32, drifted: bool) {
        for at in 0..self.vertex(slot).outgoing.len() {
            let index = self.vertex(slot).outgoing[at];
            let edge = self.edges.get_mut(index);
            let perhaps = std::mem::take(&mut edge.perhaps);
            if edge.notifies() && (drifted || perhaps) {
                self.set_pending(index);
            }
        }
    }

    /// Sets the bit of a notify edge.
    pub(super) fn set_pending(&mut self, edge: u32) {
        let edge = self.edges.get_mut(edge);
        edge.refresh = Refresh::Pending;
        let (from, to) = (edge.from, edge.to);
        let by = self.show(from);
        self.emit(Some(to), EventKind::RefreshPending { by: by.clone() });
        let refreshable = self
            .vertex(to)
            .live
            .as_ref()
            .is_some_and(|resource| resource.schema.refreshable);
        if refreshable {
            self.make_dirty(to, Cause::RefreshBy(by));
        }
    }

    /// A run repaired something and then failed: its next success notifies.
    fn note_perhaps(&mut self, slot: u32) {
        for at in 0..self.vertex(slot).outgoing.len() {
            let edge = self.vertex(slot).outgoing[at];
            let edge = self.edges.get_mut(edge);
            edge.perhaps = edge.notifies();
        }
    }

    /// Looks whether something else keeps undoing what a run repaired.
    fn note_fight(&mut self, slot: u32, drifts: &[Drift]) {
        let now = self.now;
        let resource = self.live(slot).clone();
        let flags = self.vertex(slot).flags;
        let extras = self.vertex(slot).extras.as_ref();
        let receives = extras.is_some_and(|extras| !extras.received.is_empty());
        if !flags.run_by_watch
            || flags.noop_run
            || receives
            || resource.schema.action
            || resource.meta.limit.is_finite()
            || !drifts.iter().any(|drift| drift.repaired)
        {
            return;
        }
        let fight = self.vertex_mut(slot).extras().fight.get_or_insert_default();
        if let Some(drift) = fight.note(now, drifts).and_then(|index| drifts.get(index)) {
            let what = EventKind::Fighting {
                field: drift.field.as_ref().into(),
                is: drift.is.to_string().into(),
                want: drift.want.to_string().into(),
            };
            self.emit(Some(slot), what);
        }
    }
}
