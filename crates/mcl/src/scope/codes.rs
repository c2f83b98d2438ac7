//! The codes of structural checks, of names and of modules.

use crate::stage::{INIT, INTERPOLATE, SCOPE};

setpoint_diagnostics::codes! {
    pub(crate)
    DUPLICATE_FIELD = "E0020" "I1" INIT "a struct with two fields of one name";
    BAD_VARIABLE = "E0021" "I2" INIT "a malformed name of a variable";
    MIXED_KEYS = "E0022" "I3" INIT "map keys of different types";
    UNHASHABLE_KEY = "E0023" "I4" INIT "a map key that holds a function";
    DUPLICATE_KEY = "E0024" "I5" INIT "a map with the same key twice";
    IMPORT_IN_LOOP = "E0025" "I6" INIT "an import in the body of a loop";
    DUPLICATE_PARAMETER = "E0026" "I7" INIT "a resource parameter that is set twice";
    DUPLICATE_META = "E0027" "I8" INIT "a meta parameter that is set twice";
    UNKNOWN_EDGE_PROPERTY = "E0028" "I9" INIT "an unknown edge property";
    UNKNOWN_META = "E0029" "I10" INIT "an unknown meta parameter";
    DUPLICATE_CLASS = "E0032" "T3" INTERPOLATE "two classes of one name in a block";
    DUPLICATE_ARGUMENT = "E0033" "" INIT "two parameters of one name";
    DUPLICATE_LOOP_VARIABLE = "E0034" "" INIT "a loop whose two variables have one name";
    UNKNOWN_VARIABLE = "E0101" "S1" SCOPE "a variable that is not defined";
    UNKNOWN_FUNCTION = "E0102" "S2" SCOPE "a function that is not defined";
    UNKNOWN_CLASS = "E0103" "S3" SCOPE "a class that is not defined";
    DUPLICATE_NAME = "E0104" "S4" SCOPE "a name that a block defines twice";
    INCLUDE_ARGUMENTS = "E0105" "S5" SCOPE "an include with the wrong number of arguments";
    CYCLE = "E0106" "S6" SCOPE "a definition that depends on itself";
    RECURSIVE_CLASS = "E0107" "S7" SCOPE "a class that includes itself";
    TOO_DEEP = "E0108" "" SCOPE "classes that include each other too deeply";
    DUPLICATE_IMPORT = "E0111" "M1" SCOPE "the same import twice in a block";
    DUPLICATE_ALIAS = "E0112" "M2" SCOPE "two imports under one name";
    BAD_IMPORT = "E0113" "M3" SCOPE "a malformed import";
    UNKNOWN_MODULE = "E0114" "M4" SCOPE "a system module that does not exist";
    RECURSIVE_IMPORT = "E0115" "M5" SCOPE "an import that leads back to itself";
    MODULE_STATEMENT = "E0116" "M6" SCOPE "a statement that a module may not have";
    MODULE_NOT_FOUND = "E0117" "M7" SCOPE "a module or file that cannot be found";
    BAD_METADATA = "E0118" "M8" SCOPE "a bad `metadata.yaml`";
}
