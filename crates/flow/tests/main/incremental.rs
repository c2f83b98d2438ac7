//! Values move, and only what changes is computed.

use setpoint_flow::TemplateId;
use setpoint_value::{Type, Value};

use crate::program_builder::{ProgramBuilder, block};
use crate::world::{World, codes, ints, map};

#[test]
fn an_empty_program_gives_one_empty_graph() {
    let builder = ProgramBuilder::new();
    let entry = builder.template("the entry", 0);
    let mut world = World::new(builder.finish(entry), &[]);
    let step = world.step();
    assert!(step.graph.is_some_and(|graph| graph.resources.is_empty()));
    assert!(world.step().graph.is_none());
    assert!(!world.evaluator.has_sources());
}

#[test]
fn a_static_program_leaves_no_nodes() {
    let builder = ProgramBuilder::new();
    let mut entry = builder.template("the entry", 0);
    let one = entry.int(1);
    let two = entry.add(one, one);
    let name = entry.str("a");
    entry.resource(name, two);
    let world = World::started(builder.finish(entry), &[]);
    assert_eq!(world.resources(), ["a=2"]);
    assert_eq!(world.evaluator.live_nodes(), 0);
}

#[test]
fn a_change_computes_what_depends_on_it_and_nothing_else() {
    let builder = ProgramBuilder::new();
    let mut entry = builder.template("the entry", 0);
    let (a, b) = (entry.outside("a", Type::Int), entry.outside("b", Type::Int));
    let one = entry.int(1);
    let a1 = entry.add(a, one);
    entry.named("a+1", a1);
    let b1 = entry.add(b, one);
    entry.named("b+1", b1);
    let name = entry.str("ra");
    let ra = entry.resource(name, a1);
    entry.named("ra", ra);
    let name = entry.str("rb");
    let rb = entry.resource(name, b1);
    entry.named("rb", rb);
    let mut world = World::started(
        builder.finish(entry),
        &[("a", Value::Int(1)), ("b", Value::Int(5))],
    );
    assert_eq!(world.resources(), ["ra=2", "rb=6"]);
    assert!(world.evaluator.has_sources());
    world.recomputed();
    assert!(world.set_int("a", 2).graph.is_some());
    assert_eq!(world.recomputed(), ["a", "a+1", "ra"]);
    assert_eq!(world.resources(), ["ra=3", "rb=6"]);
}

#[test]
fn what_a_resource_does_not_want_changes_no_graph() {
    let builder = ProgramBuilder::new();
    let mut entry = builder.template("the entry", 0);
    let (value, wanted) = (
        entry.outside("value", Type::Int),
        entry.outside("wanted", Type::Bool),
    );
    let name = entry.str("r");
    entry.resource_if(name, value, Some(wanted));
    let values = [("value", Value::Int(1)), ("wanted", Value::Bool(false))];
    let mut world = World::started(builder.finish(entry), &values);
    assert_eq!(world.resources(), ["r"]);
    let step = world.set_int("value", 2);
    assert_eq!((step.recomputed, step.graph.is_none()), (2, true));
    assert!(world.set("wanted", Value::Bool(true)).graph.is_some());
    assert_eq!(world.resources(), ["r=2"]);
}

#[test]
fn templates_may_name_those_behind_them() {
    let mut builder = ProgramBuilder::new();
    let mut outer = builder.template("the outer class", 0);
    outer.instance(TemplateId(1), &[], Type::Dynamic);
    let outer = builder.add(outer, None);
    let mut inner = builder.template("the inner class", 0);
    let (name, value) = (inner.str("r"), inner.outside("value", Type::Int));
    inner.resource(name, value);
    assert_eq!(builder.add(inner, None), TemplateId(1));
    let mut entry = builder.template("the entry", 0);
    entry.instance(outer, &[], Type::Dynamic);
    let mut world = World::started(builder.finish(entry), &[("value", Value::Int(1))]);
    assert_eq!(world.resources(), ["r=1"]);
    world.set_int("value", 2);
    assert_eq!(world.resources(), ["r=2"]);
}

