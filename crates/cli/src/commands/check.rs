//! `setpoint check`: everything that can be said about a program without running it.

mod constants;
mod fix;
mod model;

use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum};
use serde_json::json;
use setpoint_agent::runner::NO_RESOURCES;
use setpoint_diagnostics::{Diagnostic, Diagnostics, FileId, Span};
use setpoint_graph::json::diagnostics_json;
use setpoint_mcl::format;
use setpoint_mcl::syntax::{StmtKind, parse};
use setpoint_programs::codes::UNFORMATTED;
use setpoint_programs::failure::Failure;
use setpoint_programs::languages::compilation::Compilation;
use setpoint_programs::report::{Importance, errors_first};

use super::modules::follow_imports;
use crate::arguments::{ModuleArguments, ProgramArguments};
use crate::exit_code;
use crate::process::use_huge_pages;
use crate::session::Session;

/// Check a program without changing the machine
///
/// Checks syntax, modules, names, types, values, resources, edges and layout. Values that depend on a machine, such as facts, files
/// and the time, stay unknown.
///
/// An unformatted file is a warning. Use `setpoint fmt --check` if it must be an error.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    program: ProgramArguments,

    #[command(flatten)]
    modules: ModuleArguments,

    /// State directory with the modules [default: as for `setpoint run`]
    #[arg(long = "state-dir", alias = "prefix", value_name = "DIR")]
    prefix: Option<PathBuf>,

    /// Print the diagnostics as one JSON object
    #[arg(long)]
    json: bool,

    /// Do not infer types
    #[arg(long)]
    skip_unify: bool,

    /// Do not look for what is probably not meant so
    #[arg(long)]
    skip_lint: bool,

    /// Change what can be mended for certain, then check
    #[arg(long, conflicts_with_all = ["skip_lint", "skip_unify"])]
    fix: bool,

    /// Fail also for these
    #[arg(long, value_enum, value_name = "WHAT")]
    deny: Option<Deny>,

    /// Do not look at the layout
    #[arg(long)]
    skip_fmt: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Deny {
    /// Warnings of all sorts
    Warnings,
}

pub(super) fn run(session: &Session, arguments: &Arguments) -> Result<u8, Failure> {
    use_huge_pages(true);
    let output = &session.output;
    let input = arguments.program.parse(output)?;
    if let Some(model) = input.model(&session.assembly, output)? {
        return model::check(output, &model, arguments);
    }
    let mut source = session.program(
        &input,
        arguments.modules.policy(output),
        arguments.prefix.clone(),
        arguments.skip_unify,
    )?;
    if arguments.modules.only_download {
        return follow_imports(source, output);
    }
    if !input.has_hostname {
        source.without_hostname();
    }
    source.lint = !arguments.skip_lint && !arguments.skip_unify;
    let begin = Instant::now();
    let mut compilation = source.fetch_and_compile(output)?;
    if arguments.fix && fix::fix(&source, &compilation, output)? {
        compilation = source.compile();
    }
    if !arguments.skip_unify && !compilation.diagnostics.has_errors() {
        constants::evaluate(
            session,
            &mut compilation,
            &input.hostname,
            arguments.prefix.clone(),
        )?;
    }
    let took = begin.elapsed();
    if !arguments.skip_fmt {
        check_layout(&mut compilation);
    }
    let is_denied = arguments.deny == Some(Deny::Warnings) && !compilation.diagnostics.is_empty();
    let failed = compilation.diagnostics.has_errors() || is_denied;
    let program = compilation
        .compiled
        .as_ref()
        .and_then(|compiled| compiled.program.as_ref());
    if program.is_some_and(|program| !program.can_have_resources()) && !is_for_others(&compilation) {
        output.warning(NO_RESOURCES);
    }
    if arguments.json {
        let diagnostics = diagnostics_json(&errors_first(&compilation.diagnostics), &compilation.sources);
        output.print(&format!("{}\n", json!({ "diagnostics": diagnostics })))?;
    } else {
        compilation.report(output);
        if !failed {
            let files = compilation.sources.files().count();
            let files = if files == 1 {
                "1 file".to_owned()
            } else {
                format!("{files} files")
            };
            let text = format!("checked {files} in {:.1} ms", took.as_secs_f64() * 1e3);
            output.say(Importance::Info, text);
        }
    }
    // The process ends: the system takes its memory back at once, while freeing a large program piece by piece takes about
    // as long as checking it.
    std::mem::forget(compilation);
    Ok(if failed { exit_code::WRONG } else { exit_code::DONE })
}

/// Whether the program's first file defines classes or functions: then it may be a module, which others import.
fn is_for_others(compilation: &Compilation) -> bool {
    let Some((id, file)) = compilation.sources.files().next() else {
        return false;
    };
    // What is wrong with it was reported.
    let ast = parse(id, &file.text, &mut Diagnostics::new()).ast;
    let mut statements = ast.root.statements.iter().map(|stmt| &ast.stmt(*stmt).kind);
    statements.any(|kind| matches!(kind, StmtKind::Class(_) | StmtKind::Func(_)))
}

/// Warns of every file of the program whose layout is not the formatter's. What does not parse was reported already.
fn check_layout(compilation: &mut Compilation) {
    // The layout of YAML is nobody's business.
    if compilation.input.as_ref().is_some_and(|input| input.is_yaml) {
        return;
    }
    let mut warnings = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for (id, file) in compilation.sources.files() {
        // A file that is imported twice is there twice.
        if seen.contains(&&*file.name) {
            continue;
        }
        seen.push(&file.name);
        let parsed = compilation.analysis.as_ref().and_then(|known| known.parsed(id));
        let formatted = match parsed {
            Some(parsed) => format::format_parsed(id, parsed),
            None => format::format_file(id, &file.text),
        };
        let Ok(formatted) = formatted else {
            continue;
        };
        if formatted == *file.text {
            continue;
        }
        let name = compilation
            .input
            .as_ref()
            .map_or(file.name.to_string(), |input| input.shown(&file.name));
        warnings.push(unformatted(id, &file.text, &formatted, &name));
    }
    for warning in warnings {
        compilation.diagnostics.push(warning);
    }
}

/// The warning about a file whose layout is not the formatter's.
fn unformatted(id: FileId, text: &str, formatted: &str, name: &str) -> Diagnostic {
    let same = text
        .bytes()
        .zip(formatted.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let line = text
        .bytes()
        .take(same)
        .rposition(|b| b == b'\n')
        .map_or(0, |at| at as u32 + 1);
    let end = text[line as usize..]
        .find('\n')
        .map_or(text.len() as u32, |at| line + at as u32);
    let warning = Diagnostic::warning(
        &UNFORMATTED,
        Span::new(id, line, end),
        "the file is not formatted",
    );
    let help = match name.starts_with('<') {
        true => "`setpoint fmt` formats files".to_owned(),
        false => format!("`setpoint fmt {name}` formats it"),
    };
    warning.label("the first line that differs").help(help)
}
