//! The benchmark behind `files.sh`. It has no dependencies, so that `rustc` alone builds it.
//!
//! Each figure stands beside that of a bare loop of system calls, made in the same run: what a machine can do is
//! different every day, the ratio is not.

mod support;

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use support::process::{
    Threads, inotify, memory, most_threads_of, processor_ticks, processor_time, threads_of,
};
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
    let only = arguments.text("--only").map(str::to_owned);
    let wanted = |part: &str| only.as_deref().is_none_or(|only| only.split(',').any(|name| name == part));
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
    if wanted("check") {
        bench.check();
    }
    if wanted("runs") {
        bench.whole_runs();
    }
    if wanted("plan") {
        bench.plans();
    }
    if wanted("drift") {
        bench.repairs();
    }
    if wanted("input") {
        bench.reactions();
    }
    if wanted("change") {
        bench.changes(20_000);
    }
    println!();
    if wanted("idle") {
        bench.idle();
    }
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

    fn statements(files: &Files) -> String {
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
        program
    }

    fn program(&self, name: &str, files: &Files) -> PathBuf {
        self.write(name, &Self::statements(files))
    }

    fn write(&self, name: &str, program: &str) -> PathBuf {
        let path = self.place.path(name);
        fs::write(&path, program).expect("write the program");
        path
    }

    /// From the start of the process to its end, and of ten times as many.
    fn check(&self) {
        let mut first = None;
        for count in [self.count, 10 * self.count] {
            let program = self.program("check.mcl", &self.files("check", count));
            let run = || self.place.run_well(&["check", "--skip-fmt", text(&program)]);
            let time = (0..self.rounds).map(|_| run()).min().expect("at least one round");
            row(&format!("check {count} statements"), time, None);
            match first {
                None => first = Some(time),
                Some(first) => println!(
                    "| ten times the statements | | | {:.1} times the time |",
                    milliseconds(time) / milliseconds(first)
                ),
            }
        }
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
        let mut threads = 0;
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
            let run = ["run", "--once", "--state-dir", text(&prefix), text(&program)];
            cold.push(self.place.run_well(&run));
            again.push(self.place.run_well(&run));
            let wrong =
                (0..self.count).find(|index| !is_right(&ours.path(*index), &content(*index), &mut buffer));
            assert_eq!(wrong, None, "setpoint does its work");
        }
        // Looking at the threads costs time of its own, so it is a round of its own.
        ours.clear();
        let mut command =
            self.place
                .command(&["run", "--once", "--state-dir", text(&prefix), text(&program)]);
        let mut running = Running(command.spawn().expect("start the program"));
        threads = threads.max(most_threads_of(&mut running));
        let best = |times: &[Duration]| *times.iter().min().expect("at least one round");
        row("cold run", best(&cold), Some(best(&bare_cold)));
        row("run without change", best(&again), Some(best(&bare_again)));
        println!("| threads at most, cold run | {threads} | | |");
    }

    /// Plans compared with runs, and a plan of a chain: each file comes after the one before.
    fn plans(&self) {
        let ours = self.files("planned", self.count);
        let program = self.program("planned.mcl", &ours);
        let mut chain = Self::statements(&ours);
        for index in 1..self.count {
            let path = |index: usize| ours.path(index);
            let _ = writeln!(
                chain,
                "File[\"{}\"] -> File[\"{}\"]",
                text(&path(index - 1)),
                text(&path(index))
            );
        }
        let chain = self.write("chain.mcl", &chain);
        let prefix = self.place.path("planned-prefix");
        let state = ["--state-dir", text(&prefix)];
        let plan = [&["plan"], &state[..], &[text(&program)]].concat();
        let json = [&["plan", "--json"], &state[..], &[text(&program)]].concat();
        let chained = [&["plan"], &state[..], &[text(&chain)]].concat();
        let run = [&["run", "--once"], &state[..], &[text(&program)]].concat();
        let mut times = vec![Vec::new(); 6];
        for _ in 0..self.rounds {
            ours.clear();
            let _ = fs::remove_dir_all(&prefix);
            for (at, arguments) in [&plan, &json, &chained].into_iter().enumerate() {
                times[at].push(self.place.run_well(arguments));
            }
            times[3].push(self.place.run_well(&run));
            times[4].push(self.place.run_well(&run));
            times[5].push(self.place.run_well(&plan));
        }
        let best = |at: usize| *times[at].iter().min().expect("at least one round");
        let ratio = |what: &str, ours: usize, other: usize| {
            let (ours, other) = (milliseconds(best(ours)), milliseconds(best(other)));
            println!("| {what} | {ours:.2} ms | {other:.2} ms | {:.2} |", ours / other);
        };
        ratio("plan without change, compared with such a run", 5, 4);
        ratio("plan of new files, compared with a run without change", 0, 4);
        ratio("the same as JSON, compared with that plan", 1, 0);
        ratio("plan of a chain of new files, compared with that plan", 2, 0);
    }

    /// A process that is watching, with everything right.
    fn start(&self, program: &Path, prefix: &str) -> Running {
        let prefix = self.place.path(prefix);
        let mut command = self.place.command(&[
            "run",
            "--json",
            "--converger-timeout",
            "0",
            "--state-dir",
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
        // What follows from starting is over by then.
        std::thread::sleep(Duration::from_millis(500));
        running
    }

    /// Somebody writes nonsense into a file: how long until it is right again? Against a loop that reads inotify events and
    /// replaces the file in the same way.
    fn repairs(&self) {
        let ours = self.files("drift", self.count);
        ours.clear();
        let program = self.program("drift.mcl", &ours);
        let running = self.start(&program, "drift-prefix");
        self.drift(&ours, 5);
        let cost = Cost::of(&running);
        let mut times = self.drift(&ours, self.drifts);
        let cost = cost.since(self.drifts);
        drop(running);

        let bare = self.files("bare-drift", self.count);
        bare.clear();
        let wanted: Vec<(PathBuf, Vec<u8>)> = (0..self.count)
            .map(|index| (bare.path(index), content(index)))
            .collect();
        replace_bare(&wanted);
        let reactor = Reactor::start(Watch::new(bare.directories()), move |name, buffer| {
            let Some(index) = name.strip_prefix('f').and_then(|name| name.parse::<usize>().ok()) else {
                return;
            };
            let (path, content) = &wanted[index];
            if !is_right(path, content, buffer) {
                replace_one_bare(path, content);
            }
        });
        let mut bare_times = self.drift(&bare, self.drifts);
        reactor.end(&bare.path(0), &content(0));
        self.reaction_rows("one drift repaired", &mut times, &mut bare_times, &cost);
    }

    fn reaction_rows(&self, what: &str, ours: &mut [Duration], bare: &mut [Duration], cost: &str) {
        for percent in [50, 99] {
            let what = format!("{what} beside {} files, p{percent} of {}", self.count, self.drifts);
            row(&what, percentile(ours, percent), Some(percentile(bare, percent)));
        }
        println!("| … its cost | {cost} | | |");
    }

    fn drift(&self, files: &Files, count: usize) -> Vec<Duration> {
        let mut random = Random(1);
        let mut buffer = Vec::new();
        let mut times = Vec::new();
        for _ in 0..count {
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
            // Looking without a pause would take one of the processors from who is measured.
            std::thread::sleep(Duration::from_micros(20));
        }
        start.elapsed()
    }

    /// A file that a source reads changes: how long until the file that depends on it has followed? Against a loop that reads
    /// inotify events, reads the input, and replaces the output.
    fn reactions(&self) {
        let files = self.files("reaction", self.count);
        files.clear();
        let (input, output) = (self.place.path("inputs/input"), files.root.join("output"));
        fs::create_dir_all(self.place.path("inputs")).expect("make a directory");
        fs::write(&input, "0").expect("write the input");
        let mut statements = Self::statements(&files);
        let _ = write!(
            statements,
            "import \"os\"\nfile \"{}\" {{\n\tcontent => os.readfile(\"{}\"),\n\tmode => \"0644\",\n}}\n",
            output.display(),
            input.display(),
        );
        let program = self.write("reaction.mcl", &statements);
        let running = self.start(&program, "reaction-prefix");
        self.follow(&input, &output, 5);
        let cost = Cost::of(&running);
        let mut times = self.follow(&input, &output, self.drifts);
        let cost = cost.since(self.drifts);
        drop(running);

        let watch = Watch::of_arrivals(std::iter::once(self.place.path("inputs")));
        let (from, to) = (input.clone(), output.clone());
        let reactor = Reactor::start(watch, move |_, buffer| {
            let wanted = fs::read(&from).expect("read the input");
            if !is_right(&to, &wanted, buffer) {
                replace_one_bare(&to, &wanted);
            }
        });
        let mut bare_times = self.follow(&input, &output, self.drifts);
        reactor.end(&input, b"0");
        self.reaction_rows("one input followed", &mut times, &mut bare_times, &cost);
    }

    fn follow(&self, input: &Path, output: &Path, count: usize) -> Vec<Duration> {
        let mut times = Vec::new();
        // The input is replaced, as whoever cares for its readers does it: it is never half-written.
        let new = input.with_file_name("new");
        for round in 1..=count {
            std::thread::sleep(Duration::from_millis(2));
            let wanted = format!("{round} of {count}");
            fs::write(&new, &wanted).expect("write the new input");
            let start = Instant::now();
            fs::rename(&new, input).expect("change the input");
            times.push(self.wait(start, || {
                fs::read_to_string(output).is_ok_and(|text| text == wanted)
            }));
        }
        times
    }

    /// One resource comes and goes among many: what the process computes for that.
    fn changes(&self, others: usize) {
        let mut statements = String::from("import \"os\"\n");
        for index in 0..others {
            let _ = writeln!(statements, "noop \"n{index}\" {{}}");
        }
        let input = self.place.path("inputs/toggle");
        fs::create_dir_all(self.place.path("inputs")).expect("make a directory");
        fs::write(&input, "no").expect("write the input");
        let (output, new) = (self.place.path("toggled"), self.place.path("inputs/new"));
        let _ = write!(
            statements,
            "if os.readfile(\"{0}\") == \"yes\" {{\n\tfile \"{1}\" {{\n\t\tstate => \"exists\",\n\t}}\n}} else {{\n\tfile \"{1}\" {{\n\t\tstate => \"absent\",\n\t}}\n}}\n\
             if os.readfile(\"{0}\") == \"yes\" {{\n\tnoop \"more\" {{}}\n}}\n",
            input.display(),
            output.display(),
        );
        let program = self.write("change.mcl", &statements);
        let running = self.start(&program, "change-prefix");
        let toggle = |count: usize| {
            for round in 0..count {
                std::thread::sleep(Duration::from_millis(5));
                let is = round % 2 == 0;
                fs::write(&new, if is { "yes" } else { "no" }).expect("write the new input");
                fs::rename(&new, &input).expect("change the input");
                self.wait(Instant::now(), || output.exists() == is);
            }
        };
        toggle(4);
        let cost = Cost::of(&running);
        toggle(self.drifts);
        println!(
            "| one resource more or less among {others} | {} | | |",
            cost.since(self.drifts)
        );
    }

    /// What a process costs that has nothing to do.
    fn idle(&self) {
        let base = {
            let running = self.start(&self.write("none.mcl", "noop \"one\" {}\n"), "small-prefix");
            memory(running.0.id(), "VmRSS")
        };
        let mut noops = String::new();
        for index in 0..self.count {
            let _ = writeln!(noops, "noop \"n{index}\" {{}}");
        }
        let running = self.start(&self.write("noops.mcl", &noops), "noop-prefix");
        let per = |now: u64| now.saturating_sub(base) as f64 / self.count as f64;
        println!(
            "- memory per noop of {}: {:.2} KB",
            self.count,
            per(memory(running.0.id(), "VmRSS"))
        );
        drop(running);

        let files = self.files("idle", self.count);
        files.clear();
        let running = self.start(&self.program("idle.mcl", &files), "idle-prefix");
        let id = running.0.id();
        let before = processor_ticks(id);
        std::thread::sleep(self.idle);
        let used = processor_ticks(id) - before;
        let (instances, watches) = inotify(id);
        let (now, peak) = (memory(id, "VmRSS"), memory(id, "VmHWM"));
        println!(
            "- memory per file of {}: {:.2} KB ({now} KB, at most {peak} KB)",
            self.count,
            per(now)
        );
        println!(
            "- idle: {used} ticks of 10 ms in {} s; {instances} inotify instance, {watches} watches, {} threads, {} descriptors",
            self.idle.as_secs(),
            memory(id, "Threads"),
            fs::read_dir(format!("/proc/{id}/fd"))
                .map(Iterator::count)
                .unwrap_or(0)
        );
    }
}

/// What a process has used so far.
struct Cost {
    id: u32,
    time: Duration,
    threads: Threads,
}

impl Cost {
    fn of(running: &Running) -> Cost {
        let id = running.0.id();
        Cost {
            id,
            time: processor_time(id),
            threads: threads_of(id),
        }
    }

    /// What each of so many events has used.
    fn since(&self, events: usize) -> String {
        let used = processor_time(self.id).saturating_sub(self.time);
        let threads = threads_of(self.id);
        let new = threads.difference(&self.threads).count();
        format!(
            "{:.3} ms of processor each, {new} new threads",
            milliseconds(used) / events as f64
        )
    }
}

/// A loop that does something for each event of a watch.
struct Reactor {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<()>,
}

impl Reactor {
    fn start(mut watch: Watch, mut react: impl FnMut(&str, &mut Vec<u8>) + Send + 'static) -> Reactor {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut buffer = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                for (_, name) in watch.next() {
                    react(&name, &mut buffer);
                }
            }
        });
        Reactor { stop, thread }
    }

    /// Ends the loop; replacing the path wakes it up, however it watches.
    fn end(self, path: &Path, content: &[u8]) {
        self.stop.store(true, Ordering::Relaxed);
        let new = path.with_file_name("last");
        fs::write(&new, content).expect("wake the loop up");
        fs::rename(&new, path).expect("wake the loop up");
        self.thread.join().expect("the loop ends");
    }
}
