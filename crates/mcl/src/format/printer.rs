//! Lines, indentation, blank lines and comments.
//!
//! Comments wait in a queue. Before a line that begins at some place of the source, those that stand before that
//! place are printed on lines of their own; at the end of a line, the one that stands directly behind what was
//! printed last goes behind it. Blank lines are looked up in the source between the rows printed last and next.

use setpoint_diagnostics::Span;

use crate::syntax::{Ast, Comment};

/// Prints what was parsed from `text`.
pub(super) fn print(text: &str, ast: &Ast, comments: &[Comment]) -> String {
    let mut printer = Printer {
        text,
        ast,
        comments,
        rows: Rows::new(text),
        out: String::with_capacity(text.len() + text.len() / 8),
        depth: 0,
        last_row: None,
        line_start: 0,
        line_depth: 0,
    };
    for statement in &ast.root.statements {
        printer.statement(*statement);
    }
    printer.flush(u32::MAX);
    printer.out
}

pub(super) struct Printer<'a> {
    pub(super) text: &'a str,
    pub(super) ast: &'a Ast,
    /// Those not printed yet.
    comments: &'a [Comment],
    rows: Rows,
    out: String,
    depth: usize,
    /// The source row of what was printed last.
    last_row: Option<usize>,
    /// Where the current line begins in `out`, and how deep it is indented.
    line_start: usize,
    line_depth: usize,
}

impl Printer<'_> {
    pub(super) fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// The source text of a span, as it is.
    pub(super) fn push_source(&mut self, span: Span) {
        self.out
            .push_str(&self.text[span.start as usize..span.end as usize]);
    }

    /// Begins a line with what begins at `offset` in the source.
    pub(super) fn begin_line(&mut self, offset: u32) {
        self.flush(offset);
        self.blank_line(offset);
        self.line_start = self.out.len();
        self.line_depth = self.depth;
        self.indent();
    }

    /// Ends a line with what ends at `end` in the source, and the comment behind it.
    pub(super) fn end_line(&mut self, end: u32) {
        let row = self.rows.of(end.saturating_sub(1));
        if let Some((comment, rest)) = self.comments.split_first() {
            let span = comment.span;
            let between = self.text.get(end as usize..span.start as usize);
            let directly_behind = between
                .is_some_and(|between| between.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b',')));
            if directly_behind {
                self.out.push(' ');
                self.push_source(span);
                self.comments = rest;
            }
        }
        self.out.push('\n');
        self.last_row = Some(row);
    }

    /// Opens a block of lines: ends the line with the bracket that ends at `end`.
    pub(super) fn begin_block(&mut self, end: u32) {
        self.end_line(end);
        self.depth += 1;
    }

    /// Closes a block of lines: begins a line for the bracket that begins at `start`.
    pub(super) fn end_block(&mut self, start: u32) {
        self.flush(start);
        self.depth -= 1;
        self.begin_line(start);
    }

    /// Prints the comments that stand before `offset`, each on its line.
    fn flush(&mut self, offset: u32) {
        while let Some((comment, rest)) = self.comments.split_first() {
            if comment.span.start >= offset {
                return;
            }
            self.comments = rest;
            self.blank_line(comment.span.start);
            self.indent();
            self.push_source(comment.span);
            self.out.push('\n');
            self.last_row = Some(self.rows.of(comment.span.start));
        }
    }

    /// Puts the comments inside of `span`, which is printed on one line, before that line.
    pub(super) fn hoist(&mut self, span: Span) {
        while let Some((comment, rest)) = self.comments.split_first() {
            if comment.span.start >= span.end {
                return;
            }
            self.comments = rest;
            let mut line = "\t".repeat(self.line_depth);
            line.push_str(&self.text[comment.span.start as usize..comment.span.end as usize]);
            line.push('\n');
            self.out.insert_str(self.line_start, &line);
            self.line_start += line.len();
        }
    }

    fn indent(&mut self) {
        self.out.extend(std::iter::repeat_n('\t', self.depth));
    }

    fn blank_line(&mut self, offset: u32) {
        let row = self.rows.of(offset);
        if self
            .last_row
            .is_some_and(|last| self.rows.blank_between(last, row))
        {
            self.out.push('\n');
        }
    }

    /// Whether a comment that is not printed yet stands in `start..end`.
    pub(super) fn comment_in(&self, start: u32, end: u32) -> bool {
        let first = self
            .comments
            .partition_point(|comment| comment.span.start < start);
        self.comments
            .get(first)
            .is_some_and(|comment| comment.span.start < end)
    }

    /// Whether `second` stands on a later row than `first`.
    pub(super) fn below(&self, first: u32, second: u32) -> bool {
        self.rows.of(first) < self.rows.of(second)
    }
}

/// The rows of a text.
struct Rows {
    starts: Vec<u32>,
    /// How many of the rows before each are blank.
    blanks: Vec<u32>,
}

impl Rows {
    fn new(text: &str) -> Rows {
        let mut starts = Vec::new();
        let mut blanks = Vec::new();
        let mut start = 0;
        let mut blank = 0;
        for line in text.split('\n') {
            starts.push(start);
            blanks.push(blank);
            start += line.len() as u32 + 1;
            blank += u32::from(line.trim().is_empty());
        }
        Rows { starts, blanks }
    }

    fn of(&self, offset: u32) -> usize {
        self.starts
            .partition_point(|start| *start <= offset)
            .saturating_sub(1)
    }

    fn blank_between(&self, first: usize, second: usize) -> bool {
        first + 1 < second && self.blanks[second] > self.blanks[first + 1]
    }
}
