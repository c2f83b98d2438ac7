//! Where to go on after a mistake.
//!
//! Line ends and indentation mean nothing in the language, but people write by them: after a mistake the next statement is taken to
//! begin with a line that is indented no deeper than the one that did not parse.

use crate::parser::{Mark, Parser};
use crate::token::TokenKind as K;

impl Parser<'_> {
    /// How far a token stands from the beginning of its line.
    pub(super) fn column(&self, token: usize) -> usize {
        let start = self.tokens[token].start as usize;
        let before = self.text.get(..start).unwrap_or("");
        before
            .bytes()
            .rev()
            .take_while(|byte| !matches!(byte, b'\n' | b'\r'))
            .count()
    }

    /// Goes from inside of what begins at `mark` to where the next statement, definition or end of a block begins. Takes something.
    pub(super) fn recover(&mut self, mark: Mark) {
        let column = self.column(mark.line_first);
        self.forgives_end |= self.blocks.is_empty();
        while !self.at(K::EndOfFile) {
            let token = self.token();
            let is_behind = self.position > mark.position;
            if is_behind
                && token.first_on_line
                && can_begin(self.kind)
                && self.column(self.position) <= column
            {
                return;
            }
            let is_end =
                self.at(K::End) && (self.ahead(1).first_on_line || self.kind_ahead(1) == K::EndOfFile);
            if is_behind && is_end && !self.blocks.is_empty() {
                return;
            }
            self.bump();
        }
    }

    /// Goes from a mistake in what a block begins with (`if …:`) to where the block begins. Answers whether there is one.
    pub(super) fn recover_header(&mut self, opener: Mark) -> bool {
        if self.at(K::LeftBrace) {
            self.skip_braces(opener);
            return false;
        }
        let column = self.column(opener.line_first);
        while !self.at(K::EndOfFile) {
            if self.token().first_on_line && self.position > opener.position {
                return self.at(K::End) || self.column(self.position) > column;
            }
            if self.at(K::Colon) {
                self.bump();
                return true;
            }
            self.bump();
        }
        false
    }

    /// Skips a block in braces, and those of an `else` behind it.
    fn skip_braces(&mut self, opener: Mark) {
        let column = self.column(opener.line_first);
        let mut open = 0_usize;
        loop {
            match self.kind {
                K::EndOfFile => return,
                K::LeftBrace => open += 1,
                K::RightBrace => open = open.saturating_sub(1),
                kind if kind.is_definition()
                    && self.token().first_on_line
                    && self.column(self.position) <= column =>
                {
                    return;
                }
                _ => {}
            }
            self.bump();
            if open == 0 && !matches!(self.kind, K::Else | K::Elif) && !self.continues_braces() {
                return;
            }
        }
    }

    /// Whether what follows an `else` up to its brace is being skipped.
    fn continues_braces(&self) -> bool {
        let before = self
            .position
            .checked_sub(1)
            .map(|before| self.tokens[before].kind);
        before.is_some_and(|kind| kind != K::RightBrace) && !self.token().first_on_line
    }
}

/// Whether a statement, a definition or what ends a block can begin with a token.
fn can_begin(kind: K) -> bool {
    kind.is_name()
        || kind.is_definition()
        || matches!(kind, K::If | K::For | K::Dict | K::End | K::Elif | K::Else)
}
