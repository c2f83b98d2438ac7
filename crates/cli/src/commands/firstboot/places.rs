//! Where scripts are, and what belongs to them.

use clap::Args;
use setpoint_agent::prefix::OF_ROOT;
use setpoint_host::files::{AbsolutePath, Entry, FileError};
use setpoint_programs::failure::Failure;

/// Where what is.
#[derive(Debug, Args)]
pub(in crate::commands) struct Places {
    /// Lock by which no two run the scripts at the same time [default: /var/lib/setpoint/firstboot.lock]
    #[arg(long, value_name = "FILE")]
    lock_file_path: Option<String>,

    /// Where the scripts are [default: /var/lib/setpoint/firstboot/]
    #[arg(long, value_name = "DIR")]
    scripts_dir: Option<String>,

    /// Where scripts are moved that have run [default: none, they are removed]
    #[arg(long, value_name = "DIR")]
    done_dir: Option<String>,

    /// Where the log of a start is written, `setpoint-firstboot-NUMBER.log` [default: /root/]
    #[arg(long, value_name = "DIR")]
    logging_dir: Option<String>,
}

impl Places {
    pub(super) fn lock(&self) -> Result<AbsolutePath, Failure> {
        of(self
            .lock_file_path
            .as_deref()
            .unwrap_or("/var/lib/setpoint/firstboot.lock"))
    }

    pub(super) fn scripts(&self) -> Result<AbsolutePath, Failure> {
        of(self
            .scripts_dir
            .as_deref()
            .unwrap_or("/var/lib/setpoint/firstboot/"))
    }

    /// Whether the command line says where scripts are.
    pub(super) fn names_scripts(&self) -> bool {
        self.scripts_dir.is_some()
    }

    pub(super) fn done(&self) -> Result<Option<AbsolutePath>, Failure> {
        self.done_dir.as_deref().map(of).transpose()
    }

    pub(super) fn logging(&self) -> Result<AbsolutePath, Failure> {
        of(self.logging_dir.as_deref().unwrap_or("/root/"))
    }

    /// All directories.
    pub(in crate::commands) fn directories(&self) -> Result<Vec<AbsolutePath>, Failure> {
        let all = [Some(self.scripts()?), self.done()?, Some(self.logging()?)];
        Ok(all.into_iter().flatten().collect())
    }

    /// What the command line says, as words of another one with the same meaning.
    pub(in crate::commands) fn given(&self) -> Result<Vec<String>, Failure> {
        let all = [
            ("--lock-file-path", &self.lock_file_path),
            ("--scripts-dir", &self.scripts_dir),
            ("--done-dir", &self.done_dir),
            ("--logging-dir", &self.logging_dir),
        ];
        let given = all
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.as_ref()?)));
        given
            .map(|(name, value)| Ok(format!("{name}={}", of(value)?)))
            .collect()
    }
}

/// Makes a directory for its owner alone, and those above it that are missing; our own state is nobody else's to see.
pub(in crate::commands) fn make_directory(directory: &AbsolutePath) -> Result<(), FileError> {
    let is_state = directory.as_path().starts_with(OF_ROOT);
    Entry::create_directories(directory, 0o700, if is_state { 0o700 } else { 0o755 })
}

fn of(given: &str) -> Result<AbsolutePath, Failure> {
    let absolute =
        std::path::absolute(given).map_err(|error| Failure::io(format_args!("find `{given}`"), &error))?;
    AbsolutePath::new(absolute).map_err(|error| Failure::usage(format!("{error}: `{given}`")))
}
