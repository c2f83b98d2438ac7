//! What is evaluated only as far as it matters: `? :`, `and`, `or`, `is defined`.

use setpoint_cf_functions::codes::{self as function_codes, class};
use setpoint_cf_functions::context::Stop;
use setpoint_cf_functions::{operators, text};
use setpoint_cf_names::datum::Datum;
use setpoint_cf_names::hir::{Expression, ExpressionKind};
use setpoint_cf_syntax::ast::Operator;
use setpoint_diagnostics::Diagnostic;

use super::cells::{CellId, Gradual, NONE};
use super::frames::Target;
use super::machine::{Machine, Run};
use super::recording::Destination;
use super::require::turns;
use super::units::{Scope, Sink, UnitId, Work};
use super::view::naming;

impl<'m> Machine<'m> {
    /// Gives the result of a part its value.
    pub(super) fn set_result(&mut self, cell: CellId, value: Datum) {
        if cell.is_none() {
            return;
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.set(cell);
        }
        self.cells.get_mut(cell).set(value);
        self.wake(cell);
    }

    /// Puts a value where it belongs. Lists are told element by element.
    pub(super) fn put(&mut self, sink: Sink, value: Datum) -> Run<()> {
        match sink {
            Sink::Nowhere => Ok(()),
            Sink::Cell(cell) => {
                self.set_result(cell, value);
                Ok(())
            }
            Sink::Gradual(unit) => {
                self.tell_all(unit, &value)?;
                self.units.release(unit);
                Ok(())
            }
        }
    }

    /// `c ? a : b` when `c` is known.
    pub(super) fn run_conditional(
        &mut self,
        unit: UnitId,
        expression: &'m Expression,
        sink: Sink,
        scope: Scope,
    ) -> Run<()> {
        let ExpressionKind::Conditional {
            condition,
            then,
            otherwise,
        } = &expression.kind
        else {
            return Ok(());
        };
        let inner = Scope { owner: NONE, ..scope };
        let value = self.evaluate_one(unit, condition, inner)?;
        let chosen = self.condition(&value, condition.span)?;
        self.record_guard(unit, condition, inner, chosen);
        self.finish(unit);
        match chosen {
            Some(true) => self.evaluate_into(then, sink, scope),
            Some(false) => self.evaluate_into(otherwise, sink, scope),
            None => {
                let unknown = self.unknowns.create();
                self.put(sink, unknown)
            }
        }
    }

    /// `and`, `or` when the operand at `at` is known.
    pub(super) fn run_logic(
        &mut self,
        unit: UnitId,
        expression: &'m Expression,
        at: u32,
        result: CellId,
        scope: Scope,
    ) -> Run<()> {
        let ExpressionKind::Operators { first, rest } = &expression.kind else {
            return Ok(());
        };
        let operand = match at {
            0 => &**first,
            at => &rest[at as usize - 1].2,
        };
        // All operators of one level of these are the same.
        let operator = rest[0].0;
        let value = self.evaluate_one(unit, operand, scope)?;
        let known = match (value.unmarked(), at) {
            (Datum::Bool(known), _) => Some(*known),
            (Datum::Unknown(_), _) => None,
            (_, 0) => {
                let found = naming!(self, naming => operators::condition(&value, Some(operator), operand.span, naming));
                found.map_err(|error| Stop::Error(Box::new(left_hand(*error))))?
            }
            (other, _) => {
                let message = naming!(self, naming => format!(
                    "the right hand value `{}` of `{}` is of type {}, expected bool",
                    text::shown(&value, naming),
                    operators::symbol(operator),
                    text::type_name(other, naming)
                ));
                return Machine::fail(
                    Diagnostic::error(&function_codes::CONDITION, operand.span, message)
                        .of_class(class::RUNTIME),
                );
            }
        };
        let decided = match known {
            None => true,
            Some(known) => known == (operator == Operator::Or),
        };
        let next = rest.get(at as usize);
        if next.is_some() {
            self.record_guard(unit, operand, scope, known);
        } else {
            self.record_value(Some(unit), operand, scope, || Destination::Operand(value.clone()));
        }
        match next {
            Some((_, _, operand)) if !decided => {
                self.give_parts_back(unit);
                self.units.get_mut(unit).work = Work::Logic(expression, at + 1, result);
                self.units.hold(unit);
                self.require_one(unit, operand, scope)?;
                self.units.release(unit);
            }
            _ => {
                let value = match known {
                    Some(_) => value,
                    None => self.unknowns.create(),
                };
                self.finish(unit);
                self.set_result(result, value);
            }
        }
        Ok(())
    }

