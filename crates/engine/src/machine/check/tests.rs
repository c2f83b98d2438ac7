//! That the check can fail: each rule, broken by hand in a machine that was right.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use setpoint_diagnostics::{FileId, Span};
use setpoint_graph::{
    DesiredEdge, DesiredGraph, DesiredMembers, DesiredResource, KindSchema, MetaParameters, Parameters,
    ResourceId,
};

use super::super::edges::{Edge, Refresh};
use super::super::life::Pending;
use super::super::{Action, Armed, Initialised, Input, Machine, Options, RunResult};
use crate::Failure;

static THING: KindSchema = KindSchema::plain("thing", "A thing.", &[]);

fn id(name: &str) -> ResourceId {
    ResourceId::new("thing", name)
}

/// `a` notifies `b`, which comes before `c`; `p` and `q` want the one semaphore; `r` stands alone.
fn graph() -> DesiredGraph {
    let mut graph = DesiredGraph::default();
    for name in ["a", "b", "c", "p", "q", "r", "gone"] {
        let mut meta = MetaParameters::default();
        if ["p", "q"].contains(&name) {
            meta.sema = vec!["s:1".to_owned()];
        }
        (meta.retry, meta.delay) = (1, 1000);
        let resource = DesiredResource {
            id: id(name),
            schema: &THING,
            parameters: Parameters::new([]),
            meta: meta.into(),
            span: Span::new(FileId(0), 0, 0),
            parameter_spans: Arc::new([]),
            chain: None,
            members: DesiredMembers::default(),
        };
        graph.resources.insert(id(name), Arc::new(resource));
    }
    for (from, to, notify) in [("a", "b", true), ("b", "c", false)] {
        let edge = desired_edge(from, to, notify);
        graph.edges.insert((id(from), id(to)), Arc::new(edge));
    }
    graph.generation = 1;
    graph
}

fn desired_edge(from: &str, to: &str, notify: bool) -> DesiredEdge {
    DesiredEdge {
        from: id(from),
        to: id(to),
        notify,
        send: Vec::new(),
        span: Span::new(FileId(0), 0, 0),
        parts: None,
    }
}

fn slot(machine: &Machine, name: &str) -> usize {
    machine.index.get(&id(name), &machine.vertices)[0] as usize
}

/// Gives an input, and answers all that the machine asks for. Runs of `stay` do not end, those of `fail` fail.
fn tell(machine: &mut Machine, input: Input, stay: &[&str], fail: &[&str]) {
    let mut inputs = VecDeque::from([input]);
    while let Some(input) = inputs.pop_front() {
        for action in machine.step(machine.now, input).list {
            match action {
                Action::Init { vertex, arm, .. } => {
                    let result = Ok(Initialised::default());
                    inputs.push_back(Input::InitEnded { vertex, result });
                    if arm {
                        let result = Ok(Armed::default());
                        inputs.push_back(Input::WatchArmed { vertex, result });
                    }
                }
                Action::Arm { vertex } => {
                    let result = Ok(Armed::default());
                    inputs.push_back(Input::WatchArmed { vertex, result });
                }
                Action::Run { vertex, .. } => {
                    let is_among =
                        |names: &[&str]| names.iter().any(|name| slot(machine, name) == vertex.index());
                    if is_among(stay) {
                        continue;
                    }
                    let result = if is_among(fail) {
                        RunResult::failed(Failure::new("break"))
                    } else {
                        RunResult::ok()
                    };
                    inputs.push_back(Input::RunEnded { vertex, result });
                }
                Action::Cleanup { vertex, .. } => {
                    inputs.push_back(Input::CleanupEnded {
                        vertex,
                        failure: None,
                    });
                }
                _ => {}
            }
        }
        assert_eq!(machine.check(), Ok(()));
    }
}

fn event(machine: &Machine, names: &[&str]) -> Input {
    let events = names
        .iter()
        .map(|name| (machine.id(slot(machine, name) as u32), (*name).into()));
    Input::WatchEvents(events.collect())
}

/// All is right, and the slot of a resource that went is free.
fn quiet() -> Machine {
    let options = Options {
        jobs: 2,
        ..Options::default()
    };
    let mut machine = Machine::new(options);
    tell(&mut machine, Input::NewGraph(graph()), &[], &[]);
    let mut smaller = graph();
    smaller.resources.remove(&id("gone"));
    smaller.generation = 2;
    tell(&mut machine, Input::NewGraph(smaller), &[], &[]);
    machine
}

