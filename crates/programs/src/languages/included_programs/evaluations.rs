//! The programs behind the instances of a model, evaluated.
//!
//! Instances of equal class and equal inputs share an evaluation. It lives as long as an instance wants it, follows its sources, and says by
//! ringing that it has news; taken in they are when the model is looked at again. What a program holds in its variables are facts of the
//! instance. They count for the inputs that the program was evaluated with: of others they are unknown until it was.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_cf::datum::{Datum, InstanceId, Unknowns, to_datum};
use setpoint_cf::export::{Exported, MachineOutputs, StatementOf, codes};
use setpoint_diagnostics::{Diagnostic, Diagnostics, SourceMap, Span, did_you_mean};
use setpoint_flow::{Evaluator, Pending, Step};
use setpoint_graph::{DesiredGraph, DesiredResource, ResourceId};
use setpoint_value::Value;

use super::module::{ClassProgram, ProgramModule};
use super::replacement::{Became, Part, replace};
use super::{CLASS, INPUTS, IncludedPrograms, KIND, MODULE, OUTPUT, VALUE};
use crate::capabilities::SourceAccess;
use crate::facts::Facts;
use crate::failure::Failure;
use crate::languages::evaluation::Woken;
use crate::languages::included_models::{IncludedModels, News};
use crate::local_machine::LocalMachine;
use crate::report::Reporter;

/// What evaluating takes.
#[derive(Clone)]
pub struct Evaluating {
    /// Whom sources ask.
    pub machine: LocalMachine,
    /// Their access to it.
    pub access: SourceAccess,
    /// How long first values are waited for.
    pub wait: Duration,
    /// Called when a program has news, from any thread.
    pub ring: Arc<dyn Fn() + Send + Sync>,
}

/// The evaluations of a model.
pub struct Evaluations {
    programs: IncludedPrograms,
    /// None: nothing is evaluated.
    evaluating: Option<Evaluating>,
    running: FxHashMap<Inputs, Running>,
    /// With which inputs the program of an instance was evaluated whose outputs were facts the last time.
    counted: BTreeMap<String, Inputs>,
    /// The facts that there are now.
    facts: Facts,
    /// The resources that stand in the place of instances.
    stands_for: BTreeMap<ResourceId, Vec<ResourceId>>,
    /// Whether one of them waits for a first value.
    is_waiting: bool,
    reporter: Reporter,
}

/// A class with what it is given.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Inputs {
    directory: String,
    class: String,
    values: Vec<Value>,
}

/// An instance whose program can be evaluated.
struct Instance {
    number: InstanceId,
    /// By which its facts are known.
    identity: String,
    resource: Arc<DesiredResource>,
    module: Arc<ProgramModule>,
    inputs: Inputs,
}

impl Evaluations {
    /// None yet.
    pub fn new(programs: IncludedPrograms, reporter: &Reporter) -> Evaluations {
        Evaluations {
            programs,
            evaluating: None,
            running: FxHashMap::default(),
            counted: BTreeMap::new(),
            facts: Facts::new(),
            stands_for: BTreeMap::new(),
            is_waiting: false,
            reporter: reporter.clone(),
        }
    }

    /// Evaluates from now on.
    pub fn evaluate(&mut self, evaluating: Evaluating) {
        self.evaluating = Some(evaluating);
    }

    /// What instances hold in their variables, as facts.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// What stands in the place of an instance.
    pub(crate) fn stands_for(&self, instance: &ResourceId) -> &[ResourceId] {
        self.stands_for.get(instance).map_or(&[], Vec::as_slice)
    }

