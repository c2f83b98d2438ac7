//! The pages that explain codes: complete, and their examples show what they say.

use std::collections::BTreeSet;
use std::sync::Arc;

use setpoint::{Assembly, PAGES, page};
use setpoint_cf::datum::Datum;
use setpoint_cf::execute::Inputs;
use setpoint_cf::export::{Deferrals, LANGUAGE, Machine, machine_outputs};
use setpoint_cf::project;
use setpoint_diagnostics::{Diagnostic, Diagnostics, MemoryLoader, SourceMap};
use setpoint_flow::Evaluator;
use setpoint_graph::Assembler;
use setpoint_mcl::analysis::{AnalysisOptions, analyse};
use setpoint_mcl::lint::lint;
use setpoint_mcl::{CompileOptions, Entry, compile, format};
use setpoint_programs::codes;
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
/// `# file: NAME` are further files, for all programs of the page; behind `Right:` they take the place of one of the same name. A carriage
/// return is written `␍`.
#[derive(Default)]
struct Examples {
    wrong: Vec<Example>,
    right: Vec<Example>,
    files: Files,
    /// The files of the corrected programs, where they differ.
    right_files: Files,
    /// Whether something is shown that is no program by itself.
    has_sketch: bool,
}

/// Names and texts of files.
type Files = Vec<(String, String)>;

/// A program in one of the languages.
enum Example {
    Mcl(String),
    Model(String),
    Yaml(String),
}

impl Example {
    fn text(&self) -> &str {
        let (Example::Mcl(text) | Example::Model(text) | Example::Yaml(text)) = self;
        text
    }

    /// The codes that it raises, on the page of a code.
    fn raised(&self, code: &str, files: &Files) -> Vec<&'static str> {
        match self {
            Example::Mcl(text) if code.starts_with("W01") => linted(text),
            Example::Mcl(text) => raised(text, files),
            Example::Model(text) if code.starts_with("W051") || code.starts_with("W052") => {
                linted_model(text)
            }
            Example::Model(text) => raised_by_model(text, files),
            Example::Yaml(text) => raised_by_yaml(text),
        }
    }
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
                let examples_here = match is_right {
                    true => &mut examples.right,
                    false => &mut examples.wrong,
                };
                match (language, name) {
                    (_, Some(name)) if is_right => examples.right_files.push((name, text)),
                    (_, Some(name)) => examples.files.push((name, text)),
                    ("mcl", None) => examples_here.push(Example::Mcl(text)),
                    ("cf", None) => examples_here.push(Example::Model(text)),
                    ("yaml", None) => examples_here.push(Example::Yaml(text)),
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
        machine.set_deploy_file("/files/internal.asc", "-----BEGIN PGP PUBLIC KEY BLOCK-----\n");
        // The command of the page on plans.
        machine.print_line("/bin/echo eu", "eu");
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

/// The codes that a model raises, from text to what one machine keeps of it: of each error those of what it wraps come behind its own.
pub(crate) fn raised_by_model(text: &str, files: &[(String, String)]) -> Vec<&'static str> {
    let loader = files.iter().fold(MemoryLoader::new(), |loader, (name, text)| {
        loader.with(name, text)
    });
    let loader = loader.with("main.cf", text);
    let library = Assembly::standard().library("host.example");
    let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let mut options = project::Options::default();
    let compiled = setpoint_cf::compile::compile(
        &loader,
        &library,
        &mut options,
        &Inputs::default(),
        &mut sources,
        &mut diagnostics,
    );
    if let Some(exported) = compiled.exported.filter(|_| !diagnostics.has_errors()) {
        let machine = Machine {
            hostname: "host.example",
            deploy: "local",
            kinds: &library.internal_kinds,
            deferrals: &NothingDeferred,
        };
        let kept = machine_outputs(&exported, &machine, &mut diagnostics);
        if let Err(found) = Assembler::new(&LANGUAGE).replace_all(kept.outputs) {
            diagnostics.append(found);
        }
    }
    let mut codes = Vec::new();
    let mut left: Vec<&Diagnostic> = diagnostics.iter().collect();
    left.reverse();
    while let Some(told) = left.pop() {
        codes.push(told.code.code);
        left.extend(told.causes.iter().rev());
    }
    codes
}

/// The codes that a graph in YAML raises before it is a graph.
fn raised_by_yaml(text: &str) -> Vec<&'static str> {
    let library = Assembly::standard().library("host.example");
    let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let file = sources.add("graph.yaml", text);
    setpoint_yaml::compile(file, text, &library, &setpoint_mcl::Mcl, &mut diagnostics);
    diagnostics.iter().map(|found| found.code.code).collect()
}

/// A machine without environment and facts.
struct NothingDeferred;

impl Deferrals for NothingDeferred {
    fn environment(&self, _: &str) -> Option<Arc<str>> {
        None
    }

    fn fact(&self, _: &str) -> Option<Datum> {
        None
    }
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

/// The codes of what the linter finds in a model.
fn linted_model(text: &str) -> Vec<&'static str> {
    let loader = MemoryLoader::new().with("main.cf", text);
    let library = Assembly::standard().library("host.example");
    let options = setpoint_cf::analysis::AnalysisOptions::default();
    let analysis = setpoint_cf::analysis::Workspace::new().analyse(&options, &loader, &library);
    let found = setpoint_cf::lint::lint(&analysis);
    let errors = analysis.diagnostics.iter();
    let errors = errors.filter(|found| found.severity == setpoint_diagnostics::Severity::Error);
    errors.chain(found.iter()).map(|found| found.code.code).collect()
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
            right_files,
            has_sketch,
        } = examples(page);
        if bad.is_empty() && !has_sketch {
            wrong.push_str(&format!("{code}: there is no example\n"));
        }
        // Examples of an error may have what is only warned of.
        let matters = |other: &&str| code.starts_with('W') || !other.starts_with('W');
        for example in bad {
            let mut raised = example.raised(code, &files);
            raised.retain(|other| matters(&&**other));
            // What models raise wraps other errors, and the page may be that of what is wrapped.
            let is_raised = match example {
                Example::Mcl(_) => raised.first() == Some(code),
                Example::Model(_) | Example::Yaml(_) => raised.contains(code),
            };
            if !is_raised && !WAITING.contains(code) {
                let text = example.text();
                wrong.push_str(&format!("{code}: the example raises {raised:?}:\n{text}\n"));
            }
        }
        let mut right_of_all = files;
        right_of_all.extend(right_files);
        for example in right {
            let mut raised = example.raised(code, &right_of_all);
            raised.retain(|other| matters(&&**other));
            if raised.iter().any(|code| *code != codes::UNFORMATTED.code) {
                let text = example.text();
                wrong.push_str(&format!(
                    "{code}: the corrected example raises {raised:?}:\n{text}\n"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
