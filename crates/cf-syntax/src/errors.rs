//! What the lexer and the parser say, in words.

use setpoint_diagnostics::{Diagnostic, FileId, Span};

use crate::ast::{DictKey, Name, Reference, TypeName};
use crate::codes::{self, class};
use crate::foreign;
use crate::pattern::BadPattern;
use crate::token::{Token, TokenKind as K};

/// What was found where something else must stand.
pub(super) struct Unexpected<'t> {
    pub(super) file: FileId,
    /// The whole file.
    pub(super) text: &'t str,
    pub(super) tokens: &'t [Token],
    /// The token that was not expected.
    pub(super) position: usize,
    /// What could stand there: "an expression".
    pub(super) expected: &'static str,
    /// Advice for this place, if the tokens suggest nothing better.
    pub(super) help: Option<&'static str>,
    /// The token that opens the innermost open block.
    pub(super) block: Option<usize>,
    /// The first block whose `end` stands further left than its beginning.
    pub(super) askew: Option<usize>,
}

/// What to do about something that was not expected.
pub(super) struct Advice {
    pub(super) help: String,
    /// What is wrong, if that can be said better than by what was expected.
    pub(super) message: Option<String>,
    /// What is shown instead of the token.
    pub(super) shown: Option<Span>,
    pub(super) edit: Option<(Span, String)>,
}

impl Unexpected<'_> {
    pub(super) fn diagnostic(&self) -> Diagnostic {
        let span = self.span();
        let advice = foreign::advice(self);
        let mut diagnostic = match advice.as_ref().and_then(|advice| advice.message.clone()) {
            Some(message) => Diagnostic::error(&codes::UNEXPECTED, span, message),
            None => self.plain(span),
        };
        diagnostic = diagnostic.of_class(class::PARSER);
        let is_shown = advice.as_ref().is_some_and(|advice| advice.shown.is_some());
        if self.kind() == K::EndOfFile && self.block.is_none() && !is_shown {
            // Nobody looks at the empty line behind everything.
            diagnostic = diagnostic.shown_at(self.before(1).map_or(span, |last| last.span(self.file)));
            diagnostic.primary.text = format!("behind this {} is missing", self.expected);
        }
        let Some(advice) = advice else {
            return match self.help {
                Some(help) => diagnostic.help(help),
                None => diagnostic,
            };
        };
        if let Some(shown) = advice.shown {
            diagnostic = diagnostic.shown_at(shown);
        }
        match advice.edit {
            Some((place, replacement)) => diagnostic.fix(advice.help, place, replacement),
            None => diagnostic.help(advice.help),
        }
    }

    fn plain(&self, span: Span) -> Diagnostic {
        if self.expected == "`end`" {
            return self.no_end(span);
        }
        if self.kind() == K::End && self.block.is_none() {
            let error = Diagnostic::error(&codes::UNEXPECTED, span, "this `end` closes nothing")
                .label("no block is open here");
            return match self.line_before() {
                Some(K::Implement | K::Index | K::Import | K::Typedef | K::Capitalized) => {
                    error.help("what stands before it is a single line, which has no `end`")
                }
                _ => error,
            };
        }
        let found = describe(self.kind(), self.slice(span));
        let diagnostic = Diagnostic::error(
            &codes::UNEXPECTED,
            span,
            format!("expected {}, found {found}", self.expected),
        )
        .label(format!("expected {}", self.expected));
        let diagnostic = match self.open_bracket() {
            Some(bracket) => {
                let written = self.slice(bracket).to_owned();
                diagnostic.because(bracket, format!("this `{written}` is open"))
            }
            None => diagnostic,
        };
        match self.block.filter(|_| self.kind() == K::EndOfFile) {
            Some(block) => {
                let (token, word) = self.opener(block);
                diagnostic.because(token, format!("the block of this `{word}` is open"))
            }
            None => diagnostic,
        }
    }

    /// The innermost bracket that is open, if what was expected could have closed it and stands on another line.
    fn open_bracket(&self) -> Option<Span> {
        /// Nobody's brackets hold more.
        const MOST_TOKENS: usize = 10_000;
        let closing = ["`]`", "`)`", "`}`"];
        if !self.token().first_on_line || !closing.iter().any(|bracket| self.expected.ends_with(bracket)) {
            return None;
        }
        let mut closed = 0_usize;
        for token in self.tokens[..self.position].iter().rev().take(MOST_TOKENS) {
            match token.kind {
                K::RightBracket | K::RightParenthesis | K::RightBrace => closed += 1,
                K::LeftBracket | K::LeftParenthesis | K::LeftBrace if closed == 0 => {
                    return Some(token.span(self.file));
                }
                K::LeftBracket | K::LeftParenthesis | K::LeftBrace => closed -= 1,
                _ => {}
            }
        }
        None
    }

    fn no_end(&self, span: Span) -> Diagnostic {
        let Some(block) = self.block else {
            return Diagnostic::error(&codes::UNEXPECTED, span, "expected `end`");
        };
        let (opened, word) = self.opener(block);
        let found = describe(self.kind(), self.slice(span));
        let message = format!("the block of this `{word}` has no `end`");
        let message = match self.kind() {
            K::EndOfFile => format!("unexpected end of the file: {message}"),
            _ => format!("expected `end`, found {found}"),
        };
        let diagnostic = Diagnostic::error(&codes::UNEXPECTED, span, message)
            .label("`end` must stand before this")
            .because(opened, format!("the block of this `{word}` is open"));
        match self.askew.filter(|askew| *askew != block) {
            Some(askew) => {
                let (place, word) = self.opener(askew);
                diagnostic.because(
                    place,
                    format!(
                        "it is probably this `{word}` that lacks its `end`: the next one stands further left"
                    ),
                )
            }
            None => diagnostic,
        }
    }

    /// What the line before the current token begins with.
    fn line_before(&self) -> Option<K> {
        let before = self.tokens[..self.position].iter().rev();
        before
            .take(100)
            .find(|token| token.first_on_line)
            .map(|token| token.kind)
    }

    fn opener(&self, block: usize) -> (Span, &'static str) {
        let token = self.tokens[block];
        (token.span(self.file), token.kind.text().unwrap_or("block"))
    }

    pub(super) fn token(&self) -> Token {
        self.tokens[self.position]
    }

    pub(super) fn kind(&self) -> K {
        self.token().kind
    }

    /// The place of the token; of the end of the file, its end.
    pub(super) fn span(&self) -> Span {
        self.token().span(self.file)
    }

    /// The token that many places before.
    pub(super) fn before(&self, count: usize) -> Option<Token> {
        self.position
            .checked_sub(count)
            .map(|position| self.tokens[position])
    }

    /// The token that many places behind.
    pub(super) fn behind(&self, count: usize) -> Option<Token> {
        self.tokens.get(self.position + count).copied()
    }

    pub(super) fn slice(&self, span: Span) -> &str {
        self.text
            .get(span.start as usize..span.end as usize)
            .unwrap_or("")
    }
}

