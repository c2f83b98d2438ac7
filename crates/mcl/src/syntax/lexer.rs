//! Text to tokens, in one pass over the bytes. Longest match wins; nothing is dropped and nothing fails.
//!
//! What is no token becomes a [`K::Error`] with a diagnostic; what other languages write in place of a token of ours is reported too,
//! and becomes ours, so that the rest is understood. `||` is a token although only some places take it: the parser knows which, and
//! reports the others.

use setpoint_diagnostics::{Diagnostic, FileId, Span};

use super::parser::{Comment, MAXIMUM_ERRORS};
use super::token::{TokenKind as K, Tokens};
use super::{codes, errors};

/// A text as tokens.
pub(super) struct Lexed {
    pub(super) tokens: Tokens,
    pub(super) comments: Vec<Comment>,
    /// Where each `||` begins.
    pub(super) bars: Vec<u32>,
    pub(super) diagnostics: Vec<Diagnostic>,
}

/// Splits a text of less than 4 GiB. The strings that begin at the places in `unclosed`, which are in order, end with their lines.
pub(super) fn lex(file: FileId, text: &str, unclosed: &[u32]) -> Lexed {
    let lexed = Lexed {
        tokens: Tokens::with_capacity(text.len() / 4 + 8),
        comments: Vec::new(),
        bars: Vec::new(),
        diagnostics: Vec::new(),
    };
    let mut lexer = Lexer {
        text,
        bytes: text.as_bytes(),
        file,
        position: 0,
        lexed,
        carriage_return_seen: false,
        unclosed,
    };
    while lexer.position < lexer.bytes.len() {
        let start = lexer.position;
        let kind = lexer.token();
        debug_assert!(lexer.position > start, "every token has a length");
        lexer.lexed.tokens.push(kind, lexer.position);
    }
    lexer.lexed
}

struct Lexer<'t> {
    text: &'t str,
    bytes: &'t [u8],
    file: FileId,
    position: usize,
    lexed: Lexed,
    carriage_return_seen: bool,
    unclosed: &'t [u32],
}

