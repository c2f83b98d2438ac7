//! Equations of expressions.

use std::sync::Arc;

use setpoint_diagnostics::Span;
use setpoint_value::{FunctionSpec, Type, operators};

use super::codes;
use super::completion::Check;
use super::conflicts::Reason;
use super::deferred::{Deferred, DeferredKind, HookedCall};
use super::infer::Inference;
use super::instances::InstanceId;
use super::messages::too_deep;
use super::syntactic::Contradiction;
use crate::adapt::is_adapted;
use crate::hir::{Callee, DefinitionKind, ExprId, ExprKind, FunctionId, Part};
use crate::stack::with_room;
use crate::syntax::Operator;

impl<'a> Inference<'a> {
    /// Infers, and says that the type must be `wanted`, at the expression itself.
    pub(super) fn check(&mut self, instance: InstanceId, id: ExprId, wanted: &Type, reason: &Reason) {
        let ty = self.infer(instance, id);
        self.equate_value(wanted, &ty, self.hir.expr(id).span, reason, (instance, id));
    }

    /// The type of an expression, with equations for what is in it.
    pub(super) fn infer(&mut self, instance: InstanceId, id: ExprId) -> Type {
        // Literals are most of what there is.
        if let ExprKind::Literal(value) = &self.hir.expr(id).kind {
            return value.ty();
        }
        with_room(|| self.infer_expr_inner(instance, id))
    }

    fn infer_expr_inner(&mut self, instance: InstanceId, id: ExprId) -> Type {
        let hir = self.hir;
        let expr = hir.expr(id);
        let span = expr.span;
        let ty = match &expr.kind {
            ExprKind::Literal(value) => return value.ty(),
            // Whatever would be right.
            ExprKind::Unknown(parts) => {
                for part in parts {
                    self.infer(instance, *part);
                }
                self.has_unknown = true;
                return self.solver.fresh();
            }
            ExprKind::Variable { path, definition } => {
                let holder = self.follow(instance, path, hir.definition(*definition).owner);
                return self.definition_type(holder, *definition);
            }
            ExprKind::Interpolation(parts) => self.interpolation(instance, parts, span),
            ExprKind::List(items) => {
                let place = items.first().map_or(span, |first| hir.expr(*first).span);
                let element = self.one_type(instance, items.iter().copied(), &Reason::Element(place));
                Type::list(element)
            }
            ExprKind::Map(entries) => self.map(instance, entries, span),
            ExprKind::Struct(fields) => {
                let fields: Vec<_> = fields
                    .iter()
                    .map(|(name, v)| (name.clone(), self.infer(instance, *v)))
                    .collect();
                self.bounded(Type::structure(fields), span)
            }
            ExprKind::Lambda(_) => self.lambda(instance, id),
            ExprKind::If {
                condition,
                then,
                otherwise,
            } => {
                self.check(instance, *condition, &Type::Bool, &Reason::Condition);
                let reason = Reason::Branches(hir.expr(*then).span);
                self.one_type(instance, [*then, *otherwise], &reason)
            }
            ExprKind::Except { left, right } => {
                let reason = Reason::Fallback(hir.expr(*left).span);
                self.one_type(instance, [*left, *right], &reason)
            }
            ExprKind::Operator {
                operator,
                left,
                right,
            } => self.operator(instance, *operator, *left, *right, span),
            ExprKind::Not(inner) => {
                let types = [self.infer(instance, *inner)];
                self.contradictions(instance, &[*inner]);
                let errors = self.findings.count();
                let not = (&operators::NOT).into();
                let result = self.library_signature(&not, &types, span, &Reason::Operands("not"));
                self.show_operands(errors, &[(*inner, &types[0])]);
                result
            }
            ExprKind::In { left, right } => {
                let types = [self.infer(instance, *left), self.infer(instance, *right)];
                let contains = (&operators::CONTAINS).into();
                self.library_signature(&contains, &types, span, &Reason::Operands("in"))
            }
            ExprKind::Lookup { base, index } => self.lookup(instance, *base, *index, span),
            ExprKind::Field { base, field } => {
                let ty = self.infer(instance, *base);
                self.contradictions(instance, &[*base]);
                let result = self.solver.fresh();
                self.park_field(ty, field, &result, false, span);
                result
            }
            ExprKind::FieldOr { base, field, default } => {
                self.field_or(instance, *base, field, *default, span)
            }
            ExprKind::Call { callee, arguments } => self.call(instance, id, callee, arguments, span),
        };
        self.record(instance, id, ty)
    }

    fn interpolation(&mut self, instance: InstanceId, parts: &[Part], span: Span) -> Type {
        // A lone variable is itself, and must be a str.
        if let [Part::Variable(id)] = parts {
            let ty = self.infer(instance, *id);
            self.check_later(Type::Str, &ty, span, Reason::Interpolation(self.hir.place(*id)));
            return ty;
        }
        for part in parts {
            if let Part::Variable(id) = part {
                let reason = Reason::Interpolation(self.hir.place(*id));
                self.check(instance, *id, &Type::Str, &reason);
            }
        }
        Type::Str
    }

