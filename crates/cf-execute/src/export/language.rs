//! What this language makes of what goes wrong while resources become a graph: its codes, its classes of errors, its advice.

use setpoint_diagnostics::{CodeInfo, Diagnostic};
use setpoint_graph::{MetaName, Problem};

use super::codes;

/// The model language.
#[derive(Debug, Clone, Copy)]
pub struct ModelLanguage;

/// It, for those who keep a reference.
pub static LANGUAGE: ModelLanguage = ModelLanguage;

impl setpoint_graph::Language for ModelLanguage {
    fn code(&self, problem: &Problem) -> &'static CodeInfo {
        match problem {
            Problem::DifferentDuplicate | Problem::IncompatibleDuplicate | Problem::DifferentExports => {
                &codes::SAME_RESOURCE
            }
            Problem::Cycle(_) => &codes::CYCLE,
            Problem::Doubtful(_) => &codes::DOUBTFUL,
            Problem::EmptyName | Problem::SensitiveName | Problem::NameNotText => &codes::IDENTITY,
            Problem::UnknownKind
            | Problem::ValueDoesNotFit(_)
            | Problem::BadMeta(_)
            | Problem::BadCollect(_)
            | Problem::Invalid { .. }
            | Problem::MissingResource(_)
            | Problem::SecondSender(_)
            | Problem::HiddenSender
            | Problem::SendMismatch => &codes::UNFIT,
        }
    }

    fn complete(&self, problem: &Problem, found: Diagnostic) -> Diagnostic {
        match problem {
            Problem::DifferentDuplicate | Problem::IncompatibleDuplicate | Problem::DifferentExports => {
                found.of_class("CompilerException")
            }
            Problem::Cycle(_) => found
                .of_class("DependencyCycleException")
                .help("take one of these requirements away"),
            Problem::SensitiveName => found
                .of_class("ResourceException")
                .help("keep the secret in a parameter"),
            Problem::EmptyName | Problem::NameNotText => found.of_class("ResourceException"),
            _ => found,
        }
    }

    fn meta_parameter(&self, name: MetaName) -> String {
        format!("the meta parameter `{}`", name.name())
    }
}
