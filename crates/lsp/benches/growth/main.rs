//! What looking at a program costs, and how that grows with the program: compiling, analysing, linting and formatting programs of
//! each shape at three sizes (or more: `--doublings N`), each twice the one before; and a keystroke in a program of 10 000 statements, from the change that an
//! editor sends to each answer that it waits for.
//!
//! Time is the processor's, the shortest of many rounds: whoever else is on the machine only ever adds to it. Of answers it is also the
//! time that somebody waits. Usage: `bench/growth.sh`.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark measures time, prints what it found, and fails where it cannot go on"
)]

mod keystrokes;
mod shapes;

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use setpoint_diagnostics::{Diagnostics, Loader, MemoryLoader, SourceMap};
use setpoint_graph::Library;
use setpoint_mcl::analysis::{AnalysisOptions, analyse};
use setpoint_mcl::lint::lint;
use setpoint_mcl::{CompileOptions, Entry, compile, format};
use setpoint_value::{Registry, Value};

use shapes::{SHAPES, Shape, statements};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What more than this for twice the size is marked.
const MOST: f64 = 2.3;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let after = |flag: &str| {
        let at = arguments.iter().position(|argument| argument == flag)?;
        arguments.get(at + 1).cloned()
    };
    let rounds = after("--rounds").map_or(15, |rounds| rounds.parse().unwrap());
    let doublings = after("--doublings").map_or(2, |doublings| doublings.parse().unwrap());
    let only = after("--only");
    let is_wanted = |name: &str| only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    let library = library();
    if is_wanted("keystrokes") {
        large(&library, rounds);
        keystrokes::measure(&statements(10_000), rounds);
    }
    println!("| shape | size | compile | analyse | lint | format |");
    println!("|---|---|---|---|---|---|");
    let mut exceeding = Vec::new();
    for shape in SHAPES.iter().filter(|shape| is_wanted(shape.name)) {
        exceeding.extend(growth(shape, doublings, rounds, &library));
    }
    println!(
        "\nmore than {MOST} for twice the size: {}",
        match exceeding.is_empty() {
            true => "nothing".to_owned(),
            false => exceeding.join("; "),
        }
    );
}

fn library() -> Library {
    let functions = Registry::new(setpoint_functions::MODULES.iter().copied());
    let kinds = setpoint_resources::KINDS.iter().map(|kind| kind.schema);
    Library::new(functions, kinds).with_variable("hostname", Value::str("here"))
}

/// What is measured of a program.
const STEPS: [&str; 4] = ["compile", "analyse", "lint", "format"];

/// Prints how a shape grows. Answers what grows too fast.
fn growth(shape: &Shape, doublings: usize, rounds: usize, library: &Library) -> Vec<String> {
    let sizes: Vec<usize> = (0..=doublings).map(|doubling| shape.size << doubling).collect();
    let programs: Vec<MemoryLoader> = sizes.iter().map(|size| (shape.program)(*size)).collect();
    let mut best = vec![[Duration::MAX; STEPS.len()]; sizes.len()];
    // The sizes take turns, so that what disturbs the machine disturbs all; of a small one there are as many rounds as fit into the time
    // of a large one, because the same disturbance is more beside it.
    for _ in 0..rounds {
        for (at, program) in programs.iter().enumerate() {
            for _ in 0..1 << (programs.len() - 1 - at) {
                for (best, time) in best[at].iter_mut().zip(steps(shape, program, library)) {
                    *best = time.min(*best);
                }
            }
        }
    }
    let mut exceeding = Vec::new();
    for (at, size) in sizes.iter().enumerate() {
        let mut row = format!("| {} | {size} |", if at == 0 { shape.name } else { "" });
        for (step, name) in STEPS.iter().enumerate() {
            let now = best[at][step];
            row.push_str(&format!(" {:.2} ms", milliseconds(now)));
            if at > 0 {
                let before = best[at - 1][step];
                let ratio = now.as_secs_f64() / before.as_secs_f64().max(1e-9);
                // What takes next to nothing is noise.
                let is_more = ratio > MOST && now > Duration::from_millis(2);
                row.push_str(&format!(" ×{ratio:.2}{}", if is_more { " **" } else { "" }));
                if is_more {
                    exceeding.push(format!("{}, {size}: {name} ×{ratio:.2}", shape.name));
                }
            }
            row.push_str(" |");
        }
        println!("{row}");
    }
    exceeding
}

fn steps(shape: &Shape, program: &MemoryLoader, library: &Library) -> [Duration; STEPS.len()] {
    let entry = Entry::File("main.mcl".to_owned());
    let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let start = processor_time();
    let options = CompileOptions::default();
    let compiled = compile(&entry, &options, program, library, &mut sources, &mut diagnostics);
    let compiled_at = processor_time();
    let first = diagnostics.iter().next();
    assert_eq!(
        compiled.program.is_some(),
        shape.is_right,
        "{}: {first:?}",
        shape.name
    );
    drop((compiled, sources, diagnostics));
    let again = processor_time();
    let analysis = analyse(&entry, &AnalysisOptions::default(), program, library).unwrap();
    let analysed_at = processor_time();
    let found = lint(&analysis, library, &|_| true);
    let linted_at = processor_time();
    drop((analysis, found));
    let text = text_of(program);
    let unformatted = processor_time();
    let formatted = format::format(&text);
    let formatted_at = processor_time();
    drop(formatted);
    [
        compiled_at - start,
        analysed_at - again,
        linted_at - analysed_at,
        formatted_at - unformatted,
    ]
}

/// A program of 10 000 statements.
fn large(library: &Library, rounds: usize) {
    let shape = Shape {
        name: "statements",
        size: 10_000,
        is_right: true,
        program: |size| MemoryLoader::new().with("main.mcl", statements(size)),
    };
    let program = (shape.program)(shape.size);
    let mut best = [Duration::MAX; STEPS.len()];
    for _ in 0..rounds {
        for (best, time) in best.iter_mut().zip(steps(&shape, &program, library)) {
            *best = time.min(*best);
        }
    }
    for (step, time) in STEPS.iter().zip(best) {
        println!(
            "{step} 10 000 statements: {:.1} ms of the processor",
            milliseconds(time)
        );
    }
}

fn text_of(program: &MemoryLoader) -> String {
    String::from_utf8(program.read("main.mcl").unwrap().to_vec()).unwrap()
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
