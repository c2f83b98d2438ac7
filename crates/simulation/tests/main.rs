//! Random scripts hold every rule; what was once wrong stays right; and a script is the same each time.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "tests say what they expect"
)]

use setpoint_graph::MetaParameters;
use setpoint_simulation::{Arrow, Bond, Program, Role, Rule, Script, Statistics, Step, Wanted};

/// Steps of the machine to make; `SETPOINT_SIMULATED_STEPS` says otherwise.
const STEPS: u64 = 1_000_000;

fn role(text: &str) -> Role {
    Role::all()
        .find(|role| role.to_string() == text)
        .expect("a role of the cast")
}

fn wanted(text: &str, content: u8, change: impl FnOnce(&mut MetaParameters)) -> Wanted {
    let mut meta = MetaParameters::default();
    change(&mut meta);
    let role = role(text);
    Wanted { role, content, meta }
}

fn arrow(from: &str, bond: Bond, to: &str) -> Arrow {
    let (from, to) = (role(from), role(to));
    Arrow { from, to, bond }
}

fn script(steps: Vec<Step>) -> Script {
    Script {
        seed: 0,
        jobs: 4,
        keep_trying: true,
        noop: false,
        steps,
    }
}

fn holds(steps: Vec<Step>) {
    if let Err(violation) = script(steps).play() {
        panic!("{violation}\n{}", violation.script.history().join("\n"));
    }
}

/// Plays one seed of two after the other, from `first` on.
fn the_rules_hold(first: u64) {
    let steps = std::env::var("SETPOINT_SIMULATED_STEPS").map_or(STEPS, |text| text.parse().unwrap()) / 2;
    let mut done = Statistics::default();
    let mut seed = first;
    while done.steps < steps {
        match Script::random(seed).play() {
            Ok(statistics) => done.add(statistics),
            Err(violation) => {
                let short = violation.script.shorten(violation.rule);
                panic!(
                    "seed {seed}: {violation}\nshortened:\n{short}\n{}",
                    short.history().join("\n")
                );
            }
        }
        seed += 2;
    }
    println!("seeds {first}, {} to {}: {done:?}", first + 2, seed - 2);
    // Much of each has happened, or the rules have seen nothing.
    let rare = [done.swaps, done.repairs, done.processes];
    assert!(rare.iter().all(|count| *count > steps / 1000), "{done:?}");
    assert!(done.refreshes > steps / 3000, "{done:?}");
    assert!(done.undone > steps / 10_000, "{done:?}");
    assert!(done.exported > steps / 200, "{done:?}");
}

#[test]
fn the_rules_hold_whatever_happens_by_even_seeds() {
    the_rules_hold(0);
}

#[test]
fn the_rules_hold_whatever_happens_by_odd_seeds() {
    the_rules_hold(1);
}

#[test]
fn the_same_script_gives_the_same_events() {
    for seed in [3, 17, 99] {
        let script = Script::random(seed);
        assert_eq!(script, Script::random(seed));
        let history = script.history();
        assert!(history.len() > 100);
        assert_eq!(history, script.history());
    }
}

#[test]
fn edges_hold_for_a_resource_that_is_no_longer_hidden() {
    let after = vec![arrow("service[j]", Bond::Order, "thing[l]")];
    holds(vec![
        Step::Swap(Program {
            resources: vec![
                wanted("service[j]", 2, |_| {}),
                wanted("thing[l]", 1, |meta| meta.hidden = true),
            ],
            arrows: after.clone(),
            ..Program::default()
        }),
        Step::Slow(role("service[j]"), 1000),
        Step::Swap(Program {
            resources: vec![wanted("service[j]", 1, |_| {}), wanted("thing[l]", 2, |_| {})],
            arrows: after,
            ..Program::default()
        }),
    ]);
}

#[test]
fn what_no_longer_says_how_often_it_is_tried_is_tried_until_it_is_right() {
    let once = |meta: &mut MetaParameters| meta.written.insert(setpoint_graph::MetaName::Retry);
    let only = |wanted| Program {
        resources: vec![wanted],
        ..Program::default()
    };
    holds(vec![
        Step::Failing {
            role: role("thing[i]"),
            runs: 2,
            after_repair: true,
        },
        Step::Swap(only(wanted("thing[i]", 2, once))),
        Step::Pass(1000),
        Step::Swap(only(wanted("thing[i]", 2, |_| {}))),
    ]);
}

#[test]
fn a_history_tells_every_step_and_event() {
    let history = script(vec![
        Step::Swap(Program {
            resources: vec![wanted("thing[a]", 1, |_| {})],
            ..Program::default()
        }),
        Step::Pass(1000),
        Step::Drift {
            roles: vec![role("thing[a]")],
            latency: 0,
        },
        Step::Crash { repaired: false },
    ])
    .history();
    let count = |part: &str| history.iter().filter(|line| line.contains(part)).count();
    // Brought in by both processes; repaired at first, and what the crash left by the second.
    assert_eq!(count("\"event\":\"added\""), 2, "{history:#?}");
    assert_eq!(count("\"event\":\"repaired\""), 2, "{history:#?}");
    assert_eq!(count("== Crash"), 1, "{history:#?}");
}

#[test]
fn what_breaks_a_rule_is_shortened_to_what_matters() {
    // A host whose clock is not to be had: it wants more than can be, and so breaks a rule for sure.
    let mut impossible = Script::random(5);
    impossible.jobs = 0;
    let violation = impossible.play().unwrap_err();
    assert_eq!(violation.rule, Rule::Jobs);
    let short = violation.script.shorten(Rule::Jobs);
    let [Step::Swap(program)] = &short.steps[..] else {
        panic!("{short}");
    };
    assert_eq!(program.resources.len(), 1, "{short}");
    assert!(
        short
            .history()
            .last()
            .unwrap()
            .contains("no more runs at once than allowed")
    );
    assert!(violation.to_string().contains("seed 5"));
}
