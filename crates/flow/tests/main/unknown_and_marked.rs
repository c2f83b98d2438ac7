//! Values that are not known yet, and values that are secret, in mcl's own forms.

use setpoint_flow::Slot;
use setpoint_graph::UnknownWhat;
use setpoint_value::{Type, Value};

use crate::library;
use crate::program_builder::{ProgramBuilder, block, int_to_int};
use crate::world::{World, codes, ints, map};

/// Every form, over what the outside says.
fn forms() -> crate::program_builder::Built {
    let mut builder = ProgramBuilder::new();
    let mut number = builder.template("a branch", 0);
    let one = number.int(1);
    let number = builder.add(number, Some(one));
    let mut body = builder.template("the body of the loop", 2);
    let name = body.text_of(Slot(0));
    let prefix = body.str("for");
    let name = body.concat(prefix, name);
    body.resource(name, Slot(1));
    let body = builder.add(body, None);
    let mut entry_body = builder.template("the body of the loop", 2);
    let name = entry_body.str("forkv");
    entry_body.resource(name, Slot(1));
    let entry_body = builder.add(entry_body, None);
    let mut statement = builder.template("a block", 0);
    let (name, value) = (statement.str("statement"), statement.int(0));
    statement.resource(name, value);
    let statement = builder.add(statement, None);
    let mut entry = builder.template("the entry", 0);
    let condition = entry.outside("condition", Type::Bool);
    let list = entry.outside("list", Type::list(Type::Int));
    let map = entry.outside("map", Type::map(Type::Str, Type::Int));
    let function = entry.outside("function", int_to_int());
    let left = entry.outside("left", Type::Int);
    let if_ = entry.if_(condition, block(number, &[]), block(number, &[]), Type::Int);
    let except = entry.except(left, block(number, &[]), Type::Int);
    let apply = entry.apply(function, &[left], Type::Int);
    for (name, value) in [("if", if_), ("except", except), ("apply", apply)] {
        let name = entry.str(name);
        entry.resource(name, value);
    }
    for (name, node) in [
        ("for", entry.for_(list, block(body, &[]))),
        ("forkv", entry.for_kv(map, block(entry_body, &[]))),
        (
            "if statement",
            entry.if_statement(condition, Some(block(statement, &[])), None),
        ),
    ] {
        entry.named(name, node);
    }
    builder.finish(entry)
}

fn known() -> Vec<(&'static str, Value)> {
    vec![
        ("condition", Value::Bool(true)),
        ("list", ints(&[7])),
        ("map", map(&[("a", 8)])),
        ("left", Value::Int(3)),
        ("function", Value::zero(&int_to_int()).unwrap()),
    ]
}

#[test]
fn unknown_conditions_functions_and_left_sides_give_unknowns_and_blocks_are_left_out() {
    let mut world = World::new(forms(), &known());
    assert_eq!(
        codes(&world.step()),
        ["fatal"],
        "the zero value of a function type cannot be called"
    );
    for (key, value) in known() {
        world.machine.set_value(key, Some(Value::unknown(value.ty())));
    }
    let step = world.step();
    assert!(codes(&step).is_empty(), "{step:?}");
    let graph = step.graph.unwrap();
    assert_eq!(graph.resources.len(), 3);
    for resource in graph.resources.values() {
        assert!(
            resource.parameters.get("value").is_some_and(Value::is_unknown),
            "{resource:?}"
        );
    }
    let blocks: Vec<_> = step
        .unknown
        .iter()
        .filter(|u| u.what == UnknownWhat::Block)
        .map(|u| u.span)
        .collect();
    let spans = ["for", "forkv", "if statement"].map(|name| world.built.span(name));
    assert_eq!(blocks, spans);
    for (key, value) in known() {
        if key != "function" {
            world.machine.set_value(key, Some(value));
        }
    }
    let step = world.step();
    assert!(step.unknown.is_empty());
    let graph = step.graph.unwrap();
    assert_eq!(graph.resources.len(), 6);
}

