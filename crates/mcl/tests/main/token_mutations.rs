//! Texts that are almost programs: the tokens of the cases, deleted, doubled, swapped, taken from elsewhere, cut off and nested.
//! Whatever becomes of them, compiler and formatter come to an end within a second and in 512 MiB, without a panic, and what
//! they say points into the text.
//!
//! The texts are tried in a process of their own, so that also an overflown stack is found, and with it the text. How many are
//! tried is said by `SETPOINT_TOKEN_MUTATIONS` (3 000 if it is not set), where they begin by `SETPOINT_RANDOM_SEED`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use setpoint_diagnostics::{Diagnostics, MemoryLoader, SourceMap};
use setpoint_graph::Library;
use setpoint_mcl::{CompileOptions, Entry, compile, format, syntax};
use setpoint_testing::repository;

use crate::random::Random;

/// The full name of the test below, by which it starts itself.
const NAME: &str = "token_mutations::mutated_cases_are_compiled_or_refused";

/// Set for the process that tries the texts: the first, and the one behind the last.
const RANGE: &str = "SETPOINT_TOKEN_MUTATIONS_RANGE";

/// Processor time for one text, and further time for each byte of it: texts of megabytes are only to take time in proportion.
const LONGEST: Duration = Duration::from_secs(1);
const LONGEST_BY_BYTE: Duration = Duration::from_nanos(1000);

/// When nothing is heard for so long, a text does not come to an end. Other processes may want the processors as well.
const SILENCE: Duration = Duration::from_secs(60);

/// Resident memory, in KiB.
const LARGEST: u64 = 512 << 10;

/// Address space, in KiB: what is reserved and never touched counts here.
const ADDRESSES: u64 = 6 << 20;

static LIBRARY: LazyLock<Library> = LazyLock::new(|| {
    let kinds = setpoint_resources::KINDS.iter().map(|kind| kind.schema);
    Library::new(setpoint_functions::registry(), kinds)
});

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

