//! The codes of the linter's rules.

use setpoint_cf_syntax::stage::{PARSE, SCOPE, TYPE};

setpoint_diagnostics::codes! {
    pub
    HYPHEN_IN_NAME = "W0511" "" PARSE "a name with a hyphen";
    POSITIONAL_CONSTRUCTOR = "W0512" "" TYPE "a constructor that is given values by position";
    NOT_COMPARISON = "W0513" "" PARSE "a `not` before a comparison";
    TYPEDEF_SHADOWS_VARIABLE = "W0514" "" SCOPE "a typedef with the name of a variable";
    UNUSED_IMPORT = "W0515" "" SCOPE "an import that nothing uses";
    UNUSED_TYPEDEF = "W0516" "" SCOPE "a typedef that nothing uses";
    UNUSED_IMPLEMENTATION = "W0517" "" SCOPE "an implementation that nothing uses";
    UNKNOWN_VARIABLE = "W0518" "" TYPE "a variable that there is none of";
    UNKNOWN_MEMBER = "W0519" "" TYPE "an attribute or relation that there is none of";
    UNKNOWN_RULE = "W0521" "" SCOPE "a comment that allows what there is no rule for";
    UNUSED_ALLOW = "W0522" "" SCOPE "a comment that allows what is not there";
}
