//! Cases of projects and names: `tests/resolve/NAME.cf` with `NAME.expect` beside it.
//!
//! A case is a main file. A line `#: file PATH` begins another file of the project, `#: all` prints what is built in too. A
//! module without metadata gets some, and so does the project. What is expected is the resolved model, or what is wrong. `UPDATE=1` rewrites
//! expectations.

#![expect(clippy::disallowed_methods, reason = "cases are files")]

pub(crate) mod kinds;
mod print;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use libtest_mimic::{Failed, Trial};
use setpoint_cf::datum::Datum;
use setpoint_cf::functions::std::{names, number};
use setpoint_cf::functions::types::check_constant;
use setpoint_cf::hir::Model;
use setpoint_cf::project::{self, Options};
use setpoint_cf::resolve::{self, FunctionTable};
use setpoint_cf::types::AttributeType;
use setpoint_diagnostics::{Diagnostic, Diagnostics, MemoryLoader, SourceMap, Span};
use setpoint_graph::Library;

static LIBRARY: LazyLock<Library> =
    LazyLock::new(|| Library::new(setpoint_functions::registry(), kinds::KINDS));

/// The functions of the language's own modules.
struct Functions;

impl FunctionTable for Functions {
    fn native(&self, namespace: &str, name: &str) -> Option<u16> {
        number(namespace, name)
    }

    fn check_constant(
        &self,
        model: &Model,
        ty: AttributeType,
        constant: &Datum,
        span: Span,
    ) -> Result<(), Box<Diagnostic>> {
        check_constant(ty, constant, span, model)
    }

    fn names(&self, namespace: &str) -> Vec<Arc<str>> {
        names(namespace)
    }
}

pub(crate) fn trials() -> Vec<Trial> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/resolve");
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
    let all = cases.clone();
    expectations.retain(|expectation| !cases.contains(&expectation.with_extension("cf")));
    let mut trials: Vec<Trial> = cases
        .into_iter()
        .map(|path| {
            let name = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            Trial::test(name, move || compare(&path).map_err(Failed::from))
        })
        .collect();
    trials.push(Trial::test("lines_of_other_cases_do_no_harm", move || {
        let cases: Result<Vec<String>, _> = all.iter().map(std::fs::read_to_string).collect();
        mutate(&cases.map_err(|error| error.to_string())?);
        Ok(())
    }));
    trials.push(Trial::test(
        "every_expectation_has_its_case",
        move || match expectations.first() {
            None => Ok(()),
            Some(path) => Err(Failed::from(format!("nothing gives {}", path.display()))),
        },
    ));
    trials
}

/// Runs texts that are made of lines of several cases: names that are gone, defined twice, or of another sort.
fn mutate(cases: &[String]) {
    let mut state = 1_u64;
    let mut random = move |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    };
    let lines: Vec<&str> = cases.iter().flat_map(|case| case.lines()).collect();
    for case in cases {
        for _ in 0..8 {
            let mut mutated: Vec<&str> = case.lines().collect();
            for _ in 0..=random(3) {
                let at = random(mutated.len());
                match random(3) {
                    0 if !mutated.is_empty() => {
                        mutated.remove(at);
                    }
                    1 => mutated.insert(at, lines[random(lines.len())]),
                    _ => {
                        let other = random(mutated.len());
                        if !mutated.is_empty() {
                            mutated.swap(at, other);
                        }
                    }
                }
            }
            run(&mutated.join("\n"));
        }
    }
}

fn compare(path: &Path) -> Result<(), String> {
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

fn run(case: &str) -> String {
    let all = case.lines().any(|line| line == "#: all");
    let loader = files(case);
    let mut sources = SourceMap::new();
    let mut diagnostics = Diagnostics::new();
    let mut options = Options {
        needs_project: true,
        ..Options::default()
    };
    let loaded = project::load(
        &loader,
        &LIBRARY,
        "",
        &mut options,
        &mut sources,
        &mut diagnostics,
    );
    let mut text = String::new();
    let mut model = None;
    if !diagnostics.has_errors() {
        model = resolve::resolve(&loaded, &LIBRARY, &Functions, &mut diagnostics);
    }
    for diagnostic in &diagnostics {
        tell(&mut text, diagnostic, &sources, 0);
    }
    if let Some(model) = model {
        text.push_str(&print::print(&model, all));
    }
    text
}

/// The files of a case, with metadata for what has none.
fn files(case: &str) -> MemoryLoader {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    let mut path = "main.cf".to_owned();
    files.insert(path.clone(), String::new());
    for line in case.split_inclusive('\n') {
        if let Some(other) = line.strip_prefix("#: file ") {
            path = other.trim().to_owned();
            files.insert(path.clone(), String::new());
        } else if let Some(text) = files.get_mut(&path) {
            text.push_str(line);
        }
    }
    let project = "name: test\nmodulepath: libs\n".to_owned();
    files.entry("project.yml".to_owned()).or_insert(project);
    let modules = files
        .keys()
        .filter_map(|path| path.strip_prefix("libs/")?.split_once('/'));
    let modules: Vec<String> = modules.map(|(module, _)| module.to_owned()).collect();
    for module in modules {
        let described = ["setup.cfg", "module.yml"].map(|file| format!("libs/{module}/{file}"));
        if !described.iter().any(|path| files.contains_key(path)) {
            let name = module.replace('_', "-");
            let metadata =
                format!("[metadata]\nname = inmanta-module-{name}\nversion = 1.0.0\nlicense = MIT\n");
            files.insert(described[0].clone(), metadata);
        }
    }
    files
        .into_iter()
        .filter(|(_, text)| text != "#: none\n")
        .fold(MemoryLoader::new(), |loader, (path, text)| {
            loader.with(path, text)
        })
}

fn tell(text: &mut String, diagnostic: &Diagnostic, sources: &SourceMap, depth: usize) {
    let indent = "  ".repeat(depth);
    let place = |span: Span| {
        let file = sources.file(span.file);
        let position = file.position(span.start);
        format!("{}:{}:{}", file.name, position.line, position.column)
    };
    let Diagnostic {
        code, class, message, ..
    } = diagnostic;
    let class = if class.is_empty() { "-" } else { class };
    let _ = writeln!(
        text,
        "{indent}{} {class} {}\n{indent}  {message} [{}]",
        code.code,
        place(diagnostic.rule_place()),
        diagnostic.primary.text
    );
    for label in &diagnostic.secondary {
        let _ = writeln!(text, "{indent}  {}: {}", place(label.span), label.text);
    }
    for note in &diagnostic.notes {
        let _ = writeln!(text, "{indent}  note: {note}");
    }
    for help in &diagnostic.help {
        let edit = help.edit.as_ref();
        let edit = edit.map_or(String::new(), |edit| {
            format!(" [{} → {}]", sources.text(edit.span), edit.replacement)
        });
        let _ = writeln!(text, "{indent}  help: {}{edit}", help.text);
    }
    for cause in &diagnostic.causes {
        tell(text, cause, sources, depth + 1);
    }
}
