//! A language for tests. Its stages are `evaluate` and `build`.

use setpoint_diagnostics::{CodeInfo, Stage};
use setpoint_flow::{EvaluationProblem, Language};
use setpoint_graph::{MetaName, Problem};

pub(crate) const EVALUATE: Stage = Stage::new("evaluate");
const BUILD: Stage = Stage::new("build");

setpoint_diagnostics::codes! {
    pub(crate)
    UNCAUGHT = "uncaught" "" EVALUATE "";
    FATAL = "fatal" "" EVALUATE "";
    PANIC = "panic" "" EVALUATE "";
    NO_VALUE = "no-value" "" EVALUATE "";
    INVALID_RESOURCE = "invalid" "" BUILD "";
    DIFFERENT_DUPLICATE = "different" "" BUILD "";
    MISSING_RESOURCE = "missing" "" BUILD "";
    OTHER = "graph" "" BUILD "";
}

/// The language.
#[derive(Debug)]
pub(crate) struct Plain;

/// The language, for as long as anybody asks.
pub(crate) static PLAIN: Plain = Plain;

impl setpoint_graph::Language for Plain {
    fn code(&self, problem: &Problem) -> &'static CodeInfo {
        match problem {
            Problem::Invalid { .. } => &INVALID_RESOURCE,
            Problem::DifferentDuplicate => &DIFFERENT_DUPLICATE,
            Problem::MissingResource(_) => &MISSING_RESOURCE,
            _ => &OTHER,
        }
    }

    fn meta_parameter(&self, name: MetaName) -> String {
        name.name().to_owned()
    }
}

impl Language for Plain {
    fn evaluation_code(&self, problem: EvaluationProblem) -> &'static CodeInfo {
        match problem {
            EvaluationProblem::Uncaught => &UNCAUGHT,
            EvaluationProblem::Fatal => &FATAL,
            EvaluationProblem::Panic => &PANIC,
            EvaluationProblem::NoValue => &NO_VALUE,
        }
    }
}
