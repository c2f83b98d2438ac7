//! Modules of models that `pip` installed.

use std::path::{Path, PathBuf};

use crate::command_path::{command_directories, is_trusted};

/// The package in which every installed module is.
const PACKAGE: &str = "inmanta_plugins";

/// The directories of installed modules: those of the active virtual environment, and of the first `python3` in PATH. Python is not run
/// for that.
#[must_use]
pub fn installed_modules() -> Vec<String> {
    let mut directories = command_directories().into_iter();
    let python = directories.find(|directory| directory.join("python3").is_file());
    let of_python = python.and_then(|directory| directory.parent().map(Path::to_path_buf));
    let active = std::env::var_os("VIRTUAL_ENV").map(PathBuf::from);
    let active = active.filter(|prefix| is_trusted(prefix));
    let mut found: Vec<String> = Vec::new();
    for directory in active
        .into_iter()
        .chain(of_python)
        .flat_map(|prefix| below(&prefix))
    {
        if !found.contains(&directory) {
            found.push(directory);
        }
    }
    found
}

/// The directories below the prefix of a Python installation.
fn below(prefix: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(prefix.join("lib"))
        .into_iter()
        .flatten()
        .flatten();
    let versions = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"));
    let packages = versions.flat_map(|version| {
        ["site-packages", "dist-packages"].map(|packages| version.path().join(packages).join(PACKAGE))
    });
    packages
        .filter(|directory| directory.is_dir())
        .filter_map(|directory| directory.into_os_string().into_string().ok())
        .collect()
}
