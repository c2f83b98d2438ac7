//! The working directory: where a process keeps what outlives it.

use std::path::PathBuf;

use clap::Args;

use crate::arguments::environment;
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

/// A working directory that exists.
#[derive(Debug)]
pub(crate) struct Prefix {
    /// Absolute.
    pub(crate) path: PathBuf,
    temporary: bool,
}

impl Prefix {
    /// Finds the directory by the rules of the command line, and makes it if it is missing.
    pub(crate) fn find(arguments: &PrefixArguments, hostname: &str) -> Result<Prefix, Failure> {
        if arguments.tmp_prefix {
            return Prefix::temporary(hostname);
        }
        let path = Prefix::place(arguments.prefix.clone());
        let made = std::path::absolute(&path).and_then(|path| std::fs::create_dir_all(&path).map(|()| path));
        match made {
            Ok(path) => Ok(Prefix {
                path,
                temporary: false,
            }),
            Err(_) if arguments.allow_tmp_prefix => Prefix::temporary(hostname),
            Err(error) => {
                let attempted = format!("make the working directory {}", path.display());
                let Failure::Wrong(message) = Failure::io(attempted, &error) else {
                    return Err(Failure::ClosedPipe);
                };
                Err(Failure::Wrong(format!(
                    "{message}\n  `--prefix DIR` or `--tmp-prefix` chooses another one"
                )))
            }
        }
    }

    /// Where the directory is, if it is: for commands that only look. `given` is what the command line says.
    pub(crate) fn place(given: Option<PathBuf>) -> PathBuf {
        given
            .or_else(|| environment("PREFIX").map(PathBuf::from))
            .unwrap_or_else(standard)
    }

    fn temporary(hostname: &str) -> Result<Prefix, Failure> {
        let made = tempfile::Builder::new()
            .prefix(&format!("setpoint-{hostname}-"))
            .tempdir();
        let directory = made.map_err(|error| Failure::io("make a temporary working directory", &error))?;
        Ok(Prefix {
            path: directory.keep(),
            temporary: true,
        })
    }

    /// Removes the directory if it was temporary.
    pub(crate) fn leave(&self) {
        if self.temporary {
            // What cannot be removed is in the system's directory for such things.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

fn standard() -> PathBuf {
    let variable = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    if let Some(state) = variable("STATE_DIRECTORY") {
        return state;
    }
    if rustix::process::geteuid().is_root() {
        return PathBuf::from("/var/lib/setpoint");
    }
    let cache = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")));
    cache.unwrap_or_else(std::env::temp_dir).join("setpoint")
}
