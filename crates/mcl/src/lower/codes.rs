//! The codes of this stage.

use setpoint_diagnostics::{CodeInfo, Stage};

/// G5.
pub(crate) static META_TWICE: CodeInfo = CodeInfo {
    code: "E0310",
    rule: "G5",
    stage: Stage::Lower,
    summary: "a meta parameter that a `Meta` struct sets a second time",
};

/// Every code of this stage, in the order of their numbers.
pub(crate) static CODES: &[&CodeInfo] = &[&META_TWICE];
