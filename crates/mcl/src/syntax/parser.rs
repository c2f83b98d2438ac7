//! The parser's machinery: moving over tokens, brackets, reporting, going on after a mistake.
//!
//! Recursive descent, in [`super::statements`], [`super::expressions`] and [`super::types`]. A part that does not
//! parse reports and answers [`Failed`]; the next statement or body item that encloses it skips to where the
//! next one begins. What was understood of it until then is *kept*: its name and its parts, for those who look at texts
//! while they are written.

use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashSet};
use setpoint_diagnostics::{Diagnostic, Diagnostics, FileId, Severity, Span};

use super::ast::{Ast, Block, BodyItem, Expr, ExprId, ExprKind, Name, Parameters, Stmt, StmtId, StmtKind};
use super::errors;
use super::lexer::{self, Lexed};
use super::token::{TokenKind as K, Tokens};
use super::unexpected::Unexpected;
use crate::stage;

/// How deep brackets, blocks, types and `not` may be nested.
pub const MAXIMUM_NESTING: usize = 256;

/// How many expressions may stand on the way from a whole expression to the deepest part of it. Greater than
/// [`MAXIMUM_NESTING`] because `1 + 1 + 1 + …` is deep without being nested.
pub const MAXIMUM_HEIGHT: usize = 512;

/// How many operators may wait for their right side at once: what bounds the parser's own stack.
const MAXIMUM_PENDING: usize = 1024;

/// After so many errors nobody reads on.
pub(super) const MAXIMUM_ERRORS: usize = 100;

/// What a text says.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// The abstract syntax of everything that parses.
    pub ast: Ast,
    /// All tokens; their texts joined are the text.
    pub tokens: Tokens,
    /// The comments in order.
    pub comments: Vec<Comment>,
    /// What did not parse: what is said about it and about its names later may be a consequence.
    pub damaged: Vec<Span>,
}

/// A comment, from its `#` to the end of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comment {
    /// With the `#`, without the newline.
    pub span: Span,
}

/// So many strings without an end are looked for.
const MAXIMUM_UNCLOSED: usize = 4;

/// Reads a text. What is wrong with it goes to `diagnostics`, in source order, warnings among the errors.
pub fn parse(file: FileId, text: &str, diagnostics: &mut Diagnostics) -> Parsed {
    let readable = if u32::try_from(text.len()).is_ok() {
        text
    } else {
        ""
    };
    let mut unclosed = Vec::new();
    let (mut parsed, mut found) = read(file, readable, &unclosed);
    // A string that is not closed turns what follows inside out: texts are read as code, and code as text.
    while unclosed.len() < MAXIMUM_UNCLOSED
        && let Some(start) = unclosed_string(readable, &parsed.tokens, &found, &unclosed)
    {
        unclosed.push(start);
        let (parsed_again, mut found_again) = read(file, readable, &unclosed);
        if error_count(&found_again) > error_count(&found) {
            break;
        }
        let is_error = |d: &&Diagnostic| d.severity == Severity::Error && d.rule_place().start > start;
        let first = found.iter().find(is_error).map(Diagnostic::rule_place);
        let at_quote = |d: &&mut Diagnostic| d.primary.span.start == start && d.stage == stage::LEX;
        if let Some(unclosed) = found_again.iter_mut().find(at_quote) {
            unclosed.ruled = first;
        }
        found_again.sort_by_key(|d| (d.rule_place().start, d.stage != stage::LEX));
        (parsed, found) = (parsed_again, found_again);
    }
    if readable.len() != text.len() {
        let span = Span::new(file, 0, 0);
        found.push(Diagnostic::error(
            &super::codes::BAD_CHARACTER,
            span,
            "the file is larger than 4 GiB",
        ));
    }
    diagnostics.extend(found);
    parsed
}

fn error_count(found: &[Diagnostic]) -> usize {
    found
        .iter()
        .filter(|found| found.severity == Severity::Error)
        .count()
}

