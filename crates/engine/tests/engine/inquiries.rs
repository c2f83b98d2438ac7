//! Automatic edges that only the machine can tell of.

use std::time::Duration;

use setpoint_engine::{Event, EventKind};
use setpoint_value::Value;

use super::rig::{Graph, Rig, reads};

fn parcel(graph: Graph, name: &str, list: &str, state: &str) -> Graph {
    let parameters = [("list", Value::str(list)), ("state", Value::str(state))];
    graph.with("parcel", name, &parameters, |_| {})
}

/// Who began to run, in order.
fn began(events: &[std::sync::Arc<Event>]) -> Vec<String> {
    let started = events
        .iter()
        .filter(|event| matches!(event.what, EventKind::StartedRun { .. }));
    started
        .filter_map(|event| Some(event.identity()?.to_string()))
        .collect()
}

fn warnings(events: &[std::sync::Arc<Event>]) -> Vec<String> {
    let said = events.iter().filter_map(|event| match &event.what {
        EventKind::Log { message, .. } => Some(message.clone()),
        _ => None,
    });
    said.collect()
}

async fn rig() -> Rig {
    Rig::with(|options| {
        options.machine.converge = Some(Duration::from_millis(50));
        options.inquiries_within = Duration::from_millis(300);
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_parcel_contains_comes_after_it_and_is_asked_once_for_its_parameters() {
    let mut rig = rig().await;
    let (list, file) = (rig.name("list"), rig.name("file"));
    std::fs::write(&list, format!("{file}\n/elsewhere\n")).unwrap();
    let graph = parcel(Graph::default().keep(&file, "x"), "p", &list, "a");
    rig.accept(&graph).await;
    let seen = rig.converged().await;
    assert_eq!(began(&seen)[0], "parcel[p]", "{:?}", began(&seen));
    let looks = rig.path("list.looks");
    assert_eq!(reads(&looks), "setpoint\n");
    // One that changes in nothing else, and a graph that changes in something else, ask nobody.
    rig.accept(&graph.clone().keep(&rig.name("other"), "y")).await;
    rig.accept(&graph.clone().without("parcel", "p").keep(&rig.name("other"), "z"))
        .await;
    assert_eq!(reads(&looks), "setpoint\n");
    // Another parameter may change the answer.
    rig.accept(&parcel(graph, "p", &list, "b")).await;
    assert_eq!(reads(&looks), "setpoint\nsetpoint\n");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_tell_has_no_edges_and_holds_up_nobody_for_long() {
    let mut rig = rig().await;
    let (missing, file) = (rig.name("missing"), rig.name("file"));
    let mut graph = Graph::default().keep(&file, "x");
    graph = parcel(graph, "fails", &missing, "");
    graph = parcel(graph, "hangs", "never", "");
    graph = parcel(graph, "panics", "panic", "");
    rig.accept(&graph).await;
    let seen = rig.converged().await;
    assert_eq!(reads(rig.path("file")), "x");
    let mut said = warnings(&seen);
    said.sort();
    assert_eq!(said.len(), 3, "{said:#?}");
    let begin = |name: &str| format!("parcel[{name}] has no automatic edges of its own: failed to ");
    assert!(
        said[0].starts_with(&begin("fails")) && said[0].contains("No such file"),
        "{said:#?}"
    );
    let late = "find out what it has edges with: there was no answer within 0.3 seconds";
    assert_eq!(said[1], begin("hangs") + late);
    assert!(
        said[2].starts_with(&begin("panics")) && said[2].contains("panic"),
        "{said:#?}"
    );

    // The next graph asks them again.
    std::fs::write(&missing, format!("{file}\n")).unwrap();
    let graph = parcel(
        graph.without("parcel", "hangs").without("parcel", "panics"),
        "other",
        &missing,
        "",
    );
    rig.accept(&graph.keep(&file, "y")).await;
    let seen = rig.converged().await;
    assert_eq!(warnings(&seen), Vec::<String>::new());
    assert_eq!(reads(rig.path("file")), "y");
    assert_eq!(reads(rig.path("missing.looks")).lines().count(), 3);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_waits_for_no_answer() {
    let mut rig = Rig::new();
    let graph = parcel(
        Graph::default().keep(&rig.name("file"), "x"),
        "hangs",
        "never",
        "",
    );
    let mut desired = graph.desired();
    desired.generation = 1;
    let engine = rig.engine.clone();
    let submitting = std::thread::spawn(move || drop(engine.submit(desired)));
    rig.stop().await;
    // Far sooner than the minute that an answer may take.
    submitting.join().unwrap();
    assert!(!rig.path("file").exists());
    let _ = rig.events.next().await;
}
