//! What the language of a program makes of what goes wrong while its values flow.

use setpoint_diagnostics::{CodeInfo, Diagnostic};

/// What goes wrong while values flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EvaluationProblem {
    /// A statement needs a value whose computation failed, and nothing gives another one.
    Uncaught,
    /// A computation failed in a way that nothing can catch.
    Fatal,
    /// The program itself said that it cannot go on.
    Panic,
    /// A source gives no first value.
    NoValue,
}

/// A language whose programs are evaluated here.
pub trait Language: setpoint_graph::Language {
    /// The code under which it tells a problem.
    fn evaluation_code(&self, problem: EvaluationProblem) -> &'static CodeInfo;

    /// Adds what only it knows, as what to write instead.
    fn complete_evaluation(&self, problem: EvaluationProblem, found: Diagnostic) -> Diagnostic {
        let _ = problem;
        found
    }
}
