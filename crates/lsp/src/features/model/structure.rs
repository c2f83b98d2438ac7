//! What follows from syntax alone: what can be folded, and ever larger selections.

use lsp_types::{FoldingRange, FoldingRangeKind, Position, SelectionRange};
use serde_json::Value as Json;
use setpoint_cf::syntax::{Lexed, TokenKind as K, ast};
use setpoint_diagnostics::Span;

use super::Place;
use crate::features::structure::{fold, nested, runs};
use crate::features::to_json;

/// Blocks up to their `end`, brackets and texts over several lines, comments of several lines, and imports that stand together.
pub(in crate::features) fn folding(place: &Place<'_>) -> Option<Json> {
    let lexed = place.analysis.lexed(place.file)?;
    let line = |offset: u32| place.position(offset).line;
    let mut folds: Vec<FoldingRange> = Vec::new();
    // The line of what closes stays to be seen.
    let mut add = |start: u32, end: u32| {
        let (first, last) = (line(start), line(end));
        if last > first + 1 {
            folds.push(fold(first, last - 1, None));
        }
    };
    let (mut brackets, mut blocks): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
    let mut is_head = false;
    for token in &lexed.tokens {
        match token.kind {
            K::LeftParenthesis | K::LeftBracket | K::LeftBrace => brackets.push(token.start),
            K::RightParenthesis | K::RightBracket | K::RightBrace => {
                if let Some(start) = brackets.pop() {
                    add(start, token.start);
                }
            }
            K::MultilineString => add(token.start, token.end),
            K::Entity | K::Implementation => {
                blocks.push(token.start);
                is_head = token.kind == K::Implementation;
            }
            // The `for` of an implementation's head begins no block.
            K::For if is_head => is_head = false,
            K::For | K::If if brackets.is_empty() => blocks.push(token.start),
            K::Elif | K::Else => {
                if let Some(start) = blocks.pop() {
                    add(start, token.start);
                    blocks.push(token.start);
                }
            }
            K::End => {
                if let Some(start) = blocks.pop() {
                    add(start, token.start);
                }
            }
            _ => {}
        }
    }
    let comments: Vec<u32> = lexed
        .comments
        .iter()
        .filter(|comment| is_alone(place, **comment))
        .map(|comment| line(comment.start))
        .collect();
    folds.extend(runs(&comments).map(|(first, last)| fold(first, last, Some(FoldingRangeKind::Comment))));
    let imports = place.analysis.tree(place.file)?.items.iter();
    let imports: Vec<u32> = imports
        .filter_map(|item| match item {
            ast::Item::Import(import) => Some(line(import.span.start)),
            _ => None,
        })
        .collect();
    folds.extend(runs(&imports).map(|(first, last)| fold(first, last, Some(FoldingRangeKind::Imports))));
    folds.sort_by_key(|fold| (fold.start_line, fold.end_line));
    folds.dedup_by_key(|fold| fold.start_line);
    to_json(folds)
}

/// Whether nothing but white space stands before it on its line.
fn is_alone(place: &Place<'_>, comment: Span) -> bool {
    let before = place
        .text
        .as_str()
        .get(..comment.start as usize)
        .unwrap_or_default();
    before.rsplit('\n').next().unwrap_or_default().trim().is_empty()
}

/// For each position the word, the expressions, statements and definitions around it, from the inside out.
pub(in crate::features) fn selections(place: &Place<'_>, positions: &[Position]) -> Option<Json> {
    let lexed = place.analysis.lexed(place.file)?;
    let tree = place.analysis.tree(place.file)?;
    let ranges: Vec<SelectionRange> = positions
        .iter()
        .map(|position| {
            let offset = place.text.offset(*position, place.client.encoding);
            nested(place, around(place, lexed, tree, offset), *position)
        })
        .collect();
    to_json(ranges)
}

/// Everything that is around a place, in no order.
fn around(place: &Place<'_>, lexed: &Lexed, tree: &ast::File, offset: u32) -> Vec<Span> {
    let whole = Span::new(place.file, 0, place.text.as_str().len() as u32);
    let mut around = Around {
        offset,
        spans: vec![whole],
    };
    for token in &lexed.tokens {
        around.take(token.span(place.file));
    }
    for item in &tree.items {
        around.item(item);
    }
    around.spans
}

struct Around {
    offset: u32,
    spans: Vec<Span>,
}

impl Around {
    /// Notes a part of the text. Answers whether the place is in it.
    fn take(&mut self, span: Span) -> bool {
        let is_in = span.start <= self.offset && self.offset <= span.end && span.start < span.end;
        if is_in {
            self.spans.push(span);
        }
        is_in
    }

    fn item(&mut self, item: &ast::Item) {
        match item {
            ast::Item::Import(import) => {
                self.take(import.span);
            }
            ast::Item::Entity(entity) => {
                if self.take(entity.span) {
                    for attribute in &entity.attributes {
                        self.take(attribute.span);
                        if let Some(ast::Default::Value(value)) = &attribute.default {
                            self.expression(value);
                        }
                    }
                }
            }
            ast::Item::Relation(relation) => {
                self.take(relation.span);
                relation
                    .annotations
                    .iter()
                    .for_each(|value| self.expression(value));
            }
            ast::Item::Typedef(typedef) => {
                self.take(typedef.span);
                if let ast::Constraint::Expression(condition) = &typedef.constraint {
                    self.expression(condition);
                }
            }
            ast::Item::Index(index) => {
                self.take(index.span);
            }
            ast::Item::Implementation(implementation) => {
                if self.take(implementation.span) {
                    self.block(&implementation.body);
                }
            }
            ast::Item::Implement(implement) => {
                self.take(implement.span);
                implement
                    .condition
                    .iter()
                    .for_each(|value| self.expression(value));
            }
            ast::Item::Statement(statement) => self.statement(statement),
        }
    }

    fn block(&mut self, block: &ast::Block) {
        if self.take(block.span) {
            block
                .statements
                .iter()
                .for_each(|statement| self.statement(statement));
        }
    }

    fn statement(&mut self, statement: &ast::Statement) {
        if !self.take(statement.span) {
            return;
        }
        match &statement.kind {
            ast::StatementKind::Assign(assignment) => {
                self.take(assignment.target.span);
                self.expression(&assignment.value);
            }
            ast::StatementKind::For { iterable, body, .. } => {
                self.expression(iterable);
                self.block(body);
            }
            ast::StatementKind::If { branches, otherwise } => {
                for (condition, body) in branches {
                    self.expression(condition);
                    self.block(body);
                }
                otherwise.iter().for_each(|body| self.block(body));
            }
            ast::StatementKind::Expression(expression) => self.expression(expression),
        }
    }

    fn expression(&mut self, expression: &ast::Expression) {
        self.take(expression.span);
        expression.for_each_child(&mut |child| self.expression(child));
    }
}
