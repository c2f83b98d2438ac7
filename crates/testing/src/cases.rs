//! Data-driven cases: small programs with what they must give beside them.
//!
//! ```text
//! tests/cases/types/if_branches_differ.mcl       first line, where it is needed: #: stage graph
//! tests/cases/types/if_branches_differ.expect    written by the runner, reviewed by eye
//! tests/cases/modules/a_module/{main.mcl,lib/x.mcl,expect}
//! tests/cases/model/export/purged.cf              a model, the other language
//! ```
//!
//! A folder with a `main.mcl`, a `metadata.yaml` or a `main.cf` is one case. How far a case goes follows from the folder below `tests/cases`
//! that it is in: `parse`, `format`, `analysis`, `lint`, `mistakes`, `model` and `model_mistakes` end there, all others go through to the graph. A first line `#: stage` says otherwise;
//! one that repeats what holds anyway is an error, and so is a stage that there is none of. `UPDATE=1` rewrites expectations; with
//! `CI=true` it is refused. An expectation without its program fails. A test binary runs the cases of its stages; filters are those
//! of `cargo test`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use setpoint_diagnostics::{Diagnostics, RenderStyle, SourceMap, render};

use crate::repository;

/// How far a case goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// To the syntax tree.
    Parse,
    /// Through the formatter.
    Format,
    /// What an editor asks at the places that are marked in the text.
    Analysis,
    /// Through the compiler and the evaluator, to the desired graph.
    Graph,
    /// Through the linter.
    Lint,
    /// To what a user sees who made a mistake.
    Mistake,
    /// A model, through everything that is made of it.
    Model,
    /// The same, to what a user sees who made a mistake in a model.
    ModelMistake,
}

impl Stage {
    fn of(word: &str) -> Option<Stage> {
        Some(match word {
            "parse" => Stage::Parse,
            "format" => Stage::Format,
            "analysis" => Stage::Analysis,
            "graph" => Stage::Graph,
            "lint" => Stage::Lint,
            "mistake" => Stage::Mistake,
            "model" => Stage::Model,
            "model-mistake" => Stage::ModelMistake,
            _ => return None,
        })
    }
}

/// One case.
#[derive(Debug, Clone)]
pub struct Case {
    /// `types/if_branches_differ`.
    pub name: String,
    /// How far it goes.
    pub stage: Stage,
    /// The program: a file, or a folder.
    pub path: PathBuf,
    /// Whether it is a folder.
    pub is_folder: bool,
    /// Where the expectation is.
    pub expectation: PathBuf,
    /// What is done step by step, if it is a case with steps.
    pub steps: Option<String>,
}

impl Case {
    /// The text of the program's file; of `main.mcl` in a folder.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn text(&self) -> Result<String, String> {
        let path = if self.is_folder {
            self.path.join("main.mcl")
        } else {
            self.path.clone()
        };
        read(&path)
    }

    /// The sentence that says what somebody did wrong in a model, and the files of the model without it: by name, the main file first.
    ///
    /// # Errors
    /// When they cannot be read, or the main file does not begin with the sentence.
    pub fn model_mistake(&self) -> Result<(String, Vec<(String, String)>), String> {
        let main = if self.is_folder {
            self.path.join("main.cf")
        } else {
            self.path.clone()
        };
        let text = read(&main)?;
        let first = text.strip_prefix("# ").and_then(|text| text.split_once('\n'));
        let (sentence, program) = first.ok_or("the first line is a comment")?;
        let mut files = vec![("main.cf".to_owned(), program.to_owned())];
        if self.is_folder {
            let mut found = BTreeMap::new();
            files_below(&self.path, "", &mut found)?;
            files.extend(
                found
                    .into_iter()
                    .filter(|(name, _)| name != "main.cf" && name != "expect"),
            );
        }
        Ok((sentence.to_owned(), files))
    }
}

/// The files of a folder and those in it, by name relative to it.
fn files_below(folder: &Path, prefix: &str, found: &mut BTreeMap<String, String>) -> Result<(), String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() {
            files_below(&path, &format!("{prefix}{name}/"), found)?;
        } else {
            found.insert(format!("{prefix}{name}"), read(&path)?);
        }
    }
    Ok(())
}

/// The cases of a stage, by name.
///
/// # Errors
/// When they are not well formed.
pub fn of_stage(stage: Stage) -> Result<Vec<Case>, String> {
    let mut cases = find(&repository().join("tests/cases"))?.cases;
    cases.retain(|case| case.stage == stage);
    Ok(cases)
}