#[test]
fn marks_of_conditions_lists_maps_and_functions_join_what_comes_of_them() {
    let mut world = World::new(forms(), &known());
    let _ = world.step();
    for (key, value) in known() {
        let value = if key == "function" {
            Value::unknown(value.ty())
        } else {
            value
        };
        world.machine.set_value(key, Some(value.sensitive()));
    }
    let step = world.step();
    assert!(codes(&step).is_empty(), "{step:?}");
    let graph = step.graph.unwrap();
    for name in ["if", "except", "apply", "for0", "forkv"] {
        let resource = graph.resource("test", name).unwrap();
        assert!(resource.parameters.get("value").unwrap().is_sensitive(), "{name}");
    }
    // And they go again.
    for (key, value) in known() {
        if key != "function" {
            world.machine.set_value(key, Some(value));
        }
    }
    let graph = world.step().graph.unwrap();
    for name in ["if", "except", "for0", "forkv"] {
        let resource = graph.resource("test", name).unwrap();
        assert!(
            !resource.parameters.get("value").unwrap().is_sensitive(),
            "{name}"
        );
    }
}

#[test]
fn a_function_that_becomes_secret_makes_its_results_secret_until_it_is_none_again() {
    let mut builder = ProgramBuilder::new();
    let body = builder.template("the function", 1);
    let body = builder.add(body, Some(Slot(0)));
    let mut branch = builder.template("a branch", 0);
    let closure = branch.closure(block(body, &[]), int_to_int());
    let branch = builder.add(branch, Some(closure));
    let mut entry = builder.template("the entry", 0);
    let condition = entry.outside("condition", Type::Bool);
    let function = entry.if_(condition, block(branch, &[]), block(branch, &[]), int_to_int());
    let seven = entry.int(7);
    let result = entry.apply(function, &[seven], Type::Int);
    let name = entry.str("r");
    entry.resource(name, result);
    let mut world = World::started(builder.finish(entry), &[("condition", Value::Bool(true))]);
    for _ in 0..2 {
        let graph = world
            .set("condition", Value::Bool(true).sensitive())
            .graph
            .unwrap();
        let value = graph
            .resource("test", "r")
            .unwrap()
            .parameters
            .get("value")
            .cloned();
        assert_eq!(value, Some(Value::Int(7).sensitive()));
        let graph = world.set("condition", Value::Bool(true)).graph.unwrap();
        let value = graph
            .resource("test", "r")
            .unwrap()
            .parameters
            .get("value")
            .cloned();
        assert_eq!(value, Some(Value::Int(7)));
    }
}

#[test]
fn an_edge_to_what_an_unknown_block_may_hold_is_no_mistake() {
    let mut builder = ProgramBuilder::new();
    let mut inside = builder.template("a block", 0);
    let name = inside.str("inside");
    inside.resource(name, name);
    let inside = builder.add(inside, None);
    let mut entry = builder.template("the entry", 0);
    let condition = entry.outside("condition", Type::Bool);
    let (outside, inner) = (entry.str("outside"), entry.str("inside"));
    entry.resource(outside, outside);
    entry.edge(outside, inner);
    entry.if_statement(condition, Some(block(inside, &[])), None);
    let values = [("condition", Value::unknown(Type::Bool))];
    let mut world = World::started(builder.finish(entry), &values);
    assert_eq!(codes(&world.set("condition", Value::Bool(false))), ["missing"]);
    assert!(world.set("condition", Value::Bool(true)).graph.is_some());
}

#[test]
fn the_reason_of_a_failure_over_a_secret_is_not_told() {
    let builder = ProgramBuilder::new();
    let mut entry = builder.template("the entry", 0);
    let secret = entry.outside("secret", Type::Str);
    let of = entry.constant(map(&[("a", 1)]));
    let value = entry.call(&setpoint_value::operators::MAP_LOOKUP, &[of, secret], Type::Int);
    let name = entry.str("r");
    entry.resource(name, value);
    let values = [("secret", Value::str("canary").sensitive())];
    let mut world = World::new(builder.finish(entry), &values);
    let step = world.step();
    assert_eq!(codes(&step), ["uncaught"]);
    assert!(!format!("{step:?}").contains("canary"));
}

