//! What `status` shows of each state, and the numbers beside it.

use super::simulation::*;
use setpoint_engine::machine::{
    Input, Options, Standing, StandingCounts, StandingSet, StopStage, Summary, VertexState, VertexStatus,
};

fn at(milliseconds: u64) -> std::time::Duration {
    s(1_000_000) + ms(milliseconds)
}

fn options() -> Options {
    Options {
        epoch: s(1_000_000),
        ..Options::default()
    }
}

#[test]
fn each_state_is_shown() {
    let mut sim = Simulation::with(Options {
        sema: None,
        ..options()
    });
    sim.host("starts").init_takes = s(10);
    sim.host("arms").arms.push_back((s(10), Ok(())));
    sim.always("runs", Run::ok().takes(s(10)));
    sim.always("holds", Run::ok().takes(s(10)));
    sim.always("retries", Run::fails("break"));
    sim.always("fails", Run::fails("break"));
    let graph = Graph::new(&["starts", "arms", "runs", "clean", "fails", "waits", "behind"])
        .with("holds", |meta| meta.sema = vec!["s".into()])
        .with("wants", |meta| meta.sema = vec!["s".into()])
        .with("retries", |meta| (meta.retry, meta.delay) = (9, 5_000))
        .with("limited", |meta| (meta.limit, meta.burst) = (0.1, 1))
        .with("looks", |meta| meta.noop = true)
        .edges("runs -> waits")
        .edges("fails -> behind");
    sim.swap(&graph);
    sim.advance(ms(500));
    sim.event("limited");
    sim.settle();
    // Of the two that need a semaphore the first one runs.
    let holds = matches!(sim.state("holds"), VertexState::Running(_));
    let waits = if holds { "wants" } else { "holds" };
    assert_eq!(sim.state("starts"), VertexState::Starting);
    assert_eq!(sim.state("arms"), VertexState::Starting);
    assert_eq!(sim.state("runs"), VertexState::Running(at(0)));
    assert_eq!(sim.state("clean"), VertexState::Clean);
    assert_eq!(sim.state("fails"), VertexState::GaveUp);
    assert_eq!(sim.state("waits"), VertexState::WaitingFor(id("runs")));
    assert_eq!(sim.state("behind"), VertexState::BlockedBy(id("fails")));
    assert_eq!(sim.state(waits), VertexState::WaitingForSemaphore);
    assert_eq!(sim.state("retries"), VertexState::BackingOffUntil(at(5_000)));
    assert_eq!(sim.state("limited"), VertexState::LimitedUntil(at(10_000)));
    let status = sim.machine.status();
    let of = |name: &str| status.iter().find(|status| status.id == id(name)).unwrap();
    assert_eq!(of("fails").error.as_deref(), Some("break"));
    assert_eq!(of("clean").error, None);
    assert!(of("looks").noop && !of("clean").noop && !of("clean").hidden);
    assert!(status.is_sorted_by_key(|status| status.id.clone()));
    assert_eq!(sim.machine.summary(sim.now).counts.all(), 12);

    sim.step(Input::Pause);
    sim.event("clean");
    assert_eq!(sim.state("clean"), VertexState::Ready);
    sim.swap(&graph.without("runs").without("waits"));
    assert_eq!(sim.state("runs"), VertexState::Finishing);
    sim.step(Input::Stop {
        stage: StopStage::Finish,
        escalate: false,
    });
    assert_eq!(sim.state("starts"), VertexState::Finishing);
}

#[test]
fn a_notification_that_waits_is_shown_and_so_is_what_waits_to_be_added() {
    let mut sim = Simulation::with(options());
    sim.runs("a", [Run::drift()]);
    sim.runs("svc[b]", [Run::fails("break")]);
    sim.swap(&Graph::new(&["a", "svc[b]", "port:server[x]"]).edges("a => svc[b]"));
    sim.settle();
    let pending = |sim: &Simulation, name: &str| {
        let status = sim.machine.status();
        let found = status.into_iter().find(|status| status.id == id(name));
        found.unwrap().refresh_pending
    };
    assert!(pending(&sim, "svc[b]") && !pending(&sim, "a"));
    assert!(!sim.machine.is_converged());
    sim.host("port:server[x]").cleanup_takes = s(5);
    sim.swap(&Graph::new(&["port:server[y]"]));
    sim.settle();
    assert_eq!(sim.state("port:server[y]"), VertexState::WaitingToBeAdded);
    sim.advance(s(5));
    assert_eq!(sim.state("port:server[y]"), VertexState::Clean);
}

fn of(sim: &Simulation, name: &str) -> VertexStatus {
    let found = sim.machine.status_of(&[id(name)]);
    found.into_iter().next().expect("a vertex of that name")
}

