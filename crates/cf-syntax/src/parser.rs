//! The parser's machinery: moving over tokens, names, reporting, limits.
//!
//! Recursive descent, in [`crate::definitions`], [`crate::statements`] and [`crate::expressions`]. A part that does not parse reports
//! and answers [`Failed`]; the statement or definition that encloses it goes on where the next one begins ([`crate::recovery`]). The
//! lexer's findings are told when the parser comes to them, so that all errors stand in the order in which one meets them.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use setpoint_diagnostics::{Diagnostic, Diagnostics, FileId, Severity, Span};

use crate::ast::{Expression, File, Name, Path};
use crate::codes::{self, class};
use crate::errors::{self, Unexpected};
use crate::lexer;
use crate::token::{Token, TokenKind as K};

/// How deep brackets, blocks and operators may be nested.
pub const MAXIMUM_NESTING: usize = 100;

/// How deep the tree of an expression can be: brackets and what operators make of their left sides.
pub const MAXIMUM_HEIGHT: usize = 256;

/// Each level of nesting makes trees higher by at most this: parentheses, and an operator of each level.
const MAXIMUM_HEIGHT_OF_A_LEVEL: usize = 12;

/// After so many errors nobody reads on.
pub(super) const MAXIMUM_ERRORS: usize = 40;

/// Reads a file. What is wrong with it goes to `diagnostics`: the error that comes first first, then those that do not follow from it.
pub fn parse(file: FileId, text: &str, diagnostics: &mut Diagnostics) -> File {
    let lexed = lexer::lex(file, text);
    let mut parser = Parser {
        text,
        file,
        tokens: &lexed.tokens,
        position: 0,
        kind: K::EndOfFile,
        lexical: lexed.diagnostics.into_iter().peekable(),
        names: FxHashSet::default(),
        diagnostics,
        errors: 0,
        last_error: None,
        nesting: 0,
        deepest: 0,
        line_first: 0,
        blocks: Vec::new(),
        askew: None,
        forgives_end: false,
    };
    parser.arrive();
    parser.file()
}

/// The part did not parse, and that was reported.
#[derive(Debug, Clone, Copy)]
pub(super) struct Failed;

pub(super) type Result<T> = std::result::Result<T, Failed>;

/// A place among the tokens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    pub(super) position: usize,
    /// The first token of its line.
    pub(super) line_first: usize,
}

pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    pub(super) file: FileId,
    pub(super) tokens: &'t [Token],
    pub(super) position: usize,
    /// Of the token at `position`.
    pub(super) kind: K,
    lexical: std::iter::Peekable<std::vec::IntoIter<(usize, Diagnostic)>>,
    names: FxHashSet<Arc<str>>,
    diagnostics: &'t mut Diagnostics,
    errors: usize,
    /// The token at which the last error was found.
    last_error: Option<usize>,
    nesting: usize,
    /// The deepest nesting since somebody set it back.
    deepest: usize,
    /// The first token of the current line.
    pub(super) line_first: usize,
    /// The tokens that open the blocks that are open, outermost first.
    pub(super) blocks: Vec<usize>,
    /// The first block whose `end` stands further left than its beginning.
    pub(super) askew: Option<usize>,
    /// Something before did not parse that may have begun a block.
    pub(super) forgives_end: bool,
}

impl<'t> Parser<'t> {
    /// The token that many places ahead; the last one is the end of the file.
    #[inline]
    pub(super) fn ahead(&self, count: usize) -> Token {
        let last = self.tokens.len() - 1;
        self.tokens[(self.position + count).min(last)]
    }

    #[inline]
    pub(super) fn kind_ahead(&self, count: usize) -> K {
        self.ahead(count).kind
    }

    #[inline]
    pub(super) fn token(&self) -> Token {
        self.tokens[self.position]
    }

    /// The place of the current token.
    #[inline]
    pub(super) fn here(&self) -> Span {
        self.token().span(self.file)
    }

    /// From the beginning of `start` to the end of the token before the current one.
    #[inline]
    pub(super) fn since(&self, start: Span) -> Span {
        let end = match self.position {
            0 => start.start,
            position => self.tokens[position - 1].end,
        };
        Span::new(self.file, start.start, end.max(start.start))
    }

