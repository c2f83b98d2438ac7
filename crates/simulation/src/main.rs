//! `setpoint-simulation`: plays scripts of one seed after the other until so many steps of the machine are made, on all cores, and
//! shows the shortest script found that breaks a rule.

#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program of its own, which prints what it found and measures how long it took"
)]

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clap::Parser;
use setpoint_simulation::{Script, Statistics, Violation};

/// Plays random histories of the engine on simulated hosts and holds them against its rules.
#[derive(Parser)]
struct Arguments {
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many steps of the machine to make.
    #[arg(long, default_value_t = 1_000_000)]
    steps: u64,
    /// Play the script of the first seed only, and tell everything that happens.
    #[arg(long)]
    history: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.history {
        return tell(&Script::random(arguments.seed));
    }
    let began = Instant::now();
    let next = AtomicU64::new(arguments.seed);
    let all: Mutex<(Statistics, Vec<Violation>)> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let script = Script::random(next.fetch_add(1, Ordering::Relaxed));
                    let played = script.play();
                    let Ok(mut all) = all.lock() else {
                        return;
                    };
                    match played {
                        Ok(statistics) => all.0.add(statistics),
                        Err(violation) => all.1.push(*violation),
                    }
                    if all.0.steps >= arguments.steps || all.1.len() >= 10 {
                        return;
                    }
                }
            });
        }
    });
    let (done, mut broken) = all
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    println!(
        "seeds {} to {}: {} steps, {} programs, {} runs, {} repairs, {} notifications served, {} records exported or taken back, {} processes ended; {:.1} s",
        arguments.seed,
        next.load(Ordering::Relaxed) - 1,
        done.steps,
        done.swaps,
        done.runs,
        done.repairs,
        done.refreshes,
        done.exported,
        done.processes,
        began.elapsed().as_secs_f64()
    );
    broken.sort_by_key(|violation| violation.script.steps.len());
    for violation in &broken {
        println!(
            "seed {}: «{}» is broken: {}",
            violation.script.seed, violation.rule, violation.what
        );
    }
    match broken.first() {
        None => ExitCode::SUCCESS,
        Some(violation) => {
            println!("the script of seed {}, shortened:", violation.script.seed);
            tell(&violation.script.shorten(violation.rule));
            ExitCode::FAILURE
        }
    }
}

/// So much of a history is shown: what leads to its end.
const LAST: usize = 150;

fn tell(script: &Script) -> ExitCode {
    print!("{script}");
    let history = script.history();
    for line in &history[history.len().saturating_sub(LAST)..] {
        println!("{line}");
    }
    ExitCode::SUCCESS
}
