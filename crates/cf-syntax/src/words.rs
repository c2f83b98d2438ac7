//! Literals: from tokens to values.

use std::sync::Arc;

use setpoint_diagnostics::Diagnostic;
use setpoint_diagnostics::Span;

use crate::ast::{Doc, Expression, ExpressionKind, Literal, Regex};
use crate::codes::{self, class};
use crate::errors;
use crate::format_strings;
use crate::parser::{Parser, Result};
use crate::pattern;
use crate::strings::{self, Decoded};
use crate::token::TokenKind as K;

impl Parser<'_> {
    /// A text that documents something, if one stands here.
    pub(super) fn doc(&mut self) -> Option<Doc> {
        if !self.at(K::MultilineString) {
            return None;
        }
        let span = self.here();
        let text = self.decoded().text.into();
        Some(Doc { text, span })
    }

    /// Takes the string that is the current token.
    pub(super) fn decoded(&mut self) -> Decoded {
        let (kind, token) = (self.kind, self.here());
        let (before, behind) = match kind {
            K::MultilineString => (3, 3),
            K::RawString | K::FormatString => (2, 1),
            _ => (1, 1),
        };
        let inside = Span::new(self.file, token.start + before, token.end - behind);
        let written = self.slice(inside);
        let mut found = Vec::new();
        let decoded = match kind {
            K::RawString => strings::raw(written, inside.start, self.file),
            _ => strings::decode(written, inside.start, self.file, token, &mut found),
        };
        self.bump();
        found.into_iter().for_each(|diagnostic| self.report(diagnostic));
        decoded
    }

    /// A literal, if one stands here.
    pub(super) fn constant(&mut self) -> Option<Result<Expression>> {
        let span = self.here();
        let literal = |literal| {
            Some(Ok(Expression {
                kind: ExpressionKind::Literal(literal),
                span,
            }))
        };
        match self.kind {
            K::True | K::False => {
                let value = self.at(K::True);
                self.bump();
                literal(Literal::Bool(value))
            }
            K::Null => {
                self.bump();
                literal(Literal::Null)
            }
            K::Integer => {
                let value = self.integer();
                literal(Literal::Int(value))
            }
            K::Float => {
                let value = self.slice(span).parse().unwrap_or(f64::NAN);
                self.bump();
                literal(Literal::Float(value))
            }
            K::RawString => {
                let text = self.decoded().text;
                literal(Literal::Text(text.into()))
            }
            K::String | K::MultilineString => {
                let decoded = self.decoded();
                match strings::fields(&decoded, &mut |name| self.intern(name)) {
                    Some(parts) => Some(Ok(Expression {
                        kind: ExpressionKind::Interpolated(parts),
                        span,
                    })),
                    None => literal(Literal::Text(decoded.text.into())),
                }
            }
            K::FormatString => {
                let decoded = self.decoded();
                let kind = match format_strings::parts(&decoded, &mut |name| self.intern(name)) {
                    Ok(parts) => ExpressionKind::Format(parts),
                    Err(diagnostic) => {
                        self.report(*diagnostic);
                        ExpressionKind::Missing
                    }
                };
                Some(Ok(Expression { kind, span }))
            }
            K::Regex => {
                let kind = self
                    .regex()
                    .map_or(ExpressionKind::Missing, ExpressionKind::Regex);
                Some(Ok(Expression { kind, span }))
            }
            _ => None,
        }
    }

    /// Takes the whole number that is the current token.
    pub(super) fn integer(&mut self) -> i64 {
        let span = self.bump();
        let written = self.slice(span);
        written.parse().unwrap_or_else(|_| {
            self.report(
                Diagnostic::error(&codes::UNEXPECTED, span, "this number does not fit an `int`")
                    .label(format!("from {} to {}", i64::MIN, i64::MAX))
                    .of_class(class::PARSER),
            );
            0
        })
    }

    /// Takes the regular expression that is the current token; none if it is malformed, which is reported.
    pub(super) fn regex(&mut self) -> Option<Regex> {
        let token = self.bump();
        let slash = self.slice(token).find('/').unwrap_or(0) as u32;
        let span = Span::new(self.file, token.start + slash, token.end);
        let pattern = self.slice(Span::new(self.file, span.start + 1, span.end - 1));
        match pattern::compile(pattern) {
            Ok(_) => Some(Regex {
                pattern: Arc::from(pattern),
                span,
            }),
            Err(bad) => {
                self.report(errors::bad_pattern(&bad, span));
                None
            }
        }
    }
}
