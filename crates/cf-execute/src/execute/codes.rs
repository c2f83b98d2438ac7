//! The codes of what can go wrong while statements are executed, and of what is incomplete in the end. Those that functions and operators
//! share with execution are in [`setpoint_cf_functions::codes`].

use setpoint_cf_syntax::stage::EVAL;

setpoint_diagnostics::codes! {
    pub
    SET_TWICE = "E0602" "" EVAL "a variable, attribute or relation that gets a second value";
    NOT_SET = "E0603" "" EVAL "an attribute or relation that cannot be set";
    NOT_AN_INSTANCE = "E0611" "" EVAL "an attribute of something that is no instance";
    FROZEN = "E0613" "" EVAL "an addition to a relation that had to be complete before";
    ARITY = "E0614" "" EVAL "a relation with more elements than it can have, or null in place of its elements";
    KEY_TAKEN = "E0615" "" EVAL "the key of an index that is taken by another instance";
    KEYS_COLLIDE = "E0616" "" EVAL "keys of several indexes that belong to different instances";
    NO_MATCH = "E0617" "" EVAL "a lookup without such an index, or without a match";
    GIVEN_TWICE = "E0618" "" EVAL "an attribute that a constructor or a lookup is given twice";
    SELECTOR = "E0619" "" EVAL "a lookup through what is no relation with two ends";
    DEFERRED_KEY = "E0626" "" EVAL "a deferred reference in an index";
    NOT_REFINED = "E0630" "" EVAL "an instance without an implementation";
    INCOMPLETE = "E0631" "" EVAL "an attribute or relation that did not get what it needs";
    NOT_EXECUTED = "E0632" "" EVAL "statements that wait for each other";
    TOO_MANY_ROUNDS = "E0633" "" EVAL "a model that needs too many rounds of freezing";
    ANNOTATION = "E0634" "" EVAL "an annotation of a relation that is not known";
    MULTIPLE = "E0635" "" EVAL "several errors at once";
    ENDLESS = "E0690" "" EVAL "a model that does not end";
    EMPTIED = "W0606" "" EVAL "null on a list relation that must have elements";
}
