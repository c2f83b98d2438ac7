//! `setpoint reload`: the program of a running process is read again.

use clap::Args;
use setpoint_agent::control::protocol::{Answer, Ask};
use setpoint_programs::failure::Failure;
use setpoint_programs::report::Importance;

use crate::exit_code;
use crate::output::Output;
use crate::prefix_arguments::ProcessArguments;

/// Reload the program of the running agent
///
/// Waits until the new program is in use. If it is wrong, the old one stays in use, and the exit code is 1.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Say nothing but what went wrong
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    process: ProcessArguments,
}

pub(super) fn run(output: &Output, arguments: &Arguments) -> Result<u8, Failure> {
    let mut client = arguments.process.connect()?;
    client.ask(Ask::Reload {})?;
    // Compiling, and first values of sources, take as long as they take.
    client.set_patience(None)?;
    match client.answer()? {
        Answer::Reload { wrong: None, .. } => {
            if !arguments.quiet {
                output.say(Importance::Notice, "the program was read again");
            }
            Ok(exit_code::DONE)
        }
        Answer::Reload {
            wrong: Some(wrong), ..
        } => Err(Failure::wrong(format!("the new program is not used: {wrong}"))
            .hint("the machine is kept as the program was before; `setpoint check` shows more")),
        _ => Err(client.strange()),
    }
}
