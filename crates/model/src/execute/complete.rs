//! What must hold when nothing is left to do.

use std::sync::Arc;

use setpoint_diagnostics::Diagnostic;

use super::cells::{CellId, GradualKind};
use super::codes;
use super::machine::Machine;
use super::replay::Kept;
use super::units::{UnitId, Work};
use super::{Execution, Slot};
use crate::datum::{Datum, InstanceId};
use crate::errors;
use crate::functions::codes::class;
use crate::hir::{MemberKind, Variable};

impl<'m> Machine<'m> {
    /// The error of a model that is not complete: several in one.
    pub(super) fn check_complete(&mut self) -> Result<(), Box<Diagnostic>> {
        let mut found = self.lookups_without_match();
        self.check_annotations(&mut found);
        for number in 0..self.instances.len() as u32 {
            self.check_instance(InstanceId(number), &mut found);
        }
        match errors::combine(found, self.sources) {
            Some(error) => Err(Box::new(error)),
            None => self.check_statements(),
        }
    }

    fn lookups_without_match(&mut self) -> Vec<Diagnostic> {
        let mut waiting: Vec<(u32, UnitId)> = self
            .indexes
            .all_waiting()
            .map(|unit| (self.units.get(unit).registered, unit))
            .collect();
        waiting.sort_unstable_by_key(|(registered, _)| *registered);
        let mut found = Vec::new();
        for (_, unit) in waiting {
            if let Work::Lookup(expression, _) = self.units.get(unit).work {
                found.push(self.no_match(unit, expression));
            }
        }
        found
    }

    fn check_annotations(&self, found: &mut Vec<Diagnostic>) {
        for (cell, span) in &self.annotations {
            let cell = self.cells.get(*cell);
            let message = match (&cell.value, cell.is_set()) {
                (Datum::Unknown(_), _) => "a relation annotation can not be unknown",
                (_, true) => continue,
                (_, false) => "a relation annotation never gets a value",
            };
            found.push(Diagnostic::error(&codes::ANNOTATION, *span, message).of_class(class::TYPING));
        }
    }

    fn check_instance(&mut self, instance: InstanceId, found: &mut Vec<Diagnostic>) {
        let data = &self.instances[instance.0 as usize];
        let (first, span, entity) = (data.first, data.span, data.entity);
        if data.selected == 0 {
            let name = &self.model.entities[entity.index()].name;
            let message = format!("unable to select implementation for entity `{name}`");
            let has_some = !self.model.entities[entity.index()].implements.is_empty();
            let error = Diagnostic::error(&codes::NOT_REFINED, span, message).of_class(class::RUNTIME);
            found.push(match has_some {
                true => error.note("the condition of none of its `implement` statements is true"),
                false => error.help(format!(
                    "say how it is refined: `implement {name} using std::none`"
                )),
            });
        }
        for slot in 0..self.entities.plans[entity.index()].slots.len() as u32 {
            let cell = first.at(slot);
            if self.cells.is_ready(cell) {
                continue;
            }
            let number = self.cells.get(cell).gradual;
            let may_be_complete = self
                .cells
                .gradual(cell)
                .is_some_and(|gradual| gradual.providers == 0)
                && self.has_enough(number);
            if may_be_complete {
                self.freeze(cell);
            } else {
                found.push(self.incomplete(instance, slot, cell));
            }
        }
    }

