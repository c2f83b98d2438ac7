//! What `status` shows of each state, and the numbers beside it.

use super::simulation::*;
use setpoint_engine::machine::{Input, Options, StopStage, VertexState};

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
    assert_eq!(sim.state("fails"), VertexState::FailedForGood);
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
    // Not busy: what is clean, has failed for good, or is behind that.
    assert_eq!(sim.machine.counts(), [12, 8, 1, 1]);

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
