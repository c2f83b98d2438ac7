//! What the parser found where something else must stand, in words: what it expected, and what is written so in another language.

use std::ops::Range;

use setpoint_diagnostics::{Diagnostic, FileId, Span};

use super::codes;
use super::foreign::{self, Instead};
use super::token::TokenKind as K;

/// What was found where something else must stand.
pub(super) struct Unexpected<'t> {
    pub(super) file: FileId,
    /// The whole file.
    pub(super) source: &'t str,
    pub(super) kind: K,
    pub(super) start: u32,
    pub(super) end: u32,
    /// What could stand there: "an expression".
    pub(super) expected: &'static str,
    /// Advice for this place, if there is better advice than what the two tokens suggest.
    pub(super) help: Option<&'static str>,
    /// The innermost bracket that is open.
    pub(super) open: Option<(K, u32)>,
    pub(super) previous: K,
    pub(super) previous_start: u32,
    pub(super) previous_end: u32,
    /// The tokens behind.
    pub(super) following: [K; 2],
    /// Where the file ends: a `{` whose `}` stands further left than its line.
    pub(super) askew: Option<u32>,
}

/// What to do about something that was not expected.
#[derive(Default)]
struct Advice {
    help: String,
    /// What is wrong, if that can be said better than by what was expected.
    message: Option<String>,
    /// What is shown instead of the token.
    shown: Option<Range<u32>>,
    edit: Option<(Range<u32>, String)>,
}

impl Advice {
    fn new(help: impl Into<String>) -> Advice {
        Advice {
            help: help.into(),
            ..Advice::default()
        }
    }

    fn at(mut self, shown: Range<u32>) -> Advice {
        self.shown = Some(shown);
        self
    }

    fn saying(mut self, message: impl Into<String>) -> Advice {
        self.message = Some(message.into());
        self
    }

    fn replacing(mut self, range: Range<u32>, replacement: impl Into<String>) -> Advice {
        self.edit = Some((range, replacement.into()));
        self
    }
}

