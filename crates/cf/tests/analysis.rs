//! Cases of what editors and the linter know: `tests/analysis/NAME.cf` and `tests/lint/NAME.cf`, each with `NAME.expect` beside it.
//!
//! A case is a main file; a line `#: file PATH` begins another file of the project. Those of `analysis` have a `¦` at each place that is
//! asked about: what the name there means, where that is defined and mentioned, and what could stand there. Those of `lint` say what the
//! linter finds, and what the files are after all that can be mended was. `UPDATE=1` rewrites expectations.

#![expect(clippy::disallowed_methods, reason = "cases are files")]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use libtest_mimic::{Failed, Trial};
use setpoint_cf::analysis::{Analysis, AnalysisOptions, Workspace};
use setpoint_cf::lint::{RULES, lint};
use setpoint_diagnostics::{
    Diagnostics, FileId, MemoryLoader, RenderStyle, Severity, Span, apply, fixes, render,
};
use setpoint_graph::Library;

use crate::resolve::kinds;

static LIBRARY: LazyLock<Library> =
    LazyLock::new(|| Library::new(setpoint_functions::registry(), kinds::KINDS));

/// So many of what can stand at a place are printed.
const MOST: usize = 14;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    let mut linted = String::new();
    for (folder, run) in [("analysis", questions as fn(&str) -> String), ("lint", warnings)] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
        let mut cases: Vec<PathBuf> = Vec::new();
        let mut expectations: Vec<PathBuf> = Vec::new();
        for entry in std::fs::read_dir(&folder).expect("the folder is there") {
            let path = entry.expect("it can be read").path();
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("cf") => cases.push(path),
                Some("expect") => expectations.push(path),
                _ => {}
            }
        }
        cases.sort();
        expectations.retain(|expectation| !cases.contains(&expectation.with_extension("cf")));
        for path in cases {
            linted.push_str(&std::fs::read_to_string(path.with_extension("expect")).unwrap_or_default());
            let name = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            trials.push(Trial::test(name, move || {
                compare(&path, run).map_err(Failed::from)
            }));
        }
        trials.push(Trial::test(
            "every_expectation_has_its_case",
            move || match expectations.first() {
                None => Ok(()),
                Some(path) => Err(Failed::from(format!("nothing gives {}", path.display()))),
            },
        ));
    }
    trials.push(Trial::test("half_of_a_model_is_no_obstacle", || {
        cut_short();
        Ok(())
    }));
    trials.push(Trial::test("lines_of_other_models_do_no_harm", || {
        mix_lines();
        Ok(())
    }));
    trials.push(Trial::test("every_rule_has_a_case", move || {
        let missing = RULES
            .iter()
            .find(|rule| !linted.contains(&format!("[{}]", rule.code.code)));
        missing.map_or(Ok(()), |rule| {
            Err(Failed::from(format!("nothing shows `{}`", rule.name)))
        })
    }));
    trials
}

fn compare(path: &Path, run: fn(&str) -> String) -> Result<(), String> {
    let case = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let found = run(&case);
    let expectation = path.with_extension("expect");
    let expected = std::fs::read_to_string(&expectation).unwrap_or_default();
    if found == expected {
        return Ok(());
    }
    if std::env::var_os("UPDATE").is_some() && std::env::var_os("CI").is_none() {
        return std::fs::write(&expectation, found).map_err(|error| error.to_string());
    }
    Err(format!("expected:\n{expected}\nfound:\n{found}"))
}

/// The files of a case, by path.
fn files(case: &str) -> Vec<(String, String)> {
    let mut files = vec![("main.cf".to_owned(), String::new())];
    for line in case.split_inclusive('\n') {
        match line.strip_prefix("#: file ") {
            Some(path) => files.push((path.trim().to_owned(), String::new())),
            None => files.last_mut().expect("there is the main file").1.push_str(line),
        }
    }
    let has = |name: &str| files.iter().any(|(path, _)| path == name);
    if !has("project.yml") {
        files.push((
            "project.yml".to_owned(),
            "name: test\nmodulepath: libs\n".to_owned(),
        ));
    }
    files
}

fn analyse(files: &[(String, String)]) -> Analysis {
    let loader = files.iter().fold(MemoryLoader::new(), |loader, (path, text)| {
        loader.with(path.as_str(), text.as_bytes())
    });
    Workspace::new().analyse(&AnalysisOptions::default(), &loader, &LIBRARY)
}

/// What can be asked at the marks of a case.
fn questions(case: &str) -> String {
    let mut files = files(case);
    let mut marks: Vec<(String, u32)> = Vec::new();
    for (path, text) in &mut files {
        while let Some(at) = text.find('¦') {
            text.replace_range(at..at + '¦'.len_utf8(), "");
            marks.push((path.clone(), at as u32));
        }
    }
    let analysis = analyse(&files);
    let mut out = String::new();
    for found in &analysis.diagnostics {
        let _ = writeln!(out, "{}: {}", found.code.code, found.message);
    }
    for (path, offset) in marks {
        let Some(file) = analysis.file_named(&path) else {
            let _ = writeln!(out, "{path} is no part of the model");
            continue;
        };
        question(&analysis, file, offset, &mut out);
    }
    out
}

