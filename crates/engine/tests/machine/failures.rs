//! Failure, retry, back-off, blocking.

use super::simulation::*;
use setpoint_engine::machine::{Input, Options, Standing, StopStage, VertexState};
use setpoint_engine::{Drift, EventKind, FailureReason};
use setpoint_graph::MetaName;

#[test]
fn what_is_behind_a_failure_is_blocked_and_the_rest_runs() {
    let graph = Graph::new(&["a", "b", "c", "d"]).edges("a -> b -> c");
    let mut sim = Simulation::new();
    sim.runs("a", [Run::fails("break")]);
    sim.swap(&graph);
    sim.settle();
    let mut said = sim.take();
    said.sort();
    assert_eq!(
        said,
        [
            "a failed: break",
            "a gave up",
            "b blocked by a",
            "c blocked by a",
            "d ok"
        ]
    );
    sim.swap(&graph.with_content("a", "repaired", |_| {}));
    sim.settle();
    assert_eq!(sim.ran(), ["a", "b", "c"]);
}

#[test]
fn a_run_that_somebody_overtakes_is_made_once_more() {
    let overtaken = || Run {
        reason: FailureReason::Overtaken,
        ..Run::fails("replace it")
    };
    let mut sim = Simulation::new();
    sim.runs("a", [overtaken()]);
    sim.runs("b", [overtaken(), overtaken()]);
    sim.swap(&Graph::new(&["a", "b"]));
    sim.settle();
    let mut said = sim.take();
    said.sort();
    assert_eq!(
        said,
        [
            "a failed: replace it",
            "a ok",
            "b failed: replace it",
            "b failed: replace it",
            "b gave up"
        ]
    );
}

#[test]
fn what_ran_before_is_blocked_too_when_it_drifts_behind_a_failure() {
    let mut sim = Simulation::of(&Graph::new(&["a", "b"]).edges("a -> b"));
    sim.runs("a", [Run::fails("break")]);
    sim.event("a");
    sim.settle();
    assert_eq!(sim.take(), ["a failed: break", "a gave up"]);
    assert_eq!(sim.state("b"), VertexState::Clean);
    sim.event("b");
    sim.settle();
    assert_eq!(sim.take(), ["b blocked by a"]);
    assert_eq!(sim.state("b"), VertexState::BlockedBy(id("a")));
    // A recheck starts what failed again, and with it what was blocked.
    sim.recheck("a");
    sim.settle();
    assert_eq!(sim.ran(), ["a", "b"]);
}

/// How many tries each failure of a resource has left.
fn tries_left(sim: &Simulation, name: &str) -> Vec<Option<u16>> {
    let events = sim
        .events
        .iter()
        .filter(|event| event.identity() == Some(id(name)));
    events
        .filter_map(|event| match event.what {
            EventKind::BackingOff { tries_left, .. } => Some(tries_left),
            _ => None,
        })
        .collect()
}

#[test]
fn retries_come_after_the_delay_and_end() {
    let mut sim = Simulation::new();
    sim.always("a", Run::fails("break"));
    let graph = Graph::default().with("a", |meta| (meta.retry, meta.delay) = (2, 50));
    sim.swap(&graph);
    sim.advance(s(10));
    assert_eq!(sim.starts("a"), [ms(0), ms(50), ms(100)]);
    assert_eq!(tries_left(&sim, "a"), [Some(1), Some(0)]);
    assert!(sim.has("a", |what| matches!(what, EventKind::GaveUp { .. })));
}

#[test]
fn a_success_refills_the_tries_if_retryreset() {
    for (retryreset, runs) in [(true, 2 + 1), (false, 1 + 1)] {
        let mut sim = Simulation::new();
        let graph = Graph::default().with("a", |meta| {
            (meta.retry, meta.delay, meta.retryreset) = (2, 50, retryreset);
        });
        sim.runs("a", [Run::fails("break"), Run::ok()]);
        sim.swap(&graph);
        sim.advance(s(1));
        sim.ran();
        sim.always("a", Run::fails("break"));
        sim.event("a");
        sim.advance(s(1));
        assert_eq!(sim.ran().len(), runs, "retryreset {retryreset}");
        assert_eq!(sim.state("a"), VertexState::GaveUp);
    }
}

