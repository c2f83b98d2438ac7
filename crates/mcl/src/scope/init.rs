//! Structural checks of single statements (rules types.14, types.15, names.12, resources.9), before any name is looked up.

use rustc_hash::FxHashMap;
use setpoint_diagnostics::{Diagnostic, Diagnostics, Span, did_you_mean};
use setpoint_graph::MetaName;
use setpoint_value::Type;

use super::codes;
use crate::syntax::foreign;
use crate::syntax::{
    Ast, Block, BodyItemKind, ExprId, ExprKind, Parameters, Piece, StmtId, StmtKind, interpolate,
};

/// Checks a whole file, in source order.
pub(super) fn check(ast: &Ast, diagnostics: &mut Diagnostics) {
    let mut check = Check { ast, diagnostics };
    check.block(&ast.root, None);
}

struct Check<'a> {
    ast: &'a Ast,
    diagnostics: &'a mut Diagnostics,
}

impl Check<'_> {
    fn block(&mut self, block: &Block, in_loop: Option<Span>) {
        for id in &block.statements {
            self.statement(*id, in_loop);
        }
    }

    fn statement(&mut self, id: StmtId, in_loop: Option<Span>) {
        let ast = self.ast;
        let statement = ast.stmt(id);
        match &statement.kind {
            StmtKind::Bind(bind) => {
                self.name(
                    &bind.name.text,
                    Span {
                        end: bind.name.span.end,
                        ..statement.span
                    },
                );
                self.expr(bind.value);
            }
            StmtKind::If(branches) => {
                self.expr(branches.condition);
                self.block(&branches.then_block, in_loop);
                if let Some(block) = &branches.else_block {
                    self.block(block, in_loop);
                }
            }
            StmtKind::For(body) | StmtKind::ForKv(body) => {
                self.expr(body.iterable);
                self.name(&body.key.text, with_dollar(body.key.span));
                self.name(&body.value.text, with_dollar(body.value.span));
                if body.key.text == body.value.text {
                    let message = format!("both variables of this loop are called `${}`", body.value.text);
                    let error = Diagnostic::error(&codes::DUPLICATE_LOOP_VARIABLE, body.value.span, message);
                    self.diagnostics
                        .push(error.because(body.key.span, "the first one"));
                }
                for id in &body.body.statements {
                    if let StmtKind::Import(_) = ast.stmt(*id).kind {
                        let message = "the body of a loop cannot import";
                        let error = Diagnostic::error(&codes::IMPORT_IN_LOOP, statement.span, message);
                        let error = error.because(ast.stmt(*id).span, "the import");
                        self.diagnostics
                            .push(error.help("move the import above the loop"));
                        break;
                    }
                }
                self.block(&body.body, Some(statement.span));
            }
            StmtKind::Resource(resource) => {
                self.expr(resource.name);
                self.resource(resource, statement.span);
            }
            StmtKind::Edge(edge) => edge
                .endpoints
                .iter()
                .for_each(|endpoint| self.expr(endpoint.name)),
            StmtKind::Class(class) => {
                if let Some(parameters) = &class.parameters {
                    self.parameters(parameters);
                }
                self.class_in_loop(&class.body, in_loop);
                self.block(&class.body, in_loop);
            }
            StmtKind::Include(include) => {
                if let Some(arguments) = &include.arguments {
                    arguments.items.iter().for_each(|id| self.expr(*id));
                }
            }
            StmtKind::Import(_) => {}
            StmtKind::Func(func) => {
                self.parameters(&func.function.parameters);
                self.expr(func.function.body);
            }
            StmtKind::Panic(arguments) => arguments.items.iter().for_each(|id| self.expr(*id)),
        }
    }

    /// An import in a class in a loop would be followed once and used by every element; refused like one directly in it.
    fn class_in_loop(&mut self, body: &Block, in_loop: Option<Span>) {
        let Some(span) = in_loop else { return };
        let ast = self.ast;
        for id in &body.statements {
            if let StmtKind::Import(_) = ast.stmt(*id).kind {
                let message = "a class in the body of a loop cannot import";
                let error = Diagnostic::error(&codes::IMPORT_IN_LOOP, span, message);
                let error = error.because(ast.stmt(*id).span, "the import");
                self.diagnostics
                    .push(error.help("move the import above the loop"));
                return;
            }
        }
    }

    fn resource(&mut self, resource: &crate::syntax::Resource, span: Span) {
        let mut fields: FxHashMap<&str, Span> = FxHashMap::default();
        let mut metas: FxHashMap<&str, Span> = FxHashMap::default();
        for item in &resource.items {
            if let Some(condition) = item.condition {
                self.expr(condition);
            }
            match &item.kind {
                BodyItemKind::Field { name, value } => {
                    if let Some(first) = fields.insert(&name.text, item.span) {
                        let message = format!("`{}` is set twice", name.text);
                        let error = Diagnostic::error(&codes::DUPLICATE_PARAMETER, span, message);
                        self.diagnostics.push(
                            error
                                .shown_at(item.span)
                                .label("and again here")
                                .because(first, "first here")
                                .help("a parameter has one value; take one of them away"),
                        );
                    }
                    self.expr(*value);
                }
                BodyItemKind::Meta { name, value } => {
                    if MetaName::parse(&name.text).is_none() && &*name.text != "meta" {
                        let message = format!("there is no meta parameter `{}`", name.text);
                        let names = MetaName::ALL.map(MetaName::name);
                        let error =
                            Diagnostic::error(&codes::UNKNOWN_META, item.span, message).shown_at(name.span);
                        let help = did_you_mean(&name.text, names);
                        let help =
                            help.unwrap_or_else(|| format!("the meta parameters are {}", names.join(", ")));
                        self.diagnostics.push(error.help(help));
                    } else if let Some(first) = metas.insert(&name.text, item.span) {
                        let message = format!("`Meta:{}` is set twice", name.text);
                        let error = Diagnostic::error(&codes::DUPLICATE_META, span, message);
                        self.diagnostics.push(
                            error
                                .shown_at(item.span)
                                .label("and again here")
                                .because(first, "first here")
                                .help("a meta parameter has one value; take one of them away"),
                        );
                    }
                    self.expr(*value);
                }
                BodyItemKind::MetaStruct { value } => self.expr(*value),
                BodyItemKind::EdgeProperty { property, endpoint } => {
                    let names = ["before", "depend", "notify", "listen"];
                    if !names.contains(&&*property.text.to_lowercase()) {
                        let message = format!("there is no edge property `{}`", capitalised(&property.text));
                        let error = Diagnostic::error(&codes::UNKNOWN_EDGE_PROPERTY, item.span, message);
                        let help = did_you_mean(&property.text.to_lowercase(), names).map(|_| {
                            let closest = setpoint_diagnostics::closest(&property.text.to_lowercase(), names);
                            format!("did you mean `{}`?", capitalised(closest.unwrap_or_default()))
                        });
                        let meant = foreign::edge(&property.text);
                        let error = error.shown_at(property.span);
                        self.diagnostics.push(match (meant, help) {
                            (Some(meant), _) => {
                                error.fix(format!("that edge is written `{meant}`"), property.span, meant)
                            }
                            (None, Some(help)) => error.help(help),
                            (None, None) => error.help("it is `Before`, `Depend`, `Notify` or `Listen`"),
                        });
                    }
                    self.expr(endpoint.name);
                }
            }
        }
    }

    fn parameters(&mut self, parameters: &Parameters) {
        let mut seen: FxHashMap<&str, Span> = FxHashMap::default();
        for parameter in &parameters.items {
            self.name(&parameter.name.text, parameter.span);
            if let Some(first) = seen.insert(&parameter.name.text, parameter.span) {
                let message = format!("two parameters are called `${}`", parameter.name.text);
                let error = Diagnostic::error(&codes::DUPLICATE_ARGUMENT, parameter.span, message);
                self.diagnostics.push(error.because(first, "the first one"));
            }
        }
    }

    fn name(&mut self, text: &str, span: Span) {
        let well_formed = !text.contains("__") && !text.contains("..") && !text.ends_with('.');
        if !well_formed {
            let message = format!("`${text}` is not a proper name for a variable");
            let error = Diagnostic::error(&codes::BAD_VARIABLE, span, message);
            self.diagnostics
                .push(error.help("a name has no doubled underscore"));
        }
    }

    /// Over expressions with a stack of its own order: children after their parent's own check, in source order.
    fn expr(&mut self, id: ExprId) {
        let ast = self.ast;
        let expr = ast.expr(id);
        match &expr.kind {
            ExprKind::Variable(name) => self.name(&name.text, expr.span),
            ExprKind::Call(call) => {
                if let crate::syntax::Callee::Variable(name) = &call.callee {
                    self.name(&name.text, with_dollar(name.span));
                }
            }
            ExprKind::Lambda(function) => self.parameters(&function.parameters),
            ExprKind::Struct(fields) => {
                let mut seen: FxHashMap<&str, Span> = FxHashMap::default();
                for field in fields {
                    if let Some(first) = seen.insert(&field.name.text, field.name.span) {
                        let message = format!("the struct has two fields `{}`", field.name.text);
                        let error = Diagnostic::error(&codes::DUPLICATE_FIELD, expr.span, message);
                        let error = error.because(first, "first here");
                        self.diagnostics
                            .push(error.because(field.name.span, "and again here"));
                    }
                }
            }
            ExprKind::Map(entries) => self.map_keys(entries, expr.span),
            ExprKind::String(raw) => {
                // Names inside `${…}` must be well-formed like any other; those that the string grammar refuses are
                // reported when strings are expanded.
                for name in crate::syntax::interpolated_names(raw, expr.span) {
                    self.name(&name, expr.span);
                }
            }
            // The others are right wherever their parts are.
            _ => {}
        }
        expr.kind.for_each_child(|child| self.expr(child));
    }

    fn map_keys(&mut self, entries: &[crate::syntax::MapEntry], span: Span) {
        let mut first: Option<(Type, ExprId)> = None;
        for entry in entries {
            let Some(ty) = literal_type(self.ast, entry.key) else {
                continue;
            };
            if ty.contains_func() {
                let error =
                    Diagnostic::error(&codes::UNHASHABLE_KEY, span, "a map key cannot hold a function");
                self.diagnostics
                    .push(error.because(self.ast.expr(entry.key).span, format!("this is {ty}")));
                return;
            }
            match &first {
                None => first = Some((ty, entry.key)),
                Some((expected, key)) if *expected != ty => {
                    let message = format!("the keys of this map have different types: {expected} and {ty}");
                    let error = Diagnostic::error(&codes::MIXED_KEYS, span, message)
                        .because(self.ast.expr(*key).span, format!("this is {expected}"))
                        .because(self.ast.expr(entry.key).span, format!("this is {ty}"));
                    self.diagnostics.push(error);
                    return;
                }
                Some(_) => {}
            }
        }
        let mut seen: FxHashMap<String, Span> = FxHashMap::default();
        for entry in entries {
            let Some(text) = literal_text(self.ast, entry.key) else {
                continue;
            };
            let place = self.ast.expr(entry.key).span;
            if let Some(before) = seen.insert(text, place) {
                let error = Diagnostic::error(&codes::DUPLICATE_KEY, span, "the map has the same key twice");
                self.diagnostics.push(
                    error
                        .because(before, "first here")
                        .because(place, "and again here"),
                );
                return;
            }
        }
    }
}

