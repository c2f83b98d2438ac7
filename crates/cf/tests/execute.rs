//! Models that are executed, with what they give beside them.
//!
//! A file `tests/execute/TOPIC.cases` holds many small models:
//!
//! ```text
//! === what it shows
//! x = 5
//! --- gives
//! x = 5
//! ```
//!
//! A line `+++ PATH` in a model begins another file. Behind `--- gives` stand warnings, errors with their causes and notes, printed lines behind
//! `>`, and variables; `=== … (all)` shows the whole machine-readable object instead, and
//! `=== … (bounded)` allows a thousand instances. The shape of the object is looked at in any case. `UPDATE=1` rewrites what stands behind `--- gives`.
#![allow(clippy::disallowed_methods, reason = "reads the cases")]

use std::fmt::Write as _;
use std::path::Path;

use libtest_mimic::{Failed, Trial};
use setpoint_cf::execute::{Options, json};
use setpoint_diagnostics::{Diagnostic, MemoryLoader, Severity, SourceMap};

#[allow(dead_code, reason = "shared by several programs")]
mod model;
mod shape;

pub(crate) fn trials() -> Vec<Trial> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/execute");
    let mut trials = Vec::new();
    let mut paths: Vec<_> = std::fs::read_dir(&folder)
        .expect("the folder of cases is there")
        .flatten()
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    for path in paths
        .into_iter()
        .filter(|path| path.extension().is_some_and(|found| found == "cases"))
    {
        let topic = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if std::env::var("UPDATE").is_ok_and(|value| value == "1") {
            update(&path);
        }
        let text = std::fs::read_to_string(&path).expect("cases are UTF-8");
        for case in Case::all(&text) {
            trials.push(Trial::test(format!("{topic}: {}", case.name), move || {
                case.check().map_err(Failed::from)
            }));
        }
    }
    trials
}

/// A model and what it gives.
struct Case {
    name: String,
    files: Vec<(String, String)>,
    expected: String,
    /// As it is written, up to what it gives.
    source: String,
}

impl Case {
    fn all(text: &str) -> Vec<Case> {
        let mut cases: Vec<Case> = Vec::new();
        let mut is_model = true;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("=== ") {
                is_model = true;
                cases.push(Case {
                    name: name.to_owned(),
                    files: vec![("main.cf".to_owned(), String::new())],
                    expected: String::new(),
                    source: format!("{line}\n"),
                });
                continue;
            }
            let case = cases.last_mut().expect("a file begins with a case");
            match line {
                "--- gives" => is_model = false,
                line if !is_model => {
                    case.expected.push_str(line);
                    case.expected.push('\n');
                }
                line => {
                    let _ = writeln!(case.source, "{line}");
                    match line.strip_prefix("+++ ") {
                        Some(path) => case.files.push((path.to_owned(), String::new())),
                        None => {
                            let (_, text) = case.files.last_mut().expect("there is a main file");
                            text.push_str(line);
                            text.push('\n');
                        }
                    }
                }
            }
        }
        for case in &mut cases {
            case.expected = case.expected.trim_end().to_owned();
        }
        cases
    }

    fn run(&self) -> Result<String, String> {
        let mut loader = MemoryLoader::new();
        for (path, text) in &self.files {
            // The last line of a file needs no end.
            loader = loader.with(path.clone(), text.strip_suffix('\n').unwrap_or(text));
        }
        let bounds = match self.name.ends_with("(bounded)") {
            true => Options {
                max_instances: 1000,
                ..Options::default()
            },
            false => Options::default(),
        };
        let outcome = model::run_with(&loader, &model::inputs(), &bounds);
        let mut out = String::new();
        for diagnostic in outcome.diagnostics() {
            write_diagnostic(diagnostic, &outcome.sources, 0, &mut out);
        }
        let Some((model, execution)) = &outcome.executed else {
            return Ok(out.trim_end().to_owned());
        };
        let object = json::execution(execution, model, &outcome.sources);
        shape::check(&object)?;
        if self.name.ends_with("(all)") {
            return Ok(serde_json::to_string_pretty(&object).expect("JSON can be written"));
        }
        for line in &execution.printed {
            let _ = writeln!(out, "> {line}");
        }
        if !execution.diagnostics.has_errors() {
            for (name, value) in object["vars"].as_object().into_iter().flatten() {
                let _ = writeln!(out, "{name} = {value}");
            }
        }
        Ok(out.trim_end().to_owned())
    }

    fn check(&self) -> Result<(), String> {
        let given = self.run()?;
        if given == self.expected {
            return Ok(());
        }
        Err(format!(
            "expected:\n{}\n\ngiven (UPDATE=1 rewrites):\n{given}",
            self.expected
        ))
    }
}

fn write_diagnostic(found: &Diagnostic, sources: &SourceMap, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    let span = found.rule_place();
    let place = match sources.files().nth(span.file.0 as usize) {
        Some((_, file)) => format!("{}:{}", file.name, file.position(span.start).line),
        None => "?".to_owned(),
    };
    let severity = match (found.severity, depth) {
        (Severity::Warning, _) => "warning",
        (Severity::Error, 0) => "error",
        (Severity::Error, _) => "caused by",
    };
    let _ = writeln!(
        out,
        "{indent}{severity} {} {} {place}: {}",
        found.code.code, found.class, found.message
    );
    if depth == 0 {
        for note in &found.notes {
            let _ = writeln!(out, "  note: {note}");
        }
    }
    for cause in &found.causes {
        write_diagnostic(cause, sources, depth + 1, out);
    }
}

fn update(path: &Path) {
    let text = std::fs::read_to_string(path).expect("cases are UTF-8");
    let cases = Case::all(&text);
    let new: Vec<String> = cases
        .iter()
        .map(|case| {
            let given = case.run().unwrap_or_else(|error| error);
            format!("{}--- gives\n{given}\n", case.source)
        })
        .collect();
    let new = new.join("\n");
    if new != text {
        // In one step: a run that is ended meanwhile leaves the old cases.
        let temporary = path.with_extension("new");
        std::fs::write(&temporary, new).expect("cases can be written");
        std::fs::rename(&temporary, path).expect("cases can be written");
    }
}
