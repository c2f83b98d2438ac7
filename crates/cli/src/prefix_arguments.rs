//! How the working directory is named on the command line.

use std::path::PathBuf;

use clap::Args;
use setpoint_agent::control::client::Client;
use setpoint_agent::prefix::{Prefix, PrefixChoice};
use setpoint_programs::environment;
use setpoint_programs::failure::Failure;

use crate::headings;

/// Which working directory.
#[derive(Debug, Clone, Args)]
pub(crate) struct PrefixArguments {
    /// State directory
    ///
    /// It holds what must survive a restart [default: /var/lib/setpoint/, or ~/.cache/setpoint/ for other users]
    #[arg(long, value_name = "DIR", conflicts_with = "tmp_prefix", help_heading = headings::RUN)]
    prefix: Option<PathBuf>,

    /// Use a temporary state directory
    ///
    /// It is removed at exit.
    #[arg(long, help_heading = headings::RUN)]
    tmp_prefix: bool,

    /// Use a temporary state directory if the other one cannot be created
    #[arg(long, help_heading = headings::RUN, hide_short_help = true)]
    allow_tmp_prefix: bool,
}

impl PrefixArguments {
    /// Which working directory they ask for.
    pub(crate) fn choice(&self) -> PrefixChoice {
        PrefixChoice {
            path: self.prefix.clone(),
            temporary: self.tmp_prefix,
            or_temporary: self.allow_tmp_prefix,
        }
    }

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
    fn place(&self) -> Result<PathBuf, Failure> {
        Prefix::place(self.prefix.clone())
    }

    /// Connects to it.
    pub(crate) fn connect(&self) -> Result<Client, Failure> {
        Client::connect(self.place()?, self.is_given())
    }

    /// Whether it was named.
    fn is_given(&self) -> bool {
        self.prefix.is_some() || environment::variable("PREFIX").is_some()
    }
}
