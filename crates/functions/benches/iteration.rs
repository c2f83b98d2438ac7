//! What one changed element of a long list costs under `iter.map` and `iter.filter`, through compiler and evaluator; and what a
//! pure call costs beside the Rust function in it.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on fails")]

use std::hint::black_box;
use std::sync::{Arc, Mutex};

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use setpoint_diagnostics::{Diagnostics, MemoryLoader, SourceMap};
use setpoint_flow::{Evaluator, Program, SourceId};
use setpoint_functions::registry;
use setpoint_graph::{KindSchema, Library, ParameterSchema, ParameterType};
use setpoint_mcl::{CompileOptions, Entry, compile};
use setpoint_simulated::SimulatedCapabilities;
use setpoint_value::call::{call, call_typed};
use setpoint_value::{Implementation, List, Type, Value, Wake};

/// Elements of the long list.
const LENGTH: i64 = 100_000;

/// Where results go.
static KIND: KindSchema = KindSchema::plain(
    "test",
    "",
    &[ParameterSchema {
        name: "value",
        yaml_name: "value",
        parameter_type: &ParameterType::Any,
        form: None,
        doc: "",
        default: "",
    }],
);

fn compiled(result: &str) -> Arc<Program> {
    let text = format!(
        "import \"iter\"
import \"value\"
$list []int = value.get(\"list\")->value
$mapped = iter.map($list, func($x) {{
	$x * 2
}})
$kept = iter.filter($mapped, func($x) {{
	$x > 100
}})
test \"r\" {{
	value => {result},
}}
"
    );
    let library = Library::new(registry(), [&KIND]);
    let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let name = "iteration.mcl".to_owned();
    let entry = Entry::Code { name, text };
    let loader = MemoryLoader::new();
    let options = CompileOptions::default();
    let compiled = compile(
        &entry,
        &options,
        &loader,
        &library,
        &mut sources,
        &mut diagnostics,
    );
    assert!(!diagnostics.has_errors(), "{diagnostics:?}");
    compiled.program.unwrap()
}

struct Running {
    machine: SimulatedCapabilities,
    evaluator: Evaluator,
    woken: Arc<Mutex<Vec<SourceId>>>,
}

impl Running {
    fn start(program: Arc<Program>, list: &List) -> Running {
        let machine = SimulatedCapabilities::new();
        machine.set_value("list", Some(Value::List(list.clone())));
        let woken: Arc<Mutex<Vec<SourceId>>> = Arc::default();
        let wakes = woken.clone();
        let wake = move |id| {
            let wakes = wakes.clone();
            Wake::new(move || wakes.lock().unwrap().push(id))
        };
        let mut evaluator = Evaluator::new(program, machine.shared(), Box::new(wake));
        let step = evaluator.step(&[]);
        assert!(step.graph.is_some(), "{:?}", step.diagnostics);
        Running {
            machine,
            evaluator,
            woken,
        }
    }

    fn turn(&mut self, list: &List) -> usize {
        self.machine.set_value("list", Some(Value::List(list.clone())));
        let woken = std::mem::take(&mut *self.woken.lock().unwrap());
        let step = self.evaluator.step(&woken);
        assert!(!step.diagnostics.has_errors());
        step.recomputed
    }
}

fn iteration(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("map and filter over 100 000");
    group.sample_size(20);
    let first = List::new(Type::Int, (0..LENGTH).map(Value::Int));
    for (name, result) in [("into its length", "len($kept)"), ("into a resource", "$kept")] {
        let program = compiled(result);
        group.bench_function(format!("all of it, {name}"), |b| {
            b.iter_batched(
                || program.clone(),
                |program| Running::start(program, &first),
                BatchSize::PerIteration,
            );
        });
        let mut list = first.clone();
        let mut running = Running::start(program, &first);
        let mut turn = 0;
        group.bench_function(format!("one element, {name}"), |b| {
            b.iter(|| {
                turn += 1;
                // Far apart, and never what was there.
                let index = usize::try_from(turn * 31_337 % LENGTH).unwrap();
                list = list.with_item(index, Value::Int(turn + LENGTH));
                let recomputed = running.turn(&list);
                assert!(recomputed < 20, "{recomputed}");
            });
        });
    }
    group.finish();
}

fn calls(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("a pure call");
    let registry = registry();
    let arguments = [Value::str("/etc/motd"), Value::str("/etc")];
    let spec = registry.get("strings", "has_prefix").unwrap();
    group.bench_function("strings.has_prefix, directly", |b| {
        b.iter(|| {
            black_box("/etc/motd")
                .as_bytes()
                .starts_with(black_box("/etc").as_bytes())
        });
    });
    group.bench_function("strings.has_prefix, checked by the compiler", |b| {
        b.iter(|| call_typed(spec, black_box(&arguments), &Type::Bool).unwrap());
    });
    group.bench_function("strings.has_prefix, checked at the call", |b| {
        b.iter(|| call(spec, black_box(&arguments)).unwrap());
    });
    let Implementation::Pure(implementation) = &spec.implementation else {
        panic!("it is pure");
    };
    group.bench_function("strings.has_prefix, the implementation alone", |b| {
        b.iter(|| implementation.run(black_box(&arguments), &Type::Bool).unwrap());
    });
    let numbers = [Value::Int(41)];
    let spec = registry.get("math", "minus1").unwrap();
    group.bench_function("math.minus1, directly", |b| {
        b.iter(|| black_box(41i64).checked_sub(1));
    });
    group.bench_function("math.minus1, checked by the compiler", |b| {
        b.iter(|| call_typed(spec, black_box(&numbers), &Type::Int).unwrap());
    });
    group.finish();
}

criterion_group!(benches, iteration, calls);
criterion_main!(benches);
