//! The swap: only what changed is stopped.

use super::simulation::*;
use setpoint_engine::EventKind;
use setpoint_engine::machine::{Input, StopStage, VertexState};
use setpoint_graph::DesiredGraph;

#[test]
fn what_is_equal_keeps_its_watch_and_does_not_run_again() {
    let graph = Graph::new(&["a", "b"]).edges("a -> b");
    let mut sim = Simulation::of(&graph);
    sim.runs("e", [Run::ok().takes(s(10))]);
    let with_exec = graph.clone().with("e", |_| {});
    sim.swap(&with_exec);
    sim.settle();
    assert_eq!(sim.ran(), ["e"]);
    // Built anew, and equal.
    let again = Graph::new(&["a", "b", "c", "e"]).edges("a -> b -> c");
    sim.swap(&again);
    sim.settle();
    assert_eq!(sim.ran(), ["c"], "at once, though e runs for 10 s");
    assert_eq!(sim.now, s(0));
    assert!(!sim.has("a", |what| matches!(what, EventKind::Removed { .. })));
    sim.event("a");
    sim.settle();
    assert_eq!(sim.ran(), ["a"], "the watch still goes");
}

#[test]
fn a_replaced_resource_waits_for_the_run_of_the_old_one_and_a_newer_graph_supersedes_it() {
    let graph = |content: &str| {
        Graph::new(&["z"])
            .with_content("a", content, |_| {})
            .edges("a -> z")
    };
    let mut sim = Simulation::of(&graph("1"));
    sim.runs("a", [Run::ok().takes(s(10))]);
    sim.event("a");
    sim.settle();
    sim.take();
    sim.swap(&graph("2"));
    sim.advance(s(1));
    assert_eq!(sim.take(), ["a finishing"]);
    assert_eq!(sim.state("a"), VertexState::Finishing);
    sim.event("z");
    sim.swap(&graph("3"));
    sim.advance(s(1));
    assert_eq!(sim.ran(), [""; 0], "z waits for the new a");
    sim.advance(s(20));
    assert_eq!(sim.take(), ["a ok", "a removed", "a ok", "z ok"]);
    let wanted = &sim
        .machine
        .graph()
        .unwrap()
        .resource("thing", "a")
        .unwrap()
        .parameters;
    assert_eq!(wanted.get("content"), Some(&setpoint_value::Value::str("3")));
    assert_eq!(sim.content["a"], Some(setpoint_value::Value::str("3")));
}

#[test]
fn a_resource_that_comes_back_while_the_old_one_finishes_is_added_after_it() {
    let graph = Graph::new(&["a", "b"]).edges("a -> b");
    let mut sim = Simulation::of(&graph);
    sim.runs("a", [Run::ok().takes(s(10))]);
    sim.event("a");
    sim.swap(&Graph::new(&["b"]));
    sim.advance(s(1));
    sim.swap(&graph);
    sim.advance(s(1));
    sim.take();
    sim.advance(s(10));
    assert_eq!(sim.take(), ["a ok", "a removed", "a ok"]);
}

#[test]
fn a_port_is_handed_over() {
    let mut sim = Simulation::of(&Graph::new(&["port:server[old]", "a"]));
    sim.host("port:server[old]").cleanup_takes = s(3);
    sim.swap(&Graph::new(&["port:server[new]", "a", "b"]));
    sim.advance(s(1));
    assert_eq!(sim.ran(), ["b"]);
    assert_eq!(sim.state("port:server[new]"), VertexState::WaitingToBeAdded);
    sim.advance(s(3));
    assert_eq!(sim.take(), ["port:server[old] removed", "port:server[new] ok"]);
    // A replaced one of the same name too.
    sim.swap(&Graph::default().with_content("port:server[new]", "x", |_| {}));
    sim.advance(s(3));
    assert_eq!(sim.ran(), ["port:server[new]"]);
}

