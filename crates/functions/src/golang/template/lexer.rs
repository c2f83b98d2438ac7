//! Templates as tokens.

use super::super::numbers;
use super::super::quoting;
use super::super::text::first_rune;
use super::tree::Number;

/// A token with the line on which it begins.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub line: usize,
    pub kind: TokenKind,
}

#[derive(Debug, Clone)]
pub(super) enum TokenKind {
    /// What stands outside of actions.
    Text(Vec<u8>),
    /// `{{`.
    Open,
    /// `}}`.
    Close,
    /// White space inside an action; it separates arguments.
    Space,
    Identifier(String),
    /// `.Name`.
    Field(String),
    /// `$name`, or `$` alone.
    Variable(String),
    Dot,
    Bool(bool),
    Number(Number),
    Str(Vec<u8>),
    Keyword(Keyword),
    /// `:=`.
    Declare,
    /// `=`.
    Assign,
    Comma,
    Pipe,
    OpenParenthesis,
    CloseParenthesis,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Keyword {
    Block,
    Break,
    Continue,
    Define,
    Else,
    End,
    If,
    Nil,
    Range,
    Template,
    With,
}

impl Keyword {
    fn named(name: &str) -> Option<Keyword> {
        Some(match name {
            "block" => Keyword::Block,
            "break" => Keyword::Break,
            "continue" => Keyword::Continue,
            "define" => Keyword::Define,
            "else" => Keyword::Else,
            "end" => Keyword::End,
            "if" => Keyword::If,
            "nil" => Keyword::Nil,
            "range" => Keyword::Range,
            "template" => Keyword::Template,
            "with" => Keyword::With,
            _ => return None,
        })
    }
}

/// Cuts a template into tokens; an error is a message with its line.
pub(super) fn tokens(input: &[u8]) -> Result<Vec<Token>, String> {
    let mut lexer = Lexer {
        rest: input,
        line: 1,
        tokens: Vec::new(),
    };
    lexer.outside()?;
    Ok(lexer.tokens)
}

struct Lexer<'a> {
    rest: &'a [u8],
    line: usize,
    tokens: Vec<Token>,
}

