//! What other languages write in a place: what somebody meant who wrote it, and how it is written here.

use setpoint_diagnostics::Span;

use crate::errors::{Advice, Unexpected};
use crate::token::{Token, TokenKind as K};

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
    of_beginning(found)
        .or_else(|| of_statement(found))
        .or_else(|| of_brackets(found))
        .or_else(|| of_tokens(found))
        .or_else(|| of_line(found))
}

/// Advice by the word that begins the line, where what stands behind it says that it is no name.
fn of_beginning(found: &Unexpected<'_>) -> Option<Advice> {
    let first = line_start(found)?;
    let second = found.tokens.iter().find(|token| token.start >= first.end)?;
    let is_word = first.kind == K::Identifier
        && !second.first_on_line
        && (second.kind.is_name() || matches!(second.kind, K::String | K::LeftBrace));
    if is_word { of_line(found) } else { None }
}

/// Advice by the statement in which something was not expected.
fn of_statement(found: &Unexpected<'_>) -> Option<Advice> {
    let here = found.span();
    let text = found.slice(here);
    let first = line_start(found).unwrap_or(found.token());
    let before = found.before(1);
    let place = before.map_or(here, |token| token.span(here.file));
    let kind_before = before.map_or(K::EndOfFile, |token| token.kind);
    let kind_behind = found.behind(1).map_or(K::EndOfFile, |token| token.kind);
    let names_none = matches!(first.kind, K::Implement | K::Index | K::Import | K::Typedef);
    let name_before = found.slice(place);
    Some(match (first.kind, found.kind()) {
        (_, K::Colon) if names_none && found.expected == "an expression" => {
            advice_of("the statement has no block, so it ends without `:` and has no `end`")
                .replacing(here, "")
        }
        (K::Import, K::Comma) => advice_of("write one import for each module: `import a`, then `import b`"),
        (K::Import, K::String) => {
            let name = text.trim_matches(['"', '\'']).replace(['.', '/'], "::");
            advice_of("the name of a module stands without quotes").replacing(here, name)
        }
        (K::Implement, K::Capitalized) if found.expected.starts_with("the name of an implementation") => {
            advice_of(
                "an implementation has a small name: `implement E using i`; what the parents of an entity use takes over `implement E using parents`",
            )
        }
        (K::Implement, K::Identifier) if found.expected == "`using`" => {
            advice_of("`implement E using i` says what implements an entity").replacing(here, "using")
        }
        (K::Implementation, K::Identifier) if found.expected.starts_with("`for` and") => {
            advice_of("which entity it is for stands behind `for`").replacing(here, "for")
        }
        (K::Index, K::Dot) => advice_of("what is in an index stands in parentheses: `index E(name)`"),
        (K::Entity, K::Capitalized) if kind_before == K::Colon => {
            advice_of("what an entity extends stands behind `extends`").replacing(place, "extends")
        }
        (K::For, K::Comma) if found.expected == "`in`" => advice_of(
            "a loop has one variable; of a dict, `for key in std::dict_keys(d)` gives the keys, and `d[key]` what it has for them",
        ),
        (_, K::Else) if first.kind != K::If && !found.token().first_on_line => {
            advice_of("a choice between two values is `condition ? a : b`")
        }
        (_, K::Colon)
            if before.is_some_and(|token| token.first_on_line)
                && kind_before == K::Identifier
                && found.expected == "an expression"
                && foreign_word(name_before).is_none() =>
        {
            advice_of(&format!("a value is given with `=`: `{name_before} = …`"))
        }
        (_, K::Minus)
            if found.token().first_on_line && found.behind(2).is_some_and(|t| t.kind == K::Colon) =>
        {
            advice_of("statements are no list; an instance is constructed: `E(name=\"…\")`")
        }
        (_, K::Minus) if kind_before == K::RightBracket && kind_behind == K::Capitalized => {
            advice_of("the two ends of a relation have `--` between them").replacing(here, "--")
        }
        (_, K::Colon)
            if found
                .before(2)
                .is_some_and(|token| found.slice(token.span(here.file)) == "lambda") =>
        {
            advice_of("functions are no values; a list is made of another one with `[… for x in list]`")
        }
        _ => return None,
    })
}

