//! Graphs that are wrong, kinds that misbehave, stopping, consumers that do not read.

#![allow(
    clippy::disallowed_methods,
    reason = "the machine here is a temporary directory"
)]

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::kinds::DAEMONS;
use super::rig::*;
use setpoint_engine::machine::{ExitReason, StopStage};
use setpoint_engine::{EventKind, RunSummary, Submitted};
use setpoint_value::{Marks, Value};

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_is_a_failure_of_that_resource_alone() {
    let mut rig = Rig::with(|options| options.machine.converge = Some(Duration::ZERO));
    let names: Vec<String> = ["check", "init", "watch", "fine"]
        .iter()
        .map(|name| rig.name(name))
        .collect();
    let graph = Graph::default()
        .keep(&names[0], "panic")
        .keep(&names[1], "panic init")
        .keep(&names[2], "panic watch")
        .keep(&names[3], "fine");
    rig.accept(&graph).await;
    let seen = rig.converged().await;
    let failed: Vec<&str> = seen
        .iter()
        .filter_map(|event| match &event.what {
            EventKind::GaveUp { error } => Some(&**error),
            _ => None,
        })
        .collect();
    assert_eq!(failed.len(), 3, "{failed:?}");
    assert!(
        failed.iter().all(|error| error.contains("panicked")),
        "{failed:?}"
    );
    assert_eq!(reads(&names[3]), "fine");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_graph_leaves_the_old_one_running() {
    let mut rig = Rig::with(|options| options.machine.converge = Some(Duration::ZERO));
    let (a, b) = (rig.name("a"), rig.name("b"));
    let graph = Graph::default().keep(&a, "right").keep(&b, "right");
    rig.accept(&graph).await;
    rig.converged().await;
    let Submitted::Rejected(found) = rig.submit(&graph.clone().keep(&b, "invalid")).await else {
        panic!("it is invalid");
    };
    assert!(found.first().unwrap().message().contains("is said to be invalid"));
    let circle = graph.clone().edge(("keep", &a), ("keep", &b), false, false).edge(
        ("keep", &b),
        ("keep", &a),
        false,
        false,
    );
    let Submitted::Rejected(found) = rig.submit(&circle).await else {
        panic!("it is a circle");
    };
    let message = found.first().unwrap().message();
    assert_eq!(
        message,
        format!("resources wait for each other: keep[{a}] -> keep[{b}] -> keep[{a}]")
    );
    std::fs::write(&a, "wrong").unwrap();
    rig.until(|event| {
        matches!(
            event.what,
            EventKind::RunEnded {
                result: RunSummary::Drift,
                ..
            }
        )
    })
    .await;
    assert_eq!(reads(&a), "right");
    // And a right one is taken again.
    rig.accept(&graph.keep(&b, "other")).await;
    rig.run_of(&b).await;
    assert_eq!(reads(&b), "other");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn running_once_ends_with_the_code_of_what_it_found() {
    for (content, code, detailed) in [("right", 0, 2), ("fail", 1, 1)] {
        let mut rig = Rig::with(|options| {
            options.machine.converge = Some(Duration::ZERO);
            options.machine.exit_when_converged = true;
        });
        let graph = Graph::default().keep(&rig.name("a"), content);
        rig.accept(&graph).await;
        let report = rig.ends().await;
        assert_eq!(
            (report.code(false), report.code(true)),
            (code, detailed),
            "{report:?}"
        );
        assert!(rig.engine.status().await.is_none());
        assert!(rig.engine.summary().await.is_none());
        assert!(rig.engine.graph().await.is_none());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_of_convergence_run_before_the_end() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let mut rig = Rig::with(|options| {
        options.machine.converge = Some(Duration::ZERO);
        options.machine.exit_when_converged = true;
        options.on_converged = Some(Box::new(move |converged| {
            std::thread::sleep(Duration::from_millis(50));
            sender.send(converged).unwrap();
        }));
    });
    rig.accept(&Graph::default()).await;
    rig.ends().await;
    assert_eq!(receiver.try_recv(), Ok(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stages_of_stopping_reach_runs() {
    let mut rig = Rig::new();
    let hour = ("milliseconds", Value::Int(3_600_000));
    let graph = Graph::default()
        .with("wait", "soft", std::slice::from_ref(&hour), |_| {})
        .with(
            "wait",
            "hard",
            &[hour.clone(), ("stubborn", Value::Bool(true))],
            |_| {},
        )
        .with("wait", "timed", &[hour], |meta| meta.timeout = 50);
    rig.accept(&graph).await;
    let seen = rig.run_of("timed").await;
    let said = seen.last().unwrap().to_json();
    assert!(said.contains("timeout after 0.05 seconds"), "{said}");
    rig.engine.stop(StopStage::Finish, false);
    rig.until(|event| matches!(event.what, EventKind::Stopping { stage: 1, .. }))
        .await;
    rig.engine.stop(StopStage::Cancel, false);
    rig.run_of("soft").await;
    rig.engine.stop(StopStage::Interrupt, false);
    rig.run_of("hard").await;
    assert_eq!(rig.ends().await.code(false), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_loop_makes_events_and_its_end_is_a_failure() {
    let mut rig = Rig::new();
    let tick = |events: i64, panics: bool| {
        vec![
            ("milliseconds", Value::Int(5)),
            ("events", Value::Int(events)),
            ("panics", Value::Bool(panics)),
        ]
    };
    let graph = Graph::default()
        .with("tick", "ends", &tick(3, false), |meta| {
            (meta.retry, meta.delay) = (1, 1);
        })
        .with("tick", "panics", &tick(2, true), |_| {});
    rig.accept(&graph).await;
    let mut failed = Vec::new();
    while failed.len() < 2 {
        let seen = rig
            .until(|event| matches!(event.what, EventKind::GaveUp { .. }))
            .await;
        failed.push(seen.last().unwrap().to_json());
    }
    failed.sort();
    assert!(
        failed.iter().any(|text| text.contains("the watch ended")),
        "{failed:?}"
    );
    assert!(
        failed.iter().any(|text| text.contains("in the loop")),
        "{failed:?}"
    );
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kinds_own_task_begins_before_its_resources_and_ends_after_them() {
    let mut rig = Rig::new();
    let graph = Graph::default()
        .with("daemon", "a", &[], |_| {})
        .with("daemon", "b", &[], |_| {});
    rig.accept(&graph).await;
    rig.run_of("a").await;
    rig.accept(&graph.clone().without("daemon", "a").without("daemon", "b"))
        .await;
    rig.until(|event| matches!(event.what, EventKind::Removed { .. }))
        .await;
    rig.until(|event| matches!(event.what, EventKind::Removed { .. }))
        .await;
    // It comes back while the task may still be ending.
    rig.accept(&graph).await;
    rig.run_of("b").await;
    assert_eq!(DAEMONS.load(Ordering::SeqCst), 1);
    let graph = Graph::default().with("crash", "c", &[], |_| {});
    rig.accept(&graph).await;
    let report = rig.ends().await;
    assert!(matches!(&report.reason, ExitReason::BackgroundFailed(why) if why.contains("open the socket")));
    assert_eq!(report.code(false), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_that_never_reads_misses_events_and_holds_nobody_up() {
    let mut rig = Rig::with(|options| {
        options.event_capacity = 64;
        options.machine.converge = Some(Duration::ZERO);
        options.machine.exit_when_converged = true;
    });
    let mut slow = rig.engine.events();
    let mut graph = Graph::default();
    for n in 0..500 {
        graph = graph.keep(&rig.name(&format!("f{n}")), "x");
    }
    rig.accept(&graph).await;
    rig.ends().await;
    let first = slow.next().await.unwrap();
    assert!(
        matches!(first.what, EventKind::Gap { lost } if lost > 1000),
        "{first:?}"
    );
    let mut rest = 0;
    while slow.next().await.is_some() {
        rest += 1;
    }
    assert_eq!(rest, 64, "and then the stream ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_graphs_that_come_fast_the_newest_is_taken_and_a_busy_guard_holds_convergence() {
    let mut rig = Rig::with(|options| options.machine.converge = Some(Duration::ZERO));
    let guard = rig.busy.guard();
    let (name, pipe) = (rig.name("a"), rig.name("pipe"));
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let numbered = |n: u64, content: &str| {
        let mut desired = Graph::default().keep(&name, content).desired();
        desired.generation = n;
        desired
    };
    let (engine, first) = (rig.engine.clone(), numbered(1, &format!("held by {pipe}")));
    let first = std::thread::spawn(move || engine.submit(first));
    // Open as soon as the first graph is being prepared.
    let held = std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    let later = [2, 3, 4].map(|n| rig.engine.submit(numbered(n, &n.to_string())));
    drop(held);
    assert!(matches!(first.join().unwrap().await, Ok(Submitted::Accepted)));
    let [second, third, last] = later;
    for overtaken in [second, third] {
        assert!(matches!(overtaken.await, Ok(Submitted::Superseded)));
    }
    assert!(matches!(last.await, Ok(Submitted::Accepted)));
    while reads(&name) != "4" {
        rig.run_of(&name).await;
    }
    assert_eq!(rig.engine.summary().await.unwrap().converged, Some(false));
    drop(guard);
    rig.converged().await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sensitive_value_is_in_no_event_and_no_status() {
    let mut rig = Rig::with(|options| options.machine.converge = Some(Duration::ZERO));
    let secret = Value::str("hunter2").with_marks(&Marks::sensitive());
    let (a, b) = (rig.name("a"), rig.name("b"));
    let graph = Graph::default()
        .with("keep", &a, &[("content", secret)], |_| {})
        .keep(&b, "open")
        .edge(("keep", &a), ("keep", &b), false, true);
    rig.accept(&graph).await;
    let seen = rig.converged().await;
    assert_eq!((reads(&a), reads(&b)), ("hunter2".into(), "hunter2".into()));
    let said: Vec<String> = seen.iter().map(|event| event.to_json()).collect();
    assert!(said.iter().any(|line| line.contains("(sensitive)")), "{said:?}");
    let told: Vec<&String> = said.iter().filter(|line| line.contains("hunter2")).collect();
    assert!(told.is_empty(), "{told:?}");
    let status = format!("{:?}", rig.engine.status().await);
    assert!(!status.contains("hunter2"));
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_that_share_a_path_are_named_once() {
    let mut rig = Rig::new();
    let (a, b) = (rig.name("a"), rig.name("b"));
    let graph = Graph::default()
        .with("keep", "/x/y", &[("path", Value::str(&*a))], |_| {})
        .with("keep", "/x/y/", &[("path", Value::str(&*b))], |_| {});
    rig.accept(&graph).await;
    let seen = rig
        .until(|event| matches!(event.what, EventKind::Log { .. }))
        .await;
    let said = seen.last().unwrap().to_json();
    assert!(
        said.contains("`keep[/x/y]` and `keep[/x/y/]` manage the same path, /x/y:"),
        "{said}"
    );
    // The next graph has another resource, and the same two.
    let c = rig.name("c");
    rig.accept(&graph.keep(&c, "three")).await;
    let seen = rig.run_of(&c).await;
    let logs = seen
        .iter()
        .filter(|event| matches!(event.what, EventKind::Log { .. }));
    assert_eq!(logs.count(), 0);
    rig.stop().await;
}
