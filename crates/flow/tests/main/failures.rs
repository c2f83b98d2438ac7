//! What fails, what catches it, and how it is told.

use setpoint_flow::{Slot, Step};
use setpoint_value::{Type, Value, operators};

use crate::library;
use crate::program_builder::{Built, ProgramBuilder, block};
use crate::world::{World, codes, ints, map};

/// `a / b <|> outside(fallback)` as the value of `r`.
fn guarded_division() -> Built {
    let mut builder = ProgramBuilder::new();
    let mut fallback = builder.template("the fallback", 0);
    let value = fallback.outside("fallback", Type::Int);
    let fallback = builder.add(fallback, Some(value));
    let mut entry = builder.template("the entry", 0);
    let (a, b) = (entry.outside("a", Type::Int), entry.outside("b", Type::Int));
    let quotient = entry.divide(a, b);
    entry.named("quotient", quotient);
    let value = entry.except(quotient, block(fallback, &[]), Type::Int);
    let name = entry.str("r");
    entry.resource(name, value);
    builder.finish(entry)
}

#[test]
fn except_gives_the_value_the_fallback_and_the_value_again() {
    let values = [
        ("a", Value::Int(6)),
        ("b", Value::Int(2)),
        ("fallback", Value::Int(-1)),
    ];
    let mut world = World::started(guarded_division(), &values);
    assert_eq!((world.resources(), world.followed()), (vec!["r=3".to_owned()], 2));
    world.set_int("b", 0);
    assert_eq!(
        (world.resources(), world.followed()),
        (vec!["r=-1".to_owned()], 3)
    );
    world.set_int("fallback", -2);
    assert_eq!(world.resources(), ["r=-2"]);
    world.set_int("b", 3);
    assert_eq!((world.resources(), world.followed()), (vec!["r=2".to_owned()], 2));
    world.set_int("b", 0);
    assert_eq!(world.resources(), ["r=-2"]);
}

#[test]
fn except_has_no_value_before_its_left_side_has_one() {
    let values = [("a", Value::Int(6)), ("fallback", Value::Int(-1))];
    let mut world = World::new(guarded_division(), &values);
    let step = world.step();
    assert_eq!((step.pending.len(), world.followed()), (1, 2));
    assert!(world.set_int("b", 0).graph.is_some());
}

#[test]
fn a_chain_of_fallbacks_takes_the_first_that_works_and_reports_the_last_that_fails() {
    let mut builder = ProgramBuilder::new();
    let mut bodies = Vec::new();
    for key in ["second", "third"] {
        let mut body = builder.template(key, 0);
        let value = body.outside(key, Type::Int);
        bodies.push(builder.add(body, Some(value)));
    }
    let mut entry = builder.template("the entry", 0);
    let first = entry.outside("first", Type::Int);
    let two = entry.except(first, block(bodies[0], &[]), Type::Int);
    let three = entry.except(two, block(bodies[1], &[]), Type::Int);
    let name = entry.str("r");
    entry.resource(name, three);
    let fail = || Value::str("!fail");
    let values = [("first", fail()), ("second", fail()), ("third", Value::Int(3))];
    let mut world = World::started(builder.finish(entry), &values);
    assert_eq!(world.resources(), ["r=3"]);
    world.set_int("second", 2);
    assert_eq!((world.resources(), world.followed()), (vec!["r=2".to_owned()], 2));
    world.set_int("first", 1);
    assert_eq!((world.resources(), world.followed()), (vec!["r=1".to_owned()], 1));
    world.set("first", fail());
    world.set("second", fail());
    let step = world.set("third", fail());
    assert_eq!(codes(&step), ["uncaught"]);
    let place = step.diagnostics.iter().next().unwrap().primary.span;
    assert_eq!(
        place,
        world.built.span("third"),
        "the failure that nothing caught"
    );
    assert!(world.set_int("third", 5).graph.is_some());
}

