//! Statements: what each waits for, and what it does.

use setpoint_cf_functions::codes::{self as function_codes, class};
use setpoint_cf_functions::context::Stop;
use setpoint_cf_names::datum::{Datum, InstanceId};
use setpoint_cf_names::hir::{Block, Expression, MemberKind, Statement, StatementKind};
use setpoint_diagnostics::{Diagnostic, Span};

use super::assign::Assignment;
use super::cells::CellId;
use super::frames::{Names, Target};
use super::machine::{Machine, Run};
use super::recording::Destination;
use super::units::{Scope, Sink, UnitId, Work};

/// How deep listeners may tell each other elements at once. What comes beyond that is told later, from the outside.
const DEEPEST_TELLING: u32 = 12;

impl<'m> Machine<'m> {
    /// Sets up the statements of a block, last first.
    pub(super) fn emit_block(&mut self, block: &'m Block, frame: u32) -> Run<()> {
        for statement in block.statements.iter().rev() {
            self.emit_statement(statement, Machine::scope(frame))?;
        }
        Ok(())
    }

    /// Sets up a statement.
    pub(super) fn emit_statement(&mut self, statement: &'m Statement, scope: Scope) -> Run<()> {
        match &statement.kind {
            StatementKind::Expression(expression) => self.evaluate_into(expression, Sink::Nowhere, scope),
            StatementKind::AssignVariable { value, .. } => {
                let unit = self.units.add(Work::AssignVariable(statement), scope);
                self.require_one(unit, value, scope)?;
                self.units.release(unit);
                Ok(())
            }
            StatementKind::AssignMember { instance, .. } => {
                let unit = self.units.add(Work::AssignMember(statement, CellId::NONE), scope);
                self.require_one(unit, instance, scope)?;
                self.units.release(unit);
                Ok(())
            }
            StatementKind::For { iterable, .. } => {
                let unit = self.units.add(Work::For(statement), scope);
                self.promise_inner(unit, statement, 0, scope)?;
                self.require_gradually(unit, iterable, scope)?;
                self.units.release(unit);
                Ok(())
            }
            StatementKind::If { .. } => self.emit_branch(statement, 0, scope),
        }
    }

    /// Sets up an `if` at one of its conditions.
    fn emit_branch(&mut self, statement: &'m Statement, branch: u32, scope: Scope) -> Run<()> {
        let StatementKind::If { branches, otherwise } = &statement.kind else {
            return Ok(());
        };
        match (branches.get(branch as usize), otherwise) {
            (Some((condition, _)), _) => {
                let unit = self.units.add(Work::If(statement, branch), scope);
                self.promise_inner(unit, statement, branch, scope)?;
                self.require_one(unit, condition, scope)?;
                self.units.release(unit);
                Ok(())
            }
            (None, Some(block)) => self.emit_inner(block, scope),
            (None, None) => Ok(()),
        }
    }

    fn emit_inner(&mut self, block: &'m Block, scope: Scope) -> Run<()> {
        let frame = self.add_frame(scope.frame, self.instance_of(scope.frame), Names::Block(block));
        self.emit_block(block, frame)
    }

    /// The condition of an `if` is known.
    pub(super) fn run_if(
        &mut self,
        unit: UnitId,
        statement: &'m Statement,
        branch: u32,
        scope: Scope,
    ) -> Run<()> {
        let StatementKind::If { branches, .. } = &statement.kind else {
            return Ok(());
        };
        let Some((condition, block)) = branches.get(branch as usize) else {
            return Ok(());
        };
        let value = self.evaluate_one(unit, condition, scope)?;
        let holds = self.condition(&value, condition.span)?;
        self.record_guard(unit, condition, scope, holds);
        self.release_promises(unit);
        self.finish(unit);
        match holds {
            Some(true) => self.emit_inner(block, scope),
            Some(false) => self.emit_branch(statement, branch + 1, scope),
            None => Ok(()),
        }
    }

    /// `x = e` when `e` is known.
    pub(super) fn run_assign_variable(
        &mut self,
        unit: UnitId,
        statement: &'m Statement,
        scope: Scope,
    ) -> Run<()> {
        let StatementKind::AssignVariable {
            target,
            value,
            target_span,
        } = &statement.kind
        else {
            return Ok(());
        };
        let datum = self.evaluate_one(unit, value, scope)?;
        let target = self.place(*target, scope.frame, *target_span)?;
        if let Target::Cell(cell) = target {
            self.record_value(Some(unit), value, scope, || Destination::Variable(cell));
        }
        self.finish(unit);
        match target {
            Target::Cell(cell) => self.set_variable(cell, datum, statement.span, *target_span),
            Target::Value(_) | Target::Blocked(_) => Ok(()),
        }
    }

