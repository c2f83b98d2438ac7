//! The codes of what can be wrong with definitions and names.

use setpoint_cf_syntax::stage::{EVAL, SCOPE, TYPE};

setpoint_diagnostics::codes! {
    pub
    TOO_MANY_POSITIONAL = "E0518" "" TYPE "more positional arguments than a constructor has attributes for";
    DUPLICATE_TYPE = "E0530" "" SCOPE "a type that is defined twice in a namespace";
    DUPLICATE_IMPORT = "E0531" "" SCOPE "two imports with one name";
    NO_TYPE = "E0532" "" SCOPE "a type that there is none of";
    MISSING_IMPORT = "E0533" "" SCOPE "a type of a namespace that is not imported";
    CYCLE = "E0534" "" SCOPE "an entity or a typedef that is made of itself";
    WRONG_SORT = "E0535" "" SCOPE "a type of another sort than is needed here";
    DUPLICATE_MEMBER = "E0536" "" SCOPE "attributes or relations of one entity that contradict each other";
    NO_INDEX_MEMBER = "E0537" "" SCOPE "an index over an attribute that there is none of";
    BAD_INDEX_MEMBER = "E0538" "" SCOPE "an index over a list or an optional relation";
    DEFAULT_NOT_CONSTANT = "E0539" "" TYPE "a default that is not constant";
    DEFAULT_TYPE = "E0540" "" TYPE "a default that does not fit the type";
    NO_ATTRIBUTE = "E0541" "" TYPE "an attribute that the constructed entity does not have";
    INDEX_MEMBER_MISSING = "E0542" "" TYPE "a constructor without an attribute of an index";
    NESTED_TYPE = "E0543" "" TYPE "a nested constructor of an entity that does not fit";
    AMBIGUOUS_TYPE = "E0544" "" TYPE "a short name that fits several entities";
    NO_NAMESPACE = "E0545" "" TYPE "a variable of a namespace that is not imported";
    NOT_CALLABLE = "E0546" "" TYPE "a call of something that is no function";
    PRECEDENCE = "E0547" "" TYPE "a rule about the order of relations that cannot be followed";
    TOO_DEEP = "E0548" "" SCOPE "an entity or a typedef with too many others above it";
    DATACLASS = "E0550" "" TYPE "an entity below `std::Dataclass` that is more than a record";
    NUMBER_TYPE = "W0503" "" SCOPE "the type `number`";
    BUILTIN_NAME = "W0504" "" SCOPE "a typedef with the name of a built-in type";
    SHADOWED = "W0601" "" TYPE "a variable that hides another one";
    CAST = "E0623" "" EVAL "a value that cannot be cast";
}
