//! `setpoint pause` and `setpoint resume`.

use clap::Args;

use crate::control::client::Client;
use crate::control::protocol::{Answer, Ask};
use crate::failure::{Failure, exit_code};
use crate::output::{Importance, Output};
use crate::prefix::ProcessArguments;

/// Let a running `setpoint run` change nothing until `setpoint resume`
///
/// What is under way comes to its end, and nothing new begins. What happens meanwhile is noticed, and looked at afterwards.
#[derive(Debug, Args)]
pub(super) struct PauseArguments {
    #[command(flatten)]
    process: ProcessArguments,
}

/// Let a running `setpoint run` go on after `setpoint pause`
#[derive(Debug, Args)]
pub(super) struct ResumeArguments {
    #[command(flatten)]
    process: ProcessArguments,
}

pub(super) fn pause(output: &Output, arguments: &PauseArguments) -> Result<u8, Failure> {
    let mut client = Client::connect(&arguments.process)?;
    client.ask(Ask::Pause {})?;
    match client.answer()? {
        Answer::Pause {
            was_paused: false, ..
        } => {}
        Answer::Pause { was_paused: true, .. } => output.say(Importance::Notice, "it was paused already"),
        _ => return Err(client.strange()),
    }
    Ok(exit_code::DONE)
}

pub(super) fn resume(output: &Output, arguments: &ResumeArguments) -> Result<u8, Failure> {
    let mut client = Client::connect(&arguments.process)?;
    client.ask(Ask::Resume {})?;
    match client.answer()? {
        Answer::Resume { was_paused: true, .. } => {}
        Answer::Resume {
            was_paused: false, ..
        } => output.say(Importance::Notice, "it was not paused"),
        _ => return Err(client.strange()),
    }
    Ok(exit_code::DONE)
}