#[test]
fn tries_are_kept_over_a_swap_but_for_reset() {
    for (reset, runs) in [(false, 1), (true, 3)] {
        let mut sim = Simulation::new();
        sim.always("a", Run::fails("break"));
        sim.swap(&Graph::default().with("a", |meta| (meta.retry, meta.delay) = (2, 50)));
        sim.advance(s(1));
        assert_eq!(sim.ran().len(), 3);
        sim.swap(&Graph::default().with_content("a", "new", |meta| {
            (meta.retry, meta.delay, meta.reset) = (2, 50, reset);
        }));
        sim.advance(s(1));
        assert_eq!(sim.ran().len(), runs, "reset {reset}");
        // Out of the graph, and forgotten.
        sim.swap(&Graph::default());
        sim.settle();
        sim.swap(&Graph::default().with("a", |meta| (meta.retry, meta.delay) = (2, 50)));
        sim.advance(s(1));
        assert_eq!(sim.ran().len(), 3);
    }
}

#[test]
fn endless_retries_without_delay_starve_nobody() {
    let mut sim = Simulation::new();
    sim.always("a", Run::fails("break"));
    let graph = Graph::new(&["b"]).with("a", |meta| {
        meta.retry = -1;
        written(meta, &[MetaName::Delay]);
    });
    sim.swap(&graph);
    sim.some_steps(100);
    assert!(sim.starts("a").len() > 10);
    assert_eq!(sim.starts("b").len(), 1);
    sim.event("b");
    sim.some_steps(10);
    assert_eq!(sim.starts("b").len(), 2);
    sim.step(Input::Pause);
    sim.some_steps(100);
    let runs = sim.starts("a").len();
    sim.some_steps(100);
    assert_eq!(sim.starts("a").len(), runs);
    sim.step(Input::Resume);
    sim.some_steps(10);
    assert!(sim.starts("a").len() > runs);
    sim.swap(&graph.with("c", |_| {}));
    sim.some_steps(20);
    assert_eq!(sim.starts("c").len(), 1);
    sim.step(Input::Stop {
        stage: StopStage::Finish,
        escalate: false,
    });
    sim.some_steps(20);
    assert!(sim.exit.is_some());
}

#[test]
fn without_a_written_delay_tries_back_off_up_to_a_minute() {
    let mut sim = Simulation::new();
    sim.always("a", Run::fails("break"));
    sim.swap(&Graph::default().with("a", |meta| meta.retry = -1));
    sim.advance(s(600));
    let starts = sim.starts("a");
    let gaps: Vec<f64> = starts.windows(2).map(|w| (w[1] - w[0]).as_secs_f64()).collect();
    assert!((0.08..=0.13).contains(&gaps[0]), "{gaps:?}");
    assert!(gaps[4] > gaps[0] * 8.0, "{gaps:?}");
    assert!(gaps.iter().all(|gap| *gap <= 60.001), "{gaps:?}");
    assert!(*gaps.last().unwrap() > 40.0, "{gaps:?}");
    // What fails together is not tried together for ever.
    assert!(gaps.iter().any(|gap| (40.0..59.0).contains(gap)), "{gaps:?}");
}

#[test]
fn options_set_retry_and_delay_for_those_who_write_none() {
    let options = Options {
        retry: Some(1),
        delay: Some(20),
        ..Options::default()
    };
    let mut sim = Simulation::with(options);
    sim.always("a", Run::fails("break"));
    sim.always("b", Run::fails("break"));
    sim.swap(&Graph::new(&["a"]).with("b", |meta| written(meta, &[MetaName::Retry])));
    sim.advance(s(10));
    assert_eq!(sim.starts("a"), [ms(0), ms(20)]);
    assert_eq!(sim.starts("b"), [ms(0)]);
}

