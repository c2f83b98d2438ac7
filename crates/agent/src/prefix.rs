//! The state directory of an agent.

mod owner;
mod watched;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

pub(crate) use owner::Owner;
use setpoint_host::files::AbsolutePath;
use setpoint_host::state::{StateDirectory, StateError};
use setpoint_programs::environment;
use setpoint_programs::failure::Failure;
pub(crate) use watched::WatchedPrefix;

/// The choice of a state directory.
#[derive(Debug, Clone, Default)]
pub struct PrefixChoice {
    /// The one that the user names; none for the usual one.
    pub path: Option<PathBuf>,
    /// A new temporary one, which goes away at the end.
    pub temporary: bool,
    /// A temporary one if the other one cannot be made.
    pub or_temporary: bool,
    /// The directory is only read, also while another process uses it. It need not exist.
    pub read_only: bool,
}

/// A state directory that exists, and that other users cannot write in.
#[derive(Debug)]
pub struct Prefix {
    /// Absolute.
    pub path: PathBuf,
    /// The same, open. None if the directory is only read and does not exist.
    pub directory: Option<StateDirectory>,
    temporary: bool,
}

impl Prefix {
    /// Finds the directory by the rules of the command line, and makes it if it is missing.
    pub fn find(choice: &PrefixChoice, hostname: &str) -> Result<Prefix, Failure> {
        if choice.temporary {
            return Prefix::temporary(hostname);
        }
        if choice.read_only {
            return Prefix::reading(choice.path.clone());
        }
        let path = Prefix::place(choice.path.clone())?;
        match open(&path) {
            Ok(directory) => Ok(Prefix {
                path: directory.path().as_path().to_path_buf(),
                directory: Some(directory),
                temporary: false,
            }),
            // One that is not to be trusted is never passed over in silence.
            Err(StateError::File(_)) if choice.or_temporary => Prefix::temporary(hostname),
            Err(error) => Err(Failure::wrong("cannot use the state directory")
                .because(error)
                .hint("`--state-dir DIR` or `--tmp-state-dir` chooses another one")),
        }
    }

    /// The directory of a process that only reads it.
    fn reading(given: Option<PathBuf>) -> Result<Prefix, Failure> {
        let path = Prefix::place(given)?;
        let unusable = |error: &dyn std::fmt::Display| {
            Failure::wrong(format!(
                "cannot read the state directory {}: {error}",
                path.display()
            ))
        };
        let absolute = AbsolutePath::new(&path).map_err(|error| unusable(&error))?;
        let directory = match StateDirectory::open_existing(&absolute) {
            Ok(directory) => Some(directory),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(unusable(&error)),
        };
        Ok(Prefix {
            path,
            directory,
            temporary: false,
        })
    }

    /// Where the directory is, if it is: for commands that only look. `given` is what the command line says.
    pub fn place(given: Option<PathBuf>) -> Result<PathBuf, Failure> {
        let path = given
            .or_else(|| environment::variable("STATE_DIR").map(PathBuf::from))
            .or_else(standard)
            .ok_or_else(|| {
                Failure::wrong("there is no state directory: neither `XDG_CACHE_HOME` nor `HOME` is set")
                    .hint("`--state-dir DIR` or `--tmp-state-dir` chooses one")
            })?;
        std::path::absolute(&path)
            .map_err(|error| Failure::io(format!("use the state directory {}", path.display()), &error))
    }

    fn temporary(hostname: &str) -> Result<Prefix, Failure> {
        // A name of a host can be as long as a name of a file, and the system's may have any characters.
        let named: String = hostname.chars().filter(|c| *c != '/').take(64).collect();
        let made = tempfile::Builder::new()
            .prefix(&format!("setpoint-{named}-"))
            .permissions(std::fs::Permissions::from_mode(0o700))
            .tempdir();
        let path = made
            .map_err(|error| Failure::io("create a temporary state directory", &error))?
            .keep();
        match open(&path) {
            Ok(directory) => Ok(Prefix {
                path,
                directory: Some(directory),
                temporary: true,
            }),
            Err(error) => Err(Failure::wrong("cannot use the temporary state directory")
                .because(error)
                .hint("the variable `TMPDIR` chooses where it is made")),
        }
    }
}

impl Drop for Prefix {
    /// Removes the directory if it was temporary, however the run came to its end.
    fn drop(&mut self) {
        if self.temporary {
            // What cannot be removed is in the system's directory for such things.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

fn open(path: &std::path::Path) -> Result<StateDirectory, StateError> {
    let path = AbsolutePath::new(path).map_err(|error| StateError::Unusable {
        path: path.to_path_buf(),
        reason: error.to_string(),
    })?;
    StateDirectory::open(&path)
}

/// Where root's processes work if nobody says otherwise.
pub const OF_ROOT: &str = "/var/lib/setpoint";

fn standard() -> Option<PathBuf> {
    let variable = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    // The service manager may name several, with colons between; the first one is meant.
    let state = std::env::var_os("STATE_DIRECTORY").and_then(|all| std::env::split_paths(&all).next());
    if let Some(state) = state.filter(|state| !state.as_os_str().is_empty()) {
        return Some(state);
    }
    if rustix::process::geteuid().is_root() {
        return Some(PathBuf::from(OF_ROOT));
    }
    let cache = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")));
    cache.map(|cache| cache.join("setpoint"))
}
