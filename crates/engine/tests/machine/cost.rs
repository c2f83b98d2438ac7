//! What the machine itself costs. What it does whatever happens is tried by `setpoint-simulation`.

use std::time::{Duration, Instant};

use super::simulation::*;
use setpoint_engine::Failure;
use setpoint_engine::machine::{Action, Armed, Initialised, Input, Machine, Options, RunResult};

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
fn ten_thousand_vertices_converge_and_one_event_costs_one_vertex() {
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
    let vertices = machine.summary(Duration::ZERO).counts.all();
    assert_eq!(vertices, 10_000);
    let began = Instant::now();
    let next = chain.with("one more", |_| {});
    let mut desired = next.desired;
    desired.generation = 1;
    let (swap_time, runs) = converge(&mut machine, Input::NewGraph(desired));
    assert_eq!(runs, 1);
    // A quadratic algorithm takes minutes, which no test may.
    println!(
        "flat {flat_time:?}, chain {chain_time:?}, swap {swap_time:?} ({:?})",
        began.elapsed()
    );
}
