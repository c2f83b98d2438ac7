//! Printing: standard output is what was asked for, standard error is talk. A closed pipe ends quietly.

use std::io::{IsTerminal, Write};

use anstream::AutoStream;
use setpoint_diagnostics::{Diagnostics, RenderStyle, Severity, SourceMap, render};

use crate::failure::Failure;

/// Prints what was asked for.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::io("write to standard output", &error))
}

/// Says something beside. That nobody listens is no reason to stop.
pub(crate) fn talk(text: &str) {
    let mut stderr = AutoStream::auto(std::io::stderr()).lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// Says what is wrong with a program: everything, in the order in which it counts.
pub(crate) fn talk_diagnostics(diagnostics: &Diagnostics, sources: &SourceMap) {
    let text = diagnostics_text(diagnostics, sources, terminal_style());
    talk(&text);
}

fn diagnostics_text(diagnostics: &Diagnostics, sources: &SourceMap, style: RenderStyle) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics {
        text.push_str(&render(diagnostic, sources, style));
        text.push_str("\n\n");
    }
    let errors = diagnostics
        .iter()
        .filter(|d| d.severity == Severity::Error)
        .count();
    if let Some(first) = diagnostics.iter().find(|d| d.severity == Severity::Error) {
        let count = if errors == 1 {
            String::new()
        } else {
            format!("{errors} errors; ")
        };
        text.push_str(&format!(
            "{count}`setpoint explain {}` tells more\n",
            first.code.code
        ));
    }
    text
}

/// How diagnostics look on standard error.
fn terminal_style() -> RenderStyle {
    let stderr = std::io::stderr();
    let is_terminal = stderr.is_terminal();
    let columns = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    let measured = || {
        rustix::termios::tcgetwinsize(&stderr)
            .ok()
            .map(|size| usize::from(size.ws_col))
    };
    let width = columns
        .or_else(|| measured().filter(|_| is_terminal))
        .filter(|width| *width > 0);
    RenderStyle {
        // `anstream` takes the escapes out again where they are not wanted.
        colour: true,
        width: width.unwrap_or(RenderStyle::PLAIN.width),
        unicode: false,
    }
}
