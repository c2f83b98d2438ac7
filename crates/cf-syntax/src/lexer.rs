//! Text to tokens. The first rule that matches wins, not the longest: `1 -1` is two numbers, `a-b` one name.
//!
//! Nothing fails: what is no token is reported and becomes one of kind `Error`, and what other languages write in place of a token of
//! ours is reported and becomes ours, so that the rest is understood. Line ends are `\n`, `\r\n` and `\r` alike.

use setpoint_diagnostics::{Diagnostic, FileId, Span};

use crate::errors;
use crate::parser::MAXIMUM_ERRORS;
use crate::token::{Token, TokenKind as K};

/// A text as tokens.
#[derive(Debug, Clone)]
pub struct Lexed {
    /// In the order of the text; the last one is the end of the file.
    pub tokens: Vec<Token>,
    /// From the `#` to the end of the line, without it.
    pub comments: Vec<Span>,
    /// What is no token, with how many tokens there were before it.
    pub diagnostics: Vec<(usize, Diagnostic)>,
}

/// Splits a text of less than 4 GiB; of a longer one nothing is read.
#[must_use]
pub fn lex(file: FileId, text: &str) -> Lexed {
    let readable = if u32::try_from(text.len()).is_ok() {
        text
    } else {
        ""
    };
    let mut lexer = Lexer {
        text: readable,
        bytes: readable.as_bytes(),
        file,
        position: 0,
        first_on_line: true,
        triple_quotes_end: usize::MAX,
        foreign_comments_end: usize::MAX,
        lexed: Lexed {
            tokens: Vec::with_capacity(readable.len() / 5 + 8),
            comments: Vec::new(),
            diagnostics: Vec::new(),
        },
    };
    if readable.len() != text.len() {
        lexer.report(errors::file_too_large(Span::new(file, 0, 0)));
    }
    while lexer.position < lexer.bytes.len() {
        let start = lexer.position;
        if let Some(kind) = lexer.token() {
            lexer.push(kind, start);
        }
        debug_assert!(lexer.position > start, "every step takes something");
    }
    let end = lexer.position;
    lexer.push(K::EndOfFile, end);
    lexer.lexed
}

struct Lexer<'t> {
    text: &'t str,
    bytes: &'t [u8],
    file: FileId,
    position: usize,
    first_on_line: bool,
    /// From here on there is no `"""`: looked for once.
    triple_quotes_end: usize,
    /// From here on there is no `*/`.
    foreign_comments_end: usize,
    lexed: Lexed,
}

