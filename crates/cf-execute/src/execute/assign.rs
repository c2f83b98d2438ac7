//! Giving variables, attributes and relations their values.

use setpoint_cf_functions::codes::class;
use setpoint_cf_functions::context::Stop;
use setpoint_cf_functions::equality::is_same;
use setpoint_cf_names::datum::{Datum, InstanceId};
use setpoint_cf_names::hir::MemberKind;
use setpoint_cf_names::ids::RelationId;
use setpoint_cf_names::resolve::codes::CAST;
use setpoint_cf_names::types::AttributeType;
use setpoint_diagnostics::{CodeInfo, Diagnostic, Span};

use super::cells::{CellId, Element, Gradual, GradualKind};
use super::codes;
use super::machine::{Machine, Run};
use super::view::place_text;

/// What gives a member its value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Assignment {
    /// The statement or constructor.
    pub(super) span: Span,
    /// The name of the member in it, which is what is shown.
    pub(super) shown: Span,
    /// The value, where there is one of its own.
    pub(super) value: Option<Span>,
}

impl Assignment {
    /// The place that is remembered.
    pub(super) fn place(self) -> Span {
        self.value.unwrap_or(self.shown)
    }
}

impl<'m> Machine<'m> {
    /// Gives a variable its value.
    pub(super) fn set_variable(&mut self, cell: CellId, value: Datum, span: Span, shown: Span) -> Run<()> {
        self.record_set(cell);
        let found = self.cells.get(cell);
        if found.is_set() {
            if is_same(&found.value, &value) {
                return Ok(());
            }
            let assignment = Assignment {
                span,
                shown,
                value: None,
            };
            return Machine::fail(self.set_twice(cell, &value, assignment));
        }
        self.cells.set(cell, value, shown);
        self.wake(cell);
        Ok(())
    }

    /// The value that was computed last is put into a cell: as its value, or it is compared with that.
    fn record_set(&mut self, cell: CellId) {
        let Some(recorder) = &mut self.recorder else {
            return;
        };
        if self.cells.get(cell).is_set() || self.cells.is_ready(cell) {
            recorder.use_pending();
            recorder.touch(cell);
        } else {
            recorder.set(cell);
        }
    }

    /// Gives a member of an instance a value, or adds to it.
    pub(super) fn assign_member(&mut self, cell: CellId, value: &Datum, assignment: Assignment) -> Run<()> {
        let Some((instance, slot)) = self.owner_of(cell) else {
            return Ok(());
        };
        let assigned = match self.member(instance, slot).kind {
            MemberKind::Attribute { ty, .. } => self.assign_attribute(cell, ty, value, assignment),
            MemberKind::Relation(relation) => {
                self.assign_relation(cell, instance, relation, value, assignment)
            }
        };
        assigned.map_err(|stop| {
            let assignment = self.blamed(cell, assignment, &stop);
            let part = self.refused_part(instance, slot, value, assignment);
            let whole = assignment.place();
            let shown_at_part = |stop: Stop| {
                let Stop::Error(mut error) = stop else { return stop };
                for label in error.secondary.iter_mut().filter(|label| label.span == whole) {
                    label.span = part;
                }
                match error.primary.span == whole {
                    true => Stop::from(error.shown_at(part)),
                    false => Stop::Error(error),
                }
            };
            shown_at_part(self.wrap(shown_at_part(stop), instance, slot, assignment))
        })
    }

    fn assign_attribute(
        &mut self,
        cell: CellId,
        ty: AttributeType,
        value: &Datum,
        assignment: Assignment,
    ) -> Run<()> {
        self.record_set(cell);
        let found = self.cells.get(cell);
        if found.is_set() || self.cells.is_ready(cell) {
            if is_same(&found.value, value) {
                return Ok(());
            }
            return Machine::fail(self.set_twice(cell, value, assignment));
        }
        self.check_attribute(ty, value, assignment.place())?;
        self.cells.set(cell, value.clone(), assignment.place());
        if let Some(gradual) = self.cells.gradual_mut(cell) {
            gradual.is_frozen = true;
            gradual.providers = 0;
        }
        self.wake(cell);
        Ok(())
    }