/// Advice about what stands in brackets.
fn of_brackets(found: &Unexpected<'_>) -> Option<Advice> {
    let here = found.span();
    let before = found.before(1)?;
    let kind_behind = found.behind(1).map_or(K::EndOfFile, |token| token.kind);
    let behind_before = Span::new(here.file, before.end, before.end);
    let text = found.slice(here);
    Some(match found.kind() {
        K::Identifier if found.expected == "`,` or `)`" && kind_behind == K::Assign => {
            advice_of("arguments have a comma between them")
                .saying("a comma is missing")
                .at(before.span(here.file))
                .replacing(behind_before, ",")
        }
        K::Identifier if found.expected == "`,` or `]`" && kind_behind == K::Assign => {
            advice_of("close the list before the next statement")
                .saying("the list is not closed")
                .at(before.span(here.file))
                .replacing(behind_before, "]")
        }
        K::Colon if found.expected == "`,` or `)`" => {
            let behind = found.behind(1).filter(|token| !token.first_on_line);
            let place = match behind {
                Some(behind) => Span::new(here.file, before.end, behind.start),
                None => here,
            };
            advice_of("an argument is given with `=`: `name=\"a\"`").replacing(place, "=")
        }
        K::Greater if before.kind == K::Assign && before.end == found.token().start => {
            let both = before.span(here.file).to(here);
            advice_of("an argument is given with `=`, and a relation is written with `--`")
                .saying("`=>` has no meaning here")
                .at(both)
                .replacing(both, "=")
        }
        K::Assign if found.expected == "`,` or `}`" || found.expected == "`:` behind the key" => advice_of(
            "a dict has `:` between a key and its value; the attributes of an instance stand in parentheses: `E(name=\"a\")`",
        ),
        K::Identifier if found.expected == "a key in quotes" && kind_behind == K::Assign => advice_of(
            "the keys of a dict are texts, with `:` behind them; the attributes of an instance stand in parentheses: `E(name=\"a\")`",
        ),
        K::If if found.expected == "`,` or `]`" => {
            advice_of("the condition stands at the end: `[x for x in list if …]`")
        }
        K::String | K::RawString if found.expected.starts_with("the name of an attribute, with") => {
            advice_of("a lookup names the attributes of an index: `E[name=\"a\"]`")
        }
        K::Integer if found.expected == "`]`" && text.starts_with('-') && before.kind == K::Integer => {
            let sign = Span::new(here.file, here.start, here.start + 1);
            advice_of("the least and the most have `:` between them: `[0:1]`").replacing(sign, ":")
        }
        K::LeftBracket if found.expected.contains("type of an attribute") => {
            advice_of("a list has its brackets behind the type of its elements: `string[] names`")
        }
        K::Less if found.expected.contains("name of the attribute") => {
            advice_of("a list of texts is `string[]`, and a `dict` says nothing of what is in it")
        }
        K::Capitalized if found.expected.contains("type of an attribute") && kind_behind == K::Dot => {
            advice_of("move it behind the `end` of the entity").saying("relations stand outside of entities")
        }
        _ => return None,
    })
}