/// A token in a sentence.
fn describe(kind: K, text: &str) -> String {
    match kind {
        K::EndOfFile => "the end of the file".to_owned(),
        kind if kind.is_keyword() => format!("the keyword `{text}`"),
        K::Identifier | K::Capitalized => format!("the name `{text}`"),
        K::MultilineString => "a text in `\"\"\"`".to_owned(),
        K::String | K::RawString | K::FormatString if text.len() > 40 => "a text".to_owned(),
        K::String | K::RawString | K::FormatString => format!("the text {text}"),
        K::Integer | K::Float => format!("the number {text}"),
        K::Regex => "a regular expression".to_owned(),
        _ => format!("`{text}`"),
    }
}

fn error(
    code: &'static setpoint_diagnostics::CodeInfo,
    span: Span,
    message: impl Into<String>,
) -> Diagnostic {
    Diagnostic::error(code, span, message).of_class(class::PARSER)
}

pub(super) fn file_too_large(span: Span) -> Diagnostic {
    error(&codes::UNEXPECTED, span, "the file is larger than 4 GiB")
}

pub(super) fn unclosed_multiline_string(opening: Span) -> Diagnostic {
    error(
        &codes::UNEXPECTED,
        opening,
        "the text that begins with this `\"\"\"` is never closed",
    )
    .label("no `\"\"\"` follows")
    .help("close it with `\"\"\"`; it may span lines")
}

pub(super) fn unclosed_string(opening: Span, line: Span, quote: u8, is_third: bool) -> Diagnostic {
    let quote = char::from(quote);
    if is_third {
        let all = Span::new(opening.file, opening.start.saturating_sub(2), opening.end);
        return error(
            &codes::UNEXPECTED,
            opening,
            "`'''` does not begin a text of several lines",
        )
        .shown_at(all)
        .help("it stands between `\"\"\"` and `\"\"\"`");
    }
    error(
        &codes::UNEXPECTED,
        opening,
        format!("the text that begins with this `{quote}` is not closed on its line"),
    )
    .shown_at(line)
    .help(format!(
        "close it with `{quote}`; a text of several lines stands between `\"\"\"` and `\"\"\"`"
    ))
}

