//! Any text parses without a panic; the tokens' texts joined are the text; diagnostics lie inside it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use setpoint_diagnostics::{Diagnostics, SourceMap};

fuzz_target!(|text: &str| {
    let mut sources = SourceMap::new();
    let file = sources.add("fuzz.mcl", text);
    let mut diagnostics = Diagnostics::new();
    let parsed = setpoint_mcl::syntax::parse(file, text, &mut diagnostics);
    assert_eq!(parsed.ast.file, file);
    for diagnostic in &diagnostics {
        let span = diagnostic.primary.span;
        assert!(span.start <= span.end && span.end as usize <= text.len() + 1, "{diagnostic:?}");
    }
});
