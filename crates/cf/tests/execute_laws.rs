//! Laws of execution, tried with random models.

use proptest::prelude::*;
use setpoint_cf::execute::{Options, Slot, json};
use setpoint_diagnostics::MemoryLoader;

use crate::model;

/// How many instances the random models have.
const INSTANCES: usize = 5;

const DEFINITIONS: &str = r#"
entity A:
    string name
    string label
end
index A(name)
A.os [0:] -- A.back [0:]
A.ps [0:] -- A
A.o [0:1] -- A
implement A using std::none
implement A using labels when name != "" and self.name != "-"
implementation labels for A:
    self.label = "<{{ name }}>"
end
"#;

/// One statement whose effect does not depend on when it runs. `at` makes its variables different from all others. Relations that are linked to
/// each other promise to add to each other, and only a guess ends that; so what depends on counts is in models without links.
fn statement(at: usize, is_linked: bool) -> impl Strategy<Value = String> {
    let instance = 0..INSTANCES;
    (
        0..5_usize,
        instance.clone(),
        instance.clone(),
        instance,
        0..3_usize,
    )
        .prop_map(move |(which, a, b, c, n)| match (which, is_linked) {
            (0, _) => format!("a{a}.os += a{b}"),
            (1, _) => format!("l{at} = A[name=\"a{a}\"]\nm{at} = l{at}.label + a{b}.label"),
            (2, true) => format!("a{a}.os = a{b}.os"),
            (3, true) => format!("a{a}.os = [m for m in a{b}.os if m.name != \"a{c}\"]"),
            (_, true) => format!("for m in a{a}.os:\n    m.back += a{c}\nend"),
            (2, false) => {
                format!("if std::count(a{a}.os) > {n}:\n    a{b}.ps += a{c}\nelse:\n    a{c}.ps += a{a}\nend")
            }
            (3, false) => format!("p{at} = std::count(a{a}.ps) + {n}"),
            (_, false) => format!("a{a}.back += [x for x in [a{b}, a{c}]]"),
        })
}

/// The statements of a model: instances, then others.
fn statements() -> impl Strategy<Value = Vec<String>> {
    let others = any::<bool>()
        .prop_flat_map(|is_linked| (0..12).map(|at| statement(at, is_linked)).collect::<Vec<_>>());
    others.prop_map(|mut others| {
        let mut statements: Vec<String> = (0..INSTANCES)
            .map(|a| format!("a{a} = A(name=\"a{a}\")"))
            .collect();
        statements.append(&mut others);
        statements
    })
}

/// What a model gives, in a form that does not depend on the order of creation or arrival.
fn outcome(statements: &[String]) -> String {
    let text = format!("{DEFINITIONS}{}\n", statements.join("\n"));
    let loader = MemoryLoader::new().with("main.cf", &text);
    let outcome = model::run(&loader, &model::inputs());
    let errors: Vec<String> = outcome
        .diagnostics()
        .map(|found| format!("{}: {}", found.code.code, found.message))
        .collect();
    assert!(errors.is_empty(), "{errors:?}\n{text}");
    let (model, execution) = outcome.executed.as_ref().expect("there is no error");
    let object = json::execution(execution, model, &outcome.sources);
    let name_of = |value: &serde_json::Value| {
        let instance = object["instances"]
            .as_array()
            .and_then(|all| all.iter().find(|one| one["id"] == value["$ref"]));
        instance.map_or_else(|| value.to_string(), |found| found["attrs"]["name"].to_string())
    };
    let mut lines = Vec::new();
    for (name, value) in object["vars"].as_object().into_iter().flatten() {
        lines.push(format!("{name} = {}", name_of(value)));
    }
    for instance in object["instances"].as_array().into_iter().flatten() {
        for (name, value) in instance["attrs"].as_object().into_iter().flatten() {
            let text = match value.as_array() {
                Some(elements) => {
                    let mut elements: Vec<String> = elements.iter().map(name_of).collect();
                    elements.sort();
                    elements.join(" ")
                }
                None => value.to_string(),
            };
            lines.push(format!("{}.{name} = {text}", instance["attrs"]["name"]));
        }
    }
    lines.sort();
    lines.join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_statements_does_not_matter(
        (given, shuffled) in statements().prop_flat_map(|given| (Just(given.clone()), Just(given).prop_shuffle()))
    ) {
        prop_assert_eq!(outcome(&given), outcome(&shuffled), "{}", shuffled.join("\n"));
    }
}

#[test]
fn the_same_model_gives_the_same_twice() {
    let text = format!(
        "{DEFINITIONS}a = A(name=\"a\", os=[A(name=\"b\"), A(name=\"c\")])\nn = std::count(a.os)\nu = std::get_env(\"NOPE\")\n"
    );
    let run = || {
        let loader = MemoryLoader::new().with("main.cf", &text);
        let outcome = model::run(&loader, &model::inputs());
        let (model, execution) = outcome.executed.as_ref().expect("the model is right");
        json::execution(execution, model, &outcome.sources).to_string()
    };
    assert_eq!(run(), run());
}

