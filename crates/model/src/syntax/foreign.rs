//! What other languages write in a place: what somebody meant who wrote it, and how it is written here.

use setpoint_diagnostics::Span;

use super::errors::{Advice, Unexpected};
use super::token::{Token, TokenKind as K};

fn advice_of(help: &str) -> Advice {
    Advice {
        help: help.to_owned(),
        message: None,
        shown: None,
        edit: None,
    }
}

impl Advice {
    fn saying(mut self, message: impl Into<String>) -> Advice {
        self.message = Some(message.into());
        self
    }

    fn at(mut self, shown: Span) -> Advice {
        self.shown = Some(shown);
        self
    }

    fn replacing(mut self, place: Span, replacement: impl Into<String>) -> Advice {
        self.edit = Some((place, replacement.into()));
        self
    }
}

/// What to do about something that was not expected, if there is more to say than what could stand there.
pub(super) fn advice(found: &Unexpected<'_>) -> Option<Advice> {
    of_tokens(found).or_else(|| of_line(found))
}

/// Advice by the token and its neighbours.
fn of_tokens(found: &Unexpected<'_>) -> Option<Advice> {
    let here = found.span();
    let text = found.slice(here);
    let before = found.before(1);
    let kind_before = before.map_or(K::EndOfFile, |token| token.kind);
    let kind_behind = found.behind(1).map_or(K::EndOfFile, |token| token.kind);
    let from_before = before.map_or(here, |token| token.span(here.file).to(here));
    let glued = before.is_some_and(|token| token.end == found.token().start);
    let wants_colon = found.expected == "`:`";
    let wants_value = found.expected == "an expression";
    Some(match (kind_before, found.kind()) {
        (_, K::LeftBrace) if wants_colon => {
            advice_of("a block begins with `:` and is closed with `end`, without braces").replacing(here, ":")
        }
        (K::Else, K::If) if wants_colon => advice_of("a further condition begins with `elif`")
            .saying("`else if` is written `elif`")
            .at(from_before)
            .replacing(from_before, "elif"),
        (_, K::Assign) if wants_colon => advice_of("two values are compared with `==`").replacing(here, "=="),
        (_, K::Identifier) if wants_colon && matches!(text, "then" | "do") => {
            advice_of("a block begins with `:`").replacing(here, ":")
        }
        (_, K::LeftParenthesis) if wants_colon && kind_before == K::Capitalized => {
            advice_of("what an entity extends stands behind `extends`: `entity A extends B:`")
        }
        (_, _) if wants_colon && found.token().first_on_line => {
            let place = before.map_or(here, |token| Span::new(here.file, token.end, token.end));
            advice_of("a block begins with `:`")
                .saying("`:` is missing at the end of the line")
                .at(before.map_or(here, |token| token.span(here.file)))
                .replacing(place, ":")
        }
        (K::Slash, K::Slash) if glued => advice_of("a comment goes from `#` to the end of its line")
            .saying("`//` does not begin a comment")
            .at(from_before)
            .replacing(from_before, "#"),
        (_, K::Slash) if kind_behind == K::Slash => {
            let both = here.to(Span::new(here.file, here.end, here.end + 1));
            advice_of("a comment goes from `#` to the end of its line")
                .saying("`//` does not begin a comment")
                .at(both)
                .replacing(both, "#")
        }
        (K::Less, K::Greater) if glued => advice_of("two values that differ: `a != b`")
            .at(from_before)
            .replacing(from_before, "!="),
        (K::Assign, K::Greater) if glued => {
            advice_of("a relation is written with `--`, an argument with `=`").at(from_before)
        }
        (K::Minus | K::Star | K::Slash | K::Percent, K::Assign) if glued => {
            advice_of("a variable has one value and is never changed; give the new value a name of its own")
                .at(from_before)
        }
        (K::Plus, K::Plus) | (_, K::Relation) if text == "--" && found.expected != "`--`" && wants_value => {
            advice_of("a variable has one value and is never changed")
        }
        (K::Is, K::Not) => advice_of("the opposite of `x is defined` is `not x is defined`"),
        (K::Is, K::Null) => advice_of("whether a value is null is asked with `==`: `x == null`")
            .at(from_before)
            .replacing(from_before, "== null"),
        (_, K::Minus) if wants_value => advice_of(
            "there is no sign before an expression; write `0 - x`, and a number with its sign without a space: `-1`",
        ),
        (_, K::Capitalized) if matches!(text, "True" | "False" | "None") => of_python_value(here, text),
        (_, _) if found.expected.starts_with("`(` or `[` behind") => {
            let name = before.map_or("", |token| found.slice(token.span(here.file)));
            match name {
                "True" | "False" | "None" => of_python_value(before?.span(here.file), name),
                _ if found.kind() == K::Dot => advice_of(
                    "a relation is defined at the top of a file; what an instance has is read behind a variable: `x = E(…)`, then `x.a`",
                ),
                _ if found.kind() == K::Assign => {
                    advice_of("names of variables and attributes begin with a small letter")
                }
                _ => advice_of(
                    "an instance is made with `E(…)`, and found with `E[…]`; names of variables begin with a small letter",
                ),
            }
        }
        (_, K::Identifier) if found.expected == "a key in quotes" => {
            advice_of("the keys of a dict are texts").replacing(here, format!("\"{text}\""))
        }
        (_, K::MultilineString) if found.expected.contains("type of an attribute") => {
            advice_of("the documentation of an entity stands directly behind its `:`")
        }
        (_, K::FormatString | K::MultilineString) if found.expected == "a key in quotes" => {
            advice_of("the keys of a dict are texts in `\"` or `'`")
        }
        (K::Identifier | K::Capitalized, K::Colon) if found.expected.contains("name of the attribute") => {
            advice_of("the type stands first, without a colon: `string name`")
        }
        (_, K::Capitalized) if found.expected.contains("type of an attribute") => advice_of(
            "what has to do with another entity is a relation, outside of the entity: `A.b [1] -- B`",
        ),
        (_, K::String | K::RawString | K::Identifier | K::Capitalized | K::Integer)
            if found.expected == "`]`" && kind_before == K::LeftBracket =>
        {
            advice_of("a list of texts is `string[]`")
        }
        (_, K::LeftBracket) if kind_before == K::Question => {
            advice_of("a list that may be null is `string[]?`")
        }
        (_, K::Relation) if found.expected.starts_with("`[` and how many") => {
            advice_of("each end says how many there are: `A.b [0:] -- B`")
        }
        (_, K::Star | K::Dot) if found.expected == "a number" || found.expected == "`]`" => {
            advice_of("any number is `[0:]`, at least one `[1:]`, at most one `[0:1]`")
        }
        (_, K::Identifier) if found.expected == "`using`" => {
            advice_of("`implement E using i` says what implements an entity")
                .saying(format!("expected `using`, found `{text}`"))
        }
        (_, _) if found.expected == "`matching`" => advice_of(
            "a typedef says what its values are: `typedef port as int matching self > 0`, `typedef word as string matching /[a-z]+$/`",
        ),
        (_, K::Dot) if found.expected == "the end of the import" => of_dotted_import(found),
        (_, K::Colon) if found.expected == "`,` or `)`" => {
            advice_of("an argument is given with `=`: `name=\"a\"`").replacing(here, "=")
        }
        (_, K::Dot) if kind_before == K::RightParenthesis || kind_before == K::RightBracket => {
            advice_of("`.` stands behind variables only; give it a name first: `x = f(…)`, then `x.a`")
        }
        (_, K::Else | K::Elif)
            if found.expected != "`end`" && (found.block.is_none() || found.expected == "an expression") =>
        {
            advice_of("it belongs to an `if` whose block is open").saying(format!("`{text}` without an `if`"))
        }
        (_, K::Assign) if found.expected == "a statement" => {
            advice_of("values are assigned to variables and to attributes of instances: `x = …`, `x.a = …`")
        }
        (_, K::Assign) if wants_value && kind_before == K::Assign => {
            advice_of("two values are compared with `==`").at(from_before)
        }
        (_, K::RightBrace) => {
            advice_of("a block begins with `:` and is closed with `end`").saying("this `}` closes nothing")
        }
        _ => return None,
    })
}

