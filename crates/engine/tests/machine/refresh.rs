//! Notifications.

use super::simulation::*;
use setpoint_engine::machine::{Input, Options, StopStage};

fn graph() -> Graph {
    Graph::new(&["a", "svc[b]"]).edges("a => svc[b]")
}

#[test]
fn a_repair_refreshes_once_and_ok_does_not() {
    let mut sim = Simulation::of(&graph());
    sim.event("a");
    sim.settle();
    assert_eq!(sim.ran(), ["a"]);
    sim.runs("a", [Run::drift()]);
    sim.event("a");
    sim.settle();
    let said = sim.take();
    assert_eq!(
        said,
        [
            "a drift",
            "svc[b] refresh pending by a",
            "svc[b] ok",
            "svc[b] refresh consumed"
        ]
    );
    assert!(sim.store.is_empty(), "{:?}", sim.store);
}

#[test]
fn a_failed_receiver_is_refreshed_again_at_its_retry() {
    let graph = Graph::new(&["a"])
        .with("svc[b]", |meta| (meta.retry, meta.delay) = (3, 100))
        .edges("a => svc[b]");
    let mut sim = Simulation::of(&graph);
    sim.runs("a", [Run::drift()]);
    sim.runs("svc[b]", [Run::fails("reload"), Run::fails("reload"), Run::ok()]);
    sim.event("a");
    sim.advance(s(1));
    let refreshed: Vec<bool> = sim
        .requests
        .iter()
        .filter(|(name, _)| name == "svc[b]")
        .map(|(_, request)| !request.refresh.is_empty())
        .collect();
    assert_eq!(refreshed, [true, true, true]);
    sim.take();
    sim.event("svc[b]");
    sim.settle();
    assert!(sim.requests[0].1.refresh.is_empty());
}

#[test]
fn a_pending_refresh_survives_a_swap_and_replacement_of_both_ends() {
    let mut sim = Simulation::of(&graph());
    sim.step(Input::Pause);
    sim.runs("a", [Run::drift()]);
    sim.event("a");
    sim.step(Input::Resume);
    // b is paused before it can take it.
    sim.step(Input::Pause);
    sim.settle();
    assert!(sim.take().contains(&"svc[b] refresh pending by a".to_owned()));
    let replaced = Graph::default()
        .with_content("a", "new", |_| {})
        .with_content("svc[b]", "new", |_| {})
        .edges("a => svc[b]");
    sim.swap(&replaced);
    sim.settle();
    sim.step(Input::Resume);
    sim.settle();
    let requests = &sim.requests;
    assert!(
        requests
            .iter()
            .any(|(name, request)| name == "svc[b]" && request.refresh == [id("a")])
    );
    assert!(sim.take().contains(&"svc[b] refresh consumed".to_owned()));
}

#[test]
fn a_refresh_survives_a_kill() {
    let mut sim = Simulation::of(&graph());
    sim.runs("a", [Run::drift().takes(s(1))]);
    sim.event("a");
    sim.settle();
    // Killed while a repairs: what is stored is all that is left.
    let mut store = std::mem::take(&mut sim.store);
    assert_eq!(store.len(), 1);
    // Numbers of runs mean nothing in the next process.
    store.values_mut().for_each(|run| *run = 0);
    let mut next = Simulation::new();
    next.store = store;
    next.swap(&graph());
    next.settle();
    let requests = next.requests.iter();
    let refreshed: Vec<bool> = requests
        .filter(|(name, _)| name == "svc[b]")
        .map(|(_, request)| !request.refresh.is_empty())
        .collect();
    assert_eq!(refreshed, [true]);
    assert!(next.store.is_empty());
}

#[test]
fn a_repair_that_fails_afterwards_notifies_at_the_next_success() {
    let graph = Graph::new(&["svc[b]"])
        .with("a", |meta| (meta.retry, meta.delay) = (3, 100))
        .edges("a => svc[b]");
    let mut sim = Simulation::of(&graph);
    sim.runs(
        "a",
        [
            Run {
                fails: Some("write the rest"),
                ..Run::drift()
            },
            Run::ok(),
        ],
    );
    sim.event("a");
    sim.settle();
    assert!(!sim.take().contains(&"svc[b] refresh pending by a".to_owned()));
    assert_eq!(sim.store.len(), 1);
    sim.advance(s(1));
    assert_eq!(
        sim.take(),
        [
            "a ok",
            "svc[b] refresh pending by a",
            "svc[b] ok",
            "svc[b] refresh consumed"
        ]
    );
    assert!(sim.store.is_empty());
}

