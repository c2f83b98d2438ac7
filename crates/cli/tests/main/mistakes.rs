//! The pages of mistakes in the book: made of the cases below `tests/cases/mistakes` and `tests/cases/model_mistakes`, each a program and
//! what is seen.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use setpoint_testing::cases::{Case, Stage, of_stage};
use setpoint_testing::repository;

/// One of the pages.
struct Page {
    /// The folder of its cases.
    folder: &'static str,
    stage: Stage,
    /// The chapters: folders of cases, in the order of the page, with their headings.
    chapters: &'static [(&'static str, &'static str)],
    /// What stands above them.
    head: &'static str,
    /// Where it is kept.
    path: &'static str,
}

const PROGRAMS: Page = Page {
    folder: "mistakes",
    stage: Stage::Mistake,
    chapters: &[
        ("signs", "Signs"),
        ("words", "Words"),
        ("strings", "Strings and formats"),
        ("names", "Names, classes and functions"),
        ("types", "Types"),
        ("resources", "Resources and edges"),
        ("files", "Files and other languages"),
    ],
    head: "<!-- Written by the test `mistakes` of `setpoint` from the cases below `tests/cases/mistakes`. -->

# Common errors

Common errors, with the output of `setpoint check`. If an error occurs only when values are known, the page shows the output of `setpoint graph` or `setpoint run`.
`setpoint explain CODE` explains each code. If a fix is unique, it is shown as lines with `+`, and `setpoint check --fix` applies it.
",
    path: "docs/mistakes.md",
};

const MODELS: Page = Page {
    folder: "model_mistakes",
    stage: Stage::ModelMistake,
    chapters: &[
        ("words", "Words of other languages"),
        ("blocks", "Blocks and ends"),
        ("texts", "Texts"),
        ("definitions", "Entities and their attributes"),
        ("relations", "Relations and indexes"),
        ("types", "Types of values"),
        ("names", "Names, namespaces and imports"),
        ("constructors", "Constructors and lookups"),
        ("implementations", "Implementations"),
        ("statements", "Statements and expressions"),
        ("functions", "Functions and templates"),
        ("execution", "Missing values"),
        ("resources", "Resources"),
        ("projects", "Projects and modules"),
    ],
    head: "<!-- Written by the test `mistakes` of `setpoint` from the cases below `tests/cases/model_mistakes`. -->

# Common errors in models

Common mistakes in models (`.cf`), with the output of `setpoint cf compile`. `setpoint explain CODE` explains each code.
",
    path: "docs/mistakes-in-models.md",
};

#[test]
fn the_page_of_mistakes_is_fresh() {
    is_fresh(&PROGRAMS, 40);
}

#[test]
fn the_page_of_mistakes_in_models_is_fresh() {
    is_fresh(&MODELS, 80);
}

/// With `UPDATE=1` the page is written anew.
fn is_fresh(page: &Page, least: usize) {
    let cases = of_stage(page.stage).expect("the cases are well formed");
    let mut chapters: BTreeMap<&str, Vec<&Case>> = BTreeMap::new();
    for case in &cases {
        let chapter = case
            .name
            .split('/')
            .nth(1)
            .expect("a case is in the folder of a chapter");
        chapters.entry(chapter).or_default().push(case);
    }
    let known: BTreeSet<&str> = page.chapters.iter().map(|(folder, _)| *folder).collect();
    let found: BTreeSet<&str> = chapters.keys().copied().collect();
    assert_eq!(found, known, "the folders below {} are the chapters", page.folder);
    assert!(cases.len() >= least, "only {} mistakes are shown", cases.len());
    let mut text = page.head.to_owned();
    for (folder, heading) in page.chapters {
        let _ = write!(text, "\n## {heading}\n");
        for case in &chapters[folder] {
            write_case(&mut text, case);
        }
    }
    let kept = repository().join(page.path);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&kept, &text).expect("the page can be written");
    }
    let is_fresh = std::fs::read_to_string(&kept).is_ok_and(|kept| kept == text);
    assert!(is_fresh, "UPDATE=1 writes {} anew", page.path);
}

/// The sentence of a case, its program and what is seen.
fn write_case(page: &mut String, case: &Case) {
    let screen = std::fs::read_to_string(&case.expectation).expect("each case has its expectation");
    let (sentence, files) = match case.stage {
        Stage::ModelMistake => case.model_mistake().expect("a case can be read"),
        _ => {
            let text = case.text().expect("a case is text");
            let (sentence, program) = text.split_once('\n').expect("a case has lines");
            let sentence = sentence.trim_start_matches("# ").to_owned();
            (sentence, vec![("main.mcl".to_owned(), program.to_owned())])
        }
    };
    let name = case.name.rsplit('/').next().unwrap_or_default();
    let _ = write!(page, "\n### {}\n\n{sentence}\n", title(name));
    for (at, (name, text)) in files.iter().enumerate() {
        let language = name.rsplit_once('.').map_or("text", |(_, extension)| extension);
        let (mark, head) = match at {
            0 => (",wrong", String::new()),
            _ => ("", format!("# file: {name}\n")),
        };
        let text = visible(text);
        let _ = write!(page, "\n```{language}{mark}\n{head}{}\n```\n", text.trim_end());
    }
    let _ = write!(page, "\n```text\n{}\n```\n", screen.trim_end());
}

/// `a_missing_comma`: `A missing comma`.
fn title(name: &str) -> String {
    let mut title = name.replace('_', " ");
    if let Some(first) = title.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    title
}

/// A text whose carriage returns and marks can be seen.
fn visible(text: &str) -> String {
    text.replace('\r', "␍").replace('\u{feff}', "<U+FEFF>")
}
