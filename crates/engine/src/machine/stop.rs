//! Stopping: three stages, each harder than the one before, and the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use setpoint_graph::ResourceId;

use super::life::{Life, Stage};
use super::{Action, EventKind, ExitReason, ExitReport, Machine, StopStage};
use crate::CancelCause;

/// The engine is stopping.
#[derive(Debug)]
pub(super) struct Stopping {
    stage: StopStage,
    reason: ExitReason,
    /// Whether the next stages follow by themselves.
    escalate: bool,
    /// When patience ends.
    deadline: Option<Duration>,
    /// What was wrong when it began.
    failed: BTreeMap<ResourceId, Arc<str>>,
    blocked: BTreeMap<ResourceId, ResourceId>,
    /// By slot: how many successors still live. `cleanup` goes backwards through the graph.
    successors: Vec<u32>,
    ended: bool,
}

impl Stopping {
    pub(super) fn stage(&self) -> StopStage {
        self.stage
    }
}

impl Machine {
    /// Stops, or goes on to a further stage.
    pub(super) fn stop(&mut self, stage: StopStage, escalate: bool, reason: ExitReason) {
        match &mut self.stopping {
            None => self.begin_stop(reason, escalate),
            Some(stopping) => stopping.escalate |= escalate,
        }
        while let Some(stopping) = &self.stopping {
            match stopping.stage.next() {
                Some(next) if next <= stage => self.enter_stage(next),
                _ => break,
            }
        }
        self.set_patience();
    }

    fn begin_stop(&mut self, reason: ExitReason, escalate: bool) {
        let mut failed = BTreeMap::new();
        let mut blocked = BTreeMap::new();
        for (slot, vertex) in self.vertices.iter().enumerate() {
            let Some(life) = &vertex.life else {
                continue;
            };
            let id = &life.resource.id;
            if self.failed.contains(&(slot as u32)) {
                if vertex.failed_members().is_empty() {
                    let error = vertex.extras().and_then(|extras| extras.error.clone());
                    failed.insert(id.clone(), error.unwrap_or_else(|| "".into()));
                }
                failed.extend(vertex.failed_members().iter().cloned());
            } else if let Some(about) = life.fight() {
                failed.insert(id.clone(), about.clone());
            }
            if let Some(by) = vertex.blocked_by().and_then(|by| self.to_blame(slot as u32, by)) {
                blocked.insert(id.clone(), by);
            }
        }
        let mut successors = vec![0; self.vertices.len()];
        for (_, edge) in self.edges.iter() {
            if self.vertex(edge.to).life.is_some() {
                successors[edge.from as usize] += 1;
            }
        }
        self.stopping = Some(Stopping {
            stage: StopStage::Finish,
            reason,
            escalate,
            deadline: None,
            failed,
            blocked,
            successors,
            ended: false,
        });
        self.announce_stage();
        for slot in 0..self.vertices.len() as u32 {
            let vertex = self.vertex(slot);
            if vertex.life.is_none() {
                if vertex.wanted.is_some() {
                    self.cancel_pending_add(slot);
                }
                continue;
            }
            self.vertex_mut(slot).wanted = None;
            if self.vertex(slot).is_realizing() {
                // Stopping does not wait for it.
                self.tear_down(slot);
            } else {
                self.leave(slot, false);
            }
        }
    }

    fn enter_stage(&mut self, stage: StopStage) {
        let Some(stopping) = &mut self.stopping else {
            return;
        };
        stopping.stage = stage;
        self.announce_stage();
        for slot in 0..self.vertices.len() as u32 {
            if !self.vertex(slot).is_running() {
                continue;
            }
            if stage == StopStage::Cancel {
                self.cancel(slot, CancelCause::Stopping);
            } else {
                let vertex = self.id(slot);
                self.actions.push(Action::Interrupt { vertex });
            }
        }
    }

    fn announce_stage(&mut self) {
        let Some(stopping) = &self.stopping else { return };
        let stage = stopping.stage.number();
        let waiting_for = self.waited_for().iter().map(ToString::to_string).collect();
        self.emit(None, EventKind::Stopping { stage, waiting_for });
    }

    /// Whose runs, `init`s and `cleanup`s keep us from ending; when there are none, what still lives.
    fn waited_for(&self) -> BTreeSet<ResourceId> {
        let named = |only_running: bool| {
            let lives = self.vertices.iter().filter_map(|vertex| vertex.life.as_ref());
            lives
                .filter(|life| life.is_running() || !only_running)
                .map(|life| life.resource.id.clone())
                .collect()
        };
        let running: BTreeSet<ResourceId> = named(true);
        match self.stopping.as_ref().map(|stopping| stopping.stage) {
            Some(StopStage::Interrupt) if running.is_empty() => named(false),
            _ => running,
        }
    }

    fn set_patience(&mut self) {
        let deadline = self.now.saturating_add(self.options.stop_patience);
        if let Some(stopping) = &mut self.stopping {
            let last = stopping.stage == StopStage::Interrupt;
            stopping.deadline = (stopping.escalate || last).then_some(deadline);
        }
    }

    pub(super) fn stop_deadline_passed(&mut self) {
        let Some(stopping) = &self.stopping else { return };
        if stopping.ended || stopping.deadline.is_none_or(|deadline| deadline > self.now) {
            return;
        }
        match stopping.stage.next() {
            Some(next) => {
                self.enter_stage(next);
                self.set_patience();
            }
            None => {
                let hung = self.waited_for().into_iter();
                self.end(hung.map(|id| (id, None)).collect());
            }
        }
    }

    pub(super) fn stop_deadline(&self) -> Option<Duration> {
        let stopping = self.stopping.as_ref().filter(|stopping| !stopping.ended)?;
        stopping.deadline
    }

    /// Ends when nothing lives any more.
    pub(super) fn look_for_end(&mut self) {
        let running_on = self.stopping.as_ref().is_none_or(|stopping| stopping.ended);
        if !running_on && self.alive == 0 {
            self.end(BTreeMap::new());
        }
    }

    fn end(&mut self, hung: BTreeMap<ResourceId, Option<Arc<str>>>) {
        let Some(stopping) = &mut self.stopping else {
            return;
        };
        stopping.ended = true;
        let report = ExitReport {
            reason: stopping.reason.clone(),
            failed: stopping.failed.clone(),
            blocked: stopping.blocked.clone(),
            repaired: self.convergence.repaired,
            would_change: self.convergence.would_change,
            hung,
        };
        self.actions.push(Action::Exit(Box::new(report)));
    }

    /// Whether `cleanup` must wait for that of successors.
    pub(super) fn must_drain(&self, slot: u32) -> bool {
        let successors = self.stopping.as_ref().map(|stopping| &stopping.successors);
        successors.is_some_and(|left| left.get(slot as usize).is_some_and(|left| *left > 0))
    }

    /// A vertex is gone: its predecessors may go too.
    pub(super) fn drained(&mut self, slot: u32) {
        if self.stopping.is_none() {
            return;
        }
        for edge in self.vertex(slot).incoming.clone() {
            let from = self.edges.get(edge).from;
            let Some(stopping) = &mut self.stopping else {
                return;
            };
            let Some(left) = stopping.successors.get_mut(from as usize) else {
                continue;
            };
            *left = left.saturating_sub(1);
            let drains = |life: &Life| matches!(life.stage(), Stage::Draining { .. });
            if *left == 0 && self.vertex(from).life.as_ref().is_some_and(drains) {
                self.tear_down(from);
            }
        }
    }
}