pub(super) fn foreign_comment(opening: Span, whole: Span) -> Diagnostic {
    error(&codes::UNEXPECTED, opening, "`/*` does not begin a comment")
        .shown_at(whole)
        .help("a comment goes from `#` to the end of its line; each line has its own")
}

/// Whether a character looks like nothing, or like a space.
pub(super) fn is_invisible(character: char) -> bool {
    matches!(character, '\u{feff}' | '\u{200b}' | '\u{b}' | '\u{c}')
        || (!character.is_ascii() && character.is_whitespace())
}

/// A character that begins no token; `whole` is what was skipped with it.
pub(super) fn illegal_character(character: char, at: Span, whole: Span, text: &str) -> Diagnostic {
    let written = text.get(whole.start as usize..whole.end as usize).unwrap_or("");
    if is_invisible(character) {
        let number = character as u32;
        let (message, help, replacement) = match character {
            '\u{feff}' => (
                "a byte-order mark has no meaning here".to_owned(),
                "save the file as UTF-8 without a byte-order mark",
                "",
            ),
            _ => (
                format!("the space U+{number:04X} is not one that separates words"),
                "replace it by an ordinary space",
                " ",
            ),
        };
        return error(&codes::UNEXPECTED, at, message)
            .label("it looks like nothing")
            .fix(help, at, replacement);
    }
    let shown = match character {
        '&' | '|' => written.to_owned(),
        character if character.is_control() => {
            return error(
                &codes::UNEXPECTED,
                at,
                format!("the character U+{:04X} has no meaning here", character as u32),
            );
        }
        character => character.to_string(),
    };
    let plain = error(&codes::UNEXPECTED, at, format!("`{shown}` has no meaning here")).shown_at(whole);
    match character {
        '&' => plain.fix("the logical operator is `and`", whole, "and"),
        '|' => plain.fix("the logical operator is `or`", whole, "or"),
        '!' => plain.fix("the logical operator is `not`", whole, "not "),
        ';' => plain.fix("statements need no separator", whole, ""),
        '\\' => plain.fix(
            "line ends mean nothing, so a statement may span lines as it is",
            whole,
            "",
        ),
        '“' | '”' | '„' | '‘' | '’' | '`' => {
            let help = "texts stand in `\"` or `'`";
            let mut inside = written.chars();
            inside.next();
            inside.next_back();
            let inside = inside.as_str();
            if written.chars().nth(1).is_none() || inside.contains(['"', '\\', '`']) {
                plain.help(help)
            } else {
                plain.fix(help, whole, format!("\"{inside}\""))
            }
        }
        '@' => plain.help("names have no mark before them"),
        '$' => {
            plain.help("names have no mark before them; in a text a value is put in place with `{{name}}`")
        }
        '~' => plain.help("a list or dict is tested with `in`, a text with a typedef and `matching /…/`"),
        '^' => plain.help("the power of a number is written `**`"),
        character if character.is_alphabetic() => {
            plain.help("names are written with the letters `a` to `z`, `A` to `Z`, digits, `_` and `-`")
        }
        _ => plain,
    }
}

pub(super) fn unknown_escape(written: &str, token: Span, at: Span) -> Diagnostic {
    Diagnostic::warning(
        &codes::UNKNOWN_ESCAPE,
        token,
        format!("`{written}` is no escape, it stands for itself"),
    )
    .of_class(class::WARNING)
    .shown_at(at)
    .fix("write the backslash twice", at, format!("\\{written}"))
}

pub(super) fn malformed_escape(written: &str, reason: &str, token: Span, at: Span) -> Diagnostic {
    error(
        &codes::UNEXPECTED,
        token,
        format!("the escape `{written}` is malformed"),
    )
    .shown_at(at)
    .label(reason)
    .help("a backslash that stands for itself is written twice, or in a raw string: `r\"\\\"`")
}

pub(super) fn bad_format_string(reason: &str, at: Span) -> Diagnostic {
    error(&codes::BAD_FORMAT_STRING, at, "this f-string is malformed")
        .label(reason)
        .help("a brace that stands for itself is written twice: `{{`, `}}`")
}

pub(super) fn bad_pattern(bad: &BadPattern, at: Span) -> Diagnostic {
    error(&codes::BAD_PATTERN, at, "this regular expression is malformed").label(bad.to_string())
}

