//! Graphs in YAML, as a language: what is wrong with one behind its text has the codes of the first language, with words of its own.

use setpoint_diagnostics::{CodeInfo, Diagnostic};
use setpoint_flow::EvaluationProblem;
use setpoint_graph::{MetaName, Problem};
use setpoint_mcl::Mcl;

/// Graphs in YAML.
#[derive(Debug)]
pub(crate) struct Yaml;

/// It, for those who keep a reference.
pub(crate) static YAML: Yaml = Yaml;

impl setpoint_flow::Language for Yaml {
    fn evaluation_code(&self, problem: EvaluationProblem) -> &'static CodeInfo {
        Mcl.evaluation_code(problem)
    }

    fn complete_evaluation(&self, _: EvaluationProblem, found: Diagnostic) -> Diagnostic {
        found
    }
}

impl setpoint_graph::Language for Yaml {
    fn code(&self, problem: &Problem) -> &'static CodeInfo {
        Mcl.code(problem)
    }

    fn meta_parameter(&self, name: MetaName) -> String {
        format!("`{}` of `meta`", name.name())
    }
}