impl Lexer<'_> {
    fn byte(&self, ahead: usize) -> u8 {
        self.bytes.get(self.position + ahead).copied().unwrap_or(0)
    }

    fn take(&mut self, length: usize, kind: K) -> Option<K> {
        self.position += length;
        Some(kind)
    }

    fn take_while(&mut self, test: impl Fn(u8) -> bool) {
        let rest = &self.bytes[self.position..];
        self.position += rest.iter().position(|byte| !test(*byte)).unwrap_or(rest.len());
    }

    fn push(&mut self, kind: K, start: usize) {
        self.lexed.tokens.push(Token {
            kind,
            first_on_line: self.first_on_line,
            start: start as u32,
            end: self.position as u32,
        });
        self.first_on_line = false;
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.file, start as u32, end as u32)
    }

    /// Nobody reads more than so many, and a text may be nothing but mistakes.
    fn report(&mut self, diagnostic: Diagnostic) {
        if self.lexed.diagnostics.len() <= MAXIMUM_ERRORS {
            self.lexed.diagnostics.push((self.lexed.tokens.len(), diagnostic));
        }
    }

    /// Takes a token, or something that is none.
    fn token(&mut self) -> Option<K> {
        let (first, second) = (self.byte(0), self.byte(1));
        match first {
            b' ' | b'\t' => {
                self.position += 1;
                None
            }
            b'\n' | b'\r' => {
                self.position += 1;
                self.first_on_line = true;
                None
            }
            b'#' => {
                let start = self.position;
                self.take_while(|byte| byte != b'\n' && byte != b'\r');
                self.lexed.comments.push(self.span(start, self.position));
                None
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => Some(self.word()),
            b':' if second == b':' => self.take(2, K::Separator),
            b'-' if second == b'-' || second == b'>' => self.take(2, K::Relation),
            b'<' if second == b'-' => self.take(2, K::Relation),
            b'!' if second == b'=' => self.take(2, K::NotEqual),
            b'=' if second == b'=' => self.take(2, K::Equal),
            b'>' if second == b'=' => self.take(2, K::GreaterOrEqual),
            b'<' if second == b'=' => self.take(2, K::LessOrEqual),
            b'<' => self.take(1, K::Less),
            b'>' => self.take(1, K::Greater),
            b'+' if second == b'=' => self.take(2, K::AddAssign),
            b'"' | b'\'' => self.string(first),
            b'0'..=b'9' | b'.' | b'-' => self.number_or(first),
            b'+' => self.take(1, K::Plus),
            b'/' if second == b'*' && self.position < self.foreign_comments_end => self.foreign_comment(),
            b'/' => self.take(1, K::Slash),
            b'*' if second == b'*' => self.take(2, K::DoubleStar),
            b'*' => self.take(1, K::Star),
            b':' => self.take(1, K::Colon),
            b'[' => self.take(1, K::LeftBracket),
            b']' => self.take(1, K::RightBracket),
            b'(' => self.take(1, K::LeftParenthesis),
            b')' => self.take(1, K::RightParenthesis),
            b'=' => self.take(1, K::Assign),
            b',' => self.take(1, K::Comma),
            b'{' => self.take(1, K::LeftBrace),
            b'}' => self.take(1, K::RightBrace),
            b'?' => self.take(1, K::Question),
            b'%' => self.take(1, K::Percent),
            _ => self.illegal(),
        }
    }

    /// A name, a keyword, a string with a letter before it, or a regular expression with its `matching`.
    fn word(&mut self) -> K {
        let start = self.position;
        if matches!((self.byte(0), self.byte(1)), (b'f' | b'r', b'"' | b'\''))
            && let Some(length) = string_length(&self.bytes[start + 1..])
        {
            self.position += 1 + length;
            return if self.bytes[start] == b'f' {
                K::FormatString
            } else {
                K::RawString
            };
        }
        self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        let word = &self.text[start..self.position];
        if word.starts_with("matching")
            && let Some(length) = regex_length(&self.text[start..])
        {
            self.position = start + length;
            return K::Regex;
        }
        if word.as_bytes()[0].is_ascii_uppercase() {
            return K::Capitalized;
        }
        match word.len() {
            2..=14 => K::of_word(word).unwrap_or(K::Identifier),
            _ => K::Identifier,
        }
    }

    /// A number, or the minus or dot that begins none.
    fn number_or(&mut self, first: u8) -> Option<K> {
        let rest = &self.bytes[self.position..];
        let sign = usize::from(first == b'-');
        let digits = |from: usize| {
            rest[from..]
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count()
        };
        let whole = digits(sign);
        if rest.get(sign + whole) == Some(&b'.') {
            let fraction = digits(sign + whole + 1);
            if fraction > 0 {
                return self.take(sign + whole + 1 + fraction, K::Float);
            }
        }
        match (whole, first) {
            (0, b'-') => self.take(1, K::Minus),
            (0, _) => self.take(1, K::Dot),
            (whole, _) => self.take(sign + whole, K::Integer),
        }
    }

    fn string(&mut self, quote: u8) -> Option<K> {
        let start = self.position;
        let quotes = self.bytes[start..]
            .iter()
            .take(10)
            .take_while(|byte| **byte == b'"')
            .count();
        if quotes >= 3 {
            if let Some(length) = self.multiline_length(quotes) {
                return self.take(length, K::MultilineString);
            }
            self.position = self.bytes.len();
            self.report(errors::unclosed_multiline_string(self.span(start, start + 3)));
            return Some(K::Error);
        }
        if let Some(length) = string_length(&self.bytes[start..]) {
            return self.take(length, K::String);
        }
        self.take_while(|byte| byte != b'\n' && byte != b'\r');
        self.report(errors::unclosed_string(
            self.span(start, start + 1),
            self.span(start, self.position),
            quote,
            quote == b'\'' && self.bytes[..start].ends_with(b"''"),
        ));
        Some(K::Error)
    }

    /// How long the string is that begins here with so many quotes, at least three. Opening and closing take up to five, and what is more
    /// than three on a side belongs to the text. Six or seven quotes in a row close themselves.
    fn multiline_length(&mut self, quotes: usize) -> Option<usize> {
        if quotes >= 6 {
            return Some(quotes);
        }
        let inside = self.position + quotes;
        if inside >= self.triple_quotes_end {
            return None;
        }
        let Some(length) = self.text[inside..].find("\"\"\"") else {
            self.triple_quotes_end = inside;
            return None;
        };
        let closing = &self.bytes[inside + length..];
        let closing = closing.iter().take(5).take_while(|byte| **byte == b'"').count();
        Some(quotes + length + closing)
    }

    /// `/* … */`, reported and skipped.
    fn foreign_comment(&mut self) -> Option<K> {
        let start = self.position;
        let Some(length) = self.text[start + 2..].find("*/") else {
            self.foreign_comments_end = start;
            return self.take(1, K::Slash);
        };
        self.position += length + 4;
        self.report(errors::foreign_comment(
            self.span(start, start + 2),
            self.span(start, self.position),
        ));
        None
    }

    /// What begins no token.
    fn illegal(&mut self) -> Option<K> {
        let start = self.position;
        let rest = &self.text[start..];
        let character = rest.chars().next().unwrap_or('\0');
        let (length, instead) = match character {
            '&' => (1 + usize::from(rest.starts_with("&&")), Some(K::And)),
            '|' => (1 + usize::from(rest.starts_with("||")), Some(K::Or)),
            '!' => (1, Some(K::Not)),
            ';' | '\\' => (1, None),
            '“' | '”' | '„' | '‘' | '’' | '`' => (quoted_length(rest), Some(K::Error)),
            character if errors::is_invisible(character) => (character.len_utf8(), None),
            // A word in another script is one mistake, not one for each letter.
            character if !character.is_ascii() => (
                rest.find(|c: char| c.is_ascii()).unwrap_or(rest.len()),
                Some(K::Error),
            ),
            _ => (1, Some(K::Error)),
        };
        self.position += length;
        let at = self.span(start, start + character.len_utf8());
        let diagnostic = errors::illegal_character(character, at, self.span(start, self.position), self.text);
        self.report(diagnostic);
        instead
    }
}

