//! The codes of what can be wrong with a text as such, and of strings.

setpoint_diagnostics::codes! {
    pub
    BAD_CHARACTER = "E0001" "L1" Lex "a character that starts no token";
    CARRIAGE_RETURN = "E0002" "L2" Lex "a carriage return";
    INTEGER_RANGE = "E0003" "L3" Lex "an integer that does not fit 64 bits";
    FLOAT_RANGE = "E0004" "L4" Lex "a floating point number that is too large";
    UNEXPECTED = "E0010" "P1" Parse "an unexpected token";
    MISSING_COMMA = "E0011" "P2" Parse "a body item without its comma";
    NOT_META = "E0012" "P3" Parse "a capitalised word that is not `Meta`";
    IMPOSSIBLE_TYPE = "E0013" "P4" Parse "a type annotation that the value cannot have";
    DUPLICATE_TYPE_FIELD = "E0014" "P5" Parse "a struct type with two fields of one name";
    DUPLICATE_TYPE_PARAMETER = "E0015" "P6" Parse "a function type with two parameters of one name";
    COMPARISON_AS_STATEMENT = "E0016" "P7" Parse "a comparison where a definition was meant";
    TOO_DEEP = "E0017" "" Parse "nesting that is too deep";
    BAD_INTERPOLATION = "E0030" "T1" Interpolate "a string with a malformed `${…}`";
    BAD_ESCAPE = "E0031" "T2" Interpolate "a string with an unknown escape";
    OLD_DEFAULT = "W0001" "" Parse "a default in the older spelling";
    NO_EFFECT = "W0002" "" Parse "a meta parameter that has no effect yet";
}
