//! The page of mistakes in the book: made of the cases below `tests/cases/mistakes`, each a program and what is seen.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use setpoint_testing::repository;

/// The chapters: folders of cases, in the order of the page, with their headings.
const CHAPTERS: &[(&str, &str)] = &[
    ("signs", "Signs"),
    ("words", "Words"),
    ("strings", "Strings and formats"),
    ("names", "Names, classes and functions"),
    ("types", "Types"),
    ("resources", "Resources and edges"),
    ("files", "Files and other languages"),
];

const HEAD: &str = "<!-- Written by the test `mistakes` of `setpoint` from the cases below `tests/cases/mistakes`. -->

# Mistakes and what is seen of them

What those write first who know another language, and what `setpoint check` answers; where nothing is wrong before values are known, what `setpoint graph` and
`setpoint run` answer. `setpoint explain` tells more of each code, and `setpoint check --fix` makes the changes that are shown as lines with `+`, where there is only one.
";

/// With `UPDATE=1` the page is written anew.
#[test]
fn the_page_of_mistakes_is_fresh() {
    let cases = repository().join("tests/cases/mistakes");
    let mut page = HEAD.to_owned();
    let mut count = 0;
    for (folder, heading) in CHAPTERS {
        let _ = write!(page, "\n## {heading}\n");
        for (name, text) in files(&cases.join(folder), "mcl") {
            let screen = std::fs::read_to_string(cases.join(folder).join(format!("{name}.expect")))
                .expect("each case has its expectation");
            let (sentence, program) = text.split_once('\n').expect("a case has lines");
            let sentence = sentence.trim_start_matches("# ");
            let program = visible(program);
            let title = title(&name);
            let _ = write!(
                page,
                "\n### {title}\n\n{sentence}\n\n```mcl,wrong\n{}\n```\n\n```text\n{}\n```\n",
                program.trim_end(),
                screen.trim_end()
            );
            count += 1;
        }
    }
    assert!(count >= 40, "only {count} mistakes are shown");
    let folders: Vec<String> = std::fs::read_dir(&cases)
        .expect("the cases are there")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    let without_chapter: Vec<&String> = folders
        .iter()
        .filter(|folder| CHAPTERS.iter().all(|(chapter, _)| chapter != folder))
        .collect();
    assert!(without_chapter.is_empty(), "no chapter: {without_chapter:?}");
    let kept = repository().join("docs/mistakes.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&kept, &page).expect("the page can be written");
    }
    let is_fresh = std::fs::read_to_string(&kept).is_ok_and(|kept| kept == page);
    assert!(is_fresh, "UPDATE=1 writes docs/mistakes.md anew");
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

/// The files with an extension in a folder, by name.
fn files(folder: &Path, extension: &str) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(folder).expect("each chapter has a folder");
    let paths = entries.flatten().map(|entry| entry.path());
    paths
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .map(|path| {
            let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
            let text = std::fs::read_to_string(&path).expect("a case is text");
            (name.unwrap_or_default(), text)
        })
        .collect()
}
