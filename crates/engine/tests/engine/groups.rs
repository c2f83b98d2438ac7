//! Resources that are applied as one, with kinds that do it in the two ways in which kinds can: all in one transaction, and each by itself
//! within another one.

#![allow(
    clippy::disallowed_methods,
    reason = "the machine here is a temporary directory"
)]

use std::sync::Arc;
use std::time::Duration;

use super::rig::*;
use setpoint_engine::machine::StopStage;
use setpoint_engine::{Event, EventKind, Level, Preparation, RunSummary};
use setpoint_graph::MetaParameters;
use setpoint_host::sync::Mutex;
use setpoint_value::Value;

fn converging() -> Rig {
    Rig::with(|options| options.machine.converge = Some(Duration::ZERO))
}

fn bulk(graph: Graph, name: &str, content: &str) -> Graph {
    graph.with("bulk", name, &[("content", Value::str(content))], |_| {})
}

fn book(graph: Graph, name: &str, content: &str, change: impl FnOnce(&mut MetaParameters)) -> Graph {
    graph.with("shelf:book", name, &[("content", Value::str(content))], change)
}

fn shelf(graph: Graph) -> Graph {
    graph.with("shelf", "s", &[], |_| {})
}

/// `drift b in c`: events of a sort, whom they are about by the last part of the name, and whose group that is in.
fn told(rig: &Rig, seen: &[Arc<Event>], is: impl Fn(&EventKind) -> Option<String>) -> Vec<String> {
    let directory = format!("{}/", rig.directory.path().display());
    let named = |name: &str| name.strip_prefix(&directory).unwrap_or(name).to_owned();
    let shown = seen.iter().filter_map(|event| {
        let what = is(&event.what)?;
        let name = named(event.name.as_deref().unwrap_or_default());
        Some(match &event.group {
            Some(group) => format!("{what} {name} in {}", named(&group.name)),
            None => format!("{what} {name}"),
        })
    });
    shown.collect()
}

