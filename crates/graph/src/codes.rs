//! The codes of what can be wrong with resources and edges once their values are there.

setpoint_diagnostics::codes! {
    pub
    EMPTY_NAME = "E0401" "R1" Interpret "a resource with an empty name";
    VALUE_DOES_NOT_FIT = "E0402" "R2" Interpret "a value that does not fit its parameter";
    UNKNOWN_KIND = "E0403" "R3" Interpret "a resource of a kind that does not exist";
    BAD_META = "E0404" "R4" Interpret "a meta parameter that is not valid";
    DOLLAR_NAME = "E0405" "R5" Interpret "a resource whose name begins with `$`";
    MISSING_RESOURCE = "E0406" "R6" Interpret "an edge to a resource that does not exist";
    SECOND_SENDER = "E0407" "R7" Interpret "a second sender for one parameter";
    HIDDEN_SENDER = "E0408" "R8" Interpret "a hidden resource that sends";
    DIFFERENT_EXPORTS = "E0409" "R9" Interpret "different exports of one resource to one host";
    BAD_COLLECT = "E0410" "R10" Interpret "a name or host that cannot be collected";
    INVALID_RESOURCE = "E0411" "R11" Interpret "a resource that its kind refuses";
    INCOMPATIBLE_DUPLICATE = "E0412" "R12" Interpret "two resources of one name that cannot be merged";
    DIFFERENT_DUPLICATE = "E0413" "R13" Interpret "two different resources of one name";
    CYCLE = "E0414" "R14" Interpret "resources that wait for each other in a circle";
    SENSITIVE_NAME = "E0420" "" Interpret "a name that is sensitive";
    NAME_NOT_TEXT = "E0421" "" Interpret "a name that is not text";
    DOUBTFUL_RESOURCE = "W0411" "" Interpret "a resource that is probably not what was meant";
    READABLE_SECRET = "W0412" "" Interpret "a secret that others can read";
    SEND_MISMATCH = "E0422" "" Interpret "a send key and a parameter that do not fit";
}
