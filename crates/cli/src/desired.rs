//! The first desired graph of a program, as an engine would take it, without touching the machine.

use std::time::Duration;

use setpoint_engine::{Additions, Preparation, additions};
use setpoint_graph::{DesiredGraph, Finding, UnknownPart};
use setpoint_programs::failure::Failure;
use setpoint_programs::languages::compilation::Compilation;
use setpoint_programs::languages::evaluation::first_graph;
use setpoint_programs::languages::included_models::News;
use setpoint_programs::local_machine::LocalMachine;

use crate::session::Session;

/// The first graph of a program.
#[derive(Default)]
pub(crate) struct Desired {
    /// None if there are errors, which are among the diagnostics of the compilation.
    pub(crate) graph: Option<DesiredGraph>,
    /// What an engine would add by itself.
    pub(crate) additions: Additions,
    /// What the graph lacks because it is not known.
    pub(crate) unknown: Vec<UnknownPart>,
}

/// How a program is evaluated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Evaluating {
    /// How long it may take.
    pub(crate) timeout: Duration,
    /// Whether this machine is asked for nothing.
    pub(crate) pure: bool,
    pub(crate) preparation: Preparation,
}

/// Evaluates a compiled program. What is wrong with it is added to its diagnostics.
///
/// # Errors
/// When its files cannot be read.
pub(crate) fn desired(
    session: &Session,
    compilation: &mut Compilation,
    machine: &LocalMachine,
    evaluating: Evaluating,
) -> Result<Desired, Failure> {
    let compiled = compilation.compiled.as_ref();
    let Some(program) = compiled.and_then(|compiled| compiled.program.clone()) else {
        return Ok(Desired::default());
    };
    let language = program.language;
    let capabilities =
        machine.capabilities(compilation.program_files(machine.state_of_programs())?, false)?;
    let Evaluating { timeout, pure, .. } = evaluating;
    let first = first_graph(program, capabilities, &compilation.models, timeout, pure);
    compilation.refresh();
    News::report(&compilation.models.news(), &session.output);
    let mut found = first.diagnostics;
    found.merge(&compilation.sources);
    compilation.diagnostics.append(found);
    let mut desired = Desired {
        graph: first.graph.filter(|_| !compilation.diagnostics.has_errors()),
        unknown: first.unknown,
        ..Desired::default()
    };
    if let Some(graph) = &desired.graph {
        match would_add(session, evaluating.preparation, graph) {
            Ok(additions) => desired.additions = additions,
            Err(refused) => {
                let told = refused.into_iter().map(|finding| finding.tell(language));
                compilation.diagnostics.extend(told);
                desired.graph = None;
            }
        }
    }
    Ok(desired)
}

/// What an engine would add to a graph by itself, or why it would refuse it.
pub(crate) fn would_add(
    session: &Session,
    preparation: Preparation,
    graph: &DesiredGraph,
) -> Result<Additions, Vec<Finding>> {
    let kinds: Vec<_> = session.assembly.all_kinds().copied().collect();
    additions(&kinds, preparation, graph)
}
