//! Expressions to nodes.

use setpoint_diagnostics::Span;
use setpoint_flow::{Operation, Slot};
use setpoint_value::{FunctionRef, Type, Value, operators};

use super::Lowering;
use super::order::Need;
use super::templates::{BuilderId, Builders};
use crate::adapt::{self, is_adapted};
use crate::hir::{Callee, DefinitionId, ExprId, ExprKind, FunctionId, Owner, Part};
use crate::types::{InstanceId, operator_spec};

impl Lowering<'_> {
    /// The slot of an expression's value in template `at`.
    pub(super) fn expr(&mut self, at: BuilderId, instance: InstanceId, id: ExprId) -> Slot {
        let hir = self.hir;
        let expr = hir.expr(id);
        let span = expr.span;
        let operation = match &expr.kind {
            // What has errors is not lowered.
            ExprKind::Unknown(_) => Operation::List(Vec::new()),
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
                let spec = match self.type_of(instance, *base) {
                    Type::Map(_) => (&operators::MAP_LOOKUP).into(),
                    _ => (&operators::LIST_LOOKUP).into(),
                };
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

    pub(super) fn field_index(&self, instance: InstanceId, base: ExprId, field: &str) -> Option<u32> {
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
        let function = self.hir.function(id);
        let builder = self
            .builders
            .open("a lambda", Some(at), function.parameters.len() as u32);
        self.function_body(builder, instance, id);
        Operation::Closure(self.builders.block(builder))
    }

    /// The template of a named function's body, in one of its instances; the same for all calls that have this instance.
    pub(super) fn function(&mut self, instance: InstanceId) -> BuilderId {
        if let Some(found) = self.functions.get(&instance) {
            return *found;
        }
        self.lower_needs(Need::Function(instance));
        self.new_function(instance)
    }

    /// Lowers a named function, what it needs being lowered.
    pub(super) fn new_function(&mut self, instance: InstanceId) -> BuilderId {
        if let Some(found) = self.functions.get(&instance) {
            return *found;
        }
        let Owner::Function(id) = self.typed.instance(instance).owner else {
            debug_assert!(false, "a call leads to an instance of a function");
            return self.entry;
        };
        let function = self.hir.function(id);
        let name = function.name.as_deref().unwrap_or("function");
        let name = format!("the function `{name}`");
        let builder = self
            .builders
            .open_function(&name, function.parameters.len() as u32);
        self.function_body(builder, instance, id);
        self.functions.insert(instance, builder);
        builder
    }

    fn function_body(&mut self, builder: BuilderId, instance: InstanceId, id: FunctionId) {
        let function = self.hir.function(id);
        self.enter(builder, instance, &function.parameters);
        let result = self.expr(builder, instance, function.body);
        self.builders.set_result(builder, result);
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
            Callee::Function { path, .. } => {
                self.through(instance, path);
                let mut arguments = self.exprs(at, instance, arguments);
                let called = self.typed.instance(instance).calls.get(&id).copied();
                let builder = self.function(called.unwrap_or(instance));
                arguments.extend(self.builders.captures_of_call(builder, at));
                Operation::Instance {
                    template: builder.template(),
                    arguments,
                }
            }
        };
        self.builders.push(at, operation, ty, span)
    }
}