#[test]
fn mutated_cases_are_compiled_or_refused() {
    if let Ok(range) = std::env::var(RANGE) {
        let (from, to) = range.split_once("..").expect("a range");
        attempt(from.parse().expect("a number"), to.parse().expect("a number"));
        return;
    }
    let count = number("SETPOINT_TOKEN_MUTATIONS", 3_000);
    let first = number("SETPOINT_RANDOM_SEED", 0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let share = count.div_ceil(workers);
    let findings: Vec<String> = std::thread::scope(|scope| {
        let ranges = (0..workers).map(|worker| {
            (
                first + worker * share,
                (first + count).min(first + (worker + 1) * share),
            )
        });
        let work = ranges.map(|(from, to)| scope.spawn(move || supervise(from, to)));
        let work: Vec<_> = work.collect();
        work.into_iter()
            .flat_map(|work| work.join().expect("no panic in it"))
            .collect()
    });
    let cases = Cases::read();
    eprintln!("{count} mutations from {first} of {} texts", cases.texts.len());
    let shown = findings.iter().take(10).map(String::as_str);
    assert!(
        findings.is_empty(),
        "{} findings\n{}",
        findings.len(),
        shown.collect::<Vec<_>>().join("\n")
    );
}

/// Lets a process try these texts, and another one go on behind the text at which it ended.
fn supervise(mut from: u64, to: u64) -> Vec<String> {
    let cases = Cases::read();
    let mut findings = Vec::new();
    let mut found = |seed: u64, what: &str| {
        let (_, text) = cases.mutated(seed);
        findings.push(format!("mutation {seed}: {what}\n{}\n", shortened(&text)));
    };
    while from < to {
        let program = std::env::current_exe().expect("a test knows where it is");
        // No address space without end: what runs away shall not take the machine with it.
        let script = format!("ulimit -v {ADDRESSES}; exec \"$0\" \"$@\"");
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .arg(program)
            .args([NAME, "--exact", "--nocapture", "--test-threads=1"])
            .env(RANGE, format!("{from}..{to}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a test can be started");
        let (sender, receiver) = channel();
        let output = child.stdout.take().expect("it is piped");
        let reader = std::thread::Builder::new().spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let reader = reader.expect("there is room for a thread");
        let mut tried = None;
        let ended = loop {
            match receiver.recv_timeout(SILENCE) {
                Ok(line) => {
                    // The harness writes to the same place, and does not end its line.
                    let Some((_, line)) = line.split_once('@') else {
                        continue;
                    };
                    match line.split_once(' ') {
                        None if line == "end" => break None,
                        None => tried = line.parse().ok(),
                        Some((seed, what)) => found(seed.parse().expect("a number"), what),
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    break Some("the process ended: a stack overflow, or out of memory");
                }
                Err(RecvTimeoutError::Timeout) => break Some("does not come to an end"),
            }
        };
        let _ = child.kill();
        let _ = child.wait();
        let _ = reader.join();
        let Some(what) = ended else { break };
        let Some(seed) = tried else {
            found(from, "the process does not start");
            break;
        };
        found(seed, what);
        from = seed + 1;
    }
    findings
}

fn shortened(text: &str) -> String {
    if text.len() <= 2_000 {
        return text.to_owned();
    }
    let end = (0..=1_000)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    let begin = (text.len() - 900..text.len())
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(text.len());
    format!("{}\n… {} bytes …\n{}", &text[..end], begin - end, &text[begin..])
}

/// Tries these texts, and tells of each which it is before it begins.
fn attempt(from: u64, to: u64) {
    let cases = Cases::read();
    let mut output = std::io::stdout();
    let mut tell = |text: String| {
        output
            .write_all(text.as_bytes())
            .and_then(|()| output.flush())
            .expect("somebody reads");
    };
    let mut is_large = false;
    // The tables of the library are made once, and not at the cost of a text.
    LazyLock::force(&LIBRARY);
    tell("\n".to_owned());
    for seed in from..to {
        tell(format!("@{seed}\n"));
        let (loader, text) = cases.mutated(seed);
        let begin = Instant::now();
        let used = processor_time();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(loader, &text))) {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("a panic");
            tell(format!(
                "@{seed} panics: {}\n",
                text.lines().next().unwrap_or_default()
            ));
        }
        let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
        let longest = LONGEST + LONGEST_BY_BYTE * length;
        if begin.elapsed() > longest {
            let used = processor_time().saturating_sub(used);
            if used > longest {
                tell(format!("@{seed} takes {used:?}\n"));
            }
        }
        if !is_large && peak_memory() > LARGEST {
            is_large = true;
            tell(format!("@{seed} takes {} MiB\n", peak_memory() >> 10));
        }
    }
    tell("@end\n".to_owned());
}

fn check(loader: &MemoryLoader, text: &str) {
    let _ = format::format(text);
    let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let entry = Entry::Code {
        name: "mutated.mcl".to_owned(),
        text: text.to_owned(),
    };
    let options = CompileOptions::default();
    let compiled = compile(&entry, &options, loader, &LIBRARY, &mut sources, &mut diagnostics);
    assert_eq!(
        compiled.program.is_none(),
        diagnostics.has_errors(),
        "either a program or an error"
    );
    for diagnostic in &diagnostics {
        let span = diagnostic.primary.span;
        let text = &sources.file(span.file).text;
        let (start, end) = (span.start as usize, span.end as usize);
        assert!(
            start <= end && end <= text.len() + 1,
            "{} points behind the text",
            diagnostic.code.code
        );
        assert!(
            text.is_char_boundary(start),
            "{} points into a character",
            diagnostic.code.code
        );
    }
}

/// What this process has had of the processors, to a hundredth of a second.
fn processor_time() -> Duration {
    let line = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = line.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum();
    Duration::from_millis(ticks * 10)
}

/// The most memory that this process has had, in KiB.
fn peak_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

/// The texts of all cases.
struct Cases {
    texts: Vec<Case>,
}

struct Case {
    /// Token by token, white space and comments among them.
    tokens: Vec<String>,
    /// What it imports.
    files: MemoryLoader,
}

impl Cases {
    fn read() -> Cases {
        let mut texts = Vec::new();
        let mut open = vec![repository().join("tests/cases")];
        let mut paths = Vec::new();
        while let Some(directory) = open.pop() {
            let mut entries: Vec<PathBuf> = std::fs::read_dir(&directory)
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.path())
                .collect();
            entries.sort();
            for path in entries {
                if path.is_dir() {
                    open.push(path);
                } else if path.extension().is_some_and(|extension| extension == "mcl") {
                    paths.push(path);
                }
            }
        }
        for path in paths {
            let Ok(text) = std::fs::read_to_string(&path) else {
                continue;
            };
            let file = SourceMap::new().add("case.mcl", text.as_str());
            let parsed = syntax::parse(file, &text, &mut Diagnostics::new());
            let token =
                |range: std::ops::Range<u32>| text[range.start as usize..range.end as usize].to_owned();
            let tokens = parsed.tokens.iter().map(|(_, range)| token(range)).collect();
            let files = path
                .file_name()
                .filter(|name| *name == "main.mcl")
                .and(path.parent())
                .map(files_of);
            texts.push(Case {
                tokens,
                files: files.unwrap_or_default(),
            });
        }
        assert!(texts.len() > 100, "the cases are there");
        Cases { texts }
    }

    /// A text that follows from a number, and what it imports.
    fn mutated(&self, seed: u64) -> (&MemoryLoader, String) {
        let mut random = Random::new(seed);
        let case = &self.texts[random.below(self.texts.len())];
        let mut tokens = case.tokens.clone();
        let count = if random.chance(40) { 1 } else { 1 + random.below(4) };
        for _ in 0..count {
            self.mutate(&mut tokens, &mut random);
        }
        (&case.files, tokens.concat())
    }

    fn token(&self, random: &mut Random) -> String {
        loop {
            let tokens = &self.texts[random.below(self.texts.len())].tokens;
            if let Some(token) = random.pick(tokens)
                && !token.trim().is_empty()
            {
                return token.clone();
            }
        }
    }

    fn mutate(&self, tokens: &mut Vec<String>, random: &mut Random) {
        if tokens.is_empty() {
            tokens.push(self.token(random));
            return;
        }
        let at = random.below(tokens.len());
        match random.below(100) {
            0..15 => {
                tokens.remove(at);
            }
            15..25 => tokens.insert(at, tokens[at].clone()),
            25..35 => {
                let other = random.below(tokens.len());
                tokens.swap(at, other);
            }
            35..55 => tokens[at] = self.token(random),
            55..70 => {
                let token = self.token(random);
                tokens.splice(at..at, [" ".to_owned(), token, " ".to_owned()]);
            }
            70..75 => {
                // Cut in the middle, also of a token.
                let last = &mut tokens[at];
                let end = (0..=random.below(last.len() + 1))
                    .rev()
                    .find(|end| last.is_char_boundary(*end));
                last.truncate(end.unwrap_or(0));
                tokens.truncate(at + 1);
            }
            75..77 => {
                tokens.drain(..at);
            }
            77 => {
                let end = (at + 10).min(tokens.len());
                random.shuffle(&mut tokens[at..end]);
            }
            78..84 => {
                let brackets = ["{", "}", "(", ")", "[", "]", "\""];
                tokens.insert(at, brackets[random.below(brackets.len())].to_owned());
            }
            84..88 => {
                // Lines of this text, again and again.
                let end = (at + 1 + random.below(30)).min(tokens.len());
                let part = tokens[at..end].concat();
                tokens.insert(end, part.repeat(1 + random.below(40)));
            }
            88..92 => {
                // A word or a number without end.
                let length = [100, 1_000, 70_000][random.below(3)];
                let last = tokens[at].chars().last().unwrap_or('a');
                tokens[at].push_str(&last.to_string().repeat(length));
            }
            92..97 => {
                let depth = [10, 100, 300, 3_000][random.below(4)];
                let forms = [
                    ("(", ")"),
                    ("[", "]"),
                    ("not ", ""),
                    ("-", ""),
                    ("func() { ", " }"),
                    ("if true { ", " } else { 1 }"),
                    ("{1 => ", "}"),
                    ("struct{a => ", "}"),
                    ("1 + ", ""),
                    ("1 <|> ", ""),
                    ("f(", ")"),
                    ("", "->a"),
                    ("", "[0]"),
                    ("if true {\n", "\n}"),
                    ("class c {\n", "\n}"),
                    ("for $i, $v in [1] {\n", "\n}"),
                    ("[]", ""),
                    ("func() ", ""),
                    ("map{str: ", "}"),
                    ("\"${", "}\""),
                    ("$a = ", "\n"),
                ];
                let (open, close) = forms[random.below(forms.len())];
                let text = format!("{}{}{}", open.repeat(depth), tokens[at], close.repeat(depth));
                tokens[at] = text;
            }
            _ => {
                // A piece of another program.
                let other = &self.texts[random.below(self.texts.len())].tokens;
                let from = random.below(other.len().max(1));
                let to = (from + 1 + random.below(40)).min(other.len());
                tokens.splice(at..at, other.get(from..to).unwrap_or_default().iter().cloned());
            }
        }
    }
}

/// The texts in the folder of a case, as a program sees them.
fn files_of(folder: &Path) -> MemoryLoader {
    let mut loader = MemoryLoader::new();
    let mut open = vec![folder.to_owned()];
    while let Some(directory) = open.pop() {
        for path in std::fs::read_dir(&directory)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
        {
            if path.is_dir() {
                open.push(path);
            } else if let (Ok(name), Ok(text)) = (path.strip_prefix(folder), std::fs::read(&path)) {
                loader = loader.with(name.to_string_lossy(), text);
            }
        }
    }
    loader
}
