//! What of an execution depends on the world outside, so that a changed answer need not mean a whole execution.
//!
//! While the model runs, whatever a unit computes from an outside answer, or from something so computed, becomes an [`Entry`]: what was
//! evaluated, from what, and where the value went. Entries lie in the order in which they were made, so that each comes after those that it
//! depends on. Everything else is the same whatever the answers are.
//!
//! Only values may change: which units run, and in which order, which instances there are and what relations hold must stay. So what decides
//! such things is a *guard*, which must come out as before, and what is neither a value nor a guard is *opaque*: nothing that it depends on may
//! change. `replay` takes changed answers in, or finds that it cannot.

use std::cell::RefCell;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use setpoint_cf_names::datum::Datum;
use setpoint_cf_names::hir::Expression;
use smallvec::SmallVec;

use super::cells::CellId;
use super::expressions::ExpressionKey;
use super::inputs::ReadKey;
use super::machine::Machine;
use super::units::{Scope, UnitId};

/// The number of an entry.
pub(super) type EntryId = u32;

/// What an execution left behind for changed answers.
#[derive(Debug, Default)]
pub(super) struct Recording {
    pub(super) entries: Vec<Entry>,
    /// The entries that gave cells their values.
    pub(super) of_cell: FxHashMap<CellId, EntryId>,
    /// The entries that asked something.
    pub(super) asked_by: BTreeMap<ReadKey, Vec<EntryId>>,
    /// Whether something was done that cannot be done once more.
    pub(super) is_final: bool,
}

/// Something that depends on the world outside.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) what: What,
    pub(super) scope: Scope,
    /// Results of the parts of the expression.
    pub(super) parts: Box<[Part]>,
    /// What it asked.
    pub(super) asked: SmallVec<[ReadKey; 1]>,
    /// The entries that it depends on.
    pub(super) after: SmallVec<[EntryId; 2]>,
    /// The entries that depend on it.
    pub(super) before: SmallVec<[EntryId; 2]>,
}

/// The result of a part of an expression.
#[derive(Debug)]
pub(super) enum Part {
    /// It is always the same.
    Fixed(Datum),
    /// That of an entry.
    Of(EntryId),
}

/// What an entry is.
#[derive(Debug)]
pub(super) enum What {
    /// The value of an expression.
    Value(ExpressionKey, Destination),
    /// The result of a call.
    Call {
        expression: ExpressionKey,
        into: Destination,
        /// The variables and attributes that it read, in order.
        read: Box<[CellId]>,
        /// The lines that it printed: the first, and how many.
        printed: (usize, usize),
    },
    /// A condition with how it came out; none: it was not known.
    Guard(ExpressionKey, Option<bool>),
    /// Anything else.
    Opaque,
}

/// Where a value went.
#[derive(Debug)]
pub(super) enum Destination {
    /// Nowhere but to entries that have it as a part.
    Parts(Datum),
    /// The same; it must be a bool, or unknown.
    Operand(Datum),
    /// Into a variable.
    Variable(CellId),
    /// Into an attribute.
    Attribute(CellId),
}

/// Makes a recording while a model runs.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    pub(super) recording: Recording,
    /// Of the unit that runs: the entries that it depends on.
    touched: RefCell<SmallVec<[EntryId; 4]>>,
    /// What it asked.
    asked: SmallVec<[ReadKey; 1]>,
    /// What functions read that it called.
    read: RefCell<Vec<CellId>>,
    /// Whether it did something that values do not.
    is_opaque: RefCell<bool>,
    /// The entry of the value that it computed last.
    pending: Option<EntryId>,
}

impl Recorder {
    /// One that has recorded something before.
    pub(super) fn going_on(recording: Recording) -> Recorder {
        Recorder {
            recording,
            ..Recorder::default()
        }
    }

    /// A cell is read.
    pub(super) fn touch(&self, cell: CellId) {
        if let Some(entry) = self.recording.of_cell.get(&cell) {
            self.touch_entry(*entry);
        }
    }

    /// A cell is read in order to find another.
    pub(super) fn touch_way(&self, cell: CellId) {
        if self.recording.of_cell.contains_key(&cell) {
            self.touch(cell);
            *self.is_opaque.borrow_mut() = true;
        }
    }

    fn touch_entry(&self, entry: EntryId) {
        let mut touched = self.touched.borrow_mut();
        if !touched.contains(&entry) {
            touched.push(entry);
        }
    }

    /// A function reads a cell.
    pub(super) fn read(&self, cell: CellId) {
        self.touch(cell);
        self.read.borrow_mut().push(cell);
    }

    /// Something is asked of the world outside.
    pub(super) fn ask(&mut self, key: ReadKey) {
        if !self.asked.contains(&key) {
            self.asked.push(key);
        }
    }

    /// Something is done besides computing a value.
    pub(super) fn is_opaque(&mut self) {
        *self.is_opaque.get_mut() = true;
    }

    /// A value is put where it takes part in more than values.
    pub(super) fn use_pending(&mut self) {
        if let Some(pending) = self.pending.take() {
            self.touch_entry(pending);
            *self.is_opaque.get_mut() = true;
        }
    }