impl Unexpected<'_> {
    pub(super) fn diagnostic(&self) -> Diagnostic {
        // One column wide, as compared by tools; a newline and the end of the file have no more.
        let width = self.text().chars().next().map_or(0, char::len_utf8) as u32;
        let span = Span::new(self.file, self.start, self.start + width);
        let advice = self
            .of_another_language()
            .or_else(|| self.help.map(Advice::new))
            .or_else(|| self.advice().map(Advice::new));
        let Some(advice) = advice else {
            return self.plain(span);
        };
        let mut diagnostic = match advice.message {
            Some(message) => Diagnostic::error(&codes::UNEXPECTED, span, message),
            None => self.plain(span),
        };
        if let Some(shown) = advice.shown {
            diagnostic = diagnostic.shown_at(self.span(&shown));
        }
        match advice.edit {
            Some((range, replacement)) => diagnostic.fix(advice.help, self.span(&range), replacement),
            None => diagnostic.help(advice.help),
        }
    }

    fn plain(&self, span: Span) -> Diagnostic {
        let found = describe(self.kind, self.text());
        let message = format!("expected {}, found {found}", self.expected);
        let diagnostic =
            Diagnostic::error(&codes::UNEXPECTED, span, message).label(format!("expected {}", self.expected));
        if let Some(start) = self.askew {
            let text = "this `{` is probably the one without its `}`: the next one stands further left";
            return diagnostic.because(Span::new(self.file, start, start + 1), text);
        }
        match self.open {
            Some((kind, start)) if self.shows_bracket(kind) => {
                let bracket = kind.text().unwrap_or("");
                let text = format!("`{bracket}` opened here");
                diagnostic.because(Span::new(self.file, start, start + 1), text)
            }
            _ => diagnostic,
        }
    }

    fn span(&self, range: &Range<u32>) -> Span {
        Span::new(self.file, range.start, range.end)
    }

    fn slice(&self, range: Range<u32>) -> &str {
        self.source
            .get(range.start as usize..range.end as usize)
            .unwrap_or("")
    }

    fn text(&self) -> &str {
        self.slice(self.start..self.end)
    }

    /// The token with the spaces behind it.
    fn with_space(&self) -> Range<u32> {
        let behind = self.source.get(self.end as usize..).unwrap_or("");
        let spaces = behind.len() - behind.trim_start_matches(' ').len();
        self.start..self.end + spaces as u32
    }

    /// Whether nothing stands between the previous token and this one.
    fn glued(&self) -> bool {
        self.previous_end == self.start && self.start > 0
    }

    fn shows_bracket(&self, open: K) -> bool {
        match self.kind {
            K::EndOfFile => true,
            K::Newline | K::RightBrace => open != K::LeftBrace,
            K::RightBracket | K::RightParen => open != K::LeftBrace && open.closing() != Some(self.kind),
            _ => false,
        }
    }

    /// What is written so in another language.
    fn of_another_language(&self) -> Option<Advice> {
        match self.kind {
            K::Plus | K::Minus | K::Star | K::Slash => self.foreign_sign(),
            K::Colon | K::Equals => self.foreign_definition(),
            K::Capitalized => self.foreign_capitals(),
            K::Identifier => self.foreign_word(),
            K::String | K::Dollar | K::Dot => self.foreign_text(),
            K::Semicolon | K::Comma => self.foreign_separator(),
            K::Arrow | K::Rocket | K::LeftParen | K::LeftBrace => self.foreign_bracket_or_arrow(),
            _ => None,
        }
    }

    fn here(&self) -> Range<u32> {
        self.start..self.end
    }

    /// Whether a definition has its name, so that a type or a value comes next.
    fn wants_definition(&self) -> bool {
        self.expected == "`=` or a type"
    }

    fn foreign_sign(&self) -> Option<Advice> {
        let wants_statement = matches!(self.expected, "a statement" | "the name of a parameter, or `}`");
        Some(match (self.previous, self.kind) {
            (K::Slash, K::Slash) if self.glued() => comment(self.previous_start..self.end),
            (_, K::Slash) if wants_statement && self.following[0] == K::Slash => {
                comment(self.start..self.end + 1)
            }
            (_, K::Slash) if wants_statement && self.following[0] == K::Star => {
                Advice::new("a comment goes from `#` to the end of its line; each line has its own")
                    .saying("`/*` does not begin a comment")
                    .at(self.start..self.end + 1)
            }
            (K::Identifier, K::Minus)
                if self.glued()
                    && self.following[0] == K::Identifier
                    && (self.wants_definition() || matches!(self.expected, "`=>`" | "`{`")) =>
            {
                self.name_with_capitals()
            }
            _ if self.wants_definition() => Advice::new(
                "a variable has one value and is never changed; give the new value a name of its own",
            )
            .saying("a variable cannot be changed"),
            (K::LeftBracket, K::Minus) if self.following == [K::Identifier, K::Slash] => {
                Advice::new("whether a file is there is `os.file_exists(\"/etc/motd\")` of `import \"os\"`")
                    .saying("a condition is not a test of the shell")
            }
            (K::Star, K::Star) if self.glued() => {
                Advice::new("a power is `math.pow($base, $exponent)` of `import \"math\"`")
                    .saying("`**` has no meaning here")
                    .at(self.previous_start..self.end)
            }
            _ => return None,
        })
    }

    /// A `:` or `=` with which another language gives a name its type or value.
    fn foreign_definition(&self) -> Option<Advice> {
        let here = self.here();
        Some(match (self.kind, self.expected) {
            (K::Colon, _) if self.wants_definition() && self.following[0] == K::Equals => {
                Advice::new("a variable is defined with `=`").replacing(here, "")
            }
            (K::Colon, _) if self.wants_definition() => {
                Advice::new("the type stands behind the name, without a colon").replacing(here, "")
            }
            (K::Colon, "`=>`") if self.previous == K::Identifier => {
                let name = self.previous_start..self.previous_end;
                match self.slice(name.clone()) {
                    "meta" => Advice::new("a meta parameter begins with a capital letter")
                        .replacing(name.clone(), "Meta")
                        .at(name),
                    _ => Advice::new("a parameter is set with `=>`").replacing(here, " =>"),
                }
            }
            (K::Colon, "`=>`") => Advice::new("keys and values are separated by `=>`").replacing(here, " =>"),
            (K::Colon, "`{`") => Advice::new("a block stands in braces: `if $condition { … }`"),
            (K::Equals, "`=>`") => {
                Advice::new("parameters, keys and fields are given a value with `=>`").replacing(here, "=>")
            }
            (K::Equals, "`,` or `)`") => {
                Advice::new("parameters have no defaults; every `include` and call gives all of them")
                    .saying("a parameter cannot have a default")
            }
            _ => return None,
        })
    }

    fn foreign_capitals(&self) -> Option<Advice> {
        let is_inside_name = self.glued() && is_wordlike(self.previous) && !self.is_kind();
        if is_inside_name || self.expected.contains("name of a variable") {
            return Some(self.name_with_capitals());
        }
        if self.expected != "an expression" {
            return None;
        }
        let word = self.whole_word();
        let text = self.slice(word.clone());
        if let Some(instead) = foreign::value(text) {
            return Some(bare_value(text, word, instead));
        }
        if self.following[0] == K::LeftBracket {
            return None;
        }
        let help = format!(
            "a variable has a `$` before its name and a small letter, a text has quotes: `\"{text}\"`"
        );
        Some(
            Advice::new(help)
                .saying(format!("`{text}` is not a value"))
                .at(word),
        )
    }

    fn foreign_word(&self) -> Option<Advice> {
        let (here, text) = (self.here(), self.text());
        Some(match self.expected {
            "`{`" if matches!(text, "then" | "do") => {
                Advice::new("a block stands in braces, without a word before it")
                    .saying(format!("`{text}` has no meaning here"))
                    .at(here)
                    .replacing(self.with_space(), "")
            }
            _ if self.wants_definition() => {
                let instead = foreign::type_name(text);
                let help = instead.map_or("the types are `bool`, `str`, `int`, `float`, `[]str`, `map{str: int}`, `struct{a str}` and `func(int) int`", |i| i.help);
                let advice = Advice::new(help)
                    .saying(format!("there is no type `{text}`"))
                    .at(here.clone());
                match instead.and_then(|instead| instead.replacement) {
                    Some(name) => advice.replacing(here, name),
                    None => advice,
                }
            }
            "`$`" => {
                Advice::new("a variable has a `$` before its name").replacing(self.start..self.start, "$")
            }
            _ if self.previous == K::Import => {
                Advice::new("what is imported stands in quotes").replacing(here, format!("\"{text}\""))
            }
            _ => return None,
        })
    }

    /// A text, or what other languages join texts with.
    fn foreign_text(&self) -> Option<Advice> {
        let here = self.here();
        Some(match (self.previous, self.kind) {
            (K::Dot, K::String | K::Dollar) => Advice::new("texts are joined with `+`"),
            (K::String, K::Dot) => Advice::new("texts are joined with `+`").replacing(here, "+"),
            (K::String, K::String) if self.glued() && self.previous_end - self.previous_start == 2 => {
                Advice::new("a text of several lines has one quote at its beginning and one at its end")
                    .saying("there are no triple quotes")
                    .at(self.previous_start..self.start + 1)
            }
            (K::String, K::String | K::Dollar) if self.expected == "`{` and the body of the resource" => {
                Advice::new(
                    "a resource has one name; two texts are joined with `+`, and a variable stands in a text as `${name}`",
                )
            }
            (_, K::String) if self.expected == "the name of a class" => {
                let inside = self.slice(self.start + 1..self.end - 1);
                let is_name = inside
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.".contains(c));
                let advice = Advice::new("the name of a class has no quotes");
                match is_name && !inside.is_empty() {
                    true => advice.replacing(here, inside),
                    false => advice,
                }
            }
            _ => return None,
        })
    }

    fn foreign_separator(&self) -> Option<Advice> {
        let here = self.here();
        match self.kind {
            K::Comma if self.wants_definition() => Some(Advice::new(
                "a statement defines one variable; a function with several results gives a struct, of which `$result->name` is one",
            )),
            K::Semicolon if self.expected.starts_with("`,`") => {
                Some(Advice::new("a comma separates them").replacing(here, ","))
            }
            K::Semicolon => {
                let advice = Advice::new("a statement ends with its line, and each has its own")
                    .saying("`;` has no meaning here");
                Some(match self.following[0] {
                    K::Newline | K::EndOfFile => advice.replacing(here, ""),
                    _ => advice,
                })
            }
            _ => None,
        }
    }

    fn foreign_bracket_or_arrow(&self) -> Option<Advice> {
        Some(match (self.previous, self.kind) {
            (_, K::Arrow) if self.expected == "`{` and the function's body" => {
                Advice::new("the type of the result stands right behind the parameters: `func f($x int) int { … }`")
                    .replacing(self.with_space(), "")
            }
            (K::RightBracket, K::Rocket) if self.expected == "the end of the line" => {
                Advice::new("the two ends of an edge stand around `->`").replacing(self.here(), "->")
            }
            (K::Dollar, K::LeftParen) => {
                Advice::new("the output of a command is had with `os.system(\"…\")` of `import \"os\"`, the name of the machine is `$hostname`")
                    .saying("`$(…)` does not run a command here")
                    .at(self.previous_start..self.end)
            }
            (K::Class, K::LeftBrace) => {
                Advice::new("a class is used with `include name(…)`, and defined with `class name($parameter) { … }`")
            }
            _ => return None,
        })
    }

    /// The whole word that stands around here, as it was meant, with its dollar.
    fn whole_word(&self) -> Range<u32> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let at = (self.start as usize).min(self.source.len());
        let (before, behind) = (&self.source[..at], &self.source[at..]);
        let left = before.len() - before.trim_end_matches(is_part).len();
        let right = behind.len() - behind.trim_start_matches(is_part).len();
        let dollar = usize::from(before[..at - left].ends_with('$'));
        (at - left - dollar) as u32..(at + right) as u32
    }

    /// Whether the word around here begins with a capital letter, as a kind does.
    fn is_kind(&self) -> bool {
        self.slice(self.whole_word())
            .starts_with(|c: char| c.is_ascii_uppercase())
    }

    /// A name that is written as names are elsewhere: `$myPort`, `my-port`.
    fn name_with_capitals(&self) -> Advice {
        let word = self.whole_word();
        let written = self.slice(word.clone());
        let (dollar, name) = match written.strip_prefix('$') {
            Some(name) => ("$", name),
            None => ("", written),
        };
        let meant = format!("{dollar}{}", foreign::snake_case(name));
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic()) && !name.ends_with(['_', '-']);
        let advice = Advice::new("names are written with small letters, digits and `_`")
            .saying(format!("`{written}` is not a name"))
            .at(word.clone());
        match is_name {
            true if meant != written => advice.replacing(word, meant),
            _ => advice,
        }
    }

    fn advice(&self) -> Option<&'static str> {
        Some(match (self.previous, self.kind) {
            (K::LeftBracket | K::LeftParen | K::LeftBrace | K::Comma, K::Comma) => {
                "exactly one comma stands between two elements"
            }
            (K::Minus, _) | (_, K::Minus) if self.expected == "an expression" => {
                "there is no minus sign before an expression; write `0 - $x`, or `-1` for a number"
            }
            (K::IntegerNumber, K::Dot) => "a `float` has digits on both sides of its point",
            (_, K::Dot) if self.expected == "an expression" => {
                "a `float` has digits on both sides of its point"
            }
            (_, K::Newline) if self.expected == "an expression" => {
                "an expression goes on over several lines only between brackets, one element a line"
            }
            (_, K::String) if self.expected == "the name of a parameter, or `}`" => {
                "the names of parameters are written without quotes"
            }
            (K::Import, _) => "what is imported is written in quotes: `import \"fmt\"`",
            (_, K::Panic) => "`panic` is a statement and gives no value",
            (_, K::Equals) if self.expected == "a type" => "a function type ends in the type of its result",
            (_, K::Equals) => "a name is given a value only by a statement: `$name = …`",
            (_, K::Colon) if self.open.is_some() => "keys and values are separated by `=>`",
            (_, kind) if kind.is_word() && self.expected.contains("name") => {
                "this word is reserved and cannot be a name"
            }
            (K::Arrow, K::Capitalized) => {
                "both ends of an edge begin with a capital letter: `File[\"/a\"] -> Exec[\"b\"]`"
            }
            (_, K::Capitalized) if self.expected == "an expression" => {
                "an edge of a resource begins with a capital letter: `Before => File[\"/a\"]`"
            }
            (_, K::Capitalized) if self.expected.contains("name") => "names are written in lower case",
            _ => return None,
        })
    }
}

