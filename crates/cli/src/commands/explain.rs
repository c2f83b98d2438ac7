//! `setpoint explain`: the page of a code.

use std::fmt::Write;

use clap::Args;
use setpoint_diagnostics::did_you_mean;
use setpoint_programs::codes;
use setpoint_programs::failure::Failure;

use crate::exit_code;
use crate::output::Output;

use crate::page;

/// Explain the code of an error or warning
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The code, `E0101`; without it all codes are listed
    code: Option<String>,
}

pub(super) fn run(output: &Output, arguments: &Arguments) -> Result<u8, Failure> {
    let Some(code) = &arguments.code else {
        let mut list = String::new();
        for code in codes::all() {
            let _ = writeln!(list, "{}  {:11}  {}", code.code, code.stage.name(), code.summary);
        }
        output.print(&list)?;
        return Ok(exit_code::DONE);
    };
    let Some(page) = page(code) else {
        let upper = code.to_ascii_uppercase();
        let help = did_you_mean(&upper, codes::all().iter().map(|code| code.code));
        let help = help.unwrap_or_else(|| "`setpoint explain` lists all codes".to_owned());
        return Err(Failure::wrong(format!("there is no code `{code}`")).hint_if(Some(help)));
    };
    output.print(page)?;
    Ok(exit_code::DONE)
}
