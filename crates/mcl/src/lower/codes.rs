//! The codes of this stage.

use setpoint_diagnostics::{CodeInfo, Stage};

/// G5.
pub(crate) static META_TWICE: CodeInfo = CodeInfo {
    code: "E0310",
    rule: "G5",
    stage: Stage::Lower,
    summary: "a meta parameter that a `Meta` struct sets a second time",
};

/// Something that the language has and this version cannot run.
pub(crate) static NOT_SUPPORTED: CodeInfo = CodeInfo {
    code: "E0311",
    rule: "",
    stage: Stage::Lower,
    summary: "something that is not supported yet",
};

/// Every code of this stage, in the order of their numbers.
pub(crate) static CODES: &[&CodeInfo] = &[&META_TWICE, &NOT_SUPPORTED];
