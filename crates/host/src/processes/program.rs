//! Finding a program's file.

use rustix::fs::{Access, access};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A program that was not found, or not where it may be taken from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// No directory of `PATH` has it.
    #[error("there is no program `{}` in PATH", program.display())]
    NotFound {
        /// The name looked for.
        program: OsString,
    },
    /// Only a relative entry of `PATH` has it, and what that means depends on where we happen to be.
    #[error("the program `{}` is only in the relative PATH entry `{}`", program.display(), entry.display())]
    RelativeEntry {
        /// The name looked for.
        program: OsString,
        /// The entry.
        entry: PathBuf,
    },
}

pub(super) fn find(
    program: &OsStr,
    directory: Option<&Path>,
    search_path: &OsStr,
) -> Result<PathBuf, ProgramError> {
    if program.as_bytes().contains(&b'/') {
        let path = directory.map_or_else(|| PathBuf::from(program), |directory| directory.join(program));
        // A relative one must mean the same before and after changing to the working directory.
        return Ok(std::path::absolute(&path).unwrap_or(path));
    }
    let mut relative = None;
    for entry in search_path.as_bytes().split(|byte| *byte == b':') {
        let entry = Path::new(OsStr::from_bytes(entry));
        let path = entry.join(program);
        let is_program = !program.is_empty()
            && std::fs::metadata(&path).is_ok_and(|found| found.is_file())
            && access(&path, Access::EXEC_OK).is_ok();
        if is_program && entry.is_absolute() {
            return Ok(path);
        }
        if is_program && relative.is_none() {
            relative = Some(entry.to_path_buf());
        }
    }
    let program = program.to_os_string();
    Err(match relative {
        Some(entry) => ProgramError::RelativeEntry { program, entry },
        None => ProgramError::NotFound { program },
    })
}
