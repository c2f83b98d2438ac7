//! Random well-typed programs: what the compiler and the evaluator make of them is what an interpreter says that is written from
//! the rules of the language alone; and what must not make a difference makes none.
//!
//! `SETPOINT_RANDOM_PROGRAMS` says how many programs are tried (1 000 if it is not set), `SETPOINT_RANDOM_SEED` with which
//! seed they begin. A program on which the two disagree is made smaller before it is shown.

mod datum;
mod generator;
mod interpreter;
mod library;
mod pipeline;
mod resources;
mod scopes;
mod shrink;
mod template;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use setpoint_diagnostics::{Loader as _, MemoryLoader};

use pipeline::Result as Real;
use shrink::Files;
use template::{Present, Style, Template};

/// How the programs went.
#[derive(Default)]
struct Counts {
    graphs: AtomicUsize,
    failures: AtomicUsize,
    /// Programs of which the rules do not say whether something that fails is needed.
    undecided: AtomicUsize,
    /// Programs whose types are not determined without the annotations.
    ambiguous: AtomicUsize,
    resources: AtomicUsize,
    edges: AtomicUsize,
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

#[test]
fn random_programs_agree_with_a_naive_interpreter() {
    let count = number("SETPOINT_RANDOM_PROGRAMS", 1_000);
    let first = number("SETPOINT_RANDOM_SEED", 0);
    let counts = Counts::default();
    let next = AtomicU64::new(first);
    let wrong: Mutex<Vec<String>> = Mutex::default();
    std::thread::scope(|scope| {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..workers {
            let work = || {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let has_enough = wrong.lock().is_ok_and(|wrong| wrong.len() >= 5);
                    if seed >= first + count || has_enough {
                        return;
                    }
                    if let Err(report) = check(seed, &counts) {
                        wrong.lock().expect("no panic while it is held").push(report);
                    }
                }
            };
            scope.spawn(work);
        }
    });
    let Counts {
        graphs,
        failures,
        undecided,
        ambiguous,
        resources,
        edges,
    } = counts;
    eprintln!(
        "{count} programs from seed {first}: {graphs:?} graphs of {resources:?} resources and {edges:?} edges, \
         {failures:?} failures, {undecided:?} undecided, {ambiguous:?} with types that only annotations determine"
    );
    let wrong = wrong.into_inner().expect("no panic while it is held");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    if count >= 1_000 {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let graphs = graphs.into_inner();
        assert!(graphs * 10 > count * 7, "most programs have a graph");
        assert!(failures.into_inner() * 100 > count, "some programs fail");
    }
}

/// The program of a seed, in all its styles.
fn check(seed: u64, counts: &Counts) -> Result<(), String> {
    let template = generator::generate(seed);
    let plain = Style {
        parentheses: Present::Sometimes,
        annotations: Present::Always,
        shadowing: true,
        wrapped: false,
        seed,
    };
    let files = template.files(plain);
    let real = pipeline::run(&files);
    let (naive, is_undecided) = interpreter::interpret(&files);
    if is_undecided {
        counts.undecided.fetch_add(1, Ordering::Relaxed);
        return Ok(());
    }
    match (&real, &naive) {
        (Real::Graph(graph), Ok(other)) if graph == other => {
            counts.graphs.fetch_add(1, Ordering::Relaxed);
            let edges = graph.iter().filter(|line| line.contains(" -> ")).count();
            counts.edges.fetch_add(edges, Ordering::Relaxed);
            counts.resources.fetch_add(graph.len() - edges, Ordering::Relaxed);
        }
        (Real::Fails(..), Err(_)) => {
            counts.failures.fetch_add(1, Ordering::Relaxed);
        }
        _ => {
            let class = (class_of(&real), naive.is_ok());
            let disagrees = |files: &Files| {
                let files = loader(files);
                let (naive, is_undecided) = interpreter::interpret(&files);
                let real = pipeline::run(&files);
                (class_of(&real), naive.is_ok()) == class && !is_undecided && !agree(&real, &naive)
            };
            let smallest = shrink::shrink(texts(&template, &files), disagrees);
            let report = report(seed, "the interpreter disagrees", &smallest, &loader(&smallest));
            let whole = listing(&texts(&template, &files));
            return Err(format!("{report}made smaller from\n{whole}"));
        }
    }
    laws(seed, &template, plain, &real, counts)
}

