//! Changed answers taken into an execution give what compiling from nothing gives: tried with random models and random changes.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value as Json;
use setpoint_cf::compile::{Compiled, compile};
use setpoint_cf::datum::Datum;
use setpoint_cf::execute::{Inputs, ReadKey};
use setpoint_cf::export::{
    Deferrals, HeldResource, LANGUAGE, Machine, Resource, StatementOf, machine_outputs, updated_outputs,
};
use setpoint_cf::{json, project};
use setpoint_diagnostics::{Diagnostics, MemoryLoader, SourceMap};
use setpoint_graph::{Assembler, DesiredGraph, Library};

const DEFINITIONS: &str = r#"
import setpoint

entity Node:
    string name
    string a
    string b = "plain"
    string c = "none"
end
index Node(name)
Node.links [0:] -- Node.linked [0:]
Node.next [0:1] -- Node
implement Node using plain
implement Node using loud when a == "x" or a == "xx"
implementation plain for Node:
    d = "{{ a }}{{ b }}"
    if d == "xplain":
        std::print("{{ name }} is x")
    end
end
implementation loud for Node:
    setpoint::Noop(name="loud {{ name }}", comment="{{ a }}!")
end
"#;

/// What decides about a model: small numbers, of which the missing ones are zero.
struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn below(&mut self, count: u8) -> u8 {
        self.0.next().copied().unwrap_or(0) % count
    }

    /// A text, of what is defined before the number `of`.
    fn text(&mut self, of: u8, depth: u8) -> String {
        let most = if depth == 0 { 8 } else { 14 };
        match self.below(most) {
            0 => "\"x\"".to_owned(),
            1 => format!("std::get_env(\"E{}\", \"x\")", self.below(3)),
            2 => format!("std::get_env(\"E{}\")", self.below(3)),
            3 if of > 0 => format!("v{}", self.below(of)),
            4 if of > 0 => format!("n{}.a", self.below(of)),
            5 if of > 0 => format!("n{}.c", self.below(of)),
            6 if of > 0 => format!("std::getfact(r{}, \"size\", \"x\")", self.below(of)),
            7 => "std::source(\"/text\")".to_owned(),
            8 if of > 0 => format!("std::template(\"/scope.j2\", t=v{})", self.below(of)),
            9 if of > 0 => format!("\"{{{{ v{} }}}}\" + {}", self.below(of), self.text(of, depth - 1)),
            10 => {
                let (condition, then) = (self.condition(of, depth - 1), self.text(of, depth - 1));
                format!("({condition} ? {then} : {})", self.text(of, depth - 1))
            }
            11 => format!("std::upper({})", self.text(of, depth - 1)),
            12 if of > 0 => format!("f\"<{{v{}}}>\"", self.below(of)),
            13 if of > 0 => "std::template(\"/free.j2\")".to_owned(),
            _ => "\"y\"".to_owned(),
        }
    }

    fn condition(&mut self, of: u8, depth: u8) -> String {
        match self.below(if depth == 0 { 2 } else { 5 }) {
            0 => format!("{} == \"x\"", self.text(of, 0)),
            1 => format!("{} in [\"x\", \"y\"]", self.text(of, 0)),
            2 => format!("not ({})", self.condition(of, depth - 1)),
            3 => format!(
                "({}) and ({})",
                self.condition(of, depth - 1),
                self.condition(of, depth - 1)
            ),
            _ => format!(
                "({}) or ({})",
                self.condition(of, depth - 1),
                self.condition(of, depth - 1)
            ),
        }
    }

    fn statement(&mut self, of: u8) -> String {
        match self.below(8) {
            0 => format!("std::print({})", self.text(of, 2)),
            1 => format!(
                "if {}:\n    n{}.links += n{}\nend",
                self.condition(of, 1),
                self.below(of),
                self.below(of)
            ),
            2 => format!("for m in n{}.links:\n    std::print(m.a)\nend", self.below(of)),
            3 => format!("l{{at}} = [m.a for m in n{}.links]", self.below(of)),
            4 => format!("n{}.links += n{}", self.below(of), self.below(of)),
            5 => format!("l{{at}} = std::count(n{}.links)", self.below(of)),
            6 => format!(
                "d{{at}} = {{\"k\": {}}}\nl{{at}} = d{{at}}[\"k\"]",
                self.text(of, 1)
            ),
            _ => format!("l{{at}} = [{}, {}]", self.text(of, 1), self.text(of, 1)),
        }
    }
}

/// Machines that wait for each other.
const MACHINES: [&str; 2] = ["one.example", "two.example"];