#[test]
fn a_value_that_fails_is_wrong_where_it_is_used_bare_and_fine_under_a_fallback() {
    let mut builder = ProgramBuilder::new();
    let mut fallback = builder.template("the fallback", 0);
    let zero = fallback.int(0);
    let fallback = builder.add(fallback, Some(zero));
    let mut entry = builder.template("the entry", 0);
    let a = entry.outside("a", Type::Int);
    let caught = entry.except(a, block(fallback, &[]), Type::Int);
    let (r, s) = (entry.str("r"), entry.str("s"));
    entry.resource(r, caught);
    let bare = entry.resource(s, a);
    entry.named("bare", bare);
    let mut world = World::new(builder.finish(entry), &[("a", Value::str("!fail"))]);
    let step = world.step();
    assert!(step.graph.is_none());
    let found = step.diagnostics.iter().next().unwrap();
    assert_eq!(
        (codes(&step), found.primary.span),
        (vec!["uncaught"], world.built.span("a"))
    );
    assert_eq!(found.message, "`outside.get` failed: `a` is not there");
    assert_eq!(found.secondary[0].span, world.built.span("bare"));
    assert!(world.set_int("a", 1).graph.is_some());
}

#[test]
fn a_failure_that_reaches_three_statements_is_told_once() {
    let builder = ProgramBuilder::new();
    let mut entry = builder.template("the entry", 0);
    let a = entry.outside("a", Type::Int);
    for name in ["x", "y", "z"] {
        let name = entry.str(name);
        let sum = entry.add(a, a);
        entry.resource(name, sum);
    }
    let mut world = World::new(builder.finish(entry), &[("a", Value::str("!fail"))]);
    assert_eq!(codes(&world.step()), ["uncaught"]);
}

fn picky(key: &str, function: &'static setpoint_value::FunctionSpec) -> Built {
    let mut builder = ProgramBuilder::new();
    let mut fallback = builder.template("the fallback", 0);
    let zero = fallback.int(0);
    let fallback = builder.add(fallback, Some(zero));
    let mut entry = builder.template("the entry", 0);
    let a = entry.outside(key, Type::Int);
    let value = entry.call(function, &[a], Type::Int);
    entry.named("picky", value);
    let value = entry.except(value, block(fallback, &[]), Type::Int);
    let name = entry.str("r");
    entry.resource(name, value);
    builder.finish(entry)
}

fn told(step: &Step) -> Vec<String> {
    step.diagnostics
        .iter()
        .map(|found| found.message.clone())
        .collect()
}

#[test]
fn a_fatal_failure_is_not_caught_and_the_program_recovers() {
    let mut world = World::started(picky("a", &library::PICKY), &[("a", Value::Int(1))]);
    let step = world.set_int("a", 13);
    assert_eq!(codes(&step), ["fatal"]);
    assert_eq!(told(&step), ["`test.picky` failed: 13 is bad luck"]);
    assert_eq!(
        step.diagnostics.iter().next().unwrap().primary.span,
        world.built.span("picky")
    );
    // It stays wrong for as long as it is.
    assert_eq!(codes(&world.step()), ["fatal"]);
    let step = world.set_int("a", 1);
    assert!(codes(&step).is_empty() && step.graph.is_none(), "nothing changed");
    assert!(world.set_int("a", 2).graph.is_some());
}

#[test]
fn a_crash_in_a_function_is_told_at_its_call() {
    let mut world = World::started(picky("a", &library::PICKY), &[("a", Value::Int(1))]);
    let step = world.set_int("a", 17);
    assert_eq!(codes(&step), ["fatal"]);
    assert!(told(&step)[0].contains("17 is too much"), "{:?}", told(&step));
    assert!(world.set_int("a", 18).graph.is_some());
}

#[test]
fn a_crash_in_a_source_is_told_at_its_call() {
    let builder = ProgramBuilder::new();
    let mut entry = builder.template("the entry", 0);
    let name = entry.str("r");
    let value = entry.call(&library::CRASHES, &[name], Type::Str);
    entry.resource(name, value);
    let mut world = World::new(builder.finish(entry), &[]);
    let step = world.step();
    assert_eq!(codes(&step), ["fatal"]);
    assert!(told(&step)[0].contains("the source crashes"));
}

