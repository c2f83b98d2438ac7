//! What holds for every text.

use proptest::prelude::*;

use super::super::{CODES, StmtKind, Tokens};
use super::read;

/// Something that looks a little like a program, and is mostly wrong.
fn soup() -> impl Strategy<Value = String> {
    soup_of(|_| true)
}

fn soup_of(wanted: impl Fn(&str) -> bool) -> impl Strategy<Value = String> {
    let mut words = vec![
        "if", "else", "for", "forkv", "in", "not", "and", "or", "class", "include", "import", "as", "func",
        "panic", "collect", "map", "struct", "str", "int", "true", "$x", "$a.b", "foo", "Foo", "Meta",
        "\"s\"", "\"${x}\"", "\"", "1", "-1", "2.5", "-", "->", "=>", "=", "==", "<|>", "||", "|", "?:", "?",
        ",", ":", ";", ".", "{", "}", "(", ")", "[", "]", "\n", "\n", "\n", " ", " ", "\t", "# c\n", "\r",
        "é", "_", "+", "*", "<", ">=", "!", "\\",
    ];
    words.retain(|word| wanted(word));
    prop::collection::vec(prop::sample::select(words), 0..60).prop_map(|words| words.concat())
}

fn joined(text: &str, tokens: &Tokens) -> String {
    tokens
        .iter()
        .map(|(_, range)| &text[range.start as usize..range.end as usize])
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn the_tokens_of_any_text_are_the_text(text in any::<String>()) {
        let (parsed, _) = read(&text);
        prop_assert_eq!(joined(&text, &parsed.tokens), text);
    }

    #[test]
    fn the_tokens_of_any_soup_are_the_soup_and_every_span_lies_in_it(text in soup()) {
        let (parsed, diagnostics) = read(&text);
        prop_assert_eq!(joined(&text, &parsed.tokens), text.clone());
        for diagnostic in &diagnostics {
            let span = diagnostic.primary.span;
            prop_assert!(text.get(span.start as usize..span.end as usize).is_some(), "{diagnostic:?}");
        }
        for id in &parsed.ast.root.statements {
            let span = parsed.ast[*id].span;
            prop_assert!(span.start < span.end && (span.end as usize) <= text.len());
        }
    }

    #[test]
    fn findings_come_in_source_order(text in soup()) {
        let (_, diagnostics) = read(&text);
        let starts: Vec<u32> = diagnostics.iter().map(|d| d.rule_place().start).collect();
        prop_assert!(starts.is_sorted(), "{starts:?}");
    }

    #[test]
    fn a_mistake_spares_the_statements_around_it(
        // Quotes and brackets reach beyond their line; everything else is done with at its end.
        text in soup_of(|word| !word.contains(['"', '{', '}', '[', ']', '(', ')'])),
    ) {
        let (parsed, _) = read(&format!("$first = 1\n{text}\n$last = 2\n"));
        let statements = &parsed.ast.root.statements;
        let names: Vec<&str> = [statements.first(), statements.last()]
            .into_iter()
            .flatten()
            .filter_map(|id| match &parsed.ast[*id].kind {
                StmtKind::Bind(bind) => Some(&*bind.name.text),
                _ => None,
            })
            .collect();
        prop_assert_eq!(names, ["first", "last"]);
    }
}

#[test]
fn every_code_is_used_once() {
    let mut codes: Vec<&str> = CODES.iter().map(|info| info.code).collect();
    let count = codes.len();
    codes.dedup();
    assert_eq!(codes.len(), count);
    assert!(codes.is_sorted_by_key(|code| (code.starts_with('W'), *code)));
}

#[test]
fn a_text_of_nothing_but_mistakes_is_told_of_in_part() {
    for mistake in ["&&", "\r", "’", "99999999999999999999 "] {
        let (_, diagnostics) = super::read(&mistake.repeat(10_000));
        assert!(diagnostics.has_errors());
        let count = diagnostics.len();
        assert!(count <= 200, "{count} errors of {mistake:?}");
    }
}