/// Advice by the token and its neighbours.
fn of_tokens(found: &Unexpected<'_>) -> Option<Advice> {
    let here = found.span();
    let text = found.slice(here);
    let before = found.before(1);
    let kind_before = before.map_or(K::EndOfFile, |token| token.kind);
    let kind_behind = found.behind(1).map_or(K::EndOfFile, |token| token.kind);
    let from_before = before.map_or(here, |token| token.span(here.file).to(here));
    let behind_before = before.map_or(here, |token| Span::new(here.file, token.end, here.end));
    let glued = before.is_some_and(|token| token.end == found.token().start);
    let wants_colon = found.expected == "`:`";
    let wants_value = found.expected == "an expression";
    Some(match (kind_before, found.kind()) {
        (_, K::LeftBrace) if wants_colon => {
            advice_of("a block begins with `:` and is closed with `end`, without braces")
                .replacing(behind_before, ":")
        }
        (K::Else, K::If) if wants_colon => advice_of("a further condition begins with `elif`")
            .saying("`else if` is written `elif`")
            .at(from_before)
            .replacing(from_before, "elif"),
        (_, K::Assign) if wants_colon => advice_of("two values are compared with `==`").replacing(here, "=="),
        (_, K::Identifier) if wants_colon && matches!(text, "then" | "do") => {
            advice_of("a block begins with `:`").replacing(behind_before, ":")
        }
        (_, K::LeftParenthesis) if wants_colon && kind_before == K::Capitalized => {
            let advice = advice_of("what an entity extends stands behind `extends`: `entity A extends B:`");
            match (found.behind(1), found.behind(2)) {
                (Some(parent), Some(end)) if end.kind == K::RightParenthesis => {
                    let parent = found.slice(parent.span(here.file));
                    advice.replacing(here.to(end.span(here.file)), format!(" extends {parent}"))
                }
                _ => advice,
            }
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
        (K::Minus | K::Star | K::Slash | K::Percent, K::Assign) if glued => {
            advice_of("a variable has one value and is never changed; give the new value a name of its own")
                .saying(format!("`{}` has no meaning here", found.slice(from_before)))
                .at(from_before)
        }
        (K::Plus, K::Plus) if glued => advice_of("a variable has one value and is never changed")
            .saying("`++` has no meaning here")
            .at(from_before),
        (_, K::Relation) if text == "--" && found.expected != "`--`" && wants_value => {
            advice_of("a variable has one value and is never changed")
        }
        (K::Is, K::Not) if kind_behind == K::Null => {
            let null = found.behind(1).map_or(here, |token| token.span(here.file));
            let whole = from_before.to(null);
            advice_of("whether a value is not null is asked with `!=`: `x != null`")
                .saying("`is not null` has no meaning here")
                .at(whole)
                .replacing(whole, "!= null")
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
                name => {
                    let help = format!(
                        "an instance is made with `{name}(…)`, and found with `{name}[…]`; names of variables begin with a small letter"
                    );
                    advice_of(&help)
                        .saying(format!("`{name}` is the name of an entity, which is no value"))
                        .at(before?.span(here.file))
                }
            }
        }
        (_, K::Identifier | K::Integer | K::Float) if found.expected == "a key in quotes" => {
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
        (_, _) if found.expected == "`matching`" => advice_of(
            "a typedef says what its values are: `typedef port as int matching self > 0`, `typedef word as string matching /[a-z]+$/`",
        ),
        (_, K::Dot) if found.expected == "the end of the import" => of_dotted_import(found),
        (_, K::Identifier) if found.expected == "a constant" => advice_of(
            "a default must be a literal; assign computed values in an implementation: `self.a = …`",
        ),
        (_, K::Dot) if kind_before == K::RightParenthesis || kind_before == K::RightBracket => {
            advice_of("`.` stands behind variables only; give it a name first: `x = f(…)`, then `x.a`")
        }
        (_, K::Else | K::Elif)
            if found.expected != "`end`" && (found.block.is_none() || found.expected == "an expression") =>
        {
            advice_of("it belongs to an `if` whose block is open").saying(format!("`{text}` without an `if`"))
        }
        (K::RightBracket, K::Assign) if found.expected == "a statement" => {
            advice_of("a dict is never changed; make one with all of its keys: `{\"a\": 1, \"b\": 2}`")
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
    let advice = advice_of(foreign_word(word)?);
    let advice = match word {
        "elsif" | "elseif" => advice.replacing(place, "elif"),
        _ => advice,
    };
    Some(advice.saying(format!("`{word}` has no meaning here")).at(place))
}

/// What is written instead of a word that begins a statement in another language.
pub fn foreign_word(word: &str) -> Option<&'static str> {
    Some(match word {
        "elsif" | "elseif" => "a further condition begins with `elif`",
        "def" | "function" | "func" | "fn" | "lambda" | "define" => {
            "functions are not written in this language; what is done for each instance of an entity is an `implementation`"
        }
        "class" | "struct" | "interface" | "type" | "object" => {
            "a type of things is an `entity`: `entity Host:` … `end`"
        }
        "resource" | "data" | "module" | "provider" => {
            "a resource is made by constructing an instance: `setpoint::File(name=\"/etc/motd\")`"
        }
        "new" => "an instance is constructed without a word before it: `E(…)`",
        "let" | "var" | "const" | "local" | "set" | "variable" => {
            "a variable is assigned without a word before it: `x = 1`"
        }
        "while" | "until" | "loop" | "foreach" | "each" => "the only loop is `for x in list:` … `end`",
        "unless" => "write `if not …:`",
        "switch" | "case" | "match" | "select" => "write `if …:`, `elif …:`, `else:`, `end`",
        "return" | "yield" | "break" | "continue" | "pass" => {
            "statements are executed when what they need is known; there is nothing to leave or to return from"
        }
        "from" | "include" | "require" | "use" => {
            "a module is imported whole, with `import a::b` or `import a::b as c`, and what it has is written `a::b::x`"
        }
        "try" | "catch" | "except" | "throw" | "raise" => {
            "errors cannot be caught; test with `is defined` or `==` before"
        }
        "True" | "TRUE" => "it is written `true`",
        "False" | "FALSE" => "it is written `false`",
        "None" | "nil" | "NULL" | "undefined" => "it is written `null`",
        "this" => "the instance is called `self`",
        _ => return None,
    })
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
