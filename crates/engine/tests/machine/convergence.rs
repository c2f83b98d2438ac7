//! When the host is converged, and with which exit code it ends.

use std::time::Duration;

use super::simulation::*;
use setpoint_engine::machine::{ExitReason, Input, Options};

fn waits(timeout: Duration) -> Options {
    Options {
        converge: Some(timeout),
        ..Options::default()
    }
}

fn once() -> Options {
    Options {
        converge: Some(Duration::ZERO),
        exit_when_converged: true,
        ..Options::default()
    }
}

#[test]
fn converged_is_quiet_for_the_timeout_and_drift_breaks_it() {
    let mut sim = Simulation::with(waits(s(5)));
    sim.advance(s(10));
    assert!(sim.converged.is_empty(), "without a graph nothing converges");
    sim.swap(&Graph::new(&["a"]));
    sim.advance(s(4));
    sim.runs("a", [Run::drift()]);
    sim.event("a");
    sim.advance(ms(4999));
    assert!(sim.converged.is_empty());
    sim.advance(ms(1));
    assert_eq!(sim.converged, [true]);
    sim.event("a");
    sim.advance(s(1));
    assert_eq!(sim.converged, [true], "an ok run does not break it");
    sim.runs("a", [Run::drift()]);
    sim.event("a");
    sim.advance(s(1));
    assert_eq!(sim.converged, [true, false]);
    sim.advance(s(5));
    assert_eq!(sim.converged, [true, false, true]);
    sim.swap(&Graph::new(&["a"]));
    sim.settle();
    assert_eq!(sim.converged, [true, false, true, false]);
}

#[test]
fn sources_preparation_and_busy_guards_keep_the_host_from_being_quiet() {
    let mut sim = Simulation::with(waits(s(1)));
    for busy in [Input::SourcesBusy, Input::Preparing, Input::Busy] {
        sim.step(busy(true));
    }
    sim.swap(&Graph::new(&["a"]));
    sim.advance(s(10));
    for busy in [Input::SourcesBusy, Input::Preparing, Input::Busy] {
        assert!(sim.converged.is_empty());
        sim.step(busy(false));
    }
    assert_eq!(sim.converged, [true]);
}

#[test]
fn what_is_blocked_does_not_keep_the_host_from_converging_and_the_code_says_so() {
    let mut sim = Simulation::with(once());
    sim.runs("a", [Run::fails("break")]);
    sim.swap(&Graph::new(&["a", "b"]).edges("a -> b"));
    sim.settle();
    let report = sim.exit.clone().unwrap();
    assert_eq!(report.code(false), 1);
    assert_eq!(report.failed.keys().collect::<Vec<_>>(), [&id("a")]);
    assert_eq!(report.blocked.keys().collect::<Vec<_>>(), [&id("b")]);
}

#[test]
fn exit_codes_of_running_once() {
    let mut sim = Simulation::with(once());
    sim.swap(&Graph::new(&["a"]));
    sim.settle();
    let report = sim.exit.clone().unwrap();
    assert_eq!([report.code(false), report.code(true)], [0, 0]);

    let mut sim = Simulation::with(once());
    sim.runs("a", [Run::drift().takes(s(10))]);
    sim.swap(&Graph::new(&["a"]));
    sim.advance(s(20));
    let report = sim.exit.clone().unwrap();
    assert_eq!([report.code(false), report.code(true)], [0, 2]);

    let mut sim = Simulation::with(Options { noop: true, ..once() });
    sim.always("a", Run::drift());
    sim.swap(&Graph::new(&["a"]));
    sim.settle();
    let report = sim.exit.clone().unwrap();
    assert_eq!([report.code(false), report.code(true)], [0, 2]);
    assert_eq!((report.repaired, report.would_change), (0, 1));
}

#[test]
fn backing_off_is_not_quiet() {
    let mut sim = Simulation::with(once());
    sim.runs("a", [Run::fails("break")]);
    sim.swap(&Graph::default().with("a", |meta| (meta.retry, meta.delay) = (1, 60_000)));
    sim.advance(s(59));
    assert!(sim.exit.is_none());
    sim.advance(s(2));
    assert_eq!(sim.exit.clone().unwrap().code(true), 0);
}