#[test]
fn a_value_that_stays_the_same_ends_the_wave() {
    let builder = ProgramBuilder::new();
    let mut entry = builder.template("the entry", 0);
    let a = entry.outside("a", Type::Int);
    let small = entry.call(&crate::library::MODULO, &[a], Type::Int);
    entry.named("modulo", small);
    let name = entry.str("r");
    let r = entry.resource(name, small);
    entry.named("r", r);
    let mut world = World::started(builder.finish(entry), &[("a", Value::Int(1))]);
    world.recomputed();
    let step = world.set_int("a", 5);
    assert!(step.graph.is_none());
    assert_eq!(world.recomputed(), ["a", "modulo"]);
    // Said again, it does not even reach the source's node.
    assert_eq!(world.set_int("a", 5).recomputed, 0);
    assert_eq!(world.step().recomputed, 0);
}

#[test]
fn unchanged_resources_keep_their_identity_from_graph_to_graph() {
    let builder = ProgramBuilder::new();
    let mut entry = builder.template("the entry", 0);
    let a = entry.outside("a", Type::Int);
    let (x, y) = (entry.str("x"), entry.str("y"));
    let names = entry.list(Type::Str, &[x, y]);
    entry.resource(names, y);
    let z = entry.str("z");
    entry.resource(z, a);
    let mut world = World::started(builder.finish(entry), &[("a", Value::Int(1))]);
    let before = world.graph.clone().unwrap();
    world.set_int("a", 2);
    let after = world.graph.clone().unwrap();
    let same = |name| {
        let (a, b) = (
            before.resource("test", name).unwrap(),
            after.resource("test", name).unwrap(),
        );
        std::sync::Arc::ptr_eq(a, b)
    };
    assert!(same("x") && same("y") && !same("z"));
    assert!(after.generation > before.generation);
}

#[test]
fn a_chain_of_a_hundred_thousand_nodes_needs_no_stack() {
    let builder = ProgramBuilder::new();
    let mut entry = builder.template("the entry", 0);
    let a = entry.outside("a", Type::Int);
    let one = entry.int(1);
    let mut last = a;
    for _ in 0..100_000 {
        last = entry.add(last, one);
    }
    let name = entry.str("r");
    entry.resource(name, last);
    let mut world = World::started(builder.finish(entry), &[("a", Value::Int(0))]);
    assert_eq!(world.resources(), ["r=100000"]);
    let step = world.set_int("a", 1);
    assert_eq!(step.recomputed, 100_002);
    assert_eq!(world.resources(), ["r=100001"]);
}

#[test]
fn bodies_nested_twenty_thousand_deep_need_no_stack() {
    // f0(x) = x + 1, f1(x) = f0(x) + 1, …
    let mut builder = ProgramBuilder::new();
    let mut inner = None;
    for _ in 0..20_000 {
        let mut body = builder.template("f", 1);
        let x = setpoint_flow::Slot(0);
        let value = match inner {
            Some(inner) => body.instance(inner, &[x], Type::Int),
            None => x,
        };
        let one = body.int(1);
        let sum = body.add(value, one);
        inner = Some(builder.add(body, Some(sum)));
    }
    let mut entry = builder.template("the entry", 0);
    let a = entry.outside("a", Type::Int);
    let value = entry.instance(inner.unwrap(), &[a], Type::Int);
    let name = entry.str("r");
    entry.resource(name, value);
    let mut world = World::started(builder.finish(entry), &[("a", Value::Int(0))]);
    assert_eq!(world.resources(), ["r=20000"]);
    world.set_int("a", 5);
    assert_eq!(world.resources(), ["r=20005"]);
}

#[test]
fn branches_nested_two_thousand_deep_come_and_go_without_a_stack() {
    let mut builder = ProgramBuilder::new();
    let mut leaf = builder.template("leaf", 1);
    let name = leaf.str("deep");
    leaf.resource(name, setpoint_flow::Slot(0));
    let mut inner = builder.add(leaf, None);
    for _ in 0..2000 {
        let mut body = builder.template("branch", 1);
        let condition = setpoint_flow::Slot(0);
        body.if_statement(condition, Some(block(inner, &[condition])), None);
        inner = builder.add(body, None);
    }
    let mut entry = builder.template("the entry", 0);
    let a = entry.outside("a", Type::Bool);
    entry.if_statement(a, Some(block(inner, &[a])), None);
    let mut world = World::started(builder.finish(entry), &[("a", Value::Bool(true))]);
    assert_eq!(world.resources(), ["deep=true"]);
    world.set("a", Value::Bool(false));
    assert_eq!(world.resources(), Vec::<String>::new());
    assert_eq!(world.evaluator.live_nodes(), 2);
    world.set("a", Value::Bool(true));
    assert_eq!(world.resources(), ["deep=true"]);
}