#[test]
fn events_while_backing_off_are_one_and_do_not_hurry_it() {
    let mut sim = Simulation::new();
    sim.runs("a", [Run::fails("break")]);
    sim.swap(&Graph::default().with("a", |meta| (meta.retry, meta.delay) = (5, 1000)));
    sim.settle();
    sim.event("a");
    sim.event("a");
    sim.advance(s(5));
    assert_eq!(sim.starts("a"), [ms(0), ms(1000)]);
}

#[test]
fn a_failed_watch_cancels_the_run_which_does_not_count() {
    let mut sim = Simulation::new();
    sim.runs("a", [Run::ok().takes(s(60))]);
    sim.host("a").arms.extend([(ms(0), Ok(())), (s(2), Ok(()))]);
    sim.swap(&Graph::default().with("a", |meta| (meta.retry, meta.delay) = (1, 1000)));
    sim.advance(ms(100));
    sim.watch_fails("a");
    sim.advance(s(1));
    assert_eq!(sim.ran(), ["a"]);
    sim.advance(s(1));
    assert_eq!(sim.ran(), [""; 0], "the new watch is not armed yet");
    sim.advance(s(3));
    assert_eq!(sim.starts("a"), [ms(0), ms(3100)]);
    // The tries of runs are untouched.
    sim.runs("a", [Run::fails("break")]);
    sim.event("a");
    sim.advance(s(5));
    assert_eq!(sim.state("a"), VertexState::Clean);
    // Those of the watch are used up.
    sim.watch_fails("a");
    sim.advance(s(5));
    assert_eq!(sim.state("a"), VertexState::GaveUp);
}

#[test]
fn a_failed_init_is_tried_like_a_watch_and_then_never_again() {
    let mut sim = Simulation::new();
    sim.host("a").inits.extend([Err("begin"), Err("begin")]);
    sim.swap(
        &Graph::new(&["b"])
            .with("a", |meta| (meta.retry, meta.delay) = (2, 10))
            .edges("a -> b"),
    );
    sim.advance(s(1));
    assert_eq!(sim.ran(), ["a", "b"]);
    assert_eq!(sim.starts("a"), [ms(20)]);
    assert_eq!(tries_left(&sim, "a"), [Some(1), Some(0)]);
    sim.host("c").inits.push_back(Err("begin"));
    sim.swap(&Graph::new(&["c", "d"]).edges("c -> d"));
    sim.settle();
    assert_eq!(
        sim.take(),
        ["a removed", "b removed", "c gave up", "d blocked by c"].map(String::from)
    );
    sim.recheck("c");
    sim.settle();
    assert_eq!(sim.ran(), ["c", "d"]);
}

#[test]
fn a_timeout_cancels_the_run_and_names_the_time() {
    let mut sim = Simulation::new();
    sim.runs("a", [Run::ok().takes(s(60))]);
    sim.runs(
        "b",
        [Run {
            stubborn: true,
            ..Run::ok().takes(s(3))
        }],
    );
    let graph = Graph::default()
        .with("a", |meta| meta.timeout = 1500)
        .with("b", |meta| meta.timeout = 1500);
    sim.swap(&graph);
    sim.advance(s(10));
    let said = sim.take();
    assert!(
        said.contains(&"a failed: finish: timeout after 1.5 seconds".to_owned()),
        "{said:?}"
    );
    assert!(
        said.contains(&"b ok".to_owned()),
        "success after the timeout counts: {said:?}"
    );
}

fn keeps_trying() -> Options {
    Options {
        keep_trying: true,
        ..Options::default()
    }
}

