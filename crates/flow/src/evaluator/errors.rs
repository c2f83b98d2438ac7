//! What is wrong now, and how it is told.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use setpoint_diagnostics::{Diagnostic, Diagnostics, Span, without_system_numbers};
use setpoint_graph::{Cause, Link};
use setpoint_value::{CallError, FunctionRef, Value, operators};

use super::Evaluator;
use super::computation::is_calm;
use super::state::{Failure, NodeState};
use crate::{EvaluationProblem, Language, Operation};

/// Something that is wrong at a node.
pub(super) enum Problem {
    /// It failed in a way that nothing catches.
    Fatal(Arc<Failure>),
    /// It is a statement and needs a value that failed.
    Uncaught(Arc<Failure>),
    /// It is a panic whose argument says so.
    Panic {
        /// What was given as text; not when that is sensitive.
        message: Option<String>,
    },
}

impl Evaluator {
    /// The state of a node that fails now by itself. What nothing can catch is noted as wrong.
    pub(super) fn fail(&mut self, index: u32, error: CallError) -> NodeState {
        let at = index as usize;
        let what: Arc<str> = match self.operation_of(index) {
            Operation::Call { function, .. } if is_lookup(function) => "this lookup".into(),
            Operation::Call { function, .. } => format!("`{function}`").into(),
            Operation::Apply { .. } => "the call of a function value".into(),
            _ => "this".into(),
        };
        let failure = Arc::new(Failure {
            error,
            what,
            span: self.span_of(index),
            chain: self.arena.chain[at].clone(),
        });
        if !failure.is_catchable() {
            let problem = Problem::Fatal(failure.clone());
            self.problems.entry(index).or_default().push(problem);
        }
        NodeState::Failed(failure)
    }

    /// A statement has got this failure instead of a value that it needs.
    pub(super) fn not_caught(&mut self, index: u32, failure: Arc<Failure>) {
        // A fatal one is wrong where it came about, and told there.
        if failure.is_catchable() {
            let problem = Problem::Uncaught(failure);
            self.problems.entry(index).or_default().push(problem);
        }
    }

    pub(super) fn compute_panic(&mut self, index: u32) {
        self.inputs_failed(index);
        let NodeState::Value(condition) = self.input(index, 0) else {
            return;
        };
        if is_calm(&condition) {
            return;
        }
        let text = match (&condition, self.arena.inputs[index as usize].len()) {
            (_, 2) => match self.input(index, 1) {
                NodeState::Value(message) => Some(message),
                NodeState::Pending | NodeState::Failed(_) => return,
            },
            (Value::Bool(_), _) => None,
            _ => Some(condition),
        };
        let message = text
            .filter(|text| !text.is_sensitive())
            .and_then(|text| text.as_str().map(|text| text.to_lossy().into_owned()));
        let problem = Problem::Panic { message };
        self.problems.entry(index).or_default().push(problem);
    }

    /// Whether an input of a statement failed; each failure is noted.
    pub(super) fn inputs_failed(&mut self, index: u32) -> bool {
        let mut failures: Vec<Arc<Failure>> = Vec::new();
        for port in 0..self.arena.inputs[index as usize].len() {
            if let NodeState::Failed(failure) = self.input(index, port)
                && !failures.iter().any(|known| Arc::ptr_eq(known, &failure))
            {
                failures.push(failure);
            }
        }
        let any = !failures.is_empty();
        for failure in failures {
            self.not_caught(index, failure);
        }
        any
    }

    /// Everything that is wrong while values flow. One failure that reaches several statements is told once.
    pub(super) fn problems(&self, diagnostics: &mut Diagnostics) {
        let mut told: FxHashSet<*const Failure> = FxHashSet::default();
        let mut found: Vec<(Span, Diagnostic)> = Vec::new();
        let mut entries: Vec<(Span, u32, &Problem)> = self
            .problems
            .iter()
            .flat_map(|(index, problems)| problems.iter().map(|p| (*index, p)))
            .map(|(index, problem)| (self.span_of(index), index, problem))
            .collect();
        entries.sort_by_key(|(span, index, _)| (*span, *index));
        let language = self.program.language;
        for (at, index, problem) in entries {
            match problem {
                Problem::Fatal(failure) => found.push((failure.span, fatal(failure, language))),
                Problem::Uncaught(failure) => {
                    if told.insert(Arc::as_ptr(failure)) {
                        found.push((failure.span, uncaught(failure, at, language)));
                    }
                }
                Problem::Panic { message } => {
                    let text = message
                        .as_ref()
                        .map_or_else(|| "panic".to_owned(), |message| format!("panic: {message}"));
                    let what = EvaluationProblem::Panic;
                    let diagnostic = Diagnostic::error(language.evaluation_code(what), at, text);
                    let chain = self.arena.chain[index as usize].as_ref();
                    let diagnostic = with_chain(diagnostic, chain);
                    found.push((at, language.complete_evaluation(what, diagnostic)));
                }
            }
        }
        found.sort_by_key(|(span, _)| *span);
        diagnostics.extend(found.into_iter().map(|(_, diagnostic)| diagnostic));
    }
}

/// Whether a function is what `[…]` stands for.
fn is_lookup(function: &FunctionRef) -> bool {
    function.is(&operators::LIST_LOOKUP) || function.is(&operators::MAP_LOOKUP)
}

fn fatal(failure: &Failure, language: &dyn Language) -> Diagnostic {
    let why = without_system_numbers(&failure.error.to_string());
    let message = format!("{} failed: {why}", failure.what);
    let what = EvaluationProblem::Fatal;
    let mut diagnostic = Diagnostic::error(language.evaluation_code(what), failure.span, message);
    if let CallError::Panicked { .. } = failure.error {
        diagnostic = diagnostic.note("this is a mistake in the function, not in the program");
    }
    language.complete_evaluation(what, with_chain(diagnostic, failure.chain.as_ref()))
}

fn uncaught(failure: &Failure, at: Span, language: &dyn Language) -> Diagnostic {
    let why = without_system_numbers(&failure.error.to_string());
    let message = format!("{} failed: {why}", failure.what);
    let what = EvaluationProblem::Uncaught;
    let mut diagnostic = Diagnostic::error(language.evaluation_code(what), failure.span, message);
    if at != failure.span {
        diagnostic = diagnostic.because(at, "this needs the value");
    }
    language.complete_evaluation(what, with_chain(diagnostic, failure.chain.as_ref()))
}

/// With the includes and calls that lead there, and for which elements of loops. On which conditions does not matter to a mistake.
pub(super) fn with_chain(mut diagnostic: Diagnostic, chain: Option<&Arc<Link>>) -> Diagnostic {
    /// More steps than this help nobody.
    const SHOWN: usize = 32;
    let steps = chain.into_iter().flat_map(|innermost| innermost.outwards());
    let steps = steps.filter(|link| !matches!(link.cause, Cause::Condition(_)));
    for (shown, link) in steps.enumerate() {
        if shown == SHOWN {
            return diagnostic.note("more steps lie around these");
        }
        diagnostic = diagnostic.via(link.span, link.cause.to_string());
    }
    diagnostic
}