#[test]
fn a_crash_in_the_check_of_a_kind_is_told_at_the_statement() {
    let builder = ProgramBuilder::new();
    let mut entry = builder.template("the entry", 0);
    let name = entry.str("r");
    let a = entry.outside("a", Type::Str);
    entry.resource(name, a);
    let mut world = World::started(builder.finish(entry), &[("a", Value::str("x"))]);
    assert_eq!(codes(&world.set("a", Value::str("!crash"))), ["fatal"]);
    assert_eq!(codes(&world.set("a", Value::str("!refuse"))), ["invalid"]);
    assert!(codes(&world.set("a", Value::str("x"))).is_empty());
}

#[test]
fn the_way_to_a_failure_is_told_from_the_inside_out() {
    let mut builder = ProgramBuilder::new();
    let mut inner = builder.template("function inner", 1);
    let zero = inner.int(0);
    let value = inner.divide(Slot(0), zero);
    inner.named("division", value);
    let inner = builder.add(inner, Some(value));
    let mut outer = builder.template("function outer", 1);
    let value = outer.instance(inner, &[Slot(0)], Type::Int);
    outer.named("inner call", value);
    let outer = builder.add(outer, Some(value));
    let mut entry = builder.template("the entry", 0);
    let one = entry.int(1);
    let value = entry.instance(outer, &[one], Type::Int);
    entry.named("outer call", value);
    let name = entry.str("r");
    entry.resource(name, value);
    let mut world = World::new(builder.finish(entry), &[]);
    let step = world.step();
    let found = step.diagnostics.iter().next().unwrap();
    assert_eq!(found.primary.span, world.built.span("division"));
    let way: Vec<_> = found
        .related
        .iter()
        .map(|label| (label.span, label.text.as_str()))
        .collect();
    let expected = [
        (world.built.span("inner call"), "in function inner, called here"),
        (world.built.span("outer call"), "in function outer, called here"),
    ];
    assert_eq!(way, expected);
}

#[test]
fn every_panic_that_fires_is_told_and_those_in_other_branches_are_not() {
    let mut builder = ProgramBuilder::new();
    let mut then = builder.template("then", 0);
    let text = then.str("inside");
    then.panic(text, None);
    let then = builder.add(then, None);
    let mut entry = builder.template("the entry", 0);
    let (a, b) = (entry.outside("a", Type::Bool), entry.outside("b", Type::Bool));
    let text = entry.str("first");
    entry.panic(a, Some(text));
    entry.panic(a, None);
    entry.if_statement(b, Some(block(then, &[])), None);
    let values = [("a", Value::Bool(false)), ("b", Value::Bool(false))];
    let mut world = World::started(builder.finish(entry), &values);
    let step = world.set("a", Value::Bool(true));
    assert_eq!(told(&step), ["panic: first", "panic"]);
    assert_eq!(codes(&step), ["panic", "panic"]);
    world.set("a", Value::Bool(false));
    assert_eq!(told(&world.set("b", Value::Bool(true))), ["panic: inside"]);
    assert!(codes(&world.set("b", Value::Bool(false))).is_empty());
}

/// What it is, what the outside says, and what is told.
type Case<'a> = (&'a str, &'a [(&'a str, Value)], &'a [&'a str]);

