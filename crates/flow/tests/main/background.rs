//! Answers that come later, and the end of an evaluation at any moment.

use setpoint_flow::Stop;
use setpoint_value::{Class, Follow, FunctionSpec, ReadOnce, Type, Value, operators};

use crate::program_builder::ProgramBuilder;
use crate::world::{World, ints};

/// Ten times a number, as something that is read once.
static TENFOLD: FunctionSpec = FunctionSpec::source(
    "test",
    "tenfold",
    &["func(int) int"],
    Class::Environment,
    &ReadOnce {
        read: |_, arguments| Ok(Value::Int(arguments[0].as_int().unwrap() * 10)),
        reads_module_directory: false,
    },
);

/// A value of the machine. Each change makes the source read it again.
static STORED: FunctionSpec = FunctionSpec::source(
    "test",
    "stored",
    &["func() int"],
    Class::Source,
    &Follow {
        read: |context, _| {
            let values = context.capabilities.values().unwrap();
            Ok(values.get("number").unwrap())
        },
        watch: |context, _| {
            let values = context.capabilities.values().unwrap();
            Ok(vec![values.watch("number", context.wake.clone())])
        },
        rearmed: false,
        keyed: false,
    },
);

#[test]
fn a_change_that_is_being_read_is_a_change_to_come() {
    let builder = ProgramBuilder::new();
    let mut entry = builder.template("the entry", 0);
    let stored = entry.call(&STORED, &[], Type::Int);
    let name = entry.str("r");
    entry.resource(name, stored);
    let mut world = World::started(builder.finish(entry), &[("number", Value::Int(1))]);
    assert!(!world.evaluator.is_reading());
    world.machine.keep_background_work();
    let step = world.set_int("number", 2);
    assert!(step.is_finished && step.graph.is_none() && step.pending.is_empty());
    assert!(world.evaluator.is_reading());
    world.machine.do_background_work();
    assert!(world.step().is_finished);
    assert!(!world.evaluator.is_reading());
    assert_eq!(world.resources(), ["r=2"]);
}

#[test]
fn nothing_is_seen_beside_an_answer_to_what_it_was_before() {
    let builder = ProgramBuilder::new();
    let mut entry = builder.template("the entry", 0);
    let number = entry.outside("number", Type::Int);
    let other = entry.outside("other", Type::Int);
    let tenfold = entry.call(&TENFOLD, &[number], Type::Int);
    let sum = entry.add(number, tenfold);
    entry.named("sum", sum);
    let both = entry.text_of(sum);
    entry.resource(both, other);
    let mut world = World::new(
        builder.finish(entry),
        &[("number", Value::Int(1)), ("other", Value::Int(0))],
    );
    world.machine.keep_background_work();
    let step = world.step();
    assert!(!step.is_finished && step.graph.is_none() && !step.diagnostics.has_errors());
    assert_eq!(step.pending.len(), 1, "{:?}", step.pending);
    assert_eq!(step.pending[0].function, "test.tenfold");
    assert_eq!(world.machine.do_background_work(), 1);
    assert!(world.step().is_finished);
    assert_eq!(world.resources(), ["11=0"]);
    world.recomputed();

    // The answer for the new number is on its way: nothing above is computed of new and old together, nothing is told, and
    // what else changes has to wait for its turn.
    let step = world.set_int("number", 2);
    assert!(!step.is_finished && step.graph.is_none());
    assert!(!world.recomputed().contains(&"sum".to_owned()));
    let step = world.set_int("other", 7);
    assert!(!step.is_finished && step.graph.is_none());
    assert_eq!(world.machine.do_background_work(), 1);
    assert!(world.step().is_finished);
    assert_eq!(world.resources(), ["22=0"]);
    assert!(world.step().is_finished);
    assert_eq!(world.resources(), ["22=7"]);
}

