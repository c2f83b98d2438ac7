//! Resources that are applied as one: what they share, what is told of each, and how swaps change them.

use super::simulation::*;
use setpoint_engine::EventKind;
use setpoint_engine::machine::{Standing, VertexState};
use setpoint_graph::MetaParameters;
use setpoint_value::Value;

/// `leader` with `one` and `two` as parts of it, behind `first` and before `last`.
fn three() -> Graph {
    Graph::new(&["first", "leader", "one", "two", "last", "svc[s]"])
        .edges("first -> one")
        .edges("two -> last")
        .edges("one => svc[s]")
        .group("leader", &["one", "two"])
}

/// Who events of a sort are about, with the group of those that are in one.
fn told(sim: &Simulation, is: impl Fn(&EventKind) -> bool) -> Vec<String> {
    let events = sim.events.iter().filter(|event| is(&event.what));
    let shown = events.map(|event| {
        let name = event.name.as_deref().unwrap_or_default();
        match &event.group {
            Some(group) => format!("{name} in {}", group.name),
            None => name.to_owned(),
        }
    });
    shown.collect()
}

#[test]
fn a_group_is_one_vertex_at_which_the_edges_of_its_members_are() {
    let mut sim = Simulation::new();
    sim.swap(&three());
    sim.settle();
    assert_eq!(sim.ran(), ["first", "leader", "svc[s]", "last"]);
    let status = sim.machine.status();
    let groups = |name: &str| {
        let status = status.iter().find(|status| status.id == id(name)).unwrap();
        (status.group.clone(), status.state.clone())
    };
    assert_eq!(groups("leader"), (None, VertexState::Clean));
    assert_eq!(groups("two"), (Some(id("leader")), VertexState::Clean));
    assert_eq!(sim.machine.summary(sim.now).counts.all(), status.len());
    assert_eq!(sim.machine.status_of(&[id("one")]).len(), 1);
    let added = sim.events.iter().find_map(|event| match &event.what {
        EventKind::Added { members, .. } if event.identity() == Some(id("leader")) => Some(members),
        _ => None,
    });
    let added: Vec<&str> = added.unwrap().iter().map(|member| &*member.name).collect();
    assert_eq!(added, ["one", "two"]);
    let accepted = sim.events.iter().find_map(|event| match &event.what {
        EventKind::GraphAccepted { added, .. } => Some(*added),
        _ => None,
    });
    assert_eq!(accepted, Some(6), "resources are counted as the program has them");
}

#[test]
fn what_is_wrong_with_a_member_is_told_of_it_and_notifies_for_the_group() {
    let mut sim = Simulation::of(&three());
    sim.runs("leader", [Run::drift().of("two")]);
    sim.event("leader");
    sim.settle();
    let is_drift = |what: &EventKind| matches!(what, EventKind::Drift { .. } | EventKind::Repaired { .. });
    assert_eq!(told(&sim, is_drift), ["two in leader", "two in leader"]);
    let said = [
        "leader drift",
        "svc[s] refresh pending by leader",
        "svc[s] ok",
        "svc[s] refresh consumed",
    ];
    assert_eq!(sim.take(), said);
}

#[test]
fn a_failed_member_is_blamed_and_fails_the_group() {
    let mut sim = Simulation::of(&three());
    sim.runs("leader", [Run::fails("find it").of("one")]);
    sim.event("leader");
    sim.settle();
    let is_failed =
        |what: &EventKind| matches!(what, EventKind::MemberFailed { error } if &**error == "find it");
    assert_eq!(told(&sim, is_failed), ["one in leader"]);
    assert_eq!(sim.state("one"), VertexState::GaveUp);
    assert_eq!(sim.state("leader"), VertexState::Clean, "the others are right");
}

#[test]
fn a_member_that_may_not_be_repaired_notifies_nobody() {
    let graph = Graph::new(&["leader", "svc[s]"])
        .with("one", |meta| meta.noop = true)
        .edges("one => svc[s]")
        .group("leader", &["one"]);
    let mut sim = Simulation::of(&graph);
    sim.runs("leader", [Run::drift().of("one")]);
    sim.event("leader");
    sim.settle();
    assert_eq!(sim.take(), ["leader drift"]);
    assert!(!sim.has("one", |what| matches!(what, EventKind::Repaired { .. })));
}

#[test]
fn a_run_takes_the_semaphores_of_all_members() {
    let sema = |name: &'static str| move |meta: &mut MetaParameters| meta.sema = vec![name.into()];
    let graph = Graph::default()
        .with("leader", sema("x"))
        .with("one", sema("y"))
        .with("two", sema("x"))
        .with("rival", sema("y"))
        .group("leader", &["one", "two"]);
    let mut sim = Simulation::new();
    for name in ["leader", "rival"] {
        sim.always(name, Run::ok().takes(s(1)));
    }
    sim.swap(&graph);
    sim.settle();
    let running = |sim: &Simulation, name: &str| matches!(sim.state(name), VertexState::Running(_));
    assert!(running(&sim, "leader") && !running(&sim, "rival"));
    sim.advance(s(1));
    assert!(running(&sim, "rival"));
}

