//! Rules about conditions and branches.

use setpoint_diagnostics::{Diagnostic, Span};

use super::{Linter, blocks, codes, text_at};
use crate::analysis::Analysis;
use crate::syntax::{Ast, Block, ExprId, ExprKind, IfExpr, IfStmt, Operator, StmtKind};

impl Linter<'_> {
    /// Conditions, branches and bodies of a file.
    pub(super) fn conditions(&mut self, ast: &Ast) {
        for (_, block) in blocks(ast) {
            for id in &block.statements {
                match &ast.stmt(*id).kind {
                    StmtKind::If(branches) => self.if_statement(ast, branches),
                    StmtKind::For(body) | StmtKind::ForKv(body) => {
                        self.body(&body.body, "a loop that does nothing");
                    }
                    StmtKind::Resource(resource) => {
                        let conditions = resource.items.iter().filter_map(|item| item.condition);
                        conditions.for_each(|condition| self.constant(ast, condition));
                    }
                    StmtKind::Bind(_)
                    | StmtKind::Class(_)
                    | StmtKind::Edge(_)
                    | StmtKind::Include(_)
                    | StmtKind::Import(_)
                    | StmtKind::Func(_)
                    | StmtKind::Panic(_) => {}
                }
            }
        }
        let operands = operands(ast);
        for id in (0..ast.expr_count() as u32).map(ExprId) {
            match &ast.expr(id).kind {
                ExprKind::If(branches) => self.if_expression(ast, branches),
                ExprKind::Operator {
                    operator,
                    left,
                    right,
                    ..
                } => {
                    let is_operand = operands[id.index()];
                    self.comparison(ast, (id, is_operand), *operator, (*left, *right));
                }
                _ => {}
            }
        }
    }

    fn if_statement(&mut self, ast: &Ast, branches: &IfStmt) {
        self.constant(ast, branches.condition);
        match &branches.else_block {
            None => self.body(&branches.then_block, "an `if` that does nothing"),
            Some(otherwise) => {
                self.body(otherwise, "an `else` that does nothing");
                self.same_branches(ast, &branches.then_block, otherwise);
            }
        }
        // Of `else if` the second `if` is the only statement of the first one's `else`.
        let mut next = branches.else_block.as_ref().filter(|_| branches.else_if);
        while let Some(block) = next {
            let [only] = block.statements.as_slice() else {
                break;
            };
            let StmtKind::If(inner) = &ast.stmt(*only).kind else {
                break;
            };
            self.same_condition(ast, branches.condition, inner.condition);
            next = inner.else_block.as_ref().filter(|_| inner.else_if);
        }
    }

    fn if_expression(&mut self, ast: &Ast, branches: &IfExpr) {
        self.constant(ast, branches.condition);
        let mut inner = branches;
        while inner.else_if
            && let ExprKind::If(next) = &ast.expr(inner.else_branch).kind
        {
            self.same_condition(ast, branches.condition, next.condition);
            inner = next;
        }
        let (then, otherwise) = (ast.expr(branches.then_branch), ast.expr(branches.else_branch));
        if self.is_same_text(then.span, otherwise.span) {
            let message = "both branches give the same value";
            let warning = Diagnostic::warning(&codes::SAME_BRANCHES, otherwise.span, message);
            self.warn(warning.because(then.span, "the same as here"));
        }
    }

    /// A condition that is written out.
    fn constant(&mut self, ast: &Ast, condition: ExprId) {
        let Some(value) = truth(ast, condition) else {
            return;
        };
        let span = ast.expr(condition).span;
        let message = format!("this condition is always {value}");
        let warning = Diagnostic::warning(&codes::CONSTANT_CONDITION, span, message);
        self.warn(match value {
            true => warning.help("what it guards always happens, and an `else` never"),
            false => warning.help("what it guards never happens: take it away"),
        });
    }

    fn same_condition(&mut self, ast: &Ast, first: ExprId, second: ExprId) {
        let (first, second) = (ast.expr(first).span, ast.expr(second).span);
        if self.is_same_text(first, second) {
            let message = "this branch is never taken: its condition was asked before";
            let warning = Diagnostic::warning(&codes::SAME_CONDITION, second, message);
            self.warn(warning.because(first, "here"));
        }
    }

    fn same_branches(&mut self, ast: &Ast, then: &Block, otherwise: &Block) {
        // The braces of the two share a line.
        let inside = |block: &Block| {
            let (first, last) = (block.statements.first()?, block.statements.last()?);
            Some(ast.stmt(*first).span.to(ast.stmt(*last).span))
        };
        let (Some(then_span), Some(otherwise_span)) = (inside(then), inside(otherwise)) else {
            return;
        };
        let is_same = then.statements.len() == otherwise.statements.len()
            && then
                .statements
                .iter()
                .zip(&otherwise.statements)
                .all(|(a, b)| self.is_same_text(ast.stmt(*a).span, ast.stmt(*b).span));
        if is_same {
            let message = "both branches do the same";
            let warning = Diagnostic::warning(&codes::SAME_BRANCHES, otherwise.span, message);
            let warning = warning.shown_at(otherwise_span);
            self.warn(warning.because(then_span, "the same as here"));
        }
    }

    fn body(&mut self, block: &Block, message: &str) {
        let span = block.span;
        // A comment in it says why.
        let has_comment = text_at(self.analysis, span).contains('#');
        if block.statements.is_empty() && !has_comment {
            self.warn(Diagnostic::warning(&codes::EMPTY_BODY, span, message).help("take it away"));
        }
    }

    fn comparison(
        &mut self,
        ast: &Ast,
        (id, is_operand): (ExprId, bool),
        operator: Operator,
        (left, right): (ExprId, ExprId),
    ) {
        let is_equal = match operator {
            Operator::Equal => true,
            Operator::NotEqual => false,
            _ => return,
        };
        let literal = |id: ExprId| match ast.expr(ast.without_parens(id)).kind {
            ExprKind::Bool(value) => Some(value),
            _ => None,
        };
        let (value, other) = match (literal(left), literal(right)) {
            (None, Some(value)) => (value, left),
            (Some(value), None) => (value, right),
            // Both are literals: that is a constant.
            _ => return,
        };
        let (span, other) = (ast.expr(id).span, ast.expr(other));
        let written = text_at(self.analysis, other.span);
        let replacement = match (value == is_equal, &other.kind) {
            (true, _) => written.to_owned(),
            (false, ExprKind::Variable(_) | ExprKind::Call(_) | ExprKind::Paren(_) | ExprKind::Bool(_)) => {
                format!("not {written}")
            }
            (false, _) => format!("not ({written})"),
        };
        let message = match value == is_equal {
            true => format!("comparing with `{value}` adds nothing"),
            false => format!("comparing with `{value}` is a longer `not`"),
        };
        let warning = Diagnostic::warning(&codes::COMPARISON_WITH_BOOL, span, message);
        let help = format!("write `{replacement}`");
        // As a part of another operation what is written tighter may need parentheses.
        self.warn(match is_operand {
            false => warning.fix(help, span, replacement),
            true => warning.help(help),
        });
    }

    /// Whether the same stands at two places, however it is laid out. Long ones mostly differ soon.
    fn is_same_text(&self, one: Span, other: Span) -> bool {
        words(self.analysis, one).eq(words(self.analysis, other))
    }
}

