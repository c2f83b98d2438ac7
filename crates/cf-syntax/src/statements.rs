//! Statements, and the blocks that they stand in.

use setpoint_diagnostics::Span;

use crate::ast::{Assignment, Block, Expression, ExpressionKind, Statement, StatementKind};
use crate::errors;
use crate::parser::{Failed, Mark, Parser, Result};
use crate::token::TokenKind as K;

impl Parser<'_> {
    pub(super) fn statement(&mut self) -> Result<Statement> {
        let start = self.here();
        let kind = match self.kind {
            kind if kind.is_keyword() && matches!(self.kind_ahead(1), K::Assign | K::AddAssign) => {
                let diagnostic = errors::keyword_as_name(kind, start);
                return self.fail(diagnostic);
            }
            K::For => self.nested(Parser::for_statement)?,
            K::If => self.nested(Parser::if_statement)?,
            _ => self.assignment_or_expression()?,
        };
        Ok(Statement {
            kind,
            span: self.since(start),
        })
    }

    fn assignment_or_expression(&mut self) -> Result<StatementKind> {
        let expression = self.expression()?;
        let add = match self.kind {
            K::Assign => false,
            K::AddAssign => true,
            _ => return Ok(StatementKind::Expression(expression)),
        };
        let ExpressionKind::Reference(target) = expression.kind else {
            return self.unexpected("a statement");
        };
        self.bump();
        let value = self.expression()?;
        if add && target.attributes.is_empty() {
            self.report(errors::add_to_variable(&target));
        }
        Ok(StatementKind::Assign(Assignment { target, add, value }))
    }

    fn for_statement(&mut self) -> Result<StatementKind> {
        let opener = self.mark();
        self.bump();
        let header = self.for_header();
        let header = self.header(opener, header)?;
        let body = self.block(opener);
        self.end(opener);
        let (variable, iterable) = header.ok_or(Failed)?;
        Ok(StatementKind::For {
            variable,
            iterable,
            body,
        })
    }

    fn for_header(&mut self) -> Result<(crate::ast::Name, Expression)> {
        let variable = self.identifier("the name of a variable")?;
        self.expect(K::In, "`in`")?;
        Ok((variable, self.expression()?))
    }

    fn if_statement(&mut self) -> Result<StatementKind> {
        let opener = self.mark();
        let mut branches = Vec::new();
        let mut otherwise = None;
        while self.at(K::If) || self.at(K::Elif) {
            let branch = self.mark();
            self.bump();
            let condition = self.expression();
            let condition = match self.header(branch, condition) {
                Ok(condition) => condition.unwrap_or(Expression {
                    kind: ExpressionKind::Missing,
                    span: self.here(),
                }),
                Err(Failed) if branches.is_empty() => return Err(Failed),
                Err(Failed) => break,
            };
            let block = self.block(opener);
            branches.push((condition, block));
            if self.at(K::If) {
                break;
            }
        }
        if self.at(K::Else) {
            let branch = self.mark();
            self.bump();
            let header = Ok(());
            if self.header(branch, header).is_ok() {
                otherwise = Some(self.block(opener));
            }
        }
        self.end(opener);
        Ok(StatementKind::If { branches, otherwise })
    }

    /// The `:` behind what begins a block. If that or the colon did not parse, goes to the block, and answers nothing; fails if there is
    /// none.
    pub(super) fn header<T>(&mut self, opener: Mark, parsed: Result<T>) -> Result<Option<T>> {
        let parsed = parsed.and_then(|parsed| self.expect(K::Colon, "`:`").map(|_| parsed));
        match parsed {
            Ok(parsed) => Ok(Some(parsed)),
            Err(Failed) if self.recover_header(opener) => Ok(None),
            Err(Failed) => Err(Failed),
        }
    }

    /// Statements up to what ends them, which is left.
    pub(super) fn block(&mut self, opener: Mark) -> Block {
        self.blocks.push(opener.position);
        let start = self.here();
        let mut statements: Vec<Statement> = Vec::new();
        let in_if = self.blocks.iter().any(|block| self.tokens[*block].kind == K::If);
        loop {
            let mark = self.mark();
            let is_name = matches!(self.kind_ahead(1), K::Assign | K::AddAssign);
            match self.kind {
                K::EndOfFile => break,
                K::End if !is_name => break,
                K::Else | K::Elif if in_if && !is_name => break,
                kind if kind.is_definition() && !is_name => {
                    if self.is_at_margin_of(opener) {
                        break;
                    }
                    self.definition_in_block(mark, false);
                }
                _ => match self.statement() {
                    Ok(statement) => statements.push(statement),
                    Err(Failed) => self.recover(mark),
                },
            }
        }
        self.blocks.pop();
        let span = match (statements.first(), statements.last()) {
            (Some(first), Some(last)) => first.span.to(last.span),
            _ => Span::new(self.file, start.start, start.start),
        };
        Block { statements, span }
    }

    /// Whether the current token begins a line that is indented no deeper than the one that opens a block.
    pub(super) fn is_at_margin_of(&self, opener: Mark) -> bool {
        self.token().first_on_line && self.column(self.position) <= self.column(opener.line_first)
    }

    /// Tells of a definition in a block or an entity, and goes on behind it.
    pub(super) fn definition_in_block(&mut self, mark: Mark, is_entity: bool) {
        let diagnostic = errors::definition_in_block(self.kind, self.here(), is_entity);
        self.report(diagnostic);
        let parsed = self.nested(|parser| parser.definition().map(|_| ()));
        if parsed.is_err() {
            self.recover(mark);
        }
    }

    /// The `end` of a block.
    pub(super) fn end(&mut self, opener: Mark) {
        if !self.at(K::End) {
            self.blocks.push(opener.position);
            let _: Result<()> = self.unexpected("`end`");
            self.blocks.pop();
            return;
        }
        let is_first = self.token().first_on_line && self.tokens[opener.position].first_on_line;
        if is_first && self.askew.is_none() && self.column(self.position) < self.column(opener.position) {
            self.askew = Some(opener.position);
        }
        self.bump();
    }
}
