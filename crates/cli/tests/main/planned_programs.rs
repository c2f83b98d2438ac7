//! The programs of the book and of the examples, each planned and then run, three times, in a throw-away machine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value as Json;
use setpoint_testing::place::{Place, shell};
use setpoint_testing::{Hermetic, repository};

use crate::book::snippets;

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

/// So many of the programs take part, each time others of them; `SETPOINT_PLANNED_PROGRAMS` says otherwise.
const PROGRAMS: usize = 12;

#[test]
fn plans_of_shipped_programs_say_what_the_runs_do() {
    let test = "planned_programs::plans_of_shipped_programs_say_what_the_runs_do";
    Place::machine(test).run(|| {
        let count = std::env::var("SETPOINT_PLANNED_PROGRAMS").map_or(PROGRAMS, |text| text.parse().unwrap());
        let all = programs();
        let step = (all.len() / count).max(1);
        let mut tally = Tally::default();
        for (name, text) in all.iter().step_by(step) {
            three_times(name, text, &mut tally);
        }
        eprintln!("{}", tally.summary());
        assert!(tally.exact > count, "{}", tally.summary());
        assert!(tally.wrong.len() * 100 <= tally.exact, "{}", tally.summary());
        assert!(tally.unknown * 10 <= tally.rows, "{}", tally.summary());
    });
}

/// The programs by name.
fn programs() -> Vec<(String, String)> {
    let of_book = snippets().into_iter().filter(|snippet| snippet.language == "mcl");
    let mut all: Vec<(String, String)> = of_book
        .map(|snippet| (format!("{}:{}", snippet.page, snippet.line), snippet.text))
        .collect();
    let examples = std::fs::read_dir(repository().join("examples")).expect("there are examples");
    for example in examples.flatten() {
        let main = example.path().join("main.mcl");
        if let Ok(text) = std::fs::read_to_string(&main) {
            all.push((example.file_name().to_string_lossy().into_owned(), text));
        }
    }
    all.retain(|(_, text)| !OMITTED.iter().any(|words| text.contains(words)));
    all.sort();
    all
}

/// A plan does not follow values that hosts share, and 10,000 files take too long here.
const OMITTED: [&str; 3] = ["schedule \"", "kv \"", "range(10000)"];

/// The state of a machine when a program is planned.
const STARTS: [&str; 3] = ["fresh", "after the run", "damaged"];

fn three_times(name: &str, text: &str, tally: &mut Tally) {
    let place = Hermetic::new();
    let main = place.write("main.mcl", text).display().to_string();
    let state = place.path("state").display().to_string();
    let setpoint = |arguments: &[&str]| {
        let limited = [&["8", BINARY], arguments, &["--state-dir", &state, &main]].concat();
        place.run("timeout", &limited)
    };
    for start in STARTS {
        if start == "damaged" {
            tally
                .files
                .iter()
                .enumerate()
                .for_each(|(at, file)| damage(at, file));
        }
        let planned = setpoint(&["plan", "--json", "--full"]);
        let Ok(plan) = serde_json::from_str::<Json>(&planned.stdout) else {
            tally.without_plan += 1;
            return;
        };
        let run = setpoint(&["run", "--once", "--json"]);
        // Killed: a package manager that waits for the network.
        if run.code == 124 {
            tally.without_plan += 1;
            return;
        }
        let events = run
            .stdout
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        let events: Vec<Json> = events.collect();
        tally.compare(&format!("{name}, {start}"), &plan, &events);
    }
}

/// Changes a file, as another process would.
fn damage(at: usize, file: &str) {
    let path = Path::new(file);
    let is_own = ["/srv/", "/etc/", "/tmp/", "/var/"]
        .iter()
        .any(|root| file.starts_with(root));
    if !is_own || !path.is_file() {
        return;
    }
    match at % 3 {
        0 => drop(shell(&format!("rm '{file}'"))),
        1 => drop(shell(&format!("chmod 0611 '{file}'"))),
        _ => drop(shell(&format!("echo stranger >> '{file}'"))),
    }
}

/// The outcome of all comparisons.
#[derive(Default)]
struct Tally {
    rows: usize,
    unknown: usize,
    /// Rows that hold only until something opaque has run.
    until: usize,
    /// Rows that came out as the plan says.
    exact: usize,
    without_plan: usize,
    wrong: Vec<String>,
    /// The files of the program that was compared last.
    files: Vec<String>,
}

/// A field with its wanted value.
type Fields = BTreeSet<(String, String)>;

impl Tally {
    fn compare(&mut self, what: &str, plan: &Json, events: &[Json]) {
        let mut did: BTreeMap<String, Fields> = BTreeMap::new();
        let mut failed: BTreeSet<String> = BTreeSet::new();
        for event in events {
            let id = label(event);
            match event["event"].as_str() {
                Some("repaired") => {
                    did.entry(id).or_default().insert(field(event));
                }
                Some("gave up" | "blocked by") => {
                    failed.insert(id);
                }
                _ => {}
            }
        }
        self.files.clear();
        for row in plan["rows"].as_array().into_iter().flatten() {
            let id = label(row);
            let done = did.remove(&id).unwrap_or_default();
            self.rows += 1;
            if row["kind"] == "file" {
                self.files.extend(row["name"].as_str().map(str::to_owned));
            }
            let fails = failed.contains(&id);
            let agrees = match row["action"].as_str().unwrap_or_default() {
                "unknown" => {
                    self.unknown += 1;
                    continue;
                }
                "fail" | "blocked" => fails,
                _ if row.get("until").is_some() => {
                    self.until += 1;
                    continue;
                }
                "off" => done.is_empty(),
                _ => !fails && agree(row, &done),
            };
            match agrees {
                true => self.exact += 1,
                false => self
                    .wrong
                    .push(format!("{what}: {row}\n  did {done:?}, fails: {fails}")),
            }
        }
        for (id, done) in did {
            self.wrong
                .push(format!("{what}: {id} is not in the plan, and did {done:?}"));
        }
    }

    fn summary(&self) -> String {
        format!(
            "{} rows, {} as planned, {} not known, {} until, {} wrong; {} programs without a plan\n{}",
            self.rows,
            self.exact,
            self.unknown,
            self.until,
            self.wrong.len(),
            self.without_plan,
            self.wrong.join("\n")
        )
    }
}

fn label(json: &Json) -> String {
    let text = |name: &str| json[name].as_str().unwrap_or_default().to_owned();
    format!("{}[{}]", text("kind"), text("name"))
}

fn field(json: &Json) -> (String, String) {
    (json["field"].to_string(), json["want"].to_string())
}

/// Whether the fields of a row are those that a run changed. One that the plan did not know may have any value, or the present one.
fn agree(row: &Json, done: &Fields) -> bool {
    let fields = row["fields"].as_array().map(Vec::as_slice).unwrap_or_default();
    let (unknown, known): (Vec<&Json>, Vec<&Json>) =
        fields.iter().partition(|field| field["unknown"] == true);
    let planned: Fields = known.into_iter().map(field).collect();
    let is_unknown = |name: &String| unknown.iter().any(|field| name == &field["field"].to_string());
    let known_done: Fields = done
        .iter()
        .filter(|(name, _)| !is_unknown(name))
        .cloned()
        .collect();
    planned == known_done
}
