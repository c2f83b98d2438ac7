//! Programs through the real compiler and evaluator.

use std::sync::LazyLock;

use setpoint_diagnostics::{Diagnostics, MemoryLoader, Severity, SourceMap};
use setpoint_flow::Evaluator;
use setpoint_graph::Library;
use setpoint_mcl::{CompileOptions, Entry, compile};
use setpoint_simulated::SimulatedCapabilities;
use setpoint_value::{Registry, Wake};

use super::resources::{Graph, lines};

static LIBRARY: LazyLock<Library> = LazyLock::new(|| {
    let functions = Registry::new(setpoint_functions::MODULES.iter().copied());
    Library::new(
        functions,
        setpoint_resources::KINDS.iter().map(|kind| kind.schema),
    )
});

/// What becomes of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Result {
    /// It has this graph.
    Graph(Graph),
    /// It compiles and fails, or would fail: a code of the stages after *type*.
    Fails(&'static str, String),
    /// It is refused before: the code and message of the first error.
    Refused(&'static str, String),
}

/// Compiles and evaluates the program whose entry is the file `main.mcl`.
pub(crate) fn run(files: &MemoryLoader) -> Result {
    let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let entry = Entry::File("main.mcl".to_owned());
    let options = CompileOptions::default();
    let compiled = compile(&entry, &options, files, &LIBRARY, &mut sources, &mut diagnostics);
    let Some(program) = compiled.program else {
        return first_error(&diagnostics);
    };
    let machine = SimulatedCapabilities::new().without_effects();
    let mut evaluator = Evaluator::new(program, machine.shared(), Box::new(|_| Wake::new(|| ())));
    let step = evaluator.step(&[]);
    match &step.graph {
        Some(graph) => Result::Graph(lines(graph)),
        None => first_error(&step.diagnostics),
    }
}

fn first_error(diagnostics: &Diagnostics) -> Result {
    let first = diagnostics
        .iter()
        .find(|diagnostic| diagnostic.severity == Severity::Error);
    let Some(first) = first else {
        return Result::Refused("none", "there is neither a graph nor an error".to_owned());
    };
    let code = first.code.code;
    if code.starts_with("E03") || code.starts_with("E04") {
        Result::Fails(code, first.message.clone())
    } else {
        Result::Refused(code, first.message.clone())
    }
}
