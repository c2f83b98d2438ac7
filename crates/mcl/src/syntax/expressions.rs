//! Expressions: operators by precedence climbing, the rest by descent.

use setpoint_diagnostics::Span;

use super::ast::{
    Arguments, Call, Callee, Expr, ExprId, ExprKind, Function, IfExpr, MapEntry, Name, Operator, Parameter,
    Parameters, StructField,
};
use super::errors;
use super::lexer::check_number;
use super::parser::{Failed, Parser, Result};
use super::token::TokenKind as K;

const AN_EXPRESSION: &str = "an expression";

/// Precedence levels, lowest first. Postfix forms and `not` bind tighter than all of them.
mod level {
    pub(super) const EXCEPT: u8 = 1;
    pub(super) const OR: u8 = 2;
    pub(super) const AND: u8 = 3;
    pub(super) const COMPARISON: u8 = 4;
    pub(super) const SUM: u8 = 5;
    pub(super) const PRODUCT: u8 = 6;
}

/// What may stand between two operands.
#[derive(Clone, Copy)]
enum Infix {
    Operator(Operator),
    /// A minus that the lexer took for the sign of a number.
    MinusOfNumber,
    In,
    Except,
}

fn infix(kind: K) -> Option<(u8, Infix)> {
    let (level, operator) = match kind {
        K::Except => return Some((level::EXCEPT, Infix::Except)),
        K::In => return Some((level::COMPARISON, Infix::In)),
        K::IntegerNumber | K::FloatNumber => return Some((level::SUM, Infix::MinusOfNumber)),
        // Where it is not the older spelling of a default, it is reported.
        K::Or | K::Bars => (level::OR, Operator::Or),
        K::And => (level::AND, Operator::And),
        K::Less => (level::COMPARISON, Operator::Less),
        K::Greater => (level::COMPARISON, Operator::Greater),
        K::LessEqual => (level::COMPARISON, Operator::LessEqual),
        K::GreaterEqual => (level::COMPARISON, Operator::GreaterEqual),
        K::Equal => (level::COMPARISON, Operator::Equal),
        K::NotEqual => (level::COMPARISON, Operator::NotEqual),
        K::Plus => (level::SUM, Operator::Add),
        K::Minus => (level::SUM, Operator::Subtract),
        K::Star => (level::PRODUCT, Operator::Multiply),
        K::Slash => (level::PRODUCT, Operator::Divide),
        _ => return None,
    };
    Some((level, Infix::Operator(operator)))
}

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Result<ExprId> {
        self.binary(level::EXCEPT)
    }

    /// An expression with no operator outside of brackets that binds less than `minimum`.
    fn binary(&mut self, minimum: u8) -> Result<ExprId> {
        let mut left = self.unary()?;
        // With nothing but another default around it the older spelling groups like the newer one.
        if minimum == level::EXCEPT
            && let ExprKind::Except {
                left: lookup,
                right,
                old: true,
            } = self.ast.expr(left).kind
        {
            let (behind, before) = (self.span_of(lookup).end, self.span_of(right).start);
            self.replaceable_bars(behind, before);
        }
        while let Some((level, operator)) = infix(self.kind) {
            if level < minimum {
                break;
            }
            let operator_start = self.start;
            let right = match operator {
                Infix::MinusOfNumber => {
                    if !self.token_text().starts_with('-') {
                        break;
                    }
                    // The digits are an operand; what binds tighter than the minus may follow them.
                    self.split_minus();
                    self.right_side(level + 1)?
                }
                Infix::Operator(_) | Infix::In | Infix::Except => {
                    self.advance();
                    self.right_side(level + 1)?
                }
            };
            left = self.add_infix(operator, operator_start, left, right)?;
            if level == level::COMPARISON && infix(self.kind).is_some_and(|(next, _)| next == level) {
                return self.unexpected_because(
                    "the end of the comparison",
                    Some("comparisons do not chain; combine two of them with `and`, or add parentheses"),
                );
            }
        }
        Ok(left)
    }

    /// Explains `<<EOF`, and everything up to the line with that word.
    #[cold]
    fn here_document(&mut self, start: u32) {
        let end = self.end_of_here_document(self.end);
        let place = Span::new(self.file, start, end);
        let both = Span::new(self.file, start, self.end);
        self.explained.push((place, errors::here_document(both)));
    }

    fn right_side(&mut self, minimum: u8) -> Result<ExprId> {
        self.enter_operand()?;
        let right = self.binary(minimum)?;
        self.leave_operand();
        Ok(right)
    }

    fn add_infix(
        &mut self,
        operator: Infix,
        operator_start: u32,
        left: ExprId,
        right: ExprId,
    ) -> Result<ExprId> {
        let span = self.span_of(left).to(self.span_of(right));
        let (operator, length) = match operator {
            Infix::Operator(operator) => (operator, operator.text().len() as u32),
            Infix::MinusOfNumber => (Operator::Subtract, 1),
            Infix::In => return self.add(ExprKind::In { left, right }, span),
            Infix::Except => {
                return self.add(
                    ExprKind::Except {
                        left,
                        right,
                        old: false,
                    },
                    span,
                );
            }
        };
        let operator_span = Span::new(self.file, operator_start, operator_start + length);
        self.add(
            ExprKind::Operator {
                operator,
                operator_span,
                left,
                right,
            },
            span,
        )
    }

    fn unary(&mut self) -> Result<ExprId> {
        if !self.at(K::Not) {
            return self.postfix();
        }
        let start = self.start;
        self.advance();
        self.enter()?;
        let operand = self.unary()?;
        self.leave();
        self.add(ExprKind::Not(operand), self.since(start))
    }

    /// An operand with its lookups.
    fn postfix(&mut self) -> Result<ExprId> {
        let start = self.start;
        let mut base = self.primary()?;
        loop {
            match self.kind {
                K::LeftBracket => {
                    let index = self.index()?;
                    base = self.add(ExprKind::Lookup { base, index }, self.since(start))?;
                    if self.at(K::Bars) {
                        self.use_bars();
                        let right = self.default()?;
                        let span = self.since(start);
                        return self.add(
                            ExprKind::Except {
                                left: base,
                                right,
                                old: true,
                            },
                            span,
                        );
                    }
                }
                K::Arrow => {
                    self.advance();
                    if !self.at(K::Identifier) {
                        return self.unexpected("the name of a field");
                    }
                    let field = self.take_name();
                    let old = self.at(K::Bars);
                    if old {
                        self.use_bars();
                    } else if !self.accept(K::Except) {
                        base = self.add(ExprKind::StructLookup { base, field }, self.since(start))?;
                        continue;
                    }
                    let default = self.default()?;
                    if old {
                        let before = self.span_of(default).start;
                        self.replaceable_bars(field.span.end, before);
                    }
                    let span = self.since(start);
                    return self.add(
                        ExprKind::StructLookupOptional {
                            base,
                            field,
                            default,
                            old,
                        },
                        span,
                    );
                }
                _ => return Ok(base),
            }
        }
    }

    fn index(&mut self) -> Result<ExprId> {
        self.enter()?;
        self.open(K::LeftBracket, "`[`")?;
        let index = self.expression()?;
        self.close(K::RightBracket, "`]`")?;
        self.leave();
        Ok(index)
    }

    /// What follows the `<|>` that belongs to the lookup before it: everything but a further `<|>`.
    fn default(&mut self) -> Result<ExprId> {
        self.right_side(level::OR)
    }

    fn primary(&mut self) -> Result<ExprId> {
        match self.kind {
            K::True | K::False => {
                let kind = ExprKind::Bool(self.at(K::True));
                self.simple(kind)
            }
            K::String => {
                let text = self.slice(self.start + 1, self.end - 1);
                // Texts seldom repeat; to look for an equal one costs more than to keep both.
                let kind = ExprKind::String(text.into());
                self.simple(kind)
            }
            K::IntegerNumber | K::FloatNumber => self.number(),
            K::Dollar => self.variable_or_call(),
            K::Identifier | K::Map | K::Collect => self.function_call(),
            K::LeftBracket | K::LeftBrace | K::LeftParen | K::Struct | K::Func | K::If => {
                self.enter()?;
                let nested = match self.kind {
                    K::LeftBracket => self.list(),
                    K::LeftBrace => self.map(),
                    K::LeftParen => self.parenthesised(),
                    K::Struct => self.struct_literal(),
                    K::Func => self.lambda(),
                    _ => self.if_expression(),
                }?;
                self.leave();
                Ok(nested)
            }
            K::Less if self.following() == [K::Less] => {
                let start = self.start;
                self.advance();
                self.here_document(start);
                self.unexpected(AN_EXPRESSION)
            }
            _ => self.unexpected(AN_EXPRESSION),
        }
    }

    fn simple(&mut self, kind: ExprKind) -> Result<ExprId> {
        let span = self.here();
        self.advance();
        self.add(kind, span)
    }

    fn number(&mut self) -> Result<ExprId> {
        let text = self.token_text();
        // What the lexer could not read it has reported; a number whose minus was split off is read only here.
        if self.previous == K::Minus
            && self.glued()
            && !text.starts_with('-')
            && let Some(diagnostic) = check_number(text, self.here())
        {
            self.diagnostics.push(diagnostic);
        }
        let kind = if self.at(K::FloatNumber) {
            ExprKind::Float(text.parse().unwrap_or(0.0))
        } else {
            ExprKind::Integer(text.parse().unwrap_or(0))
        };
        self.simple(kind)
    }

    fn list(&mut self) -> Result<ExprId> {
        let start = self.open(K::LeftBracket, "`[`")?;
        let elements = self.sequence(K::RightBracket, "`,` or `]`", Parser::expression)?;
        self.add(ExprKind::List(elements), self.since(start))
    }

    fn map(&mut self) -> Result<ExprId> {
        let start = self.open(K::LeftBrace, "`{`")?;
        let entries = self.sequence(K::RightBrace, "`,` or `}`", |parser| {
            let key = parser.expression()?;
            parser.expect(K::Rocket, "`=>`")?;
            Ok(MapEntry {
                key,
                value: parser.expression()?,
            })
        })?;
        self.add(ExprKind::Map(entries), self.since(start))
    }

    fn struct_literal(&mut self) -> Result<ExprId> {
        let start = self.start;
        self.advance();
        self.open(K::LeftBrace, "`{`")?;
        let fields = self.sequence(K::RightBrace, "`,` or `}`", |parser| {
            if !parser.at(K::Identifier) {
                let quoted = "the fields of a struct are bare names: `struct{a => 1}`";
                let help = parser.at(K::String).then_some(quoted);
                return parser.unexpected_because("the name of a field", help);
            }
            let name = parser.take_name();
            parser.expect(K::Rocket, "`=>`")?;
            Ok(StructField {
                name,
                value: parser.expression()?,
            })
        })?;
        self.add(ExprKind::Struct(fields), self.since(start))
    }

    fn parenthesised(&mut self) -> Result<ExprId> {
        let start = self.open(K::LeftParen, "`(`")?;
        if self.at(K::RightParen) {
            let help = "parentheses hold one expression; a call is not a statement";
            return self.unexpected_because(AN_EXPRESSION, Some(help));
        }
        let inner = self.expression()?;
        self.close(K::RightParen, "`)`")?;
        if self.at(K::Rocket) && matches!(self.ast.expr(inner).kind, ExprKind::Variable(_)) {
            let help = "a function as a value is `func($x) { $x + 1 }`";
            return self.unexpected_because("the end of the expression", Some(help));
        }
        self.add(ExprKind::Paren(inner), self.since(start))
    }

    fn variable_or_call(&mut self) -> Result<ExprId> {
        let start = self.start;
        self.advance();
        let name = self.dotted_name("the name of a variable")?;
        if self.at(K::LeftParen) {
            return self.call(Callee::Variable(name), start);
        }
        self.add(ExprKind::Variable(name), self.since(start))
    }

    fn function_call(&mut self) -> Result<ExprId> {
        let start = self.start;
        let name = self.dotted_name("the name of a function")?;
        if !self.at(K::LeftParen) {
            // The lexer, or the look at all `||` afterwards, reports these.
            if !matches!(self.kind, K::Error | K::Bars) {
                let (found, open) = (self.first_column(), self.innermost());
                let before = self.slice(start.saturating_sub(3), start);
                let error = if before.trim_end().ends_with("{{") {
                    errors::template_outside(name.span, &name.text, found)
                } else {
                    errors::bare_word(name.span, &name.text, found, self.kind, open)
                };
                self.report(error);
            }
            return Err(Failed);
        }
        self.call(Callee::Function(name), start)
    }

    fn call(&mut self, callee: Callee, start: u32) -> Result<ExprId> {
        self.enter()?;
        let arguments = self.arguments()?;
        self.leave();
        let call = self.add(
            ExprKind::Call(Box::new(Call { callee, arguments })),
            self.since(start),
        )?;
        if self.at(K::LeftParen) {
            return self.unexpected_because(
                "the end of the call",
                Some("the result of a call cannot be called; bind it to a variable first"),
            );
        }
        Ok(call)
    }

    pub(super) fn arguments(&mut self) -> Result<Arguments> {
        let start = self.open(K::LeftParen, "`(`")?;
        let items = self.sequence(K::RightParen, "`,` or `)`", Parser::expression)?;
        Ok(Arguments {
            items,
            span: self.since(start),
        })
    }

    fn lambda(&mut self) -> Result<ExprId> {
        let start = self.start;
        self.advance();
        let function = self.function_rest()?;
        let span = self.since(start);
        self.check_function_types(&function, span);
        let lambda = self.add(ExprKind::Lambda(Box::new(function)), span)?;
        if self.at(K::LeftParen) {
            return self.call(Callee::Lambda(lambda), start);
        }
        Ok(lambda)
    }

    /// Parameters, result type and body.
    pub(super) fn function_rest(&mut self) -> Result<Function> {
        let parameters = self.parameters()?;
        let Ok(result) = self.result_type() else {
            return self.keep_parameters(parameters);
        };
        let Ok((body, body_span)) = self.braced("`{` and the function's body") else {
            return self.keep_parameters(parameters);
        };
        Ok(Function {
            parameters,
            result,
            body,
            body_span,
        })
    }

    /// Keeps the parameters of a function that does not parse; they replace those of a lambda in it.
    #[cold]
    fn keep_parameters(&mut self, parameters: Parameters) -> Result<Function> {
        self.kept.parameters = Some(parameters);
        Err(Failed)
    }

    /// One expression in braces, with newlines around it.
    fn braced(&mut self, expected: &'static str) -> Result<(ExprId, Span)> {
        let start = self.open(K::LeftBrace, expected)?;
        self.skip_newlines();
        if self.at(K::RightBrace) {
            let help = "a function or branch is one expression, which is its value";
            return self.unexpected_because(AN_EXPRESSION, Some(help));
        }
        let body = self.expression()?;
        self.skip_newlines();
        if self.at(K::Equals) {
            let help = "a function or branch is one expression; bind variables outside of it, or put the expression in place of the name";
            return self.unexpected_because("`}`", Some(help));
        }
        self.close(K::RightBrace, "`}`")?;
        Ok((body, self.since(start)))
    }

    pub(super) fn parameters(&mut self) -> Result<Parameters> {
        let start = self.open(K::LeftParen, "`(` and the parameters")?;
        let items = self.sequence(K::RightParen, "`,` or `)`", |parser| {
            let start = parser.start;
            if !parser.at(K::Dollar) {
                return parser.unexpected("a parameter, as in `$name` or `$name int`");
            }
            let name = parser.variable_name()?;
            let annotation = parser.optional_type()?;
            Ok(Parameter {
                name,
                annotation,
                span: parser.since(start),
            })
        })?;
        Ok(Parameters {
            items,
            span: self.since(start),
        })
    }

    fn if_expression(&mut self) -> Result<ExprId> {
        let start = self.start;
        self.advance();
        let condition = self.expression()?;
        self.no_assignment()?;
        let (then_branch, then_span) = self.braced("`{`")?;
        if !self.at(K::Else) {
            return self.unexpected_because(
                "`else`",
                Some("an `if` expression needs both branches; `else` stands on the line of the `}` before"),
            );
        }
        self.advance();
        let else_if = self.at(K::If);
        let (else_branch, else_span) = if else_if {
            self.enter()?;
            let inner = self.if_expression()?;
            self.leave();
            (inner, self.span_of(inner))
        } else {
            self.braced("`{`")?
        };
        let branches = IfExpr {
            condition,
            then_branch,
            then_span,
            else_branch,
            else_span,
            else_if,
        };
        self.add(ExprKind::If(Box::new(branches)), self.since(start))
    }

    /// Refuses `if $x = 1`.
    pub(super) fn no_assignment(&mut self) -> Result<()> {
        if !self.at(K::Equals) {
            return Ok(());
        }
        let error = errors::assignment_in_condition(self.here());
        self.report(error);
        Err(Failed)
    }

    /// `$name`
    pub(super) fn variable_name(&mut self) -> Result<Name> {
        self.expect(K::Dollar, "`$`")?;
        if !self.kind.is_name() {
            return self.unexpected("the name of a variable");
        }
        Ok(self.take_name())
    }

    /// Names joined by dots. White space between them is no part of the name. Behind a dot a reserved word is a name too:
    /// libraries have functions of such names.
    pub(super) fn dotted_name(&mut self, expected: &'static str) -> Result<Name> {
        if !self.kind.is_name() {
            return self.unexpected(expected);
        }
        self.joined_name(K::Dot, expected, |kind| kind.is_name() || kind.is_word())
    }

    /// The current token, which is a part of the name, and all further parts.
    pub(super) fn joined_name(
        &mut self,
        separator: K,
        expected: &'static str,
        is_part: impl Fn(K) -> bool,
    ) -> Result<Name> {
        let start = self.start;
        // Only a name with white space in it has to be put together.
        let mut joined: Option<String> = None;
        self.advance();
        while self.at(separator) {
            let before = self.since(start);
            let glued = self.glued();
            self.advance();
            if !is_part(self.kind) {
                return self.unexpected(expected);
            }
            if joined.is_none() && !(glued && self.glued()) {
                joined = Some(self.slice(before.start, before.end).to_owned());
            }
            if let Some(joined) = &mut joined {
                joined.push_str(separator.text().unwrap_or_default());
                joined.push_str(self.token_text());
            }
            self.advance();
        }
        let span = self.since(start);
        let text = match joined {
            Some(joined) => self.intern(&joined),
            None => self.intern(self.slice(span.start, span.end)),
        };
        Ok(Name { text, span })
    }

    /// The elements between an opening bracket, which is taken, and the closing one, which is taken here.
    ///
    /// On one line they are separated by commas; a newline directly behind the bracket makes it one element a
    /// line, each with a comma. The last comma is optional in both.
    pub(super) fn sequence<T>(
        &mut self,
        close: K,
        expected: &'static str,
        mut element: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut elements = Vec::new();
        if self.at(K::Newline) {
            loop {
                self.skip_newlines();
                if self.at(close) {
                    break;
                }
                elements.push(element(self)?);
                if self.accept(K::Comma) {
                    if !self.at(K::Newline) {
                        return self.unexpected_because(
                            "the end of the line",
                            Some("behind a bracket that ends its line there is one element a line"),
                        );
                    }
                } else if !self.at(K::Newline) || self.after_newlines() != close {
                    let help = "each line of a list of several lines ends in a comma";
                    return self.unexpected_because("`,`", self.at(K::Newline).then_some(help));
                }
            }
        } else {
            while !self.at(close) {
                elements.push(element(self)?);
                if !self.accept(K::Comma) {
                    break;
                }
            }
        }
        self.close(close, expected)?;
        Ok(elements)
    }

    /// Where a missing comma after a value is best shown: its last operand if it has operators, else its first
    /// token.
    pub(super) fn last_operand(&self, mut id: ExprId) -> Span {
        loop {
            let expr: &Expr = &self.ast.exprs[id.index()];
            match &expr.kind {
                ExprKind::Operator { right, .. }
                | ExprKind::In { right, .. }
                | ExprKind::Except { right, .. }
                | ExprKind::Not(right)
                | ExprKind::StructLookupOptional { default: right, .. } => id = *right,
                _ => return self.first_token(expr.span),
            }
        }
    }

    /// The first token of a span.
    fn first_token(&self, span: Span) -> Span {
        let text = self.slice(span.start, span.end);
        let length = match text.as_bytes().first() {
            Some(b'"') | None => span.end - span.start,
            Some(b'$') => {
                let name = text[1..].find(|c: char| !(c.is_ascii_alphanumeric() || "_. \t".contains(c)));
                name.map_or(span.end - span.start, |length| length as u32 + 1)
            }
            Some(byte) if byte.is_ascii_alphanumeric() || *byte == b'-' => {
                let word = text[1..].find(|c: char| !(c.is_ascii_alphanumeric() || "_.".contains(c)));
                word.map_or(span.end - span.start, |length| length as u32 + 1)
            }
            Some(_) => 1,
        };
        Span {
            end: span.start + length,
            ..span
        }
    }
}
