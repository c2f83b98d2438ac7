//! Single mistakes that the parser knows, in words. What else it did not expect is told in [`unexpected`](super::unexpected).

use setpoint_diagnostics::{Diagnostic, FileId, Span};

use super::ast::Name;
use super::codes;
use super::foreign::{self, Instead};
use super::token::TokenKind as K;

/// A word by itself where a value must stand: neither a variable nor a text nor a call. `name` is its place, `found` that of what
/// stands behind it, and `open` the innermost bracket.
pub(super) fn bare_word(name: Span, text: &str, found: Span, next: K, open: Option<K>) -> Diagnostic {
    let error = |message: String| Diagnostic::error(&codes::UNEXPECTED, found, message).shown_at(name);
    let is_not_value = format!("`{text}` is not a value");
    if let Some(instead) = foreign::value(text) {
        let diagnostic = error(is_not_value);
        return match instead.replacement {
            Some("") => diagnostic.help(instead.help),
            Some(replacement) => diagnostic.fix(instead.help, name, replacement),
            None => diagnostic.help(instead.help),
        };
    }
    if let Some((base, rest)) = text.split_once('.')
        && matches!(base, "var" | "local" | "data" | "module" | "self" | "this")
    {
        return error(is_not_value).help(format!(
            "a variable is its name with a `$` and nothing before it: `${rest}`"
        ));
    }
    match (open, next) {
        (Some(K::LeftParen), K::Rocket | K::Equals) => {
            error("arguments have no names".to_owned()).help("arguments stand in the order of the parameters")
        }
        (Some(K::LeftBrace), K::Rocket | K::Colon) => error(is_not_value)
            .help(format!(
                "the fields of a struct have bare names: `struct{{{text} => …}}`"
            ))
            .fix(
                "a key of a map is a value, and a text has quotes",
                name,
                format!("\"{text}\""),
            ),
        (_, K::LeftBracket) => error(is_not_value)
            .label("a bare word")
            .help(format!("a variable has a `$` before its name: `${text}[…]`")),
        _ => error(is_not_value).label("a bare word").help(format!(
            "write `${text}` for a variable, `\"{text}\"` for a text, `{text}(…)` to call a function"
        )),
    }
}

/// `name = value`, where `kind` looks like the kind of a resource.
pub(super) fn definition_without_dollar(kind: Span, text: &str, found: Span) -> Diagnostic {
    let message = format!("`{text}` has no `$`, so it is not a variable");
    let error = Diagnostic::error(&codes::UNEXPECTED, found, message).shown_at(kind);
    // With a dollar alone such a name would not be one of a variable.
    if text.contains(':') {
        return error.help("a variable is defined with `$name = …`, a parameter is set in the body of a resource: `name => …,`");
    }
    error.fix(
        "a variable is defined with a `$` before its name",
        kind,
        format!("${text}"),
    )
}

/// `${` in a string whose quote comes before the brace, so that the rest is read as code.
pub(super) fn quote_in_braces(braces: Span) -> Diagnostic {
    Diagnostic::error(
        &codes::UNEXPECTED,
        braces,
        "only the name of a variable can stand between `${` and `}`",
    )
    .label("begins here, and the string ends at the next quote")
    .help("bind a computed value to a variable first: `$value = …`, and write `${value}`")
}

/// `<<EOF`
pub(super) fn here_document(place: Span) -> Diagnostic {
    Diagnostic::error(&codes::UNEXPECTED, place, "there are no here documents")
        .help("a text of several lines is a string with one quote at its beginning and one at its end")
}

/// `{{ name }}` outside of a string.
pub(super) fn template_outside(name: Span, text: &str, found: Span) -> Diagnostic {
    Diagnostic::error(
        &codes::UNEXPECTED,
        found,
        "`{{ … }}` has a meaning only in a template",
    )
    .shown_at(name)
    .help(format!(
        "the value of a variable is `${text}`, and in a string `${{{text}}}`"
    ))
}

/// `=` where two values are to be compared.
pub(super) fn assignment_in_condition(operator: Span) -> Diagnostic {
    Diagnostic::error(&codes::UNEXPECTED, operator, "`=` does not compare")
        .label("this would define a variable")
        .fix("two values are compared with `==`", operator, "==")
}

/// The end of an edge whose kind is written in small letters, at `kind`. `found` is where that is noticed.
pub(super) fn edge_in_small_letters(kind: Span, text: &str, found: Span) -> Diagnostic {
    let mut capitalised = text.to_owned();
    if let Some(first) = capitalised.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    Diagnostic::error(
        &codes::UNEXPECTED,
        found,
        format!("the end of an edge is `{capitalised}[…]`, with a capital letter"),
    )
    .shown_at(kind)
    .fix("the kind begins with a capital letter", kind, capitalised)
}

/// An edge property that is written as a parameter. `found` is where that is noticed.
pub(super) fn edge_property(name: &Name, property: &str, found: Span) -> Diagnostic {
    let (span, text) = (name.span, &name.text);
    Diagnostic::error(
        &codes::UNEXPECTED,
        found,
        format!("`{text}` is not a parameter but an edge"),
    )
    .shown_at(span)
    .fix(
        format!("an edge is `{property}`, with one end on a line"),
        span,
        property,
    )
}

/// A statement that begins with a word of another language, in place of everything that does not parse in it.
pub(super) fn foreign_statement(word: Span, text: &str, instead: Instead) -> Diagnostic {
    let message = format!("no statement begins with `{text}`");
    let diagnostic = Diagnostic::error(&codes::UNEXPECTED, word, message);
    match instead.replacement {
        Some(replacement) => diagnostic.fix(instead.help, word, replacement),
        None => diagnostic.help(instead.help),
    }
}

/// A string whose end is missing, so that what follows is read as its text.
pub(super) fn unclosed_string(file: FileId, start: u32) -> Diagnostic {
    let span = Span::new(file, start, start + 1);
    Diagnostic::error(&codes::BAD_CHARACTER, span, "this string has no closing quote")
        .label("opened here")
        .help("end the string with `\"`; a quote inside of it is written `\\\"`")
}

/// `||` where it means nothing.
pub(super) fn stray_bars(file: FileId, start: u32) -> Diagnostic {
    let both = Span::new(file, start, start + 2);
    Diagnostic::error(
        &codes::BAD_CHARACTER,
        Span::new(file, start, start + 1),
        "`||` has no meaning here",
    )
    .shown_at(both)
    .help("a value in place of a missing one is written `<|>`")
    .fix("the logical operator is written `or`", both, "or")
}

/// `||` in its older meaning.
pub(super) fn old_default(span: Span, is_replaceable: bool) -> Diagnostic {
    let warning = Diagnostic::warning(&codes::OLD_DEFAULT, span, "`||` is the older spelling of `<|>`")
        .label("a default of a lookup");
    if is_replaceable {
        warning.fix("it is written `<|>` now", span, "<|>")
    } else {
        warning.help("`setpoint fmt` rewrites it, with the parentheses that `<|>` needs there")
    }
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
