//! The wording of docs, comments and messages: phrases that plain English replaces, counted per crate and per page.
//!
//! `tests/words.tsv` records the counts. A count above its record fails the test; `UPDATE=1` lowers the records.

use std::collections::BTreeMap;
use std::path::Path;

use fancy_regex::Regex;
use setpoint_testing::repository;

use super::{files, read};

/// Patterns, and the words to write instead.
const PHRASES: &[(&str, &str)] = &[
    (r"(?i)\bshall\b", "must, will"),
    (r"(?i)\bwho(so)?ever\b", "the actor's name"),
    (r"(?i)\banew\b", "again"),
    (r"(?i)\bamid\b", "during"),
    (r"(?i)\b(is|are|was|were|be) told\b", "is reported"),
    (r"(?i)\bof which\b", "whose"),
    (r"(^|[.:;!?] )Who (?!is\b|are\b)[a-z]+", "a user who …"),
    (
        r"(^|[.:;!?] )What [a-z]+ [a-z]+(?![^.]*\?)",
        "a noun as the subject",
    ),
    (r"(?i)\b(is|are) (not )?to be\b", "must be"),
    (r"(?i)\bhas to be\b", "must be"),
    (r"(?i)\bas it is\b", "unchanged"),
    (r"(?i)\bfigures\b", "metrics"),
    (r"(?i)\bwanted state\b", "desired state"),
    (r"(?i)\bcomes? to an end\b", "ends"),
    (r"(?i)\bgoes on\b", "continues"),
    (r"(?i)\bin the place of\b", "instead of"),
    (r"(?i)\b(no|any|some)body\b", "no process, a user"),
    (r"(?i)\bthat of\b", "the noun again"),
    (r"(?i)\bof one that\b", "the noun again"),
    (r"(?i)\bmended?\b", "fix"),
    (r"(?i)\b(hence|thereby|lest)\b", "so, by"),
    (r"(?i)\bbeside\b", "next to, in addition to"),
    (r"(?i)\bby (itself|themselves)\b", "automatically, alone"),
    (
        r"^(What|Who|Whom|How|Where|That|Which|When) .*\u{1}$",
        "a noun phrase or a verb",
    ),
];

/// The mark of a doc comment's first line, for the last pattern.
const FIRST_LINE: char = '\u{1}';

#[test]
fn phrases_that_plain_english_replaces_only_get_fewer() {
    let record = repository().join("tests/words.tsv");
    let recorded = counts_of(&read(&record));
    let found = found();
    let is_update = std::env::var("UPDATE").is_ok_and(|value| value == "1");
    if is_update {
        let lower = |(scope, now): (&String, &Vec<String>)| {
            let before = recorded.get(scope).copied().unwrap_or(now.len());
            (before.min(now.len()), scope.clone())
        };
        let lines = found.iter().map(lower).filter(|(count, _)| *count > 0);
        let text: String = lines
            .map(|(count, scope)| format!("{count}\t{scope}\n"))
            .collect();
        std::fs::write(&record, text).expect("the record can be written");
    }
    let more: Vec<String> = found
        .iter()
        .filter(|(scope, lines)| lines.len() > recorded.get(*scope).copied().unwrap_or(0))
        .map(|(scope, lines)| {
            let before = recorded.get(scope).copied().unwrap_or(0);
            let list = lines.join("\n  ");
            format!(
                "{scope}: {} phrases instead of {before}, among them a new one:\n  {list}",
                lines.len()
            )
        })
        .collect();
    assert!(more.is_empty() || is_update, "{}", more.join("\n"));
}

fn counts_of(record: &str) -> BTreeMap<String, usize> {
    let lines = record.lines().filter_map(|line| line.split_once('\t'));
    lines
        .map(|(count, scope)| (scope.to_owned(), count.parse().expect("a count is a number")))
        .collect()
}

/// The phrases of each crate and each page, as `file:line: phrase -> advice`.
fn found() -> BTreeMap<String, Vec<String>> {
    let patterns: Vec<(Regex, &str)> = PHRASES
        .iter()
        .map(|(pattern, advice)| (Regex::new(pattern).expect("the pattern is valid"), *advice))
        .collect();
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let sources = files("crates", "rs");
    let pages = files("docs", "md").into_iter().filter(|page| !is_generated(page));
    let roots = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(Into::into);
    for file in sources.into_iter().chain(pages).chain(roots) {
        if file.ends_with("tidy/words.rs") {
            continue;
        }
        let text = read(&repository().join(&file));
        for (number, prose) in prose(&file, &text) {
            for (pattern, advice) in &patterns {
                // A pattern that gives up on a line has found nothing.
                if let Ok(Some(phrase)) = pattern.find(&prose) {
                    let phrase = phrase.as_str().trim_end_matches(FIRST_LINE).trim();
                    let line = format!("{}:{number}: {phrase} -> {advice}", file.display());
                    found.entry(scope(&file)).or_default().push(line);
                }
            }
        }
    }
    found
}

/// Pages that come from texts in the crates.
fn is_generated(page: &Path) -> bool {
    page.starts_with("docs/reference") && !page.starts_with("docs/reference/language")
}

fn scope(file: &Path) -> String {
    let parts: Vec<_> = file.iter().map(|part| part.to_string_lossy()).collect();
    match parts.as_slice() {
        [crates, name, ..] if crates == "crates" => format!("crates/{name}"),
        _ => file.display().to_string(),
    }
}

/// The lines that people read, by number: all of a page; comments and string literals of a source.
fn prose(file: &Path, text: &str) -> Vec<(usize, String)> {
    let is_page = file.extension().is_some_and(|extension| extension == "md");
    let mut lines = Vec::new();
    let mut is_in_comment = false;
    for (number, line) in (1..).zip(text.lines()) {
        let stripped = line.trim();
        let is_doc = stripped.starts_with("///");
        lines.push((
            number,
            match () {
                () if is_page => line.to_owned(),
                () if is_doc && !is_in_comment => format!("{}{FIRST_LINE}", comment(stripped)),
                () if stripped.starts_with("//") => comment(stripped).to_owned(),
                () => literals(line),
            },
        ));
        is_in_comment = is_doc;
    }
    lines
}

fn comment(line: &str) -> &str {
    line.trim_start_matches(['/', '!', ' '])
}

/// The string literals of a line.
fn literals(line: &str) -> String {
    let mut found = String::new();
    let (mut is_inside, mut is_escaped) = (false, false);
    for character in line.chars() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if is_inside => is_escaped = true,
            '"' => {
                is_inside = !is_inside;
                found.push(' ');
            }
            _ if is_inside => found.push(character),
            _ => {}
        }
    }
    found.trim().to_owned()
}
