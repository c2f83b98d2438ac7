//! The owner of a state directory: a program. Another program that runs there must not undo or withdraw the resources of the owner.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use setpoint_host::files::{Committer, FileError};
use setpoint_host::state::{StateDirectory, Stored};

const NAME: &str = "program";
const VERSION: u32 = 1;

/// The program of a run, as a state directory knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner(PathBuf);

impl Owner {
    /// The program that the command line names; none for code and for standard input, which own no state directory.
    pub(crate) fn of(argument: &str) -> Option<Owner> {
        let path = Path::new(argument);
        let exists = argument != "-" && path.exists();
        let absolute = std::path::absolute(path).ok().filter(|_| exists)?;
        // A program in a directory can be named by its main file, too.
        let is_main = absolute.is_file()
            && ["main.mcl", "metadata.yaml", "main.cf", "project.yml"]
                .iter()
                .any(|name| absolute.ends_with(name));
        Some(Owner(match absolute.parent().filter(|_| is_main) {
            Some(directory) => directory.to_path_buf(),
            None => absolute.components().collect(),
        }))
    }

    /// The program that a state directory belongs to, if that is known.
    pub(crate) fn read(directory: &StateDirectory, may_change: bool) -> Result<Option<Owner>, FileError> {
        let Some(engine) = directory.find("engine")? else {
            return Ok(None);
        };
        match engine.load(NAME, VERSION, may_change)? {
            Stored::Payload(path) => Ok(Some(Owner(OsString::from_vec(path).into()))),
            Stored::Nothing | Stored::Unusable(_) => Ok(None),
        }
    }

    /// Has a state directory belong to this program.
    pub(crate) fn write(
        &self,
        directory: &StateDirectory,
        committer: &Arc<Committer>,
    ) -> Result<(), FileError> {
        let engine = directory.subdirectory("engine")?;
        engine.write_versioned(committer, NAME, VERSION, self.0.as_os_str().as_bytes())
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_and_its_main_file_are_one_program() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name).display().to_string();
        for name in ["main.mcl", "other.mcl"] {
            std::fs::write(path(name), "").unwrap();
        }
        assert_eq!(Owner::of(&path("main.mcl")), Owner::of(&path("")));
        assert_ne!(Owner::of(&path("other.mcl")), Owner::of(&path("")));
        assert_eq!(Owner::of("print \"code\" {}"), None);
        assert_eq!(Owner::of("-"), None);
    }
}