/// The errors of a model, with bounds.
fn errors(text: &str, options: &Options) -> Vec<String> {
    let loader = MemoryLoader::new().with("main.cf", text);
    let outcome = model::run_with(&loader, &model::inputs(), options);
    outcome
        .diagnostics()
        .map(|found| format!("{} {}", found.code.code, found.message))
        .collect()
}

#[test]
fn endless_models_end() {
    let entity = "entity E:\nend\nE.es [0:] -- E\nimplement E using ";
    let nested = format!("{entity}i\nimplementation i for E:\n    E()\nend\nE()\n");
    let growing = format!("{entity}std::none\ne = E()\ne.es += E()\nfor x in e.es:\n    e.es += E()\nend\n");
    let few = Options {
        max_instances: 1000,
        ..Options::default()
    };
    for model in [&nested, &growing] {
        assert_eq!(
            errors(model, &few),
            ["E0690 the model does not end: more than 1000 instances"]
        );
    }
    let units = Options {
        max_units: 5000,
        ..Options::default()
    };
    assert_eq!(
        errors(&nested, &units),
        ["E0690 the model does not end: more than 5000 units of work"]
    );
}

/// A model with so many instances; each has an index, an implementation and a relation to one of all.
fn of_instances(count: usize) -> String {
    format!(
        r#"
entity Group:
    string name
end
index Group(name)
implement Group using std::none

entity Host:
    string name
    string label
end
Host.group [1] -- Group.hosts [0:]
index Host(name)
implement Host using labelled
implementation labelled for Host:
    self.label = "<{{{{ name }}}}>"
end

group = Group(name="all")
for i in std::sequence({count}):
    Host(name="host{{{{ i }}}}", group=group)
end
n = std::count(group.hosts)
"#
    )
}

/// The budget of a large model, in work instead of time: so many units for an instance, however many there are. What is done in one of
/// them does not depend on that either, but for lists that the model itself makes; time is what `bench/models.sh` measures.
#[test]
fn ten_times_as_many_instances_take_ten_times_the_work() {
    // One of them finds the target of the assignment in the body.
    const UNITS: usize = 6;
    let bounded = |count: usize, units: usize| Options {
        max_instances: (count + 10) as u64,
        max_units: (units * count) as u64,
        ..Options::default()
    };
    for count in [10_000, 100_000] {
        let model = of_instances(count);
        assert_eq!(errors(&model, &bounded(count, UNITS)), [""; 0], "{count}");
        // It is counted: less is not enough.
        let too_few = format!(
            "E0690 the model does not end: more than {} units of work",
            (UNITS - 1) * count
        );
        assert_eq!(errors(&model, &bounded(count, UNITS - 1)), [too_few], "{count}");
    }
}

#[test]
fn each_keyword_is_refused_as_a_name() {
    let keywords = "typedef as entity extends end in implementation for matching index implement using when and or not true false \
        import is defined dict null undef parents if else elif";
    for keyword in keywords.split_whitespace() {
        let found = errors(&format!("{keyword} = 1\n"), &Options::default());
        let wanted = format!("E0502 `{keyword}` is a reserved keyword and cannot be a name");
        assert_eq!(found.first(), Some(&wanted));
    }
}

#[test]
fn rounds_of_freezing_are_bounded() {
    let text = format!(
        "{DEFINITIONS}a = A(name=\"a\")\nb = A(name=\"b\")\nx = std::count(a.os)\ny = std::count(b.os)\nz = std::count(b.ps)\n"
    );
    let few = Options {
        max_rounds: 2,
        ..Options::default()
    };
    let found = errors(&text, &few);
    assert_eq!(
        found,
        ["E0633 the model is not complete after 2 rounds of freezing relations"]
    );
    assert!(errors(&text, &Options::default()).is_empty());
}

#[test]
fn long_chains_do_not_overflow_the_stack() {
    // Each instance tells the next one what it is told, and attributes wait for each other all along the chain.
    let text = r#"
entity N:
    int n
    int deep
end
N.os [0:] -- N
N.next [0:1] -- N
index N(n)
implement N using link when n > 0
implement N using std::none when n == 0
implementation link for N:
    before = N[n=n - 1]
    self.os = before.os
    self.deep = before.deep + 1
    self.next = before
end
for n in std::sequence(20000):
    N(n=n)
end
first = N[n=0]
first.deep = 0
first.os += first
last = N[n=19999]
x = last.deep
y = std::count(last.os)
"#;
    let loader = MemoryLoader::new().with("main.cf", text);
    let outcome = model::run(&loader, &model::inputs());
    let found: Vec<String> = outcome.diagnostics().map(|found| found.message.clone()).collect();
    assert!(found.is_empty(), "{found:?}");
    let (_, execution) = outcome.executed.as_ref().expect("the model is right");
    let value = |name: &str| {
        let found = execution
            .variables
            .iter()
            .find(|(variable, _)| **variable == *name);
        found.map(|(_, slot)| match slot {
            Slot::Value(value) => format!("{value:?}"),
            Slot::Unset(class) => (*class).to_owned(),
        })
    };
    assert_eq!(value("x").as_deref(), Some("Int(19999)"));
    assert_eq!(value("y").as_deref(), Some("Int(1)"));
}