#[test]
fn of_several_answers_the_first_moves_nothing_above_before_the_last_is_there() {
    let builder = ProgramBuilder::new();
    let mut entry = builder.template("the entry", 0);
    let list = entry.outside("list", Type::list(Type::Int));
    let mut answers = Vec::new();
    for at in 0..2 {
        let at = entry.int(at);
        let number = entry.call(&operators::LIST_LOOKUP, &[list, at], Type::Int);
        answers.push(entry.call(&TENFOLD, &[number], Type::Int));
    }
    let sum = entry.add(answers[0], answers[1]);
    entry.named("sum", sum);
    let name = entry.str("r");
    entry.resource(name, sum);
    let mut world = World::started(builder.finish(entry), &[("list", ints(&[1, 2]))]);
    assert_eq!(world.resources(), ["r=30"]);
    world.machine.keep_background_work();
    assert!(!world.set("list", ints(&[3, 4])).is_finished);
    world.recomputed();
    assert!(world.machine.do_first_background_work());
    assert!(!world.step().is_finished);
    assert!(!world.recomputed().contains(&"sum".to_owned()));
    assert!(world.machine.do_first_background_work());
    assert!(!world.machine.do_first_background_work());
    assert!(world.step().is_finished);
    assert_eq!(world.resources(), ["r=70"]);
}

#[test]
fn many_answers_are_asked_for_at_once() {
    let mut builder = ProgramBuilder::new();
    let mut body = builder.template("the body of the loop", 2);
    let tenfold = body.call(&TENFOLD, &[setpoint_flow::Slot(1)], Type::Int);
    let name = body.text_of(setpoint_flow::Slot(0));
    body.resource(name, tenfold);
    let body = builder.add(body, None);
    let mut entry = builder.template("the entry", 0);
    let list = entry.outside("list", Type::list(Type::Int));
    entry.for_(list, crate::program_builder::block(body, &[]));
    let numbers: Vec<i64> = (0..20).collect();
    let mut world = World::new(builder.finish(entry), &[("list", ints(&numbers))]);
    world.machine.keep_background_work();
    assert_eq!(world.step().pending.len(), 20);
    assert_eq!(world.machine.do_background_work(), 20);
    assert!(world.step().is_finished);
    assert_eq!(world.resources().len(), 20);
    // What is not followed any more is not waited for either.
    assert!(!world.set("list", ints(&[5])).is_finished);
    assert!(!world.set("list", ints(&[])).is_finished);
    world.machine.do_background_work();
    while !world.step().is_finished {
        world.machine.do_background_work();
    }
    assert!(world.step().is_finished);
    assert_eq!(world.resources().len(), 0);
}

#[test]
fn an_evaluation_ends_at_the_node_at_which_it_is_stopped() {
    use std::sync::OnceLock;
    static STOP: OnceLock<Stop> = OnceLock::new();
    static STOPS: FunctionSpec = FunctionSpec::pure("test", "stops", &["func(int) int"], |arguments, _| {
        STOP.get_or_init(Stop::default).stop();
        Ok(arguments[0].clone())
    });
    let builder = ProgramBuilder::new();
    let mut entry = builder.template("the entry", 0);
    let number = entry.outside("number", Type::Int);
    let stops = entry.call(&STOPS, &[number], Type::Int);
    let after = entry.add(stops, stops);
    entry.named("after", after);
    let name = entry.str("never");
    entry.resource(name, after);
    let mut world = World::new(builder.finish(entry), &[("number", Value::Int(1))]);
    let stop = STOP.get_or_init(Stop::default).clone();
    world.evaluator = world.evaluator.stopped_by(stop);
    let step = world.step();
    assert!(!step.is_finished && step.graph.is_none());
    assert_eq!(step.pending.len(), 1);
    assert_eq!(step.pending[0].function, "test.stops");
    assert!(!world.recomputed().contains(&"after".to_owned()));
    assert!(!world.step().is_finished, "for good");
}

#[test]
fn a_program_of_many_instances_is_not_put_in_place_after_the_stop() {
    let mut builder = ProgramBuilder::new();
    let mut body = builder.template("a class", 0);
    let name = body.str("in it");
    let value = body.int(1);
    body.resource(name, value);
    let body = builder.add(body, None);
    let mut entry = builder.template("the entry", 0);
    for _ in 0..100 {
        entry.instance(body, &[], Type::Int);
    }
    let mut world = World::new(builder.finish(entry), &[]);
    let stop = Stop::default();
    stop.stop();
    world.evaluator = world.evaluator.stopped_by(stop);
    let step = world.step();
    assert!(!step.is_finished && step.graph.is_none());
    assert_eq!(world.evaluator.live_nodes(), 0);
}
