//! `setpoint pause` and `setpoint resume`.

use clap::Args;
use setpoint_agent::control::protocol::{Answer, Ask};
use setpoint_programs::failure::Failure;
use setpoint_programs::report::Importance;

use crate::exit_code;
use crate::output::Output;
use crate::prefix_arguments::ProcessArguments;
use crate::view::span_text;

/// Pause repairs until `setpoint resume`
///
/// Runs in progress finish, and no new runs start. The agent still notices changes, and checks the resources after `setpoint
/// resume`.
#[derive(Debug, Args)]
pub(super) struct PauseArguments {
    /// Say nothing but what went wrong
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    process: ProcessArguments,
}

/// Resume repairs after `setpoint pause`
#[derive(Debug, Args)]
pub(super) struct ResumeArguments {
    /// Say nothing but what went wrong
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    process: ProcessArguments,
}

pub(super) fn pause(output: &Output, arguments: &PauseArguments) -> Result<u8, Failure> {
    let mut client = arguments.process.connect()?;
    client.ask(Ask::Pause {})?;
    let Answer::Pause { was_paused, .. } = client.answer()? else {
        return Err(client.strange());
    };
    if !arguments.quiet {
        let text = match was_paused {
            false => "paused: no runs begin until `setpoint resume`",
            true => "it was paused already",
        };
        output.say(Importance::Notice, text);
    }
    Ok(exit_code::DONE)
}

pub(super) fn resume(output: &Output, arguments: &ResumeArguments) -> Result<u8, Failure> {
    let mut client = arguments.process.connect()?;
    client.ask(Ask::Resume {})?;
    let Answer::Resume {
        was_paused,
        paused_for,
        ..
    } = client.answer()?
    else {
        return Err(client.strange());
    };
    if !arguments.quiet {
        let text = match (was_paused, paused_for) {
            (true, Some(span)) => format!("resumed, after a pause of {}", span_text(span)),
            (true, None) => "resumed".to_owned(),
            (false, _) => "it was not paused".to_owned(),
        };
        output.say(Importance::Notice, text);
    }
    Ok(exit_code::DONE)
}