impl Lexer<'_> {
    fn byte(&self, ahead: usize) -> u8 {
        self.bytes.get(self.position + ahead).copied().unwrap_or(0)
    }

    /// Nobody reads more than so many, and a text may be nothing but mistakes.
    fn report(&mut self, diagnostic: Diagnostic) {
        if self.lexed.diagnostics.len() < MAXIMUM_ERRORS {
            self.lexed.diagnostics.push(diagnostic);
        }
    }

    fn take(&mut self, length: usize, kind: K) -> K {
        self.position += length;
        kind
    }

    fn take_while(&mut self, test: impl Fn(u8) -> bool) {
        let rest = &self.bytes[self.position..];
        self.position += rest.iter().position(|byte| !test(*byte)).unwrap_or(rest.len());
    }

    fn token(&mut self) -> K {
        match self.byte(0) {
            b' ' | b'\t' => {
                self.take_while(|byte| byte == b' ' || byte == b'\t');
                K::Whitespace
            }
            b'\n' => self.take(1, K::Newline),
            b'a'..=b'z' => self.word(),
            b'A'..=b'Z' => {
                self.position += 1;
                self.rest_of_word();
                K::Capitalized
            }
            b'0'..=b'9' => self.number(),
            b'"' => self.string(),
            b'#' => {
                let start = self.position;
                self.take_while(|byte| byte != b'\n');
                let span = self.span(start, self.position);
                self.lexed.comments.push(Comment { span });
                K::Comment
            }
            b'{' => self.take(1, K::LeftBrace),
            b'}' => self.take(1, K::RightBrace),
            b'(' => self.take(1, K::LeftParen),
            b')' => self.take(1, K::RightParen),
            b'[' => self.take(1, K::LeftBracket),
            b']' => self.take(1, K::RightBracket),
            b',' => self.take(1, K::Comma),
            b':' => self.take(1, K::Colon),
            b';' => self.take(1, K::Semicolon),
            b'+' => self.take(1, K::Plus),
            b'*' => self.take(1, K::Star),
            b'/' => self.take(1, K::Slash),
            b'.' => self.take(1, K::Dot),
            b'$' => self.take(1, K::Dollar),
            b'-' => match self.byte(1) {
                b'>' => self.take(2, K::Arrow),
                b'0'..=b'9' => self.number(),
                _ => self.take(1, K::Minus),
            },
            b'=' => match self.byte(1) {
                b'>' => self.take(2, K::Rocket),
                b'=' => self.take(2, K::Equal),
                _ => self.take(1, K::Equals),
            },
            b'<' => match (self.byte(1), self.byte(2)) {
                (b'|', b'>') => self.take(3, K::Except),
                (b'=', _) => self.take(2, K::LessEqual),
                _ => self.take(1, K::Less),
            },
            b'>' => match self.byte(1) {
                b'=' => self.take(2, K::GreaterEqual),
                _ => self.take(1, K::Greater),
            },
            b'!' if self.byte(1) == b'=' => self.take(2, K::NotEqual),
            b'!' => self.of_another_language(
                1,
                K::Not,
                "`!` has no meaning here",
                "the logical operator is `not`",
                "not ",
            ),
            b'&' if self.byte(1) == b'&' => self.of_another_language(
                2,
                K::And,
                "`&&` has no meaning here",
                "the logical operator is `and`",
                "and",
            ),
            b'?' if self.byte(1) == b':' => self.take(2, K::Elvis),
            b'|' if self.byte(1) == b'|' => {
                self.lexed.bars.push(self.position as u32);
                self.take(2, K::Bars)
            }
            b'\r' => {
                self.carriage_return();
                self.take(1, K::CarriageReturn)
            }
            _ => self.bad_character(),
        }
    }

    /// Letters, digits and underscores, but no underscore at the end.
    fn rest_of_word(&mut self) {
        self.take_while(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        while self.bytes[self.position - 1] == b'_' {
            self.position -= 1;
        }
    }

    fn word(&mut self) -> K {
        let start = self.position;
        self.rest_of_word();
        let word = &self.text[start..self.position];
        match word.len() {
            2..=7 => K::of_word(word).unwrap_or(K::Identifier),
            _ => K::Identifier,
        }
    }

    fn number(&mut self) -> K {
        let start = self.position;
        self.position += 1;
        self.take_while(|byte| byte.is_ascii_digit());
        let float = self.byte(0) == b'.' && self.byte(1).is_ascii_digit();
        if float {
            self.position += 1;
            self.take_while(|byte| byte.is_ascii_digit());
        }
        let text = &self.text[start..self.position];
        let span = self.span(start, self.position);
        if let Some(error) = check_number(text, span) {
            self.report(error);
        }
        if float { K::FloatNumber } else { K::IntegerNumber }
    }

    fn string(&mut self) -> K {
        let start = self.position;
        let mut position = start + 1;
        let ends_with_its_line = self.unclosed.binary_search(&(start as u32)).is_ok();
        while let Some(byte) = self.bytes.get(position).filter(|_| !ends_with_its_line) {
            match byte {
                b'"' => {
                    self.position = position + 1;
                    return K::String;
                }
                b'\\' => position += 2,
                _ => position += 1,
            }
        }
        // The rest of the line, so that the statements below are still read.
        self.take_while(|byte| byte != b'\n');
        let diagnostic = errors::unclosed_string(self.file, start as u32);
        self.report(diagnostic);
        K::Error
    }

    fn carriage_return(&mut self) {
        // One line end says it all.
        if self.carriage_return_seen {
            return;
        }
        self.carriage_return_seen = true;
        let span = self.span(self.position, self.position + 1);
        let diagnostic = if self.byte(1) == b'\n' {
            Diagnostic::error(&codes::CARRIAGE_RETURN, span, "the file has Windows line ends")
                .label("a carriage return before the end of the line")
                .help("save the file with Unix line ends, for example with `dos2unix`")
        } else {
            Diagnostic::error(
                &codes::CARRIAGE_RETURN,
                span,
                "a carriage return outside of a string",
            )
            .label("only spaces, tabs and newlines separate words")
        };
        self.report(diagnostic);
    }

    /// What another language writes for a token of ours.
    fn of_another_language(
        &mut self,
        length: usize,
        meant: K,
        message: &str,
        help: &str,
        replacement: &str,
    ) -> K {
        let whole = self.span(self.position, self.position + length);
        let first = self.span(self.position, self.position + 1);
        let error = Diagnostic::error(&codes::BAD_CHARACTER, first, message).shown_at(whole);
        self.report(error.fix(help, whole, replacement));
        self.take(length, meant)
    }

    /// A string in the quotes of another language: what is between them is taken for a string.
    fn other_quotes(&mut self, quote: char) -> K {
        let start = self.position;
        let first_end = start + quote.len_utf8();
        let closing: &[char] = match quote {
            '“' | '”' | '„' => &['”', '“', '"'],
            '‘' | '’' => &['’', '‘'],
            _ => &[quote],
        };
        let line = self.text[first_end..].split('\n').next().unwrap_or("");
        let first = self.span(start, first_end);
        let message = match quote {
            '`' => "a backquote has no meaning here".to_owned(),
            _ => format!("`{quote}` has no meaning here"),
        };
        let error = Diagnostic::error(&codes::BAD_CHARACTER, first, message);
        let Some(length) = line.find(closing) else {
            let help = "strings are written in double quotes: `\"text\"`";
            self.report(error.help(help));
            return self.take(quote.len_utf8(), K::Error);
        };
        let inside = &line[..length];
        let behind = line[length..].chars().next().map_or(0, char::len_utf8);
        let whole = self.span(start, first_end + length + behind);
        let error = error.shown_at(whole);
        let error = if quote == '`' {
            error.help("the output of a command is had with `os.system(\"…\")` of `import \"os\"`; a string has double quotes")
        } else if inside.contains(['"', '\\', '$']) {
            error.help("strings are written in double quotes; inside of them `\\\"`, `\\\\` and `\\$` are a quote, a backslash and a dollar")
        } else {
            error.fix(
                "strings are written in double quotes",
                whole,
                format!("\"{inside}\""),
            )
        };
        self.report(error);
        self.take(first_end - start + length + behind, K::String)
    }

    /// A space or mark that looks like nothing, and is none of ours.
    fn invisible(&mut self, character: char) -> K {
        let span = self.span(self.position, self.position + character.len_utf8());
        let (message, help, replacement) = match character {
            '\u{feff}' => (
                "a byte-order mark has no meaning here".to_owned(),
                "save the file as UTF-8 without a byte-order mark",
                "",
            ),
            _ => (
                format!(
                    "the space U+{:04X} is not one that separates words",
                    character as u32
                ),
                "replace it by an ordinary space",
                " ",
            ),
        };
        let error = Diagnostic::error(&codes::BAD_CHARACTER, span, message).label("it looks like nothing");
        self.report(error.fix(help, span, replacement));
        self.take(character.len_utf8(), K::Whitespace)
    }

    fn bad_character(&mut self) -> K {
        let start = self.position;
        let character = self.text[start..].chars().next().unwrap_or('\0');
        match character {
            '\'' | '`' | '“' | '”' | '„' | '‘' | '’' => return self.other_quotes(character),
            '\u{feff}' | '\u{200b}' => return self.invisible(character),
            character if !character.is_ascii() && character.is_whitespace() => {
                return self.invisible(character);
            }
            _ => {}
        }
        let first_end = start + character.len_utf8();
        self.position = first_end;
        if !character.is_ascii() {
            // A word in another script is one mistake, not one for each letter.
            self.take_while(|byte| !byte.is_ascii());
        }
        let shown: String = match character {
            character if character.is_control() => format!("the character U+{:04X}", character as u32),
            character => format!("`{character}`"),
        };
        let span = self.span(start, first_end);
        let mut diagnostic = Diagnostic::error(
            &codes::BAD_CHARACTER,
            span,
            format!("{shown} has no meaning here"),
        );
        diagnostic = match character {
            '|' => diagnostic.help("a fallback is written `<|>`, the logical operator `or`"),
            '&' => diagnostic.help("the logical operator is written `and`"),
            '?' => diagnostic.help(
                "one of two values is `if $condition { 1 } else { 2 }`; a parameter that is set only sometimes is `name => $condition ?: value,`",
            ),
            '~' if self.byte(0) == b'>' => {
                diagnostic.help("an edge that also notifies stands in the resource that comes first: `Notify => Exec[\"reload\"],`")
            }
            '_' => diagnostic.help("names begin with a letter and do not end in an underscore"),
            '\\' => diagnostic.help("a line cannot be continued with `\\`; break it inside brackets"),
            '%' => diagnostic.help("the remainder of a division is `math.mod($a, $b)` of `import \"math\"`"),
            '@' => diagnostic.help("a variable has a `$` before its name"),
            character if character.is_alphabetic() => {
                diagnostic.help("names are written with the letters `a` to `z`, digits and `_`")
            }
            _ => diagnostic,
        };
        self.report(diagnostic);
        K::Error
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.file, start as u32, end as u32)
    }
}

/// What is wrong with the value of a number, if anything.
pub(super) fn check_number(text: &str, span: Span) -> Option<Diagnostic> {
    if text.len() <= 18 {
        return None;
    }
    if text.contains('.') {
        let finite = text.parse::<f64>().is_ok_and(f64::is_finite);
        (!finite).then(|| {
            Diagnostic::error(
                &codes::FLOAT_RANGE,
                span,
                "this number is too large for a `float`",
            )
            .label("beyond about 1.8 times ten to the power of 308")
        })
    } else {
        text.parse::<i64>().is_err().then(|| {
            Diagnostic::error(&codes::INTEGER_RANGE, span, "this number does not fit an `int`")
                .label(format!("from {} to {}", i64::MIN, i64::MAX))
        })
    }
}