fn agree(real: &Real, naive: &interpreter::Outcome<resources::Graph>) -> bool {
    match (real, naive) {
        (Real::Graph(graph), Ok(other)) => graph == other,
        (Real::Fails(..), Err(_)) => true,
        _ => false,
    }
}

/// What kind of result it is, so that a program is not shrunk into another mistake.
fn class_of(real: &Real) -> (&str, &str) {
    match real {
        Real::Graph(_) => ("graph", ""),
        Real::Fails(code, _) => (code, ""),
        Real::Refused(code, message) => (code, message),
    }
}

/// One of the styles that must not make a difference, another one for each seed.
fn laws(seed: u64, template: &Template, plain: Style, real: &Real, counts: &Counts) -> Result<(), String> {
    let (law, style) = match seed % 6 {
        0 => (
            "parentheses that precedence says already",
            Style {
                parentheses: Present::Always,
                ..plain
            },
        ),
        1 => (
            "no such parentheses",
            Style {
                parentheses: Present::Never,
                ..plain
            },
        ),
        2 => (
            "another order of statements",
            Style {
                seed: seed ^ 0xff_ffff,
                ..plain
            },
        ),
        3 => (
            "names that shadow none",
            Style {
                shadowing: false,
                ..plain
            },
        ),
        4 => (
            "a class around everything",
            Style {
                wrapped: true,
                ..plain
            },
        ),
        _ => (
            "types that inference finds",
            Style {
                annotations: Present::Never,
                ..plain
            },
        ),
    };
    let files = template.files(style);
    let other = pipeline::run(&files);
    if style.annotations == Present::Never && class_of(&other).0 == "E0206" {
        counts.ambiguous.fetch_add(1, Ordering::Relaxed);
        return Ok(());
    }
    if !same(real, &other) {
        let before = texts(template, &template.files(plain));
        let after = texts(template, &files);
        return Err(format!(
            "{}\ninstead of\n{}",
            report(seed, law, &after, &files),
            report(seed, "as it was", &before, &template.files(plain))
        ));
    }
    if seed.is_multiple_of(3) {
        let formatted = texts(template, &files).into_iter().map(|(path, text)| {
            let formatted =
                setpoint_mcl::format::format(&text).map_err(|error| format!("seed {seed}: {error}\n{text}"));
            Ok((path, formatted?))
        });
        let formatted = formatted.collect::<Result<Files, String>>()?;
        let again = pipeline::run(&loader(&formatted));
        if !same(&other, &again) {
            return Err(report(
                seed,
                "formatting changes what it means",
                &formatted,
                &loader(&formatted),
            ));
        }
    }
    Ok(())
}

fn same(real: &Real, other: &Real) -> bool {
    match (real, other) {
        (Real::Graph(graph), Real::Graph(other)) => graph == other,
        // Which of several failures is told first follows from the order of the text.
        (Real::Fails(..), Real::Fails(..)) => true,
        _ => false,
    }
}

fn loader(files: &Files) -> MemoryLoader {
    files.iter().fold(MemoryLoader::new(), |loader, (path, text)| {
        loader.with(path.clone(), text.clone())
    })
}

fn texts(template: &Template, files: &MemoryLoader) -> Files {
    let text = |path: &str| String::from_utf8_lossy(&files.read(path).unwrap_or_default()).into_owned();
    template
        .files
        .iter()
        .map(|(path, _)| (path.clone(), text(path)))
        .collect()
}

/// All files, one below the other.
fn listing(files: &Files) -> String {
    let mut text = String::new();
    for (path, content) in files {
        let lines = content.lines().filter(|line| !line.trim().is_empty());
        text.push_str(&format!("--- {path}\n{}\n", lines.collect::<Vec<_>>().join("\n")));
    }
    text
}

fn report(seed: u64, what: &str, files: &Files, loader: &MemoryLoader) -> String {
    let mut text = format!("seed {seed}: {what}\n{}", listing(files));
    text.push_str(&format!(
        "--- the compiler and the evaluator\n{:#?}\n",
        pipeline::run(loader)
    ));
    let naive = match interpreter::interpret(loader).0 {
        Ok(graph) => format!("{graph:#?}"),
        Err(failure) => format!("fails: {}", failure.reason),
    };
    text + &format!("--- the interpreter\n{naive}\n")
}
