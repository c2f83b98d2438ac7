//! `setpoint plan`: what a run would do, without doing it.

pub(super) mod making;
mod running;
pub(super) mod saving;

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use setpoint_plan::{Action, Diffs, Plan, Screen, markdown, screen};
use setpoint_programs::failure::Failure;
use setpoint_programs::program_input::is_code;

use crate::arguments::{ModuleArguments, ProgramArguments};
use crate::exit_code;
use crate::headings;
use crate::output::Output;
use crate::session::Session;
use crate::store_arguments::StoreArguments;
use making::Request;

/// Show what a program would change on this machine
///
/// Compares the machine with the program, and changes nothing. The plan takes into account what earlier resources would do: a file can
/// belong to a user that the program creates. A question mark means that the result depends on an earlier resource that has not run. An
/// agent can use the same state directory at the same time. On errors, and if a resource would fail, the exit code is 1.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    program: ProgramArguments,

    #[command(flatten)]
    modules: ModuleArguments,

    #[command(flatten)]
    store: StoreArguments,

    /// State directory to read [default: as for `setpoint run`]
    #[arg(long = "state-dir", alias = "prefix", value_name = "DIR")]
    state_dir: Option<PathBuf>,

    /// Facts for a model, from a JSON file
    #[arg(long, value_name = "FILE", help_heading = headings::PROGRAM, hide_short_help = true)]
    facts: Option<PathBuf>,

    #[command(flatten)]
    printing: Printing,

    /// Exit with code 2 if something would change
    #[arg(long)]
    detailed_exitcode: bool,

    /// Save the plan in this file, for `setpoint apply`
    ///
    /// Only its owner can read the file. It holds no sensitive values.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// How a plan is printed.
#[derive(Debug, Clone, Args)]
pub(super) struct Printing {
    /// Show single rows, unchanged resources and complete diffs
    #[arg(long, help_heading = headings::OUTPUT, conflicts_with = "quiet")]
    full: bool,

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
    format: Format,

    /// Print one JSON object; the same as `--format json`
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,

    /// With `--format markdown`: leave out diffs, then rows, above this size
    #[arg(long, value_name = "N", default_value_t = 60_000, help_heading = headings::OUTPUT, hide_short_help = true)]
    max_bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
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

pub(super) fn run(session: &Session, arguments: &Arguments) -> Result<u8, Failure> {
    let output = &session.output;
    let mut request = Request {
        input: arguments.program.parse(output)?,
        modules: arguments.modules.policy(output),
        state_dir: arguments.state_dir.clone(),
        store: arguments.store.open_etcd(output)?,
        facts: arguments.facts.clone(),
    };
    let Some(plan) = making::make(session, &mut request)? else {
        return Ok(exit_code::WRONG);
    };
    if let Some(file) = &arguments.out {
        saving::write(&plan, file)?;
    }
    let header = header(&request.input.argument, &plan);
    let code = plan.exit_code;
    print(output, plan, &header, &arguments.printing)?;
    Ok(match code {
        exit_code::CHANGED if !arguments.detailed_exitcode => exit_code::DONE,
        code => code,
    })
}

/// The first line of a screen: the program, the machine and the user.
pub(super) fn header(argument: &str, plan: &Plan) -> String {
    let program = match argument {
        "-" => "standard input",
        code if is_code(code) => "code",
        path => path,
    };
    let agent = plan.running.as_ref().map(|agent| match &agent.program {
        Some(program) => format!("; process {} runs {program}", agent.pid),
        None => format!("; process {} runs no program", agent.pid),
    });
    let agent = agent.unwrap_or_default();
    format!("{program} on {} as {}{agent}", plan.host.name, plan.host.user)
}

/// Prints a plan. `header` is the first line of its screen.
pub(super) fn print(output: &Output, plan: Plan, header: &str, how: &Printing) -> Result<(), Failure> {
    print_as(output, plan, header, how, false)
}

/// The same for a comparison of two programs, if it is one.
pub(super) fn print_as(
    output: &Output,
    mut plan: Plan,
    header: &str,
    how: &Printing,
    compares_programs: bool,
) -> Result<(), Failure> {
    match (how.json, how.format) {
        (true, _) | (_, Format::Json) => {
            if !how.full {
                plan.rows.retain(|row| row.action != Action::Unchanged);
            }
            output.print(&saving::text(&plan)?)
        }
        (false, Format::Markdown) => output.print(&markdown(&plan, how.max_bytes)),
        (false, Format::Text) => output.print_styled(&screen(&plan, header, &how.screen(compares_programs))),
    }
}

impl Printing {
    fn screen(&self, compares_programs: bool) -> Screen {
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