    fn assign_relation(
        &mut self,
        cell: CellId,
        owner: InstanceId,
        relation: RelationId,
        value: &Datum,
        assignment: Assignment,
    ) -> Run<()> {
        if let Some(recorder) = &mut self.recorder {
            recorder.use_pending();
        }
        match self.cells.gradual(cell).map(|gradual| gradual.kind) {
            Some(GradualKind::List) => match value.unmarked() {
                Datum::List(elements) => {
                    for element in elements.iter() {
                        self.add_to_relation(cell, owner, relation, element, assignment, true)?;
                    }
                    Ok(())
                }
                Datum::Null => self.empty_relation(cell, relation, assignment),
                _ => self.add_to_relation(cell, owner, relation, value, assignment, true),
            },
            _ => self.set_relation(cell, owner, relation, value, assignment, true),
        }
    }

    /// Gives a relation with one end its instance.
    fn set_relation(
        &mut self,
        cell: CellId,
        owner: InstanceId,
        relation: RelationId,
        value: &Datum,
        assignment: Assignment,
        is_forward: bool,
    ) -> Run<()> {
        let found = self.cells.get(cell);
        let is_optional = self.cells.gradual(cell).is_some();
        if self.cells.is_ready(cell) {
            if is_same(&found.value, value) {
                return Ok(());
            }
            if !found.is_set() {
                return Machine::fail(match self.later_null(cell, assignment) {
                    Some(null) => {
                        let error = self.null_too(cell, value, assignment, null, &codes::SET_TWICE);
                        error.of_class("DoubleSetException")
                    }
                    None => self.modified_after_freeze(cell, value, assignment, is_forward),
                });
            }
            return Machine::fail(self.set_twice(cell, value, assignment));
        }
        let is_nothing = is_optional && matches!(value, Datum::Null);
        if !is_nothing {
            self.check_relation(relation, value, assignment.place())?;
        }
        if !is_nothing {
            self.cells.get_mut(cell).set(value.clone());
        }
        self.cells.set_place(cell, assignment.place());
        if let Some(gradual) = self.cells.gradual_mut(cell) {
            gradual.is_frozen = true;
            gradual.providers = 0;
        }
        if is_forward {
            self.set_inverse(owner, relation, value, assignment)?;
        }
        self.wake(cell);
        Ok(())
    }

    /// Adds an instance to a list relation.
    fn add_to_relation(
        &mut self,
        cell: CellId,
        owner: InstanceId,
        relation: RelationId,
        value: &Datum,
        assignment: Assignment,
        is_forward: bool,
    ) -> Run<()> {
        let number = self.cells.get(cell).gradual;
        let Some(element) = Machine::element(value) else {
            return self.check_relation(relation, value, assignment.place());
        };
        let gradual = &self.cells.graduals[number as usize];
        let high = self.model.relations[relation.index()].multiplicity.high;
        if gradual.contains(element) {
            self.queue_if_possible(number);
            return Ok(());
        }
        if gradual.is_frozen {
            if high.is_some_and(|high| gradual.elements().len() as i64 == high) {
                return Machine::fail(self.too_many(
                    cell,
                    relation,
                    value,
                    "exceeded relation arity",
                    assignment,
                ));
            }
            return Machine::fail(match self.later_null(cell, assignment) {
                Some(null) => {
                    let error = self.null_too(cell, value, assignment, null, &codes::ARITY);
                    error.of_class(class::RUNTIME)
                }
                None => self.modified_after_freeze(cell, value, assignment, is_forward),
            });
        }
        self.check_relation(relation, value, assignment.place())?;
        self.cells.graduals[number as usize].push(element);
        self.cells.set_place(cell, assignment.place());
        for listener in self.cells.listeners(cell) {
            self.tell(listener, value.clone())?;
        }
        if is_forward && element.is_known() {
            self.set_inverse(owner, relation, value, assignment)?;
        }
        let count = self.cells.graduals[number as usize].elements().len() as i64;
        match high {
            Some(high) if count > high => {
                return Machine::fail(self.too_many(cell, relation, value, "list over full", assignment));
            }
            Some(high) if count == high => self.freeze(cell),
            _ => self.queue_if_possible(number),
        }
        Ok(())
    }

