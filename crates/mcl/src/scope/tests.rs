//! What is said of programs with very many errors, very long names or very long ways of imports, and in which order. What is wrong with
//! single names is in the cases of `tests/cases/scope` and `tests/cases/modules`.

use std::fmt::Write as _;

use setpoint_diagnostics::{Diagnostic, MemoryLoader, SourceMap};
use setpoint_graph::Library;

use crate::analysis::{Analysis, AnalysisOptions, analyse};

use super::*;

/// The analysis of a program of several files; the first is the entry.
fn analysed(files: &[(&str, &str)]) -> Analysis {
    let disk = MemoryLoader::new();
    let disk = files
        .iter()
        .fold(disk, |disk, (name, text)| disk.with(*name, *text));
    let library = Library::new(setpoint_functions::registry(), []);
    let entry = Entry::File(files[0].0.to_owned());
    analyse(&entry, &AnalysisOptions::default(), &disk, &library).expect("nobody stops it")
}

/// The first line of an error, with its place.
fn told(error: &Diagnostic, sources: &SourceMap) -> String {
    let file = sources.file(error.primary.span.file);
    let at = file.position(error.primary.span.start);
    format!("{}:{} {}", file.name, at.line, error.message)
}

#[test]
fn of_a_long_way_of_imports_both_ends_are_told() {
    let way = |length: usize| {
        let mut files = vec![("m0.mcl".to_owned(), "$y = $nothing\n".to_owned())];
        for number in 1..=length {
            let text = format!("import \"m{}.mcl\"\n", number - 1);
            files.push((format!("m{number}.mcl"), text));
        }
        let files: Vec<(&str, &str)> = files
            .iter()
            .rev()
            .map(|(name, text)| (&**name, &**text))
            .collect();
        let analysis = analysed(&files);
        let error = analysis.diagnostics.iter().next().expect("an unknown variable");
        assert_eq!(
            told(error, &analysis.sources),
            "m0.mcl:1 `$nothing` is not defined here"
        );
        let imports = error.related.iter();
        let imports: Vec<String> = imports
            .map(|import| format!("{} {}", analysis.sources.file(import.span.file).name, import.text))
            .collect();
        imports
    };
    // As long as all of it is told.
    let all: Vec<String> = (1..=16)
        .map(|number| format!("m{number}.mcl imported here"))
        .collect();
    assert_eq!(way(16), all);
    let mut ends: Vec<String> = (1..=8)
        .map(|number| format!("m{number}.mcl imported here"))
        .collect();
    ends.push("m12.mcl imported here, after 3 more imports".to_owned());
    ends.extend((13..=19).map(|number| format!("m{number}.mcl imported here")));
    assert_eq!(way(19), ends);
}

#[test]
fn errors_of_files_are_told_in_the_order_of_the_text_and_its_imports() {
    let files = [
        (
            "main.mcl",
            "func f() { $a }\nimport \"one.mcl\"\nclass c {\n\timport \"two.mcl\"\n\t$x = $b\n}\ninclude c\n$y = [$y, $c]\nimport \"three.mcl\"\n",
        ),
        ("one.mcl", "$x = $d\nimport \"four.mcl\"\n"),
        ("two.mcl", "$x = $e\n"),
        ("three.mcl", "$x = $f\n"),
        ("four.mcl", "$x = $g\n"),
    ];
    let analysis = analysed(&files);
    let found: Vec<String> = analysis
        .diagnostics
        .iter()
        .map(|error| told(error, &analysis.sources))
        .collect();
    let expected = [
        "four.mcl:1 `$g` is not defined here",
        "one.mcl:1 `$d` is not defined here",
        "three.mcl:1 `$f` is not defined here",
        "main.mcl:8 `$y` depends on itself",
        "main.mcl:1 `$a` is not defined here",
        "two.mcl:1 `$e` is not defined here",
        "main.mcl:5 `$b` is not defined here",
        "main.mcl:8 `$c` is not defined here",
    ];
    assert_eq!(found, expected);
}

#[test]
fn behind_fifty_errors_nothing_is_suggested() {
    let mut text = "$value = 1\n".to_owned();
    for number in 0..60 {
        let _ = writeln!(text, "$x{number} = $valeu");
    }
    let analysis = analysed(&[("main.mcl", &text)]);
    let suggestions = analysis.diagnostics.iter().map(|error| !error.help.is_empty());
    let suggestions: Vec<bool> = suggestions.collect();
    assert_eq!(suggestions.len(), 60);
    assert!(suggestions[..50].iter().all(|is_there| *is_there));
    assert!(!suggestions[50..].iter().any(|is_there| *is_there));
}

#[test]
fn a_long_name_is_known_and_so_is_one_of_as_many_parts_as_there_may_be() {
    let long = "x".repeat(300);
    let text = format!("${long} = 1\n$y = ${long}\n");
    assert_eq!(analysed(&[("main.mcl", &text)]).diagnostics.len(), 0);
    // Each file has the next one behind an alias: `$a.a.a.x`.
    let errors = |parts: usize| {
        let mut files = vec![("m0.mcl".to_owned(), "$x = 1\n".to_owned())];
        for number in 1..parts {
            let text = format!("import \"m{}.mcl\" as a\n", number - 1);
            files.push((format!("m{number}.mcl"), text));
        }
        let main = format!(
            "import \"m{}.mcl\" as a\n$y = ${}x\n",
            parts - 1,
            "a.".repeat(parts)
        );
        files.push(("main.mcl".to_owned(), main));
        let files: Vec<(&str, &str)> = files
            .iter()
            .rev()
            .map(|(name, text)| (&**name, &**text))
            .collect();
        let analysis = analysed(&files);
        let codes: Vec<&str> = analysis.diagnostics.iter().map(|error| error.code.code).collect();
        codes
    };
    assert_eq!(errors(256), Vec::<&str>::new());
    assert_eq!(errors(257), ["E0101"]);
}