    /// Whether something is still waited for that rings when it is there.
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// Puts the resources of programs in the place of their instances. What is wrong is told.
    pub fn replace(
        &mut self,
        exported: &Exported,
        machine: &mut MachineOutputs,
        sources: &mut SourceMap,
        diagnostics: &mut Diagnostics,
    ) {
        let mut instances = Vec::new();
        for (statement, reporter) in &machine.outputs {
            let program = reporter
                .resources
                .first()
                .filter(|resource| &*resource.id.kind == KIND);
            let StatementOf::Resource(number) = statement else {
                continue;
            };
            let (Some(resource), Some(described)) = (program, exported.of_instance(*number)) else {
                continue;
            };
            match self.instance(*number, described.identity.key(), resource) {
                Ok(instance) => instances.push(instance),
                Err(error) => diagnostics.push(*error),
            }
        }
        self.is_waiting = false;
        self.stands_for.clear();
        let mut wanted: FxHashSet<Inputs> = FxHashSet::default();
        match &self.evaluating {
            Some(evaluating) if !diagnostics.has_errors() => {
                let evaluating = evaluating.clone();
                self.advance(&instances, &evaluating, diagnostics);
            }
            Some(_) | None => self.running.clear(),
        }
        let mut became = BTreeMap::new();
        let (mut facts, mut counted) = (Facts::new(), BTreeMap::new());
        for instance in instances {
            let Some(running) = self.running.get(&instance.inputs) else {
                let reason = "programs are not evaluated here".to_owned();
                became.insert(instance.number, Became::Held(reason));
                continue;
            };
            let texts = running.texts();
            let places = instance
                .module
                .places(&texts, Some(instance.resource.span), sources);
            if wanted.insert(instance.inputs.clone()) {
                News::report(&running.models.news(), &self.reporter);
                diagnostics.append(places.diagnostics(&running.diagnostics));
            }
            let waits = running.waits_for();
            self.is_waiting |= waits.is_some();
            let Some(known) = running.known.as_ref().filter(|_| waits.is_none()) else {
                let reason = waits.unwrap_or_else(|| "its program is wrong".to_owned());
                became.insert(instance.number, Became::Held(reason));
                continue;
            };
            let before = self.counted.get(&instance.identity);
            if before.is_none_or(|before| *before == instance.inputs) {
                for (name, datum) in &known.outputs {
                    facts.insert(format!("{}/{name}", instance.identity).into(), datum.clone());
                }
                counted.insert(instance.identity, instance.inputs);
            }
            if known.has_unknown {
                let reason = "something in its program is not known".to_owned();
                became.insert(instance.number, Became::Held(reason));
                continue;
            }
            let resources = known.part.resources.iter();
            let ids = resources.clone().map(|resource| resource.id.clone());
            self.stands_for
                .insert(instance.resource.id.clone(), ids.collect());
            let part = Part {
                resources: resources
                    .map(|resource| Arc::new(places.resource(resource)))
                    .collect(),
                edges: known.part.edges.iter().map(|edge| places.edge(edge)).collect(),
            };
            became.insert(instance.number, Became::Resources(part));
        }
        self.running.retain(|inputs, _| wanted.contains(inputs));
        (self.facts, self.counted) = (facts, counted);
        if !became.is_empty() {
            replace(machine, became);
        }
    }

    /// What an instance of the model asks for.
    fn instance(
        &self,
        number: InstanceId,
        identity: String,
        resource: &Arc<DesiredResource>,
    ) -> Result<Instance, Box<Diagnostic>> {
        let refused = |message: String| Box::new(unfit(resource.span, message));
        let text = |name: &str| {
            let value = resource.parameters.get(name).and_then(Value::as_str);
            value.map(|text| text.to_lossy().into_owned()).unwrap_or_default()
        };
        let (directory, class) = (text(MODULE), text(CLASS));
        let module = self
            .programs
            .module(&directory)
            .ok_or_else(|| refused(format!("the model imports no program `{directory}`")))?;
        let offered = module.offered.iter().find(|offered| offered.class == class);
        let offered = offered.ok_or_else(|| {
            let mut error = refused(format!(
                "the program `{directory}` has no class `{class}` for a model"
            ));
            let names = module.offered.iter().map(|offered| offered.class.as_str());
            *error = error.clone().help_if(did_you_mean(&class, names));
            error
        })?;
        let given = resource.parameters.get(INPUTS).and_then(Value::as_map);
        let value = |(name, ty): &(String, setpoint_cf::project::PortType)| {
            let given = given.and_then(|given| given.get(&Value::str(name.as_str())));
            let given = given.ok_or_else(|| refused(format!("the class `{class}` is not given `{name}`")))?;
            ty.fitted(given).ok_or_else(|| {
                refused(format!(
                    "what the class `{class}` is given as `{name}` is no `{ty}`"
                ))
            })
        };
        let values = offered
            .inputs
            .iter()
            .map(value)
            .collect::<Result<Vec<Value>, _>>()?;
        let inputs = Inputs {
            directory,
            class,
            values,
        };
        Ok(Instance {
            number,
            identity,
            resource: resource.clone(),
            module: module.clone(),
            inputs,
        })
    }

    /// Begins what is new, and takes in what is there. What is begun is waited for.
    fn advance(&mut self, instances: &[Instance], evaluating: &Evaluating, diagnostics: &mut Diagnostics) {
        let mut begun = Vec::new();
        for instance in instances {
            let offered = instance.module.offered.iter();
            let mut offered = offered.filter(|offered| offered.class == instance.inputs.class);
            let Some(offered) = offered.next() else { continue };
            let class = match instance.module.class(offered) {
                Ok(class) => class,
                Err(why) => {
                    let message = format!("the class `{}` cannot be included: {why}", offered.class);
                    diagnostics.push(unfit(instance.resource.span, message));
                    continue;
                }
            };
            let known = self.running.get_mut(&instance.inputs);
            if let Some(running) = known.filter(|running| Arc::ptr_eq(&running.class, &class)) {
                running.take_news();
                continue;
            }
            let names = offered.inputs.iter().map(|(name, _)| name.clone());
            let values = names.zip(instance.inputs.values.iter().cloned()).collect();
            match Running::begin(class, &values, evaluating) {
                Ok(running) => {
                    self.running.insert(instance.inputs.clone(), running);
                    begun.push(&instance.inputs);
                }
                Err(failure) => {
                    diagnostics.push(unfit(instance.resource.span, failure.to_string()));
                }
            }
        }
        let deadline = Instant::now() + evaluating.wait;
        for inputs in begun {
            if let Some(running) = self.running.get_mut(inputs) {
                running.wait(deadline);
            }
        }
    }
}

