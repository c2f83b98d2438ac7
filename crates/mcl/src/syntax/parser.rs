//! The parser's machinery: moving over tokens, brackets, reporting, going on after a mistake.
//!
//! Recursive descent, in [`super::statements`], [`super::expressions`] and [`super::types`]. A part that does not
//! parse reports and answers [`Failed`]; the next statement or body item that encloses it skips to where the
//! next one begins. What was understood of it until then is *kept*: its name and its parts, for those who look at texts
//! while they are written.

use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashSet};
use setpoint_diagnostics::{Diagnostic, Diagnostics, FileId, Severity, Span, Stage};

use super::ast::{Ast, Block, BodyItem, Expr, ExprId, ExprKind, Name, Parameters, Stmt, StmtId, StmtKind};
use super::errors::{self, Unexpected};
use super::lexer::{self, Lexed};
use super::token::{TokenKind as K, Tokens};

/// How deep brackets, blocks, types and `not` may be nested.
pub const MAXIMUM_NESTING: usize = 256;

/// How many expressions may stand on the way from a whole expression to the deepest part of it. Greater than
/// [`MAXIMUM_NESTING`] because `1 + 1 + 1 + …` is deep without being nested.
pub const MAXIMUM_HEIGHT: usize = 512;

/// How many operators may wait for their right side at once: what bounds the parser's own stack.
const MAXIMUM_PENDING: usize = 1024;

/// After so many errors nobody reads on.
const MAXIMUM_ERRORS: usize = 100;

/// What a text says.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// The abstract syntax of everything that parses.
    pub ast: Ast,
    /// All tokens; their texts joined are the text.
    pub tokens: Tokens,
    /// The comments in order.
    pub comments: Vec<Comment>,
}

/// A comment, from its `#` to the end of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comment {
    /// With the `#`, without the newline.
    pub span: Span,
}

/// Reads a text. What is wrong with it goes to `diagnostics`, in source order, warnings among the errors.
pub fn parse(file: FileId, text: &str, diagnostics: &mut Diagnostics) -> Parsed {
    let readable = if u32::try_from(text.len()).is_ok() {
        text
    } else {
        ""
    };
    let Lexed {
        tokens,
        comments,
        bars,
        diagnostics: lexical,
    } = lexer::lex(file, readable);
    let mut parser = Parser::new(file, readable, &tokens);
    parser.diagnostics = lexical;
    if readable.len() != text.len() {
        let span = Span::new(file, 0, 0);
        parser.diagnostics.push(Diagnostic::error(
            &super::codes::BAD_CHARACTER,
            span,
            "the file is larger than 4 GiB",
        ));
    }
    let statements = parser.file();
    for start in bars {
        let used = parser.used_bars.binary_search(&start).is_ok();
        parser.diagnostics.push(match used {
            true => errors::old_default(Span::new(file, start, start + 2)),
            false => errors::stray_bars(file, start),
        });
    }
    let mut found = parser.diagnostics;
    found.sort_by_key(|d| (d.primary.span.start, d.stage));
    // What does not lex does not parse either: said once.
    let mut last_lexical = None;
    found.retain(|d| {
        let start = d.primary.span.start;
        if d.stage == Stage::Lex {
            last_lexical = Some(start);
        }
        d.stage == Stage::Lex || d.severity == Severity::Warning || last_lexical != Some(start)
    });
    diagnostics.extend(found);

    let mut ast = parser.ast;
    ast.root = Block {
        statements,
        span: Span::new(file, 0, readable.len() as u32),
    };
    Parsed {
        ast,
        tokens,
        comments,
    }
}

/// The part did not parse, and that was reported.
#[derive(Debug, Clone, Copy)]
pub(super) struct Failed;

pub(super) type Result<T> = std::result::Result<T, Failed>;

