//! Functions are short enough to be read at once, or have a reason.
//!
//! The length of a function is the number of lines from its `fn` to its last brace. Tests may be longer, since a table of cases is one
//! statement.

use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use setpoint_testing::repository;

use crate::{fail_if_any, files, tokens};

/// More lines than this need a reason.
const LONGEST: usize = 100;

/// Functions that are longer than they should be: file below `crates`, name, and why.
const LONG: &[(&str, &str, &str)] = &[
    (
        "cf/src/analysis/shapes.rs",
        "expression",
        "one arm for each form of expression",
    ),
    (
        "cf-execute/src/execute/evaluate.rs",
        "evaluate",
        "one arm for each form of expression",
    ),
    (
        "cf-functions/src/types/conditions.rs",
        "expression",
        "one arm for each form of expression",
    ),
    (
        "cf-names/src/resolve/expressions.rs",
        "expression",
        "one arm for each form of expression",
    ),
    (
        "cf-syntax/src/foreign.rs",
        "of_tokens",
        "one pattern for each form of another language",
    ),
];

#[test]
fn functions_are_short_or_have_a_reason() {
    let mut wrong = Vec::new();
    let mut needed = Vec::new();
    for path in files("crates", "rs") {
        let Some(inside) = path.strip_prefix("crates").ok().filter(|path| is_source(path)) else {
            continue;
        };
        for (name, lines) in functions(tokens(&repository().join(&path))) {
            let reason = LONG
                .iter()
                .find(|(file, long, _)| Path::new(file) == inside && *long == name);
            match reason {
                _ if lines <= LONGEST => {}
                Some(reason) => needed.push(reason),
                None => wrong.push(format!("{}: `{name}` has {lines} lines", path.display())),
            }
        }
    }
    let superfluous = LONG.iter().filter(|row| !needed.contains(row));
    wrong.extend(superfluous.map(|(file, name, _)| format!("{file}: `{name}` needs its reason no more")));
    fail_if_any(&wrong);
}

/// Whether a file below `crates` belongs to what is built, and not only to tests.
fn is_source(path: &Path) -> bool {
    let mut parts = path.iter().skip(1);
    parts.next().is_some_and(|first| first == "src")
        && parts.all(|part| part != "tests" && part != "tests.rs")
}

/// The functions outside of test modules, each with its number of lines.
fn functions(stream: TokenStream) -> Vec<(String, usize)> {
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    let mut found = Vec::new();
    let mut is_for_tests = false;
    // The function whose body comes next: its name, and where it begins.
    let mut open: Option<(String, usize)> = None;
    for (at, tree) in trees.iter().enumerate() {
        match (tree, trees.get(at + 1)) {
            (TokenTree::Ident(word), Some(TokenTree::Ident(name))) if word == "fn" => {
                open = Some((name.to_string(), word.span().start().line));
            }
            (TokenTree::Punct(sign), _) if sign.as_char() == ';' => {
                open = None;
                is_for_tests = false;
            }
            (TokenTree::Group(group), _) => {
                if group.delimiter() == Delimiter::Bracket && group.stream().to_string() == "cfg (test)" {
                    is_for_tests = true;
                    continue;
                }
                let is_body = group.delimiter() == Delimiter::Brace;
                let function = open.take_if(|_| is_body);
                if !is_for_tests {
                    found.extend(functions(group.stream()));
                    let lines = |first: usize| group.span_close().end().line - first + 1;
                    found.extend(function.map(|(name, first)| (name, lines(first))));
                }
                is_for_tests &= !is_body;
            }
            _ => {}
        }
    }
    found
}
