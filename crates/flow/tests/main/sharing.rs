//! Who shares what is followed, and what happens when arguments move.

use std::sync::Arc;

use setpoint_flow::{Operation, Slot};
use setpoint_value::{Type, Value};

use crate::library;
use crate::program_builder::{ProgramBuilder, block};
use crate::world::{World, ints};

#[test]
fn equal_calls_share_and_stateful_ones_do_not() {
    let builder = ProgramBuilder::new();
    let mut entry = builder.template("the entry", 0);
    let (a, b) = (entry.outside("a", Type::Int), entry.outside("a", Type::Int));
    let key = entry.str("k");
    let first = entry.call(&library::NUMBERED, &[key], Type::Str);
    let second = entry.call(&library::NUMBERED, &[key], Type::Str);
    for (name, value) in [
        ("a", a),
        ("b", b),
        ("first", first),
        ("second", second),
        ("third", second),
    ] {
        let name = entry.str(name);
        entry.resource(name, value);
    }
    let world = World::started(builder.finish(entry), &[("a", Value::Int(1))]);
    assert_eq!(world.followed(), 1);
    let resources = world.resources();
    assert_ne!(
        resources[2].split_once('=').unwrap().1,
        resources[3].split_once('=').unwrap().1
    );
    // One call has one value, however often it is used.
    assert_eq!(
        resources[3].split_once('=').unwrap().1,
        resources[4].split_once('=').unwrap().1
    );
}

#[test]
fn a_function_that_reads_the_directory_of_its_module_is_shared_only_within_one() {
    let builder = ProgramBuilder::new();
    let mut entry = builder.template("the entry", 0);
    for (name, directory) in [("a", "/x/"), ("b", "/y/"), ("c", "/x/")] {
        let operation = Operation::Call {
            function: (&library::DIRECTORY).into(),
            arguments: Vec::new(),
            module_directory: Arc::from(directory),
        };
        let value = entry.node(operation, Type::Str);
        let name = entry.str(name);
        entry.resource(name, value);
    }
    let world = World::started(builder.finish(entry), &[]);
    assert_eq!(world.resources(), [r#"a="/x/""#, r#"b="/y/""#, r#"c="/x/""#]);
    assert!(!world.evaluator.has_sources(), "facts read once do not change");
}

/// `outside(key)` where the key is itself said outside.
fn moving() -> crate::program_builder::Built {
    let builder = ProgramBuilder::new();
    let mut entry = builder.template("the entry", 0);
    let key = entry.outside("key", Type::Str);
    let value = entry.call(&library::OUTSIDE, &[key], Type::Int);
    entry.named("moving", value);
    let name = entry.str("r");
    entry.resource(name, value);
    let still = entry.outside("still", Type::Int);
    let name = entry.str("still");
    entry.resource(name, still);
    builder.finish(entry)
}

#[test]
fn a_moved_source_keeps_its_value_until_the_new_one_is_there() {
    let values = [
        ("key", Value::str("x")),
        ("x", Value::Int(1)),
        ("still", Value::Int(5)),
    ];
    let mut world = World::started(moving(), &values);
    let step = world.set("key", Value::str("y"));
    assert!(step.graph.is_none() && step.pending.is_empty());
    // Graphs go on meanwhile.
    assert!(world.set_int("still", 6).graph.is_some());
    assert_eq!(world.resources(), ["r=1", "still=6"]);
    // The old key does not matter any more.
    assert_eq!(world.set_int("x", 9).recomputed, 0);
    assert!(world.set_int("y", 2).graph.is_some());
    assert_eq!(world.resources(), ["r=2", "still=6"]);
    assert_eq!(world.followed(), 3);
}

#[test]
fn a_source_moved_away_and_back_has_the_value_of_its_key() {
    let values = [
        ("key", Value::str("x")),
        ("x", Value::Int(1)),
        ("still", Value::Int(5)),
    ];
    let mut world = World::started(moving(), &values);
    world.set("key", Value::str("y"));
    world.machine.set_value("x", Some(Value::Int(3)));
    world.set("key", Value::str("x"));
    assert_eq!(world.resources(), ["r=3", "still=5"]);
}

#[test]
fn a_source_that_moves_to_a_key_that_another_follows_joins_it() {
    let values = [
        ("key", Value::str("x")),
        ("x", Value::Int(1)),
        ("still", Value::Int(5)),
    ];
    let mut world = World::started(moving(), &values);
    assert_eq!(world.followed(), 3);
    world.set("key", Value::str("still"));
    assert_eq!((world.resources()[0].as_str(), world.followed()), ("r=5", 2));
    world.set_int("still", 8);
    assert_eq!(world.resources(), ["r=8", "still=8"]);
    world.set("key", Value::str("x"));
    assert_eq!((world.resources()[0].as_str(), world.followed()), ("r=1", 3));
}

#[test]
fn arguments_that_a_source_refuses_are_its_failure_and_better_ones_mend_it() {
    let values = [
        ("key", Value::str("x")),
        ("x", Value::Int(1)),
        ("still", Value::Int(5)),
    ];
    let mut world = World::started(moving(), &values);
    let step = world.set("key", Value::str("!x"));
    assert_eq!(crate::world::codes(&step), ["uncaught"]);
    assert_eq!(world.followed(), 2);
    let step = world.set("key", Value::str("x"));
    assert!(crate::world::codes(&step).is_empty());
    world.set_int("x", 2);
    assert_eq!(world.resources(), ["r=2", "still=5"]);
}

#[test]
fn a_source_shared_by_ten_thousand_bodies_is_one_and_goes_with_the_last() {
    let mut builder = ProgramBuilder::new();
    let mut body = builder.template("the body of the loop", 2);
    let name = body.text_of(Slot(0));
    let value = body.outside("shared", Type::Int);
    body.resource(name, value);
    let body = builder.add(body, None);
    let mut entry = builder.template("the entry", 0);
    let list = entry.outside("list", Type::list(Type::Int));
    entry.for_(list, block(body, &[]));
    let numbers: Vec<i64> = vec![0; 10_000];
    let values = [("list", ints(&numbers)), ("shared", Value::Int(1))];
    let mut world = World::started(builder.finish(entry), &values);
    assert_eq!(world.followed(), 2);
    assert_eq!(world.set_int("shared", 2).recomputed, 20_000);
    world.set("list", ints(&[1]));
    assert_eq!((world.resources(), world.followed()), (vec!["0=2".to_owned()], 2));
    world.set("list", ints(&[]));
    assert_eq!(world.followed(), 1);
}
