//! The first desired graph of a program, as an engine would take it, without touching the machine.

use std::time::Duration;

use setpoint_engine::{Additions, Preparation, additions};
use setpoint_graph::{DesiredGraph, Finding, ResourceId, UnknownPart};
use setpoint_programs::SourceAccess;
use setpoint_programs::failure::Failure;
use setpoint_programs::languages::compilation::Compilation;
use setpoint_programs::languages::evaluation::first_graph;
use setpoint_programs::languages::included_models::News;
use setpoint_programs::local_machine::LocalMachine;

use crate::session::Session;

/// The first graph of a program.
#[derive(Default)]
pub(crate) struct Desired {
    /// None if there are errors. They are among the diagnostics of the compilation.
    pub(crate) graph: Option<DesiredGraph>,
    /// The edges and groups that an engine adds.
    pub(crate) additions: Additions,
    /// Parts that the graph lacks because they are unknown.
    pub(crate) unknown: Vec<UnknownPart>,
    /// Whether the time was over before all was computed.
    pub(crate) is_stopped: bool,
}

/// The way to evaluate a program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Evaluating {
    /// The time that it may take.
    pub(crate) timeout: Duration,
    /// Whether the machine is left alone.
    pub(crate) pure: bool,
    pub(crate) preparation: Preparation,
}

/// Evaluates a compiled program, and adds its errors to its diagnostics.
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
    let capabilities = machine.capabilities(
        compilation.program_files(machine.state_of_programs())?,
        SourceAccess::Read,
    )?;
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
        is_stopped: first.is_stopped,
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

/// Computes the edges and groups that an engine adds to a graph, or the reasons to refuse it.
pub(crate) fn would_add(
    session: &Session,
    preparation: Preparation,
    graph: &DesiredGraph,
) -> Result<Additions, Vec<Finding>> {
    let kinds: Vec<_> = session.assembly.all_kinds().copied().collect();
    let is_known = |id: &ResourceId| kinds.iter().any(|spec| *spec.schema.kind == *id.kind);
    if !graph.resources.keys().all(is_known) {
        // A part of a model that only its language knows.
        return Ok(Additions::default());
    }
    additions(&kinds, preparation, graph)
}
