//! A language for tests: it has codes and one rule of its own, and nothing else.

use setpoint_diagnostics::{CodeInfo, Diagnostic, Stage};
use setpoint_graph::{Doubt, Language, MetaName, Named, Problem};

/// The only stage there is.
const BUILD: Stage = Stage::new("build");

setpoint_diagnostics::codes! {
    pub(crate)
    EMPTY_NAME = "empty-name" "" BUILD "";
    VALUE_DOES_NOT_FIT = "value" "" BUILD "";
    UNKNOWN_KIND = "kind" "" BUILD "";
    BAD_META = "meta" "" BUILD "";
    REFUSED_NAME = "refused-name" "" BUILD "";
    MISSING_RESOURCE = "missing" "" BUILD "";
    SECOND_SENDER = "second-sender" "" BUILD "";
    HIDDEN_SENDER = "hidden-sender" "" BUILD "";
    DIFFERENT_EXPORTS = "exports" "" BUILD "";
    BAD_COLLECT = "collect" "" BUILD "";
    INVALID_RESOURCE = "invalid" "" BUILD "";
    INCOMPATIBLE_DUPLICATE = "incompatible" "" BUILD "";
    DIFFERENT_DUPLICATE = "different" "" BUILD "";
    CYCLE = "cycle" "" BUILD "";
    SENSITIVE_NAME = "sensitive-name" "" BUILD "";
    NAME_NOT_TEXT = "not-text" "" BUILD "";
    DOUBTFUL = "doubtful" "" BUILD "";
    READABLE_SECRET = "readable-secret" "" BUILD "";
    SEND_MISMATCH = "mismatch" "" BUILD "";
}

/// The language.
#[derive(Debug)]
pub(crate) struct Plain;

/// The language, for as long as anybody asks.
pub(crate) static PLAIN: Plain = Plain;

impl Language for Plain {
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
            Problem::Doubtful(Doubt::Meaning) => &DOUBTFUL,
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

    fn meta_parameter(&self, name: MetaName) -> String {
        format!("the meta parameter `{}`", name.name())
    }

    /// Names must not begin with `$`, unless `dollar` says so.
    fn refuse_name(&self, named: &Named<'_>) -> Option<Diagnostic> {
        let is_meant = named.meta.dollar || named.unknown.contains(MetaName::Dollar);
        let is_refused = named.id.name.starts_with('$') && !is_meant;
        let message = format!("`{}` is no name", named.id);
        is_refused.then(|| Diagnostic::error(&REFUSED_NAME, named.span, message))
    }
}
