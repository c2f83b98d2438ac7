//! Any text goes through all stages of compiling without a panic, and gives either a program or an error.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use setpoint_diagnostics::{Diagnostics, MemoryLoader, SourceMap};
use setpoint_graph::Library;
use setpoint_mcl::{CompileOptions, Entry, compile};

static LIBRARY: LazyLock<Library> = LazyLock::new(|| Library::new(setpoint_functions::registry(), []));

fuzz_target!(|text: &str| {
    let entry = Entry::Code { name: "fuzz.mcl".to_owned(), text: text.to_owned() };
    let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let loader = MemoryLoader::new();
    let compiled =
        compile(&entry, &CompileOptions::default(), &loader, &LIBRARY, &mut sources, &mut diagnostics);
    assert_eq!(compiled.program.is_none(), diagnostics.has_errors());
});