    fn incomplete(&self, instance: InstanceId, slot: u32, cell: CellId) -> Diagnostic {
        let member = self.member(instance, slot);
        let name = self.model.text(member.name);
        let what = match self.cells.gradual(cell) {
            Some(gradual) if gradual.kind == GradualKind::List => {
                let low = self.low(cell);
                format!(
                    "attribute `{name}` requires {low} values but only {} are set",
                    gradual.elements().len()
                )
            }
            _ => format!("attribute `{name}` is not set"),
        };
        let message = format!(
            "the object {} is not complete: {what}",
            self.instance_text(instance)
        );
        let span = self.instances[instance.0 as usize].span;
        let mut error = Diagnostic::error(&codes::INCOMPLETE, span, message)
            .of_class("UnsetException")
            .label(what);
        if let Some(declared) = member.span {
            error = error.because(declared, "declared here");
        }
        match member.kind {
            MemberKind::Attribute { ty, .. } if ty.nullable => {
                error.help(format!("write `{name} = null` if it has no value"))
            }
            MemberKind::Attribute { ty, .. } if ty.list => {
                error.help(format!("write `{name} = []` if it has no elements"))
            }
            _ => error,
        }
    }

    /// Refuses a model of which some statements were never executed.
    fn check_statements(&self) -> Result<(), Box<Diagnostic>> {
        let unfinished = self.units.unfinished();
        let waiting = unfinished.iter().filter(|unit| match unit.work {
            Work::Acquire { .. } | Work::Free => false,
            // Answered before all elements were there.
            Work::IsDefined(_, result) => !result.is_none(),
            _ => true,
        });
        let waiting: Vec<_> = waiting.collect();
        if waiting.is_empty() {
            return Ok(());
        }
        let assignments = waiting
            .iter()
            .filter(|unit| matches!(unit.work, Work::AssignVariable(_) | Work::AssignMember(..)));
        let mut spans: Vec<_> = assignments.filter_map(|unit| unit.work.span()).collect();
        if spans.is_empty() {
            spans = waiting.iter().filter_map(|unit| unit.work.span()).collect();
        }
        let Some(first) = spans.first().copied() else {
            return Ok(());
        };
        spans.sort_unstable();
        spans.dedup();
        let texts = spans.iter().take(5).map(|span| {
            let text = self
                .sources
                .text(*span)
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned();
            format!("`{text}`")
        });
        let more = if spans.len() > 5 { ", …" } else { "" };
        let message = format!(
            "not all statements executed: [{}{more}]",
            texts.collect::<Vec<_>>().join(", ")
        );
        let mut error = Diagnostic::error(&codes::NOT_EXECUTED, first, message)
            .of_class(class::RUNTIME)
            .label("this waits for a value that never comes");
        for span in spans.iter().filter(|span| **span != first).take(4) {
            error = error.because(*span, "and so does this");
        }
        Err(Box::new(error.note(
            "a variable that is never assigned, or variables that need each other, have no value",
        )))
    }
}

impl Machine<'_> {
    /// The variables of the main file.
    pub(super) fn variables(&self) -> Vec<(Arc<str>, Slot)> {
        // The main file is the first.
        let (Some(main), Some(first)) = (self.model.namespaces.first(), self.namespaces.first()) else {
            return Vec::new();
        };
        let variables = main.body.variables.iter().zip(0..);
        let value = |(variable, index): (&Variable, u32)| {
            let name = self.model.text(variable.name).clone();
            (name, super::slot_of(&self.cells, first.at(index)))
        };
        variables.map(value).collect()
    }

    /// What the model has become.
    pub(super) fn into_execution(self) -> Execution {
        let variables = self.variables();
        let kept = self.recorder.map(|recorder| {
            let mut recording = recorder.recording;
            // What is wrong with annotations is only looked for at the end of a whole execution.
            let annotations = self.annotations.iter();
            recording.is_final |= annotations
                .map(|(cell, _)| cell)
                .any(|cell| recording.of_cell.contains_key(cell));
            Box::new(Kept {
                recording,
                frames: self.frames,
                namespaces: self.namespaces,
                constructed_again: self.constructed_again,
                unknowns: self.unknowns,
                options: self.options.clone(),
            })
        });
        Execution {
            variables,
            instances: self.instances,
            cells: self.cells,
            kept,
            printed: self.printed,
            reads: self.reads,
            unknown_reads: self.unknown_reads,
            stored: self.stored,
            files: self.files,
            diagnostics: self.diagnostics,
        }
    }
}
