//! Send and receive.

use super::simulation::*;
use setpoint_value::Value;

fn content(sim: &Simulation, name: &str) -> Option<Value> {
    sim.content.get(name).cloned().flatten()
}

#[test]
fn a_value_goes_over_an_edge_and_is_seen_as_changed_once() {
    let mut sim = Simulation::new();
    sim.always("a", Run::sends("one"));
    sim.runs("b", [Run::fails("use it")]);
    let graph = Graph::new(&["a"])
        .with_content("b", "from the program", |meta| {
            (meta.retry, meta.delay) = (3, 100);
        })
        .sends("a", "b");
    sim.swap(&graph);
    sim.settle();
    assert_eq!(sim.ran(), ["a", "b"]);
    assert_eq!(content(&sim, "b"), Some(Value::str("one")));
    let changed = |sim: &Simulation| {
        let requests = sim.requests.iter().filter(|(name, _)| name == "b");
        let flags = requests.map(|(_, request)| request.received.iter().any(|r| r.changed));
        flags.collect::<Vec<bool>>()
    };
    assert_eq!(changed(&sim), [true]);
    sim.advance(s(1));
    assert_eq!(
        changed(&sim),
        [true, true],
        "the flag stays up until a run succeeds"
    );
    sim.take();
    sim.event("b");
    sim.settle();
    assert_eq!(changed(&sim), [false]);
    sim.take();
    sim.event("a");
    sim.settle();
    assert_eq!(sim.ran(), ["a"], "the same value again is no change");
    sim.always("a", Run::sends("two"));
    sim.event("a");
    sim.settle();
    assert_eq!(sim.ran(), ["a", "b"]);
    assert_eq!(content(&sim, "b"), Some(Value::str("two")));
}

#[test]
fn nothing_sent_fails_the_run_and_names_the_sender() {
    let mut sim = Simulation::new();
    sim.swap(&Graph::new(&["a", "b"]).sends("a", "b"));
    sim.settle();
    let said = sim.take();
    assert_eq!(
        said,
        [
            "a ok",
            "b failed: run: received nothing from thing[a]",
            "b gave up"
        ]
    );
}

#[test]
fn a_withheld_value_leaves_the_parameter_as_it_is() {
    let mut sim = Simulation::new();
    sim.runs(
        "a",
        [
            Run {
                sends: Some(None),
                ..Run::ok()
            },
            Run::sends("one"),
            Run {
                sends: Some(None),
                ..Run::ok()
            },
        ],
    );
    sim.swap(
        &Graph::new(&["a"])
            .with_content("b", "program", |_| {})
            .sends("a", "b"),
    );
    sim.settle();
    assert_eq!(sim.ran(), ["a", "b"]);
    assert_eq!(content(&sim, "b"), Some(Value::str("program")));
    sim.event("a");
    sim.settle();
    assert_eq!(content(&sim, "b"), Some(Value::str("one")));
    sim.event("a");
    sim.settle();
    assert_eq!(content(&sim, "b"), Some(Value::str("one")));
}

#[test]
fn a_sender_that_is_settled_by_noop_withholds_everything() {
    let mut sim = Simulation::new();
    let graph = Graph::new(&["b"])
        .with("a", |meta| meta.noop = true)
        .sends("a", "b");
    sim.swap(&graph);
    sim.settle();
    assert_eq!(sim.take(), ["a ok", "b ok"]);
}

#[test]
fn a_transfer_that_is_refused_is_tried_again_with_the_same_values() {
    let mut sim = Simulation::new();
    sim.always("a", Run::sends("one"));
    sim.runs(
        "b",
        [Run {
            untransferred: true,
            ..Run::fails("receive: invalid")
        }],
    );
    let graph = Graph::new(&["a"])
        .with("b", |meta| (meta.retry, meta.delay) = (1, 10))
        .sends("a", "b");
    sim.swap(&graph);
    sim.advance(s(1));
    let transfers: Vec<usize> = sim
        .requests
        .iter()
        .filter(|(name, _)| name == "b")
        .map(|(_, request)| request.transfer.len())
        .collect();
    assert_eq!(transfers, [1, 1]);
    assert_eq!(content(&sim, "b"), Some(Value::str("one")));
}

#[test]
fn without_its_edge_a_parameter_returns_to_what_the_program_says() {
    let mut sim = Simulation::new();
    sim.always("a", Run::sends("one"));
    let graph = Graph::new(&["a"])
        .with_content("b", "program", |_| {})
        .sends("a", "b");
    sim.swap(&graph);
    sim.settle();
    sim.take();
    let vertex = sim.vertex("b");
    let graph = graph.without_edge("a", "b");
    sim.swap(&graph);
    sim.settle();
    assert_eq!(sim.ran(), ["b"]);
    assert_eq!(sim.vertex("b"), vertex, "it is kept");
    assert_eq!(content(&sim, "b"), Some(Value::str("program")));
    sim.swap(&graph.sends("a", "b"));
    sim.settle();
    assert_eq!(sim.ran(), ["b"]);
    assert_eq!(content(&sim, "b"), Some(Value::str("one")));
}

#[test]
fn a_replaced_sender_is_asked_before_its_receiver_runs() {
    let mut sim = Simulation::new();
    sim.always("a", Run::sends("one"));
    let graph = Graph::new(&["a", "b"]).sends("a", "b");
    sim.swap(&graph);
    sim.settle();
    sim.take();
    sim.always("a", Run::sends("two").takes(s(1)));
    sim.swap(&graph.with_content("a", "new", |_| {}).sends("a", "b"));
    sim.event("b");
    sim.advance(s(2));
    assert_eq!(sim.ran(), ["a", "b"]);
    assert_eq!(content(&sim, "b"), Some(Value::str("two")));
}
