//! What steps cost: starting a program, and one event in a large one.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on fails")]

use std::sync::{Arc, Mutex};

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};

#[path = "../tests/main/library.rs"]
#[expect(dead_code, reason = "the tests use all of it")]
mod library;
#[path = "../tests/main/plain.rs"]
mod plain;
#[path = "../tests/main/program_builder.rs"]
#[expect(dead_code, reason = "the tests use all of it")]
mod program_builder;

use program_builder::{ProgramBuilder, block, int_to_int};
use setpoint_flow::{Evaluator, Program, Slot, SourceId};
use setpoint_simulated::SimulatedCapabilities;
use setpoint_value::{List, Type, Value, Wake};

/// A started program, whose source says something new at each turn.
struct Running {
    machine: SimulatedCapabilities,
    evaluator: Evaluator,
    woken: Arc<Mutex<Vec<SourceId>>>,
}

impl Running {
    fn new(program: Arc<Program>, first: Value) -> Running {
        let machine = SimulatedCapabilities::new();
        machine.set_value("a", Some(first));
        let woken: Arc<Mutex<Vec<SourceId>>> = Arc::default();
        let wakes = woken.clone();
        let wake = move |id| {
            let wakes = wakes.clone();
            Wake::new(move || wakes.lock().unwrap().push(id))
        };
        let mut evaluator = Evaluator::new(program, Arc::new(machine.clone()), Box::new(wake));
        let step = evaluator.step(&[]);
        assert!(step.graph.is_some(), "{:?}", step.diagnostics);
        Running {
            machine,
            evaluator,
            woken,
        }
    }

    fn turn(&mut self, value: Value) -> usize {
        self.machine.set_value("a", Some(value));
        let woken = std::mem::take(&mut *self.woken.lock().unwrap());
        let step = self.evaluator.step(&woken);
        assert!(step.graph.is_some(), "{:?}", step.diagnostics);
        step.recomputed
    }
}

fn chain(length: usize) -> Arc<Program> {
    let builder = ProgramBuilder::new();
    let mut entry = builder.template("the entry", 0);
    let mut last = entry.outside("a", Type::Int);
    let one = entry.int(1);
    for _ in 0..length {
        last = entry.add(last, one);
    }
    let name = entry.str("r");
    entry.resource(name, last);
    builder.finish(entry).program
}

fn fan_out(width: i64) -> Arc<Program> {
    let builder = ProgramBuilder::new();
    let mut entry = builder.template("the entry", 0);
    let a = entry.outside("a", Type::Int);
    for number in 0..width {
        let name = entry.str(&format!("r{number}"));
        let number = entry.int(number);
        let sum = entry.add(a, number);
        entry.resource(name, sum);
    }
    builder.finish(entry).program
}

fn loop_over_list() -> Arc<Program> {
    let mut builder = ProgramBuilder::new();
    let mut body = builder.template("the body of the loop", 2);
    let name = body.text_of(Slot(0));
    let sum = body.add(Slot(1), Slot(1));
    body.resource(name, sum);
    let body = builder.add(body, None);
    let mut entry = builder.template("the entry", 0);
    let list = entry.outside("a", Type::list(Type::Int));
    entry.for_(list, block(body, &[]));
    builder.finish(entry).program
}

fn map_over_list() -> Arc<Program> {
    let mut builder = ProgramBuilder::new();
    let mut body = builder.template("a function", 1);
    let sum = body.add(Slot(0), Slot(0));
    let body = builder.add(body, Some(sum));
    let mut entry = builder.template("the entry", 0);
    let list = entry.outside("a", Type::list(Type::Int));
    let function = entry.closure(block(body, &[]), int_to_int());
    let mapped = entry.call(&library::MAP, &[list, function], Type::list(Type::Int));
    let length = entry.call(&library::LEN, &[mapped], Type::Int);
    let sum = entry.add(length, length);
    let name = entry.str("r");
    entry.resource(name, sum);
    let name = entry.str("list");
    entry.resource(name, mapped);
    builder.finish(entry).program
}

/// Static resources, each with a computed name, and a clock.
fn static_resources(count: i64) -> Arc<Program> {
    let builder = ProgramBuilder::new();
    let mut entry = builder.template("the entry", 0);
    for number in 0..count {
        let number = entry.int(number);
        let text = entry.text_of(number);
        let prefix = entry.str("/etc/");
        let name = entry.concat(prefix, text);
        entry.resource(name, number);
    }
    let clock = entry.outside("a", Type::Int);
    let name = entry.str("clock");
    entry.resource(name, clock);
    builder.finish(entry).program
}

fn events(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("event");
    group.sample_size(20);
    let mut turn = 0;
    let mut running = Running::new(chain(100_000), Value::Int(0));
    group.bench_function("chain of 100 000", |b| {
        b.iter(|| {
            turn += 1;
            running.turn(Value::Int(turn))
        });
    });
    let mut running = Running::new(fan_out(100_000), Value::Int(0));
    group.bench_function("fan-out to 100 000 resources", |b| {
        b.iter(|| {
            turn += 1;
            running.turn(Value::Int(turn))
        });
    });
    let items: imbl::Vector<Value> = (0..100_000).map(Value::Int).collect();
    let of = |items: &imbl::Vector<Value>| Value::List(List::from_vector(Type::Int, items.clone()));
    for (name, program) in [
        ("for over 100 000, one element", loop_over_list()),
        ("map over 100 000, one element", map_over_list()),
    ] {
        let mut items = items.clone();
        let mut running = Running::new(program, of(&items));
        group.bench_function(name, |b| {
            b.iter(|| {
                turn += 1;
                items.set(turn as usize % 100_000, Value::Int(-turn));
                running.turn(of(&items))
            });
        });
    }
    let mut running = Running::new(static_resources(10_000), Value::Int(0));
    group.bench_function("clock beside 10 000 static resources", |b| {
        b.iter(|| {
            turn += 1;
            running.turn(Value::Int(turn))
        });
    });
    group.finish();
}

fn starting(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("start");
    group.sample_size(10);
    let items: imbl::Vector<Value> = (0..100_000).map(Value::Int).collect();
    let list = Value::List(List::from_vector(Type::Int, items));
    for (name, program, first) in [
        ("chain of 100 000", chain(100_000), Value::Int(0)),
        ("fan-out to 100 000 resources", fan_out(100_000), Value::Int(0)),
        ("for over 100 000", loop_over_list(), list),
        ("10 000 static resources", static_resources(10_000), Value::Int(0)),
        (
            "100 000 static resources",
            static_resources(100_000),
            Value::Int(0),
        ),
    ] {
        group.bench_function(name, |b| {
            b.iter_batched(
                || first.clone(),
                |first| Running::new(program.clone(), first),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, events, starting);
criterion_main!(benches);
