//! When a resource runs.

use super::simulation::*;
use setpoint_engine::machine::{Input, Options, VertexState};

#[test]
fn a_chain_runs_in_order_and_a_diamond_runs_its_bottom_once() {
    let mut sim = Simulation::new();
    sim.swap(
        &Graph::new(&["a", "b", "c", "x", "y", "z", "w"])
            .edges("a -> b -> c")
            .edges("x -> y -> w")
            .edges("x -> z -> w"),
    );
    for name in ["a", "b", "c", "x", "y", "z", "w"] {
        sim.always(name, Run::drift().takes(ms(10)));
    }
    sim.advance(s(1));
    let mut ran = sim.ran();
    let at = |sim: &Simulation, name: &str| sim.starts(name)[0];
    assert_eq!(at(&sim, "a"), at(&sim, "x"), "independent ones run at once");
    assert_eq!(at(&sim, "y"), at(&sim, "z"));
    assert_eq!(
        [at(&sim, "b"), at(&sim, "c"), at(&sim, "w")],
        [ms(10), ms(20), ms(20)]
    );
    ran.sort();
    assert_eq!(ran, ["a", "b", "c", "w", "x", "y", "z"], "each once");
}

#[test]
fn an_event_at_a_clean_vertex_runs_that_vertex_alone() {
    let mut sim = Simulation::of(&Graph::new(&["a", "b", "c"]).edges("a -> b -> c"));
    sim.event("c");
    sim.settle();
    assert_eq!(sim.ran(), ["c"]);
    sim.runs("a", [Run::drift()]);
    sim.event("a");
    sim.settle();
    assert_eq!(sim.ran(), ["a"]);
}

#[test]
fn a_dirty_vertex_waits_for_an_ancestor_through_clean_ones() {
    let mut sim = Simulation::of(&Graph::new(&["a", "b", "c"]).edges("a -> b -> c"));
    sim.runs("a", [Run::ok().takes(s(1))]);
    sim.event("a");
    sim.event("c");
    sim.settle();
    assert_eq!(sim.ran(), ["a"]);
    assert_eq!(sim.state("c"), VertexState::WaitingFor(id("a")));
    sim.advance(s(1));
    assert_eq!(sim.ran(), ["c"], "b does not run for it");
}

#[test]
fn an_event_during_a_run_leads_to_one_more_run() {
    let mut sim = Simulation::of(&Graph::new(&["a"]));
    sim.runs("a", [Run::ok().takes(s(1))]);
    sim.event("a");
    sim.advance(ms(100));
    sim.event("a");
    sim.event("a");
    sim.event("a");
    sim.advance(s(5));
    assert_eq!(sim.ran(), ["a", "a"]);
}

#[test]
fn nothing_runs_before_the_first_event_of_its_watch() {
    let mut sim = Simulation::new();
    sim.host("svc[b]").arms.push_back((s(10), Ok(())));
    sim.runs("a", [Run::drift()]);
    sim.swap(&Graph::new(&["a", "svc[b]"]).edges("a => svc[b]"));
    sim.advance(s(1));
    assert_eq!(sim.ran(), ["a"], "it was notified, but does not watch yet");
    sim.recheck("svc[b]");
    sim.step(Input::Pause);
    sim.step(Input::Resume);
    sim.advance(s(8));
    assert_eq!(sim.ran(), [""; 0]);
    sim.advance(s(1));
    assert_eq!(sim.ran(), ["svc[b]"]);
}

#[test]
fn of_those_that_may_run_the_longest_path_goes_first_and_nobody_waits_longer_than_a_round() {
    let mut sim = Simulation::with(Options {
        jobs: 1,
        ..Options::default()
    });
    let graph = Graph::new(&["a", "b", "c", "d", "e"]).edges("c -> d -> e");
    sim.swap(&graph);
    sim.settle();
    let ran = sim.ran();
    assert!(ran.iter().position(|name| name == "c") < ran.iter().position(|name| name == "d"));
    assert_eq!(ran.len(), 5);
    // One that is dirty again whenever it ran, and has the longest path.
    sim.always("c", Run::ok().takes(ms(1)));
    sim.always("a", Run::ok().takes(ms(1)));
    sim.event("c");
    sim.settle();
    for _ in 0..3 {
        sim.event("c");
        sim.event("a");
        sim.event("b");
        sim.advance(ms(1));
    }
    let ran = sim.ran();
    assert!(ran.iter().any(|name| name == "a"), "{ran:?}");
    assert!(ran.iter().any(|name| name == "b"), "{ran:?}");
}

#[test]
fn a_pause_lets_runs_finish_and_starts_none() {
    let mut sim = Simulation::of(&Graph::new(&["a", "b"]));
    sim.runs("a", [Run::ok().takes(s(1))]);
    sim.event("a");
    sim.step(Input::Pause);
    sim.event("b");
    sim.advance(s(3));
    assert_eq!(sim.take(), ["a ok"]);
    assert_eq!(sim.state("b"), VertexState::Ready);
    sim.step(Input::Resume);
    sim.settle();
    assert_eq!(sim.take(), ["b ok"]);
}

#[test]
fn semaphores_bound_how_many_run() {
    let mut sim = Simulation::new();
    let mut graph = Graph::default();
    for name in ["a1", "a2", "a3", "a4", "a5"] {
        sim.always(name, Run::ok().takes(s(1)));
        // Named twice, it counts once.
        graph = graph.with(name, |meta| meta.sema = vec!["a:2".into(), "a:2".into()]);
    }
    sim.swap(&graph);
    sim.advance(s(10));
    assert_eq!(sim.most_running[&'a'], 2);
    assert_eq!(sim.ran().len(), 5);
    assert_eq!(sim.starts("a5"), [s(2)]);
}