fn unfit(span: Span, message: String) -> Diagnostic {
    Diagnostic::error(&codes::UNFIT, span, message).of_class("ResourceException")
}

/// A program that is evaluated.
struct Running {
    class: Arc<ClassProgram>,
    evaluator: Evaluator,
    woken: Woken,
    models: IncludedModels,
    /// What is wrong with it now.
    diagnostics: Diagnostics,
    /// What it waits for.
    pending: Vec<Pending>,
    is_finished: bool,
    /// What it has come to last; none before its first values.
    known: Option<Known>,
}

struct Known {
    part: Part,
    /// By the names of variables. Those that are not known are missing.
    outputs: BTreeMap<String, Datum>,
    has_unknown: bool,
}

impl Running {
    fn begin(
        class: Arc<ClassProgram>,
        inputs: &BTreeMap<String, Value>,
        evaluating: &Evaluating,
    ) -> Result<Running, Failure> {
        let capabilities = class.capabilities(evaluating)?;
        let woken = Woken::default();
        let (waking, ring) = (woken.clone(), evaluating.ring.clone());
        let wake = Box::new(move |source| {
            let ring = ring.clone();
            waking.wake_saying(source, move || ring())
        });
        let models = class.compilation.models.clone();
        let program = Arc::new(class.with_inputs(inputs));
        let evaluator = Evaluator::new(program, capabilities, wake).expanding(Arc::new(models.clone()));
        let evaluator = evaluating.access.limit(evaluator);
        let mut running = Running {
            class,
            evaluator,
            woken,
            models,
            diagnostics: Diagnostics::new(),
            pending: Vec::new(),
            is_finished: false,
            known: None,
        };
        let first = running.evaluator.step(&[]);
        running.take(first);
        Ok(running)
    }

    /// Takes what it has to tell now.
    fn take_news(&mut self) {
        self.wait(Instant::now());
    }

    /// Takes what it has to tell, until it waits for nothing or for too long.
    fn wait(&mut self, deadline: Instant) {
        loop {
            let until = match self.waits_for() {
                Some(_) => deadline,
                None => Instant::now(),
            };
            let news = self.woken.wait(Some(until));
            if news.is_empty() {
                return;
            }
            let step = self.evaluator.step(&news);
            self.take(step);
        }
    }

    fn take(&mut self, step: Step) {
        self.pending = step.pending;
        self.is_finished = step.is_finished;
        if !step.is_finished {
            return;
        }
        self.diagnostics = step.diagnostics;
        if let Some(graph) = step.graph {
            self.known = Some(Known::of(&graph, !step.unknown.is_empty()));
        }
    }

    /// What it waits for, in words; none if nothing.
    fn waits_for(&self) -> Option<String> {
        match self.pending.first() {
            Some(pending) => Some(format!("`{}` has no first value", pending.function)),
            None if !self.is_finished => Some("its program is being evaluated".to_owned()),
            None => None,
        }
    }

    fn texts(&self) -> SourceMap {
        match self.models.is_empty() {
            true => self.class.compilation.sources.clone(),
            false => self.models.texts(),
        }
    }
}

impl Known {
    fn of(graph: &DesiredGraph, mut has_unknown: bool) -> Known {
        let mut part = Part::default();
        let mut outputs = BTreeMap::new();
        let hidden = graph.hidden.values().flatten();
        for resource in graph.resources.values().chain(hidden) {
            if &*resource.id.kind != OUTPUT.kind {
                has_unknown |= resource
                    .parameters
                    .iter()
                    .any(|(_, value)| !value.is_wholly_known());
                part.resources.push(resource.clone());
                continue;
            }
            let value = resource.parameters.get(VALUE);
            let datum = value.and_then(|value| to_datum(value, &mut Unknowns::default()).ok());
            let is_known = |datum: &Datum| !datum.any_part(&mut |part| matches!(part, Datum::Unknown(_)));
            let name = resource.id.name.split_once(' ').map(|(_, name)| name.to_owned());
            if let (Some(name), Some(datum)) = (name, datum.filter(is_known)) {
                outputs.insert(name, datum);
            }
        }
        part.edges
            .extend(graph.edges.values().map(|edge| (**edge).clone()));
        Known {
            part,
            outputs,
            has_unknown,
        }
    }
}