/// Where the string begins that is probably not closed where it was meant to be: it goes over its line, and what stands behind it looks
/// like the inside of another one. Those of `known` are closed already.
fn unclosed_string(text: &str, tokens: &Tokens, found: &[Diagnostic], known: &[u32]) -> Option<u32> {
    if error_count(found) == 0 {
        return None;
    }
    let text_of = |range: std::ops::Range<u32>| text.get(range.start as usize..range.end as usize);
    let mut first_with_code = None;
    let mut is_cut = false;
    for index in 0..tokens.len() {
        let range = tokens.range(index);
        let written = text_of(range.clone()).unwrap_or("");
        match tokens.kind(index) {
            K::String if written.contains('\n') => {
                let behind = text[range.end as usize..].chars().next();
                if behind.is_some_and(|c| c.is_alphanumeric() || "_/%$.:\\@~".contains(c)) {
                    return Some(range.start);
                }
                let is_code = |line: &str| line.trim_start().starts_with(['$', '}']) || line.contains(" => ");
                if first_with_code.is_none() && written.lines().skip(1).any(is_code) {
                    first_with_code = Some(range.start);
                }
            }
            K::Error if written.starts_with('"') => is_cut |= !known.contains(&range.start),
            _ => {}
        }
    }
    // All quotes are paired when the file's last string ends: then nothing says that one is missing.
    first_with_code.filter(|_| is_cut)
}

/// Reads a text in which the strings that begin at `unclosed` end with their lines.
fn read(file: FileId, text: &str, unclosed: &[u32]) -> (Parsed, Vec<Diagnostic>) {
    let Lexed {
        tokens,
        comments,
        bars,
        diagnostics: lexical,
    } = lexer::lex(file, text, unclosed);
    let mut parser = Parser::new(file, text, &tokens);
    parser.diagnostics = lexical;
    let statements = parser.file();
    parser.replaceable_bars.sort_unstable();
    for start in bars {
        let used = parser.used_bars.binary_search(&start).is_ok();
        parser.diagnostics.push(match used {
            true => {
                let is_replaceable = parser.replaceable_bars.binary_search(&start).is_ok();
                errors::old_default(Span::new(file, start, start + 2), is_replaceable)
            }
            false => errors::stray_bars(file, start),
        });
    }
    let mut found = parser.diagnostics;
    let mut explained = parser.explained;
    if error_count(&found) > 0 {
        explained.extend(quotes_in_braces(file, text, &tokens));
    }
    for (place, explanation) in explained {
        explain(&mut found, place, explanation);
    }
    found.sort_by_key(|d| (d.rule_place().start, d.stage != stage::LEX));
    // What does not lex does not parse either: said once.
    let mut last_lexical = None;
    found.retain(|d| {
        let start = d.rule_place().start;
        if d.stage == stage::LEX {
            last_lexical = Some(start);
        }
        d.stage == stage::LEX || d.severity == Severity::Warning || last_lexical != Some(start)
    });
    let mut ast = parser.ast;
    ast.root = Block {
        statements,
        span: Span::new(file, 0, text.len() as u32),
    };
    let damaged = parser.damaged;
    let parsed = Parsed {
        ast,
        tokens,
        comments,
        damaged,
    };
    (parsed, found)
}

/// The strings with a `${` that their quote cuts off, and the rest of their lines, which was meant to be inside.
fn quotes_in_braces(file: FileId, text: &str, tokens: &Tokens) -> Vec<(Span, Diagnostic)> {
    let mut found = Vec::new();
    for index in 0..tokens.len() {
        let range = tokens.range(index);
        let written = text.get(range.start as usize..range.end as usize).unwrap_or("");
        if tokens.kind(index) != K::String || found.len() == MAXIMUM_ERRORS {
            continue;
        }
        let Some(dollar) = written.rfind("${").filter(|at| !written[*at..].contains('}')) else {
            continue;
        };
        let rest = &text[range.end as usize..];
        let line = rest.lines().next().unwrap_or("");
        if !line.contains('}') {
            continue;
        }
        let start = range.start + dollar as u32;
        let braces = Span::new(file, start, start + 2);
        let place = Span::new(file, range.end, range.end + line.len() as u32);
        found.push((place, errors::quote_in_braces(braces)));
    }
    found
}

