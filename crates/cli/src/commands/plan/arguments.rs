//! Arguments of commands that plan a program, and of those that print a plan.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use setpoint_plan::{Diffs, Screen};
use setpoint_programs::failure::Failure;

use super::making::Request;
use crate::arguments::{ModuleArguments, ProgramArguments, parse_seconds};
use crate::headings;
use crate::session::Session;
use crate::store_arguments::StoreArguments;

/// A program that is planned.
#[derive(Debug, Args)]
pub(in crate::commands) struct PlanArguments {
    #[command(flatten)]
    pub(in crate::commands) program: ProgramArguments,

    #[command(flatten)]
    pub(in crate::commands) modules: ModuleArguments,

    #[command(flatten)]
    pub(in crate::commands) store: StoreArguments,

    /// State directory [default: as for `setpoint run`]
    #[arg(long = "state-dir", alias = "prefix", value_name = "DIR")]
    pub(in crate::commands) state_dir: Option<PathBuf>,

    /// Run the commands of `os.system`, as `setpoint run` does
    ///
    /// Without it, the results of these commands are not known in the plan.
    #[arg(long, help_heading = headings::PROGRAM)]
    commands: bool,

    /// Facts for a model, from a JSON file
    #[arg(long, value_name = "FILE", help_heading = headings::PROGRAM, hide_short_help = true)]
    facts: Option<PathBuf>,

    /// Seconds that a source has to give its first value
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = parse_seconds, default_value = "10", hide_short_help = true)]
    pub(in crate::commands) timeout: Duration,
}

impl PlanArguments {
    /// The request of these arguments.
    ///
    /// # Errors
    /// When they contradict each other.
    pub(in crate::commands) fn request(&self, session: &Session) -> Result<Request, Failure> {
        let output = &session.output;
        Ok(Request {
            input: self.program.parse(output)?,
            modules: self.modules.policy(output),
            state_dir: self.state_dir.clone(),
            store: self.store.open_etcd(output)?,
            facts: self.facts.clone(),
            timeout: self.timeout,
            runs_commands: self.commands,
        })
    }
}

/// How a plan is printed.
#[derive(Debug, Clone, Args)]
pub(in crate::commands) struct Printing {
    /// Show single rows, unchanged resources and complete diffs
    #[arg(long, help_heading = headings::OUTPUT, conflicts_with = "quiet")]
    pub(super) full: bool,

    /// Print the summary only
    #[arg(short, long, help_heading = headings::OUTPUT)]
    quiet: bool,

    /// Lines of diffs to show
    #[arg(long, value_enum, default_value_t = DiffArgument::Short, help_heading = headings::OUTPUT)]
    diff: DiffArgument,

    /// Columns of the output [default: those of the terminal, or 100]
    #[arg(long, value_name = "N", help_heading = headings::OUTPUT, hide_short_help = true)]
    width: Option<usize>,

    /// Format of the output
    #[arg(long, value_enum, default_value_t = Format::Text, help_heading = headings::OUTPUT)]
    pub(super) format: Format,

    /// Print one JSON object; the same as `--format json`
    #[arg(long, help_heading = headings::OUTPUT)]
    pub(super) json: bool,

    /// With `--format markdown`: leave out diffs, then rows, above this size
    #[arg(long, value_name = "N", default_value_t = 60_000, help_heading = headings::OUTPUT, hide_short_help = true)]
    pub(super) max_bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// A screen for people
    Text,
    /// One JSON object
    Json,
    /// A comment for a merge request
    Markdown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DiffArgument {
    /// No diffs
    None,
    /// The first 30 lines of each
    Short,
    /// Complete diffs
    Full,
}

/// Columns where there is no terminal.
const WIDTH: usize = 100;
/// Narrower screens are not made.
const NARROWEST: usize = 60;

impl Printing {
    /// One of the switches that were given.
    pub(in crate::commands) fn given(&self) -> Option<&'static str> {
        let given = [
            (self.full, "--full"),
            (self.quiet, "--quiet"),
            (self.diff != DiffArgument::Short, "--diff"),
            (self.width.is_some(), "--width"),
            (self.format != Format::Text, "--format"),
            (self.json, "--json"),
        ];
        given
            .into_iter()
            .find(|(is_given, _)| *is_given)
            .map(|(_, switch)| switch)
    }

    /// Whether programs read the output.
    pub(in crate::commands) fn is_data(&self) -> bool {
        self.json || self.format == Format::Json
    }

    /// The form of a screen.
    pub(super) fn screen(&self, compares_programs: bool) -> Screen {
        let terminal = || {
            let stdout = std::io::stdout();
            let size = rustix::termios::tcgetwinsize(&stdout)
                .ok()
                .filter(|_| stdout.is_terminal());
            size.map(|size| usize::from(size.ws_col))
                .filter(|columns| *columns > 0)
        };
        let width = self.width.or_else(terminal).unwrap_or(WIDTH);
        Screen {
            width: width.max(NARROWEST),
            diffs: match self.diff {
                _ if self.full => Diffs::Full,
                DiffArgument::None => Diffs::None,
                DiffArgument::Short => Diffs::Short,
                DiffArgument::Full => Diffs::Full,
            },
            all_rows: self.full,
            summary_only: self.quiet,
            compares_programs,
        }
    }
}
