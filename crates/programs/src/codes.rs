//! All codes of diagnostics: those of the languages and crates, and the few of commands.

use setpoint_diagnostics::CodeInfo;
use setpoint_mcl::stage::{FORMAT, SCOPE};

setpoint_diagnostics::codes! {
    pub
    NOT_LOCKED = "E0119" "" SCOPE "a module that is not what the lock file says";
    UNFORMATTED = "W0010" "" FORMAT "a file that is not formatted";
}

/// Every code, sorted.
#[must_use]
pub fn all() -> Vec<&'static CodeInfo> {
    let languages = setpoint_mcl::codes()
        .chain(setpoint_cf::codes())
        .chain(setpoint_yaml::codes::all());
    let mut all: Vec<&CodeInfo> = languages.chain(CODES.iter().copied()).collect();
    all.sort_by_key(|code| code.code);
    all
}

/// The code of a program that cannot be found, which is the language's.
pub(crate) fn module_not_found() -> &'static CodeInfo {
    let found = setpoint_mcl::codes().find(|code| code.rule == "M7");
    found.expect("the language has a code for modules that are not found")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_code_has_two_meanings() {
        let all = all();
        for pair in all.windows(2) {
            assert!(pair[0].code < pair[1].code, "{} is given twice", pair[0].code);
        }
    }
}