    pub(super) fn slice(&self, span: Span) -> &'t str {
        self.text
            .get(span.start as usize..span.end as usize)
            .unwrap_or("")
    }

    #[inline]
    pub(super) fn at(&self, kind: K) -> bool {
        self.kind == kind
    }

    /// Goes to the next token; answers the place of the one that was taken.
    #[inline]
    pub(super) fn bump(&mut self) -> Span {
        let span = self.here();
        if self.position + 1 < self.tokens.len() {
            self.position += 1;
        }
        self.arrive();
        span
    }

    #[inline]
    fn arrive(&mut self) {
        let token = self.token();
        self.kind = token.kind;
        let position = self.position;
        if token.first_on_line {
            self.line_first = position;
        }
        while let Some((_, diagnostic)) = self.lexical.next_if(|(at, _)| *at <= position) {
            self.report(diagnostic);
        }
    }

    #[inline]
    pub(super) fn accept(&mut self, kind: K) -> bool {
        let there = self.kind == kind;
        if there {
            self.bump();
        }
        there
    }

    /// Takes a token that must be there.
    pub(super) fn expect(&mut self, kind: K, expected: &'static str) -> Result<Span> {
        if self.kind == kind {
            return Ok(self.bump());
        }
        self.unexpected(expected)
    }

    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        if diagnostic.severity == Severity::Error {
            self.errors += 1;
        }
        if self.errors > MAXIMUM_ERRORS {
            self.stop();
        } else {
            self.diagnostics.push(diagnostic);
        }
    }

    /// Reads no further: everything that is open ends here, without another word.
    fn stop(&mut self) {
        self.position = self.tokens.len() - 1;
        self.kind = K::EndOfFile;
        self.last_error = Some(self.position);
    }

    /// How much has been reported, to take it back.
    pub(super) fn reported(&self) -> (usize, usize) {
        (self.diagnostics.len(), self.errors)
    }

    /// Takes back what has been reported since.
    pub(super) fn unreport(&mut self, (length, errors): (usize, usize)) {
        self.diagnostics.truncate(length);
        self.errors = errors;
    }

    /// Goes back to a token that has been passed.
    pub(super) fn back_to(&mut self, mark: Mark) {
        self.position = mark.position;
        self.line_first = mark.line_first;
        self.kind = self.token().kind;
    }

    /// The current place.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            position: self.position,
            line_first: self.line_first,
        }
    }

    /// Reports that something else should stand where the current token is.
    pub(super) fn unexpected<T>(&mut self, expected: &'static str) -> Result<T> {
        self.unexpected_with(expected, None)
    }

    /// The same with advice for this place, if the tokens suggest nothing better.
    pub(super) fn unexpected_with<T>(
        &mut self,
        expected: &'static str,
        help: Option<&'static str>,
    ) -> Result<T> {
        let is_reported = self.last_error == Some(self.position)
            || self.at(K::Error)
            || (self.at(K::EndOfFile)
                && self.position > 0
                && self.tokens[self.position - 1].kind == K::Error);
        self.last_error = Some(self.position);
        if !is_reported {
            let diagnostic = Unexpected {
                file: self.file,
                text: self.text,
                tokens: self.tokens,
                position: self.position,
                expected,
                help,
                block: self.blocks.last().copied(),
                askew: self.askew,
            }
            .diagnostic();
            self.report(diagnostic);
        }
        Err(Failed)
    }

    /// Reports an error of the parser at the current token, unless one was reported there.
    pub(super) fn fail<T>(&mut self, diagnostic: Diagnostic) -> Result<T> {
        if self.last_error != Some(self.position) {
            self.last_error = Some(self.position);
            self.report(diagnostic);
        }
        Err(Failed)
    }

    /// Parses something one level deeper.
    pub(super) fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.nesting == MAXIMUM_NESTING {
            let span = self.here();
            return self.too_deep(span);
        }
        self.nesting += 1;
        self.deepest = self.deepest.max(self.nesting);
        let parsed = parse(self);
        self.nesting -= 1;
        parsed
    }

    /// Whoever nests so deep is not reading messages: this is the last one of the file.
    fn too_deep<T>(&mut self, span: Span) -> Result<T> {
        if self.last_error != Some(self.tokens.len() - 1) {
            self.report(
                Diagnostic::error(&codes::TOO_DEEP, span, "this is nested too deeply")
                    .label(format!("more than {MAXIMUM_NESTING} levels"))
                    .of_class(class::PARSER)
                    .help("give a part of it a name of its own: `x = …`"),
            );
            self.stop();
        }
        Err(Failed)
    }

    /// Parses a whole expression, and sees that its tree is not too high for those who walk over it.
    pub(super) fn bounded(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<Expression>,
    ) -> Result<Expression> {
        let outside = std::mem::replace(&mut self.deepest, self.nesting);
        let parsed = parse(self);
        let levels = self.deepest - self.nesting;
        self.deepest = self.deepest.max(outside);
        let expression = parsed?;
        let is_suspect = levels * MAXIMUM_HEIGHT_OF_A_LEVEL > MAXIMUM_HEIGHT;
        if is_suspect && expression.height() > MAXIMUM_HEIGHT {
            return self.too_deep(expression.span);
        }
        Ok(expression)
    }

    /// Says that something was repeated so often that it counts as so many levels.
    pub(super) fn levels(&mut self, count: usize, span: Span) -> Result<()> {
        if self.nesting + count > MAXIMUM_NESTING {
            return self.too_deep(span);
        }
        self.deepest = self.deepest.max(self.nesting + count);
        Ok(())
    }

    pub(super) fn intern(&mut self, text: &str) -> Arc<str> {
        if let Some(name) = self.names.get(text) {
            return name.clone();
        }
        let name: Arc<str> = text.into();
        self.names.insert(name.clone());
        name
    }

    /// Takes the current token for a name, whatever it is.
    pub(super) fn take_name(&mut self) -> Name {
        let span = self.here();
        let text = self.intern(self.slice(span));
        self.bump();
        Name { text, span }
    }

    /// A name that does not begin with a capital letter.
    pub(super) fn identifier(&mut self, expected: &'static str) -> Result<Name> {
        if self.at(K::Identifier) {
            return Ok(self.take_name());
        }
        if self.kind.is_keyword() {
            return self.keyword_as_name(expected);
        }
        self.unexpected(expected)
    }

    /// A reserved word where a name must stand. One that begins a line was hardly meant as the name.
    pub(super) fn keyword_as_name<T>(&mut self, expected: &'static str) -> Result<T> {
        if self.token().first_on_line && !matches!(self.kind_ahead(1), K::Assign | K::AddAssign) {
            return self.unexpected(expected);
        }
        let diagnostic = errors::keyword_as_name(self.kind, self.here());
        self.fail(diagnostic)
    }

    /// A declared name, which has no hyphens.
    pub(super) fn declared(&mut self, what: &str, expected: &'static str) -> Result<Name> {
        let name = self.identifier(expected)?;
        self.check_hyphen(what, &name);
        Ok(name)
    }

    pub(super) fn check_hyphen(&mut self, what: &str, name: &Name) {
        if name.text.contains('-') {
            self.report(errors::hyphen(what, name));
        }
    }

    /// `a::b::c`, up to the last small name. What follows may be a `::` before a capitalised one, which is left.
    pub(super) fn namespace(&mut self, expected: &'static str) -> Result<Path> {
        let first = self.identifier(expected)?;
        self.namespace_from(first)
    }

    pub(super) fn namespace_from(&mut self, first: Name) -> Result<Path> {
        let mut names: Vec<Name> = Vec::new();
        let start = first.span;
        let mut last = first;
        while self.at(K::Separator) && self.kind_ahead(1) != K::Capitalized {
            self.bump();
            // Functions of the library may have such names: `cty::and(…)`.
            let is_called = self.kind.is_keyword() && self.kind_ahead(1) == K::LeftParenthesis;
            let next = match is_called {
                true => self.take_name(),
                false => self.identifier("a name")?,
            };
            names.push(std::mem::replace(&mut last, next));
        }
        Ok(Path {
            namespace: names,
            span: start.to(last.span),
            name: last,
        })
    }

    /// `a::b::C`, where a dot before the capitalised name is a mistake.
    pub(super) fn class(&mut self, expected: &'static str) -> Result<Path> {
        if self.at(K::Capitalized) {
            let name = self.take_name();
            return Ok(Path {
                namespace: Vec::new(),
                span: name.span,
                name,
            });
        }
        let start = self.here();
        let mut path = self.namespace(expected)?;
        if self.at(K::Separator) {
            self.bump();
            return Ok(self.class_in(path));
        }
        let mut parts = 0;
        while self.kind_ahead(parts) == K::Dot && self.kind_ahead(parts + 1) == K::Identifier {
            parts += 2;
        }
        if self.kind_ahead(parts) == K::Dot && self.kind_ahead(parts + 1) == K::Capitalized {
            while self.accept(K::Dot) && self.at(K::Identifier) {
                let name = self.take_name();
                path.namespace.push(std::mem::replace(&mut path.name, name));
            }
            let class = self.class_in(path);
            let written = self.slice(self.since(start));
            self.report(errors::dot_in_namespace(class.span, written));
            return Ok(class);
        }
        let name = path.name;
        if parts == 0 {
            return self.fail(errors::entity_in_lower_case(&name, self.file));
        }
        self.unexpected(expected)
    }

    /// The class whose name is the current token.
    pub(super) fn class_in(&mut self, path: Path) -> Path {
        let name = self.take_name();
        let mut namespace = path.namespace;
        namespace.push(path.name);
        Path {
            span: path.span.to(name.span),
            namespace,
            name,
        }
    }
}
