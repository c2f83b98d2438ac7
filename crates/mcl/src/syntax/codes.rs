//! The codes of what can be wrong with a text as such, and of strings.

use setpoint_diagnostics::{CodeInfo, Stage};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal $rule:literal $stage:ident $summary:literal;)*) => {
        $($(#[$doc])*
        pub static $name: CodeInfo =
            CodeInfo { code: $code, rule: $rule, stage: Stage::$stage, summary: $summary };)*

        /// Every code of this stage, in the order of their numbers.
        pub static CODES: &[&CodeInfo] = &[$(&$name),*];
    };
}

codes! {
    /// A character, or an unterminated string, that is no token.
    BAD_CHARACTER = "E0001" "L1" Lex "a character that starts no token";
    /// A carriage return.
    CARRIAGE_RETURN = "E0002" "L2" Lex "a carriage return";
    /// An integer that 64 bits cannot hold.
    INTEGER_RANGE = "E0003" "L3" Lex "an integer that does not fit 64 bits";
    /// A floating point number that a double cannot hold.
    FLOAT_RANGE = "E0004" "L4" Lex "a floating point number that is too large";
    /// A token where another one must stand.
    UNEXPECTED = "E0010" "P1" Parse "an unexpected token";
    /// A field or property that does not end in a comma.
    MISSING_COMMA = "E0011" "P2" Parse "a body item without its comma";
    /// A capitalised word where only `Meta` can stand.
    NOT_META = "E0012" "P3" Parse "a capitalised word that is not `Meta`";
    /// A type annotation that the annotated value cannot have.
    IMPOSSIBLE_TYPE = "E0013" "P4" Parse "a type annotation that the value cannot have";
    /// Two fields of one name in a struct type.
    DUPLICATE_TYPE_FIELD = "E0014" "P5" Parse "a struct type with two fields of one name";
    /// Two parameters of one name in a function type.
    DUPLICATE_TYPE_PARAMETER = "E0015" "P6" Parse "a function type with two parameters of one name";
    /// `$x == v` as a statement.
    COMPARISON_AS_STATEMENT = "E0016" "P7" Parse "a comparison where a definition was meant";
    /// Brackets, blocks or operators deeper than the limit.
    TOO_DEEP = "E0017" "" Parse "nesting that is too deep";
    /// `${` without a variable and `}`.
    BAD_INTERPOLATION = "E0030" "T1" Interpolate "a string with a malformed `${…}`";
    /// A backslash before a character that cannot be escaped.
    BAD_ESCAPE = "E0031" "T2" Interpolate "a string with an unknown escape";
    /// `||` for a default, which is now written `<|>`.
    OLD_DEFAULT = "W0001" "" Parse "a default in the older spelling";
}