#[test]
fn a_panic_fires_for_what_is_true_or_has_text_and_tells_no_secret() {
    let builder = ProgramBuilder::new();
    let mut entry = builder.template("the entry", 0);
    let bare = entry.outside("bare", Type::Str);
    entry.panic(bare, None);
    let (condition, message) = (
        entry.outside("if", Type::Bool),
        entry.outside("message", Type::Str),
    );
    entry.panic(condition, Some(message));
    let calm = [
        ("bare", Value::str("")),
        ("if", Value::Bool(false)),
        ("message", Value::str("why")),
    ];
    let mut world = World::started(builder.finish(entry), &calm);
    let (yes, text) = (Value::Bool(true), Value::str("text"));
    let cases: [Case<'_>; 7] = [
        (
            "a text is the message",
            &[("bare", text.clone())],
            &["panic: text"],
        ),
        (
            "a secret is not",
            &[("bare", text.clone().sensitive())],
            &["panic"],
        ),
        ("none is known yet", &[("bare", Value::unknown(Type::Str))], &[]),
        ("the message beside it", &[("if", yes.clone())], &["panic: why"]),
        (
            "a secret beside it",
            &[("if", yes.clone()), ("message", text.sensitive())],
            &["panic"],
        ),
        ("not known whether", &[("if", Value::unknown(Type::Bool))], &[]),
        (
            "the message fails",
            &[("if", yes), ("message", Value::str("!fail"))],
            &["`outside.get` failed: `message` is not there"],
        ),
    ];
    for (what, values, expected) in cases {
        let mut step = world.step();
        for (key, value) in values {
            step = world.set(key, value.clone());
        }
        assert_eq!(told(&step), expected, "{what}");
        for (key, value) in &calm {
            step = world.set(key, value.clone());
        }
        assert!(told(&step).is_empty(), "calm after: {what}");
    }
}

#[test]
fn a_lookup_that_fails_is_called_one() {
    for (function, of, key) in [
        (&operators::LIST_LOOKUP, Value::list(Type::Int, []), Value::Int(3)),
        (&operators::MAP_LOOKUP, map(&[]), Value::str("a")),
    ] {
        let builder = ProgramBuilder::new();
        let mut entry = builder.template("the entry", 0);
        let (of, key) = (entry.constant(of), entry.constant(key));
        let value = entry.call(function, &[of, key], Type::Int);
        let name = entry.str("r");
        entry.resource(name, value);
        let step = World::new(builder.finish(entry), &[]).step();
        assert_eq!(codes(&step), ["uncaught"]);
        assert!(
            told(&step)[0].starts_with("this lookup failed: "),
            "{:?}",
            told(&step)
        );
    }
}

#[test]
fn of_a_long_way_to_a_failure_the_nearest_32_steps_are_told() {
    for (depth, told_steps, is_cut) in [(32, 32, false), (33, 32, true)] {
        let mut builder = ProgramBuilder::new();
        let mut body = builder.template("function 0", 1);
        let zero = body.int(0);
        let value = body.divide(Slot(0), zero);
        let mut inner = builder.add(body, Some(value));
        for level in 1..depth {
            let mut body = builder.template(&format!("function {level}"), 1);
            let value = body.instance(inner, &[Slot(0)], Type::Int);
            inner = builder.add(body, Some(value));
        }
        let mut entry = builder.template("the entry", 0);
        let one = entry.int(1);
        let value = entry.instance(inner, &[one], Type::Int);
        let name = entry.str("r");
        entry.resource(name, value);
        let step = World::new(builder.finish(entry), &[]).step();
        let found = step.diagnostics.iter().next().unwrap();
        assert_eq!(found.related.len(), told_steps);
        assert!(found.related[0].text.starts_with("in function 0,"));
        let cut = found
            .notes
            .iter()
            .any(|note| note.contains("more steps lie around these"));
        assert_eq!(cut, is_cut, "{depth}");
    }
}