/// A model made from numbers.
fn model(choices: &[u8]) -> String {
    let mut choices = Choices(choices.iter());
    let mut text = DEFINITIONS.to_owned();
    let count = 2 + choices.below(3);
    for number in 0..count {
        let (v, a, b, c) = (
            choices.text(number, 2),
            choices.text(number, 1),
            choices.text(number, 1),
            choices.text(number, 2),
        );
        let _ = writeln!(text, "v{number} = {v}");
        let _ = writeln!(text, "n{number} = Node(name=\"n{number}\", a={a}, b={b})");
        let _ = writeln!(
            text,
            "r{number} = setpoint::File(name=\"/r{number}\", content={c}, mode=\"u=rw\")"
        );
        if choices.below(2) == 0 {
            let _ = writeln!(text, "n{number}.next = n0");
        }
        let machine = MACHINES[usize::from(choices.below(2))];
        let comment = choices.text(number, 1);
        let required: Vec<String> = (0..number)
            .filter(|_| choices.below(2) == 0)
            .map(|other| format!("g{other}"))
            .collect();
        let _ = writeln!(
            text,
            "g{number} = setpoint::Noop(name=\"g{number}\", machine=\"{machine}\", comment={comment}, requires=[{}])",
            required.join(", ")
        );
    }
    for at in 0..choices.below(6) {
        let statement = choices.statement(count).replace("{at}", &at.to_string());
        let _ = writeln!(text, "{statement}");
    }
    text
}

/// The world outside, made from numbers.
#[derive(Debug, Clone, PartialEq)]
struct World {
    environment: BTreeMap<Arc<str>, Arc<str>>,
    facts: BTreeMap<Arc<str>, String>,
    text: &'static str,
    template: &'static str,
}

impl World {
    fn of(choices: &[u8]) -> World {
        let mut choices = Choices(choices.iter());
        let values = ["x", "y", "xx"];
        let mut world = World {
            environment: BTreeMap::new(),
            facts: BTreeMap::new(),
            text: values[usize::from(choices.below(3))],
            template: ["{{ t }}", "<{{ t }}>", "{{ t | std.upper }}"][usize::from(choices.below(3))],
        };
        for number in 0..3 {
            if let Some(value) = values.get(usize::from(choices.below(4))) {
                world
                    .environment
                    .insert(format!("E{number}").into(), Arc::from(*value));
            }
            if let Some(value) = values.get(usize::from(choices.below(4))) {
                world
                    .facts
                    .insert(format!("*/file[/r{number}]/size").into(), (*value).to_owned());
            }
        }
        world
    }

    fn inputs(&self) -> Inputs {
        let facts = self.facts.iter();
        Inputs {
            environment: self.environment.clone(),
            facts: facts
                .map(|(key, value)| (key.clone(), Datum::text(value.as_str())))
                .collect(),
            record: true,
            ..Inputs::default()
        }
    }

    fn loader(&self, model: &str) -> MemoryLoader {
        MemoryLoader::new()
            .with("main.cf", model)
            .with("files/text", self.text)
            .with("templates/scope.j2", self.template)
            .with("templates/free.j2", "{{ v0 }}")
    }

    /// The questions that another world answers otherwise.
    fn differing(&self, other: &World, asked: &BTreeSet<ReadKey>) -> BTreeSet<ReadKey> {
        let mut keys = BTreeSet::new();
        let named = |end: &str| {
            let is_it = |key: &&ReadKey| matches!(key, ReadKey::File(path) if path.ends_with(end));
            asked.iter().filter(is_it).cloned().collect::<Vec<_>>()
        };
        for number in 0..3 {
            let name: Arc<str> = format!("E{number}").into();
            if self.environment.get(&name) != other.environment.get(&name) {
                keys.insert(ReadKey::Environment(name));
            }
            let key: Arc<str> = format!("*/file[/r{number}]/size").into();
            if self.facts.get(&key) != other.facts.get(&key) {
                keys.insert(ReadKey::Fact(key));
            }
        }
        if self.text != other.text {
            keys.extend(named("files/text"));
        }
        if self.template != other.template {
            keys.extend(named("templates/scope.j2"));
        }
        keys
    }
}

/// A model that was compiled, with what a user sees of it.
struct Known {
    compiled: Compiled,
    diagnostics: Diagnostics,
    sources: SourceMap,
}

impl Known {
    fn compile(model: &str, world: &World, library: &Library) -> Known {
        let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let compiled = compile(
            &world.loader(model),
            library,
            &mut project::Options::default(),
            &world.inputs(),
            &mut sources,
            &mut diagnostics,
        );
        Known {
            compiled,
            diagnostics,
            sources,
        }
    }

    fn seen(&self) -> Json {
        json::compiled(&self.compiled, &self.diagnostics, &self.sources)
    }
}

