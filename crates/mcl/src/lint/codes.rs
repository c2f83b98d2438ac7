//! The codes of the linter's rules.

setpoint_diagnostics::codes! {
    pub(crate)
    UNUSED_VARIABLE = "W0101" "" Scope "a variable that nothing uses";
    UNUSED_IMPORT = "W0102" "" Scope "an import that nothing uses";
    UNUSED_CLASS = "W0103" "" Scope "a class that nothing includes";
    UNUSED_FUNCTION = "W0104" "" Scope "a function that nothing calls";
    UNUSED_PARAMETER = "W0105" "" Scope "a parameter that nothing uses";
    SHADOWED_VARIABLE = "W0106" "" Scope "a variable of a block that hides one outside of it";
    DOLLAR_WITHOUT_BRACES = "W0107" "" Scope "a variable in a string without its braces";
    CONSTANT_CONDITION = "W0108" "" Init "a condition that is always the same";
    SAME_CONDITION = "W0109" "" Init "a condition that was asked before";
    SAME_BRANCHES = "W0110" "" Init "two branches that are the same";
    COMPARISON_WITH_BOOL = "W0111" "" Init "a comparison with `true` or `false`";
    EMPTY_BODY = "W0112" "" Init "a block with nothing in it";
    NOTIFICATION_WITHOUT_EFFECT = "W0113" "" Scope "a notification to a kind that does nothing on one";
    DUPLICATE_EDGE = "W0114" "" Init "an edge that is written twice";
    SAME_NAME_IN_LOOP = "W0115" "" Init "a loop that makes one resource again and again";
    CLASS_WITHOUT_PARENT = "W0116" "" Scope "a class inside of a class that does not exist";
    UNKNOWN_RULE = "W0121" "" Scope "a comment that allows what there is no rule for";
    UNUSED_ALLOW = "W0122" "" Scope "a comment that allows what is not there";
}
