//! The benchmark behind `bench/models.sh`: each size is measured in processes of its own, so that its memory is its own. Time is the
//! processor's, the shortest of some processes: whoever else is on the machine only ever adds to it.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "measures time and memory, and says so"
)]

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use setpoint_cf::compile::{Compiled, compile};
use setpoint_cf::execute::{Inputs, ReadKey};
use setpoint_cf::project;
use setpoint_diagnostics::{Diagnostics, MemoryLoader, SourceMap};
use setpoint_graph::Library;

/// That of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Each instance has an index, an implementation, three attributes and a relation to one group.
const INSTANCES: &str = r#"
entity Group:
    string name
end
index Group(name)
implement Group using std::none

entity Host:
    string name
    int port
    string label
end
Host.group [1] -- Group.hosts [0:]
index Host(name)
implement Host using labelled

implementation labelled for Host:
    self.label = "{{ name }}:{{ port }}"
end

group = Group(name="all")
for i in std::sequence(COUNT):
    Host(name="host{{ i }}", port=i, group=group)
end
n = std::count(group.hosts)
"#;

/// Each instance is a resource, and one of them holds what a variable of the environment says.
const RESOURCES: &str = r#"
import setpoint
for i in std::sequence(COUNT):
    setpoint::File(name="/srv/{{ i }}", machine="host", content="number {{ i }}\n", mode="u=rw")
end
setpoint::File(name="/srv/size", machine="host", content="size {{ size }}\n", mode="u=rw")
size = std::get_env("SIZE", "0")
"#;

/// Each instance has the text of a template.
const TEMPLATES: &str = r#"
entity Host:
    string name
    string text = ""
end
index Host(name)
implement Host using written
implementation written for Host:
    written = std::template("/host.j2")
end
for i in std::sequence(COUNT):
    Host(name="host{{ i }}")
end
"#;

/// How often each is measured.
const ROUNDS: usize = 5;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let after = |name: &str| {
        let at = arguments.iter().position(|word| word == name)?;
        arguments.get(at + 1)
    };
    if let (Some(model), Some(count)) = (after("--model"), after("--count")) {
        let count = count.parse().expect("`--count` is a number");
        measure(model, count);
        return;
    }
    let most: usize = after("--most").map_or(1_000_000, |most| most.parse().expect("`--most` is a number"));
    println!("| model | count | compiled in | growth | peak memory | growth | one changed answer |");
    println!("|---|---|---|---|---|---|---|");
    for (model, largest) in [
        ("instances", most),
        ("resources", most.min(100_000)),
        ("templates", most.min(10_000)),
    ] {
        let mut before: Option<(f64, f64)> = None;
        for count in [1_000, 10_000, 100_000, 1_000_000] {
            if count > largest || largest > 10_000 && count < 10_000 {
                continue;
            }
            let rounds = (0..ROUNDS).map(|_| in_own_process(model, count));
            let shortest = rounds.min_by(|a, b| a.0.total_cmp(&b.0));
            let Some((time, memory, changed)) = shortest else {
                continue;
            };
            let growth = |now: f64, before: Option<f64>| {
                before.map_or_else(|| "-".to_owned(), |before| format!("{:.1}", now / before))
            };
            println!(
                "| {model} | {count} | {time:.3} s | {} | {memory:.0} MB | {} | {changed} |",
                growth(time, before.map(|(time, _)| time)),
                growth(memory, before.map(|(_, memory)| memory)),
            );
            before = Some((time, memory));
        }
    }
}

/// Seconds, megabytes, and what a changed answer took.
fn in_own_process(model: &str, count: usize) -> (f64, f64, String) {
    let program = std::env::current_exe().expect("this program has a file");
    let output = Command::new(program)
        .args(["--model", model, "--count", &count.to_string()])
        .output()
        .expect("this program can be run");
    let text = String::from_utf8_lossy(&output.stdout);
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        [time, memory, changed @ ..] => (
            time.parse().expect("the first is a time"),
            memory.parse().expect("the second is memory"),
            changed.join(" "),
        ),
        _ => panic!("{}", String::from_utf8_lossy(&output.stderr)),
    }
}

/// Compiles a model, and says how long that took and how much memory this process needed.
fn measure(model: &str, count: usize) {
    let text = match model {
        "resources" => RESOURCES,
        "templates" => TEMPLATES,
        _ => INSTANCES,
    };
    let loader = MemoryLoader::new()
        .with("main.cf", text.replace("COUNT", &count.to_string()))
        .with(
            "templates/host.j2",
            "host {{ name }}\n{% for i in range(3) %}line {{ i }}\n{% endfor %}",
        );
    let library = Library::new(
        setpoint_functions::registry(),
        setpoint_resources::KINDS.iter().map(|kind| kind.schema),
    );
    let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let inputs = |size: u32| Inputs {
        environment: [("SIZE".into(), Arc::from(size.to_string()))].into(),
        record: model == "resources",
        ..Inputs::default()
    };
    let started = processor_time();
    let mut compiled = compile(
        &loader,
        &library,
        &mut project::Options::default(),
        &inputs(0),
        &mut sources,
        &mut diagnostics,
    );
    let took = processor_time() - started;
    assert!(compiled.exported.is_some(), "{diagnostics:?}");
    print!("{} {} ", took.as_secs_f64(), peak());
    if model != "resources" {
        println!("-");
        return;
    }
    let mut best = Duration::MAX;
    for size in 1..=20 {
        let started = processor_time();
        compiled = changed(compiled, &loader, &inputs(size), &mut sources);
        best = best.min(processor_time() - started);
    }
    println!("{} µs", best.as_micros());
}

fn changed(compiled: Compiled, loader: &MemoryLoader, inputs: &Inputs, sources: &mut SourceMap) -> Compiled {
    let changed = BTreeSet::from([ReadKey::Environment("SIZE".into())]);
    let updated = compiled.update(loader, inputs, sources, &changed);
    let (compiled, updated) = updated.expect("only a value is another one");
    assert_eq!(updated.resources.len(), 1, "one resource is another one");
    compiled
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The most memory that this process had, in megabytes.
fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or(f64::NAN) / 1000.0
}
