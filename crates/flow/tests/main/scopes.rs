//! Branches, loops, calls and instances come and go.

use setpoint_flow::{Operation, Slot};
use setpoint_value::{Type, Value};

use crate::library;
use crate::program_builder::{ProgramBuilder, block, int_to_int};
use crate::world::{World, codes, ints};

/// `if condition { outside(yes) } else { outside(no) }` as the value of resource `r`.
fn two_branches() -> crate::program_builder::Built {
    let mut builder = ProgramBuilder::new();
    let mut then = builder.template("then", 0);
    let yes = then.outside("yes", Type::Int);
    let then = builder.add(then, Some(yes));
    let mut otherwise = builder.template("else", 0);
    let no = otherwise.outside("no", Type::Int);
    let otherwise = builder.add(otherwise, Some(no));
    let mut entry = builder.template("the entry", 0);
    let condition = entry.outside("condition", Type::Bool);
    let value = entry.if_(condition, block(then, &[]), block(otherwise, &[]), Type::Int);
    entry.named("if", value);
    let name = entry.str("r");
    let r = entry.resource(name, value);
    entry.named("r", r);
    builder.finish(entry)
}

#[test]
fn a_source_in_a_branch_that_is_not_taken_is_not_followed() {
    let values = [
        ("condition", Value::Bool(true)),
        ("yes", Value::Int(1)),
        ("no", Value::Int(0)),
    ];
    let mut world = World::started(two_branches(), &values);
    assert_eq!((world.resources(), world.followed()), (vec!["r=1".to_owned()], 2));
    world.recomputed();
    assert_eq!(world.set_int("no", 7).recomputed, 0);
    world.set("condition", Value::Bool(false));
    assert_eq!((world.resources(), world.followed()), (vec!["r=7".to_owned()], 2));
    assert_eq!(world.recomputed(), ["condition", "if", "no", "r"]);
    assert_eq!(world.set_int("yes", 8).recomputed, 0);
}

#[test]
fn a_branch_without_a_value_yet_holds_the_graph_back_and_the_old_one_stays() {
    let values = [("condition", Value::Bool(true)), ("yes", Value::Int(1))];
    let mut world = World::started(two_branches(), &values);
    let step = world.set("condition", Value::Bool(false));
    assert!(step.graph.is_none());
    let span = world.built.span("no");
    let pending: Vec<_> = step
        .pending
        .iter()
        .map(|p| (p.span, p.function.as_str()))
        .collect();
    assert_eq!(pending, [(span, "outside.get")]);
    assert!(world.set_int("no", 3).graph.is_some());
    assert_eq!(world.resources(), ["r=3"]);
}

#[test]
fn what_only_a_branch_captures_lives_with_the_branch() {
    let mut builder = ProgramBuilder::new();
    let mut then = builder.template("then", 1);
    let name = then.str("inside");
    then.resource(name, Slot(0));
    let then = builder.add(then, None);
    let mut entry = builder.template("the entry", 0);
    let condition = entry.outside("condition", Type::Bool);
    let one = entry.int(1);
    let captured = entry.outside("captured", Type::Int);
    let more = entry.add(captured, one);
    entry.if_statement(condition, Some(block(then, &[more])), None);
    let values = [
        ("condition", Value::Bool(false)),
        ("captured", Value::str("!fatal")),
    ];
    let mut world = World::started(builder.finish(entry), &values);
    assert_eq!(world.followed(), 1, "the captured bind is not evaluated");
    world.set_int("captured", 4);
    world.set("condition", Value::Bool(true));
    assert_eq!(
        (world.resources(), world.followed()),
        (vec!["inside=5".to_owned()], 2)
    );
    world.set("condition", Value::Bool(false));
    assert_eq!(world.followed(), 1);
    world.set("condition", Value::Bool(true));
    assert_eq!(world.resources(), ["inside=5"]);
}

#[test]
fn a_source_that_both_branches_capture_is_not_restarted() {
    let mut builder = ProgramBuilder::new();
    let mut bodies = Vec::new();
    for name in ["a", "b"] {
        let mut body = builder.template(name, 1);
        let name = body.str(name);
        body.resource(name, Slot(0));
        bodies.push(builder.add(body, None));
    }
    let mut entry = builder.template("the entry", 0);
    let condition = entry.outside("condition", Type::Bool);
    let key = entry.str("x");
    let state = entry.call(&library::NUMBERED, &[key], Type::Str);
    entry.if_statement(
        condition,
        Some(block(bodies[0], &[state])),
        Some(block(bodies[1], &[state])),
    );
    let mut world = World::started(builder.finish(entry), &[("condition", Value::Bool(true))]);
    let first = world.resources()[0].replace("a=", "");
    world.set("condition", Value::Bool(false));
    assert_eq!(world.resources(), [format!("b={first}")]);
}

