//! `setpoint completions`: what a shell needs to complete our command line.

use clap::Args;
use clap_complete::Shell;
use setpoint_programs::failure::Failure;

use super::grammar;
use crate::exit_code;
use crate::output::Output;

/// Print shell completions
///
/// For example: `setpoint completions bash > /etc/bash_completion.d/setpoint`
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Which shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(output: &Output, arguments: &Arguments) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut grammar(), "setpoint", &mut script);
    output.print(&String::from_utf8_lossy(&script))?;
    Ok(exit_code::DONE)
}