/// The span of a variable by that of its name.
fn with_dollar(name: Span) -> Span {
    Span {
        start: name.start.saturating_sub(1),
        ..name
    }
}

/// The type of a literal, or of a container of literals; none for anything else.
fn literal_type(ast: &Ast, id: ExprId) -> Option<Type> {
    match &ast.expr(id).kind {
        ExprKind::Bool(_) => Some(Type::Bool),
        ExprKind::Integer(_) => Some(Type::Int),
        ExprKind::Float(_) => Some(Type::Float),
        ExprKind::String(_) => Some(Type::Str),
        ExprKind::Paren(inner) => literal_type(ast, *inner),
        ExprKind::List(items) => Some(Type::list(literal_type(ast, *items.first()?)?)),
        ExprKind::Map(entries) => {
            let first = entries.first()?;
            Some(Type::map(
                literal_type(ast, first.key)?,
                literal_type(ast, first.value)?,
            ))
        }
        ExprKind::Struct(fields) => {
            let fields = fields
                .iter()
                .map(|f| Some((f.name.text.clone(), literal_type(ast, f.value)?)));
            Some(Type::structure(fields.collect::<Option<Vec<_>>>()?))
        }
        ExprKind::Lambda(_) => Some(Type::func(Vec::<(String, Type)>::new(), Type::Variable(1))),
        _ => None,
    }
}

/// A text that is equal for equal literals; none for what is no literal.
fn literal_text(ast: &Ast, id: ExprId) -> Option<String> {
    match &ast.expr(id).kind {
        ExprKind::Bool(value) => Some(value.to_string()),
        ExprKind::Integer(value) => Some(value.to_string()),
        // The zeros are one key; other floats are told apart by their shortest text.
        ExprKind::Float(value) => Some(format!("f{:?}", value + 0.0)),
        ExprKind::String(raw) => {
            // Two spellings of one text are one key.
            let pieces = interpolate(raw, ast.expr(id).span).ok()?;
            let texts: Option<Vec<String>> = pieces
                .into_iter()
                .map(|piece| match piece {
                    Piece::Text(text) => Some(text),
                    Piece::Variable { .. } => None,
                })
                .collect();
            Some(match texts {
                Some(texts) => format!("{:?}", texts.concat()),
                None => format!("with variables {raw:?}"),
            })
        }
        ExprKind::Paren(inner) => literal_text(ast, *inner),
        _ => None,
    }
}

fn capitalised(name: &str) -> String {
    let mut characters = name.chars();
    characters
        .next()
        .map(|c| c.to_uppercase().chain(characters).collect())
        .unwrap_or_default()
}
