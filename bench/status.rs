//! The measurement behind `status.sh`. It has no dependencies, so that `rustc` alone builds it.

#[allow(dead_code, reason = "other benchmarks use the rest")]
mod support;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use support::process::processor_ticks;
use support::{Arguments, Files, Place, Random, Running, milliseconds, percentile};

fn main() {
    let arguments = Arguments::read();
    let seconds = arguments.number("--seconds", 20) as u64;
    let drifts = arguments.number("--drifts", 100);
    let place = Place::new(&arguments);
    let files = Files {
        root: place.path("files"),
        count: arguments.number("--count", 100_000),
    };
    files.clear();
    let prefix = place.path("prefix");
    let prefix = text(&prefix);
    let program = program(&place, &files);
    place.run_well(&["run", "--once", "--state-dir", prefix, &program]);
    let mut running = Running(
        place
            .command(&["run", "--state-dir", prefix, &program])
            .spawn()
            .expect("start the program"),
    );
    let is_right = || place.run(&["status", "--state-dir", prefix]).0.code() == Some(0);
    let patience = Instant::now();
    while !is_right() {
        assert!(
            running.0.try_wait().expect("look at the program").is_none(),
            "it ended"
        );
        assert!(
            patience.elapsed() < Duration::from_secs(300),
            "it never became right"
        );
        std::thread::sleep(Duration::from_millis(200));
    }

    let bare = time_of(20, || {
        place.run(&["--version"]);
    });
    println!("starting the program and ending it (--version): {bare}");
    let first = format!("file[{}]", files.path(0).display());
    for question in [
        &["status"][..],
        &["status", "--json"],
        &["status", &first],
        &["status", "file[/none]"],
        &["status", "--all", "--json"],
    ] {
        let mut question = question.to_vec();
        question.extend(["--state-dir", prefix]);
        let count = if question.contains(&"--all") { 5 } else { 20 };
        let took = time_of(count, || {
            place.run(&question);
        });
        println!(
            "{} among {} resources: {took}",
            question[..question.len() - 2].join(" "),
            files.count
        );
    }

    let mut random = Random(1);
    let mut disturb = |engine: u32, follower: Option<u32>| {
        let before = (processor(engine), follower.map(processor));
        let mut latencies = Vec::new();
        let began = Instant::now();
        let step = Duration::from_secs(1) / drifts as u32;
        let mut next = began;
        while began.elapsed() < Duration::from_secs(seconds) {
            let path = files.path(random.below(files.count));
            fs::write(&path, "wrong").expect("write");
            let changed = Instant::now();
            while fs::read(&path).is_ok_and(|found| found != b"right") {
                assert!(
                    changed.elapsed() < Duration::from_secs(20),
                    "{} stays wrong",
                    path.display()
                );
                std::thread::sleep(Duration::from_micros(200));
            }
            latencies.push(changed.elapsed());
            next += step;
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        let took = began.elapsed().as_secs_f64();
        let share = |before: f64, now: f64| 100.0 * (now - before) / took;
        let engine_share = share(before.0, processor(engine));
        let follower_share = follower.map(|id| share(before.1.unwrap_or(0.0), processor(id)));
        let repairs = latencies.len() as f64 / took;
        println!(
            "  {repairs:.0} repairs a second, seen after p50 {:.1} ms, p99 {:.1} ms; the engine takes {engine_share:.1} % of a core{}",
            milliseconds(percentile(&mut latencies, 50)),
            milliseconds(percentile(&mut latencies, 99)),
            follower_share
                .map(|share| format!(", the follower {share:.1} %"))
                .unwrap_or_default()
        );
    };
    let engine = running.0.id();
    println!("nobody follows:");
    disturb(engine, None);
    println!("one follows with `events --follow --json`:");
    let follow = ["events", "--follow", "--json", "--state-dir", prefix];
    let follower = Running(place.command(&follow).spawn().expect("start the follower"));
    std::thread::sleep(Duration::from_millis(500));
    disturb(engine, Some(follower.0.id()));
    println!("one follows and is stopped, so that it takes nothing:");
    let _ = Command::new("kill")
        .args(["-STOP", &follower.0.id().to_string()])
        .status();
    disturb(engine, None);
    drop(follower);
}

fn program(place: &Place, files: &Files) -> String {
    let mut program = String::new();
    for index in 0..files.count {
        let path = files.path(index);
        let _ = writeln!(program, "file \"{}\" {{ content => \"right\", }}", path.display());
    }
    let path = place.path("program.mcl");
    fs::write(&path, program).expect("write the program");
    text(&path).to_owned()
}

/// The median and the longest of so many times.
fn time_of(count: usize, mut what: impl FnMut()) -> String {
    let mut times: Vec<Duration> = (0..count)
        .map(|_| {
            let began = Instant::now();
            what();
            began.elapsed()
        })
        .collect();
    let median = milliseconds(percentile(&mut times, 50));
    format!(
        "median {median:.1} ms, longest {:.1} ms",
        milliseconds(percentile(&mut times, 100))
    )
}

/// Seconds of the processor that a process has had.
fn processor(process: u32) -> f64 {
    // The kernel counts in hundredths.
    processor_ticks(process) as f64 / 100.0
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a readable path")
}
