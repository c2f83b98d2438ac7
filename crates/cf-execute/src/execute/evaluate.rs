//! Values of expressions whose parts are all there.

use setpoint_cf_functions::context::Stop;
use setpoint_cf_functions::{casts, format, operators, text};
use setpoint_cf_names::datum::Datum;
use setpoint_cf_names::hir::{Expression, ExpressionKind, TextPart};
use setpoint_cf_syntax::ast::Literal;
use setpoint_diagnostics::Diagnostic;

use super::cells::CellId;
use super::frames::Target;
use super::machine::{Machine, Run};
use super::require::is_lazy;
use super::units::{Scope, UnitId};
use super::view::naming;

/// The datum of a literal.
pub(super) fn literal(literal: &Literal) -> Datum {
    match literal {
        Literal::Int(int) => Datum::Int(*int),
        Literal::Float(float) => Datum::Float(*float),
        Literal::Text(text) => Datum::Text(text.clone()),
        Literal::Bool(bool) => Datum::Bool(*bool),
        Literal::Null => Datum::Null,
    }
}

impl<'m> Machine<'m> {
    /// The value of the one expression of a unit that required it.
    pub(super) fn evaluate_one(
        &mut self,
        unit: UnitId,
        expression: &'m Expression,
        scope: Scope,
    ) -> Run<Datum> {
        let mut next = self.units.get(unit).parts;
        self.evaluate(expression, scope, &mut next)
    }

    /// The value of an expression; `next` is the cell of its first part and becomes the one behind its last.
    pub(super) fn evaluate(
        &mut self,
        expression: &'m Expression,
        scope: Scope,
        next: &mut CellId,
    ) -> Run<Datum> {
        let span = expression.span;
        match &expression.kind {
            ExpressionKind::Literal(value) => Ok(literal(value)),
            ExpressionKind::ConstantList(elements) => Ok(Datum::List(elements.clone())),
            ExpressionKind::Variable(_) | ExpressionKind::Attribute { .. } => {
                match self.resolve(expression, scope.frame)? {
                    Target::Cell(cell) => self.ready_value(cell, expression),
                    Target::Value(value) => Ok(value),
                    Target::Blocked(cell) => Err(Machine::unset(cell)),
                }
            }
            ExpressionKind::Matches { place, regex } => {
                let value = match self.place(*place, scope.frame, span)? {
                    Target::Cell(cell) => self.ready_value(cell, expression)?,
                    Target::Value(value) => value,
                    Target::Blocked(cell) => return Err(Machine::unset(cell)),
                };
                let matched = naming!(self, naming => operators::matches(regex, &value, span, naming));
                Ok(match matched.map_err(Stop::Error)? {
                    Some(matched) => Datum::Bool(matched),
                    None => self.unknowns.create(),
                })
            }
            ExpressionKind::Interpolated(parts) => {
                let mut values = Vec::new();
                for part in parts {
                    if let TextPart::Field(field) = part {
                        values.push(self.evaluate(field, scope, next)?);
                    }
                }
                let text = naming!(self, naming => format::interpolate(parts, &values, span, naming, &mut self.unknowns));
                text.map_err(Stop::Error)
            }
            ExpressionKind::Format(parts) => {
                let mut values = Vec::new();
                self.evaluate_fields(parts, scope, next, &mut values)?;
                let formatted =
                    naming!(self, naming => format::format(parts, &values, span, naming, &mut self.unknowns));
                formatted.map_err(Stop::Error)
            }
            ExpressionKind::List(elements) => {
                let mut values = Vec::with_capacity(elements.len());
                for element in elements {
                    values.push(self.evaluate(element, scope, next)?);
                }
                operators::list(values, span).map_err(Stop::Error)
            }
            ExpressionKind::Dict(entries) => {
                let mut values = Vec::with_capacity(entries.len());
                for (key, value) in entries {
                    values.push((key.clone(), self.evaluate(value, scope, next)?));
                }
                operators::dict(values, span).map_err(Stop::Error)
            }
            ExpressionKind::Not(operand) => {
                let value = self.evaluate(operand, scope, next)?;
                naming!(self, naming => operators::not(&value, span, naming, &mut self.unknowns))
                    .map_err(Stop::Error)
            }
            ExpressionKind::Operators { first, rest } if !is_lazy(rest) => {
                let mut left = self.evaluate(first, scope, next)?;
                for (operator, _, operand) in rest {
                    let right = self.evaluate(operand, scope, next)?;
                    let whole = first.span.to(operand.span);
                    let applied = naming!(self, naming => operators::apply(*operator, &left, &right, whole, naming, &mut self.unknowns));
                    left = applied.map_err(Stop::Error)?;
                }
                Ok(left)
            }
            ExpressionKind::MapLookup(lookup) => {
                let dict = self.evaluate(&lookup.dict, scope, next)?;
                let key = self.evaluate(&lookup.key, scope, next)?;
                let found =
                    naming!(self, naming => operators::lookup(&dict, &key, span, naming, &mut self.unknowns));
                found.map_err(Stop::Error)
            }
            ExpressionKind::LookupIsDefined(lookup) => {
                let dict = self.evaluate(&lookup.dict, scope, next)?;
                let key = self.evaluate(&lookup.key, scope, next)?;
                let found = naming!(self, naming => operators::lookup_is_defined(&dict, &key, span, naming, &mut self.unknowns));
                found.map_err(Stop::Error)
            }
            ExpressionKind::Cast { to, value } => {
                let value = self.evaluate(value, scope, next)?;
                naming!(self, naming => casts::cast(*to, &value, span, naming, &mut self.unknowns))
                    .map_err(Stop::Error)
            }
            ExpressionKind::Operators { .. }
            | ExpressionKind::Comprehension(_)
            | ExpressionKind::Conditional { .. }
            | ExpressionKind::IsDefined(_)
            | ExpressionKind::Call { .. }
            | ExpressionKind::Constructor(_)
            | ExpressionKind::IndexLookup { .. }
            | ExpressionKind::SelectorLookup { .. } => {
                let cell = *next;
                *next = next.at(1);
                self.touch(cell);
                Ok(self.cells.get(cell).value.clone())
            }
        }
    }

