//! The codes of what can go wrong while a program runs.

use setpoint_diagnostics::{CodeInfo, Stage};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal $rule:literal $summary:literal;)*) => {
        $($(#[$doc])*
        pub static $name: CodeInfo =
            CodeInfo { code: $code, rule: $rule, stage: Stage::Eval, summary: $summary };)*

        /// Every code of this stage, in the order of their numbers.
        pub static CODES: &[&CodeInfo] = &[$(&$name),*];
    };
}

codes! {
    /// A failure that `<|>` could have caught reaches a statement.
    UNCAUGHT = "E0301" "E1" "a failure that nothing catches";
    /// A function fails in a way that nothing can catch.
    FATAL = "E0302" "E2" "a function that fails for good";
    /// A `panic` statement whose argument says so.
    PANIC = "E0303" "E3" "a panic";
    /// A source that has not given a value in the time it was given. Raised by commands that wait only so long.
    NO_VALUE = "E0304" "" "a source that gives no first value";
}
