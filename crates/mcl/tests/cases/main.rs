//! The cases of the stages *parse*, *format* and *analysis*.

mod analysis;

use std::process::ExitCode;

use setpoint_diagnostics::{Diagnostics, SourceMap};
use setpoint_mcl::{format, syntax};
use setpoint_testing::cases::{self, Case, Sections, Stage, diagnostics_text};

fn main() -> ExitCode {
    cases::main(&[Stage::Parse, Stage::Format, Stage::Analysis], run)
}

fn run(case: &Case) -> Result<String, String> {
    if case.stage == Stage::Analysis {
        return analysis::run(case);
    }
    let text = case.text()?;
    let name = case
        .path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let mut sources = SourceMap::new();
    let file = sources.add(name.unwrap_or_default(), text.as_str());
    let mut sections = Sections::new();
    let mut diagnostics = Diagnostics::new();
    match case.stage {
        Stage::Format => match format::format_file(file, &text) {
            Ok(formatted) => return Ok(formatted),
            Err(format::FormatError::Syntax(found)) => diagnostics = found,
            Err(error) => return Err(error.to_string()),
        },
        _ => {
            syntax::parse(file, &text, &mut diagnostics);
        }
    }
    sections.add("diagnostics", &diagnostics_text(&diagnostics, &sources));
    if !diagnostics.has_errors() {
        // What was understood, in the one spelling there is for it.
        sections.add(
            "understood as",
            &format::format_file(file, &text).map_err(|error| error.to_string())?,
        );
    }
    Ok(sections.finish())
}