#[test]
fn a_node_that_is_made_again_in_the_place_of_one_that_has_gone_is_told_apart_from_it() {
    let mut builder = ProgramBuilder::new();
    let mut branch = builder.template("branch", 1);
    let one = branch.int(1);
    let sum = branch.add(setpoint_flow::Slot(0), one);
    let name = branch.str("r");
    branch.resource(name, sum);
    let branch = builder.add(branch, None);
    let mut entry = builder.template("the entry", 0);
    let (condition, b) = (
        entry.outside("condition", Type::Bool),
        entry.outside("b", Type::Int),
    );
    entry.if_statement(condition, Some(block(branch, &[b])), None);
    let values = [("condition", Value::Bool(true)), ("b", Value::Int(1))];
    let mut world = World::started(builder.finish(entry), &values);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..3 {
        let record = world.evaluator.take_record();
        let of_the_branch: Vec<u64> = record
            .iter()
            .filter(|node| node.template == branch)
            .map(|node| node.node)
            .collect();
        assert!(!of_the_branch.is_empty());
        assert!(of_the_branch.iter().all(|node| seen.insert(*node)), "{seen:?}");
        world.set("condition", Value::Bool(false));
        world.evaluator.take_record();
        world.set("condition", Value::Bool(true));
    }
}

#[test]
fn a_statement_that_is_looked_at_anew_and_wants_the_same_as_before_gives_no_graph() {
    let builder = ProgramBuilder::new();
    let mut entry = builder.template("the entry", 0);
    let a = entry.outside("a", Type::Int);
    let names = entry.constant(Value::list(Type::Str, ["r", "s"].map(Value::str)));
    let never = entry.outside("never", Type::Bool);
    let resource = entry.resource_if(names, a, Some(never));
    entry.named("the resources", resource);
    let values = [("a", Value::Int(1)), ("never", Value::Bool(false))];
    let mut world = World::started(builder.finish(entry), &values);
    assert_eq!(world.resources(), ["r", "s"]);
    world.recomputed();
    let step = world.set_int("a", 2);
    assert_eq!(world.recomputed(), ["a", "the resources"]);
    assert!(step.graph.is_none(), "{step:?}");
}

#[test]
fn an_element_of_a_hundred_thousand_costs_about_one() {
    let mut builder = ProgramBuilder::new();
    let mut body = builder.template("the body of the loop", 2);
    let (index, element) = (setpoint_flow::Slot(0), setpoint_flow::Slot(1));
    let name = body.text_of(index);
    let one = body.int(1);
    let more = body.add(element, one);
    body.resource(name, more);
    let body = builder.add(body, None);
    let mut entry = builder.template("the entry", 0);
    let list = entry.outside("list", Type::list(Type::Int));
    entry.for_(list, block(body, &[]));
    let items: imbl::Vector<Value> = (0..100_000).map(Value::Int).collect();
    let of = |items| Value::List(setpoint_value::List::from_vector(Type::Int, items));
    let mut world = World::started(builder.finish(entry), &[("list", of(items.clone()))]);
    let mut changed = items;
    changed.set(70_000, Value::Int(-5));
    let step = world.set("list", of(changed.clone()));
    // The source, the loop, the sum and the resource.
    assert_eq!(step.recomputed, 4);
    let graph = world.graph.clone().unwrap();
    let found = graph.resource("test", "70000").unwrap();
    assert_eq!(found.parameters.get("value"), Some(&Value::Int(-4)));
    // One more: only its body is built.
    changed.push_back(Value::Int(7));
    let step = world.set("list", of(changed));
    assert!(step.recomputed < 10, "{}", step.recomputed);
    assert_eq!(world.graph.as_ref().unwrap().resources.len(), 100_001);
}