/// Runs all cases of some stages, each through `run`, which answers what is to be compared, or why it could not.
///
/// Call it from `main` of a test without the usual harness.
pub fn main<F>(stages: &[Stage], run: F) -> ExitCode
where
    F: Fn(&Case) -> Result<String, String> + Send + Sync + 'static,
{
    let arguments = Arguments::from_args();
    let root = repository().join("tests/cases");
    let found = match find(&root) {
        Ok(found) => found,
        Err(error) => {
            let trial = Trial::test("cases_are_well_formed", move || Err(Failed::from(error)));
            return libtest_mimic::run(&arguments, vec![trial]).exit_code();
        }
    };
    let run = Arc::new(run);
    let mut trials: Vec<Trial> = found
        .cases
        .into_iter()
        .filter(|case| stages.contains(&case.stage))
        .map(|case| {
            let run = run.clone();
            Trial::test(case.name.clone(), move || {
                let given = run(&case).map_err(Failed::from)?;
                compare(&case.expectation, &given).map_err(Failed::from)
            })
        })
        .collect();
    let unused = found.unused;
    trials.push(Trial::test("every_expectation_has_its_program", move || {
        if unused.is_empty() {
            return Ok(());
        }
        let list: Vec<String> = unused.iter().map(|path| path.display().to_string()).collect();
        Err(Failed::from(format!("nothing gives these: {}", list.join(", "))))
    }));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// A text of sections with headings, in the order in which they are added; empty ones are left out.
#[derive(Debug, Default)]
pub struct Sections(String);

impl Sections {
    /// No sections.
    #[must_use]
    pub fn new() -> Sections {
        Sections::default()
    }

    /// Adds a section.
    pub fn add(&mut self, heading: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        let _ = writeln!(self.0, "== {heading}");
        self.0.push_str(text);
        if !text.ends_with('\n') {
            self.0.push('\n');
        }
    }

    /// The whole text.
    #[must_use]
    pub fn finish(self) -> String {
        self.0
    }
}

/// Diagnostics as a user sees them, each below a line with its stage, code, rule and the place that the rule blames:
/// `scope E0101 S1 main.mcl:3:5-3:9`.
#[must_use]
pub fn diagnostics_text(diagnostics: &Diagnostics, sources: &SourceMap) -> String {
    let mut out = String::new();
    for diagnostic in diagnostics {
        let (stage, code, span) = (diagnostic.stage.name(), diagnostic.code, diagnostic.rule_place());
        if !out.is_empty() {
            out.push('\n');
        }
        let _ = write!(out, "{stage} {}", code.code);
        if !code.rule.is_empty() {
            let _ = write!(out, " {}", code.rule);
        }
        if let Some((_, file)) = sources.files().nth(span.file.0 as usize) {
            let (start, end) = sources.positions(span);
            let name = &file.name;
            let _ = write!(
                out,
                " {name}:{}:{}-{}:{}",
                start.line, start.column, end.line, end.column
            );
        }
        let _ = writeln!(out, "\n{}", render(diagnostic, sources, RenderStyle::PLAIN));
    }
    out
}

struct Found {
    cases: Vec<Case>,
    unused: BTreeSet<PathBuf>,
}

fn find(root: &Path) -> Result<Found, String> {
    let mut found = Found {
        cases: Vec::new(),
        unused: BTreeSet::new(),
    };
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let mut entries: BTreeMap<String, PathBuf> = BTreeMap::new();
        let listing = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for entry in listing {
            let path = entry
                .map_err(|error| format!("{}: {error}", folder.display()))?
                .path();
            if let Some(name) = path.file_name().and_then(|name| name.to_str()) {
                entries.insert(name.to_owned(), path);
            }
        }
        for (name, path) in &entries {
            if path.is_dir() {
                let begins = ["main.mcl", "metadata.yaml", "main.cf"];
                if begins.iter().any(|name| path.join(name).is_file()) {
                    found.cases.push(case(root, path, true)?);
                } else {
                    folders.push(path.clone());
                }
            } else if name.ends_with(".mcl") || name.ends_with(".cf") {
                found.cases.push(case(root, path, false)?);
            } else if let Some(stem) = name
                .strip_suffix(".expect")
                .or_else(|| name.strip_suffix(".steps"))
            {
                let programs = [format!("{stem}.mcl"), format!("{stem}.cf")];
                if !programs.iter().any(|program| entries.contains_key(program)) {
                    found
                        .unused
                        .insert(path.strip_prefix(root).unwrap_or(path).to_owned());
                }
            } else {
                return Err(format!("{} is not a part of a case", path.display()));
            }
        }
    }
    found.cases.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

fn case(root: &Path, path: &Path, is_folder: bool) -> Result<Case, String> {
    let relative = path.strip_prefix(root).unwrap_or(path).with_extension("");
    let name = relative.to_string_lossy().into_owned();
    let (expectation, steps) = if is_folder {
        (path.join("expect"), path.join("steps"))
    } else {
        (path.with_extension("expect"), path.with_extension("steps"))
    };
    let main = if is_folder {
        path.join("main.mcl")
    } else {
        path.to_owned()
    };
    let first = std::fs::read(&main).unwrap_or_default();
    let first = String::from_utf8_lossy(first.split(|b| *b == b'\n').next().unwrap_or_default()).into_owned();
    let folder = relative.iter().next().and_then(|folder| folder.to_str());
    let stage_of_folder = match folder {
        Some("parse") => Stage::Parse,
        Some("format") => Stage::Format,
        Some("lint") => Stage::Lint,
        Some("analysis") => Stage::Analysis,
        Some("mistakes") => Stage::Mistake,
        Some("model") => Stage::Model,
        Some("model_mistakes") => Stage::ModelMistake,
        _ => Stage::Graph,
    };
    let stage = match first.strip_prefix("#: ") {
        Some(directive) => directive
            .strip_prefix("stage ")
            .and_then(|word| Stage::of(word.trim()))
            .ok_or_else(|| {
                format!("{name}: the first line must be `#: stage` and one of parse, format, analysis, lint, mistake, model, model-mistake, graph")
            })?,
        None => stage_of_folder,
    };
    if stage == stage_of_folder && first.starts_with("#: ") {
        return Err(format!(
            "{name}: its first line says what holds anyway; leave it out"
        ));
    }
    let steps = if steps.is_file() {
        Some(read(&steps)?)
    } else {
        None
    };
    Ok(Case {
        name,
        stage,
        path: path.to_owned(),
        is_folder,
        expectation,
        steps,
    })
}

fn read(path: &Path) -> Result<String, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    String::from_utf8(bytes).map_err(|_| format!("{} is not UTF-8", path.display()))
}

