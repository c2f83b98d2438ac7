//! A running program on a simulated machine, for tests: what the outside says is set, and the program stepped.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use setpoint_flow::{Evaluator, SourceId, Step};
use setpoint_graph::DesiredGraph;
use setpoint_simulated::SimulatedCapabilities;
use setpoint_value::{Value, Wake};

use crate::program_builder::Built;

/// A program, its machine, and the sources that have news.
pub(crate) struct World {
    pub(crate) machine: SimulatedCapabilities,
    pub(crate) evaluator: Evaluator,
    pub(crate) built: Built,
    woken: Arc<Mutex<BTreeSet<SourceId>>>,
    /// The last graph that was given out.
    pub(crate) graph: Option<DesiredGraph>,
}

impl World {
    /// A program that has not made its first step.
    pub(crate) fn new(built: Built, values: &[(&str, Value)]) -> World {
        World::on(SimulatedCapabilities::new(), built, values)
    }

    pub(crate) fn on(machine: SimulatedCapabilities, built: Built, values: &[(&str, Value)]) -> World {
        for (key, value) in values {
            machine.set_value(key, Some(value.clone()));
        }
        let woken: Arc<Mutex<BTreeSet<SourceId>>> = Arc::default();
        let wakes = woken.clone();
        let wake = move |id| {
            let wakes = wakes.clone();
            Wake::new(move || {
                wakes.lock().unwrap().insert(id);
            })
        };
        let mut evaluator = Evaluator::new(built.program.clone(), Arc::new(machine.clone()), Box::new(wake));
        evaluator.set_recording(true);
        World {
            machine,
            evaluator,
            built,
            woken,
            graph: None,
        }
    }

    /// A program after its first step, which must give a graph.
    pub(crate) fn started(built: Built, values: &[(&str, Value)]) -> World {
        let mut world = World::new(built, values);
        let step = world.step();
        assert!(step.graph.is_some(), "{step:?}");
        world
    }

    /// Makes a step with whatever has news.
    pub(crate) fn step(&mut self) -> Step {
        let woken: Vec<SourceId> = std::mem::take(&mut *self.woken.lock().unwrap())
            .into_iter()
            .collect();
        let step = self.evaluator.step(&woken);
        if let Some(graph) = &step.graph {
            assert!(step.pending.is_empty() && !step.diagnostics.has_errors());
            self.graph = Some(graph.clone());
        }
        step
    }

    /// Says something outside and makes a step.
    pub(crate) fn set(&mut self, key: &str, value: Value) -> Step {
        self.machine.set_value(key, Some(value));
        self.step()
    }

    pub(crate) fn set_int(&mut self, key: &str, value: i64) -> Step {
        self.set(key, Value::Int(value))
    }

    /// The names of the nodes that were computed since this was called last, each once, sorted.
    pub(crate) fn recomputed(&mut self) -> Vec<String> {
        let record = self.evaluator.take_record();
        let names: BTreeSet<String> = record
            .iter()
            .filter_map(|node| self.built.names.get(&(node.template, node.slot)).cloned())
            .collect();
        names.into_iter().collect()
    }

    /// The resources of the last graph with their values: `name=value`.
    pub(crate) fn resources(&self) -> Vec<String> {
        let graph = self.graph.as_ref().expect("there was a graph");
        let show = |resource: &setpoint_graph::DesiredResource| match resource.parameters.get("value") {
            Some(value) => format!("{}={value}", resource.id.name),
            None => resource.id.name.to_string(),
        };
        graph.resources.values().map(|resource| show(resource)).collect()
    }

    /// How many things of the machine are followed.
    pub(crate) fn followed(&self) -> usize {
        self.machine.live_watches()
    }
}

/// A list of ints.
pub(crate) fn ints(items: &[i64]) -> Value {
    Value::list(setpoint_value::Type::Int, items.iter().map(|n| Value::Int(*n)))
}

/// A map from str to int.
pub(crate) fn map(entries: &[(&str, i64)]) -> Value {
    use setpoint_value::Type;
    let entries = entries.iter().map(|(k, v)| (Value::str(*k), Value::Int(*v)));
    Value::map(Type::Str, Type::Int, entries)
}

/// The codes of all that is wrong.
pub(crate) fn codes(step: &Step) -> Vec<&'static str> {
    step.diagnostics.iter().map(|found| found.code.code).collect()
}
