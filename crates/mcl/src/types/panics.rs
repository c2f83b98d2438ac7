//! What `panic(…)` takes: a bool or a str, or a bool and a str.

use setpoint_diagnostics::{Diagnostic, Span};
use setpoint_value::Type;

use super::InstanceId;
use super::codes;
use super::completion::Check;
use super::conflicts::Reason;
use super::infer::Inference;
use crate::hir::ExprId;

impl Inference<'_> {
    pub(super) fn panic(&mut self, instance: InstanceId, arguments: &[ExprId], span: Span) {
        let types: Vec<Type> = arguments.iter().map(|id| self.infer(instance, *id)).collect();
        match types.as_slice() {
            [condition] => {
                let allowed = vec![Type::Bool, Type::Str];
                let place = self.places.next();
                self.checks
                    .push(Check::one_of(place, span, "panic", condition.clone(), allowed));
            }
            [condition, message] => {
                self.equate(&Type::Bool, condition, span, &Reason::Panic);
                self.equate(&Type::Str, message, span, &Reason::Panic);
            }
            [] => {
                let message = "`panic` takes one or two arguments";
                self.unsolved(Diagnostic::error(&codes::ARGUMENT_COUNT, span, message));
            }
            _ => {
                let message = format!("`panic` takes one or two arguments, given {}", types.len());
                self.refuse(Diagnostic::error(&codes::TOO_MANY_ARGUMENTS, span, message));
            }
        }
    }
}