#[test]
fn max_runtime_and_exit_resources_end_the_program() {
    let mut sim = Simulation::with(Options {
        max_runtime: Some(s(30)),
        ..Options::default()
    });
    sim.swap(&Graph::new(&["a"]));
    sim.advance(s(31));
    assert_eq!(sim.exit.clone().unwrap().code(false), 1);

    let mut sim = Simulation::of(&Graph::new(&["a"]));
    sim.step(Input::Exit(ExitReason::Requested(42)));
    sim.settle();
    assert_eq!(sim.exit.clone().unwrap().code(true), 42);
}

#[test]
fn what_is_tried_for_ever_does_not_keep_the_host_from_being_quiet() {
    let mut sim = Simulation::with(Options {
        keep_trying: true,
        exit_when_converged: true,
        ..waits(s(90))
    });
    sim.always("a", Run::fails("break"));
    sim.always("svc[b]", Run::drift());
    sim.swap(
        &Graph::new(&["a", "svc[b]", "c"])
            .edges("a -> c")
            .edges("a => svc[b]"),
    );
    sim.advance(s(89));
    assert!(sim.exit.is_none());
    // Tries go on meanwhile, and the same failure again is no news.
    sim.advance(s(90));
    let report = sim.exit.clone().expect("it is quiet");
    assert_eq!(report.code(false), 1);
    assert_eq!(report.failed.keys().collect::<Vec<_>>(), [&id("a")]);
    assert_eq!(report.blocked.len(), 2);
}

#[test]
fn a_new_failure_and_a_success_break_the_quiet() {
    let mut sim = Simulation::with(Options {
        keep_trying: true,
        ..waits(s(5))
    });
    sim.always("a", Run::fails("break"));
    sim.swap(&Graph::new(&["a"]));
    sim.advance(s(20));
    assert_eq!(sim.converged, [true]);
    sim.always("a", Run::fails("do something else"));
    sim.advance(s(60));
    assert_eq!(sim.converged, [true, false, true]);
    sim.always("a", Run::drift());
    sim.advance(s(120));
    assert_eq!(sim.converged, [true, false, true, false, true]);
}

#[test]
fn running_once_ends_with_1_when_resources_fight() {
    let mut sim = Simulation::with(once());
    // Each undoes what the other did, while that goes on.
    sim.always("a", Run::drift().takes(ms(10)));
    sim.always("b", Run::drift().takes(ms(10)));
    sim.swap(&Graph::new(&["a", "b", "c"]).edges("a -> c"));
    sim.advance(ms(5));
    for _ in 0..100 {
        if sim.exit.is_none() {
            sim.event_of(&["a", "b"]);
            sim.advance(ms(10));
        }
    }
    let report = sim.exit.clone().expect("it ends");
    assert_eq!(report.code(true), 1);
    assert!(
        report.failed[&id("a")].contains("something keeps changing content to wrong"),
        "{:?}",
        report.failed
    );
}

#[test]
fn what_one_repairs_others_of_the_same_path_look_at_before_the_host_is_quiet() {
    let mut sim = Simulation::with(once());
    sim.always("a", Run::drift());
    sim.always("b", Run::drift());
    sim.swap(&Graph::new(&["a", "b"]));
    sim.step(Input::Sharing(vec![vec![id("a"), id("b")]]));
    sim.settle();
    assert_eq!(sim.exit.clone().expect("it ends").code(true), 1);
    assert_eq!(sim.starts("a").len(), 11);
}

#[test]
fn a_watch_that_will_be_tried_again_keeps_the_host_busy_until_it_has_given_up() {
    let mut sim = Simulation::with(waits(s(1)));
    sim.swap(&Graph::default().with("a", |meta| (meta.retry, meta.delay) = (1, 20_000)));
    sim.advance(ms(500));
    sim.watch_fails("a");
    sim.advance(s(19));
    assert!(sim.converged.is_empty(), "{:?}", sim.converged);
    sim.advance(s(10));
    assert_eq!(sim.converged, [true]);
}

#[test]
fn a_run_that_will_be_tried_again_keeps_the_host_busy_until_it_has_given_up() {
    let mut sim = Simulation::with(waits(s(1)));
    sim.runs("a", [Run::fails("break"), Run::fails("break")]);
    sim.swap(&Graph::default().with("a", |meta| (meta.retry, meta.delay) = (1, 20_000)));
    sim.advance(s(19));
    assert!(sim.converged.is_empty(), "{:?}", sim.converged);
    sim.advance(s(10));
    assert_eq!(sim.converged, [true]);
}