fn is_wordlike(kind: K) -> bool {
    matches!(kind, K::Identifier | K::Capitalized | K::IntegerNumber) || kind.is_word()
}

/// `//` where a comment is meant.
fn comment(shown: Range<u32>) -> Advice {
    Advice::new("a comment begins with `#`")
        .saying("`//` does not begin a comment")
        .at(shown.clone())
        .replacing(shown, "#")
}

/// A word that is a value in other languages.
fn bare_value(text: &str, word: Range<u32>, instead: Instead) -> Advice {
    let advice = Advice::new(instead.help)
        .saying(format!("`{text}` is not a value"))
        .at(word.clone());
    match instead.replacement {
        Some(replacement) => advice.replacing(word, replacement),
        None => advice,
    }
}

/// A token in words.
fn describe(kind: K, text: &str) -> String {
    match kind {
        K::Newline => "the end of the line".to_owned(),
        K::EndOfFile => "the end of the file".to_owned(),
        K::String => "a string".to_owned(),
        K::Error => "an unknown character".to_owned(),
        kind if kind.is_word() => format!("the word `{text}`"),
        K::Identifier | K::Capitalized => format!("the name `{text}`"),
        K::IntegerNumber | K::FloatNumber => format!("the number `{text}`"),
        _ => format!("`{text}`"),
    }
}