#[test]
fn the_count_is_part_of_a_semaphores_name() {
    let mut sim = Simulation::new();
    for name in ["b1", "b2"] {
        sim.always(name, Run::ok().takes(s(1)));
    }
    let graph = Graph::default()
        .with("b1", |meta| meta.sema = vec!["foo".into()])
        .with("b2", |meta| meta.sema = vec!["foo:1".into()]);
    sim.swap(&graph);
    sim.advance(s(10));
    assert_eq!(sim.most_running[&'b'], 2);
}

#[test]
fn all_semaphores_are_taken_at_once_or_none_first_come_first_served() {
    let mut sim = Simulation::new();
    for name in ["a", "b", "c", "d"] {
        sim.always(name, Run::ok().takes(s(1)));
    }
    let sema = |ids: &[&str]| {
        let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
        move |meta: &mut setpoint_graph::MetaParameters| meta.sema = ids.clone()
    };
    let graph = Graph::default()
        .with("a", sema(&["x"]))
        .with("b", sema(&["x", "y"]))
        .with("c", sema(&["y", "x"]))
        .with("d", sema(&["y"]));
    sim.swap(&graph);
    sim.advance(s(20));
    assert_eq!(sim.ran().len(), 4);
    let mut starts = ["a", "b", "c", "d"].map(|name| sim.starts(name)[0]);
    starts.sort();
    assert!(starts[3] <= s(3), "{starts:?}");
}

#[test]
fn a_semaphore_for_all_is_added_by_option() {
    let mut sim = Simulation::with(Options {
        sema: Some(1),
        ..Options::default()
    });
    for name in ["a1", "a2", "a3"] {
        sim.always(name, Run::ok().takes(s(1)));
    }
    sim.swap(&Graph::new(&["a1", "a2", "a3"]));
    sim.advance(s(10));
    assert_eq!(sim.most_running[&'a'], 1);
    assert_eq!(sim.ran().len(), 3);
}

#[test]
fn who_waits_for_a_semaphore_and_is_removed_makes_room() {
    let mut sim = Simulation::new();
    let graph = Graph::default()
        .with("a", |meta| meta.sema = vec!["x".into()])
        .with("b", |meta| meta.sema = vec!["x".into(), "y".into()])
        .with("c", |meta| meta.sema = vec!["y".into()]);
    sim.always("a", Run::ok().takes(s(100)));
    sim.host("b").arms.push_back((ms(1), Ok(())));
    sim.host("c").arms.push_back((ms(2), Ok(())));
    sim.swap(&graph);
    sim.advance(ms(10));
    assert_eq!(sim.ran(), ["a"], "c is behind b");
    sim.swap(&graph.without("b"));
    sim.settle();
    assert_eq!(sim.ran(), ["c"]);
}

#[test]
fn under_noop_successors_are_checked_and_it_is_checked_again_on_each_event() {
    let mut sim = Simulation::with(Options {
        noop: true,
        ..Options::default()
    });
    sim.always("a", Run::drift());
    sim.always("svc[b]", Run::drift());
    sim.swap(&Graph::new(&["a", "svc[b]"]).edges("a => svc[b]"));
    sim.settle();
    assert_eq!(sim.take(), ["a drift", "svc[b] drift"], "nothing is notified");
    sim.event("a");
    sim.settle();
    assert_eq!(sim.take(), ["a drift"]);
    assert!(sim.store.is_empty());
}

#[test]
fn a_hidden_resource_does_not_run_but_holds_its_edges() {
    let mut sim = Simulation::new();
    sim.always("a", Run::ok().takes(s(1)));
    let graph = Graph::new(&["a", "b"])
        .with("h", |meta| meta.hidden = true)
        .with_content("h", "another", |meta| meta.hidden = true)
        .edges("a -> h -> b");
    sim.swap(&graph);
    sim.advance(ms(500));
    assert_eq!(sim.ran(), ["a"]);
    sim.advance(s(1));
    assert_eq!(sim.ran(), ["h", "h", "b"]);
    assert_eq!(
        sim.requests.iter().filter(|(name, _)| name == "(hidden)").count(),
        2
    );
    // Beside a normal one of the same identity.
    let graph = graph.with("h", |_| {});
    sim.always("h", Run::ok().takes(s(1)));
    sim.swap(&graph);
    sim.event("b");
    sim.settle();
    assert_eq!(sim.ran(), ["h"], "b waits for the normal one too");
    sim.advance(s(2));
    assert_eq!(sim.ran(), ["b"]);
    sim.swap(&graph.without("h"));
    sim.settle();
    sim.event("b");
    sim.settle();
    assert_eq!(sim.ran(), ["b"]);
}

#[test]
fn what_one_event_tells_to_several_marks_all_before_any_runs() {
    let mut sim = Simulation::of(&Graph::new(&["a", "b"]).edges("a -> b"));
    for _ in 0..5 {
        sim.event_of(&["b", "a"]);
        sim.settle();
        assert_eq!(sim.ran(), ["a", "b"]);
    }
}

#[test]
fn of_what_may_run_the_oldest_runs_first() {
    let mut sim = Simulation::of(&Graph::new(&["a", "b", "c", "d"]));
    for order in [["d", "b", "a", "c"], ["b", "d", "c", "a"]] {
        sim.step(Input::Pause);
        for name in order {
            sim.event(name);
        }
        sim.step(Input::Resume);
        sim.settle();
        assert_eq!(sim.ran(), order);
    }
}