    /// Null on a list relation: it stays empty.
    fn empty_relation(&mut self, cell: CellId, relation: RelationId, assignment: Assignment) -> Run<()> {
        let Some(gradual) = self.cells.gradual(cell) else {
            return Ok(());
        };
        let name = self
            .model
            .text(self.model.relations[relation.index()].name)
            .clone();
        if !gradual.elements().is_empty() {
            let message = format!("trying to set `{name}` to null, but it has values already");
            let place = self.cells.place(cell);
            let error = Diagnostic::error(&codes::ARITY, assignment.span, message)
                .of_class(class::RUNTIME)
                .shown_at(assignment.place());
            return Machine::fail(match place {
                Some(place) => error.because(place, "the last value was added here"),
                None => error,
            });
        }
        let relation = &self.model.relations[relation.index()];
        let low = relation.multiplicity.low;
        if low > 0 && !gradual.is_frozen {
            let message = format!("`{name}` is set to null, but it needs {low} values");
            let warning = Diagnostic::warning(&codes::EMPTIED, assignment.span, message)
                .because(relation.multiplicity.span, "declared here");
            self.diagnostics.push(warning.shown_at(assignment.place()));
        }
        self.cells.set_place(cell, assignment.place());
        self.freeze(cell);
        Ok(())
    }

    /// Where an empty relation was set to null, if that stands behind an assignment in the same file.
    fn later_null(&self, cell: CellId, assignment: Assignment) -> Option<Span> {
        let elements = self.cells.gradual(cell).map(Gradual::elements)?;
        let place = self.cells.place(cell).filter(|_| elements.is_empty())?;
        let given = assignment.place();
        (place.file == given.file && place.start > given.start).then_some(place)
    }

    /// The error that a relation is set to null behind the assignment of a value.
    fn null_too(
        &self,
        cell: CellId,
        value: &Datum,
        assignment: Assignment,
        null: Span,
        code: &'static CodeInfo,
    ) -> Diagnostic {
        let name = match self.owner_of(cell) {
            Some((instance, slot)) => self.model.text(self.member(instance, slot).name).to_string(),
            None => String::new(),
        };
        let value = self.shown(value);
        let message = format!("`{name}` is set to null, but it also gets {value}");
        Diagnostic::error(code, null, message)
            .label("set to null here")
            .because(assignment.place(), "the value comes from here")
            .help("remove one of the two")
    }

    /// The assignment that an error is about: the null of a relation that also gets values.
    fn blamed(&self, cell: CellId, assignment: Assignment, stop: &Stop) -> Assignment {
        match (stop, self.later_null(cell, assignment)) {
            (Stop::Error(error), Some(null)) if error.primary.span == null => Assignment {
                span: null,
                shown: null,
                value: Some(null),
            },
            _ => assignment,
        }
    }

    /// The other end of a relation gets its owner.
    fn set_inverse(
        &mut self,
        owner: InstanceId,
        relation: RelationId,
        value: &Datum,
        assignment: Assignment,
    ) -> Run<()> {
        let (Some(inverse), Datum::Instance(other)) = (self.model.relations[relation.index()].inverse, value)
        else {
            return Ok(());
        };
        let name = self.model.relations[inverse.index()].name;
        let (cell, slot) = self.member_cell(*other, name, assignment.span)?;
        let owner = Datum::Instance(owner);
        let set = if self.is_list(cell) {
            self.add_to_relation(cell, *other, inverse, &owner, assignment, false)
        } else {
            self.set_relation(cell, *other, inverse, &owner, assignment, false)
        };
        // The rules blame the instance at this end. The reader looks for the assignment.
        let blamed = Assignment {
            span: self.instances[other.0 as usize].span,
            shown: assignment.place(),
            value: None,
        };
        set.map_err(|stop| self.wrap(stop, *other, slot, blamed))
    }

