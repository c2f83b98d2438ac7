//! From being added to being gone: `init`, the watch, failing for good, and the way out.

use std::sync::Arc;
use std::time::Duration;

use setpoint_graph::{KindSchema, ResourceId};

use super::edges::Refresh;
use super::vertex::{Flags, Hold, NONE, Phase};
use super::{Action, Armed, EventKind, Initialised, Machine, Tries};
use crate::{CancelCause, Cause, Failure};

impl Machine {
    /// Brings in what a slot in which nothing lives is wanted to hold, unless a port must be free first.
    pub(super) fn add(&mut self, slot: u32) {
        let Some(wanted) = self.vertex(slot).wanted.clone() else {
            return;
        };
        if wanted.schema.exclusive && self.exclusive_leaving.contains_key(chunk(wanted.schema)) {
            self.exclusive_waiting.push(slot);
            return;
        }
        self.alive += 1;
        let vertex = self.vertex_mut(slot);
        let hidden = vertex.flags.hidden;
        vertex.live = Some(wanted);
        vertex.watch_tries = 0;
        vertex.failures = 0;
        vertex.extras = None;
        vertex.hold = Hold::None;
        vertex.flags = Flags {
            hidden,
            dirty: true,
            touched: vertex.flags.touched,
            busy: vertex.flags.busy,
            blocked: vertex.flags.blocked,
            locally_settled: vertex.flags.locally_settled,
            ..Flags::default()
        };
        self.emit(Some(slot), EventKind::Added);
        if hidden {
            self.vertex_mut(slot).flags.initialised = false;
            self.first_event(slot);
        } else {
            self.initialise(slot);
        }
    }

    /// Calls `init`.
    pub(super) fn initialise(&mut self, slot: u32) {
        let resource = self.live(slot).clone();
        let arm = resource.meta.poll == 0;
        let load_refresh = self.vertex(slot).incoming.iter().any(|edge| {
            let edge = self.edges.get(*edge);
            edge.notifies() && edge.refresh == Refresh::None
        });
        self.vertex_mut(slot).phase = Phase::Initialising;
        let vertex = self.id(slot);
        self.actions.push(Action::Init {
            vertex,
            resource,
            arm,
            load_refresh,
        });
    }

    pub(super) fn init_ended(&mut self, slot: u32, result: Result<Initialised, Failure>) {
        if self.vertex(slot).phase != Phase::Initialising {
            return;
        }
        let result = match result {
            Ok(initialised) => initialised,
            Err(failure) => {
                self.vertex_mut(slot).phase = Phase::InitWaits;
                if self.vertex(slot).flags.leaving {
                    return self.tear_down(slot);
                }
                return self.watch_try_failed(slot, &failure);
            }
        };
        let vertex = self.vertex_mut(slot);
        vertex.flags.initialised = true;
        let polls = vertex
            .live
            .as_ref()
            .is_some_and(|resource| resource.meta.poll != 0);
        vertex.phase = Phase::Arming;
        vertex.flags.armed = !polls;
        for sender in result.refresh {
            self.restore_refresh(slot, &sender);
        }
        if self.vertex(slot).flags.leaving && !self.vertex(slot).flags.realizing {
            self.tear_down(slot);
        } else if polls {
            self.start_polling(slot);
        }
    }

    /// A notification that an earlier process stored is pending.
    fn restore_refresh(&mut self, slot: u32, sender: &ResourceId) {
        let found = self.vertex(slot).incoming.iter().copied().find(|edge| {
            let edge = self.edges.get(*edge);
            edge.notifies() && edge.desired.from == *sender
        });
        if let Some(edge) = found
            && self.edges.get(edge).refresh == Refresh::None
        {
            self.set_pending(edge);
        }
    }

    fn start_polling(&mut self, slot: u32) {
        let poll = self.live(slot).meta.poll;
        if let Ok(seconds @ 1..) = u64::try_from(poll) {
            self.start_interval(slot, Duration::from_secs(seconds), false);
        }
        self.first_event(slot);
    }

    /// Arms the watch again, after it failed or after the resource had failed for good.
    pub(super) fn arm_again(&mut self, slot: u32) {
        // The instance is with its run; the end of that comes back here.
        if self.vertex(slot).flags.running {
            self.vertex_mut(slot).phase = Phase::WatchWaits;
            return;
        }
        if self.vertex(slot).flags.hidden {
            return self.first_event(slot);
        }
        if self.live(slot).meta.poll != 0 {
            return self.start_polling(slot);
        }
        let vertex = self.vertex_mut(slot);
        vertex.phase = Phase::Arming;
        vertex.flags.armed = true;
        let vertex = self.id(slot);
        self.actions.push(Action::Arm { vertex });
    }

