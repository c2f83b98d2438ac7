//! Versions: what a project and its modules require of the modules that are used.
//!
//! A requirement is the name of a module or of its package, and what its version must fulfil: `ip>=1.2,<2`. Modules that nobody imports are not
//! looked for.

use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use fancy_regex::Regex;
use pep440_rs::{Version, VersionSpecifiers};
use rustc_hash::FxHashMap;
use setpoint_diagnostics::{Diagnostic, Diagnostics, Span};

use super::codes;
use super::modules::PACKAGE_PREFIX;

/// A requirement as it is written, and where.
pub(super) type Written = (Arc<str>, Span);

/// What the metadata of a module say about versions.
#[derive(Debug, Clone, Default)]
pub(super) struct Versions {
    /// That of the module.
    pub(super) own: Option<Written>,
    /// Those of the modules that it needs.
    pub(super) requires: Vec<Written>,
}

/// The name, what may be installed with it, and what the version must fulfil, up to a condition.
static FORM: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*([^;]*)").expect("the pattern is right")
});

/// Tells which modules are not of a version that is required.
pub(super) fn check(
    of_project: &[Written],
    modules: &FxHashMap<Arc<str>, Versions>,
    diagnostics: &mut Diagnostics,
) {
    let mut names: Vec<&Arc<str>> = modules.keys().collect();
    names.sort();
    let of_modules = names.into_iter().flat_map(|name| &modules[name].requires);
    for written in of_project.iter().chain(of_modules) {
        if let Some(error) = unfulfilled(written, modules) {
            diagnostics.push(error);
        }
    }
}

fn unfulfilled((text, span): &Written, modules: &FxHashMap<Arc<str>, Versions>) -> Option<Diagnostic> {
    let wrong = |reason: &str| {
        let error = codes::bad_field(*span, format!("`{text}` is no requirement: {reason}"));
        Some(error.help("a requirement is a module and what its version fulfils: `ip~=1.2`"))
    };
    let Ok(Some(parts)) = FORM.captures(text) else {
        return wrong("it begins with no name");
    };
    let part = |at| parts.get(at).map_or("", |found| found.as_str());
    let wanted = part(2).trim();
    // A package from a place of its own may be of any version.
    if wanted.is_empty() || wanted.starts_with('@') {
        return None;
    }
    let specifiers = match VersionSpecifiers::from_str(wanted.trim_matches(['(', ')'])) {
        Ok(specifiers) => specifiers,
        Err(error) => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            return wrong(first.trim_end_matches(':'));
        }
    };
    let name = part(1);
    let name = name
        .strip_prefix(PACKAGE_PREFIX)
        .unwrap_or(name)
        .replace('-', "_");
    let (version, place) = modules.get(name.as_str())?.own.as_ref()?;
    // A version that is none has been told.
    let parsed = Version::from_str(version.trim()).ok()?;
    if specifiers.contains(&parsed) {
        return None;
    }
    let reason = format!("it is of version {version}, and `{text}` is required");
    let error = Diagnostic::error(
        &codes::MODULE,
        *span,
        format!("module `{name}` cannot be loaded: {reason}"),
    );
    let error = error
        .of_class("ModuleLoadingException")
        .label("required here")
        .because(*place, "its version");
    Some(
        error.caused_by(Diagnostic::error(&codes::MODULE, *place, reason).of_class("InvalidModuleException")),
    )
}