    /// Refuses what cannot be in a relation.
    pub(super) fn check_relation(&self, relation: RelationId, value: &Datum, span: Span) -> Run<()> {
        self.check_entity(self.model.relations[relation.index()].target, value, span)
    }

    /// Wraps an error in one that tells which member could not be set.
    fn wrap(&self, stop: Stop, instance: InstanceId, slot: u32, assignment: Assignment) -> Stop {
        let Stop::Error(cause) = stop else { return stop };
        // The member that could not be set is at the other end of the relation, or in a list that follows this one.
        if cause.code == &codes::NOT_SET || cause.code == &codes::ENDLESS {
            return Stop::Error(cause);
        }
        let name = self.model.text(self.member(instance, slot).name);
        let message = format!(
            "could not set attribute `{name}` on instance {}: {}",
            self.instance_text(instance),
            cause.message
        );
        let whole = assignment.place();
        let shown = match whole.contains(cause.primary.span) {
            true => cause.primary.span,
            false => whole,
        };
        let mut error = Diagnostic::error(&codes::NOT_SET, assignment.span, message)
            .of_class("AttributeException")
            .shown_at(shown);
        if shown == cause.primary.span {
            error.primary.text.clone_from(&cause.primary.text);
        }
        // What helps with the cause helps here.
        error.notes.clone_from(&cause.notes);
        error.help.clone_from(&cause.help);
        error.secondary.clone_from(&cause.secondary);
        error.caused_by(*cause).into()
    }

    /// Names the member that was to be set in an error of its value.
    pub(super) fn error_of_value(&self, stop: Stop, cell: CellId, assignment: Assignment) -> Stop {
        match (self.owner_of(cell), &stop) {
            // A cast is a call, which fails on its own.
            (_, Stop::Error(error)) if error.code == &CAST => stop,
            (Some((instance, slot)), _) => self.wrap(stop, instance, slot, assignment),
            (None, _) => stop,
        }
    }

    /// The error that a cell has another value already.
    fn set_twice(&self, cell: CellId, value: &Datum, assignment: Assignment) -> Diagnostic {
        let found = self.cells.get(cell);
        let (old, new) = (self.shown(&found.value), self.shown(value));
        let (name, member) = match self.owner_of(cell) {
            Some((instance, slot)) => (
                Some(self.model.text(self.member(instance, slot).name).to_string()),
                true,
            ),
            None => (self.variable_name(assignment.shown), false),
        };
        let name = name.map_or_else(|| "value".to_owned(), |name| format!("`{name}`"));
        let mut message = format!("{name} is set twice: to {old}");
        let first = self.cells.place(cell);
        if let Some(place) = first {
            message = format!("{message} at {}", place_text(self.sources, place));
        }
        let new_place = place_text(self.sources, assignment.place());
        message = format!("{message}, and to {new} at {new_place}");
        let mut error = Diagnostic::error(&codes::SET_TWICE, assignment.span, message)
            .of_class("DoubleSetException")
            .shown_at(assignment.place())
            .label(format!("the second value is {new}"));
        if let Some(place) = first.filter(|place| *place != assignment.place()) {
            error = error.because(place, format!("the first value is {old}"));
        }
        if member {
            let constructed = self
                .owner_of(cell)
                .map(|(instance, _)| self.instances[instance.0 as usize].span);
            let is_default = first.is_some() && first == constructed;
            match is_default {
                true => error.help(
                    "a default is a value, too; give the other one in the constructor, or take the default away",
                ),
                false => error,
            }
        } else {
            error.help("a variable has one value; give the second one another name")
        }
    }

