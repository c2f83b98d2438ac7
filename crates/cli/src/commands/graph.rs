//! `setpoint graph`: what the machine shall be, without touching it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use setpoint_diagnostics::Diagnostics;
use setpoint_engine::FileValues;
use setpoint_graph::{DesiredGraph, dot, json, text};
use setpoint_host::Host;
use setpoint_host::files::AbsolutePath;

use crate::arguments::{ProgramArguments, parse_seconds};
use crate::capabilities::{LocalWorld, ProgramFiles, RealCapabilities};
use crate::compilation::Compilation;
use crate::evaluation::first_graph;
use crate::failure::{Failure, exit_code};
use crate::prefix::Prefix;
use crate::{Assembly, output};

/// Print the desired graph of a program
///
/// Compiles the program, takes the first value of every source and prints the resources and edges that follow. Nothing is
/// changed. On errors the exit code is 1.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    program: ProgramArguments,

    /// How to print it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Working directory of `setpoint run`, whose values and numbers are looked at [default: as there]
    #[arg(long, value_name = "DIR")]
    prefix: Option<PathBuf>,

    /// Seconds that a source has to give its first value
    #[arg(long, value_name = "S", value_parser = parse_seconds, default_value = "10")]
    timeout: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A listing for people
    Text,
    /// One JSON object, diagnostics included
    Json,
    /// The language of Graphviz
    Dot,
}

pub(super) fn run(assembly: &Assembly, arguments: &Arguments) -> Result<u8, Failure> {
    let hostname = arguments.program.hostname()?;
    let options = arguments.program.compile_options(false)?;
    let library = assembly.library(&hostname);
    let mut compilation = Compilation::compile(arguments.program.input()?, &options, &library);
    let mut graph = None;
    let program = compilation
        .compiled
        .as_ref()
        .and_then(|compiled| Some((compiled, compiled.program.clone()?)));
    if let Some((compiled, program)) = program {
        let host = Arc::new(
            Host::new(std::env::var_os("PATH").unwrap_or_default())
                .map_err(|error| Failure::io("prepare for watching files", &error))?,
        );
        let prefix = AbsolutePath::new(Prefix::place(arguments.prefix.clone())?)
            .map_err(|error| Failure::Wrong(format!("the prefix cannot be used: {error}")))?;
        let files = ProgramFiles::new(
            compiled,
            &compilation.loader,
            options.modules_directory.as_deref(),
            format!("{}/local/", prefix.as_path().display()),
        );
        let names = assembly.kinds().iter().map(|kind| kind.schema.kind.to_owned());
        let values = FileValues::new(prefix.join("local/value"), host.committer.clone());
        let capabilities = RealCapabilities::new(&host, &hostname, files)
            .map_err(|error| Failure::io("start the clock", &error))?
            .with_values(Arc::new(values))
            .with_world(Arc::new(LocalWorld::new(
                prefix.join("world"),
                &hostname,
                &host,
                names,
            )));
        let (found, diagnostics) = first_graph(program, Arc::new(capabilities), arguments.timeout);
        compilation.diagnostics.append(diagnostics);
        graph = found;
    }
    let graph = graph.filter(|_| !compilation.diagnostics.has_errors());
    print(arguments.format, graph.as_ref(), &compilation)?;
    Ok(if graph.is_some() {
        exit_code::DONE
    } else {
        exit_code::WRONG
    })
}

fn print(format: Format, graph: Option<&DesiredGraph>, compilation: &Compilation) -> Result<(), Failure> {
    if format == Format::Json {
        let nothing = DesiredGraph::default();
        let object = json::graph_json(
            graph.unwrap_or(&nothing),
            &errors_first(compilation),
            &compilation.sources,
        );
        return output::print(&format!("{object}\n"));
    }
    compilation.talk();
    let Some(graph) = graph else { return Ok(()) };
    match format {
        Format::Dot => output::print(&dot::graph_dot(graph)),
        _ => output::print(&text::graph_text(graph, Some(&compilation.shown_sources()))),
    }
}

/// With errors, the first row is the one that rejects the program, whatever was warned about before.
pub(super) fn errors_first(compilation: &Compilation) -> Diagnostics {
    let mut diagnostics = compilation.diagnostics.clone().into_vec();
    diagnostics.sort_by_key(|diagnostic| diagnostic.severity);
    let mut sorted = Diagnostics::new();
    sorted.extend(diagnostics);
    sorted
}
