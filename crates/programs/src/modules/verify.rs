//! What is there, compared with the lock file.

use std::path::Path;

use setpoint_diagnostics::{Diagnostic, Span};
use setpoint_mcl::RemoteImport;

use super::fetch::{place_of, short};
use super::lock_file::{LockFile, LockedModule};
use super::repository::{commit_of, content_hash};
use crate::codes;
use crate::failure::system_text;
use crate::languages::compilation::Compilation;

/// How a module stands to the lock file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It is what the lock file says.
    Locked,
    /// The lock file does not have it.
    Unknown,
    /// It is at another commit than the lock file says.
    OtherCommit {
        /// The one of the lock file.
        wanted: Option<String>,
        /// The one that is there.
        found: Option<String>,
    },
    /// Its commit is right, and its files are not those of that commit.
    Changed,
    /// It cannot be read.
    Unreadable(String),
}

/// Compares a module with what the lock file says of it.
pub fn standing(root: &Path, import: &RemoteImport, locked: Option<&LockedModule>) -> Standing {
    let Some(locked) = locked else {
        return Standing::Unknown;
    };
    let place = place_of(root, import);
    let found = commit_of(&place);
    if found != locked.commit {
        let wanted = locked.commit.clone();
        return Standing::OtherCommit { wanted, found };
    }
    match content_hash(&place) {
        Ok(hash) if hash == locked.sha256 => Standing::Locked,
        Ok(_) => Standing::Changed,
        Err(error) => Standing::Unreadable(system_text(&error)),
    }
}

/// Adds an error for each module that is not what the lock file says. Then there is no program.
pub fn verify(compilation: &mut Compilation) {
    let (Some(input), Some(compiled)) = (&compilation.input, &mut compilation.compiled) else {
        return;
    };
    let global = compilation.modules_directory.as_deref();
    let Some(first) = compiled.remote_imports.first() else {
        return;
    };
    let mut found: Vec<Diagnostic> = Vec::new();
    match LockFile::of(input) {
        Err(failure) => found.push(error(first.span, &failure.to_string())),
        Ok(None) => {
            let text = "a program that is not a file has no lock file, so `--locked` cannot be kept";
            found.push(error(first.span, text));
        }
        Ok(Some(lock)) if !lock.is_there() => {
            let text = format!("there is no lock file `{}`", lock.path.display());
            found.push(error(first.span, &text).help("`setpoint modules get` writes it"));
        }
        Ok(Some(lock)) => {
            let mut seen: Vec<&RemoteImport> = Vec::new();
            for import in compiled.remote_imports.iter().filter(|import| import.is_there) {
                let is_same = |other: &&RemoteImport| {
                    other.module == import.module && other.modules_directory == import.modules_directory
                };
                if seen.iter().any(is_same) {
                    continue;
                }
                seen.push(import);
                let standing = standing(Path::new(&input.root), import, lock.get(import, global));
                found.extend(complaint(import, &standing));
            }
        }
    }
    if !found.is_empty() {
        compiled.program = None;
        compilation.diagnostics.extend(found);
    }
}

fn complaint(import: &RemoteImport, standing: &Standing) -> Option<Diagnostic> {
    let module = import.module.trim_end_matches('/');
    let span = import.span;
    let name = |commit: &Option<String>| match commit {
        Some(commit) => format!("at {}", short(commit)),
        None => "not a repository".to_owned(),
    };
    Some(match standing {
        Standing::Locked => return None,
        Standing::Unknown => error(span, &format!("the module `{module}` is not in the lock file"))
            .help("`setpoint modules get` adds it"),
        Standing::OtherCommit { wanted, found } => {
            let message = format!("the module `{module}` is not the one of the lock file");
            error(span, &message)
                .note(format!(
                    "it is {}, the lock file says {}",
                    name(found),
                    name(wanted)
                ))
                .help("`setpoint modules get` fetches what the lock file says")
        }
        Standing::Changed => {
            let message = format!("files of the module `{module}` are not those of the lock file");
            error(span, &message)
                .help("if the change is wanted, `setpoint modules get` takes it into the lock file")
        }
        Standing::Unreadable(why) => error(
            span,
            &format!("the module `{module}` cannot be compared with the lock file"),
        )
        .note(why.as_str()),
    })
}

fn error(span: Span, message: &str) -> Diagnostic {
    Diagnostic::error(&codes::NOT_LOCKED, span, message)
}