#[test]
fn a_failed_condition_list_or_map_of_a_statement_is_wrong_and_an_expression_passes_it_on() {
    let mut builder = ProgramBuilder::new();
    let mut body = builder.template("the body of the loop", 2);
    let name = body.text_of(Slot(0));
    body.resource(name, Slot(1));
    let body = builder.add(body, None);
    let mut branch = builder.template("a branch", 0);
    let one = branch.int(1);
    let branch = builder.add(branch, Some(one));
    let mut entry = builder.template("the entry", 0);
    let list = entry.outside("list", Type::list(Type::Int));
    entry.for_(list, block(body, &[]));
    let condition = entry.outside("condition", Type::Bool);
    let value = entry.if_(condition, block(branch, &[]), block(branch, &[]), Type::Int);
    let caught = entry.except(value, block(branch, &[]), Type::Int);
    let name = entry.str("r");
    entry.resource(name, caught);
    let values = [("list", ints(&[4])), ("condition", Value::str("!fail"))];
    let mut world = World::started(builder.finish(entry), &values);
    assert_eq!(world.resources(), ["0=4", "r=1"]);
    let step = world.set("list", Value::str("!fail"));
    assert_eq!(codes(&step), ["uncaught"]);
    assert_eq!(
        step.diagnostics.iter().next().unwrap().primary.span,
        world.built.span("list")
    );
    let step = world.set("list", ints(&[4]));
    assert!(
        codes(&step).is_empty() && step.graph.is_none(),
        "the same as before"
    );
}

#[test]
fn a_mistake_in_the_graph_is_told_until_it_is_mended() {
    let builder = ProgramBuilder::new();
    let mut entry = builder.template("the entry", 0);
    let (a, b) = (entry.outside("a", Type::Int), entry.outside("b", Type::Int));
    let name = entry.str("same");
    entry.resource(name, a);
    entry.resource(name, b);
    let other = entry.str("other");
    let c = entry.outside("c", Type::Int);
    entry.resource(other, c);
    let values = [("a", Value::Int(1)), ("b", Value::Int(2)), ("c", Value::Int(3))];
    let mut world = World::new(builder.finish(entry), &values);
    assert_eq!(codes(&world.step()), ["different"]);
    assert_eq!(codes(&world.set_int("c", 4)), ["different"]);
    assert!(world.set_int("b", 1).graph.is_some());
    assert_eq!(world.resources(), ["other=4", "same=1"]);
}

#[test]
fn a_failure_that_stays_the_same_ends_the_wave() {
    let builder = ProgramBuilder::new();
    let mut entry = builder.template("the entry", 0);
    let (a, b) = (entry.outside("a", Type::Int), entry.outside("b", Type::Int));
    let quotient = entry.divide(a, b);
    entry.named("quotient", quotient);
    let one = entry.int(1);
    let sum = entry.add(quotient, one);
    entry.named("sum", sum);
    let name = entry.str("r");
    entry.resource(name, sum);
    let values = [("a", Value::Int(1)), ("b", Value::Int(0))];
    let mut world = World::new(builder.finish(entry), &values);
    assert_eq!(codes(&world.step()), ["uncaught"]);
    world.recomputed();
    assert_eq!(codes(&world.set_int("a", 2)), ["uncaught"]);
    assert_eq!(world.recomputed(), ["a", "quotient"]);
}

#[test]
fn an_error_of_an_old_value_goes_when_no_new_value_is_there_yet() {
    let mut builder = ProgramBuilder::new();
    let mut branches = Vec::new();
    for key in ["secret", "later"] {
        let mut branch = builder.template(key, 0);
        let value = branch.outside(key, Type::Str);
        branches.push(builder.add(branch, Some(value)));
    }
    let mut entry = builder.template("the entry", 0);
    let condition = entry.outside("condition", Type::Bool);
    let [then, otherwise] = [0, 1].map(|at| block(branches[at], &[]));
    let name = entry.if_(condition, then, otherwise, Type::Str);
    let value = entry.int(1);
    entry.resource(name, value);
    let values = [
        ("condition", Value::Bool(true)),
        ("secret", Value::str("s").sensitive()),
    ];
    let mut world = World::new(builder.finish(entry), &values);
    assert_eq!(codes(&world.step()), ["graph"]);
    let step = world.set("condition", Value::Bool(false));
    assert_eq!((codes(&step).len(), step.pending.len()), (0, 1));
    assert_eq!(codes(&world.set("later", Value::str("t").sensitive())), ["graph"]);
    assert!(world.set("later", Value::str("t")).graph.is_some());
    assert_eq!(world.resources(), ["t=1"]);
}
