//! The codes of this stage.

setpoint_diagnostics::codes! {
    pub(crate)
    META_TWICE = "E0310" "G5" Lower "a meta parameter that a `Meta` struct sets a second time";
}