pub(super) fn keyword_as_name(kind: K, at: Span) -> Diagnostic {
    let word = kind.text().unwrap_or("");
    error(
        &codes::KEYWORD_AS_NAME,
        at,
        format!("`{word}` is a reserved keyword and cannot be a name"),
    )
    .help(format!("choose another name, for example `{word}_`"))
}

pub(super) fn hyphen(what: &str, name: &Name) -> Diagnostic {
    let fixed = name.text.replace('-', "_");
    Diagnostic::error(
        &codes::HYPHEN_IN_NAME,
        name.span,
        format!("the name of this {what}, `{}`, has a hyphen", name.text),
    )
    .of_class(class::HYPHEN)
    .fix("use underscores", name.span, fixed)
}

pub(super) fn hyphen_in_module(name: &Name) -> Diagnostic {
    let fixed = name.text.replace('-', "_");
    Diagnostic::error(
        &codes::HYPHEN_IN_MODULE,
        name.span,
        format!("`{}` is no name of a module: it has a hyphen", name.text),
    )
    .of_class(class::COMPILER)
    .fix("names of modules have underscores", name.span, fixed)
}

pub(super) fn entity_in_lower_case(name: &Name, file: FileId) -> Diagnostic {
    debug_assert_eq!(name.span.file, file, "names lie in the file that is read");
    let first = name.text.chars().next().filter(char::is_ascii_alphabetic);
    let diagnostic = error(
        &codes::ENTITY_IN_LOWER_CASE,
        name.span,
        format!(
            "`{}` is no name of an entity: those begin with a capital letter",
            name.text
        ),
    );
    match first {
        Some(first) => {
            let fixed = format!("{}{}", first.to_ascii_uppercase(), &name.text[1..]);
            diagnostic.fix("begin it with a capital letter", name.span, fixed)
        }
        None => diagnostic,
    }
}

pub(super) fn attribute_in_upper_case(name: &Name) -> Diagnostic {
    let fixed = format!("{}{}", name.text[..1].to_ascii_lowercase(), &name.text[1..]);
    error(
        &codes::ATTRIBUTE_IN_UPPER_CASE,
        name.span,
        format!(
            "`{}` is no name of an attribute: those begin with a small letter",
            name.text
        ),
    )
    .fix("begin it with a small letter", name.span, fixed)
}

pub(super) fn null_for_dict(ty: &TypeName, name: &Name) -> Diagnostic {
    let behind = Span::new(ty.span.file, ty.span.end, ty.span.end);
    error(
        &codes::NULL_FOR_DICT,
        name.span,
        format!(
            "`null` cannot be the default of `{}`, which is a `dict`",
            name.text
        ),
    )
    .fix("an attribute that may be null is a `dict?`", behind, "?")
}

/// A typedef of values whose name begins with a capital letter.
pub(super) fn typedef_in_upper_case(name: &Name) -> Diagnostic {
    let fixed = format!("{}{}", name.text[..1].to_ascii_lowercase(), &name.text[1..]);
    error(
        &codes::DEFAULT_CONSTRUCTOR,
        name.span,
        format!(
            "`{}` is no name of a typedef: those begin with a small letter",
            name.text
        ),
    )
    .fix("begin it with a small letter", name.span, fixed)
}

pub(super) fn default_constructor(name: &Name) -> Diagnostic {
    error(
        &codes::DEFAULT_CONSTRUCTOR,
        name.span,
        format!("default constructors are not supported, and a type is not called `{}`", name.text),
    )
    .help("give the attributes defaults in an entity that extends the other; the name of a typedef begins with a small letter")
}

pub(super) fn dot_in_namespace(at: Span, written: &str) -> Diagnostic {
    let parts: Vec<&str> = written
        .split(['.', ':'])
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect();
    let fixed = parts.join("::");
    Diagnostic::error(
        &codes::DOT_IN_NAMESPACE,
        at,
        format!("the parts of a namespace have `::` between them, not `.`: `{fixed}`"),
    )
    .of_class(class::NAMESPACE_ACCESS)
    .fix("write `::`", at, fixed)
}

pub(super) fn add_to_variable(target: &Reference) -> Diagnostic {
    let name = &target.variable.name.text;
    error(
        &codes::ADD_TO_VARIABLE,
        target.span,
        format!("`+=` cannot be used on the variable `{name}`"),
    )
    .help("a variable has one value; `+=` adds to a relation: `instance.relation += other`")
}

