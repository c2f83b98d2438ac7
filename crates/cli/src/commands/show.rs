//! `setpoint show`: prints a plan that was saved.

use clap::Args;
use setpoint_programs::failure::Failure;

use super::plan::{Printing, print, saving};
use crate::exit_code;
use crate::session::Session;

/// Print a saved plan
///
/// The plan is printed as it was made, also if the machine or the program has changed since.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// File that `setpoint plan --out` has written
    #[arg(value_name = "FILE")]
    file: String,

    #[command(flatten)]
    printing: Printing,
}

pub(super) fn run(session: &Session, arguments: &Arguments) -> Result<u8, Failure> {
    let saved = saving::read_if_plan(&arguments.file)?
        .ok_or_else(|| Failure::wrong(format!("{} is not a plan that was saved", arguments.file)))?;
    let plan = saved.plan;
    let signature = saved.signature.map_or("", |_| ", with a signature");
    let made = jiff::Timestamp::from_second(i64::try_from(plan.made).unwrap_or_default());
    let made = made.map(|made| made.to_string()).unwrap_or_default();
    let header = format!(
        "{} on {} as {}, planned at {made}{signature}",
        plan.program.path, plan.host.name, plan.host.user
    );
    print(&session.output, plan, &header, &arguments.printing)?;
    Ok(exit_code::DONE)
}