    /// Finds what `r.a = e` assigns to, once `r` is known, and lets the unit wait for the value.
    fn find_target(&mut self, unit: UnitId, statement: &'m Statement, scope: Scope) -> Run<()> {
        let StatementKind::AssignMember {
            instance,
            member,
            member_span,
            add,
            value,
        } = &statement.kind
        else {
            return Ok(());
        };
        let found = self.evaluate_one(unit, instance, scope)?;
        let Datum::Instance(owner) = found else {
            let message = format!(
                "the object to assign to is not an entity but {}",
                self.described(&found)
            );
            let error = Diagnostic::error(&function_codes::OPERAND, statement.span, message)
                .of_class(class::TYPING)
                .shown_at(instance.span);
            return Machine::fail(error);
        };
        let (cell, slot) = self.member_cell(owner, *member, *member_span)?;
        if *add && !self.is_list(cell) {
            return Machine::fail(self.not_a_list(owner, slot, statement.span, *member_span));
        }
        self.promise(cell);
        self.units.get_mut(unit).work = Work::AssignMember(statement, cell);
        let scope = Scope {
            owner: owner.0,
            ..scope
        };
        self.units.get_mut(unit).scope = scope;
        self.require_value(unit, cell, value, scope)
    }

    /// Lets a unit wait for what a member is given: element by element if it is a list relation.
    pub(super) fn require_value(
        &mut self,
        unit: UnitId,
        cell: CellId,
        value: &'m Expression,
        scope: Scope,
    ) -> Run<()> {
        if self.is_list(cell) {
            self.require_gradually(unit, value, scope)
        } else {
            self.require_one(unit, value, scope)
        }
    }

    /// `r.a = e` when `r` is known, or `e` too.
    pub(super) fn run_assign_member(
        &mut self,
        unit: UnitId,
        statement: &'m Statement,
        cell: CellId,
        scope: Scope,
    ) -> Run<()> {
        let (StatementKind::AssignMember { value, .. }, Some(assignment)) =
            (&statement.kind, member_assignment(statement))
        else {
            return Ok(());
        };
        if cell.is_none() {
            self.units.hold(unit);
            self.find_target(unit, statement, scope)?;
            self.units.release(unit);
            return Ok(());
        }
        self.assign_value(unit, cell, value, assignment, scope)?;
        self.finish(unit);
        self.keep_promise(cell);
        Ok(())
    }

    /// Assigns the value that a unit waited for, as far as it was not told it.
    pub(super) fn assign_value(
        &mut self,
        unit: UnitId,
        cell: CellId,
        value: &'m Expression,
        assignment: Assignment,
        scope: Scope,
    ) -> Run<()> {
        if self.is_list(cell) && self.is_told(value, scope)? {
            return Ok(());
        }
        let datum = self
            .evaluate_one(unit, value, scope)
            .map_err(|stop| self.error_of_value(stop, cell, assignment))?;
        self.record_value(Some(unit), value, scope, || Destination::Attribute(cell));
        self.assign_member(cell, &datum, assignment)
    }

    fn not_a_list(&self, owner: InstanceId, slot: u32, span: Span, shown: Span) -> Diagnostic {
        let member = self.member(owner, slot);
        let name = self.model.text(member.name);
        let message = match member.kind {
            MemberKind::Relation(_) => {
                format!("can not use += on relations with multiplicity 1, like `{name}`")
            }
            MemberKind::Attribute { .. } => {
                format!("can not use += on the attribute `{name}`: it is for list relations")
            }
        };
        Diagnostic::error(&function_codes::OPERAND, span, message)
            .of_class(class::TYPING)
            .shown_at(shown)
            .help("write `=`")
    }