    pub(super) fn watch_armed(&mut self, slot: u32, result: Result<Armed, Failure>) {
        if self.vertex(slot).phase != Phase::Arming {
            return;
        }
        match result {
            Ok(armed) => {
                if let Some(interval) = armed.interval {
                    self.start_interval(slot, interval, armed.ticks);
                }
                self.first_event(slot);
            }
            Err(failure) => self.watch_failed(slot, &failure),
        }
    }

    /// The first event: the resource may run from here on, and must.
    fn first_event(&mut self, slot: u32) {
        let vertex = self.vertex_mut(slot);
        vertex.phase = Phase::Watching;
        vertex.flags.dirty = true;
        if !vertex.flags.hidden {
            self.emit(Some(slot), EventKind::Watching);
        }
        let cause = Cause::FirstEvent;
        self.emit(Some(slot), EventKind::Dirty { cause });
        self.limit_event(slot);
    }

    pub(super) fn watch_failed(&mut self, slot: u32, failure: &Failure) {
        let vertex = self.vertex(slot);
        if !matches!(vertex.phase, Phase::Arming | Phase::Watching) {
            return;
        }
        let running = vertex.flags.running;
        self.withdraw(slot);
        self.disarm(slot);
        let vertex = self.vertex_mut(slot);
        vertex.phase = Phase::WatchWaits;
        vertex.flags.dirty = true;
        if running {
            self.cancel(slot, CancelCause::Superseded);
        } else if self.vertex(slot).flags.leaving {
            return self.tear_down(slot);
        }
        self.watch_try_failed(slot, failure);
    }

    /// A failed `init` or watch: tried again later, or failed for good.
    fn watch_try_failed(&mut self, slot: u32, failure: &Failure) {
        let error: Arc<str> = failure.chain().into();
        self.note_failure(slot, &error);
        let tries = self.tries(self.live(slot));
        let vertex = self.vertex_mut(slot);
        match tries {
            Tries::UpTo(most) if vertex.watch_tries >= most => self.fail_for_good(slot, error),
            Tries::UpTo(most) => {
                vertex.watch_tries += 1;
                let left = most - vertex.watch_tries;
                self.back_off(slot, Hold::Backoff, error, Some(left));
            }
            Tries::Endless => self.back_off(slot, Hold::Backoff, error, None),
            Tries::UntilRight => self.back_off(slot, Hold::Failing, error, None),
        }
    }

    pub(super) fn fail_for_good(&mut self, slot: u32, error: Arc<str>) {
        self.withdraw(slot);
        self.disarm(slot);
        let vertex = self.vertex_mut(slot);
        vertex.phase = Phase::Failed;
        vertex.flags.dirty = true;
        vertex.flags.failing = false;
        self.emit(Some(slot), EventKind::FailedForGood { error });
    }

    /// Tells the run in progress to stop; that it fails then is not its fault.
    pub(super) fn cancel(&mut self, slot: u32, cause: CancelCause) {
        self.vertex_mut(slot).flags.uncounted = true;
        let vertex = self.id(slot);
        self.actions.push(Action::Cancel { vertex, cause });
    }

    fn disarm(&mut self, slot: u32) {
        let vertex = self.vertex_mut(slot);
        if let Some(extras) = &mut vertex.extras {
            extras.interval = None;
        }
        if std::mem::replace(&mut vertex.flags.armed, false) {
            let vertex = self.id(slot);
            self.actions.push(Action::Disarm { vertex });
        }
    }

    /// A user asks for a run; what failed for good starts again.
    pub(super) fn poke(&mut self, id: &ResourceId) {
        if self.stopping.is_some() {
            return;
        }
        for slot in self.index.get(id).cloned().unwrap_or_default() {
            let vertex = self.vertex(slot);
            if vertex.live.is_none() || vertex.flags.leaving {
                continue;
            }
            if vertex.phase != Phase::Failed {
                self.make_dirty(slot, Cause::Poked);
                continue;
            }
            let vertex = self.vertex_mut(slot);
            vertex.watch_tries = 0;
            vertex.run_tries = 0;
            vertex.failures = 0;
            let initialised = vertex.flags.initialised || vertex.flags.hidden;
            self.convergence.broken_at = self.now;
            if initialised {
                self.arm_again(slot);
            } else {
                self.initialise(slot);
            }
        }
    }

