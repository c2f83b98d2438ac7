//! What is exported: by which runs, with which values, and which records a swap brings and takes.

use super::simulation::*;
use setpoint_engine::machine::{Input, RunResult, StopStage, VertexState};
use setpoint_engine::{EventKind, ExportKey};
use setpoint_graph::MetaParameters;
use setpoint_value::Value;

fn to(hosts: &'static [&'static str]) -> impl Fn(&mut MetaParameters) {
    |meta| meta.export = hosts.iter().map(|host| (*host).to_owned()).collect()
}

fn shown(keys: &[ExportKey]) -> Vec<String> {
    keys.iter()
        .map(|key| format!("{} {}", key.resource.name, key.to))
        .collect()
}

/// The records that the last swap brought and took; none when it said nothing of them.
fn swapped(sim: &mut Simulation) -> Option<(Vec<String>, Vec<String>)> {
    let last = sim.exports.pop();
    sim.exports.clear();
    last.map(|(wanted, unwanted)| (shown(&wanted), shown(&unwanted)))
}

/// What the runs of a resource exported: the content of each.
fn exported(sim: &Simulation, name: &str) -> Vec<Vec<(String, Option<Value>)>> {
    let own = sim.requests.iter().filter(|(of, _)| of == name);
    let exports = own.map(|(_, request)| {
        let exports = request.exports.iter();
        let shown = exports.map(|resource| {
            let content = resource.parameters.get("content").cloned();
            (resource.id.name.to_string(), content)
        });
        shown.collect()
    });
    exports.collect()
}

fn none() -> Vec<String> {
    Vec::new()
}

#[test]
fn a_swap_says_which_records_come_and_go() {
    let mut sim = Simulation::new();
    sim.swap(&Graph::new(&["a"]));
    assert_eq!(
        swapped(&mut sim),
        Some((none(), none())),
        "the first graph, so that what others left goes"
    );
    sim.swap(&Graph::new(&["a", "b"]));
    assert_eq!(swapped(&mut sim), None, "nothing is exported, and nothing was");
    sim.swap(&Graph::new(&["b"]).with("a", to(&["x", "y", "x"])));
    let (wanted, unwanted) = swapped(&mut sim).unwrap();
    assert_eq!(
        (wanted, unwanted),
        (vec!["a x".to_owned(), "a y".to_owned()], none())
    );
    sim.swap(&Graph::new(&["b"]).with("a", to(&["y", "*"])));
    let (wanted, unwanted) = swapped(&mut sim).unwrap();
    assert_eq!(
        (wanted, unwanted),
        (
            vec!["a y".to_owned(), "a *".to_owned()],
            vec!["a x".to_owned(), "a y".to_owned()],
        )
    );
    sim.swap(&Graph::new(&["b"]));
    let (wanted, unwanted) = swapped(&mut sim).unwrap();
    assert_eq!(
        (wanted, unwanted),
        (none(), vec!["a y".to_owned(), "a *".to_owned()])
    );
}

#[test]
fn a_run_exports_what_the_resource_is_then_and_comes_after_its_predecessors() {
    let mut sim = Simulation::new();
    sim.always("a", Run::sends("received").takes(ms(100)));
    let graph = Graph::new(&["a"])
        .with_content("b", "program", to(&["*"]))
        .sends("a", "b");
    sim.swap(&graph);
    sim.advance(ms(50));
    assert_eq!(exported(&sim, "b"), [[]; 0]);
    sim.advance(ms(100));
    let first = vec![("b".to_owned(), Some(Value::str("received")))];
    assert_eq!(exported(&sim, "b"), std::slice::from_ref(&first));
    // What it holds since an earlier run is exported too.
    sim.event("b");
    sim.settle();
    assert_eq!(exported(&sim, "b"), [first.clone(), first]);
}

#[test]
fn under_noop_nothing_is_exported_and_nothing_taken_back() {
    let mut sim = Simulation::new();
    let noop = |meta: &mut MetaParameters| {
        to(&["*"])(meta);
        meta.noop = true;
    };
    sim.swap(&Graph::default().with("a", noop).with("b", to(&["*"])));
    sim.settle();
    assert_eq!(exported(&sim, "a"), [Vec::new()]);
    assert_eq!(exported(&sim, "b"), [vec![("b".to_owned(), None)]]);
    // Its record stays as it is: it is still wanted.
    let (wanted, _) = swapped(&mut sim).unwrap();
    assert_eq!(wanted, ["a *", "b *"]);

    let options = setpoint_engine::machine::Options {
        noop: true,
        ..Default::default()
    };
    let mut sim = Simulation::with(options);
    sim.swap(&Graph::default().with("a", to(&["*"])));
    sim.settle();
    assert_eq!(exported(&sim, "a"), [Vec::new()]);
    assert_eq!(swapped(&mut sim), None);
}

