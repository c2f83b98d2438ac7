//! The codes of type errors.

use setpoint_diagnostics::{CodeInfo, Stage};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal $rule:literal $summary:literal;)*) => {
        $($(#[$doc])*
        pub(crate) static $name: CodeInfo =
            CodeInfo { code: $code, rule: $rule, stage: Stage::Type, summary: $summary };)*

        /// Every code of this stage, in the order of their numbers.
        pub(crate) static CODES: &[&CodeInfo] = &[$(&$name),*];
    };
}

codes! {
    /// U1.
    MISMATCH = "E0201" "U1" "two types where one is needed";
    /// U2.
    ARGUMENT_COUNT = "E0202" "U2" "the wrong number of arguments";
    /// U3.
    FIELD_COUNT = "E0203" "U3" "structs with different numbers of fields";
    /// U4.
    FIELD_NAMES = "E0204" "U4" "structs with different fields";
    /// U5.
    INFINITE = "E0205" "U5" "a type that contains itself";
    /// U6.
    AMBIGUOUS = "E0206" "U6" "a type that nothing determines";
    /// U7.
    UNSUPPORTED = "E0207" "U7" "a built-in used with a type that it does not support";
    /// U8.
    UNHASHABLE = "E0208" "U8" "a map whose key type holds a function";
    /// G1.
    BAD_ARGUMENTS = "E0211" "G1" "arguments that a library function refuses";
    /// G2.
    TOO_MANY_ARGUMENTS = "E0212" "G2" "too many arguments for a library function";
    /// G3.
    UNKNOWN_PARAMETER = "E0213" "G3" "a parameter that the kind does not have";
    /// G4.
    UNKNOWN_KIND = "E0214" "G4" "a kind of resource that does not exist";
    /// G6.
    LONELY_EDGE = "E0216" "G6" "an edge with one end";
    /// G7.
    CANNOT_SEND = "E0217" "G7" "a kind that sends nothing";
    /// G8.
    CANNOT_RECEIVE = "E0218" "G8" "a kind that receives nothing";
    /// G9.
    BAD_SEND = "E0219" "G9" "a send that does not fit";
    /// A limit of ours.
    TOO_DEEP = "E0220" "" "more calls and includes than can be handled";
}