#[test]
fn a_kind_that_cannot_be_refreshed_does_not_run_for_it_and_passes_nothing_on() {
    let mut sim = Simulation::of(&Graph::new(&["a", "b", "svc[c]"]).edges("a => b => svc[c]"));
    sim.runs("a", [Run::drift()]);
    sim.event("a");
    sim.settle();
    assert_eq!(sim.ran(), ["a"]);
    sim.event("b");
    sim.settle();
    assert_eq!(sim.take(), ["b ok", "b refresh consumed"]);
}

#[test]
fn under_noop_a_pending_refresh_is_drift_and_stays() {
    let graph = |noop: bool| {
        Graph::new(&["a"])
            .with("svc[b]", |meta| meta.noop = noop)
            .edges("a => svc[b]")
    };
    let mut sim = Simulation::of(&graph(true));
    sim.runs("a", [Run::drift()]);
    sim.runs("svc[b]", [Run::drift()]);
    sim.event("a");
    sim.settle();
    assert_eq!(
        sim.take(),
        ["a drift", "svc[b] refresh pending by a", "svc[b] drift"]
    );
    sim.advance(s(100));
    assert_eq!(sim.ran(), [""; 0], "it is not due again because of it");
    sim.swap(&graph(false));
    sim.settle();
    assert_eq!(
        sim.take(),
        ["svc[b] removed", "svc[b] ok", "svc[b] refresh consumed"]
    );
}

#[test]
fn a_refresh_that_comes_during_the_receivers_run_is_served_by_another() {
    let mut sim = Simulation::of(&graph());
    sim.runs("svc[b]", [Run::ok().takes(s(1))]);
    sim.event("svc[b]");
    sim.advance(ms(100));
    sim.runs("a", [Run::drift()]);
    sim.event("a");
    sim.advance(s(5));
    assert_eq!(sim.ran(), ["svc[b]", "a", "svc[b]"]);
    assert!(sim.store.is_empty());
}

#[test]
fn what_is_stored_by_a_senders_run_in_progress_outlives_the_receivers_success() {
    let mut sim = Simulation::of(&graph());
    sim.runs("a", [Run::drift()]);
    sim.runs("svc[b]", [Run::ok().takes(s(1))]);
    sim.event("a");
    sim.advance(ms(100));
    // b serves the first; meanwhile a repairs again, and b ends before a does.
    sim.runs("a", [Run::drift().takes(s(10))]);
    sim.event("a");
    sim.advance(s(5));
    assert_eq!(sim.store.len(), 1);
    sim.advance(s(10));
    assert!(sim.store.is_empty());
    assert_eq!(sim.ran(), ["a", "svc[b]", "a", "svc[b]"]);
}

#[test]
fn an_edge_that_goes_takes_its_bit_along() {
    let mut sim = Simulation::of(&graph());
    sim.runs("a", [Run::drift()]);
    sim.event("a");
    sim.runs("svc[b]", [Run::fails("reload")]);
    sim.settle();
    assert_eq!(sim.store.len(), 1);
    sim.swap(&Graph::new(&["a", "svc[b]"]).edges("a -> svc[b]"));
    sim.settle();
    assert!(sim.store.is_empty());
}

#[test]
fn noop_and_stopping_leave_no_marks() {
    let mut sim = Simulation::with(Options {
        noop: true,
        ..Options::default()
    });
    sim.always("a", Run::drift());
    sim.swap(&graph());
    sim.settle();
    assert!(
        sim.requests
            .iter()
            .all(|(_, request)| request.notifies.is_empty() && request.noop)
    );
    sim.step(Input::Stop {
        stage: StopStage::Finish,
        escalate: true,
    });
    sim.settle();
    assert!(sim.exit.is_some());
}
