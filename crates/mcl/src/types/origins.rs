//! Where a type comes from: the definitions, arguments and literals behind what does not fit.

use setpoint_diagnostics::{Diagnostic, Span};
use setpoint_value::{FunctionRef, Type, Value};

use super::InstanceId;
use super::conflicts::Reason;
use super::infer::Inference;
use super::messages::{in_few_words, in_words, order_of_fields};
use crate::hir::{DefinitionKind, ExprId, ExprKind, FunctionId};

impl Inference<'_> {
    /// Solves one equation about an expression. The rules blame `span`; what users are shown is the expression, and where
    /// its type comes from.
    pub(super) fn equate_value(
        &mut self,
        expect: &Type,
        actual: &Type,
        span: Span,
        reason: &Reason,
        value: (InstanceId, ExprId),
    ) {
        if let Err(conflict) = self.solver.unify(expect, actual) {
            let error = self.conflict(conflict, expect, actual, span, reason);
            let error = self.shown_at(error, value);
            let wanted = self.solver.zonk(expect);
            let found = self.solver.zonk(actual);
            let error = match self.part_that_differs(&wanted, &found, value.1) {
                Some((wanted, actual, part)) => {
                    let label = format!(
                        "this is {}, where {} is wanted",
                        in_words(&actual),
                        in_words(&wanted)
                    );
                    let mut error = error.shown_at(self.hir.place(part)).label(label);
                    // The label says it all, unless the difference is deeper.
                    if !matches!(wanted, Type::Struct(_) | Type::Map(_) | Type::List(_)) {
                        error.notes.clear();
                    }
                    self.as_literal(error, &wanted, part)
                }
                None => self.as_literal(error, &wanted, value.1),
            };
            self.unsolved(error);
        }
    }

    /// Points an error at a value, and says where its type comes from.
    pub(super) fn shown_at(&mut self, error: Diagnostic, value: (InstanceId, ExprId)) -> Diagnostic {
        let at = self.hir.place(value.1);
        let labels = self.origin(value.0, value.1);
        let error = error.shown_at(at);
        labels
            .into_iter()
            .filter(|(span, _)| *span != at)
            .fold(error, |error, (span, text)| error.because(span, text))
    }

    /// The definitions behind a variable, up to the one that says what type it is.
    fn origin(&mut self, mut instance: InstanceId, mut id: ExprId) -> Vec<(Span, String)> {
        let hir = self.hir;
        let mut labels = Vec::new();
        // Of a longer way only the beginning is of use.
        while let ExprKind::Variable { path, definition } = &hir.expr(id).kind
            && labels.len() < 4
        {
            let definition = hir.definition(*definition);
            let name = &definition.name;
            let holder = self.follow(instance, path, definition.owner);
            let (next, text) = match &definition.kind {
                DefinitionKind::Bind {
                    annotation: Some(ty), ..
                }
                | DefinitionKind::Parameter {
                    annotation: Some(ty), ..
                }
                | DefinitionKind::ClassParameter {
                    annotation: Some(ty), ..
                } => {
                    labels.push((
                        definition.span,
                        format!("`${name}` is declared as {}", in_words(ty)),
                    ));
                    break;
                }
                DefinitionKind::Bind { value, .. } => ((holder, *value), format!("`${name}` is this")),
                DefinitionKind::ClassParameter { index, .. } => match self.argument(holder, *index) {
                    Some(argument) => (argument, format!("`${name}` is this argument")),
                    None => break,
                },
                DefinitionKind::LoopKey | DefinitionKind::LoopValue => {
                    labels.push((
                        definition.span,
                        format!("`${name}` goes over what the loop walks"),
                    ));
                    break;
                }
                DefinitionKind::Parameter { annotation: None, .. } | DefinitionKind::Library(_) => break,
            };
            (instance, id) = next;
            labels.push((hir.expr(id).span, text));
        }
        labels
    }

    /// Of a struct that is written out: the field that is not as it is wanted, with both types. None where more is wrong than one field.
    fn part_that_differs(&mut self, wanted: &Type, found: &Type, id: ExprId) -> Option<(Type, Type, ExprId)> {
        let hir = self.hir;
        let (ExprKind::Struct(written), Type::Struct(wanted), Type::Struct(found)) =
            (&hir.expr(id).kind, wanted, found)
        else {
            return None;
        };
        if wanted.fields.len() != found.fields.len() {
            return None;
        }
        let mut misfit = None;
        for ((wanted, found), (_, part)) in wanted.fields.iter().zip(&found.fields).zip(written) {
            if wanted.name != found.name {
                return None;
            }
            let fits = self.solver.compatible(&wanted.ty, &found.ty);
            if !fits && misfit.replace((&wanted.ty, &found.ty, *part)).is_some() {
                return None;
            }
        }
        let (wanted, found, part) = misfit?;
        let inside = self.part_that_differs(wanted, found, part);
        Some(inside.unwrap_or_else(|| (wanted.clone(), found.clone(), part)))
    }

    /// What to write instead of a literal of the wrong type.
    fn as_literal(&self, error: Diagnostic, wanted: &Type, value: ExprId) -> Diagnostic {
        let expr = self.hir.expr(value);
        let ExprKind::Literal(found) = &expr.kind else {
            return error;
        };
        let text = found
            .as_str()
            .map(|text| String::from_utf8_lossy(text.as_bytes()).into_owned());
        // `0644` is kept as it is written.
        let width = (expr.span.end - expr.span.start) as usize;
        let written = match (wanted, text) {
            (Type::Str, None) => Some(match found {
                Value::Int(int) if *int >= 0 => format!("\"{int:0>width$}\""),
                _ => format!("\"{found}\""),
            }),
            (Type::Int, Some(text)) if text.parse::<i64>().is_ok() => Some(text),
            (Type::Bool, Some(text)) if text == "true" || text == "false" => Some(text),
            (Type::Float, None) => match found {
                Value::Int(int) => Some(format!("{int}.0")),
                _ => None,
            },
            // A text that would have to be escaped is left to its author.
            (Type::List(element), Some(text))
                if **element == Type::Str
                    && !text.contains(|c: char| c.is_control() || "\"\\$".contains(c)) =>
            {
                Some(format!("[\"{text}\"]"))
            }
            _ => None,
        };
        match written {
            Some(written) => error.fix(format!("write it as {}", in_words(wanted)), expr.span, written),
            None => error,
        }
    }

    /// The error of a call of a library function: at the argument that does not fit, if it is one.
    pub(super) fn at_argument(
        &mut self,
        error: Diagnostic,
        spec: &FunctionRef,
        call: ExprId,
        expect: &Type,
        actual: &Type,
    ) -> Diagnostic {
        let ExprKind::Call { arguments, .. } = &self.hir.expr(call).kind else {
            return error;
        };
        let (Some(takes), Some(given)) = (expect.as_func(), actual.as_func()) else {
            return error;
        };
        let mut pairs = takes.parameters.iter().zip(&given.parameters).enumerate();
        let misfit = pairs.find(|(_, (takes, given))| !self.solver.compatible(&takes.ty, &given.ty));
        let Some((index, (takes, given))) = misfit else {
            return error;
        };
        let Some(argument) = arguments.get(index) else {
            return error;
        };
        let takes_type = &takes.ty;
        let (takes, given) = (in_few_words(&takes.ty), in_few_words(&given.ty));
        let message = format!(
            "argument {} of `{}` is {takes}, not {given}",
            index + 1,
            spec.called()
        );
        let mut told = Diagnostic::error(error.code, error.rule_place(), message)
            .shown_at(self.hir.place(*argument))
            .label(format!("this is {given}"));
        told.help = error.help;
        self.as_literal(told, takes_type, *argument)
    }

    /// Shows the operands in the errors of an operator that were found since there were so many.
    pub(super) fn show_operands(&mut self, errors: usize, operands: &[(ExprId, &Type)]) {
        if self.findings.count() == errors {
            return;
        }
        let mut shown = Vec::with_capacity(operands.len());
        for (operand, ty) in operands.iter().rev() {
            let ty = self.solver.zonk(ty);
            shown.push((self.hir.place(*operand), format!("this is {}", in_words(&ty))));
        }
        let Some(((place, text), others)) = shown.split_first() else {
            return;
        };
        for error in self.findings.unsolved_since(errors) {
            let told = error.clone().shown_at(*place).label(text.as_str());
            *error = others
                .iter()
                .fold(told, |error, (place, text)| error.because(*place, text.as_str()));
        }
    }

    /// The error of a call of a function of the program: at the argument that does not fit, if it is one.
    pub(super) fn call_conflict(
        &mut self,
        error: Diagnostic,
        wanted: &Type,
        found: &Type,
        function: FunctionId,
        caller: InstanceId,
        arguments: &[ExprId],
    ) -> Diagnostic {
        let (wanted, found) = (self.solver.zonk(wanted), self.solver.zonk(found));
        let (Some(given), Some(takes)) = (wanted.as_func(), found.as_func()) else {
            return error;
        };
        if given.parameters.len() != takes.parameters.len() {
            return error;
        }
        let hir = self.hir;
        let declared = hir.function(function);
        let name = declared.name.as_deref().unwrap_or("this function");
        let pairs: Vec<_> = given.parameters.iter().zip(&takes.parameters).collect();
        for (index, (given, takes)) in pairs.into_iter().enumerate() {
            if self.solver.compatible(&given.ty, &takes.ty) {
                continue;
            }
            let (Some(argument), Some(parameter)) = (arguments.get(index), declared.parameters.get(index))
            else {
                break;
            };
            let parameter = hir.definition(*parameter);
            let (given_words, takes_words) = (in_words(&given.ty), in_words(&takes.ty));
            let rule = error.rule_place();
            let message = format!(
                "argument {} of `{name}`, `${}`, is {takes_words}, not {given_words}",
                index + 1,
                parameter.name
            );
            let told = Diagnostic::error(error.code, rule, message).label(format!("this is {given_words}"));
            let is_written = matches!(
                parameter.kind,
                DefinitionKind::Parameter {
                    annotation: Some(_),
                    ..
                }
            );
            let why = if is_written {
                format!("declared as {takes_words}")
            } else {
                format!("what the body does with it makes it {takes_words}")
            };
            let told = self
                .shown_at(told, (caller, *argument))
                .because(parameter.span, why);
            let types = (&takes.ty, &given.ty);
            let told = told.help_if(order_of_fields(types.0, types.1));
            return self.as_literal(told, types.0, *argument);
        }
        error
    }
}
