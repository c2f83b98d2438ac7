//! A resource knows through which includes, loops and conditions it comes to be there.

use setpoint_flow::Slot;
use setpoint_value::{Type, Value};

use crate::program_builder::{Built, ProgramBuilder, TemplateBuilder, block};
use crate::world::{World, codes, ints, map};

/// `include class` with `forkv … in entries { if condition { resource "r" } }` inside.
fn nested(
    entries: impl Fn(&mut TemplateBuilder) -> Slot,
    condition: impl Fn(&mut TemplateBuilder) -> Slot,
) -> Built {
    let mut builder = ProgramBuilder::new();
    let mut then = builder.template("then", 0);
    let name = then.str("r");
    let one = then.int(1);
    then.resource(name, one);
    let then = builder.add(then, None);
    let mut body = builder.template("the body of a loop", 2);
    let condition = condition(&mut body);
    let statement = body.if_statement(condition, Some(block(then, &[])), None);
    body.named("if", statement);
    let body = builder.add(body, None);
    let mut class = builder.template("the class `c`", 0);
    let entries = entries(&mut class);
    let statement = class.for_kv(entries, block(body, &[]));
    class.named("loop", statement);
    let class = builder.add(class, None);
    let mut entry = builder.template("the entry", 0);
    let include = entry.instance(class, &[], Type::Dynamic);
    entry.named("include", include);
    builder.finish(entry)
}

fn chain(world: &World) -> Vec<String> {
    let graph = world.graph.as_ref().unwrap();
    let resource = graph.resources.values().next().unwrap();
    let steps = resource.chain.iter().flat_map(|innermost| innermost.outwards());
    steps.map(|link| link.cause.to_string()).collect()
}

const STEPS: [&str; 3] = [
    "where this condition holds",
    "for the key `\"a\"`",
    "in the class `c`, included here",
];

#[test]
fn constants_and_sources_give_the_same_chain() {
    let built = nested(
        |class| class.constant(map(&[("a", 1)])),
        |body| body.constant(Value::Bool(true)),
    );
    let world = World::started(built, &[]);
    assert_eq!(chain(&world), STEPS);
    let followed = nested(
        |class| class.outside("entries", Type::map(Type::Str, Type::Int)),
        |body| body.outside("condition", Type::Bool),
    );
    let values = [("entries", map(&[("a", 1)])), ("condition", Value::Bool(true))];
    let world = World::started(followed, &values);
    assert_eq!(chain(&world), STEPS);
    let graph = world.graph.as_ref().unwrap();
    let innermost = graph.resources.values().next().unwrap().chain.as_ref().unwrap();
    let spans: Vec<_> = innermost.outwards().map(|link| link.span).collect();
    assert_eq!(
        spans,
        ["if", "loop", "include"].map(|name| world.built.span(name))
    );
}

#[test]
fn a_resource_that_comes_about_in_another_way_has_the_other_chain() {
    let built = nested(
        |class| class.outside("entries", Type::map(Type::Str, Type::Int)),
        |body| body.constant(Value::Bool(true)),
    );
    let mut world = World::started(built, &[("entries", map(&[("a", 1)]))]);
    let before = world.graph.clone().unwrap();
    world.set("entries", map(&[("b", 1)]));
    assert_eq!(chain(&world)[1], "for the key `\"b\"`");
    // The machine has nothing to do for that.
    assert!(world.graph.as_ref().unwrap().is_equal(&before));
}

#[test]
fn each_element_of_a_list_has_its_own_chain() {
    let looped = |list: &dyn Fn(&mut TemplateBuilder) -> Slot| {
        let mut builder = ProgramBuilder::new();
        let mut body = builder.template("the body of a loop", 2);
        let name = body.text_of(Slot(1));
        let one = body.int(1);
        body.resource(name, one);
        let body = builder.add(body, None);
        let mut entry = builder.template("the entry", 0);
        let list = list(&mut entry);
        entry.for_(list, block(body, &[]));
        builder.finish(entry)
    };
    let chains = |world: &World| -> Vec<String> {
        let graph = world.graph.as_ref().unwrap();
        let innermost = graph
            .resources
            .values()
            .map(|found| found.chain.as_ref().unwrap());
        innermost.map(|link| link.cause.to_string()).collect()
    };
    let constant = World::started(looped(&|entry| entry.constant(ints(&[7, 8]))), &[]);
    let followed = looped(&|entry| entry.outside("list", Type::list(Type::Int)));
    let followed = World::started(followed, &[("list", ints(&[7, 8]))]);
    for world in [constant, followed] {
        assert_eq!(chains(&world), ["for the index 0", "for the index 1"]);
    }
}

#[test]
fn what_is_wrong_in_a_class_is_told_with_the_include() {
    let mut builder = ProgramBuilder::new();
    let mut class = builder.template("the class `c`", 0);
    let (name, value) = (class.str("r"), class.outside("value", Type::Str));
    class.resource(name, value);
    let class = builder.add(class, None);
    let mut entry = builder.template("the entry", 0);
    let include = entry.instance(class, &[], Type::Dynamic);
    entry.named("include", include);
    let mut world = World::new(builder.finish(entry), &[("value", Value::str("!refuse"))]);
    let step = world.step();
    assert_eq!(codes(&step), ["invalid"]);
    let wrong = step.diagnostics.iter().next().unwrap();
    let way: Vec<_> = wrong.related.iter().map(|label| label.span).collect();
    assert_eq!(way, [world.built.span("include")]);
}