#[test]
fn a_loop_over_a_map_keeps_the_bodies_of_the_keys_that_stay() {
    let mut builder = ProgramBuilder::new();
    let mut body = builder.template("the body of the loop", 2);
    let numbered = body.call(&crate::library::NUMBERED, &[setpoint_flow::Slot(0)], Type::Str);
    let value = body.text_of(setpoint_flow::Slot(1));
    let both = body.concat(numbered, value);
    body.resource(setpoint_flow::Slot(0), both);
    let body = builder.add(body, None);
    let mut entry = builder.template("the entry", 0);
    let of = entry.outside("map", Type::map(Type::Str, Type::Int));
    entry.for_kv(of, block(body, &[]));
    let mut world = World::started(builder.finish(entry), &[("map", map(&[("a", 1), ("b", 2)]))]);
    let first = world.resources();
    world.set("map", map(&[("0", 9), ("a", 1), ("b", 3)]));
    let second = world.resources();
    assert_eq!(second[1], first[0], "a is untouched");
    assert_eq!(
        second[2],
        first[1].replace('2', "3").replace("#3", "#2"),
        "b keeps its state"
    );
    world.set("map", map(&[("b", 3)]));
    assert_eq!(world.resources(), &second[2..]);
}

#[test]
fn a_diamond_never_sees_old_and_new_at_once() {
    let builder = ProgramBuilder::new();
    let mut entry = builder.template("the entry", 0);
    let a = entry.outside("a", Type::Int);
    let one = entry.int(1);
    let mut long = a;
    for _ in 0..10 {
        long = entry.add(long, one);
    }
    let minus = entry.call(&setpoint_value::operators::SUBTRACT, &[long, a], Type::Int);
    entry.named("difference", minus);
    let name = entry.str("r");
    entry.resource(name, minus);
    let mut world = World::started(builder.finish(entry), &[("a", Value::Int(1))]);
    for n in 2..10 {
        let step = world.set_int("a", n);
        assert!(codes(&step).is_empty());
        assert!(step.graph.is_none(), "the difference never changes");
        assert_eq!(
            world
                .recomputed()
                .iter()
                .filter(|name| *name == "difference")
                .count(),
            1
        );
    }
    assert_eq!(world.resources(), ["r=10"]);
}

#[test]
fn several_events_are_one_step() {
    let builder = ProgramBuilder::new();
    let mut entry = builder.template("the entry", 0);
    let (a, b) = (entry.outside("a", Type::Int), entry.outside("b", Type::Int));
    let sum = entry.add(a, b);
    entry.named("sum", sum);
    let name = entry.str("r");
    entry.resource(name, sum);
    let mut world = World::started(
        builder.finish(entry),
        &[("a", Value::Int(1)), ("b", Value::Int(2))],
    );
    for n in 0..10_000 {
        world.machine.set_value("a", Some(Value::Int(n)));
    }
    world.machine.set_value("b", Some(Value::Int(1)));
    let step = world.step();
    assert_eq!(step.recomputed, 4);
    assert_eq!(world.resources(), ["r=10000"]);
}

#[test]
fn a_static_loop_over_a_hundred_thousand_leaves_no_nodes() {
    let mut builder = ProgramBuilder::new();
    let mut body = builder.template("the body of the loop", 2);
    let name = body.text_of(setpoint_flow::Slot(0));
    body.resource(name, setpoint_flow::Slot(1));
    let body = builder.add(body, None);
    let mut entry = builder.template("the entry", 0);
    let list: Vec<i64> = (0..100_000).collect();
    let list = entry.constant(ints(&list));
    entry.for_(list, block(body, &[]));
    let clock = entry.outside("clock", Type::Int);
    let name = entry.str("clock");
    entry.resource(name, clock);
    let mut world = World::started(builder.finish(entry), &[("clock", Value::Int(0))]);
    assert_eq!(world.evaluator.live_nodes(), 2);
    assert_eq!(world.graph.as_ref().unwrap().resources.len(), 100_001);
    assert_eq!(world.set_int("clock", 1).recomputed, 2);
}

#[test]
fn an_evaluator_can_move_to_another_thread() {
    fn is_send<T: Send>(_: &T) {}
    let builder = ProgramBuilder::new();
    let entry = builder.template("the entry", 0);
    is_send(&World::new(builder.finish(entry), &[]).evaluator);
}