fn library() -> Library {
    Library::new(
        setpoint_functions::registry(),
        setpoint_resources::KINDS.iter().map(|kind| kind.schema),
    )
    .with_internal_kinds(setpoint_resources::INTERNAL_KINDS.iter().map(|kind| kind.schema))
}

/// What a machine keeps of a model, and how that is kept up to date.
struct Kept {
    hostname: &'static str,
    assembler: Assembler<StatementOf>,
    /// The graph and what is held; none while something is wrong with the model.
    now: Option<(DesiredGraph, Vec<HeldResource>)>,
}

impl Kept {
    fn of(hostname: &'static str, known: &Known, library: &Library) -> Kept {
        let mut kept = Kept {
            hostname,
            assembler: Assembler::new(&LANGUAGE),
            now: None,
        };
        kept.take_whole(known, library);
        kept
    }

    fn take_whole(&mut self, known: &Known, library: &Library) {
        self.now = None;
        let exported = known.compiled.exported.as_ref();
        if let Some(exported) = exported.filter(|_| !known.diagnostics.has_errors()) {
            let machine = machine(self.hostname, library);
            let outputs = machine_outputs(exported, &machine, &mut Diagnostics::new());
            let graph = self.assembler.replace_all(outputs.outputs);
            self.now = graph.ok().map(|graph| (graph, outputs.held));
        }
    }

    /// Takes in only the resources that are others. Answers whether that was possible.
    fn take(&mut self, known: &Known, others: &BTreeSet<usize>, library: &Library) -> bool {
        let machine = machine(self.hostname, library);
        let exported = known.compiled.exported.as_ref();
        let (Some((_, held)), Some(exported)) = (self.now.take(), exported) else {
            self.take_whole(known, library);
            return false;
        };
        let Some(outputs) = updated_outputs(exported, others, &held, &machine) else {
            self.take_whole(known, library);
            return false;
        };
        let changes = outputs
            .into_iter()
            .map(|(statement, output)| (statement, Some(Arc::new(output))));
        let graph = self.assembler.apply(changes.collect());
        self.now = graph.ok().map(|graph| (graph, held));
        true
    }

    /// Resources, edges and what is held, as texts.
    fn seen(&self) -> Option<Vec<String>> {
        let (graph, held) = self.now.as_ref()?;
        let resources = graph.resources.values();
        let resources = resources.map(|resource| format!("{} {:?}", resource.id, resource.parameters));
        let edges = graph.edges.values();
        let edges = edges.map(|edge| format!("{} -> {} {}", edge.from, edge.to, edge.notify));
        let held = held
            .iter()
            .map(|held| format!("{} {}: {}", held.id, held.state.name(), held.reason));
        Some(resources.chain(edges).chain(held).collect())
    }
}

fn machine<'a>(hostname: &'a str, library: &'a Library) -> Machine<'a> {
    Machine {
        hostname,
        deploy: "local",
        kinds: &library.internal_kinds,
        deferrals: &NothingDeferred,
    }
}

struct NothingDeferred;

impl Deferrals for NothingDeferred {
    fn environment(&self, _: &str) -> Option<Arc<str>> {
        None
    }

    fn fact(&self, _: &str) -> Option<Datum> {
        None
    }
}