/// These are looked at, and those that are named second go on running.
fn looking(at: &[&str], stay: &[&str]) -> Machine {
    let mut machine = quiet();
    let input = event(&machine, at);
    tell(&mut machine, input, stay, &[]);
    machine
}

/// `a` runs and `b` waits for it; of `p` and `q` one runs with the semaphore and the other waits for that.
fn under_way() -> Machine {
    looking(&["a", "b", "p", "q"], &["a", "p", "q"])
}

/// `a` has failed and will be tried again; `b` waits behind it.
fn failed() -> Machine {
    let mut machine = quiet();
    let input = event(&machine, &["a", "b"]);
    tell(&mut machine, input, &[], &["a"]);
    machine
}

/// `a` could run but for the pause.
fn paused() -> Machine {
    let mut machine = quiet();
    tell(&mut machine, Input::Pause, &[], &[]);
    let input = event(&machine, &["a"]);
    tell(&mut machine, input, &[], &[]);
    machine
}

/// Two of these run, which are as many as may; the third could.
fn full() -> Machine {
    looking(&["a", "p", "r"], &["a", "p", "r"])
}

fn edge(machine: &Machine, from: &str, to: &str) -> u32 {
    let (from, to) = (slot(machine, from), slot(machine, to));
    machine
        .edges
        .find(from as u32, to as u32)
        .expect("an edge between them")
}

macro_rules! vertex {
    ($machine:expr, $name:expr) => {{
        let slot = slot($machine, $name);
        &mut $machine.vertices[slot]
    }};
}

fn add_edge(machine: &mut Machine, from: u32, to: u32) -> u32 {
    machine.edges.insert(Edge {
        from,
        to,
        desired: Arc::new(desired_edge("b", "c", false)),
        refresh: Refresh::None,
        perhaps: false,
    })
}

