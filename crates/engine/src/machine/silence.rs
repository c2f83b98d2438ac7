//! Noticing what should have answered long ago: a system call that hangs has no time limit of its own.

use std::sync::Arc;

use super::{Action, EventKind, Machine};

impl Machine {
    /// Something outside was asked for an answer.
    pub(super) fn expect_answer(&mut self) {
        if let Some(limit) = self.options.answer_within {
            self.next_look.get_or_insert(self.now.saturating_add(limit));
        }
    }

    /// Looks for those who have waited for an answer for too long, and when to look next.
    pub(super) fn look_for_silence(&mut self) {
        let (now, Some(limit)) = (self.now, self.options.answer_within) else {
            return;
        };
        if self.next_look.is_none_or(|at| at > now) {
            return;
        }
        self.next_look = None;
        for slot in 0..self.vertices.len() as u32 {
            // Not through `vertex_mut`: nothing that others depend on changes.
            let Some(life) = &mut self.vertices[slot as usize].life else {
                continue;
            };
            let Some(since) = life.waits_since().filter(|_| !life.is_silent) else {
                continue;
            };
            let due = since.saturating_add(limit);
            if due > now {
                let next = self.next_look.get_or_insert(due);
                *next = due.min(*next);
            } else {
                life.is_silent = true;
                let vertex = self.id(slot);
                self.actions.push(Action::Silent { vertex });
            }
        }
    }

    /// Tells that a vertex gives no answer, unless it has done so meanwhile.
    pub(super) fn unresponsive(&mut self, slot: u32, at: Option<Arc<str>>) {
        let life = self.life(slot);
        if let Some(since) = life.waits_since().filter(|_| life.is_silent) {
            let waited = self.now.saturating_sub(since);
            self.life_mut(slot).is_said_silent = true;
            self.emit(Some(slot), EventKind::Unresponsive { waited, at });
        }
    }
}