#[test]
fn without_a_written_retry_it_is_tried_until_it_is_right() {
    let mut sim = Simulation::with(keeps_trying());
    sim.always("a", Run::fails("break"));
    sim.swap(&Graph::new(&["a", "b"]).edges("a -> b"));
    sim.advance(s(300));
    let starts = sim.starts("a");
    assert!(starts.len() > 8, "{starts:?}");
    let last = starts.len() - 1;
    assert!(
        starts[1] <= ms(130) && starts[last] - starts[last - 1] > s(40),
        "{starts:?}"
    );
    assert!(matches!(sim.state("a"), VertexState::BackingOffUntil(_)));
    assert_eq!(sim.state("b"), VertexState::BlockedBy(id("a")));
    let blocked = sim.take().into_iter().filter(|line| line == "b blocked by a");
    assert_eq!(
        blocked.count(),
        1,
        "a further try that fails is no news to others"
    );
    sim.always("a", Run::drift());
    sim.advance(s(61));
    assert_eq!(sim.state("a"), VertexState::Clean);
    assert_eq!(sim.state("b"), VertexState::Clean);
    assert!(!sim.has("a", |what| matches!(what, EventKind::GaveUp { .. })));
}

#[test]
fn whatever_happens_ends_the_wait_of_what_is_tried_until_it_is_right() {
    for touch in [Simulation::event, Simulation::recheck] as [fn(&mut Simulation, &str); 2] {
        let mut sim = Simulation::with(keeps_trying());
        sim.always("a", Run::fails("break"));
        sim.swap(&Graph::new(&["a"]));
        sim.advance(s(200));
        sim.ran();
        sim.advance(s(1));
        let now = sim.now;
        touch(&mut sim, "a");
        sim.settle();
        assert_eq!(sim.starts("a").last(), Some(&now));
        // At most one try in 100 ms.
        let tries = sim.starts("a").len();
        for _ in 0..30 {
            touch(&mut sim, "a");
            sim.advance(ms(10));
        }
        assert_eq!(sim.starts("a").len(), tries + 3);
        sim.always("a", Run::ok());
        touch(&mut sim, "a");
        sim.advance(ms(100));
        assert_eq!(sim.state("a"), VertexState::Clean);
    }
}

#[test]
fn a_failed_watch_or_init_too_is_tried_until_it_is_right() {
    let mut sim = Simulation::with(keeps_trying());
    sim.host("a").inits.extend([Err("begin"), Err("begin")]);
    sim.host("a")
        .arms
        .extend([(ms(0), Err("arm")), (ms(0), Err("arm"))]);
    sim.swap(&Graph::new(&["a"]));
    sim.advance(s(10));
    assert_eq!(sim.state("a"), VertexState::Clean);
    sim.watch_fails("a");
    sim.advance(s(10));
    assert_eq!(sim.state("a"), VertexState::Clean);
    assert_eq!(sim.starts("a").len(), 2);
}

#[test]
fn a_written_retry_is_obeyed_although_others_are_tried_for_ever() {
    let mut sim = Simulation::with(keeps_trying());
    sim.always("a", Run::fails("break"));
    sim.always("b", Run::fails("break"));
    let graph = Graph::default()
        .with("a", |meta| written(meta, &[MetaName::Retry]))
        .with("b", |meta| (meta.retry, meta.delay) = (1, 1000));
    sim.swap(&graph);
    sim.settle();
    sim.event("b");
    sim.advance(s(60));
    assert_eq!(sim.starts("a").len(), 1);
    assert_eq!(
        sim.starts("b"),
        [ms(0), ms(1000)],
        "a written delay is not cut short"
    );
    assert_eq!(sim.state("a"), VertexState::GaveUp);
    assert_eq!(sim.state("b"), VertexState::GaveUp);
}

#[test]
fn under_noop_nothing_is_tried_again() {
    let mut sim = Simulation::with(Options {
        noop: true,
        ..keeps_trying()
    });
    sim.always("a", Run::fails("break"));
    sim.swap(&Graph::new(&["a"]));
    sim.advance(s(60));
    assert_eq!(sim.starts("a").len(), 1);
}