pub(super) struct Parser<'t> {
    text: &'t str,
    pub(super) file: FileId,
    tokens: &'t Tokens,
    position: usize,
    /// The token at `position`.
    pub(super) kind: K,
    pub(super) start: u32,
    pub(super) end: u32,
    /// The token before, newlines included.
    pub(super) previous: K,
    pub(super) previous_end: u32,
    pub(super) ast: Ast,
    /// Beside `ast.exprs`: how deep each is.
    heights: Vec<u16>,
    names: FxHashSet<Arc<str>>,
    pub(super) diagnostics: Vec<Diagnostic>,
    errors: usize,
    last_error: Option<u32>,
    /// The brackets that are open, outermost first.
    pub(super) open: Vec<(K, u32)>,
    nesting: usize,
    pending: usize,
    /// Where each `||` begins that was taken for a default.
    used_bars: Vec<u32>,
    /// Recovery found a statement at the left margin: everything that encloses gives up.
    pub(super) to_top: bool,
    pub(super) kept: Kept,
}

/// What was understood of parts that did not parse, until those that enclose them take it.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) statement: Option<StmtKind>,
    pub(super) block: Option<Block>,
    pub(super) item: Option<BodyItem>,
    pub(super) parameters: Option<Parameters>,
}

impl<'t> Parser<'t> {
    fn new(file: FileId, text: &'t str, tokens: &'t Tokens) -> Parser<'t> {
        let root = Block {
            statements: Vec::new(),
            span: Span::new(file, 0, 0),
        };
        let guess = tokens.len() / 8;
        let mut parser = Parser {
            text,
            file,
            tokens,
            position: 0,
            kind: K::EndOfFile,
            start: 0,
            end: 0,
            previous: K::Newline,
            previous_end: 0,
            ast: Ast {
                file,
                root,
                exprs: Vec::with_capacity(guess),
                stmts: Vec::with_capacity(guess / 4),
            },
            heights: Vec::with_capacity(guess),
            names: FxHashSet::with_capacity_and_hasher(guess / 2, FxBuildHasher),
            diagnostics: Vec::new(),
            errors: 0,
            last_error: None,
            open: Vec::new(),
            nesting: 0,
            pending: 0,
            used_bars: Vec::new(),
            to_top: false,
            kept: Kept::default(),
        };
        parser.skip_trivia();
        parser
    }

    /// Moves from trivia to the next token that counts.
    #[inline]
    fn skip_trivia(&mut self) {
        while self.tokens.kind(self.position).is_trivia() {
            self.position += 1;
        }
        self.kind = self.tokens.kind(self.position);
        let range = self.tokens.range(self.position);
        self.start = range.start;
        self.end = range.end;
    }

    #[inline]
    pub(super) fn advance(&mut self) {
        self.previous = self.kind;
        self.previous_end = self.end;
        self.position += 1;
        self.skip_trivia();
    }

    #[inline]
    pub(super) fn at(&self, kind: K) -> bool {
        self.kind == kind
    }

    /// Takes a token if it is there.
    #[inline]
    pub(super) fn accept(&mut self, kind: K) -> bool {
        let there = self.kind == kind;
        if there {
            self.advance();
        }
        there
    }

    /// Takes a token that must be there; answers its span.
    pub(super) fn expect(&mut self, kind: K, expected: &'static str) -> Result<Span> {
        if self.kind != kind {
            return self.unexpected(expected);
        }
        let span = self.here();
        self.advance();
        Ok(span)
    }

    pub(super) fn skip_newlines(&mut self) {
        while self.kind == K::Newline {
            self.advance();
        }
    }

    /// The kinds of the next tokens that count, after the current one.
    pub(super) fn following<const N: usize>(&self) -> [K; N] {
        let mut position = self.position;
        std::array::from_fn(|_| {
            position += 1;
            while self.tokens.kind(position).is_trivia() {
                position += 1;
            }
            self.tokens.kind(position)
        })
    }

    /// Whether a `{` stands between here and the end of the line; what is inside other brackets does not count.
    pub(super) fn brace_on_this_line(&self) -> bool {
        let mut depth = 0_usize;
        let mut position = self.position;
        loop {
            match self.tokens.kind(position) {
                K::LeftBrace if depth == 0 => return true,
                K::Newline if depth == 0 => return false,
                K::EndOfFile => return false,
                kind if kind.is_opening() => depth += 1,
                K::RightBrace | K::RightParen | K::RightBracket => match depth.checked_sub(1) {
                    Some(less) => depth = less,
                    None => return false,
                },
                _ => {}
            }
            position += 1;
        }
    }

    /// The first token after this newline and those that follow it.
    pub(super) fn after_newlines(&self) -> K {
        let mut position = self.position;
        while self.tokens.kind(position).is_trivia() || self.tokens.kind(position) == K::Newline {
            position += 1;
        }
        self.tokens.kind(position)
    }

    /// Whether nothing stands between the previous token and this one.
    pub(super) fn glued(&self) -> bool {
        self.previous_end == self.start
    }

    pub(super) fn here(&self) -> Span {
        Span::new(self.file, self.start, self.end)
    }

    /// Takes the minus of a number for an operator: the current token shrinks to the digits.
    pub(super) fn split_minus(&mut self) {
        self.start += 1;
        self.previous = K::Minus;
        self.previous_end = self.start;
    }

    /// From `start` to the end of the token before the current one.
    pub(super) fn since(&self, start: u32) -> Span {
        Span::new(self.file, start, self.previous_end)
    }

    pub(super) fn token_text(&self) -> &'t str {
        self.slice(self.start, self.end)
    }

    pub(super) fn slice(&self, start: u32, end: u32) -> &'t str {
        self.text.get(start as usize..end as usize).unwrap_or("")
    }

    // Brackets.

    /// Takes an opening bracket that must be there; answers its start.
    pub(super) fn open(&mut self, kind: K, expected: &'static str) -> Result<u32> {
        let start = self.start;
        if self.kind != kind {
            return self.unexpected(expected);
        }
        self.open.push((kind, start));
        self.advance();
        Ok(start)
    }

    /// Takes the bracket that closes the innermost one.
    pub(super) fn close(&mut self, kind: K, expected: &'static str) -> Result<()> {
        if self.kind != kind {
            return self.unexpected(expected);
        }
        self.open.pop();
        self.advance();
        Ok(())
    }

    /// Goes a level deeper.
    pub(super) fn enter(&mut self) -> Result<()> {
        if self.nesting == MAXIMUM_NESTING {
            let span = self.here();
            self.report(errors::too_deep(span, MAXIMUM_NESTING));
            return Err(Failed);
        }
        self.nesting += 1;
        Ok(())
    }

    pub(super) fn leave(&mut self) {
        self.nesting -= 1;
    }

    /// Begins the right side of an operator.
    pub(super) fn enter_operand(&mut self) -> Result<()> {
        if self.pending == MAXIMUM_PENDING {
            let span = self.here();
            self.report(errors::too_deep(span, MAXIMUM_PENDING));
            return Err(Failed);
        }
        self.pending += 1;
        Ok(())
    }

    pub(super) fn leave_operand(&mut self) {
        self.pending -= 1;
    }

    // Nodes.

    pub(super) fn add(&mut self, kind: ExprKind, span: Span) -> Result<ExprId> {
        let mut height = 0;
        kind.for_each_child(|child| height = height.max(self.heights[child.index()] + 1));
        if usize::from(height) >= MAXIMUM_HEIGHT {
            self.report(errors::too_deep(span, MAXIMUM_HEIGHT));
            return Err(Failed);
        }
        self.heights.push(height);
        self.ast.exprs.push(Expr { kind, span });
        Ok(ExprId(self.ast.exprs.len() as u32 - 1))
    }

    /// How many expressions there are.
    pub(super) fn expr_count(&self) -> usize {
        self.ast.exprs.len()
    }

    /// Stands for an expression that does not parse, with what was understood of it since there were `known` expressions.
    pub(super) fn unfinished(&mut self, known: usize, start: u32) -> ExprId {
        let new = &self.ast.exprs[known..];
        let mut is_part = vec![false; new.len()];
        for expr in new {
            let mark = |child: ExprId| {
                if let Some(part) = child.index().checked_sub(known) {
                    is_part[part] = true;
                }
            };
            expr.kind.for_each_child(mark);
        }
        let whole = is_part.iter().enumerate().filter(|(_, is_part)| !**is_part);
        let parts: Vec<ExprId> = whole.map(|(index, _)| ExprId((known + index) as u32)).collect();
        let height = parts.iter().map(|part| self.heights[part.index()] + 1).max();
        self.heights.push(height.unwrap_or(0));
        let span = Span::new(self.file, start, self.previous_end.max(start));
        let kind = ExprKind::Unfinished(parts);
        self.ast.exprs.push(Expr { kind, span });
        ExprId(self.ast.exprs.len() as u32 - 1)
    }

    /// A block where none was understood.
    pub(super) fn no_block(&self) -> Block {
        Block {
            statements: Vec::new(),
            span: Span::new(self.file, self.start, self.start),
        }
    }

    pub(super) fn add_statement(&mut self, kind: StmtKind, span: Span) -> StmtId {
        self.ast.stmts.push(Stmt { kind, span });
        StmtId(self.ast.stmts.len() as u32 - 1)
    }

    pub(super) fn span_of(&self, id: ExprId) -> Span {
        self.ast.exprs[id.index()].span
    }

    pub(super) fn intern(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.names.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = Arc::from(text);
        self.names.insert(Arc::clone(&new));
        new
    }

    /// Takes the current token as a name.
    pub(super) fn take_name(&mut self) -> Name {
        let name = Name {
            text: self.intern(self.token_text()),
            span: self.here(),
        };
        self.advance();
        name
    }

    pub(super) fn use_bars(&mut self) {
        self.used_bars.push(self.start);
        self.advance();
    }

    // Reporting.

    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        let start = diagnostic.primary.span.start;
        if self.last_error == Some(start) || self.errors >= MAXIMUM_ERRORS {
            return;
        }
        self.last_error = Some(start);
        self.errors += 1;
        self.diagnostics.push(diagnostic);
    }

    pub(super) fn unexpected<T>(&mut self, expected: &'static str) -> Result<T> {
        self.unexpected_because(expected, None)
    }

    #[cold]
    pub(super) fn unexpected_because<T>(
        &mut self,
        expected: &'static str,
        help: Option<&'static str>,
    ) -> Result<T> {
        // The lexer, or the look at all `||` afterwards, reports these.
        if !matches!(self.kind, K::Error | K::Bars) {
            let unexpected = Unexpected {
                file: self.file,
                kind: self.kind,
                text: self.token_text(),
                start: self.start,
                expected,
                help,
                open: self.open.last().copied(),
                previous: self.previous,
            };
            let diagnostic = unexpected.diagnostic();
            self.report(diagnostic);
        }
        Err(Failed)
    }

    // Going on after a mistake.

    /// What must be put back when a part fails.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            open: self.open.len(),
            nesting: self.nesting,
            pending: self.pending,
        }
    }

    /// Skips to the end of the line, or to the bracket that closes what was open at `mark`; inside a body, to
    /// the end of the item. Brackets that opened since then are skipped with what is in them.
    pub(super) fn recover(&mut self, mark: Mark, item: bool) {
        self.nesting = mark.nesting;
        self.pending = mark.pending;
        let base = mark.open;
        while !self.to_top {
            match self.kind {
                K::EndOfFile => break,
                K::Newline if self.open.len() <= base => break,
                K::Newline => {
                    let margin = self.end;
                    self.advance();
                    // A bracket that is never closed shall not swallow the rest of the file.
                    if self.start == margin && starts_statement(self.kind) {
                        self.to_top = base > 0;
                        break;
                    }
                    continue;
                }
                K::Comma if item && self.open.len() <= base => {
                    self.advance();
                    break;
                }
                kind if kind.is_opening() => self.open.push((kind, self.start)),
                K::RightBrace | K::RightParen | K::RightBracket => {
                    let opened = &self.open[base.min(self.open.len())..];
                    match opened
                        .iter()
                        .rposition(|(kind, _)| kind.closing() == Some(self.kind))
                    {
                        Some(index) => self.open.truncate(base + index),
                        // Statements and items are enclosed by braces only.
                        None if self.kind == K::RightBrace => break,
                        None => {}
                    }
                }
                _ => {}
            }
            self.advance();
        }
        self.open.truncate(base);
    }
}

/// The parser's depth at a place to come back to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    open: usize,
    nesting: usize,
    pending: usize,
}

/// Whether a statement may begin with such a token.
pub(super) fn starts_statement(kind: K) -> bool {
    matches!(
        kind,
        K::Dollar
            | K::If
            | K::For
            | K::ForKv
            | K::Identifier
            | K::Collect
            | K::Capitalized
            | K::Class
            | K::Include
            | K::Import
            | K::Func
            | K::Panic
    )
}