fn question(analysis: &Analysis, file: FileId, offset: u32, out: &mut String) {
    let source = analysis.sources.file(file);
    let _ = writeln!(out, "== {}", shown(analysis, Span::new(file, offset, offset)));
    if let Some(name) = analysis.name_at(file, offset) {
        let _ = writeln!(out, "name {}", analysis.text_at(name.span));
        if let Some(description) = analysis.describe(&name.target) {
            let _ = writeln!(out, "  {}", description.code);
            for line in description.doc.lines() {
                let _ = writeln!(out, "  | {line}");
            }
            for section in description.sections {
                let _ = writeln!(out, "  {}", section.title);
                for (code, doc) in section.entries.iter().take(MOST) {
                    let doc = doc.lines().next().unwrap_or_default();
                    let _ = writeln!(out, "    {}", format!("{code}  {doc}").trim_end());
                }
            }
        }
        let definition = analysis.definition(&name.target);
        let _ = writeln!(
            out,
            "  defined {}",
            definition.map_or("nowhere".to_owned(), |at| shown(analysis, at))
        );
        let references = analysis.references(&name.target);
        let own = references.iter().filter(|name| analysis.is_own(name.span.file));
        let places: Vec<String> = own
            .map(|name| {
                format!(
                    "{}{}",
                    shown(analysis, name.span),
                    if name.is_definition { "!" } else { "" }
                )
            })
            .collect();
        let _ = writeln!(out, "  mentioned {}", places.join(" "));
    }
    if let Some((target, argument)) = analysis.call_at(file, offset, &LIBRARY) {
        let code = analysis.describe(&target).map(|description| description.code);
        let _ = writeln!(out, "argument {argument} of {}", code.unwrap_or_default());
    }
    match analysis.complete(file, offset, &LIBRARY) {
        None => out.push_str("nothing can be chosen\n"),
        Some(completion) => {
            let replaced = analysis.text_at(completion.replaced);
            let mut labels: Vec<String> = completion
                .items
                .iter()
                .take(MOST)
                .map(|item| {
                    item.snippet
                        .clone()
                        .unwrap_or_else(|| item.label.clone())
                        .replace('\n', "⏎")
                })
                .collect();
            if completion.items.len() > MOST {
                labels.push("…".to_owned());
            }
            let _ = writeln!(out, "instead of `{replaced}`: {}", labels.join(" | "));
        }
    }
    debug_assert!(offset as usize <= source.text.len(), "a mark lies in its text");
}

fn shown(analysis: &Analysis, span: Span) -> String {
    let source = analysis.sources.file(span.file);
    let at = source.position(span.start);
    format!("{}:{}:{}", source.name, at.line, at.column)
}

/// What the linter finds in a case, and the files after all that can be mended was.
fn warnings(case: &str) -> String {
    let mut files = files(case);
    let analysis = analyse(&files);
    let mut all = Diagnostics::new();
    let errors = analysis.diagnostics.iter();
    all.extend(errors.filter(|found| found.severity == Severity::Error).cloned());
    let found = lint(&analysis);
    all.append(found.clone());
    let mut out = String::new();
    for diagnostic in &all {
        out.push_str(&render(diagnostic, &analysis.sources, RenderStyle::PLAIN));
        out.push('\n');
    }
    for (path, text) in &mut files {
        let Some(file) = analysis.file_named(path) else {
            continue;
        };
        let edits = fixes(found.iter(), file);
        if !edits.is_empty() {
            let _ = writeln!(out, "--- {path}\n{}", apply(text, &edits));
        }
    }
    out
}

/// Asks about every place of a model of which only the beginning is written.
fn cut_short() {
    let case = include_str!("analysis/names.cf").replace('¦', "");
    let files = files(&case);
    let text = &files[0].1;
    for end in (0..text.len())
        .filter(|end| text.is_char_boundary(*end))
        .step_by(3)
    {
        let mut cut = files.clone();
        cut[0].1.truncate(end);
        let analysis = analyse(&cut);
        let file = analysis.file_named("main.cf").expect("it is read");
        question(&analysis, file, end as u32, &mut String::new());
        let _ = analysis.outline(file);
        for name in analysis.names() {
            let _ = analysis.definition(&name.target);
            let _ = analysis.describe(&name.target);
        }
        let _ = lint(&analysis);
    }
}

/// Analyses texts that are made of lines of several models: names that are gone, defined twice, or of another sort, and what does not parse.
fn mix_lines() {
    let mut cases = Vec::new();
    for folder in ["resolve", "analysis", "lint"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
        let entries = std::fs::read_dir(&folder).expect("the folder is there");
        let paths = entries.map(|entry| entry.expect("it can be read").path());
        let models = paths.filter(|path| path.extension().is_some_and(|extension| extension == "cf"));
        cases.extend(models.map(|path| {
            std::fs::read_to_string(path)
                .expect("it is text")
                .replace('¦', "")
        }));
    }
    cases.sort();
    let lines: Vec<&str> = cases.iter().flat_map(|case| case.lines()).collect();
    let mut state = 7_u64;
    let mut random = move |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    };
    for case in &cases {
        for _ in 0..6 {
            let mut mixed: Vec<&str> = case.lines().collect();
            for _ in 0..=random(4) {
                let at = random(mixed.len());
                match random(3) {
                    0 if !mixed.is_empty() => {
                        mixed.remove(at);
                    }
                    1 => mixed.insert(at, lines[random(lines.len())]),
                    _ => {
                        let other = random(mixed.len());
                        if !mixed.is_empty() {
                            mixed.swap(at, other);
                        }
                    }
                }
            }
            let analysis = analyse(&files(&mixed.join("\n")));
            let _ = lint(&analysis);
            for name in analysis.names() {
                let _ = analysis.definition(&name.target);
                let _ = analysis.describe(&name.target);
                let _ = analysis.text_at(name.span);
            }
            let all: Vec<FileId> = analysis.files().collect();
            for file in all {
                let length = analysis.sources.file(file).text.len();
                let _ = analysis.outline(file);
                let mut at = random(length);
                while !analysis.sources.file(file).text.is_char_boundary(at) {
                    at += 1;
                }
                question(&analysis, file, at as u32, &mut String::new());
            }
        }
    }
}
