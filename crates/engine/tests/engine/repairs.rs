//! Convergence and repair.

#![allow(
    clippy::disallowed_methods,
    reason = "the machine here is a temporary directory"
)]

use std::time::{Duration, Instant};

use super::rig::*;
use setpoint_engine::EventKind;
use setpoint_engine::machine::VertexState;
use setpoint_value::Value;

fn waits_for_quiet(options: &mut setpoint_engine::EngineOptions) {
    options.machine.converge = Some(Duration::ZERO);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_converge_in_order_and_drift_is_repaired_at_once() {
    let mut rig = Rig::with(waits_for_quiet);
    let (a, b) = (rig.name("a"), rig.name("b"));
    let graph =
        Graph::default()
            .keep(&a, "one")
            .keep(&b, "two")
            .edge(("keep", &a), ("keep", &b), false, false);
    rig.accept(&graph).await;
    rig.converged().await;
    assert_eq!((reads(&a), reads(&b)), ("one".into(), "two".into()));
    let mut times = Vec::new();
    // Below what looks like a fight.
    for round in 0..9 {
        let began = Instant::now();
        std::fs::write(&a, format!("wrong {round}")).unwrap();
        // A run may come between the truncation and the write; the one after it is meant then.
        loop {
            rig.run_of(&a).await;
            if reads(&a) == "one" {
                break;
            }
        }
        times.push(began.elapsed());
    }
    times.sort();
    println!(
        "from the write to the end of the repair: {:?} in the middle of {times:?}",
        times[times.len() / 2]
    );
    // Our own repair may cause one more run, which finds nothing.
    loop {
        let status = rig.engine.status().await.unwrap();
        if status.iter().all(|vertex| vertex.state == VertexState::Clean) {
            break;
        }
        rig.run_of(&a).await;
    }
    assert_eq!(rig.stop().await.code(false), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_files_converge_and_then_nothing_runs() {
    let mut rig = Rig::with(|options| {
        waits_for_quiet(options);
        options.event_capacity = 200_000;
    });
    let mut graph = Graph::default();
    for n in 0..2_000 {
        graph = graph.keep(&rig.name(&format!("f{n}")), "x");
    }
    let began = Instant::now();
    rig.accept(&graph).await;
    let seen = rig.converged().await;
    println!("2 000 files: {:?}", began.elapsed());
    let runs = seen
        .iter()
        .filter(|event| matches!(event.what, EventKind::StartedRun { .. }))
        .count();
    // Our own renames are no reason for a second run.
    assert_eq!(runs, 2_000);
    assert_eq!(reads(rig.path("f1999")), "x");
    // One more resource, one more run.
    let more = graph.keep(&rig.name("more"), "y");
    let began = Instant::now();
    rig.accept(&more).await;
    let name = rig.name("more");
    rig.run_of(&name).await;
    println!("one more: {:?}", began.elapsed());
    let threads = std::fs::read_dir("/proc/self/task").unwrap().count();
    println!("{threads} threads");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_that_wait_take_no_thread() {
    let mut rig = Rig::with(waits_for_quiet);
    let mut graph = Graph::default();
    for n in 0..2000 {
        graph = graph.with(
            "wait",
            &n.to_string(),
            &[("milliseconds", Value::Int(300))],
            |_| {},
        );
    }
    rig.accept(&graph).await;
    let threads = std::fs::read_dir("/proc/self/task").unwrap().count();
    assert!(threads < 100, "{threads} threads");
    rig.converged().await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_received_value_moves_contents_and_watch() {
    let mut rig = Rig::with(waits_for_quiet);
    let (a, b) = (rig.name("a"), rig.name("b"));
    let graph =
        Graph::default()
            .keep(&a, "sent")
            .keep(&b, "written")
            .edge(("keep", &a), ("keep", &b), false, true);
    rig.accept(&graph).await;
    rig.converged().await;
    assert_eq!(reads(&b), "sent");
    std::fs::write(&b, "wrong").unwrap();
    while reads(&b) != "sent" {
        rig.run_of(&b).await;
    }
    // Without the edge it returns to what the program says.
    let graph = Graph::default().keep(&a, "sent").keep(&b, "written");
    rig.accept(&graph).await;
    // A run that was in progress at the swap may end first.
    while reads(&b) != "written" {
        rig.run_of(&b).await;
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_comes_before_its_files_by_itself() {
    let mut rig = Rig::with(waits_for_quiet);
    // `keep` makes no directories, so the parent is a file of that name in the sense of automatic edges only.
    let graph = Graph::default()
        .keep("/x/y", "")
        .with("keep", "/x/y/z", &[("path", Value::str(rig.name("z")))], |_| {})
        .with("keep", "/x/y", &[("path", Value::str(rig.name("y")))], |_| {});
    rig.accept(&graph).await;
    let seen = rig.converged().await;
    let started: Vec<&str> = seen
        .iter()
        .filter(|event| matches!(event.what, EventKind::StartedRun { .. }))
        .filter_map(|event| event.name.as_deref())
        .collect();
    assert!(
        started.iter().position(|name| *name == "/x/y") < started.iter().position(|name| *name == "/x/y/z")
    );
    let graph = graph.edge(("keep", "/x/y/z"), ("keep", "/x/y"), false, false);
    rig.accept(&graph).await;
    let seen = rig
        .until(|event| matches!(event.what, EventKind::Log { .. }))
        .await;
    let said = seen.last().unwrap().to_json();
    assert!(said.contains("but the program says the contrary"), "{said}");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_outlives_the_process() {
    let mut rig = Rig::on(tempfile::tempdir().unwrap(), true, waits_for_quiet);
    let (a, b) = (rig.name("a"), rig.name("b"));
    let graph = |content: &str| {
        Graph::default()
            .keep(&a, "new")
            .with("keep", &b, &[("content", Value::str(content))], |_| {})
            .edge(("keep", &a), ("keep", &b), true, false)
    };
    // The receiver fails, so the notification stays.
    rig.accept(&graph("fail")).await;
    rig.until(|event| matches!(event.what, EventKind::GaveUp { .. }))
        .await;
    rig.stop().await;
    let directory = std::mem::replace(&mut rig.directory, tempfile::tempdir().unwrap());
    drop(rig);

    let again = Rig::on(directory, true, waits_for_quiet);
    let mut rig = again;
    rig.accept(&graph("works now")).await;
    let seen = rig.converged().await;
    let refreshed = seen
        .iter()
        .any(|event| matches!(&event.what, EventKind::Log { message, .. } if message == "refreshed"));
    assert!(refreshed);
    assert!(
        seen.iter()
            .any(|event| matches!(event.what, EventKind::RefreshConsumed { .. }))
    );
    rig.stop().await;
}
