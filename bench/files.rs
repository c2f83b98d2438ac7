//! The benchmark behind `files.sh`. It has no dependencies, so that `rustc` alone builds it.

mod support;

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use support::{
    Arguments, Files, Place, Random, Running, Watch, is_right, milliseconds, percentile, replace_bare,
    replace_one_bare,
};

fn main() {
    let arguments = Arguments::read();
    let bench = Bench {
        place: Place::new(&arguments),
        count: arguments.number("--count", 10_000),
        drifts: arguments.number("--drifts", 200),
        rounds: arguments.number("--rounds", 3),
        idle: Duration::from_secs(arguments.number("--idle", 10) as u64),
    };
    println!(
        "{} files, best of {} rounds, in {}",
        bench.count,
        bench.rounds,
        bench.place.directory.display()
    );
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load average before: {}", load.trim());
    println!();
    println!("| what | setpoint | bare loop | ratio |");
    println!("|---|---|---|---|");
    bench.check();
    bench.whole_runs();
    bench.repairs();
    bench.reactions(100);
    bench.reactions(400);
    bench.reactions(bench.count);
    println!();
    bench.idle();
}

struct Bench {
    place: Place,
    count: usize,
    drifts: usize,
    rounds: usize,
    idle: Duration,
}

fn content(index: usize) -> Vec<u8> {
    format!("This is file {index}, kept right.\n").into_bytes()
}

