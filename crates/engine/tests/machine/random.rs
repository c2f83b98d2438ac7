//! Random programs, drift, failures and swaps from a seed: the invariants hold in every step, and in the end all is well.

use std::time::{Duration, Instant};

use super::simulation::*;
use setpoint_engine::Failure;
use setpoint_engine::machine::{Action, Armed, Initialised, Input, Machine, Options, RunResult, VertexState};

/// xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % bound
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

const NAMES: [&str; 10] = [
    "a",
    "b",
    "svc[c]",
    "d",
    "svc[e]",
    "f",
    "port:server[g]",
    "port:server[h]",
    "i",
    "svc[j]",
];

fn random_graph(random: &mut Random, realize: bool) -> Graph {
    let mut graph = Graph::default();
    let mut present = Vec::new();
    for name in NAMES {
        if random.chance(75) {
            let content = ["1", "2"][random.below(2) as usize];
            let draws: Vec<u64> = (0..8).map(|_| random.below(100)).collect();
            graph = graph.with_content(name, content, |meta| {
                meta.retry = [0, 1, 3, -1][(draws[0] % 4) as usize];
                meta.delay = [0, 10, 200][(draws[1] % 3) as usize];
                meta.noop = draws[2] < 10;
                meta.realize = realize && draws[2] > 80;
                meta.rewatch = draws[3] < 20;
                meta.retryreset = draws[3] > 70;
                if draws[4] < 30 {
                    meta.sema = vec!["x".into(), "y:2".into()][(draws[4] % 2) as usize..].to_vec();
                }
                if draws[5] < 15 {
                    (meta.limit, meta.burst) = (5.0, 2);
                }
                meta.timeout = if draws[6] < 20 { 30 } else { 0 };
                meta.poll = if draws[7] < 10 { 1 } else { 0 };
            });
            present.push(name);
        }
    }
    for (at, from) in present.iter().enumerate() {
        for to in &present[at + 1..] {
            if random.chance(20) {
                let arrow = if random.chance(50) { "=>" } else { "->" };
                graph = graph.edges(&format!("{from} {arrow} {to}"));
            } else if random.chance(5)
                && !graph
                    .desired
                    .edges
                    .values()
                    .any(|e| e.to == id(to) && !e.send.is_empty())
            {
                graph = graph.sends(from, to);
            }
        }
    }
    graph
}

fn random_run(random: &mut Random) -> Run {
    let mut run = match random.below(10) {
        0..=4 => Run::ok(),
        5..=7 => Run::drift(),
        8 => Run {
            fails: Some("go on"),
            ..Run::drift()
        },
        _ => Run::fails("begin"),
    };
    run.takes = ms(random.below(3) * random.below(40));
    run.stubborn = random.chance(20);
    run.sends = Some([Some("x"), Some("y"), None][random.below(3) as usize]);
    run
}

fn history(seed: u64) -> Vec<String> {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let options = Options {
        seed,
        jobs: 1 + random.below(6) as usize,
        ..Options::default()
    };
    let mut sim = Simulation::with(options);
    let realize = seed.is_multiple_of(4);
    for name in NAMES.into_iter().filter(|_| realize) {
        // These run under the edges of a graph before.
        sim.allow_realizing(name);
    }
    let mut graph = random_graph(&mut random, realize);
    sim.swap(&graph);
    let mut paused = false;
    for _ in 0..150 {
        for name in NAMES {
            if sim
                .hosts
                .get(name)
                .is_none_or(|behaviour| behaviour.runs.len() < 2)
            {
                let run = random_run(&mut random);
                sim.runs(name, [run]);
            }
        }
        let alive: Vec<String> = sim
            .machine
            .status()
            .into_iter()
            .filter(|status| {
                !matches!(
                    status.state,
                    VertexState::WaitingToBeAdded | VertexState::Finishing
                )
            })
            .map(|status| status.id.to_string())
            .map(|id| {
                id.strip_prefix("thing[")
                    .map_or(id.clone(), |name| name.trim_end_matches(']').to_owned())
            })
            .collect();
        match random.below(100) {
            0..=49 if !alive.is_empty() => {
                let name = &alive[random.below(alive.len() as u64) as usize];
                sim.event(name);
            }
            50..=54 if !alive.is_empty() => {
                let name = &alive[random.below(alive.len() as u64) as usize];
                sim.watch_fails(name);
            }
            55..=59 if !alive.is_empty() => {
                let name = &alive[random.below(alive.len() as u64) as usize];
                sim.poke(name);
            }
            60..=64 => {
                paused = !paused;
                sim.step(if paused { Input::Pause } else { Input::Resume });
            }
            65..=74 => {
                graph = random_graph(&mut random, realize);
                sim.swap(&graph);
            }
            75..=79 => {
                let name = NAMES[random.below(10) as usize];
                let takes = ms(random.below(50));
                let result = if random.chance(50) { Ok(()) } else { Err("arm") };
                sim.host(name).arms.push_back((takes, result));
            }
            _ => sim.some_steps(random.below(20) as usize),
        }
        if random.chance(40) {
            let time = ms(random.below(60));
            sim.some_steps(300);
            sim.now += time;
            sim.step(Input::Timer);
            sim.some_steps(300);
        }
    }
    // From here on repairs work and nothing happens: all must become clean, but for what failed for good before.
    sim.step(Input::Resume);
    for name in NAMES {
        sim.host(name).runs.clear();
        sim.always(name, Run::sends("z"));
        sim.host(name).arms.clear();
    }
    let fixed = graph.desired.resources.keys().cloned().collect::<Vec<_>>();
    sim.advance(s(200));
    for id in &fixed {
        sim.step(Input::Poke(id.clone()));
    }
    sim.advance(s(200));
    for status in sim.machine.status() {
        assert_eq!(
            status.state,
            VertexState::Clean,
            "{} of seed {seed}\n{}",
            status.id,
            sim.trace(60)
        );
        assert!(
            !status.refresh_pending || status.noop,
            "{} of seed {seed}",
            status.id
        );
    }
    assert_eq!(sim.machine.status().len(), graph.desired.resources.len());
    sim.events.iter().map(|event| event.to_json()).collect()
}