#[test]
fn what_is_hidden_is_exported_after_its_predecessors_without_being_looked_at() {
    let mut sim = Simulation::new();
    sim.always("a", Run::sends("received").takes(ms(100)));
    let hidden = |meta: &mut MetaParameters| {
        to(&["*"])(meta);
        meta.hidden = true;
    };
    let graph = Graph::new(&["a"]).with("b", hidden).sends("a", "b");
    sim.swap(&graph);
    sim.advance(ms(50));
    assert_eq!(exported(&sim, "(hidden)"), [[]; 0]);
    sim.advance(ms(100));
    let content = vec![("b".to_owned(), Some(Value::str("received")))];
    assert_eq!(exported(&sim, "(hidden)"), [content]);
    // Another value is exported anew.
    sim.always("a", Run::sends("other"));
    sim.event("a");
    sim.settle();
    assert_eq!(
        exported(&sim, "(hidden)").pop(),
        Some(vec![("b".to_owned(), Some(Value::str("other")))])
    );
    // Two hidden resources of one identity export for different hosts.
    let more = graph.with("b", |meta| {
        to(&["x"])(meta);
        meta.hidden = true;
    });
    sim.swap(&more);
    assert_eq!(swapped(&mut sim).unwrap().0, ["b *", "b x"]);
}

#[test]
fn members_are_exported_in_the_run_of_their_group() {
    let mut sim = Simulation::new();
    sim.always("s", Run::sends("received"));
    let noop = |meta: &mut MetaParameters| {
        to(&["*"])(meta);
        meta.noop = true;
    };
    let graph = Graph::new(&["s", "leader"])
        .with_content("one", "program", to(&["x"]))
        .with_content("two", "two", noop)
        .with_content("three", "three", to(&["x"]))
        .sends("s", "one")
        .group("leader", &["one", "two", "three"]);
    sim.swap(&graph);
    sim.settle();
    let (wanted, _) = swapped(&mut sim).unwrap();
    assert_eq!(wanted, ["one x", "three x", "two *"]);
    let both = vec![
        ("one".to_owned(), Some(Value::str("received"))),
        ("three".to_owned(), Some(Value::str("three"))),
    ];
    assert_eq!(exported(&sim, "leader"), [both]);
    // Out of the group it is the same record.
    let alone = Graph::new(&["s", "leader"])
        .with_content("one", "program", to(&["x"]))
        .sends("s", "one");
    sim.swap(&alone);
    let (wanted, unwanted) = swapped(&mut sim).unwrap();
    assert_eq!(wanted, ["one x"]);
    assert_eq!(unwanted, ["one x", "three x", "two *"]);
}

#[test]
fn a_run_whose_export_fails_has_failed_and_what_it_repaired_is_repaired() {
    let mut sim = Simulation::new();
    let graph = Graph::new(&["svc[s]"])
        .with("a", |meta| {
            to(&["*"])(meta);
            (meta.retry, meta.delay) = (1, 10);
        })
        .edges("a => svc[s]");
    sim.runs(
        "a",
        [Run {
            not_exported: Some("export"),
            ..Run::drift()
        }],
    );
    sim.swap(&graph);
    sim.settle();
    let is = |wanted: &str| sim.events.iter().any(|event| event.what.name() == wanted);
    assert!(is("repaired") && !is("not repaired"), "{}", sim.trace(20));
    assert!(is("backing off") && !is("refresh pending"), "{}", sim.trace(20));
    sim.advance(s(1));
    // The repair is known to whom it concerns, late but once.
    assert_eq!(sim.ran(), ["a", "a", "svc[s]"]);
}

#[test]
fn an_export_alone_is_no_repair_and_notifies_nobody() {
    let mut sim = Simulation::new();
    let graph = Graph::new(&["svc[s]"]).with("a", to(&["*"])).edges("a => svc[s]");
    sim.swap(&graph);
    sim.settle();
    sim.take();
    let vertex = sim.vertex("a");
    sim.event("a");
    // The host answers with the record that it has written.
    let (key, result) = (
        ExportKey {
            resource: id("a"),
            to: "*".into(),
        },
        RunResult::ok(),
    );
    sim.step(Input::RunEnded {
        vertex,
        result: RunResult {
            exported: vec![key.clone()],
            ..result
        },
    });
    sim.settle();
    let told = |what: &str| {
        sim.events
            .iter()
            .filter(|event| event.what.name() == what)
            .count()
    };
    assert_eq!(told("exported"), 1);
    assert_eq!(told("refresh pending") + told("drift"), 0);
    assert!(
        sim.machine
            .status()
            .iter()
            .all(|status| status.state == VertexState::Clean)
    );
    // What is taken back is told, whether or not it is still there.
    sim.step(Input::Unexported(vec![key]));
    let last = sim.events.last().unwrap();
    assert_eq!(last.identity(), Some(id("a")));
    assert_eq!(last.what, EventKind::Unexported { to: vec!["*".into()] });
}

#[test]
fn stopping_takes_nothing_back() {
    let mut sim = Simulation::of(&Graph::default().with("a", to(&["*"])));
    sim.exports.clear();
    let (stage, escalate) = (StopStage::Finish, true);
    sim.step(Input::Stop { stage, escalate });
    sim.advance(s(60));
    assert!(sim.exit.is_some());
    assert_eq!(swapped(&mut sim), None);
}
