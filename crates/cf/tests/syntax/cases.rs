//! Finding cases and comparing what they give.

use std::path::{Path, PathBuf};

use setpoint_testing::repository;

/// A text, and where what it must give stands.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// `rejected/missing_end`.
    pub(crate) name: String,
    pub(crate) text: String,
    expectation: PathBuf,
}

/// All cases of a folder, in the order of their names. An expectation without its text is an error.
pub(crate) fn find(folder: &str) -> Result<Vec<Case>, String> {
    let root = repository().join("crates/cf/tests/cases").join(folder);
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))? {
            let path = entry.map_err(|error| error.to_string())?.path();
            let extension = path.extension().and_then(|extension| extension.to_str());
            match extension {
                _ if path.is_dir() => folders.push(path),
                Some("cf") => found.push(case(&root, &path)?),
                Some("expect") if path.with_extension("cf").is_file() => {}
                _ => return Err(format!("{} is no part of a case", path.display())),
            }
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

fn case(root: &Path, path: &Path) -> Result<Case, String> {
    let name = path.strip_prefix(root).unwrap_or(path).with_extension("");
    Ok(Case {
        name: name.to_string_lossy().into_owned(),
        text: std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?,
        expectation: path.with_extension("expect"),
    })
}

/// Compares what a case gave with what it must give; `UPDATE=1` rewrites that, but not under CI.
pub(crate) fn compare(case: &Case, given: &str) -> Result<(), String> {
    let expected = std::fs::read_to_string(&case.expectation).ok();
    if expected.as_deref() == Some(given) {
        return Ok(());
    }
    let is_set = |name: &str| std::env::var(name).is_ok_and(|value| !value.is_empty() && value != "0");
    if is_set("UPDATE") && !is_set("CI") {
        return std::fs::write(&case.expectation, given).map_err(|error| error.to_string());
    }
    let expected = expected.unwrap_or_default();
    Err(format!(
        "expected (UPDATE=1 rewrites):\n{expected}\ngiven:\n{given}"
    ))
}
