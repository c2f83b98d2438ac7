//! The codes of what can be wrong with resources and edges once their values are there.

use setpoint_diagnostics::{CodeInfo, Stage};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal $rule:literal $summary:literal;)*) => {
        $($(#[$doc])*
        pub static $name: CodeInfo =
            CodeInfo { code: $code, rule: $rule, stage: Stage::Interpret, summary: $summary };)*

        /// Every code of this stage, in the order of their numbers.
        pub static CODES: &[&CodeInfo] = &[$(&$name),*];
    };
}

codes! {
    /// A resource whose name is `""`.
    EMPTY_NAME = "E0401" "R1" "a resource with an empty name";
    /// A number that is too large, too small or negative for its parameter; a list that is too long.
    VALUE_DOES_NOT_FIT = "E0402" "R2" "a value that does not fit its parameter";
    /// A kind that does not exist.
    UNKNOWN_KIND = "E0403" "R3" "a resource of a kind that does not exist";
    /// A meta parameter out of its range.
    BAD_META = "E0404" "R4" "a meta parameter that is not valid";
    /// A name that looks like a variable.
    DOLLAR_NAME = "E0405" "R5" "a resource whose name begins with `$`";
    /// An edge with an end that does not exist.
    MISSING_RESOURCE = "E0406" "R6" "an edge to a resource that does not exist";
    /// Two senders for one parameter.
    SECOND_SENDER = "E0407" "R7" "a second sender for one parameter";
    /// A hidden resource at the sending end.
    HIDDEN_SENDER = "E0408" "R8" "a hidden resource that sends";
    /// Two exports that claim the same place in the shared store.
    DIFFERENT_EXPORTS = "E0409" "R9" "different exports of one resource to one host";
    /// A pair of name and host that cannot be collected.
    BAD_COLLECT = "E0410" "R10" "a name or host that cannot be collected";
    /// What the kind itself refuses.
    INVALID_RESOURCE = "E0411" "R11" "a resource that its kind refuses";
    /// Two resources of one name that contradict, of a kind that could have merged them.
    INCOMPATIBLE_DUPLICATE = "E0412" "R12" "two resources of one name that cannot be merged";
    /// Two resources of one name that differ.
    DIFFERENT_DUPLICATE = "E0413" "R13" "two different resources of one name";
    /// Resources that wait for each other.
    CYCLE = "E0414" "R14" "resources that wait for each other in a circle";
    /// A name that is secret.
    SENSITIVE_NAME = "E0420" "" "a name that is sensitive";
    /// A name that is not valid text.
    NAME_NOT_TEXT = "E0421" "" "a name that is not text";
    /// A send key and a parameter that do not fit, found when the graph is built.
    SEND_MISMATCH = "E0422" "" "a send key and a parameter that do not fit";
}
