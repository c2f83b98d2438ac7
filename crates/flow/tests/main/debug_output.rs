//! What is said of calls to who searches for a mistake.

use setpoint_flow::Slot;
use setpoint_simulated::SimulatedCapabilities;
use setpoint_value::{Marks, Type, Value};

use crate::library;
use crate::program_builder::{Built, ProgramBuilder, block, int_to_int};
use crate::world::{World, ints};

fn heard(functions: &[&str], built: Built, values: &[(&str, Value)]) -> World {
    let machine = SimulatedCapabilities::new().listening_to(functions);
    let mut world = World::on(machine, built, values);
    world.step();
    world
}

#[test]
fn a_call_is_told_with_its_arguments_and_what_it_has_given_each_time_anew() {
    let builder = ProgramBuilder::new();
    let mut entry = builder.template("the entry", 0);
    let (a, b) = (entry.outside("a", Type::Int), entry.outside("b", Type::Int));
    let quotient = entry.divide(a, b);
    let text = entry.text_of(quotient);
    let name = entry.str("r");
    entry.resource(name, text);
    let values = [("a", Value::Int(6))];
    let mut world = heard(&["test.divide", "outside.get"], builder.finish(entry), &values);
    assert_eq!(
        world.machine.said(),
        [r#"outside.get("a") is 6"#, r#"outside.get("b") has no value yet"#]
    );
    world.set_int("b", 2);
    assert_eq!(
        world.machine.said(),
        [r#"outside.get("b") is 2"#, "test.divide(6, 2) is 3"]
    );
    world.set_int("b", 0);
    let said = world.machine.said();
    assert!(said[1].starts_with("test.divide(6, 0) failed: "), "{said:?}");
    assert!(said[1].contains("division by zero"), "{said:?}");
    world.step();
    assert_eq!(world.machine.said(), [] as [&str; 0]);
}

#[test]
fn a_call_with_a_function_is_told_with_what_came_of_all() {
    let mut builder = ProgramBuilder::new();
    let mut body = builder.template("a function", 1);
    let one = body.int(1);
    let sum = body.add(Slot(0), one);
    let body = builder.add(body, Some(sum));
    let mut entry = builder.template("the entry", 0);
    let list = entry.outside("list", Type::list(Type::Int));
    let function = entry.closure(block(body, &[]), int_to_int());
    let value = entry.call(&library::MAP, &[list, function], Type::list(Type::Int));
    let name = entry.str("r");
    entry.resource(name, value);
    let world = heard(&["test.map"], builder.finish(entry), &[("list", ints(&[1, 2]))]);
    let said = world.machine.said();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("test.map([1, 2], "), "{said:?}");
    assert!(said[0].ends_with(") is [2, 3]"), "{said:?}");
}

#[test]
fn long_values_are_cut_between_characters_and_others_told_whole() {
    for (length, is_cut) in [(1, false), (196, false), (197, false), (198, true), (5000, true)] {
        let builder = ProgramBuilder::new();
        let mut entry = builder.template("the entry", 0);
        let key = entry.str("k");
        let value = entry.call(&library::OUTSIDE, &[key], Type::Str);
        let name = entry.str("r");
        entry.resource(name, value);
        let text = format!("{}é", "x".repeat(length - 1));
        let built = builder.finish(entry);
        let world = heard(&["outside.get"], built, &[("k", Value::str(text.as_str()))]);
        let said = world.machine.said();
        let given = said[0]
            .strip_prefix(r#"outside.get("k") is "#)
            .expect("it is told");
        assert_eq!(given.ends_with('…'), is_cut, "{length}: {given}");
        if is_cut {
            assert!(
                (198..=200).contains(&given.trim_end_matches('…').len()),
                "{given}"
            );
        } else {
            assert_eq!(given, format!("\"{text}\""));
        }
    }
}

#[test]
fn what_is_sensitive_is_not_told() {
    let builder = ProgramBuilder::new();
    let mut entry = builder.template("the entry", 0);
    let secret = entry.outside("secret", Type::Int);
    let sum = entry.add(secret, secret);
    let name = entry.str("r");
    entry.resource(name, sum);
    let value = Value::Int(4711).with_marks(&Marks::sensitive());
    let built = builder.finish(entry);
    let world = heard(&["outside.get", "+"], built, &[("secret", value)]);
    let said = world.machine.said();
    assert!(!said.is_empty());
    assert!(
        said.iter()
            .all(|line| !line.contains("4711") && !line.contains("9422")),
        "{said:?}"
    );
}