#[test]
fn how_each_stands_and_since_when_is_told_and_counted() {
    let mut sim = Simulation::with(options());
    sim.always("runs", Run::ok().takes(s(100)));
    sim.always("retries", Run::fails("break"));
    sim.always("fails", Run::fails("break"));
    sim.always("looks", Run::drift());
    sim.host("starts").init_takes = s(100);
    let graph = Graph::new(&["runs", "clean", "fails", "waits", "behind", "starts"])
        .with("retries", |meta| (meta.retry, meta.delay) = (-1, 1_000))
        .with("looks", |meta| meta.noop = true)
        .edges("runs -> waits")
        .edges("fails -> behind");
    sim.swap(&graph);
    sim.advance(s(10));
    let stands = |sim: &Simulation, name: &str| (of(sim, name).standing, of(sim, name).since);
    assert_eq!(stands(&sim, "runs"), (Standing::Running, at(0)));
    assert_eq!(stands(&sim, "clean"), (Standing::Right, at(0)));
    assert_eq!(stands(&sim, "fails"), (Standing::Failed, at(0)));
    assert_eq!(stands(&sim, "behind"), (Standing::Blocked, at(0)));
    assert_eq!(stands(&sim, "waits"), (Standing::Waiting, at(0)));
    assert_eq!(stands(&sim, "looks"), (Standing::WouldChange, at(0)));
    assert_eq!(stands(&sim, "starts"), (Standing::Starting, at(0)));
    // It has been tried ten times since it first failed.
    assert!(sim.starts("retries").len() >= 10);
    assert_eq!(stands(&sim, "retries"), (Standing::Failing, at(0)));
    let counts = StandingCounts {
        failed: 1,
        failing: 1,
        blocked: 1,
        would_change: 1,
        running: 1,
        waiting: 1,
        starting: 1,
        right: 1,
        ..StandingCounts::default()
    };
    let summary = sim.machine.summary(sim.now);
    assert_eq!((summary.counts, summary.counts.all()), (counts, 8));
    assert_eq!((summary.began, summary.now), (at(0), at(10_000)));
    // Nothing happens in a machine at rest, and time passes.
    assert_eq!(sim.machine.summary(sim.now + s(3_600)).now, at(3_610_000));
    // Only those that are asked for.
    let mut found = Vec::new();
    let wanted: StandingSet = [Standing::Failed, Standing::Blocked].into_iter().collect();
    assert_eq!(sim.machine.status_from(0, wanted, &mut found), None);
    let mut found: Vec<String> = found.iter().map(|status| status.id.to_string()).collect();
    found.sort();
    assert_eq!(found, ["thing[behind]", "thing[fails]"]);
    assert!(sim.machine.status_of(&[id("nobody")]).is_empty());

    sim.swap(&graph.without("runs").without("waits"));
    assert_eq!(stands(&sim, "runs"), (Standing::Finishing, at(10_000)));
    sim.recheck("fails");
    sim.runs("fails", [Run::ok()]);
    sim.settle();
    sim.advance(s(100));
    assert_eq!(of(&sim, "behind").standing, Standing::Right);
    assert_eq!(sim.machine.summary(sim.now).counts.all(), 6);
}

#[test]
fn a_summary_tells_what_holds_for_the_whole_host() {
    let mut sim = Simulation::with(Options {
        converge: Some(s(1)),
        ..options()
    });
    let summary = |sim: &Simulation| -> Summary { sim.machine.summary(sim.now) };
    let before = summary(&sim);
    assert_eq!(
        (before.generation, before.swapped, before.converged),
        (None, None, Some(false))
    );
    sim.runs("a", [Run::drift()]);
    sim.swap(&Graph::new(&["a"]));
    sim.settle();
    let after = summary(&sim);
    assert_eq!(
        (after.swapped, after.repairs, after.repaired),
        (Some(at(0)), 1, Some(at(0)))
    );
    assert!(after.generation.is_some() && after.paused.is_none() && after.stopping.is_none());
    sim.step(Input::Pause);
    sim.step(Input::SourcesBusy(true));
    let paused = summary(&sim);
    assert!(paused.paused == Some(paused.now) && paused.new_graph && !paused.noop);
    assert!(paused.newest_event > after.newest_event);
    sim.step(Input::SourcesBusy(false));
    sim.advance(s(2));
    assert_eq!(summary(&sim).converged, Some(true));
    sim.step(Input::Stop {
        stage: StopStage::Cancel,
        escalate: false,
    });
    assert_eq!(summary(&sim).stopping, Some(StopStage::Cancel));
    // Nobody asked whether it is.
    assert_eq!(Simulation::with(options()).machine.summary(s(0)).converged, None);
}

#[test]
fn many_resources_are_given_out_in_parts() {
    let names: Vec<String> = (0..5_000).map(|n| format!("f{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let sim = Simulation::of(&Graph::new(&names));
    let (mut parts, mut seen, mut place) = (0, Vec::new(), Some(0));
    while let Some(from) = place {
        place = sim.machine.status_from(from, StandingSet::ALL, &mut seen);
        parts += 1;
    }
    assert_eq!((parts, seen.len()), (3, 5_000));
    assert_eq!(sim.machine.status_from(9_000, StandingSet::ALL, &mut seen), None);
    assert_eq!(sim.machine.status().len(), 5_000);
}

#[test]
fn what_gives_no_answer_is_silent_until_it_does() {
    let mut sim = Simulation::with(Options {
        answer_within: Some(s(30)),
        ..options()
    });
    sim.runs("a", [Run::ok().takes(s(60))]);
    sim.swap(&Graph::new(&["a"]));
    sim.advance(s(40));
    assert_eq!(of(&sim, "a").standing, Standing::Unresponsive);
    sim.advance(s(30));
    assert_eq!(of(&sim, "a").standing, Standing::Right);
}

#[test]
fn a_fight_is_over_after_a_quiet_minute_without_anybody_looking() {
    let mut sim = Simulation::of(&Graph::new(&["a"]));
    sim.always("a", Run::drift());
    for _ in 0..11 {
        sim.event("a");
        sim.advance(ms(10));
    }
    sim.settle();
    let fights = of(&sim, "a");
    assert_eq!(fights.standing, Standing::Conflict);
    assert!(
        fights
            .error
            .is_some_and(|error| error.contains("something keeps changing"))
    );
    sim.advance(s(30));
    sim.event("a");
    sim.advance(s(45));
    assert_eq!(
        of(&sim, "a").standing,
        Standing::Conflict,
        "it went on in between"
    );
    sim.advance(s(30));
    assert_eq!(of(&sim, "a").standing, Standing::Right);
}
