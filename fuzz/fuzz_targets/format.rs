//! What parses can be formatted, and formatting twice is formatting once.
#![no_main]

use libfuzzer_sys::fuzz_target;
use setpoint_mcl::format::{FormatError, format};

fuzz_target!(|text: &str| {
    match format(text) {
        Ok(once) => {
            let twice = format(&once).expect("formatted text parses");
            assert_eq!(once, twice);
        }
        Err(FormatError::Syntax(_)) => {}
        Err(other) => panic!("the formatter does not trust its own output: {other:?}"),
    }
});