    /// Begins to take away what lives in a slot; with `realizing` it runs once before.
    pub(super) fn leave(&mut self, slot: u32, realizing: bool) {
        let vertex = self.vertex(slot);
        let Some(resource) = vertex.live.clone() else {
            return;
        };
        if vertex.flags.leaving {
            return;
        }
        let running = vertex.flags.running;
        if resource.schema.exclusive {
            *self.exclusive_leaving.entry(chunk(resource.schema)).or_default() += 1;
        }
        if !realizing {
            self.withdraw(slot);
        }
        let vertex = self.vertex_mut(slot);
        vertex.flags.leaving = true;
        vertex.flags.realizing = realizing;
        if realizing {
            // Whoever it was in line behind, it no longer waits for its predecessors.
            vertex.waiting_on = NONE;
        }
        if running {
            self.emit(Some(slot), EventKind::Finishing);
        }
        if !realizing {
            self.tear_down(slot);
        }
    }

    /// Goes on with taking away, as far as it goes now.
    pub(super) fn tear_down(&mut self, slot: u32) {
        let vertex = self.vertex(slot);
        if vertex.flags.running || !vertex.flags.leaving {
            return;
        }
        match vertex.phase {
            Phase::Absent | Phase::Initialising | Phase::Cleaning => return,
            Phase::InitWaits
            | Phase::Arming
            | Phase::Watching
            | Phase::WatchWaits
            | Phase::Failed
            | Phase::Draining => {}
        }
        self.withdraw(slot);
        self.disarm(slot);
        let vertex = self.vertex_mut(slot);
        vertex.flags.realizing = false;
        let (initialised, hidden) = (vertex.flags.initialised, vertex.flags.hidden);
        if self.must_drain(slot) {
            self.vertex_mut(slot).phase = Phase::Draining;
            return;
        }
        self.vertex_mut(slot).phase = Phase::Cleaning;
        if hidden {
            // Nothing was ever made of it.
            return self.cleanup_ended(slot, None);
        }
        let vertex = self.id(slot);
        self.actions.push(Action::Cleanup { vertex, initialised });
    }

    /// Nothing is left of what lived in a slot.
    pub(super) fn cleanup_ended(&mut self, slot: u32, failure: Option<&Failure>) {
        if self.vertex(slot).phase != Phase::Cleaning {
            return;
        }
        if let Some(failure) = failure {
            let message = format!("failed to {}", failure.chain());
            let level = "error".into();
            self.emit(Some(slot), EventKind::Log { level, message });
        }
        self.emit(Some(slot), EventKind::Removed);
        self.alive -= 1;
        let vertex = self.vertex_mut(slot);
        let was = vertex.live.take();
        vertex.incarnation = vertex.incarnation.wrapping_add(1);
        vertex.phase = Phase::Absent;
        vertex.extras = None;
        vertex.flags.has_published = false;
        vertex.flags.leaving = false;
        vertex.flags.dirty = false;
        if let Some(resource) = was {
            if self.vertex(slot).wanted.is_some() {
                self.add(slot);
            } else {
                self.vertex_mut(slot).live = None;
                self.forget(slot, &resource.id);
            }
            if resource.schema.exclusive {
                self.exclusive_left(chunk(resource.schema));
            }
        }
        self.drained(slot);
    }

    /// The slot is free for another identity.
    fn forget(&mut self, slot: u32, id: &ResourceId) {
        if let Some(slots) = self.index.get_mut(id) {
            slots.retain(|other| *other != slot);
            if slots.is_empty() {
                self.index.remove(id);
            }
        }
        self.free.push(slot);
    }

    fn exclusive_left(&mut self, chunk_left: &'static str) {
        let Some(count) = self.exclusive_leaving.get_mut(chunk_left) else {
            return;
        };
        *count -= 1;
        if *count > 0 {
            return;
        }
        self.exclusive_leaving.remove(chunk_left);
        for slot in std::mem::take(&mut self.exclusive_waiting) {
            if self.vertex(slot).live.is_none() {
                self.add(slot);
            }
        }
    }

    /// What a swap no longer wants although it still waits to be added.
    pub(super) fn forget_unborn(&mut self, slot: u32) {
        let vertex = self.vertex_mut(slot);
        if vertex.live.is_some() {
            return;
        }
        vertex.incarnation = vertex.incarnation.wrapping_add(1);
        let id = vertex.wanted.take().map(|wanted| wanted.id.clone());
        self.exclusive_waiting.retain(|other| *other != slot);
        if let Some(id) = id {
            self.forget(slot, &id);
        }
    }
}

/// The first chunk of a kind: what kinds that share a port have in common.
pub(super) fn chunk(schema: &KindSchema) -> &'static str {
    schema.kind.split(':').next().unwrap_or(schema.kind)
}
