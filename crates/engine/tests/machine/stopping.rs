//! The stages of stopping.

use super::simulation::*;
use setpoint_engine::machine::{Input, StopStage};

fn stop(stage: StopStage, escalate: bool) -> Input {
    Input::Stop { stage, escalate }
}

#[test]
fn a_graceful_stop_lets_runs_finish_and_cleans_up_backwards() {
    let mut sim = Simulation::of(
        &Graph::new(&["a", "b", "c", "d"])
            .edges("a -> b -> c")
            .edges("a -> d"),
    );
    sim.runs("b", [Run::ok().takes(s(20))]);
    sim.host("c").cleanup_takes = s(1);
    sim.event("b");
    sim.event("c");
    sim.settle();
    sim.take();
    sim.step(stop(StopStage::Finish, false));
    sim.event("a");
    sim.advance(s(100));
    let said = sim.take();
    assert_eq!(said[0], "stopping 1 thing[b]");
    assert_eq!(
        said[1..],
        [
            "b finishing",
            "d removed",
            "c removed",
            "b ok",
            "b removed",
            "a removed"
        ]
    );
    assert_eq!(sim.exit.clone().unwrap().code(false), 0);
}

#[test]
fn each_signal_is_harder() {
    let mut sim = Simulation::of(&Graph::new(&["soft", "hard"]));
    sim.runs("soft", [Run::ok().takes(s(1000))]);
    sim.runs(
        "hard",
        [Run {
            stubborn: true,
            ..Run::ok().takes(s(1000))
        }],
    );
    sim.event("soft");
    sim.event("hard");
    sim.settle();
    sim.step(stop(StopStage::Finish, false));
    sim.advance(s(60));
    assert!(sim.exit.is_none(), "with Ctrl-C no stage follows by itself");
    sim.take();
    sim.step(stop(StopStage::Cancel, false));
    sim.settle();
    assert_eq!(
        sim.take(),
        [
            "stopping 2 thing[hard] thing[soft]",
            "soft failed: wait",
            "soft removed"
        ]
    );
    sim.step(stop(StopStage::Interrupt, false));
    sim.settle();
    assert_eq!(
        sim.take(),
        ["stopping 3 thing[hard]", "hard failed: wait", "hard removed"]
    );
    let report = sim.exit.clone().unwrap();
    assert_eq!(report.code(false), 0);
    assert!(report.failed.is_empty());
}

#[test]
fn one_signal_of_a_service_manager_passes_all_stages() {
    let mut sim = Simulation::of(&Graph::new(&["a"]));
    sim.runs(
        "a",
        [Run {
            stubborn: true,
            ..Run::ok().takes(s(1000))
        }],
    );
    sim.event("a");
    sim.settle();
    sim.take();
    sim.step(stop(StopStage::Finish, true));
    sim.advance(s(29));
    assert_eq!(
        sim.take(),
        ["stopping 1 thing[a]", "a finishing", "stopping 2 thing[a]"]
    );
    sim.advance(s(1));
    assert_eq!(sim.now, s(30));
    assert!(sim.exit.is_some());
    assert_eq!(sim.exit.clone().unwrap().code(false), 0);
}

#[test]
fn what_hangs_is_named_in_the_end() {
    let mut sim = Simulation::of(&Graph::new(&["a", "b"]));
    sim.runs(
        "a",
        [Run {
            stubborn: true,
            immortal: true,
            ..Run::ok().takes(s(1000))
        }],
    );
    sim.event("a");
    sim.settle();
    sim.step(stop(StopStage::Interrupt, false));
    sim.advance(s(16));
    let report = sim.exit.clone().unwrap();
    assert_eq!(report.hung.keys().collect::<Vec<_>>(), [&id("a")]);
    assert_eq!(report.code(false), 1);
}

#[test]
fn a_stop_waits_neither_for_back_off_nor_for_what_is_to_be_added() {
    let mut sim = Simulation::of(&Graph::new(&["x"]));
    sim.runs("a", [Run::fails("break")]);
    sim.runs("x", [Run::ok().takes(s(1))]);
    sim.event("x");
    sim.swap(
        &Graph::default()
            .with("a", |meta| (meta.retry, meta.delay) = (1, 100_000))
            .with_content("x", "new", |_| {}),
    );
    sim.settle();
    sim.step(stop(StopStage::Finish, false));
    sim.advance(s(2));
    assert!(sim.exit.is_some());
    assert_eq!(sim.starts("x").len(), 2);
}

#[test]
fn a_cleanup_that_hangs_is_named_at_the_end() {
    let mut sim = Simulation::of(&Graph::new(&["a", "b"]));
    sim.host("a").cleanup_takes = s(1000);
    sim.step(stop(StopStage::Finish, true));
    sim.advance(s(44));
    assert!(sim.exit.is_none());
    assert_eq!(
        sim.take(),
        ["stopping 1", "b removed", "stopping 2", "stopping 3 thing[a]"]
    );
    sim.advance(s(1));
    let report = sim.exit.clone().expect("patience ends");
    assert_eq!(
        (report.code(false), report.hung.contains_key(&id("a"))),
        (1, true)
    );
}
