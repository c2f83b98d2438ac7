//! What the parser says, in words.

use setpoint_diagnostics::{Diagnostic, FileId, Span};

use super::codes;
use super::token::TokenKind as K;

/// What was found where something else must stand.
pub(super) struct Unexpected<'t> {
    pub(super) file: FileId,
    pub(super) kind: K,
    pub(super) text: &'t str,
    pub(super) start: u32,
    /// What could stand there: "an expression".
    pub(super) expected: &'static str,
    /// Advice for this place, if there is better advice than what the two tokens suggest.
    pub(super) help: Option<&'static str>,
    /// The innermost bracket that is open.
    pub(super) open: Option<(K, u32)>,
    pub(super) previous: K,
}

impl Unexpected<'_> {
    pub(super) fn diagnostic(&self) -> Diagnostic {
        // One column wide, as compared by tools; a newline and the end of the file have no more.
        let width = self.text.chars().next().map_or(0, char::len_utf8) as u32;
        let span = Span::new(self.file, self.start, self.start + width);
        let found = describe(self.kind, self.text);
        let mut diagnostic = Diagnostic::error(
            &codes::UNEXPECTED,
            span,
            format!("expected {}, found {found}", self.expected),
        )
        .label(format!("expected {}", self.expected));
        if let Some((kind, start)) = self.open
            && self.shows_bracket(kind)
        {
            let bracket = kind.text().unwrap_or("");
            diagnostic = diagnostic.because(
                Span::new(self.file, start, start + 1),
                format!("`{bracket}` opened here"),
            );
        }
        match self.help.or_else(|| self.advice()) {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        }
    }

    fn shows_bracket(&self, open: K) -> bool {
        match self.kind {
            K::EndOfFile => true,
            K::Newline | K::RightBrace => open != K::LeftBrace,
            K::RightBracket | K::RightParen => open != K::LeftBrace && open.closing() != Some(self.kind),
            _ => false,
        }
    }

    fn advice(&self) -> Option<&'static str> {
        Some(match (self.previous, self.kind) {
            (_, K::Semicolon) => "a statement ends at the end of its line; nothing else is needed",
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
            (_, K::Colon) if self.expected == "`=` or a type" => {
                "a variable is defined with `=`: `$name = …`"
            }
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

/// `||` where it means nothing.
pub(super) fn stray_bars(file: FileId, start: u32) -> Diagnostic {
    let both = Span::new(file, start, start + 2);
    Diagnostic::error(
        &codes::BAD_CHARACTER,
        Span::new(file, start, start + 1),
        "`|` has no meaning here",
    )
    .help("the logical operator is written `or`")
    .fix("a fallback is written `<|>`", both, "<|>")
}

/// `||` in its older meaning.
pub(super) fn old_default(span: Span) -> Diagnostic {
    Diagnostic::warning(&codes::OLD_DEFAULT, span, "`||` is the older spelling of `<|>`")
        .label("a default of a lookup")
        .help("`setpoint fmt` rewrites it")
}

/// A meta parameter that is accepted and does nothing. `missing` says what does not happen.
pub(super) fn no_effect(span: Span, name: &str, missing: &str) -> Diagnostic {
    Diagnostic::warning(
        &codes::NO_EFFECT,
        span,
        format!("`Meta:{name}` has no effect yet"),
    )
    .label(missing)
    .help("leave it out, or set it to `false`, until it does something")
}

/// A body item without its comma. `last` is the value's last operand, `end` where the comma belongs.
pub(super) fn missing_comma(last: Span, end: u32) -> Diagnostic {
    Diagnostic::error(
        &codes::MISSING_COMMA,
        last,
        "every item in the body of a resource ends in a comma",
    )
    .label("expected `,` behind this value")
    .fix("add the comma", Span::new(last.file, end, end), ",")
}

/// A capitalised word before `:` or `=>` that is not `Meta`.
pub(super) fn not_meta(span: Span, word: &str) -> Diagnostic {
    Diagnostic::error(
        &codes::NOT_META,
        span,
        format!("expected `Meta`, found the name `{word}`"),
    )
    .label("only `Meta` can stand here")
    .help("`Before`, `Notify`, `Depend` and `Listen` take the other end: `Before => File[\"/a\"],`")
}

/// `$x == v` as a statement.
pub(super) fn comparison(span: Span, operator: Span) -> Diagnostic {
    Diagnostic::error(
        &codes::COMPARISON_AS_STATEMENT,
        span,
        "a comparison is not a statement",
    )
    .label("this compares two values and does nothing with the answer")
    .fix("a variable is defined with one equals sign", operator, "=")
}

/// A type annotation that cannot be had.
pub(super) fn impossible_type(
    value: Span,
    annotation: Span,
    message: impl Into<String>,
    label: impl Into<String>,
) -> Diagnostic {
    Diagnostic::error(&codes::IMPOSSIBLE_TYPE, value, message)
        .label(label)
        .because(annotation, "the type is given here")
}

/// Too much nesting.
pub(super) fn too_deep(span: Span, limit: usize) -> Diagnostic {
    Diagnostic::error(
        &codes::TOO_DEEP,
        span,
        format!("this is nested more than {limit} levels deep"),
    )
    .label("the levels below are not read")
    .help("give a name to a part of it: `$part = …`")
}