    /// A cell is given the value that was computed last.
    pub(super) fn set(&mut self, cell: CellId) {
        if let Some(pending) = self.pending {
            self.recording.of_cell.insert(cell, pending);
        }
    }

    /// The value that was computed last has been put where it belongs.
    pub(super) fn forget_pending(&mut self) {
        self.pending = None;
    }

    /// A cell will be used for something else.
    pub(super) fn forget(&mut self, cell: CellId) {
        self.recording.of_cell.remove(&cell);
    }

    /// Whether the unit has met anything that depends on the world outside.
    fn has_met(&self) -> bool {
        !self.asked.is_empty() || !self.touched.borrow().is_empty()
    }

    /// What the unit met, which is forgotten.
    pub(super) fn take_met(&mut self) -> Met {
        Met {
            touched: std::mem::take(self.touched.get_mut()),
            asked: std::mem::take(&mut self.asked),
            read: std::mem::take(self.read.get_mut()),
            is_opaque: std::mem::take(self.is_opaque.get_mut()),
        }
    }

    fn add(&mut self, what: What, scope: Scope, parts: Box<[Part]>, met: Met) -> EntryId {
        let id = self.recording.entries.len() as EntryId;
        for key in &met.asked {
            self.recording.asked_by.entry(key.clone()).or_default().push(id);
        }
        for before in &met.touched {
            self.recording.entries[*before as usize].before.push(id);
        }
        self.recording.entries.push(Entry {
            what: if met.is_opaque { What::Opaque } else { what },
            scope,
            parts,
            asked: met.asked,
            after: met.touched.into_iter().collect(),
            before: SmallVec::new(),
        });
        id
    }
}

/// What a unit met that depends on the world outside.
#[derive(Debug)]
pub(super) struct Met {
    pub(super) touched: SmallVec<[EntryId; 4]>,
    pub(super) asked: SmallVec<[ReadKey; 1]>,
    pub(super) read: Vec<CellId>,
    pub(super) is_opaque: bool,
}

impl<'m> Machine<'m> {
    /// A unit has evaluated an expression. `into` is made only if that is worth an entry.
    pub(super) fn record_value(
        &mut self,
        unit: Option<UnitId>,
        expression: &'m Expression,
        scope: Scope,
        into: impl FnOnce() -> Destination,
    ) {
        let has_met = self.recorder.as_ref().is_some_and(|recorder| recorder.has_met());
        if has_met {
            let what = What::Value(ExpressionKey::of(expression), into());
            self.record(unit, scope, what);
        }
    }

    /// A unit has made a call, and functions had printed so many lines before.
    pub(super) fn record_call(
        &mut self,
        unit: UnitId,
        expression: &'m Expression,
        scope: Scope,
        printed: usize,
        result: &Datum,
    ) {
        let Some(recorder) = &mut self.recorder else {
            return;
        };
        if !recorder.has_met() {
            recorder.take_met();
            return;
        }
        let what = What::Call {
            expression: ExpressionKey::of(expression),
            into: Destination::Parts(result.clone()),
            read: recorder.read.get_mut().as_slice().into(),
            printed: (printed, self.printed.len() - printed),
        };
        self.record(Some(unit), scope, what);
    }

    /// A unit has evaluated a condition.
    pub(super) fn record_guard(
        &mut self,
        unit: UnitId,
        expression: &'m Expression,
        scope: Scope,
        outcome: Option<bool>,
    ) {
        let has_met = self.recorder.as_ref().is_some_and(|recorder| recorder.has_met());
        if has_met {
            let what = What::Guard(ExpressionKey::of(expression), outcome);
            self.record(Some(unit), scope, what);
            if let Some(recorder) = &mut self.recorder {
                recorder.pending = None;
            }
        }
    }

    fn record(&mut self, unit: Option<UnitId>, scope: Scope, what: What) {
        let Some(recorder) = &mut self.recorder else {
            return;
        };
        let (first, count) = match unit.map(|unit| self.units.get(unit)) {
            Some(unit) => (unit.parts, unit.part_count),
            None => (CellId::NONE, 0),
        };
        let parts = (0..count).map(|offset| {
            let cell = first.at(offset);
            match recorder.recording.of_cell.get(&cell) {
                Some(entry) => Part::Of(*entry),
                None => Part::Fixed(self.cells.get(cell).value.clone()),
            }
        });
        let parts = parts.collect();
        let met = recorder.take_met();
        recorder.pending = Some(recorder.add(what, scope, parts, met));
    }

    /// A unit has run, or what is at the top of files was set up. Whatever it met and no entry tells may not change.
    pub(super) fn record_rest(&mut self) {
        let Some(recorder) = &mut self.recorder else {
            return;
        };
        recorder.pending = None;
        if recorder.has_met() {
            let met = recorder.take_met();
            recorder.add(What::Opaque, super::machine::TOP, Box::new([]), met);
        } else {
            recorder.take_met();
        }
    }
}
