//! Takes changed answers of the world outside into an execution, without executing the model once more.
//!
//! What depends on an answer was recorded, so it is computed anew, in the order of the recording, and only as far as values differ. Where more
//! than values would differ there is no result: then the model has to be executed as a whole, and the execution that was here is of no use.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_cf_names::datum::{Datum, InstanceId, Unknowns};
use setpoint_cf_names::hir::{Expression, MemberKind, Model};
use setpoint_diagnostics::{Loader, SourceMap, Span};

use super::blocks::Blocks;
use super::cells::CellId;
use super::expressions::ExpressionKey;
use super::frames::Frame;
use super::machine::Machine;
use super::recording::{Destination, EntryId, Met, Part, Recorder, Recording, What};
use super::units::Scope;
use super::{Execution, Inputs, Options, ReadKey};
use crate::export::bindings::Bindings;

/// What an execution keeps for changed answers.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) recording: Recording,
    pub(super) frames: Blocks<Frame>,
    pub(super) namespaces: Vec<CellId>,
    pub(super) constructed_again: FxHashMap<InstanceId, Vec<Span>>,
    pub(super) unknowns: Unknowns,
    pub(super) options: Options,
}

/// What is different after changed answers.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Attributes with other values: the instance, and the slot.
    pub members: BTreeSet<(InstanceId, u32)>,
    /// Whether something else was asked than before.
    pub asks_otherwise: bool,
}

impl Execution {
    /// Whether changed answers to some questions can be taken in at all, as far as that is seen without trying.
    #[must_use]
    pub fn is_repeatable(&self) -> bool {
        let kept = self.kept.as_ref();
        kept.is_some_and(|kept| !kept.recording.is_final) && !self.diagnostics.has_errors()
    }

    /// Takes changed answers in: `changed` are all the questions, of those that were asked, that are answered otherwise now. The model and
    /// everything else must be as they were. None: the model has to be executed as a whole.
    #[must_use]
    pub fn replay(
        self,
        model: &Model,
        sources: &mut SourceMap,
        inputs: &Inputs,
        loader: &dyn Loader,
        bindings: Option<&Bindings>,
        changed: &BTreeSet<ReadKey>,
    ) -> Option<(Execution, Changes)> {
        if !self.is_repeatable() {
            return None;
        }
        let Execution {
            instances,
            cells,
            kept,
            variables: _,
            printed,
            reads,
            unknown_reads,
            stored,
            files,
            diagnostics,
        } = self;
        let Kept {
            recording,
            frames,
            namespaces,
            constructed_again,
            unknowns,
            options,
        } = *kept?;
        let mut machine = Machine::new(model, sources, loader, inputs, &options, bindings);
        machine.instances = instances;
        machine.cells = cells;
        machine.frames = frames;
        machine.namespaces = namespaces;
        machine.constructed_again = constructed_again;
        machine.unknowns = unknowns;
        machine.printed = printed;
        machine.files = files;
        machine.reads = reads;
        machine.unknown_reads = unknown_reads;
        machine.recorder = Some(Box::new(Recorder::going_on(recording)));
        let changes = machine.replay(changed)?;
        if !machine.diagnostics.is_empty() || !machine.stored.is_empty() {
            return None;
        }
        machine.stored = stored;
        machine.diagnostics = diagnostics;
        let execution = machine.into_execution();
        if execution
            .kept
            .as_ref()
            .is_some_and(|kept| kept.recording.is_final)
        {
            return None;
        }
        Some((execution, changes))
    }
}

impl<'m> Machine<'m> {
    fn replay(&mut self, changed: &BTreeSet<ReadKey>) -> Option<Changes> {
        let mut changes = Changes::default();
        let mut waiting: BinaryHeap<Reverse<EntryId>> = BinaryHeap::new();
        let mut queued: FxHashSet<EntryId> = FxHashSet::default();
        let recorder = self.recorder.as_ref()?;
        let asking = changed
            .iter()
            .filter_map(|key| recorder.recording.asked_by.get(key));
        for entry in asking.flatten() {
            if queued.insert(*entry) {
                waiting.push(Reverse(*entry));
            }
        }
        let mut asked: BTreeSet<ReadKey> = changed.clone();
        while let Some(Reverse(entry)) = waiting.pop() {
            if !self.replay_entry(entry, &mut changes, &mut asked)? {
                continue;
            }
            let recorder = self.recorder.as_ref()?;
            for next in &recorder.recording.entries[entry as usize].before {
                if queued.insert(*next) {
                    waiting.push(Reverse(*next));
                }
            }
        }
        self.tell_reads(&asked, &mut changes);
        Some(changes)
    }

    /// Computes an entry anew. Answers whether its value is another one; none if that cannot be.
    fn replay_entry(
        &mut self,
        id: EntryId,
        changes: &mut Changes,
        asked: &mut BTreeSet<ReadKey>,
    ) -> Option<bool> {
        let mut recorder = self.recorder.take()?;
        let entry = &recorder.recording.entries[id as usize];
        let (key, scope) = match &entry.what {
            What::Value(key, _) | What::Call { expression: key, .. } | What::Guard(key, _) => {
                (*key, entry.scope)
            }
            What::Opaque => return None,
        };
        let parts = entry.parts.iter().map(|part| match part {
            Part::Fixed(value) => Some(value.clone()),
            Part::Of(other) => recorder.recording.entries[*other as usize]
                .what
                .result(|cell| self.cells.get(cell).value.clone()),
        });
        let parts: Vec<Datum> = parts.collect::<Option<_>>()?;
        let is_call = matches!(entry.what, What::Call { .. });
        recorder.take_met();
        self.recorder = Some(recorder);
        let printed = self.printed.len();
        let value = self.evaluate_again(key, &parts, scope, is_call)?;
        let lines = self.printed.split_off(printed);
        let met = self.recorder.as_mut()?.take_met();
        self.take_in(id, value, lines, met, changes, asked)
    }

