//! The pages that explain codes: complete, and their examples show what they say.

use std::collections::BTreeSet;
use std::sync::Arc;

use setpoint::{Assembly, PAGES, codes, page};
use setpoint_diagnostics::{Diagnostics, MemoryLoader, SourceMap};
use setpoint_flow::Evaluator;
use setpoint_mcl::analysis::{AnalysisOptions, analyse};
use setpoint_mcl::lint::lint;
use setpoint_mcl::{CompileOptions, Entry, compile, format};
use setpoint_simulated::SimulatedCapabilities;
use setpoint_value::Wake;

#[test]
fn every_code_has_a_page_with_its_summary() {
    for code in codes::all() {
        let page = page(code.code).unwrap_or_else(|| panic!("{} has no page", code.code));
        let title = format!("# {}: {}\n", code.code, code.summary);
        assert!(
            page.starts_with(&title),
            "the page of {} begins with {title}",
            code.code
        );
    }
}

/// The table at the end of the first page of the reference.
#[test]
fn every_rule_about_an_error_is_in_the_book_with_its_code() {
    let path = setpoint_testing::repository().join("docs/reference/mcl.md");
    let book = std::fs::read_to_string(path).expect("the reference is part of the book");
    let rows: Vec<String> = codes::all()
        .iter()
        .filter(|code| !code.rule.is_empty())
        .map(|code| {
            let (rule, code, stage, summary) = (code.rule, code.code, code.stage.name(), code.summary);
            format!("| {rule} | [{code}](../errors/{code}.md) | {stage} | {summary} |\n")
        })
        .collect();
    let table = rows.concat();
    assert!(book.ends_with(&table), "the page should end with\n{table}");
}

#[test]
fn every_page_has_a_code() {
    let codes: BTreeSet<&str> = codes::all().iter().map(|code| code.code).collect();
    let lonely: Vec<&str> = PAGES
        .iter()
        .map(|(code, _)| *code)
        .filter(|code| !codes.contains(code))
        .collect();
    assert!(lonely.is_empty(), "{lonely:?}");
}

/// The programs of a page: those before the line `Right:` raise the code, those behind it raise nothing. Blocks that begin with
/// `# file: NAME` are further files, for all programs of the page. A carriage return is written `␍`.
#[derive(Default)]
struct Examples {
    wrong: Vec<String>,
    right: Vec<String>,
    files: Vec<(String, String)>,
    /// Whether something is shown that is no program by itself.
    has_sketch: bool,
}

fn examples(page: &str) -> Examples {
    let mut examples = Examples::default();
    let mut is_right = false;
    let mut block: Option<(&str, String)> = None;
    for line in page.lines() {
        match (block.take(), line) {
            (None, "Right:") => is_right = true,
            (None, line) => block = line.strip_prefix("```").map(|language| (language, String::new())),
            (Some((language, text)), "```") => {
                let name = text
                    .lines()
                    .next()
                    .and_then(|first| first.strip_prefix("# file: "))
                    .map(str::to_owned);
                match (language, name) {
                    (_, Some(name)) => examples.files.push((name, text)),
                    ("mcl", None) if is_right => examples.right.push(text),
                    ("mcl", None) => examples.wrong.push(text),
                    ("text", None) => examples.has_sketch = true,
                    _ => {}
                }
            }
            (Some((language, mut text)), line) => {
                text.push_str(&line.replace('␍', "\r"));
                text.push('\n');
                block = Some((language, text));
            }
        }
    }
    examples
}

/// The codes that a program raises, from text to graph.
pub(crate) fn raised(text: &str, files: &[(String, String)]) -> Vec<&'static str> {
    let loader = files.iter().fold(MemoryLoader::new(), |loader, (name, text)| {
        loader.with(name, text)
    });
    let loader = loader.with("main.mcl", text);
    let library = Assembly::standard().library("host.example");
    let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let entry = Entry::File("main.mcl".to_owned());
    let compiled = compile(
        &entry,
        &CompileOptions::default(),
        &loader,
        &library,
        &mut sources,
        &mut diagnostics,
    );
    let mut codes: Vec<&str> = diagnostics
        .iter()
        .map(|diagnostic| diagnostic.code.code)
        .collect();
    if let Some(program) = compiled.program {
        let machine = Arc::new(SimulatedCapabilities::new());
        let mut evaluator = Evaluator::new(program, machine, Box::new(|_| Wake::new(|| ())));
        let step = evaluator.step(&[]);
        codes.extend(step.diagnostics.iter().map(|diagnostic| diagnostic.code.code));
        if !step.pending.is_empty() {
            codes.push(setpoint_mcl::NO_VALUE.code);
        }
    }
    if codes.is_empty() && format::format(text).is_ok_and(|formatted| formatted != *text) {
        codes.push(codes::UNFORMATTED.code);
    }
    codes
}

/// The codes of what the linter finds in a program.
fn linted(text: &str) -> Vec<&'static str> {
    let loader = MemoryLoader::new().with("main.mcl", text);
    let library = Assembly::standard().library("host.example");
    let entry = Entry::File("main.mcl".to_owned());
    let analysis = analyse(&entry, &AnalysisOptions::default(), &loader, &library).expect("nobody stops it");
    let found = lint(&analysis, &library, &|_| true);
    found.iter().map(|found| found.code.code).collect()
}

/// Codes whose examples need what is not there yet: statements of the kind `collect`, a kind that merges.
const WAITING: &[&str] = &["E0410", "E0412"];

#[test]
fn the_examples_of_every_page_raise_its_code_and_the_corrected_ones_nothing() {
    let mut wrong = String::new();
    for (code, page) in PAGES {
        let Examples {
            wrong: bad,
            right,
            files,
            has_sketch,
        } = examples(page);
        if bad.is_empty() && !has_sketch {
            wrong.push_str(&format!("{code}: there is no example\n"));
        }
        // Examples of an error may have what is only warned of.
        let matters = |other: &&str| code.starts_with('W') || !other.starts_with('W');
        for text in bad {
            let mut raised = match code.starts_with("W01") {
                true => linted(&text),
                false => raised(&text, &files),
            };
            raised.retain(|other| matters(&&**other));
            if raised.first() != Some(code) && !WAITING.contains(code) {
                wrong.push_str(&format!("{code}: the example raises {raised:?}:\n{text}\n"));
            }
        }
        for text in right {
            let mut raised = match code.starts_with("W01") {
                true => linted(&text),
                false => raised(&text, &files),
            };
            raised.retain(|other| matters(&&**other));
            if raised.iter().any(|code| *code != codes::UNFORMATTED.code) {
                wrong.push_str(&format!(
                    "{code}: the corrected example raises {raised:?}:\n{text}\n"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
