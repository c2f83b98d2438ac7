//! What must hold when nothing is left to do.

use std::sync::Arc;

use setpoint_cf_functions::codes::class;
use setpoint_cf_names::datum::{Datum, InstanceId};
use setpoint_cf_names::hir::{MemberKind, Variable};
use setpoint_cf_names::ids::{EntityId, Symbol};
use setpoint_diagnostics::{Diagnostic, Span};

use super::cells::{CellId, GradualKind};
use super::machine::Machine;
use super::replay::Kept;
use super::units::{UnitId, Work};
use super::{Execution, Slot};
use super::{codes, importance};

impl<'m> Machine<'m> {
    /// The error of a model that is not complete: several in one.
    pub(super) fn check_complete(&mut self) -> Result<(), Box<Diagnostic>> {
        let mut found = self.lookups_without_match();
        self.check_annotations(&mut found);
        for number in 0..self.instances.len() as u32 {
            self.check_instance(InstanceId(number), &mut found);
        }
        match importance::combine(found, self.sources) {
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
            found.push(self.not_refined(entity, span));
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

    /// The error that nothing implements an instance.
    fn not_refined(&self, id: EntityId, span: Span) -> Diagnostic {
        let entity = &self.model.entities[id.index()];
        let name = &entity.name;
        let short = |name: &str| name.rsplit_once("::").map_or(name, |(_, short)| short).to_owned();
        let message = format!("unable to select implementation for entity `{name}`");
        let error = Diagnostic::error(&codes::NOT_REFINED, span, message)
            .of_class(class::RUNTIME)
            .label("nothing says what becomes of this instance");
        if !entity.implements.is_empty() {
            let conditions = entity
                .implements
                .iter()
                .filter_map(|implement| implement.condition.as_ref());
            let error = conditions.take(3).fold(error, |error, condition| {
                error.because(condition.span, "this is not true for it")
            });
            let help = format!(
                "add one for all other cases: `implement {} using std::none`",
                short(name)
            );
            return error
                .note("the condition of none of its `implement` statements is true")
                .help(help);
        }
        let mut own = self.model.implementations.iter();
        let unused = own.find(|implementation| implementation.entity == id);
        let mut parents = entity.parents.iter();
        let parent = parents.find(|parent| !self.model.entities[parent.index()].implements.is_empty());
        let (using, error) = match (unused, parent) {
            (Some(unused), _) => {
                let error = match unused.span {
                    Some(span) => error.because(span, "defined, but no `implement` statement uses it"),
                    None => error,
                };
                (short(&unused.name), error)
            }
            (None, Some(parent)) => {
                let parent = &self.model.entities[parent.index()].name;
                let note = format!("implementations of `{parent}` are not inherited automatically");
                ("parents".to_owned(), error.note(note))
            }
            (None, None) => ("std::none".to_owned(), error),
        };
        error.help(format!(
            "say how it is refined: `implement {} using {using}`",
            short(name)
        ))
    }

    /// Where an implementation that was selected for an instance assigns a variable with the name of an attribute.
    fn variable_for_attribute(&self, instance: InstanceId, name: Symbol) -> Option<Span> {
        let entity = &self.model.entities[self.entity_of(instance).index()];
        let used = entity.implements.iter().flat_map(|implement| &implement.using);
        let mut variables = used.flat_map(|id| &self.model.implementations[id.index()].body.variables);
        let variable = variables.find(|variable| variable.name == name)?;
        Some(variable.span)
    }

    /// The error that a list relation holds enough, but a statement that may add to it never ran.
    fn never_completed(&self, instance: InstanceId, slot: u32) -> Diagnostic {
        let name = self.model.text(self.member(instance, slot).name);
        let what = format!("a statement that may add to `{name}` never ran");
        let message = format!(
            "the object {} is not complete: {what}",
            self.instance_text(instance)
        );
        Diagnostic::error(
            &codes::INCOMPLETE,
            self.instances[instance.0 as usize].span,
            message,
        )
        .of_class("UnsetException")
        .label(what)
    }

    fn incomplete(&self, instance: InstanceId, slot: u32, cell: CellId) -> Diagnostic {
        let member = self.member(instance, slot);
        let name = self.model.text(member.name);
        let what = match self.cells.gradual(cell) {
            Some(gradual) if gradual.kind == GradualKind::List => {
                let low = self.low(cell);
                if gradual.elements().len() as i64 >= low {
                    return self.never_completed(instance, slot);
                }
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
        if let Some(variable) = self.variable_for_attribute(instance, member.name) {
            return error
                .because(variable, "this assigns a variable of the implementation")
                .help(format!("the attribute is `self.{name}`"));
        }
        match member.kind {
            MemberKind::Attribute { ty, .. } if ty.nullable => {
                error.help(format!("write `{name} = null` if it has no value"))
            }
            MemberKind::Attribute { ty, .. } if ty.list => {
                error.help(format!("write `{name} = []` if it has no elements"))
            }
            MemberKind::Attribute { .. } => error.help(format!(
                "give it in the constructor, in an implementation (`self.{name} = …`), or as a default"
            )),
            MemberKind::Relation(_) => error,
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
            "a variable that is never assigned, or variables that need each other, have no value; a variable has one value, so it cannot be made of itself",
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