    /// What a `for` goes through is complete.
    pub(super) fn run_for(&mut self, unit: UnitId, statement: &'m Statement, scope: Scope) -> Run<()> {
        let StatementKind::For { iterable, .. } = &statement.kind else {
            return Ok(());
        };
        if !self.is_told(iterable, scope)? {
            let value = self.evaluate_one(unit, iterable, scope)?;
            match value.unmarked() {
                Datum::List(elements) => {
                    for element in elements.iter() {
                        self.tell(unit, element.clone())?;
                    }
                }
                Datum::Unknown(_) => {}
                _ => {
                    let message = format!("a `for` goes through a list, not {}", self.described(&value));
                    let error = Diagnostic::error(&function_codes::OPERAND, statement.span, message)
                        .of_class(class::TYPING)
                        .shown_at(iterable.span);
                    return Machine::fail(match value.unmarked() {
                        Datum::Dict(_) => error.help("`std::dict_keys` gives the keys of a dict"),
                        Datum::Int(int) => error
                            .label("this is no list")
                            .help(format!("`std::sequence({int})` gives the numbers from 0 on")),
                        Datum::Instance(_) => error.label("this is one instance, and no list"),
                        _ => error.label("this is no list"),
                    });
                }
            }
        }
        self.release_promises(unit);
        self.finish(unit);
        Ok(())
    }

    /// Tells a unit that takes elements as they come a value: its elements if it is a list.
    pub(super) fn tell_all(&mut self, unit: UnitId, value: &Datum) -> Run<()> {
        match value.unmarked() {
            Datum::List(elements) => {
                for element in elements.iter() {
                    self.tell(unit, element.clone())?;
                }
                Ok(())
            }
            _ => self.tell(unit, value.clone()),
        }
    }

    /// Tells a unit that takes elements as they come one of them.
    pub(super) fn tell(&mut self, unit: UnitId, element: Datum) -> Run<()> {
        if self.telling >= DEEPEST_TELLING {
            self.units.hold(unit);
            self.untold.push_back((unit, element));
            return Ok(());
        }
        self.telling += 1;
        let told = self.tell_now(unit, element);
        self.telling -= 1;
        told?;
        while self.telling == 0
            && let Some((unit, element)) = self.untold.pop_front()
        {
            self.telling += 1;
            let told = self.tell_now(unit, element);
            self.telling -= 1;
            self.units.release(unit);
            told?;
        }
        Ok(())
    }

    fn tell_now(&mut self, unit: UnitId, element: Datum) -> Run<()> {
        let (work, scope) = (self.units.get(unit).work.clone(), self.units.get(unit).scope);
        match work {
            Work::AssignMember(statement, cell) => {
                let StatementKind::AssignMember {
                    value, member_span, ..
                } = &statement.kind
                else {
                    return Ok(());
                };
                let assignment = Assignment {
                    span: statement.span,
                    shown: *member_span,
                    value: Some(value.span),
                };
                let assigned = self.assign_member(cell, &element, assignment);
                assigned.or_else(|stop| self.refuse_element(stop, cell, value, &element, assignment))
            }
            Work::SetMember {
                plan,
                setting,
                instance,
            } => {
                let setting = self.plans.setting(plan, setting);
                let cell = self.instances[instance.0 as usize].first.at(setting.slot);
                let assignment = self.plans.assignment(plan, setting);
                let assigned = self.assign_member(cell, &element, assignment);
                assigned.or_else(|stop| self.refuse_element(stop, cell, setting.value, &element, assignment))
            }
            Work::For(statement) => {
                let StatementKind::For { body, .. } = &statement.kind else {
                    return Ok(());
                };
                if matches!(element.unmarked(), Datum::Unknown(_)) {
                    return Ok(());
                }
                let frame = self.add_frame(scope.frame, self.instance_of(scope.frame), Names::Block(body));
                self.nest_in_element(frame, &element);
                let variable = self.frames[frame as usize].first;
                let place = statement.span;
                self.cells.set(variable, element, place);
                self.emit_block(body, frame)
            }
            Work::Forward(_, target) => self.tell(target, element),
            Work::Loop {
                comprehension,
                level,
                sink,
                ..
            } => self.tell_loop(unit, comprehension, level, sink, element, scope),
            Work::Element { parent, .. } => self.tell_result(parent, element),
            Work::IsDefined(expression, result) => {
                self.tell_is_defined(unit, expression, result, &element, scope)
            }
            _ => Ok(()),
        }
    }

