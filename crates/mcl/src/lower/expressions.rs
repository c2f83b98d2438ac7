//! Expressions to nodes.

use setpoint_diagnostics::Span;
use setpoint_flow::{Operation, Slot};
use setpoint_value::{FunctionRef, Type, Value, operators};

use super::Lowering;
use super::order::Need;
use super::templates::{BuilderId, Builders};
use crate::adapt::{self, is_adapted};
use crate::hir::{DefinitionId, ExprId, ExprKind, FunctionId, Part};
use crate::stack::with_room;
use crate::types::{Form, InstanceId};

impl Lowering<'_> {
    /// The slot of an expression's value in template `at`.
    pub(super) fn expr(&mut self, at: BuilderId, instance: InstanceId, id: ExprId) -> Slot {
        let expr = self.hir.expr(id);
        // Constants are most of what there is.
        if let ExprKind::Literal(value) = &expr.kind {
            let operation = Operation::Constant(value.clone());
            return self.builders.push(at, operation, value.ty(), expr.span);
        }
        with_room(|| self.new_expr(at, instance, id))
    }

    fn new_expr(&mut self, at: BuilderId, instance: InstanceId, id: ExprId) -> Slot {
        let span = self.hir.expr(id).span;
        let operation = match self.program.form(instance, id) {
            Form::Constant(value) => {
                return self
                    .builders
                    .push(at, Operation::Constant(value.clone()), value.ty(), span);
            }
            Form::Variable { path, definition } => return self.definition(instance, path, definition, at),
            Form::Same(other) => return self.expr(at, instance, other),
            Form::Interpolation(parts) => return self.interpolation(at, instance, parts, span),
            Form::List(items) => Operation::List(self.exprs(at, instance, items)),
            Form::Map(entries) => {
                let pairs = entries
                    .iter()
                    .map(|(k, v)| (self.expr(at, instance, *k), self.expr(at, instance, *v)));
                Operation::Map(pairs.collect())
            }
            Form::Struct(fields) => Operation::Struct(
                fields
                    .iter()
                    .map(|(_, value)| self.expr(at, instance, *value))
                    .collect(),
            ),
            Form::Field { base, index } => Operation::Field {
                of: self.expr(at, instance, base),
                index,
            },
            Form::Lambda(function) => self.lambda(at, instance, function),
            Form::If {
                condition,
                then,
                otherwise,
            } => {
                let condition = self.expr(at, instance, condition);
                let then = self.branch(at, instance, then);
                let otherwise = self.branch(at, instance, otherwise);
                Operation::If {
                    condition,
                    then,
                    otherwise,
                }
            }
            Form::Except { left, right } => {
                let value = self.expr(at, instance, left);
                let fallback = self.branch(at, instance, right);
                Operation::Except { value, fallback }
            }
            Form::Library {
                function,
                arguments,
                module_directory,
            } => {
                let arguments = self.exprs(at, instance, &arguments);
                Operation::Call {
                    function: self.adapted(function),
                    arguments,
                    module_directory,
                }
            }
            Form::Value { callee, arguments } => Operation::Apply {
                function: self.expr(at, instance, callee),
                arguments: self.exprs(at, instance, arguments),
            },
            Form::Function {
                path,
                function,
                called,
                arguments,
            } => {
                self.follow(instance, path, self.hir.function(function).owner);
                let mut arguments = self.exprs(at, instance, arguments);
                let builder = self.function(called);
                arguments.extend(self.builders.captures_of_call(builder, at));
                Operation::Instance {
                    template: builder.template(),
                    arguments,
                }
            }
        };
        let ty = self.program.type_of(instance, id);
        self.builders.push(at, operation, ty, span)
    }

    fn exprs(&mut self, at: BuilderId, instance: InstanceId, ids: &[ExprId]) -> Vec<Slot> {
        ids.iter().map(|id| self.expr(at, instance, *id)).collect()
    }

    /// What is called for a library function: one that takes part by conversion is called in a wrapping.
    fn adapted(&mut self, function: FunctionRef) -> FunctionRef {
        if !is_adapted(&function) {
            return function;
        }
        let adapted = self.adapted.entry(function);
        let wrapped = adapted.key().clone();
        adapted.or_insert_with(|| adapt::adapted(&wrapped)).clone()
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
        let id = self.program.function_of(instance);
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
        let known = &self.program.instance(instance).definitions;
        let described = definitions.iter().map(|definition| {
            let ty = known.get(definition).cloned().unwrap_or(Type::Dynamic);
            (ty, self.hir.definition(*definition).name_span)
        });
        self.builders.describe_parameters(builder, described.collect());
    }
}
