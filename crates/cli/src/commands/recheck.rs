//! `setpoint recheck`: checks resources now.

use clap::Args;
use setpoint_agent::control::protocol::{Answer, Ask};
use setpoint_diagnostics::visible;
use setpoint_programs::failure::Failure;
use setpoint_programs::report::Importance;

use crate::exit_code;
use crate::output::Output;
use crate::prefix_arguments::ProcessArguments;

/// Check resources again now
///
/// Resources that have given up start again. If one of the named resources does not exist, the command does nothing.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Resources, such as `file[/etc/motd]`
    #[arg(value_name = "KIND[NAME]", required = true)]
    resources: Vec<String>,

    /// Print only errors
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    process: ProcessArguments,
}

pub(super) fn run(output: &Output, arguments: &Arguments) -> Result<u8, Failure> {
    let mut client = arguments.process.connect()?;
    client.ask(Ask::Recheck {
        resources: arguments.resources.clone(),
    })?;
    let Answer::Recheck { paused, .. } = client.answer()? else {
        return Err(client.strange());
    };
    if !arguments.quiet {
        let (what, is) = match arguments.resources.as_slice() {
            [one] => (visible(one).into_owned(), "is"),
            all => (format!("{} resources", all.len()), "are"),
        };
        let when = match paused {
            false => "again",
            true => "after `setpoint resume`: the agent is paused",
        };
        output.say(Importance::Notice, format!("{what} {is} checked {when}"));
    }
    Ok(exit_code::DONE)
}