    /// A unit that passes on what it is told, and what it evaluates.
    pub(super) fn run_forward(
        &mut self,
        unit: UnitId,
        expression: &'m Expression,
        target: UnitId,
        scope: Scope,
    ) -> Run<()> {
        if !self.is_told(expression, scope)? {
            let value = self.evaluate_one(unit, expression, scope)?;
            self.tell_all(target, &value)?;
        }
        self.finish(unit);
        self.units.release(target);
        Ok(())
    }

    /// Wraps the error of a constructor as the unit reports it that runs the constructor.
    fn error_within(&self, unit: UnitId, stop: Stop) -> Stop {
        match &self.units.get(unit).work {
            Work::AssignMember(statement, cell) => match member_assignment(statement) {
                Some(assignment) => self.error_of_value(stop, *cell, assignment),
                None => stop,
            },
            Work::SetMember {
                plan,
                setting,
                instance,
            } => {
                let setting = self.plans.setting(*plan, *setting);
                let cell = self.instances[instance.0 as usize].first.at(setting.slot);
                self.error_of_value(stop, cell, self.plans.assignment(*plan, setting))
            }
            _ => stop,
        }
    }

    /// Runs a unit.
    pub(super) fn run_unit(&mut self, unit: UnitId) -> Run<()> {
        while let Some((constructor, next)) = self.units.first_within(unit) {
            self.run_unit(constructor)
                .map_err(|stop| self.error_within(unit, stop))?;
            self.record_rest();
            self.units.go_on_within(unit, next);
        }
        let (work, scope) = (self.units.get(unit).work.clone(), self.units.get(unit).scope);
        match work {
            Work::Free => Ok(()),
            Work::AssignVariable(statement) => self.run_assign_variable(unit, statement, scope),
            Work::AssignMember(statement, cell) => self.run_assign_member(unit, statement, cell, scope),
            Work::For(statement) => self.run_for(unit, statement, scope),
            Work::If(statement, branch) => self.run_if(unit, statement, branch, scope),
            Work::Evaluate(expression, sink) => {
                let value = self.evaluate_one(unit, expression, scope)?;
                if !matches!(sink, Sink::Gradual(_)) {
                    self.record_value(Some(unit), expression, scope, || {
                        Destination::Parts(value.clone())
                    });
                }
                self.finish(unit);
                self.put(sink, value)
            }
            Work::Forward(expression, target) => self.run_forward(unit, expression, target, scope),
            Work::Call(expression, result) => self.run_call(unit, expression, result, scope),
            Work::Construct(expression, result, _) => self.run_construct(unit, expression, result, scope),
            Work::Lookup(expression, result) => self.run_lookup(unit, expression, result, scope),
            Work::Conditional(expression, sink) => self.run_conditional(unit, expression, sink, scope),
            Work::Logic(expression, at, result) => self.run_logic(unit, expression, at, result, scope),
            Work::IsDefined(expression, result) => self.finish_is_defined(unit, expression, result, scope),
            Work::Loop {
                comprehension,
                level,
                is_open,
                sink,
            } => self.run_loop(unit, comprehension, level, is_open, sink, scope),
            Work::Element {
                comprehension,
                parent,
                position,
                condition,
            } => self.run_element(unit, comprehension, parent, position, condition, scope),
            Work::Hop {
                reference,
                attributes,
                target,
                is_gradual,
            } => self.run_hop(unit, reference, attributes, target, is_gradual, scope),
            Work::Acquire {
                promised,
                holder,
                registered,
            } => self.run_acquire(unit, promised, holder, registered, scope),
            Work::SetGroup {
                plan,
                first,
                end,
                instance,
            } => self.run_set_group(unit, plan, first, end, instance, scope),
            Work::SetMember {
                plan,
                setting,
                instance,
            } => self.run_set_member(unit, plan, setting, instance, scope),
            Work::SetValue {
                plan,
                slot,
                instance,
                value,
            } => self.run_set_value(unit, plan, slot, instance, &value),
            Work::Refine { implements, instance } => self.run_refine(unit, implements, instance, scope),
        }
    }
}

/// The locations in `r.a = e` for an error.
fn member_assignment(statement: &Statement) -> Option<Assignment> {
    let StatementKind::AssignMember {
        value, member_span, ..
    } = &statement.kind
    else {
        return None;
    };
    Some(Assignment {
        span: statement.span,
        shown: *member_span,
        value: Some(value.span),
    })
}
