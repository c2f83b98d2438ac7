//! Where diagnostics are, in the machine-readable form: assignments, loops, conditions, operators and constructors have a line and no column.

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};
use setpoint_cf_syntax::ast::{Block, Default, Expression, ExpressionKind, Item, Statement, StatementKind};
use setpoint_cf_syntax::{self as syntax, ast};
use setpoint_diagnostics::{Diagnostic, Diagnostics, FileId, Severity, SourceMap, Span};

/// The texts that diagnostics point into.
pub struct Places<'a> {
    sources: &'a SourceMap,
    /// What has no column, in each file that has an error.
    without_column: FxHashMap<FileId, FxHashSet<Span>>,
}

impl<'a> Places<'a> {
    /// The places of some diagnostics.
    #[must_use]
    pub fn of(diagnostics: &Diagnostics, sources: &'a SourceMap) -> Places<'a> {
        let mut places = Places {
            sources,
            without_column: FxHashMap::default(),
        };
        let errors = diagnostics
            .iter()
            .filter(|found| found.severity == Severity::Error);
        errors.for_each(|error| places.look_at(error));
        places
    }

    /// Reads the files of an error and its causes.
    fn look_at(&mut self, error: &Diagnostic) {
        let file = error.rule_place().file;
        if !self.without_column.contains_key(&file)
            && let Some((_, source)) = self.sources.files().nth(file.0 as usize)
        {
            let mut spans = FxHashSet::default();
            if source.name.ends_with(".cf") {
                items(
                    &syntax::parse(file, &source.text, &mut Diagnostics::new()),
                    &mut spans,
                );
            }
            self.without_column.insert(file, spans);
        }
        error.causes.iter().for_each(|cause| self.look_at(cause));
    }

    /// An error or warning with its causes.
    #[must_use]
    pub fn diagnostic(&self, diagnostic: &Diagnostic) -> Value {
        let span = diagnostic.rule_place();
        let (file, position) = match self.sources.files().nth(span.file.0 as usize) {
            Some((_, file)) => (Some(file.name.to_string()), Some(file.position(span.start))),
            None => (None, None),
        };
        let mut object = json!({
            "code": diagnostic.code.code,
            "class": diagnostic.class,
            "message": diagnostic.message,
            "file": file,
            "line": position.map(|position| position.line),
        });
        if diagnostic.severity == Severity::Error {
            let has_none = self
                .without_column
                .get(&span.file)
                .is_some_and(|spans| spans.contains(&span));
            let causes = diagnostic.causes.iter().map(|cause| self.diagnostic(cause));
            object["column"] = json!(position.filter(|_| !has_none).map(|position| position.column));
            object["causes"] = causes.collect();
        }
        object
    }
}

fn items(file: &ast::File, spans: &mut FxHashSet<Span>) {
    for item in &file.items {
        match item {
            Item::Statement(statement) => self::statement(statement, spans),
            Item::Implementation(implementation) => block(&implementation.body, spans),
            Item::Implement(implement) => implement
                .condition
                .iter()
                .for_each(|when| expression(when, spans)),
            Item::Relation(relation) => relation.annotations.iter().for_each(|one| expression(one, spans)),
            Item::Typedef(typedef) => {
                if let ast::Constraint::Expression(condition) = &typedef.constraint {
                    expression(condition, spans);
                }
            }
            Item::Entity(entity) => {
                for attribute in &entity.attributes {
                    if let Some(Default::Value(default)) = &attribute.default {
                        expression(default, spans);
                    }
                }
            }
            Item::Import(_) | Item::Index(_) => {}
        }
    }
}

fn block(block: &Block, spans: &mut FxHashSet<Span>) {
    block.statements.iter().for_each(|inner| statement(inner, spans));
}

fn statement(statement: &Statement, spans: &mut FxHashSet<Span>) {
    if !matches!(statement.kind, StatementKind::Expression(_)) {
        spans.insert(statement.span);
    }
    match &statement.kind {
        StatementKind::Assign(assignment) => expression(&assignment.value, spans),
        StatementKind::For { iterable, body, .. } => {
            expression(iterable, spans);
            block(body, spans);
        }
        StatementKind::If { branches, otherwise } => {
            for (condition, body) in branches {
                expression(condition, spans);
                block(body, spans);
            }
            otherwise.iter().for_each(|body| block(body, spans));
        }
        StatementKind::Expression(inner) => expression(inner, spans),
    }
}

fn expression(at: &Expression, spans: &mut FxHashSet<Span>) {
    match &at.kind {
        ExpressionKind::Constructor { .. } | ExpressionKind::Not(_) | ExpressionKind::Conditional { .. } => {
            spans.insert(at.span);
        }
        ExpressionKind::Operators { first, rest } => {
            spans.extend(rest.iter().map(|(_, _, operand)| first.span.to(operand.span)));
        }
        _ => {}
    }
    at.for_each_child(&mut |child| expression(child, spans));
}
