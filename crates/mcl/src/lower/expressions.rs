//! Expressions to nodes.

use std::sync::Arc;

use setpoint_diagnostics::Span;
use setpoint_flow::{Operation, Slot};
use setpoint_value::{FunctionRef, Type, Value, operators};

use super::Lowering;
use super::templates::{BuilderId, Builders};
use crate::adapt::{self, is_adapted};
use crate::hir::{Callee, DefinitionId, ExprId, ExprKind, FunctionId, Part};
use crate::types::{InstanceId, operator_spec};

impl Lowering<'_> {
    /// The slot of an expression's value in template `at`.
    pub(super) fn expr(&mut self, at: BuilderId, instance: InstanceId, id: ExprId) -> Slot {
        let hir = self.hir;
        let expr = hir.expr(id);
        let span = expr.span;
        let operation = match &expr.kind {
            ExprKind::Literal(value) => {
                return self
                    .builders
                    .push(at, Operation::Constant(value.clone()), value.ty(), span);
            }
            ExprKind::Variable { path, definition } => {
                return self.definition(instance, path, *definition, at);
            }
            ExprKind::Interpolation(parts) => return self.interpolation(at, instance, parts, span),
            ExprKind::List(items) => Operation::List(self.exprs(at, instance, items)),
            ExprKind::Map(entries) => {
                let pairs = entries
                    .iter()
                    .map(|(k, v)| (self.expr(at, instance, *k), self.expr(at, instance, *v)));
                Operation::Map(pairs.collect())
            }
            ExprKind::Struct(fields) => Operation::Struct(
                fields
                    .iter()
                    .map(|(_, value)| self.expr(at, instance, *value))
                    .collect(),
            ),
            ExprKind::Lambda(function) => self.lambda(at, instance, *function),
            ExprKind::If {
                condition,
                then,
                otherwise,
            } => {
                let condition = self.expr(at, instance, *condition);
                let then = self.branch(at, instance, *then);
                let otherwise = self.branch(at, instance, *otherwise);
                Operation::If {
                    condition,
                    then,
                    otherwise,
                }
            }
            ExprKind::Except { left, right } => {
                let value = self.expr(at, instance, *left);
                let fallback = self.branch(at, instance, *right);
                Operation::Except { value, fallback }
            }
            ExprKind::Operator {
                operator,
                left,
                right,
            } => self.library(at, instance, operator_spec(*operator).into(), &[*left, *right]),
            ExprKind::Not(inner) => self.library(at, instance, (&operators::NOT).into(), &[*inner]),
            ExprKind::In { left, right } => {
                self.library(at, instance, (&operators::CONTAINS).into(), &[*left, *right])
            }
            ExprKind::Lookup { base, index } => {
                let spec = self
                    .typed
                    .lookups
                    .get(&(instance, id))
                    .cloned()
                    .unwrap_or((&operators::LIST_LOOKUP).into());
                self.library(at, instance, spec, &[*base, *index])
            }
            ExprKind::Field { base, field } => {
                let index = self.field_index(instance, *base, field).unwrap_or(0);
                Operation::Field {
                    of: self.expr(at, instance, *base),
                    index,
                }
            }
            ExprKind::FieldOr { base, field, default } => match self.field_index(instance, *base, field) {
                Some(index) => Operation::Field {
                    of: self.expr(at, instance, *base),
                    index,
                },
                None => return self.expr(at, instance, *default),
            },
            ExprKind::Call { callee, arguments } => {
                return self.call(at, instance, id, callee, arguments, span);
            }
        };
        let ty = self.type_of(instance, id);
        self.builders.push(at, operation, ty, span)
    }

    fn exprs(&mut self, at: BuilderId, instance: InstanceId, ids: &[ExprId]) -> Vec<Slot> {
        ids.iter().map(|id| self.expr(at, instance, *id)).collect()
    }

    fn library(
        &mut self,
        at: BuilderId,
        instance: InstanceId,
        function: FunctionRef,
        arguments: &[ExprId],
    ) -> Operation {
        let arguments = self.exprs(at, instance, arguments);
        Operation::Call {
            function,
            arguments,
            module_directory: "/".into(),
        }
    }

    /// The type of an expression as inference found it.
    pub(super) fn type_of(&self, instance: InstanceId, id: ExprId) -> Type {
        match &self.hir.expr(id).kind {
            ExprKind::Literal(value) => value.ty(),
            ExprKind::Variable { path, definition } => {
                let definition_owner = self.hir.definition(*definition).owner;
                if let crate::hir::DefinitionKind::Library(value) = &self.hir.definition(*definition).kind {
                    return value.ty();
                }
                let holder = self.typed.through(self.hir, instance, path);
                let holder = holder.and_then(|holder| self.typed.outward(holder, definition_owner));
                let found = holder.and_then(|holder| self.typed.instance(holder).definitions.get(definition));
                found.cloned().unwrap_or(Type::Dynamic)
            }
            _ => self
                .typed
                .types
                .get(&(instance, id))
                .cloned()
                .unwrap_or(Type::Dynamic),
        }
    }

    fn field_index(&self, instance: InstanceId, base: ExprId, field: &str) -> Option<u32> {
        let ty = self.type_of(instance, base);
        ty.as_struct()
            .and_then(|s| s.index(field))
            .map(|index| index as u32)
    }

    /// `"a${x}b"` is `concat("a", concat($x, "b"))`; a lone variable is itself.
    fn interpolation(&mut self, at: BuilderId, instance: InstanceId, parts: &[Part], span: Span) -> Slot {
        let slots: Vec<Slot> = parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => {
                    self.builders
                        .push(at, Operation::Constant(Value::str(&**text)), Type::Str, span)
                }
                Part::Variable(id) => self.expr(at, instance, *id),
            })
            .collect();
        let mut slots = slots.into_iter().rev();
        let Some(mut joined) = slots.next() else {
            return self
                .builders
                .push(at, Operation::Constant(Value::str("")), Type::Str, span);
        };
        for slot in slots {
            let operation = Operation::Call {
                function: (&operators::CONCAT).into(),
                arguments: vec![slot, joined],
                module_directory: "/".into(),
            };
            joined = self.builders.push(at, operation, Type::Str, span);
        }
        joined
    }

    /// A body that exists only while it is needed.
    fn branch(&mut self, at: BuilderId, instance: InstanceId, id: ExprId) -> setpoint_flow::Block {
        let builder = self.builders.open("a branch", Some(at), 0);
        let result = self.expr(builder, instance, id);
        self.builders.set_result(builder, result);
        self.builders.block(builder)
    }

    fn lambda(&mut self, at: BuilderId, instance: InstanceId, id: FunctionId) -> Operation {
        let builder = self.function_body(at, instance, id, "a lambda");
        Operation::Closure(self.builders.block(builder))
    }

    fn function_body(
        &mut self,
        at: BuilderId,
        instance: InstanceId,
        id: FunctionId,
        name: &str,
    ) -> BuilderId {
        let function = self.hir.function(id);
        let builder = self
            .builders
            .open(name, Some(at), function.parameters.len() as u32);
        self.enter(builder, instance, &function.parameters);
        let result = self.expr(builder, instance, function.body);
        self.builders.set_result(builder, result);
        builder
    }

    /// Enters definitions that are the first inputs of a template.
    pub(super) fn enter(&mut self, builder: BuilderId, instance: InstanceId, definitions: &[DefinitionId]) {
        for (index, definition) in definitions.iter().enumerate() {
            let slot = Builders::parameter(index as u32);
            self.slots.insert((instance, *definition), (builder, slot));
        }
    }

    fn call(
        &mut self,
        at: BuilderId,
        instance: InstanceId,
        id: ExprId,
        callee: &Callee,
        arguments: &[ExprId],
        span: Span,
    ) -> Slot {
        let ty = self.type_of(instance, id);
        let operation = match callee {
            Callee::Library(function, directory) => {
                let arguments = self.exprs(at, instance, arguments);
                let function = if is_adapted(function) {
                    let adapted = self.adapted.entry(function.clone());
                    adapted.or_insert_with(|| adapt::adapted(function)).clone()
                } else {
                    function.clone()
                };
                Operation::Call {
                    function,
                    arguments,
                    module_directory: directory.clone(),
                }
            }
            Callee::Value(callee) => {
                let function = self.expr(at, instance, *callee);
                Operation::Apply {
                    function,
                    arguments: self.exprs(at, instance, arguments),
                }
            }
            Callee::Function { path, function } => {
                self.through(instance, path);
                let mut arguments = self.exprs(at, instance, arguments);
                let inner = self
                    .typed
                    .instance(instance)
                    .calls
                    .get(&id)
                    .copied()
                    .unwrap_or(instance);
                let name = self
                    .hir
                    .function(*function)
                    .name
                    .clone()
                    .unwrap_or_else(|| Arc::from("function"));
                let builder = self.function_body(at, inner, *function, &format!("the function `{name}`"));
                arguments.extend(self.builders.close(builder));
                Operation::Instance {
                    template: builder.template(),
                    arguments,
                }
            }
        };
        self.builders.push(at, operation, ty, span)
    }
}