type Broken = (fn() -> Machine, fn(&mut Machine), &'static str);

const BROKEN: &[Broken] = &[
    (quiet, |m| m.running += 1, "1 are counted as running, 0 are"),
    (quiet, |m| m.alive += 1, "7 are counted as alive, 6 are"),
    (quiet, |m| m.busy += 1, "1 are counted as busy, 0 are"),
    (quiet, |m| m.blocked += 1, "1 are counted as blocked, 0 are"),
    (
        quiet,
        |m| {
            m.failed.insert(0);
        },
        "1 are counted as failed, 0 are",
    ),
    (under_way, |m| m.options.jobs = 1, "2 runs at once"),
    (under_way, |m| m.options.jobs = 0, "2 runs at once"),
    (
        under_way,
        |m| {
            let one = m.semaphores.wanted(["s:1"]);
            m.semaphores.release(&one);
        },
        "semaphore s:1: 0 counted, 1 held, 1 allowed",
    ),
    (
        quiet,
        |m| {
            let one = m.semaphores.wanted(["s:1"]);
            m.semaphores.grant(&one);
        },
        "semaphore s:1: 1 counted, 0 held, 1 allowed",
    ),
    (
        quiet,
        |m| vertex!(m, "b").incoming.clear(),
        "is not at both its ends",
    ),
    (
        quiet,
        |m| vertex!(m, "a").outgoing.clear(),
        "is not at both its ends",
    ),
    (
        quiet,
        |m| {
            let (from, to) = (slot(m, "a") as u32, slot(m, "b") as u32);
            let twin = add_edge(m, from, to);
            vertex!(m, "a").outgoing.push(twin);
            vertex!(m, "b").incoming.push(twin);
        },
        "is not at both its ends",
    ),
    (
        quiet,
        |m| {
            let there = edge(m, "a", "b");
            vertex!(m, "p").incoming.push(there);
        },
        "a vertex has an edge that does not exist",
    ),
    (
        quiet,
        |m| {
            let there = edge(m, "a", "b");
            vertex!(m, "p").outgoing.push(there);
        },
        "a vertex has an edge that does not exist",
    ),
    (
        quiet,
        |m| {
            let there = edge(m, "a", "b");
            m.edges.get_mut(there).refresh = Refresh::Taken;
        },
        "is taken, but no run serves it",
    ),
    (
        quiet,
        |m| {
            let there = edge(m, "b", "c");
            m.edges.get_mut(there).refresh = Refresh::Pending;
        },
        "does not notify, but its bit is set",
    ),
    (
        quiet,
        |m| vertex!(m, "b").height = vertex!(m, "c").height,
        "does not go downwards",
    ),
    (quiet, |m| vertex!(m, "a").height = 0, "does not go downwards"),
    (
        quiet,
        |m| vertex!(m, "p").seen.touched = true,
        "not looked at after it changed",
    ),
    (
        quiet,
        |m| {
            let free = m.free[0];
            let from = slot(m, "a") as u32;
            let stray = add_edge(m, from, free);
            vertex!(m, "a").outgoing.push(stray);
            m.vertices[free as usize].incoming.push(stray);
        },
        "free but not empty",
    ),
    (
        quiet,
        |m| vertex!(m, "p").seen.locally_settled = false,
        "others believe the contrary",
    ),
    (
        under_way,
        |m| vertex!(m, "a").search.settled_epoch = m.epoch,
        "remembered as settled but is not",
    ),
    (
        under_way,
        // It is right itself, but behind others that are not.
        |m| vertex!(m, "c").search.settled_epoch = m.epoch,
        "remembered as settled but is not",
    ),
    (
        quiet,
        |m| vertex!(m, "p").wanted = None,
        "something else is wanted",
    ),
    (
        failed,
        |m| m.now += Duration::from_secs(2),
        "waits beyond its time",
    ),
    (
        quiet,
        |m| {
            let p = vertex!(m, "p");
            p.life.as_mut().expect("it lives").become_due(Pending {
                by_watch: true,
                wait: None,
            });
            p.seen.locally_settled = false;
            p.search.settled_epoch = 0;
            m.busy += 1;
        },
        "must run but waits for nothing",
    ),
    (under_way, |m| m.waiters.clear(), "waits for what has come"),
    (
        under_way,
        |m| vertex!(m, "a").seen.obstructs = Some(0),
        "blocked by something else than what it waits for",
    ),
    (paused, |m| m.paused = None, "ready but not started"),
    (full, |m| m.options.jobs = 3, "ready but not started"),
    (quiet, |m| m.counts.right -= 1, "is counted"),
];

#[test]
fn every_rule_that_is_broken_is_found() {
    for (at, (machine, break_it, expected)) in BROKEN.iter().enumerate() {
        let mut machine = machine();
        break_it(&mut machine);
        let found = machine.check().expect_err(expected);
        assert!(found.contains(expected), "{at}: {found}, not {expected}");
    }
}

#[test]
fn what_a_running_resource_has_taken_and_what_waits_for_a_failed_one_is_in_order() {
    let mut machine = looking(&["b"], &["b"]);
    let there = edge(&machine, "a", "b");
    machine.edges.get_mut(there).refresh = Refresh::Taken;
    assert_eq!(machine.check(), Ok(()));
    let machine = failed();
    assert_eq!(
        (machine.blocked, machine.failed.len(), machine.waiters.len()),
        (0, 0, 1),
        "it will be tried again"
    );
}

#[test]
fn settled_is_what_is_right_behind_nothing_but_what_is() {
    let settled = |machine: &Machine| {
        ["a", "b", "c", "p", "q"].map(|name| machine.is_settled(machine.id(slot(machine, name) as u32)))
    };
    assert_eq!(settled(&quiet()), [true; 5]);
    assert_eq!(
        settled(&looking(&["a", "b", "p"], &["a", "p"])),
        [false, false, false, false, true]
    );
    assert_eq!(
        settled(&looking(&["a"], &["a"])),
        [false, false, false, true, true]
    );
    assert_eq!(
        settled(&looking(&["b"], &["b"])),
        [true, false, false, true, true]
    );
    assert_eq!(settled(&looking(&["c"], &["c"])), [true, true, false, true, true]);
    let machine = quiet();
    let free = machine.id(machine.free[0]);
    assert!(!machine.is_settled(free));
}

#[test]
fn a_member_lives_where_it_is_known_to_and_nowhere_else() {
    let mut machine = quiet();
    let mut grouped = graph();
    grouped.generation = 3;
    let member = grouped.resources.remove(&id("gone")).unwrap();
    let (parent, alone) = grouped
        .resources
        .iter()
        .find(|(_, resource)| resource.meta.sema.is_empty())
        .unwrap();
    let group = DesiredResource {
        members: DesiredMembers::new([member]),
        ..(**alone).clone()
    };
    grouped.resources.insert(parent.clone(), Arc::new(group));
    tell(&mut machine, Input::NewGraph(grouped), &[], &[]);
    assert_eq!(machine.check(), Ok(()));
    let home = machine.homes.remove(&id("gone")).unwrap();
    assert!(machine.check().is_err());
    machine.homes.insert(id("gone"), home + 1);
    assert!(machine.check().is_err());
    machine.homes.insert(id("gone"), home);
    machine.homes.insert(id("elsewhere"), home);
    assert!(machine.check().is_err());
    machine.homes.remove(&id("elsewhere"));
    assert_eq!(machine.check(), Ok(()));
}