    /// The value of an expression whose parts are known; none if something is wrong with it.
    fn evaluate_again(
        &mut self,
        key: ExpressionKey,
        parts: &[Datum],
        scope: Scope,
        is_call: bool,
    ) -> Option<Datum> {
        let expression: &'m Expression = self.all_expressions().expression(key)?;
        let count = parts.len() as u32;
        let first = self.cells.borrow(count);
        for (offset, value) in (0..).zip(parts) {
            self.cells.get_mut(first.at(offset)).set(value.clone());
        }
        let mut next = first;
        let value = match is_call {
            true => self.call_value(expression, scope, first),
            false => self.evaluate(expression, scope, &mut next),
        };
        self.give_cells_back(first, count);
        value.ok()
    }

    /// Compares what an entry came to with what it was, and keeps it.
    fn take_in(
        &mut self,
        id: EntryId,
        value: Datum,
        lines: Vec<String>,
        met: Met,
        changes: &mut Changes,
        asked: &mut BTreeSet<ReadKey>,
    ) -> Option<bool> {
        let mut recorder = self.recorder.take()?;
        let recording = &mut recorder.recording;
        let entry = &mut recording.entries[id as usize];
        // What its parts depend on it depends on through them.
        let is_known = |other: &EntryId| entry.after.contains(other);
        if met.is_opaque || !met.touched.iter().all(is_known) {
            return None;
        }
        let is_same = match &mut entry.what {
            What::Opaque => return None,
            What::Guard(_, outcome) => {
                let now = match value.unmarked() {
                    Datum::Bool(holds) => Some(*holds),
                    Datum::Unknown(_) => None,
                    _ => return None,
                };
                if now != *outcome {
                    return None;
                }
                true
            }
            What::Value(_, into) => put(&mut self.cells, into, &value),
            What::Call {
                into, read, printed, ..
            } => {
                let (first, count) = *printed;
                if met.read != **read || lines.len() != count {
                    return None;
                }
                self.printed
                    .get_mut(first..first + count)?
                    .clone_from_slice(&lines);
                put(&mut self.cells, into, &value)
            }
        };
        if met.asked != entry.asked {
            let before = std::mem::replace(&mut entry.asked, met.asked);
            for key in &before {
                if let Some(entries) = recording.asked_by.get_mut(key) {
                    entries.retain(|other| *other != id);
                }
            }
            for key in &recording.entries[id as usize].asked {
                recording.asked_by.entry(key.clone()).or_default().push(id);
            }
            asked.extend(before);
            asked.extend(recording.entries[id as usize].asked.iter().cloned());
        }
        let written = match &recording.entries[id as usize].what {
            What::Value(_, Destination::Attribute(cell)) if !is_same => Some(*cell),
            What::Value(_, Destination::Operand(_))
                if !matches!(value.unmarked(), Datum::Bool(_) | Datum::Unknown(_)) =>
            {
                return None;
            }
            _ => None,
        };
        self.recorder = Some(recorder);
        if let Some(cell) = written {
            let (instance, slot) = self.owner_of(cell)?;
            let MemberKind::Attribute { ty, .. } = self.member(instance, slot).kind else {
                return None;
            };
            let span = self.cells.place(cell)?;
            self.check_attribute(ty, &value, span).ok()?;
            changes.members.insert((instance, slot));
        }
        Some(!is_same)
    }

    /// Notes what is asked now of some questions.
    fn tell_reads(&mut self, questions: &BTreeSet<ReadKey>, changes: &mut Changes) {
        let Some(recorder) = &self.recorder else { return };
        for key in questions {
            let entries = recorder.recording.asked_by.get(key);
            let is_asked = entries.is_some_and(|entries| !entries.is_empty());
            let is_known = match key {
                ReadKey::Environment(name) => self.inputs.environment.contains_key(name),
                ReadKey::Fact(key) => self.inputs.facts.contains_key(key),
                _ => true,
            };
            let was_asked = match is_asked {
                true => !self.reads.insert(key.clone()),
                false => self.reads.remove(key),
            };
            changes.asks_otherwise |= was_asked != is_asked;
            match is_asked && !is_known {
                true => self.unknown_reads.insert(key.clone()),
                false => self.unknown_reads.remove(key),
            };
        }
    }
}

impl What {
    /// What it came to.
    fn result(&self, read: impl FnOnce(CellId) -> Datum) -> Option<Datum> {
        match self {
            What::Value(_, into) | What::Call { into, .. } => Some(match into {
                Destination::Parts(value) | Destination::Operand(value) => value.clone(),
                Destination::Variable(cell) | Destination::Attribute(cell) => read(*cell),
            }),
            What::Guard(..) | What::Opaque => None,
        }
    }
}

/// Puts a value where it belongs. Answers whether it was there already.
fn put(cells: &mut super::cells::Cells, into: &mut Destination, value: &Datum) -> bool {
    let place = match into {
        Destination::Parts(place) | Destination::Operand(place) => place,
        Destination::Variable(cell) | Destination::Attribute(cell) => &mut cells.get_mut(*cell).value,
    };
    if place.is_identical(value) {
        return true;
    }
    *place = value.clone();
    false
}