#[test]
fn the_invariants_hold_whatever_happens() {
    for seed in 0..100 {
        history(seed);
    }
}

#[test]
fn the_same_seed_gives_the_same_events() {
    for seed in [3, 17, 99] {
        assert_eq!(history(seed), history(seed));
    }
}

/// Answers everything at once, and counts the time that the machine takes itself.
fn converge(machine: &mut Machine, first: Input) -> (Duration, usize) {
    let mut inputs = std::collections::VecDeque::from([first]);
    let mut spent = Duration::ZERO;
    let mut runs = 0;
    while let Some(input) = inputs.pop_front() {
        let began = Instant::now();
        let mut actions = machine.step(Duration::ZERO, input);
        spent += began.elapsed();
        for action in actions.list.drain(..) {
            match action {
                Action::Init { vertex, arm, .. } => {
                    inputs.push_back(Input::InitEnded {
                        vertex,
                        result: Ok(Initialised::default()),
                    });
                    if arm {
                        inputs.push_back(Input::WatchArmed {
                            vertex,
                            result: Ok(Armed::default()),
                        });
                    }
                }
                Action::Run { vertex, .. } => {
                    runs += 1;
                    inputs.push_back(Input::RunEnded {
                        vertex,
                        result: RunResult::ok(),
                    });
                }
                Action::Cleanup { vertex, .. } => {
                    inputs.push_back(Input::CleanupEnded {
                        vertex,
                        failure: None::<Failure>,
                    });
                }
                _ => {}
            }
        }
        machine.recycle(actions.list);
    }
    (spent, runs)
}

#[test]
fn ten_thousand_vertices_converge_in_linear_time_and_one_event_costs_one_vertex() {
    let mut flat = Graph::default();
    let mut chain = Graph::default();
    for n in 0..10_000 {
        flat = flat.with(&format!("v{n:05}"), |_| {});
        chain = chain.with(&format!("v{n:05}"), |_| {});
    }
    for n in 1..10_000 {
        chain = chain.edges(&format!("v{:05} -> v{n:05}", n - 1));
    }
    let mut machine = Machine::new(Options::default());
    let (flat_time, runs) = converge(&mut machine, Input::NewGraph(flat.desired));
    assert_eq!(runs, 10_000);
    let mut machine = Machine::new(Options::default());
    let (chain_time, runs) = converge(&mut machine, Input::NewGraph(chain.desired.clone()));
    assert_eq!(runs, 10_000);
    let vertices = machine.summary().counts.all();
    assert_eq!(vertices, 10_000);
    let began = Instant::now();
    let next = chain.with("one more", |_| {});
    let mut desired = next.desired;
    desired.generation = 1;
    let (swap_time, runs) = converge(&mut machine, Input::NewGraph(desired));
    assert_eq!(runs, 1);
    println!(
        "flat {flat_time:?}, chain {chain_time:?}, swap {swap_time:?} ({:?})",
        began.elapsed()
    );
    // Far above what it takes; a quadratic algorithm takes minutes.
    assert!(
        flat_time + chain_time < Duration::from_secs(5),
        "{flat_time:?} {chain_time:?}"
    );
}