#[test]
fn an_event_during_the_run_that_fails_for_good_gets_one_more_run() {
    let mut sim = Simulation::new();
    sim.runs("a", [Run::fails("break").takes(s(1)), Run::ok()]);
    sim.runs(
        "b",
        [Run::fails("break").takes(s(1)), Run::fails("break").takes(s(1))],
    );
    sim.always("b", Run::fails("break"));
    sim.swap(&Graph::new(&["a", "b"]));
    for _ in 0..2 {
        sim.advance(ms(500));
        sim.event("a");
        sim.event("b");
        sim.advance(ms(500));
    }
    sim.advance(s(10));
    assert_eq!(sim.state("a"), VertexState::Clean);
    assert_eq!(sim.state("b"), VertexState::GaveUp);
    assert_eq!(sim.starts("b").len(), 2, "but only one: it may be its own doing");
}

#[test]
fn an_event_during_a_run_that_fails_brings_the_next_try_forward_once() {
    let mut sim = Simulation::with(keeps_trying());
    sim.always("a", Run::fails("break").takes(ms(10)));
    sim.swap(&Graph::new(&["a"]));
    sim.advance(s(200));
    let tries = sim.starts("a").len();
    while sim.starts("a").len() == tries {
        sim.advance(ms(1));
    }
    for _ in 0..200 {
        sim.event("a");
        if sim.starts("a").len() > tries + 2 {
            break;
        }
        sim.advance(ms(1));
    }
    let starts = sim.starts("a");
    assert!(starts[tries + 1] - starts[tries] <= ms(111), "{starts:?}");
}

/// The events of a resource that belong to its runs.
fn told(sim: &Simulation, name: &str) -> Vec<&'static str> {
    let events = sim
        .events
        .iter()
        .filter(|event| event.identity() == Some(id(name)));
    events
        .filter_map(|event| match &event.what {
            EventKind::StartedRun { .. } => Some("started"),
            EventKind::Drift { .. } => Some("drift"),
            EventKind::Repairing { .. } => Some("repairing"),
            EventKind::Repaired { .. } => Some("repaired"),
            EventKind::NotRepaired { .. } => Some("not repaired"),
            EventKind::RunEnded { .. } => Some("ended"),
            _ => None,
        })
        .collect()
}

#[test]
fn repairs_are_told_when_the_run_has_ended() {
    let mut sim = Simulation::new();
    sim.runs("a", [Run::drift()]);
    sim.runs(
        "b",
        [Run {
            fails: Some("write"),
            ..Run::drift()
        }],
    );
    sim.always("c", Run::drift());
    sim.swap(&Graph::new(&["a", "b"]).with("c", |meta| meta.noop = true));
    sim.settle();
    assert_eq!(
        told(&sim, "a"),
        ["started", "drift", "repairing", "repaired", "ended"]
    );
    assert_eq!(
        told(&sim, "b"),
        ["started", "drift", "repairing", "not repaired", "ended"]
    );
    assert_eq!(told(&sim, "c"), ["started", "drift", "ended"]);
}

#[test]
fn drift_that_a_long_run_reports_is_told_at_once_and_once() {
    let mut sim = Simulation::new();
    sim.runs("a", [Run::drift().takes(s(60))]);
    sim.swap(&Graph::new(&["a"]));
    sim.advance(s(1));
    let drift = Drift {
        member: None,
        field: "content".into(),
        effect: setpoint_engine::Effect::Change,
        attributes: Vec::new(),
        is: "wrong".into(),
        want: "right".into(),
        repaired: true,
        is_done: false,
    };
    sim.step(Input::Drift {
        vertex: sim.vertex("a"),
        drift: Box::new(drift),
    });
    assert_eq!(told(&sim, "a"), ["started", "drift", "repairing"]);
    sim.advance(s(60));
    assert_eq!(
        told(&sim, "a"),
        ["started", "drift", "repairing", "repaired", "ended"]
    );
}

/// One that keeps trying, and says when it is quiet.
fn staying() -> Options {
    Options {
        keep_trying: true,
        converge: Some(s(1)),
        ..Options::default()
    }
}

