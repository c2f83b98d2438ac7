//! Calls of functions, and checks of values against types, which may call functions too.

use setpoint_cf_functions::context::{Arguments, Site, Stop};
use setpoint_cf_functions::{calls, types};
use setpoint_cf_names::datum::Datum;
use setpoint_cf_names::hir::{Expression, ExpressionKind};
use setpoint_cf_names::ids::EntityId;
use setpoint_cf_names::types::AttributeType;
use setpoint_diagnostics::Span;

use super::cells::CellId;
use super::context::CallContext;
use super::machine::{Machine, Run};
use super::units::{Scope, UnitId};
use super::view::naming;

impl<'m> Machine<'m> {
    /// A call has its arguments.
    pub(super) fn run_call(
        &mut self,
        unit: UnitId,
        expression: &'m Expression,
        result: CellId,
        scope: Scope,
    ) -> Run<()> {
        let printed = self.printed.len();
        let value = self.call_value(expression, scope, self.units.get(unit).parts)?;
        self.record_call(unit, expression, scope, printed, &value);
        self.finish(unit);
        self.set_result(result, value);
        Ok(())
    }

    /// The result of a call whose arguments have their parts from a cell on.
    pub(super) fn call_value(
        &mut self,
        expression: &'m Expression,
        scope: Scope,
        mut next: CellId,
    ) -> Run<Datum> {
        let ExpressionKind::Call {
            function,
            positional,
            keywords,
            dicts,
            namespace,
            name_span,
        } = &expression.kind
        else {
            return Ok(Datum::Null);
        };
        let mut arguments = Arguments::default();
        for value in positional {
            arguments.positional.push(self.evaluate(value, scope, &mut next)?);
        }
        for (name, _, value) in keywords {
            let value = self.evaluate(value, scope, &mut next)?;
            arguments.keywords.push((self.model.text(*name).clone(), value));
        }
        for dict in dicts {
            arguments.dicts.push(self.evaluate(dict, scope, &mut next)?);
        }
        let function = &self.model.functions[function.index()];
        let mut context = CallContext {
            machine: self,
            frame: scope.frame,
            namespace: *namespace,
        };
        let site = Site {
            span: expression.span,
            name: *name_span,
            written: Some(&expression.kind),
        };
        calls::call(function, arguments, site, &mut context)
    }

    /// Refuses a value that an attribute cannot have.
    pub(super) fn check_attribute(&self, ty: AttributeType, value: &Datum, span: Span) -> Run<()> {
        naming!(self, naming => types::check_attribute(ty, value, span, naming)).map_err(Stop::Error)
    }

    /// Refuses a value that a relation cannot hold.
    pub(super) fn check_entity(&self, entity: EntityId, value: &Datum, span: Span) -> Run<()> {
        naming!(self, naming => types::check_entity(entity, value, span, naming)).map_err(Stop::Error)
    }
}
