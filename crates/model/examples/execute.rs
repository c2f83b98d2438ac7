//! How long a model of many instances takes, and how much memory: `cargo run --release --example execute -- 100000`.
//!
//! Each instance has one index, one implementation, three attributes and one relation.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "measures time and memory, and says so"
)]

use std::time::Instant;

use setpoint_diagnostics::MemoryLoader;

#[path = "../tests/execute/model.rs"]
#[allow(dead_code, reason = "shared by several programs")]
mod model;

fn main() {
    let count = std::env::args().nth(1).unwrap_or_else(|| "10000".to_owned());
    let text = format!(
        r#"
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
    self.label = "{{{{ name }}}}:{{{{ port }}}}"
end

group = Group(name="all")
for i in std::sequence({count}):
    Host(name="host{{{{ i }}}}", port=i, group=group)
end
n = std::count(group.hosts)
"#
    );
    let loader = MemoryLoader::new().with("main.cf", text);
    let started = Instant::now();
    let outcome = model::run(&loader, &model::inputs());
    let took = started.elapsed();
    for found in outcome.diagnostics() {
        println!("{} {}", found.code.code, found.message);
    }
    let instances = outcome
        .executed
        .as_ref()
        .map_or(0, |(_, execution)| execution.instances.len());
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap_or("VmHWM: unknown");
    println!(
        "{instances} instances in {took:?}, {}",
        peak.split_whitespace().collect::<Vec<_>>().join(" ")
    );
}
