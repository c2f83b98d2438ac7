//! What this language makes of what goes wrong while values flow and become a graph: its codes, its advice, and its rule for names
//! that begin with `$`.

use setpoint_diagnostics::{CodeInfo, Diagnostic};
use setpoint_flow::EvaluationProblem;
use setpoint_graph::{CollectProblem, Doubt, KindSchema, MetaName, Named, ParameterSchema, Problem};

use crate::stage::{EVAL, INTERPRET};
use crate::syntax::TokenKind;

setpoint_diagnostics::codes! {
    pub
    UNCAUGHT = "E0301" "E1" EVAL "a failure that nothing catches";
    FATAL = "E0302" "E2" EVAL "a function that fails for good";
    PANIC = "E0303" "E3" EVAL "a panic";
    NO_VALUE = "E0304" "" EVAL "a source that gives no first value";
    EMPTY_NAME = "E0401" "R1" INTERPRET "a resource with an empty name";
    VALUE_DOES_NOT_FIT = "E0402" "R2" INTERPRET "a value that does not fit its parameter";
    UNKNOWN_KIND = "E0403" "R3" INTERPRET "a resource of a kind that does not exist";
    BAD_META = "E0404" "R4" INTERPRET "a meta parameter that is not valid";
    DOLLAR_NAME = "E0405" "R5" INTERPRET "a resource whose name begins with `$`";
    MISSING_RESOURCE = "E0406" "R6" INTERPRET "an edge to a resource that does not exist";
    SECOND_SENDER = "E0407" "R7" INTERPRET "a second sender for one parameter";
    HIDDEN_SENDER = "E0408" "R8" INTERPRET "a hidden resource that sends";
    DIFFERENT_EXPORTS = "E0409" "R9" INTERPRET "different exports of one resource to one host";
    BAD_COLLECT = "E0410" "R10" INTERPRET "a name or host that cannot be collected";
    INVALID_RESOURCE = "E0411" "R11" INTERPRET "a resource that its kind refuses";
    INCOMPATIBLE_DUPLICATE = "E0412" "R12" INTERPRET "two resources of one name that cannot be merged";
    DIFFERENT_DUPLICATE = "E0413" "R13" INTERPRET "two different resources of one name";
    CYCLE = "E0414" "R14" INTERPRET "resources that wait for each other in a circle";
    SENSITIVE_NAME = "E0420" "" INTERPRET "a name that is sensitive";
    NAME_NOT_TEXT = "E0421" "" INTERPRET "a name that is not text";
    DOUBTFUL_RESOURCE = "W0411" "" INTERPRET "a resource that is probably not what was meant";
    READABLE_SECRET = "W0412" "" INTERPRET "a secret that others can read";
    SEND_MISMATCH = "E0422" "" INTERPRET "a send key and a parameter that do not fit";
}

/// The language mcl.
#[derive(Debug, Clone, Copy)]
pub struct Mcl;

impl setpoint_flow::Language for Mcl {
    fn evaluation_code(&self, problem: EvaluationProblem) -> &'static CodeInfo {
        match problem {
            EvaluationProblem::Uncaught => &UNCAUGHT,
            EvaluationProblem::Fatal => &FATAL,
            EvaluationProblem::Panic => &PANIC,
            EvaluationProblem::NoValue => &NO_VALUE,
        }
    }

    fn complete_evaluation(&self, problem: EvaluationProblem, found: Diagnostic) -> Diagnostic {
        match problem {
            EvaluationProblem::Uncaught => found.help("give another value for this case with `<|>`"),
            EvaluationProblem::Fatal | EvaluationProblem::Panic | EvaluationProblem::NoValue => found,
        }
    }
}

impl setpoint_graph::Language for Mcl {
    fn code(&self, problem: &Problem) -> &'static CodeInfo {
        match problem {
            Problem::EmptyName => &EMPTY_NAME,
            Problem::SensitiveName => &SENSITIVE_NAME,
            Problem::NameNotText => &NAME_NOT_TEXT,
            Problem::UnknownKind => &UNKNOWN_KIND,
            Problem::ValueDoesNotFit(_) => &VALUE_DOES_NOT_FIT,
            Problem::BadMeta(_) => &BAD_META,
            Problem::BadCollect(_) => &BAD_COLLECT,
            Problem::Invalid { .. } => &INVALID_RESOURCE,
            Problem::Doubtful(Doubt::Meaning) => &DOUBTFUL_RESOURCE,
            Problem::Doubtful(Doubt::ReadableSecret) => &READABLE_SECRET,
            Problem::DifferentDuplicate => &DIFFERENT_DUPLICATE,
            Problem::IncompatibleDuplicate => &INCOMPATIBLE_DUPLICATE,
            Problem::DifferentExports => &DIFFERENT_EXPORTS,
            Problem::MissingResource(_) => &MISSING_RESOURCE,
            Problem::SecondSender(_) => &SECOND_SENDER,
            Problem::HiddenSender => &HIDDEN_SENDER,
            Problem::SendMismatch => &SEND_MISMATCH,
            Problem::Cycle(_) => &CYCLE,
        }
    }

    fn complete(&self, problem: &Problem, found: Diagnostic) -> Diagnostic {
        match problem {
            Problem::SensitiveName => {
                found.help("keep the secret in a parameter, or take the mark off with `nonsensitive`")
            }
            Problem::BadCollect(CollectProblem::BadPair) => {
                found.help("to collect from every host, give the name alone instead of a struct")
            }
            _ => found,
        }
    }

    fn meta_parameter(&self, name: MetaName) -> String {
        format!("`Meta:{}`", name.name())
    }

    /// A `$` in front is nearly always a variable that somebody wrote into a text without its braces.
    fn refuse_name(&self, named: &Named<'_>) -> Option<Diagnostic> {
        let Named {
            id,
            meta,
            unknown,
            span,
        } = named;
        if !id.name.starts_with('$') || meta.dollar || unknown.contains(MetaName::Dollar) {
            return None;
        }
        let variable = id.name.trim_start_matches('$');
        let looks_like_variable = !variable.is_empty()
            && variable
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'.'));
        let help = if looks_like_variable {
            format!(
                "write `\"${{{variable}}}\"` for the value of the variable, or set `Meta:dollar` if the name is meant"
            )
        } else {
            "set `Meta:dollar` if the name is meant".to_owned()
        };
        let message = format!("the name of `{id}` begins with `$`");
        Some(Diagnostic::error(&DOLLAR_NAME, *span, message).help(help))
    }
}

/// The parameters of a kind that programs can write: those whose names are no words of the language.
pub fn writable_parameters(schema: &KindSchema) -> impl Iterator<Item = &'static ParameterSchema> {
    let parameters = schema.parameters.iter();
    parameters.filter(|parameter| TokenKind::of_word(parameter.name).is_none())
}
