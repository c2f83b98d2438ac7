//! From statements to the desired graph.
//!
//! Each statement gives an output under a key that orders statements as the program does. What changed since the last graph
//! is collected here; when nothing is pending and nothing wrong, it goes to the assembler in one piece.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use setpoint_diagnostics::{Diagnostic, Diagnostics};
use setpoint_graph::{
    Assembler, DesiredGraph, Link, StatementOutput, UnknownPart, UnknownWhat, build_collect, build_edge,
    build_resource,
};
use setpoint_value::{Type, Value};
use smallvec::SmallVec;

use super::arena::{Kind, Output, Reference, Site};
use super::computation::guarded;
use super::environment::EnvironmentId;
use super::errors::with_chain;
use super::{Evaluator, Pending, Step};
use crate::{EvaluationProblem, Expansion, Language, Operation, Slot};

/// Where a statement stands: the nodes from the entry inwards, with the indexes of loop elements between them.
pub(super) type OutputKey = SmallVec<[u32; 4]>;

/// What statements give, and what of it the assembler has.
pub(super) struct Outputs {
    changes: FxHashMap<OutputKey, Change>,
    /// What is wrong with statements, by statement.
    diagnostics: BTreeMap<OutputKey, Diagnostics>,
    /// What is unknown about statements, by statement.
    unknown: BTreeMap<OutputKey, Vec<UnknownPart>>,
    assembler: Assembler<OutputKey>,
    /// What was wrong with the graph as a whole when it was last assembled.
    assembling: Diagnostics,
    /// Generation of the graph that was given out last; none before the first.
    given_out: Option<u64>,
    /// Whether it was assembled at all.
    assembled: bool,
}

/// What became of a statement since the graph was last assembled.
struct Change {
    before: Option<Arc<StatementOutput>>,
    now: Option<Arc<StatementOutput>>,
}

impl Outputs {
    /// No statements yet; `language` is theirs.
    pub(super) fn new(language: &'static dyn Language) -> Outputs {
        Outputs {
            changes: FxHashMap::default(),
            diagnostics: BTreeMap::new(),
            unknown: BTreeMap::new(),
            assembler: Assembler::new(language),
            assembling: Diagnostics::new(),
            given_out: None,
            assembled: false,
        }
    }

    /// A statement that gave `before` (since the graph was last assembled, or the last call of this) gives `now`.
    pub(super) fn record(
        &mut self,
        key: OutputKey,
        before: Option<Arc<StatementOutput>>,
        now: Option<Arc<StatementOutput>>,
    ) {
        self.changes
            .entry(key)
            .or_insert(Change { before, now: None })
            .now = now;
    }

    /// Forgets what was wrong with or unknown about a statement.
    pub(super) fn clear_notes(&mut self, key: &OutputKey) {
        self.diagnostics.remove(key);
        self.unknown.remove(key);
    }

    fn note(&mut self, key: &OutputKey, output: &StatementOutput, diagnostics: Diagnostics) {
        self.clear_notes(key);
        if !diagnostics.is_empty() {
            self.diagnostics.insert(key.clone(), diagnostics);
        }
        if !output.unknown.is_empty() {
            self.unknown.insert(key.clone(), output.unknown.clone());
        }
    }

    /// Assembles the graph if anything changed.
    fn assemble(&mut self) -> Option<DesiredGraph> {
        let mut changes: Vec<(OutputKey, Option<Arc<StatementOutput>>)> = self
            .changes
            .drain()
            .filter(|(_, change)| match (&change.before, &change.now) {
                (None, None) => false,
                (Some(before), Some(now)) => !Arc::ptr_eq(before, now) && !before.is_same(now),
                _ => true,
            })
            .map(|(key, change)| (key, change.now))
            .collect();
        if changes.is_empty() && self.assembled {
            return None;
        }
        changes.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        self.assembled = true;
        match self.assembler.apply(changes) {
            Ok(graph) => {
                self.assembling = Diagnostics::new();
                let is_new = self.given_out != Some(graph.generation);
                self.given_out = Some(graph.generation);
                is_new.then_some(graph)
            }
            Err(diagnostics) => {
                self.assembling = diagnostics;
                None
            }
        }
    }
}