#[test]
fn what_waits_for_something_outside_goes_on_when_that_comes_and_not_before() {
    let mut sim = Simulation::with(staying());
    sim.always("a", Run::waits("x is not settled on db"));
    sim.swap(&Graph::new(&["a", "b", "c", "d"]).edges("a -> b -> c"));
    sim.settle();
    let mut said = sim.take();
    said.sort();
    assert_eq!(
        said,
        [
            "a looked in vain",
            "a waits: x is not settled on db",
            "b blocked by a",
            "c blocked by a",
            "d ok"
        ]
    );
    assert_eq!(sim.state("a"), VertexState::WaitingForHost);
    let status = sim.machine.status_of(&[id("a")]).remove(0);
    assert_eq!(
        (status.standing, status.error.as_deref()),
        (Standing::WaitingForHost, Some("x is not settled on db"))
    );
    assert_eq!(sim.machine.summary(sim.now).counts.waiting_for_host, 1);
    // However long that takes it is not looked at again, and the host is quiet meanwhile.
    sim.advance(s(86_400));
    assert_eq!(sim.take(), ["converged"]);
    // Something happened, but not that.
    sim.event("a");
    sim.settle();
    assert_eq!(
        sim.take(),
        ["a looked in vain", "a waits: x is not settled on db"]
    );
    sim.always("a", Run::ok());
    sim.event("a");
    sim.advance(s(2));
    assert_eq!(sim.take(), ["a ok", "unconverged", "b ok", "c ok", "converged"]);
}

#[test]
fn what_begins_to_wait_again_holds_back_only_what_must_run() {
    let mut sim = Simulation::with(staying());
    sim.swap(&Graph::new(&["a", "b"]).edges("a -> b"));
    sim.advance(s(2));
    sim.take();
    sim.always("a", Run::waits("x is another one"));
    sim.event("a");
    sim.advance(s(2));
    assert_eq!(
        sim.take(),
        [
            "a looked in vain",
            "a waits: x is another one",
            "unconverged",
            "converged"
        ]
    );
    assert_eq!(sim.state("b"), VertexState::Clean);
    sim.event("b");
    sim.settle();
    assert_eq!(sim.take(), ["b blocked by a"]);
    // A user who asks is answered, too.
    sim.always("a", Run::ok());
    sim.recheck("a");
    sim.settle();
    assert_eq!(sim.take(), ["a ok", "unconverged", "b ok"]);
}

#[test]
fn what_came_while_it_looked_is_looked_at() {
    let mut sim = Simulation::with(staying());
    sim.runs("a", [Run::waits("x").takes(ms(10)), Run::ok()]);
    sim.swap(&Graph::new(&["a"]));
    sim.advance(ms(5));
    sim.event("a");
    sim.advance(ms(10));
    assert_eq!(sim.take(), ["a looked in vain", "a waits: x", "a ok"]);
    // A failure counts its tries and backs off as ever; what is waited for then does not.
    sim.runs(
        "a",
        [Run::fails("read it"), Run::waits("x"), Run::waits("x"), Run::ok()],
    );
    sim.event("a");
    sim.advance(s(10));
    assert_eq!(sim.state("a"), VertexState::WaitingForHost);
    assert!(sim.machine.status()[0].error.is_some());
}

#[test]
fn who_does_not_keep_trying_does_not_wait_either() {
    let mut sim = Simulation::with(Options {
        converge: Some(s(0)),
        exit_when_converged: true,
        ..Options::default()
    });
    sim.always("a", Run::waits("x is not settled on db"));
    sim.swap(&Graph::new(&["a", "b"]).edges("a -> b"));
    sim.settle();
    let report = sim.exit.clone().expect("it ends");
    assert_eq!(report.code(false), 1);
    assert_eq!(&*report.failed[&id("a")], "go on: x is not settled on db");
    assert_eq!(report.blocked[&id("b")], id("a"));
}

#[test]
fn a_machine_that_keeps_trying_ends_with_1_while_something_is_held_back() {
    let mut sim = Simulation::with(Options {
        exit_when_converged: true,
        ..staying()
    });
    sim.always("a", Run::waits("x"));
    sim.swap(&Graph::new(&["a", "b"]).edges("a -> b"));
    sim.advance(s(2));
    assert_eq!(sim.exit.clone().expect("it is quiet").code(false), 1);
}