/// The words of a place.
fn words(analysis: &Analysis, span: Span) -> impl Iterator<Item = &str> {
    analysis.parsed(span.file).into_iter().flat_map(move |parsed| {
        let tokens = &parsed.tokens;
        (tokens.at(span.start)..tokens.len())
            .take_while(move |index| tokens.range(*index).start < span.end)
            .filter(move |index| !tokens.kind(*index).is_trivia())
            .filter_map(move |index| {
                let range = tokens.range(index);
                parsed.text.get(range.start as usize..range.end as usize)
            })
    })
}

/// Which expressions are operands of others.
fn operands(ast: &Ast) -> Vec<bool> {
    let mut operands = vec![false; ast.expr_count()];
    for id in (0..ast.expr_count() as u32).map(ExprId) {
        let kind = &ast.expr(id).kind;
        if matches!(
            kind,
            ExprKind::Operator { .. }
                | ExprKind::Not(_)
                | ExprKind::In { .. }
                | ExprKind::Lookup { .. }
                | ExprKind::StructLookup { .. }
                | ExprKind::StructLookupOptional { .. }
                | ExprKind::Except { .. }
        ) {
            kind.for_each_child(|child| operands[child.index()] = true);
        }
    }
    operands
}

/// The value of a condition that is written out.
fn truth(ast: &Ast, id: ExprId) -> Option<bool> {
    match &ast.expr(ast.without_parens(id)).kind {
        ExprKind::Bool(value) => Some(*value),
        ExprKind::Not(inner) => truth(ast, *inner).map(|value| !value),
        ExprKind::Operator {
            operator,
            left,
            right,
            ..
        } => match (operator, truth(ast, *left), truth(ast, *right)) {
            (Operator::And, Some(false), _) | (Operator::And, _, Some(false)) => Some(false),
            (Operator::Or, Some(true), _) | (Operator::Or, _, Some(true)) => Some(true),
            (Operator::And, Some(true), Some(true)) => Some(true),
            (Operator::Or, Some(false), Some(false)) => Some(false),
            (Operator::Equal, Some(left), Some(right)) => Some(left == right),
            (Operator::NotEqual, Some(left), Some(right)) => Some(left != right),
            _ => None,
        },
        _ => None,
    }
}