static GUESS: setpoint_value::FunctionSpec =
    setpoint_value::FunctionSpec::pure("test", "guess", &["func() int"], |_, _| Ok(Value::Int(4)))
        .unpredictable();

#[test]
fn what_cannot_be_predicted_is_unknown_in_a_prediction() {
    let program = || {
        let builder = ProgramBuilder::new();
        let mut entry = builder.template("the entry", 0);
        let guess = entry.call(&GUESS, &[], Type::Int);
        let name = entry.str("r");
        entry.resource(name, guess);
        builder.finish(entry).program
    };
    let machine = std::sync::Arc::new(setpoint_simulated::SimulatedCapabilities::new());
    let wake = || Box::new(|_| setpoint_value::Wake::new(|| ()));
    let mut real = setpoint_flow::Evaluator::new(program(), machine.clone(), wake());
    let value = |graph: setpoint_graph::DesiredGraph| {
        graph
            .resource("test", "r")
            .unwrap()
            .parameters
            .get("value")
            .cloned()
            .unwrap()
    };
    assert_eq!(value(real.step(&[]).graph.unwrap()), Value::Int(4));
    let mut plan = setpoint_flow::Evaluator::new(program(), machine, wake()).predicting(false);
    assert!(value(plan.step(&[]).graph.unwrap()).is_unknown());
}

#[test]
fn a_shape_over_an_unknown_list_is_unknown_and_keeps_marks() {
    let mut builder = ProgramBuilder::new();
    let mut body = builder.template("a function", 1);
    let more = body.add(Slot(0), Slot(0));
    let body = builder.add(body, Some(more));
    let mut entry = builder.template("the entry", 0);
    let list = entry.outside("list", Type::list(Type::Int));
    let function = entry.closure(block(body, &[]), int_to_int());
    let value = entry.call(&library::MAP, &[list, function], Type::list(Type::Int));
    let name = entry.str("r");
    entry.resource(name, value);
    let mut world = World::started(builder.finish(entry), &[("list", ints(&[1]))]);
    let shown = |world: &World| {
        let graph = world.graph.clone().unwrap();
        graph
            .resource("test", "r")
            .unwrap()
            .parameters
            .get("value")
            .cloned()
            .unwrap()
    };
    world.set("list", Value::unknown(Type::list(Type::Int)).sensitive());
    assert!(shown(&world).is_unknown() && shown(&world).is_sensitive());
    world.set("list", ints(&[2]).sensitive());
    assert_eq!(shown(&world), ints(&[4]).sensitive());
    world.set("list", ints(&[2]));
    assert_eq!(shown(&world), ints(&[4]));
}

#[test]
fn without_the_machine_only_what_asks_it_is_unknown() {
    let builder = ProgramBuilder::new();
    let mut entry = builder.template("the entry", 0);
    let one = entry.int(1);
    let (sum, asked) = (entry.add(one, one), entry.outside("asked", Type::Int));
    let more = entry.add(asked, one);
    for (name, value) in [("sum", sum), ("asked", asked), ("more", more)] {
        let name = entry.str(name);
        entry.resource(name, value);
    }
    let mut world = World::new(builder.finish(entry), &[("asked", Value::Int(5))]);
    world.evaluator = world.evaluator.without_machine();
    assert!(world.step().graph.is_some());
    let resources = world.resources();
    let unknown: Vec<bool> = resources.iter().map(|text| text.contains("unknown")).collect();
    assert_eq!(unknown, [true, true, false], "{resources:?}");
    assert_eq!(resources[2], "sum=2");
    assert_eq!(world.followed(), 0);
}
