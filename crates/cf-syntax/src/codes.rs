//! The codes of what can be wrong with the text of a file.

use crate::stage::PARSE;

setpoint_diagnostics::codes! {
    pub
    UNEXPECTED = "E0501" "" PARSE "a character or word that cannot stand where it stands";
    KEYWORD_AS_NAME = "E0502" "" PARSE "a reserved keyword where a name must stand";
    ENTITY_IN_LOWER_CASE = "E0503" "" PARSE "an entity whose name begins with a small letter";
    ATTRIBUTE_IN_UPPER_CASE = "E0504" "" PARSE "an attribute whose name begins with a capital letter";
    NULL_FOR_DICT = "E0505" "" PARSE "a `dict` attribute with the default `null`";
    FIELD_IN_KEY = "E0506" "" PARSE "a key of a dict with a `{{…}}` in it";
    BAD_PATTERN = "E0507" "" PARSE "a malformed regular expression";
    BAD_FORMAT_STRING = "E0508" "" PARSE "a malformed f-string";
    ADD_TO_VARIABLE = "E0509" "" PARSE "a `+=` on a variable";
    DEFAULT_CONSTRUCTOR = "E0510" "" PARSE "a typedef with a name in capitals";
    DOT_IN_NAMESPACE = "E0511" "" PARSE "a dot between the parts of a namespace";
    HYPHEN_IN_NAME = "E0512" "" PARSE "a declared name with a hyphen";
    HYPHEN_IN_MODULE = "E0513" "" PARSE "the name of a module with a hyphen";
    DUPLICATE_KEY = "E0514" "" PARSE "a key that a dict has twice";
    DUPLICATE_KEYWORD = "E0515" "" PARSE "an argument that is given twice";
    CONDITION_FOR_PARENTS = "E0516" "" PARSE "the implementations of parents under a condition";
    NO_SELF_IN_TYPEDEF = "E0517" "" PARSE "a typedef whose condition does not look at the value";
    TOO_DEEP = "E0519" "" PARSE "nesting that is too deep";
    UNKNOWN_ESCAPE = "W0502" "" PARSE "an unknown escape in a string";
}

/// What the language calls errors of these sorts.
pub(super) mod class {
    pub(crate) const PARSER: &str = "ParserException";
    pub(crate) const NAMESPACE_ACCESS: &str = "InvalidNamespaceAccess";
    pub(crate) const HYPHEN: &str = "HyphenException";
    pub(crate) const COMPILER: &str = "CompilerException";
    pub(crate) const DUPLICATE: &str = "DuplicateException";
    pub(crate) const RUNTIME: &str = "RuntimeException";
    pub(crate) const TYPING: &str = "TypingException";
    pub(crate) const WARNING: &str = "ParserWarning";
}
