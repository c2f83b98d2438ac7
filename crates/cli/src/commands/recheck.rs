//! `setpoint poke`: looks at resources again.

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
    /// Which, `file[/etc/motd]`
    #[arg(value_name = "KIND[NAME]", required = true)]
    resources: Vec<String>,

    /// Say nothing but what went wrong
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    process: ProcessArguments,
}

pub(super) fn run(output: &Output, arguments: &Arguments) -> Result<u8, Failure> {
    let mut client = arguments.process.connect()?;
    client.ask(Ask::Poke {
        resources: arguments.resources.clone(),
    })?;
    let Answer::Poke { paused, .. } = client.answer()? else {
        return Err(client.strange());
    };
    if !arguments.quiet {
        let (what, is) = match arguments.resources.as_slice() {
            [one] => (visible(one).into_owned(), "is"),
            all => (format!("{} resources", all.len()), "are"),
        };
        let when = match paused {
            false => "again",
            true => "after `setpoint resume`: there is a pause",
        };
        output.say(Importance::Notice, format!("{what} {is} looked at {when}"));
    }
    Ok(exit_code::DONE)
}
