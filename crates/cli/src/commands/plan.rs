//! `setpoint plan`: what a run would do, without doing it.

mod arguments;
pub(super) mod making;
mod running;
pub(super) mod saving;
mod unknown;

use std::path::PathBuf;

use clap::Args;
use setpoint_plan::{Action, Plan, markdown, screen};
use setpoint_programs::failure::Failure;
use setpoint_programs::program_input::is_code;

use self::arguments::Format;
pub(super) use self::arguments::{PlanArguments, Printing};
use crate::exit_code;
use crate::output::Output;
use crate::session::Session;

/// Show what a program would change on this machine
///
/// Compares the machine with the program, and changes nothing. The plan takes into account what earlier resources would do: a file can
/// belong to a user that the program creates. A question mark means that the result depends on an earlier resource that has not run. An
/// agent can use the same state directory at the same time. On errors, and if a resource would fail, the exit code is 1.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    plan: PlanArguments,

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

    /// Sign the saved plan with the SSH key in this file
    ///
    /// A private key of OpenSSH without a passphrase. `setpoint apply --signers FILE` checks the signature.
    #[arg(long, value_name = "KEY", requires = "out")]
    sign: Option<PathBuf>,
}

pub(super) fn run(session: &Session, arguments: &Arguments) -> Result<u8, Failure> {
    let output = &session.output;
    let mut request = arguments.plan.request(session)?;
    let Some(plan) = making::make(session, &mut request)? else {
        return Ok(exit_code::WRONG);
    };
    if let Some(file) = &arguments.out {
        saving::write(&plan, file, arguments.sign.as_deref())?;
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
