//! Any raw string is taken apart without a panic; what is not `${…}` or an escape comes back as it is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use setpoint_diagnostics::{FileId, Span};
use setpoint_mcl::syntax::{Piece, interpolate};

fuzz_target!(|raw: &str| {
    let literal = Span::new(FileId(0), 0, raw.len() as u32 + 2);
    if let Ok(pieces) = interpolate(raw, literal) {
        assert!(!pieces.is_empty());
        if !raw.contains(['$', '\\']) {
            assert_eq!(pieces, [Piece::Text(raw.to_owned())]);
        }
    }
});
