//! Limits, polls, fights: what goes by the clock.

use super::simulation::*;
use setpoint_engine::EventKind;
use setpoint_engine::machine::{Input, Options};
use std::time::Duration;

#[test]
fn a_limit_delays_events_beyond_the_burst_and_nothing_else() {
    let graph = Graph::new(&["p"])
        .with("svc[a]", |meta| (meta.limit, meta.burst) = (1.0, 2))
        .edges("p => svc[a]");
    let mut sim = Simulation::new();
    sim.swap(&graph);
    sim.settle();
    sim.event("svc[a]");
    sim.settle();
    for _ in 0..3 {
        sim.event("svc[a]");
    }
    sim.advance(s(10));
    assert_eq!(sim.starts("svc[a]"), [s(0), s(0), s(1)]);
    assert!(sim.has("svc[a]", |what| matches!(what, EventKind::LimitedUntil { .. })));
    // The bucket is full again; empty it, and be refreshed.
    for _ in 0..3 {
        sim.event("svc[a]");
        sim.settle();
    }
    sim.runs("p", [Run::drift()]);
    sim.event("p");
    sim.settle();
    assert_eq!(
        sim.starts("svc[a]")[3..],
        [s(10), s(10), s(10)],
        "a refresh is not limited"
    );
}

#[test]
fn a_poll_is_an_event_at_once_and_every_so_many_seconds() {
    let poll = |seconds: i32| Graph::default().with("a", move |meta| meta.poll = seconds);
    let mut sim = Simulation::new();
    sim.swap(&poll(1));
    sim.advance(ms(2500));
    assert_eq!(sim.starts("a"), [s(0), s(1), s(2)]);
    sim.swap(&poll(-1));
    sim.advance(s(100));
    assert_eq!(sim.starts("a").len(), 4, "once more and never again");
    sim.swap(&poll(0));
    sim.advance(s(10));
    sim.event("a");
    sim.settle();
    assert_eq!(sim.starts("a").len(), 6);
}

#[test]
fn a_poll_that_is_overtaken_by_a_long_run_does_not_pile_up() {
    let mut sim = Simulation::new();
    sim.runs("a", [Run::ok().takes(ms(4500))]);
    sim.swap(&Graph::default().with("a", |meta| meta.poll = 1));
    sim.advance(ms(6200));
    assert_eq!(sim.starts("a"), [ms(0), ms(4500), ms(5000), ms(6000)]);
}

#[test]
fn a_fight_is_reported_once_and_spaced_out_until_a_minute_is_quiet() {
    let mut sim = Simulation::of(&Graph::new(&["a", "deed[b]"]));
    sim.always("a", Run::drift());
    sim.always("deed[b]", Run::drift());
    for _ in 0..100 {
        sim.event("a");
        sim.event("deed[b]");
        sim.advance(ms(100));
    }
    let runs = sim.starts("a").len();
    assert!((12..25).contains(&runs), "{runs}");
    assert!(sim.starts("deed[b]").len() > 90, "an action is no fight");
    let fights = sim.take().into_iter().filter(|line| line == "a conflict").count();
    assert_eq!(fights, 1);
    // Later still: every 10 s at most.
    for _ in 0..300 {
        sim.event("a");
        sim.advance(ms(100));
    }
    let more = sim.starts("a").len() - runs;
    assert!(more <= 6, "{more}");
    sim.advance(s(75));
    sim.ran();
    sim.event("a");
    sim.settle();
    sim.event("a");
    sim.settle();
    assert_eq!(sim.ran(), ["a", "a"], "as usual after a quiet minute");
}

#[test]
fn time_never_runs_backwards() {
    let mut sim = Simulation::new();
    sim.runs("a", [Run::fails("break")]);
    sim.swap(&Graph::default().with("a", |meta| (meta.retry, meta.delay) = (1, 1000)));
    sim.advance(ms(500));
    sim.now = ms(0);
    sim.step(Input::Timer);
    sim.now = ms(500);
    sim.advance(s(1));
    assert_eq!(sim.starts("a"), [ms(0), ms(1000)]);
}

