//! `setpoint debug`: of whom a running process says more.

use clap::{Args, Subcommand};

use crate::control::client::Client;
use crate::control::protocol::{Answer, Ask};
use crate::failure::{Failure, exit_code};
use crate::output::Output;
use crate::prefix::ProcessArguments;

/// Let a running `setpoint run` say more of some resources and functions
///
/// As `setpoint run --debug` does, but while it runs: the lines are where its others are, and in `setpoint events`. Afterwards it prints of whom
/// debug output is wanted.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    change: Option<Change>,

    #[command(flatten)]
    process: ProcessArguments,
}

#[derive(Debug, Subcommand)]
enum Change {
    /// Say more of these, too
    On {
        /// A kind, a resource `file[/etc/motd]`, a function `os.readfile`, or `all`
        #[arg(value_name = "WHOM", required = true)]
        whom: Vec<String>,
    },
    /// Say no more of these, or of anybody
    Off {
        /// As for `on` [default: all]
        #[arg(value_name = "WHOM")]
        whom: Vec<String>,
    },
}

pub(super) fn run(output: &Output, arguments: &Arguments) -> Result<u8, Failure> {
    let mut client = Client::connect(&arguments.process)?;
    let (on, off) = match &arguments.change {
        None => (Vec::new(), Vec::new()),
        Some(Change::On { whom }) => (whom.clone(), Vec::new()),
        Some(Change::Off { whom }) if whom.is_empty() => (Vec::new(), vec!["all".to_owned()]),
        Some(Change::Off { whom }) => (Vec::new(), whom.clone()),
    };
    client.ask(Ask::Debug { on, off })?;
    let Answer::Debug { on, .. } = client.answer()? else {
        return Err(client.strange());
    };
    let text = match on.as_slice() {
        [] => "debug output of nobody\n".to_owned(),
        words => words.iter().map(|word| format!("{word}\n")).collect(),
    };
    output.print(&text)?;
    Ok(exit_code::DONE)
}
