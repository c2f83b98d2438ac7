//! `setpoint debug`: of whom a running process says more.

use clap::{Args, Subcommand};
use setpoint_agent::control::client::missing;
use setpoint_agent::control::protocol::{Answer, Ask};
use setpoint_diagnostics::visible;
use setpoint_programs::failure::Failure;

use crate::exit_code;
use crate::output::Output;
use crate::prefix_arguments::ProcessArguments;

/// Enable debug output for resources or functions
///
/// Works like `setpoint run --debug`, for an agent that already runs. The output goes to the log of the agent and to `setpoint
/// events`. The command prints the active debug filters.
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
    let mut client = arguments.process.connect()?;
    let (on, off) = match &arguments.change {
        None => (Vec::new(), Vec::new()),
        Some(Change::On { whom }) => (whom.clone(), Vec::new()),
        Some(Change::Off { whom }) if whom.is_empty() => (Vec::new(), vec!["all".to_owned()]),
        Some(Change::Off { whom }) => (Vec::new(), whom.clone()),
    };
    client.ask(Ask::Debug { on, off })?;
    let Answer::Debug {
        on,
        still_on,
        unknown,
        ..
    } = client.answer()?
    else {
        return Err(client.strange());
    };
    for resource in &unknown {
        output.warning(missing(resource, "debug output is wanted of it when it comes"));
    }
    for word in &still_on {
        let by = match on.iter().any(|on| on == "all") {
            true => "all",
            false => "its kind",
        };
        output.warning(format!(
            "debug output of `{}` goes on, because it is wanted of {by}\n  \
             help: `setpoint debug off` ends all; then `setpoint debug on` names those that you want",
            visible(word)
        ));
    }
    let text = match on.as_slice() {
        [] => "debug output of nobody\n".to_owned(),
        words => words.iter().map(|word| format!("{word}\n")).collect(),
    };
    output.print(&text)?;
    Ok(match still_on.is_empty() {
        true => exit_code::DONE,
        false => exit_code::WRONG,
    })
}
