//! The codes of type errors.

use crate::stage::{LOWER, TYPE};

setpoint_diagnostics::codes! {
    pub(crate)
    MISMATCH = "E0201" "U1" TYPE "two types where one is needed";
    ARGUMENT_COUNT = "E0202" "U2" TYPE "the wrong number of arguments";
    FIELD_COUNT = "E0203" "U3" TYPE "structs with different numbers of fields";
    FIELD_NAMES = "E0204" "U4" TYPE "structs with different fields";
    INFINITE = "E0205" "U5" TYPE "a type that contains itself";
    AMBIGUOUS = "E0206" "U6" TYPE "a type that nothing determines";
    UNSUPPORTED = "E0207" "U7" TYPE "a built-in used with a type that it does not support";
    UNHASHABLE = "E0208" "U8" TYPE "a map whose key type holds a function";
    BAD_ARGUMENTS = "E0211" "G1" TYPE "arguments that a library function refuses";
    TOO_MANY_ARGUMENTS = "E0212" "G2" TYPE "too many arguments for a library function";
    UNKNOWN_PARAMETER = "E0213" "G3" TYPE "a parameter that the kind does not have";
    UNKNOWN_KIND = "E0214" "G4" TYPE "a kind of resource that does not exist";
    LONELY_EDGE = "E0216" "G6" TYPE "an edge with one end";
    CANNOT_SEND = "E0217" "G7" TYPE "a kind that sends nothing";
    CANNOT_RECEIVE = "E0218" "G8" TYPE "a kind that receives nothing";
    BAD_SEND = "E0219" "G9" TYPE "a send that does not fit";
    TOO_DEEP = "E0220" "" TYPE "more calls and includes than can be handled";
    META_TWICE = "E0310" "G5" LOWER "a meta parameter that a `Meta` struct sets a second time";
}
