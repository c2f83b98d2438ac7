//! From being added to being gone: `init`, the watch, failing for good, and the way out.

use std::sync::Arc;
use std::time::Duration;

use setpoint_graph::{DesiredResource, KindSchema, ResourceId};
use smallvec::SmallVec;

use super::edges::Refresh;
use super::life::{Life, Stage, Why};
use super::{Action, Armed, EventKind, Initialised, Machine, Tries};
use crate::{CancelCause, Cause, Failure, Level, ResourceName};

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
        let hidden = self.vertex(slot).hidden;
        if !hidden && let Some(in_the_way) = self.lives_elsewhere(slot, &wanted) {
            let waiting = self.handovers.entry(in_the_way).or_default();
            if !waiting.contains(&slot) {
                waiting.push(slot);
            }
            return;
        }
        let members = wanted.members.all();
        for member in &members {
            self.homes.insert(member.id.clone(), slot);
        }
        let members = members
            .iter()
            .map(|member| ResourceName::from(&member.id))
            .collect();
        self.alive += 1;
        let now = self.now;
        let vertex = self.vertex_mut(slot);
        if let Some(published) = &mut vertex.published {
            published
                .by_members
                .retain(|member, _| wanted.part(member).is_some());
        }
        vertex.life = Some(Life::new(wanted.clone(), now));
        let reversal = self.live(slot).meta.is_reversal;
        self.emit(Some(slot), EventKind::Added { reversal, members });
        if hidden {
            self.first_event(slot);
        } else {
            self.initialise(slot);
        }
    }

    /// Another slot in which something of what is to be added still lives: as a member of a group, or as a resource of its own.
    fn lives_elsewhere(&self, slot: u32, wanted: &DesiredResource) -> Option<u32> {
        let as_member = |id: &ResourceId| self.homes.get(id).copied();
        let as_member = |id: &ResourceId| as_member(id).filter(|home| *home != slot);
        let alone = |id: &ResourceId| {
            let slots = self.index.get(id, &self.vertices);
            slots.into_iter().find(|other| {
                let vertex = self.vertex(*other);
                *other != slot && !vertex.hidden && vertex.life.is_some()
            })
        };
        let members = wanted.members.all();
        as_member(&wanted.id).or_else(|| {
            let mut members = members.iter();
            members.find_map(|member| as_member(&member.id).or_else(|| alone(&member.id)))
        })
    }

    /// The slots of an identity: its own, or that of the group it is in.
    pub(super) fn slots_of(&self, id: &ResourceId) -> SmallVec<[u32; 2]> {
        let mut slots = self.index.get(id, &self.vertices);
        slots.extend(self.homes.get(id).copied());
        slots
    }

    /// Calls `init`.
    pub(super) fn initialise(&mut self, slot: u32) {
        let resource = self.live(slot).clone();
        let arm = resource.meta.poll == 0;
        let load_refresh = self.vertex(slot).incoming.iter().any(|edge| {
            let edge = self.edges.get(*edge);
            edge.notifies() && edge.refresh == Refresh::None
        });
        let record = self.record_work(slot);
        let now = self.now;
        self.life_mut(slot).initialise(now);
        self.expect_answer();
        let vertex = self.id(slot);
        self.actions.push(Action::Init {
            vertex,
            resource,
            arm,
            load_refresh,
            record,
        });
    }

    pub(super) fn init_ended(&mut self, slot: u32, result: Result<Initialised, Failure>) {
        let life = self.life(slot);
        if !matches!(life.stage(), Stage::Initialising { .. }) {
            return;
        }
        let leaves = life.is_leaving();
        let initialised = match result {
            Ok(initialised) => initialised,
            Err(_) if leaves => return self.take_away(slot, false),
            Err(failure) => return self.watch_try_failed(slot, &failure),
        };
        let polls = life.resource.meta.poll != 0;
        let realizing = life.is_realizing();
        let now = self.now;
        self.life_mut(slot).arm(now);
        self.expect_answer();
        for sender in initialised.refresh {
            self.restore_refresh(slot, &sender);
        }
        if leaves && !realizing {
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

    /// Arms the watch again, after it failed or after the resource had given up.
    pub(super) fn arm_again(&mut self, slot: u32) {
        // The instance is with its run; the end of that comes back here.
        let now = self.now;
        if !self.life_mut(slot).arm(now) {
            return;
        }
        self.expect_answer();
        if self.vertex(slot).hidden {
            return self.first_event(slot);
        }
        if self.live(slot).meta.poll != 0 {
            return self.start_polling(slot);
        }
        let vertex = self.id(slot);
        self.actions.push(Action::Arm { vertex });
    }

    pub(super) fn watch_armed(&mut self, slot: u32, result: Result<Armed, Failure>) {
        if !matches!(self.life(slot).stage(), Stage::Arming { .. }) {
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
        let pending = self.event_of_watch(slot);
        self.life_mut(slot).begin_watching(pending);
        if !self.vertex(slot).hidden {
            self.emit(Some(slot), EventKind::Watching);
        }
        let cause = Cause::FirstEvent;
        self.emit(Some(slot), EventKind::Dirty { cause });
        self.note_limit(slot, pending);
    }

    pub(super) fn watch_failed(&mut self, slot: u32, failure: &Failure) {
        if self.life(slot).is_realizing() {
            // It goes without having run, or when the run that is under way has ended.
            self.tear_down(slot);
        }
        let armed = |life: &Life| life.is_armed();
        if !self.vertex(slot).life.as_ref().is_some_and(armed) {
            return;
        }
        self.withdraw(slot);
        self.disarm(slot);
        let cancels = self.life_mut(slot).lose_watch();
        if cancels {
            self.cancel(slot, CancelCause::Superseded);
        }
        if !self.life(slot).is_leaving() {
            self.watch_try_failed(slot, failure);
        }
    }

    /// A failed `init` or watch: tried again later, or given up.
    fn watch_try_failed(&mut self, slot: u32, failure: &Failure) {
        let error: Arc<str> = failure.chain().into();
        self.note_failure(slot, &error);
        let tries = self.tries(self.live(slot));
        let life = self.life_mut(slot);
        match tries {
            Tries::UpTo(most) if life.watch_tries >= most => self.fail_for_good(slot, error),
            Tries::UpTo(most) => {
                life.watch_tries += 1;
                let left = most - life.watch_tries;
                self.back_off(slot, Why::Backoff, error, Some(left));
            }
            Tries::Endless => self.back_off(slot, Why::Backoff, error, None),
            Tries::UntilRight => self.back_off(slot, Why::Failing, error, None),
        }
    }

    pub(super) fn fail_for_good(&mut self, slot: u32, error: Arc<str>) {
        self.withdraw(slot);
        self.disarm(slot);
        self.life_mut(slot).fail_for_good();
        self.emit_failure(slot, error, |error| EventKind::GaveUp { error });
    }

    /// Tells the run in progress to stop.
    pub(super) fn cancel(&mut self, slot: u32, cause: CancelCause) {
        let vertex = self.id(slot);
        self.actions.push(Action::Cancel { vertex, cause });
    }

    /// Ends its watch, if it has one that is armed or being armed.
    fn disarm(&mut self, slot: u32) {
        let hidden = self.vertex(slot).hidden;
        let life = self.life_mut(slot);
        if let Some(extras) = &mut life.extras {
            extras.interval = None;
        }
        if life.is_armed() && !hidden && life.resource.meta.poll == 0 {
            let vertex = self.id(slot);
            self.actions.push(Action::Disarm { vertex });
        }
    }

    /// A user asks for a run; what gave up starts again.
    pub(super) fn recheck(&mut self, id: &ResourceId) {
        if self.stopping.is_some() {
            return;
        }
        for slot in self.slots_of(id) {
            let vertex = self.vertex(slot);
            let Some(life) = vertex.life.as_ref().filter(|life| !life.is_leaving()) else {
                continue;
            };
            let &Stage::GaveUp { initialised, .. } = life.stage() else {
                self.make_due(slot, Cause::Rechecked);
                continue;
            };
            let vertex = self.vertex_mut(slot);
            vertex.run_tries = 0;
            let life = self.life_mut(slot);
            life.watch_tries = 0;
            life.failures = 0;
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
        let life = self.vertex(slot).life.as_ref();
        let Some(life) = life.filter(|life| !life.is_leaving()) else {
            return;
        };
        let running = life.is_running();
        if life.resource.schema.exclusive {
            let chunk = chunk(life.resource.schema);
            *self.exclusive_leaving.entry(chunk).or_default() += 1;
        }
        if running {
            self.emit(Some(slot), EventKind::Finishing);
        }
        if realizing {
            self.life_mut(slot).realize();
        } else {
            self.tear_down(slot);
        }
    }

    /// Goes on with taking away, as far as it goes now.
    pub(super) fn tear_down(&mut self, slot: u32) {
        self.withdraw(slot);
        if let Some(initialised) = self.life_mut(slot).leave() {
            self.take_away(slot, initialised);
        }
    }

    /// Takes away what lives in a slot and has nothing under way.
    pub(super) fn take_away(&mut self, slot: u32, initialised: bool) {
        self.disarm(slot);
        let must_drain = self.must_drain(slot);
        let now = self.now;
        self.life_mut(slot).go(initialised, must_drain, now);
        self.expect_answer();
        if must_drain {
            return;
        }
        if self.vertex(slot).hidden {
            // Nothing was ever made of it.
            return self.cleanup_ended(slot, None);
        }
        let vertex = self.id(slot);
        self.actions.push(Action::Cleanup { vertex, initialised });
    }

    /// Nothing is left of what lived in a slot.
    pub(super) fn cleanup_ended(&mut self, slot: u32, failure: Option<&Failure>) {
        if !matches!(self.life(slot).stage(), Stage::CleaningUp { .. }) {
            return;
        }
        if let Some(failure) = failure {
            let message = format!("failed to {}", failure.chain());
            let level = Level::Error;
            self.emit(Some(slot), EventKind::Log { level, message });
        }
        let members = self.live(slot).clone();
        let members = members.members.all();
        for member in &members {
            self.homes.remove(&member.id);
        }
        let members = members
            .iter()
            .map(|member| ResourceName::from(&member.id))
            .collect();
        self.emit(Some(slot), EventKind::Removed { members });
        self.alive -= 1;
        let vertex = self.vertex_mut(slot);
        vertex.incarnation = vertex.incarnation.wrapping_add(1);
        if let Some(life) = vertex.life.take() {
            if vertex.wanted.is_some() {
                self.add(slot);
            } else {
                self.forget(slot, &life.resource.id);
            }
            if life.resource.schema.exclusive {
                self.exclusive_left(chunk(life.resource.schema));
            }
        }
        for waiting in self.handovers.remove(&slot).unwrap_or_default() {
            if self.vertex(waiting).life.is_none() {
                self.add(waiting);
            }
        }
        self.drained(slot);
    }

    /// The slot is free for another identity.
    fn forget(&mut self, slot: u32, id: &ResourceId) {
        self.index.remove(id, slot);
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
            if self.vertex(slot).life.is_none() {
                self.add(slot);
            }
        }
    }

    /// What a swap no longer wants although it still waits to be added.
    pub(super) fn cancel_pending_add(&mut self, slot: u32) {
        let vertex = self.vertex_mut(slot);
        if vertex.life.is_some() {
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
