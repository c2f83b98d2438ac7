//! The working directory: where a process keeps what outlives it.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use clap::Args;
use setpoint_host::files::AbsolutePath;
use setpoint_host::state::{StateDirectory, StateError};

use crate::environment;
use crate::failure::Failure;

/// Which working directory.
#[derive(Debug, Clone, Args)]
pub(crate) struct PrefixArguments {
    /// Working directory, for state that outlives the process [default: /var/lib/setpoint/, or ~/.cache/setpoint/]
    #[arg(long, value_name = "DIR", conflicts_with = "tmp_prefix")]
    prefix: Option<PathBuf>,

    /// Work in a new temporary directory, which goes away at the end
    #[arg(long)]
    tmp_prefix: bool,

    /// Work in a temporary directory if the other one cannot be made
    #[arg(long)]
    allow_tmp_prefix: bool,
}

impl PrefixArguments {
    /// The directory that the command line names.
    pub(crate) fn given(&self) -> Option<PathBuf> {
        self.prefix.clone()
    }
}

/// Which process is meant, by its working directory.
#[derive(Debug, Clone, Args)]
pub(crate) struct ProcessArguments {
    /// Working directory of the process [default: as for `setpoint run`]
    #[arg(long, value_name = "DIR", global = true)]
    prefix: Option<PathBuf>,
}

impl ProcessArguments {
    /// Where its working directory is.
    pub(crate) fn place(&self) -> Result<PathBuf, Failure> {
        Prefix::place(self.prefix.clone())
    }

    /// Whether it was named.
    pub(crate) fn is_given(&self) -> bool {
        self.prefix.is_some() || environment::variable("PREFIX").is_some()
    }
}

/// A working directory that exists, and that nobody else can write in.
#[derive(Debug)]
pub(crate) struct Prefix {
    /// Absolute.
    pub(crate) path: PathBuf,
    /// The same, open.
    pub(crate) directory: StateDirectory,
    temporary: bool,
}

impl Prefix {
    /// Finds the directory by the rules of the command line, and makes it if it is missing.
    pub(crate) fn find(arguments: &PrefixArguments, hostname: &str) -> Result<Prefix, Failure> {
        if arguments.tmp_prefix {
            return Prefix::temporary(hostname);
        }
        let path = Prefix::place(arguments.prefix.clone())?;
        match open(&path) {
            Ok(directory) => Ok(Prefix {
                path: directory.path().as_path().to_path_buf(),
                directory,
                temporary: false,
            }),
            // One that is not to be trusted is never passed over in silence.
            Err(StateError::File(_)) if arguments.allow_tmp_prefix => Prefix::temporary(hostname),
            Err(error) => Err(Failure::wrong("the working directory cannot be used")
                .because(error)
                .hint("`--prefix DIR` or `--tmp-prefix` chooses another one")),
        }
    }

    /// Where the directory is, if it is: for commands that only look. `given` is what the command line says.
    pub(crate) fn place(given: Option<PathBuf>) -> Result<PathBuf, Failure> {
        let path = given
            .or_else(|| environment::variable("PREFIX").map(PathBuf::from))
            .or_else(standard)
            .ok_or_else(|| {
                Failure::wrong("there is no working directory: neither `XDG_CACHE_HOME` nor `HOME` is set")
                    .hint("`--prefix DIR` or `--tmp-prefix` chooses one")
            })?;
        std::path::absolute(&path)
            .map_err(|error| Failure::io(format!("use the working directory {}", path.display()), &error))
    }

    fn temporary(hostname: &str) -> Result<Prefix, Failure> {
        // A name of a host can be as long as a name of a file, and the system's may have any characters.
        let named: String = hostname.chars().filter(|c| *c != '/').take(64).collect();
        let made = tempfile::Builder::new()
            .prefix(&format!("setpoint-{named}-"))
            .permissions(std::fs::Permissions::from_mode(0o700))
            .tempdir();
        let path = made
            .map_err(|error| Failure::io("make a temporary working directory", &error))?
            .keep();
        match open(&path) {
            Ok(directory) => Ok(Prefix {
                path,
                directory,
                temporary: true,
            }),
            Err(error) => Err(Failure::wrong("the temporary working directory cannot be used")
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
pub(crate) const OF_ROOT: &str = "/var/lib/setpoint";

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
