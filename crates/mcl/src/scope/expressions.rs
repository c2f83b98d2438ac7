//! Expressions and resource bodies: syntax to resolved form.

use setpoint_diagnostics::{Diagnostic, Span, did_you_mean};
use setpoint_graph::{EdgeProperty, MetaName};
use setpoint_value::Value;

use super::codes;
use super::resolve::{FoundFunction, FrameId, Resolver, annotation_type, pieces};
use crate::hir::{
    Callee, DefinitionKind, Endpoint, Expr, ExprId, ExprKind, Function, FunctionId, Item, ItemKind, Owner,
    Part, Resource,
};
use crate::syntax::{self, Ast, BodyItemKind, Piece};

impl Resolver<'_> {
    fn new_expr(&mut self, kind: ExprKind, span: Span) -> ExprId {
        self.hir.exprs.push(Expr { kind, span });
        ExprId(self.hir.exprs.len() as u32 - 1)
    }

    /// Resolves an expression. Unknown names are reported and stand for an empty string.
    pub(super) fn expr(&mut self, frame: FrameId, ast: &Ast, id: syntax::ExprId) -> ExprId {
        let expr = ast.expr(id);
        let span = expr.span;
        let kind = match &expr.kind {
            syntax::ExprKind::Bool(value) => ExprKind::Literal(Value::Bool(*value)),
            syntax::ExprKind::Integer(value) => ExprKind::Literal(Value::Int(*value)),
            syntax::ExprKind::Float(value) => ExprKind::Literal(Value::float(*value)),
            syntax::ExprKind::String(raw) => self.string(frame, raw, span),
            syntax::ExprKind::List(items) => {
                ExprKind::List(items.iter().map(|item| self.expr(frame, ast, *item)).collect())
            }
            syntax::ExprKind::Map(entries) => {
                let pair = |this: &mut Self, e: &syntax::MapEntry| {
                    (this.expr(frame, ast, e.key), this.expr(frame, ast, e.value))
                };
                ExprKind::Map(entries.iter().map(|entry| pair(self, entry)).collect())
            }
            syntax::ExprKind::Struct(fields) => ExprKind::Struct(
                fields
                    .iter()
                    .map(|f| (f.name.text.clone(), self.expr(frame, ast, f.value)))
                    .collect(),
            ),
            syntax::ExprKind::Variable(name) => self.variable(frame, &name.text, span),
            syntax::ExprKind::Call(call) => return self.call(frame, ast, call, span),
            syntax::ExprKind::Lambda(function) => {
                let id = FunctionId(self.hir.functions.len() as u32);
                let owner = self.owner_of(frame);
                self.hir.functions.push(Function {
                    name: None,
                    parameters: Vec::new(),
                    result: function.result.as_ref().map(annotation_type),
                    body: ExprId(u32::MAX),
                    span,
                    owner,
                });
                self.function(frame, ast, function, id, owner);
                ExprKind::Lambda(id)
            }
            syntax::ExprKind::If(branches) => ExprKind::If {
                condition: self.expr(frame, ast, branches.condition),
                then: self.expr(frame, ast, branches.then_branch),
                otherwise: self.expr(frame, ast, branches.else_branch),
            },
            syntax::ExprKind::Paren(inner) => return self.expr(frame, ast, *inner),
            syntax::ExprKind::Operator {
                operator,
                left,
                right,
                ..
            } => ExprKind::Operator {
                operator: *operator,
                left: self.expr(frame, ast, *left),
                right: self.expr(frame, ast, *right),
            },
            syntax::ExprKind::Not(inner) => ExprKind::Not(self.expr(frame, ast, *inner)),
            syntax::ExprKind::In { left, right } => ExprKind::In {
                left: self.expr(frame, ast, *left),
                right: self.expr(frame, ast, *right),
            },
            syntax::ExprKind::Lookup { base, index } => ExprKind::Lookup {
                base: self.expr(frame, ast, *base),
                index: self.expr(frame, ast, *index),
            },
            syntax::ExprKind::StructLookup { base, field } => ExprKind::Field {
                base: self.expr(frame, ast, *base),
                field: field.text.clone(),
            },
            syntax::ExprKind::StructLookupOptional {
                base, field, default, ..
            } => ExprKind::FieldOr {
                base: self.expr(frame, ast, *base),
                field: field.text.clone(),
                default: self.expr(frame, ast, *default),
            },
            syntax::ExprKind::Except { left, right, .. } => ExprKind::Except {
                left: self.expr(frame, ast, *left),
                right: self.expr(frame, ast, *right),
            },
        };
        self.new_expr(kind, span)
    }

    fn string(&mut self, frame: FrameId, raw: &str, span: Span) -> ExprKind {
        if !raw.contains(['$', '\\']) {
            return ExprKind::Literal(Value::str(raw));
        }
        let mut parts = Vec::new();
        for piece in pieces(raw, span) {
            match piece {
                Piece::Text(text) => parts.push(Part::Text(text.into())),
                Piece::Variable { name, .. } => {
                    let kind = self.variable(frame, &name, span);
                    parts.push(Part::Variable(self.new_expr(kind, span)));
                }
            }
        }
        match parts.as_slice() {
            [] => ExprKind::Literal(Value::str("")),
            [Part::Text(text)] => ExprKind::Literal(Value::str(&**text)),
            _ => ExprKind::Interpolation(parts),
        }
    }

    fn variable(&mut self, frame: FrameId, name: &str, span: Span) -> ExprKind {
        if let Some((path, definition)) = self.find_variable(frame, name) {
            return ExprKind::Variable { path, definition };
        }
        if self.may_have_failed(frame, name) {
            return ExprKind::Literal(Value::str(""));
        }
        let names = self.variable_names(frame);
        let close = setpoint_diagnostics::closest(name, names.iter().map(String::as_str));
        let help = close.map(|close| format!("did you mean `${close}`?"));
        let error = Diagnostic::error(
            &codes::UNKNOWN_VARIABLE,
            span,
            format!("`${name}` is not defined here"),
        );
        self.report(frame, error.label("not defined").help_if(help));
        ExprKind::Literal(Value::str(""))
    }

    fn call(&mut self, frame: FrameId, ast: &Ast, call: &syntax::Call, span: Span) -> ExprId {
        let callee = match &call.callee {
            syntax::Callee::Function(name) => match self.find_function(frame, &name.text) {
                Some(FoundFunction::Program(path, function)) => Callee::Function { path, function },
                Some(FoundFunction::Library(spec)) => Callee::Library(spec, self.module_directory_of(frame)),
                None => {
                    self.unknown_function(frame, &name.text, span);
                    let nothing = self.new_expr(ExprKind::Literal(Value::str("")), span);
                    Callee::Value(nothing)
                }
            },
            syntax::Callee::Variable(name) => {
                let kind = match self.find_variable(frame, &name.text) {
                    Some((path, definition)) => ExprKind::Variable { path, definition },
                    None => {
                        self.unknown_function_variable(frame, &name.text, span);
                        ExprKind::Literal(Value::str(""))
                    }
                };
                // The span of a variable includes its dollar.
                let variable = Span {
                    start: name.span.start.saturating_sub(1),
                    ..name.span
                };
                Callee::Value(self.new_expr(kind, variable))
            }
            syntax::Callee::Lambda(id) => Callee::Value(self.expr(frame, ast, *id)),
        };
        let arguments = call
            .arguments
            .items
            .iter()
            .map(|id| self.expr(frame, ast, *id))
            .collect();
        self.new_expr(ExprKind::Call { callee, arguments }, span)
    }

    fn unknown_function(&mut self, frame: FrameId, name: &str, span: Span) {
        if self.may_have_failed(frame, name) {
            return;
        }
        let error = Diagnostic::error(
            &codes::UNKNOWN_FUNCTION,
            span,
            format!("there is no function `{name}` here"),
        );
        let error = error.label("not defined");
        let help = if self.find_variable(frame, name).is_some() {
            Some(format!(
                "a function value in a variable is called with `${name}(…)`"
            ))
        } else {
            let names = self.function_names(frame);
            self.import_hint(name)
                .or_else(|| did_you_mean(name, names.iter().map(String::as_str)))
        };
        self.report(frame, error.help_if(help));
    }

    fn unknown_function_variable(&mut self, frame: FrameId, name: &str, span: Span) {
        if self.may_have_failed(frame, name) {
            return;
        }
        let message = format!("`${name}` is not defined here, so it cannot be called");
        let help = if self.find_function(frame, name).is_some() {
            Some(format!("the function is called without the dollar: `{name}(…)`"))
        } else {
            let names = self.variable_names(frame);
            let close = setpoint_diagnostics::closest(name, names.iter().map(String::as_str));
            close.map(|close| format!("did you mean `${close}`?"))
        };
        let error = Diagnostic::error(&codes::UNKNOWN_VARIABLE, span, message);
        self.report(frame, error.label("not defined").help_if(help));
    }

    /// Resolves parameters and body of a function whose place in the arena exists.
    pub(super) fn function(
        &mut self,
        frame: FrameId,
        ast: &Ast,
        function: &syntax::Function,
        id: FunctionId,
        owner: Owner,
    ) {
        let inner = self.inner_frame(frame, owner);
        let mut parameters = Vec::new();
        for (index, parameter) in function.parameters.items.iter().enumerate() {
            let annotation = parameter.annotation.as_ref().map(annotation_type);
            let kind = DefinitionKind::Parameter {
                function: id,
                index,
                annotation,
            };
            parameters.push(self.define(inner, &parameter.name.text, parameter.span, kind));
        }
        let body = self.expr(inner, ast, function.body);
        let entry = &mut self.hir.functions[id.index()];
        entry.parameters = parameters;
        entry.body = body;
    }

    pub(super) fn endpoint(
        &mut self,
        frame: FrameId,
        ast: &Ast,
        endpoint: &syntax::EdgeEndpoint,
    ) -> Endpoint {
        Endpoint {
            kind: endpoint.kind.text.clone(),
            name: self.expr(frame, ast, endpoint.name),
            field: endpoint.field.as_ref().map(|f| f.text.clone()),
            span: endpoint.span,
        }
    }

    pub(super) fn resource(
        &mut self,
        frame: FrameId,
        ast: &Ast,
        resource: &syntax::Resource,
        span: Span,
    ) -> Resource {
        let name = self.expr(frame, ast, resource.name);
        let mut items = Vec::with_capacity(resource.items.len());
        for item in &resource.items {
            let kind = match &item.kind {
                BodyItemKind::Field { name, value } => ItemKind::Field {
                    name: name.text.clone(),
                    name_span: name.span,
                    value: self.expr(frame, ast, *value),
                },
                BodyItemKind::EdgeProperty { property, endpoint } => ItemKind::EdgeProperty {
                    property: edge_property(&property.text),
                    endpoint: self.endpoint(frame, ast, endpoint),
                },
                BodyItemKind::Meta { name, value } => {
                    let value = self.expr(frame, ast, *value);
                    match MetaName::parse(&name.text) {
                        Some(name) => ItemKind::Meta { name, value },
                        // `Meta:meta` is the struct form; other names were refused by the structural checks.
                        None => ItemKind::MetaStruct { value },
                    }
                }
                BodyItemKind::MetaStruct { value } => ItemKind::MetaStruct {
                    value: self.expr(frame, ast, *value),
                },
            };
            let condition = item.condition.map(|condition| self.expr(frame, ast, condition));
            items.push(Item {
                kind,
                condition,
                span: item.span,
            });
        }
        Resource {
            kind: resource.kind.text.clone(),
            kind_span: resource.kind.span,
            collect: resource.collect,
            name,
            items,
            span,
        }
    }
}

/// The structural checks leave only these four.
fn edge_property(name: &str) -> EdgeProperty {
    match name.to_lowercase().as_str() {
        "notify" => EdgeProperty::Notify,
        "depend" => EdgeProperty::Depend,
        "listen" => EdgeProperty::Listen,
        _ => EdgeProperty::Before,
    }
}