    /// Values of the fields of an f-string, in the order of the text, those of specifications behind that which they specify.
    fn evaluate_fields(
        &mut self,
        parts: &'m [setpoint_cf_names::hir::FormatPart],
        scope: Scope,
        next: &mut CellId,
        values: &mut Vec<Datum>,
    ) -> Run<()> {
        for part in parts {
            if let setpoint_cf_names::hir::FormatPart::Field {
                value, specification, ..
            } = part
            {
                if let Some(value) = value {
                    values.push(self.evaluate(value, scope, next)?);
                }
                self.evaluate_fields(specification, scope, next, values)?;
            }
        }
        Ok(())
    }

    /// The value of a variable that must be ready.
    fn ready_value(&self, cell: CellId, expression: &Expression) -> Run<Datum> {
        if !self.cells.is_ready(cell) {
            return Err(Machine::unset(cell));
        }
        Ok(self.read(cell, expression.span)?.clone())
    }

    /// A unit needs a cell that has no value.
    pub(super) fn unset(cell: CellId) -> Stop {
        Stop::Unset(setpoint_cf_functions::context::UnsetCell(u64::from(cell.0)))
    }

    /// An error as a reason to stop.
    pub(super) fn fail<T>(error: Diagnostic) -> Run<T> {
        Err(Stop::Error(Box::new(error)))
    }

    /// A bool that decides.
    pub(super) fn condition(&mut self, value: &Datum, span: setpoint_diagnostics::Span) -> Run<Option<bool>> {
        naming!(self, naming => operators::condition(value, None, span, naming)).map_err(Stop::Error)
    }

    /// What a value looks like in a message.
    pub(super) fn described(&self, value: &Datum) -> String {
        match value.unmarked() {
            Datum::Null => "null".to_owned(),
            Datum::Unknown(_) => "a value that is not known yet".to_owned(),
            Datum::Instance(id) => self.instance_text(*id),
            plain => {
                naming!(self, naming => format!("{} `{}`", text::type_name(plain, naming), text::shown(value, naming)))
            }
        }
    }

    /// A value in a message.
    pub(super) fn shown(&self, value: &Datum) -> String {
        match value.unmarked() {
            Datum::Instance(id) => self.instance_text(*id),
            _ => format!("`{}`", naming!(self, naming => text::shown(value, naming))),
        }
    }

    /// An instance in a message.
    pub(super) fn instance_text(&self, instance: setpoint_cf_names::datum::InstanceId) -> String {
        let instance = Datum::Instance(instance);
        let text = naming!(self, naming => text::text(&instance, text::Form::Field, naming));
        format!("`{}`", text.unwrap_or_default())
    }
}
