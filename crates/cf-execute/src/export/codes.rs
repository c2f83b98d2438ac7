//! The codes of what can go wrong when instances become resources.

use setpoint_cf_syntax::stage::INTERPRET;

setpoint_diagnostics::codes! {
    pub
    SAME_RESOURCE = "E0640" "" INTERPRET "two resources of one kind and name on one machine";
    CYCLE = "E0641" "" INTERPRET "resources that require each other in a circle";
    IDENTITY = "E0642" "" INTERPRET "a name or machine that a resource cannot have";
    TWO_SETS = "E0643" "" INTERPRET "a resource in two resource sets";
    UNFIT = "E0644" "" INTERPRET "a resource that does not fit its kind";
    REFERENCE_CYCLE = "E0645" "" INTERPRET "a deferred reference that contains itself";
    BAD_BINDING = "E0646" "" INTERPRET "a binding file that is not right";
    PLAIN_REQUIRES = "W0605" "" INTERPRET "requirements that are all no resources";
    NOT_POSSIBLE = "W0607" "" INTERPRET "something that needs more than this machine";
    DOUBTFUL = "W0608" "" INTERPRET "a resource that is probably not what was meant";
}