#[test]
fn members_send_and_receive_as_themselves() {
    let graph = Graph::new(&["a", "leader", "one", "two", "z"])
        .sends("a", "one")
        .sends("two", "z")
        .group("leader", &["one", "two"]);
    let mut sim = Simulation::new();
    sim.always("a", Run::sends("from a"));
    sim.always("leader", Run::sends("from two"));
    sim.swap(&graph);
    sim.settle();
    assert_eq!(sim.content["one"], Some(Value::str("from a")));
    assert_eq!(sim.content["leader"], None);
    assert_eq!(sim.content["z"], Some(Value::str("from two")));
    let is_received = |what: &EventKind| matches!(what, EventKind::Received { .. });
    assert_eq!(told(&sim, is_received), ["one in leader", "z"]);
    let is_sent = |what: &EventKind| matches!(what, EventKind::Sent { .. });
    let senders = ["a", "leader", "one in leader", "two in leader"];
    assert_eq!(told(&sim, is_sent), senders);
    let from = sim.events.iter().find_map(|event| match &event.what {
        EventKind::Received { from, .. } if event.name.as_deref() == Some("z") => Some(from.clone()),
        _ => None,
    });
    assert_eq!(from.as_deref(), Some("thing[two]"));

    // A changed value makes the group run, and what a member sends makes its receiver run.
    sim.take();
    sim.always("a", Run::sends("more"));
    sim.always("leader", Run::sends("of it"));
    sim.event("a");
    sim.settle();
    assert_eq!(sim.ran(), ["a", "leader", "z"]);
    assert_eq!(sim.content["one"], Some(Value::str("more")));
    assert_eq!(sim.content["z"], Some(Value::str("of it")));
    // What did not change does not.
    sim.event("a");
    sim.settle();
    assert_eq!(sim.ran(), ["a"]);
}

#[test]
fn a_member_that_is_no_longer_sent_anything_has_what_the_program_says() {
    let graph = |sends: bool| {
        let graph = Graph::new(&["a", "leader"]).with_content("one", "written", |_| {});
        let graph = if sends { graph.sends("a", "one") } else { graph };
        graph.group("leader", &["one"])
    };
    let mut sim = Simulation::new();
    sim.always("a", Run::sends("sent"));
    sim.swap(&graph(true));
    sim.settle();
    assert_eq!(sim.content["one"], Some(Value::str("sent")));
    sim.swap(&graph(false));
    sim.settle();
    assert_eq!(sim.content["one"], Some(Value::str("written")));
    assert!(
        !sim.has("leader", |what| matches!(what, EventKind::Removed { .. })),
        "it is kept"
    );
}

#[test]
fn a_member_that_never_sent_is_named() {
    let graph = Graph::new(&["leader", "one", "z"])
        .sends("one", "z")
        .group("leader", &["one"]);
    let mut sim = Simulation::new();
    sim.swap(&graph);
    sim.settle();
    let error = sim
        .machine
        .status()
        .into_iter()
        .find_map(|status| status.error)
        .unwrap();
    assert_eq!(&*error, "run: received nothing from thing[one]");
}

#[test]
fn a_changed_member_replaces_its_group_and_nothing_else() {
    let graph = |content: &str| {
        Graph::new(&["leader", "other"])
            .with_content("one", content, |_| {})
            .with_content("two", "same", |_| {})
            .group("leader", &["one", "two"])
    };
    let mut sim = Simulation::of(&graph("1"));
    sim.swap(&graph("1"));
    sim.settle();
    assert_eq!(
        sim.take(),
        Vec::<String>::new(),
        "equal members make an equal group"
    );
    sim.swap(&graph("2"));
    sim.settle();
    assert_eq!(sim.take(), ["leader removed", "leader ok"]);
    let last = sim.events.iter().rev().find_map(|event| match &event.what {
        EventKind::GraphAccepted {
            added,
            removed,
            changed,
            kept,
        } => Some([*added, *removed, *changed, *kept]),
        _ => None,
    });
    assert_eq!(last, Some([0, 0, 1, 3]));
}

#[test]
fn nothing_is_added_while_it_is_still_applied_elsewhere() {
    let names = ["leader", "one", "other"];
    let alone = Graph::new(&names);
    let in_leader = Graph::new(&names).group("leader", &["one"]);
    let in_other = Graph::new(&names).group("other", &["one"]);
    let graphs = [&alone, &in_leader, &in_other];
    for before in graphs {
        for after in graphs {
            let mut sim = Simulation::of(before);
            for name in names {
                sim.runs(name, [Run::ok().takes(s(10))]);
                sim.host(name).cleanup_takes = s(1);
            }
            for id in before.desired.resources.keys() {
                sim.event(&id.name);
            }
            sim.settle();
            sim.swap(after);
            // The simulation complains when something of one identity is there twice.
            sim.advance(s(30));
            for id in after.desired.resources.keys() {
                assert_eq!(sim.state(&id.name), VertexState::Clean);
            }
        }
    }
}

