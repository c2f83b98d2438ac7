//! What left the program is undone: once, also when the process is replaced meanwhile. Random histories are in `setpoint-simulation`.

use setpoint_engine::machine::{Input, Options, StopStage, VertexState};
use setpoint_graph::MetaParameters;

use super::simulation::*;

fn reversed(meta: &mut MetaParameters) {
    meta.reverse = true;
}

/// `a` wants `new`, and is undone when it goes; `b` wants nothing special.
fn with_a() -> Graph {
    Graph::new(&["b"]).with_content("a", "new", reversed)
}

/// A machine with something old on it, on which that graph has run.
fn managed() -> Simulation {
    let mut sim = Simulation::new();
    sim.disk.insert("a".to_owned(), "old".to_owned());
    sim.swap(&with_a());
    sim.settle();
    assert_eq!(sim.disk["a"], "new");
    sim.take();
    sim
}

fn without_a() -> Graph {
    Graph::new(&["b"])
}

#[test]
fn what_leaves_is_undone_once_and_then_left_alone() {
    let mut sim = managed();
    sim.always("a", Run::drift());
    sim.swap(&without_a());
    sim.settle();
    assert_eq!(sim.take(), ["a removed", "a drift", "a undone", "a removed"]);
    assert_eq!(sim.disk["a"], "old");
    assert!(sim.records.is_empty());
    assert_eq!(sim.machine.status().len(), 1, "only b is left");
    sim.swap(&without_a());
    sim.settle();
    assert_eq!(sim.take(), Vec::<String>::new());
}

#[test]
fn a_replacement_and_a_restart_keep_the_record() {
    let mut sim = managed();
    sim.swap(&Graph::new(&["b"]).with_content("a", "newer", reversed));
    sim.settle();
    sim.restart(Options::default());
    sim.swap(&with_a());
    sim.settle();
    assert_eq!(sim.written["a"], 1);
    sim.swap(&without_a());
    sim.settle();
    assert_eq!(sim.disk["a"], "old");
}

#[test]
fn a_process_whose_first_graph_lacks_it_undoes_it_and_no_program_undoes_nothing() {
    let mut sim = managed();
    sim.restart(Options::default());
    sim.advance(s(10));
    assert_eq!(sim.disk["a"], "new", "no program yet");
    sim.swap(&without_a());
    sim.settle();
    assert_eq!((sim.disk["a"].as_str(), sim.undone["a"]), ("old", 1));
}

#[test]
fn stopping_undoes_nothing() {
    let mut sim = managed();
    sim.step(Input::Stop {
        stage: StopStage::Finish,
        escalate: false,
    });
    sim.settle();
    assert!(sim.exit.is_some());
    assert_eq!(sim.disk["a"], "new");
    assert_eq!(sim.records["a"], "old");
}

#[test]
fn without_reverse_the_record_is_erased_and_nothing_is_undone() {
    let mut sim = managed();
    sim.swap(&Graph::new(&["b"]).with_content("a", "new", |_| {}));
    sim.settle();
    assert!(sim.records.is_empty());
    sim.swap(&without_a());
    sim.settle();
    assert_eq!(sim.disk["a"], "new");
}

#[test]
fn under_noop_nothing_is_recorded_undone_or_erased() {
    let noop = Options {
        noop: true,
        ..Options::default()
    };
    let mut sim = Simulation::with(noop.clone());
    sim.swap(&with_a());
    sim.settle();
    assert!(sim.records.is_empty());

    let mut sim = managed();
    sim.restart(noop);
    sim.runs("a", [Run::drift()]);
    sim.swap(&without_a());
    sim.settle();
    let drift = sim.take().iter().any(|line| line == "a drift");
    assert!(drift, "told");
    assert_eq!(sim.state("a"), VertexState::Clean);
    assert!(sim.machine.status().iter().any(|status| status.reversal));
    assert_eq!(sim.disk["a"], "new", "but not done");
    assert!(sim.records.contains_key("a"));
    sim.swap(&Graph::new(&["b"]).with_content("a", "new", |_| {}));
    sim.settle();
    assert!(sim.records.contains_key("a"));
}

#[test]
fn a_reversal_that_fails_is_tried_again_and_one_that_was_cut_short_is_begun_again() {
    let mut sim = managed();
    sim.runs("a", [Run::fails("undo"), Run::fails("undo")]);
    let mut graph = without_a();
    graph.desired.generation = 0;
    sim.swap(&graph);
    sim.settle();
    assert_eq!(sim.records["a"], "old");
    sim.restart(Options::default());
    sim.swap(&without_a());
    sim.settle();
    assert_eq!((sim.disk["a"].as_str(), sim.undone["a"]), ("old", 1));
}

#[test]
fn what_comes_back_while_it_is_being_undone_waits_and_begins_from_what_was_there_before() {
    let mut sim = managed();
    sim.runs("a", [Run::drift().takes(s(5))]);
    sim.swap(&without_a());
    sim.advance(s(1));
    sim.swap(&with_a());
    sim.advance(s(1));
    assert!(
        matches!(sim.state("a"), VertexState::Finishing),
        "{:?}",
        sim.state("a")
    );
    sim.advance(s(10));
    assert_eq!(sim.disk["a"], "new");
    assert_eq!(sim.written["a"], 2, "it was undone, and so begins anew");
    assert_eq!(sim.records["a"], "old");
}

#[test]
fn what_comes_back_while_its_reversal_fails_keeps_the_record() {
    let mut sim = managed();
    sim.always("a", Run::fails("undo"));
    sim.swap(&without_a());
    sim.advance(s(1));
    sim.always("a", Run::drift());
    sim.swap(&with_a());
    sim.advance(s(10));
    assert_eq!(
        (sim.disk["a"].as_str(), sim.records["a"].as_str()),
        ("new", "old")
    );
    assert_eq!(sim.written["a"], 1);
}

#[test]
fn what_leaves_while_its_record_is_written_is_undone_too() {
    let mut sim = Simulation::new();
    sim.disk.insert("a".to_owned(), "old".to_owned());
    sim.host("a").init_takes = s(1);
    sim.swap(&with_a());
    sim.swap(&without_a());
    sim.advance(s(10));
    assert_eq!((sim.disk["a"].as_str(), sim.undone["a"]), ("old", 1));
    assert!(sim.records.is_empty());
}

#[test]
fn a_reversal_has_no_edges_although_a_hidden_resource_of_its_identity_has() {
    let mut sim = Simulation::new();
    let edges = |graph: Graph| graph.edges("b -> a -> c");
    sim.swap(&edges(Graph::new(&["b", "c"]).with_content("a", "new", reversed)));
    sim.settle();
    sim.always("a", Run::fails("undo"));
    sim.swap(&edges(
        Graph::new(&["b", "c"]).with("a", |meta| meta.hidden = true),
    ));
    sim.settle();
    sim.event("c");
    assert_eq!(
        sim.state("c"),
        VertexState::Running(sim.now),
        "nothing waits for it"
    );
    sim.settle();
    sim.swap(&edges(
        Graph::new(&["b", "c"])
            .with("a", |meta| meta.hidden = true)
            .with_content("a", "new", reversed),
    ));
    sim.settle();
    sim.take();
    sim.event("c");
    sim.settle();
    assert_eq!(sim.state("c"), VertexState::BlockedBy(id("a")));
}