#[test]
fn a_branch_decided_by_a_constant_is_put_in_place_for_good() {
    let mut builder = ProgramBuilder::new();
    let mut then = builder.template("then", 1);
    let value = then.add(Slot(0), Slot(0));
    let then = builder.add(then, Some(value));
    let mut entry = builder.template("the entry", 0);
    let a = entry.outside("a", Type::Int);
    let (zero, one) = (entry.int(0), entry.int(1));
    let condition = entry.call(&setpoint_value::operators::LESS, &[zero, one], Type::Bool);
    let value = entry.if_(condition, block(then, &[a]), block(then, &[zero]), Type::Int);
    let name = entry.str("r");
    entry.resource(name, value);
    let world = World::started(builder.finish(entry), &[("a", Value::Int(4))]);
    assert_eq!(world.resources(), ["r=8"]);
    // The source, the sum and the resource.
    assert_eq!(world.evaluator.live_nodes(), 3);
}

#[test]
fn a_closure_moves_with_what_it_captures_without_a_new_call() {
    let mut builder = ProgramBuilder::new();
    let mut body = builder.template("a function", 2);
    let sum = body.add(Slot(0), Slot(1));
    body.named("sum", sum);
    let body = builder.add(body, Some(sum));
    let mut entry = builder.template("the entry", 0);
    let captured = entry.outside("captured", Type::Int);
    let f = entry.closure(block(body, &[captured]), int_to_int());
    let one = entry.int(1);
    let value = entry.apply(f, &[one], Type::Int);
    let name = entry.str("r");
    let r = entry.resource(name, value);
    entry.named("r", r);
    let mut world = World::started(builder.finish(entry), &[("captured", Value::Int(4))]);
    assert_eq!(world.resources(), ["r=5"]);
    world.recomputed();
    world.set_int("captured", 6);
    assert_eq!(world.recomputed(), ["captured", "r", "sum"]);
    assert_eq!(world.resources(), ["r=7"]);
}

#[test]
fn a_call_is_rebuilt_when_the_function_value_is_another_object() {
    // The function in a field of a struct is one of two, as a condition says.
    let mut builder = ProgramBuilder::new();
    let mut makers = Vec::new();
    for number in [10, 20] {
        let mut body = builder.template("a function", 1);
        let number = body.int(number);
        let sum = body.add(Slot(0), number);
        let body = builder.add(body, Some(sum));
        let mut maker = builder.template("a branch", 0);
        let f = maker.closure(block(body, &[]), int_to_int());
        makers.push(builder.add(maker, Some(f)));
    }
    let mut entry = builder.template("the entry", 0);
    let condition = entry.outside("condition", Type::Bool);
    let a = entry.outside("a", Type::Int);
    let f = entry.if_(
        condition,
        block(makers[0], &[]),
        block(makers[1], &[]),
        int_to_int(),
    );
    let ty = Type::structure([("f", int_to_int())]);
    let holder = entry.node(Operation::Struct(vec![f]), ty);
    let field = entry.node(Operation::Field { of: holder, index: 0 }, int_to_int());
    let value = entry.apply(field, &[a], Type::Int);
    entry.named("call", value);
    let name = entry.str("r");
    entry.resource(name, value);
    let values = [("condition", Value::Bool(true)), ("a", Value::Int(1))];
    let mut world = World::started(builder.finish(entry), &values);
    assert_eq!(world.resources(), ["r=11"]);
    world.set("condition", Value::Bool(false));
    assert_eq!(world.resources(), ["r=21"]);
    world.recomputed();
    world.set_int("a", 2);
    assert_eq!(world.resources(), ["r=22"]);
}

#[test]
fn a_loop_over_a_list_keeps_what_stays_and_ends_what_goes() {
    let mut builder = ProgramBuilder::new();
    let mut body = builder.template("the body of the loop", 2);
    let name = body.text_of(Slot(0));
    let state = body.call(&library::NUMBERED, &[name], Type::Str);
    let element = body.text_of(Slot(1));
    let both = body.concat(state, element);
    let r = body.resource(name, both);
    body.named("r", r);
    let body = builder.add(body, None);
    let mut entry = builder.template("the entry", 0);
    let list = entry.outside("list", Type::list(Type::Int));
    entry.for_(list, block(body, &[]));
    let mut world = World::started(builder.finish(entry), &[("list", ints(&[5, 6, 7]))]);
    let first = world.resources();
    world.set("list", ints(&[5, 9]));
    let second = world.resources();
    assert_eq!(second.len(), 2);
    assert_eq!(second[0], first[0]);
    assert_eq!(
        second[1],
        first[1].replace("6\"", "9\""),
        "the state of the body is kept"
    );
    world.set("list", ints(&[]));
    assert!(world.resources().is_empty());
    assert_eq!(world.evaluator.live_nodes(), 2);
}

