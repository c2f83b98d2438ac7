//! The codes of what can be wrong with a text as such, and of strings.

use crate::stage::{INTERPOLATE, LEX, PARSE};

setpoint_diagnostics::codes! {
    pub
    BAD_CHARACTER = "E0001" "L1" LEX "a character that starts no token";
    CARRIAGE_RETURN = "E0002" "L2" LEX "a carriage return";
    INTEGER_RANGE = "E0003" "L3" LEX "an integer that does not fit 64 bits";
    FLOAT_RANGE = "E0004" "L4" LEX "a floating point number that is too large";
    UNEXPECTED = "E0010" "P1" PARSE "an unexpected token";
    MISSING_COMMA = "E0011" "P2" PARSE "a body item without its comma";
    NOT_META = "E0012" "P3" PARSE "a capitalised word that is not `Meta`";
    IMPOSSIBLE_TYPE = "E0013" "P4" PARSE "a type annotation that the value cannot have";
    DUPLICATE_TYPE_FIELD = "E0014" "P5" PARSE "a struct type with two fields of one name";
    DUPLICATE_TYPE_PARAMETER = "E0015" "P6" PARSE "a function type with two parameters of one name";
    COMPARISON_AS_STATEMENT = "E0016" "P7" PARSE "a comparison where a definition was meant";
    TOO_DEEP = "E0017" "" PARSE "nesting that is too deep";
    BAD_INTERPOLATION = "E0030" "T1" INTERPOLATE "a string with a malformed `${…}`";
    BAD_ESCAPE = "E0031" "T2" INTERPOLATE "a string with an unknown escape";
    OLD_DEFAULT = "W0001" "" PARSE "a default in the older spelling";
}