#[test]
fn a_newer_swap_supersedes_what_waits_for_a_member() {
    let names = ["leader", "one"];
    let alone = Graph::new(&names);
    let group = Graph::new(&names).group("leader", &["one"]);
    let mut sim = Simulation::of(&alone);
    sim.runs("one", [Run::ok().takes(s(10))]);
    sim.event("one");
    sim.settle();
    sim.swap(&group);
    sim.advance(s(1));
    assert_eq!(sim.state("leader"), VertexState::WaitingToBeAdded);
    sim.swap(&alone);
    sim.settle();
    assert_eq!(
        sim.state("leader"),
        VertexState::Clean,
        "it waits for nobody any more"
    );
    sim.advance(s(10));
    assert_eq!(sim.state("one"), VertexState::Clean);
}

#[test]
fn who_pokes_a_member_pokes_its_group() {
    let mut sim = Simulation::of(&three());
    sim.recheck("two");
    sim.settle();
    assert_eq!(sim.ran(), ["leader"]);
}

#[test]
fn a_notification_outlives_an_edge_that_comes_to_stand_for_others() {
    let graph = |names: &[&str]| {
        let all = Graph::new(&["leader", "one", "two"]).with("svc[s]", |meta| meta.rewatch = true);
        let notifying = names.iter().map(|name| format!("{name} => svc[s]"));
        let all = notifying.fold(all, |graph, edge| graph.edges(&edge));
        all.group("leader", &["one", "two"])
    };
    let mut sim = Simulation::of(&graph(&["leader", "one"]));
    sim.runs("svc[s]", [Run::fails("restart")]);
    sim.runs("leader", [Run::drift()]);
    sim.event("leader");
    sim.settle();
    assert_eq!(sim.state("svc[s]"), VertexState::GaveUp);
    sim.swap(&graph(&["two"]));
    sim.settle();
    let is_consumed = |what: &EventKind| matches!(what, EventKind::RefreshConsumed { .. });
    assert!(sim.has("svc[s]", is_consumed));
}

#[test]
fn what_comes_after_a_member_waits_for_that_member_alone() {
    let graph = Graph::new(&[
        "leader",
        "one",
        "two",
        "after_one",
        "after_two",
        "after_both",
        "svc[t]",
        "svc[f]",
        "far",
    ])
    .edges("one -> after_one")
    .edges("after_one -> far")
    .edges("two -> after_two")
    .edges("one -> after_both")
    .edges("two -> after_both")
    .edges("two => svc[t]")
    .edges("one => svc[f]")
    .group("leader", &["one", "two"]);
    let mut sim = Simulation::new();
    sim.runs("leader", [Run::fails("find it").of("one")]);
    sim.swap(&graph);
    sim.settle();
    assert_eq!(sim.ran(), ["leader", "svc[t]", "after_two"]);
    let blocked = |name: &str| match sim.state(name) {
        VertexState::BlockedBy(by) => by.to_string(),
        state => format!("{state:?}"),
    };
    for name in ["after_one", "after_both", "far", "svc[f]"] {
        assert_eq!(blocked(name), id("one").to_string(), "{name}");
    }
    let status = |name: &str| sim.machine.status_of(&[id(name)]).remove(0);
    assert_eq!(status("one").standing, Standing::Failed);
    assert_eq!(status("one").error.as_deref(), Some("find it"));
    for name in ["leader", "two"] {
        assert_eq!(
            (status(name).standing, status(name).error),
            (Standing::Right, None),
            "{name}"
        );
    }
    let counts = sim.machine.summary(sim.now).counts;
    assert_eq!((counts.failed, counts.right, counts.blocked), (1, 4, 4));
    let is_end = |what: &EventKind| matches!(what, EventKind::GaveUp { .. });
    assert_eq!(told(&sim, is_end), ["one in leader"]);
}

#[test]
fn a_member_that_was_repaired_notifies_although_another_failed() {
    let graph = Graph::new(&["leader", "one", "two", "svc[t]", "svc[f]"])
        .edges("two => svc[t]")
        .edges("one => svc[f]")
        .group("leader", &["one", "two"]);
    let mut sim = Simulation::of(&graph);
    sim.runs("leader", [Run::fails("find it").of("one").but_repairs("two")]);
    sim.event("leader");
    sim.settle();
    let is_repair = |what: &EventKind| matches!(what, EventKind::Repaired { .. });
    assert_eq!(told(&sim, is_repair), ["two in leader"]);
    let said = sim.take();
    assert!(said.contains(&"svc[t] refresh consumed".to_owned()), "{said:?}");
    assert!(
        !said.iter().any(|line| line.starts_with("svc[f] refresh")),
        "{said:?}"
    );
}