/// Compares a text with the file that has the expected one; `UPDATE=1` rewrites the file.
///
/// # Errors
/// What differs.
pub fn compare(expectation: &Path, given: &str) -> Result<(), String> {
    let is_set = |name: &str| std::env::var(name).is_ok_and(|value| !value.is_empty() && value != "0");
    let expected = std::fs::read_to_string(expectation).ok();
    if expected.as_deref() == Some(given) {
        return Ok(());
    }
    if is_set("UPDATE") {
        if is_set("CI") {
            return Err("expectations are not rewritten under CI".to_owned());
        }
        return std::fs::write(expectation, given)
            .map_err(|error| format!("{}: {error}", expectation.display()));
    }
    match expected {
        None => Err(format!(
            "there is no expectation; UPDATE=1 writes it. Given:\n{given}"
        )),
        Some(expected) => Err(difference(&expected, given)),
    }
}

/// The lines that differ, between what both have in front and at the end.
fn difference(expected: &str, given: &str) -> String {
    let (left, right): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), given.lines().collect());
    let front = left.iter().zip(&right).take_while(|(a, b)| a == b).count();
    let rest = left.len().min(right.len()) - front;
    let back = left
        .iter()
        .rev()
        .zip(right.iter().rev())
        .take(rest)
        .take_while(|(a, b)| a == b)
        .count();
    let mut out = format!("differs from line {} on (UPDATE=1 rewrites)\n", front + 1);
    for line in &left[front.saturating_sub(2)..front] {
        let _ = writeln!(out, "  {line}");
    }
    for line in &left[front..left.len() - back] {
        let _ = writeln!(out, "- {line}");
    }
    for line in &right[front..right.len() - back] {
        let _ = writeln!(out, "+ {line}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_shows_only_what_differs() {
        let shown = difference("a\nb\nc\nd\n", "a\nb\nx\nd\n");
        assert_eq!(
            shown,
            "differs from line 3 on (UPDATE=1 rewrites)\n  a\n  b\n- c\n+ x\n"
        );
    }

    #[test]
    fn files_and_folders_are_cases_and_lonely_expectations_are_found() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("parse/one.mcl", "");
        write("types/two.mcl", "#: stage parse\n");
        write("modules/three/main.mcl", "");
        write("modules/three/lib/x.mcl", "");
        write("types/gone.expect", "");
        let found = find(root.path()).unwrap();
        let names: Vec<(&str, Stage)> = found.cases.iter().map(|c| (&*c.name, c.stage)).collect();
        assert_eq!(
            names,
            [
                ("modules/three", Stage::Graph),
                ("parse/one", Stage::Parse),
                ("types/two", Stage::Parse)
            ]
        );
        assert_eq!(found.unused.len(), 1);
        for bad in ["#: stage run\n", "#: stage graph\n"] {
            write("types/bad.mcl", bad);
            assert!(find(root.path()).is_err(), "{bad}");
        }
    }
}