pub(super) fn field_in_key(at: Span) -> Diagnostic {
    error(
        &codes::FIELD_IN_KEY,
        at,
        "a key of a dict cannot have a `{{…}}` in it",
    )
    .fix(
        "a raw string keeps its braces",
        Span::new(at.file, at.start, at.start),
        "r",
    )
}

pub(super) fn duplicate_key(key: &DictKey, first: Span, second: Span) -> Diagnostic {
    Diagnostic::error(
        &codes::DUPLICATE_KEY,
        second,
        format!("the dict has the key `{}` twice", key.text),
    )
    .of_class(class::DUPLICATE)
    .label("the second value")
    .because(first, "the key stands here already")
}

pub(super) fn duplicate_keyword(name: &Name, first: Span, is_call: bool) -> Diagnostic {
    let what = if is_call { "argument" } else { "attribute" };
    Diagnostic::error(
        &codes::DUPLICATE_KEYWORD,
        name.span,
        format!("the {what} `{}` is given twice", name.text),
    )
    .of_class(class::RUNTIME)
    .because(first, "given here already")
}

pub(super) fn condition_for_parents(parents: Span, condition: Span) -> Diagnostic {
    Diagnostic::error(
        &codes::CONDITION_FOR_PARENTS,
        parents,
        "the implementations of parents cannot be used under a condition",
    )
    .of_class(class::RUNTIME)
    .because(condition, "the condition")
    .help("each comes with the condition that its own `implement` has; write `using parents` in a statement without `when`")
}

/// The condition of a typedef does not look at the value. `text` is a pattern in quotes, `variable` the only name in the condition.
pub(super) fn no_self_in_typedef(
    name: &Name,
    condition: Span,
    text: Option<&str>,
    variable: Option<Span>,
) -> Diagnostic {
    let error = Diagnostic::error(
        &codes::NO_SELF_IN_TYPEDEF,
        name.span,
        format!(
            "the condition of the type `{}` does not look at the value",
            name.text
        ),
    )
    .of_class(class::TYPING)
    .because(condition, "`self` does not occur here");
    match (text, variable) {
        (Some(text), _) => {
            let pattern = text.replace('/', "\\/");
            error.fix(
                "a regular expression stands between slashes",
                condition,
                format!("/{pattern}/"),
            )
        }
        (None, Some(variable)) => error.fix("the value is called `self`", variable, "self"),
        (None, None) => error.help("the value is `self`: `matching self > 0`"),
    }
}

/// A call of a method of a value.
pub(super) fn method(at: Span, value: &str, method: &str) -> Diagnostic {
    Diagnostic::error(
        &codes::DOT_IN_NAMESPACE,
        at,
        format!("`{value}` is a variable, and values have no methods"),
    )
    .of_class(class::NAMESPACE_ACCESS)
    .help(format!(
        "a function takes the value as its argument, and is written with its namespace: `std::{method}({value})`"
    ))
}

/// `from a import b`.
pub(super) fn import_from(from: Span) -> Diagnostic {
    error(&codes::UNEXPECTED, from, "`from` has no meaning here")
        .help("a module is imported whole, with `import a::b`, and what it has is written `a::b::x`")
}

/// `if` for `when`.
pub(super) fn condition_with_if(at: Span) -> Diagnostic {
    error(&codes::UNEXPECTED, at, "an `implement` statement has no `if`").fix(
        "its condition stands behind `when`",
        at,
        "when",
    )
}

/// A key of a dict that is no text.
pub(super) fn key_without_quotes(at: Span, written: &str) -> Diagnostic {
    error(
        &codes::UNEXPECTED,
        at,
        format!("the key `{written}` is not in quotes"),
    )
    .fix("the keys of a dict are texts", at, format!("\"{written}\""))
}

pub(super) fn definition_in_block(kind: K, at: Span, is_entity: bool) -> Diagnostic {
    let word = kind.text().unwrap_or("");
    let block = if is_entity { "entity" } else { "block" };
    error(
        &codes::UNEXPECTED,
        at,
        format!("`{word}` stands only at the top of a file, not in the {block}"),
    )
    .help(format!(
        "move it behind the {block}, or close the {block} before it with `end`"
    ))
}

pub(super) fn missing_end(kind: K, opener: Span, at: Span) -> Diagnostic {
    let word = kind.text().unwrap_or("block");
    error(
        &codes::UNEXPECTED,
        at,
        format!("the block of an `{word}` has no `end`"),
    )
    .label("this is no attribute; `end` is missing before it")
    .because(opener, format!("the block of this `{word}` is open"))
}