/// Puts one error in place of all those that begin in `place`; if there are none, there is nothing to explain.
fn explain(found: &mut Vec<Diagnostic>, place: Span, mut explanation: Diagnostic) {
    let is_explained = |d: &Diagnostic| {
        let start = d.rule_place().start;
        d.severity == Severity::Error && place.start <= start && start < place.end
    };
    let explained = found.iter().filter(|found| is_explained(found));
    let Some(first) = explained.map(Diagnostic::rule_place).min_by_key(|at| at.start) else {
        return;
    };
    found.retain(|found| !is_explained(found));
    if first != explanation.primary.span {
        explanation.ruled = Some(first);
    }
    found.push(explanation);
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
    pub(super) previous_start: u32,
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
    /// Those of them in whose place `<|>` means the same.
    replaceable_bars: Vec<u32>,
    /// What did not parse.
    damaged: Vec<Span>,
    /// Places with one error that stands for all of them.
    pub(super) explained: Vec<(Span, Diagnostic)>,
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
            previous_start: 0,
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
            replaceable_bars: Vec::new(),
            damaged: Vec::new(),
            explained: Vec::new(),
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
        self.previous_start = self.start;
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
        self.previous = K::Minus;
        self.previous_start = self.start;
        self.start += 1;
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

    /// Notes that the `||` between two places may as well be `<|>`.
    pub(super) fn replaceable_bars(&mut self, behind: u32, before: u32) {
        let first = self.used_bars.partition_point(|start| *start < behind);
        let found = self.used_bars.get(first).filter(|start| **start < before);
        self.replaceable_bars.extend(found);
    }

    pub(super) fn use_bars(&mut self) {
        self.used_bars.push(self.start);
        self.advance();
    }

    // Reporting.

    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        let start = diagnostic.rule_place().start;
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
        let is_told_elsewhere = matches!(self.kind, K::Error | K::Bars);
        if !is_told_elsewhere && self.errors < MAXIMUM_ERRORS {
            let unexpected = Unexpected {
                file: self.file,
                source: self.text,
                kind: self.kind,
                start: self.start,
                end: self.end,
                expected,
                help,
                open: self.open.last().copied(),
                previous: self.previous,
                previous_start: self.previous_start,
                previous_end: self.previous_end,
                following: self.following(),
                askew: match (self.kind, self.innermost()) {
                    (K::EndOfFile, Some(K::LeftBrace)) => self.brace_askew(),
                    _ => None,
                },
            };
            let diagnostic = unexpected.diagnostic();
            self.report(diagnostic);
        }
        Err(Failed)
    }

    /// The first `{` whose `}` is the first of its line and stands further left than the line of the `{`.
    #[cold]
    fn brace_askew(&self) -> Option<u32> {
        let mut open: Vec<(u32, u32)> = Vec::new();
        // How far the line at hand is indented, and whether nothing else has been on it.
        let (mut indentation, mut is_first) = (0, true);
        for index in 0..self.position {
            let range = self.tokens.range(index);
            match self.tokens.kind(index) {
                K::Newline => (indentation, is_first) = (0, true),
                K::Whitespace if is_first => indentation += range.end - range.start,
                kind => {
                    if kind == K::LeftBrace {
                        open.push((range.start, indentation));
                    } else if kind == K::RightBrace
                        && let Some((start, of_opening)) = open.pop()
                        && is_first
                        && indentation < of_opening
                    {
                        return Some(start);
                    }
                    is_first = false;
                }
            }
        }
        None
    }

    /// How many errors the parser has found.
    pub(super) fn error_count(&self) -> usize {
        self.errors
    }

    /// The first column of the current token, where tools look for an error.
    pub(super) fn first_column(&self) -> Span {
        let width = self.token_text().chars().next().map_or(0, char::len_utf8) as u32;
        Span::new(self.file, self.start, self.start + width)
    }

    /// Where the comment of several lines ends that begins here, or else the line.
    pub(super) fn behind_block_comment(&self) -> u32 {
        let rest = self.text.get(self.start as usize..).unwrap_or("");
        let length = rest.find("*/").map(|length| length + 2);
        self.start + length.or_else(|| rest.find('\n')).unwrap_or(rest.len()) as u32
    }

    /// Where a here document ends whose word stands at `word`: behind the line that holds that word alone.
    pub(super) fn end_of_here_document(&self, word: u32) -> u32 {
        let rest = self.text.get(word as usize..).unwrap_or("");
        let marker = rest
            .lines()
            .next()
            .unwrap_or("")
            .trim_matches(['-', '~', '"', '\'', ' ', ',']);
        let mut end = word;
        for line in rest.split_inclusive('\n') {
            end += line.len() as u32;
            if !marker.is_empty() && end > word + line.len() as u32 && line.trim() == marker {
                return end;
            }
        }
        word + rest.find('\n').unwrap_or(rest.len()) as u32
    }

    /// The innermost bracket that is open.
    pub(super) fn innermost(&self) -> Option<K> {
        self.open.last().map(|(kind, _)| *kind)
    }

    /// Notes what did not parse: from `start` to here.
    pub(super) fn damage(&mut self, start: u32) {
        let end = self.start.max(start + 1);
        self.damaged.push(Span::new(self.file, start, end));
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