#[test]
fn changed_answers_give_what_a_whole_compilation_gives() {
    let library = library();
    let (tried, taken, changed) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let gates = Cell::new(0);
    let mut runner = TestRunner::new(Config {
        cases: 120,
        failure_persistence: None,
        ..Config::default()
    });
    let numbers = proptest::collection::vec(any::<u8>(), 0..120);
    let worlds = proptest::collection::vec(proptest::collection::vec(0..12_u8, 8), 2..5);
    let outcome = runner.run(&(numbers, worlds), |(numbers, worlds)| {
        let model = model(&numbers);
        let worlds: Vec<World> = worlds.iter().map(|world| World::of(world)).collect();
        let mut known = Known::compile(&model, &worlds[0], &library);
        let mut kept = MACHINES.map(|machine| Kept::of(machine, &known, &library));
        for (before, after) in worlds.iter().zip(&worlds[1..]) {
            let whole = Known::compile(&model, after, &library);
            let seen = known.seen();
            let Known {
                compiled,
                diagnostics,
                mut sources,
            } = known;
            tried.set(tried.get() + 1);
            let asked = compiled
                .execution
                .as_ref()
                .map(|execution| execution.reads.clone());
            let questions = before.differing(after, &asked.unwrap_or_default());
            let updated = compiled.update(&after.loader(&model), &after.inputs(), &mut sources, &questions);
            let Some((compiled, updated)) = updated else {
                known = whole;
                kept = MACHINES.map(|machine| Kept::of(machine, &known, &library));
                continue;
            };
            taken.set(taken.get() + 1);
            known = Known {
                compiled,
                diagnostics,
                sources,
            };
            let now = known.seen();
            let changes_something = now != seen;
            changed.set(changed.get() + usize::from(now != seen));
            prop_assert_eq!(&now, &whole.seen(), "{}\n{:?}\n{:?}", model, before, after);
            for kept in &mut kept {
                let is_gated = kept.take(&known, &updated.resources, &library);
                let seen = kept.seen();
                let has_gate = seen.iter().flatten().any(|line| line.starts_with("gate["));
                gates.set(gates.get() + usize::from(is_gated && has_gate && changes_something));
                let anew = Kept::of(kept.hostname, &whole, &library).seen();
                prop_assert_eq!(seen, anew, "{}\n{:?}\n{:?}", model, before, after);
            }
            let resources = |seen: &Json| seen["resources"].as_array().cloned().unwrap_or_default();
            let both = resources(&seen).into_iter().zip(resources(&now)).enumerate();
            for (at, (old, new)) in both {
                prop_assert!(
                    old == new || updated.resources.contains(&at),
                    "{old}\n{new}\n{model}"
                );
            }
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    let (tried, taken, changed) = (tried.get(), taken.get(), changed.get());
    assert!(taken * 4 > tried, "{taken} of {tried} were taken in");
    assert!(changed * 10 > tried, "{changed} of {tried} made a difference");
    let gates = gates.get();
    assert!(gates > 5, "{gates} changes met a machine that waits for another");
}

#[test]
fn a_changed_value_changes_the_resource_that_has_it_and_no_other() {
    let library = library();
    let model = "
import setpoint
size = std::get_env(\"SIZE\")
for i in std::sequence(100):
    setpoint::File(name=\"/{{ i }}\", content=\"{{ i }}\")
end
setpoint::File(name=\"/size\", content=std::template(\"/size.j2\", size=size))
";
    let world = |size: Option<&str>| World {
        environment: size
            .map(|size| (Arc::from("SIZE"), Arc::from(size)))
            .into_iter()
            .collect(),
        facts: BTreeMap::new(),
        text: "",
        template: "",
    };
    let loader = |world: &World| world.loader(model).with("templates/size.j2", "size {{ size }}");
    let mut sources = SourceMap::new();
    let mut diagnostics = Diagnostics::new();
    let before = world(None);
    let mut compiled = compile(
        &loader(&before),
        &library,
        &mut project::Options::default(),
        &before.inputs(),
        &mut sources,
        &mut diagnostics,
    );
    assert!(!diagnostics.has_errors(), "{diagnostics:?}");
    let state = |compiled: &Compiled| {
        let exported = compiled.exported.as_ref().expect("nothing is wrong");
        let named = |resource: &Resource| *resource.identity.name == *"/size";
        let at = exported.resources.iter().position(named).expect("it is there");
        let resource = &exported.resources[at];
        let content = resource
            .parameters
            .iter()
            .find(|set| set.parameter.name == "content");
        (
            at,
            resource.state.name(),
            content.map(|set| set.value.to_string()),
        )
    };
    let (at, is, _) = state(&compiled);
    assert_eq!(is, "undefined");
    for size in ["7", "8"] {
        let after = world(Some(size));
        let changed = BTreeSet::from([ReadKey::Environment("SIZE".into())]);
        let updated = compiled.update(&loader(&after), &after.inputs(), &mut sources, &changed);
        let (now, updated) = updated.expect("only a value is another one");
        assert_eq!(updated.resources, BTreeSet::from([at]));
        assert_eq!(state(&now), (at, "available", Some(format!("\"size {size}\""))));
        compiled = now;
    }
}

#[test]
fn what_decides_which_instances_there_are_is_no_mere_value() {
    let library = library();
    let model = "
import setpoint
if std::get_env(\"E0\", \"x\") == \"x\":
    setpoint::Noop(name=\"more\")
end
";
    let world = |value: u8| World::of(&[0, 0, value]);
    let known = Known::compile(model, &world(0), &library);
    let same = BTreeSet::from([ReadKey::Environment("E0".into())]);
    let mut sources = known.sources;
    let updated = known
        .compiled
        .update(&world(0).loader(model), &world(0).inputs(), &mut sources, &same);
    let (compiled, updated) = updated.expect("the condition holds as before");
    assert_eq!(updated.resources, BTreeSet::new());
    let updated = compiled.update(&world(1).loader(model), &world(1).inputs(), &mut sources, &same);
    assert!(updated.is_none(), "there is an instance less");
}