/// How long the string of one line is that begins with the quote at the start of `bytes`, if it is closed.
fn string_length(bytes: &[u8]) -> Option<usize> {
    let quote = bytes[0];
    let mut position = 1;
    loop {
        match bytes.get(position)? {
            b'\n' | b'\r' => return None,
            b'\\' if matches!(bytes.get(position + 1)?, b'\n' | b'\r') => return None,
            b'\\' => position += 2,
            byte if *byte == quote => return Some(position + 1),
            _ => position += 1,
        }
    }
}

/// How long the regular expression is that begins with the `matching` at the start of `text`, if it is one.
fn regex_length(text: &str) -> Option<usize> {
    let behind = text.strip_prefix("matching")?;
    let inside = behind.trim_start();
    if inside.len() == behind.len() || !inside.starts_with('/') {
        return None;
    }
    let start = text.len() - inside.len();
    let bytes = text.as_bytes();
    let mut position = start + 1;
    loop {
        match bytes.get(position)? {
            b'\n' | b'\r' => return None,
            b'\\' if matches!(bytes.get(position + 1)?, b'\n' | b'\r') => return None,
            b'\\' => position += 2,
            b'/' => return (position > start + 1).then_some(position + 1),
            _ => position += 1,
        }
    }
}

/// How much of the line a text in quotes of another sort takes.
fn quoted_length(text: &str) -> usize {
    let mut characters = text.char_indices();
    let Some((_, opening)) = characters.next() else {
        return 1;
    };
    let closes = |character: char| match opening {
        '`' => character == '`',
        '‘' | '’' => matches!(character, '‘' | '’'),
        _ => matches!(character, '“' | '”' | '"'),
    };
    for (at, character) in characters {
        match character {
            '\n' | '\r' => break,
            character if closes(character) => return at + character.len_utf8(),
            _ => {}
        }
    }
    opening.len_utf8()
}
