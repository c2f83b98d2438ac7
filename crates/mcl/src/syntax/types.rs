//! Types as written in annotations, and those that no value can have.

use setpoint_diagnostics::{CodeInfo, Diagnostic, Span};

use super::ast::{ExprId, ExprKind, Function, Name, TypeArgument, TypeExpr, TypeField, TypeKind};
use super::codes;
use super::errors;
use super::parser::{Parser, Result};
use super::token::TokenKind as K;

const A_TYPE: &str = "a type";

impl Parser<'_> {
    /// A type, if one begins here.
    pub(super) fn optional_type(&mut self) -> Result<Option<TypeExpr>> {
        let begins = matches!(
            self.kind,
            K::Bool
                | K::Str
                | K::Int
                | K::Float
                | K::Variant
                | K::LeftBracket
                | K::Map
                | K::LeftBrace
                | K::Struct
                | K::Func
        );
        if begins {
            self.type_expr().map(Some)
        } else {
            Ok(None)
        }
    }

    /// The result type between the parameters and the body of a function. A brace there is the body, unless it
    /// clearly begins a map type in its older spelling.
    pub(super) fn result_type(&mut self) -> Result<Option<TypeExpr>> {
        if self.at(K::LeftBrace) {
            let [first, second] = self.following();
            let simple = matches!(first, K::Bool | K::Str | K::Int | K::Float);
            if !(simple && second == K::Colon) {
                return Ok(None);
            }
        }
        self.optional_type()
    }

    fn type_expr(&mut self) -> Result<TypeExpr> {
        self.enter()?;
        let start = self.start;
        let kind = match self.kind {
            K::Bool => self.simple_type(TypeKind::Bool),
            K::Str => self.simple_type(TypeKind::Str),
            K::Int => self.simple_type(TypeKind::Int),
            K::Float => self.simple_type(TypeKind::Float),
            K::Variant => self.simple_type(TypeKind::Variant),
            K::LeftBracket => {
                self.open(K::LeftBracket, A_TYPE)?;
                self.close(K::RightBracket, "`]`, as in the list type `[]str`")?;
                TypeKind::List(Box::new(self.type_expr()?))
            }
            K::Map => {
                self.advance();
                self.map_type()?
            }
            K::LeftBrace => self.map_type()?,
            K::Struct => self.struct_type()?,
            K::Func => self.func_type()?,
            _ => return self.unexpected(A_TYPE),
        };
        self.leave();
        Ok(TypeExpr {
            kind,
            span: self.since(start),
        })
    }

    fn simple_type(&mut self, kind: TypeKind) -> TypeKind {
        self.advance();
        kind
    }

    fn map_type(&mut self) -> Result<TypeKind> {
        self.open(K::LeftBrace, "`{`, as in the map type `map{str: int}`")?;
        let key = Box::new(self.type_expr()?);
        self.expect(K::Colon, "`:` between the types of keys and values")?;
        let value = Box::new(self.type_expr()?);
        self.close(K::RightBrace, "`}`")?;
        Ok(TypeKind::Map { key, value })
    }

    fn struct_type(&mut self) -> Result<TypeKind> {
        let start = self.start;
        self.advance();
        self.open(K::LeftBrace, "`{`, as in the struct type `struct{a str; b int}`")?;
        let mut fields = Vec::new();
        if !self.at(K::RightBrace) {
            loop {
                if !self.at(K::Identifier) {
                    return self.unexpected("the name of a field");
                }
                let name = self.take_name();
                let annotation = self.type_expr()?;
                fields.push(TypeField { name, annotation });
                if self.at(K::Comma) {
                    return self.unexpected_because(
                        "`;` or `}`",
                        Some("the fields of a struct type are separated by `;`"),
                    );
                }
                if !self.accept(K::Semicolon) {
                    break;
                }
            }
        }
        self.close(K::RightBrace, "`;` or `}`")?;
        let names = fields.iter().map(|field| &field.name);
        self.check_distinct(names, start, &codes::DUPLICATE_TYPE_FIELD, "field");
        Ok(TypeKind::Struct(fields))
    }

    fn func_type(&mut self) -> Result<TypeKind> {
        let start = self.start;
        self.advance();
        self.open(K::LeftParen, "`(`, as in the function type `func(str) int`")?;
        let arguments = self.sequence(K::RightParen, "`,` or `)`", Parser::type_argument)?;
        let result = Box::new(self.type_expr()?);
        let names = arguments.iter().filter_map(|argument| argument.name.as_ref());
        self.check_distinct(names, start, &codes::DUPLICATE_TYPE_PARAMETER, "parameter");
        Ok(TypeKind::Func { arguments, result })
    }

    fn type_argument(&mut self) -> Result<TypeArgument> {
        let name = match self.kind {
            K::Dollar => Some(self.variable_name()?),
            K::Identifier => Some(self.take_name()),
            _ => None,
        };
        Ok(TypeArgument {
            name,
            annotation: self.type_expr()?,
        })
    }

    /// Reports the first name that stands twice in the type that began at `start`, at the type's end.
    fn check_distinct<'n>(
        &mut self,
        names: impl Iterator<Item = &'n Name>,
        start: u32,
        code: &'static CodeInfo,
        what: &str,
    ) {
        let mut seen: Vec<&Name> = Vec::new();
        for name in names {
            if let Some(first) = seen.iter().find(|earlier| earlier.text == name.text) {
                let end = self.previous_end;
                let last = Span::new(self.file, end.saturating_sub(1).max(start), end);
                let text = &name.text;
                let diagnostic =
                    Diagnostic::error(code, last, format!("this type has two {what}s called `{text}`"))
                        .because(first.span, "first here")
                        .because(name.span, "again here");
                self.report(diagnostic);
                return;
            }
            seen.push(name);
        }
    }

    // What cannot be, whatever else is known.

    /// A function all of whose types are given has a type from here on.
    pub(super) fn check_function_types(&mut self, function: &Function, span: Span) {
        let Some(result) = &function.result else { return };
        if function
            .parameters
            .items
            .iter()
            .any(|parameter| parameter.annotation.is_none())
        {
            return;
        }
        let parameters = function
            .parameters
            .items
            .iter()
            .filter_map(|p| p.annotation.as_ref());
        for annotation in parameters.chain([result]) {
            self.check_keys(annotation, span);
        }
    }

    /// The types that a value cannot have whatever else is known.
    pub(super) fn check_annotation(&mut self, annotation: &TypeExpr, value: ExprId) {
        let span = self.span_of(value);
        let (fits, has): (fn(&TypeKind) -> bool, &str) =
            match &self.ast.expr(self.ast.without_parens(value)).kind {
                ExprKind::Bool(_) => (|kind| matches!(kind, TypeKind::Bool), "bool"),
                ExprKind::Integer(_) => (|kind| matches!(kind, TypeKind::Int), "int"),
                ExprKind::Float(_) => (|kind| matches!(kind, TypeKind::Float), "float"),
                ExprKind::String(_) => (|kind| matches!(kind, TypeKind::Str), "str"),
                _ => return self.check_keys(annotation, span),
            };
        if fits(&annotation.kind) {
            return;
        }
        let wanted = self.slice(annotation.span.start, annotation.span.end);
        let message = if matches!(annotation.kind, TypeKind::Variant) {
            "no value has the type `variant`".to_owned()
        } else {
            format!("this value cannot have the type `{wanted}`")
        };
        self.report(errors::impossible_type(
            span,
            annotation.span,
            message,
            format!("this is of type `{has}`"),
        ));
    }

    /// Maps are looked up by comparing keys, and functions cannot be compared.
    fn check_keys(&mut self, annotation: &TypeExpr, value: Span) {
        let Some(key) = incomparable_key(annotation) else {
            return;
        };
        let message = "the keys of a map cannot contain functions";
        self.report(errors::impossible_type(
            value,
            key,
            message,
            "this cannot have the type given",
        ));
    }
}

/// The key type, of some map in `annotation`, that contains a function.
fn incomparable_key(annotation: &TypeExpr) -> Option<Span> {
    annotation.walk(&mut |part| match &part.kind {
        TypeKind::Map { key, .. } if contains_func(key) => Some(key.span),
        _ => None,
    })
}

fn contains_func(annotation: &TypeExpr) -> bool {
    let mut is_func = |part: &TypeExpr| matches!(part.kind, TypeKind::Func { .. }).then_some(());
    annotation.walk(&mut is_func).is_some()
}