#[test]
fn instances_share_nothing_and_export_their_slots() {
    let mut builder = ProgramBuilder::new();
    let mut class = builder.template("class c", 1);
    let one = class.int(1);
    let more = class.add(Slot(0), one);
    let unused = class.outside("unused", Type::Int);
    class.exports.extend([more, unused]);
    let class = builder.add(class, None);
    let mut outer = builder.template("class d", 1);
    let inner = outer.instance(class, &[Slot(0)], Type::Dynamic);
    outer.exports.push(inner);
    let outer = builder.add(outer, None);
    let mut entry = builder.template("the entry", 0);
    let a = entry.outside("a", Type::Int);
    let ten = entry.int(10);
    let (first, second) = (
        entry.instance(outer, &[a], Type::Dynamic),
        entry.instance(outer, &[ten], Type::Dynamic),
    );
    let names = [entry.str("first"), entry.str("second")];
    for (instance, name) in [first, second].into_iter().zip(names) {
        let inner = entry.exported(instance, 0, Type::Dynamic);
        let value = entry.exported(inner, 0, Type::Int);
        entry.resource(name, value);
    }
    let world = World::started(builder.finish(entry), &[("a", Value::Int(1))]);
    assert_eq!(world.resources(), ["first=2", "second=11"]);
    assert_eq!(world.followed(), 1, "an export that nobody uses is not evaluated");
}

#[test]
fn expressions_nested_a_thousand_deep_come_and_go() {
    let mut builder = ProgramBuilder::new();
    let mut leaf = builder.template("leaf", 1);
    let one = leaf.int(1);
    let mut inner = builder.add(leaf, Some(one));
    for _ in 0..1000 {
        let mut body = builder.template("branch", 1);
        let value = body.if_(
            Slot(0),
            block(inner, &[Slot(0)]),
            block(inner, &[Slot(0)]),
            Type::Int,
        );
        let one = body.int(1);
        let value = body.add(value, one);
        inner = builder.add(body, Some(value));
    }
    let mut entry = builder.template("the entry", 0);
    let a = entry.outside("a", Type::Bool);
    let value = entry.instance(inner, &[a], Type::Int);
    let name = entry.str("r");
    entry.resource(name, value);
    let mut world = World::started(builder.finish(entry), &[("a", Value::Bool(true))]);
    assert_eq!(world.resources(), ["r=1001"]);
    let before = world.evaluator.live_nodes();
    let step = world.set("a", Value::Bool(false));
    assert!(step.graph.is_none() && codes(&step).is_empty());
    assert_eq!(world.evaluator.live_nodes(), before);
}

#[test]
fn a_program_that_lets_go_of_a_scope_with_ten_thousand_sources_ends_them_all() {
    let mut builder = ProgramBuilder::new();
    let mut body = builder.template("the body of the loop", 2);
    let name = body.text_of(Slot(1));
    let value = body.call(&library::OUTSIDE, &[name], Type::Int);
    body.resource(name, value);
    let body = builder.add(body, None);
    let mut entry = builder.template("the entry", 0);
    let list = entry.outside("list", Type::list(Type::Int));
    entry.for_(list, block(body, &[]));
    let numbers: Vec<i64> = (0..10_000).collect();
    let mut world = World::new(builder.finish(entry), &[("list", ints(&numbers))]);
    let step = world.step();
    assert_eq!(step.pending.len(), 10_000);
    assert_eq!(world.followed(), 10_001);
    let step = world.set("list", ints(&[]));
    assert!(step.graph.is_some());
    assert_eq!(world.followed(), 1);
    drop(world.evaluator);
    assert_eq!(world.machine.live_watches(), 0);
}

#[test]
fn an_instance_is_captured_by_a_loop_and_asked_for_its_exports_there() {
    let mut builder = ProgramBuilder::new();
    let mut class = builder.template("class c", 1);
    let double = class.add(Slot(0), Slot(0));
    class.named("double", double);
    let name = class.str("of the class");
    class.resource(name, Slot(0));
    class.exports.push(double);
    let class = builder.add(class, None);
    let mut body = builder.template("the body of the loop", 3);
    let exported = body.exported(Slot(2), 0, Type::Int);
    let sum = body.add(Slot(1), exported);
    let name = body.text_of(Slot(0));
    body.resource(name, sum);
    let body = builder.add(body, None);
    let mut entry = builder.template("the entry", 0);
    let (a, list) = (
        entry.outside("a", Type::Int),
        entry.outside("list", Type::list(Type::Int)),
    );
    let fixed = entry.constant(ints(&[100]));
    let included = entry.instance(class, &[a], Type::Dynamic);
    entry.for_(fixed, block(body, &[included]));
    let conditional = entry.outside("condition", Type::Bool);
    let mut then = builder.template("then", 2);
    then.for_(Slot(0), block(body, &[Slot(1)]));
    let then = builder.add(then, None);
    entry.if_statement(conditional, Some(block(then, &[list, included])), None);
    let values = [
        ("a", Value::Int(1)),
        ("list", ints(&[])),
        ("condition", Value::Bool(true)),
    ];
    let mut world = World::started(builder.finish(entry), &values);
    assert_eq!(world.resources(), ["0=102", "of the class=1"]);
    // The same name twice: the one of the static loop and the other must agree.
    world.set("list", ints(&[100, 7]));
    assert_eq!(world.resources(), ["0=102", "1=9", "of the class=1"]);
    world.recomputed();
    world.set_int("a", 2);
    assert_eq!(world.resources(), ["0=104", "1=11", "of the class=2"]);
    world.set("condition", Value::Bool(false));
    assert_eq!(world.resources(), ["0=104", "of the class=2"]);
}