/// What a statement gives for the values of its operands.
fn build(
    operation: &Operation,
    chain: Option<&Arc<Link>>,
    slots: &[Slot],
    values: &[Value],
    language: &dyn Language,
    expansion: Option<&dyn Expansion>,
) -> (StatementOutput, Diagnostics) {
    let value = |slot: &Slot| match slots.binary_search(slot).ok().and_then(|at| values.get(at)) {
        Some(value) => value.clone(),
        None => Value::Null(Type::Dynamic),
    };
    let mut diagnostics = Diagnostics::new();
    let (built, span) = match operation {
        Operation::Resource(statement) => {
            let build = || {
                Ok(build_resource(
                    statement,
                    chain,
                    &value,
                    language,
                    &mut diagnostics,
                ))
            };
            (guarded(&statement.kind, build), statement.span)
        }
        Operation::Collect { statement, exports } => {
            let build = || {
                Ok(build_collect(
                    statement,
                    &value(exports),
                    chain,
                    &value,
                    language,
                    &mut diagnostics,
                ))
            };
            (guarded(&statement.kind, build), statement.span)
        }
        Operation::Edge(statement) => {
            let build = || Ok(build_edge(statement, &value, language, &mut diagnostics));
            (guarded(&"an edge", build), statement.span)
        }
        _ => return (StatementOutput::default(), diagnostics),
    };
    let output = built.unwrap_or_else(|error| {
        let what = EvaluationProblem::Fatal;
        let found = Diagnostic::error(language.evaluation_code(what), span, error.to_string());
        diagnostics.push(language.complete_evaluation(what, found));
        StatementOutput::default()
    });
    let output = match expansion {
        Some(expansion) => expanded(output, expansion, &mut diagnostics),
        None => output,
    };
    if chain.is_some() && !diagnostics.is_empty() {
        let found = std::mem::take(&mut diagnostics);
        diagnostics.extend(found.into_iter().map(|found| with_chain(found, chain)));
    }
    (output, diagnostics)
}

/// An output with what its resources stand for in their place.
fn expanded(
    mut output: StatementOutput,
    expansion: &dyn Expansion,
    diagnostics: &mut Diagnostics,
) -> StatementOutput {
    for resource in std::mem::take(&mut output.resources) {
        match expansion.expand(&resource, diagnostics) {
            None => output.resources.push(resource),
            Some(described) => {
                output.resources.extend(described.resources);
                output.edges.extend(described.edges);
                output.unknown.extend(described.unknown);
                // Each of these edges has a place of its own.
                output.span = None;
            }
        }
    }
    output
}

impl Evaluator {
    /// Puts a resource or edge statement in place.
    pub(super) fn make_output(
        &mut self,
        environment: EnvironmentId,
        site: Site,
        operation: &Operation,
        operands: &[Reference],
    ) {
        let Some(around) = self.environments.get(environment.0) else {
            return;
        };
        let mut key = around.path.clone();
        key.push(site.node);
        let (scope, chain) = (around.scope, around.chain.clone());
        let constants: Option<SmallVec<[Value; 8]>> = operands
            .iter()
            .map(|operand| match operand {
                Reference::Constant(value) => Some(value.clone()),
                Reference::Node(_) => None,
            })
            .collect();
        let Some(constants) = constants else {
            let kind = Kind::Output(Box::new(Output { key, output: None }));
            self.make_root(environment, site, kind, operands);
            return;
        };
        let slots = self.prepared.of(site.template).operands(site.node);
        let (output, diagnostics) = build(
            operation,
            chain.as_ref(),
            slots,
            &constants,
            self.program.language,
            self.expansion.as_deref(),
        );
        self.outputs.note(&key, &output, diagnostics);
        let output = Arc::new(output);
        self.outputs.record(key.clone(), None, Some(output.clone()));
        // The entry's scope never goes away, and it is the one that may hold a hundred thousand of them.
        if scope != self.entry_scope
            && let Some(scope) = self.scopes.get_mut(scope.0)
        {
            scope.outputs.push((key, output));
        }
    }

