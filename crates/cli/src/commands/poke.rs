//! `setpoint poke`: looks at resources again.

use clap::Args;

use crate::control::client::Client;
use crate::control::protocol::{Answer, Ask};
use crate::failure::{Failure, exit_code};
use crate::output::{Importance, Output};
use crate::prefix::ProcessArguments;

/// Let a running `setpoint run` look at resources again
///
/// What has failed for good begins anew. If one of the resources is not there, nothing is done.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Which, `file[/etc/motd]`
    #[arg(value_name = "KIND[NAME]", required = true)]
    resources: Vec<String>,

    #[command(flatten)]
    process: ProcessArguments,
}

pub(super) fn run(output: &Output, arguments: &Arguments) -> Result<u8, Failure> {
    let mut client = Client::connect(&arguments.process)?;
    client.ask(Ask::Poke {
        resources: arguments.resources.clone(),
    })?;
    let Answer::Poke { paused, .. } = client.answer()? else {
        return Err(client.strange());
    };
    if paused {
        output.say(
            Importance::Notice,
            "it is looked at after `setpoint resume`: there is a pause",
        );
    }
    Ok(exit_code::DONE)
}
