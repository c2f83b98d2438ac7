//! The codes of what can go wrong while a program runs.

setpoint_diagnostics::codes! {
    pub
    UNCAUGHT = "E0301" "E1" Eval "a failure that nothing catches";
    FATAL = "E0302" "E2" Eval "a function that fails for good";
    PANIC = "E0303" "E3" Eval "a panic";
    NO_VALUE = "E0304" "" Eval "a source that gives no first value";
}