    /// Lets a unit find out what `is defined` needs, or wait for it.
    pub(super) fn begin_is_defined(
        &mut self,
        unit: UnitId,
        expression: &'m Expression,
        scope: Scope,
    ) -> Run<()> {
        if let ExpressionKind::IsDefined(reference) = &expression.kind
            && let turns @ 1.. = turns(reference)
            && let Target::Cell(_) = self.resolve(reference, scope.frame)?
        {
            self.units.postpone(unit, turns - 1);
            return Ok(());
        }
        self.require_is_defined(unit, expression, scope)
    }

    /// Lets a unit wait for what `is defined` needs.
    fn require_is_defined(&mut self, unit: UnitId, expression: &'m Expression, scope: Scope) -> Run<()> {
        let ExpressionKind::IsDefined(reference) = &expression.kind else {
            return Ok(());
        };
        match self.resolve(reference, scope.frame)? {
            Target::Value(_) => {}
            Target::Blocked(cell) => self.wait(unit, cell, false),
            Target::Cell(cell) => {
                if self.is_defined_so_far(cell) || self.cells.is_ready(cell) {
                    return Ok(());
                }
                if self.is_list(cell) {
                    self.cells.listen(cell, unit);
                }
                self.wait(unit, cell, false);
            }
        }
        Ok(())
    }

    /// Whether a list relation that can still grow holds something known.
    fn is_defined_so_far(&self, cell: CellId) -> bool {
        let elements = self.cells.gradual(cell).map(Gradual::elements);
        elements
            .unwrap_or_default()
            .iter()
            .any(|element| element.is_known())
    }

    /// What `is defined` says, if all that it needs is there.
    pub(super) fn finish_is_defined(
        &mut self,
        unit: UnitId,
        expression: &'m Expression,
        result: CellId,
        scope: Scope,
    ) -> Run<()> {
        let ExpressionKind::IsDefined(reference) = &expression.kind else {
            return Ok(());
        };
        if result.is_none() {
            // It has been answered when the first element came.
            self.finish(unit);
            return Ok(());
        }
        let defined = match self.resolve(reference, scope.frame)? {
            Target::Value(_) => Some(true),
            Target::Cell(cell) if self.is_defined_so_far(cell) => Some(true),
            Target::Cell(cell) if self.cells.is_ready(cell) => {
                self.touch(cell);
                let found = self.cells.get(cell);
                if found.is_set() || self.is_list(cell) {
                    operators::is_defined(&found.value)
                } else {
                    Some(false)
                }
            }
            Target::Cell(_) | Target::Blocked(_) => {
                self.units.hold(unit);
                self.require_is_defined(unit, expression, scope)?;
                self.units.release(unit);
                return Ok(());
            }
        };
        self.finish(unit);
        let value = match defined {
            Some(defined) => Datum::Bool(defined),
            None => self.unknowns.create(),
        };
        self.set_result(result, value);
        Ok(())
    }

    /// A unit that asks whether a list is defined is told an element.
    pub(super) fn tell_is_defined(
        &mut self,
        unit: UnitId,
        expression: &'m Expression,
        result: CellId,
        element: &Datum,
        scope: Scope,
    ) -> Run<()> {
        if result.is_none() || matches!(element.unmarked(), Datum::Unknown(_)) {
            return Ok(());
        }
        let ExpressionKind::IsDefined(reference) = &expression.kind else {
            return Ok(());
        };
        self.units.get_mut(unit).work = Work::IsDefined(expression, CellId::NONE);
        // It needs nothing to be frozen any more.
        if let Target::Cell(cell) = self.resolve(reference, scope.frame)?
            && let Some(gradual) = self.cells.gradual_mut(cell)
        {
            gradual.waiters = gradual.waiters.saturating_sub(1);
        }
        self.set_result(result, Datum::Bool(true));
        Ok(())
    }
}

fn left_hand(error: Diagnostic) -> Diagnostic {
    Diagnostic {
        message: format!("invalid left hand value: {}", error.message),
        ..error
    }
}