    pub(super) fn compute_output(&mut self, index: u32) {
        let failed = self.inputs_failed(index);
        let Some(values) = (!failed).then(|| self.gather(index).ok()).flatten() else {
            // No graph is made now. The resources stay: what was there before may hold again later. The errors of old values do
            // not.
            if let Kind::Output(output) = &self.arena.kind[index as usize] {
                self.outputs.clear_notes(&output.key);
            }
            return;
        };
        let site = self.arena.site[index as usize];
        let slots = self.prepared.of(site.template).operands(site.node);
        let chain = self.arena.chain[index as usize].as_ref();
        let language = self.program.language;
        let expansion = self.expansion.as_deref();
        let operation = self.operation_of(index);
        let (mut new, diagnostics) = build(operation, chain, slots, &values, language, expansion);
        let Kind::Output(output) = &mut self.arena.kind[index as usize] else {
            return;
        };
        self.outputs.note(&output.key, &new, diagnostics);
        if let Some(old) = &output.output
            && new.share(old)
        {
            return;
        }
        let new = Arc::new(new);
        let old = output.output.replace(new.clone());
        self.outputs.record(output.key.clone(), old, Some(new));
    }

    /// A statement switch does not know what to build: the graph is told that there may be more in it.
    pub(super) fn unknown_block(&mut self, index: u32, environment: EnvironmentId) {
        let Some(around) = self.environments.get(environment.0) else {
            return;
        };
        let site = self.arena.site[index as usize];
        let mut key = around.path.clone();
        key.push(site.node);
        let part = UnknownPart {
            span: self.span_of(index),
            what: UnknownWhat::Block,
        };
        let output = Arc::new(StatementOutput {
            unknown: vec![part],
            ..StatementOutput::default()
        });
        self.outputs.record(key.clone(), None, Some(output.clone()));
        self.unknown.insert(index, (key, output));
    }

    /// A statement switch knows again, or is gone.
    pub(super) fn no_longer_unknown(&mut self, index: u32) {
        if let Some((key, output)) = self.unknown.remove(&index) {
            self.outputs.record(key, Some(output), None);
        }
    }

    /// What holds after a wave.
    pub(super) fn report(&mut self) -> Step {
        let mut diagnostics = Diagnostics::new();
        self.problems(&mut diagnostics);
        for found in self.outputs.diagnostics.values() {
            diagnostics.extend(found.iter().cloned());
        }
        let mut pending: Vec<Pending> = self
            .sources
            .pending()
            .map(|index| self.pending_at(index))
            .collect();
        pending.sort();
        let graph = if diagnostics.has_errors() || !pending.is_empty() {
            None
        } else {
            let graph = self.outputs.assemble();
            diagnostics.extend(self.outputs.assembling.iter().cloned());
            graph
        };
        let blocks = self.unknown.values().flat_map(|(_, output)| &output.unknown);
        let mut unknown: Vec<UnknownPart> = blocks.cloned().collect();
        unknown.extend(self.outputs.unknown.values().flatten().cloned());
        unknown.sort_by_key(|part| part.span);
        unknown.dedup();
        Step {
            is_finished: true,
            graph,
            diagnostics,
            pending,
            unknown,
            recomputed: self.computed,
        }
    }

    /// That a step goes on later, and what it waits for.
    pub(super) fn report_unfinished(&self, at: Option<u32>) -> Step {
        let awaiting = self.sources.pending().chain(at);
        let mut pending: Vec<Pending> = awaiting.map(|index| self.pending_at(index)).collect();
        pending.sort();
        Step {
            is_finished: false,
            graph: None,
            diagnostics: Diagnostics::new(),
            pending,
            unknown: Vec::new(),
            recomputed: self.computed,
        }
    }

    fn pending_at(&self, index: u32) -> Pending {
        let function = match self.operation_of(index) {
            Operation::Call { function, .. } => function.to_string(),
            Operation::Apply { .. } => "a function value".to_owned(),
            _ => "this".to_owned(),
        };
        Pending {
            span: self.span_of(index),
            function,
        }
    }
}
