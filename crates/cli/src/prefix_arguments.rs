//! The state directory on the command line.

use std::path::PathBuf;

use clap::Args;
use setpoint_agent::control::client::Client;
use setpoint_agent::prefix::{Prefix, PrefixChoice};
use setpoint_programs::environment;
use setpoint_programs::failure::Failure;
use setpoint_programs::program_input::is_code;

use crate::arguments::ProgramArguments;
use crate::headings;

/// The state directory.
#[derive(Debug, Clone, Args)]
pub(crate) struct PrefixArguments {
    /// State directory
    ///
    /// It holds what must survive a restart [default: /var/lib/setpoint/, or ~/.cache/setpoint/ for other users]
    #[arg(long = "state-dir", alias = "prefix", value_name = "DIR", conflicts_with = "tmp_prefix", help_heading = headings::RUN)]
    prefix: Option<PathBuf>,

    /// Use a temporary state directory
    ///
    /// It is removed at exit.
    #[arg(long = "tmp-state-dir", alias = "tmp-prefix", help_heading = headings::RUN)]
    tmp_prefix: bool,

    /// Use a temporary state directory if the other one cannot be created
    #[arg(long = "allow-tmp-state-dir", alias = "allow-tmp-prefix", help_heading = headings::RUN, hide_short_help = true)]
    allow_tmp_prefix: bool,

    /// Take over the state directory of another program
    ///
    /// Without it, the run undoes no resources that the other program managed, and withdraws none of its exports.
    #[arg(long, help_heading = headings::RUN, hide_short_help = true)]
    replace: bool,
}

impl PrefixArguments {
    /// The state directory that they name.
    pub(crate) fn choice(&self, program: &ProgramArguments) -> PrefixChoice {
        let argument = program.words().last().map_or("", String::as_str);
        let usual = state_directory(argument, self.prefix.clone());
        PrefixChoice {
            temporary: self.tmp_prefix || usual.temporary,
            or_temporary: self.allow_tmp_prefix,
            ..usual
        }
    }

    /// Whether the program takes over the state directory of another program.
    pub(crate) fn replaces(&self) -> bool {
        self.replace
    }

    /// The directory that the command line names.
    pub(crate) fn given(&self) -> Option<PathBuf> {
        self.prefix.clone()
    }
}

/// The state directory of a program. Code on the command line and standard input have a temporary one, unless one is named.
pub(crate) fn state_directory(argument: &str, given: Option<PathBuf>) -> PrefixChoice {
    let is_named = given.is_some() || environment::variable("STATE_DIR").is_some();
    PrefixChoice {
        path: given,
        temporary: is_code(argument) && !is_named,
        ..PrefixChoice::default()
    }
}

/// The agent to control, by its state directory.
#[derive(Debug, Clone, Args)]
pub(crate) struct ProcessArguments {
    /// State directory of the agent [default: as for `setpoint run`]
    #[arg(long = "state-dir", alias = "prefix", value_name = "DIR", global = true)]
    prefix: Option<PathBuf>,
}

impl ProcessArguments {
    /// Its state directory.
    fn place(&self) -> Result<PathBuf, Failure> {
        Prefix::place(self.prefix.clone())
    }

    /// Connects to it.
    pub(crate) fn connect(&self) -> Result<Client, Failure> {
        Client::connect(self.place()?, self.is_given())
    }

    /// Whether it was named.
    fn is_given(&self) -> bool {
        self.prefix.is_some() || environment::variable("STATE_DIR").is_some()
    }
}
