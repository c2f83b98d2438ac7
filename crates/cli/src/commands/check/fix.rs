//! `setpoint check --fix`: changes that mend what was found, until nothing more can be mended.

use std::collections::BTreeMap;
use std::sync::Arc;

use setpoint_diagnostics::{Diagnostic, LoadError, Loader};
use setpoint_host::files::{AbsolutePath, Committer, Replace};
use setpoint_mcl::lint::{apply, fixes};
use setpoint_mcl::{Entry, format};
use setpoint_programs::failure::{Failure, system_text};
use setpoint_programs::languages::compilation::{Compilation, ProgramSource};
use setpoint_programs::report::Importance;

use crate::output::Output;

/// A change may make room for another one. No program needs more rounds than this; who makes one that does is not followed further.
pub(super) const MOST_ROUNDS: usize = 50;

/// Mends the files of a compiled program. All changes are made in memory first; then each file is replaced in one step. Answers whether
/// there was anything to change.
///
/// # Errors
/// When a file cannot be written.
pub(super) fn fix(source: &ProgramSource, first: &Compilation, output: &Output) -> Result<bool, Failure> {
    let Some(input) = first.input.clone() else {
        return Ok(false);
    };
    if matches!(input.entry, Entry::Code { .. }) {
        return Err(Failure::usage(
            "only a program in files can be changed by `--fix`",
        ));
    }
    let mut changed = Changed {
        below: Arc::new(first.loader.clone()),
        texts: BTreeMap::new(),
    };
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut last: Option<Compilation> = None;
    for _ in 0..MOST_ROUNDS {
        let compilation = last.as_ref().unwrap_or(first);
        let mut is_new = false;
        for (id, file) in compilation.sources.files() {
            if !compilation.is_own(&file.name) {
                continue;
            }
            let found: Vec<&Diagnostic> = compilation.diagnostics.iter().collect();
            let edits = fixes(found, id);
            if edits.is_empty() {
                continue;
            }
            let name = file.name.to_string();
            *counts.entry(name.clone()).or_default() += edits.len();
            changed.texts.insert(name, apply(&file.text, &edits));
            is_new = true;
        }
        if !is_new {
            break;
        }
        last = Some(Compilation::with_loader(
            source,
            input.clone(),
            first.loader.clone(),
            &changed,
        ));
    }
    let Some(last) = last else { return Ok(false) };
    if last.diagnostics.has_errors() && !first.diagnostics.has_errors() {
        let failure = Failure::wrong("nothing was changed, because the program would be wrong then");
        return Err(failure.hint("that is a bug in setpoint"));
    }
    for (_, file) in first.sources.files() {
        let Some(text) = changed.texts.get(&*file.name) else {
            continue;
        };
        let path = input.shown(&file.name);
        let was_formatted = format::format(&file.text).is_ok_and(|formatted| formatted == *file.text);
        let text = match format::format(text) {
            Ok(formatted) if was_formatted => formatted,
            _ => text.clone(),
        };
        let count = counts.get(&*file.name).copied().unwrap_or_default();
        replace(&path, &file.text, text, count, output)?;
    }
    Ok(true)
}

/// Replaces a file that still has the text that was looked at, and says so.
pub(super) fn replace(
    path: &str,
    before: &str,
    text: String,
    count: usize,
    output: &Output,
) -> Result<(), Failure> {
    let failed = |why: String| Failure::wrong(format!("failed to change {path}")).because(why);
    let absolute = std::path::absolute(path).map_err(|error| failed(system_text(&error)))?;
    let is = std::fs::read(&absolute).map_err(|error| failed(system_text(&error)))?;
    if is != before.as_bytes() {
        return Err(failed("somebody has changed it meanwhile".to_owned()));
    }
    let absolute = AbsolutePath::new(absolute).map_err(|error| failed(error.to_string()))?;
    Committer::new()
        .replace(Replace::bytes(absolute, text.into_bytes()))
        .map_err(|error| failed(error.to_string()))?;
    let changes = if count == 1 {
        "1 change"
    } else {
        &format!("{count} changes")
    };
    output.say(Importance::Notice, format!("{path}: {changes}"));
    Ok(())
}

/// Files as they would be.
struct Changed {
    below: Arc<dyn Loader>,
    texts: BTreeMap<String, String>,
}

impl Loader for Changed {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, LoadError> {
        match self.texts.get(path) {
            Some(text) => Ok(text.as_bytes().into()),
            None => self.below.read(path),
        }
    }

    fn is_file(&self, path: &str) -> bool {
        self.below.is_file(path)
    }

    fn is_directory(&self, path: &str) -> bool {
        self.below.is_directory(path)
    }

    fn list(&self, directory: &str) -> Result<Vec<String>, LoadError> {
        self.below.list(directory)
    }
}