    /// The one type that all of these must have.
    fn one_type(
        &mut self,
        instance: InstanceId,
        ids: impl IntoIterator<Item = ExprId>,
        reason: &Reason,
    ) -> Type {
        let ty = self.solver.fresh();
        for id in ids {
            self.check(instance, id, &ty, reason);
        }
        ty
    }

    fn map(&mut self, instance: InstanceId, entries: &[(ExprId, ExprId)], span: Span) -> Type {
        let (key, value) = (self.solver.fresh(), self.solver.fresh());
        if let Some((first_key, first_value)) = entries.first() {
            let of_keys = Reason::MapKey(self.hir.expr(*first_key).span);
            let of_values = Reason::MapValue(self.hir.expr(*first_value).span);
            for (k, v) in entries {
                self.check(instance, *k, &key, &of_keys);
                self.check(instance, *v, &value, &of_values);
            }
        }
        let place = self.places.next();
        self.checks.push(Check::key(place, span, key.clone()));
        self.bounded(Type::map(key, value), span)
    }

    fn operator(
        &mut self,
        instance: InstanceId,
        operator: Operator,
        left: ExprId,
        right: ExprId,
        span: Span,
    ) -> Type {
        let errors = self.findings.count();
        let left_type = self.infer(instance, left);
        // `not $a == $b`, where `not` belongs to `$a`: that `not` gives a bool is no news.
        let is_said = matches!(self.hir.expr(left).kind, ExprKind::Not(_))
            && self.findings.unsolved_since(errors).next().is_some();
        let types = [left_type, self.infer(instance, right)];
        self.contradictions(instance, &[left, right]);
        let errors = self.findings.count();
        let reason = Reason::Operands(operator.text());
        let result = self.library_signature(&operator_spec(operator).into(), &types, span, &reason);
        if is_said {
            self.findings.forget_unsolved_since(errors);
        }
        self.show_operands(errors, &[(left, &types[0]), (right, &types[1])]);
        result
    }

    /// `base->field <|> default`.
    fn field_or(
        &mut self,
        instance: InstanceId,
        base: ExprId,
        field: &Arc<str>,
        default: ExprId,
        span: Span,
    ) -> Type {
        let ty = self.infer(instance, base);
        let result = self.infer(instance, default);
        self.contradictions(instance, &[base, default]);
        // A struct type that is plain from the text makes a wrong default a type error at once.
        if let Some(Type::Struct(fields)) = self.syntactic_type(instance, base)
            && let Some(found) = fields.field(field)
        {
            let reason = Reason::Result(self.hir.expr(default).span);
            self.equate(found, &result, span, &reason);
        }
        self.park_field(ty, field, &result, true, span);
        result
    }

    /// `base[index]`: a list or a map where that is plain from the text, a map for an index that is plainly no int, and
    /// otherwise whatever solving finds.
    fn lookup(&mut self, instance: InstanceId, base: ExprId, index: ExprId, span: Span) -> Type {
        let (base_type, index_type) = (self.infer(instance, base), self.infer(instance, index));
        self.contradictions(instance, &[base, index]);
        let result = self.solver.fresh();
        match self.syntactic_type(instance, base) {
            Some(Type::List(_)) => self.list_lookup(&base_type, &index_type, &result, span, index),
            Some(Type::Map(_)) => self.map_lookup(&base_type, &index_type, &result, span, Some(index)),
            Some(other) => {
                self.failed.push(result.clone());
                let place = self.places.next();
                self.nothing_to_look_up(place, &other, span);
            }
            None if self
                .syntactic_type(instance, index)
                .is_some_and(|ty| ty != Type::Int) =>
            {
                self.map_lookup(&base_type, &index_type, &result, span, Some(index));
            }
            None => {
                let place = self.places.next();
                let what = DeferredKind::Lookup {
                    base: base_type,
                    index: index_type,
                    result: result.clone(),
                };
                self.deferred.push(Deferred::new(place, span, what));
            }
        }
        result
    }

    fn park_field(&mut self, base: Type, field: &Arc<str>, result: &Type, has_default: bool, span: Span) {
        let place = self.places.next();
        let what = DeferredKind::Field {
            base,
            field: field.clone(),
            result: result.clone(),
            has_default,
        };
        self.deferred.push(Deferred::new(place, span, what));
    }

    /// Arguments of a built-in with a computed signature that are plainly not of the type written for them.
    fn contradictions(&mut self, instance: InstanceId, arguments: &[ExprId]) {
        for argument in arguments {
            let Some(Contradiction {
                written,
                found,
                value,
                bind,
            }) = self.contradiction(instance, *argument)
            else {
                continue;
            };
            if let Err(conflict) = self.solver.unify(&written, &found) {
                let reason = Reason::Annotation(bind);
                let error = self.conflict(conflict, &written, &found, value, &reason);
                // The definition is what to change, and is reported only once.
                self.refuse(error.ruled_at(self.hir.expr(*argument).span));
            }
        }
    }

