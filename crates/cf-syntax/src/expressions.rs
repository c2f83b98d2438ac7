//! Expressions. From loose to tight: `? :`, `or`, `and`, comparisons, `+ -`, `* / %`, `**`, `not`, `in`, `is defined`.
//!
//! All operators associate to the left, `**` too, and those of one level make one node. A `.` or `[` goes on only behind a reference (a
//! `[` also behind a lookup): behind anything else it begins what follows.

use rustc_hash::FxHashMap;
use setpoint_diagnostics::Span;

use crate::ast::{
    Argument, Comprehension, DictKey, Expression, ExpressionKind as E, MapLookup, Name, Operator, Path,
    Reference,
};
use crate::errors;
use crate::parser::{Failed, Parser, Result};
use crate::strings;
use crate::token::TokenKind as K;

/// What takes arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    Call,
    Constructor,
    Lookup,
}

impl Parser<'_> {
    /// An expression that stands in no other.
    pub(super) fn expression(&mut self) -> Result<Expression> {
        self.bounded(Parser::inner_expression)
    }

    /// An expression in another one, or a whole one before it is known to be small enough.
    pub(super) fn inner_expression(&mut self) -> Result<Expression> {
        self.nested(|parser| {
            let condition = parser.operators(1)?;
            parser.conditional(condition)
        })
    }

    /// `? a : b` behind a condition, if it is there.
    fn conditional(&mut self, condition: Expression) -> Result<Expression> {
        if !self.accept(K::Question) {
            return Ok(condition);
        }
        let then = self.inner_expression()?;
        self.expect(K::Colon, "`:` and what it is otherwise")?;
        let otherwise = self.inner_expression()?;
        Ok(Expression {
            span: condition.span.to(otherwise.span),
            kind: E::Conditional {
                condition: Box::new(condition),
                then: Box::new(then),
                otherwise: Box::new(otherwise),
            },
        })
    }

    /// Operators of a level or tighter ones.
    fn operators(&mut self, loosest: u8) -> Result<Expression> {
        let mut left = self.prefix()?;
        while let Some((level, _)) = binary(self.kind) {
            if level < loosest {
                break;
            }
            let mut rest = Vec::new();
            while let Some((_, operator)) = binary(self.kind).filter(|(found, _)| *found == level) {
                let place = self.bump();
                let operand = self.nested(|parser| parser.operators(level + 1))?;
                rest.push((operator, place, operand));
            }
            left = chain(left, rest);
        }
        Ok(left)
    }

    /// `not`, which takes all of `a in b` with it.
    fn prefix(&mut self) -> Result<Expression> {
        if !self.at(K::Not) {
            return self.memberships(false);
        }
        let start = self.bump();
        let operand = self.nested(|parser| match parser.at(K::Not) {
            true => parser.prefix(),
            false => parser.memberships(true),
        })?;
        if self.at(K::Not) {
            return self.unexpected_with("an operator", Some("write parentheses: `not (a not in b)`"));
        }
        Ok(Expression {
            span: start.to(operand.span),
            kind: E::Not(Box::new(operand)),
        })
    }

    /// `a in b not in c`. Behind a `not`, `not in` is refused by who asks.
    fn memberships(&mut self, behind_not: bool) -> Result<Expression> {
        let first = self.primary()?;
        let mut rest = Vec::new();
        loop {
            let (operator, place) = match self.kind {
                K::In => (Operator::In, self.bump()),
                K::Not if !behind_not => {
                    let start = self.bump();
                    let end = self.expect(K::In, "`in`")?;
                    (Operator::NotIn, start.to(end))
                }
                _ => return Ok(chain(first, rest)),
            };
            let operand = match self.at(K::Not) {
                true => self.nested(Parser::prefix)?,
                false => self.primary()?,
            };
            rest.push((operator, place, operand));
        }
    }

    fn primary(&mut self) -> Result<Expression> {
        if let Some(constant) = self.constant() {
            return constant;
        }
        let start = self.here();
        match self.kind {
            K::Identifier => {
                let name = self.take_name();
                self.named(name)
            }
            K::Capitalized => {
                let name = self.take_name();
                let entity = Path {
                    namespace: Vec::new(),
                    span: name.span,
                    name,
                };
                self.of_entity(entity)
            }
            K::LeftParenthesis => {
                self.bump();
                let inner = self.inner_expression()?;
                self.expect(K::RightParenthesis, "`)`")?;
                Ok(self.made(start, E::Parentheses(Box::new(inner))))
            }
            K::LeftBracket => self.list(),
            K::LeftBrace => self.dict(),
            K::Error => {
                self.bump();
                Ok(self.made(start, E::Missing))
            }
            kind if kind.is_keyword() && self.is_used_as_name() => self.keyword_as_name("an expression"),
            _ => self.unexpected("an expression"),
        }
    }

    /// Whether what follows a keyword would follow a name.
    fn is_used_as_name(&self) -> bool {
        let behind = self.ahead(1);
        !behind.first_on_line
            && matches!(
                behind.kind,
                K::Assign
                    | K::Dot
                    | K::Comma
                    | K::RightParenthesis
                    | K::RightBracket
                    | K::LeftBracket
                    | K::Is
            )
            || binary(behind.kind).is_some()
    }

    fn made(&self, start: Span, kind: E) -> Expression {
        Expression {
            kind,
            span: self.since(start),
        }
    }

    /// What begins with a small name: a variable with attributes, a call, or an entity of another namespace.
    fn named(&mut self, first: Name) -> Result<Expression> {
        let start = first.span;
        let path = self.namespace_from(first)?;
        if self.accept(K::Separator) {
            let entity = self.class_in(path);
            return self.of_entity(entity);
        }
        let mut reference = Reference {
            span: path.span,
            variable: path,
            attributes: Vec::new(),
        };
        while self.at(K::Dot) {
            if self.kind_ahead(1) == K::Capitalized {
                return self.entity_behind_dot(reference);
            }
            self.bump();
            let name = self.identifier("the name of an attribute")?;
            reference.span = start.to(name.span);
            reference.attributes.push(name);
        }
        match self.kind {
            K::LeftParenthesis => self.call(reference),
            K::LeftBracket => self.lookup(reference),
            K::Is => self.is_defined(reference),
            _ => Ok(Expression {
                span: reference.span,
                kind: E::Reference(reference),
            }),
        }
    }

    /// `a.b.C`, which is meant to be `a::b::C`.
    fn entity_behind_dot(&mut self, reference: Reference) -> Result<Expression> {
        self.bump();
        let start = reference.span;
        let entity = self.class_in(as_path(reference));
        let written = self.slice(self.since(start));
        self.report(errors::dot_in_namespace(entity.span, written));
        match self.kind {
            K::LeftParenthesis | K::LeftBracket => self.of_entity(entity),
            _ => Err(Failed),
        }
    }

    fn call(&mut self, reference: Reference) -> Result<Expression> {
        let start = reference.span;
        if let Some(method) = reference.attributes.last() {
            let first = &reference.variable;
            let diagnostic = match first.namespace.is_empty() && self.is_variable(&first.name.text) {
                true => {
                    let value = Span::new(self.file, start.start, method.span.start.saturating_sub(1));
                    errors::method(start, self.slice(value).trim_end(), &method.text)
                }
                false => errors::dot_in_namespace(start, self.slice(start)),
            };
            self.report(diagnostic);
        }
        let arguments = self.arguments(Takes::Call)?;
        let function = as_path(reference);
        Ok(self.made(start, E::Call { function, arguments }))
    }

    /// Whether something in the file assigns a variable of this name, or goes through a list with it.
    fn is_variable(&self, name: &str) -> bool {
        let is_named = |at: usize| {
            let token = self.tokens[at];
            token.kind == K::Identifier && self.slice(token.span(self.file)) == name
        };
        let is_declared = |at: usize| {
            let is_assigned = self.tokens[at].first_on_line
                && self.tokens.get(at + 1).is_some_and(|next| next.kind == K::Assign);
            is_assigned || at > 0 && self.tokens[at - 1].kind == K::For
        };
        name == "self" || (0..self.tokens.len()).any(|at| is_named(at) && is_declared(at))
    }

    /// A constructor, or a lookup in an index.
    fn of_entity(&mut self, entity: Path) -> Result<Expression> {
        let start = entity.span;
        let kind = match self.kind {
            K::LeftParenthesis => {
                let arguments = self.arguments(Takes::Constructor)?;
                E::Constructor { entity, arguments }
            }
            K::LeftBracket => {
                let arguments = self.arguments(Takes::Lookup)?;
                E::IndexLookup { entity, arguments }
            }
            _ => return self.unexpected("`(` or `[` behind the name of an entity"),
        };
        Ok(self.made(start, kind))
    }

    fn is_defined(&mut self, reference: Reference) -> Result<Expression> {
        if reference.attributes.is_empty() && !reference.variable.namespace.is_empty() {
            return self.unexpected_with(
                "an operator",
                Some("`is defined` stands behind a name without a namespace, or an attribute"),
            );
        }
        let start = reference.span;
        self.defined()?;
        Ok(self.made(start, E::IsDefined(reference)))
    }

    /// `is defined`.
    fn defined(&mut self) -> Result<()> {
        self.bump();
        self.expect(K::Defined, "`defined`")?;
        Ok(())
    }

    /// `[…]` behind a reference.
    fn lookup(&mut self, reference: Reference) -> Result<Expression> {
        let start = reference.span;
        let is_selector = match self.kind_ahead(1) {
            K::RightBracket | K::DoubleStar => true,
            K::Identifier => self.kind_ahead(2) == K::Assign,
            _ => false,
        };
        if is_selector && !reference.attributes.is_empty() {
            let arguments = self.arguments(Takes::Lookup)?;
            let relation = reference;
            return Ok(self.made(start, E::SelectorLookup { relation, arguments }));
        }
        let mut expression = Expression {
            kind: E::Reference(reference),
            span: start,
        };
        let mut count = 0;
        while self.at(K::LeftBracket) {
            self.bump();
            count += 1;
            self.levels(count, start)?;
            let key = self.inner_expression()?;
            if self.at(K::Assign) {
                return self.unexpected_with("`]`", Some("instances are looked up in an index of an entity, `E[name=…]`, or of a relation, `x.relation[name=…]`"));
            }
            self.expect(K::RightBracket, "`]`")?;
            let lookup = MapLookup {
                dict: expression,
                key,
            };
            expression = self.made(start, E::MapLookup(Box::new(lookup)));
        }
        if self.at(K::Is) {
            self.defined()?;
            let span = self.since(start);
            if let E::MapLookup(lookup) = expression.kind {
                expression.kind = E::LookupIsDefined(lookup);
                expression.span = span;
            }
        }
        Ok(expression)
    }

    /// What stands in the brackets behind a function, an entity or a relation.
    fn arguments(&mut self, takes: Takes) -> Result<Vec<Argument>> {
        let (closing, expected) = match takes {
            Takes::Lookup => (K::RightBracket, "`,` or `]`"),
            Takes::Call | Takes::Constructor => (K::RightParenthesis, "`,` or `)`"),
        };
        self.bump();
        let mut arguments = Vec::new();
        while !self.at(closing) {
            arguments.push(self.argument(takes)?);
            if !self.accept(K::Comma) && !self.at(closing) {
                return self.unexpected(expected);
            }
        }
        self.bump();
        if takes != Takes::Lookup {
            self.check_keywords(takes, &arguments);
        }
        Ok(arguments)
    }

    fn argument(&mut self, takes: Takes) -> Result<Argument> {
        if self.at(K::DoubleStar) {
            let stars = self.bump();
            return Ok(Argument::Dict(stars, self.inner_expression()?));
        }
        if self.kind_ahead(1) == K::Assign {
            if self.kind.is_keyword() {
                let diagnostic = errors::keyword_as_name(self.kind, self.here());
                return self.fail(diagnostic);
            }
            if self.at(K::Identifier) {
                let name = self.take_name();
                self.check_hyphen("argument", &name);
                self.bump();
                return Ok(Argument::Keyword(name, self.inner_expression()?));
            }
        }
        if takes == Takes::Lookup {
            return self.unexpected("the name of an attribute, with `=` and its value");
        }
        Ok(Argument::Positional(self.inner_expression()?))
    }

    /// No keyword is given twice.
    fn check_keywords(&mut self, takes: Takes, arguments: &[Argument]) {
        let mut seen: FxHashMap<&str, Span> = FxHashMap::default();
        for argument in arguments {
            let Argument::Keyword(name, _) = argument else {
                continue;
            };
            if let Some(first) = seen.insert(&name.text, name.span) {
                self.report(errors::duplicate_keyword(name, first, takes == Takes::Call));
            }
        }
    }

    /// A list or a comprehension.
    fn list(&mut self) -> Result<Expression> {
        let start = self.bump();
        let mut elements = Vec::new();
        while !self.at(K::RightBracket) {
            let element = self.inner_expression()?;
            if self.at(K::For) && elements.is_empty() {
                return self.comprehension(start, element);
            }
            elements.push(element);
            if !self.accept(K::Comma) && !self.at(K::RightBracket) {
                return self.unexpected("`,` or `]`");
            }
        }
        self.bump();
        Ok(self.made(start, E::List(elements)))
    }

    /// What follows the value of a comprehension.
    fn comprehension(&mut self, start: Span, value: Expression) -> Result<Expression> {
        let mut loops = Vec::new();
        while self.accept(K::For) {
            let variable = self.identifier("the name of a variable")?;
            self.expect(K::In, "`in`")?;
            loops.push((variable, self.inner_expression()?));
        }
        let mut conditions = Vec::new();
        while self.accept(K::If) {
            conditions.push(self.inner_expression()?);
        }
        self.expect(K::RightBracket, "`for`, `if` or `]`")?;
        let comprehension = Comprehension {
            value,
            loops,
            conditions,
        };
        Ok(self.made(start, E::Comprehension(Box::new(comprehension))))
    }

    /// `{"k": e}`.
    pub(super) fn dict(&mut self) -> Result<Expression> {
        let start = self.bump();
        let mut entries: Vec<(DictKey, Expression)> = Vec::new();
        while !self.at(K::RightBrace) {
            let key = self.key()?;
            self.expect(K::Colon, "`:` behind the key")?;
            let value = self.inner_expression()?;
            entries.push((key, value));
            if !self.accept(K::Comma) && !self.at(K::RightBrace) {
                return self.unexpected("`,` or `}`");
            }
        }
        self.bump();
        self.check_keys(&entries);
        Ok(self.made(start, E::Dict(entries)))
    }

    fn key(&mut self) -> Result<DictKey> {
        let span = self.here();
        let is_raw = self.at(K::RawString);
        let is_word = self.kind.is_name() || matches!(self.kind, K::Integer | K::Float);
        if is_word && self.kind_ahead(1) == K::Colon {
            let written = self.slice(span);
            self.report(errors::key_without_quotes(span, written));
            self.bump();
            let text = written.into();
            return Ok(DictKey { text, span });
        }
        if !is_raw && !self.at(K::String) {
            return self.unexpected("a key in quotes");
        }
        let text = self.decoded().text;
        if !is_raw && strings::has_field(&text) {
            self.report(errors::field_in_key(span));
        }
        Ok(DictKey {
            text: text.into(),
            span,
        })
    }

    fn check_keys(&mut self, entries: &[(DictKey, Expression)]) {
        let mut seen: FxHashMap<&str, Span> = FxHashMap::default();
        for (key, value) in entries {
            if let Some(first) = seen.insert(&key.text, key.span) {
                self.report(errors::duplicate_key(key, first, value.span));
            }
        }
    }
}