fn repairs(what: &EventKind) -> Option<String> {
    match what {
        EventKind::Repaired { .. } => Some("repaired".to_owned()),
        EventKind::NotRepaired { .. } => Some("not repaired".to_owned()),
        EventKind::RunEnded { result, .. } => Some(format!("{result:?}")),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn three_of_a_kind_are_applied_in_one_run() {
    let mut rig = converging();
    let [a, b, c] = ["a", "b", "c"].map(|name| rig.name(name));
    let graph = bulk(bulk(bulk(Graph::default(), &a, "1"), &b, "2"), &c, "3");
    rig.accept(&graph).await;
    let seen = rig.converged().await;
    assert_eq!([&a, &b, &c].map(reads), ["1", "2", "3"]);
    assert_eq!(reads(rig.path("transactions")), "c a b\n");
    assert_eq!(
        told(&rig, &seen, repairs),
        ["repaired c", "repaired a in c", "repaired b in c", "Drift c"]
    );
    // One of them alone, when only that is wrong.
    std::fs::write(&b, "undone").unwrap();
    rig.engine
        .recheck(setpoint_graph::ResourceId::new("bulk", b.as_str()));
    let seen = rig.run_of(&c).await;
    assert_eq!(told(&rig, &seen, repairs), ["repaired b in c", "Drift c"]);
    assert_eq!(reads(rig.path("transactions")), "c a b\nb\n");
    // One that leaves the program.
    rig.accept(&graph.clone().without("bulk", &c)).await;
    let seen = rig.run_of(&b).await;
    assert_eq!(told(&rig, &seen, repairs), ["Ok b"]);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_fails_names_who_is_to_blame() {
    let mut rig = converging();
    let [a, b, c] = ["a", "b", "c"].map(|name| rig.name(name));
    let graph = bulk(bulk(bulk(Graph::default(), &a, "1"), &b, "unknown"), &c, "3");
    rig.accept(&graph).await;
    let seen = rig.converged().await;
    let error = seen.iter().find_map(|event| match &event.what {
        EventKind::GaveUp { error } => Some(error.to_string()),
        _ => None,
    });
    let wanted = format!("apply bulk[{b}]: find it: there is no such thing");
    assert_eq!(error, Some(wanted));
    let failed =
        |what: &EventKind| matches!(what, EventKind::MemberFailed { .. }).then(|| "failed".to_owned());
    assert_eq!(told(&rig, &seen, failed), ["failed b in c"]);
    assert_eq!(
        told(&rig, &seen, repairs),
        [
            "not repaired c",
            "not repaired a in c",
            "not repaired b in c",
            "Failed c"
        ]
    );
    assert_eq!(reads(&a), "", "nothing was done");
    let mended = bulk(graph, &b, "2");
    rig.accept(&mended).await;
    rig.converged().await;
    assert_eq!([&a, &b, &c].map(reads), ["1", "2", "3"]);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn edges_keep_resources_apart_and_hold_for_the_group() {
    let mut rig = converging();
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| rig.name(name));
    let graph = bulk(
        bulk(bulk(bulk(Graph::default(), &a, "1"), &b, "2"), &c, "3"),
        &d,
        "4",
    );
    let graph = graph.edge(("bulk", &a), ("bulk", &d), false, false);
    rig.accept(&graph).await;
    rig.converged().await;
    assert_eq!(reads(rig.path("transactions")), "a\nd b c\n");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_receives_and_sends() {
    let mut rig = converging();
    let [a, b, from, to] = ["a", "b", "from", "to"].map(|name| rig.name(name));
    let graph = bulk(bulk(Graph::default(), &a, "written"), &b, "2")
        .keep(&from, "sent")
        .keep(&to, "");
    let graph =
        graph
            .edge(("keep", &from), ("bulk", &a), false, true)
            .edge(("bulk", &a), ("keep", &to), false, true);
    rig.accept(&graph).await;
    let seen = rig.converged().await;
    assert_eq!([&a, &b, &to].map(reads), ["sent", "2", "sent"]);
    let exchanged = |what: &EventKind| match what {
        EventKind::Received { .. } => Some("received".to_owned()),
        EventKind::Sent { .. } => Some("sent".to_owned()),
        _ => None,
    };
    assert_eq!(
        told(&rig, &seen, exchanged),
        [
            "sent from",
            "received a in b",
            "sent b",
            "sent a in b",
            "received to",
            "sent to"
        ]
    );
    // What was sent is sensitive, and stays so in the member.
    let said: Vec<String> = seen.iter().map(|event| event.to_json()).collect();
    let of_a: Vec<&String> = said
        .iter()
        .filter(|line| line.contains("\"drift\"") && line.contains("/a\""))
        .collect();
    assert_eq!(of_a.len(), 1);
    assert!(of_a[0].contains("\"want\":\"(sensitive)\""), "{}", of_a[0]);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_of_another_kind_live_and_run_within_it() {
    let mut rig = converging();
    let [a, b, c] = ["a", "b", "c"].map(|name| rig.name(name));
    let graph = book(shelf(Graph::default()), &a, "1", |_| {});
    let graph = book(graph, &b, "2", |meta| meta.noop = true);
    let graph = graph.with(
        "shelf:book",
        &c,
        &[("content", Value::str("3")), ("shelf", Value::str("other"))],
        |_| {},
    );
    rig.accept(&graph).await;
    let seen = rig.converged().await;
    assert_eq!(
        [&a, &b].map(reads),
        ["1", ""],
        "what is under noop is not repaired"
    );
    let ran = told(&rig, &seen, repairs);
    assert!(ran.contains(&"repaired a in s".to_owned()), "{ran:?}");
    assert!(
        ran.contains(&"Drift s".to_owned()) && ran.contains(&"Drift c".to_owned()),
        "{ran:?}"
    );
    let lines = |what: &EventKind| match what {
        EventKind::Log {
            level: Level::Info,
            message,
        } => Some(message.clone()),
        _ => None,
    };
    assert!(told(&rig, &seen, lines).contains(&"wrote 1 a in s".to_owned()));
    let warned = seen.iter().any(|event| match &event.what {
        EventKind::Log { level, message } => {
            *level == Level::Warning
                && message.contains("is read by nobody, because there is no shelf for it")
        }
        _ => false,
    });
    assert!(warned);
    // A book that leaves the shelf begins anew by itself, after it was closed.
    let alone = graph.with(
        "shelf:book",
        &a,
        &[("content", Value::str("1")), ("shelf", Value::str("other"))],
        |_| {},
    );
    rig.accept(&alone).await;
    let seen = rig.run_of(&a).await;
    let ran = told(&rig, &seen, repairs);
    assert!(ran.contains(&"Ok a".to_owned()), "{ran:?}");
    assert!(std::path::Path::new(&format!("{a}.open")).exists());
    rig.stop().await;
    assert!(!std::path::Path::new(&format!("{a}.open")).exists());
    assert!(!std::path::Path::new(&format!("{b}.open")).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_of_several_members_is_told_of_each_and_keeps_no_other_from_anything() {
    let mut rig = converging();
    let names = ["a", "b", "c", "d", "e"].map(|name| rig.name(name));
    let mut graph = shelf(Graph::default());
    for (name, content) in names.iter().zip(["fail", "1", "fail", "fail", "fail"]) {
        graph = book(graph, name, content, |_| {});
    }
    rig.accept(&graph).await;
    let seen = rig.converged().await;
    assert_eq!(reads(&names[1]), "1");
    let error = seen.iter().find_map(|event| match &event.what {
        EventKind::RunEnded {
            result: RunSummary::Failed,
            error,
            ..
        } => error.clone(),
        _ => None,
    });
    let [a, _, c, d, _] = &names;
    let wanted = format!(
        "apply shelf:book[{a}]: bind it; apply shelf:book[{c}]: bind it; apply shelf:book[{d}]: bind it; and one more"
    );
    assert_eq!(error.as_deref(), Some(&*wanted));
    let failed =
        |what: &EventKind| matches!(what, EventKind::MemberFailed { .. }).then(|| "failed".to_owned());
    assert_eq!(told(&rig, &seen, failed).len(), 4);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_cannot_begin_is_tried_again_and_the_others_begin_once() {
    let mut rig = Rig::with(|options| {
        options.machine.retry = Some(5);
        options.machine.delay = Some(20);
        options.machine.converge = Some(Duration::ZERO);
    });
    let [a, b] = ["a", "b"].map(|name| rig.name(name));
    std::fs::write(&b, "in the way").unwrap();
    let graph = book(
        book(shelf(Graph::default()), &a, "1", |_| {}),
        &b,
        "no init",
        |_| {},
    );
    rig.accept(&graph).await;
    let seen = rig
        .until(|event| matches!(event.what, EventKind::BackingOff { .. }))
        .await;
    let error = seen.iter().find_map(|event| match &event.what {
        EventKind::BackingOff { error, .. } => Some(error.to_string()),
        _ => None,
    });
    assert_eq!(error, Some(format!("apply shelf:book[{b}]: open {b}")));
    std::fs::remove_file(&b).unwrap();
    rig.run_of("s").await;
    assert_eq!(reads(&a), "1");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_are_counted_by_their_kinds_and_a_listener_hears_each_event() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hears = heard.clone();
    let mut rig = Rig::with(|options| {
        options.machine.converge = Some(Duration::ZERO);
        // A stream would lose nearly all of them.
        options.event_capacity = 1;
        options.on_event = Some(Arc::new(move |event| hears.lock().push(event.seq)));
    });
    let graph = (0..200).fold(shelf(Graph::default()), |graph, number| {
        book(graph, &rig.name(&number.to_string()), "1", |_| {})
    });
    rig.accept(&bulk(graph, &rig.name("bulk"), "2")).await;
    let report = loop {
        let summary = rig.engine.summary().await.unwrap();
        if summary.converged == Some(true) {
            break summary;
        }
        tokio::task::yield_now().await;
    };
    let counts = rig.engine.kind_counts().await.unwrap();
    let all: Vec<(&str, usize)> = counts
        .iter()
        .map(|(kind, counts)| (&**kind, counts.all()))
        .collect();
    assert_eq!(all, [("bulk", 1), ("shelf", 1), ("shelf:book", 200)]);
    assert!(
        counts.values().all(|counts| counts.right == counts.all()),
        "{counts:?}"
    );
    let seen: Vec<u64> = heard.lock().clone();
    assert!(
        seen.len() as u64 >= report.newest_event,
        "{} {report:?}",
        seen.len()
    );
    assert!(
        seen.iter().copied().eq(1..=seen.len() as u64),
        "in order, and each once"
    );
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_reaches_members() {
    let mut rig = Rig::new();
    let a = rig.name("a");
    let graph = book(shelf(Graph::default()), &a, "endless", |_| {});
    rig.accept(&graph).await;
    rig.until(|event| matches!(event.what, EventKind::StartedRun { .. }))
        .await;
    rig.engine.stop(StopStage::Interrupt, true);
    let report = rig.ends().await;
    assert!(report.hung.is_empty(), "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_grouping_each_is_applied_by_itself() {
    let mut rig = Rig::with(|options| {
        options.machine.converge = Some(Duration::ZERO);
        options.preparation = Preparation {
            grouping: false,
            ..Preparation::default()
        };
    });
    let [a, b] = ["a", "b"].map(|name| rig.name(name));
    rig.accept(&bulk(bulk(Graph::default(), &a, "1"), &b, "2")).await;
    let seen = rig.converged().await;
    let mut ran = told(&rig, &seen, repairs);
    ran.sort();
    assert_eq!(ran, ["Drift a", "Drift b", "repaired a", "repaired b"]);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_says_autogroup_false_is_applied_by_itself() {
    let mut rig = converging();
    let [a, b, c] = ["a", "b", "c"].map(|name| rig.name(name));
    let graph = bulk(bulk(Graph::default(), &a, "1"), &b, "2");
    let graph = graph.with("bulk", &c, &[("content", Value::str("3"))], |meta| {
        meta.autogroup = false;
    });
    rig.accept(&graph).await;
    let seen = rig.converged().await;
    let ran = told(&rig, &seen, repairs);
    assert!(
        ran.contains(&"Drift b".to_owned()) && ran.contains(&"Drift c".to_owned()),
        "{ran:?}"
    );
    assert_eq!([&a, &b, &c].map(reads), ["1", "2", "3"]);
    rig.stop().await;
}