fn row(what: &str, ours: Duration, bare: Option<Duration>) {
    let ours = milliseconds(ours);
    match bare.map(milliseconds) {
        Some(bare) => println!("| {what} | {ours:.2} ms | {bare:.2} ms | {:.2} |", ours / bare),
        None => println!("| {what} | {ours:.2} ms | | |"),
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a readable path")
}

impl Bench {
    fn files(&self, name: &str, count: usize) -> Files {
        Files {
            root: self.place.path(name),
            count,
        }
    }

    fn program(&self, name: &str, files: &Files) -> PathBuf {
        let mut program = String::new();
        for index in 0..files.count {
            let content = String::from_utf8(content(index)).expect("contents are text");
            let _ = writeln!(
                program,
                "file \"{}\" {{\n\tcontent => \"{}\",\n\tmode => \"0644\",\n}}",
                files.path(index).display(),
                content.replace('\n', "\\n"),
            );
        }
        let path = self.place.path(name);
        fs::write(&path, program).expect("write the program");
        path
    }

    fn check(&self) {
        let files = self.files("check", self.count);
        let program = self.program("check.mcl", &files);
        let run = || self.place.run_well(&["check", "--skip-fmt", text(&program)]);
        let time = (0..self.rounds).map(|_| run()).min().expect("at least one round");
        row(&format!("check {} statements", self.count), time, None);
    }

    /// Cold, and again: both in turns with the bare loop, so that the machine's moods hit both.
    fn whole_runs(&self) {
        let ours = self.files("cold", self.count);
        let bare = self.files("bare", self.count);
        let program = self.program("cold.mcl", &ours);
        let prefix = self.place.path("prefix");
        let wanted: Vec<(PathBuf, Vec<u8>)> = (0..self.count)
            .map(|index| (bare.path(index), content(index)))
            .collect();
        let (mut cold, mut again, mut bare_cold, mut bare_again) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut buffer = Vec::new();
        for _ in 0..self.rounds {
            bare.clear();
            let start = Instant::now();
            replace_bare(&wanted);
            bare_cold.push(start.elapsed());
            let start = Instant::now();
            let right = wanted
                .iter()
                .filter(|(path, content)| is_right(path, content, &mut buffer))
                .count();
            assert_eq!(right, self.count, "the bare loop does its work");
            bare_again.push(start.elapsed());

            ours.clear();
            let _ = fs::remove_dir_all(&prefix);
            let run = ["run", "--once", "--prefix", text(&prefix), text(&program)];
            cold.push(self.place.run_well(&run));
            again.push(self.place.run_well(&run));
            let wrong =
                (0..self.count).find(|index| !is_right(&ours.path(*index), &content(*index), &mut buffer));
            assert_eq!(wrong, None, "setpoint does its work");
        }
        let best = |times: &[Duration]| *times.iter().min().expect("at least one round");
        row("cold run", best(&cold), Some(best(&bare_cold)));
        row("run without change", best(&again), Some(best(&bare_again)));
    }

    /// A process that is watching, with everything right.
    fn start(&self, program: &Path, prefix: &str) -> Running {
        let prefix = self.place.path(prefix);
        let mut command = self.place.command(&[
            "run",
            "--json",
            "--converger-timeout",
            "0",
            "--prefix",
            text(&prefix),
            text(program),
        ]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("start the program");
        let stdout = child.stdout.take().expect("it was piped");
        let running = Running(child);
        let mut lines = BufReader::new(stdout).lines();
        let converged = lines
            .by_ref()
            .any(|line| line.is_ok_and(|line| line.contains("\"event\":\"converged\"")));
        assert!(converged, "the program ended before everything was right");
        std::thread::spawn(move || lines.for_each(drop));
        running
    }

    /// Somebody writes nonsense into a file: how long until it is right again? Against a loop that reads inotify events and
    /// replaces the file in the same way.
    fn repairs(&self) {
        let ours = self.files("drift", self.count);
        ours.clear();
        let program = self.program("drift.mcl", &ours);
        let running = self.start(&program, "drift-prefix");
        let mut times = self.drift(&ours);
        drop(running);

        let bare = self.files("bare-drift", self.count);
        bare.clear();
        let wanted: Vec<(PathBuf, Vec<u8>)> = (0..self.count)
            .map(|index| (bare.path(index), content(index)))
            .collect();
        replace_bare(&wanted);
        let mut watch = Watch::new(bare.directories());
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let repairer = std::thread::spawn(move || {
            let mut buffer = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                for (_, name) in watch.next() {
                    let Some(index) = name.strip_prefix('f').and_then(|name| name.parse::<usize>().ok())
                    else {
                        continue;
                    };
                    let (path, content) = &wanted[index];
                    if !is_right(path, content, &mut buffer) {
                        replace_one_bare(path, content);
                    }
                }
            }
        });
        let mut bare_times = self.drift(&bare);
        stop.store(true, Ordering::Relaxed);
        fs::write(bare.path(0), content(0)).expect("wake the loop up");
        repairer.join().expect("the loop ends");

        for percent in [50, 99] {
            let what = format!("one drift repaired, p{percent} of {}", self.drifts);
            row(
                &what,
                percentile(&mut times, percent),
                Some(percentile(&mut bare_times, percent)),
            );
        }
    }

    fn drift(&self, files: &Files) -> Vec<Duration> {
        let mut random = Random(1);
        let mut buffer = Vec::new();
        let mut times = Vec::new();
        for _ in 0..self.drifts {
            let index = random.below(self.count);
            let (path, wanted) = (files.path(index), content(index));
            std::thread::sleep(Duration::from_millis(2));
            let start = Instant::now();
            fs::write(&path, "nonsense").expect("do damage");
            times.push(self.wait(start, || is_right(&path, &wanted, &mut buffer)));
        }
        times
    }

    fn wait(&self, start: Instant, mut done: impl FnMut() -> bool) -> Duration {
        while !done() {
            assert!(start.elapsed() < Duration::from_secs(30), "nothing happens");
            std::thread::yield_now();
        }
        start.elapsed()
    }

    /// A file that a source reads changes: how long until the file that depends on it has followed, beside so many others?
    fn reactions(&self, others: usize) {
        let files = self.files("reaction", others);
        files.clear();
        let program = self.program("reaction.mcl", &files);
        let (input, output) = (self.place.path("input"), files.root.join("output"));
        fs::write(&input, "0").expect("write the input");
        let mut statements = fs::read_to_string(&program).expect("read the program");
        let _ = write!(
            statements,
            "import \"os\"\nfile \"{}\" {{\n\tcontent => os.readfile(\"{}\"),\n}}\n",
            output.display(),
            input.display(),
        );
        fs::write(&program, statements).expect("write the program");
        let running = self.start(&program, "reaction-prefix");
        let mut times = Vec::new();
        for round in 1..=self.drifts {
            std::thread::sleep(Duration::from_millis(2));
            let wanted = round.to_string();
            let start = Instant::now();
            fs::write(&input, &wanted).expect("change the input");
            times.push(self.wait(start, || {
                fs::read_to_string(&output).is_ok_and(|text| text == wanted)
            }));
        }
        drop(running);
        for percent in [50, 99] {
            let what = format!("one input followed beside {others} files, p{percent}");
            row(&what, percentile(&mut times, percent), None);
        }
    }

    /// What a process costs that has nothing to do.
    fn idle(&self) {
        let small = self.files("small", 1);
        small.clear();
        let running = self.start(&self.program("small.mcl", &small), "small-prefix");
        let base = memory(running.0.id(), "VmRSS");
        drop(running);

        let files = self.files("idle", self.count);
        files.clear();
        let running = self.start(&self.program("idle.mcl", &files), "idle-prefix");
        let id = running.0.id();
        // What follows from starting is over by then.
        std::thread::sleep(Duration::from_secs(3));
        let before = processor_time(id);
        std::thread::sleep(self.idle);
        let used = processor_time(id) - before;
        let (instances, watches) = inotify(id);
        let (now, peak) = (memory(id, "VmRSS"), memory(id, "VmHWM"));
        println!("Idle with {} files:", self.count);
        println!(
            "- processor time in {} s: {used} ticks of 10 ms",
            self.idle.as_secs()
        );
        println!("- inotify instances: {instances}, watches: {watches}");
        println!("- threads: {}", memory(id, "Threads"));
        println!(
            "- descriptors: {}",
            fs::read_dir(format!("/proc/{id}/fd"))
                .map(Iterator::count)
                .unwrap_or(0)
        );
        println!("- memory: {now} KB ({base} KB with one file), at most {peak} KB");
        println!(
            "- memory per resource: {:.2} KB",
            now.saturating_sub(base) as f64 / self.count as f64
        );
    }
}

/// A number of `/proc/PID/status`.
fn memory(id: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.unwrap_or(0)
}

/// User and system time in ticks, of `/proc/PID/stat`.
fn processor_time(id: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    [11, 12]
        .iter()
        .filter_map(|at| fields.get(*at)?.parse::<u64>().ok())
        .sum()
}

/// How many inotify instances and watches a process has.
fn inotify(id: u32) -> (usize, usize) {
    let (mut instances, mut watches) = (0, 0);
    let Ok(entries) = fs::read_dir(format!("/proc/{id}/fd")) else {
        return (0, 0);
    };
    for entry in entries.flatten() {
        let is_inotify =
            fs::read_link(entry.path()).is_ok_and(|target| target.to_string_lossy().contains("inotify"));
        if is_inotify {
            instances += 1;
            let info = format!("/proc/{id}/fdinfo/{}", entry.file_name().to_string_lossy());
            let info = fs::read_to_string(info).unwrap_or_default();
            watches += info.lines().filter(|line| line.starts_with("inotify ")).count();
        }
    }
    (instances, watches)
}
