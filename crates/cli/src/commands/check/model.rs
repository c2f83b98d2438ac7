//! `setpoint check` for models: the same as for programs, on what is known of one without executing it.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::json;
use setpoint_cf::analysis::Analysis;
use setpoint_cf::errors::told;
use setpoint_cf::format;
use setpoint_cf::lint::lint;
use setpoint_diagnostics::{Diagnostic, Diagnostics, FileId, Severity, apply, fixes};
use setpoint_graph::json::diagnostics_json;
use setpoint_programs::failure::Failure;
use setpoint_programs::languages::model::ModelWork;
use setpoint_programs::report::{Importance, errors_first};

use super::{Arguments, Deny, fix, unformatted};
use crate::exit_code;
use crate::output::Output;

pub(super) fn check(output: &Output, model: &ModelWork, arguments: &Arguments) -> Result<u8, Failure> {
    let begin = Instant::now();
    let mut analysis = model.analyse(&BTreeMap::new());
    let mut found = findings(&analysis, !arguments.skip_lint);
    if arguments.fix && mend(model, &analysis, &found, output)? {
        analysis = model.analyse(&BTreeMap::new());
        found = findings(&analysis, true);
    }
    let took = begin.elapsed();
    if !arguments.skip_fmt {
        layout(model, &analysis, &mut found);
    }
    let diagnostics = errors_first(&found);
    let is_denied = arguments.deny == Some(Deny::Warnings) && !diagnostics.is_empty();
    let failed = diagnostics.has_errors() || is_denied;
    if arguments.json {
        let rows = diagnostics_json(&diagnostics, &analysis.sources);
        output.print(&format!("{}\n", json!({ "diagnostics": rows })))?;
    } else {
        output.diagnostics(&told(&diagnostics), &model.shown_names(&analysis.sources));
        if !failed {
            let count = analysis
                .files()
                .filter(|file| is_on_disk(&analysis, *file))
                .count();
            let files = if count == 1 {
                "1 file".to_owned()
            } else {
                format!("{count} files")
            };
            let text = format!("checked {files} in {:.1} ms", took.as_secs_f64() * 1e3);
            output.say(Importance::Info, text);
        }
    }
    Ok(if failed { exit_code::WRONG } else { exit_code::DONE })
}

/// What is wrong, and what the linter finds.
fn findings(analysis: &Analysis, with_lint: bool) -> Diagnostics {
    if !with_lint {
        return analysis.diagnostics.clone();
    }
    let errors = analysis.diagnostics.iter();
    let errors = errors.filter(|found| found.severity == Severity::Error);
    let mut found = Diagnostics::new();
    found.extend(errors.cloned());
    found.append(lint(analysis));
    found
}

fn is_on_disk(analysis: &Analysis, file: FileId) -> bool {
    !analysis.sources.file(file).name.starts_with('<')
}

/// Warns of every file of the project whose layout is not the formatter's. What does not parse was reported already.
fn layout(model: &ModelWork, analysis: &Analysis, found: &mut Diagnostics) {
    for file in analysis.files().filter(|file| analysis.is_own(*file)) {
        let source = analysis.sources.file(file);
        let Ok(formatted) = format::format(file, &source.text) else {
            continue;
        };
        if formatted != *source.text {
            let name = model.shown(&source.name);
            found.push(unformatted(file, &source.text, &formatted, &name));
        }
    }
}

/// Mends the files of a model. All changes are made in memory first; then each file is replaced in one step. Answers whether there was
/// anything to change.
fn mend(model: &ModelWork, first: &Analysis, found: &Diagnostics, output: &Output) -> Result<bool, Failure> {
    let mut changed: BTreeMap<String, String> = BTreeMap::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let (mut last, mut found_last): (Option<Analysis>, Option<Diagnostics>) = (None, None);
    for _ in 0..fix::MOST_ROUNDS {
        let analysis = last.as_ref().unwrap_or(first);
        let diagnostics: Vec<&Diagnostic> = found_last.as_ref().unwrap_or(found).iter().collect();
        let mut is_new = false;
        for file in analysis.files().filter(|file| analysis.is_own(*file)) {
            let edits = fixes(diagnostics.iter().copied(), file);
            if edits.is_empty() {
                continue;
            }
            let source = analysis.sources.file(file);
            let name = source.name.to_string();
            *counts.entry(name.clone()).or_default() += edits.len();
            changed.insert(name, apply(&source.text, &edits));
            is_new = true;
        }
        if !is_new {
            break;
        }
        let next = model.analyse(&changed);
        found_last = Some(findings(&next, true));
        last = Some(next);
    }
    let Some(last) = last else { return Ok(false) };
    if last.diagnostics.has_errors() && !first.diagnostics.has_errors() {
        let failure = Failure::wrong("nothing was changed, because the model would be wrong then");
        return Err(failure.hint("that is a bug in setpoint"));
    }
    for file in first.files() {
        let source = first.sources.file(file);
        let Some(text) = changed.get(&*source.name) else {
            continue;
        };
        let was_formatted =
            format::format(file, &source.text).is_ok_and(|formatted| formatted == *source.text);
        let text = match format::format(file, text) {
            Ok(formatted) if was_formatted => formatted,
            _ => text.clone(),
        };
        let count = counts.get(&*source.name).copied().unwrap_or_default();
        fix::replace(&model.shown(&source.name), &source.text, text, count, output)?;
    }
    Ok(true)
}
