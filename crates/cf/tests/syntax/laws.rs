//! What holds for every text.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestError, TestRunner};
use setpoint_cf::syntax::ast::{Block, Expression, ExpressionKind, File, Item, Statement, StatementKind};
use setpoint_cf::syntax::{self, TokenKind};
use setpoint_diagnostics::{Diagnostics, FileId};

use super::printed;

type OfText = fn(&str) -> Result<(), String>;
type OfAnything = fn() -> Result<(), String>;

/// Laws that every case obeys.
pub(crate) const OF_CASES: &[(&str, OfText)] = &[
    ("each_beginning_of_a_text_parses", each_beginning_parses),
    ("tokens_and_comments_hold_all_but_white_space", tokens_hold_all),
    ("a_formatted_text_has_the_same_tree_and_stays", formatted_stays),
    ("what_a_span_shows_parses_to_what_has_the_span", spans_point_right),
];

/// Laws that random texts obey.
pub(crate) const OF_ANYTHING: &[(&str, OfAnything)] = &[
    ("any_text_parses", any_text_parses),
    ("any_soup_of_tokens_parses", any_soup_parses),
    ("deep_nesting_is_refused_and_does_no_harm", deep_nesting),
    ("long_texts_take_time_by_their_length", long_texts),
];

fn parse(text: &str) -> (File, Diagnostics) {
    let mut diagnostics = Diagnostics::new();
    let file = syntax::parse(FileId(0), text, &mut diagnostics);
    (file, diagnostics)
}

/// Parses a text, and sees that all places lie in it.
fn check(text: &str) -> Result<File, String> {
    let (file, diagnostics) = parse(text);
    for diagnostic in &diagnostics {
        let spans = [diagnostic.primary.span, diagnostic.rule_place()];
        let labels = diagnostic.secondary.iter().map(|label| label.span);
        for span in spans.into_iter().chain(labels) {
            if text.get(span.start as usize..span.end as usize).is_none() {
                return Err(format!("{span:?} of {diagnostic:?} does not lie in {text:?}"));
            }
        }
        if diagnostic.class.is_empty() {
            return Err(format!("{diagnostic:?} has no class"));
        }
    }
    Ok(file)
}

fn each_beginning_parses(text: &str) -> Result<(), String> {
    for (end, _) in text.char_indices() {
        check(&text[..end])?;
    }
    Ok(())
}

fn tokens_hold_all(text: &str) -> Result<(), String> {
    let lexed = syntax::lex(FileId(0), text);
    if lexed
        .diagnostics
        .iter()
        .any(|(_, diagnostic)| diagnostic.severity == setpoint_diagnostics::Severity::Error)
    {
        return Ok(());
    }
    let mut parts: Vec<(u32, u32)> = lexed
        .tokens
        .iter()
        .map(|token| (token.start, token.end))
        .collect();
    parts.extend(lexed.comments.iter().map(|span| (span.start, span.end)));
    parts.sort_unstable();
    let mut position = 0;
    for (start, end) in parts {
        let between = &text[position as usize..start as usize];
        if !between.trim().is_empty() {
            return Err(format!("{between:?} is in no token"));
        }
        position = end;
    }
    match text[position as usize..].trim().is_empty() {
        true => Ok(()),
        false => Err("the end is in no token".to_owned()),
    }
}