#[test]
fn our_own_repair_takes_no_token() {
    let graph = Graph::default().with("a", |meta| (meta.limit, meta.burst) = (0.2, 2));
    let mut sim = Simulation::new();
    sim.runs("a", [Run::drift()]);
    sim.swap(&graph);
    sim.settle();
    // That of our own repair: nothing is found.
    sim.event("a");
    sim.settle();
    sim.runs("a", [Run::drift()]);
    sim.event("a");
    sim.settle();
    assert_eq!(
        sim.starts("a"),
        [s(0), s(0), s(0)],
        "the first real drift is not delayed"
    );
    // Somebody else's count, whether they find something or not.
    sim.advance(s(100));
    sim.ran();
    for _ in 0..3 {
        sim.event("a");
        sim.settle();
    }
    sim.advance(s(1));
    assert_eq!(sim.ran().len(), 3, "one of three was that of our own repair");
    sim.event("a");
    sim.advance(s(1));
    assert_eq!(sim.ran().len(), 0);
}

#[test]
fn arming_anew_after_a_receive_takes_no_token() {
    let graph = Graph::default().with("a", |meta| (meta.limit, meta.burst) = (0.1, 1));
    let mut sim = Simulation::of(&graph);
    let vertex = sim.vertex("a");
    sim.advance(s(10));
    sim.step(Input::Rearmed { vertex });
    sim.settle();
    sim.event("a");
    sim.settle();
    assert_eq!(sim.ran(), ["a", "a"]);
}

#[test]
fn a_tick_notifies_and_is_no_drift() {
    let graph = Graph::new(&["timer", "svc[job]", "b"])
        .edges("timer => svc[job]")
        .edges("timer -> b");
    let mut sim = Simulation::new();
    sim.host("timer").ticks = Some(s(10));
    sim.swap(&graph);
    sim.advance(s(9));
    let mut said = sim.take();
    said.sort();
    assert_eq!(said, ["b ok", "svc[job] ok", "timer ok"]);
    sim.advance(s(1));
    assert_eq!(
        sim.take(),
        [
            "timer tick",
            "svc[job] refresh pending by timer",
            "timer ok",
            "svc[job] ok",
            "svc[job] refresh consumed"
        ]
    );
    // Under noop it notifies nobody.
    sim.swap(&graph.with("timer", |meta| meta.noop = true));
    sim.advance(s(25));
    let said = sim.take();
    assert!(said.contains(&"timer tick".to_owned()), "{said:?}");
    assert!(!said.iter().any(|line| line.contains("refresh")), "{said:?}");
}

#[test]
fn the_time_of_an_earlier_run_does_not_cancel_a_later_one() {
    let mut sim = Simulation::new();
    sim.runs("a", [Run::ok().takes(ms(100)), Run::ok().takes(ms(1450))]);
    sim.swap(&Graph::default().with("a", |meta| meta.timeout = 1500));
    sim.advance(ms(200));
    sim.event("a");
    sim.advance(s(3));
    assert_eq!(sim.take(), ["a ok", "a ok"]);
}

#[test]
fn a_late_look_at_the_clock_cancels_only_the_run_whose_time_is_over() {
    let mut sim = Simulation::new();
    sim.runs("a", [Run::ok().takes(ms(100)), Run::ok().takes(ms(1450))]);
    sim.always("b", Run::ok().takes(s(60)));
    let graph = Graph::default()
        .with("a", |meta| meta.timeout = 1500)
        .with("b", |meta| meta.timeout = 1400);
    sim.swap(&graph);
    sim.advance(ms(200));
    sim.event("a");
    // Here the times of `b` and of the first run of `a` have passed.
    sim.now = ms(1550);
    sim.step(Input::Timer);
    sim.advance(ms(200));
    let said = sim.take();
    assert_eq!(said.iter().filter(|line| *line == "a ok").count(), 2, "{said:?}");
    assert!(said.iter().any(|line| line.starts_with("b failed")), "{said:?}");
}

#[test]
fn an_interval_that_began_anew_is_not_woken_for_at_its_old_time() {
    let mut sim = Simulation::new();
    sim.host("a").ticks = Some(s(10));
    sim.swap(&Graph::default().with("a", |meta| (meta.retry, meta.delay) = (1, 1000)));
    sim.advance(s(3));
    assert_eq!(sim.deadline, Some(s(10)));
    sim.watch_fails("a");
    sim.advance(s(2));
    assert_eq!(sim.deadline, Some(s(14)));
}

