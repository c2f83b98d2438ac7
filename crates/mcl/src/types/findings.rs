//! What inference finds wrong, and the one place where that is ranked.
//!
//! An error of an earlier phase hides those of the phases that need what it spoils; within a phase errors stand in the order of the
//! equations.

use std::collections::HashSet;

use setpoint_diagnostics::{CodeInfo, Diagnostic};

use super::places::{Order, Place};

/// When an error is found, the earliest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// While equations are collected.
    Collecting,
    /// While they are solved.
    Solving,
    /// When all is solved: something is open.
    Open,
    /// When all is solved: a built-in does not support what it gets, or a written type is not that of the value.
    Completion,
    /// When all types are right: what only they tell about a statement.
    Statements,
}

/// Errors, each with its phase and its place among the equations.
#[derive(Debug, Default)]
pub(super) struct Findings {
    list: Vec<(Phase, Place, Diagnostic)>,
    /// The codes among them, each once.
    codes: Vec<&'static CodeInfo>,
    /// Whether among those that were told before is one of an equation.
    was_unsolved: bool,
}

impl Findings {
    pub(super) fn push(&mut self, phase: Phase, place: Place, error: Diagnostic) {
        self.note(error.code);
        self.list.push((phase, place, error));
    }

    fn note(&mut self, code: &'static CodeInfo) {
        if !self.codes.contains(&code) {
            self.codes.push(code);
        }
    }

    /// Whether an error of this code is among them.
    pub(super) fn has(&self, code: &'static CodeInfo) -> bool {
        self.codes.contains(&code)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether all equations could be collected and solved.
    pub(super) fn is_solved(&self) -> bool {
        !self.was_unsolved && !self.list.iter().any(|(phase, ..)| *phase <= Phase::Solving)
    }

    /// How many there are: where those begin that are found from now on.
    pub(super) fn count(&self) -> usize {
        self.list.len()
    }

    /// The errors of solving among those found since there were so many.
    pub(super) fn unsolved_since(&mut self, count: usize) -> impl Iterator<Item = &mut Diagnostic> {
        let found = self.list.iter_mut().skip(count);
        found
            .filter(|(phase, ..)| *phase == Phase::Solving)
            .map(|(.., error)| error)
    }

    /// Forgets the errors of solving that were found since there were so many.
    pub(super) fn forget_unsolved_since(&mut self, count: usize) {
        let later = self.list.split_off(count);
        let kept = later.into_iter().filter(|(phase, ..)| *phase != Phase::Solving);
        self.list.extend(kept);
        self.note_all();
    }

    /// Forgets all that was found since there were so many.
    pub(super) fn forget_since(&mut self, count: usize) {
        if self.list.len() > count {
            self.list.truncate(count);
            self.note_all();
        }
    }

    fn note_all(&mut self) {
        self.codes.clear();
        for at in 0..self.list.len() {
            self.note(self.list[at].2.code);
        }
    }

    /// Those that count, in the order in which they do, each mistake once. Others may be found after them.
    pub(super) fn take_ranked(&mut self, order: &Order<'_>) -> Vec<Diagnostic> {
        let is_solved = self.is_solved();
        let mut list = std::mem::take(&mut self.list);
        list.retain(|(phase, ..)| is_solved || *phase <= Phase::Solving);
        list.sort_by_key(|(phase, place, _)| (*phase, order.rank(*place)));
        self.codes.clear();
        self.was_unsolved |= !is_solved;
        let mut shown = HashSet::new();
        let mut is_new =
            |error: &Diagnostic| shown.insert((error.code.code, error.primary.span, error.message.clone()));
        let errors = list.into_iter().map(|(_, _, error)| error);
        errors.filter(|error| is_new(error)).collect()
    }
}