impl Lexer<'_> {
    fn error<T>(&self, message: impl std::fmt::Display) -> Result<T, String> {
        Err(format!("template:{}: {message}", self.line))
    }

    fn push(&mut self, kind: TokenKind) {
        self.tokens.push(Token {
            line: self.line,
            kind,
        });
    }

    /// Goes on by so many bytes.
    fn skip(&mut self, length: usize) {
        let (passed, rest) = self.rest.split_at(length);
        self.line += passed.iter().filter(|b| **b == b'\n').count();
        self.rest = rest;
    }

    fn take(&mut self, length: usize, kind: TokenKind) {
        self.push(kind);
        self.skip(length);
    }

    /// Text and actions to the end.
    fn outside(&mut self) -> Result<(), String> {
        loop {
            let Some(open) = super::super::text::find(self.rest, b"{{") else {
                if !self.rest.is_empty() {
                    self.take(self.rest.len(), TokenKind::Text(self.rest.to_vec()));
                }
                return Ok(());
            };
            let mut text = &self.rest[..open];
            let trims = matches!(self.rest[open + 2..], [b'-', blank, ..] if is_space(blank));
            if trims {
                text = text.trim_ascii_end_of_blanks();
            }
            if !text.is_empty() {
                self.push(TokenKind::Text(text.to_vec()));
            }
            self.skip(open + 2 + usize::from(trims));
            let after = if trims {
                self.rest.trim_start_of_blanks()
            } else {
                self.rest
            };
            if after.starts_with(b"/*") {
                self.comment()?;
            } else {
                self.push(TokenKind::Open);
                self.inside()?;
            }
        }
    }

    /// A comment, which fills its action.
    fn comment(&mut self) -> Result<(), String> {
        self.skip(self.rest.len() - self.rest.trim_start_of_blanks().len());
        let Some(end) = super::super::text::find(self.rest, b"*/") else {
            return self.error("unclosed comment");
        };
        let after = &self.rest[end + 2..];
        if after.starts_with(b"}}") {
            self.skip(end + 4);
            return Ok(());
        }
        let blanks = after.len() - after.trim_start_of_blanks().len();
        if blanks > 0 && after[blanks..].starts_with(b"-}}") {
            self.skip(end + 2 + blanks + 3);
            self.trim();
            return Ok(());
        }
        self.error("comment ends before closing delimiter")
    }

    /// Drops the white space that follows.
    fn trim(&mut self) {
        self.skip(self.rest.len() - self.rest.trim_start_of_blanks().len());
    }

    /// The tokens of an action up to its end.
    fn inside(&mut self) -> Result<(), String> {
        let mut depth = 0usize;
        loop {
            if self.rest.starts_with(b"}}") {
                if depth > 0 {
                    return self.error("unclosed left paren");
                }
                self.take(2, TokenKind::Close);
                return Ok(());
            }
            let Some((c, length)) = first_rune(self.rest) else {
                return self.error("unclosed action");
            };
            match c {
                ' ' | '\t' | '\r' | '\n' => {
                    let blanks = self.rest.len() - self.rest.trim_start_of_blanks().len();
                    if self.rest[blanks..].starts_with(b"-}}") {
                        if depth > 0 {
                            return self.error("unclosed left paren");
                        }
                        self.skip(blanks);
                        self.take(3, TokenKind::Close);
                        self.trim();
                        return Ok(());
                    }
                    self.take(blanks, TokenKind::Space);
                }
                ':' if self.rest.get(1) == Some(&b'=') => self.take(2, TokenKind::Declare),
                ':' => return self.error("expected :="),
                '=' => self.take(1, TokenKind::Assign),
                '|' => self.take(1, TokenKind::Pipe),
                ',' => self.take(1, TokenKind::Comma),
                '(' => {
                    depth += 1;
                    self.take(1, TokenKind::OpenParenthesis);
                }
                ')' => {
                    if depth == 0 {
                        return self.error("unexpected right paren");
                    }
                    depth -= 1;
                    self.take(1, TokenKind::CloseParenthesis);
                }
                '"' | '\'' | '`' => self.quoted()?,
                '$' => {
                    let name = self.word(1)?;
                    let length = 1 + name.len();
                    self.take(length, TokenKind::Variable(format!("${name}")));
                }
                '.' if !self.rest.get(1).is_some_and(u8::is_ascii_digit) => {
                    let name = self.word(1)?;
                    let length = 1 + name.len();
                    self.take(
                        length,
                        if name.is_empty() {
                            TokenKind::Dot
                        } else {
                            TokenKind::Field(name)
                        },
                    );
                }
                '.' | '+' | '-' | '0'..='9' => self.number()?,
                c if is_letter(c) => {
                    let word = self.word(0)?;
                    let kind = match word.as_str() {
                        "true" => TokenKind::Bool(true),
                        "false" => TokenKind::Bool(false),
                        name => match Keyword::named(name) {
                            Some(keyword) => TokenKind::Keyword(keyword),
                            None => TokenKind::Identifier(word.clone()),
                        },
                    };
                    self.take(word.len(), kind);
                }
                c => {
                    let shown = super::super::quoting::quote(&self.rest[..length], quoting::Keep::Printable);
                    return self.error(format!("unexpected {shown} (U+{:04X}) in command", c as u32));
                }
            }
        }
    }

    /// The letters and digits from `start` on; what follows must end a word.
    fn word(&self, start: usize) -> Result<String, String> {
        let mut end = start;
        while let Some((c, length)) = first_rune(&self.rest[end..])
            && is_letter(c)
        {
            end += length;
        }
        let ends = match first_rune(&self.rest[end..]) {
            None => true,
            Some((c, _)) => {
                matches!(
                    c,
                    ' ' | '\t' | '\r' | '\n' | '.' | ',' | '|' | ':' | '=' | ')' | '('
                ) || self.rest[end..].starts_with(b"}}")
            }
        };
        if !ends {
            let (c, length) = first_rune(&self.rest[end..]).unwrap_or((' ', 0));
            let shown = quoting::quote(&self.rest[end..end + length], quoting::Keep::Printable);
            return self.error(format!("bad character {shown} (U+{:04X})", c as u32));
        }
        Ok(String::from_utf8_lossy(&self.rest[start..end]).into_owned())
    }

    /// A string in double or back quotes, or a character, which is a number.
    fn quoted(&mut self) -> Result<(), String> {
        let quote = self.rest[0];
        let Some((value, length)) = quoting::unquote_prefix(self.rest) else {
            return self.error(match quote {
                b'"' => "unterminated quoted string",
                b'`' => "unterminated raw quoted string",
                _ => "malformed character constant",
            });
        };
        let kind = if quote == b'\'' {
            let code = first_rune(&value).map_or(0, |(c, length)| {
                // An escape may have given a byte that is not UTF-8; its value is meant.
                if length == value.len() && value.len() == 1 {
                    u32::from(value[0])
                } else {
                    c as u32
                }
            });
            TokenKind::Number(Number {
                int: Some(i64::from(code)),
                float: f64::from(code),
                is_float: false,
            })
        } else {
            TokenKind::Str(value)
        };
        self.take(length, kind);
        Ok(())
    }

    fn number(&mut self) -> Result<(), String> {
        let mut length = 0;
        while let Some(byte) = self.rest.get(length) {
            let sign_fits = length == 0
                || matches!(self.rest[length - 1], b'e' | b'E') && !self.rest.starts_with(b"0x")
                || matches!(self.rest[length - 1], b'p' | b'P');
            let belongs = byte.is_ascii_alphanumeric()
                || matches!(byte, b'.' | b'_')
                || matches!(byte, b'+' | b'-') && sign_fits;
            if !belongs {
                break;
            }
            length += 1;
        }
        let text = &self.rest[..length];
        let shown = String::from_utf8_lossy(text).into_owned();
        if shown.ends_with('i') {
            return self.error(format!("imaginary numbers are not supported: {shown:?}"));
        }
        let int = numbers::parse_int(text, 0, 64).ok();
        let written_as_float = {
            let lower = shown.to_ascii_lowercase();
            let is_hexadecimal = lower.trim_start_matches(['+', '-']).starts_with("0x");
            lower.contains(['.', 'p']) || !is_hexadecimal && lower.contains('e')
        };
        let number = match (int, numbers::parse_float(text, 64)) {
            (Some(int), _) => Number {
                int: Some(int),
                float: int as f64,
                is_float: false,
            },
            (None, Ok(float)) if written_as_float => {
                let whole = float.trunc() == float && float.abs() < 9.2e18;
                Number {
                    int: whole.then_some(float as i64),
                    float,
                    is_float: true,
                }
            }
            (None, Ok(_)) => return self.error(format!("integer overflow: {shown:?}")),
            (None, Err(_)) => return self.error(format!("illegal number syntax: {shown:?}")),
        };
        self.take(length, TokenKind::Number(number));
        Ok(())
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn is_letter(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// White space as templates know it.
trait Blanks {
    fn trim_start_of_blanks(&self) -> &[u8];
    fn trim_ascii_end_of_blanks(&self) -> &[u8];
}

impl Blanks for [u8] {
    fn trim_start_of_blanks(&self) -> &[u8] {
        let start = self.iter().position(|b| !is_space(*b)).unwrap_or(self.len());
        &self[start..]
    }

    fn trim_ascii_end_of_blanks(&self) -> &[u8] {
        let end = self.iter().rposition(|b| !is_space(*b)).map_or(0, |at| at + 1);
        &self[..end]
    }
}