fn of_python_value(at: Span, name: &str) -> Advice {
    let meant = match name {
        "None" => "null".to_owned(),
        name => name.to_ascii_lowercase(),
    };
    advice_of(&format!("it is written `{meant}`"))
        .saying(format!("`{name}` is not a value"))
        .at(at)
        .replacing(at, meant)
}

fn of_dotted_import(found: &Unexpected<'_>) -> Advice {
    let here = found.span();
    advice_of("the parts of a namespace have `::` between them").replacing(here, "::")
}

/// Advice by the word that begins the line.
fn of_line(found: &Unexpected<'_>) -> Option<Advice> {
    let first = line_start(found)?;
    if first.kind != K::Identifier {
        return None;
    }
    let place = first.span(found.file);
    let word = found.slice(place);
    let advice = match word {
        "elsif" | "elseif" | "elsif-" => {
            advice_of("a further condition begins with `elif`").replacing(place, "elif")
        }
        "def" | "function" | "func" | "fn" => advice_of(
            "functions are not written in this language; what is done for each instance of an entity is an `implementation`",
        ),
        "class" | "struct" | "interface" | "type" | "object" => {
            advice_of("a type of things is an `entity`: `entity Host:` … `end`")
        }
        "let" | "var" | "const" | "local" | "set" => {
            advice_of("a variable is assigned without a word before it: `x = 1`")
        }
        "while" | "until" | "loop" | "foreach" | "each" => {
            advice_of("the only loop is `for x in list:` … `end`")
        }
        "unless" => advice_of("write `if not …:`"),
        "switch" | "case" | "match" | "select" => advice_of("write `if …:`, `elif …:`, `else:`, `end`"),
        "return" | "yield" | "break" | "continue" | "pass" => advice_of(
            "statements are executed when what they need is known; there is nothing to leave or to return from",
        ),
        "from" | "include" | "require" | "use" => {
            advice_of("a module is imported with `import a::b`, or `import a::b as c`")
        }
        "try" | "catch" | "except" | "throw" | "raise" => {
            advice_of("errors cannot be caught; test with `is defined` or `==` before")
        }
        _ => return None,
    };
    Some(advice.saying(format!("`{word}` has no meaning here")).at(place))
}

/// The first token of the line on which something was not expected.
fn line_start(found: &Unexpected<'_>) -> Option<Token> {
    let line = found.tokens.get(..=found.position)?;
    let mut line = line.iter().rev();
    let last = line.next()?;
    if last.first_on_line {
        return None;
    }
    // Nobody's line has so many words before what is wrong with it.
    line.take(100).find(|token| token.first_on_line).copied()
}