    fn lambda(&mut self, instance: InstanceId, id: ExprId) -> Type {
        let hir = self.hir;
        let ExprKind::Lambda(function) = hir.expr(id).kind else {
            return self.solver.fresh();
        };
        self.function_type(instance, function)
    }

    /// The type of a function whose body is in `instance`, with the equations of its body.
    pub(super) fn function_type(&mut self, instance: InstanceId, id: FunctionId) -> Type {
        let hir = self.hir;
        let function = hir.function(id);
        let mut parameters = Vec::with_capacity(function.parameters.len());
        for parameter in &function.parameters {
            let definition = hir.definition(*parameter);
            let ty = match &definition.kind {
                DefinitionKind::Parameter {
                    annotation: Some(ty), ..
                } => ty.clone(),
                _ => self.solver.fresh(),
            };
            self.typed.instances[instance.0 as usize]
                .definitions
                .insert(*parameter, ty.clone());
            parameters.push((definition.name.clone(), ty));
        }
        let result = function.result.clone().unwrap_or_else(|| self.solver.fresh());
        self.check(instance, function.body, &result, &Reason::Result(function.span));
        self.bounded(Type::func(parameters, result), function.span)
    }

    /// The type, if it is of a size that can be handled; else that is an error.
    pub(super) fn bounded(&mut self, ty: Type, span: Span) -> Type {
        if !self.solver.is_shallow(&ty) {
            if !self.findings.has(&codes::TOO_DEEP) {
                self.refuse(too_deep(span));
            }
            return self.solver.fresh();
        }
        if self.solver.is_bounded(&ty) {
            return ty;
        }
        self.too_much(span);
        self.solver.fresh()
    }

    fn call(
        &mut self,
        instance: InstanceId,
        id: ExprId,
        callee: &'a Callee,
        arguments: &[ExprId],
        span: Span,
    ) -> Type {
        let hir = self.hir;
        let types: Vec<Type> = arguments.iter().map(|id| self.infer(instance, *id)).collect();
        match callee {
            Callee::Value(callee) => {
                let expr = hir.expr(*callee);
                let found = self.infer(instance, *callee);
                let at = match &expr.kind {
                    ExprKind::Variable { path: _, definition } => match &hir.definition(*definition).kind {
                        DefinitionKind::Bind { value, .. } => hir.expr(*value).span,
                        DefinitionKind::ClassParameter { .. }
                        | DefinitionKind::Parameter { .. }
                        | DefinitionKind::LoopKey
                        | DefinitionKind::LoopValue => hir.definition(*definition).span,
                        DefinitionKind::Library(_) => expr.span,
                    },
                    _ => expr.span,
                };
                let result = self.solver.fresh();
                let wanted = call_type(&types, result.clone());
                self.equate(&wanted, &found, at, &Reason::CallValue(span));
                result
            }
            Callee::Function { path, function } => {
                let parent = self.definer(instance, path, *function);
                let result = self.solver.fresh();
                if let Some(found) = self.called_function(instance, id, parent, *function, span) {
                    let wanted = call_type(&types, result.clone());
                    let at = hir.function(*function).span;
                    if let Err(conflict) = self.solver.unify(&wanted, &found) {
                        let error = self.conflict(conflict, &wanted, &found, at, &Reason::Call(span));
                        let error =
                            self.call_conflict(error, &wanted, &found, *function, instance, arguments);
                        self.unsolved(error);
                    }
                }
                result
            }
            Callee::Library(spec, _) => {
                if spec.infer.is_some() || is_adapted(spec) {
                    let call = HookedCall {
                        instance,
                        spec: spec.clone(),
                        arguments: arguments.to_vec(),
                        types,
                        result: self.solver.fresh(),
                    };
                    self.contradictions(instance, arguments);
                    let place = self.places.next();
                    let result = call.result.clone();
                    if !self.decide_hooked(&call, span, false) {
                        let what = DeferredKind::Hooked(call);
                        self.deferred.push(Deferred::new(place, span, what));
                    }
                    return result;
                }
                let reason = Reason::LibraryCall(spec.clone(), Some(id));
                self.library_signature(spec, &types, span, &reason)
            }
        }
    }
}

/// The specification behind an operator.
pub(super) fn operator_spec(operator: Operator) -> &'static FunctionSpec {
    match operator {
        Operator::Add => &operators::ADD,
        Operator::Subtract => &operators::SUBTRACT,
        Operator::Multiply => &operators::MULTIPLY,
        Operator::Divide => &operators::DIVIDE,
        Operator::Equal => &operators::EQUAL,
        Operator::NotEqual => &operators::NOT_EQUAL,
        Operator::Less => &operators::LESS,
        Operator::Greater => &operators::GREATER,
        Operator::LessEqual => &operators::LESS_OR_EQUAL,
        Operator::GreaterEqual => &operators::GREATER_OR_EQUAL,
        Operator::And => &operators::AND,
        Operator::Or => &operators::OR,
    }
}

pub(super) fn call_type(arguments: &[Type], result: Type) -> Type {
    Type::func(
        arguments
            .iter()
            .enumerate()
            .map(|(i, ty)| (i.to_string(), ty.clone())),
        result,
    )
}
