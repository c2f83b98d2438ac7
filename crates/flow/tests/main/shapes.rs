//! Functions that build scopes.

use setpoint_flow::Slot;
use setpoint_value::{FunctionSpec, Type, Value};

use crate::library;
use crate::program_builder::{Built, ProgramBuilder, block, int_to_int};
use crate::world::{World, codes, ints};

/// `shape(list, func($x) { $x + captured })` as the value of `r`.
fn over_list(shape: &'static FunctionSpec) -> Built {
    let mut builder = ProgramBuilder::new();
    let is_filter = std::ptr::eq(shape, &raw const library::FILTER);
    let is_reduce = std::ptr::eq(shape, &raw const library::REDUCE);
    let parameters = if is_reduce { 2 } else { 1 };
    let mut body = builder.template("a function", parameters + 1);
    let captured = Slot(parameters);
    let result = if is_filter {
        body.call(&setpoint_value::operators::LESS, &[Slot(0), captured], Type::Bool)
    } else if is_reduce {
        let sum = body.add(Slot(0), Slot(1));
        body.add(sum, captured)
    } else {
        body.add(Slot(0), captured)
    };
    body.named("body", result);
    let body = builder.add(body, Some(result));
    let mut entry = builder.template("the entry", 0);
    let list = entry.outside("list", Type::list(Type::Int));
    let captured = entry.outside("captured", Type::Int);
    let function = entry.closure(block(body, &[captured]), int_to_int());
    let ty = if is_reduce {
        Type::Int
    } else {
        Type::list(Type::Int)
    };
    let value = entry.call(shape, &[list, function], ty);
    entry.named("shape", value);
    let name = entry.str("r");
    entry.resource(name, value);
    builder.finish(entry)
}

#[test]
fn map_follows_elements_captures_and_length() {
    let values = [("list", ints(&[1, 2, 3])), ("captured", Value::Int(10))];
    let mut world = World::started(over_list(&library::MAP), &values);
    assert_eq!(world.resources(), ["r=[11, 12, 13]"]);
    world.recomputed();
    // The source, the switch, the sum, its join, the gathering node and the resource.
    assert_eq!(world.set("list", ints(&[1, 5, 3])).recomputed, 6);
    assert_eq!(world.resources(), ["r=[11, 15, 13]"]);
    world.set_int("captured", 20);
    assert_eq!(world.resources(), ["r=[21, 25, 23]"]);
    world.set("list", ints(&[1]));
    assert_eq!(world.resources(), ["r=[21]"]);
    world.set("list", ints(&[1, 2, 3, 4]));
    assert_eq!(world.resources(), ["r=[21, 22, 23, 24]"]);
    world.set("list", ints(&[]));
    assert_eq!(world.resources(), ["r=[]"]);
}

#[test]
fn filter_and_reduce_follow_too() {
    let values = [("list", ints(&[1, 5, 3])), ("captured", Value::Int(4))];
    let mut world = World::started(over_list(&library::FILTER), &values);
    assert_eq!(world.resources(), ["r=[1, 3]"]);
    world.set_int("captured", 6);
    assert_eq!(world.resources(), ["r=[1, 5, 3]"]);
    let values = [("list", ints(&[1, 5, 3])), ("captured", Value::Int(0))];
    let mut world = World::started(over_list(&library::REDUCE), &values);
    assert_eq!(world.resources(), ["r=9"]);
    world.set("list", ints(&[1, 6, 3, 100]));
    assert_eq!(world.resources(), ["r=110"]);
    world.set_int("captured", 1);
    assert_eq!(world.resources(), ["r=114"]);
}

#[test]
fn a_call_that_takes_the_result_of_another_one_than_before_is_made_anew() {
    let values = [("list", ints(&[-1, 0, 0])), ("captured", Value::Int(10))];
    let mut world = World::started(over_list(&library::CHAIN), &values);
    assert_eq!(world.resources(), ["r=[11, 21, 21]"]);
    world.set("list", ints(&[-1, 0, 1]));
    assert_eq!(world.resources(), ["r=[11, 21, 31]"]);
    world.set("list", ints(&[-1, -1, 1]));
    assert_eq!(world.resources(), ["r=[11, 11, 21]"]);
    world.set("list", ints(&[-1, 0, 0]));
    assert_eq!(world.resources(), ["r=[11, 21, 21]"]);
}

#[test]
fn a_fold_over_a_hundred_thousand_elements_needs_no_stack() {
    let values = [("list", ints(&vec![2; 100_000])), ("captured", Value::Int(0))];
    let mut world = World::started(over_list(&library::REDUCE), &values);
    assert_eq!(world.resources(), ["r=200000"]);
    world.set("list", ints(&[]));
    assert_eq!(world.resources(), ["r=0"]);
    assert_eq!(world.evaluator.live_nodes(), 4);
}