/// `a.b.c` as `a::b::c`.
fn as_path(reference: Reference) -> Path {
    let mut path = reference.variable;
    for name in reference.attributes {
        path.namespace.push(std::mem::replace(&mut path.name, name));
    }
    path.span = reference.span;
    path
}

fn chain(first: Expression, rest: Vec<(Operator, Span, Expression)>) -> Expression {
    let Some((_, _, last)) = rest.last() else {
        return first;
    };
    Expression {
        span: first.span.to(last.span),
        kind: E::Operators {
            first: Box::new(first),
            rest,
        },
    }
}

/// The level of an operator, the loosest first, and which it is.
fn binary(kind: K) -> Option<(u8, Operator)> {
    Some(match kind {
        K::Or => (1, Operator::Or),
        K::And => (2, Operator::And),
        K::Equal => (3, Operator::Equal),
        K::NotEqual => (3, Operator::NotEqual),
        K::Less => (3, Operator::Less),
        K::LessOrEqual => (3, Operator::LessOrEqual),
        K::Greater => (3, Operator::Greater),
        K::GreaterOrEqual => (3, Operator::GreaterOrEqual),
        K::Plus => (4, Operator::Add),
        K::Minus => (4, Operator::Subtract),
        K::Star => (5, Operator::Multiply),
        K::Slash => (5, Operator::Divide),
        K::Percent => (5, Operator::Remainder),
        K::DoubleStar => (6, Operator::Power),
        _ => return None,
    })
}