#[test]
fn an_older_graph_is_refused() {
    let mut sim = Simulation::of(&Graph::new(&["a"]));
    sim.swap(&Graph::new(&["a", "b"]));
    sim.settle();
    sim.step(Input::NewGraph(DesiredGraph {
        generation: 1,
        ..DesiredGraph::default()
    }));
    sim.settle();
    assert!(
        sim.events
            .iter()
            .any(|event| matches!(event.what, EventKind::GraphRejected { .. }))
    );
    assert_eq!(sim.state("b"), VertexState::Clean);
}

#[test]
fn a_rejected_graph_disturbs_nothing() {
    let mut sim = Simulation::of(&Graph::new(&["a"]));
    sim.step(Input::Preparing(true));
    sim.step(Input::GraphRejected {
        diagnostics: "`a` needs `b`, which needs `a`".into(),
    });
    sim.step(Input::Preparing(false));
    sim.event("a");
    sim.settle();
    assert_eq!(sim.ran(), ["a"]);
}

#[test]
fn rewatch_starts_what_failed_for_good_again_at_a_swap() {
    for rewatch in [true, false] {
        let mut sim = Simulation::new();
        sim.runs("a", [Run::fails("break")]);
        let graph = Graph::new(&["b"])
            .with("a", |meta| meta.rewatch = rewatch)
            .edges("a -> b");
        sim.swap(&graph);
        sim.settle();
        sim.take();
        sim.swap(&graph.clone().with("c", |_| {}));
        sim.settle();
        let ran = sim.ran();
        let expected: &[&str] = if rewatch { &["a", "b", "c"] } else { &["c"] };
        let mut sorted = ran.clone();
        sorted.sort();
        assert_eq!(sorted, expected, "rewatch {rewatch}");
    }
}

#[test]
fn realize_lets_a_resource_run_that_is_wanted_only_for_a_moment() {
    let mut sim = Simulation::of(&Graph::new(&["p"]));
    sim.swap(
        &Graph::new(&["p"])
            .with("a", |meta| meta.realize = true)
            .with("b", |_| {})
            .edges("p -> a"),
    );
    sim.allow_realizing("a");
    sim.swap(&Graph::new(&["p"]));
    sim.settle();
    let said = sim.take();
    assert_eq!(
        said.iter()
            .filter(|line| line.starts_with('a'))
            .collect::<Vec<_>>(),
        ["a ok", "a removed"]
    );
    assert!(!said.contains(&"b ok".to_owned()));
    // Behind a predecessor that is not settled it does not.
    sim.runs("p", [Run::ok().takes(s(10))]);
    sim.event("p");
    sim.swap(
        &Graph::new(&["p"])
            .with("a", |meta| meta.realize = true)
            .edges("p -> a"),
    );
    sim.settle();
    sim.swap(&Graph::new(&["p"]));
    sim.settle();
    assert_eq!(sim.take(), ["a removed"]);
}

#[test]
fn a_realized_resource_that_is_replaced_runs_before_its_successor_comes() {
    let graph = |content: &str| Graph::default().with_content("a", content, |meta| meta.realize = true);
    let mut sim = Simulation::new();
    sim.always("a", Run::ok().takes(s(1)));
    sim.swap(&graph("1"));
    sim.swap(&graph("2"));
    sim.advance(s(5));
    assert_eq!(sim.take(), ["a ok", "a removed", "a ok"]);
}