fn spans_point_right(text: &str) -> Result<(), String> {
    let (file, diagnostics) = parse(text);
    if diagnostics.has_errors() {
        return Ok(());
    }
    for item in &file.items {
        match item {
            Item::Statement(statement) => statement_points_right(text, statement)?,
            Item::Implementation(implementation) => block_points_right(text, &implementation.body)?,
            Item::Implement(implement) => {
                if let Some(condition) = &implement.condition {
                    expression_points_right(text, condition)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Formatting changes no meaning and loses no comment, and doing it again changes nothing.
fn formatted_stays(text: &str) -> Result<(), String> {
    let Ok(formatted) = setpoint_cf::format::format(FileId(0), text) else {
        return Ok(());
    };
    let (before, _) = parse(text);
    let (after, diagnostics) = parse(&formatted);
    if diagnostics.has_errors() || printed::file(&before) != printed::file(&after) {
        return Err(format!("{text:?} becomes {formatted:?}, which is not the same"));
    }
    let comments = |text: &str| {
        let lexed = syntax::lex(FileId(0), text);
        let written = |span: &setpoint_diagnostics::Span| {
            text[span.start as usize..span.end as usize].trim_end().to_owned()
        };
        lexed.comments.iter().map(written).collect::<Vec<String>>()
    };
    if comments(text) != comments(&formatted) {
        return Err(format!("{formatted:?} has not the comments of {text:?}"));
    }
    match setpoint_cf::format::format(FileId(0), &formatted) {
        Ok(again) if again == formatted => Ok(()),
        again => Err(format!("{formatted:?} is formatted to {again:?}")),
    }
}

fn block_points_right(text: &str, block: &Block) -> Result<(), String> {
    block
        .statements
        .iter()
        .try_for_each(|statement| statement_points_right(text, statement))
}

fn statement_points_right(text: &str, statement: &Statement) -> Result<(), String> {
    let shown = &text[statement.span.start as usize..statement.span.end as usize];
    let mut expected = String::new();
    printed::statement(&mut expected, statement, 0);
    let given = printed::file(&parse(shown).0);
    // A text that stands alone documents the file.
    if given != expected && !given.starts_with("doc ") {
        return Err(format!("{shown:?} gives {given} and not {expected}"));
    }
    match &statement.kind {
        StatementKind::Assign(assignment) => expression_points_right(text, &assignment.value),
        StatementKind::For { iterable, body, .. } => {
            expression_points_right(text, iterable)?;
            block_points_right(text, body)
        }
        StatementKind::If { branches, otherwise } => {
            for (condition, body) in branches {
                expression_points_right(text, condition)?;
                block_points_right(text, body)?;
            }
            otherwise
                .iter()
                .try_for_each(|body| block_points_right(text, body))
        }
        StatementKind::Expression(value) => expression_points_right(text, value),
    }
}

fn expression_points_right(text: &str, expression: &Expression) -> Result<(), String> {
    let shown = &text[expression.span.start as usize..expression.span.end as usize];
    let expected = printed::expression(expression);
    let source = format!("x = {shown}");
    let (file, _) = parse(&source);
    let given = match file.items.as_slice() {
        [
            Item::Statement(Statement {
                kind: StatementKind::Assign(assignment),
                ..
            }),
        ] => printed::expression(&assignment.value),
        _ => printed::file(&file),
    };
    if given != expected {
        return Err(format!("{shown:?} gives {given} and not {expected}"));
    }
    if let ExpressionKind::Interpolated(_) | ExpressionKind::Format(_) = expression.kind {
        let mut outcome = Ok(());
        expression.for_each_reference(&mut |reference| {
            let shown = &text[reference.span.start as usize..reference.span.end as usize];
            let compact: String = shown.split_whitespace().collect();
            // An escape in a field is shown as it is written.
            if compact != printed::reference(reference) && !shown.contains('\\') {
                outcome = Err(format!("{shown:?} is not {}", printed::reference(reference)));
            }
        });
        outcome?;
    }
    let mut outcome = Ok(());
    expression.for_each_child(&mut |child| {
        if outcome.is_ok() {
            outcome = expression_points_right(text, child);
        }
    });
    outcome
}

fn run<S: Strategy<Value = String>>(cases: u32, strategy: &S) -> Result<(), String> {
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let outcome = TestRunner::new(config).run(strategy, |text| {
        check(&text)
            .and_then(|_| formatted_stays(&text))
            .map_err(TestCaseError::fail)
    });
    match outcome {
        Ok(()) => Ok(()),
        Err(TestError::Fail(reason, text)) => Err(format!("{reason}: {text:?}")),
        Err(TestError::Abort(reason)) => Err(reason.to_string()),
    }
}

fn any_text_parses() -> Result<(), String> {
    run(
        2000,
        &any::<Vec<u8>>().prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
    )?;
    run(2000, &"\\PC{0,60}".prop_map(String::from))
}

/// Pieces of programs, also broken ones.
const PIECES: &[&str] = &[
    "a",
    "b::c",
    "x.y",
    "Host",
    "std::Host",
    "a-b",
    "1",
    "-1",
    "1.5",
    ".5",
    "\"t\"",
    "\"{{a}}\"",
    "f\"{a:>{b}}\"",
    "f'{'",
    "f'{a!",
    "é",
    "𐎟",
    "r\"\\d\"",
    "\"\"\"doc\"\"\"",
    "\"\"\"",
    "\"",
    "'",
    "matching /a+/",
    "/",
    "--",
    "->",
    "<-",
    "==",
    "<",
    "!=",
    "+=",
    "=",
    "+",
    "-",
    "*",
    "**",
    "%",
    "::",
    ":",
    ".",
    ",",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "?",
    "#c\n",
    "\n",
    "\n\n",
    "\r\n",
    "\n    ",
    ";",
    "&&",
    "||",
    "!",
    "é",
    "\\",
    "\"\\x4\"",
    "\"\\q\"",
    "“a”",
    "/*",
    "*/",
    "True",
];

fn any_soup_parses() -> Result<(), String> {
    let mut pieces: Vec<String> = PIECES.iter().map(|piece| (*piece).to_owned()).collect();
    for word in KEYWORDS {
        assert!(TokenKind::of_word(word).is_some(), "{word} is a keyword");
        pieces.push((*word).to_owned());
    }
    let soup = proptest::collection::vec(proptest::sample::select(pieces), 0..60);
    run(6000, &soup.prop_map(|pieces| pieces.join(" ")))
}

const KEYWORDS: &[&str] = &[
    "typedef",
    "as",
    "entity",
    "extends",
    "end",
    "in",
    "implementation",
    "for",
    "matching",
    "index",
    "implement",
    "using",
    "when",
    "and",
    "or",
    "not",
    "true",
    "false",
    "import",
    "is",
    "defined",
    "dict",
    "null",
    "undef",
    "parents",
    "if",
    "else",
    "elif",
];

/// Each repeats something that nests, 20 000 times, and all must be refused without a crash on the small stack of a test's thread.
fn deep_nesting() -> Result<(), String> {
    let count = 20_000;
    for piece in [
        "(",
        "[",
        "{\"a\":",
        "not ",
        "f(",
        "E(a=",
        "E[a=",
        "x[",
        "if a:\n",
        "for a in b:\n",
        "a ? ",
        "a ? b : ",
        "1 + (",
        "a or b and c == d + e * f ** g in (",
        "a in not ",
        "[x for x in ",
        "if a:\nelse:\nif b:\n",
    ] {
        let text = format!("x = {}", piece.repeat(count));
        let text = if piece.starts_with("if") || piece.starts_with("for") {
            &text[4..]
        } else {
            &text
        };
        let (_, diagnostics) = parse(text);
        if !diagnostics
            .iter()
            .any(|diagnostic| diagnostic.code.code == "E0519")
        {
            let first = diagnostics
                .iter()
                .next()
                .map(|diagnostic| diagnostic.message.clone());
            return Err(format!(
                "{piece:?} many times is not refused as too deep, but {first:?}"
            ));
        }
    }
    let lookups = format!("x = d{}", "[\"a\"]".repeat(count));
    match parse(&lookups)
        .1
        .iter()
        .any(|diagnostic| diagnostic.code.code == "E0519")
    {
        true => Ok(()),
        false => Err("lookups".to_owned()),
    }
}

/// A long text of each of these is read in the time of a test: nothing looks at the rest of the text again and again.
fn long_texts() -> Result<(), String> {
    for piece in [
        "\"",
        "\"\"\"",
        "\"\"\"\"",
        "/*",
        "/* ",
        "f\"{",
        "f\"{a\"",
        "\"{{ \"",
        "'{{a'",
        "x = 1\n",
        "x = (\n",
        "x = f(\n",
        ") ",
        "if a {\n",
        "end\n",
        "entity A:\n",
        "entity A:\nstring\n",
        "else:\n",
        "if\n",
        "import a.b\n",
        "“",
        "matching /",
        "1 + ",
        "a.b",
        "::",
        "E(a=1, ",
        "[",
        "{",
        "A.b [",
        "typedef x as ",
        "# c\n",
        "; ",
        "x = 1 ==\n",
        "if a:\nend\n",
        "{\"a\": ",
        "a[b] ",
        "a ",
        "implement A using b,\n",
    ] {
        check(&piece.repeat(200_000 / piece.len()))?;
    }
    Ok(())
}
