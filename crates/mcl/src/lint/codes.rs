//! The codes of the linter's rules.

use crate::stage::{INIT, SCOPE};

setpoint_diagnostics::codes! {
    pub(crate)
    UNUSED_VARIABLE = "W0101" "" SCOPE "a variable that nothing uses";
    UNUSED_IMPORT = "W0102" "" SCOPE "an import that nothing uses";
    UNUSED_CLASS = "W0103" "" SCOPE "a class that nothing includes";
    UNUSED_FUNCTION = "W0104" "" SCOPE "a function that nothing calls";
    UNUSED_PARAMETER = "W0105" "" SCOPE "a parameter that nothing uses";
    SHADOWED_VARIABLE = "W0106" "" SCOPE "a variable of a block that hides one outside of it";
    DOLLAR_WITHOUT_BRACES = "W0107" "" SCOPE "a variable in a string without its braces";
    CONSTANT_CONDITION = "W0108" "" INIT "a condition that is always the same";
    SAME_CONDITION = "W0109" "" INIT "a condition that was asked before";
    SAME_BRANCHES = "W0110" "" INIT "two branches that are the same";
    COMPARISON_WITH_BOOL = "W0111" "" INIT "a comparison with `true` or `false`";
    EMPTY_BODY = "W0112" "" INIT "a block with nothing in it";
    NOTIFICATION_WITHOUT_EFFECT = "W0113" "" SCOPE "a notification to a kind that does nothing on one";
    DUPLICATE_EDGE = "W0114" "" INIT "an edge that is written twice";
    SAME_NAME_IN_LOOP = "W0115" "" INIT "a loop that makes one resource again and again";
    CLASS_WITHOUT_PARENT = "W0116" "" SCOPE "a class inside of a class that does not exist";
    LONE_PERCENT_SIGN = "W0117" "" SCOPE "a percent sign at the end of a format";
    UNKNOWN_RULE = "W0121" "" SCOPE "a comment that allows what there is no rule for";
    UNUSED_ALLOW = "W0122" "" SCOPE "a comment that allows what is not there";
}