#[test]
fn a_failure_in_a_call_is_that_of_the_shape_and_can_be_caught_outside() {
    let mut builder = ProgramBuilder::new();
    let mut body = builder.template("a function", 1);
    let hundred = body.int(100);
    let value = body.divide(hundred, Slot(0));
    body.named("division", value);
    let body = builder.add(body, Some(value));
    let mut fallback = builder.template("the fallback", 0);
    let none = fallback.constant(ints(&[]));
    let fallback = builder.add(fallback, Some(none));
    let mut entry = builder.template("the entry", 0);
    let list = entry.outside("list", Type::list(Type::Int));
    let function = entry.closure(block(body, &[]), int_to_int());
    let value = entry.call(&library::MAP, &[list, function], Type::list(Type::Int));
    let caught = entry.except(value, block(fallback, &[]), Type::list(Type::Int));
    let (r, s) = (entry.str("r"), entry.str("s"));
    entry.resource(r, caught);
    entry.resource(s, value);
    let mut world = World::started(builder.finish(entry), &[("list", ints(&[1, 2]))]);
    assert_eq!(world.resources(), ["r=[100, 50]", "s=[100, 50]"]);
    let step = world.set("list", ints(&[1, 0, 5]));
    assert_eq!(codes(&step), ["uncaught"]);
    let found = step.diagnostics.iter().next().unwrap();
    assert_eq!(found.primary.span, world.built.span("division"));
    assert_eq!(codes(&world.set("list", ints(&[666_666]))), ["uncaught"]);
    world.set("list", ints(&[4]));
    assert_eq!(world.resources(), ["r=[25]", "s=[25]"]);
}

#[test]
fn a_function_of_more_arguments_than_it_is_given_is_told_as_a_failure() {
    let mut builder = ProgramBuilder::new();
    let mut body = builder.template("a function", 2);
    let sum = body.add(Slot(0), Slot(1));
    let body = builder.add(body, Some(sum));
    let mut entry = builder.template("the entry", 0);
    let list = entry.outside("list", Type::list(Type::Int));
    let function = entry.closure(block(body, &[]), int_to_int());
    let value = entry.call(&library::MAP, &[list, function], Type::list(Type::Int));
    let one = entry.outside("one", Type::Int);
    let applied = entry.apply(function, &[one], Type::Int);
    for (name, value) in [("mapped", value), ("applied", applied)] {
        let name = entry.str(name);
        entry.resource(name, value);
    }
    let values = [("list", ints(&[1])), ("one", Value::Int(1))];
    let mut world = World::new(builder.finish(entry), &values);
    let step = world.step();
    assert!(step.graph.is_none());
    let told: Vec<&str> = step.diagnostics.iter().map(|found| &*found.message).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told.iter()
            .all(|text| text.contains("another number of arguments")),
        "{told:?}"
    );
}

#[test]
fn a_shape_that_nobody_asks_for_any_more_is_gone_with_all_its_calls() {
    let mut builder = ProgramBuilder::new();
    let mut body = builder.template("a function", 1);
    let key = body.text_of(Slot(0));
    let value = body.call(&library::OUTSIDE, &[key], Type::Int);
    let body = builder.add(body, Some(value));
    let mut then = builder.template("then", 1);
    let name = then.str("r");
    then.resource(name, Slot(0));
    let then = builder.add(then, None);
    let mut entry = builder.template("the entry", 0);
    let condition = entry.outside("condition", Type::Bool);
    let list = entry.constant(ints(&[1, 2, 3]));
    let function = entry.closure(block(body, &[]), int_to_int());
    let value = entry.call(&library::MAP, &[list, function], Type::list(Type::Int));
    entry.if_statement(condition, Some(block(then, &[value])), None);
    let one = || Value::Int(1);
    let values = [
        ("condition", Value::Bool(true)),
        ("1", one()),
        ("2", one()),
        ("3", one()),
    ];
    let mut world = World::started(builder.finish(entry), &values);
    assert_eq!(world.followed(), 4);
    // What the body of a function makes is in place at once, and nothing is kept of the instance itself.
    assert_eq!(world.evaluator.live_instances(), 1);
    world.set("condition", Value::Bool(false));
    assert_eq!((world.followed(), world.evaluator.live_nodes()), (1, 2));
    assert_eq!(world.evaluator.live_instances(), 1);
}

#[test]
fn a_call_that_gives_a_captured_value_waits_for_its_function_to_be_settled() {
    let mut builder = ProgramBuilder::new();
    let body = builder.template("a function", 2);
    let body = builder.add(body, Some(Slot(1)));
    let mut then = builder.template("then", 1);
    let f = then.closure(block(body, &[Slot(0)]), int_to_int());
    let then = builder.add(then, Some(f));
    let mut other = builder.template("a function", 1);
    let zero = other.int(0);
    let other = builder.add(other, Some(zero));
    let mut otherwise = builder.template("else", 0);
    let f = otherwise.closure(block(other, &[]), int_to_int());
    let otherwise = builder.add(otherwise, Some(f));
    let mut entry = builder.template("the entry", 0);
    let a = entry.outside("a", Type::Int);
    let five = entry.int(5);
    let small = entry.call(&setpoint_value::operators::LESS, &[a, five], Type::Bool);
    let f = entry.if_(small, block(then, &[a]), block(otherwise, &[]), int_to_int());
    let list = entry.constant(ints(&[1, 2]));
    let value = entry.call(&library::MAP, &[list, f], Type::list(Type::Int));
    let name = entry.str("r");
    entry.resource(name, value);
    let mut world = World::started(builder.finish(entry), &[("a", Value::Int(1))]);
    assert_eq!(world.resources(), ["r=[1, 1]"]);
    for (a, expected) in [(9, "r=[0, 0]"), (3, "r=[3, 3]"), (4, "r=[4, 4]")] {
        world.evaluator.take_record();
        world.set_int("a", a);
        assert_eq!(world.resources(), [expected]);
        let mut nodes: Vec<u64> = world.evaluator.take_record().iter().map(|r| r.node).collect();
        let computed = nodes.len();
        nodes.sort_unstable();
        nodes.dedup();
        assert_eq!(nodes.len(), computed, "no node is computed twice");
    }
}
