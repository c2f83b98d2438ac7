//! The codes of what can go wrong with values, functions and templates, and what the language calls errors of these sorts.

use setpoint_cf_syntax::stage::EVAL;

setpoint_diagnostics::codes! {
    pub
    NOT_FOUND = "E0601" "" EVAL "a variable or attribute that there is not";
    WRONG_TYPE = "E0604" "" EVAL "a value of the wrong type";
    CONSTRAINT = "E0605" "" EVAL "a value that a typedef does not accept";
    CONSTRAINT_VARIABLE = "E0606" "" EVAL "a variable in the condition of a typedef";
    NOT_DIRECT = "E0607" "" EVAL "an expression that the condition of a typedef cannot have";
    OPERAND = "E0608" "" EVAL "an operand of the wrong type, or a result that does not exist";
    MISSING_KEY = "E0609" "" EVAL "a key that a dict does not have";
    CONDITION = "E0610" "" EVAL "a condition that is not a bool";
    NO_VALUE = "E0612" "" EVAL "an optional relation without a value";
    CALL_ARGUMENTS = "E0620" "" EVAL "too many, too few or wrongly named arguments";
    ARGUMENT_TYPE = "E0621" "" EVAL "an argument or result of the wrong type";
    CALL_FAILED = "E0622" "" EVAL "a function that failed";
    FORMAT = "E0624" "" EVAL "an f-string that cannot be made";
    DEFERRED = "E0625" "" EVAL "a deferred reference where its value is needed";
    NOT_IN_TEMPLATE = "E0627" "" EVAL "a template that cannot be rendered";
    TOO_LARGE = "E0691" "" EVAL "a value that is too large";
    DEPRECATED = "W0602" "" EVAL "a call of a deprecated function";
}

/// Names of errors as the language knows them.
pub mod class {
    /// Most errors.
    pub const RUNTIME: &str = "RuntimeException";
    /// Types that do not fit an operator.
    pub const TYPING: &str = "TypingException";
    /// A key that is not there.
    pub const KEY: &str = "KeyException";
    /// A name or file that is not there.
    pub const NOT_FOUND: &str = "NotFoundException";
    /// What a condition of a typedef cannot do.
    pub const DIRECT_EXECUTE: &str = "DirectExecuteException";
    /// An argument or result of the wrong type.
    pub const PLUGIN_TYPE: &str = "PluginTypeException";
    /// A model error that a function met.
    pub const WRAPPING: &str = "WrappingRuntimeException";
    /// An error that a function tells its users.
    pub const EXPLICIT_PLUGIN: &str = "ExplicitPluginException";
    /// Any other error of a function.
    pub const EXTERNAL: &str = "ExternalException";
    /// A template that is not there.
    pub const TEMPLATE_NOT_FOUND: &str = "TemplateNotFound";
    /// A deferred reference where its value is needed.
    pub const UNEXPECTED_REFERENCE: &str = "UnexpectedReference";
    /// An optional relation without a value.
    pub const OPTIONAL_VALUE: &str = "OptionalValueException";
    /// A deprecated function.
    pub const PLUGIN_DEPRECATION: &str = "PluginDeprecationWarning";
}