#[test]
fn of_graphs_that_come_fast_none_is_taken_half() {
    let mut sim = Simulation::new();
    for round in 0..20 {
        let names: Vec<String> = (0..5).map(|i| format!("r{}", (round + i) % 7)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let edges = format!("{} -> {} -> {}", names[0], names[1], names[2]);
        sim.swap(&Graph::new(&names).edges(&edges));
        sim.some_steps(round);
    }
    sim.settle();
    let mut left: Vec<String> = sim
        .machine
        .status()
        .iter()
        .map(|status| status.id.name.to_string())
        .collect();
    left.sort();
    assert_eq!(left, ["r0", "r1", "r2", "r5", "r6"]);
    assert!(
        sim.machine
            .status()
            .iter()
            .all(|status| status.state == VertexState::Clean)
    );
}

#[test]
fn a_kept_vertex_with_a_new_predecessor_is_not_checked_again_but_waits_for_it() {
    let mut sim = Simulation::of(&Graph::new(&["b"]));
    sim.runs("a", [Run::ok().takes(s(1))]);
    sim.swap(&Graph::new(&["a", "b"]).edges("a -> b"));
    sim.settle();
    assert_eq!(sim.ran(), ["a"]);
    sim.event("b");
    sim.settle();
    assert_eq!(sim.ran(), [""; 0]);
    sim.advance(s(1));
    assert_eq!(sim.ran(), ["b"]);
}

#[test]
fn an_edge_that_goes_frees_who_waited_behind_it() {
    let graph = Graph::new(&["a", "b", "c"]).edges("a -> b -> c");
    let mut sim = Simulation::of(&graph);
    sim.runs("a", [Run::fails("break")]);
    sim.event("a");
    sim.event("c");
    sim.settle();
    assert_eq!(sim.state("c"), VertexState::BlockedBy(id("a")));
    sim.take();
    sim.swap(&graph.without_edge("a", "b"));
    sim.settle();
    assert_eq!(sim.ran(), ["c"]);
}

#[test]
fn one_that_is_no_longer_wanted_and_then_cannot_begin_just_goes() {
    let mut sim = Simulation::new();
    sim.host("a").init_takes = s(5);
    sim.host("a").inits.push_back(Err("begin"));
    sim.swap(&Graph::default().with("a", |meta| (meta.retry, meta.delay) = (3, 100)));
    sim.advance(s(1));
    sim.swap(&Graph::new(&["b"]));
    sim.advance(s(60));
    let said = sim.take();
    assert_eq!(said, ["b ok", "a removed"]);
}

#[test]
fn one_that_goes_already_is_not_asked_to_go_again_by_the_end() {
    let mut sim = Simulation::of(&Graph::new(&["a", "b"]));
    sim.host("a").cleanup_takes = s(5);
    sim.swap(&Graph::new(&["b"]));
    sim.advance(s(1));
    sim.take();
    sim.step(Input::Stop {
        stage: StopStage::Finish,
        escalate: false,
    });
    sim.advance(s(60));
    let said = sim.take();
    assert_eq!(
        said.iter().filter(|line| *line == "a removed").count(),
        1,
        "{said:?}"
    );
    assert!(sim.exit.is_some(), "{said:?}");
}

#[test]
fn what_a_new_graph_brings_and_takes_is_counted_with_what_is_hidden() {
    let mut sim = Simulation::of(&Graph::new(&["a", "b"]));
    sim.swap(&Graph::new(&["b", "c", "d"]).with("h", |meta| meta.hidden = true));
    sim.settle();
    let counts = sim.events.iter().rev().find_map(|event| match &event.what {
        EventKind::GraphAccepted {
            added,
            removed,
            changed,
            kept,
        } => Some([*added, *removed, *changed, *kept]),
        _ => None,
    });
    assert_eq!(counts, Some([3, 1, 0, 1]));
}

#[test]
fn a_graph_of_the_same_generation_is_taken_and_an_older_one_is_not() {
    let mut sim = Simulation::new();
    sim.generation = 10;
    sim.swap(&Graph::new(&["a"]));
    sim.settle();
    sim.take();
    sim.generation = 10;
    sim.swap(&Graph::new(&["a", "b"]));
    sim.settle();
    assert_eq!(sim.ran(), ["b"]);
    sim.generation = 9;
    sim.swap(&Graph::new(&["a", "b", "c"]));
    sim.settle();
    assert_eq!(sim.ran(), [""; 0]);
}