    fn variable_name(&self, span: Span) -> Option<String> {
        let name = self.sources.text(span);
        (!name.is_empty()).then(|| name.to_owned())
    }

    fn too_many(
        &self,
        cell: CellId,
        relation: RelationId,
        value: &Datum,
        gist: &str,
        assignment: Assignment,
    ) -> Diagnostic {
        let relation = &self.model.relations[relation.index()];
        let high = relation.multiplicity.high.unwrap_or(i64::MAX);
        let name = self.model.text(relation.name);
        let value = self.shown(value);
        let message = format!("{gist}: `{name}` holds {high} at most, and {value} is one more");
        let error = Diagnostic::error(&codes::ARITY, assignment.span, message)
            .of_class(class::RUNTIME)
            .shown_at(assignment.place())
            .because(relation.multiplicity.span, "declared here");
        match self
            .cells
            .place(cell)
            .filter(|place| *place != assignment.place())
        {
            Some(place) => error.because(place, "the last one that fits was added here"),
            None => error.label("not all of these fit"),
        }
    }

    /// The error that a relation got a value when it had to be complete already.
    fn modified_after_freeze(
        &self,
        cell: CellId,
        value: &Datum,
        assignment: Assignment,
        is_forward: bool,
    ) -> Diagnostic {
        let value_text = self.shown(value);
        let Some((instance, slot)) = self.owner_of(cell) else {
            return Diagnostic::error(&codes::FROZEN, assignment.span, "modified after freeze")
                .of_class("ModifiedAfterFreezeException");
        };
        let member = self.member(instance, slot);
        let (name, instance_text) = (self.model.text(member.name), self.instance_text(instance));
        let sort = if self.is_list(cell) {
            "list"
        } else {
            "optional relation"
        };
        let message = format!(
            "{sort} modified after freeze: `{name}` of {instance_text} was complete when {value_text} came"
        );
        let mut error = Diagnostic::error(&codes::FROZEN, assignment.span, message)
            .of_class("ModifiedAfterFreezeException")
            .shown_at(assignment.place())
            .label("this came too late");
        let elements = self
            .cells
            .gradual(cell)
            .map(Gradual::elements)
            .unwrap_or_default();
        let made_empty = self.cells.place(cell).filter(|_| elements.is_empty());
        error = match elements {
            [] if made_empty.is_some() => error.note(format!("`{name}` was set to null")),
            [] => error.note(format!("`{name}` had no values")),
            elements => {
                let shown: Vec<String> = elements
                    .iter()
                    .take(10)
                    .map(|element: &Element| self.shown(&element.datum()))
                    .collect();
                let more = elements.len().saturating_sub(10);
                let more = if more > 0 {
                    format!(", and {more} more")
                } else {
                    String::new()
                };
                error.note(format!("`{name}` held {}{more}", shown.join(", ")))
            }
        };
        match made_empty {
            Some(place) => error = error.because(place, "set to null here"),
            None => {
                error = error.note(format!(
                    "`{name}` was taken to be complete, because something waited for all of it and nothing else could go on"
                ));
            }
        }
        if !is_forward {
            let operator = if self.is_list(cell) { "+=" } else { "=" };
            error = error.note(format!(
                "it came through the other end of the relation: the same as `x.{name} {operator} y`, where x is {instance_text} and y is {value_text}"
            ));
        }
        let rule = match member.kind {
            MemberKind::Relation(relation) => {
                let relation = &self.model.relations[relation.index()];
                format!("{}.{name}", self.model.entities[relation.owner.index()].name)
            }
            MemberKind::Attribute { .. } => name.to_string(),
        };
        error.help(format!(
            "make what needs all of `{name}` depend on this assignment, or add a rule such as `A.b before {rule}` to relation_precedence_policy in project.yml"
        ))
    }
}