#[test]
fn intervals_that_passed_while_nobody_looked_are_one_and_keep_their_phase() {
    let mut sim = Simulation::new();
    sim.swap(&Graph::default().with("a", |meta| meta.poll = 10));
    sim.settle();
    sim.now += s(35);
    sim.step(Input::Timer);
    sim.settle();
    assert_eq!(sim.starts("a"), [s(0), s(35)]);
    sim.advance(s(6));
    assert_eq!(sim.starts("a"), [s(0), s(35), s(40)]);
    sim.advance(s(9));
    assert_eq!(sim.starts("a"), [s(0), s(35), s(40), s(50)]);
}

#[test]
fn what_a_watch_that_was_lost_saw_before_hurries_nothing() {
    let mut sim = Simulation::with(Options {
        keep_trying: true,
        delay: Some(60_000),
        ..Default::default()
    });
    sim.swap(&Graph::new(&["a"]));
    sim.settle();
    sim.watch_fails("a");
    sim.event("a");
    sim.advance(s(59));
    assert_eq!(sim.starts("a"), [s(0)]);
    sim.advance(s(1));
    assert_eq!(sim.starts("a"), [s(0), s(60)]);
}

#[test]
fn only_repairs_that_the_watch_alone_asked_for_are_a_fight() {
    let fights = |touch: fn(&mut Simulation, &str), graph: &Graph| {
        let mut sim = Simulation::new();
        sim.always("a", Run::drift());
        sim.always("b", Run::sends("x"));
        sim.swap(graph);
        sim.settle();
        for _ in 0..30 {
            touch(&mut sim, "a");
            sim.advance(ms(100));
        }
        sim.take().iter().any(|line| line == "a conflict")
    };
    let plain = Graph::new(&["a"]);
    assert!(fights(Simulation::event, &plain));
    assert!(!fights(Simulation::recheck, &plain), "a user asked for each");
    let limited = Graph::default().with("a", |meta| (meta.limit, meta.burst) = (100.0, 100));
    assert!(
        !fights(Simulation::event, &limited),
        "a written limit spaces them out"
    );
    let noop = Graph::default().with("a", |meta| meta.noop = true);
    assert!(!fights(Simulation::event, &noop), "nothing is repaired");
    let receives = Graph::new(&["a", "b"]).sends("b", "a");
    assert!(
        !fights(Simulation::event, &receives),
        "what it shall be may have changed"
    );
}

#[test]
fn what_gives_no_answer_for_long_is_told_once_for_each_wait() {
    let mut sim = Simulation::with(Options {
        answer_within: Some(s(30)),
        ..Options::default()
    });
    sim.runs("a", [Run::ok().takes(s(100)), Run::ok().takes(s(40))]);
    sim.runs("b", [Run::ok().takes(s(29))]);
    sim.host("c").init_takes = s(50);
    sim.swap(&Graph::new(&["a", "b", "c"]));
    sim.advance(s(29));
    assert_eq!(sim.take(), ["b ok"]);
    sim.advance(s(1));
    assert_eq!(
        sim.take(),
        [
            "a silent for 30 s at /somewhere",
            "c silent for 30 s at /somewhere"
        ]
    );
    sim.advance(s(70));
    assert_eq!(sim.take(), ["c ok", "a ok"]);
    // Nothing is looked for while nothing is waited for.
    sim.advance(s(100));
    assert_eq!((sim.deadline, sim.take()), (None, vec![]));
    sim.event("a");
    sim.advance(s(40));
    assert_eq!(sim.take(), ["a silent for 30 s at /somewhere", "a ok"]);
}

#[test]
fn an_interval_shorter_than_a_millisecond_keeps_nobody_busy() {
    let mut sim = Simulation::new();
    sim.host("a").ticks = Some(Duration::from_micros(10));
    sim.swap(&Graph::new(&["a"]));
    sim.advance(Duration::from_micros(5500));
    let next = sim.deadline.expect("it goes on");
    assert!(
        next >= sim.now + Duration::from_micros(100),
        "{next:?} after {:?}",
        sim.now
    );
}
