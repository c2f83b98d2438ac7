//! One run: what it is given, and what follows from how it ended.

use std::sync::Arc;
use std::time::Duration;

use setpoint_graph::ResourceId;

use super::edges::Refresh;
use super::life::{Run, Stage, Wait, Why};
use super::{Action, Check, Due, EventKind, Machine, RunRequest, RunResult, Tries, UnknownParameter};
use crate::{Cause, Drift, DriftValue, Failure, FailureReason, Forecast, ResourceName, RunSummary};

/// As many resources of a group have an event each when they fail; more of them are summed up.
const MOST_NAMED: usize = 16;

impl Machine {
    /// Begins the run of a vertex whose turn it is.
    pub(super) fn start_run(&mut self, slot: u32) {
        self.runs += 1;
        self.running += 1;
        let run = self.runs;
        let now = self.now;
        let resource = self.live(slot).clone();
        let noop = self.is_noop(&resource);
        self.life_mut(slot).start(run, now, noop);
        self.expect_answer();
        let vertex = self.vertex(slot);
        let (hidden, priority) = (vertex.hidden, vertex.height);

        let mut refresh = Vec::new();
        let mut refresh_is_doubtful = true;
        for at in 0..self.vertex(slot).incoming.len() {
            let edge = self.vertex(slot).incoming[at];
            let edge = self.edges.get_mut(edge);
            match edge.refresh {
                Refresh::Pending => {
                    edge.refresh = Refresh::Taken;
                    refresh_is_doubtful = false;
                }
                Refresh::Foreseen { is_certain } => refresh_is_doubtful &= !is_certain,
                Refresh::None | Refresh::Taken => continue,
            }
            if resource.schema.refreshable {
                refresh.push(edge.desired.from.clone());
            }
        }
        let what = EventKind::StartedRun {
            noop,
            refresh: !refresh.is_empty(),
        };
        self.emit(Some(slot), what);
        let mut transfers = match self.prepare_transfer(slot) {
            Ok(transfers) => transfers,
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
        let check = if hidden { Check::SkipAsOk } else { Check::Call };
        let notifies = if noop { Vec::new() } else { self.notifies(slot) };
        let transfer = std::mem::take(&mut transfers.own);
        let mut unknown = std::mem::take(&mut transfers.unknown);
        if self.options.noop {
            unknown.extend(UnknownParameter::all_of(&resource));
        }
        let before = self.predecessors(slot);
        let (received, members) = self.received(slot, transfers);
        let exports = self.exports_of(slot, noop);
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
                refresh_is_doubtful,
                transfer,
                received,
                members,
                before,
                unknown,
                notifies,
                exports,
            }),
        });
    }

    /// The direct predecessors of a vertex, in a plan.
    fn predecessors(&self, slot: u32) -> Vec<ResourceId> {
        if !self.options.noop {
            return Vec::new();
        }
        let edges = self.vertex(slot).incoming.iter();
        edges
            .filter_map(|edge| self.identity(self.edges.get(*edge).from))
            .collect()
    }

    /// Whom a repair of a vertex notifies.
    fn notifies(&self, slot: u32) -> Vec<ResourceId> {
        let edges = self.vertex(slot).outgoing.iter();
        let receivers = edges
            .map(|edge| self.edges.get(*edge))
            .filter(|edge| edge.notifies() && self.may_be_refreshed(edge.to))
            .map(|edge| edge.desired.to.clone());
        let mut receivers: Vec<ResourceId> = receivers.collect();
        receivers.dedup();
        receivers
    }

    /// Whether a notification makes it run; for all others nothing needs to outlive a crash.
    fn may_be_refreshed(&self, slot: u32) -> bool {
        let life = self.vertex(slot).life.as_ref();
        life.is_none_or(|life| life.resource.schema.refreshable)
    }

    /// A run of a vertex has ended.
    pub(super) fn run_ended(&mut self, slot: u32, mut result: RunResult) {
        let Some(run) = self.life_mut(slot).end_run() else {
            return;
        };
        self.running -= 1;
        let resource = self.live(slot).clone();
        self.give_back_semaphores(slot);
        self.tell_drifts(slot, &run, &result);
        self.tell_exported(slot, std::mem::take(&mut result.exported));
        fail_late(&mut result, &run, resource.meta.timeout);
        self.note_failed_members(slot, &result);
        for (member, failure) in &result.failed_members {
            let error = failure.chain().into();
            self.emit_of(slot, Some(member), EventKind::MemberFailed { error });
        }
        self.take_over_values(slot, &mut result);

        let outcome = result.outcome.as_ref();
        let error: Option<Arc<str>> = outcome.err().map(|failure| failure.chain().into());
        let summary = summary(&result);
        let what = EventKind::RunEnded {
            result: summary,
            duration: self.now.saturating_sub(run.began),
            error: error.clone(),
            foreseen: self.forecast(slot, &mut result),
        };
        self.emit(Some(slot), what);
        // An attempt at a repair, for its notifications may be stored already; a repair if the run succeeded.
        let attempted = result.drifts.iter().any(|drift| drift.repaired);
        if error.is_none() {
            self.note_success(slot, &run, &result, attempted, summary);
        }
        if summary == RunSummary::Drift && self.life(slot).fight().is_none() {
            self.convergence.broken_at = self.now;
        }
        match error {
            None if run.noop => self.noop_run_succeeded(slot, &result, summary),
            None => self.run_succeeded(slot, &result, attempted),
            Some(error) => {
                self.put_back_refresh(slot);
                if attempted {
                    self.note_perhaps(slot);
                    self.notify_for_members(slot, &result);
                }
                if failed_as(&result, FailureReason::Waiting) {
                    self.found_missing(slot, error, &result);
                } else {
                    let is_overtaken = failed_as(&result, FailureReason::Overtaken);
                    self.run_failed(slot, &run, error, is_overtaken);
                }
            }
        }

        let is_undone = resource.meta.is_reversal
            && matches!(summary, RunSummary::Ok | RunSummary::Drift)
            && result.checked
            && !run.noop;
        let life = self.life(slot);
        match life.stage() {
            Stage::Finishing { .. } => self.take_away(slot, true),
            _ if life.is_realizing() => self.tear_down(slot),
            Stage::WatchFailed { wait: None, .. } => self.arm_again(slot),
            _ => {}
        }
        if is_undone {
            self.undone(slot);
        }
    }

    /// Reports the drifts of a run that were not reported while it was in progress, and what came of repairs.
    fn tell_drifts(&mut self, slot: u32, run: &Run, result: &RunResult) {
        let later = self.is_later_drift(slot, run);
        for drift in result.drifts.iter().skip(usize::from(run.announced)) {
            self.emit_drift(slot, later, drift);
        }
        for drift in result.drifts.iter().filter(|drift| drift.repaired) {
            let [field, is, want] = shown(drift);
            let effect = drift.effect;
            let what = match self.has_succeeded(slot, drift, result) {
                true => EventKind::Repaired {
                    field,
                    effect,
                    later,
                    is,
                    want,
                },
                false => EventKind::NotRepaired {
                    field,
                    effect,
                    is,
                    want,
                },
            };
            self.emit_of(slot, drift.member.as_ref(), what);
        }
    }

    /// Whether a run finds drift of a resource that was in its state before, and the program asks for nothing new.
    fn is_later_drift(&self, slot: u32, run: &Run) -> bool {
        run.by_watch && self.life(slot).was_settled
    }

    /// Keeps which resources of a group failed, if all others of it are right.
    fn note_failed_members(&mut self, slot: u32, result: &RunResult) {
        let failed = match result.is_partial {
            true => result.failed_members.as_slice(),
            false => &[],
        };
        if failed.is_empty() && self.vertex(slot).failed_members().is_empty() {
            return;
        }
        let mut failed: Vec<_> = failed
            .iter()
            .map(|(id, failure)| (id.clone(), failure.chain().into()))
            .collect();
        failed.dedup_by(|a: &mut (ResourceId, Arc<str>), b| a.0 == b.0);
        self.extras_mut(slot).failed_members = failed;
    }

    /// Whether what was wrong with a resource of a vertex was put right by a run.
    fn has_succeeded(&self, slot: u32, drift: &Drift, result: &RunResult) -> bool {
        let own = || self.identity(slot);
        let is_right = || {
            let about = drift.member.clone().or_else(own);
            !(result.failed_members.iter()).any(|(failed, _)| Some(failed) == about.as_ref())
        };
        result.outcome.is_ok() || drift.is_done || result.is_partial && is_right()
    }

    /// Members of a group were repaired although others failed: those that only they notify hear of it.
    fn notify_for_members(&mut self, slot: u32, result: &RunResult) {
        if !result.is_partial {
            return;
        }
        let own = self.identity(slot);
        let repaired = result.drifts.iter().filter(|drift| drift.repaired);
        let repaired = repaired.filter(|drift| self.has_succeeded(slot, drift, result));
        let repaired: Vec<(ResourceId, ())> = repaired
            .filter_map(|drift| Some((drift.member.clone().or_else(|| own.clone())?, ())))
            .collect();
        for at in 0..self.vertex(slot).outgoing.len() {
            let index = self.vertex(slot).outgoing[at];
            let edge = self.edges.get(index);
            if edge.notifies()
                && edge.begins_at(&result.failed_members).is_none()
                && edge.begins_at(&repaired).is_some()
            {
                self.edges.get_mut(index).perhaps = false;
                self.set_pending(index);
            }
        }
    }

    /// What was received is held from now on, and what was sent goes to its receivers.
    fn take_over_values(&mut self, slot: u32, result: &mut RunResult) {
        if let Some(extras) = &mut self.life_mut(slot).extras {
            let transferring = extras.transferring.take();
            if let Some(holding) = transferring.filter(|_| result.transferred) {
                extras.held = holding;
            }
            if result.restart_interval
                && let Some(interval) = extras.interval
            {
                let notifies = extras.interval_notifies;
                self.start_interval(slot, interval, notifies);
            }
        }
        if let Some(sent) = result.sent.take() {
            self.publish(slot, sent);
        }
        for (member, sent) in std::mem::take(&mut result.sent_by_members) {
            self.publish_of_member(slot, &member, sent);
        }
    }

    /// Counts what a run has repaired, and looks whether repairs follow each other without end.
    fn note_success(
        &mut self,
        slot: u32,
        run: &Run,
        result: &RunResult,
        has_repaired: bool,
        summary: RunSummary,
    ) {
        if has_repaired {
            self.convergence.repaired += 1;
            self.convergence.repaired_at = Some(self.now);
            self.tell_sharers(slot);
        }
        self.note_fight(slot, run, &result.drifts);
        self.note_echo(slot, run, has_repaired, summary);
    }

    fn noop_run_succeeded(&mut self, slot: u32, result: &RunResult, summary: RunSummary) {
        self.put_back_refresh(slot);
        let before = self.life(slot).would_change;
        let would_change = matches!(summary, RunSummary::Drift | RunSummary::Unsure);
        if would_change {
            self.convergence.would_change += 1;
        }
        self.succeeded(slot, would_change);
        // A run with repairs leaves a resource with `Meta:noop` alone, too.
        if self.options.noop && !self.live(slot).meta.noop {
            // A value that is not known yet can turn out to be the present one.
            let is_known = |drift: &Drift| !matches!(drift.want, DriftValue::Unknown(_));
            let is_certain = summary == RunSummary::Drift && result.drifts.iter().any(is_known);
            self.foresee(
                slot,
                before,
                would_change.then_some(Refresh::Foreseen { is_certain }),
            );
        }
    }

    /// Tells the resources behind a vertex that a repair would notify them, or would send them another value.
    fn foresee(&mut self, slot: u32, before: bool, refresh: Option<Refresh>) {
        let would_change = refresh.is_some();
        for at in 0..self.vertex(slot).outgoing.len() {
            let index = self.vertex(slot).outgoing[at];
            let edge = self.edges.get_mut(index);
            let (to, sends) = (edge.to, edge.sends());
            let refresh = refresh.filter(|_| edge.notifies()).unwrap_or(Refresh::None);
            let is_foreseen = matches!(edge.refresh, Refresh::None | Refresh::Foreseen { .. });
            if is_foreseen && edge.refresh != refresh {
                edge.refresh = refresh;
                if self.may_be_refreshed(to) {
                    let by = self.show(slot);
                    self.make_due(to, Cause::RefreshBy(by));
                }
            }
            if sends && before != would_change {
                let by = self.show(slot);
                self.make_due(to, Cause::ReceivedFrom(by));
            }
        }
    }

    /// The forecast of a run without repairs, with the notifications that earlier repairs would send.
    fn forecast(&self, slot: u32, result: &mut RunResult) -> Option<Box<Forecast>> {
        if !self.options.noop {
            return None;
        }
        let mut forecast = result.forecast.take().unwrap_or_default();
        if self.may_be_refreshed(slot) {
            let incoming = self
                .vertex(slot)
                .incoming
                .iter()
                .map(|edge| self.edges.get(*edge));
            let notifying = incoming.filter(|edge| edge.refresh != Refresh::None);
            forecast.notified_by = notifying
                .map(|edge| ResourceName::from(&edge.desired.from))
                .collect();
        }
        (*forecast != Forecast::default()).then_some(forecast)
    }

    fn run_succeeded(&mut self, slot: u32, result: &RunResult, has_repaired: bool) {
        self.consume_refresh(slot);
        if (result.checked || self.vertex(slot).hidden)
            && let Some(extras) = &mut self.life_mut(slot).extras
        {
            for received in &mut extras.received {
                received.received.changed = false;
            }
        }
        if self.live(slot).meta.retryreset {
            self.vertex_mut(slot).run_tries = 0;
        }
        // What a member may not repair was found, and is as it was.
        self.notify(slot, has_repaired);
        let would_change = result.drifts.iter().any(|drift| !drift.repaired);
        self.convergence.would_change += u64::from(would_change);
        self.succeeded(slot, would_change);
    }

    fn succeeded(&mut self, slot: u32, would_change: bool) {
        let life = self.life_mut(slot);
        life.was_settled = true;
        life.would_change = would_change;
        life.failing = false;
        life.waiting_for_host = false;
        life.second_chance = false;
        life.failures = 0;
        let error = life.extras.as_mut().and_then(|extras| extras.error.take());
        if error.is_some() {
            // It stands otherwise than it did.
            self.convergence.broken_at = self.now;
        }
    }

    fn run_failed(&mut self, slot: u32, run: &Run, error: Arc<str>, is_overtaken: bool) {
        let life = self.life_mut(slot);
        // A run that was cancelled because the watch failed, or because it goes, has not failed by itself.
        if !life.is_watching() || life.is_leaving() {
            return;
        }
        life.stay_due();
        life.waiting_for_host = false;
        self.note_failure(slot, &error);
        let tries = self.tries(self.live(slot));
        // What came during the run may be what it lacked. Only once, for the run itself may have caused it.
        let event_came = run.again.is_some() || is_overtaken;
        let life = self.life_mut(slot);
        let second_chance = event_came && !std::mem::replace(&mut life.second_chance, event_came);
        let vertex = self.vertex_mut(slot);
        match tries {
            Tries::UpTo(most) if vertex.run_tries >= most => {
                if !second_chance {
                    self.fail_for_good(slot, error);
                }
            }
            Tries::UpTo(most) => {
                vertex.run_tries += 1;
                let left = most - vertex.run_tries;
                self.back_off(slot, Why::Backoff, error, Some(left));
            }
            Tries::Endless => self.back_off(slot, Why::Backoff, error, None),
            Tries::UntilRight => {
                self.back_off(slot, Why::Failing, error, None);
                if second_chance {
                    self.try_soon(slot);
                }
            }
        }
    }

    /// A run found that something outside this machine has not come to pass: no try is counted, and no time ends the wait. Who does
    /// not keep trying does not wait either.
    fn found_missing(&mut self, slot: u32, error: Arc<str>, result: &RunResult) {
        let life = self.life(slot);
        if !life.is_watching() || life.is_leaving() {
            return;
        }
        let event_came = life.due().is_some();
        self.life_mut(slot).stay_due();
        let life = self.life_mut(slot);
        life.failing = false;
        life.waiting_for_host = true;
        life.failures = 0;
        if !self.options.keep_trying {
            self.extras_mut(slot).error = Some(error.clone());
            return self.fail_for_good(slot, error);
        }
        let missing = result.outcome.as_ref().err().and_then(std::error::Error::source);
        let missing: Arc<str> = missing.map_or(error, |missing| missing.to_string().into());
        let before = self.extras_mut(slot).error.replace(missing.clone());
        if before.as_ref() != Some(&missing) {
            self.convergence.broken_at = self.now;
        }
        self.emit(Some(slot), EventKind::WaitingForHost { missing });
        // What came during the run may be it.
        if !event_came {
            let (why, until) = (Why::WaitingForHost, Duration::MAX);
            self.life_mut(slot).wait_until(Wait { why, until });
        }
    }

    /// Keeps the reason. That what had failed before has failed again in the same way is no news.
    pub(super) fn note_failure(&mut self, slot: u32, error: &Arc<str>) {
        let now = self.now;
        let failing = self.life(slot).failing;
        let extras = self.extras_mut(slot);
        extras.failed_at = now;
        let before = extras.error.replace(error.clone());
        if !failing || before.as_ref() != Some(error) {
            self.convergence.broken_at = now;
        }
    }

    /// Waits before the next try.
    pub(super) fn back_off(&mut self, slot: u32, why: Why, error: Arc<str>, tries_left: Option<u16>) {
        let resource = self.live(slot).clone();
        let life = self.life_mut(slot);
        life.failures = life.failures.saturating_add(1);
        life.failing = why == Why::Failing;
        let failures = life.failures;
        let until = self.now.saturating_add(self.delay(&resource, failures));
        self.wait_until(slot, Wait { why, until });
        let next_try = self.shown_time(until);
        self.emit_failure(slot, error, |error| EventKind::BackingOff {
            error,
            next_try,
            tries_left,
        });
    }

    /// An event about the failure of a vertex: of each resource of a group that failed, if they are few.
    pub(super) fn emit_failure(&mut self, slot: u32, error: Arc<str>, event: impl Fn(Arc<str>) -> EventKind) {
        let failed = self.vertex(slot).failed_members().to_vec();
        if failed.is_empty() || failed.len() > MOST_NAMED {
            return self.emit(Some(slot), event(error));
        }
        let own = self.identity(slot);
        for (member, error) in &failed {
            let member = (own.as_ref() != Some(member)).then_some(member);
            self.emit_of(slot, member, event(error.clone()));
        }
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
            if let Some(run) = self.vertex(slot).run() {
                self.actions.push(Action::ClearRefresh {
                    receiver: receiver.clone(),
                    senders: vec![sender],
                    up_to_run: run.number - 1,
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
    pub(super) fn notify(&mut self, slot: u32, drifted: bool) {
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
            .life
            .as_ref()
            .is_some_and(|life| life.resource.schema.refreshable);
        if refreshable {
            self.make_due(to, Cause::RefreshBy(by));
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
    fn note_fight(&mut self, slot: u32, run: &Run, drifts: &[Drift]) {
        let now = self.now;
        let resource = self.live(slot).clone();
        let extras = self.vertex(slot).extras();
        let receives = extras.is_some_and(|extras| !extras.received.is_empty());
        if !run.by_watch
            || run.noop
            || receives
            || resource.schema.action
            || resource.meta.limit.is_finite()
            || !drifts.iter().any(|drift| drift.repaired)
        {
            return;
        }
        let fight = self.extras_mut(slot).fight.get_or_insert_default();
        if let Some(drift) = fight.note(now, drifts).and_then(|index| drifts.get(index)) {
            let [field, is, want] = shown(drift);
            self.emit_of(
                slot,
                drift.member.as_ref(),
                EventKind::Conflict { field, is, want },
            );
            self.await_end_of_fight(slot);
        }
    }

    fn await_end_of_fight(&mut self, slot: u32) {
        let incarnation = self.vertex(slot).incarnation;
        let fight = self
            .vertex(slot)
            .extras()
            .and_then(|extras| extras.fight.as_ref());
        if let Some(fight) = fight.filter(|fight| fight.about().is_some()) {
            let over = fight.over_at();
            self.timers.set(over, Due::FightOver { slot, incarnation });
        }
    }

    /// Forgets a fight that is over, and looks again later at one that is not.
    pub(super) fn look_at_fight(&mut self, slot: u32, incarnation: u32) {
        let now = self.now;
        let Some(vertex) = self.vertices.get_mut(slot as usize) else {
            return;
        };
        if vertex.incarnation != incarnation || vertex.life.is_none() {
            return;
        }
        let fight = vertex.extras().and_then(|extras| extras.fight.as_ref());
        if fight.is_some_and(|fight| fight.over_at() <= now) {
            self.extras_mut(slot).fight = None;
        } else {
            self.await_end_of_fight(slot);
        }
    }

    /// Notes who manages the same thing as somebody else.
    pub(super) fn share(&mut self, groups: Vec<Vec<ResourceId>>) {
        self.sharing.clear();
        for group in groups {
            let group: Arc<[ResourceId]> = group.into();
            for id in group.iter() {
                self.sharing.insert(id.clone(), group.clone());
            }
        }
    }

    /// What one repairs, others who manage the same thing must look at, whether or not their watches have seen it yet. Else
    /// a host could look quiet between two repairs that undo each other.
    fn tell_sharers(&mut self, slot: u32) {
        if self.sharing.is_empty() {
            return;
        }
        let resource = self.live(slot).clone();
        let members = resource.members.all();
        for part in std::iter::once(&resource).chain(members) {
            let Some(sharers) = self.sharing.get(&part.id).cloned() else {
                continue;
            };
            for other in sharers.iter().filter(|other| **other != part.id) {
                for other in self.slots_of(other) {
                    self.watch_event(other, Cause::Watch(part.id.to_string().into()));
                }
            }
        }
    }

    /// The event that our own repair causes takes no token of the limit: that of an event after a repair is given back
    /// when its run finds nothing.
    fn note_echo(&mut self, slot: u32, run: &Run, repaired: bool, summary: RunSummary) {
        let life = self.life_mut(slot);
        let burst = life.resource.meta.burst;
        let bucket = life.extras.as_mut().and_then(|extras| extras.bucket.as_mut());
        if let Some(bucket) = bucket {
            let is_echo = bucket.after_repair && run.by_watch && summary == RunSummary::Ok;
            bucket.after_repair = repaired;
            if is_echo {
                bucket.give_back(burst);
            }
        }
    }

    /// A run in progress has found something wrong.
    pub(super) fn drift_found(&mut self, slot: u32, drift: &Drift) {
        if let Some(run) = self.life_mut(slot).run_mut()
            && let Some(announced) = run.announced.checked_add(1)
        {
            run.announced = announced;
            let run = *run;
            let later = self.is_later_drift(slot, &run);
            self.emit_drift(slot, later, drift);
        }
    }

    fn emit_drift(&mut self, slot: u32, later: bool, drift: &Drift) {
        let [field, is, want] = shown(drift);
        let repairing = drift.repaired.then(|| field.clone());
        let diff = drift.difference().map(Into::into);
        let attributes = drift.attributes.iter();
        let attributes = attributes.map(|(name, value)| ((*name).into(), value.to_string().into()));
        let what = EventKind::Drift {
            field,
            effect: drift.effect,
            later,
            is,
            want,
            unknown: matches!(drift.want, DriftValue::Unknown(_)),
            diff,
            attributes: attributes.collect(),
        };
        self.emit_of(slot, drift.member.as_ref(), what);
        if let Some(field) = repairing {
            self.emit_of(slot, drift.member.as_ref(), EventKind::Repairing { field });
        }
    }
}

/// A run fails also if not all of what it exports could be written; and one that had no more time fails for that reason.
fn fail_late(result: &mut RunResult, run: &Run, timeout: u64) {
    let mut attempted = "finish";
    if let (Ok(()), Some(failure)) = (&result.outcome, result.not_exported.take()) {
        attempted = "export";
        result.outcome = Err(failure);
    }
    result.is_partial &= !run.timed_out;
    if run.timed_out && result.outcome.is_err() {
        let after = Duration::from_millis(timeout).as_secs_f64();
        let message = format!("{attempted}: timeout after {after} seconds");
        result.outcome = Err(Failure::new(message));
    }
}

fn summary(result: &RunResult) -> RunSummary {
    match result.outcome {
        Err(_) if failed_as(result, FailureReason::Waiting) => RunSummary::Waiting,
        Err(_) => RunSummary::Failed,
        Ok(()) if result.is_unsure() => RunSummary::Unsure,
        Ok(()) if result.drifts.is_empty() => RunSummary::Ok,
        Ok(()) => RunSummary::Drift,
    }
}

/// Whether a run failed for this reason.
fn failed_as(result: &RunResult, reason: FailureReason) -> bool {
    let failure = result.outcome.as_ref().err();
    failure.is_some_and(|failure| failure.reason() == reason)
}

/// Field, what is and what shall be, as events show them.
fn shown(drift: &Drift) -> [Arc<str>; 3] {
    [
        drift.field.as_ref().into(),
        drift.is.to_string().into(),
        drift.want.to_string().into(),
    ]
}
