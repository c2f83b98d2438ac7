//! Any program that compiles evaluates without a panic, and time passing keeps it so.
#![no_main]

use std::sync::LazyLock;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use setpoint_diagnostics::{Diagnostics, MemoryLoader, SourceMap};
use setpoint_flow::Evaluator;
use setpoint_graph::Library;
use setpoint_mcl::{CompileOptions, Entry, compile};
use setpoint_simulated::SimulatedCapabilities;
use setpoint_value::Wake;

static LIBRARY: LazyLock<Library> = LazyLock::new(|| Library::new(setpoint_functions::registry(), []));

fuzz_target!(|text: &str| {
    // Long ranges and repetitions are legal and slow; they are not what this looks for.
    if text.contains("range") || text.contains("repeat") || text.contains("pad") || text.contains("slow") {
        return;
    }
    let entry = Entry::Code { name: "fuzz.mcl".to_owned(), text: text.to_owned() };
    let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let loader = MemoryLoader::new();
    let compiled =
        compile(&entry, &CompileOptions::default(), &loader, &LIBRARY, &mut sources, &mut diagnostics);
    let Some(program) = compiled.program else { return };
    let machine = SimulatedCapabilities::new();
    let woken = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let list = woken.clone();
    let mut evaluator = Evaluator::new(
        program,
        machine.shared(),
        Box::new(move |id| {
            let list = list.clone();
            Wake::new(move || list.lock().expect("no panic while it is held").push(id))
        }),
    );
    let mut generation = 0;
    let _ = evaluator.step(&[]);
    for _ in 0..3 {
        machine.advance(Duration::from_secs(1));
        let ids = std::mem::take(&mut *woken.lock().expect("no panic while it is held"));
        if let Some(graph) = evaluator.step(&ids).graph {
            assert!(graph.generation > generation, "generations rise");
            generation = graph.generation;
        }
    }
});
